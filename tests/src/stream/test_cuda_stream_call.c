/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_stream_call.c: functions of the program in the order of CUDA streams, in captures of attune's and of the
 * program. */
#include <attune/attune.h>
#include <attune/graph.h>
#include <attune/pinned.h>

#include "tests/support/check.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

enum { COUNT = 256 };

static attune_device *device;

/* x becomes x + 1 on the CPU, between two copies. */
typedef struct step {
  unsigned char *host, *device;
  pthread_t thread;
  int calls;
} step;

static void increment(void *user) {
  step *s = user;
  for (int i = 0; i < COUNT; i++) s->host[i]++;
  s->thread = pthread_self();
  s->calls++;
}

static attune_status give_step(void *user, attune_stream *stream) {
  step *s = user;
  attune_status status = attune_copy(stream, s->host, s->device, COUNT);
  if (status == ATTUNE_OK) status = attune_stream_call(stream, increment, s);
  return status == ATTUNE_OK ? attune_copy(stream, s->device, s->host, COUNT) : status;
}

static step new_step(attune_stream *stream, int value) {
  step s = {.calls = 0};
  OK(attune_pinned_alloc((void **)&s.host, device, COUNT));
  OK(attune_alloc((void **)&s.device, stream, COUNT));
  OK(attune_fill(stream, s.device, value, COUNT));
  return s;
}

static void end_step(step *s, attune_stream *stream) {
  OK(attune_free(s->device, stream));
  OK(attune_pinned_free(s->host));
}

static int value_of(const step *s, attune_stream *stream) {
  unsigned char back[COUNT];
  OK(attune_copy(stream, back, s->device, COUNT));
  OK(attune_stream_synchronize(stream));
  for (int i = 1; i < COUNT; i++) assert_int_equal(back[i], back[0]);
  return back[0];
}

TEST(in_order) {
  attune_stream *made = NULL, *all[2];
  OK(attune_stream_create(&made, device));
  all[0] = made;
  all[1] = attune_stream_default(device);
  for (int i = 0; i < 2; i++) {
    step s = new_step(all[i], 5);
    for (int turn = 0; turn < 10; turn++) OK(give_step(&s, all[i]));
    assert_int_equal(value_of(&s, all[i]), 15);
    assert_int_equal(s.calls, 10);
    assert_false(pthread_equal(s.thread, pthread_self()));
    end_step(&s, all[i]);
  }
  attune_stream_destroy(made);
}

TEST(in_a_graph) {
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  int in_place = 0;
  OK(attune_stream_create(&stream, device));
  step s = new_step(stream, 1), other = new_step(stream, 100);
  OK(attune_graph_create(&graph, device));
  OK(attune_stream_synchronize(stream));
  OK(attune_graph_capture_callback(graph, stream, NULL, give_step, &s));
  assert_int_equal(s.calls, 0);
  assert_int_equal(attune_graph_node_count(graph), 3);
  for (int i = 0; i < 3; i++) OK(attune_graph_replay(graph, stream));
  assert_int_equal(value_of(&s, stream), 4);
  assert_int_equal(s.calls, 3);
  OK(attune_graph_update(graph, stream, give_step, &other, &in_place));
  assert_int_equal(in_place, 1);
  OK(attune_graph_replay(graph, stream));
  assert_int_equal(value_of(&other, stream), 101);
  assert_int_equal(s.calls, 3);
  attune_graph_destroy(graph);
  end_step(&s, stream);
  end_step(&other, stream);
  attune_stream_destroy(stream);
}

/* The program captures its own stream, which attune only wraps. */
TEST(in_a_capture_of_the_program) {
  cudaStream_t native = NULL;
  cudaGraph_t captured = NULL;
  cudaGraphExec_t executable = NULL;
  attune_stream *stream = NULL;
  assert_int_equal(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  OK(attune_stream_wrap(&stream, device, native));
  step s = new_step(stream, 9);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal), cudaSuccess);
  OK(give_step(&s, stream));
  assert_int_equal(cudaStreamEndCapture(native, &captured), cudaSuccess);
  assert_int_equal(s.calls, 0);
  assert_int_equal(cudaGraphInstantiateWithFlags(&executable, captured, 0), cudaSuccess);
  for (int i = 0; i < 2; i++) assert_int_equal(cudaGraphLaunch(executable, native), cudaSuccess);
  assert_int_equal(value_of(&s, stream), 11);
  assert_int_equal(s.calls, 2);
  assert_int_equal(cudaGraphExecDestroy(executable), cudaSuccess);
  assert_int_equal(cudaGraphDestroy(captured), cudaSuccess);
  end_step(&s, stream);
  attune_stream_destroy(stream);
  assert_int_equal(cudaStreamDestroy(native), cudaSuccess);
}

/* A disk that is full is told, as on the host. */
TEST(dumps) {
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  OK(attune_stream_create(&stream, device));
  step s = new_step(stream, 1);
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_callback(graph, stream, &(attune_capture_options){.keep_graph = 1}, give_step, &s));
  assert_int_equal(attune_graph_debug_dump(graph, "/dev/full", 0), ATTUNE_IO_ERROR);
  assert_int_equal(attune_graph_debug_dump(graph, "/nonexistent/x.dot", 0), ATTUNE_NOT_FOUND);
  assert_int_equal(attune_graph_debug_dump(graph, "/tmp", 0), ATTUNE_IO_ERROR);
  OK(attune_graph_debug_dump(graph, "/dev/null", 0));
  attune_graph_destroy(graph);
  OK(attune_stream_synchronize(stream));
  end_step(&s, stream);
  attune_stream_destroy(stream);
}

int main(void) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  return RUN_TESTS(NULL, NULL);
}
