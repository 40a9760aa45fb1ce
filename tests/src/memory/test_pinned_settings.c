/* SPDX-License-Identifier: Apache-2.0
 * test_pinned_settings.c: the settings of pinned memory: a segment taken ahead, what is kept and how sizes are rounded,
 * memory of the process pinned where it is. Each is set back. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <pthread.h>

#define MIB ((size_t)1 << 20)

static attune_device *host;

FIXTURE(set_up) {
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

static attune_pinned_statistics now(void) {
  attune_pinned_statistics s = {0};
  OK(attune_pinned_get_statistics(host, &s));
  return s;
}

static void *take(size_t bytes) {
  void *p = NULL;
  OK(attune_pinned_alloc(&p, host, bytes));
  memset(p, 1, bytes);
  return p;
}

/* The first test: the pool's threads take no other thread's stack. */
TEST(memory_of_the_process_is_pinned) {
  OK(attune_memory_configure(host, "pinned_use_cuda_host_register:True,pinned_num_register_threads:4"));
  char *p = take(8 * MIB);
  for (size_t i = 0; i < 8 * MIB; i += 4096) assert_int_equal(p[i], 1);
  OK(attune_pinned_free(p));
  assert_int_equal(now().reserved_bytes.current, 8 * MIB);
  OK(attune_memory_configure(host, "pinned_use_cuda_host_register:False,pinned_num_register_threads:1"));
  OK(attune_pinned_empty_cache(host)); /* it knows how each block was taken */
  assert_int_equal(now().reserved_bytes.current, 0);
}

TEST(large_blocks_go_back) {
  OK(attune_pinned_reset_accumulated(host));
  OK(attune_memory_configure(host, "pinned_max_cached_size_mb:2"));
  void *small = take(MIB), *large = take(4 * MIB);
  OK(attune_pinned_free(small));
  OK(attune_pinned_free(large));
  assert_int_equal(now().reserved_bytes.current, MIB);
  assert_int_equal(now().host_frees, 1);
  assert_ptr_equal(take(MIB), small);
  OK(attune_pinned_free(small));
  OK(attune_memory_configure(host, "pinned_max_cached_size_mb:1000000"));
  OK(attune_pinned_free(take(4 * MIB)));
  assert_int_equal(now().reserved_bytes.current, 5 * MIB);
  OK(attune_pinned_empty_cache(host));
}

TEST(large_blocks_wait_for_a_capture) {
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  OK(attune_memory_configure(host, "pinned_max_cached_size_mb:2"));
  OK(attune_stream_create(&stream, host));
  OK(attune_graph_create(&graph, host));
  void *large = take(4 * MIB);
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_pinned_free(large));
  assert_int_equal(now().reserved_bytes.current, 4 * MIB);
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_pinned_free(take(100)));
  assert_int_equal(now().reserved_bytes.current, 512);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  OK(attune_memory_configure(host, "pinned_max_cached_size_mb:1000000"));
  OK(attune_pinned_empty_cache(host));
  assert_int_equal(now().reserved_bytes.current, 0);
}

TEST(large_requests_are_rounded_to_pages) {
  OK(attune_memory_configure(host, "pinned_max_round_threshold_mb:1"));
  void *odd = take(3 * MIB + 1);
  assert_int_equal(now().allocated_bytes.current, 3 * MIB + 4096);
  OK(attune_pinned_free(odd));
  void *more = take(3 * MIB + 5000); /* of the same class, and larger: not the one that was freed */
  assert_ptr_not_equal(more, odd);
  assert_ptr_equal(take(3 * MIB), odd);
  OK(attune_pinned_free(odd));
  OK(attune_pinned_free(more));
  OK(attune_pinned_free(take(1000)));
  assert_int_equal(now().reserved_bytes.current, 3 * MIB + 4096 + 3 * MIB + 8192 + 1024);
  OK(attune_memory_configure(host, "pinned_max_round_threshold_mb:1000000"));
  OK(attune_pinned_empty_cache(host));
}

static void *take_many(void *unused) {
  (void)unused;
  for (int i = 0; i < 200; i++) {
    void *p = NULL;
    if (attune_pinned_alloc(&p, host, (size_t)1 << (9 + i % 12)) != ATTUNE_OK) return host;
    memset(p, i, (size_t)1 << (9 + i % 12));
    if (attune_pinned_free(p) != ATTUNE_OK) return host;
  }
  return NULL;
}

/* The last test: the segment stays. */
TEST(a_segment_is_taken_ahead) {
  OK(attune_pinned_reset_accumulated(host));
  OK(attune_memory_configure(host, "pinned_reserve_segment_size_mb:4"));
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, take_many, NULL), 0);
  for (int i = 0; i < 4; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  OK(attune_pinned_empty_cache(host));
  assert_int_equal(now().reserved_bytes.current, 4 * MIB); /* once, whoever came first */
  const uint64_t asked = now().host_allocs;
  char *a = take(512), *b = take(512);
  assert_int_equal(now().host_allocs, asked);
  assert_true(a != b && a - b < (long)(4 * MIB) && b - a < (long)(4 * MIB));
  void *beyond = take(8 * MIB);
  assert_int_equal(now().host_allocs, asked + 1);
  OK(attune_pinned_free(beyond));
  OK(attune_pinned_free(a));
  OK(attune_pinned_free(b));
  OK(attune_memory_configure(host, "pinned_reserve_segment_size_mb:0"));
  OK(attune_pinned_empty_cache(host));
  assert_int_equal(now().reserved_bytes.current, 4 * MIB);
}

int main(void) {
  return RUN_TESTS(set_up, NULL);
}
