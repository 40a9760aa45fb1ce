/* SPDX-License-Identifier: Apache-2.0
 * keywords.h: what the words of the language mean: functions, dtypes, constants, and words that only have a hint. */
#ifndef AT_ELEMENTWISE_KEYWORDS_H
#define AT_ELEMENTWISE_KEYWORDS_H

#include "ops/elementwise/ir/expression.h"
#include "src/base/dtype.h"

int at_function_precedence(at_function function); /* 0: no operator */
bool at_function_commutes(at_function function);

/* The operator or function of this name; -1: none. "abs" is the one of real numbers. */
int at_operator_find(const char *text, size_t length, int arity);
int at_function_find(const char *text, size_t length);

attune_dtype at_dtype_find(const char *text, size_t length); /* 0: none */

/* pi, e, inf, nan, true, false: its dtype and value; 0: none. */
attune_dtype at_constant_find(const char *text, size_t length, at_constant *out);

/* rand, randn and index, which are no functions of their arguments. */
typedef enum at_special { AT_SPECIAL_NONE, AT_SPECIAL_RAND, AT_SPECIAL_RANDN, AT_SPECIAL_INDEX } at_special;
at_special at_special_find(const char *text, size_t length);

/* The replacement for a word of other languages, "and" or "pow"; NULL: none is known. */
const char *at_word_hint(const char *text, size_t length);

/* A word that no name may be, although it means nothing: "if". */
bool at_word_reserved(const char *text, size_t length);

/* Why `text` cannot be the name of an operand or of a value: "a function", "a dtype", "a constant" ...; NULL: it
 * can. */
const char *at_name_taken(const char *text, size_t length);

/* The known word or one of `count` names (with strides of `stride` bytes) most like the text; NULL: none is near. */
const char *at_nearest_name(const char *text, size_t length, const char *names, size_t stride, int count);

#endif
