/* SPDX-License-Identifier: Apache-2.0
 * small_portable.c: the small tiles for any CPU. */
#include "ops/gemm/host/small.h"

#include <stdbool.h>
#include <stddef.h>

#include "ops/gemm/host/simd_portable.h"
#include "ops/gemm/host/simd_unroll.h"

#define COLUMNS_1 8
#define COLUMNS_2 4
#define COLUMNS_3 4
#define COLUMNS_4 2

#define E float
#define P(name) vf_##name
#define FN(name) f32_##name
#define LANES VF_LANES
#define TABLE at_small_portable_f32
typedef vf vf_vector;
#include "ops/gemm/host/small_template.h"
#undef E
#undef P
#undef FN
#undef LANES
#undef TABLE

#define E double
#define P(name) vd_##name
#define FN(name) f64_##name
#define LANES VD_LANES
#define TABLE at_small_portable_f64
typedef vd vd_vector;
#include "ops/gemm/host/small_template.h"
