/* SPDX-License-Identifier: Apache-2.0
 * test_annotate.c: what tools are told of memory (nvtx:true), with a tool in the host's place that writes it down: what
 * the program holds may be used, what it freed may not, and a segment is known from first to last. */
#include "tests/support/check.h"

#include "src/host/host.h"
#include "src/memory/malloc/allocator.h"

#include <unistd.h>

#include <attune/attune.h>

#define MIB ((size_t)1 << 20)
#define REGIONS 4096

typedef struct region {
  const char *start;
  size_t bytes;
  const void *heap;
} region;

static region heaps[64], regions[REGIONS];
static size_t heap_count, region_count;
static attune_device *host;
static attune_stream *first, *second;

static bool overlap(const region *a, const region *b) {
  return a->start < b->start + b->bytes && b->start < a->start + a->bytes;
}

static void *note_segment(attune_device *device, const void *base, size_t bytes) {
  assert_ptr_equal(device, host);
  assert_true(heap_count < AT_COUNT(heaps));
  heaps[heap_count] = (region){base, bytes, NULL};
  for (size_t i = 0; i < heap_count; i++) assert_false(overlap(&heaps[i], &heaps[heap_count]));
  heap_count++;
  return (void *)(uintptr_t)base;
}

static void forget_segment(attune_device *device, void *note) {
  size_t i = 0;
  (void)device;
  while (i < heap_count && heaps[i].start != note) i++;
  assert_true(i < heap_count);
  for (size_t r = 0; r < region_count; r++) assert_false(overlap(&regions[r], &heaps[i]));
  heaps[i] = heaps[--heap_count];
}

static void note_block(attune_device *device, void *note, const void *address, size_t bytes) {
  (void)device;
  size_t i = 0;
  while (i < heap_count && heaps[i].start != note) i++;
  assert_true(i < heap_count);
  assert_true((const char *)address >= heaps[i].start);
  assert_true((const char *)address + bytes <= heaps[i].start + heaps[i].bytes);
  assert_true(region_count < REGIONS);
  regions[region_count] = (region){address, bytes, note};
  for (size_t r = 0; r < region_count; r++) assert_false(overlap(&regions[r], &regions[region_count]));
  region_count++;
}

static void forget_block(attune_device *device, void *note, const void *address) {
  size_t i = 0;
  (void)device;
  while (i < region_count && regions[i].start != address) i++;
  assert_true(i < region_count);
  assert_ptr_equal(regions[i].heap, note);
  regions[i] = regions[--region_count];
}

static const at_backend_notes listening = {note_segment, forget_segment, note_block, forget_block};

static bool may_use(const void *address) {
  for (size_t r = 0; r < region_count; r++)
    if ((const char *)address - regions[r].start >= 0 &&
        (size_t)((const char *)address - regions[r].start) < regions[r].bytes)
      return true;
  return false;
}

FIXTURE(listen) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return -1;
  host->backend.notes = &listening;
  return attune_stream_create(&first, host) == ATTUNE_OK && attune_stream_create(&second, host) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(stop) {
  attune_stream_destroy(first);
  attune_stream_destroy(second);
  return 0;
}

static void set(const char *settings) {
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_configure(host, settings));
}

static void *take(attune_stream *stream, size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, stream, bytes));
  return p;
}

TEST(what_is_held_may_be_used) {
  enum { SLOTS = 64, TURNS = 20000 };
  char *blocks[SLOTS] = {0};
  uint64_t x = 1;
  set("nvtx:true");
  for (int turn = 0; turn < TURNS; turn++) {
    x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
    const size_t slot = x >> 58, bytes = (x >> 20) % (x >> 40 & 1 ? 3 * MIB : 5000) + 1;
    attune_stream *stream = x >> 41 & 1 ? first : second;
    if (blocks[slot]) {
      OK(attune_free(blocks[slot], stream));
      blocks[slot] = NULL;
    } else {
      blocks[slot] = take(stream, bytes);
      assert_true(may_use(blocks[slot]) && may_use(blocks[slot] + bytes - 1));
    }
    if (turn % 1000 == 0) OK(attune_memory_empty_cache(host));
  }
  for (int i = 0; i < SLOTS; i++) OK(attune_free(blocks[i], first));
  OK(attune_memory_empty_cache(host)); /* waits for the streams, too */
  assert_int_equal(region_count, 0);
  assert_int_equal(heap_count, 0);
  set("nvtx:false");
  char *p = take(first, 100);
  assert_int_equal(heap_count, 0);
  OK(attune_free(p, first));
}

TEST(freed_memory_may_not) {
  set("nvtx:true");
  char *p = take(first, 1000), *q = take(first, 1000);
  assert_true(may_use(p + 1023)); /* attune_memory_range says so */
  assert_false(may_use(q + 1024));
  OK(attune_free(p, first));
  assert_false(may_use(p));
  assert_true(may_use(q));
  OK(attune_free(q, first));
  assert_false(may_use(q));
  assert_int_equal(heap_count, 1);
  set("nvtx:false");
  assert_int_equal(heap_count, 0);
}

static void slow_work(const void *args) {
  usleep(50000);
  (*(char *const *)args)[0] = (char)(may_use(*(char *const *)args) ? 1 : 2);
}

/* Work that was given before the free is no use after free. */
TEST(work_given_before_is_waited_for) {
  set("nvtx:true");
  char *p = take(first, 100), *other = take(first, 100);
  OK(at_host_submit(first, slow_work, &p, sizeof p));
  OK(attune_free(p, first));
  assert_int_equal(*p, 1);
  OK(attune_record_use(other, second));
  OK(at_host_submit(second, slow_work, &other, sizeof other));
  OK(attune_free(other, first));
  assert_true(may_use(other)); /* it is in use still */
  OK(attune_stream_synchronize(second));
  assert_int_equal(*other, 1);
  OK(attune_memory_empty_cache(host));
  assert_int_equal(region_count, 0);
  set("nvtx:false");
}

static attune_status allocate_and_free(void *user, attune_stream *stream) {
  attune_status status = attune_alloc(user, stream, 1000);
  if (status == ATTUNE_OK) status = attune_fill(stream, *(void **)user, 1, 1000);
  return status == ATTUNE_OK ? attune_free(*(void **)user, stream) : status;
}

/* Each replay writes to what its capture freed. */
TEST(a_graphs_memory_is_its_own) {
  attune_graph *graph = NULL;
  void *p = NULL;
  set("nvtx:true");
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, first, NULL, allocate_and_free, &p));
  assert_int_equal(heap_count, 0);
  OK(attune_graph_replay(graph, first));
  OK(attune_stream_synchronize(first));
  attune_graph_destroy(graph);
  set("nvtx:false");
}

TEST(settings) {
  set("nvtx:false");
  FAILS_SAYING(attune_memory_configure(host, "nvtx:true,poison:true"), ATTUNE_INVALID_ARGUMENT, "nvtx and poison");
  assert_int_equal(attune_memory_configure(host, "nvtx:1"), ATTUNE_INVALID_ARGUMENT);
  char *p = take(first, 100);
  assert_int_equal(attune_memory_configure(host, "nvtx:true"), ATTUNE_BUSY);
  OK(attune_free(p, first));
  OK(attune_memory_empty_cache(host));
  host->backend.notes = NULL;
  assert_int_equal(attune_memory_configure(host, "nvtx:true"), ATTUNE_UNSUPPORTED);
  host->backend.notes = &listening;
}

int main(void) {
  return RUN_TESTS(listen, stop);
}
