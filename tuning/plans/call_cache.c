/* SPDX-License-Identifier: Apache-2.0
 * call_cache.c: see call_cache.h. The list's lock is taken before a thread's own; nothing else is locked under them. */
#include "tuning/plans/call_cache.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "src/process/fork.h"

/* What of a problem the words of a recent call have no room for. */
typedef struct at_rest {
  size_t bytes;
  char data[];
} at_rest;

at_call_cache_thread at_call_cache_threads[AT_CALL_CACHE_THREADS];

/* Guards the list of all threads' recents. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static at_call_cache *list;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;    /* its value is the thread's recents, so that the end of a thread frees them */
static atomic_bool key_made; /* read at the exit too, while threads may go on */

/* Adds to the entry what it does not have yet. The owner's lock is held. */
static void add(at_cached_call *recent) {
  if (atomic_load_explicit(&recent->tuner, memory_order_relaxed) == 0) return;
  const uint64_t calls = atomic_load_explicit(&recent->calls, memory_order_relaxed);
  if (calls != recent->added) at_plan_entry_count(recent->entry, calls - recent->added);
  recent->added = calls;
}

/* Every call of this tuner (0: of all) in every thread: adds it up and, with `forget`, frees it. */
static void each_add(uint64_t tuner, bool forget) {
  pthread_mutex_lock(&list_lock);
  for (at_call_cache *recents = list; recents; recents = recents->next) {
    pthread_mutex_lock(&recents->lock);
    for (size_t i = 0; i < AT_COUNT(recents->slots); i++) {
      at_cached_call *recent = &recents->slots[i];
      if (tuner && atomic_load_explicit(&recent->tuner, memory_order_relaxed) != tuner) continue;
      add(recent);
      if (forget) atomic_store_explicit(&recent->tuner, 0, memory_order_relaxed);
    }
    pthread_mutex_unlock(&recents->lock);
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
static void unlink_recents(at_call_cache *recents) {
  if (recents->next) recents->next->previous = recents->previous;
  if (recents->previous)
    recents->previous->next = recents->next;
  else
    list = recents->next;
  atomic_store_explicit(&at_call_cache_threads[recents->place].thread, 0, memory_order_release);
}

/* The thread never goes on (in a child of fork), or ends and is added up; the list's lock is held. */
static void release(at_call_cache *recents) {
  unlink_recents(recents);
  for (size_t i = 0; i < AT_COUNT(recents->slots); i++) free(recents->slots[i].rest);
  pthread_mutex_destroy(&recents->lock);
  free(recents);
}

static void thread_ends(void *value) {
  at_call_cache *recents = value;
  pthread_mutex_lock(&list_lock);
  for (size_t i = 0; i < AT_COUNT(recents->slots); i++) add(&recents->slots[i]);
  release(recents);
  pthread_mutex_unlock(&list_lock);
}

/* Over a fork every lock is held, so that the child finds all whole. It has none of the other threads. */
static void before_fork(void *unused) {
  (void)unused;
  for (at_call_cache *recents = list; recents; recents = recents->next) pthread_mutex_lock(&recents->lock);
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
  for (at_call_cache *recents = list, *next; recents; recents = next) {
    next = recents->next;
    pthread_mutex_unlock(&recents->lock);
    if (child && recents != mine) release(recents);
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
static bool take_place(at_call_cache *recents, uintptr_t thread) {
  unsigned place = at_call_cache_place(thread);
  for (int i = 0; i < AT_CALL_CACHE_PROBES; i++, place = (place + 1) % AT_CALL_CACHE_THREADS) {
    if (atomic_load_explicit(&at_call_cache_threads[place].thread, memory_order_acquire) != 0) continue;
    recents->place = place;
    at_call_cache_threads[place].recents = recents;
    atomic_store_explicit(&at_call_cache_threads[place].thread, thread, memory_order_release);
    return true;
  }
  return false;
}

/* The calling thread's recents, made now; NULL: no memory, or too many threads. */
static at_call_cache *make(void) {
  pthread_once(&once, start);
  at_call_cache *recents = key_made ? aligned_alloc(64, (sizeof *recents + 63) / 64 * 64) : NULL;
  if (!recents) return NULL;
  memset(recents, 0, sizeof *recents);
  pthread_mutex_init(&recents->lock, NULL);
  pthread_mutex_lock(&list_lock);
  const bool ok = pthread_setspecific(key, recents) == 0 && take_place(recents, at_thread_number());
  if (ok) {
    recents->next = list;
    if (list) list->previous = recents;
    list = recents;
  }
  pthread_mutex_unlock(&list_lock);
  if (ok) return recents;
  (void)pthread_setspecific(key, NULL);
  pthread_mutex_destroy(&recents->lock);
  free(recents);
  return NULL;
}

/* The neighbour to overwrite: a free one, else each in turn. */
static at_cached_call *victim(at_call_cache *mine, uint64_t hash) {
  at_cached_call *first = &mine->slots[at_call_cache_first(hash)];
  for (int i = 0; i < AT_CALL_CACHE_WAYS; i++)
    if (atomic_load_explicit(&first[i].tuner, memory_order_relaxed) == 0) return &first[i];
  return &first[mine->turn++ % AT_CALL_CACHE_WAYS];
}

bool at_call_cache_rest_is(const at_cached_call *recent, const void *rest, size_t bytes) {
  return recent->rest && recent->rest->bytes == bytes && memcmp(recent->rest->data, rest, bytes) == 0;
}

/* A neighbour that is free now, its last call added up; NULL: the thread can remember nothing. The thread's lock is
 * held then, and the caller fills it in and unlocks. */
static at_cached_call *make_room(at_call_cache **mine, uint64_t hash) {
  *mine = at_call_cache_mine();
  if (!*mine) *mine = make();
  if (!*mine) return NULL;
  pthread_mutex_lock(&(*mine)->lock);
  at_cached_call *recent = victim(*mine, hash);
  add(recent);
  free(recent->rest);
  recent->rest = NULL;
  recent->hash = hash;
  recent->added = 0;
  return recent;
}

static void begin(at_cached_call *recent, uint64_t tuner, at_call_cache *mine) {
  atomic_store_explicit(&recent->calls, 1, memory_order_relaxed);
  atomic_store_explicit(&recent->tuner, tuner, memory_order_relaxed);
  pthread_mutex_unlock(&mine->lock);
}

void at_call_cache_put(uint64_t tuner, const attune_device *device, const at_plan_entry *entry,
                       const at_call_signature *asked) {
  at_call_cache *mine = NULL;
  at_rest *rest = asked->rest_bytes ? malloc(sizeof *rest + asked->rest_bytes) : NULL;
  at_cached_call *recent = rest || !asked->rest_bytes ? make_room(&mine, at_call_signature_hash(tuner, asked)) : NULL;
  if (!recent) {
    free(rest);
    at_plan_entry_count(entry, 1);
    return;
  }
  if (rest) {
    rest->bytes = asked->rest_bytes;
    memcpy(rest->data, asked->rest, rest->bytes);
  }
  recent->device = device;
  recent->entry = entry;
  recent->use = asked->use;
  recent->words = asked->words;
  recent->rest = rest;
  begin(recent, tuner, mine);
}

void at_call_cache_put_plan(const at_plan *plan) {
  at_call_cache *mine = NULL;
  at_cached_call *recent = make_room(&mine, at_call_cache_plan_hash(plan));
  if (!recent) {
    at_plan_entry_count(plan->entry, 1);
    return;
  }
  recent->device = NULL;
  recent->entry = plan->entry;
  recent->use = plan->id;
  begin(recent, plan->tuner, mine);
}
