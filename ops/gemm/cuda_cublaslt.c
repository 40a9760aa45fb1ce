/* SPDX-License-Identifier: Apache-2.0
 * cuda_cublaslt.c: GEMM by one exact algorithm of cuBLASLt. The configuration's text names the algorithm by its
 * attributes; a text that this library, device or contract does not accept is a miss. */
#include "ops/gemm/cublaslt.h"

#include <stdlib.h>

#define VERSION 1

/* A prepared multiplication; read-only while plans share it among threads. */
typedef struct lt_plan {
  at_lt_problem problem;
  cublasLtMatmulAlgo_t algorithm;
} lt_plan;

static bool fits(int64_t size) {
  return size <= INT32_MAX;
}

/* Sizes that cuBLASLt's descriptors take; the leading dimensions are 64-bit there. */
static bool supports(const void *problem, attune_device *device) {
  const at_gemm *g = at_gemm_of(problem);
  if (at_cublas_open() != ATTUNE_OK) return false;
  if (!fits(g->m) || !fits(g->n) || !fits(g->k) || !fits(g->batch)) return false;
  return !at_lt_denied(g, device, AT_LT_ANY);
}

static attune_status open_plan(lt_plan *state, at_plan *plan, const at_lt_algorithm *wanted) {
  attune_status status = at_lt_open(&state->problem, at_gemm_of(plan->problem), plan->device);
  if (status != ATTUNE_OK) return status;
  cublasLtMatmulHeuristicResult_t result;
  const char *why = at_lt_check(&state->problem, wanted, &state->algorithm, &result);
  if (why) return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" of cublaslt: %s", plan->configuration.text, why);
  plan->workspace_bytes = result.workspaceSize;
  return ATTUNE_OK;
}

static attune_status prepare(at_plan *plan) {
  at_lt_algorithm wanted;
  if (!at_lt_read(&wanted, &plan->configuration))
    return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" is not one of cublaslt's", plan->configuration.text);
  lt_plan *state = calloc(1, sizeof *state);
  if (!state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a cublaslt plan");
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (status == ATTUNE_OK) {
    status = open_plan(state, plan, &wanted);
    at_cuda_leave(&scope);
  }
  if (status != ATTUNE_OK) {
    at_lt_close(&state->problem);
    free(state);
    return status;
  }
  plan->state = state;
  return ATTUNE_OK;
}

/* With beta = 0 cuBLASLt does not read C, and D stands in for a C that is not there. */
static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const lt_plan *state = plan->state;
  const at_lt_problem *lt = &state->problem;
  const at_gemm_operands *p = operands;
  at_gemm_scalar alpha = at_gemm_scalar_of(&lt->gemm, p->alpha), beta = at_gemm_scalar_of(&lt->gemm, p->beta);
  const void *c = lt->gemm.c == AT_C_SEPARATE ? p->c : p->d;
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  void *workspace = NULL;
  status = at_cuda_workspace(stream, plan->workspace_bytes, &workspace);
  if (AT_LIKELY(status == ATTUNE_OK))
    status = at_cublas_check(plan->device,
                             at_cublas.cublasLtMatmul(lt->handle, lt->matmul, &alpha, p->a, lt->a, p->b, lt->b, &beta,
                                                      c, lt->c, p->d, lt->d, &state->algorithm, workspace,
                                                      plan->workspace_bytes, (cudaStream_t)stream->native),
                             "cublasLtMatmul");
  at_cuda_leave(&scope);
  return status;
}

static void destroy(at_plan *plan) {
  lt_plan *state = plan->state;
  if (!state) return;
  at_lt_close(&state->problem);
  free(state);
  plan->state = NULL;
}

static bool depends(const at_configuration *configuration, attune_device *device, char *out, size_t size) {
  (void)configuration, (void)device;
  size_t at = 0;
  return at_append(out, size, &at, "cublaslt-%s", at_cublaslt_version());
}

const at_implementation at_gemm_cublaslt = {
    .name = "cublaslt",
    .version = VERSION,
    .backend = "cuda",
    .supports = supports,
    .configurations = at_lt_configurations,
    .neighbours = at_lt_neighbours,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .depends = depends,
};
