/* SPDX-License-Identifier: Apache-2.0
 * reference_epilogue.h: private to ops/gemm/reference/: what an epilogue must make of a product, in float64. */
#ifndef AT_GEMM_REFERENCE_EPILOGUE_H
#define AT_GEMM_REFERENCE_EPILOGUE_H

#include "ops/gemm/problem/epilogue.h"
#include "ops/gemm/reference/reference.h"

/* The operands of an epilogue as they were, in float64: matrices m x n x batch, packed. NULL: there is none. */
struct at_epilogue_reference {
  double *bias, *residual, *aux; /* aux: of a gradient; of a mask 1 and -1 */
  double scale;                  /* of D; 1: there is none */
  double *sums, *magnitudes;     /* of A or B, for their bias gradient: of elements and of their absolute values */
};

/* Reads them from the operands in host memory, which lie as at_gemm_buffer_places says. */
attune_status at_epilogue_reference_create(struct at_epilogue_reference **out, const at_gemm *g,
                                           const void *const seen[AT_MAX_BUFFERS]);
void at_epilogue_reference_destroy(struct at_epilogue_reference *e);

/* z: alpha op(A) op(B) + beta C + bias; y: D before it is rounded; and by how much each may be off, given the error of
 * alpha op(A) op(B) + beta C. */
typedef struct at_epilogue_element {
  double z, y, z_error, y_error;
} at_epilogue_element;
at_epilogue_element at_epilogue_expect(const at_reference *r, const at_gemm_scalars *s, int64_t b, int64_t i, int64_t j,
                                       double sum, double error);

/* D of a gated product: `sum` and `error` are those of its g and of its u. */
at_epilogue_element at_epilogue_expect_gated(const at_reference *r, const at_gemm_scalars *s, int64_t b, int64_t i,
                                             int64_t j, const double sum[2], const double error[2]);

/* The error of aux, where it is written, and of a bias gradient as fractions of what is allowed; infinity for a byte
 * between aux's columns that was changed. */
double at_epilogue_compare_aux(const at_reference *r, const at_outputs *outputs, int64_t b, int64_t i, int64_t j,
                               const at_epilogue_element *e);
double at_epilogue_compare_vector(const at_reference *r, const at_outputs *outputs);
bool at_epilogue_gaps_untouched(const at_reference *r, const at_outputs *outputs, int64_t b, int64_t j);

#endif
