/* SPDX-License-Identifier: Apache-2.0
 * Verdicts of one case: what is told, and why; odd input. How often they are wrong is in test_gate_rates.c. */
#include "tests/tools/compare/gate_noise.h"

#include "tools/compare/ranks/rank_test.h"
#include "tools/compare/stats/comparison.h"

enum { ROUNDS = 20, SAMPLES = 8, CASES = 8 };
static const noise quiet = {.process = 0.002, .sample = 0.004, .outliers = 0.02};
static suite s;
static gate_judgement out[CASES];

FIXTURE(begin) {
  noise_state = 11;
  suite_make(&s, CASES, NOISE_ROUNDS, NOISE_SAMPLES);
  suite_draw(&s, ROUNDS, SAMPLES, &quiet, 0.0);
  return 0;
}

FIXTURE(end) {
  suite_free(&s, NOISE_ROUNDS);
  return 0;
}

static void judge(bool alternated) {
  gate_judge(out, s.bases, s.heads, CASES, alternated, &gate_rule_default, 2);
}

/* Case i is `verdict`; `why` is in its reason, NULL: it has none. */
static void is(size_t i, gate_verdict verdict, const char *why) {
  const gate_judgement *j = &out[i];
  if (j->verdict != verdict || (why ? !j->why || !strstr(j->why, why) : j->why != NULL))
    fail_msg("case %zu: %s (%s), ratio %.4f [%.4f %.4f], p %g; should be %s (%s)", i, gate_verdict_name(j->verdict),
             j->why ? j->why : "-", j->ratio, j->low, j->high, j->p, gate_verdict_name(verdict), why ? why : "-");
}

static void scale(gate_case *c, double factor) {
  for (int r = 0; r < c->visit_count; r++)
    for (int i = 0; i < c->visits[r].sample_count; i++) c->visits[r].samples[i].ns *= factor;
}

static void set_clocks(gate_case *c, double mhz) {
  for (int r = 0; r < c->visit_count; r++) c->visits[r].clock_mhz = mhz;
}

/* A case may have a floor of its own; the last that holds its name counts. */
TEST(floors_of_their_own) {
  gate_rule rule = gate_rule_default;
  assert_true(gate_floor_of(&rule, "alloc/4M") == 0.01);
  rule.floors[rule.floor_count++] = (gate_floor){"alloc/=5", 6, 0.05};
  rule.floors[rule.floor_count++] = (gate_floor){"4M=0.2", 2, 0.002};
  assert_true(gate_floor_of(&rule, "alloc/4M") == 0.002);
  assert_true(gate_floor_of(&rule, "the alloc/") == 0.05);
  assert_true(gate_floor_of(&rule, "alloc") == 0.01 && gate_floor_of(&rule, NULL) == 0.01);
  char *const names[] = {s.head[1].name, s.base[1].name};
  s.head[1].name = s.base[1].name = (char *)(uintptr_t) "alloc/1";
  scale(&s.head[1], 1.03);
  scale(&s.head[2], 1.03);
  gate_judge(out, s.bases, s.heads, CASES, true, &rule, 2);
  is(1, GATE_SAME, NULL);
  is(2, GATE_SLOWER, NULL);
  assert_true(out[1].floor == 0.05 && out[2].floor == 0.01);
  s.head[1].name = names[0];
  s.base[1].name = names[1];
}

TEST(tells_slower_faster_and_same) {
  scale(&s.head[1], 1.03);
  scale(&s.head[2], 0.97);
  for (int alternated = 0; alternated < 2; alternated++) {
    judge(alternated);
    is(0, GATE_SAME, NULL);
    is(1, GATE_SLOWER, NULL);
    is(2, GATE_FASTER, NULL);
    assert_true(fabs(out[1].ratio - 1.03) < 0.005 && out[1].low < out[1].ratio && out[1].ratio < out[1].high);
    assert_true(out[1].p <= out[1].p_corrected && out[1].p_corrected <= 0.001);
    assert_true(out[1].paired == (bool)alternated && out[1].base_visits == ROUNDS && out[1].head_visits == ROUNDS);
    assert_true(fabs(out[1].base_ns - 1000.0) < 10.0 && out[1].base_spread > 0.0 && out[1].base_spread < 0.01);
  }
}

/* Certain, but less than the floor. */
TEST(a_small_change_does_not_count) {
  scale(&s.head[0], 1.005);
  judge(true);
  is(0, GATE_SAME, NULL);
  assert_true(out[0].p_corrected < 0.001);
  gate_judge(out, s.bases, s.heads, CASES, true, &(gate_rule){.floor = 0.002, .alpha = 0.002}, 1);
  is(0, GATE_SLOWER, NULL);
}

TEST(near_the_floor_is_unsure) {
  scale(&s.head[0], 1.0092 / exp(0.0));
  judge(true);
  if (out[0].verdict != GATE_SLOWER) is(0, GATE_UNSURE, "about as large");
  assert_true(out[0].high > 1.01);
}

TEST(few_rounds_are_unsure) {
  scale(&s.head[0], 1.2);
  for (int visits = 1; visits <= 12; visits++) {
    for (size_t i = 0; i < CASES; i++) s.base[i].visit_count = s.head[i].visit_count = visits;
    judge(true);
    is(0, GATE_UNSURE, "too few rounds");
  }
  s.base[1].visit_count = s.head[1].visit_count = 1;
  s.base[1].visits[0].sample_count = s.head[1].visits[0].sample_count = 1;
  judge(false);
  is(1, GATE_UNSURE, "too few rounds");
  assert_true(isnan(out[1].low) && isnan(out[1].high) && out[1].ratio > 0.9 && out[1].ratio < 1.1);
}

/* A rank test that was not corrected for the cases, or for the looks, would tell more. */
TEST(is_corrected_for_cases_and_looks) {
  for (size_t i = 0; i < CASES; i++) s.base[i].visit_count = s.head[i].visit_count = 12;
  scale(&s.head[0], 1.2);
  gate_judge(out, s.bases, s.heads, 1, true, &gate_rule_default, 1); /* 2^-11 < 0.002 */
  is(0, GATE_SLOWER, NULL);
  const gate_rule rule = {.floor = 0.01, .alpha = 0.0009};
  gate_judge(out, s.bases, s.heads, 1, true, &rule, 1);
  is(0, GATE_SLOWER, NULL);
  gate_judge(out, s.bases, s.heads, 1, true, &rule, 4); /* > 0.00045: half of it for the first look */
  is(0, GATE_UNSURE, "too few rounds");
  gate_judge(out, s.bases, s.heads, CASES, true, &gate_rule_default, 1);
  is(0, GATE_UNSURE, "too few rounds");
  assert_true(fabs(out[0].p_corrected - CASES * out[0].p) < 1e-12);
}

/* All looks together, and one more wherever time ends them, have no more than alpha. */
TEST(looks_share_alpha) {
  for (int first = 1; first <= 300; first++) {
    double spent = 0, sum = gate_look_share(first);
    int looks = 1;
    for (int at = first, next; (next = gate_next_look(at, &spent)); at = next, looks++) {
      assert_true(spent == sum && next > at && next <= GATE_MOST_VALUES);
      for (int stopped = at + 1; stopped <= next; stopped++) assert_true(sum + gate_look_share(stopped) <= 1.0);
      sum += gate_look_share(next);
    }
    assert_true(sum <= 1.0 && looks <= GATE_LOOKS);
    if (first == 24) assert_true(sum == 1.0 && looks == GATE_LOOKS);
  }
  /* By the last round of a case, not by how many it took part in: a slow one has the others' looks. */
  const gate_rule rule = {.floor = 0.01, .alpha = 0.004};
  for (size_t i = 0; i < CASES; i++) s.base[i].visit_count = s.head[i].visit_count = 10;
  scale(&s.head[0], 1.2);
  gate_judge(out, s.bases, s.heads, 1, true, &rule, GATE_LOOKS); /* 0.00195 < 0.002 */
  is(0, GATE_SLOWER, NULL);
  assert_true(fabs(out[0].p_corrected - 2 * out[0].p) < 1e-12);
  s.base[0].visits[9].round = s.head[0].visits[9].round = 47;
  gate_judge(out, s.bases, s.heads, 1, true, &rule, GATE_LOOKS);
  is(0, GATE_UNSURE, "too few rounds");
  gate_judge(out, s.bases, s.heads, 1, false, &rule, GATE_LOOKS); /* runs that did not alternate had one look */
  assert_true(out[0].p_corrected < 0.004);
}

TEST(rounds_that_a_verdict_needs) {
  assert_int_equal(gate_judge_least_rounds(&gate_rule_default, 1, GATE_LOOKS), 11);
  assert_int_equal(gate_judge_least_rounds(&gate_rule_default, 50, GATE_LOOKS), 17);
  assert_int_equal(gate_judge_least_rounds(&gate_rule_default, 50, 1), 16);
  assert_int_equal(gate_judge_least_rounds(&(gate_rule){.alpha = 1e-12}, 100000, GATE_LOOKS), 60);
  for (int i = 0; i < 2; i++) { /* as many are enough, and one fewer is not */
    for (size_t c = 0; c < CASES; c++) s.base[c].visit_count = s.head[c].visit_count = 11 - i;
    if (!i) scale(&s.head[0], 1.2);
    gate_judge(out, s.bases, s.heads, 1, true, &gate_rule_default, GATE_LOOKS);
    is(0, i ? GATE_UNSURE : GATE_SLOWER, i ? "too few rounds" : NULL);
  }
}

/* Holm's method: the next largest p counts one case less, and none less than the one before. */
TEST(holm_steps_down) {
  scale(&s.head[0], 1.2);
  scale(&s.head[1], 1.2);
  judge(true);
  const double least = ldexp(1.0, 1 - ROUNDS);
  assert_true(fabs(out[0].p - least) < 1e-15 && fabs(out[1].p - least) < 1e-15);
  /* twice, for the first look has half of alpha */
  const double each = 2 * CASES * least;
  assert_true(fabs(out[0].p_corrected - each) < 1e-12 && fabs(out[1].p_corrected - each) < 1e-12);
  for (size_t i = 0; i < CASES; i++) assert_true(out[i].p_corrected >= out[i].p && out[i].p_corrected <= 1.0);
}

TEST(noise_is_unsure) {
  const noise loud = {.process = 0.08, .sample = 0.02, .heavy = true};
  suite_draw(&s, ROUNDS, SAMPLES, &loud, 0.0);
  judge(true);
  is(0, GATE_UNSURE, "");
}

TEST(odd_input_has_a_reason) {
  s.heads[0] = NULL;
  s.bases[1] = NULL;
  s.base[2].state = GATE_CASE_FAILED;
  s.head[3].visit_count = 0;
  for (int r = 0; r < ROUNDS; r++)
    for (int i = 0; i < SAMPLES; i++)
      s.head[4].visits[r].samples[i].ns = i % 3 == 0 ? NAN : i % 3 == 1 ? 0.0 : INFINITY;
  for (int r = 0; r < ROUNDS; r++) s.base[5].visits[r].throttled = true;
  for (int r = 0; r < ROUNDS; r++) s.base[6].visits[r].round = r + 100;
  for (int alternated = 0; alternated < 2; alternated++) {
    judge(alternated);
    is(0, GATE_MISSING, "only the base has it");
    is(1, GATE_MISSING, "only the head has it");
    is(2, GATE_REPAIRED, "it failed in the base");
    is(3, GATE_FAILED, "the head has no times");
    is(4, GATE_FAILED, "the head has no times");
    is(5, GATE_UNSURE, "throttled");
    is(7, GATE_SAME, NULL);
    assert_true(isnan(out[0].ratio) && out[0].p == 1.0);
  }
  is(6, GATE_UNSURE, "no round has both sides");
  s.heads[0] = s.bases[1] = NULL;
  s.bases[0] = NULL;
  judge(true);
  is(0, GATE_MISSING, "");
  gate_judge(NULL, NULL, NULL, 0, true, &gate_rule_default, 1);
}

/* Single samples that are no times are left out, not the visit. */
TEST(bad_samples_are_left_out) {
  for (int r = 0; r < ROUNDS; r++) s.head[0].visits[r].samples[r % SAMPLES].ns = r % 2 ? NAN : 0.0;
  judge(true);
  is(0, GATE_SAME, NULL);
}

TEST(throttled_visits_are_left_out) {
  for (int r = 0; r < 3; r++) {
    s.head[0].visits[r].throttled = true;
    for (int i = 0; i < SAMPLES; i++) s.head[0].visits[r].samples[i].ns *= 2.0;
  }
  judge(true);
  is(0, GATE_SAME, NULL);
  assert_int_equal(out[0].head_visits, ROUNDS - 3);
}

TEST(identical_samples_are_the_same) {
  for (int r = 0; r < ROUNDS; r++)
    for (int i = 0; i < SAMPLES; i++) s.base[0].visits[r].samples[i].ns = s.head[0].visits[r].samples[i].ns = 100.0;
  judge(true);
  is(0, GATE_SAME, NULL);
  judge(false);
  is(0, GATE_SAME, NULL);
}

/* Slower, and the clock was lower by as much: it was not the code. In cycles as in time: it was. */
TEST(must_hold_in_cycles) {
  for (size_t i = 0; i < 4; i++) scale(&s.head[i], 1.05);
  for (size_t i = 0; i < 3; i++) set_clocks(&s.base[i], 2000.0);
  set_clocks(&s.head[0], 2000.0 / 1.05);
  set_clocks(&s.head[1], 2000.0);
  judge(true);
  is(0, GATE_UNSURE, "the clock differed");
  is(1, GATE_SLOWER, NULL);
  is(2, GATE_SLOWER, NULL); /* one side's is not known */
  is(3, GATE_SLOWER, NULL);
  assert_true(out[0].base_clock == 2000.0 && out[2].head_clock == 0.0);
}

/* Most of it was the clock, and what is left in cycles is certain but does not count. */
TEST(the_rest_of_a_change_must_count) {
  scale(&s.head[0], 1.05);
  set_clocks(&s.base[0], 2000.0);
  set_clocks(&s.head[0], 2000.0 / 1.045);
  judge(true);
  assert_true(out[0].p_corrected < 0.001);
  is(0, GATE_UNSURE, "the clock differed");
}

/* Equal times at half the clock are no change that counts; neither are more cycles alone. */
TEST(the_clock_alone_is_no_change) {
  set_clocks(&s.base[0], 1000.0);
  set_clocks(&s.head[0], 2000.0);
  judge(true);
  is(0, GATE_SAME, NULL);
}

/* Runs of different times: what all cases share is the machine's. */
TEST(what_most_cases_share_is_the_machine) {
  for (size_t i = 0; i < CASES; i++) scale(&s.head[i], 1.04);
  scale(&s.head[0], 1.10);
  judge(false);
  is(0, GATE_SLOWER, NULL);
  for (size_t i = 1; i < CASES; i++) is(i, GATE_UNSURE, "most cases changed together");
  scale(&s.head[0], 1.0 / (1.04 * 1.10)); /* as before, while the others became slower: not faster */
  judge(false);
  is(0, GATE_SAME, NULL);
  judge(true); /* alternated: the machine was the same for both */
  for (size_t i = 1; i < CASES; i++) is(i, GATE_SLOWER, NULL);
}

/* Cases that move by very different amounts, as with another load, do not count each for itself. */
TEST(a_change_must_stand_out) {
  for (size_t i = 0; i < CASES; i++) scale(&s.head[i], 1.0 + 0.02 * ((double)i - 3.0));
  judge(false);
  for (size_t i = 0; i < CASES; i++)
    if (out[i].verdict == GATE_SLOWER || out[i].verdict == GATE_FASTER)
      fail_msg("case %zu is %s", i, gate_verdict_name(out[i].verdict));
}

TEST(a_few_cases_do_not_show_the_machine) {
  scale(&s.head[0], 1.03);
  gate_judge(out, s.bases, s.heads, 2, false, &gate_rule_default, 1);
  is(0, GATE_UNSURE, "the machine may have changed");
  scale(&s.head[0], 1.03);
  gate_judge(out, s.bases, s.heads, 2, false, &gate_rule_default, 1);
  is(0, GATE_SLOWER, NULL);
}

TEST(many_visits_are_enough) {
  enum { MANY = 5000 };
  gate_sample sample = {.ns = 10.0};
  gate_visit *visits = gate_alloc(MANY, sizeof *visits);
  for (int i = 0; i < MANY; i++)
    visits[i] = (gate_visit){.round = i, .calls = 1, .samples = &sample, .sample_count = 1};
  gate_case one = made_up_case("many");
  one.visits = visits;
  one.visit_count = MANY;
  const gate_case *side = &one;
  for (int alternated = 0; alternated < 2; alternated++) {
    gate_judge(out, &side, &side, 1, alternated, &gate_rule_default, 1);
    is(0, GATE_SAME, NULL);
  }
  free(visits);
}

TEST(verdicts_have_names) {
  assert_string_equal(gate_verdict_name(GATE_SAME), "same");
  assert_string_equal(gate_verdict_name(GATE_FASTER), "faster");
  assert_string_equal(gate_verdict_name(GATE_SLOWER), "slower");
  assert_string_equal(gate_verdict_name(GATE_UNSURE), "unsure");
  assert_string_equal(gate_verdict_name(GATE_FAILED), "failed");
  assert_string_equal(gate_verdict_name(GATE_MISSING), "missing");
  assert_string_equal(gate_verdict_name((gate_verdict)99), "unknown");
}

int main(void) {
  return RUN_TESTS_EACH(begin, end, NULL, NULL);
}
