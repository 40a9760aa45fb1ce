/* SPDX-License-Identifier: Apache-2.0
 * verdict.c: did a case become slower?
 *
 * What is counted is a process, not a sample: samples of one process share where its memory lies and which CPU it got,
 * so many of them prove nothing about the next process (Kalibera and Jones, Rigorous benchmarking in reasonable time,
 * ISMM 2013). per_process_values.c makes one value of each.
 *
 * Runs that alternated: a round gives one difference of logarithms. Who begins is drawn in each, so without a change
 * the difference is as likely positive as negative, whatever the noise looks like, and Wilcoxon's signed ranks have
 * exactly the error that they claim. Holm's method (A simple sequentially rejective multiple test procedure,
 * Scandinavian Journal of Statistics 6, 1979) keeps the chance of any wrong verdict among all cases below alpha, and so
 * it stays when unsure ones are looked at again: a look at a case takes a share of alpha that its number of rounds
 * sets, and the next look comes at twice as many; all shares that one case can meet add up to 1 at most, wherever time
 * ends it (Pocock's bound would share them better, but for normal values only). A change that is
 * certain but small does not count: the estimate must lie beyond the floor too. "same" is what a confidence interval of
 * 95 % within the floors shows.
 *
 * Runs of different times: the rank sums of the two groups of visits, and no exact error any more, for the machine may
 * have changed in between. What most cases share is then the machine's: a verdict must hold for the time as it is and
 * relative to the median case, and must stand out from how far the other cases moved. */
#include "tools/compare/stats/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/message.h"
#include "tools/compare/stats/multiple_testing.h"
#include "tools/compare/stats/per_process_values.h"

const gate_rule gate_rule_default = {.floor = 0.01, .alpha = 0.002};

static const double LEVEL = 0.95;

static const char TOO_FEW[] = "too few rounds", NOISE[] = "the noise exceeds the threshold",
                  NEAR[] = "about as large as the threshold", HINT[] = "chance could also cause this change",
                  CLOCK[] = "the clock differed", NO_ROUND[] = "no round has both sides",
                  THROTTLED[] = "throttled all the time", BASE_EMPTY[] = "the base has no times",
                  HEAD_EMPTY[] = "the head has no times", BASE_FAILED[] = "it failed in the base",
                  BASE_ONLY[] = "only the base has it", HEAD_ONLY[] = "only the head has it";

/* A case on its way to a verdict. */
typedef struct subject {
  gate_judgement *out;
  gate_side base, head;
  gate_values time, cycles;
  bool judged;  /* it has values on both sides */
  bool clocked; /* cycles are known */
  double share; /* of alpha, that this look takes */
  gate_estimate shift, cycles_shift;
  double p_time, p_cycles, p_relative;
} subject;

static void summarize(const gate_side *side, double *ns, double *spread, double *clock, int *visits) {
  double values[GATE_MOST_VALUES];
  int clocks = 0;
  for (int i = 0; i < side->count; i++) values[i] = side->ns[i];
  *visits = side->count;
  *ns = gate_median(values, side->count);
  for (int i = 0; i < side->count; i++) values[i] = fabs(side->ns[i] - *ns);
  *spread = *ns > 0.0 ? 1.4826 * gate_median(values, side->count) / *ns : 0.0;
  for (int i = 0; i < side->count; i++)
    if (side->clock[i] > 0.0) values[clocks++] = side->clock[i];
  *clock = gate_median(values, clocks);
}

static void settle(subject *s, gate_verdict verdict, const char *why) {
  s->judged = false;
  s->out->verdict = verdict;
  s->out->why = why;
}

/* Has it values on both sides? Else its verdict is settled. */
static void gather(subject *s, const gate_case *base, const gate_case *head, bool paired, const gate_rule *rule) {
  gate_judgement *out = s->out;
  const char *name = head ? head->name : base ? base->name : NULL;
  *out = (gate_judgement){.ratio = NAN, .low = NAN, .high = NAN, .p = 1.0, .p_corrected = 1.0, .paired = paired};
  out->floor = gate_floor_of(rule, name);
  s->base.count = s->base.throttled = s->head.count = s->head.throttled = 0;
  if (base) gate_side_make(&s->base, base);
  if (head) gate_side_make(&s->head, head);
  summarize(&s->base, &out->base_ns, &out->base_spread, &out->base_clock, &out->base_visits);
  summarize(&s->head, &out->head_ns, &out->head_spread, &out->head_clock, &out->head_visits);
  s->judged = gate_values_make(&s->time, &s->base, &s->head, paired, false);
  if (s->judged) out->ratio = out->head_ns / out->base_ns;
  if (!base && head && head->state == GATE_CASE_FAILED)
    settle(s, GATE_FAILED, HEAD_EMPTY); /* new, and it does not run */
  else if (!base || !head)
    settle(s, GATE_MISSING, base ? BASE_ONLY : HEAD_ONLY);
  else if (base->state == GATE_CASE_FAILED && head->state != GATE_CASE_FAILED && s->head.count)
    settle(s, GATE_REPAIRED, BASE_FAILED);
  else if (base->state == GATE_CASE_FAILED || (!s->base.count && !s->base.throttled))
    settle(s, GATE_FAILED, BASE_EMPTY);
  else if (head->state == GATE_CASE_FAILED || (!s->head.count && !s->head.throttled))
    settle(s, GATE_FAILED, HEAD_EMPTY);
  else if (!s->base.count || !s->head.count)
    settle(s, GATE_UNSURE, THROTTLED);
  else if (!s->judged)
    settle(s, GATE_UNSURE, NO_ROUND);
}

static void test(subject *s) {
  gate_judgement *out = s->out;
  s->shift = gate_values_shift(&s->time, LEVEL);
  s->p_time = s->p_cycles = s->p_relative = gate_values_p(&s->time);
  s->clocked = gate_values_make(&s->cycles, &s->base, &s->head, s->time.paired, true);
  if (s->clocked) {
    s->cycles_shift = gate_values_shift(&s->cycles, LEVEL);
    s->p_cycles = gate_values_p(&s->cycles);
  }
  out->ratio = exp(s->shift.shift);
  out->low = exp(s->shift.low);
  out->high = exp(s->shift.high);
}

/* What the cases of two runs of different times have in common. */
static gate_drift find_drift(const subject *subjects, size_t count) {
  size_t judged = 0;
  double *shifts = gate_alloc(count + 1, sizeof *shifts);
  for (size_t i = 0; i < count; i++)
    if (subjects[i].judged) shifts[judged++] = subjects[i].shift.shift;
  const gate_drift out = gate_drift_of(shifts, judged);
  free(shifts);
  return out;
}

static void test_relative(subject *s, const gate_drift *d) {
  gate_values moved = s->time;
  if (!d->known) return;
  for (int i = 0; i < moved.head_count; i++) moved.head[i] -= d->shift;
  s->p_relative = gate_values_p(&moved);
}

static void correct(subject *subjects, size_t count) {
  double *p = gate_alloc(count + 1, sizeof *p), *corrected = gate_alloc(count + 1, sizeof *corrected);
  size_t judged = 0;
  for (size_t i = 0; i < count; i++)
    if (subjects[i].judged) p[judged++] = subjects[i].out->p / subjects[i].share;
  gate_holm(p, judged, corrected);
  for (size_t i = 0, k = 0; i < count; i++)
    if (subjects[i].judged) subjects[i].out->p_corrected = corrected[k++];
  free(corrected);
  free(p);
}

/* Why a change that the times show may be none of the code's; NULL: it is. */
static const char *excuse(const subject *s, const gate_drift *d, int direction, double margin) {
  if (s->clocked && !gate_counts(s->cycles_shift.shift, direction, margin)) return CLOCK;
  return s->time.paired ? NULL : gate_drift_excuse(d, s->shift.shift, direction, margin);
}

static void unsure(subject *s, double alpha, size_t cases) {
  const double many = (double)cases / s->share;
  const char *why = NOISE;
  if (gate_values_least_p(&s->time) * many > alpha)
    why = TOO_FEW;
  else if (s->p_time * many <= alpha && s->out->p_corrected > alpha)
    why = s->p_cycles > s->p_time ? CLOCK : gate_why_together;
  else if (s->out->p_corrected <= alpha)
    why = NEAR;
  else if (s->p_time < 0.01)
    why = HINT;
  settle(s, GATE_UNSURE, why);
}

static void decide(subject *s, const gate_rule *rule, const gate_drift *d, size_t cases) {
  const double margin = log1p(s->out->floor);
  const int direction = s->shift.shift > 0.0 ? 1 : -1;
  if (s->out->p_corrected <= rule->alpha && gate_counts(s->shift.shift, direction, margin)) {
    const char *why = excuse(s, d, direction, margin);
    settle(s, why ? GATE_UNSURE : direction > 0 ? GATE_SLOWER : GATE_FASTER, why);
  } else if (s->shift.low > -margin && s->shift.high < margin) {
    settle(s, GATE_SAME, NULL);
  } else {
    unsure(s, rule->alpha, cases);
  }
}

/* That were planned for it when it was last visited: one that is slow takes part in fewer. */
static int rounds_of(const gate_case *base, const gate_case *head) {
  const gate_case *const sides[] = {base, head};
  int last = 0;
  for (int side = 0; side < 2; side++)
    for (int i = 0; sides[side] && i < sides[side]->visit_count; i++)
      if (sides[side]->visits[i].round >= last) last = sides[side]->visits[i].round + 1;
  return last;
}

void gate_judge(gate_judgement *out, const gate_case *const *base, const gate_case *const *head, size_t count,
                bool alternated, const gate_rule *rule, int looks) {
  subject *subjects = gate_alloc(count ? count : 1, sizeof *subjects);
  size_t judged = 0;
  gate_drift d = {0};
  for (size_t i = 0; i < count; i++) {
    subjects[i].out = &out[i];
    gather(&subjects[i], base[i], head[i], alternated, rule);
    subjects[i].share = looks > 1 ? gate_look_share(alternated ? rounds_of(base[i], head[i]) : 0) : 1.0;
    if (subjects[i].judged) test(&subjects[i]);
    judged += subjects[i].judged;
  }
  if (!alternated) d = find_drift(subjects, count);
  for (size_t i = 0; i < count; i++) {
    subject *s = &subjects[i];
    if (!s->judged) continue;
    if (!alternated) test_relative(s, &d);
    s->out->p = fmax(s->p_time, fmax(s->p_cycles, s->p_relative));
  }
  correct(subjects, count);
  for (size_t i = 0; i < count; i++)
    if (subjects[i].judged) decide(&subjects[i], rule, &d, judged);
  free(subjects);
}

/* --- looks --- */

double gate_look_share(int rounds) {
  return rounds <= 32 ? 0.5 : rounds <= 64 ? 0.25 : 0.125;
}

/* Shares do not grow with the rounds, so that a look at fewer than planned takes no more than this one did. */
int gate_next_look(int rounds, double *spent) {
  const double share = gate_look_share(rounds);
  *spent += share;
  if (*spent + share > 1.0 || rounds >= GATE_MOST_VALUES) return 0;
  return rounds < GATE_MOST_VALUES / 2 ? 2 * rounds : GATE_MOST_VALUES;
}

int gate_judge_least_rounds(const gate_rule *rule, size_t count, int looks) {
  int rounds = 1;
  while (rounds < GATE_MOST_VALUES &&
         gate_signed_rank_least(rounds) * (double)count > rule->alpha * (looks > 1 ? gate_look_share(rounds) : 1.0))
    rounds++;
  return rounds;
}

double gate_floor_of(const gate_rule *rule, const char *name) {
  double floor = rule->floor;
  for (int i = 0; name && i < rule->floor_count; i++)
    if (memmem(name, strlen(name), rule->floors[i].text, rule->floors[i].length)) floor = rule->floors[i].floor;
  return floor;
}

const char *gate_verdict_name(gate_verdict verdict) {
  static const char *const names[] = {"same", "faster", "slower", "unsure", "failed", "repaired", "missing"};
  return (unsigned)verdict <= GATE_MISSING ? names[verdict] : "unknown";
}
