/* SPDX-License-Identifier: Apache-2.0
 * test_orphan_pools.c: memory of pools that nobody holds: others get it at once, but never while work may use it. */
#include <attune/attune.h>
#include <attune/graph.h>

#include "tests/support/check.h"

#include <stdatomic.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

static attune_device *host;
static attune_stream *a, *b;
static atomic_bool gate;

static void wait_at_gate(void *user) {
  (void)user;
  while (!atomic_load(&gate)) usleep(100);
}

/* The stream's work stands still until open_gate. */
static void block(attune_stream *stream) {
  atomic_store(&gate, false);
  OK(attune_stream_call(stream, wait_at_gate, NULL));
}

static void open_gate(attune_stream *stream) {
  atomic_store(&gate, true);
  OK(attune_stream_synchronize(stream));
}

static uint64_t reserved(void) {
  attune_memory_statistics statistics = {0};
  OK(attune_memory_get_statistics(host, &statistics));
  return statistics.reserved_bytes[ATTUNE_MEMORY_ALL].current;
}

/* Each test runs with both kinds of segments. */
static const char *const kinds[] = {"expandable_segments:false", "expandable_segments:true"};

static void begin(int kind) {
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_configure(host, kinds[kind]));
  OK(attune_stream_create(&a, host));
  OK(attune_stream_create(&b, host));
}

static void end(void) {
  attune_stream_destroy(a);
  attune_stream_destroy(b);
  OK(attune_memory_empty_cache(host));
  assert_int_equal(reserved(), 0);
}

/* Memory of a new pool; both are the caller's. */
static void *take(attune_pool **out, attune_stream *stream) {
  void *memory = NULL;
  OK(attune_pool_create(out, host, NULL));
  OK(attune_pool_begin(*out, stream));
  OK(attune_alloc(&memory, stream, 3 * MIB));
  OK(attune_pool_end(*out, stream));
  return memory;
}

static void give(attune_pool *pool, void *memory, attune_stream *stream) {
  OK(attune_free(memory, stream));
  attune_pool_destroy(pool);
}

TEST(pools_of_streams) {
  for (int kind = 0; kind < 2; kind++) {
    attune_pool *pool = NULL, *other = NULL, *own = NULL;
    begin(kind);
    void *first = take(&pool, a);
    block(a);
    OK(attune_fill(a, first, 1, 3 * MIB));
    give(pool, first, a);
    void *elsewhere = take(&other, b); /* a may still write to the first */
    assert_ptr_not_equal(elsewhere, first);
    void *in_order = take(&own, a); /* what a is given from now on runs after that */
    assert_ptr_equal(in_order, first);
    give(own, in_order, a);
    open_gate(a);
    give(other, elsewhere, b);
    OK(attune_stream_synchronize(b));
    const uint64_t before = reserved();
    void *again = take(&pool, b), *both = take(&other, b); /* nothing is in use: no more memory is taken */
    assert_true((again == first && both == elsewhere) || (again == elsewhere && both == first));
    assert_int_equal(reserved(), before);
    give(pool, again, b);
    give(other, both, b);
    end();
  }
}

static attune_status give_work(void *user, attune_stream *stream) {
  void **memory = user;
  attune_status status = attune_alloc(memory, stream, 3 * MIB);
  if (status == ATTUNE_OK) status = attune_fill(stream, *memory, 1, 4096);
  return status == ATTUNE_OK ? attune_free(*memory, stream) : status;
}

static void *capture(attune_graph **out, attune_stream *stream) {
  void *memory = NULL;
  OK(attune_graph_create(out, host));
  OK(attune_graph_capture_callback(*out, stream, NULL, give_work, &memory));
  return memory;
}

/* The next graph gets the memory of one that was destroyed; not while a replay of that is still to come. */
TEST(graphs) {
  for (int kind = 0; kind < 2; kind++) {
    attune_graph *first = NULL, *second = NULL, *third = NULL;
    begin(kind);
    void *memory = capture(&first, a);
    OK(attune_graph_replay(first, b));
    OK(attune_stream_synchronize(b));
    attune_graph_destroy(first);
    const uint64_t before = reserved();
    assert_ptr_equal(capture(&first, a), memory);
    assert_int_equal(reserved(), before);
    block(b);
    OK(attune_graph_replay(first, b));
    attune_graph_destroy(first);
    void *other = capture(&second, a);
    assert_ptr_not_equal(other, memory);
    open_gate(b);
    assert_ptr_equal(capture(&third, a), memory);
    attune_graph_destroy(second);
    attune_graph_destroy(third);
    end();
  }
}

/* Memory that the program still holds stays; what is freed later is waited for again. */
TEST(memory_that_outlives_its_pool) {
  for (int kind = 0; kind < 2; kind++) {
    attune_pool *pool = NULL, *other = NULL, *third = NULL;
    begin(kind);
    unsigned char *held = take(&pool, a);
    attune_pool_destroy(pool);
    OK(attune_fill(a, held, 42, 3 * MIB));
    OK(attune_stream_synchronize(a));
    unsigned char *elsewhere = take(&other, b);
    assert_true(elsewhere + 3 * MIB <= held || held + 3 * MIB <= elsewhere);
    for (int i = 0; i < 3 * MIB; i++) assert_int_equal(held[i], 42);
    block(a);
    OK(attune_fill(a, held, 43, 3 * MIB));
    OK(attune_free(held, a));
    void *meanwhile = take(&third, b);
    assert_ptr_not_equal(meanwhile, held);
    open_gate(a);
    attune_pool *last = NULL;
    void *again = take(&last, b);
    assert_ptr_equal(again, held);
    give(last, again, b);
    give(other, elsewhere, b);
    give(third, meanwhile, b);
    end();
  }
}

/* A pool that goes while a capture is under way. */
TEST(in_a_capture) {
  for (int kind = 0; kind < 2; kind++) {
    attune_graph *graph = NULL, *next = NULL;
    attune_pool *pool = NULL;
    void *captured = NULL;
    begin(kind);
    void *memory = take(&pool, b);
    OK(attune_graph_create(&graph, host));
    OK(attune_graph_capture_begin(graph, a, NULL));
    give(pool, memory, b);
    OK(attune_alloc(&captured, a, 3 * MIB));
    assert_ptr_not_equal(captured, memory);
    OK(attune_free(captured, a));
    OK(attune_graph_capture_end(graph, a));
    OK(attune_stream_synchronize(b));
    assert_ptr_equal(capture(&next, a), memory);
    attune_graph_destroy(graph);
    attune_graph_destroy(next);
    end();
  }
}

int main(void) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return 1;
  return RUN_TESTS(NULL, NULL);
}
