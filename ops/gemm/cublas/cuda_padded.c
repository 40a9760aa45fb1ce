/* SPDX-License-Identifier: Apache-2.0
 * cuda_padded.c: GEMM on matrices that begin, or whose columns begin, at no multiple of 16 bytes. The fast kernels of
 * cuBLASLt cannot load such matrices; copied into the workspace with padded columns they can. What may be copied is the
 * first tunable: "pad=ab", or "pad=abd" where the result is made in the workspace too and copied out. The algorithm is
 * the rest of the text. */
#include <string.h>

#include "ops/gemm/cublas/cublaslt.h"
#include "ops/gemm/cublas/pad.h"
#include "src/cuda/jit/jit.h"

#define VERSION 1
#define PLACE 256 /* copies begin at multiples of this in the workspace */

/* What is copied, and where to. */
typedef struct padding {
  at_gemm gemm;                         /* the problem as cuBLASLt sees it */
  unsigned copied;                      /* AT_LT_COPIED_... */
  size_t place_a, place_b, place_d;     /* in the workspace */
  size_t bytes;                         /* of all copies: the algorithm's workspace begins there */
  at_pad_copy in[AT_PAD_MATRICES], out; /* A, B, C, those that are copied, in this order; D */
  int in_count;
  size_t grain_in, grain_out;
} padding;

typedef struct padded_plan {
  at_lt_plan lt; /* of the padded problem; first */
  padding padding;
  at_jit_kernel *kernel_in, *kernel_out;
  at_pad_arguments in, out; /* without the pointers */
  uint32_t blocks_in, blocks_out;
} padded_plan;
_Static_assert(offsetof(padded_plan, lt) == 0, "at_lt_prepare and at_lt_destroy take it for an at_lt_plan");

/* One matrix of the problem. */
typedef struct matrix {
  int64_t rows, cols, ld, stride;
  size_t element;
} matrix;

static bool is_unaligned(const at_gemm *g, const matrix *x) {
  return g->alignment < 16 || (size_t)x->ld * x->element % 16 != 0 || (size_t)x->stride * x->element % 16 != 0;
}

static size_t grain_of(const at_gemm *g, size_t element) {
  return element < g->alignment ? element : g->alignment;
}

/* A place for a copy of rows x cols behind the others. What can never fit is not computed, for it might overflow. */
static matrix reserve(padding *p, const matrix *x, int64_t rows, int64_t cols, int64_t batch, size_t *place) {
  const int64_t most = (int64_t)ATTUNE_WORKSPACE_DEFAULT;
  if (rows > most || cols > most || rows * cols > most || batch > most || p->bytes > ATTUNE_WORKSPACE_DEFAULT) {
    p->bytes = SIZE_MAX;
    return *x;
  }
  const int64_t ld = at_lt_up(rows, 16 / (int64_t)x->element), matrices = x->stride ? batch : 1;
  *place = p->bytes;
  p->bytes += (size_t)at_lt_up(ld * cols * matrices * (int64_t)x->element, PLACE);
  return (matrix){rows, cols, ld, x->stride ? ld * cols : 0, x->element};
}

static at_pad_copy copy_of(const matrix *from, const matrix *to, int64_t batch, bool fill) {
  return (at_pad_copy){.rows = from->rows,
                       .cols = from->cols,
                       .batch = from->stride || to->stride ? batch : 1,
                       .ld_source = from->ld,
                       .ld_destination = to->ld,
                       .stride_source = from->stride,
                       .stride_destination = to->stride,
                       .element = from->element,
                       .fill = fill};
}

/* A or B, copied when it is unaligned or has to become larger. Its new columns are zeros, as the new rows are: along k
 * they meet the other matrix. */
static void pad_input(padding *p, const at_gemm *g, const matrix *x, int64_t rows, int64_t cols, unsigned bit,
                      int64_t *ld, int64_t *stride, size_t *place) {
  if (!is_unaligned(g, x) && rows == x->rows && cols == x->cols) return;
  const matrix wide = reserve(p, x, rows, cols, g->batch, place);
  *ld = wide.ld;
  *stride = wide.stride;
  p->in[p->in_count] = copy_of(x, &wide, g->batch, true);
  p->in[p->in_count++].zero_cols = cols - x->cols;
  p->copied |= bit;
}

/* A C that is read goes where D is made, whether it was apart or not. */
static void pad_output(padding *p, const at_gemm *g, const matrix *d) {
  const matrix wide = reserve(p, d, p->gemm.m, p->gemm.n, g->batch, &p->place_d),
               made = {d->rows, d->cols, wide.ld, wide.stride, d->element};
  const matrix c = {d->rows, d->cols, g->ldc, g->stride_c, d->element};
  p->gemm.ldd = wide.ld;
  p->gemm.stride_d = wide.stride;
  p->out = copy_of(&made, d, g->batch, false);
  p->copied |= AT_LT_COPIED_CD;
  if (g->c == AT_C_NONE) return;
  p->gemm.c = AT_C_INPLACE;
  p->gemm.ldc = wide.ld;
  p->gemm.stride_c = wide.stride;
  p->in[p->in_count++] = copy_of(&c, &wide, g->batch, true);
}

/* The fast kernels also want what lies contiguous to be whole pieces of 16 bytes: m or k of A, k or n of B, m of D
 * (cuBLAS: Tensor Core Usage). k can grow by zeros; m and n only where D is made in the workspace. */
static void pad_sizes(padding *p, const at_gemm *g, int64_t unit_in, int64_t unit_out, bool with_d) {
  if (g->trans_a || !g->trans_b) p->gemm.k = at_lt_up(g->k, unit_in);
  if (!with_d) return;
  p->gemm.m = at_lt_up(g->m, g->trans_a ? unit_out : unit_in);
  if (g->trans_b) p->gemm.n = at_lt_up(g->n, unit_in);
}

/* The padded problem; false when there is nothing to pad in this way, or the workspace is too small for it. */
static bool plan_padding(const at_gemm *g, bool with_d, padding *p) {
  const size_t in = attune_dtype_size((attune_dtype)g->dtype), result = attune_dtype_size((attune_dtype)g->dtype_out);
  const size_t cap = g->workspace_cap < ATTUNE_WORKSPACE_DEFAULT ? (size_t)g->workspace_cap : ATTUNE_WORKSPACE_DEFAULT;
  const matrix a = {at_gemm_rows_a(g), at_gemm_cols_a(g), g->lda, g->stride_a, in};
  const matrix b = {at_gemm_rows_b(g), at_gemm_cols_b(g), g->ldb, g->stride_b, in};
  const matrix d = {g->m, g->n, g->ldd, g->stride_d, result};
  memset(p, 0, sizeof *p);
  p->gemm = *g;
  if (g->alignment < 2) return false;
  pad_sizes(p, g, 16 / (int64_t)in, 16 / (int64_t)result, with_d);
  at_gemm *w = &p->gemm;
  if (with_d && !is_unaligned(g, &d) && w->m == g->m && w->n == g->n) return false;
  pad_input(p, g, &a, at_gemm_rows_a(w), at_gemm_cols_a(w), AT_LT_COPIED_A, &w->lda, &w->stride_a, &p->place_a);
  pad_input(p, g, &b, at_gemm_rows_b(w), at_gemm_cols_b(w), AT_LT_COPIED_B, &w->ldb, &w->stride_b, &p->place_b);
  if (with_d) pad_output(p, g, &d);
  if (!p->copied || p->bytes >= cap) return false;
  w->workspace_cap = cap - p->bytes;
  p->grain_in = grain_of(g, in < result ? in : result);
  p->grain_out = grain_of(g, result);
  return true;
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self, (void)device;
  const at_gemm *g = at_gemm_of(problem);
  padding unused;
  /* Kernels of c64 load single elements, and elements of c128 have 16 bytes: padding gains nothing. */
  if (at_cublas_open() != ATTUNE_OK || !at_gemm_plain_product(g) || at_gemm_complex(g->dtype)) return false;
  if (g->m > INT32_MAX || g->n > INT32_MAX || g->k > INT32_MAX || g->batch > INT32_MAX) return false;
  return (plan_padding(g, false, &unused) || plan_padding(g, true, &unused)) && !at_lt_is_huge(g);
}

static const char *const pad_words[] = {"ab", "abd", NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                  \
  WORD("pad", with_d, NULL, pad_words, 0,                                                                   \
       "`ab`: A and B are copied into a padded workspace first; `abd`: D is made there too and copied out") \
  AT_LT_TUNABLES(NUMBER, algorithm.)

/* A configuration, read. */
typedef struct choice {
  int with_d;
  at_lt_algorithm algorithm;
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

/* Puts "pad=..." before each of `count` algorithms. */
static int prefix(at_configuration *out, int count, bool with_d) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    choice c = {.with_d = with_d};
    if (at_tunables_parse(&at_lt_tunables, &c.algorithm, &out[i]) && at_tunables_format(&tunables, &out[kept], &c))
      kept++;
  }
  return kept;
}

/* A configuration of this implementation's for the problem: NOT_FOUND where it is none. */
static attune_status read(choice *c, padding *pads, const void *problem, const at_configuration *configuration) {
  if (at_tunables_parse(&tunables, c, configuration) && plan_padding(at_gemm_of(problem), c->with_d, pads))
    return ATTUNE_OK;
  return at_fail(ATTUNE_NOT_FOUND, "configuration is \"%s\"; should be one of cublaslt_padded", configuration->text);
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self;
  padding pads;
  int count = 0;
  for (int with_d = 1; with_d >= 0; with_d--) {
    if (!plan_padding(at_gemm_of(problem), with_d, &pads)) continue;
    const int room = with_d ? (max + 1) / 2 : max - count;
    count += prefix(out + count, at_lt_search(&pads.gemm, pads.copied, device, NULL, out + count, room), with_d);
  }
  return count;
}

static int neighbours(const at_implementation *self, const void *problem, attune_device *device,
                      const at_configuration *leader, at_configuration *out, int max) {
  (void)self;
  choice c;
  padding pads;
  if (!at_tunables_parse(&tunables, &c, leader) || !plan_padding(at_gemm_of(problem), c.with_d, &pads)) return 0;
  return prefix(out, at_lt_search(&pads.gemm, pads.copied, device, &c.algorithm, out, max), c.with_d);
}

static attune_status open_kernels(padded_plan *state, attune_device *device) {
  const padding *p = &state->padding;
  attune_status status = ATTUNE_OK;
  if (p->in_count > 0) {
    if (!at_pad_plan(&state->in, p->in, p->in_count, p->grain_in, &state->blocks_in))
      return at_fail(ATTUNE_UNSUPPORTED, "A, B or C is too large to be padded");
    status = at_jit_get(&state->kernel_in, device, at_pad_source(p->grain_in));
  }
  if (status != ATTUNE_OK || !(p->copied & AT_LT_COPIED_CD)) return status;
  if (!at_pad_plan(&state->out, &p->out, 1, p->grain_out, &state->blocks_out))
    return at_fail(ATTUNE_UNSUPPORTED, "D is too large to be padded");
  return at_jit_get(&state->kernel_out, device, at_pad_source(p->grain_out));
}

static attune_status open_plan(at_plan *plan) {
  choice c;
  padded_plan *state = plan->state;
  padding *pads = &state->padding;
  AT_TRY(read(&c, pads, plan->problem, &plan->configuration));
  AT_TRY(at_lt_restore(plan, &pads->gemm, pads->copied, &c.algorithm));
  plan->workspace_bytes = pads->bytes + state->lt.workspace_bytes;
  return open_kernels(state, plan->device);
}

static attune_status prepare(at_plan *plan) {
  return at_lt_prepare(plan, sizeof(padded_plan), open_plan);
}

/* Copies A, B and C in, those that are copied: the place in the workspace takes the operand's place. With beta = 0 C,
 * the last of them, is not read: the grid ends before it. */
static attune_status copy_in(const padded_plan *state, at_gemm_operands *o, char *workspace, attune_stream *stream) {
  const padding *pads = &state->padding;
  at_pad_arguments arguments = state->in;
  uint32_t blocks = state->blocks_in;
  int i = 0;
  if (pads->copied & AT_LT_COPIED_A) {
    arguments.matrix[i].source = o->a;
    arguments.matrix[i++].destination = workspace + pads->place_a;
    o->a = workspace + pads->place_a;
  }
  if (pads->copied & AT_LT_COPIED_B) {
    arguments.matrix[i].source = o->b;
    arguments.matrix[i++].destination = workspace + pads->place_b;
    o->b = workspace + pads->place_b;
  }
  if (i < pads->in_count) {
    if (o->beta == 0.0) blocks = arguments.matrix[i].first_block;
    arguments.matrix[i].source = o->c;
    arguments.matrix[i].destination = workspace + pads->place_d;
  }
  return blocks ? at_jit_launch(state->kernel_in, &AT_JIT_ROW(blocks, AT_PAD_THREADS), &arguments, stream) : ATTUNE_OK;
}

static attune_status copy_out(const padded_plan *state, void *d, const void *made, attune_stream *stream) {
  at_pad_arguments arguments = state->out;
  arguments.matrix[0].source = made;
  arguments.matrix[0].destination = d;
  return at_jit_launch(state->kernel_out, &AT_JIT_ROW(state->blocks_out, AT_PAD_THREADS), &arguments, stream);
}

static attune_status multiply(const padded_plan *state, const at_gemm_operands *operands, char *workspace,
                              attune_stream *stream) {
  const padding *pads = &state->padding;
  const bool with_d = pads->copied & AT_LT_COPIED_CD;
  at_gemm_operands o = *operands;
  AT_TRY(copy_in(state, &o, workspace, stream));
  if (with_d) o.d = workspace + pads->place_d;
  attune_status status = at_lt_multiply(&state->lt, &o, workspace + pads->bytes, stream);
  return status == ATTUNE_OK && with_d ? copy_out(state, operands->d, o.d, stream) : status;
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
  const padded_plan *state = plan->state;
  if (!state) return;
  at_jit_release(state->kernel_in);
  at_jit_release(state->kernel_out);
  at_lt_destroy(plan);
}

/* Its own kernels copy, cuBLASLt multiplies. */
/* Of the algorithm nothing is compiled. */
static attune_status compile(const at_implementation *self, const void *problem, attune_device *device,
                             const at_configuration *configuration, bool *made) {
  (void)self;
  bool made_out = false;
  choice c;
  padding pads;
  if (made) *made = false;
  attune_status status = read(&c, &pads, problem, configuration);
  if (status == ATTUNE_OK && pads.in_count > 0) status = at_jit_compile(device, at_pad_source(pads.grain_in), made);
  if (status != ATTUNE_OK || !(pads.copied & AT_LT_COPIED_CD)) return status;
  status = at_jit_compile(device, at_pad_source(pads.grain_out), made ? &made_out : NULL);
  if (made) *made = *made || made_out;
  return status;
}

const at_implementation at_gemm_cublaslt_padded = {
    .name = "cublaslt_padded",
    .version = VERSION,
    .backend = "cuda",
    .tunables = &tunables,
    .supports = supports,
    .configurations = configurations,
    .neighbours = neighbours,
    .prepare = prepare,
    .compile = compile,
    .launch = launch,
    .destroy = destroy,
    .depends = at_lt_depends_on_kernels,
};
