/* SPDX-License-Identifier: Apache-2.0
 * blocked_portable.c: the blocked kernels for any CPU. */
#include "ops/gemm/host/blocked.h"

#include "ops/gemm/host/simd_portable.h"

#define VECTORS 2
#define COLUMNS 4
#define KERNELS "ops/gemm/host/blocked_kernels_template.h"
#include "ops/gemm/host/each_type_template.h"

const at_blocked_isa at_blocked_portable = {
    .name = "portable", .f32 = &f32_ops, .f64 = &f64_ops, .small = {AT_SMALL_OPS(&, portable)}};
