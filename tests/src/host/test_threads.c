/* SPDX-License-Identifier: Apache-2.0
 * test_threads.c: the pool: every share once, by a thread of the team, also when its threads do not come; nesting,
 * concurrent callers, growth. */
#include "tests/support/check.h"

#include "src/base/support.h"
#include "src/host/futex_word.h"
#include "src/host/threads.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST = 8 };

typedef struct census {
  atomic_int seen[MOST];
  atomic_int size, wrong;
} census;

static void count_rank(void *arg, const at_team *team) {
  census *c = arg;
  if (team->rank < 0 || team->rank >= team->size || team->size > MOST) {
    atomic_fetch_add(&c->wrong, 1);
    return;
  }
  atomic_fetch_add(&c->seen[team->rank], 1);
  atomic_store(&c->size, team->size);
}

TEST(every_rank_runs_once) {
  static const int sizes[] = {1, 2, 3, 4, 8, 2, 1, 5};
  for (size_t i = 0; i < AT_COUNT(sizes); i++) {
    for (int round = 0; round < 200; round++) {
      census c = {0};
      at_parallel(sizes[i], count_rank, &c);
      assert_int_equal(c.wrong, 0);
      assert_int_equal(c.size, sizes[i]); /* nobody else uses the pool here */
      for (int r = 0; r < MOST; r++) assert_int_equal(c.seen[r], r < sizes[i]);
    }
  }
}

TEST(no_threads_wanted) {
  census c = {0};
  at_parallel(0, count_rank, &c);
  at_parallel(-3, count_rank, &c);
  assert_int_equal(c.seen[0], 2);
  assert_int_equal(c.size, 1);
}

static void note_thread(void *arg, const at_team *team) {
  ((pthread_t *)arg)[team->rank] = pthread_self();
}

static bool helped(void) {
  pthread_t threads[MOST] = {0};
  at_parallel(2, note_thread, threads);
  assert_true(pthread_equal(threads[0], pthread_self()));
  return !pthread_equal(threads[1], pthread_self());
}

/* Whether they come in time is the machine's choice, but they do come. */
TEST(share_0_is_the_callers_and_others_help) {
  while (!helped()) usleep(100);
}

/* ---- threads that do not come ---- */

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool hold;
static _Thread_local bool is_worker;

unsigned __real_at_futex_word_wait(at_futex_word *g, unsigned old, int64_t most_ns);
unsigned __wrap_at_futex_word_wait(at_futex_word *g, unsigned old, int64_t most_ns);

/* Workers come here between two shares; the caller only for a share that was begun. */
unsigned __wrap_at_futex_word_wait(at_futex_word *g, unsigned old, int64_t most_ns) {
  const unsigned now = __real_at_futex_word_wait(g, old, most_ns);
  if (!atomic_load(&hold) || !is_worker) return now;
  pthread_mutex_lock(&held);
  pthread_mutex_unlock(&held);
  return now;
}

static void mark_worker(void *arg, const at_team *team) {
  (void)arg;
  if (team->rank > 0) is_worker = true;
}

/* The caller, too, may run a share that is not the first. */
static void mark_workers(void) {
  for (int i = 0; i < 1000 || !helped(); i++) at_parallel(MOST, mark_worker, NULL);
  is_worker = false;
}

TEST(nobody_waits_for_a_thread_that_does_not_come) {
  mark_workers();
  pthread_mutex_lock(&held);
  atomic_store(&hold, true);
  for (int round = 0; round < 2000; round++) {
    census c = {0};
    at_parallel(MOST, count_rank, &c);
    assert_int_equal(c.wrong, 0);
    assert_int_equal(c.size, MOST);
    for (int r = 0; r < MOST; r++) assert_int_equal(c.seen[r], 1);
  }
  atomic_store(&hold, false);
  pthread_mutex_unlock(&held);
  while (!helped()) usleep(100); /* and they are not given up for ever */
}

/* ---- shares that take long ---- */

static void run_slowly(void *arg, const at_team *team) {
  if (team->rank > 0) usleep(2000);
  atomic_fetch_add((atomic_int *)arg, 1);
}

/* Long enough that the caller goes to sleep at the end, and the others before the next round. */
TEST(sleepers_wake) {
  for (int round = 0; round < 10; round++) {
    atomic_int ran = 0;
    at_parallel(3, run_slowly, &ran);
    assert_int_equal(ran, 3);
    usleep(1000);
  }
}

static void run_nested(void *arg, const at_team *team) {
  census inner = {0};
  at_parallel(4, count_rank, &inner);
  (void)team;
  if (inner.size == 1 && inner.seen[0] == 1) atomic_fetch_add((atomic_int *)arg, 1);
}

TEST(a_nested_call_runs_alone) {
  atomic_int right = 0;
  at_parallel(3, run_nested, &right);
  assert_int_equal(right, 3);
  atomic_store(&right, 0);
  at_parallel(1, run_nested, &right); /* inside a team of one as well */
  assert_int_equal(right, 1);
}

static void add_ranks(void *arg, const at_team *team) {
  long *sums = arg;
  for (int i = team->rank; i < 1000; i += team->size) sums[i]++;
}

static void *call_often(void *arg) {
  for (int round = 0; round < 500; round++) {
    long sums[1000] = {0};
    at_parallel(1 + round % 4, add_ranks, sums);
    for (int i = 0; i < 1000; i++)
      if (sums[i] != 1) *(bool *)arg = false;
  }
  return NULL;
}

TEST(callers_share_the_pool) {
  pthread_t threads[4];
  bool right[4] = {true, true, true, true};
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, call_often, &right[i]), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    assert_true(right[i]);
  }
}

/* While one caller owns the pool another gets a team of one at once. */
static atomic_bool inside, leave;

static void stay(void *arg, const at_team *team) {
  (void)arg;
  (void)team;
  atomic_store(&inside, true);
  while (!atomic_load(&leave)) usleep(100);
}

static void *occupy(void *arg) {
  at_parallel(2, stay, arg);
  return NULL;
}

TEST(a_busy_pool_makes_nobody_wait) {
  pthread_t thread;
  census c = {0};
  while (!helped()) usleep(100); /* the next team is not one that leaves the workers alone, and the pool, for a while */
  assert_int_equal(pthread_create(&thread, NULL, occupy, NULL), 0);
  while (!atomic_load(&inside)) usleep(100);
  at_parallel(2, count_rank, &c);
  assert_int_equal(c.size, 1);
  atomic_store(&leave, true);
  pthread_join(thread, NULL);
  memset(&c, 0, sizeof c);
  at_parallel(2, count_rank, &c);
  assert_int_equal(c.size, 2);
}

/* A signal to the process, which the program's thread blocks for a while, is not handled by a worker. */
static atomic_int signals;
static void count_signal(int number) {
  (void)number;
  atomic_fetch_add(&signals, 1);
}

TEST(signals_stay_with_the_program) {
  struct sigaction count = {.sa_handler = count_signal}, before;
  sigset_t mine, old;
  census c = {0};
  at_parallel(MOST, count_rank, &c);
  assert_int_equal(sigaction(SIGUSR1, &count, &before), 0);
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR1);
  assert_int_equal(pthread_sigmask(SIG_BLOCK, &mine, &old), 0);
  assert_int_equal(kill(getpid(), SIGUSR1), 0);
  usleep(2000);
  at_parallel(MOST, count_rank, &c);
  assert_int_equal(atomic_load(&signals), 0);
  assert_int_equal(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
  usleep(100);
  assert_int_equal(atomic_load(&signals), 1);
  assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

TEST(cpus_are_ours) {
  assert_true(at_cpu_count() >= 1 && at_cpu_count() <= sysconf(_SC_NPROCESSORS_CONF));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
