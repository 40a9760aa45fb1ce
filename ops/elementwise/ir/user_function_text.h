/* SPDX-License-Identifier: Apache-2.0
 * user_function_text.h: one form for sources in C that differ in blanks, comments and the name of the function alone. */
#ifndef AT_ELEMENTWISE_USER_FUNCTION_TEXT_H
#define AT_ELEMENTWISE_USER_FUNCTION_TEXT_H

#include "src/base/support.h"

#define AT_USER_FUNCTION_NAME "at_user_function" /* what a function is called in that form */

/* The form of `text`, to be freed by the caller; *renamed: `name` is AT_USER_FUNCTION_NAME in it. A text in which blanks or names may
 * count (with quotes, backslashes, #; with an open comment) stays as it is. NULL: no memory. */
char *at_user_function_text(const char *text, const char *name, bool *renamed);

#endif
