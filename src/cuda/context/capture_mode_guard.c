/* SPDX-License-Identifier: Apache-2.0
 * capture_mode_guard.c: lets this thread do for a moment what a capture of another thread forbids. */
#include "src/cuda/context/cuda.h"

#include "src/process/vendor.h"

void at_cuda_relax(enum cudaStreamCaptureMode *saved) {
  *saved = cudaStreamCaptureModeGlobal; /* a thread's first mode */
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_DRIVER))) return;
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  if (cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess)
    *saved = mode;
  else
    (void)cudaGetLastError();
  at_vendor_leave();
}

void at_cuda_restore(enum cudaStreamCaptureMode saved) {
  if (AT_UNLIKELY(!at_vendor_enter(AT_VENDOR_DRIVER))) return;
  if (cudaThreadExchangeStreamCaptureMode(&saved) != cudaSuccess) (void)cudaGetLastError();
  at_vendor_leave();
}
