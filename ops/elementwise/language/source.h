/* SPDX-License-Identifier: Apache-2.0
 * source.h: an expression's text: its tokens, and messages that show a place in it. */
#ifndef AT_ELEMENTWISE_SOURCE_H
#define AT_ELEMENTWISE_SOURCE_H

#include "ops/elementwise/ir/expression.h"

typedef struct at_source {
  const char *text;
  size_t length;
} at_source;

/* INVALID_ARGUMENT: the format's line, the line of the text around byte `at`, and a caret below; these two are left out
 * where the line has nothing but blanks. */
attune_status at_fail_at(const at_source *source, size_t at, const char *format, ...) AT_PRINTF(3, 4);

typedef enum at_token_kind { AT_TOKEN_END, AT_TOKEN_NAME, AT_TOKEN_NUMBER, AT_TOKEN_SIGN } at_token_kind;

typedef struct at_token {
  at_token_kind kind;
  size_t at, length;
  attune_dtype dtype;   /* of a number: i64, u64 where i64 does not hold it, f64, c128 */
  at_constant constant; /* its value */
} at_token;

/* The first token at or after byte `at`; it ends at out->at + out->length. */
attune_status at_token_read(const at_source *source, size_t at, at_token *out);

/* A number at byte `at`, which begins like one. */
attune_status at_number_read(const at_source *source, size_t at, at_token *out);

#endif
