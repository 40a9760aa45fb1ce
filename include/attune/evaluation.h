/* SPDX-License-Identifier: Apache-2.0
 * evaluation.h: one elementwise call described by text, on random operands, and the error of its results: the
 * implementation of `attune eval`.
 *
 * Create an evaluation, allocate its operands on a device (attune_evaluation_place), call attune_elementwise with them
 * any number of times, and check the results. An evaluation is used by one thread at a time; not in capture. */
#ifndef ATTUNE_EVALUATION_H
#define ATTUNE_EVALUATION_H

#include <attune/elementwise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A call described by text. NULL equals ""; set unused fields to zero.
 *
 * - shape: "64x1024", the outermost dimension first; "" is one element.
 * - dtype: of inputs that name none, "bf16"; "" is f32.
 * - inputs: "a b:bf16 c:f32:1024 d::1024x64:1x1024", separated by blanks: name, dtype, shape, strides in elements.
 *   Defaults: `dtype`, the whole shape, packed. Names that the expression uses need not be listed.
 * - outputs: "bf16 f32:1x64 @a": dtype and strides, or the input whose memory is used. Default: the expression's own
 *   dtype, packed.
 * - scalars: "alpha=0.5 n:i64=3": name, kind and value; by default f64 and a number that attune chooses. */
typedef struct attune_elementwise_words {
  const char *expression, *shape, *dtype, *inputs, *outputs, *scalars;
  attune_accuracy accuracy;
} attune_elementwise_words;

/* A call described by text, and its operands. */
typedef struct attune_evaluation attune_evaluation;

/* Creates the call that `words` describe into *out, without memory yet; the words need not outlive the call. The caller
 * destroys it. Errors: INVALID_ARGUMENT (the message names the field and the mistake; a mistake in the expression, with
 * its place; no elements), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_evaluation_create(attune_evaluation **out, const attune_elementwise_words *words);

/* Releases an evaluation; work that uses its operands must be done. NULL does nothing. */
ATTUNE_API void attune_evaluation_destroy(attune_evaluation *evaluation);

/* Returns the problem's text, for attune_tune and attune_explain. Borrowed. */
ATTUNE_API const char *attune_evaluation_problem(const attune_evaluation *evaluation);

/* Returns the bytes that a call reads and writes: each element of each operand once. */
ATTUNE_API uint64_t attune_evaluation_bytes(const attune_evaluation *evaluation);

/* Allocates the operands on `stream`'s device and fills the inputs with random numbers, equal for equal seeds; inputs
 * of some expressions, such as those with logarithms, are positive. `stream` must outlive the evaluation. Errors:
 * INVALID_ARGUMENT (also: placed before), OUT_OF_MEMORY (the message says how much is needed and available),
 * DEVICE_ERROR. */
ATTUNE_API attune_status attune_evaluation_place(attune_evaluation *evaluation, attune_stream *stream, uint64_t seed);

/* Returns the operands to pass to attune_elementwise with the words' expression. They have no data before
 * attune_evaluation_place. Outputs are in the expression's order. Borrowed. */
ATTUNE_API const attune_elementwise_operands *attune_evaluation_operands(const attune_evaluation *evaluation);

/* Result of a check. */
typedef struct attune_evaluation_errors {
  int64_t elements, checked; /* of the shape; of those, the number compared */
  double max_error;          /* largest error as a fraction of the contract's limit; above 1 is wrong */
  /* Largest difference from the exact value of the formula, which is rounded only at casts in the text, in units in the
   * last place of the output's dtype; meaningless for outputs that are not floating-point. */
  double max_ulps;
} attune_evaluation_errors;

/* Refills the inputs, runs the call once with `tuner`, waits, and compares at most `most` elements, drawn from all (<=
 * 0: all of them), with reference values in long double, or in double where that gives equal values. The text is also
 * evaluated as written, before any simplification; if the values differ, max_error is infinite. Wrong numbers are not
 * an error of the call. Errors: INVALID_ARGUMENT (also: not placed), and those of attune_elementwise. */
ATTUNE_API attune_status attune_evaluation_check(attune_evaluation *evaluation, attune_tuner *tuner, int64_t most,
                                                 attune_evaluation_errors *out);

/* Writes the element with row-major index `index` of an operand, broadcast to the whole shape, as of the latest check,
 * into *out. `tensor` counts outputs, then inputs, in the order of attune_evaluation_operands. An input that shares an
 * output's memory has its value before the call. out->kind is f64, i64, bool or c128; a u64 is given by its bits; the
 * name is NULL. Errors: INVALID_ARGUMENT (no such tensor or element; no check yet). On the host it reads the operands
 * themselves. */
ATTUNE_API attune_status attune_evaluation_element(const attune_evaluation *evaluation, int tensor, int64_t index,
                                                   attune_scalar *out);

#ifdef __cplusplus
}
#endif
#endif
