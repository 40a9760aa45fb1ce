/* SPDX-License-Identifier: Apache-2.0
 * scaled_cuda.c: the implementation of scaled.cuh: any product of 8-bit elements on any GPU. */
#include "ops/gemm/scaled/scaled_cuda.h"

#include <stdlib.h>

#include "ops/gemm/scaled/scaled.h"
#include "ops/gemm/scaled/value.h"
#include "src/cuda/jit/jit.h"
#include "tuning/op/registry.h"

#include "gemm_kernel_cuh.h"
#include "gemm_scaled_cuh.h"
#include "gemm_scaled_element_cuh.h"

/* at_side and at_scaled_arguments of scaled.cuh. */
typedef struct scaled_side {
  const void *data;
  const float *scale;
  const int8_t *zero;
  int64_t by_line, by_depth, stride, scale_line, scale_block;
  int32_t lines, unused;
} scaled_side;
typedef struct scaled_arguments {
  scaled_side a, b;
  const void *c;
  void *d;
  const float *scale_d;
  float *amax;
  int64_t ldc, ldd, stride_c, stride_d;
  float alpha, beta;
  int32_t integer_alpha, integer_beta;
  int32_t k, batch, with_c, unused;
} scaled_arguments;

enum { TILE = 64, THREADS = 256, MOST_BLOCKS = 1 << 20 };

attune_status at_scaled_text(const at_gemm *g, char **out) {
  const attune_gemm_scaling s = g->scaling;
  const struct {
    const char *name;
    int value;
  } defines[] = {{"IN_A", g->dtype},       {"IN_B", (int)at_gemm_dtype_b(g)},
                 {"D_TYPE", g->dtype_out}, {"SCALE_A", s.scale_a},
                 {"SCALE_B", s.scale_b},   {"SCALE_D", s.scale_d},
                 {"AMAX", s.amax_d},       {"ZERO_A", s.zero_a},
                 {"ZERO_B", s.zero_b}};
  const size_t size = sizeof at_gemm_kernel_cuh + sizeof at_gemm_scaled_element_cuh + sizeof at_gemm_scaled_cuh + 512;
  size_t at = 0;
  bool fits = true;
  *out = malloc(size);
  if (!*out) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the text of a kernel");
  for (size_t i = 0; i < AT_COUNT(defines); i++)
    fits = fits && at_append(*out, size, &at, "#define %s %d\n", defines[i].name, defines[i].value);
  if (fits && at_append(*out, size, &at, "%s%s%s", at_gemm_kernel_cuh, at_gemm_scaled_element_cuh, at_gemm_scaled_cuh))
    return ATTUNE_OK;
  free(*out);
  *out = NULL;
  return at_fail(ATTUNE_INTERNAL, "the source of a scaled product is too long");
}

at_kernel_source at_scaled_source(const char *text) {
  return (at_kernel_source){.file = "scaled.cuh", .text = text, .entry = "at_scaled"};
}

static attune_status open_kernel(at_jit_kernel **out, const at_gemm *g, attune_device *device) {
  char *text;
  AT_TRY(at_scaled_text(g, &text));
  const at_kernel_source source = at_scaled_source(text);
  const attune_status status = at_jit_get(out, device, &source);
  free(text);
  return status;
}

static scaled_side side_of(const at_gemm *g, const at_gemm_operands *o, bool b) {
  const bool along = b ? g->trans_b != 0 : g->trans_a == 0; /* lines lie side by side */
  const int64_t ld = b ? g->ldb : g->lda, lines = b ? g->n : g->m;
  const at_scale_layout scale = at_gemm_scale_layout(b ? g->scaling.scale_b : g->scaling.scale_a, lines, g->k);
  return (scaled_side){.data = b ? o->b : o->a,
                       .scale = b ? o->scale_b : o->scale_a,
                       .zero = b ? o->zero_b : o->zero_a,
                       .by_line = along ? 1 : ld,
                       .by_depth = along ? ld : 1,
                       .stride = b ? g->stride_b : g->stride_a,
                       .scale_line = scale.line,
                       .scale_block = scale.block,
                       .lines = (int32_t)lines};
}

static scaled_arguments arguments_of(const at_gemm *g, const at_gemm_operands *o) {
  const bool product = !at_gemm_alpha_is_0((attune_dtype)g->dtype, o);
  const bool with_c = g->c != AT_C_NONE && !at_gemm_beta_is_0((attune_dtype)g->dtype, o);
  return (scaled_arguments){.a = side_of(g, o, false),
                            .b = side_of(g, o, true),
                            .c = g->c == AT_C_INPLACE ? o->d : o->c,
                            .d = o->d,
                            .scale_d = o->scale_d,
                            .amax = o->amax_d,
                            .ldc = g->ldc,
                            .ldd = g->ldd,
                            .stride_c = g->stride_c,
                            .stride_d = g->stride_d,
                            .alpha = (float)o->alpha,
                            .beta = (float)o->beta,
                            .integer_alpha = at_scaled_integer(o->alpha),
                            .integer_beta = at_scaled_integer(o->beta),
                            .k = product ? (int32_t)g->k : 0,
                            .batch = (int32_t)g->batch,
                            .with_c = with_c};
}

static attune_status launch_kernel(at_jit_kernel *kernel, const at_gemm *g, const at_gemm_operands *o,
                                   attune_stream *stream) {
  const scaled_arguments a = arguments_of(g, o);
  const double tiles = (double)((g->m + TILE - 1) / TILE) * (double)((g->n + TILE - 1) / TILE) * (double)g->batch;
  const unsigned blocks = tiles < (double)MOST_BLOCKS ? (unsigned)tiles : MOST_BLOCKS;
  at_cuda_scope scope;
  AT_TRY(at_cuda_enter(&scope, stream->device));
  attune_status status = ATTUNE_OK;
  if (g->scaling.amax_d)
    status = at_cuda_check(stream->device, cudaMemsetAsync(o->amax_d, 0, sizeof(float), (cudaStream_t)stream->native),
                           "cudaMemsetAsync");
  if (status == ATTUNE_OK)
    status = at_jit_launch(kernel, &(at_jit_config){.grid = {blocks}, .block = {THREADS}}, &a, stream);
  at_cuda_leave(&scope);
  return status;
}

attune_status at_scaled_without_product_cuda(attune_stream *stream, const at_gemm *g, const at_gemm_operands *o) {
  at_jit_kernel *kernel = NULL;
  AT_TRY(open_kernel(&kernel, g, stream->device));
  const attune_status status = launch_kernel(kernel, g, o, stream);
  at_jit_release(kernel);
  return status;
}

/* ---- the implementation ---- */

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)device;
  return at_gemm_8bit(at_gemm_of(problem)->dtype);
}

static attune_status prepare(at_plan *plan) {
  AT_TRY(at_configuration_check_none(plan));
  at_jit_kernel *kernel = NULL;
  AT_TRY(open_kernel(&kernel, at_gemm_of(plan->problem), plan->device));
  plan->state = kernel;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  at_jit_release(plan->state);
  plan->state = NULL;
}

static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  (void)self, (void)configuration;
  char *text;
  AT_TRY(at_scaled_text(at_gemm_of(problem), &text));
  const at_kernel_source source = at_scaled_source(text);
  const attune_status status = at_jit_compile(device, &source, made);
  free(text);
  return status;
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  return launch_kernel(plan->state, at_gemm_of(plan->problem), operands, stream);
}

static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  return at_jit_depends(out, size);
}

const at_implementation at_gemm_cuda_scaled = {
    .name = "cuda_scaled",
    .version = 1,
    .backend = "cuda",
    .fallback = true,
    .supports = supports,
    .configurations = at_configurations_none,
    .prepare = prepare,
    .compile = compile,
    .launch = launch,
    .destroy = destroy,
    .depends = depends,
};
