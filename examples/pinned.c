/* SPDX-License-Identifier: Apache-2.0
 * pinned.c: numbers go to the device in pieces by way of page-locked memory, so that copies overlap with the work that
 * makes the next piece; and managed memory, which moves by itself, with advice. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 8, COUNT = 4096, BYTES = COUNT * (int)sizeof(float) };
static const char *const SNAPSHOT = "attune-pinned.json";

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

static int find_allocations(void *user, const char *name, int64_t value) {
  if (strcmp(name, "allocations.allocated") == 0) *(int64_t *)user = value;
  return 0;
}

/* Each piece has a block of its own, which the cache gives out again once the copy from it is done. */
static void send_pieces(attune_device *device, attune_stream *stream, float *destination) {
  for (int piece = 0; piece < PIECES; piece++) {
    float *block = NULL;
    check(attune_pinned_alloc((void **)&block, device, BYTES));
    for (int i = 0; i < COUNT; i++) block[i] = (float)(piece * COUNT + i);
    check(attune_copy(stream, destination + piece * COUNT, block, BYTES)); /* does not wait */
    check(attune_pinned_record_use(block, stream));
    check(attune_pinned_free(block));
  }
}

/* Pages that are wanted on the device first, then read by both sides. */
static void use_managed(attune_device *device, attune_stream *stream, attune_device *host) {
  attune_managed_options advice = ATTUNE_MANAGED_OPTIONS_INIT;
  attune_pool_options options = ATTUNE_POOL_OPTIONS_INIT;
  attune_managed_state state = {0};
  attune_pool *pool = NULL;
  void *memory = NULL;
  advice.preferred = device;
  options.managed = &advice;
  if (attune_pool_create(&pool, device, &options) != ATTUNE_OK) {
    printf("no managed memory: %s\n", attune_last_message());
    return;
  }
  check(attune_pool_begin(pool, stream));
  check(attune_alloc(&memory, stream, BYTES));
  check(attune_pool_end(pool, stream));
  check(attune_managed_prefetch(stream, memory, BYTES, device));
  check(attune_fill(stream, memory, 0, BYTES));
  check(attune_managed_prefetch(stream, memory, BYTES, host));
  check(attune_stream_synchronize(stream));
  advice.preferred = NULL;
  advice.read_mostly = 1;
  check(attune_managed_advise(device, memory, BYTES, &advice));
  if (attune_managed_get_state(&state, device, memory, BYTES) == ATTUNE_OK)
    printf("managed memory: byte 0 is %d, %s\n", *(char *)memory, state.read_mostly ? "read mostly" : "no advice");
  else
    printf("managed memory: byte 0 is %d; %s\n", *(char *)memory, attune_last_message());
  check(attune_free(memory, stream));
  attune_pool_destroy(pool);
}

int main(void) {
  static float back[PIECES * COUNT];
  attune_device *device = NULL, *host = NULL;
  attune_stream *stream = NULL;
  attune_pinned_statistics s = {0};
  float *numbers = NULL;
  int64_t allocations = 0;
  check(attune_device_get(&device, "best"));
  check(attune_device_get(&host, "host"));
  check(attune_stream_create(&stream, device));
  check(attune_alloc((void **)&numbers, stream, sizeof back));
  check(attune_pinned_record_history(device, &(attune_history_options)ATTUNE_HISTORY_OPTIONS_INIT));
  send_pieces(device, stream, numbers);
  check(attune_pinned_snapshot_save(SNAPSHOT, device));
  check(attune_pinned_record_history(device, NULL));
  check(attune_copy(stream, back, numbers, sizeof back));
  check(attune_stream_synchronize(stream));
  check(attune_pinned_get_statistics(device, &s));
  check(attune_pinned_each_statistic(device, find_allocations, &allocations)); /* by PyTorch's names */
  printf("%s: %lld allocations, %llu blocks taken from the system\n", attune_device_name(device),
         (long long)allocations, (unsigned long long)s.segment.allocated);
  check(attune_pinned_empty_cache(device));
  check(attune_pinned_reset_peaks(device)); /* count from here on */
  check(attune_pinned_reset_accumulated(device));
  use_managed(device, stream, host);

  const int good = back[PIECES * COUNT - 1] == PIECES * COUNT - 1 && remove(SNAPSHOT) == 0;
  check(attune_free(numbers, stream));
  attune_stream_destroy(stream);
  return good ? 0 : 1;
}
