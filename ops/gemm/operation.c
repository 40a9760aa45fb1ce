/* SPDX-License-Identifier: Apache-2.0
 * operation.c: gemm as the tuner sees it: its implementations and the slots of at_op. */
#include <math.h>
#include <string.h>

#include "ops/gemm/host/cblas_library.h"
#include "ops/gemm/host/host_reference.h"
#include "ops/gemm/implementations.h"
#include "ops/gemm/problem/overlap.h"
#include "ops/gemm/problem/test_cases.h"
#include "ops/gemm/public_call.h"
#include "ops/gemm/reference/ieee_specials.h"

#ifdef AT_WITH_CUDA
#include "src/cuda/context/cuda.h"
#endif

static const at_implementation *const implementations[] = {
#ifdef AT_WITH_CUDA
#define AT_CUDA_IMPLEMENTATION(name) &name,
#else
#define AT_CUDA_IMPLEMENTATION(name)
#endif
#define AT_IMPLEMENTATION(name) &name,
#include "ops/gemm/implementations.def"
};

static double flops(const void *problem) {
  const at_gemm *g = at_gemm_of(problem);
  return 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
}

static double bytes(const void *problem) {
  const at_gemm *g = at_gemm_of(problem);
  const double in = (double)attune_dtype_size((attune_dtype)g->dtype),
               out = (double)attune_dtype_size((attune_dtype)g->dtype_out);
  const double a = (double)g->m * (double)g->k * (g->stride_a ? (double)g->batch : 1.0);
  const double b = (double)g->k * (double)g->n * (g->stride_b ? (double)g->batch : 1.0);
  const double d = (double)g->m * (double)g->n * (double)g->batch;
  return in * (a + b) + out * d * (g->c == AT_C_NONE ? 1.0 : 2.0);
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

/* alpha, which is never 0 for an implementation; and beta where C is read. */
static int scalars(const void *problem, at_scalar out[AT_MAX_SCALARS]) {
  const bool c = at_gemm_of(problem)->c != AT_C_NONE;
  out[0] = (at_scalar){"alpha", c ? AT_GEMM_TEST_ALPHA : 1.0, {0.25, 2.25}};
  if (c) out[1] = (at_scalar){"beta", AT_GEMM_TEST_BETA, {-2.0, 2.0}};
  return c ? 2 : 1;
}

static void bind(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *with, void *operands) {
  const at_gemm *g = at_gemm_of(problem);
  at_gemm_operands *o = operands;
  *o = (at_gemm_operands){
      .alpha = with[0], .a = pointers[AT_GEMM_A], .b = pointers[AT_GEMM_B], .d = pointers[AT_GEMM_D]};
  if (g->c == AT_C_NONE) return;
  o->beta = with[1];
  o->c = pointers[g->c == AT_C_INPLACE ? AT_GEMM_D : AT_GEMM_C];
}

static bool case_at(int index, void *problem) {
  at_gemm_case c;
  bool swap = false;
  at_gemm_case_at(index, &c);
  const at_gemm_use use = {c.c, (uint8_t)c.alignment};
  at_gemm *g = problem;
  return at_gemm_normalise(&c.problem, use, g, &swap) == ATTUNE_OK && !at_gemm_empty(g) && g->k > 0;
}

static void oracle(const void *problem, void *const pointers[AT_MAX_BUFFERS], const double *with) {
  const at_gemm *g = at_gemm_of(problem);
  at_gemm_operands o;
  bind(problem, pointers, with, &o);
  for (int64_t b = 0; b < g->batch; b++) at_gemm_plain(g, &o, b, 0, g->m, 0, g->n);
}

static int each_library(attune_device *device, attune_library_fn fn, void *user) {
#ifdef AT_WITH_CUDA
  if (device->properties.kind == ATTUNE_DEVICE_CUDA) return at_cublas_each(fn, user);
#endif
  (void)device;
  return at_cblas_each(fn, user);
}

const at_op at_gemm_op = {
    .name = "gemm",
    .id = AT_OP_GEMM,
    .implementations = implementations,
    .implementation_count = AT_COUNT(implementations),
    .problem_bytes = sizeof(at_gemm),
    .operands_bytes = sizeof(at_gemm_operands),
    .format = at_gemm_format,
    .parse = at_gemm_parse,
    .show = at_gemm_show,
    .family = at_gemm_family,
    .distance = distance,
    .each_library = each_library,
    .columns = at_gemm_columns,
    .from_fields = at_gemm_from_fields,
    .flops = flops,
    .bytes = bytes,
    .fold = at_gemm_fold,
    .deterministic = deterministic,
    .buffers = at_gemm_buffers,
    .scalars = scalars,
    .bind = bind,
    .call = at_gemm_call,
    .plan_create = at_gemm_call_plan_create,
    .plan_run = at_gemm_call_plan_run,
    .spans = at_gemm_spans,
    .caller_create = at_gemm_public_call_create,
    .caller_run = at_gemm_public_call_run,
    .caller_destroy = at_gemm_public_call_destroy,
    .calls_create = at_gemm_calls_create,
    .calls_run = at_gemm_calls_run,
    .calls_destroy = at_gemm_calls_destroy,
    .reference_create = at_gemm_reference_create,
    .reference_compare = at_gemm_reference_compare,
    .reference_destroy = at_gemm_reference_destroy,
    .special_count = at_gemm_ieee_specials_count,
    .special_contents = at_gemm_ieee_specials_contents,
    .special_plant = at_gemm_ieee_specials_plant,
    .special_scalars = at_gemm_ieee_specials_scalars,
    .special_compare = at_gemm_ieee_specials_compare,
    .special_name = at_gemm_ieee_specials_name,
    .case_count = at_gemm_case_count,
    .case_at = case_at,
    .oracle = oracle,
};
