/* SPDX-License-Identifier: Apache-2.0
 * op.c: is an operation's table complete, and within the bounds that all share? */
#include "tuning/op.h"

#include <string.h>

#include "tuning/registry.h"

static attune_status missing(const at_op *op, const char *what) {
  return at_fail(ATTUNE_INTERNAL, "operation %s has no %s", op->name, what);
}

static attune_status check_slots(const at_op *op) {
  const struct {
    const char *name;
    bool there;
  } slots[] = {{"format", op->format},
               {"parse", op->parse},
               {"family", op->family},
               {"distance", op->distance},
               {"columns", op->columns},
               {"from_fields", op->from_fields},
               {"flops", op->flops},
               {"bytes", op->bytes},
               {"deterministic", op->deterministic},
               {"buffers", op->buffers},
               {"bind", op->bind},
               {"reference_create", op->reference_create},
               {"reference_compare", op->reference_compare},
               {"reference_destroy", op->reference_destroy},
               {"case_count", op->case_count},
               {"case_at", op->case_at},
               {"oracle", op->oracle}};
  for (size_t i = 0; i < AT_COUNT(slots); i++)
    if (!slots[i].there) return missing(op, slots[i].name);
  const bool special = op->special_contents && op->special_plant && op->special_compare && op->special_name;
  if (op->special_count && !special) return missing(op, "special_contents, _plant, _compare or _name");
  if (op->special_count && op->scalars && !op->special_scalars) return missing(op, "special_scalars");
  if (op->caller_create && !(op->caller_run && op->caller_destroy)) return missing(op, "caller_run or caller_destroy");
  return ATTUNE_OK;
}

static attune_status check_implementation(const at_op *op, const at_implementation *implementation) {
  if (!implementation || !implementation->name || !implementation->backend)
    return missing(op, "name or backend of an implementation");
  if (!implementation->supports || !implementation->configurations || !implementation->prepare ||
      !implementation->launch)
    return at_fail(ATTUNE_INTERNAL, "implementation %s of %s lacks supports, configurations, prepare or launch",
                   implementation->name, op->name);
  return ATTUNE_OK;
}

attune_status at_op_check(const at_op *op) {
  if (!op->name || op->id < 0 || op->id > UINT16_MAX) return missing(op, "name, or an id below 65536");
  if (!op->problem_bytes || op->problem_bytes > AT_PROBLEM_BYTES)
    return at_fail(ATTUNE_INTERNAL, "problem_bytes of %s is %zu; should be 1 to %d", op->name, op->problem_bytes,
                   AT_PROBLEM_BYTES);
  if (!op->operands_bytes || op->operands_bytes > AT_OPERANDS_BYTES)
    return at_fail(ATTUNE_INTERNAL, "operands_bytes of %s is %zu; should be 1 to %d", op->name, op->operands_bytes,
                   AT_OPERANDS_BYTES);
  attune_status status = check_slots(op);
  for (size_t i = 0; i < op->implementation_count && status == ATTUNE_OK; i++)
    status = check_implementation(op, op->implementations[i]);
  return status;
}

attune_status at_ops_check(const at_op *const *ops, int count) {
  for (int i = 0; i < count; i++) {
    const attune_status status = at_op_check(ops[i]);
    if (status != ATTUNE_OK) return status;
    for (int j = 0; j < i; j++)
      if (ops[j]->id == ops[i]->id || strcmp(ops[j]->name, ops[i]->name) == 0)
        return at_fail(ATTUNE_INTERNAL, "operations %s (number %d) and %s (%d); should differ in name and number",
                       ops[j]->name, ops[j]->id, ops[i]->name, ops[i]->id);
  }
  return ATTUNE_OK;
}
