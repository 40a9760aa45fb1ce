/* SPDX-License-Identifier: Apache-2.0
 * platform_host.c: timing on the host, and its peer: OpenBLAS as a program meets it, loaded by its usual name, with the
 * threads it starts by default. Inputs are hot and calls eager, as the tuner measures on the host. */
#include "bench/bench.h"

#include "bench/cblas.h"
#include "bench/tool.h"

#include <stdlib.h>
#include <time.h>

typedef struct host_state {
  bench_cblas blas;
  int default_threads;
  const bench_set *set;
  int calls;
} host_state;

/* Longer than the time for which OpenBLAS's idle threads go on spinning, so that no way pays for the one before it. */
#define SETTLE_NS 40000000L

static bool blas_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                         const bench_set *example) {
  (void)platform, (void)way, (void)example;
  return bench_cblas_has(&problem->gemm);
}

static bool blas_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  const host_state *state = platform->state;
  const attune_gemm_operands operands = {1.0, set->a, set->b, 0.0, NULL, set->d};
  (void)way;
  bench_cblas_run(&state->blas, &platform->problem->gemm, &operands, false);
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
  if (index != BENCH_ATTUNE && state->blas.set_threads != NULL) state->blas.set_threads(state->default_threads);
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

static void load_peer(bench_platform *platform, host_state *state, const char *blas) {
  const bench_cblas *c = &state->blas;
  if (!bench_cblas_load(&state->blas, blas)) {
    snprintf(platform->libraries, sizeof platform->libraries, "no peer: %s could not be loaded", blas);
    return;
  }
  state->default_threads = c->threads ? c->threads() : 1;
  snprintf(platform->libraries, sizeof platform->libraries, "%s, %d threads",
           c->configuration ? c->configuration() : blas, state->default_threads);
  platform->ways[platform->way_count++] =
      (bench_way){.name = c->configuration ? "OpenBLAS" : "CBLAS", .prepare = blas_prepare, .enqueue = blas_enqueue};
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
