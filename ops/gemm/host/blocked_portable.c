/* SPDX-License-Identifier: Apache-2.0
 * blocked_portable.c: the blocked kernels for any CPU. */
#include "ops/gemm/host/blocked.h"

#include <string.h>

#include "ops/gemm/host/simd_portable.h"
#include "ops/gemm/host/simd_unroll.h"
#include "src/base/half.h"

#define E float
#define P(name) vf_##name
#define FN(name) f32_##name
#define LANES VF_LANES
#define VECTORS 2
#define COLUMNS 4
#define BLOCK VF_BLOCK
#define HALVES 1
typedef vf vf_vector;
#include "ops/gemm/host/blocked_kernels_template.h"
#undef E
#undef P
#undef FN
#undef LANES
#undef BLOCK
#undef HALVES

#define E double
#define P(name) vd_##name
#define FN(name) f64_##name
#define LANES VD_LANES
#define BLOCK VD_BLOCK
#define HALVES 0
typedef vd vd_vector;
#include "ops/gemm/host/blocked_kernels_template.h"

const at_blocked_isa at_blocked_portable = {.name = "portable",
                                            .f32 = &f32_ops,
                                            .f64 = &f64_ops,
                                            .small_f32 = &at_small_portable_f32,
                                            .small_f64 = &at_small_portable_f64};
