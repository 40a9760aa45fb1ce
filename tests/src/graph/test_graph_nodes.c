/* SPDX-License-Identifier: Apache-2.0
 * test_graph_nodes.c: on the host: a graph's nodes and edges, nodes left out and taken in, and nodes with new
 * parameters. */
#include "tests/src/graph/graph_host.h"

#include <attune/check.h>
#include <attune/graph_nodes.h>

#include "tests/support/unseen_wait.h"

static unsigned numbers[4 * COUNT];

static attune_graph *capture(attune_stream *stream, attune_capture_fn fn, int keep) {
  attune_graph *graph = new_graph();
  OK(attune_graph_capture_callback(graph, stream, &(attune_capture_options){.keep_graph = keep}, fn, numbers));
  return graph;
}

static void replay(attune_graph *graph, attune_stream *stream) {
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
}

/* On two streams: fill, then work beside a copy, then both joined by a call. */
static void add_seven(void *user) {
  unsigned *x = user;
  x[0] += 7;
}
static attune_event *out, *back;
static attune_stream *side;
static attune_status diamond(void *user, attune_stream *stream) {
  unsigned *x = user;
  OK(attune_fill(stream, x, 1, COUNT * sizeof *x));
  OK(attune_event_record(out, stream));
  OK(attune_stream_wait_event(side, out));
  give(stream, x, 3, 1);
  OK(attune_fill(side, x + COUNT, 2, COUNT * sizeof *x));
  OK(attune_event_record(back, side));
  OK(attune_stream_wait_event(stream, back));
  OK(attune_copy(stream, x + 2 * COUNT, x + COUNT, COUNT * sizeof *x));
  OK(attune_stream_call(stream, add_seven, x));
  return ATTUNE_OK;
}

TEST(nodes_and_edges) {
  static const attune_node_kind kinds[] = {ATTUNE_NODE_FILL, ATTUNE_NODE_KERNEL, ATTUNE_NODE_FILL, ATTUNE_NODE_COPY,
                                           ATTUNE_NODE_CALL};
  static const char *const names[] = {"fill", "work", "fill", "copy", "call"};
  static const attune_edge expected[] = {{0, 1, 0}, {0, 2, 0}, {1, 3, 0}, {2, 3, 0}, {3, 4, 0}};
  attune_stream *stream = new_stream();
  attune_node node = {0};
  attune_edge edges[8];
  size_t count = 99;
  side = new_stream();
  out = new_event();
  back = new_event();
  attune_graph *graph = capture(stream, diamond, 1);
  assert_int_equal(attune_graph_node_count(graph), 5);
  for (size_t i = 0; i < 5; i++) {
    OK(attune_graph_get_node(&node, graph, i));
    assert_int_equal(node.kind, kinds[i]);
    assert_string_equal(node.name, names[i]);
    assert_true(node.enabled == 1 && node.native == NULL);
  }
  FAILS(attune_graph_get_node(&node, graph, 5), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_get_node(NULL, graph, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_get_node(&node, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_get_edges(graph, NULL, 0, &count));
  assert_int_equal(count, 5);
  memset(edges, 0xff, sizeof edges);
  OK(attune_graph_get_edges(graph, edges, 3, &count));
  assert_int_equal(count, 5);
  assert_memory_equal(&edges[2].from, &expected[2].from, sizeof edges[2].from);
  assert_true(edges[3].from == SIZE_MAX);
  OK(attune_graph_get_edges(graph, edges, 8, &count));
  for (int e = 0; e < 5; e++) { /* in any order */
    int found = 0;
    for (size_t i = 0; i < count; i++) found += edges[i].from == expected[e].from && edges[i].to == expected[e].to;
    assert_int_equal(found, 1);
  }
  FAILS(attune_graph_get_edges(graph, NULL, 1, &count), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_get_edges(graph, edges, 8, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  graph = capture(stream, diamond, 0);
  FAILS(attune_graph_get_node(&node, graph, 0), ATTUNE_INVALID_ARGUMENT); /* not kept */
  FAILS(attune_graph_get_edges(graph, edges, 8, &count), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_set_enabled(graph, 0, 0), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  attune_event_destroy(out);
  attune_event_destroy(back);
  attune_stream_destroy(side);
  attune_stream_destroy(stream);
}

static attune_status three_steps(void *user, attune_stream *stream) {
  unsigned *x = user;
  give(stream, x, 1, 1);
  give(stream, x, 1, 10);
  OK(attune_copy(stream, x + COUNT, x, COUNT * sizeof *x));
  return attune_stream_call(stream, add_seven, x + 2 * COUNT);
}

/* Replays that were given before a change do what they did, however late they run. */
static atomic_bool gate;
static void wait_for_gate(const void *args) {
  (void)args;
  while (!atomic_load(&gate)) usleep(100);
}

TEST(nodes_are_left_out) {
  attune_stream *stream = new_stream();
  attune_graph *graph = capture(stream, three_steps, 1), *clone = NULL;
  attune_node node = {0};
  memset(numbers, 0, sizeof numbers);
  OK(attune_graph_set_enabled(graph, 1, 0));
  OK(attune_graph_get_node(&node, graph, 1));
  assert_int_equal(node.enabled, 0);
  replay(graph, stream);
  assert_numbers(numbers, 1);
  assert_int_equal(numbers[COUNT], 1);
  const char gated = 0;
  atomic_store(&gate, false);
  OK(at_host_submit(stream, wait_for_gate, &gated, 1));
  OK(attune_graph_replay(graph, stream)); /* adds 1 */
  OK(attune_graph_set_enabled(graph, 1, 1));
  OK(attune_graph_set_enabled(graph, 2, 0));
  OK(attune_graph_replay(graph, stream)); /* adds 11, copies nothing */
  atomic_store(&gate, true);
  OK(attune_stream_synchronize(stream));
  assert_numbers(numbers, 13);
  assert_int_equal(numbers[COUNT], 2);
  FAILS(attune_graph_set_enabled(graph, 3, 0), ATTUNE_UNSUPPORTED); /* a call */
  FAILS(attune_graph_set_enabled(graph, 4, 0), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_clone(&clone, graph)); /* all of it */
  replay(clone, stream);
  assert_int_equal(numbers[COUNT], 24);
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_get_node(&node, graph, 2));
  assert_int_equal(node.enabled, 1);
  attune_graph_destroy(clone);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

static void add_nine(void *user) {
  unsigned *x = user;
  x[0] += 9;
}

TEST(nodes_get_new_parameters) {
  attune_stream *stream = new_stream();
  attune_graph *graph = capture(stream, three_steps, 1), *clone = NULL;
  attune_node_parameters p = {0};
  affine work;
  unsigned *x = numbers;
  memset(numbers, 0, sizeof numbers);
  OK(attune_graph_get_parameters(&p, graph, 0)); /* how long the block is */
  assert_int_equal(p.kind, ATTUNE_NODE_KERNEL);
  assert_int_equal(p.arguments_bytes, sizeof work);
  p.arguments = &work;
  p.arguments_room = sizeof work - 1;
  FAILS(attune_graph_get_parameters(&p, graph, 0), ATTUNE_INVALID_ARGUMENT);
  p.arguments_room = sizeof work;
  OK(attune_graph_get_parameters(&p, graph, 0));
  assert_true(work.x == x && work.a == 1 && work.b == 1);
  OK(attune_graph_replay(graph, stream)); /* adds 11 */
  work.b = 100;
  OK(attune_graph_set_parameters(graph, 0, &p));
  replay(graph, stream); /* 110 */
  assert_numbers(x, 121);
  p.arguments_bytes--;
  FAILS(attune_graph_set_parameters(graph, 0, &p), ATTUNE_INVALID_ARGUMENT);

  OK(attune_graph_get_parameters(&p, graph, 2));
  assert_int_equal(p.kind, ATTUNE_NODE_COPY);
  assert_true(p.copy.destination == x + COUNT && p.copy.source == x && p.copy.bytes == COUNT * sizeof *x &&
              p.copy.rows == 1 && p.copy.slices == 1);
  FAILS(attune_graph_set_parameters(graph, 0, &p), ATTUNE_INVALID_ARGUMENT); /* of another kind */
  p.copy.destination = x + 3 * COUNT;
  p.copy.bytes = 2 * sizeof *x;
  p.copy.rows = 2;
  p.copy.destination_pitch = 4 * sizeof *x;
  p.copy.source_pitch = 8 * sizeof *x;
  OK(attune_graph_set_parameters(graph, 2, &p));
  p.copy.bytes = 0;
  FAILS(attune_graph_set_parameters(graph, 2, &p), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_get_parameters(&p, graph, 3));
  assert_true(p.kind == ATTUNE_NODE_CALL && p.fn == add_seven && p.user == x + 2 * COUNT);
  p.fn = add_nine;
  OK(attune_graph_set_parameters(graph, 3, &p));
  p.fn = NULL;
  FAILS(attune_graph_set_parameters(graph, 3, &p), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_clone(&clone, graph)); /* with what is new */
  attune_graph *const both[] = {graph, clone};
  for (unsigned i = 0; i < 2; i++) {
    replay(both[i], stream);
    assert_numbers(x, 231 + 110 * i);
    assert_true(x[3 * COUNT] == 231 + 110 * i && x[3 * COUNT + 1] == 231 + 110 * i && x[3 * COUNT + 2] == 0 &&
                x[3 * COUNT + 4] == 231 + 110 * i);
    assert_int_equal(x[2 * COUNT], 14 + 9 * (i + 1));
  }
  assert_int_equal(x[COUNT], 121);
  FAILS(attune_graph_get_parameters(NULL, graph, 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_set_parameters(graph, 0, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(clone);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

static attune_status fill_some(void *user, attune_stream *stream) {
  const uint64_t element[2] = {1, 2};
  return attune_fill_2d(stream, user, 64, element, 16, 2, 3);
}

TEST(fills_get_new_parameters) {
  attune_stream *stream = new_stream();
  attune_graph *graph = capture(stream, fill_some, 1);
  attune_node_parameters p = {0};
  OK(attune_graph_get_parameters(&p, graph, 0));
  assert_true(p.kind == ATTUNE_NODE_FILL && p.fill.element_bytes == 16 && p.fill.count == 2 && p.fill.rows == 3 &&
              p.fill.pitch == 64);
  p.fill.element[0] = 5;
  p.fill.rows = 1;
  OK(attune_graph_set_parameters(graph, 0, &p));
  memset(numbers, 0, sizeof numbers);
  replay(graph, stream);
  const uint64_t *words = (const uint64_t *)(const void *)numbers;
  assert_true(words[0] == 5 && words[1] == 2 && words[2] == 5 && words[3] == 2 && words[4] == 0 && words[8] == 0);
  p.fill.element_bytes = 3;
  FAILS(attune_graph_set_parameters(graph, 0, &p), ATTUNE_INVALID_ARGUMENT);
  p.fill.element_bytes = 16;
  p.fill.rows = 2;
  p.fill.pitch = 8;
  FAILS(attune_graph_set_parameters(graph, 0, &p), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

/* ---- external events ---- */

static attune_event *started, *ended, *awaited;

static attune_event *new_external(void) {
  attune_event *event = NULL;
  OK(attune_event_create(&event, host, &(attune_event_options){.external = 1}));
  return event;
}

static attune_status timed(void *user, attune_stream *stream) {
  unsigned *x = user;
  OK(attune_event_record(started, stream));
  OK(attune_stream_wait_event(stream, awaited));
  OK(attune_stream_wait_event(stream, started)); /* of the same replay: nothing to wait for */
  give(stream, x, 2, 1);
  return attune_event_record(ended, stream);
}

/* A replay's records are seen outside, and its waits are for records from outside, by the latest ones when it is
 * given. */
TEST(external_events) {
  attune_stream *stream = new_stream(), *beside = new_stream();
  attune_node node = {0};
  double ns = -1;
  const char gated = 0;
  started = new_external();
  ended = new_external();
  awaited = new_external();
  attune_graph *graph = capture(stream, timed, 1), *clone = NULL;
  static const attune_node_kind kinds[] = {ATTUNE_NODE_RECORD, ATTUNE_NODE_WAIT, ATTUNE_NODE_WAIT, ATTUNE_NODE_KERNEL,
                                           ATTUNE_NODE_RECORD};
  assert_int_equal(attune_graph_node_count(graph), 5);
  for (size_t i = 0; i < 5; i++) {
    OK(attune_graph_get_node(&node, graph, i));
    assert_int_equal(node.kind, kinds[i]);
  }
  assert_int_equal(attune_stream_is_capturing(stream), 0);
  FAILS(attune_graph_set_enabled(graph, 0, 0), ATTUNE_UNSUPPORTED);
  FAILS(attune_graph_get_parameters(&(attune_node_parameters){0}, graph, 1), ATTUNE_UNSUPPORTED);
  OK(attune_event_query(ended)); /* not recorded yet */
  FAILS(attune_event_elapsed_ns(&ns, started, ended), ATTUNE_INVALID_ARGUMENT);
  memset(numbers, 0, sizeof numbers);
  replay(graph, stream); /* nothing was recorded outside: it waits for nothing */
  assert_numbers(numbers, 1);
  OK(attune_event_elapsed_ns(&ns, started, ended));
  assert_true(ns >= 0);

  atomic_store(&gate, false);
  OK(at_host_submit(beside, wait_for_gate, &gated, 1));
  OK(attune_fill(beside, numbers, 0, COUNT * sizeof *numbers));
  OK(attune_event_record(awaited, beside));
  OK(attune_graph_replay(graph, stream)); /* after the fill */
  FAILS(attune_event_query(ended), ATTUNE_NOT_READY);
  OK(attune_stream_wait_event(beside, ended));
  give(beside, numbers, 3, 1); /* after the replay */
  OK(attune_event_record(awaited, beside));
  OK(attune_graph_clone(&clone, graph));
  OK(attune_graph_replay(clone, stream)); /* after that */
  atomic_store(&gate, true);
  OK(attune_event_synchronize(ended));
  assert_numbers(numbers, 9); /* 2 * (3 * (2 * 0 + 1) + 1) + 1 */
  attune_graph_destroy(clone);
  OK(attune_graph_replay(graph, attune_stream_default(host)));
  assert_numbers(numbers, 19);
  OK(attune_event_record(ended, stream)); /* outside of captures: an event like others */
  OK(attune_stream_wait_event(beside, ended));
  OK(attune_event_synchronize(ended));
  attune_graph_destroy(graph);
  OK(attune_stream_synchronize(beside));
  attune_stream_destroy(stream);
  attune_stream_destroy(beside);
  attune_event_destroy(started);
  attune_event_destroy(ended);
  attune_event_destroy(awaited);
}

/* The race check follows them, in both directions. */
static attune_status waits_and_records(void *user, attune_stream *stream) {
  OK(attune_stream_wait_event(stream, awaited));
  OK(attune_fill(stream, user, 1, 64));
  return attune_event_record(ended, stream);
}
TEST(external_events_order) {
  attune_stream *stream = new_stream(), *beside = new_stream();
  ended = new_external();
  awaited = new_external();
  OK(attune_set_race_check(1, NULL, NULL));
  attune_graph *graph = capture(stream, waits_and_records, 0);
  for (int turn = 0; turn < 3; turn++) {
    OK(attune_fill(beside, numbers, 2, 64));
    OK(attune_event_record(awaited, beside));
    OK(attune_graph_replay(graph, stream));
    OK(attune_stream_wait_event(beside, ended));
  }
  assert_int_equal(attune_race_count(), 0);
  OK(attune_fill(beside, numbers, 2, 64)); /* not recorded: the next replay does not wait for it */
  unseen_wait(beside);
  OK(attune_graph_replay(graph, stream));
  assert_true(attune_race_count() > 0);
  OK(attune_set_race_check(0, NULL, NULL));
  OK(attune_stream_synchronize(stream));
  OK(attune_stream_synchronize(beside));
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  attune_stream_destroy(beside);
  attune_event_destroy(ended);
  attune_event_destroy(awaited);
}

/* What a changed graph uses is not known: nothing is told of it any more, and nothing false. */
static attune_status fill_first(void *user, attune_stream *stream) {
  return attune_fill(stream, user, 1, 64);
}
TEST(the_race_check_forgets) {
  attune_stream *stream = new_stream(), *beside = new_stream();
  attune_node_parameters p = {0};
  OK(attune_set_race_check(1, NULL, NULL));
  attune_graph *graph = capture(stream, fill_first, 1);
  OK(attune_fill(beside, numbers, 2, 64));
  unseen_wait(beside);
  replay(graph, stream);
  assert_int_equal(attune_race_count(), 1);
  OK(attune_stream_synchronize(beside));
  OK(attune_graph_get_parameters(&p, graph, 0));
  p.fill.destination = numbers + COUNT;
  OK(attune_graph_set_parameters(graph, 0, &p));
  OK(attune_fill(beside, numbers, 2, 64));
  replay(graph, stream);
  assert_int_equal(attune_race_count(), 1);
  OK(attune_set_race_check(0, NULL, NULL));
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  attune_stream_destroy(beside);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
