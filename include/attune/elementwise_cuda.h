/* SPDX-License-Identifier: Apache-2.0
 * elementwise_cuda.h: a function of one element, in CUDA C of the program's own, as an elementwise kernel: what
 * torch.cuda.jiterator offers. For what docs/expressions.md cannot say; an expression is the better choice where it can:
 * it runs on the host too, is checked against a reference, and its text reaches no compiler.
 *
 *   attune_elementwise_cuda(tuner, stream, "template <typename T> T axpy(T x, T y, T alpha) { return alpha * x + y; }",
 *                           "axpy", &operands);
 *
 * - Trust: the source is compiled and run as it is. It can read and write all memory of the device that the process can,
 *   never end, and include files that the compiler finds. Only give it what you would link into the program. These
 *   functions are the only ones of attune from which a caller's text reaches a compiler.
 * - The function: its arguments are one element of each input, in the operands' order, then the scalars. With one output
 *   it returns the value. With several it returns nothing and has a reference to each output behind the scalars:
 *   "template <typename T> void f(T x, T y, T alpha, T &sum, T &product)". Helpers may stand beside it; functions without
 *   __device__ are the device's too. Names that begin with at_, AT_ or fn_ are attune's. Undefine your macros at the end.
 * - Types: all arguments are of one type, T: that of the promoted dtype of inputs and scalars, by torch's rules
 *   (docs/expressions.md); float for f16, bf16 and the 8-bit floats; for c64 and c128 a struct with re and im and with
 *   + - * / == !=, which exp, log, sqrt, sin, cos, abs and conj take too. A template deduces T; a plain function takes
 *   what converts. What comes out is converted to the output's dtype, once.
 * - Operands: as attune_elementwise's: broadcasting, strides, in place, up to 16 inputs, 8 outputs and 8 scalars, at
 *   least one input or scalar. Names of inputs and scalars are not looked at and may be NULL; nor is
 *   the accuracy. There is no generator.
 * - The function must give the same for the same arguments, whatever thread computes it: each element is computed once
 *   or more often, in any order. There is no reference to verify candidates with: each is compared, bit for bit but for
 *   the bits of a NaN, with the plainest kernel of the same function. So a wrong function stays wrong; the tuner
 *   finds out only whether its kernels agree. Products and sums may be contracted, as nvcc does it.
 * - Identity: the same source with other blanks or comments, or another name of the function, is one problem with one
 *   winner and one kernel, if it has no quotes, backslashes, # or unusual use of the name; else every byte counts. A
 *   problem's text has a hash of the source, not the source: attune_tune and attune_explain know it while the process
 *   remembers a call or has a plan of the same source, and the command cannot measure it. */
#ifndef ATTUNE_ELEMENTWISE_CUDA_H
#define ATTUNE_ELEMENTWISE_CUDA_H

#include <attune/elementwise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most characters of a source. */
#define ATTUNE_ELEMENTWISE_CUDA_CHARS 65536

/* Computes outputs = name(inputs, scalars) element by element on the stream's device, with the fastest known kernel; the
 * tuner's mode says what happens if none is known. `source` is CUDA C++ and ends at its first zero byte; `name` is the
 * function in it: letters, digits and _. Asynchronous, memory, threads and captures as attune_elementwise. Errors:
 * UNSUPPORTED (the stream is of the host: this needs a CUDA device), INVALID_ARGUMENT (null; source longer than
 * ATTUNE_ELEMENTWISE_CUDA_CHARS; a name that is none; operands as of attune_elementwise; the source does not compile: the
 * message has the first errors with the caller's lines, as "name(3): error: ...", and the log of attune all of them),
 * OUT_OF_MEMORY, DEVICE_ERROR. After an error nothing was launched. What the function does to the device is
 * told as the error of a later call, as CUDA does. */
ATTUNE_API attune_status attune_elementwise_cuda(attune_tuner *tuner, attune_stream *stream, const char *source,
                                                 const char *name, const attune_elementwise_operands *operands);

/* The plan that attune_elementwise_cuda would use now, for attune_elementwise_plan_run, into *out; the caller destroys it
 * before the tuner. Errors and threads as attune_elementwise_cuda. There must be at least one element. */
ATTUNE_API attune_status attune_elementwise_cuda_plan_create(attune_plan **out, attune_tuner *tuner,
                                                             attune_stream *stream, const char *source,
                                                             const char *name,
                                                             const attune_elementwise_operands *operands);

/* The problem's text, into out[size], always terminated, as attune_elementwise_problem_format: "elementwise 4096 strict
 * out=f32 : f32 i0, f64 s0: cuda 1 6f1c...". Nothing is compiled; no device is needed. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_elementwise_cuda_problem_format(char *out, size_t size, const char *source,
                                                                const char *name,
                                                                const attune_elementwise_operands *operands);

#ifdef __cplusplus
}
#endif
#endif
