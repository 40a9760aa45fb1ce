/* SPDX-License-Identifier: Apache-2.0
 * pass_avx2.c: the loops of an epilogue's pass, for AVX2, FMA and F16C. */
#if defined(__x86_64__)
#define PASS at_pass_avx2
#include "ops/gemm/epilogue/pass_template.h"
#else
typedef int no_such_cpu;
#endif
