/* SPDX-License-Identifier: Apache-2.0
 * tolerance.h: how far an implementation may be from the reference at one element. Each function may be off by a few
 * units in the last place; what that does to the functions after it is found by moving their arguments that far. */
#ifndef AT_ELEMENTWISE_TOLERANCE_H
#define AT_ELEMENTWISE_TOLERANCE_H

#include "ops/elementwise/ir/evaluate.h"

/* The bound of each node's value, whose values are given: the largest difference from it; of a complex one, of each
 * part. Infinity: anything may come out. bounds[node_count]. */
void at_tolerance_bounds(double *bounds, const at_wide_value *values, const at_expression *expression, bool reduced);

/* The error of an output's element at `got` as a fraction of what is allowed, from the node's value and bound. */
double at_tolerance_error(const void *got, attune_dtype stored, attune_dtype node_dtype, at_wide_value value,
                          double bound);

/* The distance of a floating or complex dtype's numbers near x; 0 where x is not finite. */
double at_tolerance_unit(attune_dtype dtype, double x);

#endif
