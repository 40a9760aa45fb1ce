/* SPDX-License-Identifier: Apache-2.0
 * test_two_devices.c: two equal devices share their winners: each problem is measured once, both measure at the same
 * time, and a winner is shown for each device that it holds on. */
#include "tests/support/check.h"
#include "tests/support/decision.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/toy/toy_clock.h"
#include "tests/tuning/tune/two_devices.h"

enum { PROBLEMS = 8 };

static attune_device *first, *second;
static char folder[64], database[128];
static const char *const FAST[] = {"ns=50000", NULL};

FIXTURE(fresh) {
  static int number;
  toy_reset();
  toy_spins = FAST;
  snprintf(database, sizeof database, "%s/%d.db", folder, number++);
  return 0;
}

static attune_tuner *tuner_of(void) {
  attune_tuner *tuner = NULL;
  assert_int_equal(at_tuner_create(&tuner, &(attune_tuner_options){.database = database}, toy_ops, 1), ATTUNE_OK);
  return tuner;
}

/* --- winners --- */

typedef struct listing {
  int on_first, on_second, valid;
  int end_after; /* 0: never */
} listing;

static int list(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  listing *l = user;
  (void)fingerprint;
  l->on_first += strcmp(info_of(decision).device, "host") == 0;
  l->on_second += strcmp(info_of(decision).device, "host:1") == 0;
  l->valid += valid;
  return l->end_after && l->on_first + l->on_second >= l->end_after;
}

TEST(a_winner_is_listed_for_each_device) {
  attune_tuner *tuner = tuner_of();
  assert_int_equal(attune_tune(tuner, second, TOY_PROBLEM, NULL, NULL), ATTUNE_OK);
  assert_int_equal(attune_tune(tuner, first, TOY("f32 9x6"), NULL, NULL), ATTUNE_OK);
  listing l = {0}, ended = {.end_after = 1};
  assert_int_equal(attune_tuner_winners(tuner, list, &l), ATTUNE_OK);
  assert_int_equal(l.on_first, 2);
  assert_int_equal(l.on_second, 2);
  assert_int_equal(l.valid, 4);
  assert_int_equal(attune_tuner_winners(tuner, list, &ended), ATTUNE_OK);
  assert_int_equal(ended.on_first + ended.on_second, 1); /* the walk ends between two devices too */
  attune_tuner_destroy(tuner);
}

/* --- one tuner, or two of one database, a thread for each device --- */

typedef struct worker {
  attune_tuner *tuner;
  attune_device *device;
  pthread_barrier_t *start;
  int tuned, stored, wrong;
} worker;

static void *tune_all(void *arg) {
  worker *w = arg;
  bool done[PROBLEMS] = {false};
  pthread_barrier_wait(w->start);
  for (int left = PROBLEMS; left > 0;) {
    const int before = left;
    for (int i = 0; i < PROBLEMS; i++) {
      char problem[AT_PROBLEM_CHARS];
      DECISION(decision);
      if (done[i]) continue;
      snprintf(problem, sizeof problem, TOY("f32 9x%d"), i + 1);
      const attune_status status =
          attune_tune(w->tuner, w->device, problem, &(attune_tune_options){.no_wait = 1}, decision);
      if (status == ATTUNE_BUSY) continue; /* the other measures it: the next one meanwhile */
      w->wrong += status != ATTUNE_OK || strcmp(info_of(decision).device, w->device->name) != 0;
      w->tuned += status == ATTUNE_OK && info_of(decision).source == ATTUNE_SOURCE_TUNED;
      w->stored += status == ATTUNE_OK && info_of(decision).source == ATTUNE_SOURCE_STORED;
      done[i] = true;
      left--;
    }
    if (left == before) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  return NULL;
}

static void let_both_tune(attune_tuner *one, attune_tuner *two) {
  pthread_barrier_t start;
  pthread_t threads[2];
  worker workers[2] = {{.tuner = one, .device = first, .start = &start},
                       {.tuner = two, .device = second, .start = &start}};
  pthread_barrier_init(&start, NULL, 2);
  toy_watched = true;
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, tune_all, &workers[i]), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&start);
  assert_int_equal(workers[0].wrong + workers[1].wrong, 0);
  assert_int_equal(toy_searches, PROBLEMS);
  assert_int_equal(workers[0].tuned + workers[1].tuned, PROBLEMS);
  assert_true(workers[0].tuned > 0 && workers[1].tuned > 0);
  assert_true(toy_overlaps > 0); /* both devices at the same time */
}

TEST(one_tuner_on_both) {
  attune_tuner *tuner = tuner_of();
  let_both_tune(tuner, tuner);
  attune_tuner_destroy(tuner);
}

TEST(two_tuners_of_one_database) {
  attune_tuner *one = tuner_of(), *two = tuner_of();
  let_both_tune(one, two);
  attune_tuner_destroy(one);
  attune_tuner_destroy(two);
}

/* --- waiting for the other device's winner --- */

static void *tune_one(void *arg) {
  DECISION(decision);
  const attune_status status = attune_tune(arg, first, TOY_PROBLEM, NULL, decision);
  return status == ATTUNE_OK && info_of(decision).source == ATTUNE_SOURCE_TUNED ? arg : NULL;
}

static atomic_bool let_go; /* the search goes on */

static void pass_when_let(int64_t start, int64_t ns, int64_t cpus) {
  (void)cpus;
  while (!atomic_load(&let_go)) usleep(100);
  while (at_now_ns() - start < ns) usleep(100);
}

TEST(the_others_winner_is_waited_for) {
  attune_tuner *tuner = tuner_of();
  pthread_t thread;
  void *right = NULL;
  DECISION(decision);
  void (*const pass)(int64_t, int64_t, int64_t) = toy_pass;
  virtual_clock_stop(); /* others wait while time passes */
  toy_pass = pass_when_let;
  at_copy_text(toy_base, sizeof toy_base, "ns=20000000");
  assert_int_equal(pthread_create(&thread, NULL, tune_one, tuner), 0);
  while (toy_launches < 1) usleep(100);
  assert_int_equal(attune_tune(tuner, second, TOY_PROBLEM, &(attune_tune_options){.no_wait = 1}, NULL), ATTUNE_BUSY);
  atomic_store(&let_go, true);
  assert_int_equal(attune_tune(tuner, second, TOY_PROBLEM, NULL, decision), ATTUNE_OK);
  assert_int_equal(info_of(decision).source, ATTUNE_SOURCE_STORED);
  assert_string_equal(info_of(decision).device, "host:1");
  DECISION(later);
  pthread_join(thread, &right);
  assert_non_null(right);
  toy_pass = pass;
  assert_int_equal(toy_searches, 1);
  /* Calls on the second device run it from now on. */
  assert_int_equal(attune_explain(tuner, second, TOY_PROBLEM, later), ATTUNE_OK);
  assert_string_equal(info_of(later).implementation,
                      info_of(decision).implementation); /* whichever: the search ran in real time */
  attune_tuner_destroy(tuner);
}

static int remove_all(void) {
  char command[160];
  snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
  return system(command);
}

int main(void) {
  virtual_clock_start();
  if (attune_device_get(&first, "host") != ATTUNE_OK) return 1;
  second = second_device_of(first);
  at_copy_text(folder, sizeof folder, "/tmp/attune-test-two-devices-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  setenv("XDG_RUNTIME_DIR", folder, 1);
  const int failed = RUN_TESTS_EACH(fresh, NULL, NULL, NULL);
  return remove_all() == 0 ? failed : 1;
}
