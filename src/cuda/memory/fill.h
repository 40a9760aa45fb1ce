/* SPDX-License-Identifier: Apache-2.0
 * fill.h: the kernel of fill.cu. */
#ifndef AT_CUDA_FILL_H
#define AT_CUDA_FILL_H

#include "src/cuda/jit/kernel_compile.h" /* needs no CUDA */

/* Its argument, of fill.cu too. */
typedef struct at_fill_call {
  void *to;
  unsigned long long words, pitch, slice_pitch, rows, all_rows, element[2];
} at_fill_call;

at_kernel_source at_fill_source(void);

#endif
