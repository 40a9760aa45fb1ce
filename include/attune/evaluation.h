/* SPDX-License-Identifier: Apache-2.0
 * evaluation.h: one elementwise call described in words, on random operands, and how far its results are from the exact
 * ones: what `attune eval` does.
 *
 * Create one, give it memory on a device (attune_evaluation_place), call attune_elementwise with its operands as often as
 * you like, and check it. One evaluation is used by one thread at a time; not in capture. */
#ifndef ATTUNE_EVALUATION_H
#define ATTUNE_EVALUATION_H

#include <attune/elementwise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A call in words. NULL is as good as ""; set the rest to zero.
 *
 * - shape: "64x1024", the outermost dimension first; "" is one element.
 * - dtype: of inputs that name none, "bf16"; "" is f32.
 * - inputs: "a b:bf16 c:f32:1024 d::1024x64:1x1024", blanks between: a name, its dtype, its shape, its strides in elements.
 *   What is left out or empty is `dtype`, the whole shape, packed. Names that the expression uses need not be listed.
 * - outputs: "bf16 f32:1x64 @a": a dtype and strides, or an input whose memory it is. What is left out is the
 *   expression's own dtype, packed.
 * - scalars: "alpha=0.5 n:i64=3": a name, its kind and its value: f64 and a number of attune's own if they are left out. */
typedef struct attune_elementwise_words {
  const char *expression, *shape, *dtype, *inputs, *outputs, *scalars;
  attune_accuracy accuracy;
} attune_elementwise_words;

/* A described call and its operands. */
typedef struct attune_evaluation attune_evaluation;

/* The call that `words` describe, into *out, without memory yet; the words need not outlive the call. The caller destroys
 * it. Errors: INVALID_ARGUMENT (what is wrong in which of the words; a mistake in the expression, with its place; no
 * elements), OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_evaluation_create(attune_evaluation **out, const attune_elementwise_words *words);

/* Releases it; work that uses its operands must be done. NULL does nothing. */
ATTUNE_API void attune_evaluation_destroy(attune_evaluation *evaluation);

/* The problem's text, for attune_tune and attune_explain. Borrowed. */
ATTUNE_API const char *attune_evaluation_problem(const attune_evaluation *evaluation);

/* The bytes that a call reads and writes: each element of each operand once. */
ATTUNE_API uint64_t attune_evaluation_bytes(const attune_evaluation *evaluation);

/* Takes memory for the operands on `stream`'s device and fills the inputs with random numbers, the same ones for the same
 * seed; expressions with logarithms, say, get positive ones. `stream` must outlive the evaluation. Errors:
 * INVALID_ARGUMENT (also: placed before), OUT_OF_MEMORY (says what is needed and what there is), DEVICE_ERROR. */
ATTUNE_API attune_status attune_evaluation_place(attune_evaluation *evaluation, attune_stream *stream, uint64_t seed);

/* What attune_elementwise takes with the words' expression. Without data before attune_evaluation_place. Outputs are in
 * the expression's order. Borrowed. */
ATTUNE_API const attune_elementwise_operands *attune_evaluation_operands(const attune_evaluation *evaluation);

/* What a check found. */
typedef struct attune_evaluation_errors {
  int64_t elements, checked; /* of the shape; of those, compared */
  double max_error;          /* the largest error as a fraction of what the contract allows: above 1 is wrong */
  /* The largest difference from the value of the formula, which is rounded only where the text casts inside, in units of
   * the last place of the output's dtype; of outputs that are not floating-point it says nothing. */
  double max_ulps;
} attune_evaluation_errors;

/* Fills the inputs anew, runs the call once by `tuner`, waits, and compares at most `most` elements, drawn from all
 * (<= 0: all of them), with their values in long double, or in double where that is the same. The text is also computed
 * as it is written, before anything is simplified; another number then is an infinite max_error. Errors: INVALID_ARGUMENT
 * (also: not placed), and those of attune_elementwise. Wrong numbers are no error. */
ATTUNE_API attune_status attune_evaluation_check(attune_evaluation *evaluation, attune_tuner *tuner, int64_t most,
                                                 attune_evaluation_errors *out);

/* The element of row-major number `index` of an operand as the latest check had it, broadcast to the whole shape, into
 * *out: `tensor` counts outputs, then inputs as attune_evaluation_operands has them. An input that is an output's memory
 * has what it held before the call. out->kind is f64, i64, bool or c128; an u64 is its bits; the name is NULL. Errors:
 * INVALID_ARGUMENT (no such tensor or element; no check before). On the host it reads the operands themselves. */
ATTUNE_API attune_status attune_evaluation_element(const attune_evaluation *evaluation, int tensor, int64_t index,
                                                   attune_scalar *out);

#ifdef __cplusplus
}
#endif
#endif
