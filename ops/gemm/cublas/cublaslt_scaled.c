/* SPDX-License-Identifier: Apache-2.0
 * cublaslt_scaled.c: products of 8-bit elements by cuBLASLt: which it may have, and their scales in its descriptors. */
#include "ops/gemm/cublas/cublaslt.h"
#include "ops/gemm/problem/scaling.h"

/* Scale modes came with CUDA 12.8 and 12.9; a library without one refuses its number, and there is no candidate. */
enum {
  MODE_TENSOR = 0,
  MODE_VECTOR = 3,
  MODE_1X128 = 4,
  MODE_128X128 = 5,
  ATTRIBUTE_MODE_A = 31,
  ATTRIBUTE_MODE_B = 32
};

static bool is_f8(unsigned dtype) {
  return dtype == ATTUNE_F8E4M3 || dtype == ATTUNE_F8E5M2;
}

/* Pairs of modes that cuBLASLt 13.1 has: those of vectors and blocks on capability 9.0 only, with a D of 16 bits or
 * more and no fast accumulation for blocks. */
static bool may_pair(const at_gemm *g, bool hopper) {
  const uint8_t a = g->scaling.scale_a, b = g->scaling.scale_b;
  if (a <= ATTUNE_SCALE_TENSOR && b <= ATTUNE_SCALE_TENSOR) return true;
  if (!hopper || is_f8(g->dtype_out) || g->scaling.amax_d) return false;
  if (a == ATTUNE_SCALE_VECTOR || b == ATTUNE_SCALE_VECTOR) return a == b;
  if (a < ATTUNE_SCALE_1X128 || b < ATTUNE_SCALE_1X128) return false;
  return (a == ATTUNE_SCALE_1X128 || b == ATTUNE_SCALE_1X128) && g->m % 4 == 0 && g->n % 4 == 0 && g->alignment >= 16;
}

/* Single scales and amax that are not aligned to 16 bytes, which cuBLASLt 13.1 refuses at the call (seen on an H200),
 * have places at the start of the workspace. */
enum { PLACE_A, PLACE_B, PLACE_D, PLACE_AMAX, PLACE_BYTES = 16, ALL_PLACES = 256 };

size_t at_lt_scale_bytes(const at_gemm *g) {
  return is_f8(g->dtype) ? ALL_PLACES : 0;
}

/* D has scales and amax of its own in f8 only; i8 has none but alpha: its sums are i32. */
bool at_lt_may_scale(const at_gemm *g, const attune_device *device) {
  const int capability = 10 * device->properties.capability_major + device->properties.capability_minor;
  const attune_gemm_scaling s = g->scaling;
  const bool all_layouts = capability >= 100 && capability < 120;
  if (!all_layouts && (!g->trans_a || g->trans_b)) return false;
  if (g->dtype == ATTUNE_I8)
    return !s.scale_a && !s.scale_b && !s.scale_d && !s.amax_d && !s.zero_a && !s.zero_b && g->alignment >= 4 &&
           g->m % 4 == 0 && g->k % 4 == 0 && g->lda % 4 == 0 && g->ldb % 4 == 0 &&
           (g->dtype_out == ATTUNE_I32 || g->dtype_out == ATTUNE_I8);
  const int64_t out = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out);
  if (capability < 89 || g->workspace_cap < at_lt_scale_bytes(g) || g->alignment < 16 || g->k % 16 || g->lda % 16 ||
      g->ldb % 16 || g->m * out % 16 || g->ldd * out % 16)
    return false;
  return (!s.amax_d || is_f8(g->dtype_out)) && may_pair(g, capability == 90);
}

static int32_t mode_of(uint8_t scale) {
  return scale == ATTUNE_SCALE_VECTOR    ? MODE_VECTOR
         : scale == ATTUNE_SCALE_1X128   ? MODE_1X128
         : scale == ATTUNE_SCALE_128X128 ? MODE_128X128
                                         : MODE_TENSOR;
}

static cublasStatus_t set_pointer(cublasLtMatmulDesc_t matmul, int attribute, const void *pointer) {
  return at_cublas.cublasLtMatmulDescSetAttribute(matmul, (cublasLtMatmulDescAttributes_t)attribute, &pointer,
                                                  sizeof pointer);
}

static cublasStatus_t set_scale(cublasLtMatmulDesc_t matmul, uint8_t scale, int mode_attribute, int pointer_attribute,
                                const void *pointer) {
  const int32_t mode = mode_of(scale);
  if (scale == ATTUNE_SCALE_NONE) return CUBLAS_STATUS_SUCCESS;
  if (mode != MODE_TENSOR) {
    const cublasStatus_t status = at_cublas.cublasLtMatmulDescSetAttribute(
        matmul, (cublasLtMatmulDescAttributes_t)mode_attribute, &mode, sizeof mode);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return set_pointer(matmul, pointer_attribute, pointer);
}

cublasStatus_t at_lt_set_scaling(cublasLtMatmulDesc_t matmul, const at_gemm *g, const at_gemm_operands *o) {
  const attune_gemm_scaling s = g->scaling;
  const void *const somewhere = (const void *)(uintptr_t)4096; /* never read: only its alignment counts */
  const int8_t fast = g->accuracy == ATTUNE_REDUCED && s.scale_a < ATTUNE_SCALE_1X128;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  if (!is_f8(g->dtype)) return status;
  if (fast)
    status = at_cublas.cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = set_scale(matmul, s.scale_a, ATTRIBUTE_MODE_A, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER,
                       o ? o->scale_a : somewhere);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = set_scale(matmul, s.scale_b, ATTRIBUTE_MODE_B, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER,
                       o ? o->scale_b : somewhere);
  if (status == CUBLAS_STATUS_SUCCESS && s.scale_d)
    status = set_pointer(matmul, CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, o ? o->scale_d : somewhere);
  if (status == CUBLAS_STATUS_SUCCESS && s.amax_d)
    status = set_pointer(matmul, CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, o ? o->amax_d : somewhere);
  return status;
}

static bool is_aligned(const void *pointer) {
  return (uintptr_t)pointer % PLACE_BYTES == 0;
}

static cublasStatus_t copy_f32(void *to, const void *from, attune_stream *stream) {
  const cudaError_t error =
      cudaMemcpyAsync(to, from, sizeof(float), cudaMemcpyDeviceToDevice, (cudaStream_t)stream->native);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

/* The operands with single scales, and amax, where they are aligned. */
static cublasStatus_t align_scales(at_gemm_operands *o, char *places, attune_stream *stream) {
  const float **const scales[] = {&o->scale_a, &o->scale_b, &o->scale_d};
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  for (int i = PLACE_A; i <= PLACE_D && status == CUBLAS_STATUS_SUCCESS; i++) {
    char *place = places + (ptrdiff_t)i * PLACE_BYTES;
    if (is_aligned(*scales[i])) continue;
    status = copy_f32(place, *scales[i], stream);
    *scales[i] = (const float *)(void *)place;
  }
  if (!is_aligned(o->amax_d)) o->amax_d = (float *)(void *)(places + (ptrdiff_t)PLACE_AMAX * PLACE_BYTES);
  return status;
}

/* C is never NULL, and of D's memory only where it has D's type: without one A stands in, which is not read. */
static cublasStatus_t multiply(const at_lt_plan *lt, const at_gemm_operands *o, void *workspace,
                               attune_stream *stream) {
  const at_lt_problem *p = &lt->problem;
  const at_gemm *g = &p->gemm;
  cublasLtMatmulDescOpaque_t matmul;
  const at_gemm_scalar alpha = at_gemm_scalar_of(g, o->alpha, 0.0), beta = at_gemm_scalar_of(g, o->beta, 0.0);
  const void *c = g->c == AT_C_SEPARATE ? o->c : at_gemm_dtype_c(g) == g->dtype_out ? o->d : o->a;
  cublasStatus_t status =
      at_cublas.cublasLtMatmulDescInit_internal(&matmul, sizeof matmul, at_gemm_compute_type(g), at_gemm_scale_type(g));
  if (status == CUBLAS_STATUS_SUCCESS) status = at_lt_set_operations(&matmul, g);
  if (status == CUBLAS_STATUS_SUCCESS) status = at_lt_set_scaling(&matmul, g, o);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = at_cublas.cublasLtMatmul(p->handle, &matmul, &alpha, o->a, p->a, o->b, p->b, &beta, c, p->c, o->d, p->d,
                                      &lt->algorithm, workspace, lt->workspace_bytes, (cudaStream_t)stream->native);
  return status;
}

attune_status at_lt_multiply_scaled(const at_lt_plan *lt, const at_gemm_operands *operands, void *workspace,
                                    attune_stream *stream) {
  at_gemm_operands o = *operands;
  char *own = (char *)workspace + at_lt_scale_bytes(&lt->problem.gemm);
  cublasStatus_t status = own != workspace ? align_scales(&o, workspace, stream) : CUBLAS_STATUS_SUCCESS;
  if (status == CUBLAS_STATUS_SUCCESS) status = multiply(lt, &o, own, stream);
  if (status == CUBLAS_STATUS_SUCCESS && o.amax_d != operands->amax_d)
    status = copy_f32(operands->amax_d, o.amax_d, stream);
  return at_cublas_check(lt->problem.device, status, "cublasLtMatmul");
}
