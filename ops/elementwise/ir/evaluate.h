/* SPDX-License-Identifier: Apache-2.0
 * evaluate.h: an expression computed one element at a time in long double (where that is no wider than double, in
 * double) and in exact integers: the reference that implementations are verified with. Plain and slow.
 *
 * What the functions mean where C or IEEE 754 leave it open, for every implementation:
 * - Integers wrap. // and % round toward minus infinity; x // 0, x % 0 and fmod(x, 0) are 0, and the least integer by
 *   -1 wraps. A shift by a negative count, or by as many bits as there are, gives 0, or -1 for a negative number
 *   shifted right. An integer to a negative power is what 1 / x^n truncates to, and 0 for 0. A bool has one bit: clz(b)
 *   is !b.
 * - min, max, clamp and relu keep NaN; fmin and fmax take the other one. -0 is less than 0 for all of these, as for
 *   IEEE 754-2019's minimum and maximum: relu(-0) is max(-0, 0), 0.
 * - sign(NaN) is NaN and sign(-0) is 0, as NumPy's. Floating x // y is Python's: NaN for infinite x, x / y for y = 0.
 * So
 *   is x % y: a zero has the sign of y.
 * - A neural function at an infinity is what its formula gives: silu, gelu and mish of -inf are NaN.
 * - ldexp(x, y) is x 2^y for any y. Comparisons with NaN are false, != is true.
 * - Complex: z ** 0 is 1, and 0 ** z is 0 for other z. isnan and isinf: either part; isfinite: both parts. */
#ifndef AT_EVALUATE_H
#define AT_EVALUATE_H

#include "ops/elementwise/ir/wide_value.h"
#include "ops/elementwise/layout/layout.h"
#include "ops/elementwise/layout/random_draws.h"

/* Type that a result is rounded to. */
typedef enum at_rounding {
  AT_ROUND_NODES, /* each node's value to the node's dtype: what an implementation is close to, node by node */
  AT_ROUND_CASTS  /* only where the text casts, and integers: the value of the formula */
} at_rounding;

/* One element of everything that an expression reads. */
typedef struct at_element {
  const void *inputs[AT_EXPRESSION_INPUTS];
  const at_constant *scalars;
  int64_t number, position[AT_DIMS]; /* position[0] is the innermost coordinate */
  int64_t count;                     /* elements of the whole shape */
  const at_random_draws *draws;      /* NULL: none are drawn */
} at_element;

/* Every node's value for one element into values[expression->node_count]. Cannot fail. */
void at_evaluate(at_wide_value *values, const at_expression *expression, const at_element *element,
                 at_rounding rounding);

/* One function of arguments of `dtype` (of SELECT: of the last two), not rounded; the value has dtype `result`. */
at_wide_value at_evaluate_function(at_function function, attune_dtype dtype, attune_dtype result,
                                   const at_wide_value *arguments);

/* The same rounded to `result`, of arguments that are rounded. */
at_wide_value at_evaluate_rounded(at_function function, attune_dtype dtype, attune_dtype result,
                                  const at_wide_value *arguments);

/* Its parts, by the kind of the arguments. */
at_wide_value at_evaluate_real(at_function function, attune_dtype dtype, const at_wide_value *x);
at_wide_value at_evaluate_integer(at_function function, attune_dtype dtype, const at_wide_value *x);
at_wide_value at_evaluate_complex(at_function function, const at_wide_value *x);

/* The operations that IEEE 754 rounds once, and squares, of arguments that f64 or f32 holds; false: it is none of
 * these. */
bool at_evaluate_basic(at_function function, attune_dtype dtype, const at_wide_value *x, long double *out);

/* evaluate_gelu.c: of numbers that f64 has; by the error function, and by the hyperbolic tangent. */
long double at_evaluate_gelu(long double x);
long double at_evaluate_gelu_tanh(long double x);

#endif
