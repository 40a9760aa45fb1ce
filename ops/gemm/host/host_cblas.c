/* SPDX-License-Identifier: Apache-2.0
 * host_cblas.c: f32 and f64 GEMM by the CBLAS libraries of the machine; the library and its thread count are the
 * tunables. The first one with its default threads is the host's vendor default. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/host/blocked_run.h"
#include "ops/gemm/host/cblas_direct.h"
#include "ops/gemm/host/cblas_library.h"
#include "ops/gemm/problem/problem.h"
#include "src/host/host.h"
#include "src/host/threads.h"
#include "src/process/floating.h"
#include "tuning/op/registry.h"

enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

typedef struct state {
  at_cblas *library;
  int threads;
  bool gemv;
  bool f64, simple; /* simple: one product by gemm, and no C of its own; then the call is made of these: */
  bool reads_d;     /* D is C */
  int trans_a, trans_b, m, n, k, lda, ldb, ldd;
} state;

typedef struct work {
  const at_plan *plan;
  at_gemm_operands operands;
} work;
_Static_assert(sizeof(work) <= AT_HOST_ARGS_BYTES, "the work must fit into a submission");

/* CBLAS works in place: C goes to D first, column by column, so that gaps stay as they are. */
static void copy_c(const at_gemm *g, const at_gemm_operands *o, int64_t batch, size_t size) {
  const char *from = (const char *)o->c + (size_t)(batch * g->stride_c) * size;
  char *to = (char *)o->d + (size_t)(batch * g->stride_d) * size;
  for (int64_t j = 0; j < g->n; j++)
    memcpy(to + (size_t)(j * g->ldd) * size, from + (size_t)(j * g->ldc) * size, (size_t)g->m * size);
}

/* What the call needs of the problem, as CBLAS takes it: small products see each instruction. */
static void make_simple(state *s, const at_gemm *g) {
  s->f64 = g->dtype == ATTUNE_F64;
  s->simple = !s->gemv && g->batch == 1 && g->c != AT_C_SEPARATE;
  s->reads_d = g->c != AT_C_NONE;
  s->trans_a = g->trans_a ? TRANSPOSE : NO_TRANSPOSE;
  s->trans_b = g->trans_b ? TRANSPOSE : NO_TRANSPOSE;
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

static void run_f32(const at_cblas *library, const at_gemm *g, const at_gemm_operands *o, int64_t batch, float beta) {
  library->sgemm(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_b ? TRANSPOSE : NO_TRANSPOSE, (int)g->m,
                 (int)g->n, (int)g->k, (float)o->alpha, (const float *)o->a + batch * g->stride_a, (int)g->lda,
                 (const float *)o->b + batch * g->stride_b, (int)g->ldb, beta, (float *)o->d + batch * g->stride_d,
                 (int)g->ldd);
}

static void run_f64(const at_cblas *library, const at_gemm *g, const at_gemm_operands *o, int64_t batch, double beta) {
  library->dgemm(COLUMN_MAJOR, g->trans_a ? TRANSPOSE : NO_TRANSPOSE, g->trans_b ? TRANSPOSE : NO_TRANSPOSE, (int)g->m,
                 (int)g->n, (int)g->k, o->alpha, (const double *)o->a + batch * g->stride_a, (int)g->lda,
                 (const double *)o->b + batch * g->stride_b, (int)g->ldb, beta, (double *)o->d + batch * g->stride_d,
                 (int)g->ldd);
}

/* The process ends and takes the libraries down: attune's own loops are still there. */
static void run_without_library(const at_gemm *g, const at_gemm_operands *operands) {
  at_blocked_options options;
  at_blocked_defaults(&options, g, at_blocked_isa_find(NULL));
  at_blocked_run(g, operands, &options);
}

static void run_all(const state *s, const at_gemm *g, const at_gemm_operands *o) {
  const double beta = g->c == AT_C_NONE ? 0.0 : s->f64 ? o->beta : (double)(float)o->beta;
  for (int64_t batch = 0; batch < g->batch; batch++) {
    if (g->c == AT_C_SEPARATE && beta != 0.0) copy_c(g, o, batch, s->f64 ? 8 : 4);
    if (s->gemv)
      at_cblas_gemv(s->library, g, o, batch, beta);
    else if (s->f64)
      run_f64(s->library, g, o, batch, beta);
    else
      run_f32(s->library, g, o, batch, (float)beta);
  }
}

/* Every call goes through the gate, the smallest too: the end of the process waits there for who is inside. */
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
    run_all(s, at_gemm_of(plan->problem), o);
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
  if (g->dtype == ATTUNE_F32 && library->f32_overreads) return false;
  return !library->loses_specials ||
         (g->c == AT_C_NONE && g->m >= ALL_KEPT_FROM && g->n >= ALL_KEPT_FROM && g->k >= ALL_KEPT_FROM);
}

static bool supports(const at_implementation *self, const void *problem, attune_device *device) {
  (void)self;
  const at_gemm *g = at_gemm_of(problem);
  if (device->backend.kind != ATTUNE_DEVICE_HOST || g->dtype != g->dtype_out) return false;
  if (g->dtype != ATTUNE_F32 && g->dtype != ATTUNE_F64) return false;
  int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldd};
  for (size_t i = 0; i < AT_COUNT(sizes); i++)
    if (sizes[i] > INT_MAX) return false;
  for (int i = 0; i < at_cblas_count(); i++)
    if (can_use(at_cblas_at(i), g)) return true;
  return false;
}

static void add(at_configuration *out, int *count, int max, const at_cblas *library, int threads, bool gemv) {
  if (*count == max) return;
  at_configuration c = {""};
  if (!at_configuration_put_text(&c, "library", library->id) || !at_configuration_put(&c, "threads", threads)) return;
  if (gemv && !at_configuration_put_text(&c, "call", "gemv")) return;
  for (int i = 0; i < *count; i++)
    if (strcmp(out[i].text, c.text) == 0) return;
  out[(*count)++] = c;
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
  char id[64];
  int64_t threads = 0;
  if (!at_configuration_get_text(&plan->configuration, "library", id, sizeof id) ||
      !at_configuration_get(&plan->configuration, "threads", &threads) || threads < 1 || threads > 4096)
    return at_fail(ATTUNE_NOT_FOUND, "configuration is %s; should be library=NAME-VERSION,threads=1..4096[,call=gemv]",
                   plan->configuration.text);
  at_cblas *library = at_cblas_find(id);
  if (library == NULL) return at_fail(ATTUNE_NOT_FOUND, "library %s is not on this machine", id);
  if (!can_use(library, at_gemm_of(plan->problem)))
    return at_fail(ATTUNE_NOT_FOUND, "%s is not used for this problem: %s", id,
                   at_gemm_of(plan->problem)->dtype == ATTUNE_F32 ? "its f32 kernels read beyond the end of matrices"
                                                                  : "its kernels lose NaN and Inf");
  if (library->gate.set_threads == NULL && threads != library->default_threads)
    return at_fail(ATTUNE_NOT_FOUND, "threads is %lld; %s always uses %d", (long long)threads, id,
                   library->default_threads);
  char call[16] = "";
  (void)at_configuration_get_text(&plan->configuration, "call", call, sizeof call);
  const bool gemv = strcmp(call, "gemv") == 0;
  if ((call[0] && !gemv) || (gemv && !gemv_is_right(library, at_gemm_of(plan->problem))))
    return at_fail(ATTUNE_NOT_FOUND, "call is %s; should be gemv, where m or n is 1 and %s has it, or left out", call,
                   id);
  state *s = malloc(sizeof *s);
  if (s == NULL) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan of host_cblas");
  *s = (state){.library = library, .threads = (int)threads, .gemv = gemv};
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
