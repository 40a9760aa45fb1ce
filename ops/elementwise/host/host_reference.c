/* SPDX-License-Identifier: Apache-2.0
 * host_reference.c: elementwise one element at a time by the reference's arithmetic: every function, every dtype. The
 * fallback listed last. */
#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/host/host_call.h"

typedef struct reference_plan {
  at_host_plan host; /* first */
  at_expression *expression;
} reference_plan;

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  return device->backend.kind == ATTUNE_DEVICE_HOST && !at_elementwise_of(problem)->raw;
}

static void run(const void *state, const at_host_elements *c) {
  const at_expression *e = ((const reference_plan *)state)->expression;
  const at_elements all = {.expression = e,
                           .layout = c->layout,
                           .number = c->problem->number,
                           .tensors = c->tensors,
                           .scalars = c->scalars,
                           .draws = c->draws};
  at_wide_value values[AT_EXPRESSION_NODES];
  at_elements_compute(&all, c->problem->dtypes, values);
}

static attune_status fill(at_host_plan *state, const at_plan *plan, at_expression **expression) {
  reference_plan *s = (reference_plan *)state;
  AT_TRY(at_configuration_check_none(plan));
  s->host.run = run;
  s->expression = *expression;
  *expression = NULL;
  return ATTUNE_OK;
}

static attune_status prepare(at_plan *plan) {
  return at_host_plan_make(plan, sizeof(reference_plan), fill);
}

static void destroy(at_plan *plan) {
  reference_plan *s = plan->state;
  if (s) at_expression_destroy(s->expression);
  at_host_plan_destroy(plan);
}

const at_implementation at_elementwise_host_reference = {
    .name = "host_reference",
    .version = 1,
    .backend = "host",
    .fallback = true,
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = prepare,
    .launch = at_host_elements_launch,
    .destroy = destroy,
};
