/* SPDX-License-Identifier: Apache-2.0
 * host_reference.c: elementwise one element at a time by the reference's arithmetic: every function, every dtype. The
 * fallback listed last. */
#include <stdlib.h>

#include "ops/elementwise/element.h"
#include "ops/elementwise/host_call.h"

typedef struct reference_plan {
  at_host_plan host; /* first */
  at_expression *expression;
} reference_plan;

static bool supports(const void *problem, attune_device *device) {
  (void)problem;
  return device->backend->kind == ATTUNE_DEVICE_HOST;
}

static int configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  (void)problem;
  (void)device;
  if (max < 1) return 0;
  out[0] = (at_configuration){""};
  return 1;
}

static void run(const void *state, const at_host_elements *c) {
  const at_expression *e = ((const reference_plan *)state)->expression;
  const at_elements all = {.expression = e,
                           .layout = c->layout,
                           .number = c->problem->number,
                           .tensors = c->tensors,
                           .scalars = c->scalars,
                           .draws = c->draws};
  at_elements_compute(&all, c->problem->dtypes);
}

static attune_status prepare(at_plan *plan) {
  if (plan->configuration.text[0] != '\0')
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; host_reference has none", plan->configuration.text);
  reference_plan *s = calloc(1, sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  const attune_status status = at_elementwise_expression(&s->expression, at_elementwise_of(plan->problem));
  if (status != ATTUNE_OK) {
    free(s);
    return status;
  }
  at_host_plan_open(&s->host, run);
  plan->state = s;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  reference_plan *s = plan->state;
  if (!s) return;
  at_host_plan_close(&s->host);
  at_expression_destroy(s->expression);
  free(s);
}

const at_implementation at_elementwise_host_reference = {
    .name = "host_reference",
    .version = 1,
    .backend = "host",
    .fallback = true,
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = at_host_elements_launch,
    .destroy = destroy,
};
