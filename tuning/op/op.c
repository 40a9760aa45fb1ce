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

static const slot of_problem[] = {SLOT(at_problem_type, format),  SLOT(at_problem_type, parse),
                                  SLOT(at_problem_type, family),  SLOT(at_problem_type, distance),
                                  SLOT(at_problem_type, columns), SLOT(at_problem_type, from_fields),
                                  SLOT(at_problem_type, flops),   SLOT(at_problem_type, bytes),
                                  SLOT(at_problem_type, fold),    SLOT(at_problem_type, deterministic)};
static const slot of_operands[] = {SLOT(at_operand_type, buffers), SLOT(at_operand_type, bind)};
static const slot of_reference[] = {SLOT(at_reference_type, create), SLOT(at_reference_type, compare),
                                    SLOT(at_reference_type, destroy)};
static const slot of_specials[] = {SLOT(at_special_values, count), SLOT(at_special_values, contents),
                                   SLOT(at_special_values, plant), SLOT(at_special_values, compare),
                                   SLOT(at_special_values, name)};
static const slot of_calls[] = {SLOT(at_prepared_calls, create), SLOT(at_prepared_calls, run),
                                SLOT(at_prepared_calls, destroy)};

/* The tables of an operation, by their places in it. */
static const struct {
  slot table;
  bool optional;
  const slot *slots;
  size_t count;
} tables[] = {{SLOT(at_op, problem), false, of_problem, AT_COUNT(of_problem)},
              {SLOT(at_op, operands), false, of_operands, AT_COUNT(of_operands)},
              {SLOT(at_op, reference), false, of_reference, AT_COUNT(of_reference)},
              {SLOT(at_op, specials), true, of_specials, AT_COUNT(of_specials)},
              {SLOT(at_op, calls), true, of_calls, AT_COUNT(of_calls)}};

static const slot of_implementation[] = {SLOT(at_implementation, supports), SLOT(at_implementation, configurations),
                                         SLOT(at_implementation, prepare), SLOT(at_implementation, launch)};

static attune_status missing(const at_op *op, const char *what) {
  return at_fail(ATTUNE_INTERNAL, "operation %s has no %s", op->name, what);
}

static attune_status check_table(const at_op *op, size_t index) {
  const void *table;
  memcpy(&table, (const char *)op + tables[index].table.offset, sizeof table);
  if (!table) return tables[index].optional ? ATTUNE_OK : missing(op, tables[index].table.name);
  for (size_t i = 0; i < tables[index].count; i++)
    if (!filled(table, tables[index].slots[i].offset))
      return at_fail(ATTUNE_INTERNAL, "operation %s has no %s->%s", op->name, tables[index].table.name,
                     tables[index].slots[i].name);
  return ATTUNE_OK;
}

static attune_status check_tables(const at_op *op) {
  for (size_t i = 0; i < AT_COUNT(tables); i++) AT_TRY(check_table(op, i));
  if (op->specials && !op->specials->scalars != !op->operands->scalars)
    return at_fail(
        ATTUNE_INTERNAL,
        "operation %s has only %s->scalars; should have scalars in both operands and specials, or in neither", op->name,
        op->specials->scalars ? "specials" : "operands");
  if (op->timed_call && !op->calls)
    return at_fail(ATTUNE_INTERNAL, "operation %s has timed_call without calls; should have both", op->name);
  return ATTUNE_OK;
}

static attune_status check_bounds(const at_op *op) {
  if (op->id < 0 || op->id > INT16_MAX)
    return at_fail(ATTUNE_INTERNAL, "id of %s is %d; should be 0 to %d", op->name, op->id, INT16_MAX);
  if (!op->problem_bytes || op->problem_bytes > AT_PROBLEM_BYTES)
    return at_fail(ATTUNE_INTERNAL, "problem_bytes of %s is %zu; should be 1 to %d", op->name, op->problem_bytes,
                   AT_PROBLEM_BYTES);
  if (op->problem_size && op->problem_bytes % 8)
    return at_fail(ATTUNE_INTERNAL, "problem_bytes of %s is %zu; should be a multiple of 8, as it has problem_size",
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
    return at_fail(ATTUNE_INTERNAL, "implementation %s of %s has only %s; should have both bare and bare_name",
                   implementation->name, op->name, implementation->bare ? "bare" : "bare_name");
  if (implementation->bare_threads && !implementation->bare)
    return at_fail(ATTUNE_INTERNAL, "implementation %s of %s has bare_threads without bare; should have both",
                   implementation->name, op->name);
  for (size_t i = 0; i < index; i++)
    if (strcmp(op->implementations[i]->name, implementation->name) == 0 &&
        strcmp(op->implementations[i]->backend, implementation->backend) == 0)
      return at_fail(ATTUNE_INTERNAL, "two implementations of %s on %s are called %s; names should be unique", op->name,
                     implementation->backend, implementation->name);
  return ATTUNE_OK;
}

attune_status at_op_check(const at_op *op) {
  if (!op || !op->name) return at_fail(ATTUNE_INTERNAL, "an operation %s", op ? "has no name" : "is NULL");
  attune_status status = check_bounds(op);
  if (status == ATTUNE_OK) status = check_tables(op);
  if (status == ATTUNE_OK && (!op->implementations || !op->implementation_count))
    status = missing(op, "implementations");
  for (size_t i = 0; i < op->implementation_count && status == ATTUNE_OK; i++) status = check_implementation(op, i);
  return status;
}

attune_status at_ops_check(const at_op *const *ops, int count) {
  for (int i = 0; i < count; i++) {
    AT_TRY(at_op_check(ops[i]));
    for (int j = 0; j < i; j++)
      if (ops[j]->id == ops[i]->id || strcmp(ops[j]->name, ops[i]->name) == 0)
        return at_fail(ATTUNE_INTERNAL, "operations %s (number %d) and %s (%d); should differ in name and number",
                       ops[j]->name, ops[j]->id, ops[i]->name, ops[i]->id);
  }
  return ATTUNE_OK;
}
