/* SPDX-License-Identifier: Apache-2.0
 * test_graph_misuse.c: captures that go wrong on the host: each misuse has its own status, and after it stream and
 * graph work. */
#include "tests/src/graph/graph_host.h"

/* After the failure both streams and the graph work. */
static void assert_usable(attune_graph *graph, attune_stream *stream, attune_stream *other) {
  static unsigned x[2 * COUNT];
  assert_false(at_stream_capturing(stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(attune_graph_node_count(graph), 0);
  FAILS(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_callback(graph, stream, NULL, five_steps, x));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(attune_graph_node_count(graph), 5);
  if (other) {
    give(other, x, 1, 0);
    OK(attune_stream_synchronize(other));
  }
  OK(attune_graph_reset(graph));
}

TEST(a_stream_not_joined_back) {
  static unsigned x[COUNT];
  attune_stream *main = new_stream(), *side = new_stream();
  attune_event *event = new_event();
  attune_graph *graph = new_graph();
  OK(attune_graph_capture_begin(graph, main, NULL));
  give(main, x, 1, 1);
  OK(attune_event_record(event, main));
  OK(attune_stream_wait_event(side, event));
  give(side, x, 1, 1);
  FAILS_SAYING(attune_graph_capture_end(graph, main), ATTUNE_CAPTURING, "joined back");
  assert_usable(graph, main, side);
  attune_graph_destroy(graph);
  attune_event_destroy(event);
  attune_stream_destroy(main);
  attune_stream_destroy(side);
}

TEST(waits_that_break_a_capture) {
  static unsigned x[COUNT];
  attune_stream *stream = new_stream(), *other = new_stream();
  attune_event *event = new_event();
  attune_graph *graph = new_graph(), *second = new_graph();
  /* An event that was never recorded is no wait. */
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_stream_wait_event(stream, event));
  give(stream, x, 1, 1);
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_graph_reset(graph));
  /* Work outside of the capture. */
  OK(attune_event_record(event, other));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  FAILS(attune_stream_wait_event(stream, event), ATTUNE_CAPTURING);
  FAILS_SAYING(attune_graph_capture_end(graph, stream), ATTUNE_CAPTURING, "outside");
  assert_usable(graph, stream, other);
  /* Work of another capture breaks both. */
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_graph_capture_begin(second, other, NULL));
  OK(attune_event_record(event, other));
  FAILS(attune_stream_wait_event(stream, event), ATTUNE_CAPTURING);
  FAILS(attune_graph_capture_end(second, other), ATTUNE_CAPTURING);
  FAILS(attune_graph_capture_end(graph, stream), ATTUNE_CAPTURING);
  assert_usable(graph, stream, other);
  assert_usable(second, other, stream);
  /* The default stream cannot join; the capture goes on. */
  OK(attune_graph_capture_begin(graph, stream, NULL));
  give(stream, x, 1, 1);
  OK(attune_event_record(event, stream));
  FAILS(attune_stream_wait_event(attune_stream_default(host), event), ATTUNE_UNSUPPORTED);
  OK(attune_graph_capture_end(graph, stream));
  attune_graph_destroy(graph);
  attune_graph_destroy(second);
  attune_event_destroy(event);
  attune_stream_destroy(stream);
  attune_stream_destroy(other);
}

TEST(misuse_of_begin) {
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph(), *second = NULL;
  attune_capture_options bad = {.mode = (attune_capture_mode)7};
  FAILS(attune_graph_create(NULL, host), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_create(&second, NULL), ATTUNE_INVALID_ARGUMENT);
  second = new_graph();
  FAILS(attune_graph_capture_begin(NULL, stream, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_capture_begin(graph, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_capture_begin(graph, stream, &bad), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_capture_begin(graph, attune_stream_default(host), NULL), ATTUNE_UNSUPPORTED);
  FAILS(attune_graph_capture_end(graph, stream), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_replay(graph, stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_begin(graph, stream, NULL));
  FAILS(attune_graph_capture_begin(graph, stream, NULL), ATTUNE_BUSY);
  FAILS(attune_graph_capture_begin(second, stream, NULL), ATTUNE_CAPTURING);
  FAILS(attune_graph_replay(graph, stream), ATTUNE_CAPTURING);
  FAILS(attune_graph_reset(graph), ATTUNE_BUSY);
  FAILS(attune_stream_synchronize(stream), ATTUNE_CAPTURING);
  OK(attune_fill(stream, &bad, 0, sizeof bad));
  OK(attune_graph_capture_end(graph, stream));
  FAILS(attune_graph_capture_begin(graph, stream, NULL), ATTUNE_INVALID_ARGUMENT); /* captured already */
  FAILS(attune_graph_replay(graph, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_replay(NULL, stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_begin(second, stream, NULL));
  FAILS(attune_graph_replay(graph, stream), ATTUNE_CAPTURING); /* no graph inside a graph */
  attune_graph_destroy(second);                                /* drops the capture */
  assert_false(at_stream_capturing(stream));
  OK(attune_graph_replay(graph, stream));
  OK(attune_graph_reset(graph));
  assert_usable(graph, stream, NULL);
  attune_graph_destroy(graph);
  attune_graph_destroy(NULL);
  attune_stream_destroy(stream);
}

static void *end_capture(void *arg) {
  void **in = arg;
  *(attune_status *)in[2] = attune_graph_capture_end(in[0], in[1]);
  return NULL;
}

static attune_status end_elsewhere(attune_graph *graph, attune_stream *stream) {
  attune_status status = ATTUNE_OK;
  void *in[] = {graph, stream, &status};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, end_capture, in), 0);
  pthread_join(thread, NULL);
  return status;
}

TEST(the_wrong_end) {
  static unsigned x[2 * COUNT];
  attune_stream *stream = new_stream(), *other = new_stream();
  attune_graph *graph = new_graph();
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(five_steps(x, stream));
  FAILS(attune_graph_capture_end(graph, other), ATTUNE_INVALID_ARGUMENT);
  FAILS(end_elsewhere(graph, stream), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_end(graph, stream)); /* it went on */
  assert_int_equal(attune_graph_node_count(graph), 5);
  OK(attune_graph_reset(graph));
  options.mode = ATTUNE_CAPTURE_RELAXED;
  OK(attune_graph_capture_begin(graph, stream, &options));
  OK(five_steps(x, stream));
  OK(end_elsewhere(graph, stream));
  assert_int_equal(attune_graph_node_count(graph), 5);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  attune_stream_destroy(other);
}

TEST(streams_destroyed_in_a_capture) {
  static unsigned x[COUNT];
  attune_stream *stream = new_stream(), *side = new_stream();
  attune_event *event = new_event(), *back = new_event();
  attune_graph *graph = new_graph();
  memset(x, 0, sizeof x);
  OK(attune_graph_capture_begin(graph, stream, NULL));
  give(stream, x, 1, 1);
  OK(attune_event_record(event, stream));
  OK(attune_stream_wait_event(side, event));
  give(side, x, 2, 0);
  OK(attune_event_record(back, side));
  OK(attune_stream_wait_event(stream, back));
  attune_stream_destroy(side); /* it did its part */
  OK(attune_graph_capture_end(graph, stream));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 2);
  OK(attune_graph_reset(graph));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  give(stream, x, 1, 1);
  attune_stream_destroy(stream); /* takes the capture with it */
  OK(attune_device_synchronize(host));
  stream = new_stream();
  assert_usable(graph, stream, NULL);
  attune_graph_destroy(graph);
  attune_event_destroy(event);
  attune_event_destroy(back);
  attune_stream_destroy(stream);
}

typedef struct called {
  attune_graph *graph;
  unsigned *x;
  attune_status answer;
  attune_status inner_end;
} called;

static attune_status call(void *user, attune_stream *stream) {
  called *c = user;
  assert_true(at_stream_capturing(stream));
  give(stream, c->x, 1, 1);
  c->inner_end = attune_graph_capture_end(c->graph, stream);
  return c->answer == ATTUNE_OK ? ATTUNE_OK : at_fail(c->answer, "no more of this");
}

TEST(callbacks) {
  static unsigned x[2 * COUNT];
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  called c = {.graph = graph, .x = x, .answer = ATTUNE_BUDGET_EXHAUSTED};
  FAILS(attune_graph_capture_callback(graph, stream, NULL, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_capture_callback(graph, stream, NULL, call, &c), ATTUNE_BUDGET_EXHAUSTED);
  assert_string_equal(attune_last_message(), "no more of this");
  assert_int_equal(c.inner_end, ATTUNE_INVALID_ARGUMENT);
  assert_usable(graph, stream, NULL);
  c.answer = ATTUNE_OK;
  OK(attune_graph_capture_callback(graph, stream, NULL, call, &c));
  memset(x, 0, sizeof x);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 1);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

/* Calls that a callback must not make on its own graph are refused, and the capture goes on. */
static attune_status against_its_graph(void *user, attune_stream *stream) {
  called *c = user;
  give(stream, c->x, 1, 2);
  attune_graph_destroy(c->graph);
  FAILS(attune_graph_reset(c->graph), ATTUNE_BUSY);
  FAILS(attune_graph_capture_begin(c->graph, stream, NULL), ATTUNE_BUSY);
  FAILS(attune_graph_replay(c->graph, stream), ATTUNE_CAPTURING);
  FAILS(attune_graph_instantiate(c->graph), ATTUNE_CAPTURING);
  FAILS(attune_graph_update(c->graph, stream, five_steps, c->x, NULL), ATTUNE_BUSY);
  return ATTUNE_OK;
}

static void count_line(void *user, attune_log_level level, const char *line) {
  if (level == ATTUNE_LOG_ERROR && strstr(line, "is not destroyed")) ++*(int *)user;
}

TEST(callbacks_leave_their_graph) {
  static unsigned x[2 * COUNT];
  int lines = 0;
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  called c = {.graph = graph, .x = x};
  attune_set_log(count_line, &lines, ATTUNE_LOG_ERROR);
  OK(attune_graph_capture_callback(graph, stream, NULL, against_its_graph, &c));
  OK(attune_graph_update(graph, stream, against_its_graph, &c, NULL));
  attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
  assert_int_equal(lines, 2);
  memset(x, 0, sizeof x);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 2);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

/* A callback that destroys its stream: the capture goes with it, the graph stays usable. */
static attune_status destroy_stream(void *user, attune_stream *stream) {
  give(stream, user, 1, 1);
  attune_stream_destroy(stream);
  return ATTUNE_OK;
}

TEST(callbacks_that_destroy_their_stream) {
  static unsigned x[2 * COUNT];
  attune_graph *graph = new_graph();
  FAILS_SAYING(attune_graph_capture_callback(graph, new_stream(), NULL, destroy_stream, x), ATTUNE_INVALID_ARGUMENT,
               "destroyed the stream");
  attune_stream *stream = new_stream();
  assert_usable(graph, stream, NULL);
  OK(attune_graph_capture_callback(graph, stream, NULL, five_steps, x));
  FAILS(attune_graph_update(graph, new_stream(), destroy_stream, x, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_replay(graph, stream)); /* what it had */
  OK(attune_stream_synchronize(stream));
  assert_int_equal(attune_graph_node_count(graph), 5);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

TEST(streams_join_by_waiting) {
  static unsigned x[COUNT];
  attune_stream *main = new_stream(), *side = new_stream();
  attune_graph *graph = new_graph();
  memset(x, 0, sizeof x);
  OK(attune_graph_capture_begin(graph, main, NULL));
  give(main, x, 1, 1);
  FAILS(attune_stream_wait_stream(attune_stream_default(host), main), ATTUNE_UNSUPPORTED);
  OK(attune_stream_wait_stream(side, main));
  assert_true(at_stream_capturing(side));
  give(side, x, 3, 1);
  OK(attune_stream_wait_stream(main, side));
  OK(attune_graph_capture_end(graph, main));
  OK(attune_graph_replay(graph, side));
  OK(attune_stream_synchronize(side));
  assert_numbers(x, 4);
  OK(attune_graph_reset(graph));
  OK(attune_graph_capture_begin(graph, main, NULL)); /* a stream outside of the capture cannot be waited for */
  give(side, x, 1, 1);
  FAILS(attune_stream_wait_stream(main, side), ATTUNE_CAPTURING);
  FAILS(attune_graph_capture_end(graph, main), ATTUNE_CAPTURING);
  assert_usable(graph, main, side);
  attune_graph_destroy(graph);
  attune_stream_destroy(main);
  attune_stream_destroy(side);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
