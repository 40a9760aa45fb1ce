/* SPDX-License-Identifier: Apache-2.0
 * test_memory.c: memory, copies and fills on the host: alignment, stream order, refused arguments. */
#include "tests/support/check.h"

#include "src/base/backend.h"
#include "src/host/host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static attune_device *host;
static attune_stream *inline_stream, *queued;

FIXTURE(open_streams) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  inline_stream = attune_stream_default(host);
  return attune_stream_create(&queued, host) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_streams) {
  attune_stream_destroy(queued);
  return 0;
}

TEST(memory_is_aligned) {
  static const size_t sizes[] = {1, 255, 256, 257, 4096, 1000003};
  for (size_t i = 0; i < AT_COUNT(sizes); i++) {
    void *p = NULL;
    assert_int_equal(attune_alloc(&p, i % 2 ? inline_stream : queued, sizes[i]), ATTUNE_OK);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 256, 0);
    memset(p, 0x5a, sizes[i]);
    assert_int_equal(attune_free(p, i % 2 ? queued : inline_stream), ATTUNE_OK);
  }
  void *nothing = &nothing;
  assert_int_equal(attune_alloc(&nothing, queued, 0), ATTUNE_OK);
  assert_null(nothing);
  assert_int_equal(attune_free(NULL, queued), ATTUNE_OK);
}

TEST(memory_ends) {
  void *p = &p;
  assert_int_equal(attune_alloc(&p, inline_stream, (size_t)1 << 60), ATTUNE_OUT_OF_MEMORY);
  assert_null(p);
  assert_non_null(strstr(attune_last_message(), "host"));
}

TEST(copies_and_fills) {
  attune_stream *const streams[] = {inline_stream, queued};
  for (size_t i = 0; i < AT_COUNT(streams); i++) {
    unsigned char a[1000] = {0}, b[1000] = {0};
    assert_int_equal(attune_fill(streams[i], a + 1, 255, 998), ATTUNE_OK);
    assert_int_equal(attune_copy(streams[i], b, a, 1000), ATTUNE_OK);
    assert_int_equal(attune_fill(streams[i], a, 7, 1000), ATTUNE_OK); /* after the copy */
    assert_int_equal(attune_stream_synchronize(streams[i]), ATTUNE_OK);
    assert_true(b[0] == 0 && b[1] == 255 && b[998] == 255 && b[999] == 0 && a[0] == 7 && a[999] == 7);
  }
}

static atomic_bool gate;
static void wait_for_gate(const void *args) {
  (void)args;
  while (!atomic_load(&gate)) usleep(100);
}

/* Freed at once, the fill would write freed memory: the address sanitizer sees it. */
TEST(freeing_keeps_stream_order) {
  unsigned char result[64] = {0};
  void *p = NULL;
  atomic_store(&gate, false);
  assert_int_equal(attune_alloc(&p, queued, 64), ATTUNE_OK);
  assert_int_equal(at_host_submit(queued, wait_for_gate, NULL, 0), ATTUNE_OK);
  assert_int_equal(attune_fill(queued, p, 9, 64), ATTUNE_OK);
  assert_int_equal(attune_copy(queued, result, p, 64), ATTUNE_OK);
  assert_int_equal(attune_free(p, queued), ATTUNE_OK);
  assert_int_equal(attune_stream_query(queued), ATTUNE_NOT_READY); /* the free did not wait */
  atomic_store(&gate, true);
  assert_int_equal(attune_stream_synchronize(queued), ATTUNE_OK);
  assert_true(result[0] == 9 && result[63] == 9);
}

TEST(wrong_arguments) {
  unsigned char a[64], b[64];
  void *p = NULL;
  assert_int_equal(attune_alloc(NULL, queued, 8), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_alloc(&p, NULL, 8), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_free(a, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_copy(NULL, a, b, 8), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_copy(queued, NULL, b, 8), ATTUNE_INVALID_ARGUMENT, "destination");
  FAILS_SAYING(attune_copy(queued, a, NULL, 8), ATTUNE_INVALID_ARGUMENT, "source");
  assert_int_equal(attune_copy(queued, a, a + 10, 11), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_copy(queued, a + 10, a, 11), ATTUNE_INVALID_ARGUMENT, "overlap");
  assert_int_equal(attune_copy(inline_stream, a + 10, a, 10), ATTUNE_OK);
  assert_int_equal(attune_copy(queued, a, b, SIZE_MAX), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_copy(queued, NULL, NULL, 0), ATTUNE_OK);
  assert_int_equal(attune_fill(NULL, a, 0, 8), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_fill(queued, NULL, 0, 8), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_fill(queued, a, 256, 8), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_fill(queued, a, -1, 8), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_fill(queued, NULL, 0, 0), ATTUNE_OK);
}

static void *scratch_of_thread(void *arg) {
  (void)arg;
  unsigned char *p = at_host_scratch(100000);
  if (p) memset(p, 1, 100000); /* its end frees it: the leak checkers see if not */
  return p;
}

TEST(scratch_is_kept_and_grown) {
  unsigned char *small = at_host_scratch(10);
  assert_non_null(small);
  assert_int_equal((uintptr_t)small % 64, 0);
  assert_ptr_equal(at_host_scratch(5), small);
  unsigned char *large = at_host_scratch((size_t)1 << 20);
  assert_non_null(large);
  assert_int_equal((uintptr_t)large % 64, 0);
  memset(large, 2, (size_t)1 << 20);
  assert_ptr_equal(at_host_scratch((size_t)1 << 20), large);
  assert_ptr_equal(at_host_scratch(100), large);
  pthread_t thread;
  void *theirs = NULL;
  assert_int_equal(pthread_create(&thread, NULL, scratch_of_thread, NULL), 0);
  pthread_join(thread, &theirs);
  assert_non_null(theirs);
  assert_ptr_not_equal(theirs, large);
  assert_null(at_host_scratch(SIZE_MAX));
  assert_non_null(at_host_scratch(1));
}

int main(void) {
  return RUN_TESTS(open_streams, close_streams);
}
