/* SPDX-License-Identifier: Apache-2.0
 * test_conformance_pages.c: what the pages say of each operation is what it has: the columns of a workload's row, the
 * words of its problems' texts, the keys of its configurations on the host. test_docs.py compares the rest. */
#include "tests/ops/conformance.h"
#include "tests/ops/documented.h"

#include "ops/ops.h"
#include "tests/support/toy/toy_op.h"
#include "tuning/op/columns.h"

enum { CASES = 100000, ROOM = 256, MOST_COLUMNS = 64 };

static attune_device *device;
static char *formats, *configurations, *manual;

/* ---- columns ---- */

static bool has_column(const at_op *op, const char *name) {
  for (int i = 0; op->problem->columns[i]; i++)
    if (strcmp(op->problem->columns[i], name) == 0) return true;
  return false;
}

/* from_fields says of a column that it does not know it, in the words of at_fail_column. */
static bool reads_column(const at_op *op, const char *name) {
  char out[AT_PROBLEM_CHARS], label[AT_PROBLEM_CHARS], unknown[128];
  at_column fields[MOST_COLUMNS];
  int count = 0;
  fields[count++] = (at_column){name, "?", 1}; /* read first; the others so that none is missing */
  for (int i = 0; op->problem->columns[i]; i++)
    if (strcmp(name, op->problem->columns[i]) != 0) {
      fields[count] = (at_column){op->problem->columns[i], "1", count + 1};
      count++;
    }
  if (op->problem->from_fields(fields, count, out, sizeof out, label, sizeof label) == ATTUNE_OK)
    fail_msg("problem->from_fields of %s takes \"?\" in column %s; should refuse what it cannot read (columns.h)",
             op->name, name);
  snprintf(unknown, sizeof unknown, "\"%s\" is no column of %s", name, op->name);
  return strstr(attune_last_message(), unknown) == NULL;
}

static void columns_are_read(const at_op *op) {
  int count = 0;
  for (; op->problem->columns[count]; count++)
    if (!reads_column(op, op->problem->columns[count])) fail_msg("%s", attune_last_message());
  assert_in_range(count, 1, MOST_COLUMNS - 2);
  if (reads_column(op, "no_such_column")) fail_msg("%s takes any column: %s", op->name, attune_last_message());
}

/* Those that the page lists under its heading, and no other. */
static void columns_are_listed(const at_op *op, const char *page) {
  static const char all[] = "## Workload CSV";
  char own[64];
  size_t length = 0;
  snprintf(own, sizeof own, "### Columns of %s", op->name);
  for (int i = 0; op->problem->columns[i]; i++)
    if (!documented_word(page, all, own, op->problem->columns[i]))
      fail_msg("docs/formats.md, \"%s\", lacks `%s`", own, op->problem->columns[i]);
    else if (!documented_in_manual(manual, op->problem->columns[i]))
      fail_msg("docs/attune.1, WORKLOADS, lacks %s of %s", op->problem->columns[i], op->name);
  const char *part = documented_part(page, own, 3, &length);
  if (!length) fail_msg("docs/formats.md has no \"%s\"", own);
  for (const char *line = part; line < part + length; line += strcspn(line, "\n") + 1) {
    if (strncmp(line, "| `", 3) != 0) continue;
    const char *end = strchr(line + 2, '|');
    for (const char *quote = strchr(line, '`'); quote && quote < end; quote = strchr(quote, '`')) {
      char name[64] = "";
      const size_t chars = strcspn(quote + 1, "`");
      assert_in_range(chars, 1, sizeof name - 1);
      memcpy(name, quote + 1, chars);
      if (!has_column(op, name)) fail_msg("docs/formats.md, \"%s\", has `%s`, which %s has not", own, name, op->name);
      quote += chars + 2;
    }
  }
}

static void columns(void **state) {
  (void)state;
  for (int i = 0; i < at_op_count; i++) {
    columns_are_read(at_ops[i]);
    columns_are_listed(at_ops[i], formats);
  }
}

/* ---- words, keys ---- */

static void write_and_configure(const at_op_test *op_test, const void *problem, const char *text) {
  const at_op *op = op_test->op;
  static at_configuration room[ROOM];
  if (!documented_text(op, formats, text)) fail_msg("%s: %s", text, attune_last_message());
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, "host") != 0 || !implementation->supports(problem, device)) continue;
    int count = implementation->configurations(problem, device, room, ROOM / 2);
    if (implementation->neighbours && count > 0)
      count += implementation->neighbours(problem, device, &room[0], room + count, ROOM / 2);
    for (int c = 0; c < count; c++)
      if (!documented_configuration(op, configurations, implementation, &room[c]))
        fail_msg("%s: %s", room[c].text, attune_last_message());
  }
}

static void words_and_keys(void **state) {
  (void)state;
  for (int i = 0; i < at_op_count; i++)
    assert_true(conform_cases(at_op_test_at(i), device, CASES, write_and_configure) > 3);
}

/* ---- what a page lacks is found ---- */

static void what_is_missing_is_found(void **state) {
  (void)state;
  const at_op *op = at_ops[0];
  const at_implementation *implementation = op->implementations[op->implementation_count - 1];
  assert_true(documented_text(op, formats, "gemm f32 nn 8x8x8 strict lda=9"));
  assert_false(documented_text(op, formats, "gemm f32 nn 8x8x8 strict lde=9"));
  assert_non_null(strstr(attune_last_message(), "lacks `lde=`"));
  assert_false(documented_text(op, formats, "gemm f32:f8 nn 8x8x8 strict"));
  assert_true(documented_configuration(op, configurations, implementation, &(at_configuration){""}));
  assert_false(documented_configuration(op, configurations, implementation, &(at_configuration){"depth=3"}));
  assert_non_null(strstr(attune_last_message(), "lacks `depth`"));
  at_implementation other = *implementation;
  other.name = "host_nowhere";
  assert_false(documented_configuration(op, configurations, &other, &(at_configuration){""}));
  assert_false(documented_configuration(&toy_op, configurations, implementation, &(at_configuration){""}));
  assert_true(documented_in_manual(manual, "stride_d") && documented_in_manual(manual, "dtype"));
  assert_false(documented_in_manual(manual, "stride"));
  assert_false(documented_in_manual(manual, "taps"));
  assert_true(reads_column(&toy_op, "taps"));
  assert_false(reads_column(&toy_op, "m"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(columns),
      cmocka_unit_test(words_and_keys),
      cmocka_unit_test(what_is_missing_is_found),
  };
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  formats = documented_page("formats.md");
  configurations = documented_page("configurations.md");
  manual = documented_page("attune.1");
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  free(formats);
  free(configurations);
  free(manual);
  return failed;
}
