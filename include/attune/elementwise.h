/* SPDX-License-Identifier: Apache-2.0
 * elementwise.h: any expression over elements, "gelu(a + b) * b", as one kernel at the speed of memory, on any device.
 *
 * - Language: docs/expressions.md describes it, with its functions and dtypes. A text is compiled to a graph, and the
 *   kernel is generated from the graph: the text itself never reaches a compiler.
 * - Shapes: the inputs broadcast to the outputs' shape by torch's rule; all outputs have one shape. Any strides are
 *   allowed.
 * - Dtypes: the expression determines them, by torch's promotion. Results are converted to the output's dtype.
 * - In place: an output may be the memory of an input with the same element size and strides. Any other overlap of an
 *   output is refused.
 * - Random numbers: rand() and randn() use the call's generator, in its portable mode, and give the same bits on every
 *   device: draw k is what the k-th call of attune_random_uniform (for rand(), all of which come first) or
 *   attune_random_normal would write for as many f32 elements as the outputs have, in row-major order.
 * - Accuracy: strict: IEEE arithmetic, in f32 for f16, bf16 and 8-bit floats, and functions intended to be within 2
 *   units in the last place; docs/accuracy.md lists measured errors. A winner's verification allows each function 4
 *   units in f32, 8 in f64 (128 for lgamma and tgamma), 32 in complex dtypes (400 for a power). reduced: on CUDA also
 *   the device's fast functions. Results have the same bits in every run; between devices and implementations they may
 *   differ within these limits.
 * - Problems: equal expressions with other names, blanks or order are one problem. Sizes are grouped into classes: a
 *   winner serves all sizes within a quarter of an octave that have the same divisibility. */
#ifndef ATTUNE_ELEMENTWISE_H
#define ATTUNE_ELEMENTWISE_H

#include <attune/plan.h>
#include <attune/random.h>
#include <attune/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of inputs, outputs and scalars of one expression. */
#define ATTUNE_ELEMENTWISE_INPUTS 16
/* See ATTUNE_ELEMENTWISE_INPUTS. */
#define ATTUNE_ELEMENTWISE_OUTPUTS 8
/* See ATTUNE_ELEMENTWISE_INPUTS. */
#define ATTUNE_ELEMENTWISE_SCALARS 8

/* A number that may change from call to call without a new kernel. It promotes as a Python number does in torch: by its
 * kind only. */
typedef struct attune_scalar {
  const char *name;
  attune_dtype kind; /* f64, i64, bool or c128. 0: f64; integer and imaginary must then be 0 */
  double value;      /* of f64; the real part of c128 */
  double imaginary;  /* of c128 */
  int64_t integer;   /* of i64 and bool */
} attune_scalar;

/* Operands of one call. Set unused fields to zero, for example by `= {0}`. */
typedef struct attune_elementwise_operands {
  size_t size;                  /* sizeof this struct, or 0 (types.h) */
  const attune_tensor *outputs; /* in the expression's order */
  int output_count;
  const attune_tensor *inputs; /* in any order, matched by name; the expression must use each */
  int input_count;
  const attune_scalar *scalars;
  int scalar_count;
  attune_generator *generator; /* for rand() and randn(); NULL if the expression has neither */
  attune_accuracy accuracy;
} attune_elementwise_operands;

/* Computes the expression on the stream's device with the fastest known implementation; if none is known, the tuner's
 * mode decides. Asynchronous, except while it tunes or compiles a kernel for the first time. The caller keeps the
 * operands' memory and must leave it valid until the stream has done this work; everything else is read during the
 * call. Errors: INVALID_ARGUMENT (null; a mistake in the text, with its place; a name unknown, missing or not used;
 * shapes that do not broadcast; a dtype that a function does not support; overlap; a generator that is missing or in
 * mode torch; an expression too long for a problem's text, ATTUNE_PROBLEM_CHARS), UNSUPPORTED, OUT_OF_MEMORY,
 * DEVICE_ERROR, CAPTURING (the generator is not registered with the graph that is being captured). After an error
 * nothing was launched. The tuner may be used by any thread, the stream by one at a time. In capture: uses the stored
 * winner or the default, never tunes. */
ATTUNE_API attune_status attune_elementwise(attune_tuner *tuner, attune_stream *stream, const char *expression,
                                            const attune_elementwise_operands *operands);

/* Creates the plan that attune_elementwise would use now, for calls without a look-up, into *out; the caller destroys
 * it before the tuner. There must be at least one element. Errors and threads as attune_elementwise. */
ATTUNE_API attune_status attune_elementwise_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                                        const char *expression,
                                                        const attune_elementwise_operands *operands);

/* Runs a plan of attune_elementwise_plan_create on any stream of its device; allocates nothing. Outputs, inputs and
 * scalars must match the plan's: in the same order, with the same dtypes, kinds, shapes and strides, and aligned at
 * least as well; data, values of scalars and the generator may differ. An output may be the memory of an input only if
 * it was when the plan was made. Names are ignored. Errors: INVALID_ARGUMENT (null; a plan of another operation; a
 * stream of another device; operands that do not match the plan; overlap), DEVICE_ERROR, CAPTURING. A plan may run in
 * many threads at once, each on a stream of its own. Allowed in capture. */
ATTUNE_API attune_status attune_elementwise_plan_run(const attune_plan *plan, attune_stream *stream,
                                                     const attune_elementwise_operands *operands);

/* Writes the problem's text into out[size], always terminated: sizes, layout of the operands, and the canonical
 * expression: "elementwise 16777216 strict out=f32 : f32 i0, f32 i1: i0 + i1". The sizes are the call's own;
 * attune_tune and attune_explain replace them by their class. Data pointers are used only for alignment and for
 * detecting in-place operands; they may be NULL, which counts as aligned. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any
 * thread. */
ATTUNE_API attune_status attune_elementwise_problem_format(char *out, size_t size, const char *expression,
                                                           const attune_elementwise_operands *operands);

#ifdef __cplusplus
}
#endif
#endif
