/* SPDX-License-Identifier: Apache-2.0
 * host_blocked.c: attune's own host GEMM as an implementation: its configurations as text, its plans, and the plain
 * f64 call. */
#include "ops/gemm/host/host_blocked.h"

#include <stdlib.h>
#include <string.h>

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/small_run.h"
#include "src/host/host.h"
#include "src/host/threads.h"

const char *const at_blocked_isa_names[] = {"portable", "avx2", "avx512", NULL};

int at_blocked_isa_number(const char *name) {
  int number = 0;
  while (at_blocked_isa_names[number + 1] && strcmp(at_blocked_isa_names[number], name) != 0) number++;
  return number;
}

/* ---- options to text and back ---- */

static const char *const paths[] = {[AT_PATH_DIRECT] = "direct",
                                    [AT_PATH_PANEL] = "panel",
                                    [AT_PATH_PACKED] = "packed",
                                    [AT_PATH_STREAM] = "stream",
                                    NULL};
static const char *const splits[] = {
    "",  [1 + AT_SPLIT_M] = "m", [1 + AT_SPLIT_N] = "n", [1 + AT_SPLIT_BATCH] = "batch", [1 + AT_SPLIT_GRID] = "grid",
    NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                             \
  WORD("path", path, NULL, paths, 0,                                                                                   \
       "`direct`: A and B are read where they lie; `panel`: A is packed, B is read where it lies; `packed`: both are " \
       "packed, in blocks; `stream`: for a thin m or n, one pass over the wide matrix")                                \
  WORD("kernel", kernel, NULL, at_blocked_isa_names, 0, "the instruction set")                                         \
  NUMBER("threads", threads, NULL, 1, 4096, 0, "threads in the team")                                                  \
  WORD("split", split, NULL, splits, AT_LEFT_OUT,                                                                      \
       "what the threads share among them: `m`, `n`, `grid` (both) or `batch`; with one thread left out")              \
  NUMBER("vectors", vectors, NULL, 1, 3, AT_LEFT_OUT, "vectors of rows in a register tile; `stream` has none")         \
  NUMBER("mc", mc, NULL, 1, 1 << 20, AT_LEFT_OUT, "rows of the packed blocks of `panel` and `packed`")                 \
  NUMBER("kc", kc, NULL, 1, 1 << 20, AT_LEFT_OUT, "depth of the packed blocks of `packed`")                            \
  NUMBER("nc", nc, NULL, 1, 1 << 20, AT_LEFT_OUT, "columns of the packed blocks of `packed`")

/* A configuration, read; 0: left out. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

/* What the options say, and no more. */
static choice choice_of(const at_blocked_options *o) {
  const bool packed = o->path == AT_PATH_PACKED, panel = o->path == AT_PATH_PANEL;
  return (choice){.path = (int)o->path,
                  .kernel = at_blocked_isa_number(o->isa->name),
                  .threads = o->threads,
                  .split = o->threads > 1 ? 1 + (int)o->split : 0,
                  .vectors = o->path == AT_PATH_STREAM ? 0 : o->vectors,
                  .mc = packed || panel ? (int)o->mc : 0,
                  .kc = packed ? (int)o->kc : 0,
                  .nc = packed ? (int)o->nc : 0};
}

static bool options_format(at_configuration *out, const at_blocked_options *o) {
  const choice c = choice_of(o);
  return at_tunables_format(&tunables, out, &c);
}

/* False when the text is not one that options_format writes, or this CPU or problem cannot do it. */
static bool options_parse(at_blocked_options *out, const at_gemm *g, const at_configuration *text) {
  choice c;
  if (!at_tunables_parse(&tunables, &c, text)) return false;
  const at_blocked_isa *isa = at_blocked_isa_find(at_blocked_isa_names[c.kernel]);
  if (isa == NULL || !at_blocked_can(g, (at_blocked_path)c.path)) return false;
  at_blocked_defaults(out, g, isa);
  if (c.vectors > out->vectors) return false;
  out->path = (at_blocked_path)c.path;
  out->threads = c.threads;
  if (c.split) out->split = (at_blocked_split)(c.split - 1);
  if (c.threads == 1) c.split = 0; /* a team's winner, for one thread (tuning/tuner/other_threads.c) */
  if (c.vectors) out->vectors = c.vectors;
  if (c.mc) out->mc = c.mc;
  if (c.kc) out->kc = c.kc;
  if (c.nc) out->nc = c.nc;
  const choice again = choice_of(out); /* what was left out was not to be there, and nothing else was */
  return at_tunables_equal(&tunables, &c, &again);
}

/* ---- which configurations a problem is worth ---- */

typedef struct list {
  at_configuration *out;
  int count, max;
} list;

static void add(list *l, const at_blocked_options *o) {
  if (l->count == l->max || !options_format(&l->out[l->count], o)) return;
  for (int i = 0; i < l->count; i++)
    if (strcmp(l->out[i].text, l->out[l->count].text) == 0) return;
  l->count++;
}

static double flops(const at_gemm *g) {
  return (at_gemm_complex(g->dtype) ? 8.0 : 2.0) * (double)g->m * (double)g->n * (double)g->k * (double)g->batch;
}

/* Below this many operations a thread costs more than it gives. */
#define FLOPS_PER_THREAD 20e3

static void add_splits(list *l, at_blocked_options o, const at_gemm *g) {
  if (g->batch >= o.threads) {
    o.split = AT_SPLIT_BATCH;
    add(l, &o);
    if (g->batch >= 4 * o.threads) return;
  }
  bool wide = o.path == AT_PATH_STREAM ? g->n > g->m : g->n >= g->m;
  o.split = wide ? AT_SPLIT_N : AT_SPLIT_M;
  add(l, &o);
  if (o.path == AT_PATH_STREAM) return; /* only the wide operand is worth dividing */
  o.split = wide ? AT_SPLIT_M : AT_SPLIT_N;
  add(l, &o);
  if (o.threads <= 2) return;
  o.split = AT_SPLIT_GRID;
  add(l, &o);
}

/* The options with each worthwhile number of threads: all CPUs, the powers of two below, one. */
static void add_threads(list *l, at_blocked_options o, const at_gemm *g) {
  int cpus = at_cpu_count(), power = 1;
  while (power * 2 < cpus) power *= 2;
  o.threads = cpus;
  if (cpus > 1 && flops(g) >= FLOPS_PER_THREAD * cpus) add_splits(l, o, g);
  for (o.threads = power; o.threads > 1; o.threads /= 2)
    if (flops(g) >= FLOPS_PER_THREAD * o.threads) add_splits(l, o, g);
  o.threads = 1;
  if (cpus == 1 || flops(g) < 1e9) add(l, &o); /* beyond, fewer threads than there are cannot win */
}

static int64_t l2_bytes(void) {
  size_t bytes = at_cpu_info()->l2_bytes;
  return bytes != 0 ? (int64_t)bytes : 256 << 10;
}

/* A batch of small products that gives each thread one is host_small's, which does the same with less around it. */
static void add_direct(list *l, at_blocked_options o, const at_gemm *g) {
  int64_t size = (int64_t)attune_dtype_size((attune_dtype)g->dtype);
  if (g->batch > 1 && g->batch >= at_cpu_count() && at_small_takes(g)) return;
  if (!at_blocked_can(g, AT_PATH_DIRECT) || g->m * g->k * size > l2_bytes()) return;
  o.path = AT_PATH_DIRECT;
  for (int vectors = o.vectors; vectors >= 2; vectors--) {
    o.vectors = vectors;
    add_threads(l, o, g);
  }
}

static void add_panel(list *l, at_blocked_options o, const at_gemm *g) {
  const bool f64 = at_gemm_part(g->dtype) == ATTUNE_F64;
  const int64_t m = g->m * at_gemm_element_parts(g->dtype);
  int64_t size = f64 ? 8 : 4, lanes = f64 ? o.isa->f64->lanes : o.isa->f32->lanes;
  int64_t tile = o.vectors * lanes, rows = l2_bytes() / 2 / (g->k * size) / tile * tile;
  if (!at_blocked_can(g, AT_PATH_PANEL) || rows == 0) return;
  o.path = AT_PATH_PANEL;
  o.mc = rows < m ? rows : (m + tile - 1) / tile * tile;
  add_threads(l, o, g);
  if (o.vectors <= 2 || flops(g) >= 1e9) return;
  o.vectors = 2;
  add_threads(l, o, g);
}

static void add_packed(list *l, at_blocked_options o, const at_gemm *g) {
  const at_blocked_options base = o;
  add_threads(l, o, g);
  if (flops(g) < 4e6 || flops(g) > 4e9) return; /* one block holds it all; or each trial costs too much of a budget */
  if (base.vectors > 2) {
    o.vectors = 2;
    add_threads(l, o, g);
    o = base;
  }
  o.mc = base.mc * 2;
  o.kc = base.kc / 2;
  add_threads(l, o, g);
  o = base;
  o.mc = base.mc * 2;
  add_threads(l, o, g);
  o = base;
  o.nc = 768;
  add_threads(l, o, g);
}

static void add_stream(list *l, at_blocked_options o, const at_gemm *g) {
  if (!at_blocked_can(g, AT_PATH_STREAM)) return;
  o.path = AT_PATH_STREAM;
  add_threads(l, o, g);
}

/* Few columns or rows: memory decides, so one pass over the wide operand; unless A is small and stays in cache while B
 * passes by. */
static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self, (void)device;
  const at_gemm *g = at_gemm_of(problem);
  list l = {out, 0, max};
  at_blocked_options o;
  at_blocked_defaults(&o, g, at_blocked_isa_find(NULL));
  if (g->m == 1 || g->n == 1 || (g->m > 4 * g->n && g->k > 64)) add_stream(&l, o, g);
  add_direct(&l, o, g);
  add_stream(&l, o, g);
  if (flops(g) < 4e6) add_panel(&l, o, g);
  add_packed(&l, o, g);
  add_panel(&l, o, g);
  return l.count;
}

/* ---- choices ---- */

const at_blocked_isa *at_blocked_isa_find(const char *name) {
#if defined(__x86_64__)
  const at_cpu *cpu = at_cpu_info();
  bool avx2 = cpu->avx2 && cpu->fma && cpu->f16c;
  if (avx2 && cpu->avx512f && cpu->avx512bw && cpu->avx512vl && cpu->avx512dq &&
      (name == NULL || strcmp(name, "avx512") == 0))
    return &at_blocked_avx512;
  if (avx2 && (name == NULL || strcmp(name, "avx2") == 0)) return &at_blocked_avx2;
#endif
  return name == NULL || strcmp(name, "portable") == 0 ? &at_blocked_portable : NULL;
}

void at_blocked_defaults(at_blocked_options *out, const at_gemm *g, const at_blocked_isa *isa) {
  bool f64 = at_gemm_part(g->dtype) == ATTUNE_F64;
  const at_blocked_ops *ops = f64 ? isa->f64 : isa->f32;
  int64_t size = f64 ? 8 : 4, tile = (int64_t)ops->vectors * ops->lanes;
  const int64_t l2 = l2_bytes();
  *out = (at_blocked_options){.isa = isa,
                              .path = AT_PATH_PACKED,
                              .split = AT_SPLIT_GRID,
                              .threads = 1,
                              .vectors = ops->vectors,
                              .kc = f64 ? 320 : 512,
                              .nc = (f64 ? 2048 : 3072) / at_gemm_element_parts(g->dtype)};
  const int64_t tiles = l2 / 2 / (out->kc * size) / tile;
  out->mc = (tiles > 1 ? tiles : 1) * tile;
}

bool at_blocked_can(const at_gemm *g, at_blocked_path path) {
  bool half = g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16;
  if (path == AT_PATH_DIRECT) return !half && !g->trans_a;
  if (path == AT_PATH_PANEL) return !half;
  if (path == AT_PATH_STREAM) return (g->m < g->n ? g->m : g->n) * at_gemm_element_parts(g->dtype) <= AT_STREAM_THIN;
  return true;
}

/* ---- the implementation ---- */

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

static void run(const void *args) {
  const work *w = (const work *)args;
  at_blocked_run(at_gemm_of(w->plan->problem), &w->operands, (const at_blocked_options *)w->plan->state);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  work w = {plan, *(const at_gemm_operands *)operands};
  return at_host_submit(stream, run, &w, sizeof w);
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  return device->backend.kind == ATTUNE_DEVICE_HOST && at_gemm_plain_product(at_gemm_of(problem));
}

static attune_status prepare(at_plan *plan) {
  at_blocked_options options;
  if (!options_parse(&options, at_gemm_of(plan->problem), &plan->configuration))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; host_blocked does not have it for this problem and CPU",
                   plan->configuration.text);
  plan->state = malloc(sizeof options);
  if (plan->state == NULL) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_blocked");
  memcpy(plan->state, &options, sizeof options);
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

bool at_blocked_depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                        char *out, size_t size) {
  (void)self;
  const char *const *names = &at_blocked_isa_names[1]; /* the portable one depends on nothing */
  char kernel[32] = "";
  size_t at = 0;
  (void)device;
  *out = '\0';
  if (configuration) (void)at_configuration_get_text(configuration, "kernel", kernel, sizeof kernel);
  for (int i = 0; names[i]; i++) {
    if (configuration && strcmp(kernel, names[i]) != 0) continue;
    if (!at_append(out, size, &at, "%s%s-%s", at > 0 ? " " : "", names[i],
                   at_blocked_isa_find(names[i]) ? "yes" : "none"))
      return false;
  }
  return true;
}

const at_implementation at_gemm_host_blocked = {
    .name = "host_blocked",
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

attune_status at_blocked_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, bool trans_a,
                             const double *b, int64_t ldb, bool trans_b, double *c, int64_t ldc, int threads) {
  if (m < 1 || n < 1 || k < 1 || threads < 1)
    return AT_INVALID("m, n, k, threads are %lld, %lld, %lld, %d; should be at least 1", (long long)m, (long long)n,
                      (long long)k, threads);
  at_gemm g = {.m = m,
               .n = n,
               .k = k,
               .batch = 1,
               .lda = lda,
               .ldb = ldb,
               .ldd = ldc,
               .workspace_cap = 1,
               .dtype = ATTUNE_F64,
               .dtype_out = ATTUNE_F64,
               .trans_a = trans_a,
               .trans_b = trans_b,
               .c = AT_C_NONE};
  at_gemm_operands operands = {.alpha = 1.0, .a = a, .b = b, .beta = 0.0, .c = NULL, .d = c};
  at_blocked_options options;
  at_blocked_defaults(&options, &g, at_blocked_isa_find(NULL));
  options.threads = threads;
  options.path = at_blocked_can(&g, AT_PATH_STREAM) && (m == 1 || n == 1) ? AT_PATH_STREAM : AT_PATH_PACKED;
  options.split = n >= m ? AT_SPLIT_N : AT_SPLIT_M;
  at_blocked_run(&g, &operands, &options);
  return ATTUNE_OK;
}
