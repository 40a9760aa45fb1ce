/* SPDX-License-Identifier: Apache-2.0
 * blocked_avx512.c: the blocked kernels for AVX-512. */
#include "ops/gemm/host/blocked.h"

#if defined(__x86_64__)
#include "ops/gemm/host/simd_avx512.h"

#define VECTORS 3
#define COLUMNS 8
#define KERNELS "ops/gemm/host/blocked_kernels_template.h"
#include "ops/gemm/host/each_type_template.h"

const at_blocked_isa at_blocked_avx512 = {
    .name = "avx512", .f32 = &f32_ops, .f64 = &f64_ops, .small = {AT_SMALL_OPS(&, avx512)}};

#endif
