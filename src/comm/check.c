/* SPDX-License-Identifier: Apache-2.0
 * check.c: the arguments of a collective call. */
#include "src/comm/communicator.h"
#include "src/comm/reduce.h"

attune_status at_comm_check_streams(const attune_comm *comm, int root, attune_stream *const *streams) {
  int captured = 0;
  if (root < 0 || root >= comm->size)
    return AT_INVALID("root is %d; should be a rank, from 0 to %d", root, comm->size - 1);
  if (!streams) return AT_INVALID("streams is NULL; should have a stream for each of %d ranks", comm->local);
  for (int i = 0; i < comm->local; i++) {
    if (!streams[i]) return AT_INVALID("streams[%d] is NULL; should be a stream of %s", i, comm->devices[i]->name);
    if (streams[i]->device != comm->devices[i])
      return AT_INVALID("streams[%d] is of %s; should be of %s, the device of rank %d", i, streams[i]->device->name,
                        comm->devices[i]->name, comm->rank + i);
    captured += at_stream_capturing(streams[i]);
  }
  if (captured == 0 || captured == comm->local) return ATTUNE_OK;
  return at_fail(ATTUNE_CAPTURING, "%d of %d streams are in a capture; should be all or none", captured, comm->local);
}

static attune_status check_dtype(attune_dtype dtype) {
  if (attune_dtype_size(dtype) > 0) return ATTUNE_OK;
  return AT_INVALID("dtype is %d; should be an attune_dtype", (int)dtype);
}

static attune_status check_reduction(attune_reduction reduction, attune_dtype dtype) {
  static const char *const missing[AT_REDUCTIONS][2] = {
      {"sums", "a number of 16 bits or more, or i8 or u8"},
      {"products", "a real number of 16 bits or more, or an integer"},
      {"minimum", "a real number of 16 bits or more, an integer or bool"},
      {"maximum", "a real number of 16 bits or more, an integer or bool"},
      {"averages", "f64, f32, f16, bf16, c64 or c128"}};
  if ((int)reduction < 0 || (int)reduction >= AT_REDUCTIONS)
    return AT_INVALID("reduction is %d; should be sum (0), product (1), min (2), max (3) or average (4)",
                      (int)reduction);
  if (at_reduce_as(reduction, dtype)) return ATTUNE_OK;
  return AT_INVALID("dtype is %s, which does not support %s; should be %s", attune_dtype_name(dtype),
                    missing[reduction][0], missing[reduction][1]);
}

static size_t alignment_of(attune_dtype dtype) {
  const size_t size = attune_dtype_size(dtype);
  return dtype == ATTUNE_C64 || dtype == ATTUNE_C128 ? size / 2 : size;
}

static attune_status check_pointer(const char *name, int index, const void *pointer, attune_dtype dtype, size_t bytes) {
  if (!pointer) return AT_INVALID("%s[%d] is NULL; should point to %zu bytes", name, index, bytes);
  if ((uintptr_t)pointer > UINTPTR_MAX - bytes)
    return AT_INVALID("%s[%d] with %zu bytes exceeds the address space; should be the size of its memory", name, index,
                      bytes);
  if ((uintptr_t)pointer % alignment_of(dtype) == 0) return ATTUNE_OK;
  return AT_INVALID("%s[%d] is %p; should be aligned to %zu bytes", name, index, pointer, alignment_of(dtype));
}

/* `place`: where in the longer of the two the other one may lie. */
static attune_status check_apart(int index, const void *input, size_t in_bytes, const void *output, size_t out_bytes,
                                 size_t place) {
  const uintptr_t a = (uintptr_t)input, b = (uintptr_t)output;
  if (a + in_bytes <= b || b + out_bytes <= a || (in_bytes > out_bytes ? b - a == place : a - b == place))
    return ATTUNE_OK;
  return AT_INVALID("inputs[%d] and outputs[%d] overlap; should be %s, or disjoint", index, index,
                    in_bytes == out_bytes ? "equal" : "the rank's own place in the other");
}

/* The memory of own rank i. */
static attune_status check_rank(const attune_comm *comm, const at_comm_task *task, const attune_comm_data *data, int i,
                                size_t bytes) {
  const size_t in_bytes = bytes * at_comm_in_parts(comm, task->kind);
  const size_t out_bytes = bytes * at_comm_out_parts(comm, task->kind);
  const bool reads = at_comm_has_input(comm, task, i), roots = i == at_comm_own(comm, task->root);
  const bool writes = task->kind == AT_COMM_BROADCAST ? !roots || data->outputs[i] : at_comm_has_output(comm, task, i);
  attune_status status = ATTUNE_OK;
  if (reads) status = check_pointer("inputs", i, data->inputs[i], data->dtype, in_bytes);
  if (writes && status == ATTUNE_OK) status = check_pointer("outputs", i, data->outputs[i], data->dtype, out_bytes);
  if (!reads || !writes || status != ATTUNE_OK) return status;
  const size_t place = in_bytes == out_bytes ? 0 : bytes * (size_t)(comm->rank + i);
  return check_apart(i, data->inputs[i], in_bytes, data->outputs[i], out_bytes, place);
}

attune_status at_comm_check_data(const attune_comm *comm, const at_comm_task *task, const attune_comm_data *data) {
  const size_t size = attune_dtype_size(data->dtype), ranks = (size_t)comm->size;
  const int own = at_comm_own(comm, task->root);
  attune_status status = check_dtype(data->dtype);
  if (status == ATTUNE_OK && at_comm_reduces(task->kind)) status = check_reduction(task->reduction, data->dtype);
  if (status != ATTUNE_OK || data->count == 0) return status;
  if (data->count > PTRDIFF_MAX / size / ranks)
    return AT_INVALID("count is %zu; should be a number of elements that fits into memory", data->count);
  if (!data->inputs && (task->kind != AT_COMM_BROADCAST || own >= 0))
    return AT_INVALID("inputs is NULL; should have a pointer for each of %d ranks", comm->local);
  if (!data->outputs && (task->kind != AT_COMM_REDUCE || own >= 0))
    return AT_INVALID("outputs is NULL; should have a pointer for each of %d ranks", comm->local);
  for (int i = 0; i < comm->local && status == ATTUNE_OK; i++)
    status = check_rank(comm, task, data, i, data->count * size);
  return status;
}

/* ---- splits ---- */

/* How much of the dimension rank has, and where it starts. */
static size_t chunk_of(const attune_comm *comm, const attune_comm_split *split, int rank, size_t *out_start) {
  size_t start = 0;
  if (split->chunks) {
    for (int i = 0; i < rank; i++) start += split->chunks[i];
    *out_start = start;
    return split->chunks[rank];
  }
  const size_t ranks = (size_t)comm->size, each = split->size / ranks + (split->size % ranks != 0);
  start = (size_t)rank * each < split->size ? (size_t)rank * each : split->size;
  *out_start = start;
  return split->size - start < each ? split->size - start : each;
}

at_piece at_comm_piece(const attune_comm *comm, const attune_comm_split *split, int rank) {
  size_t start = 0;
  const size_t unit = split->inner * attune_dtype_size(split->dtype);
  const size_t chunk = chunk_of(comm, split, rank, &start);
  return (at_piece){start * unit, chunk * unit, split->size * unit, split->outer};
}

static attune_status check_sizes(const attune_comm *comm, const attune_comm_split *split) {
  size_t bytes = attune_dtype_size(split->dtype), sum = 0;
  if (__builtin_mul_overflow(bytes, split->outer, &bytes) || __builtin_mul_overflow(bytes, split->size, &bytes) ||
      __builtin_mul_overflow(bytes, split->inner, &bytes) || bytes > PTRDIFF_MAX)
    return AT_INVALID("outer, size and inner are %zu, %zu and %zu; should fit into memory", split->outer, split->size,
                      split->inner);
  if (!split->chunks) return ATTUNE_OK;
  for (int i = 0; i < comm->size; i++)
    if (__builtin_add_overflow(sum, split->chunks[i], &sum) || sum > split->size) break;
  if (sum == split->size) return ATTUNE_OK;
  return AT_INVALID("chunks do not add up to size, %zu; should be %d size%s with that sum", split->size, comm->size,
                    comm->size == 1 ? "" : "s");
}

/* The root's own piece may lie where it lies in the whole, if that is one run of bytes. */
static attune_status check_piece(const attune_comm_split *split, const char *whole, const at_piece *piece, int index,
                                 size_t all) {
  const char *own = split->pieces[index];
  const size_t bytes = piece->bytes * piece->rows;
  if (whole == NULL || own + bytes <= whole || whole + all <= own) return ATTUNE_OK;
  if (piece->rows == 1 && own == whole + piece->offset) return ATTUNE_OK;
  return AT_INVALID("pieces[%d] and whole overlap; should be disjoint", index);
}

attune_status at_comm_check_split(const attune_comm *comm, int root, const attune_comm_split *split) {
  const int own = at_comm_own(comm, root);
  AT_REQUIRE_AS(split, "point to an attune_comm_split");
  attune_status status = check_dtype(split->dtype);
  if (status == ATTUNE_OK) status = check_sizes(comm, split);
  if (status != ATTUNE_OK || split->size == 0) return status;
  const size_t all = split->outer * split->size * split->inner * attune_dtype_size(split->dtype);
  if (own >= 0 && !split->whole) return AT_INVALID("whole is NULL; should point to %zu bytes", all);
  if (own >= 0 && (uintptr_t)split->whole > UINTPTR_MAX - all)
    return AT_INVALID("whole with %zu bytes exceeds the address space; should be the size of its memory", all);
  if (!split->pieces) return AT_INVALID("pieces is NULL; should have a pointer for each of %d ranks", comm->local);
  for (int i = 0; i < comm->local && status == ATTUNE_OK; i++) {
    const at_piece piece = at_comm_piece(comm, split, comm->rank + i);
    if (piece.bytes == 0) continue;
    status = check_pointer("pieces", i, split->pieces[i], split->dtype, piece.bytes * piece.rows);
    if (status == ATTUNE_OK) status = check_piece(split, own >= 0 ? split->whole : NULL, &piece, i, all);
  }
  return status;
}
