/* SPDX-License-Identifier: Apache-2.0
 * tensor.h: tensors, and common operations on them: copy, cast, fill, add, and so on. Each call is one expression of
 * elementwise.h, with the same rules: it runs in stream order at the speed of memory, broadcasts, may be captured, and
 * is tuned like any other problem. */
#ifndef ATTUNE_TENSOR_H
#define ATTUNE_TENSOR_H

#include <attune/random.h>
#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of dimensions of a tensor. */
#define ATTUNE_DIMS 8

/* Elements in memory that the device can access. The caller owns the memory. */
typedef struct attune_tensor {
  const char *name; /* an input's name in the expression; an output's is for messages only. NULL: none */
  void *data;       /* the element whose indices are all 0, aligned to its dtype; an input's is only read */
  attune_dtype dtype;
  int dims;                   /* 0 to ATTUNE_DIMS; 0: one element, and sizes[0] is 0 or 1 */
  int64_t sizes[ATTUNE_DIMS]; /* outermost dimension first; if one is 0 there are no elements and data may be NULL */
  const int64_t *strides;     /* in elements, one per dimension, of any sign or 0; NULL: packed, row-major */
} attune_tensor;

/* out = in, converted to out's dtype, broadcast to out's shape. With a permuted view (attune_tensor_permute) it
 * transposes or permutes dimensions. Errors and threads of this function and of those below: as attune_elementwise. */
ATTUNE_API attune_status attune_tensor_copy(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                            const attune_tensor *in);

/* Copies `count` elements and converts them from dtype `from` to dtype `to`, in any combination of memory: the stream's
 * device, the host (pinned or not) or another GPU. The stream's device converts; for a side that is neither its own nor
 * managed memory it allocates with attune_alloc for the duration of the call. In stream order; pageable host memory may
 * make the call wait. Destination and source must not overlap. Errors: INVALID_ARGUMENT, and those of
 * attune_tensor_copy, attune_alloc and attune_copy; after an error the destination's contents are undefined. In
 * capture: allowed in one of attune_graph, and in the program's own if both sides are the device's. */
ATTUNE_API attune_status attune_copy_converted(attune_tuner *tuner, attune_stream *stream, void *destination,
                                               attune_dtype to, const void *source, attune_dtype from, size_t count);

/* out = value in every element, converted to out's dtype. */
ATTUNE_API attune_status attune_tensor_fill(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                            double value);

/* out = a + b. */
ATTUNE_API attune_status attune_tensor_add(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                           const attune_tensor *a, const attune_tensor *b);

/* y = alpha x + beta y; y is read even if beta is 0. */
ATTUNE_API attune_status attune_tensor_axpby(attune_tuner *tuner, attune_stream *stream, double alpha,
                                             const attune_tensor *x, double beta, const attune_tensor *y);

/* out = activation(x + bias). bias broadcasts; it may have the length of x's last dimension, for example. out may be
 * x. */
ATTUNE_API attune_status attune_tensor_bias_activation(attune_tuner *tuner, attune_stream *stream,
                                                       const attune_tensor *out, const attune_tensor *x,
                                                       const attune_tensor *bias, attune_activation activation);

/* out = in / (1 - p) with probability 1 - p, else 0; 0 <= p < 1. The generator must be in its portable mode. */
ATTUNE_API attune_status attune_tensor_dropout(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                               const attune_tensor *in, double p, attune_generator *generator);

/* Writes the view of `in` whose dimension d is in's dimension order[d] into *out. Its strides are written to
 * strides[in->dims], and *out keeps a pointer to them; `order` contains each dimension once. Moves no data. Errors:
 * INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_tensor_permute(attune_tensor *out, int64_t *strides, const attune_tensor *in,
                                               const int *order);

#ifdef __cplusplus
}
#endif
#endif
