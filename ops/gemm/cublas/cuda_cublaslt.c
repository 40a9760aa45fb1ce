/* SPDX-License-Identifier: Apache-2.0
 * cuda_cublaslt.c: GEMM by one exact algorithm of cuBLASLt. The configuration's text names the algorithm by its
 * attributes; a text that this library, device or contract does not accept is a miss. */
#include "ops/gemm/cublas/cublaslt.h"

#define VERSION 1

static bool fits(int64_t size) {
  return size <= INT32_MAX;
}

/* Sizes that cuBLASLt's descriptors take; the leading dimensions are 64-bit there. Which 8-bit products and arrays of
 * pointers it takes depends on its version: it is asked. */
static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  const at_gemm *g = at_gemm_of(problem);
  at_configuration first;
  const bool scaled = at_gemm_8bit(g->dtype), arrays = g->pointers == ATTUNE_POINTERS_DEVICE;
  if (at_cublas_open() != ATTUNE_OK || !at_lt_has_epilogue(g) || !at_gemm_aligned(g)) return false;
  if (g->pointers && !arrays) return false;
  if (!fits(g->m) || !fits(g->n) || !fits(g->k) || !fits(g->batch)) return false;
  if (at_lt_is_huge(g)) return false;
  if (scaled && !at_lt_may_scale(g, device)) return false;
  return !(scaled || arrays) || at_lt_search(g, 0, device, NULL, &first, 1) == 1;
}

static attune_status open_plan(at_plan *plan) {
  at_lt_algorithm wanted;
  if (!at_tunables_parse(&at_lt_tunables, &wanted, &plan->configuration))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; should be one of cublaslt", plan->configuration.text);
  const at_gemm *g = at_gemm_of(plan->problem);
  AT_TRY(at_lt_restore(plan, g, 0, &wanted));
  plan->workspace_bytes = ((const at_lt_plan *)plan->state)->workspace_bytes + at_lt_scale_bytes(g);
  return ATTUNE_OK;
}

static attune_status prepare(at_plan *plan) {
  return at_lt_prepare(plan, sizeof(at_lt_plan), open_plan);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  at_cuda_scope scope;
  void *workspace = NULL;
  attune_status status = at_lt_enter(&scope, &workspace, plan, stream);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  status = at_lt_multiply(plan->state, operands, workspace, stream);
  at_cuda_leave(&scope);
  return status;
}

static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  size_t at = 0;
  return at_append(out, size, &at, "cublaslt-%s", at_cublaslt_version());
}

const at_implementation at_gemm_cublaslt = {
    .name = "cublaslt",
    .version = VERSION,
    .backend = "cuda",
    .tunables = &at_lt_tunables,
    .supports = supports,
    .configurations = at_lt_configurations,
    .neighbours = at_lt_neighbours,
    .prepare = prepare,
    .launch = launch,
    .destroy = at_lt_destroy,
    .depends = depends,
};
