/* SPDX-License-Identifier: Apache-2.0
 * test_op.c: what an operation's table lacks, or has too much of, is named when a tuner is made: every slot, by its own
 * message. */
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/toy/toy_op.h"
#include "tuning/op/registry.h"
#include "tuning/tuner/tuner.h"

/* The words of the message; a tuner is refused with it too. */
static void expect_refused(const at_op *op, const char *words) {
  const at_op *const ops[] = {op};
  attune_tuner *tuner = NULL;
  if (at_op_check(op) != ATTUNE_INTERNAL) fail_msg("no failure with \"%s\"", words);
  FAILS(at_tuner_create(&tuner, NULL, ops, 1), ATTUNE_INTERNAL);
  assert_null(tuner);
  if (!strstr(attune_last_message(), words)) fail_msg("no \"%s\" in %s", words, attune_last_message());
}

typedef struct slot {
  const char *name;
  size_t offset;
} slot;
#define SLOT(name) \
  { #name, offsetof(at_op, name) }

static const slot required[] = {SLOT(format),
                                SLOT(parse),
                                SLOT(family),
                                SLOT(distance),
                                SLOT(columns),
                                SLOT(from_fields),
                                SLOT(flops),
                                SLOT(bytes),
                                SLOT(fold),
                                SLOT(deterministic),
                                SLOT(buffers),
                                SLOT(bind),
                                SLOT(call),
                                SLOT(plan_create),
                                SLOT(plan_run),
                                SLOT(reference_create),
                                SLOT(reference_compare),
                                SLOT(reference_destroy),
                                SLOT(case_count),
                                SLOT(case_at),
                                SLOT(oracle),
                                SLOT(implementations)};
static const slot with_others[] = {SLOT(caller_create),   SLOT(caller_run),       SLOT(caller_destroy),
                                   SLOT(calls_create),    SLOT(calls_run),        SLOT(calls_destroy),
                                   SLOT(special_count),   SLOT(special_contents), SLOT(special_plant),
                                   SLOT(special_compare), SLOT(special_name),     SLOT(special_scalars)};
static const slot optional[] = {SLOT(spans),        SLOT(draws),        SLOT(show),
                                SLOT(each_library), SLOT(problem_size), SLOT(plans_most)};

static void empty(at_op *op, const slot *one) {
  memset((char *)op + one->offset, 0, sizeof(void *));
}

static bool listed(const slot *slots, size_t count, size_t offset) {
  for (size_t i = 0; i < count; i++)
    if (slots[i].offset == offset) return true;
  return false;
}

/* The tables are only looked at: any function fills a slot. */
static void any_function(void) {}

static void fill(void *table, size_t offset) {
  void (*const fn)(void) = any_function;
  memcpy((char *)table + offset, &fn, sizeof fn);
}

/* Toy with all that is optional. */
static at_op whole(void) {
  at_op op = toy_op;
  for (size_t i = 0; i < AT_COUNT(with_others); i++) fill(&op, with_others[i].offset);
  for (size_t i = 0; i < AT_COUNT(optional); i++) fill(&op, optional[i].offset);
  op.problem_bytes = 128; /* a multiple of 8, as problem_size wants it */
  return op;
}

static void each_slot_is_named(void **state) {
  (void)state;
  char words[96];
  at_op op = whole();
  OK(at_op_check(&op));
  for (size_t i = 0; i < AT_COUNT(required); i++) {
    op = whole();
    empty(&op, &required[i]);
    snprintf(words, sizeof words, "operation toy has no %s", required[i].name);
    expect_refused(&op, words);
  }
  for (size_t i = 0; i < AT_COUNT(optional); i++) {
    op = whole();
    empty(&op, &optional[i]);
    OK(at_op_check(&op));
  }
}

/* No slot is in neither list: one that is new to at_op is added to op.c and here. */
static void no_slot_is_forgotten(void **state) {
  (void)state;
  static const slot numbers[] = {SLOT(name), SLOT(implementation_count), SLOT(problem_bytes), SLOT(operands_bytes),
                                 SLOT(scalars)};
  const size_t id = offsetof(at_op, id) / sizeof(void *) * sizeof(void *);
  for (size_t at = 0; at < sizeof(at_op); at += sizeof(void *))
    if (at != id && !listed(required, AT_COUNT(required), at) && !listed(with_others, AT_COUNT(with_others), at) &&
        !listed(optional, AT_COUNT(optional), at) && !listed(numbers, AT_COUNT(numbers), at))
      fail_msg("the slot at %zu of at_op is not checked", at);
}

static void what_goes_together_is_there_or_not(void **state) {
  (void)state;
  char words[96];
  for (size_t i = 0; i < AT_COUNT(with_others); i++) {
    at_op op = whole();
    empty(&op, &with_others[i]);
    snprintf(words, sizeof words, "operation toy has no %s, but has ", with_others[i].name);
    expect_refused(&op, words);
  }
  at_op op = whole();
  for (size_t i = 0; i < AT_COUNT(with_others); i++) empty(&op, &with_others[i]);
  OK(at_op_check(&op));
  op.special_scalars = toy_op.special_scalars;
  expect_refused(&op, "operation toy has special_scalars, but no special_count");
  op = whole();
  op.scalars = NULL;
  expect_refused(&op, "operation toy has special_scalars, but no scalars");
  op.special_scalars = NULL;
  OK(at_op_check(&op));
}

static void names_and_sizes(void **state) {
  (void)state;
  at_op op = toy_op;
  op.name = NULL;
  expect_refused(&op, "an operation has no name");
  expect_refused(NULL, "an operation is NULL");
  op = toy_op;
  op.id = 32768; /* bit 62 of a use marks plans */
  expect_refused(&op, "id of toy is 32768; should be 0 to 32767");
  op.id = -1;
  expect_refused(&op, "id of toy is -1");
  op = toy_op;
  op.problem_bytes = AT_PROBLEM_BYTES + 1;
  expect_refused(&op, "problem_bytes of toy is 4097; should be 1 to 4096");
  op.problem_bytes = 0;
  expect_refused(&op, "problem_bytes of toy is 0");
  op = toy_op;
  fill(&op, offsetof(at_op, problem_size));
  expect_refused(&op, "problem_bytes of toy is 124; should be a multiple of 8, for it has problem_size");
  op.problem_bytes = AT_PROBLEM_BYTES;
  OK(at_op_check(&op));
  op = toy_op;
  op.operands_bytes = AT_OPERANDS_BYTES + 1;
  expect_refused(&op, "operands_bytes of toy is 641; should be 1 to 640");
  op.operands_bytes = 0;
  expect_refused(&op, "operands_bytes of toy is 0");
  op = toy_op;
  op.implementation_count = 0;
  expect_refused(&op, "operation toy has no implementations");
}

static void expect_implementation_refused(const at_implementation *broken, const char *words) {
  const at_implementation *const list[] = {&toy_base_implementation, broken};
  at_op op = toy_op;
  op.implementations = list;
  op.implementation_count = AT_COUNT(list);
  expect_refused(&op, words);
}

static void implementations(void **state) {
  (void)state;
  at_implementation broken;
#define WITHOUT(slot, words)                       \
  do {                                             \
    broken = toy_spin_implementation;              \
    broken.slot = 0;                               \
    expect_implementation_refused(&broken, words); \
  } while (0)
  WITHOUT(name, "implementation 1 of toy has no name");
  WITHOUT(version, "version of implementation spin of toy is 0; should be 1 or more");
  WITHOUT(backend, "implementation spin of toy has no backend");
  WITHOUT(supports, "implementation spin of toy has no supports");
  WITHOUT(configurations, "implementation spin of toy has no configurations");
  WITHOUT(prepare, "implementation spin of toy has no prepare");
  WITHOUT(launch, "implementation spin of toy has no launch");
#undef WITHOUT
  expect_implementation_refused(NULL, "implementation 1 of toy is NULL");
  broken = toy_spin_implementation;
  broken.name = toy_base_implementation.name;
  expect_implementation_refused(&broken, "two implementations of toy on host are called base");
  broken = toy_spin_implementation;
  fill(&broken, offsetof(at_implementation, bare_name));
  expect_implementation_refused(&broken,
                                "implementation spin of toy has bare_name alone; should have bare and bare_name");
  broken = toy_spin_implementation;
  fill(&broken, offsetof(at_implementation, bare_threads));
  expect_implementation_refused(&broken, "implementation spin of toy has bare_threads alone; should have bare too");
}

static void two_operations_differ(void **state) {
  (void)state;
  at_op twin = toy_op;
  const at_op *const twins[] = {&toy_op, &twin};
  twin.name = "twin";
  FAILS(at_ops_check(twins, 2), ATTUNE_INTERNAL);
  assert_non_null(strstr(attune_last_message(), "should differ in name and number"));
  twin.name = toy_op.name;
  twin.id++;
  FAILS(at_ops_check(twins, 2), ATTUNE_INTERNAL);
  twin.name = "twin";
  OK(at_ops_check(twins, 2));
  const at_op *const hole[] = {&toy_op, NULL}; /* a number in ops.h without a line in list.c */
  FAILS(at_ops_check(hole, 2), ATTUNE_INTERNAL);
  assert_non_null(strstr(attune_last_message(), "an operation is NULL"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_slot_is_named),
      cmocka_unit_test(no_slot_is_forgotten),
      cmocka_unit_test(what_goes_together_is_there_or_not),
      cmocka_unit_test(names_and_sizes),
      cmocka_unit_test(implementations),
      cmocka_unit_test(two_operations_differ),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
