/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_runtimes.c: a program with a CUDA runtime of its own, the shared one, beside the one inside libattune.so.
 * They share the driver's contexts, memory, streams, events and captures; errors and nothing else are each one's
 * own. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#define CUDA(call) assert_int_equal((call), cudaSuccess)
enum { BYTES = 1 << 20, SIZE = 64 };

static attune_device *device;

/* The program's memory and streams under attune, attune's under the program. */
TEST(handles_go_both_ways) {
  cudaStream_t native = NULL;
  attune_stream *wrapped = NULL, *own = NULL;
  attune_event *event = NULL;
  void *theirs = NULL, *ours = NULL;
  unsigned char byte = 0;
  CUDA(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking));
  CUDA(cudaMalloc(&theirs, BYTES));
  OK(attune_stream_wrap(&wrapped, device, native));
  OK(attune_stream_create(&own, device));
  OK(attune_event_create(&event, device, NULL));
  OK(attune_alloc(&ours, own, BYTES));
  OK(attune_fill(wrapped, theirs, 5, BYTES));
  CUDA(cudaMemcpyAsync(&byte, (char *)theirs + BYTES - 1, 1, cudaMemcpyDefault, native));
  CUDA(cudaStreamSynchronize(native));
  assert_int_equal(byte, 5);
  CUDA(cudaMemsetAsync(ours, 6, BYTES, (cudaStream_t)attune_stream_native(own)));
  OK(attune_event_record(event, own));
  CUDA(cudaStreamWaitEvent(native, (cudaEvent_t)attune_event_native(event), 0));
  CUDA(cudaEventSynchronize((cudaEvent_t)attune_event_native(event)));
  OK(attune_copy(own, &byte, ours, 1));
  OK(attune_stream_synchronize(own));
  assert_int_equal(byte, 6);
  OK(attune_free(ours, own));
  attune_event_destroy(event);
  attune_stream_destroy(own);
  attune_stream_destroy(wrapped);
  CUDA(cudaFree(theirs));
  CUDA(cudaStreamDestroy(native));
}

/* A failure in attune is no error of the program's, and the program's own error outlives attune's calls. */
TEST(errors_stay_apart) {
  attune_stream *stream = NULL;
  void *memory = NULL;
  CUDA(cudaGetLastError());
  OK(attune_stream_create(&stream, device));
  assert_int_equal(attune_alloc(&memory, stream, (size_t)1 << 60), ATTUNE_OUT_OF_MEMORY);
  CUDA(cudaPeekAtLastError());
  const cudaError_t theirs = cudaMalloc(&memory, (size_t)1 << 60);
  assert_int_not_equal(theirs, cudaSuccess);
  OK(attune_alloc(&memory, stream, BYTES));
  OK(attune_fill(stream, memory, 1, BYTES));
  OK(attune_stream_synchronize(stream));
  OK(attune_free(memory, stream));
  assert_int_equal(cudaGetLastError(), theirs);
  attune_stream_destroy(stream);
}

/* Each device's work from a thread whose current device, by the program's runtime, is another one. */
TEST(the_programs_device_is_kept) {
  int count = 0, current = -1;
  CUDA(cudaGetDeviceCount(&count));
  for (int theirs = 0; theirs < count && theirs < 2; theirs++) {
    CUDA(cudaSetDevice(theirs));
    for (int ours = 0; ours < count && ours < 2; ours++) {
      char name[16];
      attune_device *other = NULL;
      attune_stream *stream = NULL;
      void *memory = NULL;
      struct cudaPointerAttributes found;
      snprintf(name, sizeof name, "cuda:%d", ours);
      for (int again = 0; again < 2; again++) { /* the second time the context is known */
        OK(attune_device_get(&other, name));
        OK(attune_stream_create(&stream, other));
        OK(attune_alloc(&memory, stream, BYTES));
        OK(attune_fill(stream, memory, 3, BYTES));
        OK(attune_stream_synchronize(stream));
        CUDA(cudaPointerGetAttributes(&found, memory));
        assert_int_equal(found.device, ours);
        CUDA(cudaGetDevice(&current));
        assert_int_equal(current, theirs);
        OK(attune_free(memory, stream));
        attune_stream_destroy(stream);
      }
    }
  }
  CUDA(cudaSetDevice(0));
}

typedef struct beside {
  attune_stream *stream;
  void *memory;
  attune_status status;
} beside;

static void *work_beside(void *argument) {
  beside *b = argument;
  b->status = attune_stream_create(&b->stream, device);
  if (b->status == ATTUNE_OK) b->status = attune_alloc(&b->memory, b->stream, 64 << 20);
  if (b->status == ATTUNE_OK) b->status = attune_fill(b->stream, b->memory, 1, BYTES);
  return NULL;
}

/* A product goes into the program's capture, and what another thread does in attune meanwhile does not break it: the
 * mode of the thread is the driver's, whichever runtime sets it. */
TEST(the_programs_capture) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  attune_tuner *tuner = NULL;
  attune_stream *wrapped = NULL;
  cudaStream_t native = NULL;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t executable = NULL;
  pthread_t thread;
  beside other = {NULL, NULL, ATTUNE_INTERNAL};
  static float ones[SIZE * SIZE], out[SIZE * SIZE];
  void *a = NULL, *d = NULL;
  for (int i = 0; i < SIZE * SIZE; i++) ones[i] = 1.0f;
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  problem.m = problem.n = problem.k = SIZE;
  OK(attune_tuner_create(&tuner, &options));
  CUDA(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking));
  CUDA(cudaMalloc(&a, sizeof ones));
  CUDA(cudaMalloc(&d, sizeof ones));
  CUDA(cudaMemcpy(a, ones, sizeof ones, cudaMemcpyHostToDevice));
  OK(attune_stream_wrap(&wrapped, device, native));
  const attune_gemm_operands operands = {.alpha = 1.0, .a = a, .b = a, .d = d};
  OK(attune_gemm(tuner, wrapped, &problem, &operands)); /* modules load, the workspace is made */
  CUDA(cudaStreamSynchronize(native));
  CUDA(cudaMemset(d, 0, sizeof ones));
  CUDA(cudaDeviceSynchronize()); /* the stream does not wait for the legacy one */
  CUDA(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal));
  OK(attune_gemm(tuner, wrapped, &problem, &operands));
  assert_int_equal(pthread_create(&thread, NULL, work_beside, &other), 0);
  pthread_join(thread, NULL);
  CUDA(cudaStreamEndCapture(native, &graph));
  assert_int_equal(other.status, ATTUNE_OK);
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphLaunch(executable, native));
  CUDA(cudaStreamSynchronize(native));
  CUDA(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < SIZE * SIZE; i++) assert_true(out[i] == (float)SIZE);
  OK(attune_free(other.memory, other.stream));
  attune_stream_destroy(other.stream);
  CUDA(cudaGraphExecDestroy(executable));
  CUDA(cudaGraphDestroy(graph));
  attune_stream_destroy(wrapped);
  CUDA(cudaFree(a));
  CUDA(cudaFree(d));
  CUDA(cudaStreamDestroy(native));
  attune_tuner_destroy(tuner);
}

int main(void) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  return RUN_TESTS(NULL, NULL);
}
