/* SPDX-License-Identifier: Apache-2.0
 * small_avx512.c: the small tiles for AVX-512. */
#include "ops/gemm/host/small.h"

#if defined(__x86_64__)
#include "ops/gemm/host/simd_avx512.h"

#define COLUMNS_1 16
#define COLUMNS_2 14
#define COLUMNS_3 9
#define COLUMNS_4 6
#define PAIRS_1 8
#define PAIRS_2 7
#define PAIRS_3 4
#define PAIRS_4 3
#define TABLE(type) at_small_avx512_##type
#define KERNELS "ops/gemm/host/small_template.h"
#include "ops/gemm/host/each_type_template.h"

#endif
