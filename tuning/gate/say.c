/* SPDX-License-Identifier: Apache-2.0
 * say.c: sentences and memory, or the end of the program. */
#include "tuning/gate/say.h"

#include <stdarg.h>
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

void *gate_alloc(size_t count, size_t size) {
  return or_end(calloc(count ? count : 1, size ? size : 1));
}

void *gate_grow(void *old, size_t count, size_t size) {
  return or_end(reallocarray(old, count ? count : 1, size ? size : 1));
}

char *gate_copy(const char *text) {
  return text ? or_end(strdup(text)) : NULL;
}
