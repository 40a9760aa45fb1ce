/* SPDX-License-Identifier: Apache-2.0
 * test_cblas_library.c: the CBLAS libraries side by side, and the gate that guards their thread count. */
#include "tests/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ops/gemm/cblas_library.h"
#include "src/support.h"

static void test_cblas_side_by_side(void **unused) {
  (void)unused;
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

/* A library with one setting for the process, as the gate sees it. */
static _Atomic int setting = 7;
static int setting_get(void) {
  return setting;
}
static void setting_set(int threads) {
  setting = threads;
}
static at_cblas_gate gate;
static _Atomic int wrong;

static void *visitor(void *arg) {
  int wanted = *(const int *)arg;
  for (int i = 0; i < 3000; i++) {
    at_cblas_gate_enter(&gate, wanted);
    sched_yield(); /* others get their chance to break in */
    if (setting != wanted) wrong++;
    at_cblas_gate_leave(&gate);
  }
  return NULL;
}

static void test_gate_threads(void **unused) {
  (void)unused;
  static int wanted[] = {1, 1, 2, 7};
  pthread_t threads[AT_COUNT(wanted)];
  at_cblas_gate_init(&gate, setting_get, setting_set);
  for (size_t i = 0; i < AT_COUNT(wanted); i++)
    assert_int_equal(pthread_create(&threads[i], NULL, visitor, &wanted[i]), 0);
  for (size_t i = 0; i < AT_COUNT(wanted); i++) pthread_join(threads[i], NULL);
  assert_int_equal(wrong, 0);
  assert_int_equal(setting, 7);
}

/* A count that nobody set reads as -1 (BLIS); the gate must never set that. */
static void test_gate_unset(void **unused) {
  (void)unused;
  setting = -1;
  at_cblas_gate_init(&gate, setting_get, setting_set);
  at_cblas_gate_enter(&gate, 1);
  assert_int_equal(setting, -1); /* one thread already */
  at_cblas_gate_leave(&gate);
  at_cblas_gate_enter(&gate, 2);
  assert_int_equal(setting, 2);
  at_cblas_gate_leave(&gate);
  assert_int_equal(setting, 1);
  setting = 7;
}

static void test_gate_fork(void **unused) {
  (void)unused;
  at_cblas_gate_init(&gate, setting_get, setting_set);
  at_cblas_gate_enter(&gate, 3);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) { /* the parent's call is not running here */
    at_cblas_gate_after_fork(&gate);
    bool restored = setting == 7;
    at_cblas_gate_enter(&gate, 2);
    bool set = setting == 2;
    at_cblas_gate_leave(&gate);
    _exit(restored && set && setting == 7 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  at_cblas_gate_leave(&gate);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(setting, 7);
}

static _Atomic int inside, left;

static void *stay_a_while(void *unused) {
  (void)unused;
  if (!at_cblas_gate_enter(&gate, 1)) return &gate;
  inside = 1;
  usleep(50000);
  left = 1;
  at_cblas_gate_leave(&gate);
  return NULL;
}

static void *come_late(void *unused) {
  (void)unused;
  const bool entered = at_cblas_gate_enter(&gate, 2);
  if (entered) left = 2;
  if (entered) at_cblas_gate_leave(&gate);
  return entered ? NULL : &gate;
}

/* With and without a setter: hold waits for who is inside, and keeps others out until both holds are released. */
static void test_gate_hold(void **unused) {
  (void)unused;
  for (int with_setter = 0; with_setter < 2; with_setter++) {
    pthread_t early, late;
    void *refused = NULL;
    inside = left = 0;
    at_cblas_gate_init(&gate, setting_get, with_setter ? setting_set : NULL);
    assert_int_equal(pthread_create(&early, NULL, stay_a_while, NULL), 0);
    while (!inside) sched_yield();
    at_cblas_gate_hold(&gate);
    assert_int_equal(left, 1);
    at_cblas_gate_hold(&gate);
    assert_int_equal(pthread_create(&late, NULL, come_late, NULL), 0);
    at_cblas_gate_release(&gate);
    usleep(20000);
    assert_int_equal(left, 1);
    at_cblas_gate_release(&gate);
    pthread_join(early, NULL);
    pthread_join(late, &refused);
    assert_int_equal(left, 2);
    assert_null(refused);
  }
}

/* A signal handler that forks inside a call must not wait for that call. */
static void test_gate_hold_by_the_caller(void **unused) {
  (void)unused;
  at_cblas_gate_init(&gate, setting_get, setting_set);
  assert_true(at_cblas_gate_enter(&gate, 3));
  at_cblas_gate_hold(&gate);
  at_cblas_gate_release(&gate);
  at_cblas_gate_leave(&gate);
  assert_int_equal(setting, 7);
}

/* The end waits for who is inside, sends away who waits, and lets nobody in any more. */
static void test_gate_end(void **unused) {
  (void)unused;
  pthread_t early, waiting;
  void *refused = NULL;
  inside = left = 0;
  at_cblas_gate_init(&gate, setting_get, setting_set);
  assert_int_equal(pthread_create(&early, NULL, stay_a_while, NULL), 0);
  while (!inside) sched_yield();
  assert_int_equal(pthread_create(&waiting, NULL, come_late, NULL), 0);
  at_cblas_gate_end(&gate);
  assert_int_equal(left, 1);
  assert_false(at_cblas_gate_enter(&gate, 1));
  pthread_join(early, NULL);
  pthread_join(waiting, &refused);
  assert_non_null(refused);
  assert_int_equal(setting, 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cblas_side_by_side), cmocka_unit_test(test_gate_threads),
      cmocka_unit_test(test_gate_unset),         cmocka_unit_test(test_gate_fork),
      cmocka_unit_test(test_gate_hold),          cmocka_unit_test(test_gate_hold_by_the_caller),
      cmocka_unit_test(test_gate_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
