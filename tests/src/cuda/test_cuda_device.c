/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_device.c: the CUDA backend: properties, memory, streams, events, graphs, handles, errors, threads. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <cuda.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cuda/blas/blas.h"
#include "src/cuda/context/state.h"

#define BYTES ((size_t)1 << 20)
#define THREADS 4
#define DIED 42 /* the child's exit status when the lost device behaves as it should */

extern char **environ;
static attune_device *device;

/* attune must leave no error of its own behind in this thread. */
static void assert_no_stale_error(void) {
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static void assert_bytes(attune_stream *stream, const void *memory, int value) {
  static unsigned char host[BYTES];
  OK(attune_copy(stream, host, memory, BYTES));
  OK(attune_stream_synchronize(stream));
  for (size_t i = 0; i < BYTES; i++)
    if (host[i] != value) fail_msg("byte %zu is %d; should be %d", i, host[i], value);
}

TEST(properties) {
  attune_device_properties p = {0};
  OK(attune_device_get_properties(device, &p));
  assert_int_equal(p.kind, ATTUNE_DEVICE_CUDA);
  assert_true(strlen(p.name) > 0);
  assert_true(p.memory_bytes > (uint64_t)1 << 28);
  assert_true(p.processors > 0 && p.capability_major >= 5 && p.cache_bytes > 0 && p.driver_version >= 12000);
  assert_true(strncmp(p.features, "sm_", 3) == 0);
  assert_string_equal(attune_device_name(device), "cuda:0");
}

static void memory_on(attune_stream *stream) {
  void *a = NULL, *b = NULL;
  OK(attune_alloc(&a, stream, BYTES));
  OK(attune_alloc(&b, stream, BYTES));
  assert_int_equal((uintptr_t)a % 256, 0);
  OK(attune_fill(stream, a, 0x5a, BYTES));
  OK(attune_copy(stream, b, a, BYTES));
  assert_bytes(stream, b, 0x5a);
  OK(attune_free(a, stream));
  OK(attune_free(b, stream));
}

TEST(memory_on_every_kind_of_stream) {
  attune_stream *made = NULL, *wrapped = NULL;
  cudaStream_t native = NULL;
  assert_int_equal(cudaStreamCreate(&native), cudaSuccess);
  OK(attune_stream_create(&made, device));
  OK(attune_stream_wrap(&wrapped, device, native));
  assert_ptr_equal(attune_stream_native(wrapped), native);
  memory_on(made);
  memory_on(wrapped);
  memory_on(attune_stream_default(device));
  attune_stream_destroy(made);
  attune_stream_destroy(wrapped);
  assert_int_equal(cudaStreamSynchronize(native), cudaSuccess);
  assert_int_equal(cudaStreamDestroy(native), cudaSuccess);
}

TEST(too_much_memory) {
  void *memory = NULL;
  attune_stream *stream = attune_stream_default(device);
  assert_int_equal(attune_alloc(&memory, stream, (size_t)1 << 60), ATTUNE_OUT_OF_MEMORY);
  assert_null(memory);
  assert_no_stale_error();
  memory_on(stream);
}

TEST(events_order_streams) {
  attune_stream *first = NULL, *second = NULL;
  attune_event *start = NULL, *stop = NULL;
  void *memory = NULL;
  double ns = -1;
  OK(attune_stream_create(&first, device));
  OK(attune_stream_create(&second, device));
  OK(attune_event_create(&start, device, NULL));
  OK(attune_event_create(&stop, device, NULL));
  assert_int_equal(attune_event_elapsed_ns(&ns, start, stop), ATTUNE_INVALID_ARGUMENT);
  OK(attune_event_query(start));
  OK(attune_alloc(&memory, first, BYTES));
  OK(attune_event_record(start, first));
  for (int i = 0; i < 100; i++) OK(attune_fill(first, memory, i, BYTES));
  OK(attune_event_record(stop, first));
  OK(attune_stream_wait_event(second, stop));
  OK(attune_fill(second, memory, 200, BYTES));
  assert_bytes(second, memory, 200);
  OK(attune_event_synchronize(stop));
  OK(attune_event_elapsed_ns(&ns, start, stop));
  assert_true(ns > 0.0 && ns < 1e10);
  OK(attune_stream_query(first));
  OK(attune_free(memory, first));
  attune_event_destroy(start);
  attune_event_destroy(stop);
  attune_stream_destroy(first);
  attune_stream_destroy(second);
  assert_no_stale_error();
}

TEST(graph_replays) {
  const at_backend *backend = &at_cuda_backend;
  attune_stream *stream = NULL;
  at_graph *graph = NULL;
  void *a = NULL, *b = NULL;
  OK(attune_stream_create(&stream, device));
  OK(attune_alloc(&a, stream, BYTES));
  OK(attune_alloc(&b, stream, BYTES));
  OK(attune_fill(stream, b, 1, BYTES));
  OK(backend->graph->capture_begin(stream));
  assert_true(backend->stream->capturing(stream));
  assert_int_equal(attune_stream_query(stream), ATTUNE_CAPTURING);
  assert_int_equal(attune_stream_synchronize(stream), ATTUNE_CAPTURING);
  OK(attune_copy(stream, b, a, BYTES));
  OK(backend->graph->capture_end(stream, &graph));
  assert_false(backend->stream->capturing(stream));
  assert_bytes(stream, b, 1);
  for (int value = 2; value < 5; value++) {
    OK(attune_fill(stream, a, value, BYTES));
    OK(backend->graph->launch(graph, stream));
    assert_bytes(stream, b, value);
  }
  backend->graph->destroy(graph);
  OK(attune_free(a, stream));
  OK(attune_free(b, stream));
  attune_stream_destroy(stream);
  assert_no_stale_error();
}

TEST(broken_capture_leaves_the_stream_usable) {
  attune_stream *stream = NULL;
  at_graph *graph = NULL;
  OK(attune_stream_create(&stream, device));
  OK(at_cuda_backend.graph->capture_begin(stream));
  assert_int_not_equal(cudaStreamSynchronize((cudaStream_t)attune_stream_native(stream)), cudaSuccess);
  (void)cudaGetLastError();
  assert_int_equal(at_cuda_backend.graph->capture_end(stream, &graph), ATTUNE_CAPTURING);
  assert_null(graph);
  memory_on(stream);
  attune_stream_destroy(stream);
  assert_int_equal(at_cuda_backend.graph->capture_begin(attune_stream_default(device)), ATTUNE_UNSUPPORTED);
  assert_no_stale_error();
}

/* The first use of the handle and of the workspace may lie inside a capture. */
TEST(handles_are_made_once) {
  attune_stream *stream = NULL;
  at_graph *graph = NULL;
  cublasHandle_t blas = NULL, again = NULL;
  void *workspace = NULL, *same = NULL, *larger = NULL;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  OK(attune_stream_create(&stream, device));
  OK(at_cuda_backend.graph->capture_begin(stream));
  OK(at_cuda_blas(stream, &blas));
  OK(at_cuda_workspace(stream, 1000, &workspace));
  OK(at_cuda_backend.graph->capture_end(stream, &graph));
  at_cuda_backend.graph->destroy(graph);
  assert_int_equal((uintptr_t)workspace % 256, 0);
  OK(at_cuda_workspace(stream, ATTUNE_WORKSPACE_DEFAULT, &same));
  assert_ptr_equal(workspace, same);
  OK(at_cuda_workspace(stream, ATTUNE_WORKSPACE_DEFAULT + 1, &larger));
  assert_ptr_not_equal(workspace, larger);
  OK(at_cuda_workspace(stream, 0, &same));
  assert_null(same);
  OK(at_cuda_blas_mode(stream, CUBLAS_DEFAULT_MATH, 4096, &again));
  assert_ptr_equal(blas, again);
  OK(at_cuda_blas(stream, &again));
  assert_ptr_equal(blas, again);
  assert_int_equal(cublasGetMathMode(blas, &math), CUBLAS_STATUS_SUCCESS);
  assert_int_equal(math, AT_CUDA_STRICT_MATH);
  attune_stream_destroy(stream);
  assert_no_stale_error();
}

/* The quick way to a handle is taken only where nothing at all is to be done. */
TEST(handles_are_had_at_once) {
  const size_t all = ATTUNE_WORKSPACE_DEFAULT;
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  cublasHandle_t blas = NULL;
  CUcontext primary = NULL, none = NULL;
  CUresult (*set_current)(CUcontext) = NULL, (*current)(CUcontext *) = NULL;
  assert_true(at_cuda_driver_call(&set_current, "cuCtxSetCurrent") && at_cuda_driver_call(&current, "cuCtxGetCurrent"));
  OK(attune_stream_create(&stream, device));
  assert_null(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, all)); /* there is no handle yet */
  OK(at_cuda_blas(stream, &blas));
  assert_ptr_equal(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, all), blas);
  assert_ptr_equal(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, SIZE_MAX), blas);
  assert_null(at_cuda_blas_at_once(stream, CUBLAS_DEFAULT_MATH, all));
  assert_null(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, 4096));
  assert_int_equal(current(&primary), CUDA_SUCCESS);
  assert_int_equal(set_current(NULL), CUDA_SUCCESS); /* the device is not this thread's any more */
  assert_null(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, all));
  assert_int_equal(set_current(primary), CUDA_SUCCESS);
  assert_int_equal(current(&none), CUDA_SUCCESS);
  assert_ptr_equal(none, primary);
  assert_ptr_equal(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, all), blas);
  atomic_store(&at_cuda_device_of(device)->dead, 700);
  assert_null(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, all));
  atomic_store(&at_cuda_device_of(device)->dead, 0);
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_begin(graph, stream, NULL)); /* a workspace of the graph's pool is wanted there */
  assert_null(at_cuda_blas_at_once(stream, AT_CUDA_STRICT_MATH, all));
  OK(attune_graph_capture_end(graph, stream));
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  assert_no_stale_error();
}

typedef struct beside {
  attune_stream *stream;
  void *memory;
  bool good;
} beside;

static void *allocate_beside(void *argument) {
  beside *b = argument;
  void *workspace = NULL;
  cublasHandle_t blas = NULL;
  b->good = attune_stream_create(&b->stream, device) == ATTUNE_OK &&
            attune_alloc(&b->memory, b->stream, BYTES) == ATTUNE_OK && at_cuda_blas(b->stream, &blas) == ATTUNE_OK &&
            at_cuda_workspace(b->stream, 1, &workspace) == ATTUNE_OK &&
            attune_fill(b->stream, b->memory, 3, BYTES) == ATTUNE_OK;
  return NULL;
}

/* The program captures in another thread, in the mode that forbids every thread to allocate: neither side fails. */
TEST(the_programs_capture_survives) {
  cudaStream_t native = NULL;
  cudaGraph_t graph = NULL;
  pthread_t thread;
  beside other = {NULL, NULL, false};
  assert_int_equal(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  assert_int_equal(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal), cudaSuccess);
  assert_int_equal(pthread_create(&thread, NULL, allocate_beside, &other), 0);
  pthread_join(thread, NULL);
  assert_int_equal(cudaStreamEndCapture(native, &graph), cudaSuccess);
  assert_true(other.good);
  OK(attune_free(other.memory, other.stream));
  attune_stream_destroy(other.stream);
  assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
  assert_int_equal(cudaStreamDestroy(native), cudaSuccess);
}

TEST(clock_state_is_plausible) {
  at_clock_state clock = {.clock_mhz = -1};
  OK(at_cuda_backend.telemetry->clock_state(device, &clock));
  assert_true(clock.clock_mhz >= 0 && clock.clock_mhz < 10000);
  assert_true(clock.foreign >= -1);
  print_message("clock %d MHz, slowed %d, foreign %d\n", clock.clock_mhz, clock.slowed, clock.foreign);
}

static void *use_device(void *result) {
  attune_stream *stream = NULL;
  void *memory = NULL;
  cublasLtHandle_t lt = NULL;
  unsigned char *host = malloc(BYTES);
  bool good = host && at_cuda_blaslt(device, &lt) == ATTUNE_OK && attune_stream_create(&stream, device) == ATTUNE_OK &&
              attune_alloc(&memory, stream, BYTES) == ATTUNE_OK;
  for (int i = 0; i < 50 && good; i++) {
    cublasHandle_t blas = NULL;
    good = attune_fill(stream, memory, i, BYTES) == ATTUNE_OK && at_cuda_blas(stream, &blas) == ATTUNE_OK &&
           attune_copy(stream, host, memory, BYTES) == ATTUNE_OK && attune_stream_synchronize(stream) == ATTUNE_OK &&
           host[0] == i && host[BYTES - 1] == i;
  }
  if (memory) good = attune_free(memory, stream) == ATTUNE_OK && good;
  attune_stream_destroy(stream);
  free(host);
  *(cublasLtHandle_t *)result = good ? lt : NULL;
  return NULL;
}

TEST(threads_share_the_device) {
  pthread_t threads[THREADS];
  cublasLtHandle_t handles[THREADS] = {NULL};
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_device, &handles[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    assert_non_null(handles[i]);
    assert_ptr_equal(handles[i], handles[0]);
  }
}

/* The child's part: a GEMM on addresses that are no memory loses the device; every later call must say so at once. */
static int lose_the_device(void) {
  attune_stream *stream = NULL;
  cublasHandle_t blas = NULL;
  void *memory = NULL;
  float one = 1.0f, *nowhere = (float *)(uintptr_t)4096;
  if (attune_stream_create(&stream, device) != ATTUNE_OK || at_cuda_blas(stream, &blas) != ATTUNE_OK) return 1;
  if (cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, &one, nowhere, 64, nowhere, 64, &one, nowhere, 64) !=
      CUBLAS_STATUS_SUCCESS)
    return 2;
  if (attune_stream_synchronize(stream) != ATTUNE_DEVICE_ERROR) return 3;
  if (attune_alloc(&memory, stream, BYTES) != ATTUNE_DEVICE_ERROR || memory) return 4;
  if (!strstr(attune_last_message(), "has been lost since")) return 5;
  if (attune_fill(stream, nowhere, 0, 1) != ATTUNE_DEVICE_ERROR) return 6;
  attune_stream_destroy(stream);
  return DIED;
}

TEST(a_sticky_error_loses_the_device) {
  char path[4096], *arguments[] = {path, (char *)(uintptr_t) "--lose", NULL};
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  assert_true(length > 0);
  path[length] = '\0';
  pid_t child = 0;
  int status = 0;
  assert_int_equal(posix_spawn(&child, path, NULL, NULL, arguments, environ), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), DIED);
}

TEST(the_callers_device_is_restored) {
  int count = 0, current = -1;
  assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
  if (count < 2) skip();
  attune_device *other = NULL;
  attune_stream *stream = NULL;
  OK(attune_device_get(&other, "cuda:1"));
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
  OK(attune_stream_create(&stream, other));
  memory_on(stream);
  attune_stream_destroy(stream);
  assert_int_equal(cudaGetDevice(&current), cudaSuccess);
  assert_int_equal(current, 0);
}

int main(int argc, char **argv) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  if (argc > 1 && strcmp(argv[1], "--lose") == 0) return lose_the_device();
  return RUN_TESTS(NULL, NULL);
}
