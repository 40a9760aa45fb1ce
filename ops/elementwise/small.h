/* SPDX-License-Identifier: Apache-2.0
 * small.h: calls of few elements on the host, whose tensors are all packed: looked at in one pass, and run at once. The
 * look is quick, not complete: where it says no, the usual way finds out what is wrong, if anything is. */
#ifndef AT_ELEMENTWISE_SMALL_H
#define AT_ELEMENTWISE_SMALL_H

#include "ops/elementwise/host_call.h"
#include "ops/elementwise/prepared.h"
#include "src/host/host.h"

/* What such a run takes, in the expression's order. */
typedef struct at_small_call {
  void *tensors[AT_TENSORS];
  at_constant scalars[AT_EXPRESSION_SCALARS];
} at_small_call;

/* From now on calls like the prepared one run so by this plan, if both are fit for it. The plan lives as long as it is
 * attached. `least`: the alignment of their tensors. */
void at_small_attach(at_prepared *prepared, const at_plan *plan, int least);

/* May such a call on this stream run so? Then *out is set. All is looked at but the names. */
bool at_small_bind(const at_prepared *prepared, const attune_stream *stream,
                   const attune_elementwise_operands *operands, at_small_call *out);

static inline void at_small_run(const at_prepared *prepared, const at_small_call *call) {
  const at_host_plan *plan = prepared->small.plan;
  plan->run_small(plan, call->tensors, call->scalars, prepared->layout.count);
}

#endif
