/* SPDX-License-Identifier: Apache-2.0
 * problem.c: checks and normalises what a caller asks. On the way of every call: no loops, no division. */
#include "ops/gemm/problem/arrays.h"
#include "ops/gemm/problem/epilogue.h"
#include "ops/gemm/problem/scaling.h"

#include <string.h>

#include "src/base/backend.h"

/* One matrix as the caller sees it: `inner` elements lie side by side, `outer` such runs are ld apart. */
typedef struct matrix {
  int64_t inner, outer, ld, stride;
} matrix;

static inline bool half(attune_dtype dtype) {
  return dtype == ATTUNE_F16 || dtype == ATTUNE_BF16;
}

static inline bool is_known(attune_dtype dtype) {
  return (unsigned)dtype - 1u < 4u || at_gemm_complex(dtype);
}

/* Pointers, halves, or what is reserved. */
static inline bool has_more(const attune_gemm_problem *p) {
  uint64_t all;
  _Static_assert(offsetof(attune_gemm_problem, ld_aux) - offsetof(attune_gemm_problem, pointers) == sizeof all, "");
  memcpy(&all, &p->pointers, sizeof all);
  return all != 0;
}

static bool has_reserved(const attune_gemm_problem *p) {
  static const uint8_t zeros[sizeof p->reserved] = {0};
  return memcmp(p->reserved, zeros, sizeof zeros) != 0;
}

#define DTYPES "f64 (1), f32 (2), f16 (3), bf16 (4), i8 (7), f8e4m3 (14), f8e5m2 (15), c64 (16) or c128 (17)"
/* What may be wrong, if anything is. */
static attune_status check_kind_in_full(const attune_gemm_problem *p, attune_dtype out) {
  const bool small = at_gemm_8bit(p->dtype);
  if (!is_known(p->dtype) && !small) return AT_INVALID("problem.dtype is %d; should be " DTYPES, (int)p->dtype);
  if (!small && !is_known(out)) return AT_INVALID("problem.dtype_out is %d; should be 0, " DTYPES, (int)out);
  if (!small && out != p->dtype && !(half(p->dtype) && out == ATTUNE_F32))
    return AT_INVALID("problem.dtype_out is %s for %s inputs; should be %s%s", attune_dtype_name(out),
                      attune_dtype_name(p->dtype), attune_dtype_name(p->dtype), half(p->dtype) ? " or f32" : "");
  if ((unsigned)p->layout > 1)
    return AT_INVALID("problem.layout is %d; should be column-major (0) or row-major (1)", (int)p->layout);
  if ((unsigned)p->trans_a > 2 || (unsigned)p->trans_b > 2)
    return AT_INVALID("problem.trans_%c is %d; should be N (0), T (1) or C (2)", (unsigned)p->trans_a > 2 ? 'a' : 'b',
                      (int)((unsigned)p->trans_a > 2 ? p->trans_a : p->trans_b));
  if (has_reserved(p)) return AT_INVALID("problem.reserved is not 0; should be zeros");
  AT_TRY(at_gemm_check_pointers(p));
  if ((unsigned)p->contract.accuracy > 2) return at_fail_accuracy(&p->contract);
  return at_gemm_check_scaling(p, out);
}

static inline attune_status check_kind(const attune_gemm_problem *p, attune_dtype *out) {
  *out = p->dtype_out ? p->dtype_out : p->dtype;
  const bool dtypes = is_known(p->dtype) && (*out == p->dtype || (half(p->dtype) && *out == ATTUNE_F32));
  if (AT_LIKELY(dtypes && !has_more(p) && !at_gemm_asks_scaling(p) && (unsigned)p->layout <= 1 &&
                (unsigned)p->trans_a <= 2 && (unsigned)p->trans_b <= 2 && (unsigned)p->contract.accuracy <= 2))
    return ATTUNE_OK;
  return check_kind_in_full(p, *out);
}

uint8_t at_gemm_least_accuracy[ATTUNE_C128 + 1];

/* What is asked for, or what the process allows for the type if that is more. */
static inline uint8_t accuracy_of(const attune_gemm_problem *p) {
  const uint8_t asked = (uint8_t)p->contract.accuracy, least = at_gemm_least_accuracy[p->dtype];
  return asked > least ? asked : least;
}

static attune_status fail_size(const attune_gemm_problem *p) {
  const char *name = p->m < 0 ? "m" : p->n < 0 ? "n" : p->k < 0 ? "k" : NULL;
  const int64_t value = p->m < 0 ? p->m : p->n < 0 ? p->n : p->k;
  if (name) return AT_INVALID("problem.%s is %lld; should be 0 or more", name, (long long)value);
  return AT_INVALID("problem.batch is %lld; should be 1 or more, 0 for one, or ATTUNE_EMPTY_BATCH (-1)",
                    (long long)p->batch);
}

/* From the first element of a matrix that fits to behind its last. */
static inline int64_t span_of(const matrix *x) {
  return x->ld * (x->outer - 1) + x->inner;
}

/* Sizes that fit: ld * outer and stride * batch stay below 2^59 elements. */
static inline bool matrix_fits(const matrix *x, int64_t batch) {
  const int64_t limit = (int64_t)1 << 59;
  int64_t one, all;
  return !__builtin_mul_overflow(x->ld, x->outer, &one) && one < limit &&
         !__builtin_mul_overflow(x->stride, batch, &all) && all < limit;
}

static attune_status fail_matrix(char name, const matrix *x, int64_t batch, bool output) {
  if (x->ld < (x->inner > 1 ? x->inner : 1))
    return AT_INVALID("problem.ld%c is %lld; should be at least %lld, or 0 for packed", name, (long long)x->ld,
                      (long long)(x->inner > 1 ? x->inner : 1));
  if (x->stride == ATTUNE_BROADCAST)
    return AT_INVALID("problem.stride_%c is ATTUNE_BROADCAST, but the matrices of %c are written; should be 1 or more, "
                      "or 0 for packed",
                      name, name);
  if (x->stride < 0)
    return AT_INVALID("problem.stride_%c is %lld; should be 1 or more, or 0 for packed%s", name, (long long)x->stride,
                      output ? "" : ", or ATTUNE_BROADCAST");
  if (output && batch > 1 && matrix_fits(x, batch) && x->stride < span_of(x))
    return AT_INVALID("problem.stride_%c is %lld, so that the matrices of the batch overlap; should be at least %lld",
                      name, (long long)x->stride, (long long)span_of(x));
  return AT_INVALID("problem: matrix %c of %lld x %lld, ld %lld, stride %lld, batch %lld is larger than 2^62 bytes",
                    name, (long long)x->inner, (long long)x->outer, (long long)x->ld, (long long)x->stride,
                    (long long)batch);
}

/* Fills in packed sizes and checks; a broadcast stride becomes 0, and so does the stride of a batch of one. */
static inline attune_status check_matrix(char name, matrix *x, int64_t batch, bool output) {
  const bool broadcast = x->stride == ATTUNE_BROADCAST && !output;
  const int64_t least = x->inner > 1 ? x->inner : 1;
  if (x->ld == 0) x->ld = least;
  if (AT_UNLIKELY(x->ld < least)) return fail_matrix(name, x, batch, output);
  if (x->stride == 0 && __builtin_mul_overflow(x->ld, x->outer, &x->stride)) {
    x->stride = 0;
    return fail_matrix(name, x, batch, output);
  }
  if (broadcast) x->stride = 0;
  if (AT_UNLIKELY(x->stride < 0 || !matrix_fits(x, batch) || (output && batch > 1 && x->stride < span_of(x))))
    return fail_matrix(name, x, batch, output);
  if (batch == 1) x->stride = 0;
  return ATTUNE_OK;
}

/* What conjugates nothing is a transpose. */
static inline uint8_t trans_in(const attune_gemm_problem *p, attune_transpose trans) {
  return (uint8_t)(trans == ATTUNE_C && !at_gemm_complex(p->dtype) ? ATTUNE_T : trans);
}

attune_status at_gemm_normalise(const attune_gemm_problem *p, at_gemm_use use, at_gemm *g, bool *swap) {
  attune_dtype out;
  attune_status status = check_kind(p, &out);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  const int64_t m = p->m, n = p->n, k = p->k, batch = at_gemm_batch(p);
  if (AT_UNLIKELY((m | n | k | batch) < 0)) return fail_size(p);
  const bool row = p->layout == ATTUNE_ROW_MAJOR;
  matrix a = {.inner = (p->trans_a != ATTUNE_N) != row ? k : m, .ld = p->lda, .stride = p->stride_a};
  matrix b = {.inner = (p->trans_b != ATTUNE_N) != row ? n : k, .ld = p->ldb, .stride = p->stride_b};
  matrix c = {.inner = row ? n : m, .outer = row ? m : n, .ld = p->ldc, .stride = p->stride_c};
  matrix d = {.inner = c.inner, .outer = c.outer, .ld = p->ldd, .stride = p->stride_d};
  if (AT_UNLIKELY(p->gated)) {
    AT_TRY(at_gemm_check_gated(p, use.c));
    *((p->gated == ATTUNE_GATED_M) == row ? &d.outer : &d.inner) /= 2;
  }
  a.outer = (p->trans_a != ATTUNE_N) != row ? m : k;
  b.outer = (p->trans_b != ATTUNE_N) != row ? k : n;
  if (AT_UNLIKELY((status = check_matrix('a', &a, batch, false)) != ATTUNE_OK)) return status;
  if (AT_UNLIKELY((status = check_matrix('b', &b, batch, false)) != ATTUNE_OK)) return status;
  if (AT_UNLIKELY((status = check_matrix('d', &d, batch, true)) != ATTUNE_OK)) return status;
  if (use.c == AT_C_NONE)
    c.ld = c.stride = 0;
  else if (AT_UNLIKELY((status = check_matrix('c', &c, batch, false)) != ATTUNE_OK))
    return status;
  if (AT_UNLIKELY(use.c == AT_C_INPLACE && (c.ld != d.ld || c.stride != d.stride)))
    return AT_INVALID("operands.c is operands.d, but problem.%s; should be equal, or C another matrix",
                      c.ld != d.ld ? "ldc differs from ldd" : "stride_c differs from stride_d");
  *swap = row;
  *g = (at_gemm){.m = row ? n : m,
                 .n = row ? m : n,
                 .k = k,
                 .batch = batch,
                 .lda = row ? b.ld : a.ld,
                 .ldb = row ? a.ld : b.ld,
                 .ldc = c.ld,
                 .ldd = d.ld,
                 .stride_a = row ? b.stride : a.stride,
                 .stride_b = row ? a.stride : b.stride,
                 .stride_c = c.stride,
                 .stride_d = d.stride,
                 .workspace_cap = at_workspace_cap(p->contract.workspace_cap),
                 .dtype = (uint8_t)p->dtype,
                 .dtype_out = (uint8_t)out,
                 .trans_a = trans_in(p, row ? p->trans_b : p->trans_a),
                 .trans_b = trans_in(p, row ? p->trans_a : p->trans_b),
                 .accuracy = accuracy_of(p),
                 .deterministic = p->contract.deterministic != 0,
                 .c = (uint8_t)use.c,
                 .alignment = use.alignment,
                 .gated = p->gated && row ? (uint8_t)(ATTUNE_GATED_M + ATTUNE_GATED_N - p->gated) : p->gated};
  if (AT_UNLIKELY(at_gemm_8bit(p->dtype))) AT_TRY(at_gemm_normalise_scaling(p, row, g));
  if (AT_UNLIKELY(p->pointers)) at_gemm_normalise_pointers(p, g);
  return AT_LIKELY(!at_gemm_asks_epilogue(p)) ? ATTUNE_OK : at_gemm_normalise_epilogue(p, row, g);
}

static attune_status fail_operands(const attune_gemm_problem *p, const attune_gemm_operands *o, bool products) {
  const size_t in = attune_dtype_size(at_gemm_part(p->dtype)),
               out = attune_dtype_size(at_gemm_part(p->dtype_out ? p->dtype_out : p->dtype));
  const struct {
    const char *name;
    const void *pointer;
    size_t size;
    bool needed;
  } each[] = {{"a", o->a, in, products},
              {"b", o->b, in, products},
              {"c", o->c, out, !at_gemm_beta_is_0(p->dtype, o)},
              {"d", o->d, out, true}};
  for (size_t i = 0; i < AT_COUNT(each); i++) {
    if (!each[i].needed) continue;
    if (!each[i].pointer)
      return AT_INVALID("operands.%s is NULL; should point to the matrix%s", each[i].name,
                        i == 2 ? ", or operands.beta be 0" : "");
    if ((uintptr_t)each[i].pointer % each[i].size)
      return AT_INVALID("operands.%s is %p, which is not aligned for its elements; should be a multiple of %zu",
                        each[i].name, each[i].pointer, each[i].size);
  }
  return AT_INVALID("operands.d is the same memory as operands.%s; should not overlap it", o->d == o->a ? "a" : "b");
}

attune_status at_gemm_check_operands(const attune_gemm_problem *p, const attune_gemm_operands *o, at_gemm_use *use) {
  static const uint8_t low_bits[] = {
      0, 7, 3, 1, 1, [ATTUNE_I32] = 3, [ATTUNE_C64] = 3, [ATTUNE_C128] = 7}; /* of a part: size - 1 */
  attune_dtype dtype_out;
  const attune_status status = check_kind(p, &dtype_out);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  if (AT_UNLIKELY(p->pointers)) return at_gemm_check_arrays(p, o, use);
  const bool products = at_gemm_reads_inputs(p, o), reads_c = !at_gemm_beta_is_0(p->dtype, o);
  const uintptr_t in = low_bits[p->dtype], out = low_bits[dtype_out];
  const uintptr_t inputs = products ? (uintptr_t)o->a | (uintptr_t)o->b : 0,
                  outputs = (uintptr_t)o->d | (reads_c ? (uintptr_t)o->c : 0);
  const bool nulls = !o->d || (products && (!o->a || !o->b)) || (reads_c && !o->c);
  if (AT_UNLIKELY(nulls || (inputs & in) || (outputs & out) || (products && (o->d == o->a || o->d == o->b))))
    return fail_operands(p, o, products);
  uintptr_t all = inputs | outputs;
  if (AT_UNLIKELY(at_gemm_asks_epilogue(p))) AT_TRY(at_gemm_check_epilogue_operands(&p->epilogue, o, dtype_out, &all));
  if (AT_UNLIKELY(at_gemm_8bit(p->dtype) || at_gemm_asks_scaling(p)))
    AT_TRY(at_gemm_check_scaling_operands(&p->scaling, dtype_out, reads_c, false, o, &all));
  use->alignment = at_alignment_of(all);
  use->c = !reads_c ? AT_C_NONE : o->c == o->d ? AT_C_INPLACE : AT_C_SEPARATE;
  return ATTUNE_OK;
}

void at_gemm_fold(void *problem, const attune_device *device) {
  at_gemm *g = problem;
  g->alignment = at_alignment_fold(device, g->alignment);
  if (g->pointers && device->properties.kind == ATTUNE_DEVICE_HOST) g->pointers = ATTUNE_POINTERS_HOST;
}

static size_t extent(int64_t rows, int64_t cols, int64_t ld, int64_t stride, int64_t batch, size_t element) {
  return (size_t)(stride * (batch - 1) + ld * (cols - 1) + rows) * element;
}

/* The class is that of the least aligned pointer; each is aligned to its own elements, or their parts, at least. */
static size_t alignment_of(const at_gemm *g, size_t element) {
  return g->alignment > element ? g->alignment : element;
}

void at_gemm_buffer_places(const at_gemm *g, int out[AT_GEMM_BUFFERS]) {
  const bool there[AT_GEMM_BUFFERS] = {true,
                                       true,
                                       true,
                                       g->c == AT_C_SEPARATE,
                                       g->epilogue.bias != 0,
                                       g->epilogue.residual != 0,
                                       g->epilogue.aux != 0,
                                       g->epilogue.bias_gradient != 0,
                                       g->scaling.scale_a != 0,
                                       g->scaling.scale_b != 0,
                                       g->scaling.scale_d != 0,
                                       g->scaling.amax_d != 0,
                                       g->scaling.zero_a != 0,
                                       g->scaling.zero_b != 0,
                                       g->pointers != 0,
                                       g->pointers != 0,
                                       g->pointers != 0,
                                       g->pointers && g->c == AT_C_SEPARATE};
  for (int i = 0, count = 0; i < AT_GEMM_BUFFERS; i++) out[i] = there[i] ? count++ : -1;
}

/* Those of at_gemm_buffer_places behind C. */
static void add_epilogue_buffers(const at_gemm *g, at_buffer *out, int *count) {
  const attune_dtype vector = at_gemm_bias_dtype(g);
  const size_t result = attune_dtype_size((attune_dtype)g->dtype_out), element = vector ? attune_dtype_size(vector) : 0;
  const at_buffer of_vector = {.alignment = alignment_of(g, element), .dtype = vector},
                  of_matrix = {.alignment = alignment_of(g, result), .dtype = (attune_dtype)g->dtype_out};
  if (g->epilogue.bias) {
    out[*count] = of_vector;
    out[*count].bytes = (size_t)at_gemm_bias_count(g) * element;
    out[(*count)++].input = true;
  }
  if (g->epilogue.residual) {
    out[*count] = of_matrix;
    out[*count].bytes =
        extent(at_gemm_rows_d(g), at_gemm_cols_d(g), g->ld_residual, g->stride_residual, g->batch, result);
    out[(*count)++].input = true;
  }
  if (g->epilogue.aux) {
    out[*count] = of_matrix;
    if (g->epilogue.aux == ATTUNE_AUX_RELU_MASK) {
      out[*count].dtype = ATTUNE_U8;
      out[*count].alignment = g->alignment;
    }
    out[*count].bytes = at_gemm_aux_bytes(g);
    out[*count].output = at_gemm_writes_aux(g);
    out[(*count)++].input = at_gemm_reads_aux(g);
  }
  if (!g->epilogue.bias_gradient) return;
  out[*count] = of_vector;
  out[*count].bytes = (size_t)at_gemm_bias_gradient_count(g) * element;
  out[(*count)++].output = true;
}

attune_status at_gemm_buffers(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count) {
  const at_gemm *g = at_gemm_of(problem);
  const attune_dtype dtype = (attune_dtype)g->dtype, dtype_out = (attune_dtype)g->dtype_out;
  const size_t in = attune_dtype_size(dtype), result = attune_dtype_size(dtype_out);
  const size_t in_part = attune_dtype_size(at_gemm_part(dtype)), part = attune_dtype_size(at_gemm_part(dtype_out));
  const at_buffer input = {.alignment = alignment_of(g, in_part), .dtype = dtype, .input = true},
                  other = {.alignment = alignment_of(g, part), .dtype = dtype_out};
  out[AT_GEMM_A] = out[AT_GEMM_B] = input;
  out[AT_GEMM_B].dtype = at_gemm_dtype_b(g);
  out[AT_GEMM_A].bytes = extent(at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, g->batch, in);
  out[AT_GEMM_B].bytes = extent(at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, g->batch, in);
  out[AT_GEMM_D] = other;
  out[AT_GEMM_D].bytes = extent(at_gemm_rows_d(g), at_gemm_cols_d(g), g->ldd, g->stride_d, g->batch, result);
  out[AT_GEMM_D].input = g->c == AT_C_INPLACE;
  out[AT_GEMM_D].output = true;
  *count = 3;
  if (g->c == AT_C_SEPARATE) {
    const attune_dtype c = at_gemm_dtype_c(g);
    const size_t element = attune_dtype_size(c);
    out[*count] = (at_buffer){.alignment = c == dtype_out ? other.alignment : alignment_of(g, element), .dtype = c};
    out[*count].bytes = extent(g->m, g->n, g->ldc, g->stride_c, g->batch, element);
    out[(*count)++].input = true;
  }
  if (AT_UNLIKELY(at_gemm_has_epilogue(g))) add_epilogue_buffers(g, out, count);
  if (AT_UNLIKELY(at_gemm_8bit(g->dtype) || g->scaling.scale_d)) at_gemm_add_scaling_buffers(g, out, count);
  if (g->pointers) at_gemm_add_arrays(g, out, count);
  return ATTUNE_OK;
}

void at_gemm_pitches(attune_gemm_problem *p, at_number out[AT_GEMM_PITCHES]) {
  const at_number pitches[AT_GEMM_PITCHES] = {{"lda", &p->lda, AT_NUMBER_PITCH},
                                              {"ldb", &p->ldb, AT_NUMBER_PITCH},
                                              {"ldc", &p->ldc, AT_NUMBER_PITCH},
                                              {"ldd", &p->ldd, AT_NUMBER_PITCH},
                                              {"stride_a", &p->stride_a, AT_NUMBER_STRIDE},
                                              {"stride_b", &p->stride_b, AT_NUMBER_STRIDE},
                                              {"stride_c", &p->stride_c, AT_NUMBER_STRIDE},
                                              {"stride_d", &p->stride_d, AT_NUMBER_STRIDE},
                                              {"ld_aux", &p->ld_aux, AT_NUMBER_PITCH},
                                              {"ld_residual", &p->ld_residual, AT_NUMBER_PITCH},
                                              {"stride_aux", &p->stride_aux, AT_NUMBER_STRIDE},
                                              {"stride_residual", &p->stride_residual, AT_NUMBER_STRIDE}};
  memcpy(out, pitches, sizeof pitches);
}

attune_status at_gemm_check_alignment(const at_gemm *g) {
  const size_t out = attune_dtype_size(at_gemm_part(g->dtype_out)), in = attune_dtype_size(at_gemm_part(g->dtype));
  const size_t least = g->epilogue.aux == ATTUNE_AUX_RELU_MASK ? 1 : out < in ? out : in;
  return at_text_check_alignment(g->alignment, least);
}
