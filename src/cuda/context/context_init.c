/* SPDX-License-Identifier: Apache-2.0
 * context_init.c: contexts: made ahead of the first work, asked for, and how threads wait in them. */
#include <cuda.h>

#include "src/cuda/context/state.h"
#include "src/process/vendor.h"

attune_status at_cuda_initialize(attune_device *device) {
  at_cuda_scope scope;
  cublasHandle_t blas = NULL;
  cublasLtHandle_t lt = NULL;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status = at_cuda_check(device, cudaFree(NULL), "cudaFree");
  attune_stream *stream = status == ATTUNE_OK ? attune_stream_default(device) : NULL;
  if (status == ATTUNE_OK) status = stream ? at_cuda_blas(stream, &blas) : ATTUNE_OUT_OF_MEMORY;
  if (status == ATTUNE_OK) status = at_cuda_blaslt(device, &lt);
  at_cuda_leave(&scope);
  return status;
}

static bool primary_state(const attune_device *device, unsigned *flags, int *active) {
  CUresult (*state)(CUdevice ordinal, unsigned *flags, int *active) = NULL;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return false;
  const bool found = at_cuda_driver_call(&state, "cuDevicePrimaryCtxGetState") &&
                     state(device->ordinal, flags, active) == CUDA_SUCCESS;
  at_vendor_leave();
  return found;
}

bool at_cuda_is_initialized(const attune_device *device) {
  unsigned flags = 0;
  int active = 0;
  return at_cuda_check_fork(device) == ATTUNE_OK && primary_state(device, &flags, &active) && active;
}

attune_status at_cuda_get_schedule(attune_device *device, attune_schedule *out) {
  unsigned flags = 0;
  int active = 0;
  AT_TRY(at_cuda_check_fork(device));
  if (!primary_state(device, &flags, &active))
    return at_fail(ATTUNE_DEVICE_ERROR, "the driver does not report the flags of %s", device->name);
  *out = (attune_schedule)(flags & CU_CTX_SCHED_MASK);
  return ATTUNE_OK;
}

attune_status at_cuda_set_schedule(attune_device *device, attune_schedule schedule) {
  CUresult (*set)(CUdevice ordinal, unsigned flags) = NULL;
  unsigned flags = 0;
  int active = 0;
  AT_TRY(at_cuda_check_fork(device));
  if (!primary_state(device, &flags, &active) || !at_cuda_driver_call(&set, "cuDevicePrimaryCtxSetFlags"))
    return at_fail(ATTUNE_DEVICE_ERROR, "the driver does not report the flags of %s", device->name);
  flags = (flags & ~(unsigned)CU_CTX_SCHED_MASK) | (unsigned)schedule;
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return at_vendor_refuse();
  const CUresult error = set(device->ordinal, flags & CU_CTX_FLAGS_MASK);
  at_vendor_leave();
  if (error == CUDA_SUCCESS) return ATTUNE_OK;
  if (error == CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE)
    return at_fail(ATTUNE_UNSUPPORTED, "%s is already in use; its schedule can only be set before its first use",
                   device->name);
  return at_fail(ATTUNE_DEVICE_ERROR, "the driver does not change the schedule of %s (cuDevicePrimaryCtxSetFlags: %d)",
                 device->name, (int)error);
}
