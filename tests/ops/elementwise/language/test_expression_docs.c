/* SPDX-License-Identifier: Apache-2.0
 * test_expression_docs.c: docs/expressions.md says what the code has: every function with its number of arguments and
 * no other, every operator in its order, the limits, and examples that compile. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/language/expression_fixture.h"

static char page[65536];

FIXTURE(read_page) {
  FILE *file = fopen(AT_SOURCE_DIR "/docs/expressions.md", "r");
  assert_non_null(file);
  page[fread(page, 1, sizeof page - 1, file)] = '\0';
  fclose(file);
  return 0;
}

/* The next line that begins with "| `"; NULL: no more before the next heading. */
static const char *next_row(const char *at) {
  for (at = strchr(at, '\n'); at; at = strchr(at, '\n')) {
    at++;
    if (at[0] == '#') return NULL;
    if (strncmp(at, "| `", 3) == 0) return at;
  }
  return NULL;
}

static const char *first_row(const char *heading) {
  const char *at = strstr(page, heading);
  assert_non_null(at);
  return next_row(at);
}

/* The words in backquotes of the row's first cell, with "\|" as "|". */
static int words_of(const char *row, char words[16][128]) {
  int count = 0;
  const char *at = row + 2;
  while (*at == '`' && count < 16) {
    size_t length = 0;
    for (at++; *at != '`'; at++) {
      if (at[0] == '\\' && at[1] == '|') continue;
      words[count][length++] = *at;
    }
    words[count++][length] = '\0';
    at++;
    if (strncmp(at, ", ", 2) == 0) at += 2;
  }
  return count;
}

TEST(functions) {
  bool there[AT_FN_COUNT] = {false};
  for (const char *row = first_row("## Functions"); row; row = next_row(row)) {
    char words[16][128];
    int arity = 0;
    const int count = words_of(row, words);
    assert_int_equal(sscanf(strstr(row + 2, " | ") + 3, "%d", &arity), 1);
    for (int i = 0; i < count; i++) {
      const int function = at_function_find(words[i], strlen(words[i]));
      if (function < 0 || at_function_arity((at_function)function) != arity)
        fail_msg("the page has %s of %d, the code has not", words[i], arity);
      there[function] = true;
    }
  }
  for (int i = 0; i < AT_FN_COUNT; i++)
    if (!at_function_precedence((at_function)i) && !there[i] && i != AT_FN_MAGNITUDE)
      fail_msg("the page does not have %s", at_function_name((at_function)i));
}

/* Rows from loose to tight; a row has all operators of a precedence. */
TEST(operators) {
  int last = 0, seen = 0;
  for (const char *row = first_row("## Operators"); row; row = next_row(row)) {
    char words[16][128];
    const int count = words_of(row, words);
    if (words[0][0] == 'c' || words[0][1] == 'x') {
      seen += words[0][1] == 'x' ? 3 : 0; /* + is no function */
      continue;
    }
    const int first = at_operator_find(words[0], strlen(words[0]), 2);
    assert_true(first >= 0 && at_function_precedence((at_function)first) > last);
    last = at_function_precedence((at_function)first);
    for (int i = 0; i < count; i++, seen++) {
      const int function = at_operator_find(words[i], strlen(words[i]), 2);
      if (function < 0 || at_function_precedence((at_function)function) != last)
        fail_msg("%s does not stand in its row", words[i]);
    }
  }
  int all = 0;
  for (int i = 0; i < AT_FN_COUNT; i++) all += at_function_precedence((at_function)i) > 0;
  assert_int_equal(seen, all);
}

static void limit(const char *name, int value) {
  char row[80];
  snprintf(row, sizeof row, "| %s | %d |", name, value);
  if (!strstr(page, row)) fail_msg("the page does not have: %s", row);
}

TEST(limits) {
  limit("characters of a text", AT_EXPRESSION_CHARS);
  limit("characters of a name", AT_EXPRESSION_NAME - 1);
  limit("tensors", AT_EXPRESSION_INPUTS);
  limit("scalars", AT_EXPRESSION_SCALARS);
  limit("outputs", AT_EXPRESSION_OUTPUTS);
  limit("operations and operands after folding", AT_EXPRESSION_NODES);
  limit("nested parentheses, calls and operators", AT_EXPRESSION_DEPTH);
  limit("random numbers of an element", AT_EXPRESSION_DRAWS);
}

TEST(examples) {
  static const char *const line =
      "f32 a, f32 b, bf16 x, bf16 y, bf16 bias, f32 scale, f32 w, f32 g, f32 m0, f32 v0; f64 alpha, f64 b1, f64 b2, "
      "f64 lr";
  int count = 0;
  for (const char *row = first_row("## Examples"); row; row = next_row(row), count++) {
    char words[16][128];
    at_expression *e = NULL;
    assert_int_equal(words_of(row, words), 1);
    if (compile_mentioned(&e, line, words[0]) != ATTUNE_OK) fail_msg("%s: %s", words[0], attune_last_message());
    at_expression_destroy(e);
  }
  assert_true(count > 10);
}

/* The error that the page shows is the one that comes. */
TEST(error) {
  at_expression *e = NULL;
  FAILS(compile_mentioned(&e, "f32 a, f32 b", "gelU(a) + b"), ATTUNE_INVALID_ARGUMENT);
  if (!strstr(page, attune_last_message())) fail_msg("the page does not have: %s", attune_last_message());
}

/* "cannot be names": the words there are the reserved ones. */
TEST(reserved) {
  const char *at = strstr(page, "and the words"), *end = strstr(page, "cannot be names");
  int count = 0;
  assert_true(at && end && at < end);
  for (at = strchr(at, '`'); at && at < end; at = strchr(at, '`'), count++) {
    const size_t length = strcspn(at + 1, "`");
    if (!at_word_reserved(at + 1, length)) fail_msg("%.*s is not reserved", (int)length, at + 1);
    at += length + 2;
  }
  assert_int_equal(count, 15);
}

int main(void) {
  return RUN_TESTS(read_page, NULL);
}
