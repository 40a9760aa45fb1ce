/* SPDX-License-Identifier: Apache-2.0
 * table.c: gemm as the tuner sees it: its implementations and the slots of at_op. */
#include <math.h>
#include <string.h>

#include "ops/gemm/caller.h"
#include "ops/gemm/cblas_library.h"
#include "ops/gemm/special.h"
#include "tuning/registry.h"

#ifdef AT_WITH_CUDA
#include "src/cuda/cuda.h"
#define AT_CUDA_IMPLEMENTATION(name) extern const at_implementation name;
#else
#define AT_CUDA_IMPLEMENTATION(name)
#endif
#define AT_IMPLEMENTATION(name) extern const at_implementation name;
#include "ops/gemm/implementations.def"
#undef AT_IMPLEMENTATION
#undef AT_CUDA_IMPLEMENTATION

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

static void bind(const void *problem, void *const pointers[AT_MAX_BUFFERS], void *operands) {
  const at_gemm *g = at_gemm_of(problem);
  at_gemm_operands *o = operands;
  *o = (at_gemm_operands){.alpha = 1.0, .a = pointers[0], .b = pointers[1], .d = pointers[2]};
  if (g->c == AT_C_NONE) return;
  o->alpha = AT_GEMM_TEST_ALPHA;
  o->beta = AT_GEMM_TEST_BETA;
  o->c = g->c == AT_C_INPLACE ? pointers[2] : pointers[3];
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
    .format = at_gemm_format,
    .parse = at_gemm_parse,
    .show = at_gemm_show,
    .family = at_gemm_family,
    .distance = distance,
    .each_library = each_library,
    .from_fields = at_gemm_from_fields,
    .flops = flops,
    .bytes = bytes,
    .fold = at_gemm_fold,
    .deterministic = deterministic,
    .buffers = at_gemm_buffers,
    .bind = bind,
    .operands_bytes = sizeof(at_gemm_operands),
    .caller_create = at_gemm_caller_create,
    .caller_run = at_gemm_caller_run,
    .caller_destroy = at_gemm_caller_destroy,
    .reference_create = at_gemm_reference_create,
    .reference_compare = at_gemm_reference_compare,
    .reference_destroy = at_gemm_reference_destroy,
    .special_count = at_gemm_special_count,
    .special_contents = at_gemm_special_contents,
    .special_plant = at_gemm_special_plant,
    .special_bind = at_gemm_special_bind,
    .special_compare = at_gemm_special_compare,
    .special_name = at_gemm_special_name,
};
