/* SPDX-License-Identifier: Apache-2.0
 * string_builder.c: text that grows. */
#include "src/base/string_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(at_string_builder *text, size_t more) {
  if (text->failed) return false;
  if (text->room - text->length > more) return true;
  size_t room = text->room ? text->room : 4096;
  while (room - text->length <= more) room *= 2;
  char *data = realloc(text->data, room);
  text->failed = !data;
  if (!data) return false;
  text->data = data;
  text->room = room;
  return true;
}

void at_string_builder_put(at_string_builder *text, const void *bytes, size_t count) {
  if (!grow(text, count)) return;
  memcpy(text->data + text->length, bytes, count);
  text->length += count;
  text->data[text->length] = '\0';
}

void at_string_builder_add(at_string_builder *text, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, args);
  if (length >= 0 && grow(text, (size_t)length)) {
    (void)vsnprintf(text->data + text->length, text->room - text->length, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
  va_end(args);
}

/* Escapes all but printable ASCII, so that the text is valid JSON whatever a driver calls its device. */
void at_string_builder_quote(at_string_builder *text, const char *string) {
  at_string_builder_add(text, "\"");
  for (; *string; string++) {
    unsigned char c = (unsigned char)*string;
    if (c == '"' || c == '\\')
      at_string_builder_add(text, "\\%c", c);
    else
      at_string_builder_add(text, c >= 0x20 && c < 0x7f ? "%c" : "\\u%04x", c);
  }
  at_string_builder_add(text, "\"");
}

attune_status at_string_builder_take(at_string_builder *text, char **out) {
  *out = NULL;
  if (!text->failed && text->data) {
    *out = text->data;
    return ATTUNE_OK;
  }
  free(text->data);
  return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a text of more than %zu bytes", text->length);
}
