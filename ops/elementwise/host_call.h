/* SPDX-License-Identifier: Apache-2.0
 * host_call.h: a call on the host in stream order: its operands and layout travel by value to the thread that runs it, and
 * into the graphs that it is captured in. */
#ifndef AT_ELEMENTWISE_HOST_CALL_H
#define AT_ELEMENTWISE_HOST_CALL_H

#include <pthread.h>

#include "ops/elementwise/problem.h"
#include "tuning/registry.h"

/* A call as it runs. */
typedef struct at_host_elements {
  const at_elementwise *problem;
  const at_layout *layout;
  void *const *tensors;
  const at_constant *scalars;
  at_draws draws;
} at_host_elements;

/* What plans of the host begin with: how a call runs, and calls that were too long to travel by value and were captured;
 * they are kept until the plan goes. */
typedef struct at_host_plan {
  void (*run)(const void *state, const at_host_elements *call);
  pthread_mutex_t lock;
  struct at_host_record *records;
} at_host_plan;

void at_host_plan_open(at_host_plan *plan, void (*run)(const void *state, const at_host_elements *call));
void at_host_plan_close(at_host_plan *plan);

/* The launch of every such implementation: plan->state begins with an at_host_plan. */
attune_status at_host_elements_launch(const at_plan *plan, const void *operands, attune_stream *stream);

#endif
