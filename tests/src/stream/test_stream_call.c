/* SPDX-License-Identifier: Apache-2.0
 * test_stream_call.c: functions of the program in stream order, on the host: at once on the default stream, later on a
 * created one, in each replay of a graph. */
#include <attune/attune.h>
#include <attune/graph.h>

#include "tests/support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static attune_device *host;

FIXTURE(open_device) {
  return attune_device_get(&host, "host") != ATTUNE_OK;
}

static attune_stream *new_stream(void) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  return stream;
}

typedef struct notes {
  pthread_t thread;
  int calls;
  unsigned char *source, *copy; /* copy becomes source + 1 */
} notes;

static void note(void *user) {
  notes *n = user;
  n->thread = pthread_self();
  n->calls++;
}

static void increment(void *user) {
  notes *n = user;
  for (int i = 0; i < 64; i++) n->copy[i] = (unsigned char)(n->source[i] + 1);
  n->calls++;
}

TEST(at_once_on_the_default_stream) {
  notes n = {.calls = 0};
  OK(attune_stream_call(attune_stream_default(host), note, &n));
  assert_int_equal(n.calls, 1);
  assert_true(pthread_equal(n.thread, pthread_self()));
}

static atomic_bool gate;
static void wait_at_gate(void *user) {
  (void)user;
  while (!atomic_load(&gate)) usleep(100);
}

/* The call returns before the function runs; what comes before it is done, what comes after waits. */
TEST(in_order_on_another_thread) {
  unsigned char first[64] = {0}, second[64] = {0}, third[64] = {0};
  attune_stream *stream = new_stream();
  notes n = {.source = first, .copy = second};
  atomic_store(&gate, false);
  OK(attune_stream_call(stream, wait_at_gate, NULL));
  OK(attune_fill(stream, first, 7, sizeof first));
  OK(attune_stream_call(stream, increment, &n));
  OK(attune_copy(stream, third, second, sizeof third));
  OK(attune_stream_call(stream, note, &n));
  FAILS(attune_stream_query(stream), ATTUNE_NOT_READY);
  atomic_store(&gate, true);
  OK(attune_stream_synchronize(stream));
  assert_int_equal(n.calls, 2);
  assert_false(pthread_equal(n.thread, pthread_self()));
  for (int i = 0; i < 64; i++) assert_int_equal(third[i], 8);
  attune_stream_destroy(stream);
}

/* More calls than the queue has room for. */
TEST(many) {
  attune_stream *stream = new_stream();
  notes n = {.calls = 0};
  for (int i = 0; i < 5000; i++) OK(attune_stream_call(stream, note, &n));
  attune_stream_destroy(stream); /* waits for them */
  assert_int_equal(n.calls, 5000);
}

static attune_status give_step(void *user, attune_stream *stream) {
  notes *n = user;
  attune_status status = attune_fill(stream, n->source, 20, 64);
  if (status == ATTUNE_OK) status = attune_stream_call(stream, increment, n);
  return status == ATTUNE_OK ? attune_copy(stream, n->source, n->copy, 64) : status;
}

TEST(in_a_graph) {
  unsigned char x[64] = {0}, y[64] = {0}, z[64] = {0};
  char path[] = "/tmp/attune-call-XXXXXX", text[4096] = "";
  attune_stream *stream = new_stream();
  attune_graph *graph = NULL;
  attune_capture_options options = ATTUNE_CAPTURE_OPTIONS_INIT;
  notes n = {.source = x, .copy = y}, other = {.source = x, .copy = z};
  options.keep_graph = 1;
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, stream, &options, give_step, &n));
  assert_int_equal(n.calls, 0); /* written down, not run */
  assert_int_equal(attune_graph_node_count(graph), 3);
  for (int i = 1; i <= 3; i++) {
    memset(x, 0, sizeof x);
    OK(attune_graph_replay(graph, i == 2 ? attune_stream_default(host) : stream));
    OK(attune_stream_synchronize(stream));
    assert_int_equal(n.calls, i);
    assert_int_equal(x[63], 21);
  }
  const int file = mkstemp(path);
  assert_true(file >= 0);
  OK(attune_graph_debug_dump(graph, path, 0));
  assert_true(read(file, text, sizeof text - 1) > 0);
  assert_non_null(strstr(text, "call"));
  close(file);
  unlink(path);
  int in_place = 0; /* another `user` is another argument: the same shape */
  OK(attune_graph_update(graph, stream, give_step, &other, &in_place));
  assert_int_equal(in_place, 1);
  OK(attune_graph_replay(graph, stream));
  OK(attune_stream_synchronize(stream));
  assert_int_equal(n.calls, 3);
  assert_int_equal(other.calls, 1);
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
}

/* A step of the program between two products: on the host it may use attune itself. */
typedef struct product {
  attune_tuner *tuner;
  double a[16], b[16], d[16];
  attune_status status;
} product;

static void multiply(void *user) {
  product *p = user;
  attune_gemm_problem problem = {.dtype = ATTUNE_F64, .m = 4, .n = 4, .k = 4};
  const attune_gemm_operands o = {.alpha = 1.0, .a = p->a, .b = p->b, .d = p->d};
  p->status = attune_gemm(p->tuner, attune_stream_default(host), &problem, &o);
}

TEST(that_uses_attune) {
  product p = {.status = ATTUNE_INTERNAL};
  OK(attune_tuner_create(&p.tuner, &(attune_tuner_options){.database = "", .mode = ATTUNE_MODE_CACHED}));
  for (int i = 0; i < 16; i++) {
    p.a[i] = i % 5 == 0;
    p.b[i] = i;
  }
  attune_stream *stream = new_stream();
  OK(attune_stream_call(stream, multiply, &p));
  OK(attune_stream_synchronize(stream));
  OK(p.status);
  for (int i = 0; i < 16; i++) assert_true(p.d[i] == i);
  attune_stream_destroy(stream);
  attune_tuner_destroy(p.tuner);
}

static void *give_calls(void *arg) {
  notes *n = arg;
  attune_stream *stream = NULL;
  if (attune_stream_create(&stream, host) != ATTUNE_OK) return NULL;
  for (int i = 0; i < 1000; i++)
    if (attune_stream_call(stream, note, n) != ATTUNE_OK) break;
  attune_stream_destroy(stream);
  return NULL;
}

TEST(from_several_threads) {
  pthread_t threads[4];
  notes n[4] = {{.calls = 0}};
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, give_calls, &n[i]), 0);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 4; i++) assert_int_equal(n[i].calls, 1000);
}

/* What would wait for the function that asks for it: told, where it hung. */
typedef struct waits {
  attune_stream *stream, *other;
  attune_event *before, *behind;
  attune_status stream_status, device_status, before_status, behind_status, last_given;
  attune_status joined, blocked, recorded, waited, emptied, unpinned;
  int given, ran;
  char message[256];
} waits;

static void count_run(void *user) {
  ((waits *)user)->ran++;
}

static void wait_for_itself(void *user) {
  waits *w = user;
  while (!atomic_load(&gate)) usleep(100);
  w->device_status = attune_device_synchronize(host);
  w->emptied = attune_memory_empty_cache(host);
  w->unpinned = attune_pinned_empty_cache(host);
  w->before_status = attune_event_synchronize(w->before);
  w->behind_status = attune_event_synchronize(w->behind);
  attune_stream_destroy(w->stream);
  do {
    w->last_given = attune_stream_call(w->stream, count_run, w);
    w->given += w->last_given == ATTUNE_OK;
  } while (w->last_given == ATTUNE_OK && w->given < 1000);
  w->joined = attune_stream_wait_stream(attune_stream_default(host), w->stream);
  w->blocked = attune_stream_wait_event(attune_stream_default(host), w->behind);
  w->recorded = attune_event_record(w->before, w->stream); /* the stream is full */
  w->waited = attune_stream_wait_stream(w->stream, w->other);
  w->stream_status = attune_stream_synchronize(w->stream);
  snprintf(w->message, sizeof w->message, "%s", attune_last_message());
}

TEST(waits_for_itself_are_told) {
  waits w = {.stream = new_stream()};
  attune_stream *other = w.other = new_stream();
  OK(attune_event_create(&w.before, host, NULL));
  OK(attune_event_create(&w.behind, host, NULL));
  atomic_store(&gate, false);
  OK(attune_event_record(w.before, w.stream));
  OK(attune_stream_call(w.stream, wait_for_itself, &w));
  OK(attune_event_record(w.behind, w.stream));
  atomic_store(&gate, true);
  OK(attune_stream_synchronize(w.stream)); /* the function, */
  OK(attune_stream_synchronize(w.stream)); /* and what it gave */
  assert_int_equal(w.stream_status, ATTUNE_INVALID_ARGUMENT);
  assert_non_null(strstr(w.message, "is made by a function that"));
  assert_int_equal(w.device_status, ATTUNE_INVALID_ARGUMENT);
  OK(w.before_status);
  assert_int_equal(w.behind_status, ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(w.last_given, ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(w.emptied, ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(w.unpinned, ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(w.joined, ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(w.blocked, ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(w.recorded, ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(w.waited, ATTUNE_INVALID_ARGUMENT);
  assert_in_range(w.given, 250, 255);
  assert_int_equal(w.ran, w.given);
  OK(attune_stream_call(other, count_run, &w)); /* the streams go on */
  OK(attune_stream_synchronize(other));
  OK(attune_stream_call(w.stream, count_run, &w));
  OK(attune_device_synchronize(host));
  assert_int_equal(w.ran, w.given + 2);
  attune_event_destroy(w.before);
  attune_event_destroy(w.behind);
  attune_stream_destroy(other);
  attune_stream_destroy(w.stream);
}

/* Freed memory that another stream uses records an event there, also when that stream is full, and while the function
 * that it runs allocates. */
static void allocate(void *user) {
  void *memory = NULL;
  while (!atomic_load(&gate)) usleep(100);
  usleep(20000); /* the other thread is in attune_free */
  attune_status *status = user;
  *status = attune_alloc(&memory, attune_stream_default(host), 30 << 20);
  if (*status == ATTUNE_OK) *status = attune_free(memory, attune_stream_default(host));
}

TEST(a_free_waits_for_no_room) {
  attune_stream *full = new_stream(), *own = new_stream();
  attune_status status = ATTUNE_INTERNAL;
  void *memory = NULL;
  notes n = {.calls = 0};
  OK(attune_alloc(&memory, own, 1000));
  OK(attune_record_use(memory, full));
  atomic_store(&gate, false);
  OK(attune_stream_call(full, allocate, &status));
  for (int i = 0; i < 255; i++) OK(attune_stream_call(full, note, &n));
  atomic_store(&gate, true);
  OK(attune_free(memory, own));
  OK(attune_stream_synchronize(full));
  OK(status);
  assert_int_equal(n.calls, 255);
  attune_stream_destroy(own);
  attune_stream_destroy(full);
}

TEST(wrong_arguments) {
  FAILS_SAYING(attune_stream_call(NULL, note, NULL), ATTUNE_INVALID_ARGUMENT, "stream");
  FAILS_SAYING(attune_stream_call(attune_stream_default(host), NULL, NULL), ATTUNE_INVALID_ARGUMENT, "fn");
}

int main(void) {
  return RUN_TESTS(open_device, NULL);
}
