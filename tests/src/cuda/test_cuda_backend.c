/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_backend.c: on a GPU: the driver's stream-ordered allocator in place of the cache, memory that the process
 * pinned, a context that the program made by the driver's API, the stream's handle of cuBLAS, captures that look at
 * their inputs. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static attune_device *device;
static attune_stream *stream;

FIXTURE(set_up) {
  return attune_stream_create(&stream, device) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(tear_down) {
  attune_stream_destroy(stream);
  return attune_memory_empty_cache(device) == ATTUNE_OK ? 0 : -1;
}

static int value_of(attune_stream *of, const void *memory, size_t bytes) {
  unsigned char *copy = malloc(bytes);
  assert_non_null(copy);
  OK(attune_copy(of, copy, memory, bytes));
  OK(attune_stream_synchronize(of));
  const int value = copy[0];
  for (size_t i = 0; i < bytes; i++) assert_int_equal(copy[i], value);
  free(copy);
  return value;
}

static uint64_t of_driver(enum cudaMemPoolAttr what) {
  cudaMemPool_t pool = NULL;
  uint64_t bytes = 0;
  assert_int_equal(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
  assert_int_equal(cudaMemPoolGetAttribute(pool, what, &bytes), cudaSuccess);
  return bytes;
}

static uint64_t used_of_driver(void) {
  return of_driver(cudaMemPoolAttrUsedMemCurrent);
}

static attune_status take_and_fill(void *user, attune_stream *in) {
  attune_status status = attune_alloc(user, in, MIB);
  return status == ATTUNE_OK ? attune_fill(in, *(void **)user, 6, MIB) : status;
}

TEST(the_drivers_allocator) {
  attune_stream *other = NULL, *gone = NULL;
  attune_event *event = NULL;
  attune_graph *graph = NULL;
  attune_memory_handle handle;
  const char *name = NULL;
  void *kept = NULL, *p = NULL, *q = NULL, *of_graph = NULL, *late = NULL;
  OK(attune_alloc(&kept, stream, MIB)); /* of the cache */
  OK(attune_fill(stream, kept, 1, MIB));
  OK(attune_memory_configure(device, "backend:cudaMallocAsync"));
  OK(attune_memory_get_backend(device, &name));
  assert_string_equal(name, "cudaMallocAsync");
  const uint64_t before = used_of_driver(), reserved = of_driver(cudaMemPoolAttrReservedMemCurrent);
  OK(attune_alloc(&p, stream, 8 * MIB));
  assert_true(used_of_driver() >= before + 8 * MIB);
  OK(attune_fill(stream, p, 2, 8 * MIB));
  assert_int_equal(value_of(stream, p, 8 * MIB), 2);
  FAILS(attune_memory_export(&handle, p), ATTUNE_UNSUPPORTED);
  /* Another stream that waits for an event after the free gets the same memory: the driver follows the events. */
  OK(attune_stream_create(&other, device));
  OK(attune_event_create(&event, device, NULL));
  OK(attune_fill(stream, p, 3, 8 * MIB));
  OK(attune_free(p, stream));
  OK(attune_event_record(event, stream));
  OK(attune_stream_wait_event(other, event));
  OK(attune_alloc(&q, other, 8 * MIB));
  assert_ptr_equal(q, p);
  OK(attune_fill(other, q, 4, 8 * MIB));
  assert_int_equal(value_of(other, q, 8 * MIB), 4);
  OK(attune_free(q, other));
  /* A capture takes from the graph's own pool. */
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_callback(graph, NULL, NULL, take_and_fill, &of_graph));
  OK(attune_graph_replay(graph, stream));
  OK(attune_graph_replay(graph, stream));
  assert_int_equal(value_of(stream, of_graph, MIB), 6);
  attune_graph_destroy(graph);
  /* The memory of a stream that is gone. */
  OK(attune_stream_create(&gone, device));
  OK(attune_alloc(&late, gone, MIB));
  OK(attune_fill(gone, late, 5, MIB));
  attune_stream_destroy(gone);
  assert_int_equal(value_of(stream, late, MIB), 5);
  OK(attune_free(late, stream));
  OK(attune_stream_synchronize(other));
  OK(attune_stream_synchronize(stream));
  OK(attune_memory_configure(device, "backend:caching"));
  assert_int_equal(value_of(stream, kept, MIB), 1);
  OK(attune_free(kept, stream));
  OK(attune_memory_empty_cache(device)); /* what came back after its stream or graph had gone */
  OK(attune_device_synchronize(device)); /* it goes back in the order of its streams */
  /* Memory that outlived its stream is freed by cudaFree: the driver (580) counts it as used, but not as reserved. */
  assert_true(of_driver(cudaMemPoolAttrReservedMemCurrent) <= reserved);
  attune_event_destroy(event);
  attune_stream_destroy(other);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

TEST(memory_of_the_process_is_pinned) {
  struct cudaPointerAttributes about;
  char *p = NULL;
  void *q = NULL;
  OK(attune_pinned_empty_cache(device));
  OK(attune_memory_configure(device, "pinned_use_cuda_host_register:True,pinned_num_register_threads:8"));
  OK(attune_pinned_alloc((void **)&p, device, 8 * MIB));
  assert_int_equal(cudaPointerGetAttributes(&about, p), cudaSuccess);
  assert_int_equal(about.type, cudaMemoryTypeHost);
  memset(p, 9, 8 * MIB);
  OK(attune_alloc(&q, stream, 8 * MIB));
  OK(attune_copy(stream, q, p, 8 * MIB));
  OK(attune_pinned_record_use(p, stream));
  OK(attune_pinned_free(p));
  assert_int_equal(value_of(stream, q, 8 * MIB), 9);
  OK(attune_free(q, stream));
  OK(attune_memory_configure(device, "pinned_use_cuda_host_register:False,pinned_num_register_threads:1"));
  OK(attune_pinned_empty_cache(device));
  attune_pinned_statistics s = {0};
  OK(attune_pinned_get_statistics(device, &s));
  assert_int_equal(s.reserved_bytes.current, 0);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static void *find(const char *name) {
  void *function = NULL;
  enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  assert_int_equal(cudaGetDriverEntryPointByVersion(name, &function, 11040, cudaEnableDefault, &found), cudaSuccess);
#else
  assert_int_equal(cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found), cudaSuccess);
#endif
  assert_non_null(function);
  return function;
}

static attune_status fill_only(void *user, attune_stream *in) {
  return attune_fill(in, user, 8, MIB);
}

/* attune works in the primary context, and leaves the thread the one that the program made. */
TEST(a_context_of_the_program) {
  CUresult (*create)(CUcontext *, CUexecAffinityParam *, int, unsigned, CUdevice) = NULL;
  CUresult (*current)(CUcontext *) = NULL, (*set)(CUcontext) = NULL, (*destroy)(CUcontext) = NULL;
  CUcontext own = NULL, now = NULL, primary = NULL;
  *(void **)&create = find("cuCtxCreate");
  *(void **)&current = find("cuCtxGetCurrent");
  *(void **)&set = find("cuCtxSetCurrent");
  *(void **)&destroy = find("cuCtxDestroy");
  assert_int_equal(current(&primary), CUDA_SUCCESS);
  assert_int_equal(create(&own, NULL, 0, 0, 0), CUDA_SUCCESS);
  assert_int_equal(set(own), CUDA_SUCCESS);
#define STILL_ITS_OWN                                       \
  do {                                                      \
    assert_int_equal(current(&now), CUDA_SUCCESS);          \
    assert_ptr_equal((const void *)now, (const void *)own); \
  } while (0)
  attune_stream *made = NULL;
  attune_graph *graph = NULL;
  attune_tuner *tuner = NULL;
  void *p = NULL, *q = NULL;
  OK(attune_stream_create(&made, device));
  STILL_ITS_OWN;
  OK(attune_alloc(&p, made, 64 * MIB)); /* surely new memory */
  STILL_ITS_OWN;
  OK(attune_alloc(&q, stream, MIB));
  OK(attune_fill(made, p, 7, MIB));
  OK(attune_stream_wait_stream(stream, made));
  OK(attune_copy(stream, q, p, MIB)); /* a stream that was made in the primary context */
  assert_int_equal(value_of(stream, q, MIB), 7);
  STILL_ITS_OWN;
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_callback(graph, made, NULL, fill_only, p));
  OK(attune_graph_replay(graph, made));
  assert_int_equal(value_of(made, p, MIB), 8);
  STILL_ITS_OWN;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_CACHED}));
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = 64, .n = 64, .k = 64};
  OK(attune_fill(made, p, 0, MIB));
  const attune_gemm_operands operands = {.alpha = 1.0, .a = p, .b = p, .d = (char *)p + MIB};
  OK(attune_gemm(tuner, made, &problem, &operands));
  assert_int_equal(value_of(made, (char *)p + MIB, 64 * 64 * 4), 0);
  STILL_ITS_OWN;
  static const char *const tuned[] = {"gemm f32 nn 300x200x500 strict", "gemm f32 tn 256x256x4096 reduced",
                                      "gemm bf16 nn 99x101x103 strict", "gemm f16 nt 128x16x1024 strict",
                                      "gemm f64 nn 70x90x300 strict",   "gemm f32 nn 16x16x16x512 strict"};
  for (size_t i = 0; i < sizeof tuned / sizeof *tuned; i++) { /* measured and verified there too */
    OK(attune_tune(tuner, device, tuned[i], &(attune_tune_options){.budget_ms = 200.0}, NULL));
    STILL_ITS_OWN;
  }
  attune_tuner_destroy(tuner);
  attune_graph_destroy(graph);
  OK(attune_free(q, stream));
  OK(attune_free(p, made));
  attune_stream_destroy(made);
  OK(attune_memory_empty_cache(device));
  STILL_ITS_OWN;
  assert_int_equal(set(primary), CUDA_SUCCESS);
  assert_int_equal(destroy(own), CUDA_SUCCESS);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

/* The program's settings of the handle do not change attune's next product. */
TEST(the_handle_of_cublas) {
  enum { N = 128 };
  float *values = malloc(N * N * sizeof *values), *plain = malloc(N * N * sizeof *values);
  attune_tuner *tuner = NULL;
  void *blas = NULL, *again = NULL, *p = NULL;
  cudaStream_t of = NULL;
  assert_true(values && plain);
  for (int i = 0; i < N * N; i++) values[i] = (float)(i % 97) * 0.00123f + 0.1f;
  const size_t bytes = N * N * sizeof *values;
  OK(attune_alloc(&p, stream, 2 * bytes));
  OK(attune_copy(stream, p, values, bytes));
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_OFF}));
  attune_gemm_problem problem = {.dtype = ATTUNE_F32, .m = N, .n = N, .k = N};
  const attune_gemm_operands operands = {.alpha = 1.0, .a = p, .b = p, .d = (char *)p + bytes};
  OK(attune_gemm(tuner, stream, &problem, &operands));
  OK(attune_copy(stream, plain, (char *)p + bytes, bytes));
  OK(attune_stream_blas(stream, &blas));
  OK(attune_stream_blas(stream, &again));
  assert_true(blas && blas == again);
  assert_int_equal(cublasGetStream((cublasHandle_t)blas, &of), CUBLAS_STATUS_SUCCESS);
  assert_ptr_equal(of, attune_stream_native(stream));
  assert_int_equal(cublasSetMathMode((cublasHandle_t)blas, CUBLAS_TF32_TENSOR_OP_MATH), CUBLAS_STATUS_SUCCESS);
  OK(attune_gemm(tuner, stream, &problem, &operands));
  OK(attune_copy(stream, values, (char *)p + bytes, bytes));
  OK(attune_stream_synchronize(stream));
  assert_memory_equal(values, plain, bytes);
  attune_tuner_destroy(tuner);
  OK(attune_free(p, stream));
  free(plain);
  free(values);
}

TEST(freed_inputs_are_told) {
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  attune_graph *graph = NULL;
  void *p = NULL;
  char path[] = "cuda_backend_XXXXXX";
  options.check_inputs = options.keep_graph = options.make_room = 1;
  OK(attune_alloc(&p, stream, MIB));
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_callback(graph, NULL, &options, fill_only, p));
  OK(attune_graph_replay(graph, stream));
  assert_int_equal(value_of(stream, p, MIB), 8);
  OK(attune_free(p, stream));
  FAILS(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT);
  const int file = mkstemp(path);
  assert_true(file >= 0);
  OK(attune_graph_debug_dump(graph, path, 0));
  const off_t all = lseek(file, 0, SEEK_END);
  OK(attune_graph_debug_dump(graph, path, 1));
  const off_t brief = lseek(file, 0, SEEK_END);
  assert_true(brief > 0 && brief < all);
  close(file);
  unlink(path);
  attune_graph_destroy(graph);
}

TEST(tf32_is_told) {
  attune_device_details details = {0};
  attune_device_properties p = {0};
  OK(attune_device_get_details(device, &details));
  OK(attune_device_get_properties(device, &p));
  assert_int_equal(details.tf32, p.capability_major >= 8);
}

int main(void) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (cudaSetDevice(0) != cudaSuccess || attune_device_initialize(device) != ATTUNE_OK) return 1;
  return RUN_TESTS(set_up, tear_down);
}
