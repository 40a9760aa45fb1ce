/* SPDX-License-Identifier: Apache-2.0
 * registry.c: finds implementations and makes plans of them. */
#include "tuning/op/registry.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Never freed, for anybody may be reading them: a program changes them a few times at most. NULL: never set. */
static _Atomic(char *) skipped;

const char *at_registry_skipped(bool *out_set) {
  const char *names = atomic_load(&skipped);
  if (out_set) *out_set = names != NULL;
  return names ? names : "";
}

/* The next name of a list; *at moves behind it. 0: there is no other. */
static size_t next_name(const char **at, const char **name) {
  *at += strspn(*at, ", ");
  *name = *at;
  const size_t chars = strcspn(*at, ", ");
  *at += chars;
  return chars;
}

static bool is_skipped(const at_implementation *implementation) {
  const char *at = atomic_load_explicit(&skipped, memory_order_acquire), *name = NULL;
  if (AT_LIKELY(!at || !*at)) return false;
  for (size_t chars; (chars = next_name(&at, &name));)
    if (strlen(implementation->name) == chars && memcmp(implementation->name, name, chars) == 0) return true;
  return false;
}

static bool is_known(const char *name, size_t chars, const at_op *const *ops, int op_count) {
  for (int o = 0; o < op_count; o++)
    for (size_t i = 0; i < ops[o]->implementation_count; i++)
      if (strlen(ops[o]->implementations[i]->name) == chars &&
          memcmp(ops[o]->implementations[i]->name, name, chars) == 0)
        return true;
  return false;
}

attune_status at_registry_skip(const char *names, const char *source, const at_op *const *ops, int op_count) {
  const char *at = names, *name = NULL;
  for (size_t chars; (chars = next_name(&at, &name));)
    if (!is_known(name, chars, ops, op_count))
      return AT_INVALID("%s has \"%.*s\", which is not an implementation; should be names from "
                        "attune_tuner_implementations or `attune devices --problem', separated by commas",
                        source, (int)(chars < 64 ? chars : 64), name);
  char *copy = strdup(names);
  if (!copy) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the names of %s", source);
  static _Atomic(char *) older[64]; /* reachable, so that no tool calls them lost */
  static atomic_uint count;
  char *before = atomic_exchange(&skipped, copy);
  if (before) atomic_store(&older[atomic_fetch_add(&count, 1) % AT_COUNT(older)], before);
  return ATTUNE_OK;
}

bool at_registry_usable(const at_implementation *implementation, const void *problem, attune_device *device) {
  return strcmp(implementation->backend, device->backend.name) == 0 && !is_skipped(implementation) &&
         implementation->supports(implementation, problem, device);
}

const at_implementation *at_registry_default(const at_op *op, const void *problem, attune_device *device) {
  for (size_t i = 0; i < op->implementation_count; i++)
    if (at_registry_usable(op->implementations[i], problem, device)) return op->implementations[i];
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
  const char *skip = at_registry_skipped(NULL);
  return at_fail(ATTUNE_UNSUPPORTED, "no implementation of %s supports %s on %s%s%s%s%.100s", op->name,
                 at_shown(shown, problem), device->name, why[0] ? ": " : "", why, *skip ? "; left out: " : "", skip);
}

const at_implementation *at_registry_find(const at_op *op, const char *name, const attune_device *device) {
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, device->backend.name) == 0 && strcmp(implementation->name, name) == 0)
      return implementation;
  }
  return NULL;
}

attune_status at_plan_create(at_plan **out, const at_op *op, const at_implementation *implementation,
                             const at_configuration *configuration, const void *problem, attune_device *device) {
  *out = NULL;
  if (!at_registry_usable(implementation, problem, device))
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
  if (op->operands->spans) op->operands->spans(problem, plan->spans);
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
