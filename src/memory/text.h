/* SPDX-License-Identifier: Apache-2.0
 * text.h: text that grows, for summaries and JSON. */
#ifndef AT_MEMORY_TEXT_H
#define AT_MEMORY_TEXT_H

#include "src/support.h"

typedef struct at_text {
  char *data;
  size_t length, room;
  bool failed; /* no memory: what follows is dropped */
} at_text;

void at_text_put(at_text *text, const void *bytes, size_t count);
void at_text_add(at_text *text, const char *format, ...) AT_PRINTF(2, 3);

/* A JSON string with its quotes. */
void at_text_quote(at_text *text, const char *string);

/* Hands the text over, or fails. */
attune_status at_text_take(at_text *text, char **out);

#endif
