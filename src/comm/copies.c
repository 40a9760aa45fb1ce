/* SPDX-License-Identifier: Apache-2.0
 * copies.c: collectives by copies between the devices of a process, and attune's own addition. A rank's memory is read and
 * written by its own stream, or by one that waits for it and that it waits for: whoever looks from outside sees each
 * stream in its order. */
#include "src/comm/communicator.h"

#include <attune/memory.h>

#include "src/comm/sum.h"
#include "src/watch.h"

/* Room for the others' numbers at the root, at most. */
static size_t staging_bytes = (size_t)64 << 20;

size_t at_copies_set_staging(size_t bytes) {
  const size_t before = staging_bytes;
  staging_bytes = bytes;
  return before;
}

/* `stream` waits for what `other`, the stream of rank `rank`, was given so far. No order of the program's follows. */
static attune_status follow(attune_comm *comm, attune_stream *stream, int rank, attune_stream *other) {
  if (stream == other) return ATTUNE_OK;
  attune_status status = attune_event_record(comm->events[rank], other);
  return status == ATTUNE_OK ? attune_stream_wait_event(stream, comm->events[rank]) : status;
}

static attune_status copy(attune_stream *stream, void *to, const void *from, size_t bytes) {
  return to == from ? ATTUNE_OK : stream->device->backend->copy(stream, to, from, bytes);
}

/* The root's stream waits for all others: they are done with its memory. Also after a failure. */
static attune_status come_back(attune_comm *comm, int root, attune_stream *const *streams, attune_status status) {
  at_message kept;
  for (int i = 0; i < comm->local; i++) {
    at_message_keep(&kept);
    const attune_status waited = i == root ? ATTUNE_OK : follow(comm, streams[root], i, streams[i]);
    if (status == ATTUNE_OK)
      status = waited;
    else
      (void)at_message_settle(&kept, ATTUNE_OK);
  }
  return status;
}

/* Each rank's copy is work of its own stream: they run beside each other. */
static attune_status spread(attune_comm *comm, int root, attune_stream *const *streams, const attune_comm_data *data,
                            const void *source) {
  const size_t bytes = data->count * attune_dtype_size(data->dtype);
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < comm->local && status == ATTUNE_OK; i++) {
    if (i == root) continue;
    status = follow(comm, streams[i], root, streams[root]);
    if (status == ATTUNE_OK) status = copy(streams[i], data->outputs[i], source, bytes);
  }
  return status;
}

static attune_status broadcast(attune_comm *comm, int root, attune_stream *const *streams,
                               const attune_comm_data *data) {
  const void *source = data->inputs[root];
  void *own = data->outputs[root];
  attune_status status = spread(comm, root, streams, data, source);
  if (status == ATTUNE_OK && own)
    status = copy(streams[root], own, source, data->count * attune_dtype_size(data->dtype));
  return come_back(comm, root, streams, status);
}

/* ---- sums ---- */

typedef struct staging {
  char *memory;
  size_t each; /* bytes of a rank */
} staging;

static attune_status stage(attune_comm *comm, int root, attune_stream *const *streams, const attune_comm_data *data,
                           const staging *s, size_t from, size_t bytes) {
  attune_status status = ATTUNE_OK;
  for (int i = 0, place = 0; i < comm->local && status == ATTUNE_OK; i++) {
    if (i == root) continue;
    status = follow(comm, streams[i], root, streams[root]);
    if (status == ATTUNE_OK)
      status = copy(streams[i], s->memory + s->each * (size_t)place++, (const char *)data->inputs[i] + from, bytes);
  }
  return come_back(comm, root, streams, status);
}

static attune_status add(attune_comm *comm, int root, attune_stream *stream, const attune_comm_data *data,
                         const staging *s, size_t from, size_t count) {
  at_sum_call call = {.out = (char *)data->outputs[root] + from, .count = count, .dtype = (int)data->dtype};
  size_t place = 0;
  for (int i = 0; i < comm->local; i++)
    call.in[call.inputs++] =
        i == root ? (const char *)data->inputs[i] + from : (const char *)(s->memory + s->each * place++);
  return stream->device->backend->sum(stream, &call);
}

/* A piece at a time, so that little memory is enough. */
static attune_status reduce(attune_comm *comm, int root, attune_stream *const *streams, const attune_comm_data *data) {
  const size_t size = attune_dtype_size(data->dtype), others = (size_t)comm->local - 1;
  if (others == 0) return copy(streams[0], data->outputs[0], data->inputs[0], data->count * size);
  const size_t most = staging_bytes / others / 256 * 256 / size, piece = data->count < most ? data->count : most;
  staging s = {.each = (piece * size + 255) / 256 * 256};
  void *memory = NULL;
  attune_status status = attune_alloc(&memory, streams[root], s.each * others);
  if (status != ATTUNE_OK) return status;
  s.memory = memory;
  for (size_t at = 0; at < data->count && status == ATTUNE_OK; at += piece) {
    const size_t n = data->count - at < piece ? data->count - at : piece;
    status = stage(comm, root, streams, data, &s, at * size, n * size);
    if (status == ATTUNE_OK) status = add(comm, root, streams[root], data, &s, at * size, n);
  }
  at_message kept;
  at_message_keep(&kept);
  const attune_status freed = attune_free(memory, streams[root]);
  if (status == ATTUNE_OK) return freed;
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}

static attune_status run_one(attune_comm *comm, at_comm_kind kind, int root, attune_stream *const *streams,
                             const attune_comm_data *data) {
  if (data->count == 0) return ATTUNE_OK;
  if (kind == AT_COMM_BROADCAST) return broadcast(comm, root, streams, data);
  attune_status status = reduce(comm, root, streams, data);
  if (kind == AT_COMM_REDUCE || status != ATTUNE_OK) return status;
  status = spread(comm, root, streams, data, data->outputs[root]);
  return come_back(comm, root, streams, status);
}

attune_status at_copies_run(attune_comm *comm, at_comm_kind kind, int root, attune_stream *const *streams,
                            const attune_comm_data *data, int count) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < count && status == ATTUNE_OK; i++) status = run_one(comm, kind, root, streams, &data[i]);
  return status;
}

/* ---- pieces ---- */

static attune_status move_piece(attune_stream *stream, const at_move *move, const at_piece *p, void *packed) {
  char *whole = (char *)move->split->whole + p->offset;
  const size_t bytes = p->bytes;
  void *to = move->gather ? whole : packed;
  const void *from = move->gather ? packed : whole;
  if (p->rows == 1 || p->bytes == p->pitch) return copy(stream, to, from, bytes * p->rows);
  return stream->device->backend->copy_rows(stream, to, move->gather ? p->pitch : bytes, from,
                                            move->gather ? bytes : p->pitch, bytes, p->rows);
}

static attune_status move_own(attune_comm *comm, int rank, attune_stream *stream, const at_move *move) {
  const at_piece piece = at_comm_piece(comm, move->split, rank);
  if (piece.bytes == 0 || piece.rows == 0) return ATTUNE_OK;
  return move_piece(stream, move, &piece, move->split->pieces[rank]);
}

/* The root's own piece comes last: the others do not wait for it. */
attune_status at_copies_move(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < comm->local && status == ATTUNE_OK; i++) {
    if (i == root) continue;
    status = follow(comm, streams[i], root, streams[root]);
    if (status == ATTUNE_OK) status = move_own(comm, i, streams[i], move);
  }
  if (status == ATTUNE_OK) status = move_own(comm, root, streams[root], move);
  return come_back(comm, root, streams, status);
}
