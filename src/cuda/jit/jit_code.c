/* SPDX-License-Identifier: Apache-2.0
 * jit_code.c: from a kernel's source to its compiled code: the kernel cache, then the compiler. What one thread
 * compiles the others wait for, so that no kernel is compiled twice. No device is touched. */
#include "src/cuda/jit/jit_kernel.h"

#include <pthread.h>
#include <string.h>

#include "src/base/settings.h"
#include "src/cuda/context/state.h"
#include "src/process/cancel.h"

/* Raise it when the same source must be compiled again; winners of what is compiled become misses. */
#define CODEGEN "1"
#define PARTS_MAX 72

static atomic_uint_fast64_t compiled;

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

/* ---- what is being compiled ---- */

/* A kernel that a thread compiles; it lies on that thread's stack. */
typedef struct flight {
  at_kernel_key key;
  struct flight *next;
} flight;

/* A child of fork has no device, so it never comes here. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; held for a moment */
static pthread_cond_t landed = PTHREAD_COND_INITIALIZER;
static flight *flights;

static bool in_flight(at_kernel_key key) {
  for (const flight *f = flights; f; f = f->next)
    if (f->key.low == key.low && f->key.high == key.high) return true;
  return false;
}

/* Waits while another thread compiles the kernel; then it is this thread's to look for and to compile. */
static void take_off(flight *mine) {
  pthread_mutex_lock(&lock);
  while (in_flight(mine->key)) at_wait(&landed, &lock);
  mine->next = flights;
  flights = mine;
  pthread_mutex_unlock(&lock);
}

static void land(flight *mine) {
  pthread_mutex_lock(&lock);
  flight **link = &flights;
  while (*link != mine) link = &(*link)->next;
  *link = mine->next;
  pthread_cond_broadcast(&landed);
  pthread_mutex_unlock(&lock);
}

/* ---- code ---- */

/* NULL: stored; else why not. */
static const char *store(at_kernel_key key, const at_kernel_code *code) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  const char *why = at_kernel_cache_write(&disk, key, code->bytes, code->size);
  if (why && !atomic_flag_test_and_set(&said))
    at_log(ATTUNE_LOG_WARNING, "the kernel cache \"%s\" is not used: %s", disk.folder, why);
  return why;
}

/* *origin is set where the code is there; *why, why it could not be stored, else NULL. */
static attune_status find_or_compile(at_kernel_code *out, const at_kernel_source *source, const at_architecture *target,
                                     at_jit_origin *origin, const char **why) {
  flight mine = {.key = at_jit_key(source, target->name)};
  attune_status status = ATTUNE_OK;
  *out = (at_kernel_code){NULL, 0};
  *why = NULL;
  pthread_once(&disk_once, open_disk);
  take_off(&mine);
  *origin = AT_JIT_FROM_DISK;
  if (!at_kernel_cache_read(&disk, mine.key, &out->bytes, &out->size)) {
    *origin = AT_JIT_COMPILED;
    status = at_kernel_compile(out, source, target, NULL);
    if (status == ATTUNE_OK) atomic_fetch_add(&compiled, 1u);
    if (status == ATTUNE_OK) *why = store(mine.key, out);
  }
  land(&mine);
  return status;
}

attune_status at_jit_code_get(at_kernel_code *out, const at_kernel_source *source, const at_architecture *target,
                              at_jit_origin *origin) {
  const char *why;
  return find_or_compile(out, source, target, origin, &why);
}

void at_jit_code_drop(const at_kernel_source *source, const at_architecture *target) {
  at_kernel_cache_remove(&disk, at_jit_key(source, target->name));
}

int at_jit_targets(at_architecture out[2], const attune_device *device, attune_status *status) {
  const attune_device_properties *p = &device->properties;
  *status = at_nvrtc_open();
  if (*status != ATTUNE_OK) return 0;
  const int count = at_architectures(out, p->capability_major * 10 + p->capability_minor);
  if (count == 0)
    *status = at_fail(ATTUNE_UNSUPPORTED,
                      "%s has compute capability %d.%d, which this NVRTC does not support; install a later one",
                      device->name, p->capability_major, p->capability_minor);
  return count;
}

attune_status at_jit_code_make(const attune_device *device, const at_kernel_source *source, bool *made) {
  at_architecture targets[2];
  at_kernel_code code = {NULL, 0};
  at_jit_origin origin = AT_JIT_FROM_DISK;
  const char *why = NULL;
  attune_status status = ATTUNE_OK;
  *made = false;
  const int count = at_jit_targets(targets, device, &status);
  for (int i = 0; i < count; i++) { /* the second is for a compiler that knows the device but not its instructions */
    status = find_or_compile(&code, source, &targets[i], &origin, &why);
    if (status != ATTUNE_UNSUPPORTED) break;
  }
  at_kernel_code_free(&code);
  if (status != ATTUNE_OK) return status;
  *made = origin == AT_JIT_COMPILED;
  if (!why) return ATTUNE_OK;
  return at_fail(ATTUNE_IO_ERROR, "the kernel cache \"%s\" cannot store %s of %s: %s", disk.folder, source->entry,
                 source->file, why);
}

bool at_jit_on_disk(const attune_device *device, const at_kernel_source *source) {
  at_architecture targets[2];
  attune_status status;
  pthread_once(&disk_once, open_disk);
  const int count = at_jit_targets(targets, device, &status);
  for (int i = 0; i < count; i++)
    if (at_kernel_cache_has(&disk, at_jit_key(source, targets[i].name))) return true;
  return false;
}

uint64_t at_jit_compiled_count(void) {
  return atomic_load(&compiled);
}

bool at_jit_depends(char *out, size_t size) {
  size_t at = 0;
  return at_append(out, size, &at, "nvrtc-%s jit-" CODEGEN, at_nvrtc_version());
}
