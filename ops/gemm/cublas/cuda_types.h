/* SPDX-License-Identifier: Apache-2.0
 * cuda_types.h: attune's element types and accuracy levels in the words of cuBLAS, and slots that its implementations
 * share. */
#ifndef AT_GEMM_CUDA_TYPES_H
#define AT_GEMM_CUDA_TYPES_H

#include <cublas_v2.h>

#include <math.h>

#include "ops/gemm/problem/problem.h"
#include "tuning/op/registry.h"

static inline cudaDataType_t at_gemm_cuda_type(uint8_t dtype) {
  switch (dtype) {
  case ATTUNE_F64: return CUDA_R_64F;
  case ATTUNE_F16: return CUDA_R_16F;
  case ATTUNE_BF16: return CUDA_R_16BF;
  case ATTUNE_C64: return CUDA_C_32F;
  case ATTUNE_C128: return CUDA_C_64F;
  case ATTUNE_I8: return CUDA_R_8I;
  case ATTUNE_I32: return CUDA_R_32I;
  case ATTUNE_F8E4M3: return CUDA_R_8F_E4M3;
  case ATTUNE_F8E5M2: return CUDA_R_8F_E5M2;
  default: return CUDA_R_32F;
  }
}

/* TF32 only where the contract is reduced. Halves are multiplied exactly and added up in f32 on every level. */
static inline cublasComputeType_t at_gemm_compute_type(const at_gemm *g) {
  const attune_dtype part = at_gemm_part(g->dtype);
  if (part == ATTUNE_F64) return CUBLAS_COMPUTE_64F;
  if (g->dtype == ATTUNE_I8) return CUBLAS_COMPUTE_32I;
  if (part == ATTUNE_F32 && g->accuracy == ATTUNE_REDUCED) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return CUBLAS_COMPUTE_32F;
}

static inline cudaDataType_t at_gemm_scale_type(const at_gemm *g) {
  if (g->dtype == ATTUNE_I8 && g->dtype_out == ATTUNE_I32) return CUDA_R_32I;
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
  int32_t i32;
} at_gemm_scalar;

/* The imaginary part counts for complex problems only. */
static inline at_gemm_scalar at_gemm_scalar_of(const at_gemm *g, double value, double imag) {
  switch (g->dtype) {
  case ATTUNE_F64: return (at_gemm_scalar){.f64 = value};
  case ATTUNE_C128: return (at_gemm_scalar){.c128 = {value, imag}};
  case ATTUNE_C64: return (at_gemm_scalar){.c64 = {(float)value, (float)imag}};
  default: break;
  }
  if (g->dtype_out == ATTUNE_I32)
    return (at_gemm_scalar){.i32 = value != value ? 0 : (int32_t)fmax(-2147483648.0, fmin(2147483647.0, value))};
  return (at_gemm_scalar){.f32 = (float)value};
}

/* Slots `prepare` and `depends` of an implementation without tunables that calls cuBLAS: workspace as the problem's cap
 * permits, and the library's version. */
attune_status at_gemm_cublas_prepare(at_plan *plan);
bool at_gemm_cublas_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                            char *out, size_t size);

#endif
