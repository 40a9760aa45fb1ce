/* SPDX-License-Identifier: Apache-2.0
 * test_graph.c: graphs of the host: what is captured does not run, a replay does what the work does eagerly, streams
 * fork and join, graphs are updated and written down. */
#include "tests/src/graph/graph_host.h"

TEST(replay_is_eager) {
  static unsigned eager[2 * COUNT], captured[2 * COUNT];
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  OK(five_steps(eager, stream));
  OK(attune_stream_synchronize(stream));
  memset(captured, 0xaa, sizeof captured);
  OK(attune_graph_capture_begin(graph, stream, NULL));
  assert_true(at_stream_capturing(stream));
  OK(five_steps(captured, stream));
  OK(attune_graph_capture_end(graph, stream));
  assert_false(at_stream_capturing(stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(((unsigned char *)captured)[0], 0xaa); /* nothing ran */
  assert_int_equal(attune_graph_node_count(graph), 5);
  for (int turn = 0; turn < 3; turn++) {
    memset(captured, turn, sizeof captured);
    OK(attune_graph_replay(graph, turn == 2 ? attune_stream_default(host) : stream));
    OK(attune_stream_synchronize(stream));
    assert_memory_equal(captured, eager, sizeof eager);
  }
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

/* A replay stands in the order of its stream, also when the graph is destroyed before it runs, and the stream of the
 * capture long before. */
TEST(replays_in_stream_order) {
  static unsigned x[COUNT];
  attune_stream *first = new_stream(), *second = new_stream();
  attune_graph *graph = new_graph();
  OK(attune_graph_capture_begin(graph, first, NULL));
  give(first, x, 3, 1);
  OK(attune_graph_capture_end(graph, first));
  attune_stream_destroy(first);
  memset(x, 0, sizeof x);
  unsigned expected = 0;
  for (int i = 0; i < 500; i++) {
    give(second, x, 2, 1);
    OK(attune_graph_replay(graph, second));
    expected = 3 * (2 * expected + 1) + 1;
  }
  attune_graph_destroy(graph);
  OK(attune_stream_synchronize(second));
  assert_numbers(x, expected);
  attune_stream_destroy(second);
}

/* x on one stream and y on another, then both into x: main -> side -> main. */
static void fork_and_join(attune_stream *main, attune_stream *side, attune_event *out, attune_event *back,
                          unsigned *x) {
  give(main, x, 2, 1);
  OK(attune_copy(main, x + COUNT, x, COUNT * sizeof *x));
  OK(attune_event_record(out, main));
  OK(attune_stream_wait_event(side, out));
  give(side, x + COUNT, 3, 5);
  OK(attune_event_record(back, side));
  give(main, x, 7, 2);
  OK(attune_stream_wait_event(main, back));
  OK(attune_copy(main, x + 2 * COUNT, x + COUNT, COUNT * sizeof *x));
}

TEST(streams_fork_and_join) {
  static unsigned eager[3 * COUNT], captured[3 * COUNT];
  attune_stream *main = new_stream(), *side = new_stream();
  attune_event *out = new_event(), *back = new_event();
  attune_graph *graph = new_graph();
  memset(eager, 0, sizeof eager);
  fork_and_join(main, side, out, back, eager);
  OK(attune_stream_synchronize(main));
  OK(attune_graph_capture_begin(graph, main, NULL));
  assert_false(at_stream_capturing(side));
  fork_and_join(main, side, out, back, captured);
  assert_true(at_stream_capturing(side));
  FAILS(attune_stream_query(side), ATTUNE_CAPTURING);
  FAILS(attune_event_query(out), ATTUNE_CAPTURING);
  FAILS(attune_event_synchronize(out), ATTUNE_CAPTURING);
  FAILS(attune_device_synchronize(host), ATTUNE_CAPTURING);
  OK(attune_graph_capture_end(graph, main));
  assert_false(at_stream_capturing(side));
  OK(attune_device_synchronize(host));
  assert_int_equal(attune_graph_node_count(graph), 5);
  for (int turn = 0; turn < 2; turn++) {
    memset(captured, 0, sizeof captured);
    OK(attune_graph_replay(graph, side));
    OK(attune_stream_synchronize(side));
    assert_memory_equal(captured, eager, sizeof eager);
  }
  /* The events stand for an order of the capture; used outside of it they say so, and recorded again they work. */
  FAILS(attune_event_query(out), ATTUNE_CAPTURING);
  FAILS(attune_stream_wait_event(main, out), ATTUNE_INVALID_ARGUMENT);
  OK(attune_event_record(out, main));
  OK(attune_event_synchronize(out));
  OK(attune_stream_wait_event(side, out));
  attune_graph_destroy(graph);
  attune_event_destroy(out);
  attune_event_destroy(back);
  attune_stream_destroy(main);
  attune_stream_destroy(side);
}

static attune_status add_five(void *user, attune_stream *stream) {
  give(stream, user, 1, 5);
  return ATTUNE_OK;
}
static attune_status add_six(void *user, attune_stream *stream) {
  give(stream, user, 1, 6);
  return ATTUNE_OK;
}
static attune_status refuse(void *user, attune_stream *stream) {
  give(stream, user, 0, 0);
  return at_fail(ATTUNE_IO_ERROR, "refused");
}

TEST(updates) {
  static unsigned x[2 * COUNT];
  int in_place = -1;
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  memset(x, 0, sizeof x);
  FAILS(attune_graph_update(graph, stream, add_five, x, &in_place), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_callback(graph, stream, NULL, add_five, x));
  OK(attune_graph_replay(graph, stream));
  OK(attune_graph_update(graph, stream, add_six, x, &in_place));
  assert_int_equal(in_place, 1);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 11);
  FAILS(attune_graph_update(graph, stream, refuse, x, &in_place), ATTUNE_IO_ERROR);
  assert_string_equal(attune_last_message(), "refused");
  OK(attune_graph_replay(graph, stream)); /* what it had */
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 17);
  OK(attune_graph_update(graph, stream, five_steps, x, &in_place));
  assert_int_equal(in_place, 0);
  assert_int_equal(attune_graph_node_count(graph), 5);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(x[0], 5 * (3 * 0x01010101u + 1) + 2);
  FAILS(attune_graph_update(graph, stream, NULL, x, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_update(NULL, stream, add_five, x, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

typedef struct lines {
  int count;
  char last[200];
} lines;
static void keep_line(void *user, attune_log_level level, const char *line) {
  lines *l = user;
  if (level != ATTUNE_LOG_WARNING) return;
  l->count++;
  (void)at_copy_text(l->last, sizeof l->last, line);
}

TEST(an_empty_graph_warns) {
  lines l = {0};
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  attune_set_log(keep_line, &l, ATTUNE_LOG_WARNING);
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_graph_capture_end(graph, stream));
  attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
  assert_int_equal(l.count, 1);
  assert_non_null(strstr(l.last, "empty graph"));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

static void read_file(const char *path, char *out, size_t size) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  out[fread(out, 1, size - 1, file)] = '\0';
  fclose(file);
}

TEST(dumps) {
  static unsigned x[3 * COUNT];
  char path[] = "/tmp/attune-graph-XXXXXX", text[4096];
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  attune_stream *main = new_stream(), *side = new_stream();
  attune_event *out = new_event(), *back = new_event();
  attune_graph *graph = new_graph();
  FAILS(attune_graph_debug_dump(graph, path, 0), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_begin(graph, main, &(attune_capture_options){.keep_graph = 1}));
  fork_and_join(main, side, out, back, x);
  OK(attune_graph_capture_end(graph, main));
  OK(attune_graph_debug_dump(graph, path, 0));
  read_file(path, text, sizeof text);
  assert_non_null(strstr(text, "digraph"));
  assert_non_null(strstr(text, "n1 [label=\"1: copy"));
  assert_non_null(strstr(text, "n1 -> n2;")); /* the side stream waits for the copy */
  assert_non_null(strstr(text, "n1 -> n3;"));
  assert_non_null(strstr(text, "n2 -> n4;")); /* and is waited for */
  assert_non_null(strstr(text, "n3 -> n4;"));
  assert_null(strstr(text, "n2 -> n3;"));
  FAILS(attune_graph_debug_dump(graph, "/nonexistent/x.dot", 0), ATTUNE_NOT_FOUND);
  FAILS(attune_graph_debug_dump(graph, "/tmp", 0), ATTUNE_IO_ERROR);
  FAILS(attune_graph_debug_dump(graph, "/dev/full", 0), ATTUNE_IO_ERROR);
  FAILS(attune_graph_debug_dump(graph, "", 0), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_debug_dump(graph, NULL, 0), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_instantiate(graph));
  OK(attune_graph_replay(graph, main));
  OK(attune_stream_synchronize(main));
  OK(attune_graph_reset(graph));
  OK(attune_graph_capture_callback(graph, main, NULL, five_steps, x));
  FAILS(attune_graph_debug_dump(graph, path, 0), ATTUNE_INVALID_ARGUMENT); /* not kept */
  FAILS(attune_graph_instantiate(graph), ATTUNE_INVALID_ARGUMENT);
  assert_null(attune_graph_native(graph));
  assert_ptr_equal(attune_graph_device(graph), host);
  unlink(path);
  attune_graph_destroy(graph);
  attune_event_destroy(out);
  attune_event_destroy(back);
  attune_stream_destroy(main);
  attune_stream_destroy(side);
}

/* A large graph: room grows, arguments of every size keep their bytes. */
typedef struct sized {
  atomic_uint *sum;
  unsigned bytes;
  unsigned char tail[AT_HOST_ARGS_BYTES - 16];
} sized;

static void add_bytes(const void *args) {
  const sized *s = args;
  unsigned sum = 0;
  for (unsigned i = 0; i < s->bytes; i++) sum += s->tail[i];
  atomic_fetch_add(s->sum, sum);
}

TEST(many_sizes) {
  atomic_uint sum = 0;
  unsigned expected = 0;
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  OK(attune_graph_capture_begin(graph, stream, NULL));
  for (unsigned n = 0; n < 20000; n++) {
    sized s = {.sum = &sum, .bytes = n % (AT_HOST_ARGS_BYTES - 16)};
    for (unsigned i = 0; i < s.bytes; i++) expected += s.tail[i] = (unsigned char)(n + i);
    OK(at_host_submit(stream, add_bytes, &s, offsetof(sized, tail) + s.bytes));
  }
  OK(attune_graph_capture_end(graph, stream));
  assert_int_equal(attune_graph_node_count(graph), 20000);
  OK(attune_graph_replay(graph, stream));
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(atomic_load(&sum), 2 * expected);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

/* Threads that capture and replay each their own, and threads that replay one graph at once on streams of their own. */
typedef struct many {
  attune_graph *shared;
  unsigned *x;
} many;

static void *capture_and_replay(void *arg) {
  const many *m = arg;
  unsigned *own = calloc(2 * COUNT, sizeof *own);
  attune_stream *stream = NULL;
  attune_graph *graph = NULL;
  bool ok = own && attune_stream_create(&stream, host) == ATTUNE_OK && attune_graph_create(&graph, host) == ATTUNE_OK;
  for (int i = 0; i < 20 && ok; i++) {
    ok = attune_graph_capture_callback(graph, stream, NULL, five_steps, own) == ATTUNE_OK &&
         attune_graph_replay(graph, stream) == ATTUNE_OK && attune_graph_replay(m->shared, stream) == ATTUNE_OK &&
         attune_stream_synchronize(stream) == ATTUNE_OK && own[0] == 5 * (3 * 0x01010101u + 1) + 2 &&
         attune_graph_reset(graph) == ATTUNE_OK;
  }
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  free(own);
  return ok ? NULL : arg;
}

TEST(many_threads) {
  static unsigned x[COUNT];
  pthread_t threads[6];
  attune_stream *stream = new_stream();
  many m = {new_graph(), x};
  memset(x, 0, sizeof x);
  OK(attune_graph_capture_callback(m.shared, stream, NULL, add_five, x));
  for (size_t i = 0; i < AT_COUNT(threads); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, capture_and_replay, &m), 0);
  for (size_t i = 0; i < AT_COUNT(threads); i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  assert_numbers(x, 5 * 20 * (unsigned)AT_COUNT(threads));
  attune_graph_destroy(m.shared);
  attune_stream_destroy(stream);
}

/* Two streams replay one graph at once: the second replay waits for the first, as on CUDA. */
typedef struct alone {
  atomic_int *inside, *most;
} alone;

static void be_inside(const void *args) {
  const alone *a = args;
  const int now = atomic_fetch_add(a->inside, 1) + 1;
  if (now > atomic_load(a->most)) atomic_store(a->most, now);
  usleep(2000);
  atomic_fetch_sub(a->inside, 1);
}

static attune_status give_inside(void *user, attune_stream *stream) {
  return at_host_submit(stream, be_inside, user, sizeof(alone));
}

TEST(replays_do_not_overlap) {
  atomic_int inside = 0, most = 0;
  alone a = {&inside, &most};
  attune_stream *streams[] = {new_stream(), new_stream(), new_stream()};
  attune_graph *graph = new_graph();
  OK(attune_graph_capture_callback(graph, streams[0], NULL, give_inside, &a));
  for (int i = 0; i < 9; i++) OK(attune_graph_replay(graph, streams[i % 3]));
  for (int i = 0; i < 3; i++) OK(attune_stream_synchronize(streams[i]));
  assert_int_equal(atomic_load(&most), 1);
  attune_graph_destroy(graph);
  for (int i = 0; i < 3; i++) attune_stream_destroy(streams[i]);
}

TEST(captures_can_be_asked_for) {
  static unsigned x[3 * COUNT];
  attune_stream *main = new_stream(), *side = new_stream(), *other = new_stream();
  attune_event *out = new_event(), *outside = new_event();
  attune_graph *graph = new_graph(), *second = new_graph();
  attune_capture_info info = {0}, joined = {0}, apart = {0};
  OK(attune_stream_capture_info(main, &info));
  assert_true(info.state == ATTUNE_CAPTURE_NONE && info.id == 0 && !info.graph);
  assert_int_equal(attune_stream_is_capturing(main) + attune_stream_is_capturing(NULL), 0);
  OK(attune_stream_capture_info(attune_stream_default(host), &info));
  assert_int_equal(info.state, ATTUNE_CAPTURE_NONE);
  FAILS(attune_stream_capture_info(NULL, &info), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_stream_capture_info(main, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_begin(graph, main, NULL));
  OK(attune_graph_capture_begin(second, other, NULL));
  OK(attune_event_record(out, main));
  OK(attune_stream_wait_event(side, out));
  OK(attune_stream_capture_info(main, &info));
  OK(attune_stream_capture_info(side, &joined));
  OK(attune_stream_capture_info(other, &apart));
  assert_true(info.state == ATTUNE_CAPTURE_ACTIVE && info.graph == graph && info.id != 0);
  assert_true(joined.state == ATTUNE_CAPTURE_ACTIVE && joined.graph == graph && joined.id == info.id);
  assert_true(apart.graph == second && apart.id != 0 && apart.id != info.id);
  assert_int_equal(attune_stream_is_capturing(side), 1);
  give(main, x, 1, 1); /* asking broke nothing */
  OK(attune_graph_capture_end(graph, main));
  OK(attune_stream_capture_info(side, &joined));
  assert_true(joined.state == ATTUNE_CAPTURE_NONE && !joined.graph);
  OK(attune_event_record(outside, main));
  FAILS(attune_stream_wait_event(other, outside), ATTUNE_CAPTURING);
  OK(attune_stream_capture_info(other, &apart));
  assert_int_equal(apart.state, ATTUNE_CAPTURE_BROKEN);
  FAILS(attune_graph_capture_end(second, other), ATTUNE_CAPTURING);
  OK(attune_stream_capture_info(other, &apart));
  assert_int_equal(apart.state, ATTUNE_CAPTURE_NONE);
  attune_graph_destroy(graph);
  attune_graph_destroy(second);
  attune_event_destroy(out);
  attune_event_destroy(outside);
  attune_stream_destroy(main);
  attune_stream_destroy(side);
  attune_stream_destroy(other);
}

/* A clone does the same work, and stays when the first graph changes and goes. */
TEST(clones_stand_alone) {
  static unsigned x[COUNT];
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph(), *clone = NULL;
  attune_capture_options keep = ATTUNE_CAPTURE_OPTIONS_INIT;
  FAILS(attune_graph_clone(&clone, graph), ATTUNE_INVALID_ARGUMENT); /* nothing captured */
  assert_null(clone);
  FAILS(attune_graph_clone(NULL, graph), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_clone(&clone, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_capture_callback(graph, stream, NULL, add_five, x));
  FAILS(attune_graph_clone(&clone, graph), ATTUNE_INVALID_ARGUMENT); /* not kept */
  OK(attune_graph_reset(graph));
  keep.keep_graph = 1;
  OK(attune_graph_capture_callback(graph, stream, &keep, add_five, x));
  OK(attune_graph_clone(&clone, graph));
  assert_int_equal(attune_graph_node_count(clone), attune_graph_node_count(graph));
  OK(attune_graph_update(graph, stream, add_six, x, NULL));
  memset(x, 0, sizeof x);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 6);
  attune_graph_destroy(graph);
  OK(attune_graph_upload(clone, stream));
  OK(attune_graph_replay(clone, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 11);
  graph = NULL;
  OK(attune_graph_clone(&graph, clone)); /* a clone is kept too */
  attune_graph_destroy(graph);
  attune_graph_destroy(clone);
  attune_stream_destroy(stream);
}

TEST(uploads_and_memory) {
  static unsigned x[COUNT];
  uint64_t used = 7, reserved = 7;
  attune_stream *stream = new_stream();
  attune_graph *graph = new_graph();
  FAILS(attune_graph_upload(graph, stream), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_graph_upload(NULL, stream), ATTUNE_INVALID_ARGUMENT);
  memset(x, 0, sizeof x);
  OK(attune_graph_capture_callback(graph, stream, NULL, add_five, x));
  FAILS(attune_graph_upload(graph, NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_upload(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_numbers(x, 0); /* nothing ran */
  OK(attune_graph_trim(host));
  FAILS(attune_graph_trim(NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_graph_memory(host, &used, &reserved));
  assert_true(used == 0 && reserved == 0);
  OK(attune_graph_memory(host, NULL, NULL));
  FAILS(attune_graph_memory(NULL, &used, &reserved), ATTUNE_INVALID_ARGUMENT);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
