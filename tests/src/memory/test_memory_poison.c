/* SPDX-License-Identifier: Apache-2.0
 * test_memory_poison.c: poison mode on the host: what was freed is filled and looked at; in captures each replay fills
 * the graph's own memory, and no other. */
#include "tests/support/check.h"

#include <attune/graph.h>
#include <attune/memory.h>

enum { POISON = 0xfa, BYTES = 3000 };

static attune_device *host;
static attune_stream *first;

FIXTURE(open_all) {
  return attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&first, host) != ATTUNE_OK;
}

FIXTURE(close_all) {
  attune_stream_destroy(first);
  return 0;
}

FIXTURE(begin) {
  if (attune_memory_empty_cache(host) != ATTUNE_OK) return -1;
  return attune_memory_configure(host, "expandable_segments:true,poison:true") == ATTUNE_OK ? 0 : -1;
}

static unsigned char *take(size_t bytes) {
  void *p = NULL;
  OK(attune_alloc(&p, first, bytes));
  return p;
}

static attune_graph *begin_capture(attune_graph *share) {
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_begin(graph, first, &(attune_capture_options){.share = share}));
  return graph;
}

static void end_capture(attune_graph *graph, size_t nodes) {
  OK(attune_graph_capture_end(graph, first));
  assert_int_equal(attune_graph_node_count(graph), nodes);
}

static void replay(attune_graph *graph) {
  OK(attune_graph_replay(graph, first));
  OK(attune_stream_synchronize(first));
}

static void all_are(const unsigned char *p, int value) {
  for (size_t i = 0; i < BYTES; i++)
    if (p[i] != value) fail_msg("byte %zu is 0x%02x; should be 0x%02x", i, p[i], (unsigned)value);
}

TEST(use_after_free_is_seen) {
  unsigned char *p = take(BYTES);
  memset(p, 1, BYTES);
  OK(attune_free(p, first));
  OK(attune_stream_synchronize(first));
  all_are(p, POISON);
  p = take(BYTES);
  OK(attune_free(p, first));
  OK(attune_stream_synchronize(first));
  p[17] = 3;
  void *q = NULL;
  FAILS_SAYING(attune_alloc(&q, first, BYTES), ATTUNE_BAD_DATA, "byte 17");
  assert_null(q);
  q = take(BYTES); /* seen once */
  OK(attune_free(q, first));
}

/* A replay poisons what the capture freed, where it freed it. */
TEST(a_replay_poisons_what_the_graph_freed) {
  unsigned char *before = take(BYTES), *after = take(BYTES);
  attune_graph *graph = begin_capture(NULL);
  unsigned char *p = take(BYTES);
  OK(attune_fill(first, p, 1, BYTES));
  OK(attune_copy(first, before, p, BYTES));
  OK(attune_free(p, first));
  OK(attune_copy(first, after, p, BYTES)); /* the mistake that is to be seen */
  end_capture(graph, 4);
  for (int i = 0; i < 3; i++) {
    memset(before, 0, BYTES);
    memset(after, 0, BYTES);
    replay(graph);
    all_are(before, 1);
    all_are(after, POISON);
  }
  attune_graph_destroy(graph);
  OK(attune_free(before, first));
  OK(attune_free(after, first));
}

/* The common pool's memory, freed while a graph is captured, is not the graph's: its replays leave it alone, and it is
 * poisoned once the capture is over. */
TEST(memory_freed_in_a_capture_is_not_the_graphs) {
  unsigned char *out = take(64), *p = take(BYTES);
  memset(p, 1, BYTES);
  attune_graph *graph = begin_capture(NULL);
  OK(attune_fill(first, out, 5, 64));
  OK(attune_free(p, first));
  end_capture(graph, 1);
  unsigned char *q = take(BYTES); /* BAD_DATA if it was not filled */
  assert_ptr_equal(q, p);
  memset(q, 2, BYTES);
  replay(graph);
  all_are(q, 2);
  attune_graph_destroy(graph);
  OK(attune_free(q, first));
  OK(attune_free(out, first));
}

/* Waits for the capture's end, also when the other stream is gone by then, and is filled at once: the graph is complete
 * and takes no more work. */
TEST(the_graphs_memory_used_by_another_stream) {
  for (int gone = 0; gone < 2; gone++) {
    attune_stream *other = NULL;
    OK(attune_stream_create(&other, host));
    attune_graph *graph = begin_capture(NULL);
    unsigned char *p = take(BYTES);
    OK(attune_fill(first, p, 1, BYTES));
    OK(attune_record_use(p, other));
    OK(attune_free(p, first));
    if (gone) attune_stream_destroy(other);
    end_capture(graph, 1);
    OK(attune_memory_empty_cache(host)); /* asks for the other stream's event; the pool stays, a graph holds it */
    OK(attune_stream_synchronize(first));
    all_are(p, POISON);
    replay(graph);
    all_are(p, 1);
    attune_graph_destroy(graph);
    if (!gone) attune_stream_destroy(other);
  }
}

TEST(memory_freed_in_a_failed_capture) {
  unsigned char *p = take(BYTES);
  attune_graph *graph = begin_capture(NULL);
  OK(attune_free(p, first));
  attune_graph_destroy(graph);
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  unsigned char *q = take(BYTES);
  assert_ptr_equal(q, p);
  OK(attune_free(q, first));
}

/* Segments that a capture maps are shared by the graphs of its pool. */
TEST(a_replay_leaves_other_graphs_memory_alone) {
  attune_graph *one = begin_capture(NULL);
  unsigned char *p = take(BYTES);
  OK(attune_fill(first, p, 1, BYTES));
  end_capture(one, 1);
  attune_graph *two = begin_capture(one);
  unsigned char *q = take(BYTES);
  OK(attune_fill(first, q, 2, BYTES));
  end_capture(two, 1);
  replay(one);
  replay(two);
  replay(one);
  all_are(p, 1);
  all_are(q, 2);
  OK(attune_free(p, first)); /* outside of a capture: at once */
  OK(attune_stream_synchronize(first));
  all_are(p, POISON);
  replay(one);
  all_are(p, 1);
  attune_graph_destroy(one);
  attune_graph_destroy(two);
  OK(attune_free(q, first));
}

/* Freed in the capture of a graph with another pool, and then a third graph's. */
TEST(memory_of_another_graphs_pool) {
  attune_graph *one = begin_capture(NULL);
  unsigned char *p = take(BYTES);
  OK(attune_fill(first, p, 1, BYTES));
  end_capture(one, 1);
  attune_graph *two = begin_capture(NULL);
  unsigned char *q = take(BYTES);
  OK(attune_fill(first, q, 2, BYTES));
  OK(attune_free(p, first));
  end_capture(two, 1);
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(host, &s));
  attune_graph *three = begin_capture(one);
  unsigned char *r = take(BYTES);
  assert_ptr_equal(r, p);
  OK(attune_fill(first, r, 3, BYTES));
  end_capture(three, 1);
  replay(three);
  replay(two);
  all_are(r, 3);
  all_are(q, 2);
  attune_graph_destroy(one);
  attune_graph_destroy(two);
  attune_graph_destroy(three);
  OK(attune_free(q, first));
  OK(attune_free(r, first));
}

/* Work of a stream that ends is done before its memory is filled. */
TEST(a_stream_that_ends) {
  attune_stream *stream = NULL;
  void *p = NULL;
  OK(attune_memory_configure(host, "expandable_segments:false"));
  OK(attune_stream_create(&stream, host));
  OK(attune_alloc(&p, stream, 30 << 20));
  OK(attune_free(p, stream));
  attune_stream_destroy(stream);
  unsigned char *q = take(30 << 20);
  assert_ptr_equal(q, p);
  OK(attune_free(q, first));
}

int main(void) {
  return RUN_TESTS_EACH(begin, NULL, open_all, close_all);
}
