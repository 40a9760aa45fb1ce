/* SPDX-License-Identifier: Apache-2.0
 * cuda_packed.c: products of 8-bit elements by cuBLASLt where it does not take matrices as they lie: it wants op(A)
 * transposed, op(B) not, lines of 16 bytes, columns of D too, and with scales of blocks n in fours. A and B are copied
 * so into the workspace first, with zeros behind; where m or n grows, or D is not aligned, so are scales and C, and D
 * is made there and copied out. */
#include "ops/gemm/cublas/cublaslt.h"
#include "ops/gemm/problem/scaling.h"
#include "src/cuda/jit/jit.h"

#include "pack_bytes_cu.h"

enum { TILE = 64, THREADS = 256, LINE = 16, PLACE = 256 };

static const at_kernel_source source = {.file = "pack_bytes.cu", .text = at_pack_bytes_cu, .entry = "at_pack_bytes"};

/* struct pack_arguments of pack_bytes.cu */
typedef struct pack_arguments {
  const void *from;
  void *to;
  int64_t by_line, by_depth, stride_from, stride_to;
  int32_t lines, depth, width, tiles_line, tiles_depth, lines_to;
} pack_arguments;

/* Columns that are copied between an operand and a place in the workspace; bytes. */
typedef struct columns_copy {
  size_t bytes, distance, distance_in_place, count; /* count 0: nothing is copied */
  size_t place;
} columns_copy;

/* The problem of the copies, and how they are made. */
typedef struct packing {
  at_gemm gemm;
  pack_arguments a, b; /* without the pointers; `lines` 0: it lies as it is wanted */
  unsigned copies_a, copies_b, copied;
  size_t place_b, bytes; /* in the workspace; of all copies */
  columns_copy scale_a, scale_b, c, d;
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

static pack_arguments pack_of(const at_gemm *g, bool b, int64_t lines_to) {
  const bool along = b ? g->trans_b != 0 : g->trans_a == 0; /* lines lie side by side */
  const int64_t ld = b ? g->ldb : g->lda, lines = b ? g->n : g->m, width = at_lt_up(g->k, LINE);
  return (pack_arguments){.by_line = along ? 1 : ld,
                          .by_depth = along ? ld : 1,
                          .stride_from = b ? g->stride_b : g->stride_a,
                          .stride_to = lines_to * width,
                          .lines = (int32_t)lines,
                          .depth = (int32_t)g->k,
                          .width = (int32_t)width,
                          .tiles_line = (int32_t)at_lt_up(lines_to, TILE) / TILE,
                          .tiles_depth = (int32_t)at_lt_up(width, TILE) / TILE,
                          .lines_to = (int32_t)lines_to};
}

static size_t reserve(packing *p, int64_t bytes) {
  const size_t place = p->bytes;
  p->bytes += (size_t)at_lt_up(bytes, PLACE);
  return place;
}

static columns_copy columns_of(packing *p, int64_t element, int64_t rows, int64_t ld, int64_t ld_in_place,
                               int64_t count, int64_t count_in_place) {
  return (columns_copy){.bytes = (size_t)(element * rows),
                        .distance = (size_t)(element * ld),
                        .distance_in_place = (size_t)(element * ld_in_place),
                        .count = (size_t)count,
                        .place = reserve(p, element * ld_in_place * count_in_place)};
}

/* Scales of a side whose number of lines grows, or which are not aligned. Those of blocks are as many as before: 128 is
 * a multiple of every unit. */
static columns_copy scales_of(packing *p, const at_gemm *g, bool b) {
  const uint8_t mode = b ? g->scaling.scale_b : g->scaling.scale_a;
  const int64_t lines = b ? g->n : g->m, wide = b ? p->gemm.n : p->gemm.m, all = (int64_t)at_gemm_scale_count(g, b);
  if (mode < ATTUNE_SCALE_VECTOR || (lines == wide && g->alignment >= LINE)) return (columns_copy){0};
  if (mode == ATTUNE_SCALE_128X128) return columns_of(p, sizeof(float), all, all, all, 1, 1);
  return columns_of(p, sizeof(float), lines, lines, wide, all / lines, all / lines);
}

/* The sizes that the library takes. */
static void pad_sizes(const at_gemm *g, at_gemm *wide) {
  const int64_t out = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out);
  const bool blocks = g->scaling.scale_a >= ATTUNE_SCALE_1X128 || g->scaling.scale_b >= ATTUNE_SCALE_1X128;
  wide->k = at_lt_up(g->k, LINE);
  wide->m = at_lt_up(g->m, g->dtype == ATTUNE_I8 ? 4 : LINE / out);
  if (blocks) wide->n = at_lt_up(g->n, 4);
}

static bool is_d_unaligned(const at_gemm *g) {
  const size_t out = attune_dtype_size((attune_dtype)g->dtype_out);
  if (g->dtype == ATTUNE_I8) return g->alignment < 4 || (size_t)g->ldd * out % 4 != 0;
  return g->alignment < LINE || (size_t)g->ldd * out % LINE != 0;
}

/* D and C in the workspace, and scales with them. */
static bool plan_d(const at_gemm *g, packing *p) {
  at_gemm *wide = &p->gemm;
  const int64_t out = (int64_t)attune_dtype_size((attune_dtype)g->dtype_out),
                of_c = (int64_t)attune_dtype_size(at_gemm_dtype_c(g));
  if (wide->m == g->m && wide->n == g->n && !is_d_unaligned(g)) return true;
  if (g->batch > 1 || (double)wide->m * (double)wide->n > (double)ATTUNE_WORKSPACE_DEFAULT) return false;
  wide->ldd = at_lt_up(wide->m, LINE);
  p->d = columns_of(p, out, g->m, g->ldd, wide->ldd, g->n, wide->n);
  if (g->c != AT_C_NONE) {
    wide->c = AT_C_SEPARATE;
    wide->ldc = wide->ldd;
    p->c = columns_of(p, of_c, g->m, g->ldc, wide->ldc, g->n, wide->n);
  }
  p->scale_a = scales_of(p, g, false);
  p->scale_b = scales_of(p, g, true);
  p->copied |= AT_LT_COPIED_CD;
  if (g->alignment < LINE) wide->alignment = LINE; /* all are copied */
  return true;
}

/* False: nothing is to be copied, or it does not fit into the workspace. Lines that are longer by less than 16 have no
 * block of scales more. */
static bool plan_packing(const at_gemm *g, packing *p) {
  *p = (packing){.gemm = *g};
  at_gemm *wide = &p->gemm;
  if (!at_gemm_8bit(g->dtype) || g->k > INT32_MAX / 2 || g->batch > UINT16_MAX) return false;
  if (g->m > INT32_MAX / 2 || g->n > INT32_MAX / 2) return false;
  pad_sizes(g, wide);
  if ((double)(wide->m + wide->n) * (double)wide->k * (double)g->batch > (double)ATTUNE_WORKSPACE_DEFAULT) return false;
  if (wide->m != g->m || !lies_well(g, g->trans_a != 0, g->lda, g->stride_a)) {
    p->a = pack_of(g, false, wide->m);
    p->copies_a = g->stride_a ? (unsigned)g->batch : 1u;
    (void)reserve(p, wide->m * wide->k * p->copies_a);
    wide->lda = wide->k;
    wide->stride_a = g->stride_a ? wide->m * wide->k : 0;
    p->copied |= AT_LT_COPIED_A;
  }
  if (wide->n != g->n || !lies_well(g, g->trans_b == 0, g->ldb, g->stride_b)) {
    p->b = pack_of(g, true, wide->n);
    p->copies_b = g->stride_b ? (unsigned)g->batch : 1u;
    p->place_b = reserve(p, wide->n * wide->k * p->copies_b);
    wide->ldb = wide->k;
    wide->stride_b = g->stride_b ? wide->n * wide->k : 0;
    p->copied |= AT_LT_COPIED_B;
  }
  wide->trans_a = ATTUNE_T;
  wide->trans_b = ATTUNE_N;
  if (!plan_d(g, p) || !p->copied || p->bytes >= g->workspace_cap || p->bytes >= ATTUNE_WORKSPACE_DEFAULT) return false;
  wide->workspace_cap -= p->bytes;
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
  plan->workspace_bytes = p->bytes + at_lt_scale_bytes(&p->gemm) + state->lt.workspace_bytes;
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

static attune_status copy_columns(const columns_copy *how, void *to, size_t distance_to, const void *from,
                                  size_t distance_from, attune_stream *stream) {
  return at_cuda_check(stream->device,
                       cudaMemcpy2DAsync(to, distance_to, from, distance_from, how->bytes, how->count,
                                         cudaMemcpyDeviceToDevice, (cudaStream_t)stream->native),
                       "cudaMemcpy2DAsync");
}

/* The operand's place in the workspace, with the operand. */
static attune_status copy_in(const columns_copy *how, const void **operand, char *workspace, attune_stream *stream) {
  const void *from = *operand;
  if (how->count == 0) return ATTUNE_OK;
  *operand = workspace + how->place;
  return copy_columns(how, workspace + how->place, how->distance_in_place, from, how->distance, stream);
}

/* amax is of all that is computed: rows behind those of C have to be zeros. */
static attune_status copy_c(const packing *p, at_gemm_operands *o, char *workspace, attune_stream *stream) {
  const at_gemm *g = &p->gemm;
  const size_t bytes = p->c.distance_in_place * (size_t)g->n;
  if (p->c.count == 0 || at_gemm_beta_is_0((attune_dtype)g->dtype, o)) {
    if (p->c.count) o->c = workspace + p->c.place;
    return ATTUNE_OK;
  }
  if (g->scaling.amax_d)
    AT_TRY(at_cuda_check(stream->device,
                         cudaMemsetAsync(workspace + p->c.place, 0, bytes, (cudaStream_t)stream->native),
                         "cudaMemsetAsync"));
  return copy_in(&p->c, &o->c, workspace, stream);
}

static attune_status copy_scale(const columns_copy *how, const float **scale, char *workspace, attune_stream *stream) {
  const void *operand = *scale;
  const attune_status status = copy_in(how, &operand, workspace, stream);
  *scale = operand;
  return status;
}

static attune_status multiply(const packed_plan *state, const at_gemm_operands *operands, char *workspace,
                              attune_stream *stream) {
  const packing *p = &state->packing;
  at_gemm_operands o = *operands;
  AT_TRY(pack(state, &p->a, p->copies_a, &o.a, workspace, stream));
  AT_TRY(pack(state, &p->b, p->copies_b, &o.b, workspace + p->place_b, stream));
  AT_TRY(copy_scale(&p->scale_a, &o.scale_a, workspace, stream));
  AT_TRY(copy_scale(&p->scale_b, &o.scale_b, workspace, stream));
  AT_TRY(copy_c(p, &o, workspace, stream));
  if (p->d.count) o.d = workspace + p->d.place;
  AT_TRY(at_lt_multiply(&state->lt, &o, workspace + p->bytes, stream));
  if (p->d.count == 0) return ATTUNE_OK;
  return copy_columns(&p->d, operands->d, p->d.distance, o.d, p->d.distance_in_place, stream);
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
