/* SPDX-License-Identifier: Apache-2.0
 * dispatch_stats.h: a copy of what a tuner dispatched so far, made of its plan tables and of what its databases
 * know. */
#ifndef AT_DISPATCH_STATS_H
#define AT_DISPATCH_STATS_H

#include <attune/profile.h>

#include "tuning/tuner/tuner.h"

typedef struct at_dispatch_stats_item {
  attune_profile_entry entry; /* its pointers lead to the two below */
  attune_decision *decision;  /* a kept one (decision.h) */
  char *problem;              /* NULL: as the decision has it */
  at_key *key;                /* as much as at_key_bytes of it; the decision lies behind */
  int as;
  bool stored; /* it runs untuned although it has a winner */
} at_dispatch_stats_item;

/* In the order in which they are told. */
typedef struct at_dispatch_stats {
  at_dispatch_stats_item *items;
  size_t count;
  attune_profile_totals totals;
} at_dispatch_stats;

attune_status at_dispatch_stats_take(at_dispatch_stats *out, attune_tuner *tuner);
void at_dispatch_stats_free(at_dispatch_stats *usage);

/* profile_report.c: the tuner or the process ends: writes its profile where ATTUNE_PROFILE said when it was created. */
void at_profile_end(attune_tuner *tuner);

#endif
