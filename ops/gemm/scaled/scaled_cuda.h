/* SPDX-License-Identifier: Apache-2.0
 * scaled_cuda.h: the text of the kernel of scaled.cuh, which a test compiles without a device. */
#ifndef AT_GEMM_SCALED_CUDA_H
#define AT_GEMM_SCALED_CUDA_H

#include "ops/gemm/problem/problem.h"
#include "src/cuda/jit/kernel_compile.h"

/* For a problem; the caller frees *out. */
attune_status at_scaled_text(const at_gemm *g, char **out);
at_kernel_source at_scaled_source(const char *text);

#endif
