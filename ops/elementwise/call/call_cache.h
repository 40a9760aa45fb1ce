/* SPDX-License-Identifier: Apache-2.0
 * call_cache.h: the calls that each thread made lately, ready to be made again with other addresses. */
#ifndef AT_ELEMENTWISE_CALL_CACHE_H
#define AT_ELEMENTWISE_CALL_CACHE_H

#include "ops/elementwise/call/call_binding.h"
#include "ops/elementwise/call/small_fast_path.h"
#include "tuning/plans/plan_table.h"

/* One of them, of one thread. */
typedef struct at_call_slot {
  at_call_binding *prepared; /* NULL: free */
  uint64_t hash, tuner;
  const attune_device *device;
  attune_accuracy accuracy;
  char *text; /* the expression, then the names of inputs and scalars in their order, each with a zero byte */
  size_t text_bytes, expression_bytes;
  uint64_t aliases;           /* bit 16 i + k: output i is the memory of input k, of outputs 0 to 3 */
  uint8_t low[AT_TENSORS];    /* the lowest bits of each address */
  const at_plan_entry *entry; /* of the tuner's plan table; NULL: none */
  const at_plan *plan;        /* for which prepared->kept is; only compared */
} at_call_slot;

/* A call like this one: true, with its slot; *bound: it may run as small.h says, and `small` is set. Else false, with
 * the slot for at_elementwise_call_cache_put, or NULL: it cannot be remembered. `operands` are not checked yet. */
bool at_elementwise_call_cache_find(at_call_slot **slot, at_small_call *small, bool *bound, uint64_t tuner,
                                    const attune_stream *stream, const at_formula *formula,
                                    const attune_elementwise_operands *operands);

/* The call that was just looked for, made ready; `prepared` is the slot's from now on. */
void at_elementwise_call_cache_put(at_call_slot *slot, at_call_binding *prepared, const at_plan_entry *entry,
                                   uint64_t tuner, const attune_device *device, const at_formula *formula,
                                   const attune_elementwise_operands *operands);

/* The plan that the call is about to run with: what was kept for another is forgotten. */
void at_elementwise_call_cache_note_plan(at_call_slot *slot, const at_plan *plan);

#endif
