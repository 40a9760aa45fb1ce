/* SPDX-License-Identifier: Apache-2.0
 * message.h: sentences and memory for this room. It is part of the command, so what has no memory ends the program. */
#ifndef GATE_SAY_H
#define GATE_SAY_H

#include <stddef.h>

/* The sentence, for the caller to print and free; never NULL. */
char *gate_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `text` in one line, for the caller to free: its lines joined by "; ", without blanks around them; those without a
 * letter or digit, like the caret below an expression, are left out. */
char *gate_one_line(const char *text);

/* Zeroed; never NULL. */
void *gate_alloc(size_t count, size_t size);
/* As realloc; never NULL. What is added is not zeroed. */
void *gate_grow(void *old, size_t count, size_t size);
/* A copy; NULL of NULL. */
char *gate_copy(const char *text);

#endif
