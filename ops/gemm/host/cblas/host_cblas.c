/* SPDX-License-Identifier: Apache-2.0
 * host_cblas.c: GEMM of f32, f64, c64 and c128 by the CBLAS libraries of the machine; the library and its thread count
 * are the tunables. The first one with its default threads is the host's vendor default. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/cblas/cblas_direct.h"
#include "ops/gemm/host/cblas/cblas_library.h"
#include "ops/gemm/problem/problem.h"
#include "src/host/host.h"
#include "src/host/threads.h"
#include "src/process/floating.h"
#include "tuning/op/tunables.h"

enum { COLUMN_MAJOR = 102 };

typedef struct state {
  at_cblas *library;
  int threads;
  bool gemv;
  bool f64, simple; /* simple: a real product by gemm, and no C of its own; then the call is made of these: */
  bool reads_d;     /* D is C */
  int trans_a, trans_b, m, n, k, lda, ldb, ldd;
} state;

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

/* What the call needs of the problem, as CBLAS takes it: small products see each instruction. */
static void make_simple(state *s, const at_gemm *g) {
  s->f64 = g->dtype == ATTUNE_F64;
  s->simple = !s->gemv && g->batch == 1 && g->c != AT_C_SEPARATE && !at_gemm_complex(g->dtype);
  s->reads_d = g->c != AT_C_NONE;
  s->trans_a = at_cblas_trans(g->trans_a);
  s->trans_b = at_cblas_trans(g->trans_b);
  s->m = (int)g->m;
  s->n = (int)g->n;
  s->k = (int)g->k;
  s->lda = (int)g->lda;
  s->ldb = (int)g->ldb;
  s->ldd = (int)g->ldd;
}

static inline void run_simple(const state *s, const at_gemm_operands *o) {
  const double beta = s->reads_d ? o->beta : 0.0;
  if (s->f64)
    s->library->dgemm(COLUMN_MAJOR, s->trans_a, s->trans_b, s->m, s->n, s->k, o->alpha, o->a, s->lda, o->b, s->ldb,
                      beta, o->d, s->ldd);
  else
    s->library->sgemm(COLUMN_MAJOR, s->trans_a, s->trans_b, s->m, s->n, s->k, (float)o->alpha, o->a, s->lda, o->b,
                      s->ldb, (float)beta, o->d, s->ldd);
}

/* The process ends and takes the libraries down: attune's own loops are still there. */
static void run_without_library(const at_gemm *g, const at_gemm_operands *operands) {
  at_blocked_options options;
  at_blocked_defaults(&options, g, at_blocked_isa_find(NULL));
  at_blocked_run(g, operands, &options);
}

/* Every call goes through the gate, the smallest too: the end of the process waits there for the threads inside. */
static void run_now(const at_plan *plan, const at_gemm_operands *o) {
  const state *s = (const state *)plan->state;
  const int threads = s->threads > 1 && at_cpu_count() < s->threads ? at_cpu_count() : s->threads;
  at_floating floating = {.changed = false};
  struct at_visitor *mine = at_cblas_thread_setting_enter(&s->library->gate, threads);
  if (AT_UNLIKELY(!mine)) {
    run_without_library(at_gemm_of(plan->problem), o);
    return;
  }
  if (threads > 1) floating = at_floating_enter(); /* that of the library's threads, which do their shares */
  if (AT_LIKELY(s->simple))
    run_simple(s, o);
  else
    at_cblas_call(s->library, at_gemm_of(plan->problem), o, s->gemv);
  at_floating_leave(&floating);
  at_cblas_thread_setting_leave_as(&s->library->gate, mine);
}

static void run(const void *args) {
  const work *w = (const work *)args;
  run_now(w->plan, &w->operands);
}

static attune_status launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  if (at_host_inline(stream)) {
    run_now(plan, (const at_gemm_operands *)operands);
    return ATTUNE_OK;
  }
  work w = {plan, *(const at_gemm_operands *)operands};
  return at_host_submit(stream, run, &w, sizeof w);
}

/* Where a library loses NaN and Inf, its kernels for small and thin matrices do, and any that adds to C. Verification
 * would find it, but a plan may also be a guess from a neighbour, or the default. */
enum { ALL_KEPT_FROM = 512 };

static bool can_use(const at_cblas *library, const at_gemm *g) {
  if (at_gemm_part(g->dtype) == ATTUNE_F32 && library->f32_overreads) return false;
  if (at_gemm_complex(g->dtype) && !(g->dtype == ATTUNE_C64 ? library->cgemm : library->zgemm)) return false;
  return !library->loses_specials ||
         (g->c == AT_C_NONE && g->m >= ALL_KEPT_FROM && g->n >= ALL_KEPT_FROM && g->k >= ALL_KEPT_FROM);
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  const at_gemm *g = at_gemm_of(problem);
  if (device->backend.kind != ATTUNE_DEVICE_HOST || !at_gemm_plain_product(g) || g->dtype != g->dtype_out) return false;
  if (g->dtype == ATTUNE_F16 || g->dtype == ATTUNE_BF16) return false;
  int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldd};
  for (size_t i = 0; i < AT_COUNT(sizes); i++)
    if (sizes[i] > INT_MAX) return false;
  for (int i = 0; i < at_cblas_count(); i++)
    if (can_use(at_cblas_at(i), g)) return true;
  return false;
}

static const char *const calls[] = {"gemm", "gemv", NULL};

#define TUNABLES(NUMBER, PAIR, WORD, TEXT)                                                                  \
  TEXT("library", library, sizeof(((at_cblas *)0)->id), "name and version of the CBLAS, `openblas-0.3.21`") \
  NUMBER("threads", threads, NULL, 1, 4096, 0, "its threads for this call")                                 \
  WORD("call", gemv, NULL, calls, AT_LEFT_OUT, "`gemv`: the matrix-vector call; left out: gemm")

/* A configuration, read. */
typedef struct choice {
  AT_TUNABLE_FIELDS(TUNABLES)
} choice;

static const at_tunables tunables = AT_TUNABLES(TUNABLES);

static void add(at_configuration *out, int *count, int max, const at_cblas *library, int threads, bool gemv) {
  choice c = {.threads = threads, .gemv = gemv};
  if (*count == max || !at_copy_text(c.library, sizeof c.library, library->id)) return;
  *count += at_tunables_add(&tunables, out, *count, &c);
}

/* OpenBLAS's gemv loses a NaN of beta, its gemm does not: gemv is for products that read no C. */
static bool gemv_is_right(const at_cblas *library, const at_gemm *g) {
  return g->c == AT_C_NONE && at_cblas_can_gemv(library, g);
}

/* By gemv first where a program would call that. */
static void add_calls(at_configuration *out, int *count, int max, const at_cblas *library, int threads,
                      const at_gemm *g) {
  if (gemv_is_right(library, g)) add(out, count, max, library, threads, true);
  add(out, count, max, library, threads, false);
}

/* Each library with its default threads, then with one, all, and the powers of two between. */
static int configurations(const at_implementation *self, const void *problem, attune_device *device,
                          at_configuration *out, int max) {
  (void)self;
  const at_gemm *g = at_gemm_of(problem);
  (void)device;
  int count = 0, cpus = at_cpu_count();
  for (int i = 0; i < at_cblas_count(); i++) {
    const int threads = at_cblas_at(i)->default_threads;
    if (can_use(at_cblas_at(i), g))
      add_calls(out, &count, max, at_cblas_at(i), threads < cpus || !at_cblas_at(i)->gate.set_threads ? threads : cpus,
                g);
  }
  for (int i = 0; i < at_cblas_count(); i++) {
    if (at_cblas_at(i)->gate.set_threads == NULL || !can_use(at_cblas_at(i), g)) continue;
    add_calls(out, &count, max, at_cblas_at(i), cpus, g);
    for (int threads = 1; threads < cpus; threads *= 2) add_calls(out, &count, max, at_cblas_at(i), threads, g);
  }
  return count;
}

static attune_status prepare(at_plan *plan) {
  choice c;
  if (!at_tunables_parse(&tunables, &c, &plan->configuration))
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; should be library=NAME-VERSION,threads=1..4096[,call=gemv]",
                   plan->configuration.text);
  at_cblas *library = at_cblas_find(c.library);
  if (library == NULL) return at_fail(ATTUNE_NOT_FOUND, "library %s is not on this machine", c.library);
  if (!can_use(library, at_gemm_of(plan->problem)))
    return at_fail(ATTUNE_NOT_FOUND, "%s is not used for this problem: %s", c.library,
                   at_gemm_part(at_gemm_of(plan->problem)->dtype) == ATTUNE_F32
                       ? "its f32 kernels read beyond the ends of matrices"
                       : "its kernels lose NaN and Inf");
  if (library->gate.set_threads == NULL && c.threads != library->default_threads)
    return at_fail(ATTUNE_NOT_FOUND, "threads is %d; %s always uses %d", c.threads, c.library,
                   library->default_threads);
  if (c.gemv && !gemv_is_right(library, at_gemm_of(plan->problem)))
    return at_fail(ATTUNE_NOT_FOUND, "call is gemv; should be so only if m or n is 1 and %s has gemv", c.library);
  state *s = malloc(sizeof *s);
  if (s == NULL) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_cblas");
  *s = (state){.library = library, .threads = c.threads, .gemv = c.gemv != 0};
  make_simple(s, at_gemm_of(plan->problem));
  plan->state = s;
  return ATTUNE_OK;
}

static void destroy(at_plan *plan) {
  free(plan->state);
  plan->state = NULL;
}

/* A configuration depends on its own library alone, whatever version of it is here. */
static bool depends(const at_implementation *self, const at_configuration *configuration, attune_device *device,
                    char *out, size_t size) {
  (void)self;
  char id[64];
  (void)device;
  if (configuration && at_configuration_get_text(configuration, "library", id, sizeof id))
    return at_cblas_depends(id, out, size);
  return at_cblas_depends(NULL, out, size);
}

const at_implementation at_gemm_host_cblas = {
    .name = "host_cblas",
    .version = 1,
    .backend = "host",
    .tunables = &tunables,
    .supports = supports,
    .configurations = configurations,
    .prepare = prepare,
    .launch = launch,
    .bare = at_cblas_direct,
    .bare_name = at_cblas_direct_name,
    .bare_threads = at_cblas_direct_threads,
    .destroy = destroy,
    .depends = depends,
};
