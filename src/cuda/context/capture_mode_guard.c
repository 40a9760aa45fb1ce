/* SPDX-License-Identifier: Apache-2.0
 * capture_mode_guard.c: lets this thread do for a moment what a capture of another thread forbids. */
#include "src/cuda/context/cuda.h"

void at_cuda_relax(enum cudaStreamCaptureMode *saved) {
  *saved = cudaStreamCaptureModeRelaxed;
  if (cudaThreadExchangeStreamCaptureMode(saved) == cudaSuccess) return;
  *saved = cudaStreamCaptureModeGlobal; /* a thread's first mode */
  (void)cudaGetLastError();
}

void at_cuda_restore(enum cudaStreamCaptureMode saved) {
  if (cudaThreadExchangeStreamCaptureMode(&saved) != cudaSuccess) (void)cudaGetLastError();
}
