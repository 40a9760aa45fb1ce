/* SPDX-License-Identifier: Apache-2.0
 * jit.c: the kernels of the process: found, made once, held, and unloaded when there are too many. */
#include "src/cuda/jit/jit_kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/cuda/context/state.h"
#include "src/host/threads.h"
#include "src/process/cancel.h"
#include "src/process/compile_queue.h"
#include "src/process/exit.h"
#include "src/process/fork.h"
#include "src/process/vendor.h"

#define BUCKETS 64u
#define KERNELS_MOST 4096u /* of a process, loaded at a time */
#define UNLOAD_SHARE 64u   /* one of so many is unloaded at a time: each time waits for a device */

static struct table {
  pthread_mutex_t lock; /* guards everything here and in the kernels; held while nothing of CUDA is called */
  pthread_cond_t changed;
  at_jit_kernel *bucket[BUCKETS];
  at_jit_kernel *oldest, *newest; /* ready ones without a holder, in the order of their release */
  unsigned count, most;           /* kernels, those being unloaded too; no more than this */
  unsigned unloading;
  uint64_t from_memory, unloaded;
} table = {.most = KERNELS_MOST, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* From here to release(): under the lock. */

static at_jit_kernel *find(at_kernel_key key, const attune_device *device) {
  for (at_jit_kernel *k = table.bucket[key.low % BUCKETS]; k; k = k->next)
    if (k->key.low == key.low && k->key.high == key.high && k->device == device) return k;
  return NULL;
}

static void put_in(at_jit_kernel *kernel) {
  at_jit_kernel **bucket = &table.bucket[kernel->key.low % BUCKETS];
  kernel->next = *bucket;
  *bucket = kernel;
}

static void take_out(const at_jit_kernel *gone) {
  at_jit_kernel **link = &table.bucket[gone->key.low % BUCKETS];
  while (*link != gone) link = &(*link)->next;
  *link = gone->next;
}

/* The kernel becomes the latest of those without a holder. */
static void lay_aside(at_jit_kernel *kernel) {
  kernel->older = table.newest;
  kernel->newer = NULL;
  *(table.newest ? &table.newest->newer : &table.oldest) = kernel;
  table.newest = kernel;
}

static void take_up(at_jit_kernel *kernel) {
  *(kernel->older ? &kernel->older->newer : &table.oldest) = kernel->newer;
  *(kernel->newer ? &kernel->newer->older : &table.newest) = kernel->older;
}

/* A pending kernel has its maker as a holder. */
static void hold(at_jit_kernel *kernel) {
  if (kernel->holders++ == 0) take_up(kernel);
}

static void release(at_jit_kernel *kernel) {
  if (--kernel->holders > 0) return;
  if (kernel->state == AT_JIT_FAILED)
    free(kernel);
  else
    lay_aside(kernel);
}

void at_jit_hold(at_jit_kernel *kernel) {
  pthread_mutex_lock(&table.lock);
  hold(kernel);
  pthread_mutex_unlock(&table.lock);
}

/* In a child of fork the kernel is lost with the device, and perhaps the lock with another thread. */
void at_jit_release(at_jit_kernel *kernel) {
  if (!kernel || at_cuda_device_of(kernel->device)->generation != at_fork_generation()) return;
  pthread_mutex_lock(&table.lock);
  release(kernel);
  pthread_mutex_unlock(&table.lock);
}

void at_jit_keep(at_jit_kernel *kernel) {
  at_jit_hold(kernel);
  atomic_store(&kernel->kept, true);
}

static bool is_tracked(const attune_device *device) {
  return !atomic_load(&at_cuda_device_of(device)->untracked);
}

/* Under the lock: takes kernels without a holder, all of one device, out of the table, the least recently used first.
 * They are linked by `next`; the count. */
static unsigned pick(at_jit_kernel **out) {
  const unsigned wanted = table.most / UNLOAD_SHARE > 0 ? table.most / UNLOAD_SHARE : 1;
  unsigned count = 0;
  attune_device *device = NULL;
  at_jit_kernel **end = out;
  for (at_jit_kernel *k = table.oldest, *newer; k && count < wanted; k = newer) {
    newer = k->newer;
    if (device ? k->device != device : !is_tracked(k->device)) continue;
    device = k->device;
    take_up(k);
    take_out(k);
    *end = k;
    end = &k->next;
    count++;
  }
  *end = NULL;
  return count;
}

/* The kernels have no holder, and all their launches were made before they lost it. */
static attune_status unload(at_jit_kernel *kernels) {
  attune_device *device = kernels->device;
  bool all = false;
  AT_TRY(at_cuda_wait_all_streams(device, &all));
  if (!all)
    return at_fail(ATTUNE_UNSUPPORTED, "none can be unloaded while a stream of %s is being captured", device->name);
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter_relaxed(&scope, device));
  while (kernels) {
    at_jit_kernel *next = kernels->next;
    if (cudaLibraryUnload(kernels->code.loaded) != cudaSuccess) (void)cudaGetLastError();
    free(kernels);
    kernels = next;
  }
  at_cuda_leave(&scope);
  return ATTUNE_OK;
}

/* Under the lock: kernels that could not be unloaded are found again, as the ones unused for longest. */
static void put_back(at_jit_kernel *kernels) {
  at_jit_kernel *before = table.oldest, *last = NULL;
  for (at_jit_kernel *k = kernels, *next; k; k = next) {
    next = k->next;
    put_in(k);
    k->older = last;
    k->newer = before;
    *(last ? &last->newer : &table.oldest) = k;
    last = k;
  }
  *(before ? &before->older : &table.newest) = last;
}

/* Under the lock. */
static attune_status fail_full(const char *why, const at_kernel_source *source) {
  return at_fail(ATTUNE_UNSUPPORTED,
                 "%u kernels are loaded, the maximum of a process, and %s of %s needs another one: %s", table.most,
                 source->entry, source->file, why);
}

/* Called with the lock held, which it releases while it waits. */
static attune_status make_room(const at_kernel_source *source) {
  at_jit_kernel *gone = NULL;
  const unsigned count = pick(&gone);
  if (count == 0)
    return fail_full(table.oldest
                         ? "those without a plan or graph may still be running where attune cannot wait for them"
                         : "plans and graphs use all of them; destroy some",
                     source);
  table.unloading += count;
  pthread_mutex_unlock(&table.lock);
  const attune_status status = unload(gone);
  pthread_mutex_lock(&table.lock);
  table.unloading -= count;
  if (status == ATTUNE_OK) {
    table.count -= count;
    table.unloaded += count;
  } else {
    put_back(gone);
    (void)at_fail_prefix(status, "%u kernels are loaded, the maximum of a process, and %s of %s needs another one: ",
                         table.most, source->entry, source->file);
  }
  pthread_cond_broadcast(&table.changed);
  return status;
}

/* Under the lock, which it gives up while it waits. What came of the kernel: it is held, or the failure is told. */
static attune_status wait_for(at_jit_kernel *kernel) {
  hold(kernel);
  while (kernel->state == AT_JIT_PENDING) at_wait(&table.changed, &table.lock);
  if (kernel->state == AT_JIT_READY) {
    table.from_memory++;
    return ATTUNE_OK;
  }
  const attune_status status = at_fail(kernel->status, "%s", kernel->message);
  release(kernel);
  return status;
}

static at_jit_kernel *new_kernel(at_kernel_key key, attune_device *device, const at_kernel_source *source) {
  at_jit_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) return NULL;
  size_t at = 0;
  kernel->key = key;
  kernel->device = device;
  kernel->holders = 1;
  (void)at_append(kernel->name, sizeof kernel->name, &at, "%s of %s", source->entry, source->file);
  return kernel;
}

/* Under the lock, which it may give up: the kernel, held. *is_new: it is for this thread to make. */
static attune_status claim(at_jit_kernel **out, bool *is_new, at_kernel_key key, attune_device *device,
                           const at_kernel_source *source) {
  while (!(*out = find(key, device)) && table.count >= table.most) {
    if (table.unloading > 0) {
      at_wait(&table.changed, &table.lock);
      continue;
    }
    AT_TRY(make_room(source));
  }
  if (*out) return wait_for(*out);
  *out = new_kernel(key, device, source);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for kernel %s", source->entry);
  *is_new = true;
  table.count++;
  put_in(*out);
  return ATTUNE_OK;
}

/* Makes a pending kernel of this thread, and wakes the threads that wait for it. A failed one leaves the table: the
 * next call tries again. */
static attune_status fulfil(at_jit_kernel *kernel, const at_kernel_source *source) {
  at_jit_code code = {.loaded = NULL};
  const attune_status status = at_jit_load(&code, kernel->device, source);
  pthread_mutex_lock(&table.lock);
  kernel->code = code;
  atomic_store(&kernel->shared_allowed, code.shared_allowed);
  atomic_store(&kernel->cluster_allowed, 1u);
  kernel->state = status == ATTUNE_OK ? AT_JIT_READY : AT_JIT_FAILED;
  if (status != ATTUNE_OK) {
    kernel->status = status;
    (void)at_copy_text(kernel->message, sizeof kernel->message, attune_last_message());
    take_out(kernel);
    table.count--;
    release(kernel);
  }
  pthread_cond_broadcast(&table.changed);
  pthread_mutex_unlock(&table.lock);
  return status;
}

attune_status at_jit_get(at_jit_kernel **out, attune_device *device, const at_kernel_source *source) {
  bool is_new = false;
  at_jit_kernel *kernel = NULL;
  *out = NULL;
  AT_TRY(at_cuda_check_fork(device));
  const at_kernel_key key = at_jit_key(source, "");
  pthread_mutex_lock(&table.lock);
  attune_status status = claim(&kernel, &is_new, key, device, source);
  pthread_mutex_unlock(&table.lock);
  if (status == ATTUNE_OK && is_new) status = fulfil(kernel, source);
  if (status == ATTUNE_OK) *out = kernel;
  return status;
}

/* ---- several at once ---- */

typedef struct batch {
  at_jit_request *requests;
  attune_device *device;
} batch;

/* exit() may wait for this. */
static void get_one(void *of, int i) {
  const batch *b = of;
  at_jit_request *request = &b->requests[i];
  request->status = at_exit_begun() ? at_vendor_refuse() : at_jit_get(&request->kernel, b->device, &request->source);
  request->message[0] = '\0';
  if (request->status != ATTUNE_OK)
    (void)at_copy_text(request->message, sizeof request->message, attune_last_message());
}

void at_jit_get_all(at_jit_request *requests, int count, attune_device *device) {
  batch b = {requests, device};
  const at_message kept = at_message_keep();
  at_compile_each(AT_COMPILE_SEARCH, at_cpu_count(), count, get_one, &b);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

/* Is it loaded, or would the disk have it? */
static bool is_compiled(const attune_device *device, const at_kernel_source *source) {
  const at_kernel_key key = at_jit_key(source, "");
  pthread_mutex_lock(&table.lock);
  const at_jit_kernel *kernel = find(key, device);
  const bool ready = kernel && kernel->state == AT_JIT_READY;
  pthread_mutex_unlock(&table.lock);
  return ready || at_jit_on_disk(device, source);
}

attune_status at_jit_compile(attune_device *device, const at_kernel_source *source, bool *made) {
  AT_TRY(at_cuda_check_fork(device));
  if (made) return at_jit_code_make(device, source, made);
  return is_compiled(device, source)
             ? ATTUNE_OK
             : at_fail(ATTUNE_NOT_FOUND, "%s of %s is not compiled for %s", source->entry, source->file, device->name);
}

unsigned at_jit_set_most(unsigned most) {
  pthread_mutex_lock(&table.lock);
  const unsigned before = table.most;
  table.most = most;
  pthread_mutex_unlock(&table.lock);
  return before;
}

void at_jit_get_counts(at_jit_counts *out) {
  at_jit_load_counts(out);
  pthread_mutex_lock(&table.lock);
  out->from_memory = table.from_memory;
  out->unloaded = table.unloaded;
  out->loaded = table.count;
  pthread_mutex_unlock(&table.lock);
}
