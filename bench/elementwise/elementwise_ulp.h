/* SPDX-License-Identifier: Apache-2.0
 * elementwise_ulp.h: what elementwise_ulp.c asks of a CUDA device. */
#ifndef BENCH_ELEMENTWISE_ULP_H
#define BENCH_ELEMENTWISE_ULP_H

#include "ops/elementwise/ir/expression.h"

/* The device's name; NULL: there is none. */
const char *ulp_device(void);
/* out[i] = e(x[i], y[i]) for i < n on the device, in its kernel's strict form. */
void ulp_run(void *out, const at_expression *e, attune_dtype dtype, const void *x, const void *y, int64_t n);

#endif
