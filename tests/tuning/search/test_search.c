/* SPDX-License-Identifier: Apache-2.0
 * test_search.c: the search takes the fastest candidate that is right, keeps the default within the noise, holds its
 * budget, and says why. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <math.h>

#include "src/host/cpu_capacity.h"
#include "src/process/limit.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/search/race.h"
#include "tuning/search/search.h"

static attune_device *device;
static at_timer *timer;
static at_search_result result;

FIXTURE(fresh) {
  toy_reset();
  return 0;
}

static attune_status search(const char *const *spins, double budget_ms) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  toy_spins = spins;
  return at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, budget_ms * 1e6, 0.0, NULL);
}

static const at_trial *trial_of(const char *implementation, const char *configuration) {
  for (int i = 0; i < result.trial_count; i++)
    if (strcmp(result.trials[i].implementation, implementation) == 0 &&
        strcmp(result.trials[i].configuration, configuration) == 0)
      return &result.trials[i];
  return NULL;
}

static const char *verdict_of(const char *implementation, const char *configuration) {
  const at_trial *trial = trial_of(implementation, configuration);
  return trial ? trial->verdict : "absent";
}

/* ---- the choice ---- */

TEST(the_fastest_right_one_wins) {
  static const char *const spins[] = {"ns=120000", "ns=60000", "ns=500000", "ns=64000", NULL};
  OK(search(spins, 3000.0));
  const attune_decision *d = &result.decision;
  assert_string_equal(d->implementation, "spin");
  assert_string_equal(d->configuration, "ns=60000");
  assert_string_equal(d->default_implementation, "base");
  assert_int_equal(d->implementation_version, 1);
  assert_true(d->time_ns > 60000.0 && d->time_ns < 80000.0);
  assert_true(d->default_time_ns > 2.0 * d->time_ns);
  assert_string_equal(d->runner_up, "spin");
  assert_string_equal(d->runner_up_configuration, "ns=64000");
  assert_true(d->runner_up_time_ns > d->time_ns && d->runner_up_time_ns < d->default_time_ns);
  assert_true(d->spread >= 0.0 && d->spread < 0.5);
  assert_true(d->samples >= 4 && d->samples <= AT_MAX_SAMPLES);
  assert_true(d->candidates >= 3 &&
              d->candidates <= 4); /* one launch of the slow one shows that it is not worth a sample */
  assert_int_equal(d->rejected, 0);
  assert_true(d->complete == 1 && d->tuning_ms > 0.0 && d->tuning_ms < 3000.0);
  assert_true(d->max_error >= 0.0 && d->max_error <= 1.0);
  assert_non_null(strstr(d->note, "faster than the default"));
  assert_string_equal(verdict_of("spin", "ns=60000"), "winner");
  assert_string_equal(verdict_of("spin", "ns=64000"), "runner-up");
  assert_string_equal(verdict_of("base", "ns=200000"), "default");
  assert_string_equal(result.warning, "");
}

/* Fast and wrong in each way: none wins, each that got that far is counted, and the default or a slower right one runs.
 */
TEST(the_wrong_ones_are_refused) {
  static const char *const faults[] = {"wrong", "second", "leaves", "behind", "second_behind",
                                       "codes", "scale",  "offset", "launch", "prepare"};
  for (size_t i = 0; i < AT_COUNT(faults); i++) {
    char bad[64];
    snprintf(bad, sizeof bad, "ns=20000,fault=%s", faults[i]);
    const char *const alone[] = {bad, NULL}, *const beside[] = {bad, "ns=70000", NULL};
    OK(search(alone, 3000.0));
    assert_string_equal(result.decision.implementation, "base");
    assert_int_equal(result.decision.rejected, 1);
    assert_string_equal(verdict_of("spin", bad), i < 8 ? "wrong" : "failed");
    assert_int_equal(result.warning[0] != '\0', i < 8);
    if (i < 8) assert_non_null(strstr(result.warning, bad));
    OK(search(beside, 3000.0));
    assert_string_equal(result.decision.configuration, "ns=70000");
    assert_string_not_equal(result.decision.runner_up_configuration, bad); /* what is wrong is no runner-up */
  }
}

/* A candidate that loses NaN is refused, unless the default does too: then it may win, with a note. */
TEST(what_loses_nan_is_refused) {
  static const char *const spins[] = {"ns=20000,fault=nan", "ns=70000", NULL};
  OK(search(spins, 3000.0));
  assert_string_equal(result.decision.configuration, "ns=70000");
  assert_string_equal(verdict_of("spin", "ns=20000,fault=nan"), "wrong");
  assert_non_null(strstr(result.warning, "ns=20000,fault=nan loses NaN of"));
  assert_null(strstr(result.decision.note, "; the default"));
  at_copy_text(toy_base, sizeof toy_base, "ns=200000,fault=nan");
  OK(search(spins, 3000.0));
  assert_string_equal(result.decision.configuration, "ns=20000,fault=nan");
  assert_non_null(strstr(result.decision.note, "the default loses NaN of"));
}

TEST(a_default_that_is_wrong_is_an_error) {
  at_copy_text(toy_base, sizeof toy_base, "ns=100000,fault=wrong");
  assert_int_equal(search(NULL, 1000.0), ATTUNE_BAD_DATA);
  static const char *const right[] = {"ns=50000", NULL};
  OK(search(right, 1000.0)); /* a right one that is faster does not need it */
  assert_string_equal(result.decision.implementation, "spin");
  at_copy_text(toy_base, sizeof toy_base, "ns=100000,fault=launch");
  assert_int_equal(search(right, 1000.0), ATTUNE_DEVICE_ERROR);
}

/* Equals and slower ones do not replace the default, however many there are; and so two searches agree. */
TEST(the_default_is_kept_within_the_noise) {
  static const char *const equals[] = {"ns=200000,a=1", "ns=200000,a=2", "ns=200000,a=3",
                                       "ns=201000",     "ns=260000",     NULL};
  for (int again = 0; again < 3; again++) {
    OK(search(equals, 3000.0));
    assert_string_equal(result.decision.implementation, "base");
    assert_string_equal(result.decision.note, "no candidate beats the default beyond the noise");
    assert_true(fabs(result.decision.default_time_ns - result.decision.time_ns) < 1e-9);
    assert_true(result.decision.runner_up[0] != '\0');
  }
}

/* So many launches of plans with "fault=later" succeed. */
static int launch_limit, launch_failures;

static attune_status fail_later(const at_plan *plan, const void *operands, attune_stream *stream) {
  const toy_plan *p = plan->state;
  if (strcmp(p->fault, "later") != 0 || launch_limit-- > 0) return toy_launch(plan, operands, stream);
  launch_failures++;
  return at_fail(ATTUNE_DEVICE_ERROR, "a launch that fails");
}

/* Whenever a candidate fails, it is out, and what it had left behind comes back. */
TEST(a_launch_may_fail_at_any_time) {
  static const char *const spins[] = {"ns=50000,fault=later", "ns=120000", NULL};
  int failed = 0;
  for (int limit = 0; limit < 6000; limit += 1 + limit / 12) {
    (void)fresh(NULL);
    toy_spin_implementation.launch = fail_later;
    launch_limit = limit;
    launch_failures = 0;
    OK(search(spins, 3000.0));
    failed += launch_failures > 0;
    if (strcmp(result.decision.configuration, spins[launch_failures > 0]) != 0)
      fail_msg("after %d launches, %d failures: %s %s", limit, launch_failures, result.decision.implementation,
               result.decision.configuration);
  }
  if (failed < 15) fail_msg("%d launches failed", failed);
}

static void put_samples(at_candidate *candidate, double ns, double noise, int count) {
  candidate->count = count;
  for (int i = 0; i < count; i++) candidate->place[i] = (unsigned char)i;
  for (int i = 0; i < count; i++)
    candidate->samples[i] = ns * (1.0 + noise * (i % 2 ? 1.0 : -1.0) * (0.5 + (double)(i % 3)));
}

/* ---- many implementations ---- */

/* The last of more than a search ever saw wins. */
TEST(all_implementations_are_searched) {
  enum { COUNT = 40 };
  static at_implementation each[COUNT];
  static const at_implementation *list[COUNT];
  static char names[COUNT][24];
  static const char *const spins[] = {"ns=50000", NULL};
  for (int i = 0; i < COUNT; i++) {
    each[i] = i < COUNT - 1 ? toy_base_implementation : toy_spin_implementation;
    snprintf(names[i], sizeof names[i], "number_%d", i);
    each[i].name = names[i];
    list[i] = &each[i];
  }
  toy_op.implementations = list;
  toy_op.implementation_count = COUNT;
  OK(search(spins, 6000.0));
  assert_string_equal(result.decision.implementation, "number_39");
  assert_int_equal(result.decision.candidates, COUNT);
}

/* ---- placements ---- */

/* Rounds see many placements, none better aligned than the problem says: 16 bytes on the host, or the class below. */
TEST(rounds_are_taken_at_many_placements) {
  static const struct {
    const char *problem;
    uintptr_t alignment;
  } rows[] = {{TOY_PROBLEM, 16}, {TOY_PROBLEM " align=8", 8}, {TOY_PROBLEM " align=4", 4}};
  static const char *const spins[] = {"ns=60000", NULL};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    const at_key key = toy_key(rows[i].problem, device);
    toy_reset();
    toy_spins = spins;
    OK(at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, 200e6, 0.0, NULL));
    assert_string_equal(result.decision.configuration, "ns=60000");
    assert_true(toy_place_count >= 10);
    assert_int_equal(toy_least_aligned, rows[i].alignment);
  }
}

/* A candidate that is fast at half of the placements and slow at the others does not beat a steady default. */
TEST(a_winner_wins_over_placements) {
  static const char *const fickle[] = {"ns=160000,far=80000", NULL};
  for (int again = 0; again < 4; again++) {
    toy_reset();
    OK(search(fickle, 400.0));
    assert_string_equal(result.decision.implementation, "base");
  }
}

/* On a device whose times are steady a winner by a little must be ahead nearly everywhere. */
TEST(a_loser_at_some_placements_loses) {
  static const struct {
    double ns, shift;
    bool beats;
  } rows[] = {{98.0, 0.0, true}, {98.0, 0.004, true}, {98.0, 0.03, false}, {80.0, 0.03, true}, {90.0, 0.2, false}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    static at_candidate base, other;
    const at_race race = {.steady = true};
    put_samples(&base, 100.0, 0.0, 36);
    put_samples(&other, rows[i].ns, rows[i].shift, 36);
    for (int j = 0; j < 36; j++) base.place[j] = other.place[j] = (unsigned char)(j % 12);
    at_race_judge(&base, &other);
    if (at_race_beats_default(&race, &other) != rows[i].beats)
      fail_msg("row %zu: speedup %g, error %g, shift %g", i, other.speedup, other.error, other.shift);
  }
}

/* One slow placement of twelve moves neither the median nor the deviation, and loses all the same; so does one that was
 * measured once. Noise in every sample is no reason. */
TEST(one_bad_placement_loses) {
  static const struct {
    double ns, noise, bad;
    int count;
    bool beats;
  } rows[] = {{70.0, 0.0, 105.0, 36, false}, {70.0, 0.0, 105.0, 12, false}, {70.0, 0.0, 90.0, 36, true},
              {98.0, 0.0, 100.5, 36, true},  {97.0, 0.004, 97.0, 36, true}, {98.0, 0.0, 103.0, 36, false}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    static at_candidate base, other;
    const at_race race = {.steady = true};
    put_samples(&base, 100.0, 0.0, rows[i].count);
    put_samples(&other, rows[i].ns, rows[i].noise, rows[i].count);
    for (int j = 0; j < rows[i].count; j++) {
      base.place[j] = other.place[j] = (unsigned char)(j % 12);
      if (j % 12 == 5) other.samples[j] *= rows[i].bad / rows[i].ns;
    }
    at_race_judge(&base, &other);
    if (at_race_beats_default(&race, &other) != rows[i].beats)
      fail_msg("row %zu: speedup %g, shift %g, least %g", i, other.speedup, other.shift, other.least);
  }
}

static double gaussian(uint64_t *seed) {
  double sum = 0.0;
  for (int i = 0; i < 12; i++) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    sum += (double)(*seed >> 40) / (double)(1 << 24);
  }
  return sum - 6.0;
}

/* A placement that stays slow when it is measured again, in noise, is slow; one sample that was disturbed is not.
 * `more` samples are taken there. How many of 200 such candidates beat the default. */
static int wins_of_doubted(int more, bool stays) {
  enum { TRIALS = 200, PLACES = 12, SLOW_AT = 5 };
  static at_candidate base, other;
  const at_race race = {.steady = true};
  uint64_t seed = 3;
  int won = 0;
  for (int trial = 0; trial < TRIALS; trial++) {
    put_samples(&base, 100.0, 0.0, PLACES + more);
    put_samples(&other, 80.0, 0.0, PLACES + more);
    for (int j = 0; j < PLACES + more; j++) {
      base.place[j] = other.place[j] = (unsigned char)(j < PLACES ? j : SLOW_AT);
      base.samples[j] *= 1.0 + 0.004 * gaussian(&seed);
      other.samples[j] *= 1.0 + 0.004 * gaussian(&seed);
      if (j == SLOW_AT || (stays && j >= PLACES)) other.samples[j] *= 100.0 / 80.0 / 0.965;
    }
    at_race_judge(&base, &other);
    won += at_race_beats_default(&race, &other);
  }
  return won;
}

TEST(a_doubtful_placement_is_told_from_a_sample) {
  for (int more = 1; more <= 4; more++) {
    assert_int_equal(wins_of_doubted(more, false), 200);
    assert_in_range(wins_of_doubted(more, true), 0, 4);
  }
}

/* ---- the rules of a race, on samples put in by hand ---- */

TEST(beating_the_default_takes_a_margin) {
  static const struct {
    double ns, noise;
    int count;
    bool beats;
  } rows[] = {{100.0, 0.0, 11, false}, {99.6, 0.0, 11, false},  {99.0, 0.0, 11, true},  {90.0, 0.0, 3, false},
              {90.0, 0.0, 4, true},    {99.0, 0.05, 11, false}, {60.0, 0.05, 11, true}, {110.0, 0.0, 11, false}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    static at_candidate base, other;
    put_samples(&base, 100.0, 0.0, rows[i].count);
    put_samples(&other, rows[i].ns, rows[i].noise, rows[i].count);
    at_race_judge(&base, &other);
    if (at_race_beats_default(&(at_race){0}, &other) != rows[i].beats)
      fail_msg("row %zu: speedup %g, error %g", i, other.speedup, other.error);
  }
}

/* A second thread must win more than a measurement without other work shows: a wake-up a call, a share of the time. */
TEST(threads_are_a_cost) {
  static const struct {
    double base_ns, ns;
    const char *configuration;
    bool beats;
  } rows[] = {{600.0, 500.0, "threads=1", true},        {600.0, 500.0, "threads=2", false},
              {60e3, 40e3, "threads=2", true},          {60e3, 59e3, "threads=2", false},
              {60e3, 50e3, "path=a,threads=16", false}, {60e3, 59e3, "", true}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    static at_candidate base, other;
    at_copy_text(other.configuration.text, sizeof other.configuration.text, rows[i].configuration);
    put_samples(&base, rows[i].base_ns, 0.0, 11);
    put_samples(&other, rows[i].ns, 0.0, 11);
    at_race_judge(&base, &other);
    if (at_race_beats_default(&(at_race){0}, &other) != rows[i].beats)
      fail_msg("row %zu: speedup %g, merit %g", i, other.speedup, other.merit);
  }
}

/* A default that is a team has the same price: a faster team beats it, and so does a thread alone; one that keeps two
 * CPUs busy for a few percent does not win over a default of one, but over one as dear it does. */
TEST(the_price_is_the_same_for_all) {
  const struct {
    double ns, cpus, default_cpus;
    const char *configuration;
    bool wins;
  } rows[] = {{93e3, 2.0, 2.0, "threads=2", true},  {93e3, 2.0, 1.0, "threads=2", false},
              {93e3, 1.05, 1.0, "threads=2", true}, {60e3, 1.9, 1.0, "threads=2", true},
              {98e3, 1.0, 2.0, "threads=1", true},  {101e3, 1.0, 2.0, "threads=1", false}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    static at_candidate base, other;
    at_candidate *candidates[] = {&base, &other};
    at_race race = {.candidates = candidates, .count = 2};
    base.state = other.state = AT_SCREENED;
    at_copy_text(base.configuration.text, sizeof base.configuration.text, "threads=2");
    at_copy_text(other.configuration.text, sizeof other.configuration.text, rows[i].configuration);
    base.cpus = rows[i].default_cpus;
    other.cpus = rows[i].cpus;
    put_samples(&base, 100e3, 0.0, 11);
    put_samples(&other, rows[i].ns, 0.0, 11);
    at_race_judge(&base, &base);
    at_race_judge(&base, &other);
    if ((at_race_winner(&race) == &other) != rows[i].wins)
      fail_msg("row %zu: merit %g, the default's %g", i, other.merit, base.merit);
  }
}

/* ---- teams where the CPUs are fewer than they seem ---- */

/* Two CPUs that sustain the work of one: a team that needs twice 120 us of them is as slow as 240 us in the long run,
 * however fast its bursts are, and does not win over 180 us of one. */
TEST(a_burst_is_no_evidence) {
  static const char *const spins[] = {"ns=120000,threads=2", NULL};
  const double before = at_cpu_capacity();
  at_copy_text(toy_base, sizeof toy_base, "ns=180000,threads=1");
  at_cpu_capacity_set(1.0);
  const attune_status status = search(spins, 1500.0);
  at_cpu_capacity_set(before);
  OK(status);
  assert_string_equal(result.decision.implementation, "base");
  const at_trial *team = trial_of("spin", spins[0]);
  if (team && team->samples > 0) assert_true(team->time_ns > 230000.0);
}

/* ---- the vendor's own call ---- */

static int64_t bare_ns;
static int bare_calls;
static attune_status vendor_call(const at_plan *plan, const at_bare_calls *calls) {
  (void)plan;
  bare_calls += calls->to - calls->from;
  for (int i = calls->from; i < calls->to; i++) toy_pass(at_now_ns(), bare_ns, 1);
  return ATTUNE_OK;
}
static void vendor_name(const at_plan *plan, char *out, size_t size) {
  snprintf(out, size, "%s threads=7", plan->implementation->name);
}

static int vendor_threads(const at_plan *plan) {
  (void)plan;
  return 2;
}
static attune_status vendor_team(const at_plan *plan, const at_bare_calls *calls) {
  (void)plan;
  bare_calls += calls->to - calls->from;
  for (int i = calls->from; i < calls->to; i++) toy_pass(at_now_ns(), bare_ns, 2);
  return ATTUNE_OK;
}

/* A quota of one CPU of two: attune's calls have one thread, the vendor's own has two all the same, and pays for both
 * in the long run. */
TEST(the_bare_call_pays_for_its_threads) {
  static const char *const spins[] = {"ns=170000,threads=1", NULL};
  const attune_decision *d = &result.decision;
  const double before = at_cpu_capacity();
  toy_base_implementation.bare = vendor_team;
  toy_base_implementation.bare_name = vendor_name;
  toy_base_implementation.bare_threads = vendor_threads;
  at_copy_text(toy_base, sizeof toy_base, "ns=200000,threads=1");
  bare_ns = 120000;
  at_cpu_capacity_set(1.0);
  const attune_status status = search(spins, 1500.0);
  at_cpu_capacity_set(before);
  toy_base_implementation.bare = NULL;
  toy_base_implementation.bare_name = NULL;
  toy_base_implementation.bare_threads = NULL;
  OK(status);
  assert_string_equal(d->implementation, "spin");
  assert_true(d->default_time_ns > 230000.0 && d->default_time_ns < 250000.0);
  assert_true(d->time_ns > 165000.0 && d->time_ns < 180000.0);
}

/* What attune adds to the vendor's call counts: the default's time is that of the call alone, the best way through
 * attune wins though it is slower, and nothing is called an improvement that is none. */
TEST(the_default_is_the_bare_call) {
  static const struct {
    int64_t bare_ns;
    const char *spin, *winner;
    double least, most;                                 /* of default / winner */
  } rows[] = {{50000, "ns=150000", "base", 0.40, 0.52}, /* base is 100000 through attune */
              {50000, "ns=70000", "spin", 0.60, 0.80},  /* slower than the bare call, and the best that attune has */
              {100000, "ns=50000", "spin", 1.70, 2.20}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    const char *const spins[] = {rows[i].spin, NULL};
    const attune_decision *d = &result.decision;
    toy_base_implementation.bare = vendor_call;
    toy_base_implementation.bare_name = vendor_name;
    at_copy_text(toy_base, sizeof toy_base, "ns=100000");
    bare_ns = rows[i].bare_ns;
    bare_calls = 0;
    const attune_status status = search(spins, 2000.0);
    toy_base_implementation.bare = NULL;
    toy_base_implementation.bare_name = NULL;
    OK(status);
    assert_string_equal(d->default_implementation, "base threads=7");
    assert_true(bare_calls > 0 && d->default_time_ns >= 0.9 * (double)rows[i].bare_ns);
    const double ratio = d->default_time_ns / d->time_ns;
    assert_string_equal(d->implementation, rows[i].winner);
    if (!(ratio > rows[i].least && ratio < rows[i].most)) fail_msg("row %zu: told %g", i, ratio);
    assert_true(ratio > 1.0 || strstr(d->note, "vendor's own call"));
    assert_true(i == 0 || d->runner_up_time_ns > 0.9 * d->time_ns); /* the bare call is no way through attune */
  }
}

/* The default through attune is no faster than its own call, whatever was measured: it cannot beat itself. */
TEST(the_default_does_not_beat_itself) {
  static const char *const spins[] = {"ns=300000", NULL};
  const attune_decision *d = &result.decision;
  toy_base_implementation.bare = vendor_call;
  at_copy_text(toy_base, sizeof toy_base, "ns=100000");
  bare_ns = 126000;
  const attune_status status = search(spins, 2000.0);
  toy_base_implementation.bare = NULL;
  OK(status);
  assert_string_equal(d->implementation, "base");
  assert_true(d->time_ns < 110000.0 && fabs(d->default_time_ns - d->time_ns) < 1e-9);
}

/* However short the budget, the default through attune is measured and verified. */
TEST(a_bare_default_and_no_time) {
  static const char *const spins[] = {"ns=5000000", NULL};
  toy_base_implementation.bare = vendor_call;
  at_copy_text(toy_base, sizeof toy_base, "ns=20000000");
  bare_ns = 19000000;
  const attune_status status = search(spins, 1.0);
  toy_base_implementation.bare = NULL;
  OK(status);
  assert_string_equal(result.decision.implementation, "base");
  assert_true(result.decision.time_ns >= 2e7 && result.decision.default_time_ns >= 1.9e7);
}

/* Of two that are as fast within the noise the first in order wins, whichever measured a hair better. */
TEST(equals_are_decided_by_order) {
  static at_candidate base, first, second;
  at_candidate *candidates[] = {&base, &first, &second};
  at_race race = {.candidates = candidates, .count = 3};
  base.state = first.state = second.state = AT_SCREENED;
  put_samples(&base, 100.0, 0.0, 11);
  put_samples(&first, 50.0, 0.0, 11);
  put_samples(&second, 49.95, 0.0, 11);
  at_race_judge(&base, &first);
  at_race_judge(&base, &second);
  assert_ptr_equal(at_race_winner(&race), &first);
  put_samples(&second, 49.0, 0.0, 11);
  at_race_judge(&base, &second);
  assert_ptr_equal(at_race_winner(&race), &second);
  second.state = AT_WRONG;
  assert_ptr_equal(at_race_winner(&race), &first);
  first.state = AT_SLOWER;
  assert_ptr_equal(at_race_winner(&race), &base);
}

TEST(a_candidate_joins_once) {
  at_race race = {0};
  const at_configuration one = {"ns=1"}, two = {"ns=2"};
  assert_non_null(at_race_add(&race, &toy_base_implementation, &one));
  assert_non_null(at_race_add(&race, &toy_spin_implementation, &one));
  assert_null(at_race_add(&race, &toy_base_implementation, &one));
  assert_non_null(at_race_add(&race, &toy_base_implementation, &two));
  assert_int_equal(race.count, 3);
  at_race_free(&race);
}

/* ---- the budget ---- */

enum { MANY = 200, CHARS = 32 };

/* Two hundred candidates of ten milliseconds each: a step is one of them, tried twice, and a round. */
TEST(the_budget_holds) {
  static char texts[MANY][CHARS];
  static const char *spins[MANY + 1];
  at_copy_text(toy_base, sizeof toy_base, "ns=10000000");
  for (int i = 0; i < MANY; i++) {
    snprintf(texts[i], CHARS, "ns=10000000,i=%d", i);
    spins[i] = texts[i];
  }
  static const double budgets_ms[] = {300.0, 600.0};
  for (size_t i = 0; i < AT_COUNT(budgets_ms); i++) {
    const int64_t start = at_now_ns();
    OK(search(spins, budgets_ms[i]));
    const double took_ms = (double)(at_now_ns() - start) * 1e-6;
    assert_false(result.decision.complete);
    assert_true(result.decision.samples >= 1);
    /* a screening round of what was made ready in two fifths of the budget, a race round, a verification */
    if (took_ms > 2.2 * budgets_ms[i] + 60.0) fail_msg("a budget of %g ms took %g ms", budgets_ms[i], took_ms);
  }
}

/* The default is measured whatever the budget is. */
TEST(a_budget_too_small_for_the_default) {
  static const char *const spins[] = {"ns=5000000", NULL};
  at_copy_text(toy_base, sizeof toy_base, "ns=20000000");
  OK(search(spins, 1.0));
  assert_string_equal(result.decision.implementation, "base");
  assert_true(result.decision.samples >= 1 && result.decision.time_ns > 2e7);
  assert_false(result.decision.complete);
}

static attune_tuner *tuner_of(double budget_ms, double total_budget_ms) {
  attune_tuner_options options = {
      .database = "", .mode = ATTUNE_MODE_TUNE, .budget_ms = budget_ms, .total_budget_ms = total_budget_ms};
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &options, toy_ops, 1));
  return tuner;
}

/* When the whole budget is spent, the next problems run their default, and asking to tune says why not. */
TEST(the_total_budget_holds) {
  static const char *const spins[] = {"ns=50000", NULL};
  toy_spins = spins;
  attune_tuner *tuner = tuner_of(150.0, 250.0);
  const int64_t start = at_now_ns();
  int tuned = 0, defaults = 0;
  for (int i = 0; i < 60; i++) {
    char problem[AT_PROBLEM_CHARS];
    snprintf(problem, sizeof problem, TOY("f32 %dx7"), 1 << (i % 12));
    if (i >= 12) snprintf(problem, sizeof problem, TOY("f32 7x%d"), 1 << (i % 12));
    if (i >= 24) snprintf(problem, sizeof problem, TOY("f%d %dx%d"), i % 2 ? 32 : 64, 1 << (i % 12), 20 + i / 12);
    const at_key key = toy_key(problem, device);
    const at_plan *plan = NULL;
    OK(at_dispatch_as(tuner, &toy_op, &key, 0, attune_stream_default(device), &plan));
    attune_decision decision;
    OK(attune_explain(tuner, device, problem, &decision));
    tuned += decision.source == ATTUNE_SOURCE_TUNED;
    defaults += decision.source == ATTUNE_SOURCE_DEFAULT;
  }
  const double took_ms = (double)(at_now_ns() - start) * 1e-6;
  assert_true(tuned >= 1 && defaults >= 1);
  if (took_ms > 1000.0) fail_msg("a total budget of 250 ms took %g ms", took_ms);
  FAILS_SAYING(attune_tune(tuner, device, TOY("f32 5x5"), NULL, NULL), ATTUNE_BUDGET_EXHAUSTED, "250 ms");
  attune_tuner_destroy(tuner);
}

/* ---- what is said of it ---- */

static char logged[512];
static void keep_log(void *user, attune_log_level level, const char *line) {
  (void)user;
  if (level == ATTUNE_LOG_WARNING) at_copy_text(logged, sizeof logged, line);
}

TEST(a_decision_has_all_its_evidence) {
  static const char *const spins[] = {"ns=50000", "ns=20000,fault=wrong", "ns=53000", NULL};
  toy_spins = spins;
  attune_tuner *tuner = tuner_of(3000.0, 0.0);
  attune_decision d;
  attune_set_log(keep_log, NULL, ATTUNE_LOG_WARNING);
  OK(attune_tune(tuner, device, TOY_PROBLEM, NULL, &d));
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF);
  assert_non_null(strstr(logged, "ns=20000,fault=wrong")); /* the log warns of what was wrong */
  assert_string_equal(d.problem, TOY_PROBLEM);
  assert_string_equal(d.device, "host");
  assert_string_equal(d.implementation, "spin");
  assert_string_equal(d.configuration, "ns=50000");
  assert_string_equal(d.default_implementation, "base");
  assert_string_equal(d.runner_up, "spin");
  assert_string_equal(d.runner_up_configuration, "ns=53000");
  assert_string_equal(d.measure, "hot,eager");
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  assert_true(d.implementation_version == 1 && d.samples > 0 && d.candidates >= 3 && d.rejected == 1 &&
              d.complete == 1);
  assert_true(d.time_ns > 0.0 && d.default_time_ns > d.time_ns && d.runner_up_time_ns > d.time_ns &&
              d.tuning_ms > 0.0 && d.tuned_at > 1600000000);
  assert_true(d.note[0] != '\0' && d.max_error >= 0.0);
  attune_decision explained;
  OK(attune_explain(tuner, device, TOY_PROBLEM, &explained));
  assert_memory_equal(&explained, &d, sizeof d);
  attune_tuner_destroy(tuner);
}

TEST(bad_arguments_of_tune) {
  attune_tuner *tuner = tuner_of(10.0, 0.0);
  assert_int_equal(attune_tune(tuner, device, TOY_PROBLEM, &(attune_tune_options){.budget_ms = 1e13}, NULL),
                   ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_tune(tuner, device, TOY_PROBLEM, &(attune_tune_options){.budget_ms = (double)NAN}, NULL),
                   ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_tune(NULL, device, TOY_PROBLEM, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS_SAYING(attune_tune(tuner, NULL, TOY_PROBLEM, NULL, NULL), ATTUNE_INVALID_ARGUMENT, "device is NULL");
  assert_int_equal(attune_tune(tuner, device, NULL, NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_tune(tuner, device, "toy f32 4 strict taps=1", NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_tune(tuner, device, "toy f32 0x4 strict taps=1", NULL, NULL), ATTUNE_INVALID_ARGUMENT);
  toy_op.implementation_count = 0;
  assert_int_equal(attune_tune(tuner, device, TOY_PROBLEM, NULL, NULL), ATTUNE_UNSUPPORTED);
  attune_tuner_destroy(tuner);
}

/* ---- a hard limit ---- */

/* The trusted result takes long, and looks at the limit in between. */
static double trusted_ms;

static attune_status slow_reference(void **out, const void *problem, attune_device *where, attune_stream *stream,
                                    void *const pointers[AT_MAX_BUFFERS]) {
  attune_status status = ATTUNE_OK;
  for (double done = 0.0; done < trusted_ms && status == ATTUNE_OK; done += 10.0) {
    virtual_clock_pass(10000000, 1.0);
    status = at_limit_look();
  }
  return status == ATTUNE_OK ? toy_reference_create(out, problem, where, stream, pointers) : status;
}

/* Whatever takes how long, a search ends half a second or one call behind its limit; and where there is time for the
 * default and for verification it has a result. */
TEST(a_hard_limit_holds_within_steps) {
  static const struct {
    const char *base;
    double most_ms, trusted_ms, call_ms;
    attune_status status;
  } rows[] = {{"ns=80000000", 15000.0, 10.0, 80.0, ATTUNE_OK},
              {"ns=80000000", 4000.0, 300.0, 80.0, ATTUNE_OK},
              {"ns=80000000", 1000.0, 10.0, 80.0, ATTUNE_BUDGET_EXHAUSTED},
              {"ns=200000", 300.0, 10.0, 0.2, ATTUNE_OK},
              {"ns=200000", 300.0, 60000.0, 0.2, ATTUNE_BUDGET_EXHAUSTED},
              {"ns=200000", 30.0, 1.0, 0.2, ATTUNE_OK},
              {"ns=5000000000", 1000.0, 10.0, 5000.0, ATTUNE_BUDGET_EXHAUSTED},
              {"ns=5000000000", 12000.0, 10.0, 5000.0, ATTUNE_BUDGET_EXHAUSTED}};
  enum { SPINS = 60 };
  static char names[SPINS][32];
  static const char *spins[SPINS + 1];
  const at_key key = toy_key(TOY_PROBLEM, device);
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    (void)fresh(NULL);
    at_copy_text(toy_base, sizeof toy_base, rows[i].base);
    for (int j = 0; j < SPINS; j++) { /* all nearly as fast, and some of them twice as slow */
      snprintf(names[j], sizeof names[j], "ns=%.0f", rows[i].call_ms * 1e6 * (j % 7 == 6 ? 2.0 : 0.9 + 0.001 * j));
      spins[j] = names[j];
    }
    toy_spins = spins;
    toy_reference_type.create = slow_reference;
    trusted_ms = rows[i].trusted_ms;
    timer->verify_ratio = 0.0;
    const int64_t start_ns = at_now_ns();
    const attune_status status =
        at_search(&result, timer, &toy_op, key.words + 1, ATTUNE_MEASURE_HOT_EAGER, 0.0, rows[i].most_ms * 1e6, NULL);
    const double over_ms = (double)(at_now_ns() - start_ns) * 1e-6 - rows[i].most_ms,
                 most_ms = rows[i].call_ms > 500.0 ? rows[i].call_ms : 500.0;
    toy_reference_type.create = toy_reference_create;
    if (over_ms > most_ms) fail_msg("row %zu: %.0f ms behind its limit", i, over_ms);
    if (status != rows[i].status) fail_msg("row %zu: %s", i, status ? attune_last_message() : "a result");
    assert_int_equal(at_limit_of(), AT_NO_LIMIT);
  }
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_timer_create(&timer, device) != ATTUNE_OK) return 1;
  virtual_clock_start();
  const int failed = RUN_TESTS_EACH(fresh, NULL, NULL, NULL);
  at_timer_destroy(timer);
  return failed;
}
