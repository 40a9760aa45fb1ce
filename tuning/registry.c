/* SPDX-License-Identifier: Apache-2.0
 * registry.c: finds implementations and makes plans of them. */
#include "tuning/registry.h"

#include <stdlib.h>
#include <string.h>

static bool usable(const at_implementation *implementation, const void *problem, attune_device *device) {
  return strcmp(implementation->backend, device->backend->name) == 0 && implementation->supports(problem, device);
}

const at_implementation *at_registry_default(const at_op *op, const void *problem, attune_device *device) {
  for (size_t i = 0; i < op->implementation_count; i++)
    if (usable(op->implementations[i], problem, device)) return op->implementations[i];
  return NULL;
}

enum { WHY_CHARS = 384 };

static int keep_problem(void *user, const attune_library *library) {
  char *why = user;
  if (library->problem[0]) (void)at_copy_text(why, WHY_CHARS, library->problem);
  return why[0] != '\0';
}

attune_status at_registry_fail(const at_op *op, const char *problem, attune_device *device) {
  char why[WHY_CHARS] = "", shown[AT_SHOWN_CHARS];
  if (op->each_library) (void)op->each_library(device, keep_problem, why);
  return at_fail(ATTUNE_UNSUPPORTED, "no implementation of %s supports %s on %s%s%s", op->name,
                 at_shown(shown, problem), device->name, why[0] ? ": " : "", why);
}

const at_implementation *at_registry_find(const at_op *op, const char *name, const attune_device *device) {
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, device->backend->name) == 0 && strcmp(implementation->name, name) == 0)
      return implementation;
  }
  return NULL;
}

attune_status at_plan_create(at_plan **out, const at_op *op, const at_implementation *implementation,
                             const at_configuration *configuration, const void *problem, attune_device *device) {
  *out = NULL;
  if (!usable(implementation, problem, device))
    return at_fail(ATTUNE_UNSUPPORTED, "%s does not support this problem on %s", implementation->name, device->name);
  const size_t bytes = at_problem_bytes(op, problem);
  at_plan *plan = calloc(1, sizeof *plan + (bytes + 7) / 8 * 8);
  if (!plan) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of %s", implementation->name);
  plan->launch = implementation->launch;
  plan->device = device;
  plan->implementation = implementation;
  plan->op = op;
  plan->configuration = *configuration;
  plan->problem = memcpy(plan + 1, problem, bytes);
  const attune_status status = implementation->prepare(plan);
  if (status != ATTUNE_OK) {
    free(plan);
    return status;
  }
  *out = plan;
  return ATTUNE_OK;
}

void at_plan_destroy(at_plan *plan) {
  if (!plan) return;
  if (plan->release) plan->release(plan);
  if (plan->own) plan->own_release(plan->own);
  if (!plan->borrowed && plan->implementation->destroy) plan->implementation->destroy(plan);
  free(plan);
}
