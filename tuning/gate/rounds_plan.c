/* SPDX-License-Identifier: Apache-2.0
 * rounds_plan.c: what a case may cost. One that is slow gets fewer samples in a round, then takes part in fewer rounds, spread
 * over all of them. */
#include "tuning/gate/rounds_parts.h"

enum { ROUNDS_LEAST = 5 }; /* of a case: fewer tell nothing about how processes differ */

/* Seconds that the case may take in a round. */
static double share_s(const gate_rounds *r) {
  return r->schedule.case_s / r->schedule.rounds;
}

int gate_entry_samples(const gate_rounds *r, const gate_entry *e) {
  const int most = r->schedule.samples;
  if (!(e->round_s > share_s(r)) || !(r->schedule.case_s > 0)) return e->samples ? e->samples : most;
  const int fits = (int)(share_s(r) / e->round_s * e->samples);
  return fits < 1 ? 1 : fits > most ? most : fits;
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
