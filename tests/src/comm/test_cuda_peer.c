/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_peer.c: work of one GPU on memory of another, in both kinds of segments. Needs two GPUs that reach each
 * other. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT ((int)1 << 20)
#define BYTES ((size_t)COUNT * sizeof(float))

static attune_device *reader, *owner;
static attune_stream *reading, *owning;

static float *take(attune_stream *stream, const float *values) {
  void *p = NULL;
  OK(attune_alloc(&p, stream, BYTES));
  OK(attune_copy(stream, p, values, BYTES));
  OK(attune_stream_synchronize(stream));
  return p;
}

/* to += from, by a kernel of the reader's stream that reads and writes both where they lie. */
static void add(float *to, const float *from) {
  const float one = 1.0f;
  cublasHandle_t blas = NULL;
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
  assert_int_equal(cublasCreate(&blas), CUBLAS_STATUS_SUCCESS);
  assert_int_equal(cublasSetStream(blas, attune_stream_native(reading)), CUBLAS_STATUS_SUCCESS);
  assert_int_equal(cublasSaxpy(blas, COUNT, &one, from, 1, to, 1), CUBLAS_STATUS_SUCCESS);
  OK(attune_stream_synchronize(reading));
  assert_int_equal(cublasDestroy(blas), CUBLAS_STATUS_SUCCESS);
}

static void assert_all(attune_stream *stream, const float *memory, float *copy, float value) {
  OK(attune_copy(stream, copy, memory, BYTES));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < COUNT; i++)
    if (copy[i] != value) fail_msg("number %d is %g; should be %g", i, (double)copy[i], (double)value);
}

/* Mapped before the devices became peers, and after; both ways of it. */
static void memory_of_a_peer(void **state) {
  (void)state;
  static const char *const kinds[] = {"expandable_segments:true", "expandable_segments:false"};
  float *values = malloc(BYTES), *copy = malloc(BYTES);
  assert_non_null(values);
  assert_non_null(copy);
  for (int i = 0; i < COUNT; i++) values[i] = 2.0f;
  for (int kind = 0; kind < 2; kind++) {
    OK(attune_memory_empty_cache(owner));
    OK(attune_memory_configure(owner, kinds[kind]));
    float *own = take(reading, values), *before = take(owning, values);
    OK(attune_device_enable_peer(reader, owner));
    OK(attune_device_enable_peer(reader, owner)); /* a second time is no error */
    add(own, before);
    assert_all(reading, own, copy, 4.0f);
    void *large = NULL; /* of a new page, surely */
    OK(attune_alloc(&large, owning, (size_t)64 << 20));
    OK(attune_copy(owning, large, values, BYTES));
    OK(attune_stream_synchronize(owning));
    add(own, large);
    assert_all(reading, own, copy, 6.0f);
    add(before, own);
    assert_all(owning, before, copy, 8.0f);
    OK(attune_free(large, owning));
    OK(attune_free(before, owning));
    OK(attune_free(own, reading));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
  }
  OK(attune_memory_empty_cache(owner));
  OK(attune_memory_configure(owner, kinds[0]));
  free(values);
  free(copy);
}

/* CUDA refuses to enable again what is enabled: how a program knows. */
static bool is_enabled(void) {
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
  const cudaError_t error = cudaDeviceEnablePeerAccess(1, 0);
  (void)cudaGetLastError();
  if (error == cudaSuccess) assert_int_equal(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  return error == cudaErrorPeerAccessAlreadyEnabled;
}

static void access_is_taken_back(void **state) {
  (void)state;
  float *values = malloc(BYTES), *copy = malloc(BYTES);
  assert_true(values && copy);
  for (int i = 0; i < COUNT; i++) values[i] = 2.0f;
  float *own = take(reading, values), *other = take(owning, values);
  OK(attune_device_enable_peer(reader, owner));
  assert_true(is_enabled());
  OK(attune_device_disable_peer(reader, owner));
  assert_false(is_enabled());
  OK(attune_device_disable_peer(reader, owner)); /* a second time is no error */
  OK(attune_copy(reading, own, other, BYTES));   /* by way of the host, or the driver's own way */
  assert_all(reading, own, copy, 2.0f);
  OK(attune_device_enable_peer(reader, owner));
  add(own, other);
  assert_all(reading, own, copy, 4.0f);
  OK(attune_free(other, owning));
  OK(attune_free(own, reading));
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
  free(values);
  free(copy);
}

/* A stream made while cuda:0 is current is no stream of cuda:1, which its first call would find out. */
static void a_stream_of_another_device_is_refused(void **state) {
  (void)state;
  cudaStream_t native = NULL;
  attune_stream *wrapped = NULL;
  assert_int_equal(cudaSetDevice(0), cudaSuccess);
  assert_int_equal(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  FAILS(attune_stream_wrap(&wrapped, owner, native), ATTUNE_INVALID_ARGUMENT);
  assert_null(wrapped);
  assert_non_null(strstr(attune_last_message(), "is a stream of cuda:0; should be one of cuda:1"));
  OK(attune_stream_wrap(&wrapped, reader, native));
  attune_stream_destroy(wrapped);
  assert_int_equal(cudaStreamDestroy(native), cudaSuccess);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

int main(void) {
  int can = 0;
  if (attune_device_get(&reader, "cuda:0") != ATTUNE_OK || attune_device_get(&owner, "cuda:1") != ATTUNE_OK) {
    printf("skipped: %s; two GPUs are needed\n", attune_last_message());
    return 77;
  }
  if (attune_device_can_access_peer(&can, reader, owner) != ATTUNE_OK || !can) {
    printf("skipped: cuda:0 cannot access the memory of cuda:1\n");
    return 77;
  }
  if (attune_stream_create(&reading, reader) != ATTUNE_OK || attune_stream_create(&owning, owner) != ATTUNE_OK)
    return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(memory_of_a_peer), cmocka_unit_test(access_is_taken_back),
                                     cmocka_unit_test(a_stream_of_another_device_is_refused)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  attune_stream_destroy(reading);
  attune_stream_destroy(owning);
  return failed;
}
