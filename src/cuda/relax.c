/* SPDX-License-Identifier: Apache-2.0
 * relax.c: lets this thread do for a moment what a capture of another thread forbids. */
#include "src/cuda/cuda.h"

void at_cuda_relax(enum cudaStreamCaptureMode *saved) {
  *saved = cudaStreamCaptureModeRelaxed;
  if (cudaThreadExchangeStreamCaptureMode(saved) == cudaSuccess) return;
  *saved = cudaStreamCaptureModeGlobal; /* a thread's first mode */
  (void)cudaGetLastError();
}

void at_cuda_restore(enum cudaStreamCaptureMode saved) {
  if (cudaThreadExchangeStreamCaptureMode(&saved) != cudaSuccess) (void)cudaGetLastError();
}
