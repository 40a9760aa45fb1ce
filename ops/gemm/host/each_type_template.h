/* SPDX-License-Identifier: Apache-2.0
 * each_type_template.h: KERNELS, one of the other templates, for f32 and for f64 in the vectors of a simd header. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ops/gemm/host/simd_unroll.h"
#include "src/base/half.h"

#define E float
#define TYPE f32
#define COMPLEX c64
#define P(name) vf_##name
#define FN(name) f32_##name
#define LANES VF_LANES
#define BLOCK VF_BLOCK
#define HALVES 1
typedef vf vf_vector;
#include KERNELS
#undef E
#undef TYPE
#undef COMPLEX
#undef P
#undef FN
#undef LANES
#undef BLOCK
#undef HALVES

#define E double
#define TYPE f64
#define COMPLEX c128
#define P(name) vd_##name
#define FN(name) f64_##name
#define LANES VD_LANES
#define BLOCK VD_BLOCK
#define HALVES 0
typedef vd vd_vector;
#include KERNELS
