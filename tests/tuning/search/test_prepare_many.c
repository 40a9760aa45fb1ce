/* SPDX-License-Identifier: Apache-2.0
 * test_prepare_many.c: what several candidates need is made at once, before they are prepared, within the budget. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <pthread.h>
#include <time.h>

#include "src/host/threads.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/search/search.h"

enum { NOTES = 400 };

static attune_device *device;

/* Requests to prepare_many, each with the number prepared before it, and the prepared candidates, in order. */
static char made[NOTES][AT_CONFIGURATION_CHARS], prepared[NOTES][AT_CONFIGURATION_CHARS];
static int made_count, prepared_count, made_at[NOTES], calls, largest;
static int64_t make_ns; /* what each takes */
static attune_status (*prepare_one)(at_plan *plan);

static void note_many(const at_implementation *self, const void *problem, attune_device *on,
                      const at_configuration *configurations, int count) {
  (void)self;
  assert_non_null(problem);
  assert_ptr_equal(on, device);
  assert_in_range(count, 1, 16);
  calls++;
  if (count > largest) largest = count;
  for (int i = 0; i < count && made_count < NOTES; i++) {
    made_at[made_count] = prepared_count;
    at_copy_text(made[made_count++], sizeof made[0], configurations[i].text);
  }
  (void)at_fail(ATTUNE_DEVICE_ERROR, "nobody is told this");
  toy_pass(at_now_ns(), count * make_ns, 1);
}

int __real_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

static void nap_really(void) {
  (void)__real_nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Where a thread makes them beside a search whose time is virtual: prepare waits, really, as long as these are not
 * made. */
static _Atomic int missing;

static attune_status note_one(at_plan *plan) {
  for (int i = 0; i < 10000 && missing > 0; i++) nap_really();
  if (prepared_count < NOTES) at_copy_text(prepared[prepared_count++], sizeof prepared[0], plan->configuration.text);
  return prepare_one(plan);
}

FIXTURE(fresh) {
  toy_reset();
  made_count = prepared_count = calls = largest = 0;
  make_ns = 0;
  prepare_one = toy_spin_implementation.prepare;
  toy_spin_implementation.prepare = note_one;
  toy_spin_implementation.prepare_many = note_many;
  return 0;
}

static attune_tuner *tuner_of(double budget_ms) {
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = "", .budget_ms = budget_ms}, toy_ops, 1));
  return tuner;
}

static int times(char (*list)[AT_CONFIGURATION_CHARS], int count, const char *text) {
  int found = 0;
  for (int i = 0; i < count; i++) found += strcmp(list[i], text) == 0;
  return found;
}

/* Was it made before it was prepared first? */
static bool made_before(const char *text) {
  int first = 0;
  while (first < prepared_count && strcmp(prepared[first], text) != 0) first++;
  for (int i = 0; i < made_count; i++)
    if (strcmp(made[i], text) == 0) return made_at[i] <= first;
  return false;
}

static const char *const MANY[] = {
    "ns=150000,i=0",  "ns=150000,i=1",  "ns=150000,i=2",  "ns=150000,i=3",          "ns=150000,i=4",
    "ns=150000,i=5",  "ns=150000,i=6",  "ns=150000,i=7",  "ns=150000,i=8",          "ns=150000,i=9",
    "ns=150000,i=10", "ns=150000,i=11", "ns=150000,i=12", "ns=150000,i=13",         "ns=150000,i=14",
    "ns=150000,i=15", "ns=150000,i=16", "ns=150000,i=17", "ns=150000,i=18",         "ns=150000,i=19",
    "ns=150000,i=20", "ns=150000,i=21", "ns=150000,i=22", "ns=50000,fault=prepare", NULL};
enum { COUNT = AT_COUNT(MANY) - 1 };

static int at_once(void) {
  return 2 * at_cpu_count() < 16 ? 2 * at_cpu_count() : 16;
}

/* Each before it is prepared, none that is not, none of an implementation without the slot; and what fails is
 * silent. */
TEST(candidates_are_made_a_batch_at_a_time) {
  char before[AT_MESSAGE_CHARS];
  toy_spins = MANY;
  attune_tuner *tuner = tuner_of(3000.0);
  attune_decision d;
  (void)at_fail(ATTUNE_NOT_FOUND, "what was before");
  at_copy_text(before, sizeof before, attune_last_message());
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, &d));
  assert_string_equal(attune_last_message(), before);
  assert_true(d.complete && d.rejected == 1);
  assert_int_equal(made_count, COUNT);
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(times(made, made_count, MANY[i]), 1);
    if (!made_before(MANY[i])) fail_msg("%s is prepared before it is made", MANY[i]);
    assert_true(times(prepared, prepared_count, MANY[i]) > 0);
  }
  assert_int_equal(largest, at_once() < COUNT ? at_once() : COUNT);
  assert_int_equal(calls, (COUNT + at_once() - 1) / at_once());
  attune_tuner_destroy(tuner);
}

/* The budget is looked at between two batches, and what making takes is in it. */
TEST(making_counts_in_the_budget) {
  toy_spins = MANY;
  make_ns = 80000000;
  attune_tuner *tuner = tuner_of(100.0);
  attune_decision d;
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, &d));
  assert_false(d.complete);
  assert_int_equal(calls, 1);
  assert_int_equal(made_count, at_once() < COUNT ? at_once() : COUNT);
  assert_true(d.tuning_ms >= 80.0 * made_count);
  attune_tuner_destroy(tuner);
}

TEST(making_is_optional) {
  static const char *const spins[] = {"ns=50000", "ns=60000", NULL};
  toy_spins = spins;
  toy_spin_implementation.prepare_many = NULL;
  attune_tuner *tuner = tuner_of(3000.0);
  attune_decision d;
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, &d));
  assert_string_equal(d.configuration, "ns=50000");
  assert_true(calls == 0 && prepared_count >= 2);
  attune_tuner_destroy(tuner);
}

/* The default too, alone, before it is measured. */
TEST(the_default_is_made_first) {
  static const char *const spins[] = {"ns=50000", NULL};
  toy_spins = spins;
  toy_base_implementation.prepare_many = note_many;
  attune_tuner *tuner = tuner_of(3000.0);
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, NULL));
  assert_int_equal(calls, 2);
  assert_string_equal(made[0], toy_base);
  assert_string_equal(made[1], "ns=50000");
  attune_tuner_destroy(tuner);
}

/* Candidates dropped because of a wrong one come back, and are compiled before they are prepared again. */
TEST(what_comes_back_is_made_again) {
  static const char *const spins[] = {"ns=20000,fault=wrong", "ns=100000", NULL};
  toy_spins = spins;
  attune_tuner *tuner = tuner_of(3000.0);
  attune_decision d;
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, &d));
  assert_string_equal(d.configuration, "ns=100000");
  assert_int_equal(times(made, made_count, "ns=100000"), 2);
  attune_tuner_destroy(tuner);
}

/* On a device, not on the host, a thread makes it while others are measured; each is prepared and measured all the
 * same. */
static pthread_t maker;

static void note_maker(const at_implementation *self, const void *problem, attune_device *on,
                       const at_configuration *configurations, int count) {
  maker = pthread_self();
  note_many(self, problem, on, configurations, count);
  missing -= count;
}

TEST(a_device_measures_others_meanwhile) {
  static const char *const spins[] = {"ns=150000,i=1", "ns=50000", "ns=150000,i=2", NULL};
  static at_search_result result;
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_timer *timer = NULL;
  toy_spins = spins;
  toy_spin_implementation.prepare_many = note_maker;
  for (int on_device = 0; on_device < 2; on_device++) {
    made_count = prepared_count = calls = 0;
    if (on_device) device->properties.kind = ATTUNE_DEVICE_CUDA;
    missing = on_device ? 3 : 0;
    OK(at_timer_create(&timer, device));
    const attune_status status =
        at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, 3e9, 0.0, NULL);
    at_timer_destroy(timer);
    device->properties.kind = ATTUNE_DEVICE_HOST;
    OK(status);
    assert_string_equal(result.decision.configuration, "ns=50000");
    assert_true(result.decision.complete);
    assert_int_equal(made_count, 3);
    for (int i = 0; i < 3; i++) assert_true(times(prepared, prepared_count, spins[i]) > 0);
    assert_int_equal(!pthread_equal(maker, pthread_self()), on_device);
  }
}

/* So are what the default's implementation offers besides the default, which is made by the search itself. */
static const char *const DEFAULTS[] = {"ns=100000", "ns=70000", "ns=50000"};
static _Atomic int made_by_search[3], made_by_others[3];
static pthread_t searcher;

static int offer_defaults(const at_implementation *self, const void *problem, attune_device *on, at_configuration *out,
                          int max) {
  (void)self, (void)problem, (void)on;
  int count = 0;
  for (; count < 3 && count < max; count++) at_copy_text(out[count].text, sizeof out[count].text, DEFAULTS[count]);
  return count;
}

static void note_who(const at_implementation *self, const void *problem, attune_device *on,
                     const at_configuration *configurations, int count) {
  (void)self, (void)problem, (void)on;
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 3; k++)
      if (strcmp(configurations[i].text, DEFAULTS[k]) == 0)
        (pthread_equal(searcher, pthread_self()) ? made_by_search : made_by_others)[k]++;
  if (!pthread_equal(searcher, pthread_self())) missing -= count;
}

/* The default's own comes first, while the others are not made yet. */
static attune_status prepare_default(at_plan *plan) {
  return strcmp(plan->configuration.text, DEFAULTS[0]) == 0 ? prepare_one(plan) : note_one(plan);
}

TEST(a_device_makes_the_rest_of_the_defaults_beside) {
  static at_search_result result;
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_timer *timer = NULL;
  searcher = pthread_self();
  toy_spins = NULL;
  toy_base_implementation.configurations = offer_defaults;
  toy_base_implementation.prepare_many = note_who;
  prepare_one = toy_base_implementation.prepare;
  toy_base_implementation.prepare = prepare_default;
  missing = 2;
  device->properties.kind = ATTUNE_DEVICE_CUDA;
  OK(at_timer_create(&timer, device));
  const attune_status status =
      at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, 3e9, 0.0, NULL);
  at_timer_destroy(timer);
  device->properties.kind = ATTUNE_DEVICE_HOST;
  OK(status);
  assert_string_equal(result.decision.configuration, "ns=50000");
  for (int k = 0; k < 3; k++) {
    assert_int_equal(made_by_search[k], k == 0);
    assert_int_equal(made_by_others[k], k != 0);
  }
}

/* ---- the wait for what is made beside ---- */

/* The search's naps while it waits take time on the virtual clock, and the maker's parts none: `at_once_parts` of them
 * are made before the search sees its first nap end, the next one when `wanted_naps` of them did, or the wait is over
 * and much was measured. */
static _Atomic int parts, most_in_part, naps, kernels;
static _Atomic bool waiting_is_over;
static int at_once_parts, wanted_naps;

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest) {
  if (!wanted_naps || !pthread_equal(searcher, pthread_self())) return __real_nanosleep(time, rest);
  while (parts < at_once_parts) nap_really();
  virtual_clock_pass(time->tv_nsec, 0.0);
  if (++naps == wanted_naps) waiting_is_over = true;
  if (waiting_is_over) nap_really();
  return 0;
}

static void make_in_parts(const at_implementation *self, const void *problem, attune_device *on,
                          const at_configuration *configurations, int count) {
  (void)self, (void)problem, (void)on, (void)configurations;
  if (count > most_in_part) most_in_part = count;
  while (parts >= at_once_parts && !waiting_is_over) nap_really();
  kernels += count;
  parts++;
}

/* So many measurements after the naps the maker goes on: when what it had made by then was looked at. */
static int wanted_measurements, measurements;

static attune_status measured(void *user) {
  (void)user;
  if (naps > 0 && ++measurements == wanted_measurements) waiting_is_over = true;
  return ATTUNE_OK;
}

static double search_beside(at_search_result *result, const char *const *spins, double budget_ms, double most_ms) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_timer *timer = NULL;
  toy_spins = spins;
  toy_spin_implementation.prepare_many = make_in_parts;
  prepared_count = measurements = 0;
  parts = 0;
  most_in_part = 0;
  naps = 0;
  kernels = 0;
  waiting_is_over = false;
  missing = 0;
  searcher = pthread_self();
  device->properties.kind = ATTUNE_DEVICE_CUDA;
  OK(attune_set_threads(2));
  OK(at_timer_create(&timer, device));
  timer->between = measured;
  const int64_t start_ns = at_now_ns();
  const attune_status status =
      at_search(result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, budget_ms * 1e6, most_ms * 1e6, NULL);
  const double took_ms = (double)(at_now_ns() - start_ns) * 1e-6;
  at_timer_destroy(timer);
  wanted_naps = 0;
  device->properties.kind = ATTUNE_DEVICE_HOST;
  OK(attune_set_threads(0));
  OK(status);
  return took_ms;
}

static const char *const SIX[] = {
    "ns=40000,i=0", "ns=30000,i=1", "ns=20000,i=2", "ns=20000,i=3", "ns=20000,i=4", "ns=20000,i=5", NULL};
enum { NEVER = 1 << 30 };

/* Without a budget all is waited for, and what comes behind is as long as ever. */
TEST(all_is_waited_for) {
  static at_search_result result;
  at_once_parts = 1;
  (void)search_beside(&result, SIX, 0.0, 0.0);
  assert_int_equal(most_in_part, 6);
  assert_int_equal(kernels, 6);
  assert_true(result.decision.complete);
  assert_string_equal(result.decision.configuration, SIX[2]);
}

/* A budget or a limit ends the wait. What is under way then is finished, the rest is not begun, and only what is made
 * is prepared. After a limit that is much longer than a search, what was made is measured, as long as ever. */
TEST(a_budget_ends_the_wait) {
  static at_search_result result;
  at_copy_text(toy_base, sizeof toy_base, "ns=50000");
  for (int hard = 0; hard < 2; hard++) {
    const double most_ms = hard ? 1000.0 : 100.0;
    at_once_parts = 1;
    wanted_naps = NEVER;
    wanted_measurements = hard ? 12 : 1; /* in the race, not in the screening */
    const double took_ms = search_beside(&result, SIX, hard ? 0.0 : most_ms, hard ? most_ms : 0.0);
    const int part = most_in_part;
    assert_in_range(part, 1, 2); /* one for each CPU */
    assert_int_equal(kernels, 2 * part);
    assert_false(result.decision.complete);
    const double wait_ms = result.stage_ms[AT_STAGE_OPEN] + result.stage_ms[AT_STAGE_SCREEN];
    if (wait_ms < 0.6 * most_ms || wait_ms > 0.6 * most_ms + 70.0 || took_ms > most_ms)
      fail_msg("limit %.0f ms: it waited %.1f ms of %.1f", most_ms, wait_ms, took_ms);
    for (int i = 0; i < 6; i++)
      if ((times(prepared, prepared_count, SIX[i]) > 0) != (hard && i < part)) fail_msg("%d: %s", hard, SIX[i]);
    if (!hard) continue;
    assert_string_equal(result.decision.configuration, SIX[part - 1]);
    assert_true(result.decision.samples >= 12 && !result.decision.unsure);
  }
}

/* The stream's thread has its own virtual time: what it works takes the search's time, too. */
static attune_status launch_and_wait(const at_plan *plan, const void *operands, attune_stream *stream) {
  const toy_plan *p = plan->state;
  virtual_clock_pass(p->ns, 0.0);
  return toy_launch(plan, operands, stream);
}

/* The wait delays the candidates behind it, up to a limit. */
TEST(nothing_goes_on_beyond_a_limit) {
  static const char *const equal[] = {"ns=3000000,i=0", "ns=3000000,i=1", "ns=3000000,i=2", "ns=3000000,i=3", NULL};
  static at_search_result result;
  at_copy_text(toy_base, sizeof toy_base, "ns=3000000");
  toy_base_implementation.launch = toy_spin_implementation.launch = launch_and_wait;
  for (int limited = 0; limited < 2; limited++) {
    at_once_parts = 0;
    wanted_naps = 100;
    const double took_ms = search_beside(&result, equal, 0.0, limited ? 300.0 : 3000.0);
    assert_true(result.stage_ms[AT_STAGE_SCREEN] > 100.0 && result.decision.complete);
    if (limited ? took_ms > 335.0 : took_ms < 360.0) fail_msg("%d: it took %.1f ms", limited, took_ms);
  }
}

/* Only prepare reports a failure there. */
TEST(making_tells_nobody) {
  static const char *const spins[] = {"ns=50000", NULL};
  static at_search_result result;
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_timer *timer = NULL;
  toy_spins = spins;
  OK(at_timer_create(&timer, device));
  (void)at_fail(ATTUNE_NOT_FOUND, "what was before");
  OK(at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, 3e9, 0.0, NULL));
  assert_string_equal(attune_last_message(), "what was before");
  assert_int_equal(calls, 1);
  at_timer_destroy(timer);
}

FIXTURE(open_all) {
  virtual_clock_start();
  return attune_device_get(&device, "host") != ATTUNE_OK;
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, open_all, NULL);
}
