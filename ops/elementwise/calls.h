/* SPDX-License-Identifier: Apache-2.0
 * calls.h: the calls that each thread made lately, ready to be made again with other addresses. */
#ifndef AT_ELEMENTWISE_CALLS_H
#define AT_ELEMENTWISE_CALLS_H

#include "ops/elementwise/prepared.h"
#include "tuning/plan_table.h"

/* One of them, of one thread. */
typedef struct at_call_slot {
  uint64_t hash;
  size_t bytes, room;
  char *asked;                /* all of the call but addresses, scalars' values and the generator */
  at_prepared *prepared;      /* NULL: free */
  const at_plan_entry *entry; /* of the plan table of the tuner that `asked` names; NULL: none */
  const at_plan *plan;        /* for which prepared->kept is; only compared */
} at_call_slot;

/* A call like this one: true, with its slot. Else false, with the slot for at_calls_put, or NULL: it cannot be
 * remembered. `operands` are not checked yet. */
bool at_calls_find(at_call_slot **slot, uint64_t tuner, const attune_device *device, const char *expression,
                   const attune_elementwise_operands *operands);

/* The call that was just looked for, made ready; `prepared` is the slot's from now on. */
void at_calls_put(at_call_slot *slot, at_prepared *prepared, const at_plan_entry *entry);

/* The plan that the call is about to run with: what was kept for another is forgotten. */
void at_calls_note_plan(at_call_slot *slot, const at_plan *plan);

#endif
