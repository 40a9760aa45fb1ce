/* SPDX-License-Identifier: Apache-2.0
 * operation.c: gemm as the tuner sees it: its implementations and the slots of at_op. */
#include <math.h>
#include <stdlib.h>

#include "ops/gemm/host/cblas/cblas_library.h"
#include "ops/gemm/host/libxsmm/libxsmm_library.h"
#include "ops/gemm/problem/overlap.h"
#include "ops/gemm/reference/ieee_specials.h"
#include "tuning/dispatch/single_plan_tuner.h"
#ifdef AT_WITH_CUDA
#include "src/cuda/context/cuda.h"
#endif

#define AT_IMPLEMENTATIONS "ops/gemm/implementations.def"
#include "tuning/op/implementations.h"

static double flops(const void *problem) {
  const at_gemm *g = at_gemm_of(problem);
  return (at_gemm_complex(g->dtype) ? 8.0 : 2.0) * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
}

static double bytes(const void *problem) {
  const at_gemm *g = at_gemm_of(problem);
  const double in = (double)attune_dtype_size((attune_dtype)g->dtype),
               out = (double)attune_dtype_size((attune_dtype)g->dtype_out);
  const double a = (double)g->m * (double)g->k * (g->stride_a ? (double)g->batch : 1.0);
  const double b = (double)g->k * (double)g->n * (g->stride_b ? (double)g->batch : 1.0);
  const double d = (double)at_gemm_rows_d(g) * (double)at_gemm_cols_d(g) * (double)g->batch;
  const double matrices =
      1.0 + (g->c != AT_C_NONE) + (g->epilogue.residual != 0) + (g->epilogue.aux == ATTUNE_AUX_INPUT);
  return in * (a + b) + out * d * matrices;
}

static bool deterministic(const void *problem) {
  return at_gemm_of(problem)->deterministic != 0;
}

static double log_ratio(int64_t x, int64_t y) {
  return fabs(log2((double)x / (double)y));
}

static double distance(const void *problem, const void *other) {
  const at_gemm *g = at_gemm_of(problem), *h = at_gemm_of(other);
  return log_ratio(g->m, h->m) + log_ratio(g->n, h->n) + log_ratio(g->k, h->k) + log_ratio(g->batch, h->batch);
}

_Static_assert(sizeof(at_gemm_operands) <= AT_OPERANDS_BYTES, "operands fit into an operand set");

/* alpha, which is never 0 for an implementation; and beta where C is read. In the order of at_gemm_scalars. */
static int scalars(const void *problem, at_scalar out[AT_MAX_SCALARS]) {
  const at_gemm *g = at_gemm_of(problem);
  const bool c = g->c != AT_C_NONE, complex = at_gemm_complex(g->dtype);
  int count = 0;
  out[count++] = (at_scalar){"alpha", c ? AT_GEMM_TEST_ALPHA : 1.0, {0.25, 2.25}};
  if (complex) out[count++] = (at_scalar){"alpha_imag", 0.0, {-2.0, 2.0}};
  if (c) out[count++] = (at_scalar){"beta", AT_GEMM_TEST_BETA, {-2.0, 2.0}};
  if (c && complex) out[count++] = (at_scalar){"beta_imag", 0.0, {-2.0, 2.0}};
  if (g->epilogue.clamp) {
    out[count++] = (at_scalar){"clamp_min", AT_GEMM_TEST_CLAMP_MIN, {-1.0, -0.5}};
    out[count++] = (at_scalar){"clamp_max", AT_GEMM_TEST_CLAMP_MAX, {0.5, 1.5}};
  }
  return count;
}

static void bind_scaling(const at_gemm *g, void *const pointers[AT_MAX_BUFFERS], at_gemm_operands *o) {
  int at[AT_GEMM_BUFFERS];
  at_gemm_buffer_places(g, at);
  if (at[AT_GEMM_SCALE_A] >= 0) o->scale_a = pointers[at[AT_GEMM_SCALE_A]];
  if (at[AT_GEMM_SCALE_B] >= 0) o->scale_b = pointers[at[AT_GEMM_SCALE_B]];
  if (at[AT_GEMM_SCALE_D] >= 0) o->scale_d = pointers[at[AT_GEMM_SCALE_D]];
  if (at[AT_GEMM_AMAX_D] >= 0) o->amax_d = pointers[at[AT_GEMM_AMAX_D]];
  if (at[AT_GEMM_ZERO_A] >= 0) o->zero_a = pointers[at[AT_GEMM_ZERO_A]];
  if (at[AT_GEMM_ZERO_B] >= 0) o->zero_b = pointers[at[AT_GEMM_ZERO_B]];
}

static void bind_arrays(const at_gemm *g, void *const pointers[AT_MAX_BUFFERS], at_gemm_operands *o) {
  int place[AT_GEMM_BUFFERS];
  at_gemm_buffer_places(g, place);
  o->a = pointers[place[AT_GEMM_A_POINTERS]];
  o->b = pointers[place[AT_GEMM_B_POINTERS]];
  o->d = pointers[place[AT_GEMM_D_POINTERS]];
  if (g->c != AT_C_NONE) o->c = pointers[place[g->c == AT_C_INPLACE ? AT_GEMM_D_POINTERS : AT_GEMM_C_POINTERS]];
}

static void bind(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *with, void *operands) {
  const at_gemm *g = at_gemm_of(problem);
  at_gemm_operands *o = operands;
  const at_gemm_scalars s = at_gemm_scalars_of(g, with);
  *o = (at_gemm_operands){.alpha = s.alpha,
                          .a = pointers[AT_GEMM_A],
                          .b = pointers[AT_GEMM_B],
                          .beta = s.beta,
                          .d = pointers[AT_GEMM_D],
                          .alpha_imag = s.alpha_imag,
                          .beta_imag = s.beta_imag,
                          .clamp_min = s.clamp_min,
                          .clamp_max = s.clamp_max};
  if (at_gemm_has_epilogue(g)) {
    int place[AT_GEMM_BUFFERS];
    at_gemm_buffer_places(g, place);
    o->bias = g->epilogue.bias ? pointers[place[AT_GEMM_BIAS]] : NULL;
    o->residual = g->epilogue.residual ? pointers[place[AT_GEMM_RESIDUAL]] : NULL;
    o->aux = g->epilogue.aux ? pointers[place[AT_GEMM_AUX]] : NULL;
    o->bias_gradient = g->epilogue.bias_gradient ? pointers[place[AT_GEMM_BIAS_GRADIENT]] : NULL;
  }
  if (at_gemm_8bit(g->dtype) || g->scaling.scale_d) bind_scaling(g, pointers, o);
  if (g->pointers) {
    bind_arrays(g, pointers, o);
    return;
  }
  if (g->c == AT_C_NONE) return;
  o->c = pointers[g->c == AT_C_INPLACE ? AT_GEMM_D : AT_GEMM_C];
}

/* ---- a program's calls: how C is used and the alignment are the operands' ---- */

typedef struct many_calls {
  attune_tuner *tuner;
  attune_gemm_problem problem;
  at_bare_calls each;
} many_calls;

static attune_status calls_create(void **out, attune_tuner *tuner, const void *problem, const at_bare_calls *calls) {
  char text[AT_PROBLEM_CHARS];
  many_calls *m = calloc(1, sizeof *m);
  if (!m) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for calls");
  m->tuner = tuner;
  m->each = *calls;
  attune_status status = at_gemm_format(problem, text, sizeof text);
  if (status == ATTUNE_OK) status = attune_gemm_problem_parse(&m->problem, text);
  if (status == ATTUNE_OK)
    *out = m;
  else
    free(m);
  return status;
}

static attune_status calls_run(void *calls, attune_stream *stream, int from, int to) {
  const many_calls *m = calls;
  attune_status status = ATTUNE_OK;
  int copy = from % m->each.copies;
  for (int i = from; i < to && status == ATTUNE_OK; i++) {
    status = attune_gemm(m->tuner, stream, &m->problem, at_bare_operands(&m->each, copy));
    if (++copy == m->each.copies) copy = 0;
  }
  return status;
}

static int each_library(attune_device *device, attune_library_fn fn, void *user) {
#ifdef AT_WITH_CUDA
  if (device->properties.kind == ATTUNE_DEVICE_CUDA) return at_cublas_each(fn, user);
#endif
  (void)device;
  const int end = at_cblas_each(fn, user);
  return end != 0 ? end : at_libxsmm_each(fn, user);
}

static const at_problem_type problem_type = {
    .format = at_gemm_format,
    .parse = at_gemm_parse,
    .show = at_gemm_show,
    .family = at_gemm_family,
    .distance = distance,
    .columns = at_gemm_columns,
    .from_fields = at_gemm_from_fields,
    .flops = flops,
    .bytes = bytes,
    .fold = at_gemm_fold,
    .deterministic = deterministic,
};

static const at_operand_type operand_type = {
    .buffers = at_gemm_buffers,
    .scalars = scalars,
    .bind = bind,
    .spans = at_gemm_spans,
};

static const at_reference_type reference_type = {
    .create = at_gemm_reference_create,
    .compare = at_gemm_reference_compare,
    .destroy = at_gemm_reference_destroy,
};

static const at_special_values special_values = {
    .count = at_gemm_ieee_specials_count,
    .contents = at_gemm_ieee_specials_contents,
    .plant = at_gemm_ieee_specials_plant,
    .scalars = at_gemm_ieee_specials_scalars,
    .compare = at_gemm_ieee_specials_compare,
    .name = at_gemm_ieee_specials_name,
};

static const at_prepared_calls prepared_calls = {.create = calls_create, .run = calls_run, .destroy = free};

const at_op at_gemm_op = {
    .name = "gemm",
    .id = AT_OP_GEMM,
    .implementations = implementations,
    .implementation_count = AT_COUNT(implementations),
    .problem_bytes = sizeof(at_gemm),
    .operands_bytes = sizeof(at_gemm_operands),
    .each_library = each_library,
    .problem = &problem_type,
    .operands = &operand_type,
    .reference = &reference_type,
    .specials = &special_values,
    .calls = &prepared_calls,
    .timed_call = &at_timed_call_by_look_up,
};
