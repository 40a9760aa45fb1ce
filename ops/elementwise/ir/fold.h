/* SPDX-License-Identifier: Apache-2.0
 * fold.h: functions of constants, computed by the reference's evaluator: a constant is what the run would give. What
 * would depend on a NaN's sign or payload is not folded, nor complex functions that are not exact. */
#ifndef AT_ELEMENTWISE_FOLD_H
#define AT_ELEMENTWISE_FOLD_H

#include "ops/elementwise/ir/wide_value.h"

/* *out = function(values), all of `dtype` (for where all but the first), which gives a `result`. False: it stays for
 * the run. Floats are rounded once to the dtype; integers wrap. The transcendental functions are computed in long
 * double, so that they are the correctly rounded ones but for rare cases. */
bool at_fold(at_function function, attune_dtype dtype, attune_dtype result, const at_constant *values,
             at_constant *out);

/* Turns a constant of `from` into one of `to`, as a cast when it runs: f16, bf16 and f8 are rounded to these, and an
 * integer takes the nearest number in its range, 0 for NaN. */
void at_fold_cast(attune_dtype from, attune_dtype to, at_constant *value);

/* False: `to` is an integer dtype, and has not the whole part of the float `value`. */
bool at_fold_holds(attune_dtype from, attune_dtype to, const at_constant *value);

#endif
