/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_graph_nodes.c: the inside of graphs on the GPU: nodes and edges, kernels of attune and of cuBLAS among
 * them, nodes left out and taken in, and nodes with new parameters, before and after the executable is made and
 * updated. */
#include "tests/support/cuda_graph.h"
#include "tests/support/gpu.h"

typedef struct work {
  scene s;
  attune_stream *side;
  attune_event *out, *back;
  double *x;
} work;

static work new_work(void) {
  work w = {.s = new_scene(), .side = new_stream(), .out = new_event(), .back = new_event()};
  OK(attune_alloc((void **)&w.x, w.s.stream, BYTES));
  OK(attune_fill(w.s.stream, w.x, 0, BYTES));
  OK(attune_stream_synchronize(w.s.stream));
  return w;
}

static void end_work(work *w) {
  OK(attune_free(w->x, w->s.stream));
  attune_event_destroy(w->out);
  attune_event_destroy(w->back);
  attune_stream_destroy(w->side);
  end_scene(&w->s);
}

static int called;
static void call(void *user) {
  *(int *)user += 1;
}
static void call_more(void *user) {
  *(int *)user += 100;
}

/* A product, a fill of 8 bytes (a kernel of attune's), a fill, a copy and a call; fork and join. */
static attune_status all_kinds(void *user, attune_stream *stream) {
  work *w = user;
  const double value = 2.5;
  attune_status status = multiply(stream, w->s.a, w->s.b, w->s.d);
  if (status == ATTUNE_OK) status = attune_event_record(w->out, stream);
  if (status == ATTUNE_OK) status = attune_stream_wait_event(w->side, w->out);
  if (status == ATTUNE_OK) status = attune_fill_elements(w->side, w->x, &value, sizeof value, 100);
  if (status == ATTUNE_OK) status = attune_fill(stream, w->s.a, 1, BYTES);
  if (status == ATTUNE_OK) status = attune_event_record(w->back, w->side);
  if (status == ATTUNE_OK) status = attune_stream_wait_event(stream, w->back);
  if (status == ATTUNE_OK) status = attune_copy(stream, w->s.b, w->s.a, BYTES);
  return status == ATTUNE_OK ? attune_stream_call(stream, call, &called) : status;
}

static attune_graph *capture(work *w, attune_capture_fn fn) {
  attune_graph *graph = new_graph();
  OK(attune_graph_capture_callback(graph, w->s.stream, &(attune_capture_options){.keep_graph = 1}, fn, w));
  return graph;
}

TEST(nodes_and_edges) {
  work w = new_work();
  attune_graph *graph = capture(&w, all_kinds);
  const size_t nodes = attune_graph_node_count(graph);
  size_t kinds[11] = {0}, count = 0, own = 0;
  attune_node node = {0};
  for (size_t i = 0; i < nodes; i++) {
    OK(attune_graph_get_node(&node, graph, i));
    assert_true((unsigned)node.kind < 11 && node.native && node.enabled);
    kinds[node.kind]++;
    print_message("node %zu: kind %d, %s\n", i, (int)node.kind, node.name);
    own += strcmp(node.name, "at_fill") == 0;
  }
  assert_true(kinds[ATTUNE_NODE_KERNEL] >= 2 && kinds[ATTUNE_NODE_FILL] >= 1 && kinds[ATTUNE_NODE_COPY] == 1 &&
              kinds[ATTUNE_NODE_CALL] == 1 && own == 1);
  OK(attune_graph_get_edges(graph, NULL, 0, &count));
  attune_edge *edges = calloc(count, sizeof *edges);
  assert_non_null(edges);
  OK(attune_graph_get_edges(graph, edges, count, &count));
  assert_true(count >= nodes - 1);
  for (size_t i = 0; i < count; i++)
    assert_true(edges[i].from < nodes && edges[i].to < nodes && edges[i].from != edges[i].to);
  free(edges);
  attune_graph_destroy(graph);
  end_work(&w);
}

static attune_status three_fills(void *user, attune_stream *stream) {
  work *w = user;
  const int value = 7;
  attune_status status = attune_fill(stream, w->s.a, 1, BYTES);
  if (status == ATTUNE_OK) status = attune_fill_2d(stream, w->s.b, 256, &value, 4, 8, 16);
  if (status == ATTUNE_OK) status = attune_fill_elements(stream, w->x, &(double){3}, 8, 100);
  if (status == ATTUNE_OK) status = attune_copy(stream, w->s.d, w->s.a, BYTES / 2);
  if (status == ATTUNE_OK) status = attune_copy_2d(stream, (char *)w->s.d + BYTES / 2, 512, w->s.b, 256, 32, 16);
  return status == ATTUNE_OK ? attune_stream_call(stream, call, &called) : status;
}

enum { PLAIN_FILL, ROWS_FILL, KERNEL_FILL, PLAIN_COPY, ROWS_COPY, CALL };

static unsigned char first_byte(work *w, const void *memory) {
  unsigned char byte = 0;
  OK(attune_copy(w->s.stream, &byte, memory, 1));
  OK(attune_stream_synchronize(w->s.stream));
  return byte;
}

static void clear(work *w) {
  OK(attune_fill(w->s.stream, w->s.a, 0, BYTES));
  OK(attune_fill(w->s.stream, w->s.b, 0, BYTES));
  OK(attune_fill(w->s.stream, w->s.d, 0, BYTES));
  OK(attune_fill(w->s.stream, w->x, 0, BYTES));
}

static double first_number(work *w) {
  double number = 0;
  OK(attune_copy(w->s.stream, &number, w->x, sizeof number));
  OK(attune_stream_synchronize(w->s.stream));
  return number;
}

TEST(nodes_are_left_out) {
  work w = new_work();
  attune_graph *graph = capture(&w, three_fills);
  attune_node node = {0};
  int in_place = 0;
  for (int turn = 0; turn < 2; turn++) { /* then with an executable that was updated in place */
    OK(attune_graph_set_enabled(graph, PLAIN_FILL, 0));
    OK(attune_graph_set_enabled(graph, KERNEL_FILL, 0));
    OK(attune_graph_get_node(&node, graph, PLAIN_FILL));
    assert_int_equal(node.enabled, 0);
    clear(&w);
    OK(attune_graph_replay(graph, w.s.stream));
    assert_true(first_byte(&w, w.s.a) == 0 && first_number(&w) == 0);
    assert_int_equal(first_byte(&w, w.s.b), 7);
    OK(attune_graph_set_enabled(graph, KERNEL_FILL, 1));
    OK(attune_graph_replay(graph, w.s.stream));
    assert_true(first_byte(&w, w.s.a) == 0 && first_number(&w) == 3);
    FAILS(attune_graph_set_enabled(graph, CALL, 0), ATTUNE_UNSUPPORTED);
    OK(attune_graph_update(graph, w.s.stream, three_fills, &w, &in_place));
    print_message("updated in place: %d\n", in_place);
    OK(attune_graph_get_node(&node, graph, PLAIN_FILL));
    assert_int_equal(node.enabled, 1);
  }
  attune_graph_destroy(graph);
  end_work(&w);
}

/* Each kind, with an executable (instantiated 1), without one (0), and with one of another graph (2). */
static void change_all(work *w, attune_graph *graph) {
  attune_node_parameters p = {0};
  unsigned char block[512];
  OK(attune_graph_get_parameters(&p, graph, PLAIN_FILL));
  assert_true(p.kind == ATTUNE_NODE_FILL && p.fill.destination == w->s.a && p.fill.element[0] == 1 &&
              p.fill.count * p.fill.element_bytes * p.fill.rows == BYTES);
  p.fill.element[0] = p.fill.element[1] = p.fill.element[2] = p.fill.element[3] = 5;
  OK(attune_graph_set_parameters(graph, PLAIN_FILL, &p));
  p.fill.element_bytes = 8;
  FAILS(attune_graph_set_parameters(graph, PLAIN_FILL, &p), ATTUNE_INVALID_ARGUMENT);
  p = (attune_node_parameters){0};
  OK(attune_graph_get_parameters(&p, graph, ROWS_FILL));
  assert_true(p.fill.destination == w->s.b && p.fill.pitch == 256 && p.fill.rows == 16);
  p.fill.rows = 8;
  p.fill.element[0] = 9;
  OK(attune_graph_set_parameters(graph, ROWS_FILL, &p));
  p = (attune_node_parameters){.arguments = block, .arguments_room = 8};
  FAILS(attune_graph_get_parameters(&p, graph, KERNEL_FILL), ATTUNE_INVALID_ARGUMENT);
  p.arguments_room = sizeof block;
  OK(attune_graph_get_parameters(&p, graph, KERNEL_FILL));
  assert_true(p.kind == ATTUNE_NODE_KERNEL && p.grid[0] >= 1 && p.block[0] == 256 && p.arguments_bytes == 64);
  void *to = NULL;
  memcpy(&to, block, sizeof to); /* of the kernel in src/cuda/memory/fill.cu */
  assert_ptr_equal(to, w->x);
  to = w->x + 1;
  memcpy(block, &to, sizeof to);
  OK(attune_graph_set_parameters(graph, KERNEL_FILL, &p));
  p.arguments_bytes++;
  FAILS(attune_graph_set_parameters(graph, KERNEL_FILL, &p), ATTUNE_INVALID_ARGUMENT);
  p = (attune_node_parameters){0};
  OK(attune_graph_get_parameters(&p, graph, PLAIN_COPY));
  assert_true(p.kind == ATTUNE_NODE_COPY && p.copy.destination == w->s.d && p.copy.source == w->s.a &&
              p.copy.bytes == BYTES / 2 && p.copy.rows == 1);
  p.copy.bytes = 8;
  p.copy.destination = (char *)w->s.d + 8;
  OK(attune_graph_set_parameters(graph, PLAIN_COPY, &p));
  OK(attune_graph_get_parameters(&p, graph, ROWS_COPY));
  assert_true(p.copy.bytes == 32 && p.copy.rows == 16 && p.copy.source_pitch == 256 && p.copy.destination_pitch == 512);
  p.copy.rows = 2;
  p.copy.destination_pitch = 1024;
  OK(attune_graph_set_parameters(graph, ROWS_COPY, &p));
  OK(attune_graph_get_parameters(&p, graph, CALL));
  assert_true(p.kind == ATTUNE_NODE_CALL && p.fn == call && p.user == &called);
  p.fn = call_more;
  OK(attune_graph_set_parameters(graph, CALL, &p));
}

static void assert_changed(work *w, attune_graph *graph) {
  static unsigned char d[BYTES], b[BYTES];
  double x[2];
  called = 0;
  clear(w);
  OK(attune_graph_replay(graph, w->s.stream));
  read_back(w->s.stream, (float *)(void *)d, w->s.d);
  read_back(w->s.stream, (float *)(void *)b, w->s.b);
  OK(attune_copy(w->s.stream, x, w->x, sizeof x));
  OK(attune_stream_synchronize(w->s.stream));
  assert_int_equal(first_byte(w, w->s.a), 5);
  assert_true(x[0] == 0 && x[1] == 3);
  assert_true(b[0] == 9 && b[7 * 256] == 9 && b[8 * 256] == 0);
  assert_true(d[0] == 0 && d[8] == 5 && d[15] == 5 && d[16] == 0);
  assert_true(d[BYTES / 2] == 9 && d[BYTES / 2 + 1024] == 9 && d[BYTES / 2 + 512] == 0 && d[BYTES / 2 + 2048] == 0);
  assert_int_equal(called, 100);
}

TEST(nodes_get_new_parameters) {
  work w = new_work();
  for (int instantiated = 0; instantiated < 3; instantiated++) {
    attune_graph *graph = capture(&w, three_fills), *clone = NULL;
    if (instantiated) OK(attune_graph_replay(graph, w.s.stream));
    if (instantiated == 2) OK(attune_graph_update(graph, w.s.stream, three_fills, &w, NULL));
    OK(attune_stream_synchronize(w.s.stream));
    change_all(&w, graph);
    assert_changed(&w, graph);
    OK(attune_graph_instantiate(graph));
    assert_changed(&w, graph);
    OK(attune_graph_clone(&clone, graph));
    attune_graph_destroy(graph);
    assert_changed(&w, clone);
    attune_graph_destroy(clone);
  }
  end_work(&w);
}

/* A disabled node stays disabled when another change needs a new executable. */
TEST(both_at_once) {
  work w = new_work();
  attune_graph *graph = capture(&w, three_fills);
  attune_node_parameters p = {0};
  OK(attune_graph_replay(graph, w.s.stream));
  OK(attune_graph_set_enabled(graph, PLAIN_FILL, 0));
  OK(attune_graph_get_parameters(&p, graph, ROWS_COPY));
  p.copy.rows = 1;
  OK(attune_graph_set_parameters(graph, ROWS_COPY, &p));
  clear(&w);
  OK(attune_graph_replay(graph, w.s.stream));
  assert_int_equal(first_byte(&w, w.s.a), 0);
  assert_int_equal(first_byte(&w, (char *)w.s.d + BYTES / 2), 7);
  assert_int_equal(first_byte(&w, (char *)w.s.d + BYTES / 2 + 512), 0);
  attune_graph_destroy(graph);
  end_work(&w);
}

/* ---- external events ---- */

static attune_event *started, *ended, *awaited;

static attune_event *new_external(void) {
  attune_event *event = NULL;
  OK(attune_event_create(&event, device, &(attune_event_options){.external = 1}));
  return event;
}

static attune_status timed(void *user, attune_stream *stream) {
  work *w = user;
  attune_status status = attune_event_record(started, stream);
  if (status == ATTUNE_OK) status = attune_stream_wait_event(stream, awaited);
  for (int i = 0; i < 20 && status == ATTUNE_OK; i++) status = multiply(stream, w->s.a, w->s.b, w->s.d);
  if (status == ATTUNE_OK) status = attune_copy(stream, w->x, w->s.a, BYTES);
  return status == ATTUNE_OK ? attune_event_record(ended, stream) : status;
}

/* Records of a replay are seen outside and timed; its waits are for work outside. */
TEST(external_events) {
  work w = new_work();
  attune_node node = {0};
  double ns = -1;
  size_t records = 0, waits = 0;
  started = new_external();
  ended = new_external();
  awaited = new_external();
  attune_graph *graph = capture(&w, timed);
  for (size_t i = 0; i < attune_graph_node_count(graph); i++) {
    OK(attune_graph_get_node(&node, graph, i));
    records += node.kind == ATTUNE_NODE_RECORD;
    waits += node.kind == ATTUNE_NODE_WAIT;
  }
  assert_true(records == 2 && waits == 1);
  for (int turn = 1; turn < 4; turn++) {
    for (int i = 0; i < 200; i++) OK(attune_fill(w.side, w.s.a, i, BYTES));
    OK(attune_fill(w.side, w.s.a, turn, BYTES));
    OK(attune_event_record(awaited, w.side));
    OK(attune_graph_replay(graph, w.s.stream)); /* after the fills */
    OK(attune_stream_wait_event(w.side, ended));
    OK(attune_copy(w.side, w.s.b, w.x, BYTES)); /* after the replay */
    OK(attune_stream_synchronize(w.side));
    OK(attune_event_query(ended));
    assert_int_equal(first_byte(&w, w.s.b), turn);
    OK(attune_event_elapsed_ns(&ns, started, ended));
    assert_true(ns > 0);
  }
  attune_graph_destroy(graph);
  attune_event_destroy(started);
  attune_event_destroy(ended);
  attune_event_destroy(awaited);
  end_work(&w);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
