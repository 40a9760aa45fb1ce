/* SPDX-License-Identifier: Apache-2.0
 * platform_host.c: timing on the host, and its peers: OpenBLAS as a program meets it, loaded by its usual name, with
 * the threads it starts by default; BLIS likewise. Inputs are hot and calls eager, as the tuner measures on the
 * host. */
#include "bench/gemm/gemm.h"

#include "bench/common/cblas.h"
#include "bench/common/tool.h"

#include <stdlib.h>
#include <time.h>

#ifdef BENCH_WITH_LIBXSMM
#include <libxsmm.h>
#endif

enum { BLAS, BLIS, LIBRARIES };

typedef struct host_state {
  bench_cblas blas[LIBRARIES]; /* by bench_way.variant */
  int default_threads[LIBRARIES];
  attune_plan *plan;
#ifdef BENCH_WITH_LIBXSMM
  libxsmm_dmmfunction f64;
  libxsmm_smmfunction f32;
#endif
  const bench_set *set;
  int calls;
  bool cpu_time; /* of the calling thread, which does all the work; else elapsed time */
} host_state;

/* Longer than the time for which OpenBLAS's idle threads go on spinning, so that no way pays for the one before it. */
#define SETTLE_NS 40000000L

static bool blas_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                         const bench_set *example) {
  const host_state *state = platform->state;
  (void)example;
  return state->blas[way->variant].sgemm && bench_cblas_has(&problem->gemm);
}

static bool blas_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  const host_state *state = platform->state;
  const attune_gemm_operands operands = {.alpha = 1.0, .a = set->a, .b = set->b, .d = set->d};
  bench_cblas_run(&state->blas[way->variant], &platform->problem->gemm, &operands, false);
  return true;
}

/* attune again, by a plan that the program keeps. */
static bool plan_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                         const bench_set *example) {
  host_state *state = platform->state;
  const attune_gemm_operands operands = {.alpha = 1.0, .a = example->a, .b = example->b, .d = example->d};
  (void)way;
  return attune_gemm_plan_create(&state->plan, platform->tuner, platform->stream, &problem->given, &operands) ==
         ATTUNE_OK;
}

static bool plan_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  const host_state *state = platform->state;
  const attune_gemm_operands operands = bench_operands(platform->problem, set);
  (void)way;
  return attune_gemm_plan_run(state->plan, platform->stream, &operands) == ATTUNE_OK;
}

#ifdef BENCH_WITH_LIBXSMM
/* Its kernel for the size; small packed products only, as it is meant for. */
static bool libxsmm_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                            const bench_set *example) {
  const attune_gemm_problem *g = &problem->gemm;
  host_state *state = platform->state;
  const int flags = LIBXSMM_GEMM_FLAG_NONE;
  const double zero = 0.0;
  const float zero_f32 = 0.0f;
  (void)way, (void)example;
  state->f64 = NULL, state->f32 = NULL;
  if (g->trans_a || g->trans_b || g->m * g->n * g->k > 64 * 64 * 64 || g->lda != g->m || g->ldb != g->k ||
      g->ldd != g->m || g->dtype_out != g->dtype)
    return false;
  const libxsmm_blasint m = (libxsmm_blasint)g->m, n = (libxsmm_blasint)g->n, k = (libxsmm_blasint)g->k;
  if (g->dtype == ATTUNE_F64) state->f64 = libxsmm_dmmdispatch(m, n, k, NULL, NULL, NULL, NULL, &zero, &flags, NULL);
  if (g->dtype == ATTUNE_F32)
    state->f32 = libxsmm_smmdispatch(m, n, k, NULL, NULL, NULL, NULL, &zero_f32, &flags, NULL);
  return state->f64 || state->f32;
}

static bool libxsmm_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  const host_state *state = platform->state;
  const attune_gemm_problem *g = &platform->problem->gemm;
  (void)way;
  for (int64_t i = 0; i < g->batch; i++)
    if (state->f64)
      state->f64((const double *)set->a + i * g->stride_a, (const double *)set->b + i * g->stride_b,
                 (double *)set->d + i * g->stride_d);
    else
      state->f32((const float *)set->a + i * g->stride_a, (const float *)set->b + i * g->stride_b,
                 (float *)set->d + i * g->stride_d);
  return true;
}
#endif

/* Smaller products are one thread's on both sides. */
static bool may_have_a_team(const attune_gemm_problem *g) {
  return (double)g->m * (double)g->n * (double)g->k * (double)g->batch > 24.0 * 24.0 * 24.0;
}

static bool host_ready(bench_platform *platform, int index, const bench_sets *sets, int calls) {
  (void)index;
  host_state *state = platform->state;
  state->set = &sets->items[0];
  state->calls = may_have_a_team(&platform->problem->gemm) ? calls : (calls + 19) / 20; /* few are disturbed */
  return true;
}

static double now_ns(const host_state *state) {
  struct timespec now;
  if (!state->cpu_time) return bench_now_ns();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double host_sample(bench_platform *platform, int index) {
  const host_state *state = platform->state;
  bench_way *way = &platform->ways[index];
  if (may_have_a_team(&platform->problem->gemm)) nanosleep(&(struct timespec){0, SETTLE_NS}, NULL);
  /* attune may use this library in the process, too: the peer keeps the threads it started with. */
  if (way->enqueue == blas_enqueue)
    bench_cblas_set_threads(&state->blas[way->variant], state->default_threads[way->variant]);
  bool good = way->enqueue(platform, way, state->set);
  double start = now_ns(state);
  for (int i = 0; i < state->calls && good; i++) good = way->enqueue(platform, way, state->set);
  double took = now_ns(state) - start;
  return good ? took / state->calls : -1.0;
}

static void host_unready(bench_platform *platform) {
  host_state *state = platform->state;
  state->set = NULL;
  attune_plan_destroy(state->plan);
  state->plan = NULL;
}

static void host_close(bench_platform *platform) {
  free(platform->state);
}

static bool load_peer(host_state *state, int which, const char *library) {
  bench_cblas *c = &state->blas[which];
  const bool there = bench_cblas_load(c, library);
  if (!there) *c = (bench_cblas){0};
  state->default_threads[which] = bench_cblas_threads(c);
  return there;
}

static void add_peer(bench_platform *platform, int which, const char *name) {
  platform->ways[platform->way_count++] =
      (bench_way){.name = name, .prepare = blas_prepare, .enqueue = blas_enqueue, .variant = which};
}

static void load_peers(bench_platform *platform, host_state *state, const char *blas) {
  const bench_cblas *c = &state->blas[BLAS], *blis = &state->blas[BLIS];
  size_t at = 0, size = sizeof platform->libraries;
  if (load_peer(state, BLAS, blas))
    at = (size_t)snprintf(platform->libraries, size, "%s, %d threads", c->configuration ? c->configuration() : blas,
                          state->default_threads[BLAS]);
  else
    at = (size_t)snprintf(platform->libraries, size, "no peer: %s could not be loaded", blas);
  add_peer(platform, BLAS, c->configuration ? "OpenBLAS" : "CBLAS");
  if (!load_peer(state, BLIS, "libblis.so.4") || at >= size) return;
  snprintf(platform->libraries + at, size - at, "; BLIS %s, %d threads", blis->blis_version ? blis->blis_version() : "",
           state->default_threads[BLIS]);
}

void bench_host_open(bench_platform *platform, const char *blas, bool cpu_time) {
  host_state *state = calloc(1, sizeof *state);
  if (state == NULL) bench_die("out of memory");
  platform->state = state;
  state->cpu_time = cpu_time;
  platform->stream = attune_stream_default(platform->device);
  platform->ways[platform->way_count++] = bench_attune_way();
  load_peers(platform, state, blas);
  platform->ways[platform->way_count++] =
      (bench_way){.name = "a plan", .prepare = plan_prepare, .enqueue = plan_enqueue, .own = true};
#ifdef BENCH_WITH_LIBXSMM
  platform->ways[platform->way_count++] =
      (bench_way){.name = "LIBXSMM", .prepare = libxsmm_prepare, .enqueue = libxsmm_enqueue};
#endif
  if (state->blas[BLIS].sgemm) add_peer(platform, BLIS, "BLIS");
  platform->target_ns = 4e6;
  platform->min_calls = 1;
  platform->max_calls = 100000;
  platform->floor_ratio = 0.98;
  platform->method = cpu_time ? "hot inputs, plain calls on the default stream, CPU time of the thread"
                              : "hot inputs, plain calls on the default stream";
  platform->ready = host_ready;
  platform->sample = host_sample;
  platform->unready = host_unready;
  platform->close = host_close;
}
