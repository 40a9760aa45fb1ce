/* SPDX-License-Identifier: Apache-2.0
 * pass.h: an epilogue as a pass of its own over D, which holds alpha op(A) op(B) + beta C. */
#ifndef AT_GEMM_EPILOGUE_PASS_H
#define AT_GEMM_EPILOGUE_PASS_H

#include "ops/gemm/problem/epilogue.h"
#ifdef AT_WITH_CUDA
#include "src/cuda/jit/jit.h"
#endif

/* The product alone, of real types of 16 bits and more. */
static inline at_gemm at_gemm_without_epilogue(const at_gemm *g) {
  at_gemm out = *g;
  out.epilogue = (attune_gemm_epilogue){0};
  out.scaling = (attune_gemm_scaling){0};
  out.gated = ATTUNE_GATED_NONE;
  out.ld_aux = out.ld_residual = out.stride_aux = out.stride_residual = 0;
  return out;
}

/* Where alpha op(A) op(B) + beta C is, with the type of D: D itself, but for a gated problem. NULL: it is 0. */
typedef struct at_pass_input {
  const void *z;
  int64_t ld, stride;
} at_pass_input;

static inline at_pass_input at_pass_input_of_d(const at_gemm *g, const at_gemm_operands *o) {
  return (at_pass_input){o->d, g->ldd, g->stride_d};
}

/* Runs the pass in the stream's order after a product of nothing, whose D is beta C, or 0 for a gated problem, which
 * need not be written. On a GPU its kernel may have to be compiled first. */
attune_status at_gemm_pass(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o);

/* On the host, now, by at most `threads` threads. */
void at_gemm_pass_host(const at_gemm *g, const at_gemm_operands *o, at_pass_input from, int threads);

/* A piece of a column of D, for the loops of one instruction set. */
typedef struct at_pass_piece {
  const at_gemm *g;
  const at_gemm_operands *o;
  at_pass_input from;
  int64_t batch, row, rows, column; /* rows <= AT_PASS_ROWS; row is a multiple of 8 */
} at_pass_piece;
enum { AT_PASS_ROWS = 512 };
typedef void (*at_pass_fn)(const at_pass_piece *piece);
extern void at_pass_portable(const at_pass_piece *piece);
extern void at_pass_avx2(const at_pass_piece *piece);
extern void at_pass_avx512(const at_pass_piece *piece);

#ifdef AT_WITH_CUDA
/* The kernels of the pass for a problem, as far as it needs them. */
typedef struct at_pass_kernels {
  at_jit_kernel *pass, *sums; /* the element by element part; the bias gradient */
} at_pass_kernels;

/* Texts of the two; *pass and *sums are NULL where the epilogue needs no such kernel, else the caller frees them. */
attune_status at_pass_texts(const at_gemm *g, char **pass, char **sums);
at_kernel_source at_pass_source(const char *text, bool sums);

/* Compiles or finds them; at_pass_release lets them go. */
attune_status at_pass_open(at_pass_kernels *out, const at_gemm *g, attune_device *device);
void at_pass_release(at_pass_kernels *kernels);
attune_status at_pass_launch(const at_pass_kernels *kernels, const at_gemm *g, const at_gemm_operands *o,
                             at_pass_input from, attune_stream *stream);
#endif

#endif
