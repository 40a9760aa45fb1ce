/* SPDX-License-Identifier: Apache-2.0
 * nccl_library.h: NCCL, opened at run time and absent without harm. Its few functions, types and numbers are declared
 * here as its interface defines them. A copy that the program has loaded is the one that is used. */
#ifndef AT_COMM_NCCL_LIBRARY_H
#define AT_COMM_NCCL_LIBRARY_H

#include <attune/collectives.h>

#include "src/base/support.h"

typedef struct at_nccl_id {
  char bytes[128];
} at_nccl_id;

enum {
  AT_NCCL_SUCCESS = 0,
  AT_NCCL_CUDA_ERROR = 1,
  AT_NCCL_BAD_ARGUMENT = 4,
  AT_NCCL_BAD_USAGE = 5,
  AT_NCCL_IN_PROGRESS = 7
};
enum { AT_NCCL_SUM = 0, AT_NCCL_PRODUCT = 1, AT_NCCL_MAX = 2, AT_NCCL_MIN = 3, AT_NCCL_AVERAGE = 4 };
enum {
  AT_NCCL_I8 = 0,
  AT_NCCL_U8 = 1,
  AT_NCCL_I32 = 2,
  AT_NCCL_U32 = 3,
  AT_NCCL_I64 = 4,
  AT_NCCL_U64 = 5,
  AT_NCCL_F16 = 6,
  AT_NCCL_F32 = 7,
  AT_NCCL_F64 = 8,
  AT_NCCL_BF16 = 9
};

/* comm: ncclComm_t; stream: cudaStream_t. */
typedef struct at_nccl_functions {
  int (*GetVersion)(int *version);
  int (*GetUniqueId)(at_nccl_id *id);
  int (*CommInitAll)(void **comms, int count, const int *devices);
  int (*CommInitRank)(void **comm, int size, at_nccl_id id, int rank);
  int (*CommDestroy)(void *comm);
  int (*CommAbort)(void *comm);
  int (*CommGetAsyncError)(void *comm, int *error);
  const char *(*GetErrorString)(int error);
  int (*GroupStart)(void);
  int (*GroupEnd)(void);
  int (*Broadcast)(const void *input, void *output, size_t count, int type, int root, void *comm, void *stream);
  int (*Reduce)(const void *input, void *output, size_t count, int type, int op, int root, void *comm, void *stream);
  int (*AllReduce)(const void *input, void *output, size_t count, int type, int op, void *comm, void *stream);
  int (*AllGather)(const void *input, void *output, size_t count, int type, void *comm, void *stream);
  int (*ReduceScatter)(const void *input, void *output, size_t count, int type, int op, void *comm, void *stream);
  int (*Send)(const void *input, size_t count, int type, int peer, void *comm, void *stream);
  int (*Recv)(void *output, size_t count, int type, int peer, void *comm, void *stream);
} at_nccl_functions;
extern at_nccl_functions at_nccl;

/* Opens it and fills at_nccl; the first call opens, later ones only say how that went. UNSUPPORTED: it is not here, too
 * old or incomplete; the message says which and what to do. Any thread. */
attune_status at_nccl_open(void);

/* "2.28.9", once it is open. */
const char *at_nccl_version(void);

#endif
