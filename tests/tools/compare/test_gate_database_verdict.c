/* SPDX-License-Identifier: Apache-2.0
 * Verdicts on stored winners: only what the stored noise allows. */
#include "tests/tools/compare/gate_noise.h"

#include "tools/compare/stats/database_verdict.h"

enum { PROBLEMS = 8 };
static gate_stored base[PROBLEMS], head[PROBLEMS];
static const gate_stored *bases[PROBLEMS], *heads[PROBLEMS];
static gate_judgement out[PROBLEMS];

FIXTURE(begin) {
  for (int i = 0; i < PROBLEMS; i++) {
    base[i] = (gate_stored){.ns = 1000.0 * (i + 1), .spread = 0.004, .placement = 0.001, .samples = 40, .sure = true};
    head[i] = base[i];
    head[i].ns *= 1.0 + 0.0005 * (i % 3);
    bases[i] = &base[i];
    heads[i] = &head[i];
  }
  return 0;
}

static void judge(void) {
  gate_judge_stored(out, bases, heads, PROBLEMS, &gate_rule_default);
}

static void is(size_t i, gate_verdict verdict, const char *why) {
  const gate_judgement *j = &out[i];
  if (j->verdict != verdict || (why ? !j->why || !strstr(j->why, why) : j->why != NULL))
    fail_msg("problem %zu: %s (%s), ratio %.4f [%.4f %.4f], p %g; should be %s (%s)", i, gate_verdict_name(j->verdict),
             j->why ? j->why : "-", j->ratio, j->low, j->high, j->p, gate_verdict_name(verdict), why ? why : "-");
}

TEST(tells_slower_faster_and_same) {
  head[0].ns *= 1.05;
  head[1].ns *= 0.95;
  judge();
  is(0, GATE_SLOWER, NULL);
  is(1, GATE_FASTER, NULL);
  for (size_t i = 2; i < PROBLEMS; i++) is(i, GATE_SAME, NULL);
  assert_true(fabs(out[0].ratio - 1.05) < 1e-9 && out[0].low < 1.05 && out[0].high > 1.05);
  assert_true(out[0].base_ns == 1000.0 && fabs(out[0].head_ns - 1050.0) < 1e-9 && !out[0].paired);
}

TEST(noise_that_was_stored_counts) {
  head[0].ns *= 1.05;
  head[1].ns *= 1.05;
  head[2].ns *= 1.05;
  head[0].spread = 0.3;
  base[1].placement = 0.05; /* one place in memory is one sample, however many times it was timed */
  head[2].samples = 4;
  head[3].spread = 0.5;
  judge();
  is(0, GATE_UNSURE, "stored noise");
  is(1, GATE_UNSURE, "stored noise");
  is(2, GATE_UNSURE, "too few samples");
  is(3, GATE_UNSURE, "stored noise");
}

TEST(what_the_search_left_open_stays_open) {
  head[0].ns *= 2.0;
  head[0].sure = false;
  base[1].sure = false;
  judge();
  is(0, GATE_UNSURE, "left the choice open");
  is(1, GATE_UNSURE, "left the choice open");
}

TEST(what_all_problems_share_is_the_machine) {
  for (int i = 0; i < PROBLEMS; i++) head[i].ns *= 1.1;
  judge();
  for (size_t i = 0; i < PROBLEMS; i++) is(i, GATE_UNSURE, "most cases changed together");
  head[3].ns *= 1.1;
  judge();
  is(3, GATE_SLOWER, NULL);
}

TEST(few_problems_need_a_larger_change) {
  head[0].ns *= 1.03;
  head[1].ns *= 1.08;
  gate_judge_stored(out, bases, heads, 2, &gate_rule_default);
  is(0, GATE_UNSURE, "the machine may have changed");
  is(1, GATE_SLOWER, NULL);
}

TEST(a_row_that_was_copied_is_the_same) {
  for (int i = 0; i < PROBLEMS; i++) {
    base[i].tuned_at = 1700000000 + i;
    base[i].spread = 0.3;
    base[i].sure = i % 2 == 0;
    head[i] = base[i];
  }
  head[0].tuned_at++;
  head[1].ns *= 1.01;
  base[2].tuned_at = head[2].tuned_at = 0;
  judge();
  is(0, GATE_UNSURE, "stored noise");
  is(1, GATE_UNSURE, "left the choice open");
  is(2, GATE_UNSURE, "stored noise");
  for (size_t i = 3; i < PROBLEMS; i++) is(i, GATE_SAME, NULL);
}

TEST(odd_rows_have_a_reason) {
  bases[0] = NULL;
  heads[1] = NULL;
  base[2].ns = 0.0;
  head[3].ns = NAN;
  base[4].spread = head[5].placement = NAN;
  head[6].samples = 0;
  base[7].spread = base[7].placement = head[7].spread = head[7].placement = 0.0;
  judge();
  is(0, GATE_MISSING, "only the head");
  is(1, GATE_MISSING, "only the base");
  is(2, GATE_FAILED, "base has no times");
  is(3, GATE_FAILED, "head has no times");
  is(5, GATE_UNSURE, "too few samples");
  is(6, GATE_UNSURE, "too few samples");
  is(7, GATE_SAME, NULL);
  for (size_t i = 0; i < PROBLEMS; i++) assert_true(out[i].p >= 0.0 && out[i].p_corrected <= 1.0);
  gate_judge_stored(out, bases, heads, 0, &gate_rule_default);
}

int main(void) {
  return RUN_TESTS_EACH(begin, NULL, NULL, NULL);
}
