/* SPDX-License-Identifier: Apache-2.0
 * wide_text.c: "wide 100 16:8 strict a+b*c", then "align=8" where it holds. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/toy/wide_op.h"
#include "tuning/op/columns.h"

static attune_status put(const wide *g, bool sizes, char *out, size_t size) {
  size_t at = 0;
  bool ok = at_append(out, size, &at, "wide");
  if (sizes) ok = ok && at_append(out, size, &at, " %d", g->elements);
  ok = ok && at_append(out, size, &at, " %d:%d strict %.*s", g->inputs, g->outputs, g->letters, g->recipe);
  if (g->alignment != WIDE_ALIGNMENT) ok = ok && at_append(out, size, &at, " align=%d", g->alignment);
  return ok ? ATTUNE_OK : at_fail(ATTUNE_INVALID_ARGUMENT, "out is %zu bytes, too small", size);
}

attune_status wide_format(const void *problem, char *out, size_t size) {
  return put(problem, true, out, size);
}

attune_status wide_family(const void *problem, char *out, size_t size) {
  return put(problem, false, out, size);
}

static bool read_number(const char *word, int64_t most, int64_t *out) {
  return at_parse_i64(out, word) && *out >= 1 && *out <= most;
}

static bool read_recipe(const char *word, wide *g) {
  const size_t letters = strlen(word);
  if (letters > WIDE_MOST || strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789+*") != letters) return false;
  g->letters = (uint16_t)letters;
  memset(g->recipe, 0, (letters + 7) / 8 * 8);
  memcpy(g->recipe, word, letters);
  return true;
}

static bool read_word(char *word, int index, wide *g) {
  int64_t number = 0, outputs = 0;
  char *colon = strchr(word, ':');
  if (index == 0) return strcmp(word, "wide") == 0;
  if (index == 1) return read_number(word, INT32_MAX, &number) && (g->elements = (int32_t)number) > 0;
  if (index == 2) {
    if (!colon) return false;
    *colon = '\0';
    if (!read_number(word, WIDE_INPUTS, &number) || !read_number(colon + 1, WIDE_OUTPUTS, &outputs)) return false;
    g->inputs = (uint8_t)number;
    g->outputs = (uint8_t)outputs;
    return true;
  }
  if (index == 3) return strcmp(word, "strict") == 0;
  if (index == 4) return read_recipe(word, g);
  if (strncmp(word, "align=", 6) != 0 || !read_number(word + 6, WIDE_ALIGNMENT, &number)) return false;
  g->alignment = (uint8_t)number;
  return number >= 8 && !(number & (number - 1));
}

/* Nothing is written behind the problem's own bytes. */
attune_status wide_parse(const char *text, void *problem) {
  char words[AT_PROBLEM_CHARS], *rest = NULL;
  union {
    wide head;
    uint64_t words[WIDE_BYTES / 8];
  } g;
  int index = 0;
  g.head = (wide){.alignment = WIDE_ALIGNMENT};
  if (!at_copy_text(words, sizeof words, text))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "the problem's text is %zu characters long", strlen(text));
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest), index++)
    if (!read_word(word, index, &g.head))
      return at_fail(ATTUNE_INVALID_ARGUMENT, "word %d of the problem is \"%.40s\"", index + 1, word);
  if (index < 5) return at_fail(ATTUNE_INVALID_ARGUMENT, "the problem ends after %d words", index);
  memcpy(problem, &g, wide_op.problem_size(&g));
  return ATTUNE_OK;
}

enum { COLUMNS = 3 };
const char *const wide_columns[COLUMNS + 1] = {"elements", "tensors", "recipe", NULL};

attune_status wide_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                               size_t label_size) {
  const char *values[COLUMNS] = {NULL, "16:8", NULL};
  char text[AT_PROBLEM_CHARS];
  uint64_t problem[AT_PROBLEM_BYTES / 8];
  size_t at = 0;
  for (int i = 0; i < count; i++) {
    size_t which = 0;
    while (which < COLUMNS && strcmp(fields[i].name, wide_columns[which]) != 0) which++;
    if (which == COLUMNS) return at_fail_column(wide_ops, 1, fields[i].name);
    values[which] = fields[i].value;
  }
  for (size_t i = 0; i < COLUMNS; i++)
    if (!values[i]) return at_fail(ATTUNE_BAD_DATA, "column %s is missing", wide_columns[i]);
  if (!at_append(text, sizeof text, &at, "wide %s %s strict %s", values[0], values[1], values[2]))
    return at_fail(ATTUNE_BAD_DATA, "recipe is too long");
  attune_status status = wide_parse(text, problem);
  if (status == ATTUNE_OK) status = wide_format(problem, out, size);
  if (status == ATTUNE_OK) (void)at_append(label, label_size, &(size_t){0}, "%s of a recipe", values[0]);
  return status;
}
