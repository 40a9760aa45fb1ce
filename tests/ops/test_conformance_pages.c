/* SPDX-License-Identifier: Apache-2.0
 * test_conformance_pages.c: what the pages say of each operation is what it has: the columns of a workload's row, the
 * words of its problems' texts, the keys of its configurations on the host, and its tables of tunables, which are made
 * of the code's: with --print it prints docs/configurations.md as it should be. test_docs.py compares the rest. */
#include "tests/ops/conformance.h"
#include "tests/ops/documented.h"

#include "ops/ops.h"
#include "tests/support/toy/toy_op.h"
#include "tuning/op/columns.h"
#include "tuning/op/tunables.h"

enum { CASES = 100000, CUDA_CASES = 50, ROOM = 256, MOST_COLUMNS = 64 };

static attune_device *device;
static const char *backend = "host";
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
  snprintf(unknown, sizeof unknown, "\"%s\" is not a column of %s", name, op->name);
  return strstr(attune_last_message(), unknown) == NULL;
}

static void columns_are_read(const at_op *op) {
  int count = 0;
  for (; op->problem->columns[count]; count++)
    if (!reads_column(op, op->problem->columns[count])) fail_msg("%s", attune_last_message());
  assert_in_range(count, 1, MOST_COLUMNS - 2);
  if (reads_column(op, "no_such_column")) fail_msg("%s takes any column: %s", op->name, attune_last_message());
}

static void column_is_known(void *op, const char *name) {
  if (!has_column(op, name)) fail_msg("docs/formats.md has `%s` for %s, the code has not", name, ((at_op *)op)->name);
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
  documented_each(part, length, column_is_known, (void *)(uintptr_t)op);
}

TEST(columns) {
  for (int i = 0; i < at_op_count; i++) {
    columns_are_read(at_ops[i]);
    columns_are_listed(at_ops[i], formats);
  }
}

/* ---- headings ---- */

/* The implementation that the line `line` is the heading of; NULL: none that is known. */
static const at_implementation *implementation_of(const at_op *op, const char *line, size_t chars) {
  for (size_t i = 0; op && i < op->implementation_count; i++) {
    const char *name = op->implementations[i]->name;
    if (strlen(name) == chars - 4 && strncmp(name, line + 4, chars - 4) == 0) return op->implementations[i];
  }
  return NULL;
}

static const at_op *op_of(const char *line, size_t chars) {
  for (int i = 0; i < at_op_count; i++)
    if (strlen(at_ops[i]->name) == chars - 3 && strncmp(at_ops[i]->name, line + 3, chars - 3) == 0) return at_ops[i];
  return NULL;
}

/* ---- words, keys ---- */

static void write_and_configure(const at_op_test *op_test, const void *problem, const char *text) {
  const at_op *op = op_test->op;
  static at_configuration room[ROOM];
  if (!documented_text(op, formats, text)) fail_msg("%s: %s", text, attune_last_message());
  for (size_t i = 0; i < op->implementation_count; i++) {
    const at_implementation *implementation = op->implementations[i];
    if (strcmp(implementation->backend, backend) != 0 || !implementation->supports(implementation, problem, device))
      continue;
    int count = implementation->configurations(implementation, problem, device, room, ROOM / 2);
    if (implementation->neighbours && count > 0)
      count += implementation->neighbours(implementation, problem, device, &room[0], room + count, ROOM / 2);
    for (int c = 0; c < count; c++)
      if (!documented_configuration(op, configurations, implementation, &room[c]))
        fail_msg("%s: %s", room[c].text, attune_last_message());
  }
}

TEST(words_and_keys) {
  for (int i = 0; i < at_op_count; i++)
    assert_true(conform_cases(at_op_test_at(i), device, CASES, write_and_configure) > 3);
}

TEST(words_and_keys_on_a_gpu) {
  attune_device *host = device;
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) {
    device = host;
    skip();
  }
  backend = "cuda";
  for (int i = 0; i < at_op_count; i++)
    assert_true(conform_cases(at_op_test_at(i), device, CUDA_CASES, write_and_configure) > 3);
  device = host;
  backend = "host";
}

/* The operations and their implementations are the headings of the page, and no others. */
TEST(headings) {
  const at_op *op = NULL;
  int seen = 0, all = 0;
  if (!attune_built_with_cuda()) skip(); /* the page has more */
  for (int i = 0; i < at_op_count; i++) all += 1 + (int)at_ops[i]->implementation_count;
  for (const char *line = configurations; *line; line += strcspn(line, "\n") + 1) {
    const size_t chars = strcspn(line, "\n");
    if (strncmp(line, "## ", 3) == 0) op = op_of(line, chars);
    if (strncmp(line, "## ", 3) != 0 && strncmp(line, "### ", 4) != 0) continue;
    if (line[2] == ' ' ? !op : !implementation_of(op, line, chars))
      fail_msg("docs/configurations.md has \"%.*s\", the code has not", (int)chars, line);
    seen++;
  }
  assert_int_equal(seen, all);
}

/* ---- tables of tunables ---- */

static void print_bounds(FILE *out, const at_tunable_value *v) {
  if (v->most == UINT32_MAX)
    fputs("a number", out);
  else if (v->most - v->least > 2)
    fprintf(out, "%lld to %lld", (long long)v->least, (long long)v->most);
  else
    for (int64_t i = v->least; i <= v->most; i++) fprintf(out, "%s%lld", i > v->least ? ", " : "", (long long)i);
}

static void print_values(FILE *out, const at_tunable *t) {
  const bool left_out = t->how & AT_LEFT_OUT;
  for (int i = left_out; t->words && t->words[i]; i++) fprintf(out, "%s`%s`", i > left_out ? ", " : "", t->words[i]);
  if (t->how & AT_TEXT) fputs("a text", out);
  if (!t->words && !(t->how & AT_TEXT)) {
    print_bounds(out, &t->of[0]);
    if (t->of[1].size) fputs(" x ", out), print_bounds(out, &t->of[1]);
    if (t->how & AT_POWERS) fputs(", powers of two", out);
  }
  if (left_out) fputs(", or left out", out);
}

static void print_table(FILE *out, const at_tunables *tunables) {
  fputs("| key | values | what it is |\n|---|---|---|\n", out);
  for (const at_tunable *t = tunables->rows; t < tunables->rows + tunables->count; t++) {
    fprintf(out, "| `%s` | ", t->key);
    print_values(out, t);
    fprintf(out, " | %s |\n", t->about);
  }
}

/* The page with the tables that the code has, each in the place of what its part has for one. */
static void print_page(FILE *out, const char *page) {
  const at_op *op = NULL;
  const at_tunables *due = NULL, *mine = NULL; /* not yet printed; of this part */
  for (const char *line = page; *line; line += strcspn(line, "\n") + 1) {
    const size_t chars = strcspn(line, "\n");
    const bool heading = *line == '#';
    if (due && (heading || *line == '|')) {
      print_table(out, due);
      if (heading) fputc('\n', out);
      due = NULL;
    }
    if (heading) mine = due = NULL;
    if (strncmp(line, "## ", 3) == 0) op = op_of(line, chars);
    const at_implementation *one = strncmp(line, "### ", 4) == 0 ? implementation_of(op, line, chars) : NULL;
    if (one) mine = due = one->tunables;
    if (!mine || *line != '|') fprintf(out, "%.*s\n", (int)chars, line);
  }
  if (due) print_table(out, due);
}

static char *made_page(const char *page) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  assert_non_null(out);
  print_page(out, page);
  fclose(out);
  return text;
}

TEST(tables_are_the_code_s) {
  char *made = made_page(configurations), *again = made_page(made);
  assert_string_equal(made, again);
  const char *one = made, *other = configurations;
  while (*one && *one == *other) one++, other++;
  while (one > made && one[-1] != '\n') one--;
  if (*other)
    fail_msg("docs/configurations.md differs from what `test_conformance_pages --print` prints, as in \"%.*s\"",
             (int)strcspn(one, "\n"), one);
  free(made);
  free(again);
}

/* Of each list: bounds that hold something, keys and macros that stand once, and room for the longest text. */
static void tables_are_sound(const at_implementation *one) {
  const at_tunables *t = one->tunables;
  size_t longest = 0;
  for (int i = 0; i < t->count; i++) {
    const at_tunable *row = &t->rows[i];
    size_t value = 0;
    for (int w = 0; row->words && row->words[w]; w++)
      if (strlen(row->words[w]) > value) value = strlen(row->words[w]);
    for (int v = 0; !row->words && v < 2 && row->of[v].size; v++) {
      if (row->of[v].least > row->of[v].most) fail_msg("%s, %s: no number fits", one->name, row->key);
      value += (size_t)snprintf(NULL, 0, "%lld", (long long)row->of[v].most) + (size_t)v;
    }
    if (row->how & AT_TEXT) value = row->of[0].size;
    longest += strlen(row->key) + 2 + value;
    if (!row->about || !*row->about) fail_msg("%s, %s: says nothing about itself", one->name, row->key);
    for (int j = 0; j < i; j++)
      if (strcmp(row->key, t->rows[j].key) == 0) fail_msg("%s has %s twice", one->name, row->key);
    for (int j = 0; j < 2 * i; j++)
      for (int v = 0; v < 2; v++) {
        const char *mine = row->of[v].macro, *other = t->rows[j / 2].of[j % 2].macro;
        if (mine && other && strcmp(mine, other) == 0) fail_msg("%s defines %s twice", one->name, mine);
      }
  }
  if (longest > AT_CONFIGURATION_CHARS) fail_msg("%s has a text of %zu characters", one->name, longest);
}

TEST(every_table_is_sound) {
  int found = 0;
  for (int i = 0; i < at_op_count; i++)
    for (size_t k = 0; k < at_ops[i]->implementation_count; k++)
      if (at_ops[i]->implementations[k]->tunables) tables_are_sound(at_ops[i]->implementations[k]), found++;
  assert_in_range(found, 2, 1000);
}

/* A row that is wrong is put right, and one that is missing is there. */
TEST(wrong_tables_are_found) {
  static const char wrong[] = "## gemm\n\n### host_small\n\nText.\n\n| key | what |\n|---|---|\n| `kernel` | no |\n\n"
                              "### host_blocked\n\nText.\n\n### host_reference\n\n| x |\n";
  char *made = made_page(wrong);
  assert_non_null(
      strstr(made, "\n| `kernel` | `portable`, `avx2`, `avx512` | the instruction set |\n| `vectors` | 1 to 4 |"));
  assert_non_null(strstr(made, "| `split` | `m`, `n`, `batch`, `grid`, or left out |"));
  assert_null(strstr(made, "| no |"));
  assert_non_null(strstr(made, "\n### host_reference\n\n| x |\n"));
  free(made);
}

/* ---- what a page lacks is found ---- */

TEST(what_is_missing_is_found) {
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

int main(int argc, char **argv) {
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  formats = documented_page("formats.md");
  configurations = documented_page("configurations.md");
  manual = documented_page("attune.1");
  if (argc > 1 && strcmp(argv[1], "--print") == 0) {
    print_page(stdout, configurations);
    return 0;
  }
  const int failed = RUN_TESTS(NULL, NULL);
  free(formats);
  free(configurations);
  free(manual);
  return failed;
}
