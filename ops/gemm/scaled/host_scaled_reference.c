/* SPDX-License-Identifier: Apache-2.0
 * host_scaled_reference.c: products of 8-bit elements by plain loops in f64: the fallback, listed last. */
#include "ops/gemm/scaled/scaled.h"
#include "ops/gemm/scaled/value.h"
#include "src/host/host.h"
#include "tuning/op/registry.h"

/* A line of op(A) or op(B): a row of the one, a column of the other. */
typedef struct line {
  const void *data;
  int64_t first, step;
  attune_dtype dtype;
  double zero;
  const float *scale; /* of blocks along k; else NULL */
  at_scale_layout layout;
  int64_t number;
} line;

static double element(const line *l, int64_t p) {
  const double x = at_scaled_load(l->data, l->first + p * l->step, l->dtype) - l->zero;
  return l->scale ? x * (double)l->scale[at_scale_at(l->layout, l->number, p)] : x;
}

static line row_of_a(const at_gemm *g, const at_gemm_operands *o, int64_t batch, int64_t i) {
  return (line){.data = o->a,
                .first = batch * g->stride_a + (g->trans_a ? i * g->lda : i),
                .step = g->trans_a ? 1 : g->lda,
                .dtype = (attune_dtype)g->dtype,
                .zero = g->scaling.zero_a ? (double)*o->zero_a : 0.0,
                .scale = g->scaling.scale_a >= ATTUNE_SCALE_1X128 ? o->scale_a : NULL,
                .layout = at_gemm_scale_layout(g->scaling.scale_a, g->m, g->k),
                .number = i};
}

static line column_of_b(const at_gemm *g, const at_gemm_operands *o, int64_t batch, int64_t j) {
  return (line){.data = o->b,
                .first = batch * g->stride_b + (g->trans_b ? j : j * g->ldb),
                .step = g->trans_b ? g->ldb : 1,
                .dtype = at_gemm_dtype_b(g),
                .zero = g->scaling.zero_b ? (double)*o->zero_b : 0.0,
                .scale = g->scaling.scale_b >= ATTUNE_SCALE_1X128 ? o->scale_b : NULL,
                .layout = at_gemm_scale_layout(g->scaling.scale_b, g->n, g->k),
                .number = j};
}

static double sum_of(const at_gemm *g, const at_gemm_operands *o, int64_t batch, int64_t i, int64_t j) {
  const line a = row_of_a(g, o, batch, i), b = column_of_b(g, o, batch, j);
  double sum = 0.0;
  for (int64_t p = 0; p < g->k; p++) sum += element(&a, p) * element(&b, p);
  return sum;
}

/* Sums of i8 are integers below 2^47. An i8, f16, bf16 or f32 D has those of i32, too. */
void at_scaled_plain(const at_gemm *g, const at_gemm_operands *o) {
  const at_scaled_end end = at_scaled_end_of(g, o);
  const bool product = g->k > 0 && !at_gemm_alpha_is_0((attune_dtype)g->dtype, o);
  float most = 0.0f;
  for (int64_t batch = 0; batch < g->batch; batch++)
    for (int64_t j = 0; j < g->n; j++)
      for (int64_t i = 0; i < g->m; i++) {
        double sum = product ? sum_of(g, o, batch, i, j) : 0.0;
        if (g->dtype == ATTUNE_I8) sum = (double)(int32_t)(uint32_t)(int64_t)sum;
        if (g->dtype_out == ATTUNE_I32)
          at_scaled_put_i32(&end, batch, i, j, (uint32_t)(int32_t)sum);
        else
          most = at_scaled_put(&end, batch, i, j, sum, most);
      }
  if (g->scaling.amax_d) *o->amax_d = most;
}

typedef struct work {
  at_gemm g;
  at_gemm_operands o;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = args;
  at_scaled_plain(&w->g, &w->o);
}

attune_status at_scaled_without_product(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o) {
  work w = {*g, *o};
  w.o.alpha = 0.0; /* or k is 0 */
#ifdef AT_WITH_CUDA
  if (stream->device->properties.kind == ATTUNE_DEVICE_CUDA) return at_scaled_without_product_cuda(stream, g, &w.o);
#endif
  return at_host_submit(stream, run, &w, sizeof w);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const work w = {*at_gemm_of(plan->problem), *(const at_gemm_operands *)operands};
  return at_host_submit(stream, run, &w, sizeof w);
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  return device->backend.kind == ATTUNE_DEVICE_HOST && at_gemm_8bit(at_gemm_of(problem)->dtype);
}

static attune_status prepare(at_plan *plan) {
  return at_configuration_check_none(plan);
}

const at_implementation at_gemm_host_scaled_reference = {
    .name = "host_scaled_reference",
    .version = 1,
    .backend = "host",
    .fallback = true,
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = prepare,
    .launch = launch,
};
