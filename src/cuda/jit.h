/* SPDX-License-Identifier: Apache-2.0
 * jit.h: kernels compiled at run time for the device they run on, kept in memory and in the user's kernel cache. */
#ifndef AT_CUDA_JIT_H
#define AT_CUDA_JIT_H

#include "src/cuda/cuda.h"
#include "src/cuda/kernel_compile.h"

/* The kernel of `source`, loaded on the device. The first call for it compiles (tens of milliseconds) or reads the
 * cache; calls for the same kernel wait for it, others run beside it. Later ones cost a lock. Errors: INTERNAL (the
 * text does not compile; the compiler's first error is in the message), UNSUPPORTED (no code that this compiler can
 * make runs on the device, or there are 4,096 kernels already), OUT_OF_MEMORY, DEVICE_ERROR. A failure is not remembered. *out stays valid for the process.
 * Any thread; allowed in capture, though a plan does better to have its kernels before. */
attune_status at_jit_kernel(cudaKernel_t *out, attune_device *device, const at_kernel_source *source);

/* Launches a kernel of the stream's device with one argument, a structure passed by value. The device is current. */
attune_status at_jit_launch(cudaKernel_t kernel, unsigned blocks, unsigned threads, const void *argument,
                            attune_stream *stream);

/* What a compiled kernel depends on besides its source and the device, as at_implementation.depends says it:
 * "nvrtc-13.0 jit-1". Opens NVRTC. False: it does not fit. */
bool at_jit_depends(char *out, size_t size);

/* Another bound on the kernels of the process, for tests; the one before is returned. */
unsigned at_jit_set_most(unsigned most);

/* How often kernels came from where, since the process started. */
typedef struct at_jit_counts {
  uint64_t compiled, from_disk, from_memory;
} at_jit_counts;
void at_jit_get_counts(at_jit_counts *out);

#endif
