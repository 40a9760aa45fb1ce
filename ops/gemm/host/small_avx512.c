/* SPDX-License-Identifier: Apache-2.0
 * small_avx512.c: the small tiles for AVX-512. */
#include "ops/gemm/host/small.h"

#if defined(__x86_64__)
#include <stdbool.h>
#include <stddef.h>

#include "ops/gemm/host/simd_avx512.h"
#include "ops/gemm/host/simd_unroll.h"

#define COLUMNS_1 16
#define COLUMNS_2 14
#define COLUMNS_3 9
#define COLUMNS_4 6

#define E float
#define P(name) vf_##name
#define FN(name) f32_##name
#define LANES VF_LANES
#define TABLE at_small_avx512_f32
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
#define TABLE at_small_avx512_f64
typedef vd vd_vector;
#include "ops/gemm/host/small_template.h"

#endif
