/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_memory.c: the allocator on a GPU: both kinds of segments, order among streams, captures, pinned memory,
 * limits. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include "src/cuda/context/cuda.h"

#define MIB ((size_t)1 << 20)
#define LONG_BYTES ((size_t)1 << 30)

static attune_device *device;
static attune_stream *first, *second;

FIXTURE(open_streams) {
  return attune_stream_create(&first, device) == ATTUNE_OK && attune_stream_create(&second, device) == ATTUNE_OK ? 0
                                                                                                                 : -1;
}

FIXTURE(close_streams) {
  attune_stream_destroy(first);
  attune_stream_destroy(second);
  return 0;
}

static attune_memory_statistics statistics(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(device, &s));
  return s;
}

static void set(const char *settings) {
  OK(attune_memory_empty_cache(device));
  OK(attune_memory_configure(device, settings));
}

static void assert_bytes(attune_stream *stream, const void *memory, int value, size_t bytes) {
  unsigned char *copy = malloc(bytes);
  assert_non_null(copy);
  OK(attune_copy(stream, copy, memory, bytes));
  OK(attune_stream_synchronize(stream));
  for (size_t i = 0; i < bytes; i++)
    if (copy[i] != value) fail_msg("byte %zu is %d; should be %d", i, copy[i], value);
  free(copy);
}

/* Work that takes the device some milliseconds. */
static void keep_busy(attune_stream *stream, void *memory) {
  for (int i = 0; i < 40; i++) OK(attune_fill(stream, memory, i, LONG_BYTES));
}

static void segments_of(const char *settings) {
  static const size_t sizes[] = {100, 4096, MIB, 3 * MIB, 15 * MIB, 50 * MIB};
  enum { COUNT = sizeof sizes / sizeof sizes[0] };
  void *blocks[COUNT];
  set(settings);
  for (size_t i = 0; i < COUNT; i++) {
    OK(attune_alloc(&blocks[i], first, sizes[i]));
    assert_int_equal((uintptr_t)blocks[i] % 256, 0);
    OK(attune_fill(first, blocks[i], (int)i + 1, sizes[i]));
  }
  for (size_t i = 0; i < COUNT; i++) assert_bytes(first, blocks[i], (int)i + 1, sizes[i]);
  for (size_t i = 0; i < COUNT; i += 2) OK(attune_free(blocks[i], first));
  OK(attune_memory_empty_cache(device));
  for (size_t i = 1; i < COUNT; i += 2) {
    assert_bytes(first, blocks[i], (int)i + 1, sizes[i]);
    OK(attune_free(blocks[i], first));
  }
  OK(attune_memory_empty_cache(device));
  assert_int_equal(statistics().reserved_bytes[0].current, 0);
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

TEST(every_kind_of_segment) {
  segments_of("expandable_segments:false");
  segments_of("expandable_segments:true");
  segments_of("backend:none");
  segments_of("backend:caching,poison:true");
  set("poison:false");
}

TEST(memory_really_goes_back) {
  static const char *const kinds[] = {"expandable_segments:true", "expandable_segments:false"};
  for (int i = 0; i < 2; i++) {
    uint64_t before = 0, taken = 0, after = 0;
    void *p = NULL;
    set(kinds[i]);
    OK(attune_device_memory_info(device, &before, NULL));
    OK(attune_alloc(&p, first, 2 * LONG_BYTES));
    OK(attune_device_memory_info(device, &taken, NULL));
    assert_true(before >= taken + 2 * LONG_BYTES - 64 * MIB);
    OK(attune_free(p, first));
    OK(attune_memory_empty_cache(device));
    OK(attune_device_memory_info(device, &after, NULL));
    assert_true(after + 64 * MIB >= before);
  }
}

TEST(another_streams_use_is_waited_for) {
  void *p = NULL, *q = NULL, *r = NULL;
  set("expandable_segments:true");
  OK(attune_alloc(&p, first, LONG_BYTES));
  OK(attune_record_use(p, second));
  OK(attune_stream_synchronize(first));
  keep_busy(second, p);
  OK(attune_free(p, first));
  OK(attune_alloc(&q, first, LONG_BYTES));
  assert_ptr_not_equal(p, q);
  OK(attune_fill(first, q, 77, LONG_BYTES));
  OK(attune_stream_synchronize(second));
  OK(attune_alloc(&r, first, LONG_BYTES));
  assert_ptr_equal(r, p);
  assert_bytes(first, q, 77, MIB);
  OK(attune_free(q, first));
  OK(attune_free(r, first));
}

/* Also with the program's own handle of the stream: nothing is allocated behind its capture. */
TEST(captures) {
  cudaStream_t native = NULL;
  cudaGraph_t graph = NULL;
  attune_stream *wrapped = NULL;
  void *p = NULL, *q = NULL;
  assert_int_equal(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking), cudaSuccess);
  OK(attune_stream_wrap(&wrapped, device, native));
  OK(attune_alloc(&p, wrapped, MIB));
  OK(attune_free(p, wrapped));
  assert_int_equal(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal), cudaSuccess);
  assert_int_equal(attune_alloc(&p, wrapped, MIB), ATTUNE_CAPTURING);
  OK(attune_alloc(&q, first, 33 * MIB)); /* another stream is not kept from it */
  OK(attune_record_use(q, wrapped));
  OK(attune_free(q, first)); /* no event goes into the capture */
  assert_int_equal(statistics().active[0].current, 1);
  assert_int_equal(cudaStreamEndCapture(native, &graph), cudaSuccess);
  size_t nodes = 1;
  assert_int_equal(cudaGraphGetNodes(graph, NULL, &nodes), cudaSuccess);
  assert_int_equal(nodes, 0);
  assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
  OK(attune_alloc(&p, wrapped, MIB));
  OK(attune_free(p, wrapped));
  OK(attune_memory_empty_cache(device));
  assert_int_equal(statistics().active[0].current, 0);
  attune_stream_destroy(wrapped);
  assert_int_equal(cudaStreamDestroy(native), cudaSuccess);
}

TEST(memory_runs_out) {
  static const char *const kinds[] = {"expandable_segments:true", "expandable_segments:false"};
  for (int i = 0; i < 2; i++) {
    uint64_t available = 0;
    void *p = NULL, *q = NULL;
    set(kinds[i]);
    OK(attune_device_memory_info(device, &available, NULL));
    OK(attune_alloc(&p, first, (size_t)(available / 10 * 6)));
    FAILS_SAYING(attune_alloc(&q, second, (size_t)(available / 10 * 6)), ATTUNE_OUT_OF_MEMORY, "bytes are allocated");
    OK(attune_free(p, first));
    OK(attune_alloc(&q, second, (size_t)(available / 10 * 6))); /* the other stream's cache goes */
    OK(attune_free(q, second));
    OK(attune_memory_empty_cache(device));
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
  }
}

TEST(pinned_memory) {
  void *host = NULL, *again = NULL, *memory = NULL;
  struct cudaPointerAttributes found;
  unsigned flags = 0;
  OK(attune_pinned_alloc(&host, device, MIB));
  assert_int_equal(cudaPointerGetAttributes(&found, host), cudaSuccess);
  assert_int_equal(found.type, cudaMemoryTypeHost);
  assert_ptr_equal(found.devicePointer, host); /* every device reaches it at the same address */
  assert_int_equal(cudaHostGetFlags(&flags, host), cudaSuccess);
  assert_true(flags & cudaHostAllocPortable);
  OK(attune_alloc(&memory, first, LONG_BYTES));
  memset(host, 9, MIB);
  keep_busy(first, memory);
  OK(attune_copy(first, memory, host, MIB));
  OK(attune_pinned_record_use(host, first));
  OK(attune_pinned_free(host));
  OK(attune_pinned_alloc(&again, device, MIB));
  assert_ptr_not_equal(again, host); /* the copy is not done */
  memset(again, 3, MIB);
  assert_bytes(first, memory, 9, MIB);
  OK(attune_pinned_free(again));
  OK(attune_free(memory, first));
  OK(attune_pinned_empty_cache(device));
}

enum { THREADS = 8, TURNS = 2000 };
typedef struct worker {
  uint64_t seed;
  int failed;
} worker;

static void *churn(void *arg) {
  worker *w = arg;
  attune_stream *stream = NULL;
  void *blocks[16] = {0};
  uint64_t x = w->seed;
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return (void *)(intptr_t)(w->failed = 1);
  for (int turn = 0; turn < TURNS; turn++) {
    x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
    size_t slot = x >> 60, bytes = 1 + (x >> 20) % (4 * MIB);
    if (blocks[slot]) {
      w->failed |= attune_free(blocks[slot], stream) != ATTUNE_OK;
      blocks[slot] = NULL;
    } else {
      w->failed |= attune_alloc(&blocks[slot], stream, bytes) != ATTUNE_OK ||
                   attune_fill(stream, blocks[slot], 1, bytes) != ATTUNE_OK;
    }
  }
  for (int i = 0; i < 16; i++) w->failed |= attune_free(blocks[i], stream) != ATTUNE_OK;
  attune_stream_destroy(stream);
  return NULL;
}

TEST(threads_share_the_device) {
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){.seed = i + 1};
    assert_int_equal(pthread_create(&threads[i], NULL, churn, &workers[i]), 0);
  }
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(workers[i].failed, 0);
  }
  assert_int_equal(statistics().allocation[0].current, 0);
}

int main(void) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("%s", attune_last_message());
  return RUN_TESTS(open_streams, close_streams);
}
