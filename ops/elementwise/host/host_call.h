/* SPDX-License-Identifier: Apache-2.0
 * host_call.h: a call on the host in stream order: its operands and layout travel by value to the thread that runs it,
 * and into the graphs that it is captured in. */
#ifndef AT_ELEMENTWISE_HOST_CALL_H
#define AT_ELEMENTWISE_HOST_CALL_H

#include "ops/elementwise/problem/problem.h"
#include "tuning/op/registry.h"

/* A call as it runs. */
typedef struct at_host_elements {
  const at_elementwise *problem;
  const at_layout *layout;
  void *const *tensors;
  const at_constant *scalars;
  at_random_draws draws;
} at_host_elements;

/* Header of every plan of the host: how a call runs. */
typedef struct at_host_plan {
  void (*run)(const void *state, const at_host_elements *call);
  /* Calls of at most small_most elements, one after the other in every tensor, on the calling thread; nothing is drawn.
   * 0: there are none. */
  void (*run_small)(const void *state, void *const *tensors, const at_constant *scalars, int64_t count);
  int64_t small_most;
  /* The same for one packed output and one input or two, x and y, without scalars: f(output, x, y, x, count), y is x
   * where there is one. NULL: there is none. */
  void (*straight)(void *out, const void *x, const void *y, const void *z, size_t count);
} at_host_plan;

/* The prepare of every such implementation: makes plan->state, of `bytes`, and has `fill` set what follows the
 * at_host_plan. *expression is the plan's problem's; fill may keep it by setting it to NULL. What a fill that fails has
 * put into the state is its own to release. Errors: OUT_OF_MEMORY, those of fill. */
typedef attune_status (*at_host_fill)(at_host_plan *state, const at_plan *plan, at_expression **expression);
attune_status at_host_plan_make(at_plan *plan, size_t bytes, at_host_fill fill);

/* Releases what it created; the rest of the state was released before. The plan may have none. */
void at_host_plan_destroy(at_plan *plan);

/* The launch of every such implementation: plan->state begins with an at_host_plan. */
attune_status at_host_elements_launch(const at_plan *plan, const void *operands, attune_stream *stream);

#endif
