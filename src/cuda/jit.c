/* SPDX-License-Identifier: Apache-2.0
 * jit.c: from a kernel's source to a loaded kernel: memory, then the kernel cache, then the compiler. */
#include "src/cuda/jit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/cuda/kernel_cache.h"
#include "src/cuda/state.h"
#include "src/settings.h"

/* Raise it when the same source must be compiled again; winners of what is compiled become misses. */
#define CODEGEN "1"
#define BUCKETS 64u
#define PARTS_MAX 72
#define KERNELS_MOST 4096u /* loaded at a time, for the process's life: plans and graphs keep pointers to them */

typedef enum entry_state { ENTRY_PENDING, ENTRY_READY, ENTRY_FAILED } entry_state;

/* A kernel in memory, or on its way there. */
typedef struct entry {
  struct entry *next;
  at_kernel_key key;
  attune_device *device;
  entry_state state;
  cudaKernel_t kernel;
  attune_status status; /* of a failure, with its message */
  char message[512];
  int waiting; /* threads that still read a failed entry; the last one frees it */
} entry;

static struct table {
  pthread_mutex_t lock; /* guards everything here and in the entries; never held while compiling or loading */
  pthread_cond_t changed;
  entry *bucket[BUCKETS];
  unsigned count, most; /* entries; no more than this */
} table = {.most = KERNELS_MOST, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static atomic_uint_fast64_t compiled, from_disk, from_memory;

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

/* The name of what is compiled for `target`: an architecture, or what a device is asked for. */
static at_kernel_key key_of(const at_kernel_source *source, const char *target) {
  const char *parts[PARTS_MAX] = {"attune kernel " CODEGEN, at_kernel_compiler(), target, source->file, source->entry};
  int count = 5;
  for (const char *const *macro = source->macros; macro && *macro && count < PARTS_MAX - 1; macro++)
    parts[count++] = *macro;
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

/* Asking for the kernel's attributes loads it now, so that the first launch does not have to: that may be in a capture. */
static cudaError_t load(cudaKernel_t *out, const at_kernel_code *code, const char *entry_name) {
  cudaLibrary_t library = NULL;
  struct cudaFuncAttributes attributes;
  cudaError_t error = cudaLibraryLoadData(&library, code->bytes, NULL, NULL, 0, NULL, NULL, 0);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    return error;
  }
  error = cudaLibraryGetKernel(out, library, entry_name);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, (const void *)*out);
  if (error == cudaSuccess) return cudaSuccess;
  (void)cudaGetLastError();
  (void)cudaLibraryUnload(library);
  return error;
}

static void store(at_kernel_key key, const at_kernel_code *code) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  const char *why = at_kernel_cache_write(&disk, key, code->bytes, code->size);
  if (why && !atomic_flag_test_and_set(&said))
    at_log(ATTUNE_LOG_WARNING, "the kernel cache \"%s\" is not used: %s", disk.folder, why);
}

/* What is in the kernel cache but does not load is deleted there and compiled again. */
static attune_status make_for(cudaKernel_t *out, attune_device *device, const at_kernel_source *source,
                              const at_architecture *target, bool *unusable) {
  const at_kernel_key key = key_of(source, target->name);
  at_kernel_code code = {NULL, 0};
  *unusable = false;
  if (at_kernel_cache_read(&disk, key, &code.bytes, &code.size)) {
    const cudaError_t error = load(out, &code, source->entry);
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
  const cudaError_t error = load(out, &code, source->entry);
  *unusable = is_unusable(error);
  if (error == cudaSuccess) store(key, &code);
  at_kernel_code_free(&code);
  if (!*unusable) return at_cuda_check(device, error, "loading a kernel");
  return at_fail(ATTUNE_UNSUPPORTED, "%s of %s, compiled for %s, does not load on %s: %s", source->entry, source->file,
                 target->name, device->name, cudaGetErrorName(error));
}

static attune_status make(cudaKernel_t *out, attune_device *device, const at_kernel_source *source) {
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

static attune_status make_on(cudaKernel_t *out, attune_device *device, const at_kernel_source *source) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter_relaxed(&scope, device);
  if (status != ATTUNE_OK) return status;
  status = at_cuda_check(device, cudaSetDevice(device->ordinal), "cudaSetDevice"); /* makes the context, if need be */
  if (status == ATTUNE_OK) status = make(out, device, source);
  at_cuda_leave(&scope);
  return status;
}

/* Under the lock. */
static entry *find(at_kernel_key key, const attune_device *device) {
  for (entry *e = table.bucket[key.low % BUCKETS]; e; e = e->next)
    if (e->key.low == key.low && e->key.high == key.high && e->device == device) return e;
  return NULL;
}

/* Under the lock. */
static void take_out(const entry *gone) {
  entry **link = &table.bucket[gone->key.low % BUCKETS];
  while (*link != gone) link = &(*link)->next;
  *link = gone->next;
  table.count--;
}

/* Under the lock, which it gives up while it waits. Copies what came of the entry. */
static attune_status wait_for(entry *e, cudaKernel_t *out) {
  e->waiting++;
  while (e->state == ENTRY_PENDING) pthread_cond_wait(&table.changed, &table.lock);
  e->waiting--;
  *out = e->kernel;
  if (e->state == ENTRY_READY) return ATTUNE_OK;
  const attune_status status = at_fail(e->status, "%s", e->message);
  if (e->waiting == 0) free(e);
  return status;
}

/* Makes the kernel of a pending entry of this thread, and says so to those who wait. A failed one leaves the table: the
 * next call tries again. */
static attune_status fulfil(entry *e, const at_kernel_source *source, cudaKernel_t *out) {
  cudaKernel_t kernel = NULL;
  const attune_status status = make_on(&kernel, e->device, source);
  pthread_mutex_lock(&table.lock);
  e->kernel = kernel;
  e->state = status == ATTUNE_OK ? ENTRY_READY : ENTRY_FAILED;
  if (status == ATTUNE_OK) {
    *out = kernel;
  } else {
    e->status = status;
    (void)at_copy_text(e->message, sizeof e->message, attune_last_message());
    take_out(e);
    if (e->waiting == 0) free(e);
  }
  pthread_cond_broadcast(&table.changed);
  pthread_mutex_unlock(&table.lock);
  return status;
}

attune_status at_jit_kernel(cudaKernel_t *out, attune_device *device, const at_kernel_source *source) {
  *out = NULL;
  pthread_once(&disk_once, open_disk);
  const at_kernel_key key = key_of(source, "");
  pthread_mutex_lock(&table.lock);
  entry *e = find(key, device);
  if (e) {
    const attune_status status = wait_for(e, out);
    pthread_mutex_unlock(&table.lock);
    if (status == ATTUNE_OK) atomic_fetch_add(&from_memory, 1u);
    return status;
  }
  if (table.count >= table.most) {
    const unsigned most = table.most;
    pthread_mutex_unlock(&table.lock);
    return at_fail(ATTUNE_UNSUPPORTED,
                   "%u kernels are loaded, as many as a process may have; %s needs another one: a new process "
                   "has room",
                   most, source->entry);
  }
  e = calloc(1, sizeof *e);
  if (e) {
    table.count++;
    *e = (entry){.next = table.bucket[key.low % BUCKETS], .key = key, .device = device};
    table.bucket[key.low % BUCKETS] = e;
  }
  pthread_mutex_unlock(&table.lock);
  return e ? fulfil(e, source, out) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for kernel %s", source->entry);
}

attune_status at_jit_launch(cudaKernel_t kernel, unsigned blocks, unsigned threads, const void *argument,
                            attune_stream *stream) {
  void *arguments[] = {(void *)(uintptr_t)argument};
  const cudaLaunchConfig_t config = {
      .gridDim = {blocks, 1, 1}, .blockDim = {threads, 1, 1}, .stream = at_cuda_native(stream)};
  return at_cuda_check(stream->device, cudaLaunchKernelExC(&config, (const void *)kernel, arguments),
                       "cudaLaunchKernelExC");
}

bool at_jit_depends(char *out, size_t size) {
  size_t at = 0;
  return at_append(out, size, &at, "nvrtc-%s jit-" CODEGEN, at_nvrtc_version());
}

unsigned at_jit_set_most(unsigned most) {
  pthread_mutex_lock(&table.lock);
  const unsigned before = table.most;
  table.most = most;
  pthread_mutex_unlock(&table.lock);
  return before;
}

void at_jit_get_counts(at_jit_counts *out) {
  *out = (at_jit_counts){atomic_load(&compiled), atomic_load(&from_disk), atomic_load(&from_memory)};
}
