/* SPDX-License-Identifier: Apache-2.0
 * host_blocked.c: attune's own host_blocked beside OpenBLAS, both on one thread, interleaved: by default the f32 1024^3
 * product, the figure that attune is held to (0.6 of OpenBLAS or better). It looks inside the library to run that one
 * implementation. */
#include "bench/cblas.h"
#include "bench/problem.h"
#include "bench/tool.h"
#include "bench/turns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/gemm/problem.h"
#include "tuning/registry.h"

enum { ROUNDS = 21 };

typedef struct scene {
  at_plan *plan;
  attune_stream *stream;
  attune_gemm_operands operands;
  attune_gemm_operands peer_operands;
  bench_problem problem;
  bench_cblas blas;
  bool wide;
  int size, calls;
} scene;

static void call_attune(const scene *s) {
  bench_check(s->plan->launch(s->plan, &s->operands, s->stream), "host_blocked");
}

static void call_peer(const scene *s) {
  bench_cblas_run(&s->blas, &s->problem.gemm, &s->peer_operands, false);
}

static void load_peer(scene *s) {
  if (!bench_cblas_load(&s->blas, "libopenblas.so.0") || !s->blas.set_threads) {
    fprintf(stderr, "bench_host_blocked: libopenblas.so.0 is not here; nothing to compare with\n");
    exit(77);
  }
  s->blas.set_threads(1);
}

/* Seconds of a call. */
static double sample(const scene *s, void (*call)(const scene *)) {
  double start = bench_now_ns();
  for (int i = 0; i < s->calls; i++) call(s);
  return (bench_now_ns() - start) * 1e-9 / s->calls;
}

/* Calls that take about `wanted` seconds. */
static int calls_for(scene *s, void (*call)(const scene *), double wanted) {
  s->calls = 1;
  call(s);
  double once = sample(s, call);
  return once >= wanted ? 1 : (int)(wanted / once) + 1;
}

/* The least of three short samples of the scene's plan. */
static double quick_time(scene *s) {
  double least = 0.0;
  s->calls = calls_for(s, call_attune, 0.002);
  for (int i = 0; i < 3; i++) {
    double took = sample(s, call_attune);
    if (i == 0 || took < least) least = took;
  }
  return least;
}

/* The configuration with one thread instead of its own number: large problems are not offered that on several CPUs. */
static void take_one_thread(at_configuration *configuration) {
  char *number = strstr(configuration->text, "threads=");
  if (number == NULL) return;
  number += strlen("threads=");
  char *rest = number + strspn(number, "0123456789");
  *number = '1';
  memmove(number + 1, rest, strlen(rest) + 1);
}

/* The plan of host_blocked on one thread: its fastest configuration, as the tuner would choose. */
static void make_plan(scene *s) {
  attune_device *host = NULL;
  at_gemm g;
  double least = 0.0;
  static at_configuration all[256];
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  s->stream = attune_stream_default(host);
  bench_check(at_gemm_op.parse(s->problem.text, &g), s->problem.text);
  const at_implementation *blocked = at_registry_find(&at_gemm_op, "host_blocked", host);
  int count = blocked != NULL ? blocked->configurations(&g, host, all, 256) : 0;
  at_plan *best = NULL;
  for (int i = 0; i < count; i++) {
    take_one_thread(&all[i]);
    bench_check(at_plan_create(&s->plan, &at_gemm_op, blocked, &all[i], &g, host), "at_plan_create");
    double took = quick_time(s);
    bool better = best == NULL || took < least;
    at_plan_destroy(better ? best : s->plan);
    if (!better) continue;
    best = s->plan;
    least = took;
  }
  s->plan = best;
  if (best == NULL) bench_die("host_blocked offers no configuration");
}

static double largest_difference(const scene *s) {
  double worst = 0.0;
  for (size_t i = 0; i < (size_t)s->size * (size_t)s->size; i++) {
    double a = s->wide ? ((double *)s->operands.d)[i] : (double)((float *)s->operands.d)[i];
    double b = s->wide ? ((double *)s->peer_operands.d)[i] : (double)((float *)s->peer_operands.d)[i];
    if (!(fabs(a - b) <= worst)) worst = fabs(a - b);
  }
  return worst;
}

static double turn(void *arg, int way, int round) {
  (void)round;
  return 1e9 * sample(arg, way ? call_peer : call_attune);
}

static void measure(scene *s) {
  static bench_turns turns;
  const double gflop = 2e-9 * s->size * (double)s->size * s->size;
  call_attune(s);
  call_peer(s);
  double worst = largest_difference(s);
  if (!(worst < 1e-3)) bench_die("the results differ by %g", worst);
  s->calls = calls_for(s, call_peer, 0.01);
  bench_take_turns(&turns, 2, 1, ROUNDS, BENCH_ROTATED, turn, s);
  printf("%s %d^3, one thread: host_blocked %s %.1f GFLOP/s, OpenBLAS %.1f GFLOP/s, ratio %.3f (median of %d rounds)\n",
         s->wide ? "f64" : "f32", s->size, s->plan->configuration.text, 1e9 * gflop / bench_turns_median(&turns, 0),
         1e9 * gflop / bench_turns_median(&turns, 1), bench_turns_ratio(&turns, 1, 0), ROUNDS);
}

int main(int argc, char **argv) {
  scene s = {.size = argc > 1 ? atoi(argv[1]) : 1024, .wide = argc > 2 && strcmp(argv[2], "f64") == 0, .calls = 1};
  if (s.size < 1 || s.size > 16384 || argc > 3 || (argc > 2 && !s.wide && strcmp(argv[2], "f32") != 0)) {
    fprintf(stderr, "usage: bench_host_blocked [SIZE [f32|f64]]\n");
    return 2;
  }
  char text[AT_PROBLEM_CHARS];
  const attune_dtype dtype = s.wide ? ATTUNE_F64 : ATTUNE_F32;
  snprintf(text, sizeof text, "gemm %s nn %dx%dx%d strict", attune_dtype_name(dtype), s.size, s.size, s.size);
  bench_problem_read(&s.problem, &(attune_workload_entry){.problem = text});
  const size_t bytes = s.problem.bytes_d;
  load_peer(&s);
  void *a = bench_random_new(dtype, bytes, 1), *b = bench_random_new(dtype, bytes, 2),
       *d = bench_random_new(dtype, bytes, 3);
  s.operands = s.peer_operands = (attune_gemm_operands){1.0, a, b, 0.0, NULL, d};
  s.peer_operands.d = bench_random_new(dtype, bytes, 4);
  make_plan(&s);
  measure(&s);
  at_plan_destroy(s.plan);
  free(a), free(b), free(d), free(s.peer_operands.d);
  return 0;
}
