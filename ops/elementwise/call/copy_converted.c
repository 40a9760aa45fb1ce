/* SPDX-License-Identifier: Apache-2.0
 * copy_converted.c: a copy that converts, wherever the two sides lie. The device converts in its own memory; a side
 * that lies elsewhere goes there, or comes from there, by a plain copy. */
#include <attune/pointer.h>
#include <attune/tensor.h>

#include "src/base/support.h"

/* Whether kernels of the stream's device use the memory at full speed. */
static attune_status is_near(int *out, attune_stream *stream, const void *pointer) {
  attune_pointer_info info = {0};
  attune_device *device = attune_stream_device(stream);
  attune_device_properties properties = {0};
  attune_status status = attune_device_get_properties(device, &properties);
  *out = 1;
  if (status != ATTUNE_OK || properties.kind == ATTUNE_DEVICE_HOST) return status;
  status = attune_pointer_get_info(&info, pointer);
  *out = info.kind == ATTUNE_KIND_MANAGED || (info.kind == ATTUNE_KIND_DEVICE && info.device == device);
  return status;
}

static attune_status convert(attune_tuner *tuner, attune_stream *stream, void *destination, attune_dtype to,
                             const void *source, attune_dtype from, size_t count) {
  const attune_tensor out = {.data = destination, .dtype = to, .dims = 1, .sizes = {(int64_t)count}};
  const attune_tensor in = {.data = (void *)(uintptr_t)source, .dtype = from, .dims = 1, .sizes = {(int64_t)count}};
  return attune_tensor_copy(tuner, stream, &out, &in);
}

/* Memory of the device for a side that lies elsewhere; *out is the side itself where it is near. */
static attune_status stage(void **out, attune_stream *stream, const void *side, size_t bytes) {
  int near = 1;
  attune_status status = is_near(&near, stream, side);
  *out = (void *)(uintptr_t)side;
  return status == ATTUNE_OK && !near ? attune_alloc(out, stream, bytes) : status;
}

static attune_status copy_by_stages(attune_tuner *tuner, attune_stream *stream, void *destination, attune_dtype to,
                                    const void *source, attune_dtype from, size_t count) {
  const size_t to_bytes = count * attune_dtype_size(to), from_bytes = count * attune_dtype_size(from);
  void *target = destination, *origin = (void *)(uintptr_t)source;
  AT_TRY(stage(&origin, stream, source, from_bytes));
  attune_status status = stage(&target, stream, destination, to_bytes);
  if (status == ATTUNE_OK && origin != source) status = attune_copy(stream, origin, source, from_bytes);
  if (status == ATTUNE_OK) status = convert(tuner, stream, target, to, origin, from, count);
  if (status == ATTUNE_OK && target != destination) status = attune_copy(stream, destination, target, to_bytes);
  const at_message kept = at_message_keep(); /* of what failed first */
  if (origin != source) (void)attune_free(origin, stream);
  if (target && target != destination) (void)attune_free(target, stream);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}

attune_status attune_copy_converted(attune_tuner *tuner, attune_stream *stream, void *destination, attune_dtype to,
                                    const void *source, attune_dtype from, size_t count) {
  AT_REQUIRE_STREAM(stream);
  if (attune_dtype_size(to) == 0) return AT_INVALID("to is %d; should be an attune_dtype", (int)to);
  if (attune_dtype_size(from) == 0) return AT_INVALID("from is %d; should be an attune_dtype", (int)from);
  if (count == 0) return ATTUNE_OK;
  if (!destination || !source)
    return AT_INVALID("%s is NULL; should have %zu elements", source ? "destination" : "source", count);
  if (count > (size_t)PTRDIFF_MAX / 16) return AT_INVALID("count is %zu; should be the number of elements", count);
  if (to == from) return attune_copy(stream, destination, source, count * attune_dtype_size(to));
  AT_REQUIRE_AS(tuner, "be a tuner from attune_tuner_create");
  return copy_by_stages(tuner, stream, destination, to, source, from, count);
}
