/* SPDX-License-Identifier: Apache-2.0
 * collectives.h: work of several devices together: broadcast, reductions, scatter, gather. A communicator names the
 * devices: all of one process, or one in each of several processes. Its members are its ranks, numbered from 0. GPUs use
 * NCCL where it is installed (it is opened at run time); else, within one process, attune copies between the devices and
 * reduces with kernels of its own. Host devices copy.
 *
 * Within a process a call takes one stream and one pointer for each rank, in the order of the devices; over processes each
 * process gives its own ones alone, as arrays of one. Below, "own rank" means a rank whose stream and pointers the call
 * takes.
 *
 * Order. What a call does with the memory of a rank is work of that rank's stream: it comes after what the stream was given
 * before, and before what it is given later. Nothing else is promised: the streams of two ranks are not ordered by it.
 * Calls return when the work is given, not when it is done.
 *
 * Reductions. Integers wrap around. Copies take all ranks' numbers in the order of the ranks, f16 and bf16 in f32, and
 * round once. NCCL has an order of its own and rounds f16 and bf16 after each step (sums of two ranks: the same numbers).
 * Of a NaN and a number the smallest and the largest are the number. There are
 *   - sums of all real numbers and integers and of complex numbers;
 *   - products, smallest and largest of all real numbers and integers; smallest and largest of bool too: and, or;
 *   - averages of f64, f32, f16, bf16 and complex numbers: the sum divided by the number of ranks (NCCL multiplies each
 *     number by the inverse first).
 * 8-bit floats have none. NCCL has no i16 and u16: within a process these are reduced by copies, over processes not at
 * all.
 *
 * Captures. With NCCL a call may be captured: every own rank's stream is then in a capture, and the graphs are replayed
 * together, each on its device. Copies between devices cannot be captured: UNSUPPORTED.
 *
 * A communicator is used by one thread at a time, but for attune_comm_abort. In a child of fork a communicator of the parent
 * fails with DEVICE_ERROR.
 *
 * Processes. All make the same calls in the same order, with the same dtype, count, root and reduction; nobody compares them:
 * with calls that do not match NCCL waits for ever, or the results are undefined. When a process dies, the others' calls
 * return as ever but their streams do not get on, and those of one machine are as a rule told nothing of it. A program that
 * wants to notice asks attune_stream_query until its own time is up, looks at attune_comm_check, and calls
 * attune_comm_abort: that ends the work on the streams, which go on with what comes after it. Then the communicator is
 * destroyed, and those who are left join a new one. */
#ifndef ATTUNE_COLLECTIVES_H
#define ATTUNE_COLLECTIVES_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most ranks of one process. */
#define ATTUNE_COMM_DEVICES 64

/* Devices that work together. */
typedef struct attune_comm attune_comm;

/* How the ranks reach each other. */
typedef enum attune_comm_way {
  ATTUNE_COMM_ANY = 0,   /* NCCL if it is there (between two peers of one process broadcasts and reductions to one
                            rank of up to 64 KiB by copies, which take less time), else copies */
  ATTUNE_COMM_NCCL = 1,  /* NCCL, or UNSUPPORTED */
  ATTUNE_COMM_COPIES = 2 /* copies between the devices of this process; attune's own kernels */
} attune_comm_way;

/* A communicator of `count` different devices of this process into *out: all of them GPUs, or the host alone, which is one
 * rank; devices[i] is rank i. Copies make the GPUs each other's peers where they can be. The caller destroys it. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (NCCL was asked for and is not here; the message says why), OUT_OF_MEMORY, DEVICE_ERROR.
 * Any thread. */
ATTUNE_API attune_status attune_comm_create(attune_comm **out, attune_device *const *devices, int count,
                                            attune_comm_way way);

/* Names a communicator over processes. Plain bytes: one process makes it and sends it to the others. */
typedef struct attune_comm_id {
  unsigned char bytes[128];
} attune_comm_id;

/* A new one into *out, for one communicator. The process that made it must live until all have joined. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (no NCCL), DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_comm_make_id(attune_comm_id *out);

/* Joins the communicator `id` of `size` processes as `rank` with one device, into *out. Waits until all have joined. The
 * caller destroys it. Errors: INVALID_ARGUMENT, UNSUPPORTED (no NCCL; the host device, which it does not know),
 * OUT_OF_MEMORY, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_comm_join(attune_comm **out, attune_device *device, const attune_comm_id *id, int rank,
                                          int size);

/* Releases it; waits for its calls with NCCL. NULL does nothing. */
ATTUNE_API void attune_comm_destroy(attune_comm *comm);

/* Ends the calls under way with NCCL, also those that wait for a process that is gone: what they write is undefined. Each
 * later call fails with DEVICE_ERROR; attune_comm_destroy is still due. Errors: INVALID_ARGUMENT, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_comm_abort(attune_comm *comm);

/* OK while the communicator is in order; else what went wrong since the calls returned (a process that is gone, a broken
 * network), or that it was aborted: DEVICE_ERROR. Errors: INVALID_ARGUMENT. */
ATTUNE_API attune_status attune_comm_check(attune_comm *comm);

/* The number of ranks; 0 for NULL. Any thread. */
ATTUNE_API int attune_comm_size(const attune_comm *comm);

/* This process's rank; within one process 0, its first; -1 for NULL. Any thread. */
ATTUNE_API int attune_comm_rank(const attune_comm *comm);

/* "nccl 2.28.9" or "copies"; "" for NULL. Borrowed; lives as long as the communicator. Any thread. */
ATTUNE_API const char *attune_comm_describe(const attune_comm *comm);

/* What a call works on: `count` elements of `dtype`, packed, of each rank. Arrays of one pointer for each own rank. Input
 * and output of a rank are the same memory or do not overlap (what all_gather and reduce_scatter allow stands there); memory
 * of two ranks does not overlap. It is memory of the rank's device, aligned to the dtype (complex: to its parts). */
typedef struct attune_comm_data {
  attune_dtype dtype;
  size_t count; /* 0: nothing to do */
  const void *const *inputs;
  void *const *outputs;
} attune_comm_data;

/* The input of rank `root` into the output of every rank. The other inputs are not looked at: inputs may have NULL there,
 * and be NULL where root is not an own rank. The root's output may be its input, or NULL: then only the others get it.
 * Errors: INVALID_ARGUMENT (the message names the rank), UNSUPPORTED, OUT_OF_MEMORY, CAPTURING (some streams are in a
 * capture and some are not), DEVICE_ERROR. */
ATTUNE_API attune_status attune_comm_broadcast(attune_comm *comm, int root, attune_stream *const *streams,
                                               const attune_comm_data *data);

/* What becomes of the ranks' numbers. */
typedef enum attune_reduction {
  ATTUNE_REDUCE_SUM = 0,
  ATTUNE_REDUCE_PRODUCT = 1,
  ATTUNE_REDUCE_MIN = 2,
  ATTUNE_REDUCE_MAX = 3,
  ATTUNE_REDUCE_AVERAGE = 4
} attune_reduction;

/* The sum (product, ...) of all inputs into the output of rank `root`; the other outputs are not looked at. Errors as above;
 * INVALID_ARGUMENT also for a dtype that has no such reduction. */
ATTUNE_API attune_status attune_comm_reduce(attune_comm *comm, int root, attune_reduction reduction,
                                            attune_stream *const *streams, const attune_comm_data *data);

/* The sum (product, ...) of all inputs into every output. Errors as above. */
ATTUNE_API attune_status attune_comm_all_reduce(attune_comm *comm, attune_reduction reduction,
                                                attune_stream *const *streams, const attune_comm_data *data);

/* All inputs, one after the other in the order of the ranks, into every output: an output has room for size times `count`
 * elements. A rank's input may be its own place in its output. Errors as above, any dtype. */
ATTUNE_API attune_status attune_comm_all_gather(attune_comm *comm, attune_stream *const *streams,
                                                const attune_comm_data *data);

/* Each input has size times `count` elements; the sum (product, ...) of all inputs' part r goes into the output of rank r,
 * which has `count`. A rank's output may be its own part of its input. Errors as above. */
ATTUNE_API attune_status attune_comm_reduce_scatter(attune_comm *comm, attune_reduction reduction,
                                                    attune_stream *const *streams, const attune_comm_data *data);

/* attune_comm_reduce with ATTUNE_REDUCE_SUM. */
ATTUNE_API attune_status attune_comm_reduce_add(attune_comm *comm, int root, attune_stream *const *streams,
                                                const attune_comm_data *data);

/* attune_comm_all_reduce with ATTUNE_REDUCE_SUM. */
ATTUNE_API attune_status attune_comm_all_reduce_add(attune_comm *comm, attune_stream *const *streams,
                                                    const attune_comm_data *data);

/* Many at once, at less cost than as many calls: `count` times data, of any dtypes and sizes. Errors as above; the message
 * names the data. */
ATTUNE_API attune_status attune_comm_broadcast_coalesced(attune_comm *comm, int root, attune_stream *const *streams,
                                                         const attune_comm_data *data, int count);

/* The same for attune_comm_all_reduce. */
ATTUNE_API attune_status attune_comm_all_reduce_coalesced(attune_comm *comm, attune_reduction reduction,
                                                          attune_stream *const *streams, const attune_comm_data *data,
                                                          int count);

/* The same for attune_comm_reduce_add. */
ATTUNE_API attune_status attune_comm_reduce_add_coalesced(attune_comm *comm, int root, attune_stream *const *streams,
                                                          const attune_comm_data *data, int count);

/* A packed array and its pieces along one dimension. */
typedef struct attune_comm_split {
  attune_dtype dtype;
  size_t outer; /* product of the sizes of the dimensions before it; 1 or 0: none */
  size_t size;  /* of the dimension that is split; 0: nothing to do. An array without elements has this 0 */
  size_t inner; /* product of the sizes after it; 1 or 0: none */
  const size_t
      *chunks; /* how much of the dimension each rank has, in sum `size`; NULL: size / ranks, rounded up, as long
                           as it lasts */
  void *whole; /* the array, of rank `root`; within a process also memory of the host */
  void *const *pieces; /* a packed piece of each own rank; NULL where it has none */
} attune_comm_split;

/* Piece i of `whole`, which is read, goes to rank i. Within a process by copies, also where the communicator uses NCCL,
 * outside of captures. Errors as attune_comm_broadcast. */
ATTUNE_API attune_status attune_comm_scatter(attune_comm *comm, int root, attune_stream *const *streams,
                                             const attune_comm_split *split);

/* The pieces of all ranks, which are read, into `whole`. As attune_comm_scatter. */
ATTUNE_API attune_status attune_comm_gather(attune_comm *comm, int root, attune_stream *const *streams,
                                            const attune_comm_split *split);

#ifdef __cplusplus
}
#endif
#endif
