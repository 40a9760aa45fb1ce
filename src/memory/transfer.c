/* SPDX-License-Identifier: Apache-2.0
 * transfer.c: copies and fills: arguments are checked here, the backend does the rest. */
#include <attune/memory.h>

#include "src/trace/instrument.h"

/* Reported to observers: its name and, if it succeeded, the memory it uses. */
static attune_status watched_copy(attune_stream *stream, void *destination, const void *source, size_t bytes) {
  const bool named = at_instrument_name("attune_copy %zu bytes", bytes);
  attune_status status = stream->device->backend.memory->copy(stream, destination, source, bytes);
  status = at_instrument_end(named, stream, status);
  const at_operand_access uses[] = {at_instrument_bytes("destination", destination, bytes, true),
                                    at_instrument_bytes("source", source, bytes, false)};
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_use(stream, "attune_copy", uses, 2);
  return status;
}

static attune_status watched_fill(attune_stream *stream, void *destination, int value, size_t bytes) {
  const bool named = at_instrument_name("attune_fill %zu bytes", bytes);
  attune_status status = stream->device->backend.memory->fill(stream, destination, value, bytes);
  status = at_instrument_end(named, stream, status);
  const at_operand_access use = at_instrument_bytes("destination", destination, bytes, true);
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_use(stream, "attune_fill", &use, 1);
  return status;
}

static attune_status check_range(const char *name, const void *pointer, size_t bytes) {
  if (!pointer) return AT_INVALID("%s is NULL; should point to %zu bytes", name, bytes);
  if ((uintptr_t)pointer <= UINTPTR_MAX - bytes) return ATTUNE_OK;
  return AT_INVALID("bytes is %zu; should be the size of the memory at %s", bytes, name);
}

attune_status attune_copy(attune_stream *stream, void *destination, const void *source, size_t bytes) {
  AT_REQUIRE_STREAM(stream);
  if (bytes == 0) return ATTUNE_OK;
  AT_TRY(check_range("destination", destination, bytes));
  AT_TRY(check_range("source", source, bytes));
  uintptr_t to = (uintptr_t)destination, from = (uintptr_t)source;
  if (to < from + bytes && from < to + bytes)
    return AT_INVALID("destination and source overlap; should be at least %zu bytes apart", bytes);
  if (AT_UNLIKELY(at_instrumented())) return watched_copy(stream, destination, source, bytes);
  return stream->device->backend.memory->copy(stream, destination, source, bytes);
}

attune_status attune_fill(attune_stream *stream, void *destination, int value, size_t bytes) {
  AT_REQUIRE_STREAM(stream);
  if (value < 0 || value > 255) return AT_INVALID("value is %d; should be from 0 to 255", value);
  if (bytes == 0) return ATTUNE_OK;
  AT_TRY(check_range("destination", destination, bytes));
  if (AT_UNLIKELY(at_instrumented())) return watched_fill(stream, destination, value, bytes);
  return stream->device->backend.memory->fill(stream, destination, value, bytes);
}
