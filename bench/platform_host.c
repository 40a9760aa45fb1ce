/* SPDX-License-Identifier: Apache-2.0
 * platform_host.c: timing on the host, and its peer: OpenBLAS as a program meets it, loaded by its usual name, with the
 * threads it starts by default. Inputs are hot and calls eager, as the tuner measures on the host. */
#include "bench/bench.h"

#include "bench/tool.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CBLAS_COLUMNS = 102, CBLAS_PLAIN = 111, CBLAS_TRANSPOSED = 112 };

typedef void (*sgemm_fn)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                         int);
typedef void (*dgemm_fn)(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                         double *, int);

typedef struct host_state {
  void *library;
  sgemm_fn sgemm;
  dgemm_fn dgemm;
  void (*set_threads)(int);
  int default_threads;
  const bench_set *set;
  int calls;
} host_state;

/* Longer than the time for which OpenBLAS's idle threads go on spinning, so that no way pays for the one before it. */
#define SETTLE_NS 40000000L

static bool blas_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                         const bench_set *example) {
  (void)platform, (void)way, (void)example;
  const attune_gemm_problem *g = &problem->gemm;
  int64_t most = INT32_MAX;
  if (g->m > most || g->n > most || g->k > most || g->lda > most || g->ldb > most || g->ldd > most) return false;
  return g->dtype == g->dtype_out && (g->dtype == ATTUNE_F32 || g->dtype == ATTUNE_F64);
}

static bool blas_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  (void)way;
  const host_state *state = platform->state;
  const attune_gemm_problem *g = &platform->problem->gemm;
  int ta = g->trans_a ? CBLAS_TRANSPOSED : CBLAS_PLAIN, tb = g->trans_b ? CBLAS_TRANSPOSED : CBLAS_PLAIN;
  int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = (int)g->lda, ldb = (int)g->ldb, ldd = (int)g->ldd;
  for (int64_t i = 0; i < g->batch; i++) {
    int64_t at_a = i * g->stride_a, at_b = i * g->stride_b, at_d = i * g->stride_d;
    if (g->dtype == ATTUNE_F32)
      state->sgemm(CBLAS_COLUMNS, ta, tb, m, n, k, 1.0f, (const float *)set->a + at_a, lda,
                   (const float *)set->b + at_b, ldb, 0.0f, (float *)set->d + at_d, ldd);
    else
      state->dgemm(CBLAS_COLUMNS, ta, tb, m, n, k, 1.0, (const double *)set->a + at_a, lda,
                   (const double *)set->b + at_b, ldb, 0.0, (double *)set->d + at_d, ldd);
  }
  return true;
}

static bool host_ready(bench_platform *platform, int index, const bench_sets *sets, int calls) {
  (void)index;
  host_state *state = platform->state;
  state->set = &sets->items[0];
  state->calls = calls;
  return true;
}

static double host_sample(bench_platform *platform, int index) {
  const host_state *state = platform->state;
  bench_way *way = &platform->ways[index];
  nanosleep(&(struct timespec){0, SETTLE_NS}, NULL);
  /* The same library may serve attune in this process: the peer keeps the threads it started with. */
  if (index != BENCH_ATTUNE && state->set_threads != NULL) state->set_threads(state->default_threads);
  bool good = way->enqueue(platform, way, state->set);
  double start = bench_now_ns();
  for (int i = 0; i < state->calls && good; i++) good = way->enqueue(platform, way, state->set);
  double took = bench_now_ns() - start;
  return good ? took / state->calls : -1.0;
}

static void host_unready(bench_platform *platform) {
  host_state *state = platform->state;
  state->set = NULL;
}

static void host_close(bench_platform *platform) {
  free(platform->state);
}

/* The address of a function of the library, stored through `out`, which points to a function pointer. */
static bool find_function(void *library, const char *name, void *out) {
  void *address = dlsym(library, name);
  if (address != NULL) memcpy(out, &address, sizeof address);
  return address != NULL;
}

static void load_peer(bench_platform *platform, host_state *state, const char *blas) {
  state->library = dlopen(blas, RTLD_NOW | RTLD_LOCAL);
  if (state->library == NULL || !find_function(state->library, "cblas_sgemm", &state->sgemm) ||
      !find_function(state->library, "cblas_dgemm", &state->dgemm)) {
    snprintf(platform->libraries, sizeof platform->libraries, "no peer: %s could not be loaded", blas);
    return;
  }
  char *(*configuration)(void) = NULL;
  int (*threads)(void) = NULL;
  find_function(state->library, "openblas_get_config", &configuration);
  find_function(state->library, "openblas_get_num_threads", &threads);
  find_function(state->library, "openblas_set_num_threads", &state->set_threads);
  state->default_threads = threads != NULL ? threads() : 1;
  snprintf(platform->libraries, sizeof platform->libraries, "%s, %d threads",
           configuration != NULL ? configuration() : blas, state->default_threads);
  platform->ways[platform->way_count++] = (bench_way){
      .name = configuration != NULL ? "OpenBLAS" : "CBLAS", .prepare = blas_prepare, .enqueue = blas_enqueue};
}

void bench_host_open(bench_platform *platform, const char *blas) {
  host_state *state = calloc(1, sizeof *state);
  if (state == NULL) bench_die("out of memory");
  platform->state = state;
  platform->stream = attune_stream_default(platform->device);
  platform->ways[platform->way_count++] = bench_attune_way();
  load_peer(platform, state, blas);
  platform->target_ns = 4e6;
  platform->min_calls = 1;
  platform->max_calls = 100000;
  platform->floor_ratio = 0.98;
  platform->method = "hot inputs, plain calls on the default stream";
  platform->ready = host_ready;
  platform->sample = host_sample;
  platform->unready = host_unready;
  platform->close = host_close;
}
