/* SPDX-License-Identifier: Apache-2.0
 * database_verdict.h: verdicts on the winners of two tuning databases, of which only a time, its spread and its samples
 * are kept. */
#ifndef GATE_STORED_H
#define GATE_STORED_H

#include "tools/compare/stats/verdict.h"

typedef struct gate_stored {
  double ns;        /* median */
  double spread;    /* median absolute deviation / median, of the samples */
  double placement; /* relative deviation over places in memory */
  int samples;
  bool sure;        /* the search was complete and left nothing open */
  int64_t tuned_at; /* when it was measured; a row that both sides have was measured once, so it is the same */
} gate_stored;

/* As gate_judge, of winners: base[i] or head[i] is NULL where that side has none. */
void gate_judge_stored(gate_judgement *out, const gate_stored *const *base, const gate_stored *const *head,
                       size_t count, const gate_rule *rule);

#endif
