/* SPDX-License-Identifier: Apache-2.0
 * jit_load.c: from a kernel's source to a loaded kernel: the kernel cache, then the compiler; and what the device offers
 * it. */
#include "src/cuda/jit_kernel.h"

#include <pthread.h>
#include <string.h>

#include "src/cuda/state.h"
#include "src/settings.h"

/* Raise it when the same source must be compiled again; winners of what is compiled become misses. */
#define CODEGEN "1"
#define PARTS_MAX 72

static atomic_uint_fast64_t compiled, from_disk;

static at_kernel_cache disk;
static pthread_once_t disk_once = PTHREAD_ONCE_INIT;

/* A bad setting of something else does not matter here: what was read before it is there. */
static void open_disk(void) {
  at_settings settings;
  memset(&settings, 0, sizeof settings);
  (void)at_settings_read(&settings);
  size_t at = 0;
  disk.max_bytes = AT_KERNEL_CACHE_BYTES;
  if (settings.cache_dir[0] && !at_append(disk.folder, sizeof disk.folder, &at, "%s/kernels", settings.cache_dir))
    disk.folder[0] = '\0';
}

at_kernel_key at_jit_key(const at_kernel_source *source, const char *target) {
  const char *parts[PARTS_MAX] = {"attune kernel " CODEGEN, at_kernel_compiler(), target, source->file, source->entry};
  int count = 5;
  for (const char *const *macro = source->macros; macro && *macro && count < PARTS_MAX - 2; macro++)
    parts[count++] = *macro;
  if (source->foreign) parts[count++] = "foreign";
  parts[count++] = source->text;
  return at_kernel_key_of(parts, count);
}

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

/* Asking for the kernel's attributes loads it now, so that the first launch does not have to: that may be in a capture. */
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

static void store(at_kernel_key key, const at_kernel_code *code) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  const char *why = at_kernel_cache_write(&disk, key, code->bytes, code->size);
  if (why && !atomic_flag_test_and_set(&said))
    at_log(ATTUNE_LOG_WARNING, "the kernel cache \"%s\" is not used: %s", disk.folder, why);
}

/* What is in the kernel cache but does not load is deleted there and compiled again. */
static attune_status make_for(at_jit_code *out, attune_device *device, const at_kernel_source *source,
                              const at_architecture *target, bool *unusable) {
  const at_kernel_key key = at_jit_key(source, target->name);
  at_kernel_code code = {NULL, 0};
  *unusable = false;
  if (at_kernel_cache_read(&disk, key, &code.bytes, &code.size)) {
    const cudaError_t error = load(out, &code, source->entry, device->ordinal);
    at_kernel_code_free(&code);
    if (error == cudaSuccess) {
      atomic_fetch_add(&from_disk, 1u);
      return ATTUNE_OK;
    }
    if (!is_unusable(error)) return at_cuda_check(device, error, "loading a kernel");
    at_kernel_cache_remove(&disk, key);
  }
  attune_status status = at_kernel_compile(&code, source, target, NULL);
  if (status != ATTUNE_OK) {
    *unusable = status == ATTUNE_UNSUPPORTED;
    return status;
  }
  atomic_fetch_add(&compiled, 1u);
  const cudaError_t error = load(out, &code, source->entry, device->ordinal);
  *unusable = is_unusable(error);
  if (error == cudaSuccess) store(key, &code);
  at_kernel_code_free(&code);
  if (!*unusable) return at_cuda_check(device, error, "loading a kernel");
  return at_fail(ATTUNE_UNSUPPORTED, "%s of %s, compiled for %s, does not load on %s: %s", source->entry, source->file,
                 target->name, device->name, cudaGetErrorName(error));
}

static attune_status make(at_jit_code *out, attune_device *device, const at_kernel_source *source) {
  at_architecture targets[2];
  attune_status status = at_nvrtc_open();
  if (status != ATTUNE_OK) return status;
  const int capability = device->properties.capability_major * 10 + device->properties.capability_minor;
  const int count = at_architectures(targets, capability);
  if (count == 0)
    return at_fail(ATTUNE_UNSUPPORTED, "%s has compute capability %d.%d; should be one that this NVRTC compiles for",
                   device->name, device->properties.capability_major, device->properties.capability_minor);
  bool unusable = true;
  for (int i = 0; i < count && unusable; i++) status = make_for(out, device, source, &targets[i], &unusable);
  return status;
}

attune_status at_jit_load(at_jit_code *out, attune_device *device, const at_kernel_source *source) {
  at_cuda_scope scope;
  pthread_once(&disk_once, open_disk);
  attune_status status = at_cuda_enter_relaxed(&scope, device);
  if (status != ATTUNE_OK) return status;
  status = at_cuda_check(device, cudaSetDevice(device->ordinal), "cudaSetDevice"); /* makes the context, if need be */
  if (status == ATTUNE_OK) status = make(out, device, source);
  at_cuda_leave(&scope);
  return status;
}

void at_jit_load_counts(at_jit_counts *out) {
  out->compiled = atomic_load(&compiled);
  out->from_disk = atomic_load(&from_disk);
}

bool at_jit_depends(char *out, size_t size) {
  size_t at = 0;
  return at_append(out, size, &at, "nvrtc-%s jit-" CODEGEN, at_nvrtc_version());
}
