/* SPDX-License-Identifier: Apache-2.0
 * communicator.h: a communicator, and the two ways in which it does its calls. */
#ifndef AT_COMMUNICATOR_H
#define AT_COMMUNICATOR_H

#include <attune/collectives.h>

#include <stdatomic.h>

#include "src/base/backend.h"

struct attune_comm {
  int size;  /* ranks of all processes */
  int local; /* of this one */
  int rank;  /* of the first of them */
  unsigned generation;
  atomic_bool aborted, calling; /* a call is being made */
  bool nccl;                    /* else copies */
  bool pair;                    /* two peers, and the way was left open: small arrays go by copies */
  char description[32];
  attune_device *devices[ATTUNE_COMM_DEVICES];  /* of the own ranks, as all below */
  attune_event *events[ATTUNE_COMM_DEVICES];    /* for copies */
  _Atomic(void *) handles[ATTUNE_COMM_DEVICES]; /* ncclComm_t; NULL once it was aborted */
};

/* The own rank's index, or -1. */
static inline int at_comm_own(const attune_comm *comm, int rank) {
  return rank >= comm->rank && rank < comm->rank + comm->local ? rank - comm->rank : -1;
}

/* Where piece `rank` of a split lies in the whole, and its size; in bytes. */
typedef struct at_piece {
  size_t offset, bytes; /* of a row */
  size_t pitch, rows;   /* of the whole */
} at_piece;
at_piece at_comm_piece(const attune_comm *comm, const attune_comm_split *split, int rank);

/* Which pieces move where. */
typedef struct at_move {
  const attune_comm_split *split;
  bool gather;
} at_move;

typedef enum at_comm_kind {
  AT_COMM_BROADCAST,
  AT_COMM_REDUCE,
  AT_COMM_ALL_REDUCE,
  AT_COMM_ALL_GATHER,
  AT_COMM_REDUCE_SCATTER
} at_comm_kind;

/* Operation of a call on its data. */
typedef struct at_comm_task {
  at_comm_kind kind;
  attune_reduction reduction; /* of the kinds that have one */
  int root;                   /* of the kinds that have one, else 0 */
} at_comm_task;

static inline bool at_comm_reduces(at_comm_kind kind) {
  return kind != AT_COMM_BROADCAST && kind != AT_COMM_ALL_GATHER;
}

/* How many times `count` elements an input and an output have. */
static inline size_t at_comm_in_parts(const attune_comm *comm, at_comm_kind kind) {
  return kind == AT_COMM_REDUCE_SCATTER ? (size_t)comm->size : 1;
}
static inline size_t at_comm_out_parts(const attune_comm *comm, at_comm_kind kind) {
  return kind == AT_COMM_ALL_GATHER ? (size_t)comm->size : 1;
}

/* Whether own rank i reads its input, or writes its output if it gives one. */
static inline bool at_comm_has_input(const attune_comm *comm, const at_comm_task *task, int i) {
  return task->kind != AT_COMM_BROADCAST || i == at_comm_own(comm, task->root);
}
static inline bool at_comm_has_output(const attune_comm *comm, const at_comm_task *task, int i) {
  return task->kind != AT_COMM_REDUCE || i == at_comm_own(comm, task->root);
}

/* p2p.c: arguments are right, all ranks are own, and no stream is in a capture (one rank alone may be). */
attune_status at_copies_run(attune_comm *comm, const at_comm_task *task, attune_stream *const *streams,
                            const attune_comm_data *data, int count);
attune_status at_copies_move(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move);

/* Other room for the others' numbers, for tests; what it was is returned. */
size_t at_copies_set_staging(size_t bytes);

/* nccl.c: the same with NCCL. can: it does this with the dtype. */
bool at_nccl_can(at_comm_kind kind, attune_dtype dtype);
attune_status at_nccl_run(attune_comm *comm, const at_comm_task *task, attune_stream *const *streams,
                          const attune_comm_data *data, int count);
attune_status at_nccl_move(attune_comm *comm, int root, attune_stream *const *streams, const at_move *move);
attune_status at_nccl_create(attune_comm *comm);
attune_status at_nccl_make_id(attune_comm_id *out);
attune_status at_nccl_join(attune_comm *comm, const attune_comm_id *id);
void at_nccl_destroy(attune_comm *comm);
attune_status at_nccl_abort(attune_comm *comm);
attune_status at_nccl_check(attune_comm *comm);

/* comm.c: around every call; begin fails with a comm that cannot be used, and then there is no end. */
attune_status at_comm_begin(attune_comm *comm);
attune_status at_comm_end(attune_comm *comm, attune_status status);

/* check.c: the arguments of a call. */
attune_status at_comm_check_streams(const attune_comm *comm, int root, attune_stream *const *streams);
attune_status at_comm_check_data(const attune_comm *comm, const at_comm_task *task, const attune_comm_data *data);
attune_status at_comm_check_split(const attune_comm *comm, int root, const attune_comm_split *split);

#endif
