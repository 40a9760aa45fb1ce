/* SPDX-License-Identifier: Apache-2.0
 * control.c: limits, settings, the program's own functions, giving cached memory back. */
#include "src/base/struct_size.h"
#include "src/memory/malloc/allocator.h"

#include <stdlib.h>

static attune_status leave(at_allocator *allocator, attune_status status) {
  pthread_mutex_unlock(&allocator->lock);
  return status;
}

attune_status attune_memory_empty_cache(attune_device *device) {
  attune_allocator own = {0};
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  attune_status status = at_allocator_check(allocator);
  if (status == ATTUNE_OK && allocator->captures > 0)
    status =
        at_fail(ATTUNE_CAPTURING,
                "memory of %s cannot be returned to the device during a capture; end the capture first", device->name);
  if (status == ATTUNE_OK) status = at_device_check_waits(device);
  if (status == ATTUNE_OK) {
    at_memory_catch_up(allocator, true);
    (void)at_memory_release(allocator);
    if (allocator->has_own) own = allocator->own;
  }
  status = leave(allocator, status);
  if (own.reset) own.reset(own.user, device);
  return status;
}

attune_status attune_memory_set_limit(attune_device *device, uint64_t bytes) {
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  allocator->limit = bytes ? bytes : UINT64_MAX;
  allocator->options.fraction = 0.0;
  return leave(allocator, ATTUNE_OK);
}

attune_status attune_memory_set_fraction(attune_device *device, double fraction) {
  if (!(fraction > 0.0 && fraction <= 1.0))
    return AT_INVALID("fraction is %g; should be above 0 and at most 1", fraction);
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  allocator->options.fraction = fraction;
  at_allocator_apply(allocator);
  return leave(allocator, ATTUNE_OK);
}

/* The source of memory can change only while there is no memory. */
static attune_status check_change(at_allocator *allocator, const at_memory_options *next) {
  const at_memory_options *now = &allocator->options;
  const char *name = allocator->device->name;
  if (next->expandable && !allocator->device->backend.vm)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "expandable_segments is true; should be false on %s, which has no virtual memory", name);
  if (next->nvtx && !allocator->device->backend.notes)
    return at_fail(ATTUNE_UNSUPPORTED, "nvtx is true; should be false on %s, whose memory no tool tracks", name);
  if (next->async && !at_async_possible(allocator->device))
    return at_fail(ATTUNE_UNSUPPORTED,
                   "backend is cudaMallocAsync; should be caching or none on %s, whose driver has no allocator", name);
  const bool backend = next->no_cache != now->no_cache || next->async != now->async;
  bool changes = next->expandable != now->expandable || next->poison != now->poison || next->nvtx != now->nvtx ||
                 (backend && next->poison);
  if (!changes || at_allocator_is_empty(allocator)) return ATTUNE_OK;
  return at_fail(ATTUNE_BUSY,
                 "poison, nvtx and expandable_segments, and the backend while poison is true, cannot change while the "
                 "allocator of %s has %llu bytes; free them and empty the cache first",
                 name, (unsigned long long)allocator->reserved);
}

/* Without a cache nothing stays in it; and what was taken without one does not get into it. Lock held. */
static void change_backend(at_allocator *allocator, const at_memory_options *before) {
  const at_memory_options *now = &allocator->options;
  if (allocator->captures > 0 || (now->no_cache == before->no_cache && now->async == before->async)) return;
  at_memory_catch_up(allocator, false);
  (void)at_memory_release(allocator);
}

attune_status attune_memory_configure(attune_device *device, const char *text) {
  AT_REQUIRE_AS(text, "be key:value,key:value");
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  at_memory_options next = allocator->options;
  attune_status status = at_memory_options_parse(&next, text, "text");
  if (status == ATTUNE_OK) status = check_change(allocator, &next);
  if (status == ATTUNE_OK) {
    const at_memory_options before = allocator->options;
    allocator->options = next;
    at_allocator_apply(allocator);
    change_backend(allocator, &before);
  }
  status = leave(allocator, status);
  at_memory_options_tell();
  return status;
}

attune_status attune_memory_set_allocator(attune_device *device, const attune_allocator *functions) {
  attune_allocator full, *own = functions ? &full : NULL;
  AT_TRY(AT_TAKE(&full, functions));
  if (own && (!own->alloc || !own->free))
    return AT_INVALID("allocator has no %s function; should have both", own->alloc ? "free" : "alloc");
  at_allocator *allocator = NULL;
  attune_status status = at_allocator_enter(&allocator, device);
  if (status != ATTUNE_OK) return status;
  const bool same = own && allocator->has_own && allocator->own.alloc == own->alloc && allocator->own.user == own->user;
  if (own && own->init && !same && at_allocator_is_empty(allocator)) {
    pthread_mutex_unlock(&allocator->lock);
    status = own->init(own->user, device);
    pthread_mutex_lock(&allocator->lock);
  }
  if (status != ATTUNE_OK) return leave(allocator, status);
  if (!at_allocator_is_empty(allocator))
    return leave(allocator,
                 at_fail(ATTUNE_BUSY, "the allocator of %s has %llu bytes; free them and empty the cache first",
                         device->name, (unsigned long long)allocator->reserved));
  allocator->has_own = own != NULL;
  if (own) allocator->own = *own;
  at_allocator_apply(allocator);
  return leave(allocator, ATTUNE_OK);
}

attune_status attune_memory_get_allocator(attune_device *device, attune_allocator *out) {
  AT_REQUIRE_AS(out, "point to an attune_allocator");
  at_allocator *allocator = NULL;
  AT_TRY(AT_CLEAR(out));
  AT_TRY(at_allocator_enter(&allocator, device));
  return leave(allocator, allocator->has_own ? AT_GIVE(out, &allocator->own) : ATTUNE_OK);
}

attune_status attune_memory_get_backend(attune_device *device, const char **out) {
  AT_REQUIRE_AS(out, "point to a text");
  *out = NULL;
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  *out = at_allocator_backend(allocator);
  return leave(allocator, ATTUNE_OK);
}

attune_status attune_memory_get_fraction(attune_device *device, double *out) {
  AT_REQUIRE_AS(out, "point to a number");
  *out = 1.0;
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  const double most = (double)device->properties.memory_bytes, limit = (double)allocator->limit;
  if (allocator->options.fraction > 0.0)
    *out = allocator->options.fraction;
  else if (limit < most)
    *out = limit / most;
  return leave(allocator, ATTUNE_OK);
}

attune_status attune_memory_add_callback(attune_device *device, attune_memory_callback callback, void *user) {
  AT_REQUIRE_AS(callback, "be a function");
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  if (allocator->callback_count == AT_CALLBACKS)
    return leave(allocator, at_fail(ATTUNE_BUSY, "%s has %d callbacks, the maximum; remove one first", device->name,
                                    AT_CALLBACKS));
  allocator->callbacks[allocator->callback_count] = callback;
  allocator->callback_users[allocator->callback_count++] = user;
  return leave(allocator, ATTUNE_OK);
}

attune_status attune_memory_remove_callback(attune_device *device, attune_memory_callback callback, void *user) {
  at_allocator *allocator = NULL;
  AT_TRY(at_allocator_enter(&allocator, device));
  attune_status status = at_fail(
      ATTUNE_NOT_FOUND, "%s has no such callback; callback and user should be those it was added with", device->name);
  for (int i = 0; i < allocator->callback_count; i++) {
    if (allocator->callbacks[i] != callback || allocator->callback_users[i] != user) continue;
    for (allocator->callback_count--; i < allocator->callback_count; i++) {
      allocator->callbacks[i] = allocator->callbacks[i + 1];
      allocator->callback_users[i] = allocator->callback_users[i + 1];
    }
    status = ATTUNE_OK;
    break;
  }
  return leave(allocator, status);
}

attune_status attune_memory_record_history(attune_device *device, const attune_history_options *options) {
  AT_REQUIRE_DEVICE(device);
  at_allocator *allocator = at_allocator_of(device);
  if (!allocator) return ATTUNE_OUT_OF_MEMORY;
  at_history *history = NULL;
  AT_TRY(at_history_make(&history, options));
  pthread_mutex_lock(&allocator->lock);
  at_history *old = allocator->history;
  allocator->history = history;
  at_allocator_apply(allocator);
  pthread_mutex_unlock(&allocator->lock);
  at_history_destroy(old);
  return ATTUNE_OK;
}
