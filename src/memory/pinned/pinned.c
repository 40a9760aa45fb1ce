/* SPDX-License-Identifier: Apache-2.0
 * pinned.c: page-locked host memory, cached by powers of two. A freed block that streams use waits for an event of
 * each. */
#include "src/memory/pinned/pinned_cache.h"

#include "src/trace/instrument.h"

#include <stdlib.h>

#define DEVICES_MAX 65
#define AT_PINNED_PAGE ((size_t)4096)

/* at_pinned_lock guards all below; it is not held while the system is asked for memory. */
static at_pinned_cache caches[DEVICES_MAX];
static at_pinned_block *spare;
static at_pinned_block *last_made; /* all of them */

attune_status at_pinned_check(const attune_device *device) {
  AT_REQUIRE_DEVICE(device);
  return at_needs(device, pinned);
}

static void add(attune_memory_figure *count, attune_memory_figure *bytes, size_t size) {
  at_figure_add_one(count, 1);
  at_figure_add_one(bytes, size);
}

static void sub(attune_memory_figure *count, attune_memory_figure *bytes, size_t size) {
  at_figure_sub_one(count, 1);
  at_figure_sub_one(bytes, size);
}

static void note_time(uint64_t *most, uint64_t *least, uint64_t ns, bool first) {
  if (first || ns > *most) *most = ns;
  if (first || ns < *least) *least = ns;
}

static int class_of(size_t size) {
  return 63 - __builtin_clzll((unsigned long long)size);
}

static void drop_uses(at_pinned_block *block) {
  while (block->uses) {
    at_pinned_use *next = block->uses->next;
    attune_event_destroy(block->uses->event);
    free(block->uses);
    block->uses = next;
  }
}

/* True when the stream is done with what it was given until the free, as far as is known. A stream that is gone is
 * done; one being captured gets its event later. Lock held. */
static bool is_reached(at_pinned_use *use) {
  at_allocator *allocator = use->stream_cache->allocator;
  pthread_mutex_lock(&allocator->lock);
  attune_stream *stream = use->stream_cache->life == AT_STREAM_CACHE_OPEN ? use->stream_cache->stream : NULL;
  bool closed = use->stream_cache->life == AT_STREAM_CACHE_CLOSED;
  if (stream && !use->recorded && allocator->captures == 0 && !at_stream_capturing(stream))
    use->recorded = attune_event_record(use->event, stream) == ATTUNE_OK;
  pthread_mutex_unlock(&allocator->lock);
  return closed || (use->recorded && attune_event_query(use->event) == ATTUNE_OK);
}

/* Drops the uses that are over; true when none is left. On a lost device none is ever over. Lock held. */
static bool is_done(at_pinned_block *block) {
  for (at_pinned_use **link = &block->uses; *link;) {
    at_pinned_use *use = *link;
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

static void note(at_pinned_cache *cache, at_action action, const at_pinned_block *block) {
  (void)at_history_note(cache->history, action, at_pinned_address(block), block->size, 0);
}

/* False: too large to be cached, by the settings. Lock held. */
static bool is_kept(const at_pinned_block *block) {
  return block->cut || block->size <= at_pinned_form_of(block->device).most_kept;
}

static void make_free(at_pinned_cache *cache, at_pinned_block *block) {
  note(cache, AT_ACTION_FREE_COMPLETED, block);
  sub(&cache->statistics.active, &cache->statistics.active_bytes, block->size);
  if (!is_kept(block)) {
    block->next = cache->leaving;
    cache->leaving = block;
    return;
  }
  block->next = cache->free[class_of(block->size)];
  cache->free[class_of(block->size)] = block;
}

/* Lock held. */
static void process(at_pinned_cache *cache) {
  if (!cache->waiting) return;
  const at_message kept = at_message_keep();
  for (at_pinned_block **link = &cache->waiting; *link;) {
    at_pinned_block *block = *link;
    if (!is_done(block)) {
      link = &block->next;
      continue;
    }
    *link = block->next;
    make_free(cache, block);
  }
  (void)at_message_settle(&kept, ATTUNE_OK);
}

static at_pinned_block *new_block(void) {
  at_pinned_block *block = spare;
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

/* Asks the system. Lock held, but released during the call. */
static attune_status take(at_pinned_cache *cache, attune_device *device, const at_pinned_form *form, void **out,
                          size_t bytes) {
  at_pinned_unlock();
  int64_t start = at_now_ns();
  attune_status status = at_pinned_take(device, form, out, bytes);
  int64_t ns = at_now_ns() - start;
  at_pinned_lock();
  cache->statistics.host_alloc_ns += (uint64_t)ns;
  if (status != ATTUNE_OK) return status;
  note_time(&cache->statistics.host_alloc_most_ns, &cache->statistics.host_alloc_least_ns, (uint64_t)ns,
            cache->statistics.host_allocs++ == 0);
  add(&cache->statistics.segment, &cache->statistics.reserved_bytes, bytes);
  return ATTUNE_OK;
}

/* A piece of the reserved segment, which the first request takes; NULL: it has no room, or is not wanted. Lock held,
 * but not while the system is asked. */
static void *cut(at_pinned_cache *cache, attune_device *device, const at_pinned_form *form, size_t size) {
  void *segment = NULL;
  if (!cache->reserved && !cache->reserving && form->segment >= size) {
    cache->reserving = true; /* other threads take what they need in the meantime */
    if (take(cache, device, form, &segment, form->segment) == ATTUNE_OK) cache->reserved = segment;
    cache->reserving = false;
    cache->reserved_bytes = cache->reserved ? form->segment : 0;
  }
  if (!cache->reserved || size > cache->reserved_bytes - cache->reserved_used) return NULL;
  void *piece = cache->reserved + cache->reserved_used;
  cache->reserved_used += size;
  return piece;
}

static attune_status add_block(at_pinned_cache *cache, attune_device *device, const at_pinned_form *form, size_t size,
                               at_pinned_block **out) {
  at_pinned_block *block = new_block();
  if (!block) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the bookkeeping of pinned memory");
  void *memory = form->segment ? cut(cache, device, form, size) : NULL;
  block->cut = memory != NULL;
  block->registered = !block->cut && form->use_register;
  attune_status status = memory ? ATTUNE_OK : take(cache, device, form, &memory, size);
  if (status != ATTUNE_OK) {
    block->next = spare;
    spare = block;
    return status;
  }
  block->device = device;
  block->size = size;
  at_address_table_insert(&block->entry, (uintptr_t)memory);
  note(cache, AT_ACTION_SEGMENT_ALLOC, block);
  *out = block;
  return ATTUNE_OK;
}

/* With the settings as they usually are the first of its class is as large as all others. */
static at_pinned_block *take_cached(at_pinned_cache *cache, size_t size) {
  for (at_pinned_block **link = &cache->free[class_of(size)]; *link; link = &(*link)->next) {
    at_pinned_block *block = *link;
    if (block->size < size) continue;
    *link = block->next;
    return block;
  }
  return NULL;
}

attune_status attune_pinned_alloc(void **out, attune_device *device, size_t bytes) {
  AT_REQUIRE_AS(out, "point to a pointer");
  *out = NULL;
  attune_status status = at_pinned_check(device);
  if (status != ATTUNE_OK || bytes == 0) return status;
  if (bytes > PTRDIFF_MAX)
    return AT_INVALID("bytes is %zu, which is %zd converted to size_t; should be 0 or more", bytes, (ssize_t)bytes);
  if (bytes > (size_t)1 << (AT_PINNED_CLASSES - 1))
    return at_fail(ATTUNE_OUT_OF_MEMORY, "bytes is %zu; no machine has as much memory", bytes);
  const at_pinned_form form = at_pinned_form_of(device);
  size_t size = AT_BLOCK_BYTES;
  while (size < bytes) size *= 2;
  if (bytes > form.most_round) size = (bytes + AT_PINNED_PAGE - 1) / AT_PINNED_PAGE * AT_PINNED_PAGE;
  at_pinned_cache *cache = &caches[device->index];
  at_pinned_lock();
  process(cache);
  at_pinned_block *block = take_cached(cache, size);
  if (!block) status = add_block(cache, device, &form, size, &block);
  if (block) {
    size = block->size;
    block->live = true;
    block->requested = bytes;
    block->recorded = at_history_note(cache->history, AT_ACTION_ALLOC, at_pinned_address(block), size, 0);
    add(&cache->statistics.allocation, &cache->statistics.allocated_bytes, size);
    add(&cache->statistics.active, &cache->statistics.active_bytes, size);
    *out = (void *)atomic_load(&block->entry.address);
    if (at_instrumented_races()) at_instrument_alloc(NULL, *out, size);
  }
  at_pinned_unlock();
  return status;
}

bool at_pinned_find(attune_pointer_info *out, uintptr_t address) {
  for (const at_pinned_block *block = last_made; block; block = block->made) {
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
  attune_pointer_info registered = {0};
  if (at_pinned_registry_find(&registered, address))
    return AT_INVALID("%p lies in memory that the program registered; should be passed to attune_pinned_unregister",
                      (void *)address);
  for (const at_pinned_block *block = last_made; block; block = block->made) {
    uintptr_t begin = atomic_load(&block->entry.address);
    if (begin == 0 || address - begin >= block->size) continue;
    return AT_INVALID("%p lies %zu bytes inside the pinned memory that begins at %p; should be its start",
                      (void *)address, address - begin, (void *)begin);
  }
  return at_fail(ATTUNE_NOT_FOUND, "%p is not pinned memory of attune; should be a pointer from attune_pinned_alloc",
                 (void *)address);
}

/* The live block of a pointer; the lock is held, also after a failure. */
static attune_status find(at_pinned_block **out, void *pointer) {
  at_entry *entry = at_address_table_find_surely((uintptr_t)pointer);
  at_pinned_block *block = (at_pinned_block *)entry;
  if (!entry) return explain((uintptr_t)pointer);
  if (entry->kind != AT_ENTRY_PINNED)
    return AT_INVALID("%p is memory of a device; should be passed to attune_free", pointer);
  if (!block->live) return AT_INVALID("%p is pinned memory that was already freed; should be freed once", pointer);
  *out = block;
  return ATTUNE_OK;
}

attune_status attune_pinned_record_use(void *pointer, attune_stream *stream) {
  at_pinned_block *block = NULL;
  AT_REQUIRE_STREAM(stream);
  AT_REQUIRE_AS(pointer, "be a pointer from attune_pinned_alloc");
  at_stream_cache *user = at_stream_cache_of(stream);
  if (!user) return ATTUNE_OUT_OF_MEMORY;
  at_pinned_lock();
  attune_status status = find(&block, pointer);
  bool known = false;
  if (status == ATTUNE_OK && block->device != stream->device)
    status = AT_INVALID("%p is pinned for %s, stream is of %s; should be of the same device", pointer,
                        block->device->name, stream->device->name);
  for (const at_pinned_use *use = status == ATTUNE_OK ? block->uses : NULL; use; use = use->next)
    known |= use->stream_cache == user;
  if (status == ATTUNE_OK && !known) {
    at_pinned_use *use = calloc(1, sizeof *use);
    attune_event_options options = {.no_timing = 1};
    status = use ? attune_event_create(&use->event, stream->device, &options) : ATTUNE_OUT_OF_MEMORY;
    if (status == ATTUNE_OK) {
      use->event->unwatched = true;
      use->stream_cache = user;
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
static void note_free(const at_pinned_block *block, void *pointer) {
  attune_stream *after[32];
  int count = 0;
  for (const at_pinned_use *use = block->uses; use && count < (int)AT_COUNT(after); use = use->next) {
    at_allocator *allocator = use->stream_cache->allocator;
    pthread_mutex_lock(&allocator->lock);
    if (use->stream_cache->life == AT_STREAM_CACHE_OPEN) after[count++] = use->stream_cache->stream;
    pthread_mutex_unlock(&allocator->lock);
  }
  at_instrument_free("attune_pinned_free", NULL, pointer, block->size, after, count);
}

/* Lock held, but not while memory is given back. */
static attune_status release(at_pinned_cache *cache, at_pinned_block *list, attune_device *device) {
  attune_status status = ATTUNE_OK;
  while (list) {
    at_pinned_block *block = list;
    list = block->next;
    void *memory = (void *)atomic_load(&block->entry.address);
    note(cache, AT_ACTION_SEGMENT_FREE, block);
    at_address_table_remove(&block->entry);
    at_pinned_unlock();
    int64_t start = at_now_ns();
    attune_status one = at_pinned_give(device, memory, block->size, block->registered);
    int64_t ns = at_now_ns() - start;
    at_pinned_lock();
    if (one != ATTUNE_OK) status = one;
    cache->statistics.host_free_ns += (uint64_t)ns;
    note_time(&cache->statistics.host_free_most_ns, &cache->statistics.host_free_least_ns, (uint64_t)ns,
              cache->statistics.host_frees++ == 0);
    sub(&cache->statistics.segment, &cache->statistics.reserved_bytes, block->size);
    drop_uses(block);
    block->next = spare;
    spare = block;
  }
  return status;
}

/* Not while a capture is under way, which that would break. */
static void release_leaving(at_pinned_cache *cache, attune_device *device) {
  at_pinned_block *list = cache->leaving;
  if (!list || __atomic_load_n(&device->captures, __ATOMIC_RELAXED) > 0) return;
  cache->leaving = NULL;
  const at_message kept = at_message_keep();
  (void)release(cache, list, device);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

attune_status attune_pinned_free(void *pointer) {
  at_pinned_block *block = NULL;
  if (!pointer) return ATTUNE_OK;
  at_pinned_lock();
  attune_status status = find(&block, pointer);
  const bool watched = at_instrumented_races() && status == ATTUNE_OK;
  if (watched) note_free(block, pointer);
  if (status == ATTUNE_OK) {
    at_pinned_cache *cache = &caches[block->device->index];
    block->live = false;
    note(cache, AT_ACTION_FREE_REQUESTED, block);
    sub(&cache->statistics.allocation, &cache->statistics.allocated_bytes, block->size);
    if (block->uses) {
      block->next = cache->waiting;
      cache->waiting = block;
      process(cache); /* records the events */
    } else {
      make_free(cache, block);
    }
    release_leaving(cache, block->device);
  }
  at_pinned_unlock();
  if (watched) at_instrument_tell();
  return status;
}

at_pinned_cache *at_pinned_cache_of(const attune_device *device) {
  process(&caches[device->index]);
  return &caches[device->index];
}

const at_pinned_block *at_pinned_blocks(void) {
  return last_made;
}

attune_status attune_pinned_empty_cache(attune_device *device) {
  attune_status status = at_pinned_check(device);
  if (status != ATTUNE_OK) return status;
  if (__atomic_load_n(&device->captures, __ATOMIC_RELAXED) > 0)
    return at_fail(ATTUNE_CAPTURING, "pinned memory of %s cannot be returned during a capture; end the capture first",
                   device->name);
  if ((status = at_device_check_waits(device)) != ATTUNE_OK) return status;
  at_pinned_cache *cache = &caches[device->index];
  at_pinned_block *list = NULL;
  at_pinned_lock();
  process(cache);
  release_leaving(cache, device);
  for (int i = 0; i < AT_PINNED_CLASSES; i++)
    for (at_pinned_block **link = &cache->free[i]; *link;) {
      at_pinned_block *block = *link;
      if (block->cut) {
        link = &block->next;
        continue;
      }
      *link = block->next;
      block->next = list;
      list = block;
    }
  status = release(cache, list, device);
  at_pinned_unlock();
  return status;
}
