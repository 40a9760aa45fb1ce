/* SPDX-License-Identifier: Apache-2.0
 * host_scaled.c: products of 8-bit elements on the host in blocks: f8 as f32, i8 as pairs of i16, whose sums are exact.
 * Both are packed a block at a time, so no matrix is converted whole. */
#include <stdlib.h>

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/host_blocked.h"
#include "ops/gemm/scaled/scaled.h"
#include "ops/gemm/scaled/tile.h"
#include "ops/gemm/scaled/value.h"
#include "src/host/host.h"
#include "src/host/threads.h"

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                         \
  WORD("kernel", kernel, NULL, at_blocked_isa_names, 0, "the instruction set")                                     \
  NUMBER("threads", threads, NULL, 1, 4096, 0, "threads in the team")                                              \
  NUMBER("mc", mc, NULL, 1, 1 << 20, 0, "rows of the packed blocks; rounded up to whole tiles")                    \
  NUMBER("kc", kc, NULL, AT_SCALE_BLOCK, 1 << 20, 0, "depth of the packed blocks, in words: an f8 or two i8 each") \
  NUMBER("nc", nc, NULL, 1, 1 << 20, 0, "columns of the packed blocks; rounded up to whole tiles")

typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
} choice;
static const at_tunables tunables = AT_TUNABLES(TUNABLES);

typedef struct state {
  const at_scaled_tile *tile;
  choice how;
  float numbers_a[256], numbers_b[256]; /* what a byte of f8 is */
} state;

/* One of A and B while it is packed: line i (a row of op(A), a column of op(B)) at depth p. */
typedef struct side {
  const uint8_t *data;
  int64_t by_line, by_depth, lines;
  const float *numbers;
  const float *scale; /* of blocks; else NULL */
  at_scale_layout layout;
  int zero;
} side;

/* ---- packing: panels of `width` lines, each a word for each step ---- */

/* Steps that share their scales: at most to the next multiple of 128. */
static void pack_f32_part(const side *s, float *out, int64_t line, int64_t lines, int width, int64_t p, int64_t steps) {
  const uint8_t *from = s->data + line * s->by_line + p * s->by_depth;
  float scales[AT_SCALED_ROWS_MOST];
  for (int64_t r = 0; r < lines; r++) scales[r] = s->scale ? s->scale[at_scale_at(s->layout, line + r, p)] : 1.0f;
  for (int64_t q = 0; q < steps; q++) /* so that what is written is contiguous */
    for (int64_t r = 0; r < lines; r++)
      out[q * width + r] = s->numbers[from[q * s->by_depth + r * s->by_line]] * scales[r];
}

static void pack_f32(const side *s, float *out, int64_t line, int64_t lines, int width, int64_t p, int64_t steps) {
  if (lines < width) memset(out, 0, (size_t)(steps * width) * sizeof *out);
  for (int64_t q = 0; q < steps;) {
    const int64_t rest = AT_SCALE_BLOCK - (p + q) % AT_SCALE_BLOCK, part = rest < steps - q ? rest : steps - q;
    pack_f32_part(s, out + q * width, line, lines, width, p + q, part);
    q += part;
  }
}

static uint32_t half_word(const side *s, const uint8_t *x) {
  return (uint32_t)((int)(int8_t)*x - s->zero) & 0xffffu;
}

/* `depth` elements from p on, two a word. */
static void pack_i16(const side *s, uint32_t *out, int64_t line, int64_t lines, int width, int64_t p, int64_t depth) {
  const int64_t steps = (depth + 1) / 2;
  const uint8_t *from = s->data + line * s->by_line + p * s->by_depth;
  if (lines < width) memset(out, 0, (size_t)(steps * width) * sizeof *out);
  for (int64_t q = 0; q < depth / 2; q++)
    for (int64_t r = 0; r < lines; r++) {
      const uint8_t *x = from + r * s->by_line + 2 * q * s->by_depth;
      out[q * width + r] = half_word(s, x) | half_word(s, x + s->by_depth) << 16;
    }
  for (int64_t r = 0; r < lines && depth % 2; r++)
    out[(steps - 1) * width + r] = half_word(s, from + r * s->by_line + (depth - 1) * s->by_depth);
}

/* ---- the walk ---- */

typedef struct job {
  const at_gemm *g;
  const at_gemm_operands *o;
  const state *s;
  at_scaled_end end;
  int64_t mc, nc, kc; /* kc in words */
  char *scratch;      /* of all threads */
  size_t bytes;       /* of each */
} job;

static side side_of(const job *w, int64_t batch, bool b) {
  const at_gemm *g = w->g;
  const bool along = b ? g->trans_b != 0 : g->trans_a == 0; /* lines lie side by side */
  const int64_t ld = b ? g->ldb : g->lda;
  const uint8_t mode = b ? g->scaling.scale_b : g->scaling.scale_a;
  side s = {.data = (const uint8_t *)(b ? w->o->b : w->o->a) + batch * (b ? g->stride_b : g->stride_a),
            .by_line = along ? 1 : ld,
            .by_depth = along ? ld : 1,
            .lines = b ? g->n : g->m,
            .numbers = b ? w->s->numbers_b : w->s->numbers_a};
  if (mode >= ATTUNE_SCALE_1X128) s.scale = b ? w->o->scale_b : w->o->scale_a;
  s.layout = at_gemm_scale_layout(mode, s.lines, g->k);
  if (b ? g->scaling.zero_b : g->scaling.zero_a) s.zero = b ? *w->o->zero_b : *w->o->zero_a;
  return s;
}

/* Lines from `line` on at depth p, panel after panel. */
static void pack(const job *w, const side *s, void *to, int64_t line, int64_t lines, int width, int64_t p,
                 int64_t depth) {
  const bool i8 = w->g->dtype == ATTUNE_I8;
  const int64_t steps = i8 ? (depth + 1) / 2 : depth;
  uint32_t *out = to;
  for (int64_t i = 0; i < lines; i += width, out += steps * width) {
    const int64_t here = lines - i < width ? lines - i : width;
    if (i8)
      pack_i16(s, out, line + i, here, width, p, depth);
    else
      pack_f32(s, (float *)(void *)out, line + i, here, width, p, depth);
  }
}

static int64_t up(int64_t x, int64_t to) {
  return (x + to - 1) / to * to;
}

/* sums += A B of one packed block. */
static void multiply(const job *w, const uint32_t *a, const uint32_t *b, uint32_t *sums, int64_t m, int64_t n,
                     int64_t steps) {
  const at_scaled_tile *t = w->s->tile;
  const at_scaled_tile_fn fn = w->g->dtype == ATTUNE_I8 ? t->i16 : t->f32;
  for (int64_t j = 0; j < n; j += t->columns)
    for (int64_t i = 0; i < m; i += t->rows) fn(steps, a + i * steps, b + j * steps, sums + j * w->mc + i, w->mc);
}

static float finish(const job *w, const uint32_t *sums, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n,
                    float most) {
  const bool i8 = w->g->dtype == ATTUNE_I8, exact = w->g->dtype_out == ATTUNE_I32;
  for (int64_t y = 0; y < n; y++)
    for (int64_t x = 0; x < m; x++) {
      const uint32_t sum = sums[y * w->mc + x];
      if (exact)
        at_scaled_put_i32(&w->end, batch, i + x, j + y, sum);
      else
        most =
            at_scaled_put(&w->end, batch, i + x, j + y, i8 ? (double)(int32_t)sum : (double)at_f32_of_bits(sum), most);
    }
  return most;
}

static float block(const job *w, char *scratch, int64_t batch, int64_t i, int64_t j, float most) {
  const at_gemm *g = w->g;
  const at_scaled_tile *t = w->s->tile;
  const side a = side_of(w, batch, false), b = side_of(w, batch, true);
  const int64_t m = g->m - i < w->mc ? g->m - i : w->mc, n = g->n - j < w->nc ? g->n - j : w->nc,
                each = g->dtype == ATTUNE_I8 ? 2 : 1;
  uint32_t *sums = (uint32_t *)(void *)scratch, *packed_a = sums + w->mc * w->nc, *packed_b = packed_a + w->mc * w->kc;
  memset(sums, 0, (size_t)(w->mc * up(n, t->columns)) * sizeof *sums);
  for (int64_t p = 0; p < g->k; p += w->kc * each) {
    const int64_t depth = g->k - p < w->kc * each ? g->k - p : w->kc * each;
    pack(w, &a, packed_a, i, m, t->rows, p, depth);
    pack(w, &b, packed_b, j, n, t->columns, p, depth);
    multiply(w, packed_a, packed_b, sums, m, n, (depth + each - 1) / each);
  }
  return finish(w, sums, batch, i, m, j, n, most);
}

static void share(void *arg, const at_team *team) {
  const job *w = arg;
  const int64_t rows = (w->g->m + w->mc - 1) / w->mc, columns = (w->g->n + w->nc - 1) / w->nc;
  float most = 0.0f;
  for (int64_t x = team->rank; x < rows * columns * w->g->batch; x += team->size)
    most = block(w, w->scratch + (size_t)team->rank * w->bytes, x / (rows * columns), x % rows * w->mc,
                 x / rows % columns * w->nc, most);
  if (w->g->scaling.amax_d) at_scaled_raise(w->o->amax_d, most);
}

static void run_job(const at_gemm *g, const at_gemm_operands *o, const state *s) {
  const at_scaled_tile *t = s->tile;
  const int64_t words = g->dtype == ATTUNE_I8 ? (g->k + 1) / 2 : g->k;
  job w = {.g = g,
           .o = o,
           .s = s,
           .end = at_scaled_end_of(g, o),
           .mc = up(s->how.mc < g->m ? s->how.mc : g->m, t->rows),
           .nc = up(s->how.nc < g->n ? s->how.nc : g->n, t->columns),
           .kc = s->how.kc < words ? s->how.kc : words};
  w.bytes = (size_t)up((w.mc * w.nc + (w.mc + w.nc) * w.kc) * 4, 64);
  w.scratch = at_host_scratch(w.bytes * (size_t)s->how.threads);
  if (!w.scratch) {
    at_scaled_plain(g, o);
    return;
  }
  if (g->scaling.amax_d) *o->amax_d = 0.0f;
  at_parallel(s->how.threads, share, &w);
}

/* ---- the implementation ---- */

static const at_scaled_tile *tile_of(int kernel) {
  static const at_scaled_tile *const tiles[] = {
    &at_scaled_tile_portable,
#if defined(__x86_64__)
    &at_scaled_tile_avx2,
    &at_scaled_tile_avx512
#endif
  };
  if (!at_blocked_isa_find(at_blocked_isa_names[kernel])) return NULL;
#if defined(__x86_64__)
  if (tiles[kernel] == &at_scaled_tile_avx512 && at_cpu_info()->avx512_vnni) return &at_scaled_tile_avx512_vnni;
#endif
  return tiles[kernel];
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  return device->backend.kind == ATTUNE_DEVICE_HOST && at_gemm_8bit(at_gemm_of(problem)->dtype);
}

static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  const at_gemm *g = at_gemm_of(problem);
  const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
  static const int blocks[][3] = {{384, 512, 768}, {192, 512, 384}, {96, 256, 96}};
  int count = 0;
  (void)self, (void)device;
  choice c = {.kernel = at_blocked_isa_number(at_blocked_isa_find(NULL)->name)};
  for (size_t i = 0; i < AT_COUNT(blocks); i++) {
    c.mc = blocks[i][0], c.kc = blocks[i][1], c.nc = blocks[i][2];
    if (i > 0 && g->m <= c.mc && g->n <= c.nc && flops < 1e5) break; /* one block */
    for (c.threads = flops < 1e6 ? 1 : at_cpu_count(); c.threads >= 1 && count < max; c.threads /= 2)
      count += at_tunables_add(&tunables, out, count, &c);
  }
  return count;
}

static attune_status prepare(at_plan *plan) {
  const at_gemm *g = at_gemm_of(plan->problem);
  state *s = calloc(1, sizeof *s);
  if (!s) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_scaled");
  if (at_tunables_parse(&tunables, &s->how, &plan->configuration)) s->tile = tile_of(s->how.kernel);
  if (!s->tile) {
    free(s);
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; host_scaled does not have it on this CPU",
                   plan->configuration.text);
  }
  for (int i = 0; i < 256; i++) {
    s->numbers_a[i] = at_scaled_byte((uint8_t)i, (attune_dtype)g->dtype);
    s->numbers_b[i] = at_scaled_byte((uint8_t)i, at_gemm_dtype_b(g));
  }
  plan->state = s;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

typedef struct work {
  const at_plan *plan;
  at_gemm_operands o;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = args;
  run_job(at_gemm_of(w->plan->problem), &w->o, w->plan->state);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const work w = {plan, *(const at_gemm_operands *)operands};
  return at_host_submit(stream, run, &w, sizeof w);
}

const at_implementation at_gemm_host_scaled = {
    .name = "host_scaled",
    .version = 1,
    .backend = "host",
    .tunables = &tunables,
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = launch,
    .destroy = destroy,
    .depends = at_blocked_depends,
};
