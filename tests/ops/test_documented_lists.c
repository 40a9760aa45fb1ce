/* SPDX-License-Identifier: Apache-2.0
 * test_documented_lists.c: what pages list is what the code has, and back: environment variables, keys of ATTUNE_ALLOC,
 * the columns that every workload has. The lists are the code's own. */
#include <regex.h>

#include "src/base/settings.h"
#include "src/memory/malloc/options.h"
#include "tests/support/documented_page.h"
#include "tuning/op/columns.h"
#include "tuning/workload/workload.h"

enum { MOST = 64 };
typedef struct list {
  const char *names[MOST];
  int count;
} list;

static void add(void *to, const char *name) {
  list *l = to;
  assert_in_range(l->count, 0, MOST - 1);
  l->names[l->count++] = strdup(name);
}

static bool has(const list *l, const char *name) {
  for (int i = 0; i < l->count; i++)
    if (strcmp(l->names[i], name) == 0) return true;
  return false;
}

/* The first group of each line that matches. */
static list lines_of(const char *text, const char *pattern) {
  list found = {.count = 0};
  regex_t compiled;
  regmatch_t match[2];
  char name[128];
  assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NEWLINE), 0);
  for (; regexec(&compiled, text, 2, match, 0) == 0; text += match[0].rm_eo) {
    snprintf(name, sizeof name, "%.*s", (int)(match[1].rm_eo - match[1].rm_so), text + match[1].rm_so);
    add(&found, name);
  }
  regfree(&compiled);
  return found;
}

static list rows_of(const char *page, const char *heading) {
  list found = {.count = 0};
  size_t length = 0;
  const char *part = documented_part(page, heading, 6, &length);
  documented_each(part, length, add, &found);
  return found;
}

static int release(list names) {
  for (int i = 0; i < names.count; i++) free((char *)(uintptr_t)names.names[i]);
  return names.count;
}

/* Number of differences; both lists are freed. */
static int compare(const char *where, list page, list code) {
  int differences = 0;
  for (int i = 0; i < code.count; i++)
    if (!has(&page, code.names[i])) differences++, print_error("%s lacks %s\n", where, code.names[i]);
  for (int i = 0; i < page.count; i++)
    if (!has(&code, page.names[i])) differences++, print_error("%s has %s, the code has not\n", where, page.names[i]);
  (void)release(page);
  (void)release(code);
  return differences;
}

/* Those of attune alone, or all: those of the command, which reads its terminal's, too. */
static list variables(bool all) {
  static const char *const of_the_command[] = {"NO_COLOR", "TERM", "COLUMNS"};
  list found = {.count = 0};
  for (size_t i = 0; at_settings_variable(i); i++)
    if (all || strncmp(at_settings_variable(i), "ATTUNE_", 7) == 0) add(&found, at_settings_variable(i));
  for (size_t i = 0; all && i < AT_COUNT(of_the_command); i++) add(&found, of_the_command[i]);
  return found;
}

static list keys(void) {
  list found = {.count = 0};
  for (size_t i = 0; at_memory_options_key(i); i++) add(&found, at_memory_options_key(i));
  return found;
}

static list columns(void) {
  static const char *const contract[] = {AT_CONTRACT_COLUMNS};
  list found = {.count = 0};
  for (int i = 0; i < AT_WORKLOAD_COLUMNS; i++) add(&found, at_workload_columns[i]);
  for (size_t i = 0; i < AT_COUNT(contract); i++) add(&found, contract[i]);
  return found;
}

#define MANUAL_VARIABLE "^\\.B (ATTUNE_[A-Z0-9_]+)$"
#define HEADER_KEY "^ \\* - ([a-z0-9_]+): "

static void variables_are_listed(void **state) {
  (void)state;
  char *page = documented_page("environment.md"), *manual = documented_page("attune.1");
  assert_int_equal(compare("docs/environment.md", rows_of(page, "# Environment variables"), variables(true)), 0);
  assert_int_equal(compare("docs/attune.1", lines_of(manual, MANUAL_VARIABLE), variables(false)), 0);
  free(page);
  free(manual);
}

static void keys_are_listed(void **state) {
  (void)state;
  char *header = documented_page("../include/attune/memory.h");
  assert_int_equal(compare("include/attune/memory.h", lines_of(header, HEADER_KEY), keys()), 0);
  free(header);
}

static void columns_are_listed(void **state) {
  (void)state;
  char *page = documented_page("formats.md");
  assert_int_equal(compare("docs/formats.md", rows_of(page, "## Workload CSV"), columns()), 0);
  free(page);
}

static void differences_are_found(void **state) {
  static const char page[] = "# Keys\n\n| `name`, `op` | x `y` |\n| `problems` | z |\n\n## Other\n\n| `count` |\n";
  (void)state;
  const list found = rows_of(page, "# Keys");
  assert_int_equal(found.count, 3);
  assert_true(has(&found, "name") && has(&found, "op") && has(&found, "problems"));
  assert_int_equal(compare("(meant) a page", found, columns()), AT_WORKLOAD_COLUMNS - 2 + 4 + 1);
  assert_int_equal(
      compare("(meant) a manual", lines_of(".B ATTUNE_DB\n.B ATTUNE_DBS\n", MANUAL_VARIABLE), variables(false)),
      release(variables(false)));
  assert_int_equal(compare("(meant) a header", lines_of(" * - poison: x\n * poisoned: y\n", HEADER_KEY), keys()),
                   release(keys()) - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(variables_are_listed),
      cmocka_unit_test(keys_are_listed),
      cmocka_unit_test(columns_are_listed),
      cmocka_unit_test(differences_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
