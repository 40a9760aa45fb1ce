/* SPDX-License-Identifier: Apache-2.0
 * reduce_cuda.h: the kernels of reduce.cu. */
#ifndef AT_COMM_REDUCE_CUDA_H
#define AT_COMM_REDUCE_CUDA_H

#include <attune/collectives.h>

#include "src/cuda/jit/kernel_compile.h"

/* That of a reduction and a type as at_reduce_as gives it; `wide`: all its arrays are aligned to 16 bytes. */
at_kernel_source at_reduce_source(attune_reduction reduction, attune_dtype as, bool wide);

#endif
