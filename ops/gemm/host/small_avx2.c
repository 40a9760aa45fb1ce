/* SPDX-License-Identifier: Apache-2.0
 * small_avx2.c: the small tiles for AVX2 with FMA. */
#include "ops/gemm/host/small.h"

#if defined(__x86_64__)
#include "ops/gemm/host/simd_avx2.h"

#define COLUMNS_1 12
#define COLUMNS_2 6
#define COLUMNS_3 4
#define COLUMNS_4 2
#define PAIRS_1 6
#define PAIRS_2 3
#define PAIRS_3 2
#define PAIRS_4 1
#define TABLE(type) at_small_avx2_##type
#define KERNELS "ops/gemm/host/small_template.h"
#include "ops/gemm/host/each_type_template.h"

#endif
