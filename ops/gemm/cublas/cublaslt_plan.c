/* SPDX-License-Identifier: Apache-2.0
 * cublaslt_plan.c: what cublaslt and cublaslt_padded do alike: a plan made, launched and destroyed. */
#include "ops/gemm/cublas/cublaslt.h"

#include <stdlib.h>

#include "src/cuda/jit/jit.h"
#include "src/process/vendor.h"

attune_status at_lt_prepare(at_plan *plan, size_t bytes, attune_status (*open)(at_plan *plan)) {
  plan->state = calloc(1, bytes);
  if (!plan->state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a %s plan", plan->implementation->name);
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (status == ATTUNE_OK) {
    status = open(plan);
    at_cuda_leave(&scope);
  }
  if (status != ATTUNE_OK) plan->implementation->destroy(plan);
  return status;
}

attune_status at_lt_restore(at_plan *plan, const at_gemm *g, unsigned copied, const at_lt_algorithm *wanted) {
  at_lt_plan *lt = plan->state;
  cublasLtMatmulHeuristicResult_t result;
  AT_TRY(at_lt_open(&lt->problem, g, copied, plan->device));
  const char *why = at_lt_check(&lt->problem, wanted, &lt->algorithm, &result);
  if (why)
    return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" of %s: %s", plan->configuration.text,
                   plan->implementation->name, why);
  lt->workspace_bytes = result.workspaceSize;
  return ATTUNE_OK;
}

attune_status at_lt_enter(at_cuda_scope *scope, void **workspace, const at_plan *plan, attune_stream *stream) {
  attune_status status = at_vendor_gone() ? at_vendor_refuse() : at_cuda_enter(scope, plan->device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  status = at_cuda_workspace(stream, plan->workspace_bytes, workspace);
  if (AT_UNLIKELY(status != ATTUNE_OK)) at_cuda_leave(scope);
  return status;
}

/* The operands of an epilogue lie in the descriptor: a call has a copy of its own, for plans are shared by threads. */
static __attribute__((noinline)) attune_status multiply_with_epilogue(const at_lt_plan *lt, const at_gemm_operands *o,
                                                                      void *workspace, attune_stream *stream) {
  const at_lt_problem *p = &lt->problem;
  const bool residual = p->gemm.epilogue.residual != 0;
  const at_gemm_scalar alpha = at_gemm_scalar_of(&p->gemm, o->alpha, 0.0),
                       beta = at_gemm_scalar_of(&p->gemm, residual ? 1.0 : o->beta, 0.0);
  const void *c = residual ? o->residual : p->gemm.c == AT_C_SEPARATE ? o->c : o->d;
  cublasLtMatmulDescOpaque_t matmul = *p->matmul;
  AT_TRY(at_cublas_check(p->device, at_lt_move_epilogue(&matmul, &p->gemm, o), "cublasLtMatmulDescSetAttribute"));
  return at_cublas_check(p->device,
                         at_cublas.cublasLtMatmul(p->handle, &matmul, &alpha, o->a, p->a, o->b, p->b, &beta, c, p->c,
                                                  o->d, p->d, &lt->algorithm, workspace, lt->workspace_bytes,
                                                  (cudaStream_t)stream->native),
                         "cublasLtMatmul");
}

/* With beta = 0 cuBLASLt does not read C, and D stands in for a C that is not there. */
attune_status at_lt_multiply(const at_lt_plan *lt, const at_gemm_operands *operands, void *workspace,
                             attune_stream *stream) {
  const at_lt_problem *p = &lt->problem;
  const at_gemm_operands *o = operands;
  if (AT_UNLIKELY(at_gemm_has_epilogue(&p->gemm))) return multiply_with_epilogue(lt, o, workspace, stream);
  if (AT_UNLIKELY(at_gemm_8bit(p->gemm.dtype))) return at_lt_multiply_scaled(lt, o, workspace, stream);
  const at_gemm_scalar alpha = at_gemm_scalar_of(&p->gemm, o->alpha, o->alpha_imag),
                       beta = at_gemm_scalar_of(&p->gemm, o->beta, o->beta_imag);
  const void *c = p->gemm.c == AT_C_SEPARATE ? o->c : o->d;
  return at_cublas_check(p->device,
                         at_cublas.cublasLtMatmul(p->handle, p->matmul, &alpha, o->a, p->a, o->b, p->b, &beta, c, p->c,
                                                  o->d, p->d, &lt->algorithm, workspace, lt->workspace_bytes,
                                                  (cudaStream_t)stream->native),
                         "cublasLtMatmul");
}

void at_lt_destroy(at_plan *plan) {
  at_lt_plan *lt = plan->state;
  if (!lt) return;
  at_lt_close(&lt->problem);
  free(lt);
  plan->state = NULL;
}

bool at_lt_depends_on_kernels(const at_implementation *self, const at_configuration *configuration,
                              attune_device *device, char *out, size_t size) {
  (void)self, (void)configuration, (void)device;
  size_t at = 0;
  return at_append(out, size, &at, "cublaslt-%s ", at_cublaslt_version()) && at_jit_depends(out + at, size - at);
}
