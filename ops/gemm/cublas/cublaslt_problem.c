/* SPDX-License-Identifier: Apache-2.0
 * cublaslt_problem.c: a GEMM as cuBLASLt descriptors, what its contract permits, and what is known to go wrong. */
#include "ops/gemm/cublas/cublaslt.h"

#include <string.h>

#include "src/process/vendor.h"

#define COPY_ALIGNMENT 256u
#define INPUTS(kept) (CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK & ~(kept))
#define ACCUMULATORS(kept) (CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_TYPE_MASK & ~(kept))

/* f64 and f32 multiply their own type (reduced f32 also TF32), and nothing adds up in less than the accumulation type.
 * Halves are exact as inputs of any multiplier, so for them only the accumulator counts. A complex product by three
 * real ones (Gauss) adds parts before it multiplies them: not strict. */
static uint64_t forbidden_flags(const at_gemm *g) {
  const attune_dtype part = at_gemm_part(g->dtype);
  const uint64_t gauss = g->accuracy == ATTUNE_STRICT ? CUBLASLT_NUMERICAL_IMPL_FLAGS_GAUSSIAN : 0;
  if (part == ATTUNE_F64)
    return INPUTS(CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_64F) |
           ACCUMULATORS(CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_64F) | gauss;
  if (g->dtype == ATTUNE_I8) return 0; /* sums of i8 are exact */
  if (part != ATTUNE_F32) return CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F;
  uint64_t kept = CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
  if (g->accuracy == ATTUNE_REDUCED) kept |= CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
  return INPUTS(kept) | ACCUMULATORS(CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F) | gauss;
}

/* INPLACE and OUTPUT_TYPE keep partial sums in the output type: less than the accumulation type for halves. */
static uint32_t permitted_reductions(const at_gemm *g) {
  bool half_output = attune_dtype_size((attune_dtype)g->dtype_out) <= 2;
  return half_output && g->accuracy != ATTUNE_REDUCED ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE
                                                      : CUBLASLT_REDUCTION_SCHEME_MASK;
}

/* The alignment that every column of every matrix of a batch has: the pointers', the leading dimension's and the
 * stride's. An algorithm's minimum binds all three, and AlgoCheck does not look at them (seen: bf16 with an odd ldd,
 * kernels that store two elements at once, misaligned address). */
static uint32_t alignment_of(const at_gemm *g, bool copied, uint8_t dtype, int64_t columns, int64_t ld,
                             int64_t stride) {
  const uint64_t element = attune_dtype_size((attune_dtype)dtype);
  uint64_t bits = copied ? COPY_ALIGNMENT : g->alignment;
  if (columns > 1) bits |= (uint64_t)ld * element;
  if (g->batch > 1) bits |= (uint64_t)stride * element;
  return (uint32_t)(bits & (~bits + 1));
}

static bool is_huge_matrix(uint64_t rows, uint64_t ld, uint64_t columns, uint64_t stride, uint64_t batch,
                           size_t element) {
  uint64_t one = (columns - 1) * ld + rows;
  return one * element >= (uint64_t)1 << 31 || (batch - 1) * stride + one >= (uint64_t)1 << 31;
}

bool at_lt_is_huge(const at_gemm *g) {
  size_t in = attune_dtype_size((attune_dtype)g->dtype), out = attune_dtype_size((attune_dtype)g->dtype_out);
  uint64_t batch = (uint64_t)g->batch, m = (uint64_t)g->m, n = (uint64_t)g->n;
  uint64_t rows_a = (uint64_t)at_gemm_rows_a(g), cols_a = (uint64_t)at_gemm_cols_a(g);
  uint64_t rows_b = (uint64_t)at_gemm_rows_b(g), cols_b = (uint64_t)at_gemm_cols_b(g);
  if (is_huge_matrix(rows_a, (uint64_t)g->lda, cols_a, (uint64_t)g->stride_a, batch, in)) return true;
  if (is_huge_matrix(rows_b, (uint64_t)g->ldb, cols_b, (uint64_t)g->stride_b, batch, in)) return true;
  if (is_huge_matrix(m, (uint64_t)g->ldd, n, (uint64_t)g->stride_d, batch, out)) return true;
  out = attune_dtype_size(at_gemm_dtype_c(g));
  return g->c == AT_C_SEPARATE && is_huge_matrix(m, (uint64_t)g->ldc, n, (uint64_t)g->stride_c, batch, out);
}

static cublasStatus_t new_layout(cublasLtMatrixLayout_t *out, uint8_t dtype, int64_t rows, int64_t columns, int64_t ld,
                                 int64_t batch, int64_t stride) {
  int32_t count = (int32_t)batch;
  cublasStatus_t status =
      at_cublas.cublasLtMatrixLayoutCreate(out, at_gemm_cuda_type(dtype), (uint64_t)rows, (uint64_t)columns, ld);
  if (status != CUBLAS_STATUS_SUCCESS || batch == 1) return status;
  status = at_cublas.cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return at_cublas.cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                    sizeof stride);
}

/* Arrays of pointers say where the matrices are. A library that does not know this refuses it. */
static cublasStatus_t take_arrays(const at_lt_problem *p) {
  const cublasLtMatrixLayout_t all[] = {p->a, p->b, p->c, p->d};
  const uint32_t mode = AT_LT_POINTER_ARRAY;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  for (size_t i = 0; i < AT_COUNT(all) && status == CUBLAS_STATUS_SUCCESS; i++)
    status = at_cublas.cublasLtMatrixLayoutSetAttribute(all[i], (cublasLtMatrixLayoutAttribute_t)AT_LT_BATCH_MODE,
                                                        &mode, sizeof mode);
  return status;
}

cublasStatus_t at_lt_set_operations(cublasLtMatmulDesc_t matmul, const at_gemm *g) {
  int32_t ta = (int32_t)at_gemm_operation(g->trans_a), tb = (int32_t)at_gemm_operation(g->trans_b);
  cublasStatus_t status = at_cublas.cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = at_cublas.cublasLtMatmulDescSetAttribute(matmul, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb);
  return status;
}

static cublasStatus_t new_matmul(cublasLtMatmulDesc_t *out, const at_gemm *g) {
  cublasStatus_t status = at_cublas.cublasLtMatmulDescCreate(out, at_gemm_compute_type(g), at_gemm_scale_type(g));
  if (status == CUBLAS_STATUS_SUCCESS) status = at_lt_set_operations(*out, g);
  if (status == CUBLAS_STATUS_SUCCESS && at_gemm_8bit(g->dtype)) status = at_lt_set_scaling(*out, g, NULL);
  return status;
}

attune_status at_lt_open(at_lt_problem *out, const at_gemm *asked, unsigned copied, attune_device *device) {
  memset(out, 0, sizeof *out);
  out->gemm = at_lt_with_residual(asked);
  const at_gemm *g = &out->gemm;
  out->device = device;
  out->reductions = permitted_reductions(g);
  out->forbidden = forbidden_flags(g);
  out->workspace_cap =
      g->workspace_cap < ATTUNE_WORKSPACE_DEFAULT ? (size_t)g->workspace_cap : ATTUNE_WORKSPACE_DEFAULT;
  out->workspace_cap -= out->workspace_cap < at_lt_scale_bytes(g) ? out->workspace_cap : at_lt_scale_bytes(g);
  bool separate = g->c == AT_C_SEPARATE;
  int64_t ldc = separate ? g->ldc : g->ldd, stride_c = separate ? g->stride_c : g->stride_d;
  out->alignment[0] = alignment_of(g, copied & AT_LT_COPIED_A, g->dtype, at_gemm_cols_a(g), g->lda, g->stride_a);
  out->alignment[1] = alignment_of(g, copied & AT_LT_COPIED_B, g->dtype, at_gemm_cols_b(g), g->ldb, g->stride_b);
  out->alignment[2] = alignment_of(g, copied & AT_LT_COPIED_CD, (uint8_t)at_gemm_dtype_c(g), g->n, ldc, stride_c);
  out->alignment[3] = alignment_of(g, copied & AT_LT_COPIED_CD, g->dtype_out, g->n, g->ldd, g->stride_d);
  /* Some kernels store D as widely as C allows (seen: bf16, ldc 138, ldd 131): both count as aligned no better than the
   * worse. */
  if (out->alignment[2] < out->alignment[3])
    out->alignment[3] = out->alignment[2];
  else
    out->alignment[2] = out->alignment[3];
  AT_TRY(at_cuda_blaslt(device, &out->handle));
  cublasStatus_t made = new_matmul(&out->matmul, g);
  if (made == CUBLAS_STATUS_SUCCESS && at_gemm_has_epilogue(g)) made = at_lt_set_epilogue(out->matmul, g);
  if (made == CUBLAS_STATUS_SUCCESS)
    made = new_layout(&out->a, g->dtype, at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->batch, g->stride_a);
  if (made == CUBLAS_STATUS_SUCCESS)
    made = new_layout(&out->b, (uint8_t)at_gemm_dtype_b(g), at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->batch,
                      g->stride_b);
  if (made == CUBLAS_STATUS_SUCCESS)
    made = new_layout(&out->c, (uint8_t)at_gemm_dtype_c(g), g->m, g->n, ldc, g->batch, stride_c);
  if (made == CUBLAS_STATUS_SUCCESS)
    made = new_layout(&out->d, g->dtype_out, g->m, g->n, g->ldd, g->batch, g->stride_d);
  if (made == CUBLAS_STATUS_SUCCESS && g->pointers) made = take_arrays(out);
  return at_cublas_check(device, made, "cublasLt descriptors");
}

void at_lt_close(at_lt_problem *problem) {
  if (!at_vendor_enter(AT_VENDOR_LIBRARY)) return; /* the process ends */
  if (problem->a) (void)at_cublas.cublasLtMatrixLayoutDestroy(problem->a);
  if (problem->b) (void)at_cublas.cublasLtMatrixLayoutDestroy(problem->b);
  if (problem->c) (void)at_cublas.cublasLtMatrixLayoutDestroy(problem->c);
  if (problem->d) (void)at_cublas.cublasLtMatrixLayoutDestroy(problem->d);
  if (problem->matmul) (void)at_cublas.cublasLtMatmulDescDestroy(problem->matmul);
  problem->a = problem->b = problem->c = problem->d = NULL;
  problem->matmul = NULL;
  at_vendor_leave();
}
