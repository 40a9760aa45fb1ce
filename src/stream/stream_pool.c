/* SPDX-License-Identifier: Apache-2.0
 * stream_pool.c: the streams that programs take instead of making some, and each thread's current stream and device. */

#include "src/process/fork.h"
#include "src/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>

enum { POOL_STREAMS = 32, POOL_PRIORITIES = 8, DEVICES_MOST = 65 };

/* Streams of one device and priority, made in turn and then handed out in turn. */
typedef struct pool {
  unsigned generation; /* at_fork_generation() of the process that made them: a child of fork starts afresh */
  unsigned next;
  attune_stream *stream[POOL_STREAMS];
  struct pool *inherited; /* a parent's: the program may still hold them; they answer with an error, and are kept */
} pool;

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `pools`; held over fork */
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static pool pools[DEVICES_MOST][POOL_PRIORITIES];

static _Thread_local attune_stream *current_stream[DEVICES_MOST]; /* NULL: the default one */
static _Thread_local attune_device *current_device;               /* NULL: the best one */

/* The queues' watch came with the device: before a fork it is called last, in the order in which the locks are taken
 * elsewhere. */
static void watch_fork(void) {
  static at_fork_watch watch = {.lock = &pool_lock};
  at_fork_watch_add(&watch);
}

/* The device's priority for a requested one: lower numbers come first, nothing comes after the normal priority 0. */
static attune_status clamp(int *priority, attune_device *device) {
  int least = 0, greatest = 1 - POOL_PRIORITIES;
  attune_status status = ATTUNE_OK;
  if (device->backend.runtime) status = device->backend.runtime->priorities(device, &least, &greatest);
  if (greatest < 1 - POOL_PRIORITIES) greatest = 1 - POOL_PRIORITIES;
  if (*priority > 0) *priority = 0;
  if (*priority < greatest) *priority = greatest;
  return status;
}

attune_status attune_device_priority_range(attune_device *device, int *out_least, int *out_greatest) {
  int least = 0, greatest = 0;
  AT_REQUIRE_DEVICE(device);
  if (device->backend.runtime) AT_TRY(device->backend.runtime->priorities(device, &least, &greatest));
  if (out_least) *out_least = least;
  if (out_greatest) *out_greatest = greatest;
  return ATTUNE_OK;
}

/* The next slot, filled or not; a child of fork has none of its parent's. Under the lock. */
static attune_stream **next_slot(pool *p) {
  const unsigned generation = at_fork_generation();
  if (p->generation != generation) {
    pool *inherited = p->next > 0 ? malloc(sizeof *inherited) : NULL;
    if (inherited) *inherited = *p;
    *p = (pool){.generation = generation, .inherited = inherited ? inherited : p->inherited};
  }
  return &p->stream[p->next++ % POOL_STREAMS];
}

attune_status attune_stream_from_pool(attune_stream **out, attune_device *device, int priority) {
  AT_REQUIRE_AS(out, "point to a handle");
  *out = NULL;
  AT_REQUIRE_DEVICE(device);
  AT_TRY(clamp(&priority, device));
  pthread_once(&fork_once, watch_fork);
  pthread_mutex_lock(&pool_lock);
  attune_stream **slot = next_slot(&pools[device->index][-priority]), *made = NULL, *unused = NULL;
  *out = *slot;
  pthread_mutex_unlock(&pool_lock);
  if (*out) return ATTUNE_OK;
  attune_status status =
      at_stream_open(&made, device, NULL, true, priority); /* without the lock: a lost device is logged */
  if (status != ATTUNE_OK) return status;
  made->pooled = true;
  pthread_mutex_lock(&pool_lock);
  if (*slot)
    unused = made;
  else
    *slot = made;
  *out = *slot;
  pthread_mutex_unlock(&pool_lock);
  if (unused) at_stream_close(unused);
  return ATTUNE_OK;
}

attune_stream *attune_stream_current(attune_device *device) {
  attune_stream *current = device ? current_stream[device->index] : NULL;
  return current ? current : attune_stream_default(device);
}

attune_status attune_stream_set_current(attune_stream *stream) {
  AT_REQUIRE_STREAM(stream);
  current_stream[stream->device->index] = stream;
  return ATTUNE_OK;
}

void at_stream_forget_current(const attune_stream *stream) {
  if (current_stream[stream->device->index] == stream) current_stream[stream->device->index] = NULL;
}

attune_device *attune_device_current(void) {
  if (!current_device) (void)attune_device_get(&current_device, NULL);
  return current_device;
}

attune_status attune_device_set_current(attune_device *device) {
  AT_REQUIRE_DEVICE(device);
  current_device = device;
  return ATTUNE_OK;
}
