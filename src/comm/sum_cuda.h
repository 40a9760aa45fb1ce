/* SPDX-License-Identifier: Apache-2.0
 * sum_cuda.h: the kernels of sum.cu. */
#ifndef AT_COMM_SUM_CUDA_H
#define AT_COMM_SUM_CUDA_H

#include <attune/types.h>

#include "src/cuda/kernel_compile.h"

/* That of a dtype that has sums; `wide`: all its arrays are aligned to 16 bytes. */
at_kernel_source at_sum_source(attune_dtype dtype, bool wide);

#endif
