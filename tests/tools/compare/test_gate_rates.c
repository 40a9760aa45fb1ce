/* SPDX-License-Identifier: Apache-2.0
 * How often verdicts are wrong, on made-up suites of 50 cases: alarms where nothing changed, at every kind of noise,
 * and changes that are missed. ATTUNE_TEST_SUITES: how many suites (2000 for figures to tell). */
#include "tests/tools/compare/gate_noise.h"

#include "tools/compare/stats/comparison.h"

enum { CASES = 50, ROUNDS = 24, SAMPLES = 3 };

static const struct kind {
  const char *name;
  noise noise;
} kinds[] = {
    {"normal 1 %", {.process = 0.01, .sample = 0.01}},
    {"heavy tails", {.process = 0.01, .sample = 0.01, .heavy = true}},
    {"outliers", {.process = 0.005, .sample = 0.01, .outliers = 0.2}},
    {"two kinds of process", {.process = 0.002, .sample = 0.005, .bimodal = 0.08}},
    {"a machine that drifts", {.process = 0.005, .sample = 0.005, .drift = 0.05}},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int suites(int few) {
  const char *told = getenv("ATTUNE_TEST_SUITES");
  return told ? atoi(told) : few;
}

typedef struct rates {
  int suites;
  int alarmed; /* suites with any wrong slower or faster */
  int found;   /* with the changed case told as slower */
  int same, unsure, cases;
} rates;

static void judge(const suite *s, rates *r, bool alternated, double alpha, int looks, bool changed) {
  static gate_judgement out[CASES];
  const gate_rule rule = {.floor = 0.01, .alpha = alpha};
  bool alarm = false;
  gate_judge(out, s->bases, s->heads, CASES, alternated, &rule, looks);
  for (int i = changed; i < CASES; i++) {
    alarm |= out[i].verdict == GATE_SLOWER || out[i].verdict == GATE_FASTER;
    r->same += out[i].verdict == GATE_SAME;
    r->unsure += out[i].verdict == GATE_UNSURE;
    r->cases++;
  }
  r->suites++;
  r->alarmed += alarm;
  r->found += changed && out[0].verdict == GATE_SLOWER;
}

static rates run(const noise *n, int count, bool alternated, double alpha, double slower) {
  rates r = {0};
  suite s;
  suite_make(&s, CASES, ROUNDS, SAMPLES);
  for (int i = 0; i < count; i++) {
    suite_draw(&s, ROUNDS, SAMPLES, n, slower);
    judge(&s, &r, alternated, alpha, 1, slower > 0.0);
  }
  suite_free(&s, ROUNDS);
  return r;
}

/* More than this of `suites` happen by chance once in a thousand times at most, at a chance of `alpha` each. */
static int most_by_chance(int suites, double alpha) {
  const double mean = suites * alpha;
  return (int)(mean + 3.3 * sqrt(mean) + 2.0);
}

/* A large alpha, for an error that a few hundred suites show; the floor is crossed by noise like this. */
TEST(alarms_are_as_rare_as_promised) {
  const double alphas[] = {0.1, 0.002};
  noise_state = 101;
  for (int k = 0; k < KINDS; k++)
    for (int a = 0; a < 2; a++) {
      const rates r = run(&kinds[k].noise, suites(12), true, alphas[a], 0.0);
      print_message("%-22s alpha %.3f: %d of %d suites alarmed, %.0f %% same, %.0f %% unsure\n", kinds[k].name,
                    alphas[a], r.alarmed, r.suites, 100.0 * r.same / r.cases, 100.0 * r.unsure / r.cases);
      if (r.alarmed > most_by_chance(r.suites, alphas[a]))
        fail_msg("%s: %d of %d suites with an alarm at alpha %g", kinds[k].name, r.alarmed, r.suites, alphas[a]);
    }
}

/* The test alone, with a floor of nothing, on noise that is not symmetric within a side: the promise is used up, not
 * undercut by accident. */
TEST(the_promise_is_kept_without_a_floor) {
  suite s;
  int alarmed = 0;
  const int count = suites(60);
  noise_state = 102;
  suite_make(&s, CASES, ROUNDS, SAMPLES);
  for (int i = 0; i < count; i++) {
    gate_judgement out[CASES];
    const gate_rule rule = {.floor = 0.0, .alpha = 0.1};
    bool alarm = false;
    suite_draw(&s, ROUNDS, SAMPLES, &kinds[3].noise, 0.0);
    gate_judge(out, s.bases, s.heads, CASES, true, &rule, 1);
    for (int c = 0; c < CASES; c++) alarm |= out[c].verdict == GATE_SLOWER || out[c].verdict == GATE_FASTER;
    alarmed += alarm;
  }
  suite_free(&s, ROUNDS);
  print_message("without a floor, alpha 0.1: %d of %d suites alarmed\n", alarmed, count);
  if (alarmed > most_by_chance(count, 0.1)) fail_msg("%d of %d suites alarmed at alpha 0.1", alarmed, count);
  if (count >= 1000 && alarmed < count / 50)
    fail_msg("%d of %d suites alarmed at alpha 0.1: the test is far too careful", alarmed, count);
}

/* The rounds of a look, as `attune bench' plans them; 0: there is none. */
static int rounds_of(int look) {
  double spent = 0;
  int rounds = ROUNDS;
  for (int i = 0; rounds && i < look; i++) rounds = gate_next_look(rounds, &spent);
  return rounds;
}

typedef struct looked {
  int alarmed, found;       /* at any look, as in `rates' */
  int found_at[GATE_LOOKS]; /* ... at this look or before */
  int rounds;               /* that all cases took part in */
} looked;

/* One suite to its end: what is unsure goes on to the next look, and a verdict stays. */
static void look_on(suite *s, const gate_rule *rule, int looks, bool changed, looked *sum) {
  static gate_judgement out[CASES];
  bool active[CASES], alarm = false, found = false;
  for (int c = 0; c < CASES; c++) active[c] = true;
  for (int look = 0; look < looks; look++) {
    for (int c = 0; c < CASES; c++)
      if (active[c]) s->base[c].visit_count = s->head[c].visit_count = rounds_of(look);
    gate_judge(out, s->bases, s->heads, CASES, true, rule, looks);
    for (int c = 0; c < CASES; c++) {
      if (!active[c]) continue;
      sum->rounds += rounds_of(look) - (look ? rounds_of(look - 1) : 0);
      active[c] = out[c].verdict == GATE_UNSURE;
      const bool wrong = c >= changed && (out[c].verdict == GATE_SLOWER || out[c].verdict == GATE_FASTER);
      alarm |= wrong;
      found |= changed && c == 0 && out[c].verdict == GATE_SLOWER;
    }
    sum->found_at[look] += found;
  }
  sum->alarmed += alarm;
  sum->found += found;
}

static looked looks_at(const noise *n, const gate_rule *rule, int looks, int count, double slower) {
  looked sum = {0};
  suite s;
  const int rounds = rounds_of(looks - 1);
  suite_make(&s, CASES, rounds, SAMPLES);
  for (int i = 0; i < count; i++) {
    suite_draw(&s, rounds, SAMPLES, n, slower);
    look_on(&s, rule, looks, slower > 0.0, &sum);
  }
  suite_free(&s, rounds);
  return sum;
}

/* Unsure cases go on and are judged again, four times at most: the looks share alpha. The floor is low and the tails
 * are heavy, so that most suites have cases that go on to the last look. */
TEST(more_looks_do_not_add_alarms) {
  const gate_rule rule = {.floor = 0.002, .alpha = 0.2};
  const int count = suites(6);
  noise_state = 103;
  const looked all = looks_at(&kinds[1].noise, &rule, GATE_LOOKS, count, 0.0);
  print_message("%d looks, alpha 0.2: %d of %d suites alarmed, %.0f rounds a case\n", GATE_LOOKS, all.alarmed, count,
                (double)all.rounds / CASES / count);
  if (all.alarmed > most_by_chance(count, 0.2)) fail_msg("%d of %d suites alarmed at alpha 0.2", all.alarmed, count);
  if (all.rounds < CASES * count * ROUNDS * 2) fail_msg("the later looks were hardly used");
}

/* A lasting change is found eventually. */
TEST(later_looks_find_more) {
  const noise n = {.process = 0.01, .sample = 0.005, .outliers = 0.05};
  const int count = suites(6);
  noise_state = 106;
  const looked all = looks_at(&n, &gate_rule_default, GATE_LOOKS, count, 0.02);
  for (int i = 0; i < GATE_LOOKS; i++)
    print_message("process noise 1 %%, 2 %% slower: found %d of %d by round %d\n", all.found_at[i], count,
                  rounds_of(i));
  if (all.alarmed > most_by_chance(count, 0.002)) fail_msg("%d false alarms", all.alarmed);
  if (10 * all.found < 9 * count) fail_msg("found %d of %d", all.found, count);
}

TEST(changes_are_found) {
  const struct {
    double process, slower;
    int least; /* of 100 */
  } powers[] = {{0.005, 0.03, 97}, {0.005, 0.015, 80}, {0.01, 0.03, 90}, {0.01, 0.015, 15}, {0.02, 0.03, 15}};
  noise_state = 104;
  for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++)
    for (int heavy = 0; heavy < 2; heavy++) {
      const noise n = {.process = powers[i].process, .sample = 0.005, .outliers = 0.05, .heavy = heavy};
      const rates r = run(&n, suites(12), true, 0.002, powers[i].slower);
      const int least = heavy ? powers[i].least / 3 : powers[i].least;
      print_message("process noise %.1f %%%s, %.1f %% slower: found %d of %d, false %d\n", 100.0 * powers[i].process,
                    heavy ? ", heavy tails" : "", 100.0 * powers[i].slower, r.found, r.suites, r.alarmed);
      if (100 * r.found < least * r.suites)
        fail_msg("%.1f %% slower at noise of %.1f %%: found %d of %d", 100.0 * powers[i].slower,
                 100.0 * powers[i].process, r.found, r.suites);
      if (r.alarmed > most_by_chance(r.suites, 0.002)) fail_msg("%d false alarms", r.alarmed);
    }
}

/* Not alternated there is no exact promise; where the machine drifts alike for all cases alarms are rare all the
 * same. */
TEST(a_machine_that_changed_raises_no_alarm) {
  suite s;
  int alarmed = 0;
  const int count = suites(12);
  noise_state = 105;
  suite_make(&s, CASES, ROUNDS, SAMPLES);
  for (int i = 0; i < count; i++) {
    gate_judgement out[CASES];
    bool alarm = false;
    suite_draw(&s, ROUNDS, SAMPLES, &kinds[0].noise, 0.0);
    const double machine = 1.0 + 0.2 * noise_uniform();
    for (int c = 0; c < CASES; c++) {
      const double own = machine * exp(0.01 * noise_normal()); /* each case its own share */
      for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < SAMPLES; k++) s.head[c].visits[r].samples[k].ns *= own;
    }
    gate_judge(out, s.bases, s.heads, CASES, false, &gate_rule_default, 1);
    for (int c = 0; c < CASES; c++) alarm |= out[c].verdict == GATE_SLOWER || out[c].verdict == GATE_FASTER;
    alarmed += alarm;
  }
  suite_free(&s, ROUNDS);
  print_message("another machine state: %d of %d suites alarmed\n", alarmed, count);
  if (alarmed > most_by_chance(count, 0.02)) fail_msg("%d of %d suites alarmed", alarmed, count);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
