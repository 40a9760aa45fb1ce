/* SPDX-License-Identifier: Apache-2.0
 * elementwise_cuda.h: a function of one element, in the program's own CUDA C, as an elementwise kernel, like
 * torch.cuda.jiterator. For functions that docs/expressions.md cannot express; prefer an expression if one is possible:
 * it also runs on the host, is checked against a reference, and its text never reaches a compiler.
 *
 *   attune_elementwise_cuda(tuner, stream, "template <typename T> T axpy(T x, T y, T alpha) { return alpha * x + y; }",
 *                           "axpy", &operands);
 *
 * - Trust: the source is compiled and run unchanged. It can access all device memory that the process can access, run
 *   forever, and include files that the compiler finds. Pass only code that you would link into the program. These
 *   functions are the only ones of attune that pass a caller's text to a compiler.
 * - The function: its arguments are one element of each input, in the operands' order, then the scalars. With one
 *   output it returns the value. With several it returns nothing and takes a reference to each output after the
 *   scalars: "template <typename T> void f(T x, T y, T alpha, T &sum, T &product)". The source may contain helper
 *   functions; functions without __device__ are compiled for the device too. Names that begin with at_, AT_ or fn_ are
 *   reserved for attune. Undefine your macros at the end.
 * - Types: all arguments have one type, T: that of the promoted dtype of inputs and scalars, by torch's rules
 *   (docs/expressions.md); float for f16, bf16 and the 8-bit floats; for c64 and c128 a struct with re and im and with
 *   + - * / == !=, which exp, log, sqrt, sin, cos, abs and conj also accept. A template deduces T; a plain function may
 *   take any type that T converts to. Results are converted to the output's dtype, once.
 * - Operands: as in attune_elementwise: broadcasting, strides, in place, up to 16 inputs, 8 outputs and 8 scalars, at
 *   least one input or scalar. Names of inputs and scalars are ignored and may be NULL; the accuracy is ignored too.
 *   There is no generator.
 * - The function must give equal results for equal arguments, whichever thread computes it: each element is computed
 *   one or more times, in any order. Candidates cannot be verified against a reference: each is compared, bit for bit
 *   except for the bits of a NaN, with the plainest kernel of the function. So a wrong function stays wrong; the tuner
 *   only checks that its kernels agree. Products and sums may be contracted, as by nvcc.
 * - Identity: a source that differs only in blanks, comments or the name of the function is one problem with one winner
 *   and one kernel, if it has no quotes, backslashes, # or unusual use of the name; otherwise every byte counts. A
 *   problem's text has a hash of the source, not the source: attune_tune and attune_explain know it while the process
 *   remembers a call or has a plan of that source; the attune command cannot measure it. */
#ifndef ATTUNE_ELEMENTWISE_CUDA_H
#define ATTUNE_ELEMENTWISE_CUDA_H

#include <attune/elementwise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum number of characters of a source. */
#define ATTUNE_ELEMENTWISE_CUDA_CHARS 65536

/* Computes outputs = name(inputs, scalars) element by element on the stream's device, with the fastest known kernel; if
 * none is known, the tuner's mode decides. `source` is CUDA C++ and ends at its first zero byte; `name` is a function
 * in it: letters, digits and _. Asynchronous execution, memory, threads and captures as attune_elementwise. Errors:
 * UNSUPPORTED (a host stream: this needs a CUDA device), INVALID_ARGUMENT (null; source longer than
 * ATTUNE_ELEMENTWISE_CUDA_CHARS; an invalid name; operands as in attune_elementwise; the source does not compile: the
 * message has the first errors with the caller's lines, as "name(3): error: ...", and attune's log has all of them),
 * OUT_OF_MEMORY, DEVICE_ERROR. After an error nothing was launched. Errors that the function causes on the device are
 * reported by a later call, as in CUDA. */
ATTUNE_API attune_status attune_elementwise_cuda(attune_tuner *tuner, attune_stream *stream, const char *source,
                                                 const char *name, const attune_elementwise_operands *operands);

/* Creates the plan that attune_elementwise_cuda would use now, for attune_elementwise_plan_run, into *out; the caller
 * destroys it before the tuner. There must be at least one element. Errors and threads as attune_elementwise_cuda. */
ATTUNE_API attune_status attune_elementwise_cuda_plan_create(attune_plan **out, attune_tuner *tuner,
                                                             attune_stream *stream, const char *source,
                                                             const char *name,
                                                             const attune_elementwise_operands *operands);

/* Writes the problem's text into out[size], always terminated, as attune_elementwise_problem_format: "elementwise 4096
 * strict out=f32 : f32 i0, f64 s0: cuda 1 6f1c...". Compiles nothing and needs no device. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_elementwise_cuda_problem_format(char *out, size_t size, const char *source,
                                                                const char *name,
                                                                const attune_elementwise_operands *operands);

#ifdef __cplusplus
}
#endif
#endif
