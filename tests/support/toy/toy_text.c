/* SPDX-License-Identifier: Apache-2.0
 * toy_text.c: "toy f32 9x7 strict taps=3/-1", then "deterministic" and "align=8" where they hold; "f32:i64" has
 * integers of 64 bits. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/toy/toy_reference.h"
#include "tuning/op/columns.h"

static bool put_words(const toy *g, bool sizes, char *out, size_t size) {
  size_t at = 0;
  bool ok = at_append(out, size, &at, "toy %s%s", attune_dtype_name((attune_dtype)g->real),
                      g->integer == ATTUNE_I64 ? ":i64" : "");
  if (sizes) ok = ok && at_append(out, size, &at, " %dx%d", g->rows, g->cols);
  ok = ok && at_append(out, size, &at, " strict taps=");
  for (int i = 0; i < g->count; i++) ok = ok && at_append(out, size, &at, "%s%d", i ? "/" : "", g->taps[i]);
  if (g->deterministic) ok = ok && at_append(out, size, &at, " deterministic");
  if (g->alignment != TOY_ALIGNMENT) ok = ok && at_append(out, size, &at, " align=%d", g->alignment);
  return ok;
}

attune_status toy_format(const void *problem, char *out, size_t size) {
  return put_words(problem, true, out, size) ? ATTUNE_OK
                                             : at_fail(ATTUNE_INVALID_ARGUMENT, "out is %zu bytes, too small", size);
}

attune_status toy_family(const void *problem, char *out, size_t size) {
  return put_words(problem, false, out, size) ? ATTUNE_OK
                                              : at_fail(ATTUNE_INVALID_ARGUMENT, "out is %zu bytes, too small", size);
}

static bool read_i32(const char *text, int64_t least, int32_t *out) {
  int64_t value = 0;
  if (!at_parse_i64(&value, text) || value < least || value > INT32_MAX) return false;
  *out = (int32_t)value;
  return true;
}

static bool read_kind(char *word, toy *g) {
  char *integer = strchr(word, ':');
  if (integer) *integer++ = '\0';
  g->real = strcmp(word, "f64") == 0 ? ATTUNE_F64 : ATTUNE_F32;
  g->integer = integer && strcmp(integer, "i64") == 0 ? ATTUNE_I64 : ATTUNE_I32;
  return (g->real == ATTUNE_F64 || strcmp(word, "f32") == 0) &&
         (!integer || g->integer == ATTUNE_I64 || strcmp(integer, "i32") == 0);
}

static bool read_sizes(char *word, toy *g) {
  char *cols = strchr(word, 'x');
  if (!cols) return false;
  *cols++ = '\0';
  return read_i32(word, 1, &g->rows) && read_i32(cols, 1, &g->cols);
}

static bool read_taps(char *word, toy *g) {
  char *rest = NULL;
  for (char *tap = strtok_r(word, "/", &rest); tap; tap = strtok_r(NULL, "/", &rest))
    if (g->count == TOY_MOST_TAPS || !read_i32(tap, INT32_MIN, &g->taps[g->count++])) return false;
  return g->count > 0;
}

static bool read_word(char *word, int index, toy *g) {
  int32_t alignment = 0;
  if (index == 0) return strcmp(word, "toy") == 0;
  if (index == 1) return read_kind(word, g);
  if (index == 2) return read_sizes(word, g);
  if (index == 3) return strcmp(word, "strict") == 0;
  if (index == 4) return strncmp(word, "taps=", 5) == 0 && read_taps(word + 5, g);
  if (strcmp(word, "deterministic") == 0) return (g->deterministic = 1) != 0;
  if (strncmp(word, "align=", 6) != 0 || !read_i32(word + 6, 1, &alignment)) return false;
  g->alignment = (uint8_t)alignment;
  return alignment <= TOY_ALIGNMENT && !(alignment & (alignment - 1)) &&
         (size_t)alignment >= attune_dtype_size((attune_dtype)g->real) &&
         (size_t)alignment >= attune_dtype_size((attune_dtype)g->integer);
}

attune_status toy_parse(const char *text, void *problem) {
  char words[AT_PROBLEM_CHARS], *rest = NULL;
  toy g = {.alignment = TOY_ALIGNMENT};
  int index = 0;
  if (!at_copy_text(words, sizeof words, text))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "the problem's text is %zu characters long", strlen(text));
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest), index++)
    if (!read_word(word, index, &g))
      return at_fail(ATTUNE_INVALID_ARGUMENT, "word %d of the problem is \"%.40s\"", index + 1, word);
  if (index < 5) return at_fail(ATTUNE_INVALID_ARGUMENT, "the problem ends after %d words", index);
  *(toy *)problem = g;
  return ATTUNE_OK;
}

enum { COLUMNS = 4 };
const char *const toy_columns[COLUMNS + 1] = {"kind", "rows", "cols", "taps", NULL};

attune_status toy_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                              size_t label_size) {
  const char *values[COLUMNS] = {"f32", NULL, NULL, NULL};
  char text[AT_PROBLEM_CHARS];
  size_t at = 0;
  toy g;
  for (int i = 0; i < count; i++) {
    size_t which = 0;
    while (which < COLUMNS && strcmp(fields[i].name, toy_columns[which]) != 0) which++;
    if (which == COLUMNS) {
      const at_op *const toy_alone = &toy_op;
      return at_fail_column(&toy_alone, 1, fields[i].name);
    }
    values[which] = fields[i].value;
  }
  for (size_t i = 0; i < COLUMNS; i++)
    if (!values[i]) return at_fail(ATTUNE_BAD_DATA, "column %s is missing", toy_columns[i]);
  if (!at_append(text, sizeof text, &at, "toy %s %sx%s strict taps=%s", values[0], values[1], values[2], values[3]))
    return at_fail(ATTUNE_BAD_DATA, "taps is too long");
  attune_status status = toy_parse(text, &g);
  if (status == ATTUNE_OK) status = toy_format(&g, out, size);
  if (status == ATTUNE_OK) (void)at_append(label, label_size, &(size_t){0}, "%d by %d", g.rows, g.cols);
  return status;
}
