/* SPDX-License-Identifier: Apache-2.0
 * blocked_avx2.c: the blocked kernels for AVX2 with FMA. */
#include "ops/gemm/host/blocked.h"

#if defined(__x86_64__)
#include "ops/gemm/host/simd_avx2.h"

#define VECTORS 2
#define COLUMNS 6
#define KERNELS "ops/gemm/host/blocked_kernels_template.h"
#include "ops/gemm/host/each_type_template.h"

const at_blocked_isa at_blocked_avx2 = {
    .name = "avx2", .f32 = &f32_ops, .f64 = &f64_ops, .small = {AT_SMALL_OPS(&, avx2)}};

#endif
