/* SPDX-License-Identifier: Apache-2.0
 * test_compile_queue.c: which group gets a thread first, how many there are, and what cancelling, forks and exit() do
 * to jobs. Jobs end when the test lets them, so that nothing depends on time. */
#include "tests/support/check.h"
#include "tests/support/child.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/process/compile_queue.h"
#include "src/process/exit.h"

/* ---- an owner: `count` jobs that wait for permission and write their letter ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char notes[4096];
static int noted;

typedef struct owner {
  int count, next; /* under the queue's lock */
  int allowed, begun, ended, most;
  char letter;
  void (*also)(int job);
  at_compile_group group;
} owner;

static void do_job(owner *o, int job) {
  pthread_mutex_lock(&lock);
  o->begun++;
  if (o->begun - o->ended > o->most) o->most = o->begun - o->ended;
  pthread_cond_broadcast(&changed);
  while (o->ended >= o->allowed) pthread_cond_wait(&changed, &lock);
  notes[noted++] = o->letter;
  o->ended++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  if (o->also) o->also(job);
}

static bool step(void *of) {
  owner *o = of;
  if (o->next == o->count) return false;
  const int job = o->next++;
  at_compile_unlock();
  do_job(o, job);
  at_compile_lock();
  return true;
}

enum { FREE = 1 << 30 };

static void set(owner *o, at_compile_priority priority, int threads, int jobs, int allowed) {
  *o = (owner){.count = jobs, .allowed = allowed, .letter = "sdpw"[priority]};
  o->group = (at_compile_group){.priority = priority, .most = threads, .step = step, .of = o};
}

static bool start(owner *o) {
  at_compile_lock();
  const bool starts = at_compile_start(&o->group);
  at_compile_unlock();
  return starts;
}

static bool is_busy(owner *o) {
  at_compile_lock();
  const bool busy = at_compile_is_busy(&o->group);
  at_compile_unlock();
  return busy;
}

static void allow(owner *o, int allowed) {
  pthread_mutex_lock(&lock);
  o->allowed = allowed;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void wait_begun(owner *o, int count) {
  pthread_mutex_lock(&lock);
  while (o->begun < count) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

FIXTURE(fresh) {
  memset(notes, 0, sizeof notes);
  noted = 0;
  return 0;
}

/* The next test may fork: without the threads that have done their work. */
FIXTURE(end) {
  return may_fork() && !is_alone();
}

/* All threads of the queue, in jobs of low priority that do not end; one job more is left. */
static owner full;

static void fill(at_compile_priority priority) {
  set(&full, priority, AT_COMPILE_THREADS, AT_COMPILE_THREADS + 1, 0);
  assert_true(start(&full));
  wait_begun(&full, AT_COMPILE_THREADS);
}

static void drain(void) {
  allow(&full, FREE);
  at_compile_wait(&full.group);
  assert_int_equal(full.ended, AT_COMPILE_THREADS + 1);
}

/* ---- threads ---- */

TEST(a_group_has_as_many_threads_as_it_may) {
  owner o;
  set(&o, AT_COMPILE_SEARCH, 3, 20, 0);
  assert_true(start(&o));
  wait_begun(&o, 3);
  assert_true(start(&o)); /* no more than before */
  allow(&o, FREE);
  at_compile_wait(&o.group);
  assert_int_equal(o.most, 3);
  assert_int_equal(o.ended, 20);
  assert_false(is_busy(&o));
  o.count = 21; /* another job, after all threads went */
  assert_true(start(&o));
  at_compile_wait(&o.group);
  assert_int_equal(o.ended, 21);
}

TEST(all_groups_together_have_so_many) {
  static owner o[5];
  for (int i = 0; i < 5; i++) {
    set(&o[i], (at_compile_priority)(i % 4), 100, 400, 0);
    assert_true(start(&o[i]));
  }
  for (int begun = 0; begun < AT_COMPILE_THREADS; usleep(1000)) {
    begun = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 5; i++) begun += o[i].begun;
    pthread_mutex_unlock(&lock);
    assert_true(begun <= AT_COMPILE_THREADS);
  }
  for (int i = 0; i < 5; i++) allow(&o[i], FREE);
  for (int i = 0; i < 5; i++) {
    at_compile_wait(&o[i].group);
    assert_int_equal(o[i].ended, 400);
    assert_true(o[i].most <= 100);
  }
}

TEST(a_free_thread_goes_to_the_highest_priority) {
  owner search, deferred, warm;
  set(&search, AT_COMPILE_SEARCH, 1, 2, FREE);
  set(&deferred, AT_COMPILE_DEFERRED, 1, 2, FREE);
  set(&warm, AT_COMPILE_WARM, 1, 2, FREE);
  fill(AT_COMPILE_PRECOMPILE);
  assert_true(start(&warm) && start(&deferred) && start(&search));
  assert_int_equal(noted, 0);
  allow(&full, 1); /* one thread ends its job, and does all that follows but the jobs that the others have */
  at_compile_wait(&search.group);
  at_compile_wait(&deferred.group);
  wait_begun(&full, AT_COMPILE_THREADS + 1);
  assert_true(is_busy(&warm));
  allow(&full, 2);
  at_compile_wait(&warm.group);
  assert_string_equal(notes, "pssddpww");
  drain();
}

/* What a job sees: signals are the program's, and the nice value is the priority's. */
static int nice_of[4];
static bool all_blocked = true;
static at_compile_priority seen;

static void look(int job) {
  sigset_t mask;
  (void)job;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  all_blocked = all_blocked && sigismember(&mask, SIGINT) && sigismember(&mask, SIGUSR1);
  nice_of[seen] = getpriority(PRIO_PROCESS, (id_t)gettid());
}

TEST(threads_are_nice_by_priority) {
  const int own = getpriority(PRIO_PROCESS, (id_t)gettid());
  for (int i = 0; i < 4; i++) {
    owner o;
    set(&o, seen = (at_compile_priority)i, 1, 1, FREE);
    o.also = look;
    assert_true(start(&o));
    at_compile_wait(&o.group);
  }
  assert_true(all_blocked);
  assert_int_equal(nice_of[AT_COMPILE_SEARCH], own);
  assert_true(nice_of[AT_COMPILE_DEFERRED] >= 10);
  assert_int_equal(nice_of[AT_COMPILE_PRECOMPILE], 19);
  assert_int_equal(nice_of[AT_COMPILE_WARM], own);
}

/* ---- the owner's calls ---- */

TEST(what_is_cancelled_does_not_begin) {
  owner o, waits;
  set(&o, AT_COMPILE_PRECOMPILE, 2, 10, 0);
  assert_true(start(&o));
  wait_begun(&o, 2);
  at_compile_cancel(&o.group);
  assert_true(is_busy(&o));
  allow(&o, FREE);
  at_compile_wait(&o.group);
  assert_int_equal(o.begun, 2);
  assert_int_equal(o.ended, 2);
  assert_false(start(&o));
  fill(AT_COMPILE_SEARCH); /* nor does what waits for a thread */
  set(&waits, AT_COMPILE_SEARCH, 2, 10, FREE);
  assert_true(start(&waits));
  at_compile_cancel(&waits.group);
  at_compile_wait(&waits.group);
  drain();
  assert_int_equal(waits.begun, 0);
}

static void *cancel_later(void *of) {
  owner *o = of;
  wait_begun(o, 1);
  at_compile_cancel(&o->group);
  allow(o, FREE);
  return NULL;
}

/* It ends the wait of another thread. */
TEST(what_is_cancelled_is_not_waited_for) {
  owner o;
  pthread_t other;
  set(&o, AT_COMPILE_DEFERRED, 1, FREE, 0);
  assert_true(start(&o));
  assert_int_equal(pthread_create(&other, NULL, cancel_later, &o), 0);
  at_compile_wait(&o.group);
  assert_int_equal(pthread_join(other, NULL), 0);
  assert_true(o.ended >= 1 && o.begun == o.ended);
}

static void run_one(void *of, int i) {
  owner *o = of;
  do_job(o, i);
}

/* Alone where it may have no other thread, and else until the jobs of the others have ended, too. */
TEST(whoever_waits_works_too) {
  owner o;
  for (int i = 0; i < 100; i++) {
    set(&o, AT_COMPILE_WARM, 0, 0, FREE);
    at_compile_each(AT_COMPILE_WARM, i % 10, 20, run_one, &o);
    assert_int_equal(o.ended, 20);
    assert_true(o.most <= 1 || o.most <= i % 10);
  }
  at_compile_each(AT_COMPILE_WARM, 3, 0, run_one, NULL);
}

static void run_inner(int job) {
  owner inner;
  (void)job;
  set(&inner, AT_COMPILE_SEARCH, 0, 0, FREE);
  inner.letter = 'i';
  at_compile_each(AT_COMPILE_SEARCH, 4, 3, run_one, &inner);
  if (inner.ended != 3) abort();
}

/* Where all threads do it at once, too: each job does the inner ones itself. */
TEST(a_job_may_have_others_done) {
  set(&full, AT_COMPILE_SEARCH, AT_COMPILE_THREADS, AT_COMPILE_THREADS + 1, 0);
  full.also = run_inner;
  assert_true(start(&full));
  wait_begun(&full, AT_COMPILE_THREADS);
  drain();
  assert_int_equal(noted, 4 * (AT_COMPILE_THREADS + 1));
}

TEST(a_wait_has_a_bound) {
  const struct timespec past = {0};
  at_compile_lock();
  assert_false(at_compile_wait_change(&past));
  at_compile_unlock();
}

/* ---- fork and exit ---- */

static int code_of(pid_t child) {
  int status = 0;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int in_child(owner *o) {
  owner own;
  pthread_mutex_init(&lock, NULL);
  pthread_cond_init(&changed, NULL);
  if (is_busy(o)) return 1;
  at_compile_wait(&o->group);
  set(&own, AT_COMPILE_DEFERRED, 2, 5, FREE);
  if (!start(&own)) return 2;
  at_compile_wait(&own.group);
  if (own.ended != 5) return 3;
  o->allowed = FREE; /* the parent's: what was not begun can be, by threads of the child */
  if (!start(o)) return 4;
  at_compile_wait(&o->group);
  return o->next == o->count && o->begun == o->count ? 0 : 5;
}

TEST(a_child_has_an_empty_queue) {
  if (!may_fork()) skip();
  owner o;
  set(&o, AT_COMPILE_PRECOMPILE, 2, 10, 0);
  assert_true(start(&o));
  wait_begun(&o, 2);
  const pid_t child = fork();
  if (child == 0) {
    int status = in_child(&o);
    const pid_t grandchild = status ? -1 : fork();
    if (grandchild == 0) _exit(in_child(&o));
    if (grandchild > 0) waitpid(grandchild, &status, 0);
    _exit(status != 0);
  }
  assert_int_equal(code_of(child), 0);
  allow(&o, FREE);
  at_compile_wait(&o.group);
  assert_int_equal(o.ended, 10);
}

static pid_t forked = -1;

static void fork_once(int job) {
  if (job == 1) forked = fork();
}

/* A thread of the queue that forks goes on as one of the child's, not the queue's; one of the program does all jobs. */
TEST(a_job_may_fork) {
  if (!may_fork()) skip();
  owner o;
  set(&o, AT_COMPILE_SEARCH, 1, 4, FREE);
  o.also = fork_once;
  assert_true(start(&o));
  at_compile_wait(&o.group);
  assert_int_equal(o.ended, 4);
  assert_int_equal(code_of(forked), 0); /* its only thread has ended */
  set(&o, AT_COMPILE_SEARCH, 0, 0, FREE);
  o.also = fork_once;
  at_compile_each(AT_COMPILE_SEARCH, 1, 4, run_one, &o);
  if (forked == 0) _exit(o.ended != 4);
  assert_int_equal(o.ended, 4);
  assert_int_equal(code_of(forked), 0);
}

bool __real_at_patience_nap(at_patience *patience);
bool __wrap_at_patience_nap(at_patience *patience);

static owner last;
static bool is_child, let_go;
static atomic_int naps;

bool __wrap_at_patience_nap(at_patience *patience) {
  atomic_fetch_add(&naps, 1);
  if (let_go) allow(&last, FREE);
  return __real_at_patience_nap(patience);
}

static void look_at_the_end(void) {
  if (forked == 0) _exit(0); /* of a_job_may_fork; what vanished threads had is not lost */
  if (!is_child) return;
  if (let_go && (last.begun != 2 || last.ended != 2 || start(&last) || naps == 0)) _exit(3);
  if (!let_go && naps > 0) _exit(4);
}

/* exit() waits for the jobs that run, and no other begins. */
TEST(the_process_may_end_meanwhile) {
  if (!may_fork()) skip();
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    is_child = let_go = true;
    set(&last, AT_COMPILE_SEARCH, 2, 10, 0);
    if (!start(&last)) _exit(1);
    wait_begun(&last, 2);
    exit(0);
  }
  assert_int_equal(code_of(child), 0);
}

static void end_process(int job) {
  (void)job;
  exit(0);
}

/* A job that calls exit() is not waited for. */
TEST(a_job_may_end_the_process) {
  if (!may_fork()) skip();
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    is_child = true;
    set(&last, AT_COMPILE_SEARCH, 1, 10, FREE);
    last.also = end_process;
    if (!start(&last)) _exit(1);
    for (;;) pause();
  }
  assert_int_equal(code_of(child), 0);
}

int main(void) {
  (void)atexit(look_at_the_end); /* comes after attune's, which is asked for later */
  return RUN_TESTS_EACH(fresh, end, NULL, NULL);
}
