/* SPDX-License-Identifier: Apache-2.0
 * test_confirm.c: what a winner is said to gain is what it gains alone; one that is slower than the default there
 * loses, and so does one of whom its race could not tell. */
#include "tests/support/check.h"

#include <math.h>
#include <time.h>

#include "tests/support/toy/toy_clock.h"
#include "tuning/measure/sampler_host.h"
#include "tuning/search/confirm.h"
#include "tuning/search/search.h"

static attune_device *device;
static at_timer *timer;
static at_search_result result;

/* One that is fast at first, and after so much work without a nap slow: as a team is on CPUs that a quota gives in
 * bursts. Samples of a race are shorter than that, a program's use is longer. */
enum { BURST_NS = 3000000 };
static const at_plan *latest;
static int64_t run_ns;
static const char *bursting; /* its configuration */
static int64_t slow_by;

/* One whose short samples are noise, after the first quick ones: they take longer by up to so much; long ones do by as
 * much as is wanted. */
enum { QUICK_ONES = 8 };
static int64_t noise_ns = 1800000; /* what is short */
static const char *noisy;
static int64_t noise_by, steady_by; /* percent */
static unsigned seed, draws, switches;

static int64_t extra(void) {
  if (run_ns > noise_ns) return steady_by;
  return switches > QUICK_ONES ? noise_by * (draws >> 24) / 255 : noise_by / 2;
}

static bool taken; /* others take a fifth of the time of what is long */

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const toy_plan *p = plan->state;
  if (plan != latest) switches++, draws = draws * 1664525u + 1013904223u;
  run_ns = plan == latest ? run_ns + p->ns : 0;
  latest = plan;
  if (noisy && strcmp(plan->configuration.text, noisy) == 0) {
    const int64_t more_ns = p->ns * extra() / 100;
    run_ns += more_ns;
    toy_pass(at_now_ns(), more_ns, 1);
  }
  if (bursting && run_ns > BURST_NS && strncmp(plan->configuration.text, bursting, strlen(bursting)) == 0)
    toy_pass(at_now_ns(), p->ns * slow_by, 1);
  if (taken && run_ns > noise_ns) virtual_clock_take(p->ns / 4, 1.0);
  if (run_ns > BURST_NS && strcmp(p->fault, "alone") == 0) return at_fail(ATTUNE_DEVICE_ERROR, "a launch that fails");
  return toy_launch(plan, operands, stream);
}

/* The default as the vendor's own call; 0: there is none. */
static int64_t bare_ns;

static attune_status bare(const at_plan *plan, const at_bare_calls *calls) {
  (void)plan;
  if (latest) switches++;
  latest = NULL;
  for (int i = calls->from; i < calls->to; i++) toy_pass(at_now_ns(), bare_ns, 1);
  return ATTUNE_OK;
}

static attune_status search(const char *const *spins, const char *burst, int64_t by, double budget_ms) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  toy_reset();
  toy_base_implementation.launch = toy_spin_implementation.launch = launch;
  if (bare_ns) toy_base_implementation.bare = bare;
  at_copy_text(toy_base, sizeof toy_base, "ns=200000");
  switches = 0;
  draws = seed;
  toy_spins = spins;
  bursting = burst;
  slow_by = by;
  return at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, budget_ms * 1e6, 0.0, NULL);
}

static double claimed(void) {
  return result.decision.default_time_ns / result.decision.time_ns;
}

TEST(the_claim_is_of_long_use) {
  static const char *const spins[] = {"ns=50000", NULL};
  OK(search(spins, NULL, 0, 3000.0));
  assert_string_equal(result.decision.configuration, "ns=50000");
  assert_true(fabs(claimed() - 4.0) < 0.1);
  assert_true(result.stage_ms[AT_STAGE_CLAIM] > 0.0);
  OK(search(spins, "ns=50000", 1, 3000.0)); /* twice the time beyond the burst */
  assert_string_equal(result.decision.configuration, "ns=50000");
  if (!(claimed() > 1.9 && claimed() < 3.0)) fail_msg("claimed %.3f", claimed());
  assert_false(result.decision.unsure);
}

TEST(who_is_slower_alone_loses) {
  static const char *const spins[] = {"ns=50000", "ns=120000", NULL};
  OK(search(spins, "ns=50000", 29, 3000.0));
  assert_string_equal(result.decision.configuration, "ns=120000"); /* the next one */
  assert_true(fabs(claimed() - 200.0 / 120.0) < 0.1);
  static const char *const one[] = {"ns=50000", NULL};
  OK(search(one, "ns=50000", 29, 3000.0));
  assert_string_equal(result.decision.implementation, "base");
  assert_true(fabs(claimed() - 1.0) < 1e-9);
}

/* Who cannot be run there is out, and the next one wins. */
TEST(who_fails_alone_is_dropped) {
  static const char *const spins[] = {"ns=50000,fault=alone", "ns=120000", NULL};
  OK(search(spins, NULL, 0, 3000.0));
  assert_string_equal(result.decision.configuration, "ns=120000");
  assert_true(result.raced > 0.0);
  static const char *const one[] = {"ns=50000,fault=alone", NULL};
  OK(search(one, NULL, 0, 3000.0));
  assert_string_equal(result.decision.implementation, "base");
}

/* ---- what noise leaves open ---- */

static bool open_for(const char *who) {
  double percent = 0.0;
  const char *at = strstr(result.decision.note, who);
  if (!result.decision.unsure) return false;
  if (!at || sscanf(at + strlen(who), " could be %lf %%", &percent) != 1 || percent < 2.0)
    fail_msg("it is told as \"%s\"", result.decision.note);
  return true;
}

/* `who` is as noisy as `most`, and takes by `alone` more in long samples, both in percent. */
static attune_status noisy_search(const char *spin, const char *who, int64_t most, int64_t alone, double budget_ms) {
  const char *const spins[] = {spin, NULL};
  noisy = who;
  noise_by = most;
  steady_by = alone;
  const attune_status status = search(spins, NULL, 0, budget_ms);
  noisy = NULL;
  return status;
}

static attune_status noisy_spin(int64_t most, int64_t alone, double budget_ms) {
  return noisy_search("ns=40000", "ns=40000", most, alone, budget_ms);
}

/* In its race nobody can tell whether one is faster, alone it is not, or it is: that is a decision. */
TEST(what_is_clear_alone_is_not_open) {
  OK(noisy_spin(760, 400, 3000.0)); /* alone as fast as the default */
  assert_string_equal(result.decision.implementation, "base");
  assert_false(result.decision.unsure);
  assert_true(result.decision.complete && result.stage_ms[AT_STAGE_CLAIM] > 0.0);
  assert_true(fabs(claimed() - 1.0) < 1e-9);
  OK(noisy_spin(760, 450, 3000.0)); /* slower */
  assert_string_equal(result.decision.implementation, "base");
  assert_false(result.decision.unsure);
  OK(noisy_spin(760, 150, 3000.0)); /* faster */
  assert_string_equal(result.decision.implementation, "spin");
  assert_false(result.decision.unsure);
  assert_true(fabs(claimed() - 2.0) < 0.1);
  OK(noisy_spin(760, 400, 80.0)); /* no time to measure it alone */
  assert_true(open_for("spin"));
}

/* Nor does a default whose own times vary, once who could be faster is not. How its times fall decides whether the race
 * leaves that to the claim. */
TEST(a_noisy_default_leaves_nothing_open) {
  int claims = 0;
  for (unsigned i = 0; i < 6; i++) {
    seed = i;
    OK(noisy_search("ns=470000", "ns=200000", 300, 135, 3000.0));
    seed = 0;
    assert_string_equal(result.decision.implementation, "base");
    if (result.stage_ms[AT_STAGE_CLAIM] < 1.0) continue;
    claims++;
    assert_true(result.decision.spread > 0.2);
    assert_false(result.decision.unsure);
  }
  if (claims < 2) fail_msg("%d of 6 searches made a claim", claims);
}

/* The possible gain is relative to the choice, which may be slower than the vendor's own call. */
TEST(a_gain_is_told_against_the_choice) {
  bare_ns = 100000;
  const attune_status status = noisy_spin(860, 400, 80.0);
  bare_ns = 0;
  OK(status);
  assert_true(fabs(claimed() - 0.5) < 0.05);
  assert_true(open_for("spin"));
}

/* Identical code counts as equally fast if noise explains the difference. */
TEST(what_the_default_loses_by_noise_is_not_told) {
  for (int64_t noise = 0; noise <= 300; noise += 300) {
    bare_ns = noise ? 540000 : 190000;
    const int64_t usual_ns = noise_ns;
    noise_ns = INT64_MAX;
    const attune_status status = noisy_search("ns=2000000", "ns=200000", noise, 0, 3000.0);
    noise_ns = usual_ns;
    bare_ns = 0;
    OK(status);
    assert_string_equal(result.decision.implementation, "base");
    if (!noise && fabs(claimed() - 0.95) > 0.005) fail_msg("claimed %.3f", claimed());
    if (noise) assert_true(result.decision.spread > 0.05 && claimed() == 1.0);
  }
}

/* There is no time for it: the race's figures stand. */
TEST(a_short_budget_makes_no_claim) {
  static const char *const spins[] = {"ns=50000", NULL};
  OK(search(spins, "ns=50000", 9, 60.0));
  assert_string_equal(result.decision.configuration, "ns=50000");
  assert_true(claimed() > 3.0);
}

/* Claims share a third of a budget, however many are slower alone, and however many rounds others disturb. */
TEST(claims_take_no_more_than_a_third_of_a_budget) {
  static const char *const spins[] = {"ns=50000", "ns=51000", "ns=52000", "ns=53000", "ns=54000", NULL};
  for (int kind = 0; kind < 4; kind++)
    for (double budget_ms = 200.0; budget_ms < 900.0; budget_ms *= 1.3) {
      bare_ns = kind % 2 ? 190000 : 0;
      taken = kind / 2 == 1;
      const attune_status status = search(spins, "ns=5", 29, budget_ms);
      bare_ns = 0;
      taken = false;
      OK(status);
      const double claim_ms = result.stage_ms[AT_STAGE_CLAIM], slice_ms = 0.011 * budget_ms;
      if (claim_ms < 2.0 * slice_ms || claim_ms > budget_ms / 3.0 + 4.0 * slice_ms)
        fail_msg("kind %d, %.0f ms: claims took %.1f ms", kind, budget_ms, claim_ms);
    }
}

TEST(lost_doubtful_and_no_gain) {
  static const at_confirmation none = {.rounds = 0, .ratio = 0.5, .least = 1.0},
                               clear = {9, 1.2, 0.01, 1.0, 1.0, 0.01, false},
                               less = {9, 0.98, 0.01, 1.0, 1.0, 0.01, false},
                               perhaps = {9, 0.9, 0.06, 1.0, 1.0, 0.06, false},
                               even = {9, 1.01, 0.01, 1.0, 1.0, 0.01, false},
                               either = {9, 1.01, 0.02, 1.0, 1.0, 0.02, false},
                               /* the vendor's call is twice as fast, bare */
      as_attune = {9, 0.7, 0.01, 1.0, 0.5, 0.02, false};
  assert_false(at_confirm_doubtful(&none) || at_confirm_lost(&none) || at_confirm_no_gain(&none));
  assert_false(at_confirm_doubtful(&clear) || at_confirm_lost(&clear) || at_confirm_no_gain(&clear));
  assert_true(at_confirm_doubtful(&less) && at_confirm_lost(&less) && at_confirm_no_gain(&less));
  assert_true(at_confirm_doubtful(&perhaps) && !at_confirm_lost(&perhaps) && !at_confirm_no_gain(&perhaps));
  assert_true(!at_confirm_doubtful(&even) && !at_confirm_lost(&even) && at_confirm_no_gain(&even));
  assert_false(at_confirm_doubtful(&either) || at_confirm_lost(&either) || at_confirm_no_gain(&either));
  assert_false(at_confirm_doubtful(&as_attune) || at_confirm_lost(&as_attune) || at_confirm_no_gain(&as_attune));
  assert_true(at_confirm_gains(&clear) && at_confirm_gains(&as_attune));
  assert_false(at_confirm_gains(&none) || at_confirm_gains(&perhaps) || at_confirm_gains(&even) ||
               at_confirm_gains(&either));
}

/* ---- rest ---- */

/* Naps in which other threads of the process compute, made up; 0: naps are real. */
enum { NO_STORY = 0, NOBODY = 1, FOR_EVER = 1000 };
static int story, naps;

int __real_nanosleep(const struct timespec *time, struct timespec *rest);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest) {
  run_ns = 0;
  if (story == NO_STORY) return __real_nanosleep(time, rest);
  virtual_clock_take(time->tv_nsec, 0.0); /* of this thread, which sleeps */
  if (++naps < story) virtual_cpu_ns += time->tv_nsec;
  return 0;
}

/* Threads that spin on for a while are waited for, those that never end are not. */
TEST(rest_waits_for_threads) {
  story = NOBODY, naps = 0;
  assert_true(at_sampler_rest());
  assert_in_range(naps, 1, 4);
  story = 16, naps = 0;
  assert_true(at_sampler_rest());
  assert_in_range(naps, 16, 20);
  story = FOR_EVER, naps = 0;
  assert_false(at_sampler_rest());
  assert_in_range(naps, 30, 200);
  story = NO_STORY;
}

FIXTURE(open_all) {
  toy_reset();
  return attune_device_get(&device, "host") != ATTUNE_OK || at_timer_create(&timer, device) != ATTUNE_OK;
}

FIXTURE(close_all) {
  at_timer_destroy(timer);
  return 0;
}

int main(void) {
  virtual_clock_start();
  return RUN_TESTS(open_all, close_all);
}
