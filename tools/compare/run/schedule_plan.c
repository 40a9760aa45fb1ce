/* SPDX-License-Identifier: Apache-2.0
 * schedule_plan.c: what a case may cost. One that is slow gets fewer samples in a round, then takes part in fewer
 * rounds, spread over all of them. */
#include "tools/compare/run/schedule_parts.h"

/* Of a case. Alone: what two such runs need for a verdict between them, for some cases. Of a pair: what any verdict
 * needs, and some more, since with the bare least a single round the other way makes a verdict impossible. */
enum { ALONE_LEAST = 10, PAIR_SPARE = 4 };

/* Seconds that the case may take in a round. */
static double share_s(const gate_rounds *r) {
  return r->schedule.case_s / r->schedule.rounds;
}

static int between(double value, int least, int most) {
  return value < least ? least : value > most ? most : (int)value;
}

/* Of a case whose calls are longer than a sample should be: no more of them than take as long as all samples should, if
 * that is not below the least number. In its first round that is known only when a sample is more than one call. */
static int fitting(const gate_rounds *r, const gate_entry *e, int calls) {
  const gate_schedule *s = &r->schedule;
  const double wanted_ns = s->samples * s->sample_ns;
  if (s->samples_least <= 0 || s->samples_least >= s->samples) return s->samples;
  if (!(e->sample_ns > 0)) return calls > 1 ? s->samples : s->samples_least;
  return between(1.2 * wanted_ns / e->sample_ns, s->samples_least, s->samples);
}

static int least_of(int a, int b) {
  return a < b ? a : b;
}

/* The rounds over which a slow case's are spread: those before time may end a pair, so that they are not cut. */
static int span_of(const gate_rounds *r, int needed) {
  const gate_judging *j = &r->schedule.judging;
  const int until = j->enough > needed ? j->enough : needed;
  return needed && j->case_s > 0 ? least_of(until, r->schedule.rounds) : r->schedule.rounds;
}

int gate_entry_samples(const gate_rounds *r, const gate_entry *e, int calls) {
  const int most = fitting(r, e, calls);
  if (!(e->round_s > 0) || !(r->schedule.case_s > 0)) return most;
  return between(share_s(r) / e->round_s * e->samples, 1, most);
}

bool gate_entry_due(const gate_rounds *r, const gate_entry *e, int round) {
  const int all = r->schedule.rounds;
  if (!gate_entry_open(e, GATE_HEAD) && !gate_entry_open(e, GATE_BASE)) return false;
  if (round == 0 || round >= all || !(r->schedule.case_s > 0) || e->samples > 1 || e->round_s <= share_s(r))
    return true;
  const gate_judging *j = &r->schedule.judging;
  const int needed = j->judge ? gate_judge_least_rounds(&j->rule, r->count, j->looks) : 0;
  const int span = span_of(r, needed), least = least_of(needed ? needed + PAIR_SPARE : ALONE_LEAST, span) - 1;
  int fits = (int)(r->schedule.case_s / e->round_s) - 1;
  if (fits < least) fits = least;
  return fits >= span - 1 || round * fits / (span - 1) > (round - 1) * fits / (span - 1);
}
