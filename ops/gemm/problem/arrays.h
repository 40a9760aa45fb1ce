/* SPDX-License-Identifier: Apache-2.0
 * arrays.h: a batch whose matrices are where arrays of pointers say: the part of its problem and its operands that is
 * checked, normalised, written and read. The operands' a, b, c and d are the arrays. */
#ifndef AT_GEMM_ARRAYS_H
#define AT_GEMM_ARRAYS_H

#include "ops/gemm/problem/problem.h"

/* "none", "host", "device"; NULL behind. */
extern const char *const at_gemm_pointers_names[];
bool at_gemm_read_pointers(const char *name, uint8_t *out);

/* INVALID_ARGUMENT if what a caller's problem says of pointers does not fit together. */
attune_status at_gemm_check_pointers(const attune_gemm_problem *p);

/* problem.alignment of arrays on the device whose matrices are aligned to `alignment`: 0 where those of the larger type
 * are aligned to more, their elements. */
static inline uint8_t at_gemm_promised_alignment(unsigned dtype, unsigned dtype_out, int alignment) {
  const int in = (int)attune_dtype_size(at_gemm_part(dtype)), out = (int)attune_dtype_size(at_gemm_part(dtype_out));
  return alignment < (in > out ? in : out) ? 0 : (uint8_t)alignment;
}

/* Completes *g. The strides become those of the matrices that a search tunes with: every matrix starts at a multiple of
 * AT_ALIGNMENT from the first. */
void at_gemm_normalise_pointers(const attune_gemm_problem *p, at_gemm *g);

/* The arrays as buffers behind the others, filled with the addresses of the matrices. */
void at_gemm_add_arrays(const at_gemm *g, at_buffer *out, int *count);

/* INVALID_ARGUMENT naming the array that is in memory of the other side; UNSUPPORTED for what the device cannot do. */
attune_status at_gemm_check_sides(const attune_device *device, const attune_gemm_problem *p,
                                  const attune_gemm_operands *o);

/* As at_gemm_check_operands: arrays in host memory pointer by pointer. at_gemm_check_sides comes first. */
attune_status at_gemm_check_arrays(const attune_gemm_problem *p, const attune_gemm_operands *o, at_gemm_use *use);

/* INVALID_ARGUMENT naming a matrix of an array in host memory that is aligned to less than `least`, which one is. */
attune_status at_gemm_fail_array_alignment(const attune_gemm_problem *p, const attune_gemm_operands *o, int least);

/* As at_gemm_check_apart, of arrays in host memory; `o` is normalised as g is. The cost is that of sorting them. */
attune_status at_gemm_check_arrays_apart(const at_gemm *g, const at_gemm_operands *o, bool products, bool swap);

/* The operands of matrix i of arrays in host memory. */
static inline at_gemm_operands at_gemm_operands_at(const at_gemm *g, const at_gemm_operands *o, int64_t i) {
  at_gemm_operands one = *o;
  one.a = o->a ? ((const void *const *)o->a)[i] : NULL;
  one.b = o->b ? ((const void *const *)o->b)[i] : NULL;
  one.d = ((void *const *)o->d)[i];
  one.c = g->c == AT_C_SEPARATE ? ((const void *const *)o->c)[i] : g->c == AT_C_INPLACE ? one.d : NULL;
  return one;
}

/* The product of one of the matrices. */
static inline at_gemm at_gemm_one_of(const at_gemm *g) {
  at_gemm one = *g;
  one.pointers = ATTUNE_POINTERS_NONE;
  one.batch = 1;
  one.stride_a = one.stride_b = one.stride_c = one.stride_d = 0;
  return one;
}

#endif
