/* SPDX-License-Identifier: Apache-2.0
 * call_cache.h: each thread's recent calls with their counts. A call equal to a recent one finds its plan table entry
 * without being checked, normalised or hashed again. Every operation uses it, through public_call.h and plan_handle.h.
 *
 *   call of an operation(tuner, stream, problem, operands)
 *      |
 *   1  hint of the problem's address -> a slot; its signature is compared       the thread's own memory, no lock
 *      |  another problem lay at this address
 *   2  hash of the signature -> 4 neighbouring slots; sets the hint             the thread's own memory, no lock
 *      |  this thread has not called it lately: check, normalise -> at_key
 *   3  hash of the key -> plan table of the tuner; takes a slot in 2            shared, read without a lock
 *      |  miss: dispatch.c decides
 *   4  plans beyond the table's bound (plan_lru.h), provisional plans; the winner in the user or system database;
 *      |  mode tune: a search; else a guess, else the default                   -> into the plan table
 *      v
 *   plan->launch(plan, operands, stream)
 *
 * On the path of a call, only the thread itself changes its slots. Its lock guards accesses of other threads, which
 * remove the calls of a destroyed tuner and add up counts. A thread that ends frees its slots. An entry of a destroyed
 * tuner is never touched, as tuner ids are never reused. */
#ifndef AT_CALL_CACHE_H
#define AT_CALL_CACHE_H

#include "src/stream/graph_calls.h"
#include "tuning/plans/plan_table.h"
#include "tuning/plans/signature_simd.h"

/* A call as its caller wrote it: all that may differ from call to call and counts. An operation fills it in
 * a few instructions. */
typedef struct at_call_signature {
  at_signature_words
      words;         /* the caller's problem without its padding, or as much of it as there is room; zeros behind */
  uint64_t use;      /* of at_call_signature_use */
  uint64_t more;     /* for the hash alone, which sees the lower half of each word: what else often differs */
  const void *rest;  /* what of the problem words have no room for */
  size_t rest_bytes; /* 0: there is none */
} at_call_signature;

/* Properties that the words lack, such as the use of operands: `bits`, below 2^47, of the operation numbered `op`. */
static inline uint64_t at_call_signature_use(int op, uint64_t bits, bool rest) {
  return bits | (uint64_t)(unsigned)op << 47 | (uint64_t)rest << 63;
}

/* Three cache lines. Changed by its thread only, under the lock of its at_call_cache, with two exceptions: `calls`
 * counts without the lock, and another thread may set `tuner` to 0 under it. */
typedef struct at_cached_call {
  uint64_t hash;
  _Atomic uint64_t tuner; /* its id; 0: this one is free */
  const attune_device *device;
  const at_plan_entry *entry;
  _Atomic uint64_t calls;
  uint64_t added;           /* of `calls`, those that entry->calls has; under the lock, by any thread */
  uint64_t use;             /* as in at_call_signature; or a caller's plan's own number, and then there is no device */
  struct at_rest *rest;     /* what words had no room for, its own; NULL: nothing, or free to be used again */
  at_signature_words words; /* as in at_call_signature */
} at_cached_call;
_Static_assert(sizeof(at_cached_call) == 192, "a recent call is three cache lines");

/* A call may lie in one of AT_CALL_CACHE_WAYS neighbours. At a quarter full, nearly all lie in the first. */
enum { AT_CALL_CACHE_SLOTS = 256, AT_CALL_CACHE_WAYS = 4, AT_CALL_CACHE_THREADS = 1024, AT_CALL_CACHE_PROBES = 8 };
enum { AT_CALL_CACHE_HINTS = 4096 };

typedef struct at_call_cache {
  at_cached_call slots[AT_CALL_CACHE_SLOTS + AT_CALL_CACHE_WAYS - 1];
  pthread_mutex_t lock;
  struct at_call_cache *next, *previous; /* under the list's lock */
  unsigned turn;                         /* which neighbour is given up next */
  unsigned place;                        /* in at_call_cache_threads */
  /* Where it was found last, in bytes from `slots`: what was asked from an address, a plan that a caller holds. */
  uint16_t hints[AT_CALL_CACHE_HINTS];
} at_call_cache;

/* Which thread has which. A place belongs to one thread from the time it takes it until it ends, so no other writes
 * there. Unlike thread-local variables this costs the same in a library that is opened late. */
typedef struct at_call_cache_thread {
  _Atomic uintptr_t thread; /* 0: free */
  at_call_cache *cache;
} at_call_cache_thread;
extern at_call_cache_thread at_call_cache_threads[AT_CALL_CACHE_THREADS];

/* A number that no other living thread has. */
static inline uintptr_t at_thread_number(void) {
#if defined(__x86_64__) && defined(__LP64__)
  uintptr_t number;
  __asm__("mov %%fs:0, %0" : "=r"(number));
  return number;
#elif defined(__aarch64__)
  uintptr_t number;
  __asm__("mrs %0, tpidr_el0" : "=r"(number));
  return number;
#else
  return (uintptr_t)pthread_self();
#endif
}

static inline unsigned at_call_cache_place(uintptr_t thread) {
  return (unsigned)(((uint64_t)thread * 0x9E3779B97F4A7C15u) >> 54);
}
_Static_assert(AT_CALL_CACHE_THREADS == 1 << 10, "at_call_cache_place takes ten bits");

/* The place's cache if it is this thread's, else NULL. */
static inline at_call_cache *at_call_cache_at(unsigned place, uintptr_t thread) {
  const at_call_cache_thread *at = &at_call_cache_threads[place];
  __asm__("" : "+r"(at)); /* its address once, not once for each field */
  if (AT_UNLIKELY(atomic_load_explicit(&at->thread, memory_order_relaxed) != thread)) return NULL;
  at_call_cache *mine = at->cache;
  if (!mine) __builtin_unreachable(); /* it is there before the thread's number is */
  return mine;
}

/* The calling thread's, if they have the thread's first place, as nearly all have; else NULL. */
static inline at_call_cache *at_call_cache_at_once(void) {
  const uintptr_t thread = at_thread_number();
  return at_call_cache_at(at_call_cache_place(thread), thread);
}

/* The calling thread's; NULL: it has none yet. */
static inline at_call_cache *at_call_cache_mine(void) {
  const uintptr_t thread = at_thread_number();
  unsigned place = at_call_cache_place(thread);
  for (int i = 0; i < AT_CALL_CACHE_PROBES; i++, place = (place + 1) % AT_CALL_CACHE_THREADS) {
    at_call_cache *mine = at_call_cache_at(place, thread);
    if (AT_LIKELY(mine != NULL)) return mine;
  }
  return NULL;
}

/* One more call. Only this thread writes the count, so it needs no locked instruction; others may read it. */
static inline void at_call_cache_count(at_cached_call *cached) {
  const uint64_t calls = atomic_load_explicit(&cached->calls, memory_order_relaxed);
  atomic_store_explicit(&cached->calls, calls + 1, memory_order_relaxed);
}

/* A call that is captured counts again at each replay. */
static inline void at_call_cache_captured(const attune_stream *stream, uint64_t tuner, const at_plan_entry *entry) {
  if (AT_UNLIKELY(stream->capture != NULL))
    at_graph_calls_note(stream->capture, tuner, &((at_plan_entry *)(uintptr_t)entry)->calls);
}

/* Programs ask for the same thing from the same address, mostly: a hint that holds saves the hash. Problems of one
 * array have adjacent hints of their own, as do those at the same place of several pages too. */
static inline uint16_t *at_call_cache_hint(at_call_cache *cache, const void *asked) {
  const uintptr_t address = (uintptr_t)asked;
  return &cache->hints[(address >> 6 ^ address >> 16) % AT_CALL_CACHE_HINTS];
}

_Static_assert(sizeof(at_cached_call) * (AT_CALL_CACHE_SLOTS + AT_CALL_CACHE_WAYS) <= UINT16_MAX,
               "a hint is any place in slots");

static inline at_cached_call *at_call_cache_hinted_at(at_call_cache *cache, const uint16_t *hint) {
  return (at_cached_call *)(void *)((char *)cache->slots + *hint);
}

static inline void at_call_cache_set_hint(at_call_cache *cache, uint16_t *hint, const at_cached_call *found) {
  *hint = (uint16_t)((const char *)found - (const char *)cache->slots);
}

AT_INLINE bool at_call_cache_is(const at_cached_call *cached, uint64_t hash, uint64_t tuner,
                                const attune_device *device, uint64_t use) {
  return cached->hash == hash && atomic_load_explicit(&cached->tuner, memory_order_relaxed) == tuner &&
         cached->device == device && cached->use == use;
}

static inline unsigned at_call_cache_first(uint64_t hash) {
  return (unsigned)(hash >> 56);
}
_Static_assert(AT_CALL_CACHE_SLOTS == 1 << 8, "at_call_cache_first takes eight bits");

/* Is this the rest of its problem? By value: what is asked keeps no address, so that it stays in registers. */
bool at_call_cache_rest_is(const at_cached_call *cached, const void *rest, size_t bytes);

AT_INLINE bool at_call_cache_like(const at_cached_call *cached, uint64_t hash, uint64_t tuner,
                                  const attune_device *device, const at_call_signature *asked) {
  return at_call_cache_is(cached, hash, tuner, device, asked->use) &&
         at_signature_words_equal(&cached->words, &asked->words) &&
         (asked->rest_bytes == 0 || at_call_cache_rest_is(cached, asked->rest, asked->rest_bytes));
}

AT_INLINE uint64_t at_call_signature_hash(uint64_t tuner, const at_call_signature *asked) {
  const uint64_t rest = asked->rest_bytes ? XXH3_64bits(asked->rest, asked->rest_bytes) : 0;
  return at_signature_words_hash(&asked->words, asked->use ^ asked->more ^ tuner << 32 ^ rest);
}

/* The recent call that is just like this one, if it was found lately with a problem at the address `from`; NULL: look
 * on with at_call_cache_search. All of it in the caller's registers. */
AT_INLINE at_cached_call *at_call_cache_hinted(at_call_cache *mine, uint64_t tuner, const attune_device *device,
                                               const void *from, const at_call_signature *asked) {
  at_cached_call *cached = at_call_cache_hinted_at(mine, at_call_cache_hint(mine, from));
  return AT_LIKELY(at_call_cache_like(cached, cached->hash, tuner, device, asked)) ? cached : NULL;
}

/* The same by its hash: it is one of a few neighbours, and sets the hint. NULL: none. */
AT_INLINE at_cached_call *at_call_cache_search(at_call_cache *mine, uint64_t tuner, const attune_device *device,
                                               const void *from, const at_call_signature *asked) {
  const uint64_t hash = at_call_signature_hash(tuner, asked);
  at_cached_call *cached = &mine->slots[at_call_cache_first(hash)];
  for (int i = 0; i < AT_CALL_CACHE_WAYS; i++, cached++)
    if (at_call_cache_like(cached, hash, tuner, device, asked)) {
      at_call_cache_set_hint(mine, at_call_cache_hint(mine, from), cached);
      return cached;
    }
  return NULL;
}

/* Remembers a call that found its entry, counts it, and gives up another if it must. Without memory it only counts. */
void at_call_cache_put(uint64_t tuner, const attune_device *device, const at_plan_entry *entry,
                       const at_call_signature *asked);

/* The same for a run of a plan that a caller holds. */
void at_call_cache_put_plan(const at_plan *plan);

static inline uint64_t at_call_cache_plan_hash(const at_plan *plan) {
  return plan->id * 0x9E3779B97F4A7C15u;
}

/* The number of the n-th plan that a caller holds. No use has this bit: an operation's number has 15 at most. */
static inline uint64_t at_call_cache_plan_id(uint64_t n) {
  return n | (uint64_t)1 << 62;
}

static inline uint16_t at_call_cache_plan_hint(const at_plan *plan) {
  return (uint16_t)(at_call_cache_plan_hash(plan) % AT_CALL_CACHE_HINTS);
}

AT_INLINE bool at_call_cache_is_plan(const at_cached_call *cached, const at_plan *plan) {
  return cached->use == plan->id && atomic_load_explicit(&cached->tuner, memory_order_relaxed) != 0;
}

/* Counts a run of a plan that a caller holds, if it was found lately; false: it is not counted yet. The plan's own
 * number never comes again and is no call's use, so it tells the plan alone. */
AT_INLINE bool at_call_cache_count_plan_at_once(const at_plan *plan) {
  at_call_cache *mine = at_call_cache_at_once();
  if (AT_UNLIKELY(!mine)) return false;
  at_cached_call *cached = at_call_cache_hinted_at(mine, &mine->hints[plan->caller_hint]);
  if (AT_UNLIKELY(!at_call_cache_is_plan(cached, plan))) return false;
  at_call_cache_count(cached);
  return true;
}

/* The same wherever it is. */
static inline void at_call_cache_count_plan(const at_plan *plan) {
  at_call_cache *mine = at_call_cache_mine();
  if (AT_LIKELY(mine != NULL)) {
    at_cached_call *cached = &mine->slots[at_call_cache_first(at_call_cache_plan_hash(plan))];
    for (int i = 0; i < AT_CALL_CACHE_WAYS; i++, cached++)
      if (AT_LIKELY(at_call_cache_is_plan(cached, plan))) {
        at_call_cache_set_hint(mine, &mine->hints[plan->caller_hint], cached);
        at_call_cache_count(cached);
        return;
      }
  }
  at_call_cache_put_plan(plan);
}

/* Adds what all threads have counted so far to the entries of this tuner; 0: of all. Any thread. */
void at_call_cache_collect(uint64_t tuner);

/* Makes every thread forget this tuner's calls, which are added to its entries first: before they are freed. */
void at_call_cache_forget(uint64_t tuner);

#endif
