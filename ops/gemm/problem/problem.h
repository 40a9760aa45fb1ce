/* SPDX-License-Identifier: Apache-2.0
 * problem.h: the normalised GEMM problem that implementations see: column-major, every size explicit, plain bytes. */
#ifndef AT_GEMM_PROBLEM_H
#define AT_GEMM_PROBLEM_H

#include <attune/gemm.h>

#include <string.h>

#include "ops/ops.h"
#include "tuning/op/contract.h"
#include "tuning/op/op.h"
#include "tuning/op/problem_text.h"

typedef enum at_gemm_c { AT_C_NONE = 0, AT_C_INPLACE = 1, AT_C_SEPARATE = 2 } at_gemm_c;

/* D = alpha op(A) op(B) + beta C, and what follows. m, n, k, batch >= 1. Strides: 0 = the same matrix for the whole
 * batch (always 0 when batch is 1). With AT_C_NONE beta is 0 and ldc, stride_c are 0; with AT_C_INPLACE c == d, ldc
 * = ldd and stride_c = stride_d. */
typedef struct at_gemm {
  int64_t m, n, k, batch;
  int64_t lda, ldb, ldc, ldd;
  int64_t stride_a, stride_b, stride_c, stride_d;
  int64_t ld_aux, ld_residual, stride_aux, stride_residual; /* 0 where the epilogue has none; of a mask in bits */
  uint64_t workspace_cap;                                   /* never 0 */
  attune_gemm_epilogue epilogue;                            /* bias_dtype is 0 without vectors */
  attune_gemm_scaling scaling;                              /* dtype_b is 0 where it is dtype */
  uint8_t dtype;                                            /* of A and B */
  uint8_t dtype_out;                                        /* of C and D */
  uint8_t trans_a, trans_b;                                 /* attune_transpose; ATTUNE_C for complex types only */
  uint8_t accuracy;                                         /* attune_accuracy */
  uint8_t deterministic;
  uint8_t c;         /* at_gemm_c */
  uint8_t alignment; /* all pointers are multiples of this: a power of two, 1 to AT_ALIGNMENT bytes */
  uint8_t pointers;  /* attune_pointers; the strides are then those of matrices that are tuned with (arrays.h) */
  uint8_t gated;     /* attune_gated: D has half of the rows, or of the columns */
  uint8_t spare[6];  /* 0 */
} at_gemm;
_Static_assert(sizeof(at_gemm) == 18 * 8 + 8 + 16, "a normalised problem is the key: no padding");

/* Products of elements of 8 bits, which may have scales. */
static inline bool at_gemm_8bit(unsigned dtype) {
  return dtype == ATTUNE_I8 || dtype == ATTUNE_F8E4M3 || dtype == ATTUNE_F8E5M2;
}

/* Does something follow the product? */
static inline bool at_gemm_has_epilogue(const at_gemm *g) {
  uint64_t all;
  memcpy(&all, &g->epilogue, sizeof all);
  return (all | g->gated | (g->scaling.scale_d && !at_gemm_8bit(g->dtype))) != 0;
}
_Static_assert(sizeof(attune_gemm_epilogue) == sizeof(uint64_t), "an epilogue is one word");

/* Is it a product alone, of types of 16 bits and more, of one matrix or of matrices at equal distances? */
static inline bool at_gemm_plain_product(const at_gemm *g) {
  return !at_gemm_has_epilogue(g) && !at_gemm_8bit(g->dtype) && !g->pointers;
}

/* Are there operands besides those of a plain product? */
static inline bool at_gemm_extended(const at_gemm *g) {
  uint64_t all;
  memcpy(&all, &g->scaling, sizeof all);
  return at_gemm_has_epilogue(g) || all != 0 || g->pointers;
}
_Static_assert(sizeof(attune_gemm_scaling) == sizeof(uint64_t), "scaling is one word");

/* The type of B, and of C. */
static inline attune_dtype at_gemm_dtype_b(const at_gemm *g) {
  return (attune_dtype)(g->scaling.dtype_b ? g->scaling.dtype_b : g->dtype);
}
static inline attune_dtype at_gemm_dtype_c(const at_gemm *g) {
  return g->dtype_out == ATTUNE_F8E4M3 || g->dtype_out == ATTUNE_F8E5M2 ? ATTUNE_BF16 : (attune_dtype)g->dtype_out;
}

/* The operands of a normalised problem: the public struct with A and B swapped for row-major. c is valid only when
 * problem.c is not NONE; beta may still be 0 then, and C must not be read. */
typedef attune_gemm_operands at_gemm_operands;

static inline const at_gemm *at_gemm_of(const void *problem) {
  return (const at_gemm *)problem;
}

/* Rows and columns of A and B as stored. */
static inline int64_t at_gemm_rows_a(const at_gemm *g) {
  return g->trans_a ? g->k : g->m;
}
static inline int64_t at_gemm_cols_a(const at_gemm *g) {
  return g->trans_a ? g->m : g->k;
}
static inline int64_t at_gemm_rows_b(const at_gemm *g) {
  return g->trans_b ? g->n : g->k;
}
static inline int64_t at_gemm_cols_b(const at_gemm *g) {
  return g->trans_b ? g->k : g->n;
}

/* Of D, and of a residual. */
static inline int64_t at_gemm_rows_d(const at_gemm *g) {
  return g->gated == ATTUNE_GATED_M ? g->m / 2 : g->m;
}
static inline int64_t at_gemm_cols_d(const at_gemm *g) {
  return g->gated == ATTUNE_GATED_N ? g->n / 2 : g->n;
}

/* The matrices of a caller's batch. Below 0: there is no such batch. */
static inline int64_t at_gemm_batch(const attune_gemm_problem *p) {
  return p->batch == 0 ? 1 : p->batch == ATTUNE_EMPTY_BATCH ? 0 : p->batch;
}

/* A complex element is two real ones, its parts. */
static inline bool at_gemm_complex(unsigned dtype) {
  return dtype == ATTUNE_C64 || dtype == ATTUNE_C128;
}
static inline attune_dtype at_gemm_part(unsigned dtype) {
  return dtype == ATTUNE_C64 ? ATTUNE_F32 : dtype == ATTUNE_C128 ? ATTUNE_F64 : (attune_dtype)dtype;
}

/* Are all elements aligned to their whole size? Complex ones may be aligned to their parts only, which GPUs, unlike the
 * host, cannot load. */
static inline bool at_gemm_aligned(const at_gemm *g) {
  return !at_gemm_complex(g->dtype) || g->alignment >= attune_dtype_size((attune_dtype)g->dtype);
}

static inline int64_t at_gemm_element_parts(unsigned dtype) {
  return at_gemm_complex(dtype) ? 2 : 1;
}

/* A scalar as a problem with inputs of `dtype` sees it: what is 0 in the accumulation type is 0. */
static inline double at_gemm_scalar_in(attune_dtype dtype, double scalar) {
  return at_gemm_part(dtype) != ATTUNE_F64 && (float)scalar == 0.0f ? 0.0 : scalar;
}
static inline bool at_gemm_alpha_is_0(attune_dtype dtype, const attune_gemm_operands *o) {
  return at_gemm_scalar_in(dtype, o->alpha) == 0.0 &&
         (!at_gemm_complex(dtype) || at_gemm_scalar_in(dtype, o->alpha_imag) == 0.0);
}
static inline bool at_gemm_beta_is_0(attune_dtype dtype, const attune_gemm_operands *o) {
  return at_gemm_scalar_in(dtype, o->beta) == 0.0 &&
         (!at_gemm_complex(dtype) || at_gemm_scalar_in(dtype, o->beta_imag) == 0.0);
}

/* Does a call read A and B? A bias gradient of theirs does so whatever alpha is. */
static inline bool at_gemm_reads_inputs(const attune_gemm_problem *p, const attune_gemm_operands *o) {
  const unsigned gradient = p->epilogue.bias_gradient;
  return p->k != 0 &&
         (!at_gemm_alpha_is_0(p->dtype, o) || gradient == ATTUNE_BIAS_GRADIENT_A || gradient == ATTUNE_BIAS_GRADIENT_B);
}

/* How a call uses its operands, as far as the problem depends on it. */
typedef struct at_gemm_use {
  at_gemm_c c;
  uint8_t alignment; /* as in at_gemm */
} at_gemm_use;

/* problem.c: the slot of at_gemm_op: classes that are the same to the device become AT_ALIGNMENT. */
void at_gemm_fold(void *problem, const attune_device *device);

/* problem.c: checks a caller's problem and normalises it; *swap is true for row-major (A and B change places). Zero
 * sizes pass: the caller looks for them. The messages name the caller's own arguments. */
attune_status at_gemm_normalise(const attune_gemm_problem *problem, at_gemm_use use, at_gemm *out, bool *swap);

/* problem.c: checks a caller's operands against the checked problem; says how they are used. */
attune_status at_gemm_check_operands(const attune_gemm_problem *problem, const attune_gemm_operands *operands,
                                     at_gemm_use *use);

/* Nothing to do; only D = beta C to do. */
static inline bool at_gemm_empty(const at_gemm *g) {
  return g->m == 0 || g->n == 0 || g->batch == 0;
}

/* text.c, workload_columns.c: slots of at_gemm_op. */
attune_status at_gemm_format(const void *problem, char *out, size_t size);
attune_status at_gemm_parse(const char *text, void *problem);
/* `as` 1: as a row-major caller wrote it. */
attune_status at_gemm_show(const void *problem, int as, char *out, size_t size);
attune_status at_gemm_family(const void *problem, char *out, size_t size);
#define AT_GEMM_DTYPES                                                                                \
  (AT_DTYPES_FLOAT | AT_DTYPE_BIT(ATTUNE_C64) | AT_DTYPE_BIT(ATTUNE_C128) | AT_DTYPE_BIT(ATTUNE_I8) | \
   AT_DTYPE_BIT(ATTUNE_F8E4M3) | AT_DTYPE_BIT(ATTUNE_F8E5M2))
#define AT_GEMM_DTYPES_OUT (AT_GEMM_DTYPES | AT_DTYPE_BIT(ATTUNE_I32))
extern const char *const at_gemm_columns[];
attune_status at_gemm_from_fields(const at_column *fields, int count, char *out, size_t size, char *label,
                                  size_t label_size);
/* problem.c: the leading dimensions and strides by their names. */
enum { AT_GEMM_PITCHES = 12 };
void at_gemm_pitches(attune_gemm_problem *problem, at_number out[AT_GEMM_PITCHES]);

/* INVALID_ARGUMENT when a problem read from words is aligned to less than its smallest elements. */
attune_status at_gemm_check_alignment(const at_gemm *g);

/* A, B, D, and C where it is separate; behind them those of the epilogue that it has, or the arrays of pointers, in
 * this order. */
enum {
  AT_GEMM_A,
  AT_GEMM_B,
  AT_GEMM_D,
  AT_GEMM_C,
  AT_GEMM_BIAS,
  AT_GEMM_RESIDUAL,
  AT_GEMM_AUX,
  AT_GEMM_BIAS_GRADIENT,
  AT_GEMM_SCALE_A, /* of the scaling */
  AT_GEMM_SCALE_B,
  AT_GEMM_SCALE_D,
  AT_GEMM_AMAX_D,
  AT_GEMM_ZERO_A,
  AT_GEMM_ZERO_B,
  AT_GEMM_A_POINTERS,
  AT_GEMM_B_POINTERS,
  AT_GEMM_D_POINTERS,
  AT_GEMM_C_POINTERS,
  AT_GEMM_BUFFERS
};
/* Where each lies among the buffers of a problem; -1: it has none. */
void at_gemm_buffer_places(const at_gemm *g, int out[AT_GEMM_BUFFERS]);
attune_status at_gemm_buffers(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count);

/* reference.c: the trusted result for verification. */
attune_status at_gemm_reference_create(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                       void *const pointers[AT_MAX_BUFFERS]);
attune_status at_gemm_reference_compare(void *reference, const double *scalars, const at_outputs *outputs,
                                        double *max_error);
void at_gemm_reference_destroy(void *reference);

/* The usual scalars of a problem that reads C, for measuring and verification. beta = 1 is what accumulating programs
 * use, and the strictest: some kernels then round alpha A B to the output's type before they add C (seen: cuBLAS's
 * default and cublasLt 13.1, f16 and bf16, operands aligned to 128 bytes), which is allowed. */
#define AT_GEMM_TEST_ALPHA (-1.5)
#define AT_GEMM_TEST_BETA 1.0
#define AT_GEMM_TEST_CLAMP_MIN (-0.75)
#define AT_GEMM_TEST_CLAMP_MAX 1.25

/* The scalars of a call. Those that the problem has are in the order of at_operand_type.scalars: alpha, alpha_imag
 * (complex), beta (with C), beta_imag (both), clamp_min and clamp_max (with a clamp); the others are 0. */
typedef struct at_gemm_scalars {
  double alpha, alpha_imag, beta, beta_imag, clamp_min, clamp_max;
} at_gemm_scalars;
static inline at_gemm_scalars at_gemm_scalars_of(const at_gemm *g, const double *scalars) {
  const bool is_complex = at_gemm_complex(g->dtype), c = g->c != AT_C_NONE;
  return (at_gemm_scalars){.alpha = scalars[0],
                           .alpha_imag = is_complex ? scalars[1] : 0.0,
                           .beta = c ? scalars[is_complex ? 2 : 1] : 0.0,
                           .beta_imag = c && is_complex ? scalars[3] : 0.0,
                           .clamp_min = g->epilogue.clamp ? scalars[c ? 2 : 1] : 0.0,
                           .clamp_max = g->epilogue.clamp ? scalars[c ? 3 : 2] : 0.0};
}
/* The same in the precision of the accumulation type. */
static inline at_gemm_scalars at_gemm_scalars_rounded(const at_gemm *g, at_gemm_scalars s) {
  if (at_gemm_part(g->dtype) == ATTUNE_F64) return s;
  return (at_gemm_scalars){(double)(float)s.alpha,     (double)(float)s.alpha_imag, (double)(float)s.beta,
                           (double)(float)s.beta_imag, (double)(float)s.clamp_min,  (double)(float)s.clamp_max};
}

/* D = beta C for k = 0 or alpha = 0, in stream order; beta = 0 writes zeros and does not read C. `g` has k >= 0 here.
 */
attune_status at_gemm_scale_host(attune_stream *stream, const at_gemm *g, const at_gemm_operands *operands);
attune_status at_gemm_scale_cuda(attune_stream *stream, const at_gemm *g, const at_gemm_operands *operands);

extern const at_op at_gemm_op;

/* The least accuracy of products, by type of their elements, as attune_accuracy; 0: what is asked for. Set before the
 * first tuner is there, and not changed then (ATTUNE_TF32). */
extern uint8_t at_gemm_least_accuracy[ATTUNE_C128 + 1] __attribute__((visibility("hidden")));

#endif
