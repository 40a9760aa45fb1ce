/* SPDX-License-Identifier: Apache-2.0
 * kernel_sweep.h: what test_cuda_kernel_sweep.c compares a kernel's result with: operands out of pools of random
 * numbers, between guards; the product in float64 by cuBLAS, of which a few elements are summed on the CPU too. */
#ifndef TESTS_KERNEL_SWEEP_H
#define TESTS_KERNEL_SWEEP_H

#include "src/cuda/context/cuda.h"
#include "tests/support/cuda_gemm.h"

/* DATA_SPECIAL: normal, but one element of 20,000 is NaN or an infinity. */
enum { DATA_SPECIAL = DATA_KINDS, DATA_ALL, POOL = 1 << 22, GUARD = 4096, INPUTS_KEPT = 1 << 17, SPOTS = 3 };

/* Random numbers as they are after rounding to a dtype: on the host, and on the device in the dtype, in float64, and
 * without their signs. */
typedef struct pool {
  double *host;
  unsigned char *narrow;
  double *wide, *sizes;
} pool;

/* One matrix of each of the batch, between guards, with gaps; all else is 0xff, a NaN in every dtype. */
typedef struct block {
  unsigned char *device, *before; /* `before`: on the host, as it was; NULL: not kept */
  size_t bytes, first, element;
  int64_t from; /* in the pool */
  int64_t rows, cols, ld, stride;
} block;

typedef struct trial {
  at_gemm g;
  double alpha, beta;
  int data;
  block a, b, c, d;
  unsigned char *old;     /* D as it was, on the device */
  double *sums, *weights; /* on the host: A B, |A| |B| */
  at_gemm_operands operands;
} trial;

static attune_stream *sweep_stream;

static inline double pool_value(attune_dtype dtype, int data) {
  if (data < DATA_KINDS) return random_value(dtype, data);
  const uint64_t bits = random_bits() >> 16;
  if (bits % 20000 == 0) return (bits >> 20) % 3 == 0 ? NAN : (bits >> 20) % 3 == 1 ? INFINITY : -INFINITY;
  return random_value(dtype, DATA_NORMAL);
}

static inline void *on_device(const void *host, size_t bytes) {
  void *out = NULL;
  OK(attune_alloc(&out, sweep_stream, bytes));
  OK(attune_copy(sweep_stream, out, host, bytes));
  OK(attune_stream_synchronize(sweep_stream));
  return out;
}

static inline const pool *pool_of(attune_dtype dtype, int data) {
  static pool all[16][DATA_ALL];
  pool *p = &all[dtype][data];
  if (p->host) return p;
  const size_t element = attune_dtype_size(dtype);
  unsigned char *narrow = malloc(POOL * element);
  p->host = malloc(POOL * sizeof *p->host);
  assert_true(narrow && p->host);
  for (size_t i = 0; i < POOL; i++) {
    encode(dtype, narrow + i * element, pool_value(dtype, data));
    p->host[i] = decode(dtype, narrow + i * element);
  }
  p->narrow = on_device(narrow, POOL * element);
  p->wide = on_device(p->host, POOL * sizeof(double));
  double *sizes = malloc(POOL * sizeof *sizes);
  assert_non_null(sizes);
  for (size_t i = 0; i < POOL; i++) sizes[i] = fabs(p->host[i]);
  p->sizes = on_device(sizes, POOL * sizeof(double));
  free(sizes);
  free(narrow);
  return p;
}

static inline int64_t elements_of(const block *m, int64_t batch) {
  return m->rows * m->cols * (m->stride ? batch : 1);
}

/* `shift`: elements between the guard and the first one. With values: out of the pool. */
static inline void block_open(block *m, attune_dtype dtype, int64_t batch, int shift, const pool *from) {
  const int64_t copies = m->stride ? batch : 1;
  m->element = attune_dtype_size(dtype);
  m->first = GUARD + (size_t)shift * m->element;
  m->bytes = m->first + (size_t)((copies - 1) * m->stride + m->ld * m->cols) * m->element + GUARD;
  OK(attune_alloc((void **)&m->device, sweep_stream, m->bytes));
  OK(attune_fill(sweep_stream, m->device, 0xff, m->bytes));
  m->before = NULL;
  m->from = (int64_t)(random_bits() >> 20) % (POOL - elements_of(m, batch) + 1);
  const size_t row = (size_t)m->rows * m->element;
  for (int64_t i = 0; from && i < copies; i++)
    OK(attune_copy_2d(sweep_stream, m->device + m->first + (size_t)(i * m->stride) * m->element,
                      (size_t)m->ld * m->element, from->narrow + (size_t)(m->from + i * m->rows * m->cols) * m->element,
                      row, row, (size_t)m->cols));
}

static inline unsigned char *block_fetch(const block *m) {
  unsigned char *host = malloc(m->bytes);
  assert_non_null(host);
  OK(attune_copy(sweep_stream, host, m->device, m->bytes));
  OK(attune_stream_synchronize(sweep_stream));
  return host;
}

static inline void block_close(block *m) {
  OK(attune_free(m->device, sweep_stream));
  free(m->before);
}

/* op(A) op(B) in float64, packed, to the host. */
static inline double *trusted(const trial *t, const double *a, const double *b) {
  const at_gemm *g = &t->g;
  const size_t bytes = (size_t)(g->m * g->n * g->batch) * sizeof(double);
  const double one = 1.0, zero = 0.0;
  double *device = NULL, *host = malloc(bytes);
  cublasHandle_t handle;
  assert_non_null(host);
  OK(attune_alloc((void **)&device, sweep_stream, bytes));
  at_cuda_scope scope;
  OK(at_cuda_enter(&scope, sweep_stream->device));
  OK(at_cuda_blas(sweep_stream, &handle));
  const cublasStatus_t status = at_cublas.cublasGemmStridedBatchedEx(
      handle, g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N, g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, (int)g->m, (int)g->n,
      (int)g->k, &one, a + t->a.from, CUDA_R_64F, (int)t->a.rows, t->a.stride ? t->a.rows * t->a.cols : 0,
      b + t->b.from, CUDA_R_64F, (int)t->b.rows, t->b.stride ? t->b.rows * t->b.cols : 0, &zero, device, CUDA_R_64F,
      (int)g->m, g->m * g->n, (int)g->batch, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
  at_cuda_leave(&scope);
  assert_int_equal(status, CUBLAS_STATUS_SUCCESS);
  OK(attune_copy(sweep_stream, host, device, bytes));
  OK(attune_stream_synchronize(sweep_stream));
  OK(attune_free(device, sweep_stream));
  return host;
}

/* The trusted sums are right: a few, drawn, are summed here. */
static inline void check_spots(const trial *t, const pool *p) {
  const at_gemm *g = &t->g;
  for (int s = 0; s < SPOTS; s++) {
    const int64_t at = (int64_t)(random_bits() >> 20) % (g->m * g->n * g->batch), row = at % g->m,
                  col = at / g->m % g->n, i = at / (g->m * g->n);
    const double *a = p->host + t->a.from + (t->a.stride ? i * t->a.rows * t->a.cols : 0),
                 *b = p->host + t->b.from + (t->b.stride ? i * t->b.rows * t->b.cols : 0);
    long double sum = 0, weight = 0;
    for (int64_t l = 0; l < g->k; l++) {
      const long double x = (long double)a[g->trans_a ? row * t->a.rows + l : l * t->a.rows + row] *
                            b[g->trans_b ? l * t->b.rows + col : col * t->b.rows + l];
      sum += x, weight += fabsl(x);
    }
    const double trusted_sum = t->sums[at], trusted_weight = t->weights[at];
    if (isfinite((double)sum)) {
      assert_true(fabsl(sum - trusted_sum) <= 1e-13L * (long double)g->k * weight);
      assert_true(fabsl(weight - trusted_weight) <= 1e-13L * (long double)g->k * weight);
    } else {
      assert_true(isnan((double)sum) ? isnan(trusted_sum) : (double)sum == trusted_sum);
    }
  }
}

/* t->g and the matrices' rows, columns, ld, strides are set; `shifts` of A, B, C, D in elements. */
static inline void trial_open(trial *t, const int shifts[4]) {
  const at_gemm *g = &t->g;
  const attune_dtype in = (attune_dtype)g->dtype, out = (attune_dtype)g->dtype_out;
  const pool *p = pool_of(in, t->data), *of_c = t->beta != 0.0 ? pool_of(out, t->data) : NULL;
  block_open(&t->a, in, g->batch, shifts[0], p);
  block_open(&t->b, in, g->batch, shifts[1], p);
  if (g->c == AT_C_SEPARATE) block_open(&t->c, out, g->batch, shifts[2], of_c);
  block_open(&t->d, out, g->batch, shifts[3], g->c == AT_C_INPLACE ? of_c : NULL);
  OK(attune_alloc((void **)&t->old, sweep_stream, t->d.bytes));
  OK(attune_copy(sweep_stream, t->old, t->d.device, t->d.bytes));
  if (t->a.bytes <= INPUTS_KEPT) t->a.before = block_fetch(&t->a);
  if (t->b.bytes <= INPUTS_KEPT) t->b.before = block_fetch(&t->b);
  t->sums = trusted(t, p->wide, p->wide);
  t->weights = trusted(t, p->sizes, p->sizes);
  check_spots(t, p);
  t->operands = (at_gemm_operands){.alpha = t->alpha, .beta = t->beta};
  t->operands.a = t->a.device + t->a.first, t->operands.b = t->b.device + t->b.first;
  t->operands.d = t->d.device + t->d.first;
  t->operands.c = g->c == AT_C_NONE ? NULL : g->c == AT_C_SEPARATE ? t->c.device + t->c.first : t->operands.d;
}

static inline void trial_close(trial *t) {
  block_close(&t->a);
  block_close(&t->b);
  if (t->g.c == AT_C_SEPARATE) block_close(&t->c);
  block_close(&t->d);
  OK(attune_free(t->old, sweep_stream));
  free(t->sums);
  free(t->weights);
}

/* An element's error as a fraction of what is allowed; INFINITY: NaN or an infinity that should or should not be. */
static inline double element_error(const at_gemm *g, double got, double expected, double weight, double unit,
                                   double sum) {
  const double most = g->dtype_out == ATTUNE_F16   ? 65504.0
                      : g->dtype_out == ATTUNE_F64 ? 0x1.fffffffffffffp1023
                                                   : 0x1.fep127;
  const double least = g->dtype_out == ATTUNE_F16 ? 0x1p-25 : 1e-300;
  if (isnan(expected)) return isnan(got) ? 0.0 : INFINITY;
  if (isinf(expected)) return got == expected ? 0.0 : INFINITY;
  const double allowed = unit * fabs(expected) + sum * weight + least;
  if (isinf(got)) return fabs(expected) + allowed >= most && (got > 0) == (expected > 0) ? 0.0 : INFINITY;
  const double error = fabs(got - expected) / allowed;
  return isnan(error) ? INFINITY : error;
}

static inline bool is_poison(const unsigned char *bytes, size_t count) {
  return count == 0 || (bytes[0] == 0xff && memcmp(bytes, bytes + 1, count - 1) == 0);
}

static inline bool is_unchanged(const block *m) {
  if (!m->before) return true;
  unsigned char *now = block_fetch(m);
  const bool same = memcmp(now, m->before, m->bytes) == 0;
  free(now);
  return same;
}

static inline bool inputs_are_unchanged(const trial *t) {
  return is_unchanged(&t->a) && is_unchanged(&t->b);
}

/* The largest error of D as a fraction of what is allowed; INFINITY where its gaps or its guards changed. */
static inline double trial_error(const trial *t) {
  const at_gemm *g = &t->g;
  const double *c = t->beta != 0.0 ? pool_of((attune_dtype)g->dtype_out, t->data)->host : NULL;
  const block *of = g->c == AT_C_SEPARATE ? &t->c : &t->d;
  unsigned char *got = block_fetch(&t->d);
  double unit, sum, worst = 0.0;
  tolerances(g, &unit, &sum);
  for (int64_t i = 0; i < g->batch; i++)
    for (int64_t col = 0; col < g->n; col++)
      for (int64_t row = 0; row < g->m; row++) {
        const int64_t at = (i * g->n + col) * g->m + row;
        const int64_t at_c = of->from + ((of->stride ? i * g->n : 0) + col) * g->m + row;
        unsigned char *element = got + t->d.first + (size_t)(i * t->d.stride + col * t->d.ld + row) * t->d.element;
        const double added = c ? t->beta * c[at_c] : 0.0, expected = t->alpha * t->sums[at] + added;
        const double weight = fabs(t->alpha) * t->weights[at] + fabs(added);
        worst = fmax(worst, element_error(g, decode((attune_dtype)g->dtype_out, element), expected, weight, unit, sum));
        memset(element, 0xff, t->d.element);
      }
  if (!is_poison(got, t->d.bytes)) worst = INFINITY;
  free(got);
  return worst;
}

#endif
