/* SPDX-License-Identifier: Apache-2.0
 * rounds_plan.c: what a case may cost. One that is slow gets fewer samples in a round, then takes part in fewer rounds, spread
 * over all of them. */
#include "tuning/gate/rounds_parts.h"

enum { ROUNDS_LEAST = 5 }; /* of a case: fewer tell nothing about how processes differ */

/* Seconds that the case may take in a round. */
static double share_s(const gate_rounds *r) {
  return r->schedule.case_s / r->schedule.rounds;
}

static int between(double value, int least, int most) {
  return value < least ? least : value > most ? most : (int)value;
}

/* Of a case whose calls are longer than a sample should be: no more of them than take as long as all samples should, if that is
 * not below the least number. In its first round that is known only when a sample is more than one call. */
static int fitting(const gate_rounds *r, const gate_entry *e, int calls) {
  const gate_schedule *s = &r->schedule;
  const double wanted_ns = s->samples * s->sample_ns;
  if (s->samples_least <= 0 || s->samples_least >= s->samples) return s->samples;
  if (!(e->sample_ns > 0)) return calls > 1 ? s->samples : s->samples_least;
  return between(1.2 * wanted_ns / e->sample_ns, s->samples_least, s->samples);
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
  int fits = (int)(r->schedule.case_s / e->round_s) - 1;
  const int least = ROUNDS_LEAST < all ? ROUNDS_LEAST - 1 : all - 1;
  if (fits < least) fits = least;
  return fits >= all - 1 || round * fits / (all - 1) > (round - 1) * fits / (all - 1);
}
