/* SPDX-License-Identifier: Apache-2.0
 * cublaslt_epilogue.c: the epilogues that cuBLASLt has (its documentation, cublasLtEpilogue_t): a bias along m; relu
 * and the tanh form of gelu, also with what their gradients need; their gradients; bias gradients. A residual takes
 * the place of C, where nothing else comes between. */
#include "ops/gemm/cublas/cublaslt.h"
#include "ops/gemm/problem/epilogue.h"

/* Where operands are while no call says so: a multiple of whatever their class promises, for heuristics look at it. */
static void *somewhere(const at_gemm *g) {
  return (void *)(uintptr_t)(0x7f0000000000 + (g->alignment >= AT_ALIGNMENT ? 256 : g->alignment));
}

/* CUBLASLT_EPILOGUE_DEFAULT: it is none of cuBLASLt's. */
static cublasLtEpilogue_t gradient_of(const attune_gemm_epilogue *e) {
  const bool sums = e->bias_gradient == ATTUNE_BIAS_GRADIENT_M;
  if (e->bias || e->residual || (e->bias_gradient && !sums)) return CUBLASLT_EPILOGUE_DEFAULT;
  if (e->activation == ATTUNE_ACTIVATION_RELU && e->aux == ATTUNE_AUX_RELU_MASK)
    return sums ? CUBLASLT_EPILOGUE_DRELU_BGRAD : CUBLASLT_EPILOGUE_DRELU;
  if (e->activation == ATTUNE_ACTIVATION_GELU_TANH && e->aux == ATTUNE_AUX_INPUT)
    return sums ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
  return CUBLASLT_EPILOGUE_DEFAULT;
}

static cublasLtEpilogue_t forward_of(const attune_gemm_epilogue *e) {
  if (e->bias == ATTUNE_BIAS_N || e->bias_gradient > ATTUNE_BIAS_GRADIENT_B) return CUBLASLT_EPILOGUE_DEFAULT;
  if (e->bias_gradient && (e->bias || e->activation || e->aux || e->residual)) return CUBLASLT_EPILOGUE_DEFAULT;
  if (e->bias_gradient)
    return e->bias_gradient == ATTUNE_BIAS_GRADIENT_A ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
  if (e->activation && e->residual) return CUBLASLT_EPILOGUE_DEFAULT;
  if (e->activation == ATTUNE_ACTIVATION_RELU && e->aux != ATTUNE_AUX_INPUT)
    return e->aux ? (e->bias ? CUBLASLT_EPILOGUE_RELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX)
                  : (e->bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU);
  if (e->activation == ATTUNE_ACTIVATION_GELU_TANH)
    return e->aux ? (e->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX)
                  : (e->bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU);
  return !e->activation && !e->aux && e->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

static cublasLtEpilogue_t epilogue_of(const at_gemm *g) {
  return g->epilogue.gradient ? gradient_of(&g->epilogue) : forward_of(&g->epilogue);
}

bool at_lt_has_epilogue(const at_gemm *g) {
  const attune_gemm_epilogue *e = &g->epilogue;
  if (!at_gemm_has_epilogue(g)) return true;
  if (g->gated || g->scaling.scale_d || e->clamp || (e->residual && g->c != AT_C_NONE)) return false;
  if (e->bias_dtype && e->bias_dtype != g->dtype_out) return false;
  /* cublasLt.h: ld of a mask in bits, a multiple of 128; of gelu's input a multiple of 8; both 16-byte aligned */
  const int64_t unit = e->aux == ATTUNE_AUX_RELU_MASK ? 128 : 8;
  if (e->aux && (g->alignment < 16 || g->ld_aux % unit || g->stride_aux % unit)) return false;
  return epilogue_of(g) != CUBLASLT_EPILOGUE_DEFAULT ||
         (e->residual && !e->bias && !e->activation && !e->aux && !e->gradient && !e->bias_gradient);
}

at_gemm at_lt_with_residual(const at_gemm *g) {
  at_gemm out = *g;
  if (!g->epilogue.residual) return out;
  out.c = AT_C_SEPARATE;
  out.ldc = g->ld_residual;
  out.stride_c = g->stride_residual;
  return out;
}

static cublasStatus_t put(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t attribute, const void *value,
                          size_t size, cublasStatus_t before) {
  return before != CUBLAS_STATUS_SUCCESS ? before
                                         : at_cublas.cublasLtMatmulDescSetAttribute(matmul, attribute, value, size);
}

static cublasStatus_t put_pointers(cublasLtMatmulDesc_t matmul, const at_gemm *g, const void *vector, const void *aux) {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (g->epilogue.bias || g->epilogue.bias_gradient)
    status = put(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector, status);
  if (g->epilogue.aux) status = put(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux, status);
  return status;
}

cublasStatus_t at_lt_set_epilogue(cublasLtMatmulDesc_t matmul, const at_gemm *g) {
  const cublasLtEpilogue_t epilogue = epilogue_of(g);
  if (epilogue == CUBLASLT_EPILOGUE_DEFAULT) return CUBLAS_STATUS_SUCCESS;
  cublasStatus_t status = put(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue, CUBLAS_STATUS_SUCCESS);
  if (g->epilogue.bias || g->epilogue.bias_gradient) {
    const cudaDataType_t type = at_gemm_cuda_type(g->epilogue.bias_dtype);
    status = put(matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type, status);
  }
  if (g->epilogue.aux) {
    status = put(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &g->ld_aux, sizeof g->ld_aux, status);
    if (g->batch > 1)
      status =
          put(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, &g->stride_aux, sizeof g->stride_aux, status);
  }
  return status == CUBLAS_STATUS_SUCCESS ? put_pointers(matmul, g, somewhere(g), somewhere(g)) : status;
}

cublasStatus_t at_lt_move_epilogue(cublasLtMatmulDesc_t matmul, const at_gemm *g, const at_gemm_operands *o) {
  return put_pointers(matmul, g, g->epilogue.bias ? o->bias : o->bias_gradient, o->aux);
}
