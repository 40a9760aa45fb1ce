/* SPDX-License-Identifier: Apache-2.0
 * jit_load.c: from a kernel's source to a loaded kernel, and what the device offers it. */
#include "src/cuda/jit/jit_kernel.h"

#include <string.h>

#include "src/cuda/context/state.h"

static atomic_uint_fast64_t from_disk;

/* Errors that say this code is of no use here, though other code may be: invalid image, no kernel image, PTX too new or
 * not compilable. */
static bool is_unusable(cudaError_t error) {
  switch ((int)error) {
  case cudaErrorInvalidKernelImage:
  case cudaErrorNoKernelImageForDevice:
  case cudaErrorInvalidPtx:
  case cudaErrorUnsupportedPtxVersion:
  case cudaErrorJitCompilerNotFound:
  case cudaErrorJitCompilationDisabled: return true;
  default: return false;
  }
}

static cudaError_t find_limits(at_jit_limits *out, int device, const struct cudaFuncAttributes *of) {
  static const enum cudaDeviceAttr names[] = {cudaDevAttrMaxGridDimX,
                                              cudaDevAttrMaxGridDimY,
                                              cudaDevAttrMaxGridDimZ,
                                              cudaDevAttrMaxBlockDimX,
                                              cudaDevAttrMaxBlockDimY,
                                              cudaDevAttrMaxBlockDimZ,
                                              cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                              cudaDevAttrClusterLaunch,
                                              cudaDevAttrComputeCapabilityMajor};
  int values[AT_COUNT(names)] = {0};
  for (size_t i = 0; i < AT_COUNT(names); i++) {
    const cudaError_t error = cudaDeviceGetAttribute(&values[i], names[i], device);
    if (error != cudaSuccess) return error;
  }
  for (int i = 0; i < 3; i++) {
    out->grid[i] = (unsigned)values[i];
    out->block[i] = (unsigned)values[3 + i];
  }
  out->threads = (unsigned)of->maxThreadsPerBlock;
  out->shared = (unsigned)values[6];
  out->static_shared = (unsigned)of->sharedSizeBytes;
  out->clusters = values[7] != 0;
  out->dependent = values[8] >= 9;
  return cudaSuccess;
}

/* Asking for the kernel's attributes loads it now, so that the first launch does not have to: that may be in a
 * capture. */
static cudaError_t load(at_jit_code *out, const at_kernel_code *code, const char *entry_name, int device) {
  struct cudaFuncAttributes attributes;
  *out = (at_jit_code){.loaded = NULL};
  cudaError_t error = cudaLibraryLoadData(&out->loaded, code->bytes, NULL, NULL, 0, NULL, NULL, 0);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    return error;
  }
  error = cudaLibraryGetKernel(&out->kernel, out->loaded, entry_name);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, (const void *)out->kernel);
  if (error == cudaSuccess) error = find_limits(&out->limits, device, &attributes);
  if (error == cudaSuccess) {
    out->shared_allowed = (unsigned)attributes.maxDynamicSharedSizeBytes;
    return cudaSuccess;
  }
  (void)cudaGetLastError();
  (void)cudaLibraryUnload(out->loaded);
  *out = (at_jit_code){.loaded = NULL};
  return error;
}

/* What does not load is deleted from the kernel cache; what came from there is compiled again. */
static attune_status make_for(at_jit_code *out, attune_device *device, const at_kernel_source *source,
                              const at_architecture *target, bool *unusable) {
  for (bool again = true; again;) {
    at_kernel_code code = {NULL, 0};
    at_jit_origin origin = AT_JIT_FROM_DISK;
    const attune_status status = at_jit_code_get(&code, source, target, &origin);
    *unusable = status == ATTUNE_UNSUPPORTED;
    if (status != ATTUNE_OK) return status;
    const cudaError_t error = load(out, &code, source->entry, device->ordinal);
    at_kernel_code_free(&code);
    again = origin == AT_JIT_FROM_DISK && is_unusable(error);
    if (error == cudaSuccess && origin == AT_JIT_FROM_DISK) atomic_fetch_add(&from_disk, 1u);
    if (!is_unusable(error)) return at_cuda_check(device, error, "loading a kernel");
    at_jit_code_drop(source, target);
    *unusable = true;
    if (!again)
      return at_fail(ATTUNE_UNSUPPORTED, "%s of %s, compiled for %s, cannot be loaded on %s: %s", source->entry,
                     source->file, target->name, device->name, cudaGetErrorName(error));
  }
  return ATTUNE_OK;
}

static attune_status make(at_jit_code *out, attune_device *device, const at_kernel_source *source) {
  at_architecture targets[2];
  attune_status status = ATTUNE_OK;
  const int count = at_jit_targets(targets, device, &status);
  bool unusable = true;
  for (int i = 0; i < count && unusable; i++) status = make_for(out, device, source, &targets[i], &unusable);
  return status;
}

attune_status at_jit_load(at_jit_code *out, attune_device *device, const at_kernel_source *source) {
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  attune_status status =
      at_cuda_check(device, cudaSetDevice(device->ordinal), "cudaSetDevice"); /* makes the context, if need be */
  if (status == ATTUNE_OK) status = make(out, device, source);
  at_cuda_leave(&scope);
  return status;
}

void at_jit_load_counts(at_jit_counts *out) {
  out->compiled = at_jit_compiled_count();
  out->from_disk = atomic_load(&from_disk);
}
