/* SPDX-License-Identifier: Apache-2.0
 * op.c: is an operation's table complete, and within the bounds that all share? */
#include "tuning/op/op.h"

#include <string.h>

#include "tuning/op/registry.h"

/* A pointer of a table, to a function mostly, by its place there. */
typedef struct slot {
  const char *name;
  size_t offset;
} slot;

static bool filled(const void *table, size_t offset) {
  static const char empty[sizeof(void *)];
  return memcmp((const char *)table + offset, empty, sizeof empty) != 0;
}

#define SLOT(type, name) \
  { #name, offsetof(type, name) }
#define OP(name) SLOT(at_op, name)

/* Those that every operation fills. */
static const slot required[] = {
    OP(format),     OP(parse),       OP(family),   OP(distance),         OP(columns),           OP(from_fields),
    OP(flops),      OP(bytes),       OP(fold),     OP(deterministic),    OP(buffers),           OP(bind),
    OP(call),       OP(plan_create), OP(plan_run), OP(reference_create), OP(reference_compare), OP(reference_destroy),
    OP(case_count), OP(case_at),     OP(oracle)};

/* Optional, but all of them or none. */
static const slot callers[] = {OP(caller_create), OP(caller_run), OP(caller_destroy)};
static const slot calls[] = {OP(calls_create), OP(calls_run), OP(calls_destroy)};
static const slot specials[] = {OP(special_count), OP(special_contents), OP(special_plant), OP(special_compare),
                                OP(special_name)};

static const slot of_implementation[] = {SLOT(at_implementation, supports), SLOT(at_implementation, configurations),
                                         SLOT(at_implementation, prepare), SLOT(at_implementation, launch)};

static attune_status missing(const at_op *op, const char *what) {
  return at_fail(ATTUNE_INTERNAL, "operation %s has no %s", op->name, what);
}

static attune_status check_required(const at_op *op) {
  for (size_t i = 0; i < AT_COUNT(required); i++)
    if (!filled(op, required[i].offset)) return missing(op, required[i].name);
  return ATTUNE_OK;
}

/* The first that is there demands the others. */
static attune_status check_together(const at_op *op, const slot *slots, size_t count) {
  const slot *there = NULL, *absent = NULL;
  for (size_t i = count; i-- > 0;)
    if (filled(op, slots[i].offset))
      there = &slots[i];
    else
      absent = &slots[i];
  if (!there || !absent) return ATTUNE_OK;
  return at_fail(ATTUNE_INTERNAL, "operation %s has no %s, but has %s; should have both", op->name, absent->name,
                 there->name);
}

static attune_status check_optional(const at_op *op) {
  attune_status status = check_together(op, callers, AT_COUNT(callers));
  if (status == ATTUNE_OK) status = check_together(op, calls, AT_COUNT(calls));
  if (status == ATTUNE_OK) status = check_together(op, specials, AT_COUNT(specials));
  if (status != ATTUNE_OK) return status;
  if (op->special_count && op->scalars && !op->special_scalars)
    return at_fail(ATTUNE_INTERNAL, "operation %s has no special_scalars, but has scalars and special_count", op->name);
  if (op->special_scalars && !(op->special_count && op->scalars))
    return at_fail(ATTUNE_INTERNAL, "operation %s has special_scalars, but no %s", op->name,
                   op->scalars ? "special_count" : "scalars");
  return ATTUNE_OK;
}

static attune_status check_bounds(const at_op *op) {
  if (op->id < 0 || op->id > INT16_MAX)
    return at_fail(ATTUNE_INTERNAL, "id of %s is %d; should be 0 to %d", op->name, op->id, INT16_MAX);
  if (!op->problem_bytes || op->problem_bytes > AT_PROBLEM_BYTES)
    return at_fail(ATTUNE_INTERNAL, "problem_bytes of %s is %zu; should be 1 to %d", op->name, op->problem_bytes,
                   AT_PROBLEM_BYTES);
  if (op->problem_size && op->problem_bytes % 8)
    return at_fail(ATTUNE_INTERNAL, "problem_bytes of %s is %zu; should be a multiple of 8, for it has problem_size",
                   op->name, op->problem_bytes);
  if (!op->operands_bytes || op->operands_bytes > AT_OPERANDS_BYTES)
    return at_fail(ATTUNE_INTERNAL, "operands_bytes of %s is %zu; should be 1 to %d", op->name, op->operands_bytes,
                   AT_OPERANDS_BYTES);
  return ATTUNE_OK;
}

static attune_status check_implementation(const at_op *op, size_t index) {
  const at_implementation *implementation = op->implementations[index];
  if (!implementation || !implementation->name)
    return at_fail(ATTUNE_INTERNAL, "implementation %zu of %s %s", index, op->name,
                   implementation ? "has no name" : "is NULL");
  if (!implementation->backend)
    return at_fail(ATTUNE_INTERNAL, "implementation %s of %s has no backend", implementation->name, op->name);
  if (implementation->version < 1)
    return at_fail(ATTUNE_INTERNAL, "version of implementation %s of %s is %d; should be 1 or more",
                   implementation->name, op->name, implementation->version);
  for (size_t i = 0; i < AT_COUNT(of_implementation); i++)
    if (!filled(implementation, of_implementation[i].offset))
      return at_fail(ATTUNE_INTERNAL, "implementation %s of %s has no %s", implementation->name, op->name,
                     of_implementation[i].name);
  if (!implementation->bare != !implementation->bare_name)
    return at_fail(ATTUNE_INTERNAL, "implementation %s of %s has %s alone; should have bare and bare_name",
                   implementation->name, op->name, implementation->bare ? "bare" : "bare_name");
  if (implementation->bare_threads && !implementation->bare)
    return at_fail(ATTUNE_INTERNAL, "implementation %s of %s has bare_threads alone; should have bare too",
                   implementation->name, op->name);
  for (size_t i = 0; i < index; i++)
    if (strcmp(op->implementations[i]->name, implementation->name) == 0 &&
        strcmp(op->implementations[i]->backend, implementation->backend) == 0)
      return at_fail(ATTUNE_INTERNAL, "two implementations of %s on %s are called %s; names should differ", op->name,
                     implementation->backend, implementation->name);
  return ATTUNE_OK;
}

attune_status at_op_check(const at_op *op) {
  if (!op || !op->name) return at_fail(ATTUNE_INTERNAL, "an operation %s", op ? "has no name" : "is NULL");
  attune_status status = check_bounds(op);
  if (status == ATTUNE_OK) status = check_required(op);
  if (status == ATTUNE_OK) status = check_optional(op);
  if (status == ATTUNE_OK && (!op->implementations || !op->implementation_count))
    status = missing(op, "implementations");
  for (size_t i = 0; i < op->implementation_count && status == ATTUNE_OK; i++) status = check_implementation(op, i);
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
