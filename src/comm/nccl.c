/* SPDX-License-Identifier: Apache-2.0
 * nccl.c: collectives by NCCL. All own ranks of a call are one group: they start together. Elements that NCCL has no
 * name for are moved as bytes; complex numbers are reduced as pairs. */
#include "src/comm/communicator.h"

#include <attune/memory.h>

#include <string.h>

#include "src/comm/nccl_library.h"
#include "src/process/vendor.h"

enum { GROUP_MOST = 512 }; /* calls of a rank in one group */

/* Bytes, for what is only moved; else a number. -1: NCCL has none. */
static int type_of(attune_dtype dtype) {
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_C128: return AT_NCCL_F64;
  case ATTUNE_F32:
  case ATTUNE_C64: return AT_NCCL_F32;
  case ATTUNE_F16: return AT_NCCL_F16;
  case ATTUNE_BF16: return AT_NCCL_BF16;
  case ATTUNE_I8: return AT_NCCL_I8;
  case ATTUNE_BOOL: /* 0 and 1: smallest and largest are and, or */
  case ATTUNE_U8: return AT_NCCL_U8;
  case ATTUNE_I32: return AT_NCCL_I32;
  case ATTUNE_U32: return AT_NCCL_U32;
  case ATTUNE_I64: return AT_NCCL_I64;
  case ATTUNE_U64: return AT_NCCL_U64;
  default: return -1;
  }
}

bool at_nccl_can(at_comm_kind kind, attune_dtype dtype) {
  return !at_comm_reduces(kind) || type_of(dtype) >= 0;
}

static attune_status check(const attune_comm *comm, int error, const char *what) {
  if (AT_LIKELY(error == AT_NCCL_SUCCESS)) return ATTUNE_OK;
  const attune_status status =
      error == AT_NCCL_BAD_ARGUMENT || error == AT_NCCL_BAD_USAGE ? ATTUNE_INVALID_ARGUMENT : ATTUNE_DEVICE_ERROR;
  return at_fail(status, "%s of %s: %s%s", what, comm ? comm->description : "nccl", at_nccl.GetErrorString(error),
                 error == AT_NCCL_CUDA_ERROR ? "; a CUDA call inside it failed" : "");
}

/* ---- around NCCL's calls ---- */

/* A call may wait for other processes, as long as those please: exit() waits for a moment only. */
static attune_status enter(attune_device *device, at_entered *out) {
  *out = (at_entered){.previous = -1};
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return at_vendor_refuse();
  const attune_status status = device->backend.device->enter(device, out);
  if (status == ATTUNE_OK)
    at_vendor_wait_begin();
  else
    at_vendor_leave();
  return status;
}

static void leave(attune_device *device, const at_entered *entered) {
  at_vendor_wait_end();
  device->backend.device->leave(entered);
  at_vendor_leave();
}

/* NCCL makes each rank's device current by itself, and then the one that it found. */
static attune_status begin(attune_comm *comm, at_entered *out) {
  return enter(comm->devices[0], out);
}

static attune_status end(attune_comm *comm, const at_entered *entered, attune_status status) {
  leave(comm->devices[0], entered);
  return status;
}

/* ---- life ---- */

attune_status at_nccl_create(attune_comm *comm) {
  int ordinals[ATTUNE_COMM_DEVICES];
  at_entered entered;
  AT_TRY(at_nccl_open());
  AT_TRY(begin(comm, &entered));
  for (int i = 0; i < comm->local; i++) ordinals[i] = comm->devices[i]->ordinal;
  void *handles[ATTUNE_COMM_DEVICES] = {NULL};
  const int error = at_nccl.CommInitAll(handles, comm->local, ordinals);
  for (int i = 0; i < comm->local; i++) atomic_store(&comm->handles[i], error == AT_NCCL_SUCCESS ? handles[i] : NULL);
  return end(comm, &entered, check(comm, error, "ncclCommInitAll"));
}

attune_status at_nccl_make_id(attune_comm_id *out) {
  at_nccl_id id;
  attune_status status = at_nccl_open();
  if (status == ATTUNE_OK && !at_vendor_enter(AT_VENDOR_LIBRARY)) status = at_vendor_refuse();
  if (status != ATTUNE_OK) return status;
  status = check(NULL, at_nccl.GetUniqueId(&id), "ncclGetUniqueId");
  at_vendor_leave();
  if (status == ATTUNE_OK) memcpy(out->bytes, id.bytes, sizeof out->bytes);
  return status;
}

attune_status at_nccl_join(attune_comm *comm, const attune_comm_id *id) {
  at_nccl_id given;
  at_entered entered;
  memcpy(given.bytes, id->bytes, sizeof given.bytes);
  AT_TRY(at_nccl_open());
  AT_TRY(begin(comm, &entered));
  void *handle = NULL;
  const int error = at_nccl.CommInitRank(&handle, comm->size, given, comm->rank);
  atomic_store(&comm->handles[0], error == AT_NCCL_SUCCESS ? handle : NULL);
  return end(comm, &entered, check(comm, error, "ncclCommInitRank"));
}

static attune_status each(attune_comm *comm, int (*call)(void *handle), const char *what) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < comm->local; i++) {
    at_entered entered;
    void *handle = atomic_exchange(&comm->handles[i], NULL);
    if (!handle) continue;
    const attune_status entry = enter(comm->devices[i], &entered);
    const attune_status one = entry == ATTUNE_OK ? check(comm, call(handle), what) : entry;
    if (entry == ATTUNE_OK) leave(comm->devices[i], &entered);
    if (status == ATTUNE_OK) status = one;
  }
  return status;
}

void at_nccl_destroy(attune_comm *comm) {
  (void)each(comm, at_nccl.CommDestroy, "ncclCommDestroy");
}

attune_status at_nccl_abort(attune_comm *comm) {
  return each(comm, at_nccl.CommAbort, "ncclCommAbort");
}

attune_status at_nccl_check(attune_comm *comm) {
  at_entered entered;
  attune_status status = begin(comm, &entered);
  if (status != ATTUNE_OK) return status;
  for (int i = 0; i < comm->local && status == ATTUNE_OK; i++) {
    int error = AT_NCCL_SUCCESS;
    status = check(comm, at_nccl.CommGetAsyncError(comm->handles[i], &error), "ncclCommGetAsyncError");
    if (status == ATTUNE_OK && error != AT_NCCL_IN_PROGRESS) status = check(comm, error, "earlier work");
  }
  return end(comm, &entered, status == ATTUNE_INVALID_ARGUMENT ? ATTUNE_DEVICE_ERROR : status);
}

/* ---- calls ---- */

static int op_of(attune_reduction reduction) {
  static const int ops[] = {AT_NCCL_SUM, AT_NCCL_PRODUCT, AT_NCCL_MIN, AT_NCCL_MAX, AT_NCCL_AVERAGE};
  return ops[reduction];
}

static int call_one(attune_comm *comm, const at_comm_task *task, int i, attune_stream *const *streams,
                    const attune_comm_data *data) {
  const int own = at_comm_own(comm, task->root), named = type_of(data->dtype), type = named >= 0 ? named : AT_NCCL_U8;
  const size_t size = attune_dtype_size(data->dtype);
  const size_t parts = named < 0 ? size : data->dtype == ATTUNE_C64 || data->dtype == ATTUNE_C128 ? 2 : 1;
  const size_t count = data->count * parts;
  const int op = op_of(task->reduction), root = task->root;
  void *handle = comm->handles[i], *stream = streams[i]->native;
  void *out = data->outputs ? data->outputs[i] : NULL;
  const void *in = at_comm_has_input(comm, task, i) ? data->inputs[i] : out;
  switch (task->kind) {
  case AT_COMM_BROADCAST:
    return at_nccl.Broadcast(in, out ? out : (void *)(uintptr_t)in, count, type, root, handle, stream);
  case AT_COMM_REDUCE: return at_nccl.Reduce(in, i == own ? out : NULL, count, type, op, root, handle, stream);
  case AT_COMM_ALL_REDUCE: return at_nccl.AllReduce(in, out, count, type, op, handle, stream);
  case AT_COMM_ALL_GATHER: return at_nccl.AllGather(in, out, count, type, handle, stream);
  default: return at_nccl.ReduceScatter(in, out, count, type, op, handle, stream);
  }
}

static const char *name_of(at_comm_kind kind) {
  static const char *const names[] = {"ncclBroadcast", "ncclReduce", "ncclAllReduce", "ncclAllGather",
                                      "ncclReduceScatter"};
  return names[kind];
}

/* A group that was begun is ended whatever happens. */
static attune_status end_group(const attune_comm *comm, int error, const char *what) {
  const int ended = at_nccl.GroupEnd();
  return error != AT_NCCL_SUCCESS ? check(comm, error, what) : check(comm, ended, what);
}

static attune_status run_group(attune_comm *comm, const at_comm_task *task, attune_stream *const *streams,
                               const attune_comm_data *data, int count) {
  int error = at_nccl.GroupStart();
  if (error != AT_NCCL_SUCCESS) return check(comm, error, "ncclGroupStart");
  for (int k = 0; k < count && error == AT_NCCL_SUCCESS; k++)
    for (int i = 0; i < comm->local && error == AT_NCCL_SUCCESS; i++)
      if (data[k].count) error = call_one(comm, task, i, streams, &data[k]);
  return end_group(comm, error, name_of(task->kind));
}

attune_status at_nccl_run(attune_comm *comm, const at_comm_task *task, attune_stream *const *streams,
                          const attune_comm_data *data, int count) {
  at_entered entered;
  attune_status status = begin(comm, &entered);
  if (status != ATTUNE_OK) return status;
  if (comm->local == 1 && count == 1)
    status = data->count ? check(comm, call_one(comm, task, 0, streams, data), name_of(task->kind)) : ATTUNE_OK;
  else
    for (int at = 0; at < count && status == ATTUNE_OK; at += GROUP_MOST)
      status = run_group(comm, task, streams, data + at, count - at < GROUP_MOST ? count - at : GROUP_MOST);
  return end(comm, &entered, status);
}

/* ---- pieces ---- */

static bool is_run(const at_piece *p) {
  return p->rows == 1 || p->bytes == p->pitch;
}

static attune_status copy_piece(attune_stream *stream, const at_move *move, const at_piece *p, void *piece, bool out) {
  char *whole = (char *)move->split->whole + p->offset;
  const at_backend_memory *memory = stream->device->backend.memory;
  if (p->bytes == 0 || p->rows == 0 || (is_run(p) && piece == whole)) return ATTUNE_OK;
  if (out) return memory->copy_rows(stream, piece, p->bytes, whole, p->pitch, p->bytes, p->rows);
  return memory->copy_rows(stream, whole, p->pitch, piece, p->bytes, p->bytes, p->rows);
}

/* Where the root sends piece `rank` from, or receives it. */
static char *place_of(const at_move *move, const at_piece *p, char *memory) {
  return memory ? memory + p->offset * p->rows : (char *)move->split->whole + p->offset;
}

static int exchange(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move, char *memory) {
  int error = AT_NCCL_SUCCESS;
  const int own = at_comm_own(comm, root);
  for (int rank = 0; rank < comm->size && own >= 0 && error == AT_NCCL_SUCCESS; rank++) {
    const at_piece p = at_comm_piece(comm, move->split, rank);
    const size_t bytes = p.bytes * p.rows;
    char *place = place_of(move, &p, is_run(&p) ? NULL : memory);
    if (rank == root || bytes == 0) continue;
    error = move->gather ? at_nccl.Recv(place, bytes, AT_NCCL_U8, rank, comm->handles[own], streams[own]->native)
                         : at_nccl.Send(place, bytes, AT_NCCL_U8, rank, comm->handles[own], streams[own]->native);
  }
  for (int i = 0; i < comm->local && error == AT_NCCL_SUCCESS; i++) {
    const at_piece p = at_comm_piece(comm, move->split, comm->rank + i);
    const size_t bytes = p.bytes * p.rows;
    void *piece = move->split->pieces[i];
    if (i == own || bytes == 0) continue;
    error = move->gather ? at_nccl.Send(piece, bytes, AT_NCCL_U8, root, comm->handles[i], streams[i]->native)
                         : at_nccl.Recv(piece, bytes, AT_NCCL_U8, root, comm->handles[i], streams[i]->native);
  }
  return error;
}

static attune_status pack(attune_comm *comm, int root, attune_stream *stream, const at_move *move, char *memory) {
  attune_status status = ATTUNE_OK;
  for (int rank = 0; rank < comm->size && status == ATTUNE_OK; rank++) {
    const at_piece p = at_comm_piece(comm, move->split, rank);
    const int own = at_comm_own(comm, rank);
    if (rank == root)
      status = copy_piece(stream, move, &p, move->split->pieces[own], !move->gather);
    else if (memory && !is_run(&p))
      status = copy_piece(stream, move, &p, place_of(move, &p, memory), !move->gather);
  }
  return status;
}

/* On the root the pieces are packed before they are sent, and unpacked when they have come. */
static attune_status move_all(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move,
                              char *memory) {
  const int own = at_comm_own(comm, root);
  attune_status status = ATTUNE_OK;
  if (own >= 0 && !move->gather) status = pack(comm, root, streams[own], move, memory);
  if (status == ATTUNE_OK) status = check(comm, at_nccl.GroupStart(), "ncclGroupStart");
  if (status != ATTUNE_OK) return status;
  status = end_group(comm, exchange(comm, root, streams, move, memory), move->gather ? "gather" : "scatter");
  if (status == ATTUNE_OK && own >= 0 && move->gather) status = pack(comm, root, streams[own], move, memory);
  return status;
}

attune_status at_nccl_move(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move) {
  const attune_comm_split *s = move->split;
  const int own = at_comm_own(comm, root);
  void *memory = NULL;
  at_entered entered;
  attune_status status = ATTUNE_OK;
  if (own >= 0 && s->outer > 1 && comm->size > 1)
    status = attune_alloc(&memory, streams[own], s->outer * s->size * s->inner * attune_dtype_size(s->dtype));
  if (status == ATTUNE_OK) status = begin(comm, &entered);
  if (status == ATTUNE_OK) status = end(comm, &entered, move_all(comm, root, streams, move, memory));
  if (!memory) return status;
  const at_message kept = at_message_keep();
  const attune_status freed = attune_free(memory, streams[own]);
  if (status == ATTUNE_OK) return freed;
  (void)at_message_settle(&kept, ATTUNE_OK);
  return status;
}
