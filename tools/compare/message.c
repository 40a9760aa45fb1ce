/* SPDX-License-Identifier: Apache-2.0
 * message.c: sentences and memory, or the end of the program. */
#include "tools/compare/message.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_end(void *memory) {
  if (memory) return memory;
  fputs("attune: out of memory\n", stderr);
  exit(1);
}

char *gate_say(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  const int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  return or_end(length < 0 ? NULL : text);
}

static bool says_something(const char *line, size_t length) {
  for (size_t i = 0; i < length; i++)
    if (isalnum((unsigned char)line[i]) || (unsigned char)line[i] >= 0x80) return true;
  return false;
}

char *gate_one_line(const char *text) {
  char *out = gate_alloc(2 * strlen(text) + 1, 1), *to = out;
  for (const char *rest = text; *rest;) {
    size_t length = strcspn(rest, "\r\n");
    const char *line = rest, *after = rest + length;
    rest = after + strspn(after, "\r\n");
    while (length && strchr(" \t", *line)) line++, length--;
    while (length && strchr(" \t", line[length - 1])) length--;
    if (!says_something(line, length)) continue;
    if (to != out) to = stpcpy(to, "; ");
    memcpy(to, line, length);
    to += length;
  }
  *to = '\0';
  return out;
}

void *gate_alloc(size_t count, size_t size) {
  return or_end(calloc(count ? count : 1, size ? size : 1));
}

void *gate_grow(void *old, size_t count, size_t size) {
  return or_end(reallocarray(old, count ? count : 1, size ? size : 1));
}

char *gate_copy(const char *text) {
  return text ? or_end(strdup(text)) : NULL;
}
