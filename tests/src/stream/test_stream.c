/* SPDX-License-Identifier: Apache-2.0
 * test_stream.c: host streams and events: order, asynchrony, waits, times, lifetimes, refused arguments. */
#include "tests/support/check.h"

#include "src/base/backend.h"
#include "src/host/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static attune_device *host;

FIXTURE(find_host) {
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

static attune_stream *new_stream(void) {
  attune_stream *stream = NULL;
  assert_int_equal(attune_stream_create(&stream, host), ATTUNE_OK);
  return stream;
}

static attune_event *new_event(void) {
  attune_event *event = NULL;
  assert_int_equal(attune_event_create(&event, host, NULL), ATTUNE_OK);
  return event;
}

/* Work that a test holds back: it ends when the flag that it carries is set. */
typedef struct held {
  atomic_bool *gate;
} held;

static void hold(const void *args) {
  while (!atomic_load(((const held *)args)->gate)) usleep(50);
}

static void give_held(attune_stream *stream, atomic_bool *gate) {
  held h = {gate};
  assert_int_equal(at_host_submit(stream, hold, &h, sizeof h), ATTUNE_OK);
}

typedef struct step {
  int *log;
  atomic_int *at;
  int value;
} step;

static void write_step(const void *args) {
  const step *s = args;
  s->log[atomic_fetch_add(s->at, 1)] = s->value;
}

static void give_step(attune_stream *stream, int *log, atomic_int *at, int value) {
  step s = {log, at, value};
  assert_int_equal(at_host_submit(stream, write_step, &s, sizeof s), ATTUNE_OK);
}

static void note_thread(const void *args) {
  **(pthread_t *const *)args = pthread_self();
}

TEST(the_default_stream_is_inline) {
  attune_stream *stream = attune_stream_default(host);
  pthread_t runner, *slot = &runner;
  assert_ptr_equal(attune_stream_device(stream), host);
  assert_null(attune_stream_native(stream));
  assert_int_equal(at_host_submit(stream, note_thread, &slot, sizeof slot), ATTUNE_OK);
  assert_true(pthread_equal(runner, pthread_self()));
  assert_int_equal(attune_stream_query(stream), ATTUNE_OK);
  assert_int_equal(attune_stream_synchronize(stream), ATTUNE_OK);
  attune_stream_destroy(stream); /* left alone */
  assert_ptr_equal(attune_stream_default(host), stream);
  assert_int_equal(attune_stream_query(stream), ATTUNE_OK);
}

/* 5000 items pass a ring of 256 many times. */
TEST(a_created_stream_keeps_order_on_its_own_thread) {
  enum { STEPS = 5000 };
  static int log[STEPS];
  atomic_int at = 0;
  attune_stream *stream = new_stream();
  pthread_t runner = pthread_self(), *slot = &runner;
  for (int i = 0; i < STEPS; i++) give_step(stream, log, &at, i);
  assert_int_equal(at_host_submit(stream, note_thread, &slot, sizeof slot), ATTUNE_OK);
  assert_int_equal(attune_stream_synchronize(stream), ATTUNE_OK);
  assert_int_equal(attune_stream_query(stream), ATTUNE_OK);
  assert_false(pthread_equal(runner, pthread_self()));
  for (int i = 0; i < STEPS; i++) assert_int_equal(log[i], i);
  attune_stream_destroy(stream);
}

typedef struct big {
  unsigned char bytes[AT_HOST_ARGS_BYTES - sizeof(int *)];
  int *wrong;
} big;

static void check_bytes(const void *args) {
  const big *b = args;
  for (size_t i = 0; i < sizeof b->bytes; i++) *b->wrong += b->bytes[i] != (i & 255);
}

TEST(arguments_are_copied) {
  int wrong = 0;
  atomic_bool gate = false;
  attune_stream *stream = new_stream();
  big b = {.wrong = &wrong};
  for (size_t i = 0; i < sizeof b.bytes; i++) b.bytes[i] = (unsigned char)i;
  give_held(stream, &gate);
  assert_int_equal(at_host_submit(stream, check_bytes, &b, sizeof b), ATTUNE_OK);
  memset(b.bytes, 0xee, sizeof b.bytes);
  atomic_store(&gate, true);
  assert_int_equal(attune_stream_synchronize(stream), ATTUNE_OK);
  assert_int_equal(wrong, 0);
  assert_int_equal(at_host_submit(stream, check_bytes, &b, AT_HOST_ARGS_BYTES + 1), ATTUNE_INTERNAL);
  attune_stream_destroy(stream);
}

TEST(work_is_asynchronous_and_destroy_waits) {
  int log[1] = {0};
  atomic_int at = 0;
  atomic_bool gate = false;
  attune_stream *stream = new_stream();
  give_held(stream, &gate);
  assert_int_equal(attune_stream_query(stream), ATTUNE_NOT_READY);
  give_step(stream, log, &at, 5);
  assert_int_equal(atomic_load(&at), 0);
  atomic_store(&gate, true);
  attune_stream_destroy(stream);
  assert_int_equal(log[0], 5);
}

TEST(a_stream_waits_for_anothers_event) {
  int log[2] = {0};
  atomic_int at = 0;
  atomic_bool gate = false;
  attune_stream *first = new_stream(), *second = new_stream();
  attune_event *event = new_event();
  assert_int_equal(attune_stream_wait_event(second, event), ATTUNE_OK); /* not recorded: no wait */
  assert_int_equal(attune_stream_synchronize(second), ATTUNE_OK);
  give_held(first, &gate);
  give_step(first, log, &at, 1);
  assert_int_equal(attune_event_record(event, first), ATTUNE_OK);
  assert_int_equal(attune_stream_wait_event(second, event), ATTUNE_OK);
  give_step(second, log, &at, 2);
  assert_int_equal(attune_event_query(event), ATTUNE_NOT_READY);
  assert_int_equal(attune_stream_query(second), ATTUNE_NOT_READY);
  atomic_store(&gate, true);
  assert_int_equal(attune_stream_synchronize(second), ATTUNE_OK);
  assert_int_equal(attune_event_query(event), ATTUNE_OK);
  assert_true(log[0] == 1 && log[1] == 2);
  attune_event_destroy(event);
  attune_stream_destroy(first);
  attune_stream_destroy(second);
}

TEST(a_stream_waits_for_another) {
  int log[3] = {0};
  atomic_int at = 0;
  atomic_bool gate = false;
  attune_stream *first = new_stream(), *second = new_stream();
  assert_int_equal(attune_stream_wait_stream(second, first), ATTUNE_OK); /* nothing to wait for */
  give_held(first, &gate);
  give_step(first, log, &at, 1);
  assert_int_equal(attune_stream_wait_stream(second, first), ATTUNE_OK);
  assert_int_equal(attune_stream_wait_stream(second, second), ATTUNE_OK);
  give_step(second, log, &at, 2);
  usleep(2000);
  assert_int_equal(attune_stream_query(second), ATTUNE_NOT_READY);
  atomic_store(&gate, true);
  give_step(second, log, &at, 3);
  assert_int_equal(attune_stream_wait_stream(attune_stream_default(host), second), ATTUNE_OK); /* inline: waits now */
  assert_true(log[0] == 1 && log[1] == 2 && log[2] == 3);
  assert_int_equal(attune_stream_wait_stream(first, attune_stream_default(host)), ATTUNE_OK);
  assert_int_equal(attune_stream_synchronize(first), ATTUNE_OK);
  attune_stream_destroy(first);
  attune_stream_destroy(second);
}

/* The wait is for the record at the time of the wait, though a later one on another stream is reached at once. */
TEST(a_later_record_does_not_move_a_wait) {
  int log[2] = {0};
  atomic_int at = 0;
  atomic_bool gate = false;
  attune_stream *slow = new_stream(), *fast = new_stream(), *waiter = new_stream();
  attune_event *event = new_event();
  give_held(slow, &gate);
  give_step(slow, log, &at, 1);
  assert_int_equal(attune_event_record(event, slow), ATTUNE_OK);
  assert_int_equal(attune_stream_wait_event(waiter, event), ATTUNE_OK);
  give_step(waiter, log, &at, 2);
  assert_int_equal(attune_event_record(event, fast), ATTUNE_OK);
  assert_int_equal(attune_event_synchronize(event),
                   ATTUNE_OK); /* the fast record, though the slow one is not reached */
  assert_int_equal(attune_event_query(event), ATTUNE_OK);
  usleep(2000);
  assert_int_equal(attune_stream_query(waiter), ATTUNE_NOT_READY);
  attune_event_destroy(event); /* while the wait is queued */
  atomic_store(&gate, true);
  assert_int_equal(attune_device_synchronize(host), ATTUNE_OK);
  assert_true(log[0] == 1 && log[1] == 2);
  attune_stream_destroy(slow);
  attune_stream_destroy(fast);
  attune_stream_destroy(waiter);
}

TEST(a_later_record_is_waited_for) {
  atomic_bool gate = false;
  attune_stream *stream = new_stream();
  attune_event *event = new_event();
  assert_int_equal(attune_event_record(event, stream), ATTUNE_OK);
  assert_int_equal(attune_event_synchronize(event), ATTUNE_OK);
  give_held(stream, &gate);
  assert_int_equal(attune_event_record(event, stream), ATTUNE_OK);
  assert_int_equal(attune_event_query(event), ATTUNE_NOT_READY);
  double ns = 0;
  assert_int_equal(attune_event_elapsed_ns(&ns, event, event), ATTUNE_NOT_READY);
  atomic_store(&gate, true);
  assert_int_equal(attune_event_synchronize(event), ATTUNE_OK);
  assert_int_equal(attune_event_elapsed_ns(&ns, event, event), ATTUNE_OK);
  assert_true(ns == 0.0);
  attune_event_destroy(event);
  attune_stream_destroy(stream);
}

TEST(an_event_outlives_its_stream) {
  attune_event *event = new_event();
  attune_stream *stream = new_stream(), *other = new_stream();
  assert_int_equal(attune_event_record(event, stream), ATTUNE_OK);
  attune_stream_destroy(stream);
  assert_int_equal(attune_event_query(event), ATTUNE_OK);
  assert_int_equal(attune_stream_wait_event(other, event), ATTUNE_OK);
  assert_int_equal(attune_stream_synchronize(other), ATTUNE_OK);
  attune_stream_destroy(other);
  attune_event_destroy(event);
}

/* More marks than the ring holds, of one event: giving one must not hold what the marks need. */
TEST(many_records_of_one_event) {
  attune_event *event = new_event();
  attune_stream *stream = new_stream();
  for (int i = 0; i < 3000; i++) assert_int_equal(attune_event_record(event, stream), ATTUNE_OK);
  assert_int_equal(attune_event_synchronize(event), ATTUNE_OK);
  attune_event_destroy(event);
  attune_stream_destroy(stream);
}

static void sleep_2ms(const void *args) {
  (void)args;
  usleep(2000);
}

TEST(events_tell_time) {
  attune_stream *const streams[] = {attune_stream_default(host), new_stream()};
  attune_event *start = new_event(), *stop = new_event();
  double ns = 0;
  FAILS_SAYING(attune_event_elapsed_ns(&ns, start, stop), ATTUNE_INVALID_ARGUMENT, "start was never recorded");
  for (size_t i = 0; i < AT_COUNT(streams); i++) {
    assert_int_equal(attune_event_record(start, streams[i]), ATTUNE_OK);
    assert_int_equal(at_host_submit(streams[i], sleep_2ms, NULL, 0), ATTUNE_OK);
    assert_int_equal(attune_event_record(stop, streams[i]), ATTUNE_OK);
    if (i == 0) assert_int_equal(attune_event_query(stop), ATTUNE_OK); /* inline: reached at once */
    assert_int_equal(attune_event_synchronize(stop), ATTUNE_OK);
    assert_int_equal(attune_event_elapsed_ns(&ns, start, stop), ATTUNE_OK);
    assert_true(ns >= 2e6 && ns < 5e9);
  }
  attune_event_destroy(start);
  attune_event_destroy(stop);
  attune_stream_destroy(streams[1]);
}

/* The mark is part of what is waited for: its time is there afterwards. */
TEST(a_reached_event_has_its_time) {
  attune_stream *stream = new_stream();
  attune_event *start = new_event(), *stop = new_event();
  for (int i = 0; i < 500; i++) {
    double ns = -1;
    assert_int_equal(attune_event_record(start, attune_stream_default(host)), ATTUNE_OK);
    assert_int_equal(attune_event_record(stop, stream), ATTUNE_OK);
    assert_int_equal(attune_event_synchronize(stop), ATTUNE_OK);
    assert_int_equal(attune_event_elapsed_ns(&ns, start, stop), ATTUNE_OK);
    assert_true(ns >= 0);
  }
  attune_event_destroy(start);
  attune_event_destroy(stop);
  attune_stream_destroy(stream);
}

TEST(an_older_record_leaves_the_newer_time) {
  atomic_bool gate = false;
  double ns = -1;
  attune_stream *slow = new_stream(), *now = attune_stream_default(host);
  attune_event *event = new_event(), *after = new_event();
  give_held(slow, &gate);
  assert_int_equal(attune_event_record(event, slow), ATTUNE_OK);
  assert_int_equal(attune_event_record(event, now), ATTUNE_OK);
  assert_int_equal(attune_event_record(after, now), ATTUNE_OK);
  atomic_store(&gate, true);
  assert_int_equal(attune_stream_synchronize(slow), ATTUNE_OK);
  assert_int_equal(attune_event_elapsed_ns(&ns, event, after), ATTUNE_OK);
  assert_true(ns >= 0);
  attune_event_destroy(event);
  attune_event_destroy(after);
  attune_stream_destroy(slow);
}

TEST(the_inline_stream_waits_for_an_event) {
  int log[1] = {0};
  atomic_int at = 0;
  attune_stream *stream = new_stream();
  attune_event *event = new_event();
  assert_int_equal(at_host_submit(stream, sleep_2ms, NULL, 0), ATTUNE_OK);
  give_step(stream, log, &at, 3);
  assert_int_equal(attune_event_record(event, stream), ATTUNE_OK);
  assert_int_equal(attune_stream_wait_event(attune_stream_default(host), event), ATTUNE_OK);
  assert_int_equal(log[0], 3);
  attune_event_destroy(event);
  attune_stream_destroy(stream);
}

static void *open_gate(void *arg) {
  usleep(3000);
  atomic_store((atomic_bool *)arg, true);
  return NULL;
}

TEST(the_device_waits_for_all_streams) {
  atomic_bool gate = false;
  attune_stream *streams[4];
  for (size_t i = 0; i < AT_COUNT(streams); i++) give_held(streams[i] = new_stream(), &gate);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, open_gate, &gate), 0);
  assert_int_equal(attune_device_synchronize(host), ATTUNE_OK);
  for (size_t i = 0; i < AT_COUNT(streams); i++) assert_int_equal(attune_stream_query(streams[i]), ATTUNE_OK);
  pthread_join(thread, NULL);
  for (size_t i = 0; i < AT_COUNT(streams); i++) attune_stream_destroy(streams[i]);
}

/* Each thread makes, links and destroys streams while others synchronize the device. */
static void *churn(void *arg) {
  for (int round = 0; round < 100; round++) {
    attune_stream *a = NULL, *b = NULL;
    attune_event *event = NULL;
    int log[2];
    atomic_int at = 0;
    bool ok = attune_stream_create(&a, host) == ATTUNE_OK && attune_stream_create(&b, host) == ATTUNE_OK &&
              attune_event_create(&event, host, NULL) == ATTUNE_OK;
    step one = {log, &at, 1}, two = {log, &at, 2};
    ok = ok && at_host_submit(a, write_step, &one, sizeof one) == ATTUNE_OK &&
         attune_event_record(event, a) == ATTUNE_OK && attune_stream_wait_event(b, event) == ATTUNE_OK &&
         at_host_submit(b, write_step, &two, sizeof two) == ATTUNE_OK;
    attune_event_destroy(event);
    if (round % 4 == 0) ok = attune_device_synchronize(host) == ATTUNE_OK && ok;
    attune_stream_destroy(a);
    attune_stream_destroy(b);
    if (!ok || log[0] != 1 || log[1] != 2) *(bool *)arg = false;
  }
  return NULL;
}

TEST(threads_with_streams_of_their_own) {
  pthread_t threads[4];
  bool right[4] = {true, true, true, true};
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, churn, &right[i]), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    assert_true(right[i]);
  }
}

/* The allocator records events on streams that another thread gives work to: the record lies where its mark does. */
typedef struct giver {
  attune_stream *stream;
  atomic_bool ended;
} giver;

static void nothing(const void *args) {
  (void)args;
}

static void *keep_giving(void *arg) {
  giver *g = arg;
  while (!atomic_load(&g->ended))
    if (at_host_submit(g->stream, nothing, NULL, 0) != ATTUNE_OK) return arg;
  return NULL;
}

TEST(records_beside_a_giver) {
  giver g = {.stream = new_stream()};
  attune_event *start = new_event(), *stop = new_event();
  pthread_t thread;
  void *failed = NULL;
  assert_int_equal(pthread_create(&thread, NULL, keep_giving, &g), 0);
  for (int i = 0; i < 3000; i++) {
    double ns = -1;
    assert_int_equal(attune_event_record(start, attune_stream_default(host)), ATTUNE_OK);
    assert_int_equal(attune_event_record(stop, g.stream), ATTUNE_OK);
    assert_int_equal(attune_event_synchronize(stop), ATTUNE_OK);
    assert_int_equal(attune_event_elapsed_ns(&ns, start, stop), ATTUNE_OK);
    if (!(ns >= 0)) fail_msg("record %d was reached before its mark ran: %g ns", i, ns);
  }
  atomic_store(&g.ended, true);
  pthread_join(thread, &failed);
  assert_null(failed);
  attune_event_destroy(start);
  attune_event_destroy(stop);
  attune_stream_destroy(g.stream);
}

/* Signals are for the program's threads: a stream's thread, made by one that takes them all, blocks them. */
static void read_blocked(const void *arg) {
  (void)pthread_sigmask(SIG_BLOCK, NULL, *(sigset_t *const *)arg);
}

TEST(signals_stay_with_the_program) {
  const int numbers[] = {SIGUSR1, SIGTERM, SIGINT, SIGALRM, SIGCHLD};
  sigset_t blocked, *out = &blocked;
  attune_stream *stream = new_stream();
  sigemptyset(&blocked);
  assert_int_equal(at_host_submit(stream, read_blocked, &out, sizeof out), ATTUNE_OK);
  assert_int_equal(attune_stream_synchronize(stream), ATTUNE_OK);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) assert_int_equal(sigismember(&blocked, numbers[i]), 1);
  attune_stream_destroy(stream);
}

TEST(wrong_arguments) {
  attune_stream *stream = NULL;
  attune_event *event = NULL, *made = new_event();
  double ns;
  assert_int_equal(attune_stream_create(NULL, host), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_create(NULL, host, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_stream *const trash = (attune_stream *)(void *)&stream;
  attune_event *const rubbish = (attune_event *)(void *)&event;
  /* A failed call gives NULL, so that destroying the result is harmless. */
  stream = trash;
  assert_int_equal(attune_stream_create(&stream, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_null(stream);
  stream = trash;
  assert_int_equal(attune_stream_wrap(&stream, NULL, &ns), ATTUNE_INVALID_ARGUMENT);
  assert_null(stream);
  stream = trash;
  assert_int_equal(attune_stream_wrap(&stream, host, &ns), ATTUNE_UNSUPPORTED);
  assert_null(stream);
  event = rubbish;
  assert_int_equal(attune_event_wrap(&event, host, &ns), ATTUNE_UNSUPPORTED);
  assert_null(event);
  event = rubbish;
  assert_int_equal(attune_event_wrap(&event, NULL, &ns), ATTUNE_INVALID_ARGUMENT);
  assert_null(event);
  event = rubbish;
  assert_int_equal(attune_event_create(&event, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_null(event);
  event = rubbish;
  assert_int_equal(attune_event_ipc_open(&event, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_null(event);
  assert_int_equal(attune_event_ipc_export(NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_ipc_export(made, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_null(attune_stream_default(NULL));
  assert_null(attune_stream_native(NULL));
  assert_null(attune_event_native(NULL));
  assert_null(attune_stream_device(NULL));
  attune_stream_destroy(NULL);
  attune_event_destroy(NULL);
  assert_int_equal(attune_stream_query(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_stream_synchronize(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_stream_wait_event(NULL, made), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_stream_wait_event(attune_stream_default(host), NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_stream_wait_stream(NULL, attune_stream_default(host)), ATTUNE_INVALID_ARGUMENT, "stream is NULL");
  FAILS_SAYING(attune_stream_wait_stream(attune_stream_default(host), NULL), ATTUNE_INVALID_ARGUMENT, "other is NULL");
  assert_int_equal(attune_event_record(NULL, attune_stream_default(host)), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_record(made, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_query(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_query(made), ATTUNE_OK); /* never recorded */
  assert_int_equal(attune_event_synchronize(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_synchronize(made), ATTUNE_OK);
  assert_int_equal(attune_event_elapsed_ns(NULL, made, made), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_elapsed_ns(&ns, NULL, made), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_elapsed_ns(&ns, made, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_event_destroy(made);
}

/* A device of another kind with no table: pairs are refused, and what it lacks is said. */
TEST(other_kinds_and_no_tables) {
  attune_device device = {.backend = {.name = "empty", .kind = ATTUNE_DEVICE_CUDA}, .name = "empty:0"};
  attune_stream stream = {.device = &device}, *made = NULL;
  attune_event event = {.device = &device}, *host_event = new_event(), *made_event = NULL;
  double ns;
  assert_int_equal(attune_stream_wait_event(&stream, host_event), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_record(host_event, &stream), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_event_elapsed_ns(&ns, host_event, &event), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_stream_create(&made, &device), ATTUNE_UNSUPPORTED);
  assert_string_equal(attune_last_message(), "device empty:0 has no streams");
  assert_int_equal(attune_event_create(&made_event, &device, NULL), ATTUNE_UNSUPPORTED);
  assert_string_equal(attune_last_message(), "device empty:0 has no events");
  attune_event_destroy(host_event);
}

int main(void) {
  return RUN_TESTS(find_host, NULL);
}
