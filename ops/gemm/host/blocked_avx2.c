/* SPDX-License-Identifier: Apache-2.0
 * blocked_avx2.c: the blocked kernels for AVX2 with FMA. */
#include "ops/gemm/host/blocked.h"

#if defined(__x86_64__)
#include <string.h>

#include "ops/gemm/host/simd_avx2.h"
#include "ops/gemm/host/simd_unroll.h"
#include "src/base/half.h"

#define E float
#define P(name) vf_##name
#define FN(name) f32_##name
#define LANES VF_LANES
#define VECTORS 2
#define COLUMNS 6
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

const at_blocked_isa at_blocked_avx2 = {
    .name = "avx2", .f32 = &f32_ops, .f64 = &f64_ops, .small_f32 = &at_small_avx2_f32, .small_f64 = &at_small_avx2_f64};

#endif
