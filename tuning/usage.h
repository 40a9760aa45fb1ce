/* SPDX-License-Identifier: Apache-2.0
 * usage.h: a copy of what a tuner dispatched so far, made of its plan tables and of what its databases know. */
#ifndef AT_USAGE_H
#define AT_USAGE_H

#include <attune/profile.h>

#include "tuning/tuner.h"

typedef struct at_usage_item {
  attune_profile_entry entry; /* its pointers lead to the two below */
  attune_decision *decision;  /* a kept one (decision.h) */
  char *problem;              /* NULL: as the decision has it */
  at_key *key;                /* as much as at_key_bytes of it; the decision lies behind */
  int as;
  bool stored; /* it runs untuned although it has a winner */
} at_usage_item;

/* In the order in which they are told. */
typedef struct at_usage {
  at_usage_item *items;
  size_t count;
  attune_profile_totals totals;
} at_usage;

attune_status at_usage_take(at_usage *out, attune_tuner *tuner);
void at_usage_free(at_usage *usage);

#endif
