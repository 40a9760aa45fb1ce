/* SPDX-License-Identifier: Apache-2.0
 * p2p.c: collectives by copies between the devices of a process, and attune's own reductions. A rank's memory is read
 * and written by its own stream, or by one that waits for it and that it waits for: whoever looks from outside sees
 * each stream in its order. */
#include "src/comm/communicator.h"

#include <attune/memory.h>

#include "src/comm/reduce.h"

/* Room for the others' numbers at the root, at most. */
static size_t staging_bytes = (size_t)64 << 20;

size_t at_copies_set_staging(size_t bytes) {
  const size_t before = staging_bytes;
  staging_bytes = bytes;
  return before;
}

/* State of a call. */
typedef struct scene {
  attune_comm *comm;
  attune_stream *const *streams;
} scene;

/* ---- order ---- */

static attune_status mark(const scene *s, int rank) {
  return s->streams[rank]->device->backend.event->record(s->comm->events[rank], s->streams[rank]);
}

static attune_status wait_for(const scene *s, int waiter, int rank) {
  return s->streams[waiter]->device->backend.stream->wait(s->streams[waiter], s->comm->events[rank]);
}

/* The stream of `waiter` waits for what that of `rank` was given so far. No stream is in a capture, and the events are
 * of no other: so this goes to the backend at once. No order of the program's follows. */
static attune_status follow(const scene *s, int waiter, int rank) {
  if (waiter == rank) return ATTUNE_OK;
  const attune_status status = mark(s, rank);
  return status == ATTUNE_OK ? wait_for(s, waiter, rank) : status;
}

/* `status`, with its message, unless it is OK. */
static attune_status first_of(attune_status status, const at_message *kept, attune_status later) {
  if (status == ATTUNE_OK) return later;
  (void)at_message_settle(kept, ATTUNE_OK);
  return status;
}

/* All other streams wait for the root's: its memory is theirs. */
static attune_status go_out(const scene *s, int root) {
  attune_status status = s->comm->local > 1 ? mark(s, root) : ATTUNE_OK;
  for (int i = 0; i < s->comm->local && status == ATTUNE_OK; i++)
    if (i != root) status = wait_for(s, i, root);
  return status;
}

/* The root's stream waits for all others: they are done with its memory. Also after a failure. */
static attune_status come_back(const scene *s, int root, attune_status status) {
  for (int i = 0; i < s->comm->local; i++) {
    if (i == root) continue;
    const at_message kept = at_message_keep();
    status = first_of(status, &kept, follow(s, root, i));
  }
  return status;
}

/* Every stream waits for all others. Also after a failure. */
static attune_status meet(const scene *s, attune_status status) {
  attune_status met = ATTUNE_OK;
  const at_message kept = at_message_keep();
  for (int i = 0; i < s->comm->local && met == ATTUNE_OK && s->comm->local > 1; i++) met = mark(s, i);
  for (int i = 0; i < s->comm->local && met == ATTUNE_OK; i++)
    for (int j = 0; j < s->comm->local && met == ATTUNE_OK; j++)
      if (j != i) met = wait_for(s, i, j);
  return first_of(status, &kept, met);
}

/* ---- copies ---- */

/* From memory of rank `from` to memory of rank `to`; -1: memory of any kind. */
typedef struct way {
  int by; /* whose stream copies */
  int to, from;
} way;

static attune_status copy(const scene *s, way w, void *to, const void *from, size_t bytes) {
  attune_stream *stream = s->streams[w.by];
  const at_backend_memory *memory = stream->device->backend.memory;
  if (to == from) return ATTUNE_OK;
  if (w.to == w.from) return memory->copy(stream, to, from, bytes);
  const attune_device *there = w.to < 0 ? NULL : s->comm->devices[w.to];
  return memory->copy_between(stream, to, there, from, w.from < 0 ? NULL : s->comm->devices[w.from], bytes);
}

/* Of two ranks the root's stream copies itself: what is pushed is there sooner than what is pulled. Of several each
 * rank's stream does: they run in parallel. */
static bool pushes(const scene *s) {
  return s->comm->local == 2;
}

static attune_status open_root(const scene *s, int root) {
  return pushes(s) ? follow(s, root, 1 - root) : go_out(s, root);
}

static attune_status close_root(const scene *s, int root, attune_status status) {
  if (!pushes(s)) return come_back(s, root, status);
  const at_message kept = at_message_keep();
  return first_of(status, &kept, follow(s, 1 - root, root));
}

static attune_status spread(const scene *s, int root, const attune_comm_data *data, const void *source) {
  const size_t bytes = data->count * attune_dtype_size(data->dtype);
  attune_status status = open_root(s, root);
  for (int i = 0; i < s->comm->local && status == ATTUNE_OK; i++)
    if (i != root) status = copy(s, (way){pushes(s) ? root : i, i, root}, data->outputs[i], source, bytes);
  return status;
}

/* Nobody waits for the root's own copy. */
static attune_status broadcast(const scene *s, int root, const attune_comm_data *data) {
  const void *source = data->inputs[root];
  void *own = data->outputs[root];
  attune_status status = spread(s, root, data, source);
  if (pushes(s)) status = close_root(s, root, status);
  if (status == ATTUNE_OK && own)
    status = copy(s, (way){root, root, root}, own, source, data->count * attune_dtype_size(data->dtype));
  return pushes(s) ? status : close_root(s, root, status);
}

/* Each rank's stream gets what the others have. */
static attune_status all_gather(const scene *s, const attune_comm_data *data) {
  const size_t bytes = data->count * attune_dtype_size(data->dtype);
  const int ranks = s->comm->local;
  attune_status status = meet(s, ATTUNE_OK);
  for (int i = 0; i < ranks && status == ATTUNE_OK; i++)
    for (int k = 0; k < ranks && status == ATTUNE_OK; k++) {
      const int from = (i + k) % ranks; /* not all from the same one at a time */
      status = copy(s, (way){i, i, from}, (char *)data->outputs[i] + bytes * (size_t)from, data->inputs[from], bytes);
    }
  return meet(s, status);
}

/* ---- reductions ---- */

typedef struct staging {
  char *memory;
  size_t each; /* bytes of a rank */
} staging;

/* `bytes` bytes at `from` of every other input go to the root. */
static attune_status stage(const scene *s, int root, const attune_comm_data *data, const staging *room, size_t from,
                           size_t bytes) {
  attune_status status = go_out(s, root);
  for (int i = 0, place = 0; i < s->comm->local && status == ATTUNE_OK; i++) {
    if (i == root) continue;
    char *to = room->memory + room->each * (size_t)place++;
    status = copy(s, (way){i, root, i}, to, (const char *)data->inputs[i] + from, bytes);
  }
  return come_back(s, root, status);
}

static attune_status combine(const scene *s, const at_comm_task *task, const attune_comm_data *data,
                             const staging *room, size_t from, size_t to, size_t count) {
  at_reduce_call call = {.out = (char *)data->outputs[task->root] + to,
                         .count = count,
                         .dtype = (short)data->dtype,
                         .reduction = (short)task->reduction};
  size_t place = 0;
  for (int i = 0; i < s->comm->local; i++)
    call.in[call.inputs++] =
        i == task->root ? (const char *)data->inputs[i] + from : (const char *)(room->memory + room->each * place++);
  return s->streams[task->root]->device->backend.memory->reduce(s->streams[task->root], &call);
}

static attune_status reduce_pieces(const scene *s, const at_comm_task *task, const attune_comm_data *data, size_t start,
                                   const staging *room, size_t piece) {
  const size_t size = attune_dtype_size(data->dtype);
  attune_status status = ATTUNE_OK;
  for (size_t at = 0; at < data->count && status == ATTUNE_OK; at += piece) {
    const size_t n = data->count - at < piece ? data->count - at : piece, from = (start + at) * size;
    status = stage(s, task->root, data, room, from, n * size);
    if (status == ATTUNE_OK) status = combine(s, task, data, room, from, at * size, n);
  }
  return status;
}

/* The elements from `start` on of all inputs, into the root's output. A piece at a time, so that little memory is
 * enough. */
static attune_status reduce(const scene *s, const at_comm_task *task, const attune_comm_data *data, size_t start) {
  const size_t size = attune_dtype_size(data->dtype), others = (size_t)s->comm->local - 1;
  attune_stream *stream = s->streams[task->root];
  if (others == 0)
    return copy(s, (way){0, 0, 0}, data->outputs[0], (const char *)data->inputs[0] + start * size, data->count * size);
  const size_t most = staging_bytes / others / 256 * 256 / size, piece = data->count < most ? data->count : most;
  staging room = {.each = (piece * size + 255) / 256 * 256};
  void *memory = NULL;
  AT_TRY(attune_alloc(&memory, stream, room.each * others));
  room.memory = memory;
  attune_status status = reduce_pieces(s, task, data, start, &room, piece);
  const at_message kept = at_message_keep();
  return first_of(status, &kept, attune_free(memory, stream));
}

static attune_status reduce_scatter(const scene *s, at_comm_task task, const attune_comm_data *data) {
  attune_status status = ATTUNE_OK;
  for (task.root = 0; task.root < s->comm->local && status == ATTUNE_OK; task.root++)
    status = reduce(s, &task, data, data->count * (size_t)task.root);
  return status;
}

static attune_status all_reduce(const scene *s, const at_comm_task *task, const attune_comm_data *data) {
  attune_status status = reduce(s, task, data, 0);
  if (status != ATTUNE_OK || s->comm->local == 1) return status;
  return close_root(s, task->root, spread(s, task->root, data, data->outputs[task->root]));
}

static attune_status run_one(const scene *s, const at_comm_task *task, const attune_comm_data *data) {
  if (data->count == 0) return ATTUNE_OK;
  switch (task->kind) {
  case AT_COMM_BROADCAST: return broadcast(s, task->root, data);
  case AT_COMM_REDUCE: return reduce(s, task, data, 0);
  case AT_COMM_ALL_REDUCE: return all_reduce(s, task, data);
  case AT_COMM_ALL_GATHER: return all_gather(s, data);
  default: return reduce_scatter(s, *task, data);
  }
}

attune_status at_copies_run(attune_comm *comm, const at_comm_task *task, attune_stream *const *streams,
                            const attune_comm_data *data, int count) {
  const scene s = {comm, streams};
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < count && status == ATTUNE_OK; i++) status = run_one(&s, task, &data[i]);
  return status;
}

/* ---- pieces ---- */

/* By the stream of rank `by`. The whole may also be memory of the host. */
static attune_status move_piece(const scene *s, int by, int rank, const at_move *move) {
  const at_piece p = at_comm_piece(s->comm, move->split, rank);
  char *whole = (char *)move->split->whole + p.offset;
  void *packed = move->split->pieces[rank], *to = move->gather ? whole : packed;
  const void *from = move->gather ? packed : whole;
  if (p.bytes == 0 || p.rows == 0) return ATTUNE_OK;
  if (p.rows == 1 || p.bytes == p.pitch)
    return copy(s, (way){by, move->gather ? -1 : rank, move->gather ? rank : -1}, to, from, p.bytes * p.rows);
  return s->streams[by]->device->backend.memory->copy_rows(s->streams[by], to, move->gather ? p.pitch : p.bytes, from,
                                                           move->gather ? p.bytes : p.pitch, p.bytes, p.rows);
}

/* The root's own piece comes last: the others do not wait for it. What is gathered is pushed by each rank's stream. */
attune_status at_copies_move(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move) {
  const scene s = {comm, streams};
  const bool by_root = !move->gather && pushes(&s);
  attune_status status = by_root ? open_root(&s, root) : go_out(&s, root);
  for (int i = 0; i < comm->local && status == ATTUNE_OK; i++)
    if (i != root) status = move_piece(&s, by_root ? root : i, i, move);
  if (by_root) status = close_root(&s, root, status);
  if (status == ATTUNE_OK) status = move_piece(&s, root, root, move);
  return by_root ? status : come_back(&s, root, status);
}
