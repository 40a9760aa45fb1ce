/* SPDX-License-Identifier: Apache-2.0
 * fold.h: functions of constants. What would depend on a NaN's sign or payload is not folded, nor what two devices may
 * do differently (a float out of an integer's range). */
#ifndef AT_ELEMENTWISE_FOLD_H
#define AT_ELEMENTWISE_FOLD_H

#include "ops/elementwise/expression.h"
#include "src/dtype.h"

/* *out = function(values), all of `dtype` (for where all but the first). False: it stays for the run. Floats are
 * rounded once to the dtype; integers wrap. The transcendental functions are computed in long double, so that they are
 * the correctly rounded ones but for rare cases. */
bool at_fold(at_function function, attune_dtype dtype, const at_constant *values, at_constant *out);

/* Turns a constant of `from` into one of `to`; false: an integer cannot hold it. f16, bf16 and f8: rounded to these. */
bool at_fold_cast(attune_dtype from, attune_dtype to, at_constant *value);

/* The integer's low bits as the dtype reads them. */
int64_t at_wrap(attune_dtype dtype, uint64_t value);

/* The parts of at_fold for integers and for real numbers. */
bool at_fold_integer(at_function function, attune_dtype dtype, const int64_t *x, at_constant *out);
bool at_fold_real(at_function function, attune_dtype dtype, const double *x, at_constant *out);

/* A function of one real number in long double; false: not one of these. */
bool at_transcendental(at_function function, long double x, long double *out);

/* x as the float dtype holds it. */
double at_round_to(attune_dtype dtype, double x);

#endif
