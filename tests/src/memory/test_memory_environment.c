/* SPDX-License-Identifier: Apache-2.0
 * test_memory_environment.c: ATTUNE_ALLOC, which a device's allocator reads once, then attune_memory_configure. */
#include "tests/support/check.h"

#include <attune/attune.h>

TEST(the_variable_sets_what_a_call_changes) {
  attune_device *host = NULL;
  attune_stream *stream = NULL;
  const char *backend = NULL;
  void *p = NULL;
  size_t bytes = 0;
  attune_memory_statistics s = {0};
  assert_int_equal(setenv("ATTUNE_ALLOC", "backend:none,roundup_power2_divisions:4", 1), 0);
  OK(attune_device_get(&host, "host"));
  OK(attune_stream_create(&stream, host));
  OK(attune_memory_get_backend(host, &backend));
  assert_string_equal(backend, "none");
  OK(attune_alloc(&p, stream, 5000));
  OK(attune_free(p, stream));
  OK(attune_memory_get_statistics(host, &s)); /* nothing is cached */
  assert_int_equal(s.reserved_bytes[ATTUNE_MEMORY_ALL].current, 0);
  OK(attune_memory_configure(host, "backend:caching"));
  OK(attune_alloc(&p, stream, 5000));
  OK(attune_memory_range(p, NULL, &bytes));
  assert_int_equal(bytes, 5120); /* the next quarter of a power of two: the other key still holds */
  OK(attune_free(p, stream));
  OK(attune_memory_get_statistics(host, &s));
  assert_true(s.reserved_bytes[ATTUNE_MEMORY_ALL].current > 0);
  attune_stream_destroy(stream);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
