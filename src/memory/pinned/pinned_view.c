/* SPDX-License-Identifier: Apache-2.0
 * pinned_view.c: what the cache of pinned memory tells: statistics, history, snapshots. */
#include "src/base/struct_size.h"
#include "src/memory/pinned/pinned_cache.h"
#include "src/memory/report/snapshot_file.h"

attune_status attune_pinned_get_statistics(attune_device *device, attune_pinned_statistics *out) {
  AT_REQUIRE_AS(out, "point to an attune_pinned_statistics");
  AT_TRY(at_pinned_check(device));
  at_pinned_lock();
  const attune_status status = AT_GIVE(out, &at_pinned_cache_of(device)->statistics);
  at_pinned_unlock();
  return status;
}

static attune_status reset(attune_device *device, bool peaks) {
  AT_TRY(at_pinned_check(device));
  at_pinned_lock();
  attune_pinned_statistics *s = &at_pinned_cache_of(device)->statistics;
  attune_memory_figure *const figures[] = {&s->allocation,   &s->allocated_bytes, &s->active,
                                           &s->active_bytes, &s->segment,         &s->reserved_bytes};
  for (size_t i = 0; i < AT_COUNT(figures); i++) {
    if (peaks)
      figures[i]->peak = figures[i]->current;
    else
      figures[i]->allocated = figures[i]->freed = 0;
  }
  if (!peaks) {
    s->host_allocs = s->host_frees = s->host_alloc_ns = s->host_free_ns = 0;
    s->host_alloc_least_ns = s->host_alloc_most_ns = s->host_free_least_ns = s->host_free_most_ns = 0;
  }
  at_pinned_unlock();
  return ATTUNE_OK;
}

attune_status attune_pinned_reset_peaks(attune_device *device) {
  return reset(device, true);
}

attune_status attune_pinned_reset_accumulated(attune_device *device) {
  return reset(device, false);
}

attune_status attune_pinned_record_history(attune_device *device, const attune_history_options *options) {
  attune_status status = at_pinned_check(device);
  at_history *history = NULL;
  if (status == ATTUNE_OK) status = at_history_make(&history, options);
  if (status != ATTUNE_OK) return status;
  at_pinned_lock();
  at_pinned_cache *cache = at_pinned_cache_of(device);
  at_history *old = cache->history;
  cache->history = history;
  at_pinned_unlock();
  at_history_destroy(old);
  return ATTUNE_OK;
}

/* There is one lock for the pinned memory of all devices. */
static void lock(attune_device *const *devices, int count) {
  (void)devices;
  if (count > 0) at_pinned_lock();
}

static void unlock(attune_device *const *devices, int count) {
  (void)devices;
  if (count > 0) at_pinned_unlock();
}

static void note(attune_device *device) {
  (void)at_history_note(at_pinned_cache_of(device)->history, AT_ACTION_SNAPSHOT, 0, 0, 0);
}

static void want_names(attune_device *device, at_backtrace_names *names) {
  at_history_want_names(at_pinned_cache_of(device)->history, names);
}

static bool is_waiting(const at_pinned_cache *cache, const at_pinned_block *block) {
  for (const at_pinned_block *one = cache->waiting; one; one = one->next)
    if (one == block) return true;
  return false;
}

static void write_block(const at_pinned_cache *cache, const at_pinned_block *block, int number,
                        at_backtrace_names *names, at_json *out) {
  const uintptr_t address = at_pinned_address(block);
  const bool active = block->live || is_waiting(cache, block);
  const at_snapshot_segment segment = {.device = number,
                                       .address = address,
                                       .total = block->size,
                                       .allocated = block->live ? block->size : 0,
                                       .active = active ? block->size : 0,
                                       .requested = active ? block->requested : 0,
                                       .type = "pinned"};
  const at_snapshot_block one = {.address = address,
                                 .bytes = block->size,
                                 .requested = segment.requested,
                                 .state = block->live ? "active_allocated"
                                          : active    ? "active_pending_free"
                                                      : "inactive",
                                 .history = cache->history,
                                 .recorded = active ? block->recorded : 0};
  at_snapshot_segment_open(&segment, out);
  at_snapshot_block_write(&one, names, out);
  at_snapshot_segment_close(out);
}

static void write_segments(attune_device *device, const attune_pool *only, int number, at_backtrace_names *names,
                           at_json *out) {
  (void)only; /* pinned memory has no pools */
  at_pinned_cache *cache = at_pinned_cache_of(device);
  for (const at_pinned_block *block = at_pinned_blocks(); block; block = block->made)
    if (block->device == device && at_pinned_address(block) != 0) write_block(cache, block, number, names, out);
}

static void write_history(attune_device *device, at_backtrace_names *names, at_json *out) {
  at_history_write(at_pinned_cache_of(device)->history, names, out);
}

static void write_settings(attune_device *device, at_json *out) {
  (void)device;
  at_json_object(out, NULL);
  at_json_word(out, "backend", "pinned");
  at_json_object_end(out);
}

static bool is_there(attune_device *device) {
  return device->backend.pinned != NULL;
}

static attune_status prepare(attune_device *device) {
  return at_pinned_check(device);
}

attune_status attune_pinned_snapshot_save(const char *path, attune_device *device) {
  static const at_snapshot_source source = {.is_there = is_there,
                                            .prepare = prepare,
                                            .lock = lock,
                                            .unlock = unlock,
                                            .note = note,
                                            .want_names = want_names,
                                            .write_segments = write_segments,
                                            .write_history = write_history,
                                            .write_settings = write_settings};
  return at_snapshot_save(path, &source, device);
}
