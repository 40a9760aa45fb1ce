/* SPDX-License-Identifier: Apache-2.0
 * call.c: the collective calls: checks arguments, chooses the way, and reports to observers. */
#include "src/comm/communicator.h"
#include "src/comm/nccl_library.h"
#include "src/trace/instrument.h"

/* Up to here two peers broadcast or reduce sooner by copies than by NCCL, one by one and in a row; above, calls in a
 * row are NCCL's (bench_collectives). */
#define PAIR_BYTES ((size_t)1 << 16)

#define SUM ATTUNE_REDUCE_SUM /* also of calls that reduce nothing */

/* All that a call of data is given. */
typedef struct call {
  const char *name;
  at_comm_task task;
  attune_stream *const *streams;
  const attune_comm_data *data;
  int count;
  bool many;
} call;

/* ---- observers ---- */

/* Accesses of a rank's part of the work, by its own stream. */
static void tell_data(const attune_comm *comm, const call *c) {
  for (int k = 0; k < c->count; k++)
    for (int i = 0; i < comm->local; i++) {
      const attune_comm_data *d = &c->data[k];
      const size_t bytes = d->count * attune_dtype_size(d->dtype);
      const size_t in_bytes = bytes * at_comm_in_parts(comm, c->task.kind);
      const size_t out_bytes = bytes * at_comm_out_parts(comm, c->task.kind);
      const void *in = at_comm_has_input(comm, &c->task, i) ? d->inputs[i] : NULL;
      const void *out = at_comm_has_output(comm, &c->task, i) && d->outputs ? d->outputs[i] : NULL;
      at_operand_access uses[2];
      int count = 0;
      if (bytes == 0) continue;
      if (in && in != out) uses[count++] = at_instrument_bytes("inputs", in, in_bytes, false);
      if (out) uses[count] = at_instrument_bytes("outputs", out, out_bytes, true), uses[count++].reads = in == out;
      at_instrument_use(c->streams[i], c->name, uses, count);
    }
}

static void tell_split(const attune_comm *comm, const char *name, int root, attune_stream *const *streams,
                       const at_move *move) {
  const attune_comm_split *s = move->split;
  const size_t all = s->outer * s->size * s->inner * attune_dtype_size(s->dtype);
  for (int i = 0; i < comm->local && all > 0; i++) {
    const at_piece p = at_comm_piece(comm, s, comm->rank + i);
    at_operand_access uses[2];
    int count = 0;
    if (i == at_comm_own(comm, root)) uses[count++] = at_instrument_bytes("whole", s->whole, all, move->gather);
    if (p.bytes) uses[count++] = at_instrument_bytes("pieces", s->pieces[i], p.bytes * p.rows, !move->gather);
    at_instrument_use(streams[i], name, uses, count);
  }
}

/* Each stream's work may have to be waited for. */
static attune_status end_watch(const attune_comm *comm, attune_stream *const *streams, bool named,
                               attune_status status) {
  for (int i = 0; i < comm->local; i++) status = at_instrument_end(named && i == 0, streams[i], status);
  return status;
}

/* ---- the way ---- */

/* Arguments are right: so either all streams are in a capture or none. */
static attune_status check_copies(const attune_comm *comm, attune_stream *const *streams, attune_dtype dtype) {
  if (comm->local < comm->size)
    return at_fail(ATTUNE_UNSUPPORTED,
                   "dtype is %s, which NCCL cannot reduce between processes; should be a type that it can, such as i32",
                   attune_dtype_name(dtype));
  if (comm->local == 1 || !at_stream_capturing(streams[0])) return ATTUNE_OK;
  return at_fail(ATTUNE_UNSUPPORTED, "this call copies between devices, which cannot be captured%s",
                 comm->nccl ? ", and NCCL does not reduce this dtype" : "; use a communicator with NCCL");
}

static attune_status give(attune_comm *comm, const call *c, const attune_comm_data *data, int count, bool nccl) {
  if (nccl) return at_nccl_run(comm, &c->task, c->streams, data, count);
  return at_copies_run(comm, &c->task, c->streams, data, count);
}

static bool by_nccl(const attune_comm *comm, const call *c, const attune_comm_data *data) {
  const at_comm_kind kind = c->task.kind;
  if (!comm->nccl || !at_nccl_can(kind, data->dtype)) return false;
  if (!comm->pair || c->many || (kind != AT_COMM_BROADCAST && kind != AT_COMM_REDUCE)) return true;
  return data->count * attune_dtype_size(data->dtype) > PAIR_BYTES || at_stream_capturing(c->streams[0]);
}

/* What NCCL can do goes to it in stretches that are as long as can be. */
static attune_status give_all(attune_comm *comm, const call *c) {
  attune_status status = ATTUNE_OK;
  for (int at = 0, end = 0; at < c->count && status == ATTUNE_OK; at = end) {
    const bool nccl = by_nccl(comm, c, &c->data[at]);
    while (end < c->count && by_nccl(comm, c, &c->data[end]) == nccl) end++;
    status = give(comm, c, c->data + at, end - at, nccl);
  }
  return status;
}

static attune_status check_call(const attune_comm *comm, const call *c) {
  attune_status status = at_comm_check_streams(comm, c->task.root, c->streams);
  if (status != ATTUNE_OK) return status;
  if (c->count < 0) return AT_INVALID("count is %d; should be 0 or more", c->count);
  if (!c->data && c->count > 0) return AT_INVALID("data is NULL; should point to %d attune_comm_data", c->count);
  for (int i = 0; i < c->count; i++) {
    status = at_comm_check_data(comm, &c->task, &c->data[i]);
    if (status == ATTUNE_OK && c->data[i].count > 0 && !(comm->nccl && at_nccl_can(c->task.kind, c->data[i].dtype)))
      status = check_copies(comm, c->streams, c->data[i].dtype);
    if (status != ATTUNE_OK) return c->many ? at_fail_prefix(status, "data[%d]: ", i) : status;
  }
  return ATTUNE_OK;
}

static attune_status run(attune_comm *comm, const call *c) {
  AT_TRY(at_comm_begin(comm));
  attune_status status = check_call(comm, c);
  if (status != ATTUNE_OK || c->count == 0) return at_comm_end(comm, status);
  const bool named =
      at_instrumented() && at_instrument_name("%s %s %zu x %d on %d of %d", c->name, attune_dtype_name(c->data->dtype),
                                              c->data->count, c->count, comm->local, comm->size);
  status = at_comm_end(comm, give_all(comm, c));
  if (AT_LIKELY(!at_instrumented())) return status;
  status = end_watch(comm, c->streams, named, status);
  if (at_instrumented_races() && status == ATTUNE_OK) tell_data(comm, c);
  return status;
}

attune_status attune_comm_broadcast(attune_comm *comm, int root, attune_stream *const *streams,
                                    const attune_comm_data *data) {
  const call c = {"attune_comm_broadcast", {AT_COMM_BROADCAST, SUM, root}, streams, data, 1, false};
  return run(comm, &c);
}

attune_status attune_comm_reduce(attune_comm *comm, int root, attune_reduction reduction, attune_stream *const *streams,
                                 const attune_comm_data *data) {
  const call c = {"attune_comm_reduce", {AT_COMM_REDUCE, reduction, root}, streams, data, 1, false};
  return run(comm, &c);
}

attune_status attune_comm_all_reduce(attune_comm *comm, attune_reduction reduction, attune_stream *const *streams,
                                     const attune_comm_data *data) {
  const call c = {"attune_comm_all_reduce", {AT_COMM_ALL_REDUCE, reduction, 0}, streams, data, 1, false};
  return run(comm, &c);
}

attune_status attune_comm_all_gather(attune_comm *comm, attune_stream *const *streams, const attune_comm_data *data) {
  const call c = {"attune_comm_all_gather", {AT_COMM_ALL_GATHER, SUM, 0}, streams, data, 1, false};
  return run(comm, &c);
}

attune_status attune_comm_reduce_scatter(attune_comm *comm, attune_reduction reduction, attune_stream *const *streams,
                                         const attune_comm_data *data) {
  const call c = {"attune_comm_reduce_scatter", {AT_COMM_REDUCE_SCATTER, reduction, 0}, streams, data, 1, false};
  return run(comm, &c);
}

attune_status attune_comm_broadcast_coalesced(attune_comm *comm, int root, attune_stream *const *streams,
                                              const attune_comm_data *data, int count) {
  const call c = {"attune_comm_broadcast_coalesced", {AT_COMM_BROADCAST, SUM, root}, streams, data, count, true};
  return run(comm, &c);
}

attune_status attune_comm_all_reduce_coalesced(attune_comm *comm, attune_reduction reduction,
                                               attune_stream *const *streams, const attune_comm_data *data, int count) {
  const call c = {"attune_comm_all_reduce_coalesced", {AT_COMM_ALL_REDUCE, reduction, 0}, streams, data, count, true};
  return run(comm, &c);
}

attune_status attune_comm_reduce_add_coalesced(attune_comm *comm, int root, attune_stream *const *streams,
                                               const attune_comm_data *data, int count) {
  const call c = {"attune_comm_reduce_add_coalesced", {AT_COMM_REDUCE, SUM, root}, streams, data, count, true};
  return run(comm, &c);
}

/* ---- pieces ---- */

/* Dimensions that the caller left 0 are not there. */
static attune_comm_split split_of(const attune_comm_split *given) {
  attune_comm_split split = *given;
  if (split.outer == 0) split.outer = 1;
  if (split.inner == 0) split.inner = 1;
  return split;
}

static attune_status give_move(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move) {
  const attune_comm_split *s = move->split;
  if (s->size == 0) return ATTUNE_OK;
  if (comm->nccl && (comm->local < comm->size || at_stream_capturing(streams[0])))
    return at_nccl_move(comm, root, streams, move);
  attune_status status = check_copies(comm, streams, s->dtype);
  return status == ATTUNE_OK ? at_copies_move(comm, root, streams, move) : status;
}

static attune_status run_move(attune_comm *comm, const char *name, int root, attune_stream *const *streams,
                              const at_move *given) {
  AT_TRY(at_comm_begin(comm));
  const attune_comm_split split = given->split ? split_of(given->split) : (attune_comm_split){0};
  const at_move move = {given->split ? &split : NULL, given->gather};
  attune_status status = at_comm_check_streams(comm, root, streams);
  if (status == ATTUNE_OK) status = at_comm_check_split(comm, root, move.split);
  if (status != ATTUNE_OK) return at_comm_end(comm, status);
  const bool named =
      at_instrumented() && at_instrument_name("%s %s %zu x %zu x %zu", name, attune_dtype_name(split.dtype),
                                              split.outer, split.size, split.inner);
  status = at_comm_end(comm, give_move(comm, root, streams, &move));
  if (AT_LIKELY(!at_instrumented())) return status;
  status = end_watch(comm, streams, named, status);
  if (at_instrumented_races() && status == ATTUNE_OK) tell_split(comm, name, root, streams, &move);
  return status;
}

attune_status attune_comm_scatter(attune_comm *comm, int root, attune_stream *const *streams,
                                  const attune_comm_split *split) {
  const at_move move = {split, false};
  return run_move(comm, "attune_comm_scatter", root, streams, &move);
}

attune_status attune_comm_gather(attune_comm *comm, int root, attune_stream *const *streams,
                                 const attune_comm_split *split) {
  const at_move move = {split, true};
  return run_move(comm, "attune_comm_gather", root, streams, &move);
}
