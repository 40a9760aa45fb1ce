/* SPDX-License-Identifier: Apache-2.0
 * test_memory_segments.c: what is taken from the device, and from which segments requests are served. */
#include "tests/support/check.h"

#include <attune/memory.h>
#include <attune/pool.h>

#define MIB ((size_t)1 << 20)
#define KIB ((size_t)1 << 10)
enum { HELD_MAX = 64 };

static attune_device *host;
static attune_stream *stream;
static void *held[HELD_MAX];
static int held_count;

static void *take(size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, stream, bytes));
  held[held_count++] = p;
  return p;
}

static attune_memory_statistics statistics(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  return s;
}

/* How many bytes a request made the allocator take from the device. */
static uint64_t taken_for(size_t bytes) {
  uint64_t before = statistics().reserved_bytes[ATTUNE_MEMORY_ALL].current;
  (void)take(bytes);
  return statistics().reserved_bytes[ATTUNE_MEMORY_ALL].current - before;
}

static bool is_served_small(size_t bytes) {
  uint64_t before = statistics().allocation[ATTUNE_MEMORY_SMALL].current;
  (void)take(bytes);
  return statistics().allocation[ATTUNE_MEMORY_SMALL].current == before + 1;
}

static void drop_all(void) {
  while (held_count > 0) OK(attune_free(held[--held_count], stream));
}

FIXTURE(begin) {
  if (!host && attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  if (!stream && attune_stream_create(&stream, host) != ATTUNE_OK) return -1;
  return attune_memory_configure(host, "max_split_size_mb:1000000,expandable_segments:true") == ATTUNE_OK ? 0 : -1;
}

FIXTURE(end) {
  drop_all();
  if (attune_memory_set_limit(host, 0) != ATTUNE_OK) return -1;
  return attune_memory_empty_cache(host) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_stream) {
  attune_stream_destroy(stream);
  return 0;
}

TEST(a_wide_segment_serves_all_that_is_not_tiny) {
  assert_true(is_served_small(512 * KIB)); /* two MiB are enough for a program that has little */
  assert_int_equal(statistics().reserved_bytes[ATTUNE_MEMORY_ALL].current, 2 * MIB);
  for (int i = 0; i < 5; i++) (void)take(63 * MIB);
  assert_int_equal(statistics().reserved_bytes[ATTUNE_MEMORY_LARGE].current, 320 * MIB);
  assert_false(is_served_small(512 * KIB)); /* from what 5 x 63 leave of 320 */
  assert_false(is_served_small(1 * MIB));
  assert_true(is_served_small(256 * KIB));
  assert_int_equal(statistics().reserved_bytes[ATTUNE_MEMORY_ALL].current, 322 * MIB);
  drop_all();
  OK(attune_memory_empty_cache(host));
  assert_true(is_served_small(512 * KIB));
}

/* Before more is taken, what either range has is used. */
TEST(a_request_between_looks_in_both_ranges) {
  (void)take(19 * MIB);
  (void)take(2 * KIB);
  assert_int_equal(statistics().reserved_bytes[ATTUNE_MEMORY_ALL].current, 22 * MIB);
  assert_true(is_served_small(900 * KIB));
  assert_true(is_served_small(900 * KIB));
  assert_false(is_served_small(900 * KIB)); /* the small range is full, the large one is not */
  assert_int_equal(statistics().reserved_bytes[ATTUNE_MEMORY_ALL].current, 22 * MIB);
}

TEST(plain_segments_grow_with_their_heap) {
  OK(attune_memory_configure(host, "expandable_segments:false"));
  assert_int_equal(taken_for(3 * MIB), 20 * MIB);
  assert_int_equal(taken_for(300 * MIB), 300 * MIB);
  assert_int_equal(taken_for(18 * MIB), 40 * MIB); /* an eighth of 320 */
  assert_int_equal(taken_for(700 * MIB), 700 * MIB);
  assert_int_equal(taken_for(30 * MIB), 64 * MIB);
  assert_int_equal(taken_for(30 * MIB), 0);
  assert_int_equal(taken_for(4 * KIB), 2 * MIB);
}

TEST(plain_segments_do_not_grow_over_the_limit) {
  OK(attune_memory_configure(host, "expandable_segments:false"));
  (void)take(1024 * MIB);
  OK(attune_memory_set_limit(host, 1024 * MIB + 40 * MIB));
  assert_int_equal(taken_for(30 * MIB), 30 * MIB);
}

TEST(segments_without_splitting_do_not_grow) {
  attune_pool *pool = NULL;
  OK(attune_memory_configure(host, "expandable_segments:false"));
  OK(attune_pool_create(&pool, host, &(attune_pool_options){.no_split = 1}));
  OK(attune_pool_begin(pool, stream));
  (void)take(1024 * MIB);
  assert_int_equal(taken_for(30 * MIB), 30 * MIB);
  OK(attune_pool_end(pool, stream));
  OK(attune_memory_configure(host, "max_split_size_mb:40"));
  (void)take(1024 * MIB);
  assert_int_equal(taken_for(30 * MIB), 30 * MIB);
  attune_pool_destroy(pool);
}

int main(void) {
  return RUN_TESTS_EACH(begin, end, NULL, close_stream);
}
