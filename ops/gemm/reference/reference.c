/* SPDX-License-Identifier: Apache-2.0
 * reference.c: the trusted result and the tolerance of a GEMM.
 *
 * Tolerance of an element: u |R| + gamma (|A||B| + |beta C|), with u the unit roundoff of the output and gamma by
 * contract and k. |A||B| is bounded by the product of the 2-norms of A's row and B's column (Cauchy-Schwarz), which
 * costs O(mk + kn) and is at most 4/3 of it on uniform data. The trusted result: on the host a float64 GEMM of attune's
 * own; on CUDA cuBLAS in float64 (for halves: from the halves into float32), checked on random elements against long
 * double dot products made here. */
#include "ops/gemm/reference/reference_epilogue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/host/host_blocked.h"
#include "src/host/threads.h"
#include "src/process/limit.h"
#include "tuning/measure/staging.h"

static const size_t MOST_ELEMENTS = (size_t)1 << 29; /* of the expected result: 4 GiB */
enum { SPOT_CHECKS = 64, PART_GRAIN = 48 };

/* The relative error that the contract allows: FMA chains of f32 and f64; f32 accumulation of halves; TF32. */
static double gamma_of(const at_gemm *g) {
  const double k = (double)g->k * (at_gemm_complex(g->dtype) ? 2.0 : 1.0);
  const double chain = fmax(8.0, fmax(2.0 * sqrt(k), k / 64.0));
  const bool reduced = g->accuracy == ATTUNE_REDUCED;
  switch (at_gemm_part(g->dtype)) {
  case ATTUNE_F64: return chain * 0x1p-53;
  case ATTUNE_F32: return reduced ? 0x1p-10 + k / 8.0 * 0x1p-24 : chain * 0x1p-24;
  case ATTUNE_F16: return fmax(8.0, k / 16.0) * 0x1p-23 + (reduced ? 4.0 * 0x1p-11 : 0.0);
  case ATTUNE_BF16: return fmax(8.0, k / 16.0) * 0x1p-23 + (reduced ? 4.0 * 0x1p-8 : 0.0);
  default: break; /* no GEMM has the others */
  }
  return 0.0;
}

/* Index of element (i, p) of op(X) in the stored X. */
static size_t at_index(int64_t i, int64_t p, int64_t ld, bool trans, int64_t stride, int64_t batch) {
  return (size_t)(stride * batch + (trans ? p + i * ld : i + p * ld));
}

/* Vectors of k elements whose 2-norms are wanted: the rows of op(A), or the columns of op(B) as rows of its transpose.
 */
typedef struct vectors {
  double *norms;
  const void *data;
  attune_dtype dtype; /* of a part */
  int parts;
  int64_t count, k, ld;
  bool trans; /* vectors lie contiguous */
  size_t first;
} vectors;

/* A share of the vectors for each thread; strided vectors are walked side by side, so that memory is read in order. */
static void norms_share(void *arg, const at_team *team) {
  const vectors *v = arg;
  const int64_t from = v->count * team->rank / team->size, to = v->count * (team->rank + 1) / team->size;
  for (int64_t i = from; i < to; i++) v->norms[i] = 0.0;
  for (int64_t p = 0; p < (v->trans ? 1 : v->k); p++)
    for (int64_t i = from; i < to; i++)
      for (int64_t q = 0; q < (v->trans ? v->k : 1); q++)
        for (int part = 0; part < v->parts; part++) {
          const size_t at = v->first + (size_t)(v->trans ? q + i * v->ld : i + p * v->ld);
          const double x = at_reference_value(v->data, v->dtype, at * (size_t)v->parts + (size_t)part);
          v->norms[i] += x * x;
        }
  for (int64_t i = from; i < to; i++) v->norms[i] = sqrt(v->norms[i]);
}

/* Of one matrix of the batch. */
static void matrix_norms(at_reference *r, int64_t b, int threads) {
  const at_gemm *g = &r->g;
  const attune_dtype part = at_gemm_part(g->dtype);
  vectors rows = {r->row_norms + b * g->m,  r->a, part, r->parts, g->m, g->k, g->lda, g->trans_a != 0,
                  (size_t)(g->stride_a * b)};
  vectors columns = {r->column_norms + b * g->n, r->b, part, r->parts, g->n, g->k, g->ldb, g->trans_b == 0,
                     (size_t)(g->stride_b * b)};
  at_parallel(threads, norms_share, &rows);
  at_parallel(threads, norms_share, &columns);
}

static void small_norms_share(void *arg, const at_team *team) {
  at_reference *r = arg;
  for (int64_t b = team->rank; b < r->g.batch; b += team->size) matrix_norms(r, b, 1);
}

/* Large matrices by many threads each, of many small ones each by one. */
static void all_norms(at_reference *r) {
  const at_gemm *g = &r->g;
  const int64_t work = (g->m + g->n) * g->k;
  if (work <= 65536)
    at_parallel(work * g->batch > 65536 ? at_cpu_count() : 1, small_norms_share, r);
  else
    for (int64_t b = 0; b < g->batch; b++) matrix_norms(r, b, at_cpu_count());
}

/* A product in float64 by parts of D's columns, for a limit may end it between two. What an element is does not depend
 * on them. */
static attune_status multiply(const at_gemm *g, const double *a, const double *b, double *out, int threads) {
  static const double part_flops = 4e9; /* some tenths of a second of one CPU */
  const double column = 2.0 * (double)g->m * (double)g->k;
  const int64_t most = column * (double)g->n <= part_flops
                           ? g->n
                           : (int64_t)(part_flops / column / PART_GRAIN + 1.0) * PART_GRAIN,
                rows_a = at_gemm_rows_a(g), rows_b = at_gemm_rows_b(g);
  attune_status status = at_limit_look();
  for (int64_t j = 0; j < g->n && status == ATTUNE_OK; j += most) {
    status = at_blocked_f64(g->m, g->n - j < most ? g->n - j : most, g->k, a, rows_a, g->trans_a != 0,
                            b + (g->trans_b ? j : j * rows_b), rows_b, g->trans_b != 0, out + j * g->m, g->m, threads);
    if (status == ATTUNE_OK) status = at_limit_look();
  }
  return status;
}

/* A part of element (i, p) of op(X), trans of at_gemm. */
static double part_of(const at_reference *r, const void *x, size_t at, int trans, int part) {
  const double value = at_reference_value(x, at_gemm_part(r->g.dtype), at * 2 + (size_t)part);
  return trans == ATTUNE_C && part ? -value : value;
}

/* Element (i, p) of op(A) and (p, j) of op(B), in their real form. */
static double of_a(const at_reference *r, int64_t i, int64_t p, int64_t b) {
  const at_gemm *g = &r->g;
  const size_t at = at_index(i / r->parts, p / r->parts, g->lda, g->trans_a != 0, g->stride_a, b);
  if (r->parts == 1) return at_reference_value(r->a, (attune_dtype)g->dtype, at);
  const double value = part_of(r, r->a, at, g->trans_a, (int)((i ^ p) & 1));
  return p & 1 && !(i & 1) ? -value : value;
}

static double of_b(const at_reference *r, int64_t p, int64_t j, int64_t b) {
  const at_gemm *g = &r->g;
  const size_t at = at_index(j, p / r->parts, g->ldb, g->trans_b == 0, g->stride_b, b);
  return r->parts == 1 ? at_reference_value(r->b, (attune_dtype)g->dtype, at)
                       : part_of(r, r->b, at, g->trans_b, (int)(p & 1));
}

/* The real form of a complex problem's op(A) or op(B), packed, for the threads of a team. */
typedef struct real_form {
  const at_reference *r;
  double *a, *b;
  int64_t batch;
} real_form;

static void real_form_share(void *arg, const at_team *team) {
  const real_form *f = arg;
  const int64_t rows = 2 * f->r->g.m, depth = 2 * f->r->g.k;
  for (int64_t p = team->rank; p < depth && f->a; p += team->size)
    for (int64_t i = 0; i < rows; i++) f->a[p * rows + i] = of_a(f->r, i, p, f->batch);
  for (int64_t j = team->rank; j < f->r->g.n && f->b; j += team->size)
    for (int64_t p = 0; p < depth; p++) f->b[j * depth + p] = of_b(f->r, p, j, f->batch);
}

static attune_status expect_complex_on_host(at_reference *r) {
  at_gemm real = r->g; /* as a product of what real_form makes */
  real.m *= 2, real.k *= 2, real.trans_a = real.trans_b = 0;
  double *a = at_alloc_large((size_t)(real.m * real.k) * sizeof *a),
         *b = at_alloc_large((size_t)(real.k * real.n) * sizeof *b);
  attune_status status = a && b ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference");
  const int threads = (double)real.m * (double)real.n * (double)real.k > 1e6 ? at_cpu_count() : 1;
  for (int64_t i = 0; i < real.batch && status == ATTUNE_OK; i++) {
    real_form form = {r, i == 0 || r->g.stride_a ? a : NULL, i == 0 || r->g.stride_b ? b : NULL, i};
    at_parallel(threads, real_form_share, &form);
    status = multiply(&real, a, b, r->product + i * real.m * real.n, threads);
  }
  free(a);
  free(b);
  return status;
}

static attune_status expect_on_host(at_reference *r) {
  const at_gemm *g = &r->g;
  if (r->parts == 2) return expect_complex_on_host(r);
  const int64_t rows_a = at_gemm_rows_a(g), cols_a = at_gemm_cols_a(g), rows_b = at_gemm_rows_b(g),
                cols_b = at_gemm_cols_b(g);
  double *a = at_alloc_large((size_t)(rows_a * cols_a) * sizeof *a),
         *b = at_alloc_large((size_t)(rows_b * cols_b) * sizeof *b);
  attune_status status = a && b ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference");
  const int threads = (double)g->m * (double)g->n * (double)g->k > 1e6 ? at_cpu_count() : 1;
  for (int64_t i = 0; i < g->batch && status == ATTUNE_OK; i++) {
    if (i == 0 || g->stride_a)
      at_reference_convert(a, r->a, (attune_dtype)g->dtype, (size_t)(g->stride_a * i), rows_a, cols_a, g->lda);
    if (i == 0 || g->stride_b)
      at_reference_convert(b, r->b, (attune_dtype)g->dtype, (size_t)(g->stride_b * i), rows_b, cols_b, g->ldb);
    status = multiply(g, a, b, r->product + i * g->m * g->n, threads);
  }
  free(a);
  free(b);
  return status;
}

/* The trusted product itself against dot products in long double. */
static attune_status spot_check(const at_reference *r) {
  const at_gemm *g = &r->g;
  uint64_t state = 88172645463325252u;
  for (int check = 0; check < SPOT_CHECKS; check++) {
    uint64_t pick[3];
    for (int i = 0; i < 3; i++) { /* xorshift64 (Marsaglia 2003) */
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      pick[i] = state >> 11;
    }
    const int64_t rows = g->m * r->parts, i = (int64_t)(pick[0] % (uint64_t)rows),
                  j = (int64_t)(pick[1] % (uint64_t)g->n), b = (int64_t)(pick[2] % (uint64_t)g->batch);
    long double sum = 0.0L;
    for (int64_t p = 0; p < g->k * r->parts; p++) sum += (long double)of_a(r, i, p, b) * (long double)of_b(r, p, j, b);
    const double allowed = r->gamma * r->row_norms[b * g->m + i / r->parts] * r->column_norms[b * g->n + j];
    const double error = fabs(at_reference_product(r, (size_t)((b * g->n + j) * rows + i)) - (double)sum);
    if (!(error <= allowed))
      return at_fail(ATTUNE_INTERNAL, "the reference result is wrong at (%lld,%lld,%lld): error %g, allowed %g",
                     (long long)i, (long long)j, (long long)b, error, allowed);
  }
  return ATTUNE_OK;
}

/* C in float64 where it is used. */
static attune_status keep_c(at_reference *r) {
  const at_gemm *g = &r->g;
  if (g->c == AT_C_NONE) return ATTUNE_OK;
  if (g->c == AT_C_INPLACE) r->gaps = at_reference_gaps(g, r->c);
  const int64_t parts = r->parts, rows = g->m * parts;
  r->added = at_alloc_large((size_t)(rows * g->n * g->batch) * sizeof *r->added);
  if (!r->added) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference");
  for (int64_t b = 0; b < g->batch; b++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < rows; i++)
        r->added[(b * g->n + j) * rows + i] = at_reference_value(r->c, at_gemm_part(at_gemm_dtype_c(g)),
                                                                 (size_t)((g->stride_c * b + j * g->ldc) * parts + i));
  return ATTUNE_OK;
}

/* The elements of A and B at the places along k where special values are planted: of each thread's lines. */
static void places_share(void *arg, const at_team *team) {
  const at_reference *r = arg;
  const at_gemm *g = &r->g;
  const int64_t rows = g->m * (g->stride_a ? g->batch : 1), columns = g->n * (g->stride_b ? g->batch : 1);
  const int parts = r->parts;
  for (int p = 0; p < r->places; p++)
    for (int part = 0; part < parts; part++) {
      for (int64_t i = rows * team->rank / team->size; i < rows * (team->rank + 1) / team->size; i++)
        r->a_at[(p * rows + i) * parts + part] =
            of_a(r, i % g->m * parts + part, r->place[p] * parts, i / g->m); /* a column of the real form: re, im */
      for (int64_t j = columns * team->rank / team->size; j < columns * (team->rank + 1) / team->size; j++)
        r->b_at[(p * columns + j) * parts + part] = of_b(r, r->place[p] * parts + part, j % g->n, j / g->n);
    }
}

static attune_status keep_places(at_reference *r) {
  const at_gemm *g = &r->g;
  const int64_t rows = g->m * (g->stride_a ? g->batch : 1), columns = g->n * (g->stride_b ? g->batch : 1);
  r->places = at_special_places(g, r->place);
  r->a_at = at_alloc_large((size_t)(rows * r->places * r->parts) * sizeof *r->a_at);
  r->b_at = at_alloc_large((size_t)(columns * r->places * r->parts) * sizeof *r->b_at);
  if (!r->a_at || !r->b_at) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference");
  at_parallel(rows + columns > 4096 ? at_cpu_count() : 1, places_share, r);
  return ATTUNE_OK;
}

static bool on_cuda(const attune_device *device) {
#ifdef AT_WITH_CUDA
  return device->properties.kind == ATTUNE_DEVICE_CUDA;
#else
  (void)device;
  return false;
#endif
}

/* The inputs into host memory where they are not. */
static attune_status fetch(at_reference *r, attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]) {
  at_buffer buffers[AT_MAX_BUFFERS];
  int count = 0;
  attune_status status = at_gemm_buffers(&r->g, buffers, &count);
  const void *seen[AT_MAX_BUFFERS] = {0};
  for (int i = 0; i < count && status == ATTUNE_OK; i++) {
    if (!buffers[i].input) continue;
    seen[i] = pointers[i];
    if (stream->device->properties.kind == ATTUNE_DEVICE_HOST) continue;
    seen[i] = r->fetched[i] = at_alloc_touched(buffers[i].bytes);
    status = r->fetched[i]
                 ? at_staging_fetch(stream, r->fetched[i], pointers[i], buffers[i].bytes)
                 : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify %zu bytes of operands", buffers[i].bytes);
  }
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream); /* the host's inputs, too */
  if (status == ATTUNE_OK && at_gemm_has_epilogue(&r->g))
    status = at_epilogue_reference_create(&r->epilogue, &r->g, seen);
  r->a = seen[AT_GEMM_A];
  r->b = seen[AT_GEMM_B];
  r->c = seen[r->g.c == AT_C_INPLACE ? AT_GEMM_D : AT_GEMM_C];
  if (status == ATTUNE_OK && at_gemm_8bit(r->g.dtype)) status = at_reference_widen(r, seen);
  return status;
}

static attune_status make(at_reference *r, attune_device *device, attune_stream *stream,
                          void *const pointers[AT_MAX_BUFFERS]) {
  const at_gemm *g = &r->g;
  const size_t count = (size_t)(g->m * g->n) * (size_t)g->batch * (size_t)r->parts;
  if (count > MOST_ELEMENTS)
    return at_fail(
        ATTUNE_UNSUPPORTED,
        "D has %zu elements, too many to verify (at most %zu), so the problem is not tuned; its calls run the default",
        count, MOST_ELEMENTS);
  const bool narrow = on_cuda(device) && (g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16);
  if (narrow)
    r->narrow = at_alloc_touched(count * sizeof *r->narrow);
  else
    r->product = at_alloc_touched(count * sizeof *r->product);
  r->row_norms = at_alloc_large((size_t)(g->m * g->batch) * sizeof *r->row_norms);
  r->column_norms = at_alloc_large((size_t)(g->n * g->batch) * sizeof *r->column_norms);
  if ((!r->product && !r->narrow) || !r->row_norms || !r->column_norms)
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a float64 reference of %zu elements", count);
  AT_TRY(fetch(r, stream, pointers));
  AT_TRY(at_limit_look());
  all_norms(r);
  attune_status status = at_limit_look();
  if (status != ATTUNE_OK) return status;
#ifdef AT_WITH_CUDA
  if (on_cuda(device))
    status = at_reference_expect_on_cuda(r, stream, pointers);
  else
#endif
    status = expect_on_host(r);
  if (status == ATTUNE_OK) status = spot_check(r);
  if (status == ATTUNE_OK) status = keep_c(r);
  if (status == ATTUNE_OK) status = keep_places(r);
  for (size_t i = 0; i < AT_COUNT(r->fetched); i++) { /* the inputs are not needed any more */
    free(r->fetched[i]);
    r->fetched[i] = NULL;
  }
  free(r->wide_a);
  free(r->wide_b);
  r->wide_a = r->wide_b = NULL;
  return status;
}

attune_status at_gemm_reference_create(void **out, const void *problem, attune_device *device, attune_stream *stream,
                                       void *const pointers[AT_MAX_BUFFERS]) {
  *out = NULL;
  at_reference *r = calloc(1, sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
  r->g = *at_gemm_of(problem);
  r->parts = at_gemm_complex(r->g.dtype) ? 2 : 1;
  r->gamma = at_gemm_8bit(r->g.dtype) ? at_reference_scaled_gamma(&r->g) : gamma_of(&r->g);
  const attune_status status = make(r, device, stream, pointers);
  if (status == ATTUNE_OK)
    *out = r;
  else
    at_gemm_reference_destroy(r);
  return status;
}

void at_gemm_reference_destroy(void *reference) {
  at_reference *r = reference;
  if (!r) return;
  for (size_t i = 0; i < AT_COUNT(r->fetched); i++) free(r->fetched[i]);
  free(r->wide_a);
  free(r->wide_b);
  free(r->product);
  free(r->narrow);
  free(r->added);
  free(r->a_at);
  free(r->b_at);
  free(r->row_norms);
  free(r->column_norms);
  at_epilogue_reference_destroy(r->epilogue);
  free(r);
}
