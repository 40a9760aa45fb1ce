/* SPDX-License-Identifier: Apache-2.0
 * rewrites.h: the table of rewrites.def, and its use. */
#ifndef AT_ELEMENTWISE_REWRITES_H
#define AT_ELEMENTWISE_REWRITES_H

#include "ops/elementwise/ir/node_table.h"

/* Sets of dtypes that values are computed in. */
typedef enum at_dtypes {
  AT_DTYPES_BOOL = 1,
  AT_DTYPES_SIGNED = 2,
  AT_DTYPES_UNSIGNED = 4,
  AT_DTYPES_FLOATS = 8,
  AT_DTYPES_COMPLEX = 16,
  AT_DTYPES_INTEGERS = AT_DTYPES_SIGNED | AT_DTYPES_UNSIGNED,
  AT_DTYPES_ANY = 31
} at_dtypes;

typedef enum at_rewrite_when {
  AT_WHEN_ALWAYS,
  AT_WHEN_SECOND_IS, /* the constant `number`; a zero has its sign */
  AT_WHEN_EITHER_IS,
  AT_WHEN_SECOND_IS_POWER_OF_2,
  AT_WHEN_SECOND_IS_TOO_FAR,  /* for a shift of the dtype */
  AT_WHEN_SECOND_IS_NEGATIVE, /* of a signed integer's dtype */
  AT_WHEN_SAME,               /* both arguments are one node */
  AT_WHEN_TWICE,              /* the argument is a call of the function */
  AT_WHEN_NEGATED,            /* it is -y */
  AT_WHEN_SAME_CHOICES,       /* of where: the second and third are one node */
  AT_WHEN_CHOSEN              /* of where: the condition is the constant `number` */
} at_rewrite_when;

typedef enum at_rewrite_then {
  AT_THEN_FIRST, /* argument 0 */
  AT_THEN_SECOND,
  AT_THEN_THIRD,
  AT_THEN_THE_OTHER, /* than the constant */
  AT_THEN_INNER,     /* the argument of argument 0 */
  AT_THEN_ZERO,
  AT_THEN_ONE,
  AT_THEN_OF_INNER,   /* the function of the argument's argument */
  AT_THEN_RECIPROCAL, /* a product with it */
  AT_THEN_SQUARE,
  AT_THEN_SIGN_BITS, /* shifted by all bits but one */
  AT_THEN_OF_UNITS,  /* a negative power: of 1 and -1 it is 1 or -1, of others 0 */
  AT_THEN_AS_LESS,   /* with the arguments the other way round */
  AT_THEN_AS_LESS_EQUAL
} at_rewrite_then;

typedef struct at_rewrite {
  at_function function;
  unsigned dtypes; /* at_dtypes: of the arguments, of where of the last ones */
  at_rewrite_when when;
  double number;
  at_rewrite_then then;
  const char *text;
} at_rewrite;

typedef struct at_cast_rewrite {
  unsigned source, wide, narrow; /* at_dtypes */
  bool held;
  const char *text;
} at_cast_rewrite;

extern const at_rewrite at_rewrites[];
extern const int at_rewrite_count;
extern const at_cast_rewrite at_cast_rewrites[];
extern const int at_cast_rewrite_count;

/* The set that the dtype belongs to; f16, bf16 and 8-bit floats are floats, too. */
at_dtypes at_dtypes_of(attune_dtype dtype);

/* The first row that rewrites the call; NULL: none. */
const at_rewrite *at_rewrite_find(const at_node_table *b, at_function function, const int *arguments);

/* Applies the row to the call: true, and the node *out; or false, and another function of other arguments. It may
 * build a constant. `dtype` is the call's. */
bool at_rewrite_apply(const at_rewrite *row, at_node_table *b, at_function *function, attune_dtype dtype,
                      int *arguments, int *out);

/* Whether narrow(wide(x)), x of dtype `source`, is narrow(x) by a row. */
bool at_rewrite_drops_cast(attune_dtype source, attune_dtype wide, attune_dtype narrow);

#endif
