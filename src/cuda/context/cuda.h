/* SPDX-License-Identifier: Apache-2.0
 * cuda.h: what CUDA implementations of ops need of the CUDA backend. Only in a build with CUDA. */
#ifndef AT_CUDA_H
#define AT_CUDA_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "src/base/backend.h"
#include "src/cuda/library/toolkit.h"

/* Turns a failed runtime or library call into a status with the error's name and `what` in the message. Each of these
 * latches the device DEAD on a sticky error (700, 702, 710, 714-719, 721): every later call then fails at once. A
 * library that fails without saying why is not believed: the device is asked for a sticky error of earlier work. */
attune_status at_cuda_check(attune_device *device, cudaError_t error, const char *what);
attune_status at_cublas_check(attune_device *device, cublasStatus_t status, const char *what);

/* Makes the device current for the calling thread for the time of a scope; leave gives the thread's own device back.
 * While any thread captures in mode global, CUDA forbids many calls to all threads and breaks that capture when one is
 * made: allocation, making and destroying of streams, events, graphs and libraries, queries, waits. All of these are
 * made in a relaxed scope, where they are allowed and not captured. Launches, records and waits in stream order need
 * none. What waits for the whole device (cudaDeviceSynchronize, cublasDestroy) breaks captures in any scope: attune
 * makes such a call only when the program asks for just that. Within a scope the thread is inside vendor.h's gate;
 * DEVICE_ERROR: the process ends. Who calls libraries other than CUDA's own asks at_vendor_gone before. */
typedef struct at_cuda_scope {
  int previous;
  bool relaxed;
  enum cudaStreamCaptureMode mode; /* the thread's own, when relaxed */
  void *context;                   /* that the program made by the driver, and that was the thread's; NULL: none */
} at_cuda_scope;
attune_status at_cuda_enter(at_cuda_scope *scope, attune_device *device);
attune_status at_cuda_enter_relaxed(at_cuda_scope *scope, attune_device *device);
void at_cuda_leave(at_cuda_scope *scope);

/* The relaxed scope without a device. */
void at_cuda_relax(enum cudaStreamCaptureMode *saved);
void at_cuda_restore(enum cudaStreamCaptureMode saved);

/* The stream's cuBLAS handle: stream and workspace set, host pointer mode. Made at first use (also inside a capture: in
 * relaxed capture mode, so that nothing is captured). Borrowed. Its calls want the stream's device to be current. */
attune_status at_cuda_blas(attune_stream *stream, cublasHandle_t *out);

/* The device's cuBLASLt handle, shared by all threads. Borrowed. */
attune_status at_cuda_blaslt(attune_device *device, cublasLtHandle_t *out);

/* The stream's workspace of at least `bytes` (<= ATTUNE_WORKSPACE_DEFAULT: allocated once at that size; larger ones
 * grow it, not in capture), aligned to 256 bytes. bytes = 0 gives NULL. Borrowed; used in stream order. */
attune_status at_cuda_workspace(attune_stream *stream, size_t bytes, void **out);

#endif
