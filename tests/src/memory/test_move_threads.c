/* SPDX-License-Identifier: Apache-2.0
 * test_move_threads.c: strided copies and fills, graphs that are looked into and changed, clones, hooks, and graphed
 * functions, by several threads at once, each with a stream of its own: the results are right, nothing is lost, and no
 * checker of threads or memory has anything to say. Another thread asks about the device's memory and pools
 * meanwhile. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, TURNS = 25, ROWS = 13, WIDTH = 37, PITCH = 64 };

static attune_device *host;
static atomic_int running;

/* In threads a failure is a line number. */
#define TRY(call)                             \
  do {                                        \
    if ((call) != ATTUNE_OK) return __LINE__; \
  } while (0)
#define SEE(what)                 \
  do {                            \
    if (!(what)) return __LINE__; \
  } while (0)

static int move(attune_stream *stream, int turn) {
  unsigned char plain[ROWS * WIDTH], back[ROWS * WIDTH];
  const unsigned short element = (unsigned short)(0x0101 * (turn % 250 + 1));
  void *box = NULL;
  for (int i = 0; i < ROWS * WIDTH; i++) plain[i] = (unsigned char)(i * 7 + turn);
  TRY(attune_alloc(&box, stream, 2 * ROWS * PITCH));
  TRY(attune_fill_2d(stream, box, PITCH, &element, 2, PITCH / 2, 2 * ROWS));
  TRY(attune_copy_2d(stream, box, PITCH, plain, WIDTH, WIDTH, ROWS));
  const attune_box_copy copy = {.destination = (char *)box + ROWS * PITCH,
                                .destination_pitch = PITCH,
                                .source = box,
                                .source_pitch = PITCH,
                                .bytes = WIDTH,
                                .rows = ROWS,
                                .slices = 1};
  TRY(attune_copy_3d(stream, &copy));
  TRY(attune_copy_2d(stream, back, WIDTH, copy.destination, PITCH, WIDTH, ROWS));
  TRY(attune_stream_synchronize(stream));
  SEE(memcmp(plain, back, sizeof plain) == 0);
  SEE(((unsigned char *)box)[WIDTH] == (unsigned char)element);
  TRY(attune_free(box, stream));
  return 0;
}

typedef struct work {
  unsigned char *memory;
  int replays;
} work;

static void count(void *user, attune_graph *graph, unsigned moment) {
  (void)graph;
  ((work *)user)->replays += moment == ATTUNE_GRAPH_REPLAYED;
}

static attune_status two_fills(void *user, attune_stream *in) {
  const work *w = user;
  attune_status status = attune_fill(in, w->memory, 1, 256);
  return status == ATTUNE_OK ? attune_fill(in, w->memory + 256, 2, 256) : status;
}

static int change(attune_stream *stream, int turn) {
  work w = {NULL, 0};
  void *memory = NULL;
  attune_graph *graph = NULL, *clone = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  attune_node_parameters parameters = {0};
  attune_edge edges[4];
  size_t edge_count = 0;
  options.keep_graph = 1;
  options.check_inputs = turn % 2;
  TRY(attune_alloc(&memory, stream, 512));
  w.memory = memory;
  TRY(attune_fill(stream, memory, 0, 512));
  TRY(attune_graph_create(&graph, host));
  TRY(attune_graph_add_hook(graph, ATTUNE_GRAPH_REPLAYED, count, &w));
  TRY(attune_graph_hold(graph, malloc(16), free));
  TRY(attune_graph_capture_callback(graph, turn % 3 ? stream : NULL, &options, two_fills, &w));
  TRY(attune_graph_get_edges(graph, edges, 4, &edge_count));
  SEE(attune_graph_node_count(graph) == 2 && edge_count == 1);
  TRY(attune_graph_clone(&clone, graph));
  TRY(attune_graph_get_parameters(&parameters, graph, 0));
  memset(parameters.fill.element, 9, parameters.fill.element_bytes);
  TRY(attune_graph_set_parameters(graph, 0, &parameters));
  TRY(attune_graph_set_enabled(graph, 1, 0));
  TRY(attune_graph_replay(graph, stream));
  TRY(attune_stream_synchronize(stream));
  SEE(w.memory[0] == 9 && w.memory[255] == 9 && w.memory[256] == 0 && w.replays == 1);
  TRY(attune_graph_replay(clone, stream));
  TRY(attune_stream_synchronize(stream));
  SEE(w.memory[0] == 1 && w.memory[511] == 2 && w.replays == 1);
  attune_graph_destroy(clone);
  TRY(attune_free(memory, stream));
  if (turn % 2) SEE(attune_graph_replay(graph, stream) == ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  return 0;
}

static attune_status swap_halves(void *user, attune_stream *in, void *const *inputs, void *const *outputs) {
  (void)user;
  attune_status status = attune_copy(in, outputs[0], (const char *)inputs[0] + 128, 128);
  return status == ATTUNE_OK ? attune_copy(in, (char *)outputs[0] + 128, inputs[0], 128) : status;
}

static int call_graphed(attune_stream *stream, int turn) {
  static const size_t bytes[] = {256};
  attune_graph_callable_options options = ATTUNE_GRAPHED_OPTIONS_INIT;
  attune_graph_callable *graphed = NULL;
  unsigned char in[256], out[256];
  const void *const inputs[] = {in};
  void *const outputs[] = {out};
  options.input_count = options.output_count = 1;
  options.input_bytes = options.output_bytes = bytes;
  options.warmups = turn % 3 - 1;
  TRY(attune_graph_callable_create(&graphed, host, &options, swap_halves, NULL));
  for (int i = 0; i < 3; i++) {
    memset(in, turn + i, 128);
    memset(in + 128, turn + i + 100, 128);
    TRY(attune_graph_callable_call(graphed, stream, inputs, outputs));
    TRY(attune_stream_synchronize(stream));
    SEE(out[0] == (unsigned char)(turn + i + 100) && out[255] == (unsigned char)(turn + i));
  }
  attune_graph_callable_destroy(graphed);
  return 0;
}

static void *run(void *failed) {
  attune_stream *stream = NULL;
  int line = attune_stream_create(&stream, host) == ATTUNE_OK ? 0 : __LINE__;
  for (int turn = 0; turn < TURNS && !line; turn++) {
    line = move(stream, turn);
    if (!line) line = change(stream, turn);
    if (!line) line = call_graphed(stream, turn);
  }
  attune_stream_destroy(stream);
  *(int *)failed = line;
  atomic_fetch_sub(&running, 1);
  return NULL;
}

static int look(void *user, const attune_pool_info *info) {
  (void)user;
  return info->allocated_bytes > info->reserved_bytes;
}

TEST(many_threads_at_once) {
  pthread_t threads[THREADS];
  int failed[THREADS];
  atomic_store(&running, THREADS);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, run, &failed[i]), 0);
  while (atomic_load(&running) > 0) {
    char *text = NULL;
    OK(attune_memory_each_pool(host, look, NULL));
    OK(attune_memory_summary(&text, host, 1));
    free(text);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++)
    if (failed[i]) fail_msg("thread %d: line %d", i, failed[i]);
  attune_memory_statistics s = {0};
  OK(attune_memory_empty_cache(host));
  OK(attune_memory_get_statistics(host, &s));
  assert_int_equal(s.allocated_bytes[ATTUNE_MEMORY_ALL].current, 0);
}

int main(void) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return 1;
  return RUN_TESTS(NULL, NULL);
}
