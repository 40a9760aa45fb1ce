/* SPDX-License-Identifier: Apache-2.0
 * source.c: a message with its place. Any byte may be in the text: what is not a printable character is shown by its
 * number, so that a message is safe to print. */
#include "ops/elementwise/language/source.h"

#include <stdio.h>
#include <string.h>

enum {
  COLUMNS = 36, /* shown on each side of the place */
  FIRST_LINE = 360
};

/* As it is shown: its width, with the text in out[5]. */
static int show(char *out, char c) {
  const unsigned char byte = (unsigned char)c;
  if (byte == '\t') return snprintf(out, 5, "\\t");
  if (byte == '\r') return snprintf(out, 5, "\\r");
  if (byte >= ' ' && byte < 127) return snprintf(out, 5, "%c", byte);
  return snprintf(out, 5, "\\x%02x", byte);
}

/* The part of the line around `at` that fits; *column: where `at` is in it. */
static void excerpt(const at_source *source, size_t at, char *out, size_t size, int *column) {
  char shown[5];
  size_t first = at, used = 0;
  int width = 0;
  while (first > 0 && source->text[first - 1] != '\n' && (width += show(shown, source->text[first - 1])) <= COLUMNS)
    first--;
  out[0] = '\0';
  if (first > 0 && source->text[first - 1] != '\n') at_append(out, size, &used, "...");
  size_t i = first;
  for (; i < at; i++) {
    show(shown, source->text[i]);
    at_append(out, size, &used, "%s", shown);
  }
  *column = (int)used;
  for (; i < source->length && source->text[i] != '\n' && (int)used < *column + COLUMNS; i++) {
    show(shown, source->text[i]);
    at_append(out, size, &used, "%s", shown);
  }
  if (i < source->length && source->text[i] != '\n') at_append(out, size, &used, "...");
}

attune_status at_fail_at(const at_source *source, size_t at, const char *format, ...) {
  char first[FIRST_LINE], line[2 * COLUMNS + 16] = "  ", caret[2 * COLUMNS];
  int column = 0;
  va_list args;
  va_start(args, format);
  vsnprintf(first, sizeof first, format, args);
  va_end(args);
  excerpt(source, at, line + 2, sizeof line - 2, &column);
  if (line[strspn(line, " ")] == '\0') return AT_INVALID("%s", first); /* there is nothing to show */
  snprintf(caret, sizeof caret, "%*s", column + 3, "^");
  return at_fail_lines(ATTUNE_INVALID_ARGUMENT, (const char *const[]){first, line, caret}, 3);
}
