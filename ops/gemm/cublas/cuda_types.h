/* SPDX-License-Identifier: Apache-2.0
 * cuda_types.h: attune's element types and accuracy levels in the words of cuBLAS. */
#ifndef AT_GEMM_CUDA_TYPES_H
#define AT_GEMM_CUDA_TYPES_H

#include <cublas_v2.h>

#include "ops/gemm/problem/problem.h"

static inline cudaDataType_t at_gemm_cuda_type(uint8_t dtype) {
  switch (dtype) {
  case ATTUNE_F64: return CUDA_R_64F;
  case ATTUNE_F16: return CUDA_R_16F;
  case ATTUNE_BF16: return CUDA_R_16BF;
  case ATTUNE_C64: return CUDA_C_32F;
  case ATTUNE_C128: return CUDA_C_64F;
  default: return CUDA_R_32F;
  }
}

/* TF32 only where the contract is reduced. Halves are multiplied exactly and added up in f32 on every level. */
static inline cublasComputeType_t at_gemm_compute_type(const at_gemm *g) {
  const attune_dtype part = at_gemm_part(g->dtype);
  if (part == ATTUNE_F64) return CUBLAS_COMPUTE_64F;
  if (part == ATTUNE_F32 && g->accuracy == ATTUNE_REDUCED) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

static inline cudaDataType_t at_gemm_scale_type(const at_gemm *g) {
  return g->dtype == ATTUNE_F64 || at_gemm_complex(g->dtype) ? at_gemm_cuda_type(g->dtype) : CUDA_R_32F;
}

static inline cublasOperation_t at_gemm_operation(uint8_t transpose) {
  return transpose == ATTUNE_C ? CUBLAS_OP_C : transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
}

/* alpha or beta in the scale type; its address is what cuBLAS takes. */
typedef union at_gemm_scalar {
  float f32, c64[2];
  double f64;
  _Alignas(16) double c128[2]; /* as cuDoubleComplex */
} at_gemm_scalar;

/* The imaginary part counts for complex problems only. */
static inline at_gemm_scalar at_gemm_scalar_of(const at_gemm *g, double value, double imag) {
  switch (g->dtype) {
  case ATTUNE_F64: return (at_gemm_scalar){.f64 = value};
  case ATTUNE_C128: return (at_gemm_scalar){.c128 = {value, imag}};
  case ATTUNE_C64: return (at_gemm_scalar){.c64 = {(float)value, (float)imag}};
  default: return (at_gemm_scalar){.f32 = (float)value};
  }
}

#endif
