/* SPDX-License-Identifier: Apache-2.0
 * managed.c: managed memory: the advice of pools and of ranges, and prefetches. Arguments are checked here, the backend
 * does the rest. */
#include <attune/managed.h>

#include <stdlib.h>
#include <string.h>

#include "src/base/struct_size.h"
#include "src/memory/malloc/allocator.h"
#include "src/trace/instrument.h"

struct at_managed {
  attune_managed_options options; /* accessed_by points behind */
  attune_device *accessed_by[];
};

static attune_status check_device(const attune_device *device) {
  AT_REQUIRE_DEVICE(device);
  return at_needs(device, managed);
}

/* Memory of a device may be wanted on devices of its own kind, and by the CPU. */
static attune_status check_place(const attune_device *device, const attune_device *place, const char *name) {
  if (!place) return AT_INVALID("%s is NULL; should be a device from attune_device_get", name);
  if (place->backend.kind == ATTUNE_DEVICE_HOST || place->backend.kind == device->backend.kind) return ATTUNE_OK;
  return AT_INVALID("%s is %s; should be the host, or a device of the same kind as %s", name, place->name,
                    device->name);
}

static bool is_advised(const attune_managed_options *o) {
  return o->preferred || o->read_mostly || o->accessed_by_count > 0;
}

static attune_status check_options(attune_device *device, const attune_managed_options *o, bool advised) {
  if (o->accessed_by_count < 0 || o->accessed_by_count > ATTUNE_MANAGED_DEVICES)
    return AT_INVALID("accessed_by_count is %d; should be from 0 to %d", o->accessed_by_count, ATTUNE_MANAGED_DEVICES);
  if (o->accessed_by_count > 0 && !o->accessed_by)
    return AT_INVALID("accessed_by is NULL; should have %d devices", o->accessed_by_count);
  attune_status status = o->preferred ? check_place(device, o->preferred, "preferred") : ATTUNE_OK;
  for (int i = 0; i < o->accessed_by_count && status == ATTUNE_OK; i++)
    status = check_place(device, o->accessed_by[i], "a device of accessed_by");
  return status == ATTUNE_OK ? device->backend.managed->check(device, advised) : status;
}

attune_status at_managed_make(struct at_managed **out, attune_device *device, const attune_managed_options *options) {
  *out = NULL;
  attune_managed_options full;
  AT_TRY(check_device(device));
  AT_TRY(AT_TAKE(&full, options));
  AT_TRY(check_options(device, &full, is_advised(&full)));
  const size_t count = (size_t)full.accessed_by_count;
  struct at_managed *made = malloc(sizeof *made + count * sizeof *made->accessed_by);
  if (!made) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a pool of %s", device->name);
  made->options = full;
  made->options.accessed_by = made->accessed_by;
  if (count) memcpy(made->accessed_by, full.accessed_by, count * sizeof *made->accessed_by);
  *out = made;
  return ATTUNE_OK;
}

attune_status at_managed_take(const struct at_managed *managed, attune_device *device, void **out, size_t bytes) {
  attune_status status = device->backend.managed->alloc(device, out, bytes);
  if (status != ATTUNE_OK || !is_advised(&managed->options)) return status;
  status = device->backend.managed->advise(device, *out, bytes, &managed->options);
  if (status == ATTUNE_OK) return status;
  (void)device->backend.memory->free(device, *out);
  *out = NULL;
  return status;
}

static attune_status check_range(const void *pointer, size_t bytes) {
  AT_REQUIRE_AS(pointer, "point to managed memory");
  if (bytes > 0 && (uintptr_t)pointer <= UINTPTR_MAX - bytes) return ATTUNE_OK;
  return AT_INVALID("bytes is %zu; should be the size of the memory at pointer", bytes);
}

attune_status attune_managed_advise(attune_device *device, void *pointer, size_t bytes,
                                    const attune_managed_options *advice) {
  AT_TRY(check_device(device));
  AT_TRY(check_range(pointer, bytes));
  AT_REQUIRE_AS(advice, "point to an attune_managed_options");
  attune_managed_options full;
  AT_TRY(AT_TAKE(&full, advice));
  AT_TRY(check_options(device, &full, true));
  return device->backend.managed->advise(device, pointer, bytes, &full);
}

attune_status attune_managed_prefetch(attune_stream *stream, void *pointer, size_t bytes, attune_device *to) {
  AT_REQUIRE_STREAM(stream);
  attune_device *device = stream->device;
  AT_TRY(check_device(device));
  AT_TRY(check_range(pointer, bytes));
  AT_TRY(check_place(device, to, "to"));
  if (at_stream_capturing(stream))
    return at_fail(ATTUNE_CAPTURING, "a prefetch cannot be captured; prefetch before or after the capture");
  AT_TRY(device->backend.managed->check(device, true));
  const bool named = at_instrument_name("attune_managed_prefetch %zu bytes to %s", bytes, to->name);
  attune_status status = device->backend.managed->prefetch(stream, pointer, bytes, to);
  return at_instrument_end(named, stream, status);
}

attune_status attune_managed_get_state(attune_managed_state *out, attune_device *device, const void *pointer,
                                       size_t bytes) {
  AT_REQUIRE_AS(out, "point to an attune_managed_state");
  attune_managed_state full = {0};
  AT_TRY(AT_CLEAR(out));
  AT_TRY(check_device(device));
  AT_TRY(check_range(pointer, bytes));
  AT_TRY(device->backend.managed->state(device, &full, pointer, bytes));
  return AT_GIVE(out, &full);
}
