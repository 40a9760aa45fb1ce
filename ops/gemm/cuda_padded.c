/* SPDX-License-Identifier: Apache-2.0
 * cuda_padded.c: GEMM whose leading dimensions are not multiples of 16 bytes. The fast kernels of cuBLASLt cannot load such matrices; copied into
 * the workspace with padded columns they can. What is copied is the first tunable, "pad=ab" or "pad=abd", the algorithm the rest. */
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/cublaslt.h"

#define VERSION 1

/* A matrix and the padded copy of it that the GEMM runs on. */
typedef struct copy {
  bool padded;
  size_t offset;       /* in the workspace */
  size_t width, rows;  /* bytes of a column, columns of the whole batch */
  size_t pitch, pitch_padded;
} copy;

typedef struct padding_plan {
  at_gemm gemm;        /* the problem as cuBLASLt sees it */
  copy a, b, d;
  size_t bytes;        /* of all copies: the algorithm's workspace begins there */
} padding_plan;

typedef struct padded_plan {
  padding_plan padding;
  at_lt_problem problem;
  cublasLtMatmulAlgo_t algorithm;
  size_t workspace_bytes; /* the algorithm's */
} padded_plan;

static bool aligned(int64_t ld, size_t element) { return (size_t)ld * element % 16 == 0; }

/* Columns of a batch that follow each other without a gap: one two-dimensional copy takes them all. */
static bool gapless(int64_t ld, int64_t cols, int64_t stride, int64_t batch) { return batch == 1 || stride == 0 || stride == ld * cols; }

static copy pad(size_t *end, int64_t *ld, int64_t *stride, int64_t rows, int64_t cols, int64_t batch, size_t element) {
  const int64_t unit = 16 / (int64_t)element, wide = (rows + unit - 1) / unit * unit;
  copy c = {.padded = true, .offset = *end, .width = (size_t)rows * element, .pitch = (size_t)*ld * element, .pitch_padded = (size_t)wide * element};
  c.rows = (size_t)(cols * (*stride ? batch : 1));
  *ld = wide;
  if (*stride) *stride = wide * cols;
  *end += (c.pitch_padded * c.rows + 255) / 256 * 256;
  return c;
}

/* The padded problem; false when there is nothing to pad, it cannot be copied, or the workspace is too small. */
static bool plan_padding(const at_gemm *g, bool with_d, padding_plan *out) {
  const size_t in = attune_dtype_size((attune_dtype)g->dtype), result = attune_dtype_size((attune_dtype)g->dtype_out);
  memset(out, 0, sizeof *out);
  out->gemm = *g;
  at_gemm *p = &out->gemm;
  if (g->alignment != 16 || (aligned(g->lda, in) && aligned(g->ldb, in))) return false;
  if (!gapless(g->lda, at_gemm_cols_a(g), g->stride_a, g->batch) || !gapless(g->ldb, at_gemm_cols_b(g), g->stride_b, g->batch)) return false;
  if (!aligned(g->lda, in)) out->a = pad(&out->bytes, &p->lda, &p->stride_a, at_gemm_rows_a(g), at_gemm_cols_a(g), g->batch, in);
  if (!aligned(g->ldb, in)) out->b = pad(&out->bytes, &p->ldb, &p->stride_b, at_gemm_rows_b(g), at_gemm_cols_b(g), g->batch, in);
  if (with_d) {
    if (g->c != AT_C_NONE || aligned(g->ldd, result) || !gapless(g->ldd, g->n, g->stride_d, g->batch)) return false;
    out->d = pad(&out->bytes, &p->ldd, &p->stride_d, g->m, g->n, g->batch, result);
  }
  const size_t cap = g->workspace_cap < ATTUNE_WORKSPACE_DEFAULT ? (size_t)g->workspace_cap : ATTUNE_WORKSPACE_DEFAULT;
  if (out->bytes >= cap) return false;
  p->workspace_cap = cap - out->bytes;
  return true;
}

static bool supports(const void *problem, attune_device *device) {
  const at_gemm *g = at_gemm_of(problem);
  padding_plan unused;
  if (g->m > INT32_MAX || g->n > INT32_MAX || g->k > INT32_MAX || g->batch > INT32_MAX) return false;
  return plan_padding(g, false, &unused) && !at_lt_denied(g, device, AT_LT_ANY);
}

/* Puts "pad=..." before each of `count` algorithms. */
static int prefix(at_configuration *out, int count, bool with_d) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    at_configuration named = {""};
    size_t at = 0;
    if (at_append(named.text, sizeof named.text, &at, "pad=%s,%s", with_d ? "abd" : "ab", out[i].text)) out[kept++] = named;
  }
  return kept;
}

static int configurations(const void *problem, attune_device *device, at_configuration *out, int max) {
  padding_plan padding;
  int count = 0;
  for (int with_d = 1; with_d >= 0; with_d--) {
    if (!plan_padding(at_gemm_of(problem), with_d, &padding)) continue;
    const int room = with_d ? max / 2 : max - count;
    count += prefix(out + count, at_lt_configurations(&padding.gemm, device, out + count, room), with_d);
  }
  return count;
}

/* Splits "pad=ab,id=..." ; false when it is none of ours. */
static bool split(const at_configuration *configuration, bool *with_d, at_configuration *algorithm) {
  const char *text = configuration->text, *comma = strchr(text, ',');
  if (!comma) return false;
  *with_d = strncmp(text, "pad=abd,", 8) == 0;
  return (*with_d || strncmp(text, "pad=ab,", 7) == 0) && at_copy_text(algorithm->text, sizeof algorithm->text, comma + 1);
}

static int neighbours(const void *problem, attune_device *device, const at_configuration *leader, at_configuration *out, int max) {
  bool with_d = false;
  at_configuration algorithm;
  padding_plan padding;
  if (!split(leader, &with_d, &algorithm) || !plan_padding(at_gemm_of(problem), with_d, &padding)) return 0;
  return prefix(out, at_lt_neighbours(&padding.gemm, device, &algorithm, out, max), with_d);
}

static attune_status open_plan(padded_plan *state, at_plan *plan) {
  bool with_d = false;
  at_configuration text;
  at_lt_algorithm wanted;
  cublasLtMatmulHeuristicResult_t result;
  if (!split(&plan->configuration, &with_d, &text) || !at_lt_read(&wanted, &text) ||
      !plan_padding(at_gemm_of(plan->problem), with_d, &state->padding))
    return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" is none of cublaslt_padded's", plan->configuration.text);
  const attune_status status = at_lt_open(&state->problem, &state->padding.gemm, plan->device);
  if (status != ATTUNE_OK) return status;
  const char *why = at_lt_check(&state->problem, &wanted, &state->algorithm, &result);
  if (why) return at_fail(ATTUNE_NOT_FOUND, "configuration \"%s\" of cublaslt_padded: %s", plan->configuration.text, why);
  state->workspace_bytes = result.workspaceSize;
  plan->workspace_bytes = state->padding.bytes + result.workspaceSize;
  return ATTUNE_OK;
}

static attune_status prepare(at_plan *plan) {
  padded_plan *state = calloc(1, sizeof *state);
  if (!state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a cublaslt_padded plan");
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (status == ATTUNE_OK) {
    status = open_plan(state, plan);
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

/* Copies a matrix into its padded place; *pointer is where the GEMM finds it. */
static cudaError_t copy_in(const copy *c, char *workspace, const void **pointer, cudaStream_t stream) {
  if (!c->padded) return cudaSuccess;
  const void *from = *pointer;
  *pointer = workspace + c->offset;
  return cudaMemcpy2DAsync(workspace + c->offset, c->pitch_padded, from, c->pitch, c->width, c->rows, cudaMemcpyDeviceToDevice, stream);
}

static attune_status multiply(const at_plan *plan, const at_gemm_operands *p, char *workspace, cudaStream_t stream) {
  const padded_plan *state = plan->state;
  const padding_plan *pads = &state->padding;
  const at_lt_problem *lt = &state->problem;
  const void *a = p->a, *b = p->b;
  void *d = pads->d.padded ? workspace + pads->d.offset : p->d;
  cudaError_t error = copy_in(&pads->a, workspace, &a, stream);
  if (error == cudaSuccess) error = copy_in(&pads->b, workspace, &b, stream);
  if (error != cudaSuccess) return at_cuda_check(plan->device, error, "cudaMemcpy2DAsync");
  at_gemm_scalar alpha = at_gemm_scalar_of(&lt->gemm, p->alpha), beta = at_gemm_scalar_of(&lt->gemm, p->beta);
  const attune_status status =
      at_cublas_check(plan->device,
                      cublasLtMatmul(lt->handle, lt->matmul, &alpha, a, lt->a, b, lt->b, &beta, lt->gemm.c == AT_C_SEPARATE ? p->c : d, lt->c, d, lt->d,
                                     &state->algorithm, workspace + pads->bytes, state->workspace_bytes, stream),
                      "cublasLtMatmul");
  if (status != ATTUNE_OK || !pads->d.padded) return status;
  error = cudaMemcpy2DAsync(p->d, pads->d.pitch, d, pads->d.pitch_padded, pads->d.width, pads->d.rows, cudaMemcpyDeviceToDevice, stream);
  return at_cuda_check(plan->device, error, "cudaMemcpy2DAsync");
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  at_cuda_scope scope;
  attune_status status = at_cuda_enter(&scope, plan->device);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  void *workspace = NULL;
  status = at_cuda_workspace(stream, plan->workspace_bytes, &workspace);
  if (AT_LIKELY(status == ATTUNE_OK)) status = multiply(plan, operands, workspace, (cudaStream_t)stream->native);
  at_cuda_leave(&scope);
  return status;
}

static void destroy(at_plan *plan) {
  padded_plan *state = plan->state;
  if (!state) return;
  at_lt_close(&state->problem);
  free(state);
  plan->state = NULL;
}

const at_implementation at_gemm_cublaslt_padded = {
    .name = "cublaslt_padded",
    .version = VERSION,
    .backend = "cuda",
    .supports = supports,
    .configurations = configurations,
    .neighbours = neighbours,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
};
