/* SPDX-License-Identifier: Apache-2.0
 * collectives.h: collective operations of several devices: broadcast, reductions, scatter, gather. A communicator
 * consists of devices: all in one process, or one in each of several processes. Its members are its ranks, numbered
 * from 0. GPUs use NCCL if it is installed (it is opened at run time); otherwise, within one process, attune copies
 * between the devices and reduces with its own kernels. Host devices copy.
 *
 * Within a process a call takes one stream and one pointer for each rank, in the order of the devices; across processes
 * each process passes only its own, as arrays of one. Below, "own rank" means a rank whose stream and pointers the call
 * takes.
 *
 * Order. A call's accesses to the memory of a rank are work of that rank's stream: they come after earlier work of the
 * stream and before later work. Nothing else is ordered: the streams of two ranks are not ordered by the call. Calls
 * return when the work is given, not when it is done.
 *
 * Reductions. Integers wrap around. Copies combine the ranks' numbers in rank order, f16 and bf16 in f32, and round
 * once. NCCL has its own order and rounds f16 and bf16 after each step (sums of two ranks: identical results). The
 * minimum and maximum of a NaN and a number are the number. Supported are
 *   - sums of all real numbers and integers and of complex numbers;
 *   - products, minima and maxima of all real numbers and integers; also minima and maxima of bool: and, or;
 *   - averages of f64, f32, f16, bf16 and complex numbers: the sum divided by the number of ranks (NCCL first
 *     multiplies each number by the inverse).
 * 8-bit floats have no reductions. NCCL has no i16 and u16: within a process these are reduced by copies, across
 * processes they are not supported.
 *
 * Captures. With NCCL a call may be captured: every own rank's stream must then be in a capture, and the graphs must be
 * replayed together, each on its device. Copies between devices cannot be captured: UNSUPPORTED.
 *
 * A communicator is used by one thread at a time, except by attune_comm_abort. In a forked child a communicator of the
 * parent fails with DEVICE_ERROR.
 *
 * Processes. All make the same calls in the same order, with the same dtype, count, root and reduction; this is not
 * checked: with calls that do not match, NCCL deadlocks or the results are undefined. When a process dies, the other
 * processes' calls still return but their streams make no progress, and those on one machine usually get no error. To
 * detect this, poll attune_stream_query with a timeout, check attune_comm_check, and call attune_comm_abort: it ends
 * the communicator's work on the streams, which continue with later work. Then destroy the communicator; the remaining
 * processes can join a new one. */
#ifndef ATTUNE_COLLECTIVES_H
#define ATTUNE_COLLECTIVES_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum number of ranks in one process. */
#define ATTUNE_COMM_DEVICES 64

/* A communicator. */
typedef struct attune_comm attune_comm;

/* How the ranks reach each other. */
typedef enum attune_comm_way {
  ATTUNE_COMM_ANY = 0,   /* NCCL if available (between two peers of one process, broadcasts and reductions to one rank
                            of up to 64 KiB use copies, which are faster), otherwise copies */
  ATTUNE_COMM_NCCL = 1,  /* NCCL, or UNSUPPORTED */
  ATTUNE_COMM_COPIES = 2 /* copies between the devices of this process; attune's own kernels */
} attune_comm_way;

/* Creates a communicator of `count` different devices of this process in *out: all of them GPUs, or only the host,
 * which is one rank; devices[i] is rank i. Copies enable peer access between the GPUs where possible. The caller
 * destroys it. Errors: INVALID_ARGUMENT, UNSUPPORTED (NCCL was requested and is not available; the message says why),
 * OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_comm_create(attune_comm **out, attune_device *const *devices, int count,
                                            attune_comm_way way);

/* Identifies a communicator across processes. Plain bytes: one process makes it and sends it to the others. */
typedef struct attune_comm_id {
  unsigned char bytes[128];
} attune_comm_id;

/* Makes an id for one communicator and stores it in *out. This process must live until all have joined. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (no NCCL), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_comm_make_id(attune_comm_id *out);

/* Joins the communicator `id` of `size` processes as `rank` with one device, and stores it in *out. Waits until all
 * have joined. The caller destroys it. Errors: INVALID_ARGUMENT, UNSUPPORTED (no NCCL; the host device, which NCCL does
 * not support), OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_comm_join(attune_comm **out, attune_device *device, const attune_comm_id *id, int rank,
                                          int size);

/* Releases the communicator; waits for its NCCL calls. NULL does nothing. */
ATTUNE_API void attune_comm_destroy(attune_comm *comm);

/* Ends NCCL calls in progress, including those that wait for a dead process: their output is undefined. Each later call
 * fails with DEVICE_ERROR; attune_comm_destroy must still be called. Errors: INVALID_ARGUMENT, DEVICE_ERROR. Any
 * thread. */
ATTUNE_API attune_status attune_comm_abort(attune_comm *comm);

/* Returns OK while the communicator works; DEVICE_ERROR if it was aborted or failed after calls returned (a dead
 * process, a broken network); the message says which. Errors: INVALID_ARGUMENT. */
ATTUNE_API attune_status attune_comm_check(attune_comm *comm);

/* Returns the number of ranks; 0 for NULL. Any thread. */
ATTUNE_API int attune_comm_size(const attune_comm *comm);

/* Returns this process's rank; within one process 0, its first; -1 for NULL. Any thread. */
ATTUNE_API int attune_comm_rank(const attune_comm *comm);

/* Returns "nccl 2.28.9" or "copies"; "" for NULL. Borrowed; lives as long as the communicator. Any thread. */
ATTUNE_API const char *attune_comm_describe(const attune_comm *comm);

/* Operands of a call: `count` elements of `dtype`, packed, per rank. Arrays have one pointer for each own rank. Input
 * and output of a rank are the same memory or do not overlap (all_gather and reduce_scatter document their exceptions);
 * memory of two ranks does not overlap. It is memory of the rank's device, aligned to the dtype (complex: to its
 * parts). */
typedef struct attune_comm_data {
  attune_dtype dtype;
  size_t count; /* 0: nothing to do */
  const void *const *inputs;
  void *const *outputs;
} attune_comm_data;

/* Copies the input of rank `root` to the output of every rank. The other inputs are ignored: inputs may have NULL
 * there, and be NULL if root is not an own rank. The root's output may be its input, or NULL: then only the others get
 * it. Errors: INVALID_ARGUMENT (the message names the rank), UNSUPPORTED, OUT_OF_MEMORY, CAPTURING (some streams are in
 * a capture and some are not), DEVICE_ERROR. */
ATTUNE_API attune_status attune_comm_broadcast(attune_comm *comm, int root, attune_stream *const *streams,
                                               const attune_comm_data *data);

/* How the ranks' numbers are combined. */
typedef enum attune_reduction {
  ATTUNE_REDUCE_SUM = 0,
  ATTUNE_REDUCE_PRODUCT = 1,
  ATTUNE_REDUCE_MIN = 2,
  ATTUNE_REDUCE_MAX = 3,
  ATTUNE_REDUCE_AVERAGE = 4
} attune_reduction;

/* Stores the sum (product, ...) of all inputs in the output of rank `root`; the other outputs are ignored. Errors as
 * above; INVALID_ARGUMENT also for a dtype without this reduction. */
ATTUNE_API attune_status attune_comm_reduce(attune_comm *comm, int root, attune_reduction reduction,
                                            attune_stream *const *streams, const attune_comm_data *data);

/* Stores the sum (product, ...) of all inputs in every output. Errors as above. */
ATTUNE_API attune_status attune_comm_all_reduce(attune_comm *comm, attune_reduction reduction,
                                                attune_stream *const *streams, const attune_comm_data *data);

/* Concatenates all inputs in rank order into every output: an output has room for size times `count` elements. A rank's
 * input may be its own part of its output. Errors as above, any dtype. */
ATTUNE_API attune_status attune_comm_all_gather(attune_comm *comm, attune_stream *const *streams,
                                                const attune_comm_data *data);

/* Stores the sum (product, ...) of part r of all inputs in the output of rank r. Each input has size times `count`
 * elements, each output `count`. A rank's output may be its own part of its input. Errors as above. */
ATTUNE_API attune_status attune_comm_reduce_scatter(attune_comm *comm, attune_reduction reduction,
                                                    attune_stream *const *streams, const attune_comm_data *data);

/* Broadcasts `count` data of any dtypes and sizes, at less cost than as many calls. Errors as above; the message names
 * the data. */
ATTUNE_API attune_status attune_comm_broadcast_coalesced(attune_comm *comm, int root, attune_stream *const *streams,
                                                         const attune_comm_data *data, int count);

/* Like attune_comm_broadcast_coalesced, for attune_comm_all_reduce. */
ATTUNE_API attune_status attune_comm_all_reduce_coalesced(attune_comm *comm, attune_reduction reduction,
                                                          attune_stream *const *streams, const attune_comm_data *data,
                                                          int count);

/* Like attune_comm_broadcast_coalesced, for attune_comm_reduce with ATTUNE_REDUCE_SUM. */
ATTUNE_API attune_status attune_comm_reduce_add_coalesced(attune_comm *comm, int root, attune_stream *const *streams,
                                                          const attune_comm_data *data, int count);

/* A packed array and its pieces along one dimension. */
typedef struct attune_comm_split {
  attune_dtype dtype;
  size_t outer; /* product of the sizes of the dimensions before the split one; 1 or 0: none */
  size_t size;  /* of the split dimension; 0: nothing to do. Also 0 for an array without elements */
  size_t inner; /* product of the sizes after it; 1 or 0: none */
  const size_t
      *chunks; /* each rank's share of the dimension, `size` in total; NULL: size / ranks rounded up, until it is used
                  up */
  void *whole; /* the array, in memory of rank `root`; within a process also host memory */
  void *const *pieces; /* a packed piece per own rank; NULL where it is empty */
} attune_comm_split;

/* Copies piece i of `whole`, which is read, to rank i. Within a process it copies even if the communicator uses NCCL,
 * except in captures. Errors as attune_comm_broadcast. */
ATTUNE_API attune_status attune_comm_scatter(attune_comm *comm, int root, attune_stream *const *streams,
                                             const attune_comm_split *split);

/* Copies the pieces of all ranks, which are read, into `whole`. Otherwise as attune_comm_scatter. */
ATTUNE_API attune_status attune_comm_gather(attune_comm *comm, int root, attune_stream *const *streams,
                                            const attune_comm_split *split);

#ifdef __cplusplus
}
#endif
#endif
