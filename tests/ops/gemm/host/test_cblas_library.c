/* SPDX-License-Identifier: Apache-2.0
 * test_cblas_library.c: the CBLAS libraries side by side, and the gate that guards their thread count. */
#include "tests/support/check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops/gemm/host/cblas/cblas_library.h"
#include "src/base/support.h"

TEST(test_cblas_side_by_side) {
  if (at_cblas_count() == 0) skip();
  char text[256];
  assert_true(at_cblas_depends(NULL, text, sizeof text));
  for (int i = 0; i < at_cblas_count(); i++) {
    at_cblas *library = at_cblas_at(i);
    assert_ptr_equal(at_cblas_find(library->id), library);
    assert_non_null(strstr(text, library->id));
    assert_null(strchr(library->id, ','));
    assert_in_range(library->default_threads, 1, 65535);
    for (int j = 0; j < i; j++) assert_ptr_not_equal(library->sgemm, at_cblas_at(j)->sgemm);
  }
  assert_false(at_cblas_depends(NULL, text, 2));
  /* Of the same name, whatever version is asked for; and one that no machine has. */
  const char *id = at_cblas_at(0)->id;
  char old[80];
  (void)snprintf(old, sizeof old, "%.*s-0.0.1", (int)strcspn(id, "-"), id);
  assert_true(at_cblas_depends(old, text, sizeof text));
  assert_string_equal(text, id);
  assert_true(at_cblas_depends("nothing-1.0", text, sizeof text));
  assert_string_equal(text, "nothing-none");
}

enum { CROWD = 300 };
static _Atomic int wrong, present;

static void *multiply(void *argument) {
  enum { SIZE = 128 }; /* for which it uses its threads, and so keeps callers waiting inside */
  at_cblas *library = argument;
  float *a = calloc(SIZE * SIZE, sizeof *a), *d = calloc(SIZE * SIZE, sizeof *d);
  for (int i = 0; a && d && i < 10; i++) {
    if (!at_cblas_thread_setting_enter(&library->gate, library->default_threads)) break;
    if (atomic_fetch_add(&present, 1) >= library->gate.most && library->gate.most) wrong++;
    library->sgemm(102, 111, 111, SIZE, SIZE, SIZE, 1.0f, a, SIZE, a, SIZE, 0.0f, d, SIZE);
    atomic_fetch_sub(&present, 1);
    at_cblas_thread_setting_leave(&library->gate);
  }
  free(a);
  free(d);
  return NULL;
}

/* More threads than OpenBLAS has memory for, which crashes it. */
TEST(test_cblas_crowd) {
  static pthread_t threads[CROWD];
  if (at_cblas_count() == 0 || getenv("AT_UNDER_VALGRIND")) skip(); /* there it takes ten minutes */
  for (int k = 0; k < at_cblas_count(); k++) {
    at_cblas *library = at_cblas_at(k);
    if (strncmp(library->id, "openblas", 8) == 0) assert_in_range(library->gate.most, 1, 65535);
    wrong = 0;
    for (int i = 0; i < CROWD; i++) assert_int_equal(pthread_create(&threads[i], NULL, multiply, library), 0);
    for (int i = 0; i < CROWD; i++) pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
  }
}

/* A library with one setting for the process, as the gate sees it. */
static _Atomic int setting = 7;
static int setting_get(void) {
  return setting;
}
static void setting_set(int threads) {
  setting = threads;
}
static at_cblas_thread_setting gate;

static void *visitor(void *arg) {
  int wanted = *(const int *)arg;
  for (int i = 0; i < 3000; i++) {
    at_cblas_thread_setting_enter(&gate, wanted);
    sched_yield(); /* others get their chance to break in */
    if (setting != wanted) wrong++;
    at_cblas_thread_setting_leave(&gate);
  }
  return NULL;
}

TEST(test_gate_threads) {
  static int wanted[] = {1, 1, 2, 7};
  pthread_t threads[AT_COUNT(wanted)];
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  for (size_t i = 0; i < AT_COUNT(wanted); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, visitor, &wanted[i]), 0);
  for (size_t i = 0; i < AT_COUNT(wanted); i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
  assert_int_equal(setting, 7);
}

/* A count that nobody set reads as -1 (BLIS); the gate must never set that. */
TEST(test_gate_unset) {
  setting = -1;
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  at_cblas_thread_setting_enter(&gate, 1);
  assert_int_equal(setting, -1); /* one thread already */
  at_cblas_thread_setting_leave(&gate);
  at_cblas_thread_setting_enter(&gate, 2);
  assert_int_equal(setting, 2);
  at_cblas_thread_setting_leave(&gate);
  assert_int_equal(setting, 1);
  setting = 7;
}

TEST(test_gate_fork) {
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  at_cblas_thread_setting_enter(&gate, 3);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) { /* the parent's call is not running here */
    at_cblas_thread_setting_after_fork(&gate);
    bool restored = setting == 7;
    at_cblas_thread_setting_enter(&gate, 2);
    bool set = setting == 2;
    at_cblas_thread_setting_leave(&gate);
    _exit(restored && set && setting == 7 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  at_cblas_thread_setting_leave(&gate);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(setting, 7);
}

static _Atomic int inside, left;

static void *stay_a_while(void *unused) {
  (void)unused;
  if (!at_cblas_thread_setting_enter(&gate, 1)) return &gate;
  inside = 1;
  usleep(50000);
  left = 1;
  at_cblas_thread_setting_leave(&gate);
  return NULL;
}

static void *come_late(void *unused) {
  (void)unused;
  const bool entered = at_cblas_thread_setting_enter(&gate, 2);
  if (entered) left = 2;
  if (entered) at_cblas_thread_setting_leave(&gate);
  return entered ? NULL : &gate;
}

/* With and without a setter: hold waits for who is inside, and keeps others out until both holds are released. */
TEST(test_gate_hold) {
  for (int with_setter = 0; with_setter < 2; with_setter++) {
    pthread_t early, late;
    void *refused = NULL;
    inside = left = 0;
    at_cblas_thread_setting_init(&gate, setting_get, with_setter ? setting_set : NULL);
    assert_int_equal(pthread_create(&early, NULL, stay_a_while, NULL), 0);
    while (!inside) sched_yield();
    at_cblas_thread_setting_hold(&gate);
    assert_int_equal(left, 1);
    at_cblas_thread_setting_hold(&gate);
    assert_int_equal(pthread_create(&late, NULL, come_late, NULL), 0);
    at_cblas_thread_setting_release(&gate);
    usleep(20000);
    assert_int_equal(left, 1);
    at_cblas_thread_setting_release(&gate);
    pthread_join(early, NULL);
    pthread_join(late, &refused);
    assert_int_equal(left, 2);
    assert_null(refused);
  }
}

/* A signal handler that forks inside a call must not wait for that call. */
TEST(test_gate_hold_by_the_caller) {
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  assert_true(at_cblas_thread_setting_enter(&gate, 3));
  at_cblas_thread_setting_hold(&gate);
  at_cblas_thread_setting_release(&gate);
  at_cblas_thread_setting_leave(&gate);
  assert_int_equal(setting, 7);
}

/* The end waits for who is inside, sends away who waits, and lets nobody in any more. */
TEST(test_gate_end) {
  pthread_t early, waiting;
  void *refused = NULL;
  inside = left = 0;
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  assert_int_equal(pthread_create(&early, NULL, stay_a_while, NULL), 0);
  while (!inside) sched_yield();
  assert_int_equal(pthread_create(&waiting, NULL, come_late, NULL), 0);
  at_cblas_thread_setting_end(&gate);
  assert_int_equal(left, 1);
  assert_false(at_cblas_thread_setting_enter(&gate, 1));
  pthread_join(early, NULL);
  pthread_join(waiting, &refused);
  assert_non_null(refused);
  assert_int_equal(setting, 7);
}

/* ---- the short way, of calls that want the setting as it is ---- */

enum { RUNNERS = 3 };
static _Atomic bool over;
static _Atomic int at_work[RUNNERS];
static _Atomic long passed;

static void *runner(void *arg) {
  _Atomic int *mine = arg;
  while (!atomic_load_explicit(&over, memory_order_relaxed)) {
    if (!at_cblas_thread_setting_enter(&gate, 7)) return NULL;
    atomic_store_explicit(mine, 1, memory_order_relaxed);
    if (setting != 7) wrong++;
    atomic_store_explicit(mine, 0, memory_order_relaxed);
    at_cblas_thread_setting_leave(&gate);
    atomic_fetch_add_explicit(&passed, 1, memory_order_relaxed);
  }
  return NULL;
}

static int working(void) {
  int count = 0;
  for (int i = 0; i < RUNNERS; i++) count += atomic_load_explicit(&at_work[i], memory_order_relaxed);
  return count;
}

static void start_runners(pthread_t threads[RUNNERS]) {
  over = false;
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  for (int i = 0; i < RUNNERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, runner, &at_work[i]), 0);
  for (const long before = passed; passed < before + 5 * RUNNERS;) sched_yield();
}

static void stop_runners(pthread_t threads[RUNNERS]) {
  over = true;
  for (int i = 0; i < RUNNERS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
  assert_int_equal(setting, 7);
}

/* Who holds the gate finds nobody at work, however they came in; and they go on afterwards. */
TEST(test_gate_hold_stops_all) {
  pthread_t threads[RUNNERS];
  wrong = 0;
  start_runners(threads);
  for (int round = 0; round < 100; round++) {
    at_cblas_thread_setting_hold(&gate);
    for (int look = 0; look < 50; look++) assert_int_equal(working(), 0);
    at_cblas_thread_setting_release(&gate);
    const long before = passed;
    while (passed == before) sched_yield();
  }
  stop_runners(threads);
}

/* A call that wants another count waits until nobody is inside, again and again; in between, when no call has wanted
 * one for long, the short way is open again. */
TEST(test_gate_changes_among_all) {
  pthread_t threads[RUNNERS];
  wrong = 0;
  start_runners(threads);
  for (int round = 0; round < 60; round++) {
    assert_non_null(at_cblas_thread_setting_enter(&gate, 2));
    assert_int_equal(working(), 0);
    assert_int_equal(setting, 2);
    at_cblas_thread_setting_leave(&gate);
    const long before = passed;
    while (passed < before + (round % 20 == 19 ? 2500 : 1)) sched_yield();
  }
  at_cblas_thread_setting_end(&gate);
  assert_int_equal(working(), 0);
  assert_null(at_cblas_thread_setting_enter(&gate, 7));
  stop_runners(threads);
}

/* ---- a library with memory for so many calls at once ---- */

enum { MOST = 2, COMERS = 4 };

static void *come_in(void *arg) {
  const int wanted = *(const int *)arg;
  for (int i = 0; i < 3000; i++) {
    if (!at_cblas_thread_setting_enter(&gate, wanted)) return NULL;
    if (atomic_fetch_add(&present, 1) >= MOST) wrong++;
    sched_yield();
    if (i % 100 == 0) { /* as in a signal handler */
      if (!at_cblas_thread_setting_enter(&gate, wanted)) wrong++;
      at_cblas_thread_setting_leave(&gate);
    }
    atomic_fetch_sub(&present, 1);
    at_cblas_thread_setting_leave(&gate);
  }
  return NULL;
}

/* Also after a fork, in the child, and when some want another thread count. */
TEST(test_gate_limit) {
  static int wanted[2][COMERS] = {{7, 7, 7, 7}, {7, 2, 7, 1}};
  pthread_t threads[COMERS];
  wrong = 0;
  setting = 7;
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  at_cblas_thread_setting_limit(&gate, MOST);
  for (int round = 0; round < 4; round++) {
    if (round == 2) at_cblas_thread_setting_after_fork(&gate);
    for (int i = 0; i < COMERS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, come_in, &wanted[round % 2][i]), 0);
    for (int i = 0; i < COMERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    assert_int_equal(setting, 7);
  }
}

/* A bound is kept, whether the threads got a slot or not. */
TEST(test_gate_bound) {
  static int wanted = 7;
  pthread_t threads[COMERS];
  wrong = 0;
  setting = 7;
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  at_cblas_thread_setting_bound(&gate, MOST);
  for (int round = 0; round < 4; round++) {
    if (round == 2) at_cblas_thread_setting_after_fork(&gate);
    for (int i = 0; i < COMERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, come_in, &wanted), 0);
    for (int i = 0; i < COMERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
  }
}

/* The setting in a library's memory is used as long as it equals the value that the library returns. */
TEST(test_gate_believes_what_is_true) {
  static volatile int shown = 7;
  setting = 7;
  at_cblas_thread_setting_init(&gate, setting_get, setting_set);
  at_cblas_thread_setting_show(&gate, &shown);
  assert_non_null((const void *)(uintptr_t)gate.setting);
  assert_non_null(at_cblas_thread_setting_enter(&gate, 3)); /* changes what it says, and not what it shows */
  assert_int_equal(setting, 3);
  assert_null((const void *)(uintptr_t)gate.setting);
  at_cblas_thread_setting_leave(&gate);
  shown = 5;
  at_cblas_thread_setting_show(&gate, &shown);
  assert_null((const void *)(uintptr_t)gate.setting);
  assert_int_equal(setting, 7);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
