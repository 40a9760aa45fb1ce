/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_graph.c: graphs on the GPU: a replay does what the work does eagerly, with memory of the graph's own,
 * GEMMs, copies, random numbers and streams that fork. */
#include "tests/support/cuda_graph.h"
#include "tests/support/decision.h"
#include "tests/support/gpu.h"

TEST(replay_is_eager) {
  static float eager[2][COUNT], replayed[COUNT];
  scene s = new_scene();
  attune_graph *graph = new_graph();
  attune_stream *other = new_stream();
  for (unsigned seed = 0; seed < 2; seed++) {
    fill_random(s.stream, s.a, 10 + seed);
    OK(with_memory(&s, s.stream));
    read_back(s.stream, eager[seed], s.d);
  }
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  assert_true(at_stream_capturing(s.stream));
  FAILS(attune_stream_synchronize(s.stream), ATTUNE_CAPTURING);
  FAILS(attune_device_synchronize(device), ATTUNE_CAPTURING);
  OK(with_memory(&s, s.stream));
  OK(attune_graph_capture_end(graph, s.stream));
  assert_true(attune_graph_node_count(graph) >= 4);
  for (unsigned turn = 0; turn < 6; turn++) { /* also after a stream it was not captured on */
    attune_stream *on = turn % 3 == 2 ? attune_stream_default(device) : turn % 3 ? other : s.stream;
    fill_random(s.stream, s.a, 10 + turn % 2);
    OK(attune_fill(s.stream, s.d, 0xff, BYTES));
    OK(attune_stream_synchronize(s.stream));
    OK(attune_graph_replay(graph, on));
    read_back(on, replayed, s.d);
    assert_memory_equal(replayed, eager[turn % 2], BYTES);
  }
  attune_graph_destroy(graph);
  attune_stream_destroy(other);
  end_scene(&s);
}

/* The stream of the capture is gone, and eager work allocates and multiplies beside the replays: neither disturbs the
 * other. */
TEST(a_graph_stands_alone) {
  static float eager[COUNT], replayed[COUNT];
  scene s = new_scene(), noise = new_scene();
  attune_graph *graph = new_graph();
  attune_stream *captured = new_stream();
  OK(with_memory(&s, s.stream));
  read_back(s.stream, eager, s.d);
  OK(attune_graph_capture_callback(graph, captured, NULL, with_memory, &s));
  attune_stream_destroy(captured);
  OK(attune_memory_empty_cache(device));
  for (int turn = 0; turn < 50; turn++) {
    OK(attune_fill(s.stream, s.d, 0xff, BYTES));
    OK(attune_graph_replay(graph, s.stream));
    for (int i = 0; i < 4; i++) OK(with_memory(&noise, noise.stream));
    read_back(s.stream, replayed, s.d);
    assert_memory_equal(replayed, eager, BYTES);
  }
  attune_graph_destroy(graph);
  end_scene(&noise);
  end_scene(&s);
}

/* D = A B on the stream beside B B on another, then both joined. */
typedef struct forked {
  scene s;
  attune_stream *side;
  attune_event *out, *back;
  float *x, *y;
} forked;

static attune_status fork_and_join(void *user, attune_stream *stream) {
  forked *f = user;
  attune_status status = multiply(stream, f->s.a, f->s.b, f->x);
  if (status == ATTUNE_OK) status = attune_event_record(f->out, stream);
  if (status == ATTUNE_OK) status = attune_stream_wait_event(f->side, f->out);
  if (status == ATTUNE_OK) status = multiply(f->side, f->x, f->s.b, f->y);
  if (status == ATTUNE_OK) status = attune_event_record(f->back, f->side);
  if (status == ATTUNE_OK) status = multiply(stream, f->s.b, f->x, f->s.d);
  if (status == ATTUNE_OK) status = attune_stream_wait_event(stream, f->back);
  if (status == ATTUNE_OK) status = multiply(stream, f->y, f->s.d, f->x);
  return status;
}

TEST(streams_fork_and_join) {
  static float eager[COUNT], replayed[COUNT];
  forked f = {.s = new_scene(), .side = new_stream(), .out = new_event(), .back = new_event()};
  attune_graph *graph = new_graph();
  attune_stream *stream = f.s.stream;
  OK(attune_alloc((void **)&f.x, stream, BYTES));
  OK(attune_alloc((void **)&f.y, stream, BYTES));
  OK(attune_stream_synchronize(stream));
  OK(fork_and_join(&f, stream));
  read_back(stream, eager, f.x);
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(fork_and_join(&f, stream));
  assert_true(at_stream_capturing(f.side));
  FAILS(attune_event_query(f.out), ATTUNE_CAPTURING);
  FAILS(attune_stream_query(f.side), ATTUNE_CAPTURING);
  OK(attune_graph_capture_end(graph, stream));
  assert_false(at_stream_capturing(f.side));
  for (int turn = 0; turn < 3; turn++) {
    OK(attune_fill(stream, f.x, 0xff, BYTES));
    OK(attune_graph_replay(graph, stream));
    read_back(stream, replayed, f.x);
    assert_memory_equal(replayed, eager, BYTES);
  }
  FAILS(attune_event_query(f.out), ATTUNE_CAPTURING);
  FAILS(attune_stream_wait_event(stream, f.out), ATTUNE_INVALID_ARGUMENT);
  OK(attune_event_record(f.out, stream));
  OK(attune_event_synchronize(f.out));
  /* Not joined back. */
  OK(attune_graph_reset(graph));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_event_record(f.out, stream));
  OK(attune_stream_wait_event(f.side, f.out));
  OK(attune_fill(f.side, f.y, 0, BYTES));
  FAILS(attune_graph_capture_end(graph, stream), ATTUNE_CAPTURING);
  assert_no_stale_error();
  OK(attune_graph_capture_callback(graph, stream, NULL, fork_and_join, &f));
  attune_graph_destroy(graph);
  OK(attune_free(f.x, stream));
  OK(attune_free(f.y, stream));
  attune_event_destroy(f.out);
  attune_event_destroy(f.back);
  attune_stream_destroy(f.side);
  end_scene(&f.s);
}

static attune_status fill_two(void *user, attune_stream *stream) {
  scene *s = user;
  attune_status status = attune_fill(stream, s->d, (int)s->value, BYTES / 2);
  return status == ATTUNE_OK ? attune_fill(stream, (char *)s->d + BYTES / 2, (int)s->value, BYTES / 2) : status;
}
static attune_status refuse(void *user, attune_stream *stream) {
  (void)fill_one(user, stream);
  return at_fail(ATTUNE_IO_ERROR, "refused");
}

TEST(updates) {
  int in_place = -1;
  scene s = new_scene();
  attune_graph *graph = new_graph();
  s.value = 1;
  OK(attune_graph_capture_callback(graph, s.stream, NULL, fill_one, &s));
  OK(attune_graph_replay(graph, s.stream));
  assert_filled(&s, 1);
  void *executable = attune_graph_native_executable(graph);
  assert_non_null(executable);
  s.value = 2;
  OK(attune_graph_update(graph, s.stream, fill_one, &s, &in_place));
  assert_int_equal(in_place, 1);
  assert_ptr_equal(attune_graph_native_executable(graph), executable);
  OK(attune_graph_replay(graph, s.stream));
  assert_filled(&s, 2);
  s.value = 3;
  FAILS(attune_graph_update(graph, s.stream, refuse, &s, &in_place), ATTUNE_IO_ERROR);
  OK(attune_graph_replay(graph, s.stream));
  assert_filled(&s, 2);
  OK(attune_graph_update(graph, s.stream, fill_two, &s, &in_place));
  assert_int_equal(in_place, 0);
  assert_int_equal(attune_graph_node_count(graph), 2);
  OK(attune_graph_replay(graph, s.stream));
  assert_filled(&s, 3);
  attune_graph_destroy(graph);
  end_scene(&s);
}

TEST(kept_graphs) {
  scene s = new_scene();
  attune_graph *graph = new_graph();
  attune_capture_options keep = ATTUNE_CAPTURE_OPTIONS_INIT;
  char path[] = "/tmp/attune-graph-XXXXXX", text[64] = "";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  keep.keep_graph = 1;
  s.value = 9;
  OK(attune_graph_capture_callback(graph, s.stream, &keep, fill_one, &s));
  assert_non_null(attune_graph_native(graph));
  assert_null(attune_graph_native_executable(graph));
  OK(attune_graph_debug_dump(graph, path, 0));
  assert_true(read(file, text, sizeof text - 1) > 0);
  assert_non_null(strstr(text, "digraph"));
  OK(attune_graph_replay(graph, s.stream));
  assert_filled(&s, 9);
  unsigned long long flags = 0;
  cudaGraphExec_t executable = (cudaGraphExec_t)attune_graph_native_executable(graph);
  assert_int_equal(cudaGraphExecGetFlags(executable, &flags), cudaSuccess);
  assert_int_equal(flags & cudaGraphInstantiateFlagAutoFreeOnLaunch, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_replay(graph, s.stream));
  OK(attune_stream_synchronize(s.stream));
  FAILS(attune_graph_debug_dump(graph, "/nonexistent/x.dot", 0), ATTUNE_NOT_FOUND);
  OK(attune_graph_reset(graph));
  OK(attune_graph_capture_callback(graph, s.stream, NULL, fill_one, &s));
  assert_null(attune_graph_native(graph));
  FAILS(attune_graph_debug_dump(graph, path, 0), ATTUNE_INVALID_ARGUMENT);
  close(file);
  unlink(path);
  attune_graph_destroy(graph);
  end_scene(&s);
}

/* Two graphs of one pool, replayed in the order of capture: what the first leaves, the second reads. */
TEST(a_shared_pool) {
  scene s = new_scene();
  attune_graph *first = new_graph(), *second = new_graph();
  attune_capture_options share = ATTUNE_CAPTURE_OPTIONS_INIT;
  void *kept = NULL;
  OK(attune_graph_capture_begin(first, s.stream, NULL));
  OK(attune_alloc(&kept, s.stream, BYTES));
  OK(attune_fill(s.stream, kept, 5, BYTES));
  OK(attune_graph_capture_end(first, s.stream));
  share.share = first;
  OK(attune_graph_capture_begin(second, s.stream, &share));
  OK(with_memory(&s, s.stream));
  OK(attune_copy(s.stream, s.d, kept, BYTES));
  OK(attune_graph_capture_end(second, s.stream));
  for (int turn = 0; turn < 3; turn++) {
    OK(attune_graph_replay(first, s.stream));
    OK(attune_graph_replay(second, s.stream));
    assert_filled(&s, 5);
  }
  OK(attune_free(kept, s.stream));
  attune_graph_destroy(first); /* the pool lives with the second */
  OK(attune_graph_replay(second, s.stream));
  OK(attune_stream_synchronize(s.stream));
  attune_graph_destroy(second);
  end_scene(&s);
}

/* In a capture a GEMM in mode tune takes a guess; asked afterwards it is tuned, and the next capture has the winner. */
TEST(gemms_are_tuned_afterwards) {
  int tuned = -1;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  DECISION(decision);
  scene s = new_scene();
  attune_graph *graph = new_graph();
  attune_tuner *const shared = tuner;
  options.database = "";
  options.mode = ATTUNE_MODE_TUNE;
  OK(attune_tuner_create(&tuner, &options));
  OK(attune_graph_capture_callback(graph, s.stream, NULL, with_memory, &s));
  OK(attune_explain(tuner, device, "gemm f32 nn 128x128x128 strict", decision));
  assert_true(info_of(decision).source <= ATTUNE_SOURCE_NEIGHBOUR);
  OK(attune_tuner_tune_pending(tuner, 0, &tuned));
  assert_int_equal(tuned, 1);
  OK(attune_explain(tuner, device, "gemm f32 nn 128x128x128 strict", decision));
  assert_int_equal(info_of(decision).source, ATTUNE_SOURCE_TUNED);
  OK(attune_tuner_tune_pending(tuner, 0, &tuned));
  assert_int_equal(tuned, 0);
  OK(attune_graph_update(graph, s.stream, with_memory, &s, NULL));
  OK(attune_graph_replay(graph, s.stream));
  OK(attune_stream_synchronize(s.stream));
  attune_graph_destroy(graph);
  attune_tuner_destroy(tuner);
  tuner = shared;
  end_scene(&s);
}

static attune_generator *generator;

static attune_status with_numbers(void *user, attune_stream *stream) {
  scene *s = user;
  attune_status status = attune_random_normal(generator, stream, s->a, ATTUNE_F32, COUNT, 0.0, 1.0);
  return status == ATTUNE_OK ? with_memory(s, stream) : status;
}

/* Each replay draws what the eager calls would draw next. */
TEST(random_numbers_go_on) {
  enum { TURNS = 4 };
  static float eager[TURNS][COUNT], replayed[COUNT];
  scene s = new_scene();
  attune_graph *graph = new_graph();
  OK(attune_generator_create(&generator, 5));
  for (int i = 0; i < TURNS; i++) {
    OK(with_numbers(&s, s.stream));
    read_back(s.stream, eager[i], s.d);
  }
  OK(attune_generator_set_seed(generator, 5));
  FAILS(attune_graph_capture_callback(graph, s.stream, NULL, with_numbers, &s), ATTUNE_CAPTURING); /* not registered */
  OK(attune_graph_register_generator(graph, generator));
  OK(attune_graph_capture_callback(graph, s.stream, NULL, with_numbers, &s));
  for (int i = 0; i < TURNS; i++) {
    if (i == 2) OK(attune_graph_update(graph, s.stream, with_numbers, &s, NULL));
    OK(attune_graph_replay(graph, s.stream));
    read_back(s.stream, replayed, s.d);
    assert_memory_equal(replayed, eager[i], BYTES);
  }
  attune_generator_destroy(generator);
  attune_graph_destroy(graph);
  end_scene(&s);
}

/* attune's capture and one of the program's own: each is told, and none broken by the question. */
TEST(captures_can_be_asked_for) {
  scene s = new_scene();
  attune_stream *other = new_stream();
  attune_graph *graph = new_graph();
  attune_capture_info info = {0}, apart = {0};
  cudaGraph_t own = NULL;
  OK(attune_stream_capture_info(s.stream, &info));
  assert_true(info.state == ATTUNE_CAPTURE_NONE && info.id == 0 && !info.graph);
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  assert_int_equal(cudaStreamBeginCapture(attune_stream_native(other), cudaStreamCaptureModeThreadLocal), cudaSuccess);
  OK(attune_stream_capture_info(s.stream, &info));
  OK(attune_stream_capture_info(other, &apart));
  assert_true(info.state == ATTUNE_CAPTURE_ACTIVE && info.graph == graph && info.id != 0);
  assert_true(apart.state == ATTUNE_CAPTURE_ACTIVE && !apart.graph && apart.id != 0 && apart.id != info.id);
  assert_int_equal(attune_stream_is_capturing(other), 1);
  OK(attune_fill(s.stream, s.d, 1, BYTES));
  OK(attune_graph_capture_end(graph, s.stream));
  assert_int_equal(cudaStreamEndCapture(attune_stream_native(other), &own), cudaSuccess);
  assert_int_equal(cudaGraphDestroy(own), cudaSuccess);
  assert_int_equal(attune_stream_is_capturing(other), 0);
  attune_graph_destroy(graph);
  attune_stream_destroy(other);
  end_scene(&s);
}

/* Two graphs on a pool of the program's; a clone that outlives its graph; an upload runs nothing. */
TEST(pools_clones_and_uploads) {
  static float eager[COUNT], replayed[COUNT];
  scene s = new_scene();
  attune_pool *pool = NULL, *same = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  attune_graph *first = new_graph(), *second = new_graph(), *clone = NULL;
  attune_pool_info info = {0};
  OK(with_memory(&s, s.stream));
  read_back(s.stream, eager, s.d);
  OK(attune_pool_create(&pool, device, NULL));
  options.pool = pool;
  options.keep_graph = 1;
  OK(attune_graph_capture_callback(first, s.stream, &options, with_memory, &s));
  OK(attune_pool_get_info(pool, &info));
  assert_true(info.reserved_bytes >= 2 * BYTES);
  OK(attune_graph_capture_callback(second, s.stream, &options, with_memory, &s));
  OK(attune_graph_pool(second, &same));
  assert_ptr_equal(same, pool);
  attune_pool_destroy(same);
  attune_pool_destroy(pool);
  OK(attune_graph_clone(&clone, first));
  assert_int_equal(attune_graph_node_count(clone), attune_graph_node_count(first));
  assert_ptr_not_equal(attune_graph_native(clone), attune_graph_native(first));
  attune_graph_destroy(first);
  attune_graph *graphs[] = {clone, second};
  for (int i = 0; i < 2; i++) {
    OK(attune_fill(s.stream, s.d, 0, BYTES));
    OK(attune_graph_upload(graphs[i], s.stream));
    read_back(s.stream, replayed, s.d);
    assert_true(replayed[0] == 0.0f && replayed[COUNT - 1] == 0.0f);
    OK(attune_graph_replay(graphs[i], s.stream));
    read_back(s.stream, replayed, s.d);
    assert_memory_equal(replayed, eager, BYTES);
  }
  attune_graph_destroy(clone);
  attune_graph_destroy(second);
  end_scene(&s);
}

/* Memory that a graph itself allocates: held after a replay, given back by trim. */
TEST(graphs_memory_is_trimmed) {
  scene s = new_scene();
  attune_graph *graph = new_graph();
  uint64_t used = 0, held = 0, left = 0;
  void *memory = NULL;
  OK(attune_graph_trim(device));
  OK(attune_graph_memory(device, NULL, &left));
  OK(attune_graph_capture_begin(graph, s.stream, NULL));
  assert_int_equal(cudaMallocAsync(&memory, 64 << 20, attune_stream_native(s.stream)), cudaSuccess);
  OK(attune_fill(s.stream, memory, 1, 64 << 20));
  assert_int_equal(cudaFreeAsync(memory, attune_stream_native(s.stream)), cudaSuccess);
  OK(attune_graph_capture_end(graph, s.stream));
  OK(attune_graph_replay(graph, s.stream));
  OK(attune_stream_synchronize(s.stream));
  OK(attune_graph_memory(device, &used, &held));
  assert_true(held >= left + (64 << 20) && used <= held);
  attune_graph_destroy(graph);
  OK(attune_graph_trim(device));
  OK(attune_graph_memory(device, NULL, &held));
  assert_true(held <= left);
  end_scene(&s);
}

static attune_status square(void *user, attune_stream *stream, void *const *in, void *const *out) {
  (void)user;
  return multiply(stream, in[0], in[1], out[0]);
}

TEST(a_graphed_function) {
  static float eager[COUNT], returned[COUNT];
  static const size_t sizes[] = {BYTES, BYTES};
  scene s = new_scene();
  attune_graph_callable *graphed = NULL;
  attune_graph_callable_options options = ATTUNE_GRAPHED_OPTIONS_INIT;
  options.input_count = 2;
  options.output_count = 1;
  options.input_bytes = options.output_bytes = sizes;
  OK(attune_graph_callable_create(&graphed, device, &options, square, NULL));
  for (unsigned turn = 0; turn < 3; turn++) {
    const void *in[] = {s.a, turn == 1 ? NULL : s.b};
    void *out[] = {s.d};
    fill_random(s.stream, s.a, 30 + turn);
    OK(multiply(s.stream, s.a, s.b, s.d));
    read_back(s.stream, eager, s.d);
    OK(attune_fill(s.stream, s.d, 0xff, BYTES));
    OK(attune_graph_callable_call(graphed, s.stream, in, out));
    read_back(s.stream, returned, s.d);
    assert_memory_equal(returned, eager, BYTES);
    read_back(s.stream, returned, attune_graph_callable_output(graphed, 0));
    assert_memory_equal(returned, eager, BYTES);
  }
  attune_graph_callable_destroy(graphed);
  end_scene(&s);
}

int main(void) {
  attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
