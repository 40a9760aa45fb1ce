/* SPDX-License-Identifier: Apache-2.0
 * test_fork_exit.c: forks of a process that ends in another thread, and what the C library then leaves the child with.
 * Each case is a process of its own, for it ends once. */
#include "tests/support/check.h"

#include "src/process/fork.h"
#include "tests/support/child.h"

#include <attune/attune.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

enum { SIZE = 60, NAPS = 60000 }; /* of a millisecond: what takes longer hangs */

static attune_device *host;
static attune_tuner *tuner;
static attune_stream *stream;
static double a[SIZE * SIZE], b[SIZE * SIZE];

static bool wait_for(const atomic_bool *flag) {
  for (int i = 0; i < NAPS && !atomic_load(flag); i++) usleep(1000);
  return atomic_load(flag);
}

/* The child's exit code; -1: it hung, or was killed. */
static int end_of(pid_t child) {
  int end = 0;
  for (int i = 0; i < NAPS; i++, usleep(1000)) {
    if (waitpid(child, &end, WNOHANG) == child) return WIFEXITED(end) ? WEXITSTATUS(end) : -1;
  }
  (void)kill(child, SIGKILL);
  (void)waitpid(child, &end, 0);
  return -1;
}

static int set_up(void) {
  attune_tuner_options options = {.database = ":memory:"};
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  for (int i = 0; i < SIZE * SIZE; i++) a[i] = b[i] = 1.0;
  EXPECT(attune_device_get(&host, "host") == ATTUNE_OK && attune_tuner_create(&tuner, &options) == ATTUNE_OK &&
             attune_stream_create(&stream, host) == ATTUNE_OK,
         "%s", attune_last_message());
  return 0;
}

static int multiply(attune_tuner *with, attune_stream *on) {
  static double d[SIZE * SIZE];
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  p.dtype = ATTUNE_F64;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = p.ldd = SIZE;
  d[SIZE] = 0.0;
  EXPECT(attune_gemm(with, on, &p, &o) == ATTUNE_OK && attune_stream_synchronize(on) == ATTUNE_OK, "%s",
         attune_last_message());
  EXPECT(d[SIZE] == SIZE, "%g", d[SIZE]);
  return 0;
}

static int live(bool tunes) {
  attune_tuner_options options = {.database = ":memory:"};
  attune_tuner *own = NULL;
  attune_stream *on = NULL;
  if (multiply(tuner, attune_stream_default(host)) != 0) return 1;
  attune_tuner_destroy(tuner);
  EXPECT(attune_tuner_create(&own, &options) == ATTUNE_OK && attune_stream_create(&on, host) == ATTUNE_OK, "%s",
         attune_last_message());
  if (multiply(own, on) != 0) return 1;
  if (tunes)
    EXPECT(attune_tune(own, host, "gemm f64 nn 60x60x60 strict", &(attune_tune_options){.budget_ms = 5.0, .force = 1},
                       NULL) == ATTUNE_OK,
           "%s", attune_last_message());
  attune_stream_destroy(on);
  attune_tuner_destroy(own);
  return 0;
}

/* ---- after this program's destructors, when the C library has forgotten what the program asked of forks ---- */

static int (*at_the_end)(void);
static atomic_bool over, forked, in_fork;
static atomic_int code;
static int befores, afters;

/* Its number is what makes it the last: after the functions that the C library calls for the program. */
__attribute__((destructor(101))) static void end_last(void) {
  if (at_the_end) _exit(at_the_end());
}

static void count_before(void *unused) {
  (void)unused;
  befores++;
}

static void count_after(void *unused, bool child) {
  (void)unused;
  (void)child;
  afters++;
}

static int fork_late(void) {
  const pid_t child = fork();
  if (child == 0) {
    EXPECT(at_fork_generation() == 1 && befores == 1 && afters == 1, "%u, %d, %d", at_fork_generation(), befores,
           afters);
    _exit(live(false));
  }
  return end_of(child);
}

/* Attune's locks are the child's as ever. */
static int late(void) {
  static at_fork_watch watch = {.before = count_before, .after = count_after};
  if (set_up() != 0) return 1;
  at_fork_watch_add(&watch);
  at_the_end = fork_late;
  exit(0);
}

/* ---- a fork that waits within while others' functions are taken from the C library's list ---- */

static void nothing(void) {}

/* Before attune's: one that waits in attune's has these behind it. */
__attribute__((constructor(101))) static void ask_first(void) {
  for (int i = 0; i < 3; i++) (void)pthread_atfork(nothing, nothing, nothing);
}

static void wait_until_over(void *unused) {
  (void)unused;
  atomic_store(&in_fork, true);
  (void)wait_for(&over);
}

static void go_on(void *unused, bool child) {
  (void)unused;
  (void)child;
}

static void *fork_beside(void *unused) {
  const pid_t child = fork();
  if (child == 0) _exit(live(false));
  atomic_store(&code, end_of(child));
  atomic_store(&forked, true);
  return unused;
}

static int wait_for_fork(void) {
  atomic_store(&over, true);
  return wait_for(&forked) ? atomic_load(&code) : 3;
}

static int beside(void) {
  static at_fork_watch watch = {.before = wait_until_over, .after = go_on};
  pthread_t thread;
  if (set_up() != 0) return 1;
  at_fork_watch_add(&watch);
  EXPECT(pthread_create(&thread, NULL, fork_beside, NULL) == 0, "no thread");
  EXPECT(wait_for(&in_fork), "no fork");
  at_the_end = wait_for_fork;
  exit(0);
}

/* ---- the C library's lock of functions of exit(), which a child of fork does not have again ---- */

void *__libc_calloc(size_t count, size_t size);
static _Thread_local bool holds; /* its next calloc lasts for as long as there is a fork to come */
static atomic_bool held;

/* The C library's own, which atexit() calls with that lock held, waits too. */
__attribute__((visibility("default"))) void *calloc(size_t count, size_t size) {
  if (holds) {
    holds = false;
    atomic_store(&held, true);
    (void)wait_for(&forked);
  }
  return __libc_calloc(count, size);
}

static void *ask_for_exit(void *unused) {
  holds = true;
  for (int i = 0; i < 100 && holds; i++) (void)atexit(nothing); /* it has room for 32 more each time */
  return unused;
}

/* As a child of the program's own thread would have it. */
static int look_at_signals(void) {
  sigset_t mask;
  EXPECT(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1),
         "the child has the signal mask of attune's thread");
  return 0;
}

static void fork_within(void *unused) {
  (void)unused;
  const pid_t child = fork();
  if (child == 0) _exit(look_at_signals() != 0 ? 4 : live(true));
  atomic_store(&code, end_of(child));
  atomic_store(&forked, true);
}

static int locked(void) {
  pthread_t thread;
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &user, NULL);
  if (set_up() != 0) return 1;
  EXPECT(pthread_create(&thread, NULL, ask_for_exit, NULL) == 0 && wait_for(&held), "the lock is not held");
  EXPECT(attune_stream_call(stream, fork_within, NULL) == ATTUNE_OK && wait_for(&forked), "%s", attune_last_message());
  pthread_join(thread, NULL);
  _exit(atomic_load(&code));
}

/* ---- the tests ---- */

static const part parts[] = {{"late", late}, {"beside", beside}, {"locked", locked}};

TEST(a_fork_after_the_end_of_the_library) {
  assert_int_equal(run_part("late"), 0);
}

TEST(a_fork_beside_the_end_of_the_library) {
  assert_int_equal(run_part("beside"), 0);
}

TEST(a_child_without_the_lock_of_exit) {
  assert_int_equal(run_part("locked"), 0);
}

int main(int argc, char **argv) {
  if (argc > 1) return run_named(parts, sizeof parts / sizeof *parts, argv[1]);
  return RUN_TESTS(NULL, NULL);
}
