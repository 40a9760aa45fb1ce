/* SPDX-License-Identifier: Apache-2.0
 * fork.c: the allocators over a fork. All their locks are held during it, so the child finds every list whole. There
 * the host's memory is its own copy and goes on; a CUDA device's calls fail. */
#include "src/process/fork.h"
#include "src/memory/malloc/stream_cache.h"

enum { DEVICES_MOST = 65 }; /* as in device.c */

/* The first of the memory locks: taken before an allocator's. */
static pthread_mutex_t pinned_lock = PTHREAD_MUTEX_INITIALIZER;

/* The allocators by device, and the lock that guards the list and device->memory: the first of all. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static at_allocator *list[DEVICES_MOST];

void at_pinned_lock(void) {
  at_memory_watch_fork();
  pthread_mutex_lock(&pinned_lock);
}

void at_pinned_unlock(void) {
  pthread_mutex_unlock(&pinned_lock);
}

static void before(void *unused) {
  (void)unused;
  pthread_mutex_lock(&list_lock);
  at_pinned_lock();
  for (int i = 0; i < DEVICES_MOST; i++) {
    at_allocator *allocator = list[i];
    if (!allocator) continue;
    pthread_mutex_lock(&allocator->lock);
    for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next) at_stream_cache_lock(cache);
  }
  at_address_table_lock();
}

static void after(void *unused, bool child) {
  (void)unused;
  at_address_table_unlock();
  for (int i = DEVICES_MOST; i-- > 0;) {
    at_allocator *allocator = list[i];
    if (!allocator) continue;
    for (at_stream_cache *cache = allocator->caches; cache; cache = cache->next) {
      if (child) atomic_fetch_or(&cache->flags, AT_STREAM_CACHE_FORKED);
      if (child) cache->told = 0; /* by threads that are not there */
      at_stream_cache_unlock(cache);
    }
    pthread_mutex_unlock(&allocator->lock);
  }
  at_pinned_unlock();
  pthread_mutex_unlock(&list_lock);
}

static void watch(void) {
  static at_fork_watch forks = {.before = before, .after = after};
  at_fork_watch_add(&forks);
}

void at_memory_watch_fork(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}

at_allocator *at_memory_publish(at_allocator *made) {
  attune_device *device = made->device;
  at_memory_watch_fork();
  pthread_mutex_lock(&list_lock);
  at_allocator *present = __atomic_load_n(&device->memory, __ATOMIC_ACQUIRE);
  if (!present) {
    list[device->index] = made;
    __atomic_store_n(&device->memory, made, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&list_lock);
  return present ? present : made;
}
