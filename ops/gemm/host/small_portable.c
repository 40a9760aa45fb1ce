/* SPDX-License-Identifier: Apache-2.0
 * small_portable.c: the small tiles for any CPU. */
#include "ops/gemm/host/small.h"

#include "ops/gemm/host/simd_portable.h"

#define COLUMNS_1 8
#define COLUMNS_2 4
#define COLUMNS_3 4
#define COLUMNS_4 2
#define PAIRS_1 4
#define PAIRS_2 2
#define PAIRS_3 2
#define PAIRS_4 1
#define TABLE(type) at_small_portable_##type
#define KERNELS "ops/gemm/host/small_template.h"
#include "ops/gemm/host/each_type_template.h"
