/* SPDX-License-Identifier: Apache-2.0
 * test_pointer.c: on the host: what a pointer is, memory of the program that is registered, pools of managed memory,
 * copies that convert. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/host_stream.h"

static attune_pointer_info info_of(const void *pointer) {
  attune_pointer_info info = {0};
  memset(&info, 0xaa, sizeof info);
  info.size = sizeof info;
  OK(attune_pointer_get_info(&info, pointer));
  return info;
}

static void assert_info(const void *pointer, attune_memory_kind kind, const void *base, size_t bytes, int held) {
  const attune_pointer_info info = info_of(pointer);
  assert_int_equal(info.kind, kind);
  assert_ptr_equal(info.base, base);
  assert_int_equal(info.bytes, bytes);
  assert_int_equal(info.held, held);
}

TEST(pointers_are_told_apart) {
  char local = 0, *block = NULL, *pinned = NULL, *foreign = malloc(1000);
  assert_non_null(foreign);
  FAILS(attune_pointer_get_info(NULL, &local), ATTUNE_INVALID_ARGUMENT);
  assert_info(NULL, ATTUNE_KIND_UNKNOWN, NULL, 0, 0);
  assert_info((void *)(uintptr_t)64, ATTUNE_KIND_UNKNOWN, NULL, 0, 0);
  assert_info(&local, ATTUNE_KIND_HOST, NULL, 0, 0);
  assert_info(foreign + 5, ATTUNE_KIND_HOST, NULL, 0, 0);
  assert_null(info_of(foreign).device);
  OK(attune_alloc((void **)&block, stream, 3000));
  assert_info(block, ATTUNE_KIND_HOST, block, 3072, 1);
  assert_info(block + 3071, ATTUNE_KIND_HOST, block, 3072, 1);
  assert_ptr_equal(info_of(block).device, host);
  OK(attune_free(block, stream));
  assert_info(block + 8, ATTUNE_KIND_HOST, NULL, 0, 0);
  assert_ptr_equal(info_of(block).device, host);
  OK(attune_pinned_alloc((void **)&pinned, host, 3000));
  assert_info(pinned + 100, ATTUNE_KIND_PINNED, pinned, 4096, 1);
  assert_ptr_equal(info_of(pinned).device, host);
  OK(attune_pinned_free(pinned));
  assert_info(pinned + 100, ATTUNE_KIND_PINNED, NULL, 0, 0);
  char *gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(gone, MAP_FAILED);
  assert_info(gone + 17, ATTUNE_KIND_HOST, NULL, 0, 0);
  assert_int_equal(mprotect(gone, 4096, PROT_NONE), 0); /* address space alone */
  assert_info(gone + 17, ATTUNE_KIND_UNKNOWN, NULL, 0, 0);
  munmap(gone, 4096);
  free(foreign);
}

TEST(a_question_leaves_the_message) {
  char kept[512];
  FAILS(attune_pointer_get_info(NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  strcpy(kept, attune_last_message());
  (void)info_of(kept);
  (void)info_of((void *)(uintptr_t)64);
  assert_string_equal(attune_last_message(), kept);
}

TEST(registered_memory) {
  char *memory = malloc(10000), *block = NULL;
  assert_non_null(memory);
  FAILS(attune_pinned_register(NULL, memory, 10000), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_pinned_register(host, NULL, 10000), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_pinned_register(host, memory, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_pinned_register(host, memory, SIZE_MAX), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_pinned_register(host, (void *)(uintptr_t)64, 8), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_pinned_unregister(memory), ATTUNE_NOT_FOUND);
  FAILS(attune_pinned_unregister(NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_pinned_register(host, memory, 5000));
  assert_info(memory, ATTUNE_KIND_PINNED, memory, 5000, 1);
  assert_info(memory + 4999, ATTUNE_KIND_PINNED, memory, 5000, 1);
  assert_info(memory + 5000, ATTUNE_KIND_HOST, NULL, 0, 0);
  assert_ptr_equal(info_of(memory).device, host);
  FAILS_SAYING(attune_pinned_register(host, memory + 10, 10), ATTUNE_INVALID_ARGUMENT,
               "is already pinned, with the 5000 bytes from");
  FAILS(attune_pinned_register(host, memory + 4999, 10), ATTUNE_INVALID_ARGUMENT);
  OK(attune_pinned_register(host, memory + 5000, 5000));
  FAILS_SAYING(attune_pinned_free(memory), ATTUNE_INVALID_ARGUMENT, "attune_pinned_unregister");
  FAILS(attune_pinned_unregister(memory + 1), ATTUNE_INVALID_ARGUMENT);
  OK(attune_pinned_unregister(memory));
  FAILS(attune_pinned_unregister(memory), ATTUNE_NOT_FOUND);
  assert_info(memory, ATTUNE_KIND_HOST, NULL, 0, 0);
  assert_info(memory + 5000, ATTUNE_KIND_PINNED, memory + 5000, 5000, 1);
  OK(attune_pinned_unregister(memory + 5000));
  OK(attune_alloc((void **)&block, stream, 100));
  FAILS(attune_pinned_register(host, block, 100), ATTUNE_INVALID_ARGUMENT);
  OK(attune_free(block, stream));
  free(memory);
}

/* Of many threads that register the same memory one is taken, each time. */
static atomic_int taken;
static void *register_often(void *memory) {
  for (int i = 0; i < 20; i++) {
    if (attune_pinned_register(host, memory, 64) != ATTUNE_OK) continue;
    if (atomic_fetch_add(&taken, 1) != 0) abort();
    atomic_fetch_sub(&taken, 1);
    if (attune_pinned_unregister(memory) != ATTUNE_OK) abort();
  }
  return NULL;
}
TEST(registering_threads) {
  static char memory[64];
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, register_often, memory), 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  assert_info(memory, ATTUNE_KIND_HOST, NULL, 0, 0);
}

TEST(managed_pools) {
  attune_pool *pool = NULL;
  attune_pool_options options = ATTUNE_POOL_OPTIONS_INIT;
  attune_managed_options managed = ATTUNE_MANAGED_OPTIONS_INIT;
  attune_managed_state kept = {0};
  attune_device *places[] = {host, NULL};
  char *memory = NULL;
  options.managed = &managed;
  managed.preferred = host;
  managed.read_mostly = 1;
  managed.accessed_by = places;
  managed.accessed_by_count = 2;
  FAILS(attune_pool_create(&pool, host, &options), ATTUNE_INVALID_ARGUMENT);
  managed.accessed_by_count = ATTUNE_MANAGED_DEVICES + 1;
  FAILS(attune_pool_create(&pool, host, &options), ATTUNE_INVALID_ARGUMENT);
  managed.accessed_by_count = 1;
  OK(attune_pool_create(&pool, host, &options));
  OK(attune_pool_begin(pool, stream));
  OK(attune_alloc((void **)&memory, stream, 3 << 20));
  OK(attune_pool_end(pool, stream));
  assert_info(memory + 1000, ATTUNE_KIND_MANAGED, memory, 3 << 20, 1);
  OK(attune_managed_prefetch(stream, memory, 3 << 20, host));
  OK(attune_fill(stream, memory, 7, 3 << 20));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(memory[(3 << 20) - 1], 7);
  OK(attune_managed_advise(host, memory, 3 << 20, &managed));
  FAILS(attune_managed_advise(host, memory, 0, &managed), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_managed_advise(host, NULL, 10, &managed), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_managed_advise(NULL, memory, 10, &managed), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_managed_advise(host, memory, 10, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_managed_get_state(&kept, host, memory, 10), ATTUNE_UNSUPPORTED);
  FAILS(attune_managed_prefetch(NULL, memory, 10, host), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_managed_prefetch(stream, memory, 10, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_free(memory, stream));
  attune_pool_destroy(pool);
  OK(attune_stream_synchronize(stream));
}

/* Kernels before Linux 5.14 have no such advice, and valgrind may not. */
static bool populates(void) {
  void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
#ifdef MADV_POPULATE_WRITE
  const bool able = madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
#else
  const bool able = false;
#endif
  munmap(page, 4096);
  return able;
}

/* The pages that a prefetch made present: the system counts them. In a capture it is refused, and breaks nothing. */
TEST(prefetches) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = 16 * page;
  unsigned char present[16];
  attune_graph *graph = NULL;
  const bool able = populates();
  char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(memory, MAP_FAILED);
  OK(attune_managed_prefetch(stream, memory + page + 5, 4 * page, host));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(mincore(memory, bytes, present), 0);
  for (int i = 0; i < 16; i++) {
    if (able && i >= 1 && i <= 5) assert_true(present[i] & 1);
    if (i > 8) assert_false(present[i] & 1);
    assert_int_equal(memory[(size_t)i * page], 0);
  }
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  FAILS(attune_managed_prefetch(stream, memory, page, host), ATTUNE_CAPTURING);
  OK(attune_fill(stream, memory, 1, page));
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(memory[page - 1], 1);
  attune_graph_destroy(graph);
  munmap(memory, bytes);
}

TEST(converted_copies) {
  enum { COUNT = 1000 };
  static double doubles[COUNT], back[COUNT];
  static float floats[COUNT];
  static int32_t integers[COUNT];
  static uint16_t halves[COUNT];
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_OFF}));
  for (int i = 0; i < COUNT; i++) doubles[i] = i * 0.125 - 50;
  OK(attune_copy_converted(tuner, stream, floats, ATTUNE_F32, doubles, ATTUNE_F64, COUNT));
  OK(attune_copy_converted(tuner, stream, halves, ATTUNE_F16, floats, ATTUNE_F32, COUNT));
  OK(attune_copy_converted(tuner, stream, back, ATTUNE_F64, halves, ATTUNE_F16, COUNT));
  OK(attune_copy_converted(tuner, stream, integers, ATTUNE_I32, doubles, ATTUNE_F64, COUNT));
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < COUNT; i++) {
    assert_true(floats[i] == (float)doubles[i]);
    assert_true(back[i] == doubles[i]); /* of these a half keeps all digits */
    assert_int_equal(integers[i], (int32_t)doubles[i]);
  }
  OK(attune_copy_converted(NULL, stream, back, ATTUNE_F64, doubles, ATTUNE_F64, COUNT)); /* nothing to convert */
  OK(attune_copy_converted(tuner, stream, NULL, ATTUNE_F64, NULL, ATTUNE_F32, 0));
  FAILS(attune_copy_converted(tuner, NULL, back, ATTUNE_F64, floats, ATTUNE_F32, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_converted(NULL, stream, back, ATTUNE_F64, floats, ATTUNE_F32, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_converted(tuner, stream, back, (attune_dtype)99, floats, ATTUNE_F32, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_converted(tuner, stream, back, ATTUNE_F64, floats, (attune_dtype)0, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_converted(tuner, stream, NULL, ATTUNE_F64, floats, ATTUNE_F32, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_copy_converted(tuner, stream, back, ATTUNE_F64, floats, ATTUNE_F32, SIZE_MAX), ATTUNE_INVALID_ARGUMENT);
  OK(attune_stream_synchronize(stream));
  attune_tuner_destroy(tuner);
}

int main(void) {
  return RUN_TESTS(open_stream, close_stream);
}
