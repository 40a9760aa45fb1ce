/* SPDX-License-Identifier: Apache-2.0
 * cuda_packed.c: products of 8-bit elements by cuBLASLt where it does not take A and B as they lie: it wants op(A)
 * transposed, op(B) not, and lines of 16 bytes. They are copied so into the workspace first. */
#include "ops/gemm/cublas/cublaslt.h"
#include "src/cuda/jit/jit.h"

#include "pack_bytes_cu.h"

enum { TILE = 64, THREADS = 256, LINE = 16 };

static const at_kernel_source source = {.file = "pack_bytes.cu", .text = at_pack_bytes_cu, .entry = "at_pack_bytes"};

/* struct pack_arguments of pack_bytes.cu */
typedef struct pack_arguments {
  const void *from;
  void *to;
  int64_t by_line, by_depth, stride_from, stride_to;
  int32_t lines, depth, width, tiles_line, tiles_depth, unused;
} pack_arguments;

/* The problem of the copies, and how they are made. */
typedef struct packing {
  at_gemm gemm;
  pack_arguments a, b; /* without the pointers; `lines` 0: it lies as it is wanted */
  unsigned copies_a, copies_b, copied;
  size_t place_b, bytes; /* in the workspace; of all copies */
} packing;

typedef struct packed_plan {
  at_lt_plan lt; /* first */
  packing packing;
  at_jit_kernel *kernel;
} packed_plan;
_Static_assert(offsetof(packed_plan, lt) == 0, "at_lt_prepare and at_lt_destroy take it for an at_lt_plan");

static bool lies_well(const at_gemm *g, bool contiguous, int64_t ld, int64_t stride) {
  return contiguous && g->k % LINE == 0 && ld % LINE == 0 && stride % LINE == 0 && g->alignment >= LINE;
}

static pack_arguments pack_of(const at_gemm *g, bool b) {
  const bool along = b ? g->trans_b != 0 : g->trans_a == 0; /* lines lie side by side */
  const int64_t ld = b ? g->ldb : g->lda, lines = b ? g->n : g->m, width = at_lt_up(g->k, LINE);
  return (pack_arguments){.by_line = along ? 1 : ld,
                          .by_depth = along ? ld : 1,
                          .stride_from = b ? g->stride_b : g->stride_a,
                          .stride_to = lines * width,
                          .lines = (int32_t)lines,
                          .depth = (int32_t)g->k,
                          .width = (int32_t)width,
                          .tiles_line = (int32_t)at_lt_up(lines, TILE) / TILE,
                          .tiles_depth = (int32_t)at_lt_up(width, TILE) / TILE};
}

/* False: nothing is to be copied, or it does not fit into the workspace. Lines that are longer by less than 16 have no
 * block of scales more. */
static bool plan_packing(const at_gemm *g, packing *p) {
  const int64_t width = at_lt_up(g->k, LINE);
  *p = (packing){.gemm = *g};
  if (!at_gemm_8bit(g->dtype) || g->k > INT32_MAX / 2 || g->batch > UINT16_MAX) return false;
  if ((double)(g->m + g->n) * (double)width * (double)g->batch > (double)ATTUNE_WORKSPACE_DEFAULT) return false;
  if (!lies_well(g, g->trans_a != 0, g->lda, g->stride_a)) {
    p->a = pack_of(g, false);
    p->copies_a = g->stride_a ? (unsigned)g->batch : 1u;
    p->place_b = (size_t)at_lt_up(g->m * width * p->copies_a, 256);
    p->gemm.lda = width;
    p->gemm.stride_a = g->stride_a ? g->m * width : 0;
    p->copied |= AT_LT_COPIED_A;
  }
  p->bytes = p->place_b;
  if (!lies_well(g, g->trans_b == 0, g->ldb, g->stride_b)) {
    p->b = pack_of(g, true);
    p->copies_b = g->stride_b ? (unsigned)g->batch : 1u;
    p->bytes += (size_t)at_lt_up(g->n * width * p->copies_b, 256);
    p->gemm.ldb = width;
    p->gemm.stride_b = g->stride_b ? g->n * width : 0;
    p->copied |= AT_LT_COPIED_B;
  }
  p->gemm.trans_a = ATTUNE_T;
  p->gemm.trans_b = ATTUNE_N;
  p->gemm.k = width;
  if (!p->copied || p->bytes >= g->workspace_cap || p->bytes >= ATTUNE_WORKSPACE_DEFAULT) return false;
  p->gemm.workspace_cap -= p->bytes;
  return true;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  at_configuration first;
  packing p;
  return plan_packing(at_gemm_of(problem), &p) && at_cublas_open() == ATTUNE_OK &&
         !at_lt_is_huge(at_gemm_of(problem)) && at_lt_may_scale(&p.gemm, device) &&
         at_lt_search(&p.gemm, p.copied, device, NULL, &first, 1) == 1;
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self;
  packing p;
  return plan_packing(at_gemm_of(problem), &p) ? at_lt_search(&p.gemm, p.copied, device, NULL, out, max) : 0;
}

static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  (void)self;
  at_lt_algorithm from;
  packing p;
  if (!at_tunables_parse(&at_lt_tunables, &from, leader) || !plan_packing(at_gemm_of(problem), &p)) return 0;
  return at_lt_search(&p.gemm, p.copied, device, &from, out, max);
}

static attune_status open_plan(at_plan *plan) {
  at_lt_algorithm wanted;
  packed_plan *state = plan->state;
  packing *p = &state->packing;
  if (!at_tunables_parse(&at_lt_tunables, &wanted, &plan->configuration) || !plan_packing(at_gemm_of(plan->problem), p))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; should be one of cublaslt_packed",
                   plan->configuration.text);
  AT_TRY(at_lt_restore(plan, &p->gemm, p->copied, &wanted));
  plan->workspace_bytes = p->bytes + state->lt.workspace_bytes;
  return at_jit_get(&state->kernel, plan->device, &source);
}

static attune_status prepare(at_plan *plan) {
  return at_lt_prepare(plan, sizeof(packed_plan), open_plan);
}

static attune_status pack(const packed_plan *state, const pack_arguments *how, unsigned copies, const void **operand,
                          char *to, attune_stream *stream) {
  pack_arguments a = *how;
  if (copies == 0) return ATTUNE_OK;
  a.from = *operand;
  a.to = to;
  *operand = to;
  const at_jit_config config = {.grid = {(unsigned)a.tiles_line * (unsigned)a.tiles_depth, copies}, .block = {THREADS}};
  return at_jit_launch(state->kernel, &config, &a, stream);
}

static attune_status multiply(const packed_plan *state, const at_gemm_operands *operands, char *workspace,
                              attune_stream *stream) {
  const packing *p = &state->packing;
  at_gemm_operands o = *operands;
  AT_TRY(pack(state, &p->a, p->copies_a, &o.a, workspace, stream));
  AT_TRY(pack(state, &p->b, p->copies_b, &o.b, workspace + p->place_b, stream));
  return at_lt_multiply(&state->lt, &o, workspace + p->bytes, stream);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  at_cuda_scope scope;
  void *workspace = NULL;
  attune_status status = at_lt_enter(&scope, &workspace, plan, stream);
  if (AT_UNLIKELY(status != ATTUNE_OK)) return status;
  status = multiply(plan->state, operands, workspace, stream);
  at_cuda_leave(&scope);
  return status;
}

static void destroy(at_plan *plan) {
  const packed_plan *state = plan->state;
  if (!state) return;
  at_jit_release(state->kernel);
  at_lt_destroy(plan);
}

static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  (void)self, (void)problem, (void)configuration;
  return at_jit_compile(device, &source, made);
}

const at_implementation at_gemm_cublaslt_packed = {
    .name = "cublaslt_packed",
    .version = 1,
    .backend = "cuda",
    .tunables = &at_lt_tunables,
    .supports = supports,
    .configurations = configurations,
    .neighbours = neighbours,
    .prepare = prepare,
    .compile = compile,
    .launch = launch,
    .destroy = destroy,
    .depends = at_lt_depends_on_kernels,
};
