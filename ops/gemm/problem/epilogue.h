/* SPDX-License-Identifier: Apache-2.0
 * epilogue.h: what follows a product, as a part of its problem: checked, normalised, written and read. */
#ifndef AT_GEMM_PROBLEM_EPILOGUE_H
#define AT_GEMM_PROBLEM_EPILOGUE_H

#include "ops/gemm/problem/problem.h"
#include "tuning/op/columns.h"

/* Does a caller's problem have an epilogue? */
static inline bool at_gemm_asks_epilogue(const attune_gemm_problem *p) {
  uint64_t all;
  memcpy(&all, &p->epilogue, sizeof all);
  return (all | p->gated | (p->scaling.scale_d && !at_gemm_8bit(p->dtype))) != 0;
}

/* Checks a gated problem, not the rest of its epilogue: what is halved, and that it has none of what gated products
 * have not. INVALID_ARGUMENT. */
attune_status at_gemm_check_gated(const attune_gemm_problem *p, at_gemm_c c);

/* Checks the caller's epilogue and puts it into *g, whose other fields are complete. `row`: the caller's m and n have
 * changed places. INVALID_ARGUMENT. */
attune_status at_gemm_normalise_epilogue(const attune_gemm_problem *p, bool row, at_gemm *g);

/* Checks the caller's operands that an epilogue, which itself is not checked yet, needs; adds their address bits to
 * *bits. */
attune_status at_gemm_check_epilogue_operands(const attune_gemm_epilogue *e, const attune_gemm_operands *o,
                                              attune_dtype dtype_out, uintptr_t *bits);

/* Type of the elements of bias and bias_gradient, and their number. */
static inline attune_dtype at_gemm_bias_dtype(const at_gemm *g) {
  return (attune_dtype)g->epilogue.bias_dtype;
}
static inline int64_t at_gemm_bias_count(const at_gemm *g) {
  return g->epilogue.bias == ATTUNE_BIAS_M ? g->m : g->n;
}
static inline int64_t at_gemm_bias_gradient_count(const at_gemm *g) {
  return g->epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_A || g->epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_M
             ? g->m
             : g->n;
}
static inline bool at_gemm_sums_inputs(const at_gemm *g) {
  return g->epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_A || g->epilogue.bias_gradient == ATTUNE_BIAS_GRADIENT_B;
}
static inline bool at_gemm_writes_aux(const at_gemm *g) {
  return g->epilogue.aux != ATTUNE_AUX_NONE && !g->epilogue.gradient;
}
static inline bool at_gemm_epilogue_matrices(const at_gemm *g) {
  return g->epilogue.aux != ATTUNE_AUX_NONE || g->epilogue.residual;
}
static inline bool at_gemm_reads_aux(const at_gemm *g) {
  return g->epilogue.aux != ATTUNE_AUX_NONE && g->epilogue.gradient;
}

/* Of a gated problem: where in the product the u of element (row, column) of D is; its g is at the same place. */
typedef struct at_gemm_place {
  int64_t row, column;
} at_gemm_place;
static inline at_gemm_place at_gemm_second_half(const at_gemm *g, int64_t row, int64_t column) {
  return (at_gemm_place){row + (g->gated == ATTUNE_GATED_M ? g->m / 2 : 0),
                         column + (g->gated == ATTUNE_GATED_N ? g->n / 2 : 0)};
}

/* Is there more to do than the bias gradient? */
static inline bool at_gemm_epilogue_changes_d(const at_gemm *g) {
  const attune_gemm_epilogue e = g->epilogue;
  return e.bias || e.activation || e.aux || e.residual || e.clamp || g->gated || g->scaling.scale_d;
}

/* The matrix that a bias gradient sums: `count` sums, `stride` elements apart, of `length` elements, `step` apart. */
typedef struct at_gemm_summed {
  const void *data;
  attune_dtype dtype;
  int64_t count, length, step, stride;
} at_gemm_summed;
at_gemm_summed at_gemm_summed_of(const at_gemm *g, const at_gemm_operands *o);

/* From the first byte of aux to behind its last. */
size_t at_gemm_aux_bytes(const at_gemm *g);

/* " bias=m relu residual", each where it is there, with a blank before it. `swap`: m and n are called n and m. True
 * when it fitted. */
bool at_gemm_put_epilogue(const at_gemm *g, bool swap, char *out, size_t size, size_t *at);

/* `failure` where two words of a text or a column, `subject`, contradict or repeat each other. */
attune_status at_gemm_check_words(attune_status failure, const char *subject, const char *words);

/* Reads one of those words. False: it is none. */
bool at_gemm_read_epilogue(const char *word, attune_gemm_problem *p);

/* The words, for messages. */
#define AT_GEMM_EPILOGUE_WORDS                                                                           \
  "bias=m or bias=n (:f32), relu, gelu, gelu_tanh, silu, sigmoid, tanh, aux=input, aux=mask, gradient, " \
  "gated=m, gated=n, "                                                                                   \
  "bias-gradient=a "                                                                                     \
  "(b, m, n), residual, clamp"

/* Columns of a workload's row, each with a word of the text: epilogue = "bias=n;relu". */
attune_status at_gemm_epilogue_column(const at_column *field, attune_gemm_problem *p, bool *known);

#endif
