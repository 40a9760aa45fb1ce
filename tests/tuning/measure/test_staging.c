/* SPDX-License-Identifier: Apache-2.0
 * test_staging.c: copies through pinned buffers, of all lengths, on a device that is the host by another name: its
 * stream works beside this thread, so that a buffer that is filled or emptied too early shows. */
#include "tuning/measure/staging.h"

#include <attune/pinned.h>

#include "tests/support/check.h"

#define MIB ((size_t)1 << 20)

static attune_device *host, gpu;
static attune_stream *stream;

static const size_t LENGTHS[] = {0, 1, MIB - 1, MIB, 4 * MIB + 1, 16 * MIB, 21 * MIB + 12345};

FIXTURE(open_device) {
  void *first = NULL;
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&stream, host) != ATTUNE_OK) return -1;
  /* the host's allocator is there before it is copied: both share it, and no copy makes one that nobody frees */
  if (attune_pinned_alloc(&first, host, 64) != ATTUNE_OK || attune_pinned_free(first) != ATTUNE_OK) return -1;
  gpu = *host;
  gpu.properties.kind = ATTUNE_DEVICE_CUDA;
  stream->device = &gpu;
  return 0;
}

FIXTURE(close_device) {
  stream->device = host;
  attune_stream_destroy(stream);
  return attune_pinned_empty_cache(host) == ATTUNE_OK ? 0 : -1;
}

static unsigned char *numbers(size_t bytes, uint64_t seed) {
  unsigned char *out = malloc(bytes + 16);
  assert_non_null(out);
  for (size_t i = 0; i <= bytes; i += 8) {
    const uint64_t x = (seed + i) * 0x9E3779B97F4A7C15u;
    memcpy(out + i, &x, 8);
  }
  return out;
}

TEST(all_of_it_comes_and_nothing_else) {
  for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
    const size_t bytes = LENGTHS[i];
    unsigned char *from = numbers(bytes, 1), *to = numbers(bytes, 2);
    const unsigned char behind = to[bytes];
    OK(at_staging_fetch(stream, to, from, bytes));
    assert_int_equal(memcmp(to, from, bytes), 0); /* at once: nothing is waited for here */
    assert_int_equal(to[bytes], behind);
    free(to);
    free(from);
  }
}

TEST(all_of_it_goes_and_nothing_else) {
  for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
    const size_t bytes = LENGTHS[i];
    unsigned char *from = numbers(bytes, 3), *to = numbers(bytes, 4), *kept = numbers(bytes, 3);
    const unsigned char behind = to[bytes];
    OK(at_staging_put(stream, to, from, bytes));
    memset(from, 0, bytes); /* the caller's again */
    OK(attune_stream_synchronize(stream));
    assert_int_equal(memcmp(to, kept, bytes), 0);
    assert_int_equal(to[bytes], behind);
    free(kept);
    free(to);
    free(from);
  }
}

/* The buffers are cached, once: their number does not grow, and none stays held. */
TEST(buffers_are_used_again) {
  attune_pinned_statistics before = {0}, after = {0};
  unsigned char *from = numbers(2 * MIB, 5), *to = numbers(2 * MIB, 6);
  OK(at_staging_fetch(stream, to, from, 2 * MIB));
  OK(attune_pinned_get_statistics(host, &before));
  for (int i = 0; i < 5; i++) OK(at_staging_put(stream, to, from, 2 * MIB));
  OK(attune_pinned_get_statistics(host, &after));
  assert_int_equal(after.host_allocs, before.host_allocs);
  assert_int_equal(after.active.current, 0);
  free(to);
  free(from);
}

static attune_status no_pinned(attune_device *device, void **out, size_t bytes) {
  (void)device, (void)out, (void)bytes;
  return at_fail(ATTUNE_OUT_OF_MEMORY, "no pinned memory, as the test wants it");
}

/* Where there is no pinned memory the driver copies alone, and no message is left. */
TEST(without_buffers_it_still_comes) {
  at_backend_pinned pinned = *host->backend.pinned;
  unsigned char *from = numbers(3 * MIB, 7), *to = numbers(3 * MIB, 8);
  OK(attune_pinned_empty_cache(host));
  pinned.alloc = no_pinned;
  gpu.backend.pinned = &pinned;
  (void)at_fail(ATTUNE_NOT_FOUND, "an older message");
  OK(at_staging_fetch(stream, to, from, 3 * MIB));
  assert_string_equal(attune_last_message(), "an older message");
  assert_int_equal(memcmp(to, from, 3 * MIB), 0);
  memset(to, 0, 3 * MIB);
  OK(at_staging_put(stream, to, from, 3 * MIB));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(memcmp(to, from, 3 * MIB), 0);
  gpu.backend.pinned = host->backend.pinned;
  free(to);
  free(from);
}

int main(void) {
  return RUN_TESTS_EACH(open_device, close_device, NULL, NULL);
}
