/* SPDX-License-Identifier: Apache-2.0
 * user_function.h: functions in C of the program's own (elementwise_cuda.h): their texts, by a hash, as long as they
 * are used. Equal ones, as at_user_function_text has it, are one. */
#ifndef AT_ELEMENTWISE_USER_FUNCTION_H
#define AT_ELEMENTWISE_USER_FUNCTION_H

#include "src/base/support.h"

enum { AT_USER_FUNCTION_HASH_CHARS = 33, AT_USER_FUNCTION_NAME_CHARS = 64 };

typedef struct at_user_function {
  char hash[AT_USER_FUNCTION_HASH_CHARS]; /* 32 hexadecimal digits */
  char *text;                             /* in its one form */
  char *own_text;                         /* as it was written by whoever came first */
  char name[AT_USER_FUNCTION_NAME_CHARS], own_name[AT_USER_FUNCTION_NAME_CHARS]; /* in each */
  unsigned users;                                                                /* under the table's lock */
  struct at_user_function *next;
} at_user_function;

/* The function of a caller's source, into *out; at_user_function_release gives it back. Errors: INVALID_ARGUMENT (null;
 * too long; no name), OUT_OF_MEMORY. Any thread. */
attune_status at_user_function_get(at_user_function **out, const char *source, const char *name);

/* The one with this hash, to be given back; NULL: it is not in use. */
at_user_function *at_user_function_find(const char *hash);
at_user_function *at_user_function_hold(at_user_function *raw);
void at_user_function_release(at_user_function *raw); /* NULL is left alone */

/* user_function_text.c: one form for sources in C that differ in blanks, comments and the function's name alone. */

#define AT_USER_FUNCTION_NAME "at_user_function" /* what a function is called in that form */

/* The form of `text`, to be freed by the caller; *renamed: `name` is AT_USER_FUNCTION_NAME in it. A text in which
 * blanks or names may count (with quotes, backslashes, #; with an open comment) stays as it is. NULL: no memory. */
char *at_user_function_text(const char *text, const char *name, bool *renamed);

#endif
