/* SPDX-License-Identifier: Apache-2.0
 * elementwise_ulp.h: distances in units in the last place, the inputs that find them, and what elementwise_ulp.c asks
 * of a CUDA device. */
#ifndef BENCH_ELEMENTWISE_ULP_H
#define BENCH_ELEMENTWISE_ULP_H

#include "ops/elementwise/ir/expression.h"

/* The distance in units of the dtype at `exact`; 0 where both are NaN, or `got` overflowed as it should. */
double ulp_units(attune_dtype dtype, long double got, long double exact);
/* Input i of a function of so many arguments, of random bits: any bit pattern; of pairs and of f64 half are numbers of
 * everyday size, and one in eight is a hard one. */
void ulp_put_number(attune_dtype dtype, int arguments, unsigned char *to, int64_t i, uint64_t bits);

/* The device's name; NULL: there is none. */
const char *ulp_device(void);
/* out[i] = e(x[i], y[i]) for i < n on the device, in its kernel's strict form. */
void ulp_run(void *out, const at_expression *e, attune_dtype dtype, const void *x, const void *y, int64_t n);

#endif
