/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_graph_misuse.c: captures on the GPU that go wrong, that the program begins itself, and of many threads at
 * once. */
#include "tests/support/cuda_graph.h"

static void usable_after(attune_graph *graph, scene *s) {
  assert_no_stale_error();
  assert_false(at_stream_capturing(s->stream));
  FAILS(attune_graph_replay(graph, s->stream), ATTUNE_INVALID_ARGUMENT);
  s->value = 7;
  OK(attune_graph_capture_callback(graph, s->stream, NULL, fill_one, s));
  OK(attune_graph_replay(graph, s->stream));
  assert_filled(s, 7);
  OK(attune_graph_reset(graph));
}

TEST(misuse) {
  scene s = new_scene();
  attune_graph *graph = new_graph(), *second = new_graph();
  attune_event *event = new_event();
  attune_stream *other = new_stream();
  void *memory = NULL;
  FAILS(attune_graph_capture_begin(graph, attune_stream_default(device), NULL), ATTUNE_UNSUPPORTED);
  FAILS(attune_graph_capture_end(graph, s.stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  FAILS(attune_graph_capture_begin(graph, other, NULL), ATTUNE_BUSY);
  FAILS(attune_graph_capture_begin(second, s.stream, NULL), ATTUNE_CAPTURING);
  FAILS(attune_graph_capture_end(graph, other), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_replay(graph, other), ATTUNE_CAPTURING);
  OK(attune_fill(s.stream, s.d, 1, BYTES));
  OK(attune_graph_capture_end(graph, s.stream));
  FAILS(attune_graph_capture_begin(graph, s.stream, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_reset(graph));
  usable_after(graph, &s);
  /* A wait for work outside of the capture breaks it. */
  OK(attune_event_record(event, other));
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  OK(attune_alloc(&memory, s.stream, BYTES));
  FAILS(attune_stream_wait_event(s.stream, event), ATTUNE_CAPTURING);
  FAILS(attune_graph_capture_end(graph, s.stream), ATTUNE_CAPTURING);
  OK(attune_free(memory, s.stream));
  usable_after(graph, &s);
  /* So does a call of the program's that a capture forbids. */
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  assert_int_not_equal(cudaStreamSynchronize((cudaStream_t)attune_stream_native(s.stream)), cudaSuccess);
  (void)cudaGetLastError();
  FAILS(attune_graph_capture_end(graph, s.stream), ATTUNE_CAPTURING);
  usable_after(graph, &s);
  /* The graph is destroyed in its capture, and the stream in one. */
  OK(attune_graph_capture_begin(second, s.stream, NULL));
  OK(with_memory(&s, s.stream));
  attune_graph_destroy(second);
  usable_after(graph, &s);
  OK(attune_graph_capture_begin(graph, other, NULL));
  OK(attune_fill(other, s.d, 1, BYTES));
  attune_stream_destroy(other);
  usable_after(graph, &s);
  attune_event_destroy(event);
  attune_graph_destroy(graph);
  end_scene(&s);
}

/* The program captures its stream itself: attune's work is captured with it, and attune's own captures keep away. */
TEST(a_capture_of_the_program) {
  static float eager[COUNT], replayed[COUNT];
  scene s = new_scene();
  attune_graph *graph = new_graph();
  cudaStream_t native = (cudaStream_t)attune_stream_native(s.stream);
  cudaGraph_t captured = NULL;
  cudaGraphExec_t executable = NULL;
  void *memory = NULL;
  OK(multiply(s.stream, s.a, s.b, s.d));
  read_back(s.stream, eager, s.d);
  assert_int_equal(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  assert_true(at_stream_capturing(s.stream));
  FAILS(attune_graph_capture_begin(graph, s.stream, NULL), ATTUNE_CAPTURING);
  FAILS(attune_alloc(&memory, s.stream, BYTES), ATTUNE_CAPTURING);
  OK(multiply(s.stream, s.a, s.b, s.d));
  assert_int_equal(cudaStreamEndCapture(native, &captured), cudaSuccess);
  assert_int_equal(cudaGraphInstantiateWithFlags(&executable, captured, 0), cudaSuccess);
  OK(attune_fill(s.stream, s.d, 0, BYTES));
  assert_int_equal(cudaGraphLaunch(executable, native), cudaSuccess);
  read_back(s.stream, replayed, s.d);
  assert_memory_equal(replayed, eager, BYTES);
  assert_int_equal(cudaGraphExecDestroy(executable), cudaSuccess);
  assert_int_equal(cudaGraphDestroy(captured), cudaSuccess);
  attune_graph_destroy(graph);
  end_scene(&s);
}

/* A replay into the program's own capture is refused and leaves the capture as it was. */
TEST(replays_into_the_programs_capture) {
  scene s = new_scene();
  attune_graph *graph = new_graph();
  attune_generator *generator = NULL;
  cudaStream_t native = (cudaStream_t)attune_stream_native(s.stream);
  cudaGraph_t captured = NULL;
  s.value = 3;
  OK(attune_generator_create(&generator, 1));
  OK(attune_graph_capture_callback(graph, s.stream, NULL, fill_one, &s));
  assert_int_equal(cudaStreamBeginCapture(native, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  FAILS(attune_graph_replay(graph, s.stream), ATTUNE_CAPTURING);
  OK(attune_graph_register_generator(graph, generator));
  FAILS(attune_graph_replay(graph, s.stream), ATTUNE_CAPTURING);
  assert_int_equal(cudaStreamEndCapture(native, &captured), cudaSuccess);
  assert_int_equal(cudaGraphDestroy(captured), cudaSuccess);
  OK(attune_graph_replay(graph, s.stream));
  assert_filled(&s, 3);
  attune_graph_destroy(graph);
  attune_generator_destroy(generator);
  end_scene(&s);
}

/* Threads that capture at the same time, in every mode but global. */
static void *capture_and_replay(void *arg) {
  static const attune_capture_mode modes[] = {ATTUNE_CAPTURE_THREAD_LOCAL, ATTUNE_CAPTURE_RELAXED};
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  unsigned char *host = malloc(BYTES);
  void *memory = NULL;
  bool ok =
      host && attune_stream_create(&stream, device) == ATTUNE_OK && attune_graph_create(&graph, device) == ATTUNE_OK;
  for (int i = 1; i <= 20 && ok; i++) {
    attune_capture_options o = {.mode = modes[i % 2]};
    ok = attune_graph_capture_begin(graph, stream, &o) == ATTUNE_OK &&
         attune_alloc(&memory, stream, BYTES) == ATTUNE_OK && attune_fill(stream, memory, i, BYTES) == ATTUNE_OK &&
         attune_graph_capture_end(graph, stream) == ATTUNE_OK && attune_graph_replay(graph, stream) == ATTUNE_OK &&
         attune_copy(stream, host, memory, BYTES) == ATTUNE_OK && attune_stream_synchronize(stream) == ATTUNE_OK &&
         host[0] == i && host[BYTES - 1] == i && attune_free(memory, stream) == ATTUNE_OK &&
         attune_graph_reset(graph) == ATTUNE_OK;
    if (!ok) snprintf(arg, 400, "turn %d: %.300s", i, attune_last_message());
  }
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  free(host);
  return NULL;
}

TEST(threads_capture_at_once) {
  pthread_t threads[4];
  char messages[4][400] = {"", "", "", ""};
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, capture_and_replay, messages[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) assert_string_equal(messages[i], "");
  assert_no_stale_error();
}

int main(void) {
  attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  if (attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
