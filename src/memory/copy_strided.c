/* SPDX-License-Identifier: Apache-2.0
 * copy_strided.c: copies and fills of rectangles and boxes: arguments are checked here, the backend does the rest. */
#include <attune/transfer.h>

#include <string.h>

#include "src/trace/instrument.h"

/* A box in memory: rows of bytes. */
typedef struct box {
  const char *name;
  uintptr_t begin;
  size_t pitch, slice_pitch, bytes, rows, slices;
  size_t slice_bytes, all_bytes; /* from the first to the last one */
} box;

/* `count` pieces of `bytes` each, `pitch` apart: from the first byte to the last. False: there are not as many. */
static bool extent(size_t *out, size_t count, size_t pitch, size_t bytes) {
  size_t steps = 0;
  return !__builtin_mul_overflow(count - 1, pitch, &steps) && !__builtin_add_overflow(steps, bytes, out) &&
         *out <= PTRDIFF_MAX;
}

/* Pitches that do not count become what they would be. Nothing of the box is zero. */
static attune_status measure(box *b) {
  if (!b->begin) return AT_INVALID("%s is NULL; should point to %zu rows of %zu bytes", b->name, b->rows, b->bytes);
  if (b->rows == 1) b->pitch = b->bytes;
  if (b->pitch < b->bytes)
    return AT_INVALID("%s has a pitch of %zu bytes; should be at least the %zu bytes of a row", b->name, b->pitch,
                      b->bytes);
  if (b->pitch > PTRDIFF_MAX && b->rows > 1)
    return AT_INVALID(
        "%s has a pitch of %zu bytes, which is %zd converted to size_t; should be the distance between two rows",
        b->name, b->pitch, (ssize_t)b->pitch);
  if (!extent(&b->slice_bytes, b->rows, b->pitch, b->bytes))
    return AT_INVALID("rows is %zu; should be the number of rows of %s, at %zu bytes each", b->rows, b->name, b->pitch);
  if (b->slices == 1) b->slice_pitch = b->slice_bytes;
  if (b->slice_pitch < b->slice_bytes)
    return AT_INVALID("%s has a slice pitch of %zu bytes; should be at least the %zu bytes of a slice", b->name,
                      b->slice_pitch, b->slice_bytes);
  if (b->slice_pitch > PTRDIFF_MAX && b->slices > 1)
    return AT_INVALID("%s has a slice pitch of %zu bytes, which is %zd converted to size_t; should be the distance "
                      "between two slices",
                      b->name, b->slice_pitch, (ssize_t)b->slice_pitch);
  if (!extent(&b->all_bytes, b->slices, b->slice_pitch, b->slice_bytes) || b->begin > UINTPTR_MAX - b->all_bytes)
    return AT_INVALID("slices is %zu; should be the number of slices of %s, at %zu bytes each", b->slices, b->name,
                      b->slice_pitch);
  return ATTUNE_OK;
}

/* ---- overlap ---- */

static int64_t div_down(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

/* Whether pieces of `bytes` at multiples k of `pitch`, |k| < count, come within reach of `delta`: which leaves two k to
 * look at, for pitch >= bytes. *rest: what is left of delta. */
static bool reaches(int64_t *rest, int64_t delta, size_t count, size_t pitch, size_t bytes, int which) {
  const int64_t k = div_down(delta, (int64_t)pitch) + which;
  *rest = delta - k * (int64_t)pitch;
  return k < (int64_t)count && -k < (int64_t)count && *rest < (int64_t)bytes && -*rest < (int64_t)bytes;
}

static bool boxes_meet(const box *a, const box *b) {
  if (a->begin >= b->begin + b->all_bytes || b->begin >= a->begin + a->all_bytes) return false;
  const bool alike = (a->rows == 1 || a->pitch == b->pitch) && (a->slices == 1 || a->slice_pitch == b->slice_pitch);
  if (!alike) return true;
  const int64_t delta = (int64_t)(a->begin - b->begin);
  for (int i = 0; i < 2; i++) {
    int64_t slice = 0, row = 0;
    if (!reaches(&slice, delta, a->slices, a->slice_pitch, a->slice_bytes, i)) continue;
    for (int j = 0; j < 2; j++)
      if (reaches(&row, slice, a->rows, a->pitch, a->bytes, j)) return true;
  }
  return false;
}

/* ---- reports to observers ---- */

static at_operand_access touch(const box *b, bool writes) {
  at_operand_access use = at_instrument_bytes(b->name, (const void *)b->begin, b->bytes, writes);
  use.dims = 2;
  use.counts[0] = (int64_t)b->slices;
  use.counts[1] = (int64_t)b->rows;
  use.steps[0] = (int64_t)b->slice_pitch;
  use.steps[1] = (int64_t)b->pitch;
  return use;
}

static attune_status run_copy(const char *call, attune_stream *stream, const attune_box_copy *copy, const box *to,
                              const box *from) {
  if (AT_LIKELY(!at_instrumented())) return stream->device->backend.memory->copy_box(stream, copy);
  const bool named = at_instrument_name("%s %zu x %zu x %zu bytes", call, copy->slices, copy->rows, copy->bytes);
  attune_status status = stream->device->backend.memory->copy_box(stream, copy);
  status = at_instrument_end(named, stream, status);
  const at_operand_access uses[] = {touch(to, true), touch(from, false)};
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_use(stream, call, uses, 2);
  return status;
}

static attune_status run_fill(const char *call, attune_stream *stream, const attune_box_fill *fill, const box *to) {
  if (AT_LIKELY(!at_instrumented())) return stream->device->backend.memory->fill_box(stream, fill);
  const bool named = at_instrument_name("%s %zu x %zu x %zu elements of %zu bytes", call, fill->slices, fill->rows,
                                        fill->count, fill->element_bytes);
  attune_status status = stream->device->backend.memory->fill_box(stream, fill);
  status = at_instrument_end(named, stream, status);
  const at_operand_access use = touch(to, true);
  if (at_instrumented_races() && status == ATTUNE_OK) at_instrument_use(stream, call, &use, 1);
  return status;
}

/* ---- copies ---- */

/* The copy with its pitches settled, ready for a backend; *to and *from are what it touches. */
static attune_status settle_copy(attune_box_copy *copy, box *to, box *from) {
  *to = (box){.name = "destination",
              .begin = (uintptr_t)copy->destination,
              .pitch = copy->destination_pitch,
              .slice_pitch = copy->destination_slice_pitch};
  *from = (box){.name = "source",
                .begin = (uintptr_t)copy->source,
                .pitch = copy->source_pitch,
                .slice_pitch = copy->source_slice_pitch};
  box *const both[] = {to, from};
  for (int i = 0; i < 2; i++) {
    both[i]->bytes = copy->bytes;
    both[i]->rows = copy->rows;
    both[i]->slices = copy->slices;
    AT_TRY(measure(both[i]));
  }
  if (boxes_meet(to, from))
    return AT_INVALID("destination and source overlap; should have no byte in common, and equal pitches if one lies "
                      "between the rows of the other");
  copy->destination_pitch = to->pitch;
  copy->destination_slice_pitch = to->slice_pitch;
  copy->source_pitch = from->pitch;
  copy->source_slice_pitch = from->slice_pitch;
  return ATTUNE_OK;
}

static attune_status copy_box(const char *call, attune_stream *stream, const attune_box_copy *copy) {
  AT_REQUIRE_STREAM(stream);
  if (copy->bytes == 0 || copy->rows == 0 || copy->slices == 0) return ATTUNE_OK;
  attune_box_copy settled = *copy;
  box to, from;
  attune_status status = settle_copy(&settled, &to, &from);
  return status == ATTUNE_OK ? run_copy(call, stream, &settled, &to, &from) : status;
}

attune_status attune_copy_2d(attune_stream *stream, void *destination, size_t destination_pitch, const void *source,
                             size_t source_pitch, size_t bytes, size_t rows) {
  const attune_box_copy copy = {.destination = destination,
                                .destination_pitch = destination_pitch,
                                .source = source,
                                .source_pitch = source_pitch,
                                .bytes = bytes,
                                .rows = rows,
                                .slices = 1};
  return copy_box("attune_copy_2d", stream, &copy);
}

attune_status attune_copy_3d(attune_stream *stream, const attune_box_copy *copy) {
  AT_REQUIRE_AS(copy, "point to an attune_box_copy");
  return copy_box("attune_copy_3d", stream, copy);
}

/* ---- fills ---- */

/* An element whose halves are the same is a smaller one, as long as the pitches allow; so zeros of any type are
 * bytes. */
static void shrink(attune_box_fill *fill) {
  for (size_t half = fill->element_bytes / 2; half >= 1; half /= 2) {
    if (memcmp(fill->element, fill->element + half, half) != 0) return;
    fill->element_bytes = half;
    fill->count *= 2;
  }
}

static attune_status check_element(const attune_box_fill *fill) {
  const size_t bytes = fill->element_bytes, step = bytes == 16 ? 8 : bytes;
  if (bytes == 0 || bytes > ATTUNE_FILL_BYTES || (bytes & (bytes - 1)) != 0)
    return AT_INVALID("element_bytes is %zu; should be 1, 2, 4, 8 or 16", bytes);
  if ((uintptr_t)fill->destination % step != 0)
    return AT_INVALID("destination is %p; should be a multiple of %zu for elements of %zu bytes", fill->destination,
                      step, bytes);
  if (fill->rows > 1 && fill->pitch % step != 0)
    return AT_INVALID("pitch is %zu; should be a multiple of %zu for elements of %zu bytes", fill->pitch, step, bytes);
  if (fill->slices > 1 && fill->slice_pitch % step != 0)
    return AT_INVALID("slice_pitch is %zu; should be a multiple of %zu for elements of %zu bytes", fill->slice_pitch,
                      step, bytes);
  return ATTUNE_OK;
}

static attune_status fill_box(const char *call, attune_stream *stream, const attune_box_fill *fill) {
  AT_REQUIRE_STREAM(stream);
  AT_TRY(check_element(fill));
  if (fill->count == 0 || fill->rows == 0 || fill->slices == 0) return ATTUNE_OK;
  box to = {.name = "destination",
            .begin = (uintptr_t)fill->destination,
            .pitch = fill->pitch,
            .slice_pitch = fill->slice_pitch,
            .rows = fill->rows,
            .slices = fill->slices};
  if (__builtin_mul_overflow(fill->count, fill->element_bytes, &to.bytes))
    return AT_INVALID("count is %zu; should be the number of elements at destination", fill->count);
  AT_TRY(measure(&to));
  attune_box_fill settled = *fill;
  settled.pitch = to.pitch;
  settled.slice_pitch = to.slice_pitch;
  shrink(&settled);
  return run_fill(call, stream, &settled, &to);
}

static attune_status fill_rows(const char *call, attune_stream *stream, void *destination, size_t pitch,
                               const void *element, size_t element_bytes, size_t count, size_t rows) {
  attune_box_fill fill = {.destination = destination,
                          .pitch = pitch,
                          .element_bytes = element_bytes,
                          .count = count,
                          .rows = rows,
                          .slices = 1};
  if (!element) return AT_INVALID("element is NULL; should point to %zu bytes", element_bytes);
  if (element_bytes <= ATTUNE_FILL_BYTES) memcpy(fill.element, element, element_bytes);
  return fill_box(call, stream, &fill);
}

attune_status attune_fill_elements(attune_stream *stream, void *destination, const void *element, size_t element_bytes,
                                   size_t count) {
  return fill_rows("attune_fill_elements", stream, destination, 0, element, element_bytes, count, 1);
}

attune_status attune_fill_2d(attune_stream *stream, void *destination, size_t pitch, const void *element,
                             size_t element_bytes, size_t count, size_t rows) {
  return fill_rows("attune_fill_2d", stream, destination, pitch, element, element_bytes, count, rows);
}

attune_status attune_fill_3d(attune_stream *stream, const attune_box_fill *fill) {
  AT_REQUIRE_AS(fill, "point to an attune_box_fill");
  return fill_box("attune_fill_3d", stream, fill);
}
