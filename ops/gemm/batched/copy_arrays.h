/* SPDX-License-Identifier: Apache-2.0
 * copy_arrays.h: each C into its D, where arrays of pointers in device memory name them: for libraries that add to D in
 * place. A kernel compiled at run time. */
#ifndef AT_GEMM_COPY_ARRAYS_H
#define AT_GEMM_COPY_ARRAYS_H

#include "ops/gemm/problem/problem.h"
#include "src/cuda/jit/jit.h"

extern const at_kernel_source at_copy_arrays_source;

/* Launches the kernel of that source on the arrays c and d. The device is current. */
attune_status at_copy_arrays(at_jit_kernel *kernel, const at_gemm *g, const at_gemm_operands *o, attune_stream *stream);

#endif
