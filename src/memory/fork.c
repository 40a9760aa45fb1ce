/* SPDX-License-Identifier: Apache-2.0
 * fork.c: the allocators over a fork. All their locks are held meanwhile, so the child finds every list whole. There
 * the host's memory is its own copy and goes on; a CUDA device's calls fail. */
#include "src/memory/front.h"

/* The first of the memory locks: taken before an allocator's. */
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

/* device.c's table: cuda devices, then the host. */
static int device_count;

void at_pinned_lock(void) {
  pthread_mutex_lock(&pinned_lock);
}

void at_pinned_unlock(void) {
  pthread_mutex_unlock(&pinned_lock);
}

static at_allocator *allocator_at(int index) {
  attune_device *device = NULL;
  if (attune_device_at(&device, index) != ATTUNE_OK) return NULL;
  return __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE);
}

static void before(void) {
  at_pinned_lock();
  for (int i = 0; i < device_count; i++) {
    at_allocator *allocator = allocator_at(i);
    if (!allocator) continue;
    pthread_mutex_lock(&allocator->lock);
    for (at_front *front = allocator->fronts; front; front = front->next) at_front_lock(front);
  }
  at_table_lock();
}

static void release(bool child) {
  at_table_unlock();
  for (int i = device_count; i-- > 0;) {
    at_allocator *allocator = allocator_at(i);
    if (!allocator) continue;
    for (at_front *front = allocator->fronts; front; front = front->next) {
      if (child) atomic_fetch_or(&front->flags, AT_FRONT_FORKED);
      at_front_unlock(front);
    }
    pthread_mutex_unlock(&allocator->lock);
  }
  at_pinned_unlock();
}

static void after_in_parent(void) {
  release(false);
}

static void after_in_child(void) {
  release(true);
}

static void watch(void) {
  device_count = attune_device_count();
  pthread_atfork(before, after_in_parent, after_in_child);
}

void at_memory_watch_fork(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}
