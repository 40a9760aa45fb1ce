/* SPDX-License-Identifier: Apache-2.0
 * allocator.h: the caching allocator of one device, as its parts see it.
 *
 * A segment is memory of the device, cut into blocks in order of address. A heap has the segments of one pool for one
 * stream. The heap's stream cache keeps the blocks that the stream freed last by exact size, so that the
 * usual alloc and free take only the cache's lock. A cache without a block of the size is emptied into its heap, where
 * neighbours merge and best fit searches: the delay loses nothing.
 *
 *   attune_alloc(stream, bytes)           attune_free(pointer): address table -> block
 *      |                                     | LIVE, of the common pool, unused by other streams: into its cache's bins
 *      v                                     | else PENDING until the events of its other streams, then CACHED
 *   at_stream_cache  bins by exact size:  512: [BINNED]->[BINNED]   1024: [BINNED]   ...           cache->lock
 *      |  no block of this size: all bins go to the heap
 *      v
 *   at_heap          trees[small, large] of CACHED blocks: best fit, the rest of the block stays     allocator->lock
 *      |
 *   at_segment       [ LIVE | CACHED | LIVE | BINNED | PENDING | CACHED ]   neighbours merge when CACHED
 *      |  nothing fits: the program's callbacks, then free segments of closed streams and of orphaned pools
 *      v
 *   the device       a new segment: 2 MiB for small requests, larger ones for large; from 10 MiB on their own size.
 *                    Out of memory: oversize segments go back, pools with use_on_oom lend, all free segments go back.
 *
 * Locks, in order: allocator->lock, then cache->lock, then the table's. No lock is held during calls of the device that
 * allocate or free memory, or while a function of the program runs. */
#ifndef AT_MEMORY_ALLOCATOR_H
#define AT_MEMORY_ALLOCATOR_H

#include <attune/pool.h>

#include "src/base/backend.h"
#include "src/memory/malloc/address_table.h"
#include "src/memory/malloc/history.h"
#include "src/memory/malloc/options.h"

#include <pthread.h>

#define AT_BLOCK_BYTES ((size_t)512)
#define AT_SMALL_REQUEST AT_MIB             /* requests up to this come from small segments */
#define AT_TINY_REQUEST ((size_t)256 << 10) /* and only these, once a heap has a wide expandable one */
#define AT_WIDE_GRANULES ((size_t)16)
#define AT_SMALL_SEGMENT (2 * AT_MIB)
#define AT_LARGE_REQUEST (10 * AT_MIB) /* requests from this on get segments of their own size */
#define AT_SEGMENT_UNIT (2 * AT_MIB)
#define AT_GROWN_SEGMENT (64 * AT_MIB) /* plain segments grow with their heap up to this */
#define AT_STREAM_CACHE_BINS 128
#define AT_POOL_DEPTH 8
#define AT_CALLBACKS 8
#define AT_POISON 0xfa
#define AT_EPOCH_LOST (UINT64_C(1) << 63)

typedef struct at_allocator at_allocator;
typedef struct at_stream_cache at_stream_cache;
typedef struct at_heap at_heap;
typedef struct at_segment at_segment;
typedef struct at_block at_block;

/* Whose a block is, and what may be done with it. */
typedef enum at_block_state {
  AT_BLOCK_SPARE,   /* no memory: kept for the next block */
  AT_BLOCK_LIVE,    /* the program's */
  AT_BLOCK_BINNED,  /* free, in its cache's bins */
  AT_BLOCK_CACHED,  /* free, in its heap's tree */
  AT_BLOCK_PENDING, /* freed, but another stream may still use it */
  AT_BLOCK_LEAVING, /* on its way back to the device */
  AT_BLOCK_UNMAPPED /* addresses without memory, in an expandable segment */
} at_block_state;

/* A stream that uses a block; after the free the wait for it. For a pool without a holder: a stream whose
 * work may use what is free of it. */
typedef struct at_use {
  struct at_use *next; /* of the block; while waiting, of the cache */
  at_stream_cache *cache;
  at_block *block;          /* NULL: `pool` waits */
  struct attune_pool *pool; /* NULL: `block` waits */
  attune_event *event;      /* NULL: the cache is closing; done once it is closed */
} at_use;

/* Made in chunks and never given back, see at_entry. What the program holds is changed by its holder: with its cache's
 * lock, or with the allocator's while it is not LIVE or BINNED. */
struct at_block {
  at_entry entry;
  _Atomic(at_stream_cache *) cache; /* the stream that it belongs to */
  atomic_int state;                 /* at_block_state */
  bool small, plain;                /* from a small segment; of the cache's common pool, so the cache may have it */
  size_t rounded;                   /* the request it serves, rounded: the size that the cache's bins know it by */
  size_t requested;
  uint64_t recorded; /* its record in the history; 0: none */
  uint64_t tag;      /* allocation_watch.c's; 0: its end is not watched. Guarded by the allocator's lock */
  at_use *uses;
  at_block *link; /* next in a bin or another list */
  size_t size;
  at_segment *segment;
  at_block *previous, *next; /* neighbours in the segment */
  at_block *left, *right;    /* in the tree */
  uint64_t freed_at;         /* allocator->tick */
  size_t seen_requested;     /* snapshot.c's: both as they were at one moment */
  at_block_state seen_state;
  int waits; /* uses that are not done */
};

typedef struct at_tree {
  at_block *root;
} at_tree;

struct at_segment {
  at_segment *next, *previous; /* of the heap */
  at_heap *heap;
  char *base;
  size_t bytes;      /* mapped, for an expandable one */
  size_t reserved;   /* addresses of an expandable one; 0: a plain segment */
  size_t granule;    /* of an expandable one */
  uint64_t *handles; /* of each granule; 0: not mapped */
  at_block *first;
  void *note; /* the backend's, for tools; NULL: no tool tracks the segment */
  bool small;
  bool exact;          /* taken for one request, without a cache: as many bytes as it asked for; serves no other */
  bool async;          /* of the driver's stream-ordered allocator; exact too */
  bool given;          /* it went back in stream order */
  attune_stream *told; /* the stream that the program's own free is told while it goes back; NULL: that is closed */
};

struct at_heap {
  at_heap *next; /* of the pool */
  struct attune_pool *pool;
  at_stream_cache *cache;
  at_tree trees[2]; /* large, small */
  at_segment *segments;
  size_t large_bytes; /* of large segments */
  bool wide;          /* has an expandable segment of AT_WIDE_GRANULES for large requests */
};

/* The state of a pool without a holder (orphan_pools.c). IDLE: no work uses what is free of it, so its free segments
 * serve the requests of other pools. */
typedef enum at_pool_life { AT_POOL_HELD, AT_POOL_ABANDONED, AT_POOL_WAITING, AT_POOL_IDLE } at_pool_life;

/* Guarded by the allocator's lock, except `replayed`. */
struct attune_pool {
  at_allocator *allocator;
  attune_pool *next;
  int references; /* 0: no holder */
  at_pool_life life;
  int waits;                           /* streams whose work may still use what is free of it */
  _Atomic(at_stream_cache *) replayed; /* the stream of the latest replay of a graph that has the pool; NULL: none */
  int leaving;                         /* segments on their way back to the device */
  uint64_t id[2]; /* {0,0} the common pool, {0,n} a graph's, {n,0} the program's: as PyTorch numbers them */
  bool use_on_oom, no_split, own_allocator; /* own_allocator: of managed memory too */
  struct at_managed *managed;               /* owned; NULL: the pool is of no managed memory */
  attune_allocator raw;
  at_heap *heaps;
};

/* Reasons for the slow path. */
enum {
  AT_STREAM_CACHE_CAPTURE = 1, /* a capture of attune_graph is under way on the device */
  AT_STREAM_CACHE_POOL = 2,    /* the stream uses a pool of the program's */
  AT_STREAM_CACHE_SLOW = 4,    /* history, poison, nvtx, no cache, an allocator of the program's */
  AT_STREAM_CACHE_FORKED = 8,  /* this is a child of fork, and the cache not yet looked at */
  AT_STREAM_CACHE_FOREIGN =
      16 /* the program's own stream: it may be captured without attune's knowing; the fast path asks */
};

/* Counters of what the program holds; [pool] is 0 large, 1 small. Written with the cache's lock held, read by
 * anybody. */
enum { AT_COUNT_ALLOCATIONS, AT_COUNT_BYTES, AT_COUNT_REQUESTED, AT_COUNTS };
typedef struct at_stream_cache_counter {
  _Atomic uint64_t current, total; /* total: ever allocated */
  _Atomic uint64_t high;           /* most since the epoch began */
} at_stream_cache_counter;

typedef struct at_bin {
  size_t size;
  at_block *top;
} at_bin;

typedef enum at_stream_cache_life {
  AT_STREAM_CACHE_OPEN,
  AT_STREAM_CACHE_CLOSING,
  AT_STREAM_CACHE_CLOSED
} at_stream_cache_life;

/* The allocator's state for one stream. Never freed: a closed one, whose stream is gone and done, serves the next
 * stream. */
struct at_stream_cache {
  atomic_int lock;        /* guards bins, used, counters */
  atomic_uint flags;      /* changed with the allocator's lock held */
  _Atomic uint64_t epoch; /* the allocator's, when `high` was begun */
  at_stream_cache_counter counters[AT_COUNTS][2];
  _Atomic uint64_t high_all[AT_COUNTS];
  uint64_t used[AT_STREAM_CACHE_BINS / 64]; /* bins that may have blocks */
  at_bin bins[AT_STREAM_CACHE_BINS];
  /* From here on the allocator's lock guards. */
  at_allocator *allocator;
  at_stream_cache *next; /* of the allocator */
  attune_stream *stream; /* NULL: closed */
  at_stream_cache_life life;
  int told;       /* segments whose `told` is the stream, which does not close until then */
  uint64_t id;    /* for people: 0, 1, 2, ... */
  at_heap *heap;  /* of the common pool */
  bool capturing; /* a capture began on the stream */
  attune_pool *capture_pool;
  attune_pool *pools[AT_POOL_DEPTH];
  int depth;
  at_use *waiting, **waiting_end; /* events of this stream, in its order */
};

typedef struct at_figures {
  attune_memory_figure figures[3];
} at_figures;

struct at_allocator {
  attune_device *device;
  _Atomic uint64_t epoch;     /* of the peaks; grows; AT_EPOCH_LOST sends every request to the slow path */
  atomic_bool plain_rounding; /* sizes go up to multiples of 512 only */
  pthread_mutex_t lock;       /* guards all that follows, and what is said to be the allocator's above */
  unsigned generation;        /* at_fork_generation() */
  atomic_bool lost;           /* without the lock */
  at_memory_options options;
  attune_status options_status; /* of ATTUNE_ALLOC */
  char options_message[512];
  uint64_t limit;       /* UINT64_MAX: none */
  attune_allocator own; /* the program's, when has_own */
  bool has_own;
  at_stream_cache *caches;
  uint64_t cache_count, pool_count, graph_count;
  attune_pool common; /* and the list of all pools */
  int captures;
  at_block *deferred;      /* freed while a capture was under way: their events are recorded after it */
  int abandoned;           /* pools in that state: their events are yet to be recorded */
  at_block *spare;         /* blocks without memory */
  struct at_chunk *chunks; /* all that blocks were ever made of */
  attune_event **events;   /* unused ones */
  size_t event_count, event_room;
  uint64_t reserved, tick;
  attune_memory_callback callbacks[AT_CALLBACKS];
  void *callback_users[AT_CALLBACKS];
  int callback_count;
  attune_memory_observer observers[AT_CALLBACKS];
  void *observer_users[AT_CALLBACKS];
  int observer_count;
  /* Statistics. [0] all [1] small [2] large */
  attune_memory_figure segments[3], reserved_bytes[3], pieces[3], piece_bytes[3], pending[3], pending_bytes[3];
  attune_memory_figure held[AT_COUNTS][3]; /* peaks, and what was counted before the last reset (in allocated, freed) */
  attune_memory_figure active[3], active_bytes[3];
  attune_memory_figure oversize_allocations, oversize_segments;
  uint64_t retries, failures, rejections, synchronizations, device_allocs, device_frees;
  at_history *history; /* NULL: off */
};

static inline uintptr_t at_block_address(const at_block *block) {
  return atomic_load_explicit(&((at_block *)(uintptr_t)block)->entry.address, memory_order_relaxed);
}
static inline at_block_state at_block_get_state(at_block *block) {
  return (at_block_state)atomic_load_explicit(&block->state, memory_order_relaxed);
}
static inline void at_block_set_state(at_block *block, at_block_state state) {
  atomic_store_explicit(&block->state, (int)state, memory_order_relaxed);
}
static inline void *at_block_pointer(const at_block *block) {
  return (void *)at_block_address(block);
}
/* Which tree a request looks in first, and which kind of segment it makes grow. In an expandable segment all free
 * neighbours merge, so what is not tiny leaves no lasting holes there, and a second range for it would be waste. */
static inline bool at_heap_prefers_small(const at_heap *heap, size_t size) {
  return size <= (heap->wide ? AT_TINY_REQUEST : AT_SMALL_REQUEST);
}
static inline bool at_segment_expandable(const at_segment *segment) {
  return segment->reserved != 0;
}

/* Whether each request goes to the device, or to the program's allocator. */
static inline bool at_allocator_is_direct(const at_allocator *allocator) {
  return allocator->options.no_cache || allocator->options.async || allocator->has_own;
}

/* allocators.c: the device's allocator, made at first use; NULL with a message when there is no memory for it. */
at_allocator *at_allocator_of(attune_device *device);
/* The same for a public call, with the lock taken. */
attune_status at_allocator_enter(at_allocator **out, attune_device *device);

/* OK when the allocator can be used: settings are good, the process is no child of fork, the device is not lost. Lock
 * held. */
attune_status at_allocator_check(at_allocator *allocator);
/* Sets or clears a reason for the slow path on every cache. Lock held. */
void at_allocator_flag(at_allocator *allocator, unsigned flag, bool on);
/* The flags that a new cache starts with. Lock held. */
unsigned at_allocator_flags(const at_allocator *allocator);
/* As attune_memory_get_backend names it. Lock held. */
const char *at_allocator_backend(const at_allocator *allocator);
/* Whether the driver has an allocator of its own for the device, in stream order. */
bool at_async_possible(attune_device *device);
/* Applies new settings. Lock held. */
void at_allocator_apply(at_allocator *allocator);
/* True when the allocator has no memory of the device. Lock held. */
bool at_allocator_is_empty(at_allocator *allocator);

/* malloc_slow.c */
size_t at_allocator_round(const at_memory_options *options, size_t bytes);
/* The slow path of attune_alloc. */
attune_status at_allocator_alloc(void **out, attune_stream *stream, at_stream_cache *cache, size_t bytes);

/* blocks.c. Lock held. */
at_block *at_block_new(at_allocator *allocator);
void at_block_drop(at_allocator *allocator, at_block *block); /* out of the table, to the spare ones */
/* A free block into its heap, merged with free neighbours; returns what it became. */
at_block *at_block_cache(at_allocator *allocator, at_block *block);
/* Out of the tree. */
void at_block_uncache(at_allocator *allocator, at_block *block);
/* Cuts what is beyond `size` off a block that is in no tree; the rest becomes a block of the same state, in no tree.
 * NULL: no memory. */
at_block *at_block_cut(at_allocator *allocator, at_block *block, size_t size);
/* The best free block of the heap for a request, out of the tree and cut to size; NULL: none, or no memory for the
 * rest. */
at_block *at_heap_take(at_allocator *allocator, at_heap *heap, size_t size);
bool at_block_is_piece(const at_block *block); /* of a segment with other blocks */
/* Puts what is beyond `size` bytes back, where it is worth it. The block is in no tree. */
void at_block_trim(at_allocator *allocator, at_block *block, size_t size);
/* `second`, right behind `first`, ends in it; both are in no tree. */
void at_block_swallow(at_allocator *allocator, at_block *first, at_block *second);
/* Whether a free block is not too large for a request. */
bool at_block_may_serve(const at_memory_options *options, const at_block *block, size_t size);

/* stream_cache.c */
at_stream_cache *at_stream_cache_of(attune_stream *stream); /* made at first use; NULL with a message */
void at_stream_cache_flush(at_allocator *allocator, at_stream_cache *cache); /* Lock held. */
void at_stream_cache_flush_all(at_allocator *allocator);                     /* Lock held. */
at_heap *at_heap_of(at_allocator *allocator, attune_pool *pool,
                    at_stream_cache *cache); /* Lock held. NULL: no memory */
/* Lock held; takes the cache's. */
void at_stream_cache_count_alloc(at_stream_cache *cache, bool small, size_t size, size_t requested);

/* A graph replays into its pool's memory whenever it likes, also into what is free between its pieces of work: nothing
 * of it goes while a graph holds it. */
static inline bool at_pool_is_held(const attune_pool *pool) {
  return pool->id[1] != 0 && pool->references > 0;
}

/* segments.c. Lock held; given up and taken again while the device is asked. */
typedef struct at_request {
  attune_stream *stream;
  at_stream_cache *cache;
  attune_pool *pool;
  at_heap *heap;
  size_t bytes, size; /* asked; rounded */
} at_request;
/* A segment for the request; *out is a block of it that is large enough, in no tree. OUT_OF_MEMORY: also when the limit
 * is met. */
attune_status at_segment_add(at_allocator *allocator, const at_request *request, at_block **out);
/* Takes a whole free segment of a closed stream into the request's heap, as a block in no tree; NULL: none fits. */
at_block *at_segment_adopt(at_allocator *allocator, const at_request *request);
/* True for a plain segment, all of it free, of a pool that no graph holds. */
bool at_segment_is_free(const at_segment *segment);
/* Takes free memory of an idle pool into the request's heap, as a block in no tree that fits the request; NULL: none,
 * or it is not enough yet. orphan_pools.c. */
at_block *at_pools_adopt(at_allocator *allocator, const at_request *request);
/* Gives all free segments of the heaps back; returns how many bytes went. */
uint64_t at_segments_release(at_allocator *allocator);
/* Those that the cache has no use for: what was taken while there was none. */
void at_segments_release_exact(at_allocator *allocator);
/* As above, of one pool. */
uint64_t at_segments_release_pool(at_allocator *allocator, attune_pool *pool);
/* Into the request's heap, out of the one that it is in; its blocks are in no tree. */
void at_segment_move(at_segment *segment, const at_request *request);
/* Gives the free segments back that were used least recently, until `bytes` are gone. */
uint64_t at_segments_release_oldest(at_allocator *allocator, uint64_t bytes);
/* Gives back oversize blocks of the request's heap, enough for it; false: there are none. */
bool at_segments_release_oversize(at_allocator *allocator, const at_request *request);

/* expandable.c. As segments.c. */
/* *possible: false when no addresses can be reserved, for a request that a plain segment may serve. */
attune_status at_expandable_grow(at_allocator *allocator, const at_request *request, at_block **out, bool *possible);
uint64_t at_expandable_shrink(at_allocator *allocator);
void at_expandable_destroy(at_allocator *allocator, at_segment *segment); /* without mapped memory */

/* allocation_watch.c. The segment that the address lies in; NULL: none. Lock held. */
at_segment *at_segment_around(at_allocator *allocator, uintptr_t address);

/* managed.c: the advice of a pool's segments, checked and copied; freed by free(). And a segment with it, without the
 * lock. */
struct at_managed;
attune_status at_managed_make(struct at_managed **out, attune_device *device, const attune_managed_options *options);
attune_status at_managed_take(const struct at_managed *managed, attune_device *device, void **out, size_t bytes);

/* pinned.c and pinned_register.c: fill in what is known of an address; false: it is none of theirs. at_pinned_lock is
 * held. */
bool at_pinned_find(attune_pointer_info *out, uintptr_t address);
bool at_pinned_registry_find(attune_pointer_info *out, uintptr_t address);

/* explain.c. Lock not held. Fails with what a pointer is that is no live allocation of the allocator; NOT_FOUND,
 * without a message: not its memory, then at_explain_foreign says whose; `device` is the stream's, or NULL. */
attune_status at_explain_pointer(at_allocator *allocator, uintptr_t address);
attune_status at_explain_foreign(const attune_device *device, uintptr_t address);

/* orphan_pools.c. Lock held. */
/* A holder less. The last one's going lets other pools have the free segments as soon as no work uses them; what a pool
 * has of an allocator of the program goes back, and the lock is released for that. */
void at_pool_drop(at_allocator *allocator, attune_pool *pool);
/* Returns the free memory of a pool without a holder, if it is of a kind that can be returned. Releases the lock for
 * it. */
void at_pool_release_abandoned(at_allocator *allocator, attune_pool *pool);
/* The same for all pools: what could not go back because a capture was under way. */
void at_pools_release_abandoned(at_allocator *allocator);
/* Records the events that abandoned pools wait for, where no capture forbids it. */
void at_pools_record_abandoned(at_allocator *allocator);
/* Drops pools without holders and segments. */
void at_pools_reap(at_allocator *allocator);

/* orphan_pools.c. Lock held. */
/* More of the pool became free. If the pool has no holder, its events must be recorded again. */
void at_pool_abandon(at_allocator *allocator, attune_pool *pool);
/* One of the events that the pool waits for is reached. */
void at_pool_waits_less(attune_pool *pool);
/* No work uses anything: the process is a child of fork. */
void at_pools_forget(at_allocator *allocator);

/* pending.c. Lock held. */
/* Takes back what is done, of blocks and of abandoned pools, and records what a capture put off; nothing in a capture.
 * `all`: waits for what is not done, with the lock released. */
void at_memory_catch_up(at_allocator *allocator, bool all);

/* segments.c, with what stream caches keep. */
/* Gives all that is free back, of the caches too; returns how many bytes went. */
uint64_t at_memory_release(at_allocator *allocator);
/* The same until `bytes` are gone, what was used least recently first. */
uint64_t at_memory_release_oldest(at_allocator *allocator, uint64_t bytes);

/* pending.c. Lock held. */
/* Waits for what the cache's stream was given so far; `use` becomes the allocator's. */
void at_pending_wait(at_allocator *allocator, at_stream_cache *cache, at_use *use);
/* A block that the program freed and other streams use: waits for them. */
void at_pending_add(at_allocator *allocator, at_block *block);
/* A freed block that nothing waits for becomes free for new requests. */
void at_pending_complete(at_allocator *allocator, at_block *block);
/* Takes back blocks and events that are done; `all`: waits for what is not, with the lock released. */
void at_pending_finish(at_allocator *allocator, bool all);
/* Records the events of what was freed in a capture, when none is under way. */
void at_pending_record_deferred(at_allocator *allocator);
/* All blocks that wait are done: the process is a child of fork, and none of its streams work. */
void at_pending_forget(at_allocator *allocator);

/* counters.c. Lock held. */
void at_figure_add(attune_memory_figure figures[3], bool small, uint64_t amount);
void at_figure_sub(attune_memory_figure figures[3], bool small, uint64_t amount);
void at_figure_add_one(attune_memory_figure *figure, uint64_t amount);
void at_figure_sub_one(attune_memory_figure *figure, uint64_t amount);
/* Accounts for memory taken from the device and given back. */
bool at_reserve(at_allocator *allocator, size_t bytes); /* false: over the limit */
bool at_reserve_refused(void); /* whether the calling thread's latest at_reserve was false; false from then on */
void at_unreserve(at_allocator *allocator, size_t bytes);

/* statistics.c. Lock held. */
/* Ends the epoch: what the caches counted since the last one goes into the peaks. Before anything that the slow path
 * counts. */
void at_statistics_epoch(at_allocator *allocator);

/* observers.c. Tells the program of a request that failed. Lock not held. */
void at_observers_tell(at_allocator *allocator, const attune_memory_failure *failure);

/* history.h's, of the allocator; `cache` may be NULL. Lock held. */
static inline uint64_t at_history_add(at_allocator *allocator, at_action action, uintptr_t address, size_t bytes,
                                      const at_stream_cache *cache) {
  if (AT_LIKELY(!allocator->history)) return 0;
  return at_history_note(allocator->history, action, address, bytes, cache ? cache->id : 0);
}

/* poison.c. Lock held, except for the check. */
/* True while a freed block must not be filled: its stream is in a capture, and the fill would become work of a graph
 * that the memory is not of, or the stream is closing. Memory of the graph's own pool is filled by each replay. */
bool at_poison_waits(const at_block *block);
/* Fills a block in the order of its stream. Not what is mapped again in a capture: each replay would fill all of it,
 * what other graphs of the pool hold there too. */
void at_poison_fill(at_block *block);
/* Looks at one that is used again, on the host: BAD_DATA names the byte that was changed. */
attune_status at_poison_check(const at_block *block, attune_stream *stream);

/* allocation_watch.c: the allocation was freed. Lock held. */
void at_allocation_watch_end(const at_allocator *allocator, at_block *block);

/* annotate.c. Lock held. */
void at_annotate_segment(at_allocator *allocator, at_segment *segment);
void at_annotate_segment_gone(at_allocator *allocator, at_segment *segment); /* its memory is about to go */
void at_annotate_block(at_allocator *allocator, const at_block *block);
void at_annotate_block_gone(at_allocator *allocator, const at_block *block);

/* fork.c: pinned.c's lock, taken before an allocator's. */
void at_pinned_lock(void);
void at_pinned_unlock(void);
/* Once: holds the locks over a fork, so that a child finds everything whole. */
void at_memory_watch_fork(void);

/* Makes it the allocator of its device; the one that another thread made first, if there is one. */
at_allocator *at_memory_publish(at_allocator *made);

#endif
