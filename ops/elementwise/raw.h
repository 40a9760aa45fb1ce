/* SPDX-License-Identifier: Apache-2.0
 * raw.h: functions in C of the program's own (elementwise_cuda.h): their texts, by a hash, as long as somebody uses them.
 * Equal ones, as raw_text.h has it, are one. */
#ifndef AT_ELEMENTWISE_RAW_H
#define AT_ELEMENTWISE_RAW_H

#include "src/support.h"

enum { AT_RAW_HASH_CHARS = 33, AT_RAW_NAME_CHARS = 64 };

typedef struct at_raw {
  char hash[AT_RAW_HASH_CHARS];                              /* 32 hexadecimal digits */
  char *text;                                                /* in its one form */
  char *own_text;                                            /* as it was written by whoever came first */
  char name[AT_RAW_NAME_CHARS], own_name[AT_RAW_NAME_CHARS]; /* in each */
  unsigned users;                                            /* under the table's lock */
  struct at_raw *next;
} at_raw;

/* The function of a caller's source, into *out; at_raw_release gives it back. Errors: INVALID_ARGUMENT (null; too long; no
 * name), OUT_OF_MEMORY. Any thread. */
attune_status at_raw_get(at_raw **out, const char *source, const char *name);

/* The one with this hash, to be given back; NULL: nobody uses it. */
at_raw *at_raw_find(const char *hash);
at_raw *at_raw_hold(at_raw *raw);
void at_raw_release(at_raw *raw); /* NULL is left alone */

#endif
