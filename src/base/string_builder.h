/* SPDX-License-Identifier: Apache-2.0
 * string_builder.h: text that grows, for summaries and JSON. */
#ifndef AT_MEMORY_STRING_BUILDER_H
#define AT_MEMORY_STRING_BUILDER_H

#include "src/base/support.h"

typedef struct at_string_builder {
  char *data;
  size_t length, room;
  bool failed; /* no memory: what follows is dropped */
} at_string_builder;

void at_string_builder_put(at_string_builder *text, const void *bytes, size_t count);
void at_string_builder_add(at_string_builder *text, const char *format, ...) AT_PRINTF(2, 3);

/* A JSON string with its quotes. */
void at_string_builder_quote(at_string_builder *text, const char *string);

/* Hands the text over, or fails. */
attune_status at_string_builder_take(at_string_builder *text, char **out);

#endif
