/* SPDX-License-Identifier: Apache-2.0
 * tensor.h: tensors, and everyday work on them: copy, cast, fill, add, and so on. Each call is one expression of
 * elementwise.h, with the same rules: it runs in stream order at the speed of memory, broadcasts, may be captured, and is
 * tuned like any other problem. */
#ifndef ATTUNE_TENSOR_H
#define ATTUNE_TENSOR_H

#include <attune/random.h>
#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most dimensions of a tensor. */
#define ATTUNE_DIMS 8

/* Elements in memory that the device can reach. The memory stays the caller's. */
typedef struct attune_tensor {
  const char *name; /* of an input, as the expression has it; of an output for messages only. NULL: none */
  void *data;       /* the element whose indices are all 0, aligned to its dtype; that of an input is only read */
  attune_dtype dtype;
  int dims;                   /* 0 to ATTUNE_DIMS; 0: one element, and sizes[0] is 0 or 1 */
  int64_t sizes[ATTUNE_DIMS]; /* outermost dimension first; a size of 0: no elements, and data may be NULL */
  const int64_t *strides;     /* in elements, one a dimension, of any sign, 0 too; NULL: packed, row-major */
} attune_tensor;

/* out = in, converted to out's dtype, broadcast to out's shape. A view with other strides makes it a transposition or
 * another permutation (attune_tensor_permute). Errors and threads of this and of the calls below: those of
 * attune_elementwise. */
ATTUNE_API attune_status attune_tensor_copy(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                            const attune_tensor *in);

/* Copies `count` elements and converts them from dtype `from` to dtype `to`, wherever the two lie: memory of the stream's
 * device, of the host (pinned or not) or of another GPU. The stream's device converts; for a side that is not its own (nor
 * managed) it takes memory of attune_alloc for the time of the call. In stream order; pageable host memory may make the call
 * wait. Destination and source must not overlap. Errors: INVALID_ARGUMENT, and those of attune_tensor_copy, attune_alloc and
 * attune_copy; after an error the destination's contents are undefined. In capture: one of attune_graph, or the program's
 * own where both sides are the device's. */
ATTUNE_API attune_status attune_copy_converted(attune_tuner *tuner, attune_stream *stream, void *destination,
                                               attune_dtype to, const void *source, attune_dtype from, size_t count);

/* out = value in every element, converted to its dtype. */
ATTUNE_API attune_status attune_tensor_fill(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                            double value);

/* out = a + b. */
ATTUNE_API attune_status attune_tensor_add(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                           const attune_tensor *a, const attune_tensor *b);

/* y = alpha x + beta y; y is read even if beta is 0. */
ATTUNE_API attune_status attune_tensor_axpby(attune_tuner *tuner, attune_stream *stream, double alpha,
                                             const attune_tensor *x, double beta, const attune_tensor *y);

/* What attune_tensor_bias_activation applies after the bias. */
typedef enum attune_activation {
  ATTUNE_ACTIVATION_NONE = 0,
  ATTUNE_ACTIVATION_RELU = 1,
  ATTUNE_ACTIVATION_GELU = 2, /* exact, by the error function */
  ATTUNE_ACTIVATION_GELU_TANH = 3,
  ATTUNE_ACTIVATION_SILU = 4,
  ATTUNE_ACTIVATION_SIGMOID = 5,
  ATTUNE_ACTIVATION_TANH = 6
} attune_activation;

/* out = activation(x + bias). bias broadcasts: of the length of x's last dimension, say. out may be x. */
ATTUNE_API attune_status attune_tensor_bias_activation(attune_tuner *tuner, attune_stream *stream,
                                                       const attune_tensor *out, const attune_tensor *x,
                                                       const attune_tensor *bias, attune_activation activation);

/* out = in / (1 - p) with probability 1 - p, else 0; 0 <= p < 1. The generator must be in its portable mode. */
ATTUNE_API attune_status attune_tensor_dropout(attune_tuner *tuner, attune_stream *stream, const attune_tensor *out,
                                               const attune_tensor *in, double p, attune_generator *generator);

/* The view of `in` whose dimension d is in's dimension order[d], into *out. Its strides are written to
 * strides[in->dims], to which *out points from then on; `order` has each dimension once. Nothing is moved. Errors:
 * INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_tensor_permute(attune_tensor *out, int64_t *strides, const attune_tensor *in,
                                               const int *order);

#ifdef __cplusplus
}
#endif
#endif
