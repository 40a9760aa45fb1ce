/* SPDX-License-Identifier: Apache-2.0
 * cublaslt_algorithm.c: a cuBLASLt algorithm as numbers, and its exact restoration with every check. */
#include "ops/gemm/cublas/cublaslt.h"

#include <string.h>

/* Reported as numerically unstable for complex numbers (ROCm/xla#789), in no version that is named. */
#define UNSTABLE_COMPLEX 3

/* One attribute of an algorithm's configuration; `bytes` is the size of the library's own variable. */
static const struct field {
  cublasLtMatmulAlgoConfigAttributes_t attribute;
  size_t bytes;
} fields[AT_LT_FIELDS] = {
    [AT_LT_ID] = {CUBLASLT_ALGO_CONFIG_ID, 4},
    [AT_LT_TILE] = {CUBLASLT_ALGO_CONFIG_TILE_ID, 4},
    [AT_LT_STAGES] = {CUBLASLT_ALGO_CONFIG_STAGES_ID, 4},
    [AT_LT_SPLITK] = {CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4},
    [AT_LT_REDUCTION] = {CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 4},
    [AT_LT_SWIZZLE] = {CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4},
    [AT_LT_CUSTOM] = {CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4},
    [AT_LT_INNER] = {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2},
    [AT_LT_CLUSTER] = {CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 2},
};

typedef at_lt_algorithm choice;
#define TUNABLES(NUMBER, PAIR, WORD, TEXT) AT_LT_TUNABLES(NUMBER, )
const at_tunables at_lt_tunables = AT_TUNABLES(TUNABLES);

static uint32_t get_field(const cublasLtMatmulAlgo_t *algorithm, const struct field *field) {
  uint32_t wide = 0;
  uint16_t narrow = 0;
  void *slot = field->bytes == 2 ? (void *)&narrow : (void *)&wide;
  size_t written = 0;
  if (at_cublas.cublasLtMatmulAlgoConfigGetAttribute(algorithm, field->attribute, slot, field->bytes, &written) !=
      CUBLAS_STATUS_SUCCESS)
    return 0;
  return field->bytes == 2 ? narrow : wide;
}

static bool set_field(cublasLtMatmulAlgo_t *algorithm, const struct field *field, uint32_t value) {
  uint16_t narrow = (uint16_t)value;
  const void *slot = field->bytes == 2 ? (const void *)&narrow : (const void *)&value;
  return at_cublas.cublasLtMatmulAlgoConfigSetAttribute(algorithm, field->attribute, slot, field->bytes) ==
         CUBLAS_STATUS_SUCCESS;
}

void at_lt_describe(at_lt_algorithm *out, const cublasLtMatmulAlgo_t *algorithm) {
  for (int i = 0; i < AT_LT_FIELDS; i++) out->value[i] = get_field(algorithm, &fields[i]);
}

bool at_lt_start(const at_lt_problem *problem, uint32_t id, cublasLtMatmulAlgo_t *out) {
  const at_gemm *g = &problem->gemm;
  cudaDataType_t in = at_gemm_cuda_type(g->dtype), b = at_gemm_cuda_type((uint8_t)at_gemm_dtype_b(g)),
                 c = at_gemm_cuda_type((uint8_t)at_gemm_dtype_c(g)), result = at_gemm_cuda_type(g->dtype_out);
  memset(out, 0, sizeof *out);
  return at_cublas.cublasLtMatmulAlgoInit(problem->handle, at_gemm_compute_type(g), at_gemm_scale_type(g), in, b, c,
                                          result, (int)id, out) == CUBLAS_STATUS_SUCCESS;
}

int at_lt_list(const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoCapAttributes_t attribute, uint32_t *out,
               int max) {
  size_t bytes = 0;
  if (at_cublas.cublasLtMatmulAlgoCapGetAttribute(algorithm, attribute, NULL, 0, &bytes) != CUBLAS_STATUS_SUCCESS)
    return 0;
  if (bytes == 0 || bytes > (size_t)max * sizeof *out) return 0;
  if (at_cublas.cublasLtMatmulAlgoCapGetAttribute(algorithm, attribute, out, bytes, &bytes) != CUBLAS_STATUS_SUCCESS)
    return 0;
  return (int)(bytes / sizeof *out);
}

int32_t at_lt_capability(const cublasLtMatmulAlgo_t *algorithm, cublasLtMatmulAlgoCapAttributes_t attribute,
                         int32_t otherwise) {
  int32_t value = 0;
  size_t written = 0;
  if (at_cublas.cublasLtMatmulAlgoCapGetAttribute(algorithm, attribute, &value, sizeof value, &written) !=
      CUBLAS_STATUS_SUCCESS)
    return otherwise;
  return value;
}

/* Attributes that already have their value are not set: not every algorithm lets every attribute be set. */
static bool restore(const at_lt_problem *problem, const at_lt_algorithm *algorithm, cublasLtMatmulAlgo_t *out) {
  if (!at_lt_start(problem, algorithm->value[AT_LT_ID], out)) return false;
  for (int i = AT_LT_ID + 1; i < AT_LT_FIELDS; i++) {
    if (get_field(out, &fields[i]) == algorithm->value[i]) continue;
    if (!set_field(out, &fields[i], algorithm->value[i])) return false;
  }
  at_lt_algorithm made;
  at_lt_describe(&made, out);
  return memcmp(&made, algorithm, sizeof made) == 0;
}

/* The library's own filters work on lists it makes; a restored algorithm must pass the same ones again, here. */
static const char *breaks_contract(const at_lt_problem *problem, const at_lt_algorithm *algorithm,
                                   const cublasLtMatmulAlgo_t *made) {
  static const cublasLtMatmulAlgoCapAttributes_t alignments[4] = {
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES,
      CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES};
  if ((algorithm->value[AT_LT_REDUCTION] & ~problem->reductions) != 0)
    return "its split-K reduction is less accurate than the contract";
  uint64_t flags = 0;
  size_t written = 0;
  if (at_cublas.cublasLtMatmulAlgoCapGetAttribute(made, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, &flags, sizeof flags,
                                                  &written) != CUBLAS_STATUS_SUCCESS)
    return "its arithmetic is unknown";
  if ((flags & problem->forbidden) != 0) return "its arithmetic is less accurate than the contract";
  if (problem->gemm.pointers &&
      !at_lt_capability(made, (cublasLtMatmulAlgoCapAttributes_t)AT_LT_POINTER_ARRAY_SUPPORT, 0))
    return "it takes no arrays of pointers";
  for (int i = 0; i < 4; i++)
    if ((uint32_t)at_lt_capability(made, alignments[i], 1) > problem->alignment[i])
      return "it needs a larger alignment";
  return NULL;
}

const char *at_lt_check(const at_lt_problem *problem, const at_lt_algorithm *algorithm, cublasLtMatmulAlgo_t *out,
                        cublasLtMatmulHeuristicResult_t *result) {
  memset(result, 0, sizeof *result);
  if (at_lt_is_huge(&problem->gemm)) return "it is known to give wrong results for this problem";
  if (at_gemm_complex(problem->gemm.dtype) && algorithm->value[AT_LT_ID] == UNSTABLE_COMPLEX)
    return "it is known to be inaccurate for complex products";
  if (!restore(problem, algorithm, out)) return "this cuBLASLt has no such algorithm";
  const char *why = breaks_contract(problem, algorithm, out);
  if (why) return why;
  if (at_cublas.cublasLtMatmulAlgoCheck(problem->handle, problem->matmul, problem->a, problem->b, problem->c,
                                        problem->d, out, result) != CUBLAS_STATUS_SUCCESS)
    return "this cuBLASLt cannot run it here";
  return result->workspaceSize > problem->workspace_cap ? "it needs more workspace than the cap" : NULL;
}
