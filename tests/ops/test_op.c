/* SPDX-License-Identifier: Apache-2.0
 * test_op.c: what an operation's table lacks, or has too much of, is named when a tuner is made: every slot, by its own
 * message. */
#include "tests/support/check.h"

#include "tests/support/toy/toy_op.h"
#include "tuning/measure/sampler_host.h"
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
#define SLOT(type, name) \
  { #name, offsetof(type, name) }
#define OF_PROBLEM(name) SLOT(at_problem_type, name)

static const slot of_problem[] = {
    OF_PROBLEM(format),      OF_PROBLEM(parse), OF_PROBLEM(family), OF_PROBLEM(distance), OF_PROBLEM(columns),
    OF_PROBLEM(from_fields), OF_PROBLEM(flops), OF_PROBLEM(bytes),  OF_PROBLEM(fold),     OF_PROBLEM(deterministic)};
static const slot of_problem_optional[] = {OF_PROBLEM(show), OF_PROBLEM(draws)};
static const slot of_operands[] = {SLOT(at_operand_type, buffers), SLOT(at_operand_type, bind)};
static const slot of_operands_optional[] = {SLOT(at_operand_type, spans)};
static const slot of_reference[] = {SLOT(at_reference_type, create), SLOT(at_reference_type, compare),
                                    SLOT(at_reference_type, destroy)};
static const slot of_specials[] = {SLOT(at_special_values, count), SLOT(at_special_values, contents),
                                   SLOT(at_special_values, plant), SLOT(at_special_values, compare),
                                   SLOT(at_special_values, name)};
static const slot of_calls[] = {SLOT(at_prepared_calls, create), SLOT(at_prepared_calls, run),
                                SLOT(at_prepared_calls, destroy)};

/* Toy's tables, whole, for a test to make holes in. */
static at_problem_type problem;
static at_operand_type operands;
static at_reference_type reference;
static at_special_values specials;
static at_prepared_calls calls;
static at_timed_call timed_call;

/* Each with its slots, those that it needs and those that it may have besides. `both`: slots that go together with
 * those of another table. */
static const struct {
  slot table;
  bool optional;
  void *filled;
  size_t bytes, both;
  const slot *needs, *may;
  size_t needs_count, may_count;
} tables[] = {
    {SLOT(at_op, problem), false, &problem, sizeof problem, 0, of_problem, of_problem_optional, AT_COUNT(of_problem),
     AT_COUNT(of_problem_optional)},
    {SLOT(at_op, operands), false, &operands, sizeof operands, 1, of_operands, of_operands_optional,
     AT_COUNT(of_operands), AT_COUNT(of_operands_optional)},
    {SLOT(at_op, reference), false, &reference, sizeof reference, 0, of_reference, NULL, AT_COUNT(of_reference), 0},
    {SLOT(at_op, specials), true, &specials, sizeof specials, 1, of_specials, NULL, AT_COUNT(of_specials), 0},
    {SLOT(at_op, calls), true, &calls, sizeof calls, 0, of_calls, NULL, AT_COUNT(of_calls), 0}};
static const slot optional[] = {SLOT(at_op, each_library), SLOT(at_op, problem_size), SLOT(at_op, plans_most),
                                SLOT(at_op, timed_call)};

static void empty(void *table, const slot *one) {
  memset((char *)table + one->offset, 0, sizeof(void *));
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
  for (size_t t = 0; t < AT_COUNT(tables); t++)
    for (size_t at = 0; at < tables[t].bytes; at += sizeof(void *)) fill(tables[t].filled, at);
  for (size_t i = 0; i < AT_COUNT(optional); i++) fill(&op, optional[i].offset);
  op.problem = &problem;
  op.operands = &operands;
  op.reference = &reference;
  op.specials = &specials;
  op.calls = &calls;
  op.timed_call = &timed_call;
  op.problem_bytes = 128; /* a multiple of 8, as problem_size wants it */
  return op;
}

TEST(each_slot_is_named) {
  char words[96];
  at_op op = whole();
  OK(at_op_check(&op));
  for (size_t t = 0; t < AT_COUNT(tables); t++) {
    op = whole();
    empty(&op, &tables[t].table);
    if (strcmp(tables[t].table.name, "calls") == 0) op.timed_call = NULL;
    snprintf(words, sizeof words, "operation toy has no %s", tables[t].table.name);
    if (tables[t].optional)
      OK(at_op_check(&op));
    else
      expect_refused(&op, words);
    for (size_t i = 0; i < tables[t].needs_count; i++) {
      op = whole();
      empty(tables[t].filled, &tables[t].needs[i]);
      snprintf(words, sizeof words, "operation toy has no %s->%s", tables[t].table.name, tables[t].needs[i].name);
      expect_refused(&op, words);
    }
    for (size_t i = 0; i < tables[t].may_count; i++) {
      op = whole();
      empty(tables[t].filled, &tables[t].may[i]);
      OK(at_op_check(&op));
    }
  }
  for (size_t i = 0; i < AT_COUNT(optional); i++) {
    op = whole();
    empty(&op, &optional[i]);
    OK(at_op_check(&op));
  }
  op = whole();
  op.implementations = NULL;
  expect_refused(&op, "operation toy has no implementations");
}

/* No slot is in neither list: one that is new to a table is added to op.c and here. */
TEST(no_slot_is_forgotten) {
  for (size_t t = 0; t < AT_COUNT(tables); t++)
    if (tables[t].bytes != (tables[t].needs_count + tables[t].may_count + tables[t].both) * sizeof(void *))
      fail_msg("a slot of %s is not checked", tables[t].table.name);
  static const slot numbers[] = {SLOT(at_op, name), SLOT(at_op, implementation_count), SLOT(at_op, implementations),
                                 SLOT(at_op, problem_bytes), SLOT(at_op, operands_bytes)};
  const size_t id = offsetof(at_op, id) / sizeof(void *) * sizeof(void *);
  for (size_t at = 0; at < sizeof(at_op); at += sizeof(void *)) {
    bool known = at == id || listed(optional, AT_COUNT(optional), at) || listed(numbers, AT_COUNT(numbers), at);
    for (size_t t = 0; t < AT_COUNT(tables); t++) known = known || tables[t].table.offset == at;
    if (!known) fail_msg("the slot at %zu of at_op is not checked", at);
  }
}

TEST(what_goes_together_is_there_or_not) {
  at_op op = whole();
  specials.scalars = NULL;
  expect_refused(&op, "operation toy has only operands->scalars");
  operands.scalars = NULL;
  OK(at_op_check(&op));
  op = whole();
  operands.scalars = NULL;
  expect_refused(&op, "operation toy has only specials->scalars");
  op = whole();
  op.specials = NULL;
  OK(at_op_check(&op));
  op = whole();
  op.calls = NULL;
  expect_refused(&op, "operation toy has timed_call without calls");
  op.timed_call = NULL;
  OK(at_op_check(&op));
}

TEST(names_and_sizes) {
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
  expect_refused(&op, "problem_bytes of toy is 124; should be a multiple of 8, as it has problem_size");
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

TEST(implementations) {
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
                                "implementation spin of toy has only bare_name; should have both bare and bare_name");
  broken = toy_spin_implementation;
  fill(&broken, offsetof(at_implementation, bare_threads));
  expect_implementation_refused(&broken, "implementation spin of toy has bare_threads without bare; should have both");
}

TEST(two_operations_differ) {
  at_op twin = toy_op;
  const at_op *const twins[] = {&toy_op, &twin};
  twin.name = "twin";
  FAILS_SAYING(at_ops_check(twins, 2), ATTUNE_INTERNAL, "should differ in name and number");
  twin.name = toy_op.name;
  twin.id++;
  FAILS(at_ops_check(twins, 2), ATTUNE_INTERNAL);
  twin.name = "twin";
  OK(at_ops_check(twins, 2));
  const at_op *const hole[] = {&toy_op, NULL}; /* a number in ops.h without a line in list.c */
  FAILS_SAYING(at_ops_check(hole, 2), ATTUNE_INTERNAL, "an operation is NULL");
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
