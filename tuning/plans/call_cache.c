/* SPDX-License-Identifier: Apache-2.0
 * call_cache.c: see call_cache.h. The list's lock is taken before a thread's own; nothing else is locked under them. */
#include "tuning/plans/call_cache.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "src/process/fork.h"

/* The tail of a problem that does not fit into the signature words. */
typedef struct at_rest {
  size_t bytes;
  char data[];
} at_rest;

at_call_cache_thread at_call_cache_threads[AT_CALL_CACHE_THREADS];

/* Guards the list of all threads' call caches. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static at_call_cache *list;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;    /* its value is the thread's cache, so that the end of a thread frees them */
static atomic_bool key_made; /* read at the exit too, while threads may go on */

/* Adds to the entry what it does not have yet. The owner's lock is held. */
static void add(at_cached_call *cached) {
  if (atomic_load_explicit(&cached->tuner, memory_order_relaxed) == 0) return;
  const uint64_t calls = atomic_load_explicit(&cached->calls, memory_order_relaxed);
  if (calls != cached->added) at_plan_entry_count(cached->entry, calls - cached->added);
  cached->added = calls;
}

/* Every call of this tuner (0: of all) in every thread: adds it up and, with `forget`, frees it. */
static void each_add(uint64_t tuner, bool forget) {
  pthread_mutex_lock(&list_lock);
  for (at_call_cache *cache = list; cache; cache = cache->next) {
    pthread_mutex_lock(&cache->lock);
    for (size_t i = 0; i < AT_COUNT(cache->slots); i++) {
      at_cached_call *cached = &cache->slots[i];
      if (tuner && atomic_load_explicit(&cached->tuner, memory_order_relaxed) != tuner) continue;
      add(cached);
      if (forget) atomic_store_explicit(&cached->tuner, 0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&cache->lock);
  }
  pthread_mutex_unlock(&list_lock);
}

void at_call_cache_collect(uint64_t tuner) {
  at_graph_calls_collect();
  each_add(tuner, false);
}

void at_call_cache_forget(uint64_t tuner) {
  if (!tuner) return;
  at_graph_calls_forget(tuner);
  each_add(tuner, true);
}

/* The list's lock is held. */
static void unlink_cache(at_call_cache *cache) {
  if (cache->next) cache->next->previous = cache->previous;
  if (cache->previous)
    cache->previous->next = cache->next;
  else
    list = cache->next;
  atomic_store_explicit(&at_call_cache_threads[cache->place].thread, 0, memory_order_release);
}

/* The thread never goes on (in a child of fork), or ends and is added up; the list's lock is held. */
static void release(at_call_cache *cache) {
  unlink_cache(cache);
  for (size_t i = 0; i < AT_COUNT(cache->slots); i++) free(cache->slots[i].rest);
  pthread_mutex_destroy(&cache->lock);
  free(cache);
}

static void thread_ends(void *value) {
  at_call_cache *cache = value;
  pthread_mutex_lock(&list_lock);
  for (size_t i = 0; i < AT_COUNT(cache->slots); i++) add(&cache->slots[i]);
  release(cache);
  pthread_mutex_unlock(&list_lock);
}

/* Over a fork every lock is held, so that the child finds all whole. It has none of the other threads. */
static void before_fork(void *unused) {
  (void)unused;
  for (at_call_cache *cache = list; cache; cache = cache->next) pthread_mutex_lock(&cache->lock);
}

/* The child counts its own calls, from none: those before the fork are the parent's. */
static void count_anew(at_call_cache *mine) {
  for (size_t i = 0; i < AT_COUNT(mine->slots); i++)
    mine->slots[i].added = atomic_load_explicit(&mine->slots[i].calls, memory_order_relaxed);
}

static void after_fork(void *unused, bool child) {
  at_call_cache *mine = at_call_cache_mine();
  (void)unused;
  if (child && mine) count_anew(mine);
  for (at_call_cache *cache = list, *next; cache; cache = next) {
    next = cache->next;
    pthread_mutex_unlock(&cache->lock);
    if (child && cache != mine) release(cache);
  }
}

/* In a child of a fork that came in the middle of this it runs once more. */
static void start(void) {
  static at_fork_watch watch = {.lock = &list_lock, .before = before_fork, .after = after_fork};
  at_fork_watch_add(&watch);
  key_made = pthread_key_create(&key, thread_ends) == 0;
}

/* Threads that outlive the library must not call into it when they end. */
__attribute__((destructor)) static void stop(void) {
  if (key_made) pthread_key_delete(key);
}

/* A place for the thread; false: too many threads live. */
static bool take_place(at_call_cache *cache, uintptr_t thread) {
  unsigned place = at_call_cache_place(thread);
  for (int i = 0; i < AT_CALL_CACHE_PROBES; i++, place = (place + 1) % AT_CALL_CACHE_THREADS) {
    if (atomic_load_explicit(&at_call_cache_threads[place].thread, memory_order_acquire) != 0) continue;
    cache->place = place;
    at_call_cache_threads[place].cache = cache;
    atomic_store_explicit(&at_call_cache_threads[place].thread, thread, memory_order_release);
    return true;
  }
  return false;
}

/* Creates the calling thread's cache; NULL: no memory, or too many threads. */
static at_call_cache *make(void) {
  pthread_once(&once, start);
  at_call_cache *cache = key_made ? aligned_alloc(64, (sizeof *cache + 63) / 64 * 64) : NULL;
  if (!cache) return NULL;
  memset(cache, 0, sizeof *cache);
  pthread_mutex_init(&cache->lock, NULL);
  pthread_mutex_lock(&list_lock);
  const bool ok = pthread_setspecific(key, cache) == 0 && take_place(cache, at_thread_number());
  if (ok) {
    cache->next = list;
    if (list) list->previous = cache;
    list = cache;
  }
  pthread_mutex_unlock(&list_lock);
  if (ok) return cache;
  (void)pthread_setspecific(key, NULL);
  pthread_mutex_destroy(&cache->lock);
  free(cache);
  return NULL;
}

/* The neighbour to overwrite: a free one, else each in turn. */
static at_cached_call *victim(at_call_cache *mine, uint64_t hash) {
  at_cached_call *first = &mine->slots[at_call_cache_first(hash)];
  for (int i = 0; i < AT_CALL_CACHE_WAYS; i++)
    if (atomic_load_explicit(&first[i].tuner, memory_order_relaxed) == 0) return &first[i];
  return &first[mine->turn++ % AT_CALL_CACHE_WAYS];
}

bool at_call_cache_rest_is(const at_cached_call *cached, const void *rest, size_t bytes) {
  return cached->rest && cached->rest->bytes == bytes && memcmp(cached->rest->data, rest, bytes) == 0;
}

/* A neighbour that is free now, its last call added up; NULL: the thread can remember nothing. The thread's lock is
 * held then, and the caller fills it in and unlocks. */
static at_cached_call *make_room(at_call_cache **mine, uint64_t hash) {
  *mine = at_call_cache_mine();
  if (!*mine) *mine = make();
  if (!*mine) return NULL;
  pthread_mutex_lock(&(*mine)->lock);
  at_cached_call *cached = victim(*mine, hash);
  add(cached);
  free(cached->rest);
  cached->rest = NULL;
  cached->hash = hash;
  cached->added = 0;
  return cached;
}

static void begin(at_cached_call *cached, uint64_t tuner, at_call_cache *mine) {
  atomic_store_explicit(&cached->calls, 1, memory_order_relaxed);
  atomic_store_explicit(&cached->tuner, tuner, memory_order_relaxed);
  pthread_mutex_unlock(&mine->lock);
}

void at_call_cache_put(uint64_t tuner, const attune_device *device, const at_plan_entry *entry,
                       const at_call_signature *asked) {
  at_call_cache *mine = NULL;
  at_rest *rest = asked->rest_bytes ? malloc(sizeof *rest + asked->rest_bytes) : NULL;
  at_cached_call *cached = rest || !asked->rest_bytes ? make_room(&mine, at_call_signature_hash(tuner, asked)) : NULL;
  if (!cached) {
    free(rest);
    at_plan_entry_count(entry, 1);
    return;
  }
  if (rest) {
    rest->bytes = asked->rest_bytes;
    memcpy(rest->data, asked->rest, rest->bytes);
  }
  cached->device = device;
  cached->entry = entry;
  cached->use = asked->use;
  cached->words = asked->words;
  cached->rest = rest;
  begin(cached, tuner, mine);
}

void at_call_cache_put_plan(const at_plan *plan) {
  at_call_cache *mine = NULL;
  at_cached_call *cached = make_room(&mine, at_call_cache_plan_hash(plan));
  if (!cached) {
    at_plan_entry_count(plan->entry, 1);
    return;
  }
  cached->device = NULL;
  cached->entry = plan->entry;
  cached->use = plan->id;
  begin(cached, plan->tuner, mine);
}
