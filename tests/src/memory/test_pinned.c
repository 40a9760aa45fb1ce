/* SPDX-License-Identifier: Apache-2.0
 * test_pinned.c: pinned memory on the host: reuse by powers of two, waiting for streams, counters, what is refused. */
#include "tests/support/check.h"

#include <attune/pinned.h>

#include "src/host/host.h"

#include <stdatomic.h>
#include <unistd.h>

#include "tests/support/host_stream.h"

static atomic_bool gate;

static void wait_for_gate(const void *args) {
  (void)args;
  while (!atomic_load(&gate)) usleep(100);
}

TEST(freed_memory_is_used_anew) {
  void *p = NULL, *q = NULL;
  OK(attune_pinned_alloc(&p, host, 1000));
  assert_int_equal((uintptr_t)p % 512, 0);
  memset(p, 1, 1024);
  OK(attune_pinned_free(p));
  OK(attune_pinned_alloc(&q, host, 600));
  assert_ptr_equal(p, q);
  OK(attune_pinned_alloc(&p, host, 600));
  assert_ptr_not_equal(p, q);
  OK(attune_pinned_free(p));
  OK(attune_pinned_free(q));
  q = &q;
  OK(attune_pinned_alloc(&q, host, 0));
  assert_null(q);
  OK(attune_pinned_free(NULL));
}

TEST(a_streams_use_is_waited_for) {
  void *p = NULL, *q = NULL;
  attune_pinned_statistics s = {0};
  OK(attune_pinned_empty_cache(host));
  OK(attune_pinned_alloc(&p, host, 5000));
  OK(attune_pinned_record_use(p, stream));
  OK(attune_pinned_record_use(p, stream));
  atomic_store(&gate, false);
  OK(at_host_submit(stream, wait_for_gate, NULL, 0));
  OK(attune_pinned_free(p));
  OK(attune_pinned_get_statistics(host, &s));
  assert_true(s.allocation.current == 0 && s.active.current == 1 && s.active_bytes.current == 8192);
  OK(attune_pinned_alloc(&q, host, 5000));
  assert_ptr_not_equal(p, q);
  atomic_store(&gate, true);
  OK(attune_stream_synchronize(stream));
  OK(attune_pinned_free(q));
  OK(attune_pinned_get_statistics(host, &s));
  assert_int_equal(s.active.current, 0);
}

TEST(a_closed_stream_is_done) {
  attune_stream *other = NULL;
  void *p = NULL;
  attune_pinned_statistics s = {0};
  OK(attune_stream_create(&other, host));
  OK(attune_pinned_alloc(&p, host, 100));
  OK(attune_pinned_record_use(p, other));
  attune_stream_destroy(other);
  OK(attune_pinned_free(p));
  OK(attune_pinned_get_statistics(host, &s));
  assert_int_equal(s.active.current, 0);
}

TEST(counters) {
  attune_pinned_statistics s = {0};
  void *p = NULL;
  OK(attune_pinned_empty_cache(host));
  OK(attune_pinned_reset_peaks(host));
  OK(attune_pinned_reset_accumulated(host));
  for (int i = 0; i < 3; i++) {
    OK(attune_pinned_alloc(&p, host, 3000));
    OK(attune_pinned_free(p));
  }
  OK(attune_pinned_get_statistics(host, &s));
  assert_true(s.allocation.allocated == 3 && s.allocation.freed == 3 && s.allocation.peak == 1 &&
              s.allocated_bytes.peak == 4096);
  assert_true(s.host_allocs == 1 && s.host_frees == 0 && s.segment.current == 1 && s.reserved_bytes.current == 4096);
  OK(attune_pinned_empty_cache(host));
  OK(attune_pinned_get_statistics(host, &s));
  assert_true(s.host_frees == 1 && s.segment.current == 0 && s.reserved_bytes.current == 0);
}

TEST(wrong_arguments) {
  void *p = NULL, *device = NULL;
  char local[8];
  assert_int_equal(attune_pinned_alloc(NULL, host, 1), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_pinned_alloc(&p, NULL, 1), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_pinned_alloc(&p, host, (size_t)1 << 60), ATTUNE_OUT_OF_MEMORY);
  assert_int_equal(attune_pinned_free(local), ATTUNE_NOT_FOUND);
  OK(attune_alloc(&device, stream, 100));
  assert_int_equal(attune_pinned_free(device), ATTUNE_INVALID_ARGUMENT);
  OK(attune_free(device, stream));
  OK(attune_pinned_alloc(&p, host, 1));
  assert_int_equal(attune_pinned_record_use(p, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_pinned_record_use(NULL, stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_pinned_free(p));
  FAILS_SAYING(attune_pinned_free(p), ATTUNE_INVALID_ARGUMENT, "already freed");
  assert_int_equal(attune_pinned_record_use(p, stream), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_pinned_get_statistics(host, NULL), ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  return RUN_TESTS(open_stream, close_stream);
}
