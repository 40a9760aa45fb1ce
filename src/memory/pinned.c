/* SPDX-License-Identifier: Apache-2.0
 * pinned.c: page-locked host memory, cached by powers of two. A freed block that streams use waits for an event of
 * each. */
#include <attune/pinned.h>

#include "src/memory/allocator.h"
#include "src/watch.h"

#include <stdlib.h>

#define CLASSES 48
#define DEVICES_MAX 65

typedef struct pinned_use {
  struct pinned_use *next;
  at_front *front;
  attune_event *event;
  bool recorded; /* after the free; not in a capture, whose end it then waits for */
} pinned_use;

/* Never given back, see at_entry: the memory may be, the block stays for another. */
typedef struct pinned_block {
  at_entry entry;
  struct pinned_block *next; /* of one list: free of its class, waiting, spare */
  struct pinned_block *made; /* the one made before */
  attune_device *device;
  size_t size;
  bool live;
  pinned_use *uses;
} pinned_block;

typedef struct pinned_cache {
  pinned_block *free[CLASSES];
  pinned_block *waiting;
  attune_pinned_statistics statistics;
} pinned_cache;

/* at_pinned_lock guards all below; it is not held while the system is asked for memory. */
static pinned_cache caches[DEVICES_MAX];
static pinned_block *spare;
static pinned_block *last_made; /* all of them */

static attune_status check_device(const attune_device *device) {
  if (!device) return at_fail(ATTUNE_INVALID_ARGUMENT, "device is NULL; should be one of attune_device_get");
  if (device->backend->pinned_alloc) return ATTUNE_OK;
  return at_fail(ATTUNE_UNSUPPORTED, "device %s has no pinned memory", device->name);
}

static void add(attune_memory_figure *count, attune_memory_figure *bytes, size_t size) {
  at_figure_add_one(count, 1);
  at_figure_add_one(bytes, size);
}

static void sub(attune_memory_figure *count, attune_memory_figure *bytes, size_t size) {
  at_figure_sub_one(count, 1);
  at_figure_sub_one(bytes, size);
}

static int class_of(size_t size) {
  return 63 - __builtin_clzll((unsigned long long)size);
}

static void drop_uses(pinned_block *block) {
  while (block->uses) {
    pinned_use *next = block->uses->next;
    attune_event_destroy(block->uses->event);
    free(block->uses);
    block->uses = next;
  }
}

/* True when the stream is done with what it was given until the free, as far as is known. A stream that is gone is
 * done; one being captured gets its event later. Lock held. */
static bool is_reached(pinned_use *use) {
  at_allocator *allocator = use->front->allocator;
  pthread_mutex_lock(&allocator->lock);
  attune_stream *stream = use->front->life == AT_FRONT_OPEN ? use->front->stream : NULL;
  bool closed = use->front->life == AT_FRONT_CLOSED;
  if (stream && !use->recorded && allocator->captures == 0 && !at_stream_capturing(stream))
    use->recorded = attune_event_record(use->event, stream) == ATTUNE_OK;
  pthread_mutex_unlock(&allocator->lock);
  return closed || (use->recorded && attune_event_query(use->event) == ATTUNE_OK);
}

/* What is reached goes; true when nothing is left. On a lost device nothing ever is. Lock held. */
static bool is_done(pinned_block *block) {
  for (pinned_use **link = &block->uses; *link;) {
    pinned_use *use = *link;
    if (!is_reached(use)) {
      link = &use->next;
      continue;
    }
    *link = use->next;
    attune_event_destroy(use->event);
    free(use);
  }
  return !block->uses;
}

static void make_free(pinned_cache *cache, pinned_block *block) {
  sub(&cache->statistics.active, &cache->statistics.active_bytes, block->size);
  block->next = cache->free[class_of(block->size)];
  cache->free[class_of(block->size)] = block;
}

/* Lock held. */
static void process(pinned_cache *cache) {
  at_message kept;
  if (!cache->waiting) return;
  at_message_keep(&kept);
  for (pinned_block **link = &cache->waiting; *link;) {
    pinned_block *block = *link;
    if (!is_done(block)) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    make_free(cache, block);
  }
  (void)at_message_settle(&kept, ATTUNE_OK);
}

static pinned_block *new_block(void) {
  pinned_block *block = spare;
  if (block) {
    spare = block->next;
    return block;
  }
  block = calloc(1, sizeof *block);
  if (!block) return NULL;
  block->entry.kind = AT_ENTRY_PINNED;
  block->made = last_made;
  return last_made = block;
}

/* Asks the system. Lock held, but not meanwhile. */
static attune_status add_block(pinned_cache *cache, attune_device *device, size_t size, pinned_block **out) {
  void *memory = NULL;
  pinned_block *block = new_block();
  if (!block) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of pinned memory");
  at_pinned_unlock();
  int64_t start = at_now_ns();
  attune_status status = device->backend->pinned_alloc(device, &memory, size);
  int64_t ns = at_now_ns() - start;
  at_pinned_lock();
  cache->statistics.host_alloc_ns += (uint64_t)ns;
  if (status != ATTUNE_OK) {
    block->next = spare;
    spare = block;
    return status;
  }
  cache->statistics.host_allocs++;
  block->device = device;
  block->size = size;
  add(&cache->statistics.segment, &cache->statistics.reserved_bytes, size);
  at_table_insert(&block->entry, (uintptr_t)memory);
  *out = block;
  return ATTUNE_OK;
}

attune_status attune_pinned_alloc(void **out, attune_device *device, size_t bytes) {
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to a pointer");
  *out = NULL;
  attune_status status = check_device(device);
  if (status != ATTUNE_OK || bytes == 0) return status;
  if (bytes > PTRDIFF_MAX)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "bytes is %zu, which is %zd converted to size_t; should be 0 or more",
                   bytes, (ssize_t)bytes);
  if (bytes > (size_t)1 << (CLASSES - 1))
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no pinned memory for %zu bytes; there is no machine with as much", bytes);
  size_t size = AT_BLOCK_BYTES;
  while (size < bytes) size *= 2;
  pinned_cache *cache = &caches[device->index];
  at_pinned_lock();
  process(cache);
  pinned_block *block = cache->free[class_of(size)];
  if (block)
    cache->free[class_of(size)] = block->next;
  else
    status = add_block(cache, device, size, &block);
  if (block) {
    block->live = true;
    add(&cache->statistics.allocation, &cache->statistics.allocated_bytes, size);
    add(&cache->statistics.active, &cache->statistics.active_bytes, size);
    *out = (void *)atomic_load(&block->entry.address);
    if (at_watched_races()) at_watch_alloc(NULL, *out, size);
  }
  at_pinned_unlock();
  return status;
}

bool at_pinned_find(attune_pointer_info *out, uintptr_t address) {
  for (const pinned_block *block = last_made; block; block = block->made) {
    const uintptr_t begin = atomic_load(&block->entry.address);
    if (begin == 0 || address - begin >= block->size) continue;
    out->kind = ATTUNE_KIND_PINNED;
    out->device = block->device;
    out->held = block->live;
    out->base = block->live ? (void *)begin : NULL;
    out->bytes = block->live ? block->size : 0;
    return true;
  }
  return false;
}

/* Why the pointer is in no entry of the table. Lock held. */
static attune_status explain(uintptr_t address) {
  attune_pointer_info registered;
  if (at_registered_find(&registered, address))
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "%p lies in memory that the program registered; should be given to attune_pinned_unregister",
                   (void *)address);
  for (const pinned_block *block = last_made; block; block = block->made) {
    uintptr_t begin = atomic_load(&block->entry.address);
    if (begin == 0 || address - begin >= block->size) continue;
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "%p lies %zu bytes inside the pinned memory that begins at %p; should be its start", (void *)address,
                   address - begin, (void *)begin);
  }
  return at_fail(ATTUNE_NOT_FOUND, "%p is not pinned memory of attune; should be what attune_pinned_alloc gave",
                 (void *)address);
}

/* The live block of a pointer; the lock is held, also after a failure. */
static attune_status find(pinned_block **out, void *pointer) {
  at_entry *entry = at_table_find_surely((uintptr_t)pointer);
  pinned_block *block = (pinned_block *)entry;
  if (!entry) return explain((uintptr_t)pointer);
  if (entry->kind != AT_ENTRY_PINNED)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%p is memory of a device; should be given to attune_free", pointer);
  if (!block->live)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%p is pinned memory that was freed already; should be freed once",
                   pointer);
  *out = block;
  return ATTUNE_OK;
}

attune_status attune_pinned_record_use(void *pointer, attune_stream *stream) {
  pinned_block *block = NULL;
  if (!stream)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "stream is NULL; should be one of attune_stream_create or attune_stream_default");
  if (!pointer) return at_fail(ATTUNE_INVALID_ARGUMENT, "pointer is NULL; should be what attune_pinned_alloc gave");
  at_front *user = at_front_of(stream);
  if (!user) return ATTUNE_OUT_OF_MEMORY;
  at_pinned_lock();
  attune_status status = find(&block, pointer);
  bool known = false;
  if (status == ATTUNE_OK && block->device != stream->device)
    status = at_fail(ATTUNE_INVALID_ARGUMENT, "%p is pinned for %s, stream is of %s; should be of one device", pointer,
                     block->device->name, stream->device->name);
  for (const pinned_use *use = status == ATTUNE_OK ? block->uses : NULL; use; use = use->next)
    known |= use->front == user;
  if (status == ATTUNE_OK && !known) {
    pinned_use *use = calloc(1, sizeof *use);
    attune_event_options options = {.no_timing = 1};
    status = use ? attune_event_create_with(&use->event, stream->device, &options) : ATTUNE_OUT_OF_MEMORY;
    if (status == ATTUNE_OK) {
      use->event->unwatched = true;
      use->front = user;
      use->next = block->uses;
      block->uses = use;
    } else {
      free(use);
    }
  }
  at_pinned_unlock();
  return status;
}

/* Lock held. */
static void note_free(const pinned_block *block, void *pointer) {
  attune_stream *after[32];
  int count = 0;
  for (const pinned_use *use = block->uses; use && count < (int)AT_COUNT(after); use = use->next) {
    at_allocator *allocator = use->front->allocator;
    pthread_mutex_lock(&allocator->lock);
    if (use->front->life == AT_FRONT_OPEN) after[count++] = use->front->stream;
    pthread_mutex_unlock(&allocator->lock);
  }
  at_watch_free("attune_pinned_free", NULL, pointer, block->size, after, count);
}

attune_status attune_pinned_free(void *pointer) {
  pinned_block *block = NULL;
  if (!pointer) return ATTUNE_OK;
  at_pinned_lock();
  attune_status status = find(&block, pointer);
  const bool watched = at_watched_races() && status == ATTUNE_OK;
  if (watched) note_free(block, pointer);
  if (status == ATTUNE_OK) {
    pinned_cache *cache = &caches[block->device->index];
    block->live = false;
    sub(&cache->statistics.allocation, &cache->statistics.allocated_bytes, block->size);
    if (block->uses) {
      block->next = cache->waiting;
      cache->waiting = block;
      process(cache); /* records the events */
    } else {
      make_free(cache, block);
    }
  }
  at_pinned_unlock();
  if (watched) at_watch_tell();
  return status;
}

attune_status attune_pinned_get_statistics(attune_device *device, attune_pinned_statistics *out) {
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to an attune_pinned_statistics");
  attune_status status = check_device(device);
  if (status != ATTUNE_OK) return status;
  at_pinned_lock();
  process(&caches[device->index]);
  *out = caches[device->index].statistics;
  at_pinned_unlock();
  return ATTUNE_OK;
}

static attune_status reset(attune_device *device, bool peaks) {
  attune_status status = check_device(device);
  if (status != ATTUNE_OK) return status;
  at_pinned_lock();
  attune_pinned_statistics *s = &caches[device->index].statistics;
  attune_memory_figure *const figures[] = {&s->allocation,   &s->allocated_bytes, &s->active,
                                           &s->active_bytes, &s->segment,         &s->reserved_bytes};
  for (size_t i = 0; i < AT_COUNT(figures); i++) {
    if (peaks)
      figures[i]->peak = figures[i]->current;
    else
      figures[i]->allocated = figures[i]->freed = 0;
  }
  if (!peaks) s->host_allocs = s->host_frees = s->host_alloc_ns = s->host_free_ns = 0;
  at_pinned_unlock();
  return ATTUNE_OK;
}

attune_status attune_pinned_reset_peaks(attune_device *device) {
  return reset(device, true);
}

attune_status attune_pinned_reset_accumulated(attune_device *device) {
  return reset(device, false);
}

/* Lock held, but not while memory is given back. */
static attune_status release(pinned_cache *cache, pinned_block *list, attune_device *device) {
  attune_status status = ATTUNE_OK;
  while (list) {
    pinned_block *block = list;
    list = block->next;
    void *memory = (void *)atomic_load(&block->entry.address);
    at_table_remove(&block->entry);
    at_pinned_unlock();
    int64_t start = at_now_ns();
    attune_status one = device->backend->pinned_free(device, memory);
    int64_t ns = at_now_ns() - start;
    at_pinned_lock();
    if (one != ATTUNE_OK) status = one;
    cache->statistics.host_free_ns += (uint64_t)ns;
    cache->statistics.host_frees++;
    sub(&cache->statistics.segment, &cache->statistics.reserved_bytes, block->size);
    drop_uses(block);
    block->next = spare;
    spare = block;
  }
  return status;
}

attune_status attune_pinned_empty_cache(attune_device *device) {
  attune_status status = check_device(device);
  if (status != ATTUNE_OK) return status;
  if (__atomic_load_n(&device->captures, __ATOMIC_RELAXED) > 0)
    return at_fail(ATTUNE_CAPTURING,
                   "pinned memory of %s cannot be given back while a capture is under way; end the capture first",
                   device->name);
  pinned_cache *cache = &caches[device->index];
  pinned_block *list = NULL;
  at_pinned_lock();
  process(cache);
  for (int i = 0; i < CLASSES; i++)
    while (cache->free[i]) {
      pinned_block *block = cache->free[i];
      cache->free[i] = block->next;
      block->next = list;
      list = block;
    }
  status = release(cache, list, device);
  at_pinned_unlock();
  return status;
}
