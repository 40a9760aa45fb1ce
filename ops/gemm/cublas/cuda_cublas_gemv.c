/* SPDX-License-Identifier: Apache-2.0
 * cuda_cublas_gemv.c: products with one row or one column by the vendor's matrix-vector calls, alone, in batches at
 * equal distances and in batches that arrays of pointers name. A row is made transposed: D^T = op(B)^T op(A)^T. */
#include <stdlib.h>

#include "ops/gemm/cublas/gemv.h"
#include "src/cuda/blas/blas.h"
#include "src/process/vendor.h"
#include "tuning/op/registry.h"

#define VERSION 1

/* ---- a problem as a matrix-vector product ---- */

static at_gemv column_of(const at_gemm *g) {
  return (at_gemv){.rows = at_gemm_rows_a(g),
                   .cols = at_gemm_cols_a(g),
                   .ld = g->lda,
                   .inc_x = g->trans_b ? g->ldb : 1,
                   .inc_y = 1,
                   .stride_m = g->stride_a,
                   .stride_x = g->stride_b,
                   .stride_y = g->stride_d,
                   .op = at_gemm_operation(g->trans_a)};
}

static at_gemv row_of(const at_gemm *g) {
  return (at_gemv){.rows = at_gemm_rows_b(g),
                   .cols = at_gemm_cols_b(g),
                   .ld = g->ldb,
                   .inc_x = g->trans_a ? 1 : g->lda,
                   .inc_y = g->ldd,
                   .stride_m = g->stride_b,
                   .stride_x = g->stride_a,
                   .stride_y = g->stride_d,
                   .op = g->trans_b ? CUBLAS_OP_N : CUBLAS_OP_T,
                   .swapped = true};
}

/* Of an inner product the matrix is the vector that is a column in memory. */
bool at_gemv_of(at_gemv *out, const at_gemm *g) {
  const bool column = g->n == 1 && g->trans_b != ATTUNE_C,
             row = g->m == 1 && g->trans_a != ATTUNE_C && g->trans_b != ATTUNE_C;
  if (column && !(row && !g->trans_a && !g->trans_b))
    *out = column_of(g);
  else if (row)
    *out = row_of(g);
  return column || row;
}

/* ---- the implementation ---- */

typedef struct gemv_plan {
  at_gemv call;
  int64_t batch;
  cublasMath_t math;
  uint8_t dtype, dtype_out;
  bool strided; /* else one product, or arrays of pointers */
  bool pointers, separate;
} gemv_plan;

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  const at_gemm *g = at_gemm_of(problem);
  at_gemv call;
  (void)self, (void)device;
  const bool by_pointers = g->pointers == ATTUNE_POINTERS_DEVICE && !at_gemm_8bit(g->dtype) && g->c != AT_C_SEPARATE;
  return (by_pointers || at_gemm_plain_product(g)) && at_gemv_of(&call, g) && at_gemm_aligned(g) &&
         at_cublas_open() == ATTUNE_OK;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self, (void)problem, (void)device;
  if (max < 1) return 0;
  out[0].text[0] = '\0';
  return 1;
}

static attune_status prepare(at_plan *plan) {
  const at_gemm *g = at_gemm_of(plan->problem);
  at_gemv call;
  if (plan->configuration.text[0] != '\0' || !at_gemv_of(&call, g))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; cublas_gemv has none for this problem but the empty one",
                   plan->configuration.text);
  const bool pointers = g->pointers != ATTUNE_POINTERS_NONE, half = attune_dtype_size((attune_dtype)g->dtype) == 2;
  gemv_plan *p = malloc(sizeof *p);
  if (!p) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of cublas_gemv");
  *p = (gemv_plan){.call = call,
                   .batch = g->batch,
                   .math = g->accuracy == ATTUNE_REDUCED ? CUBLAS_DEFAULT_MATH : AT_CUDA_STRICT_MATH,
                   .dtype = g->dtype,
                   .dtype_out = g->dtype_out,
                   .strided = !pointers && (g->batch > 1 || half),
                   .pointers = pointers,
                   .separate = g->c == AT_C_SEPARATE};
  plan->state = p;
  plan->workspace_bytes =
      g->workspace_cap < ATTUNE_WORKSPACE_DEFAULT ? (size_t)g->workspace_cap : ATTUNE_WORKSPACE_DEFAULT;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

/* The vendor's calls; NAME is the type in their names. */
#define ONE(NAME, ALPHA, BETA) \
  at_cublas.cublas##NAME##gemv_64(handle, c->op, c->rows, c->cols, ALPHA, m, c->ld, x, c->inc_x, BETA, y, c->inc_y)
#define STRIDED(NAME, ALPHA, BETA)                                                                                \
  at_cublas.cublas##NAME##gemvStridedBatched_64(handle, c->op, c->rows, c->cols, ALPHA, m, c->ld, c->stride_m, x, \
                                                c->inc_x, c->stride_x, BETA, y, c->inc_y, c->stride_y, p->batch)
#define BATCHED(NAME, ALPHA, BETA)                                                                               \
  at_cublas.cublas##NAME##gemvBatched_64(handle, c->op, c->rows, c->cols, ALPHA, m, c->ld, x, c->inc_x, BETA, y, \
                                         c->inc_y, p->batch)
#define ANY(NAME, ALPHA, BETA) \
  (p->pointers ? BATCHED(NAME, ALPHA, BETA) : p->strided ? STRIDED(NAME, ALPHA, BETA) : ONE(NAME, ALPHA, BETA))
#define HALF(NAME) (p->pointers ? BATCHED(NAME, &alpha.f32, &beta.f32) : STRIDED(NAME, &alpha.f32, &beta.f32))

/* Halves are scaled in f32, and have no call for one product alone. */
static cublasStatus_t multiply(cublasHandle_t handle, const gemv_plan *p, const at_gemm *g, const at_gemm_operands *o) {
  const at_gemv *c = &p->call;
  const void *m = c->swapped ? o->b : o->a, *x = c->swapped ? o->a : o->b;
  void *y = o->d;
  const at_gemm_scalar alpha = at_gemm_scalar_of(g, o->alpha, o->alpha_imag),
                       beta = g->c == AT_C_NONE ? at_gemm_scalar_of(g, 0.0, 0.0)
                                                : at_gemm_scalar_of(g, o->beta, o->beta_imag);
  const bool half_out = p->dtype_out == p->dtype;
  switch (p->dtype) {
  case ATTUNE_F64: return ANY(D, &alpha.f64, &beta.f64);
  case ATTUNE_C64: return ANY(C, (const cuComplex *)alpha.c64, (const cuComplex *)beta.c64);
  case ATTUNE_C128: return ANY(Z, (const cuDoubleComplex *)alpha.c128, (const cuDoubleComplex *)beta.c128);
  case ATTUNE_F16: return half_out ? HALF(HSH) : HALF(HSS);
  case ATTUNE_BF16: return half_out ? HALF(TST) : HALF(TSS);
  default: return ANY(S, &alpha.f32, &beta.f32);
  }
}

static attune_status check(const at_plan *plan, cublasStatus_t status) {
  return at_cublas_check(plan->device, status, "cublas gemv");
}

/* As cublas: adds to D in place, so that a C of its own is copied there first. */
static __attribute__((noinline)) attune_status launch_in_scope(const at_plan *plan, const at_gemm_operands *o,
                                                               attune_stream *stream) {
  const gemv_plan *p = plan->state;
  const at_gemm *g = at_gemm_of(plan->problem);
  at_cuda_scope scope;
  cublasHandle_t handle = NULL;
  AT_TRY(at_cuda_enter(&scope, plan->device));
  attune_status status = ATTUNE_OK;
  if (p->separate && !at_gemm_beta_is_0((attune_dtype)g->dtype, o)) {
    at_gemm_operands copy = *o;
    copy.beta = 1.0, copy.beta_imag = 0.0;
    status = at_gemm_scale_cuda(stream, g, &copy);
  }
  if (status == ATTUNE_OK) status = at_cuda_blas_mode(stream, p->math, plan->workspace_bytes, &handle);
  if (status == ATTUNE_OK) status = check(plan, multiply(handle, p, g, o));
  at_cuda_leave(&scope);
  return status;
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const gemv_plan *p = plan->state;
  const cublasHandle_t handle =
      AT_LIKELY(!p->separate) ? at_cuda_blas_at_once(stream, p->math, plan->workspace_bytes) : NULL;
  if (AT_UNLIKELY(!handle)) return launch_in_scope(plan, operands, stream);
  const cublasStatus_t status = multiply(handle, p, at_gemm_of(plan->problem), operands);
  at_vendor_leave();
  return AT_LIKELY(status == CUBLAS_STATUS_SUCCESS) ? ATTUNE_OK : check(plan, status);
}

static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  size_t at = 0;
  return at_append(out, size, &at, "cublas-%s", at_cublas_version());
}

const at_implementation at_gemm_cublas_gemv = {
    .name = "cublas_gemv",
    .version = VERSION,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .depends = depends,
};
