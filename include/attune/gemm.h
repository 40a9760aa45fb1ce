/* SPDX-License-Identifier: Apache-2.0
 * gemm.h: general matrix multiply, D = alpha op(A) op(B) + beta C, batched, on any device.
 *
 * - Shapes: op(A) is m x k, op(B) is k x n, C and D are m x n; op is the identity (N), the transpose (T) or the
 *   conjugate transpose (C).
 * - Layout: column-major by default: element (i,j) of a matrix X is X[i + j*ldx]. Row-major: X[i*ldx + j].
 * - Edges, as in BLAS: m = 0, n = 0 or an empty batch (ATTUNE_EMPTY_BATCH) does nothing. k = 0 or alpha = 0 gives D =
 *   beta C and reads neither A nor B, except for a bias gradient that sums them. beta = 0 never reads C, so NaN in C
 *   does not spread.
 * - Special values: a tuned winner was tested with NaN, infinities, denormals and zeros in A, B, C, alpha and beta.
 *   They propagate as IEEE 754 requires (0 times NaN is NaN, denormals are kept), except for those that the vendor's
 *   default itself loses for the problem.
 *   Complex products compute on real and imaginary parts, without the recovery of infinities of C's Annex G: where a
 *   part of an element is not finite by these rules, at least one part of it is not finite.
 * - Accuracy: the accumulation type is f64 for f64 and c128, else f32. strict: IEEE arithmetic in that type, with fused
 *   multiply-add. Split-K is allowed if its partial sums stay in that type. If beta C is added to an f16 or bf16
 *   result, alpha op(A) op(B) may be rounded to f16 or bf16 first, as in cuBLAS's default. reduced: also TF32 for f32,
 *   and partial sums in the output type. A complex element counts as a whole: its error is bounded by its size, for
 *   each of its parts. equivalent: also complex products by three real ones, which lose more of the smaller part.
 * - Workload columns (workload.h): dtype, m, n and k are required; transa, transb, batch, dtype_out, layout, lda, ldb,
 *   ldc, ldd, stride_a, stride_b, stride_c, stride_d, epilogue, scaling, pointers and the pitches of an epilogue's
 *   matrices are optional. A row without an operation is a gemm. */
#ifndef ATTUNE_GEMM_H
#define ATTUNE_GEMM_H

#include <attune/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* op of a matrix: as stored (N), transposed (T), or conjugated and transposed (C, the same as T for real types). */
typedef enum attune_transpose { ATTUNE_N = 0, ATTUNE_T = 1, ATTUNE_C = 2 } attune_transpose;
/* Which elements are contiguous in memory: those of a column, or those of a row. */
typedef enum attune_layout { ATTUNE_COLUMN_MAJOR = 0, ATTUNE_ROW_MAJOR = 1 } attune_layout;

/* As a batch stride of a matrix that is read (A, B, C, a residual, a gradient's aux; never D): the whole batch uses one
 * matrix. */
#define ATTUNE_BROADCAST (-1)

/* As `batch`: no matrices; a call does nothing. 0 is the default, one matrix. */
#define ATTUNE_EMPTY_BATCH (-1)

/* Elements of the bias vector: none; one for each of the m rows of D; one for each of its n columns. */
typedef enum attune_bias { ATTUNE_BIAS_NONE = 0, ATTUNE_BIAS_M = 1, ATTUNE_BIAS_N = 2 } attune_bias;

/* The auxiliary matrix of an epilogue: none; the activation's input z, with the type of D; a bit for each element of D,
 * 1 where z > 0, least significant bit first, with ld_aux and stride_aux counted in bits. */
typedef enum attune_aux { ATTUNE_AUX_NONE = 0, ATTUNE_AUX_INPUT = 1, ATTUNE_AUX_RELU_MASK = 2 } attune_aux;

/* The vector of a bias gradient: none; the sums of op(A) over k, m of them; of op(B) over k, n of them; of D's rows, m
 * of them; of D's columns, n of them. */
typedef enum attune_bias_gradient {
  ATTUNE_BIAS_GRADIENT_NONE = 0,
  ATTUNE_BIAS_GRADIENT_A = 1,
  ATTUNE_BIAS_GRADIENT_B = 2,
  ATTUNE_BIAS_GRADIENT_M = 3,
  ATTUNE_BIAS_GRADIENT_N = 4
} attune_bias_gradient;

/* The halves of a gated product's z = alpha op(A) op(B) + bias, along m or along n, which is even: the first half g and
 * the second half u give D = f(g) u, with m / 2 rows, or with n / 2 columns. None: the product is not gated. */
typedef enum attune_gated { ATTUNE_GATED_NONE = 0, ATTUNE_GATED_M = 1, ATTUNE_GATED_N = 2 } attune_gated;

/* Where the matrices of a batch are: the strides say it; arrays of pointers say it, which lie in memory that the
 * host can read, or in memory that the device can. */
typedef enum attune_pointers {
  ATTUNE_POINTERS_NONE = 0,
  ATTUNE_POINTERS_HOST = 1,
  ATTUNE_POINTERS_DEVICE = 2
} attune_pointers;

/* What follows the product in the same problem; zeros: nothing. With z = alpha op(A) op(B) + beta C + bias:
 *   forward:   D = clamp(f(z) + residual); aux = z, or z > 0, for a later gradient
 *   gradient:  D = clamp(z f'(aux) + residual): f' is the derivative of the activation; aux is read
 *   gated:     D = clamp(f(g) u + residual), see attune_gated: m, n, A, B and bias are those of the whole product, as
 *              [gate; up] weights have them; ldd, stride_d and residual are those of the smaller D. Without C, aux,
 *              gradients; an f may be none
 * With scaling.scale_d, which is all of a scaling that these types have, D is that f32 times the clamped value. A
 * bias gradient of D goes with none of residual, clamp and scale_d. All else is computed in the accumulation type
 * and rounded once, or alpha op(A) op(B) + beta C and z are rounded to the type of D on the way, as separate kernels
 * do; an activation is within a unit roundoff of D's type (f32: 4 of f32's) times the larger of |z| and, of sigmoid
 * and tanh, 1. NaN propagates through every step but one: relu's gradient selects instead of multiplying. It is 0
 * where aux <= 0 or the mask's bit is 0, whatever z is, and z elsewhere. So an aux of NaN gives z; but the mask of a
 * NaN is 0, and its gradient 0. gelu, gelu_tanh and silu are NaN at -infinity, which they multiply by 0, and their
 * derivatives may be NaN at both infinities. */
typedef struct attune_gemm_epilogue {
  uint8_t bias;          /* attune_bias */
  uint8_t bias_dtype;    /* attune_dtype of bias and bias_gradient: that of D (0), or f32 where D is f16 or bf16 */
  uint8_t activation;    /* attune_activation (types.h) */
  uint8_t aux;           /* attune_aux */
  uint8_t gradient;      /* 1: of the activation, at aux */
  uint8_t bias_gradient; /* attune_bias_gradient; of one matrix only, no batch */
  uint8_t residual;      /* 1: a matrix with the type of D is added after the activation */
  uint8_t clamp;         /* 1: to clamp_min ... clamp_max */
} attune_gemm_epilogue;

/* What multiplies a matrix of 8-bit elements: nothing; one f32; one f32 for each row of op(A), or column of op(B);
 * one for each 128 elements along k of such a row or column; one for each 128 x 128 elements of op(A) or op(B). With
 * L = k / 128, rounded up: the scale of element (i,p) of op(A), or (p,i) of op(B), is scale[i] of a vector, scale[i
 * + (p / 128) rows] of 1 x 128, rows being m or n, and scale[p / 128 + (i / 128) L4] of 128 x 128, L4 being L
 * rounded up to a multiple of 4. */
typedef enum attune_scale {
  ATTUNE_SCALE_NONE = 0,
  ATTUNE_SCALE_TENSOR = 1,
  ATTUNE_SCALE_VECTOR = 2,
  ATTUNE_SCALE_1X128 = 3,
  ATTUNE_SCALE_128X128 = 4
} attune_scale;

/* Products of f8e4m3, f8e5m2 and i8; zeros: no scales. With a' = scale_a (A - zero_a) and b' = scale_b (B - zero_b):
 *   V = alpha op(a') op(b') + beta C,   amax_d = max |V|,   D = scale_d V
 * - Scales of tensors and vectors multiply sums, those of blocks elements, or sums over the block.
 * - f8: e5m2 with e5m2 is refused. D is f32, f16, bf16, e4m3, or e5m2 if an input is; for an 8-bit D, C is bf16. Sums
 *   are in f32; those of at most 128 products may have 14 bits, as the tensor cores of capability 9.0 have them.
 *   reduced: all of them.
 * - i8: sums are exact in i32, modulo 2^32. D is i32, without scales and with alpha and beta converted to i32: towards
 *   zero, beyond its range to its nearest number, NaN to 0; one that only becomes 0 there, as 0.5, still needs its
 *   matrices. Or D is i8, f16, bf16 or f32, where C has the type of D. Scales of 128 elements are for f8 only.
 * - An 8-bit D is rounded to nearest even and saturates to its largest numbers; NaN is NaN in f8 and 0 in i8. amax_d
 *   leaves NaN out. A batch shares scale_a, scale_b and scale_d of one f32, and has no others.
 * - m, n, k and the batch are at most 2^31 - 1; larger ones are UNSUPPORTED. No epilogue, no arrays of pointers. */
typedef struct attune_gemm_scaling {
  uint8_t dtype_b;          /* attune_dtype of B; 0: dtype. f8 only */
  uint8_t scale_a, scale_b; /* attune_scale */
  uint8_t scale_d;          /* 1: one f32, of an 8-bit D, or of a D that an epilogue makes of real types */
  uint8_t amax_d;           /* 1: one f32 is written; not of an i32 D */
  uint8_t zero_a, zero_b;   /* 1: one i8, of i8 matrices */
  uint8_t reserved;         /* 0 */
} attune_gemm_scaling;

/* A problem, without pointers and scalars. Start from ATTUNE_GEMM_PROBLEM_INIT, or from zeros and a dtype, and set what
 * differs: 0 is the default in every field except m, n and k. */
typedef struct attune_gemm_problem {
  size_t size;            /* sizeof this struct, or 0 (types.h) */
  attune_dtype dtype;     /* of A and B: f64, f32, f16, bf16, c64, c128, f8e4m3, f8e5m2, i8 */
  attune_dtype dtype_out; /* of C and D; 0: dtype. f16 and bf16 inputs may have f32 outputs; 8-bit ones: see scaling */
  attune_layout layout;
  attune_transpose trans_a, trans_b;
  int64_t m, n, k; /* >= 0 */
  int64_t batch;   /* number of matrices; 0: one. For an empty batch set ATTUNE_EMPTY_BATCH */
  /* In elements; 0: packed. Column-major: lda >= the rows of A as stored; row-major: >= its columns. */
  int64_t lda, ldb, ldc, ldd;
  int64_t stride_a, stride_b, stride_c, stride_d; /* in elements, between matrices of the batch; 0: packed */
  attune_contract contract;
  attune_gemm_epilogue epilogue; /* of f64, f32, f16 and bf16 only */
  attune_gemm_scaling scaling;   /* of 8-bit types; of an epilogue scale_d */
  uint8_t pointers;              /* attune_pointers: of attune_gemm_batched; no strides, epilogue or 8-bit types then */
  uint8_t alignment; /* of matrices at ATTUNE_POINTERS_DEVICE: a power of two up to 128 that every pointer is a multiple
                          of; 0: aligned to their elements, or the real parts of them */
  uint8_t gated;     /* attune_gated: of an epilogue, with fields that may be zeros */
  uint8_t reserved[5]; /* 0 */
  /* In elements (a relu mask: in bits, multiples of 8); 0: packed (ld_aux of a relu mask: m, in row-major n,
   * rounded up to a multiple of 128). Of matrices that the epilogue has; ignored without. */
  int64_t ld_aux, ld_residual, stride_aux, stride_residual;
} attune_gemm_problem;

/* f32, column-major, not transposed, one matrix, packed, strict; m, n and k are 0. */
#define ATTUNE_GEMM_PROBLEM_INIT                                                                                      \
  {                                                                                                                   \
    sizeof(attune_gemm_problem), ATTUNE_F32, (attune_dtype)0, ATTUNE_COLUMN_MAJOR, ATTUNE_N, ATTUNE_N, 0, 0, 0, 1, 0, \
        0, 0, 0, 0, 0, 0, 0, ATTUNE_CONTRACT_INIT, {0, 0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0,       \
        {0, 0, 0, 0, 0}, 0, 0, 0, 0                                                                                   \
  }

/* Pointers and scalars of one call. The pointers are to memory that the device can access, aligned to their element; on
 * the host a complex one may be aligned to its real part only. C may be NULL if beta = 0. D may be the same memory as C
 * (then ldc = ldd and stride_c = stride_d); otherwise no element of D may share a byte with an element of A, B or C
 * that is read. D may lie in their gaps: between columns that are ld apart, or between the matrices of a batch. The
 * scalars are converted to the accumulation type; only complex problems read their imaginary parts. */
typedef struct attune_gemm_operands {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  double alpha;
  const void *a;
  const void *b;
  double beta;
  const void *c;
  void *d;
  double alpha_imag, beta_imag; /* of complex problems; alpha = 0 and beta = 0 above mean both parts */
  /* Of the epilogue; not looked at where it has none. No element of D, aux (where it is written) or bias_gradient may
   * share a byte with another operand, nor of a relu mask that is written what lies between its columns; to add to D
   * itself use beta = 1 and C = D. A batch shares the vectors. */
  const void *bias;
  const void *residual;
  void *aux; /* read by a gradient, else written */
  void *bias_gradient;
  double clamp_min, clamp_max; /* -INFINITY, INFINITY: no bound */
  /* Of the scaling, on the device; not looked at where it has none. D and amax_d share no byte with another. On a GPU a
   * single f32 that is not aligned to 16 bytes may cost a copy. */
  const float *scale_a, *scale_b, *scale_d;
  float *amax_d; /* written */
  const int8_t *zero_a, *zero_b;
} attune_gemm_operands;

/* Runs the problem on the stream's device with the fastest known implementation; if none is known, the tuner's mode
 * decides. Asynchronous, except while it tunes. The caller keeps the operands' memory and must leave it valid until the
 * stream has done this work. Errors: INVALID_ARGUMENT (null, negative or overflowing size, leading dimension or stride
 * too small, pointer not aligned to its element, D that overlaps what is read, unknown dtype), UNSUPPORTED,
 * OUT_OF_MEMORY, DEVICE_ERROR. A failing database, cache or budget is never an error here: the default implementation
 * runs and the log says why. The tuner may be used by any thread, the stream by one at a time. In capture: uses the
 * stored winner or the default, never tunes. */
ATTUNE_API attune_status attune_gemm(attune_tuner *tuner, attune_stream *stream, const attune_gemm_problem *problem,
                                     const attune_gemm_operands *operands);

/* The matrices of a batch one by one: arrays of problem.batch pointers, where problem.pointers says. */
typedef struct attune_gemm_batched_operands {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  double alpha, alpha_imag;
  const void *const *a;
  const void *const *b;
  double beta, beta_imag;
  const void *const *c; /* may be NULL if beta = 0; the array `d`, or one with equal pointers: D is C */
  void *const *d;
} attune_gemm_batched_operands;

/* attune_gemm of matrices that lie anywhere. problem.pointers is ATTUNE_POINTERS_HOST or, on a GPU,
 * ATTUNE_POINTERS_DEVICE; the strides are 0. Arrays and matrices must stay valid and unchanged, but for D, until the
 * stream has done this work; for a capture, as long as its graph is launched.
 * - Arrays in host memory are checked: no pointer is NULL or misaligned, no two matrices of D overlap, and none
 *   overlaps a matrix that is read. Each D is compared with those next to it in address order, up to 8 that reach into
 *   it. Inputs may be equal or overlap. On a GPU the arrays are copied to the device in stream order, or read by the
 *   call.
 * - Arrays in device memory are not read by the call, so that they may be written by earlier work of the stream; what
 *   they hold is not checked.
 *
 * attune_gemm, attune_gemm_plan_create, attune_gemm_plan_run and attune_gemm_problem_format take such problems as well,
 * with the arrays as the operands' a, b, c and d.
 * Errors: as attune_gemm; INVALID_ARGUMENT names the array and the index of a bad pointer, or an array on the wrong
 * side. */
ATTUNE_API attune_status attune_gemm_batched(attune_tuner *tuner, attune_stream *stream,
                                             const attune_gemm_problem *problem,
                                             const attune_gemm_batched_operands *operands);

/* Creates the plan that attune_gemm would use now, for calls without a look-up, into *out; the caller destroys it
 * before the tuner. `operands` are an example of later ones:
 * - Later operands must be aligned at least as well. The least aligned operand counts, up to 128 bytes on a GPU and 16
 *   on the host.
 * - If beta is 0 here, later calls must have beta = 0. If not, they may have any beta, including 0, and always need C:
 *   the same memory as D if it is here, else memory that D does not overlap.
 * - A run with alpha = 0 does not read A and B.
 *
 * m, n and k must be > 0, the batch not empty and alpha != 0. Errors and threads as attune_gemm. */
ATTUNE_API attune_status attune_gemm_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                                 const attune_gemm_problem *problem,
                                                 const attune_gemm_operands *operands);

/* Runs a plan of attune_gemm_plan_create on any stream of its device; allocates nothing. Errors: INVALID_ARGUMENT
 * (null; a plan of another operation, which the message names; a stream of another device; operands that the plan does
 * not support, or whose D overlaps what is read), DEVICE_ERROR. A plan may run in many threads at once, each on a
 * stream of its own. Allowed in capture. plan.h has the other functions of plans. */
ATTUNE_API attune_status attune_gemm_plan_run(const attune_plan *plan, attune_stream *stream,
                                              const attune_gemm_operands *operands);

/* Writes the problem as attune stores it, "gemm bf16 tn 4096x16x4096 strict", into out[size], always terminated.
 * Row-major becomes column-major. Words are added for leading dimensions and strides that are not packed, for the use
 * of C, and for an alignment below 128 bytes, as "align=16" (that of the least aligned operand). On the host 16 bytes
 * and more are one class, and attune_explain and attune_tune drop the word. `operands` NULL: aligned to 128 bytes and
 * beta = 0. Errors: INVALID_ARGUMENT (as attune_gemm; m, n or k = 0 or an empty batch, which have no text; out too
 * small: ATTUNE_PROBLEM_CHARS suffice). Any thread. */
ATTUNE_API attune_status attune_gemm_problem_format(char *out, size_t size, const attune_gemm_problem *problem,
                                                    const attune_gemm_operands *operands);

/* Reads a problem's text into *out, the reverse of attune_gemm_problem_format. The words of the operands (beta, align)
 * are checked but not stored, but for align with pointers=device. The problem is column-major unless the text has the
 * word row-major, and strict unless it names an accuracy. Pitches of what the problem does not have are ignored: ldc=
 * and stride_c= without beta (with beta=inplace they are those of D), ld_aux= and stride_aux= without aux, ld_residual=
 * and stride_residual= without residual, strides of a single matrix. Errors: INVALID_ARGUMENT; the message names the
 * word that cannot be read. Any thread. */
ATTUNE_API attune_status attune_gemm_problem_parse(attune_gemm_problem *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
