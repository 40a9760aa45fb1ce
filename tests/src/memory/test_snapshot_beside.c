/* SPDX-License-Identifier: Apache-2.0
 * test_snapshot_beside.c: snapshots, and questions about wrong pointers, while other threads allocate and free by the
 * fast path: each is of one moment. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, SNAPSHOTS = 150, HELD = 16 };

static attune_device *host;
static atomic_bool done;
static _Atomic(void *) shared; /* of a thread that frees it and allocates it again */

static void *churn(void *arg) {
  attune_stream *stream = NULL;
  void *held[HELD] = {NULL};
  unsigned random = (unsigned)(uintptr_t)arg + 1;
  if (attune_stream_create(&stream, host) != ATTUNE_OK) return NULL;
  while (!atomic_load(&done)) {
    random = random * 1664525u + 1013904223u;
    void **place = &held[random >> 28];
    (void)attune_free(*place, stream);
    if (attune_alloc(place, stream, 512 * (1 + (random >> 20) % 8) - random % 400) != ATTUNE_OK) *place = NULL;
    atomic_store(&shared, *place);
  }
  for (int i = 0; i < HELD; i++) (void)attune_free(held[i], stream);
  attune_stream_destroy(stream);
  return arg;
}

static json_int_t number(const json_t *object, const char *name) {
  return json_integer_value(json_object_get(object, name));
}

/* The totals of a segment are the sums of its blocks. */
static void check_segment(const json_t *segment) {
  const json_t *blocks = json_object_get(segment, "blocks");
  json_int_t allocated = 0, requested = 0;
  for (size_t i = 0; i < json_array_size(blocks); i++) {
    const json_t *block = json_array_get(blocks, i);
    const json_int_t size = number(block, "size"), asked = number(block, "requested_size");
    if (json_string_value(json_object_get(block, "state"))[7] == 'a') allocated += size; /* active_allocated */
    requested += asked;
    assert_true(asked <= size);
  }
  assert_int_equal(allocated, number(segment, "allocated_size"));
  assert_int_equal(requested, number(segment, "requested_size"));
}

TEST(snapshots_are_of_one_moment) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1)), 0);
  attune_stream *stream = attune_stream_default(host);
  const attune_history_options options = {.entries = 60, .frames = 6};
  for (int i = 0; i < SNAPSHOTS; i++) {
    char *text = NULL;
    if (i == SNAPSHOTS / 2) OK(attune_memory_record_history(host, &options)); /* with functions that must be named */
    OK(attune_memory_snapshot(&text, host));
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    const json_t *segments = json_object_get(root, "segments");
    for (size_t s = 0; s < json_array_size(segments); s++) check_segment(json_array_get(segments, s));
    const size_t events = json_array_size(json_array_get(json_object_get(root, "device_traces"), 0));
    assert_true(i < SNAPSHOTS / 2 ? events == 0 : events > 0 && events <= 60);
    json_decref(root);
    free(text);
    char *inside = atomic_load(&shared);
    if (inside) assert_int_not_equal(attune_free(inside + 1, stream), ATTUNE_OK);
  }
  atomic_store(&done, true);
  OK(attune_memory_record_history(host, NULL));
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_non_null(result);
  }
}

int main(void) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return 1;
  return RUN_TESTS(NULL, NULL);
}
