/* SPDX-License-Identifier: Apache-2.0
 * scaling.h: products of 8-bit elements and their scales, as a part of the problem: checked, normalised, written and
 * read. */
#ifndef AT_GEMM_PROBLEM_SCALING_H
#define AT_GEMM_PROBLEM_SCALING_H

#include "ops/gemm/problem/problem.h"
#include "tuning/op/columns.h"

enum { AT_SCALE_BLOCK = 128 }; /* elements along k that share a scale of the two block modes */

static inline bool at_gemm_asks_scaling(const attune_gemm_problem *p) {
  uint64_t all;
  memcpy(&all, &p->scaling, sizeof all);
  return all != 0;
}

/* Checks types and scales of a problem whose types are of 8 bits, and that others have none. INVALID_ARGUMENT. */
attune_status at_gemm_check_scaling(const attune_gemm_problem *p, attune_dtype out);

/* Puts the checked scaling into *g, whose other fields are complete. `row`: A and B have changed places. */
attune_status at_gemm_normalise_scaling(const attune_gemm_problem *p, bool row, at_gemm *g);

/* Checks the operands of a checked scaling, and a C that is not of D's type; adds their address bits to *bits. `swap`:
 * A is the caller's B. */
attune_status at_gemm_check_scaling_operands(const attune_gemm_scaling *s, attune_dtype out, bool reads_c, bool swap,
                                             const attune_gemm_operands *o, uintptr_t *bits);

/* The buffers from AT_GEMM_SCALE_A on. */
void at_gemm_add_scaling_buffers(const at_gemm *g, at_buffer *out, int *count);

/* Number of scales of A, or of B. */
size_t at_gemm_scale_count(const at_gemm *g, bool b);

/* Where the scale of line i (a row of op(A), a column of op(B)) at depth p lies: every `group` lines share it. */
typedef struct at_scale_layout {
  int64_t group, line, block;
} at_scale_layout;
at_scale_layout at_gemm_scale_layout(uint8_t scale, int64_t lines, int64_t k);
static inline int64_t at_scale_at(at_scale_layout l, int64_t i, int64_t p) {
  return i / l.group * l.line + p / AT_SCALE_BLOCK * l.block;
}

/* A and B, with what belongs to them, change places. */
static inline void at_gemm_swap_operands(at_gemm_operands *run, const attune_gemm_operands *o) {
  run->a = o->b;
  run->b = o->a;
  run->scale_a = o->scale_b;
  run->scale_b = o->scale_a;
  run->zero_a = o->zero_b;
  run->zero_b = o->zero_a;
}

/* " dtype_b=f8e5m2 scale_a=tensor", each where it is there. `swap`: A is called b, and B a. True when it fitted. */
bool at_gemm_put_scaling(const at_gemm *g, bool swap, char *out, size_t size, size_t *at);

/* Reads one of those words. False: it is none. */
bool at_gemm_read_scaling(const char *word, attune_gemm_problem *p);

#define AT_GEMM_SCALING_WORDS \
  "dtype_b=, scale_a= and scale_b= (tensor, vector, 1x128, 128x128), scale_d, amax_d, zero_a, zero_b"

/* The column "scaling" of a workload: such words. */
attune_status at_gemm_scaling_column(const at_column *field, attune_gemm_problem *p, bool *known);

#endif
