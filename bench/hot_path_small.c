/* SPDX-License-Identifier: Apache-2.0
 * hot_path_small.c: products of 2 to 64 rows and columns in one thread: attune_gemm and a plan, tuned in this process,
 * beside cblas_dgemm or cblas_sgemm and, where it is linked, LIBXSMM's kernel for the size. All in one process and in
 * turn; the least of many samples. */
#include <stdlib.h>
#include <string.h>

#include "bench/cblas.h"
#include "bench/hot_path.h"
#include "bench/problem.h"
#include "bench/tool.h"
#include "bench/turns.h"
#include "src/support.h"

#include <attune/attune.h>

#ifdef BENCH_WITH_LIBXSMM
#include <libxsmm.h>
#endif

enum { ROUNDS = 60, SAMPLE_NS = 30000, MOST_BYTES = 1 << 20 };

typedef enum side { SIDE_CALL, SIDE_PLAN, SIDE_CBLAS, SIDE_LIBXSMM, SIDES } side;

typedef struct scene {
  attune_tuner *tuner;
  attune_stream *stream;
  attune_plan *plan;
  attune_gemm_problem problem;
  attune_gemm_operands operands;
  bench_problem sizes; /* the same, each size explicit */
  bench_cblas blas;
  bool has_blas, there[SIDES];
  int calls[SIDES]; /* of a sample */
#ifdef BENCH_WITH_LIBXSMM
  libxsmm_dmmfunction f64;
  libxsmm_smmfunction f32;
#endif
} scene;

static bool prepare_libxsmm(scene *s) {
#ifdef BENCH_WITH_LIBXSMM
  const attune_gemm_problem *p = &s->problem;
  const int flags = LIBXSMM_GEMM_FLAG_NONE;
  const double zero = 0.0;
  const float zero_f32 = 0.0f;
  const libxsmm_blasint m = (libxsmm_blasint)p->m, n = (libxsmm_blasint)p->n, k = (libxsmm_blasint)p->k;
  s->f64 = p->dtype == ATTUNE_F64 ? libxsmm_dmmdispatch(m, n, k, NULL, NULL, NULL, NULL, &zero, &flags, NULL) : NULL;
  s->f32 =
      p->dtype == ATTUNE_F32 ? libxsmm_smmdispatch(m, n, k, NULL, NULL, NULL, NULL, &zero_f32, &flags, NULL) : NULL;
  return s->f64 || s->f32;
#else
  (void)s;
  return false;
#endif
}

static void call_libxsmm(const scene *s) {
#ifdef BENCH_WITH_LIBXSMM
  const attune_gemm_problem *p = &s->problem;
  const int64_t a = p->m * p->k, b = p->k * p->n, d = p->m * p->n;
  for (int64_t i = 0; i < p->batch; i++)
    if (s->f64)
      s->f64((const double *)s->operands.a + i * a, (const double *)s->operands.b + i * b,
             (double *)s->operands.d + i * d);
    else
      s->f32((const float *)s->operands.a + i * a, (const float *)s->operands.b + i * b,
             (float *)s->operands.d + i * d);
#else
  (void)s;
#endif
}

/* Nanoseconds a call. The first warm-up says how many calls a sample has. */
static double sample(void *arg, int which, int round) {
  scene *s = arg;
  int failed = 0;
  if (!s->there[which]) return 0.0;
  const int calls = round < -1 ? 10 : s->calls[which];
  const int64_t start = at_now_ns();
  for (int i = 0; i < calls; i++) {
    if (which == SIDE_CALL)
      failed |= (int)attune_gemm(s->tuner, s->stream, &s->problem, &s->operands);
    else if (which == SIDE_PLAN)
      failed |= (int)attune_gemm_plan_run(s->plan, s->stream, &s->operands);
    else if (which == SIDE_CBLAS)
      bench_cblas_run(&s->blas, &s->sizes.gemm, &s->operands, false);
    else
      call_libxsmm(s);
  }
  const double took = (double)(at_now_ns() - start) / calls;
  if (round < -1) s->calls[which] = 1 + (int)(SAMPLE_NS / (took + 1.0));
  if (failed) bench_die("a call failed: %s", attune_last_message());
  return took;
}

static void report(scene *s, attune_dtype dtype, int m, int n, int k, int batch) {
  s->problem = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  s->problem.dtype = dtype;
  s->problem.m = m;
  s->problem.n = n;
  s->problem.k = k;
  s->problem.batch = batch;
  char text[SIDES][32], name[64], what[256];
  attune_decision decision;
  bench_check(attune_gemm_problem_format(what, sizeof what, &s->problem, NULL), "attune_gemm_problem_format");
  bench_problem_read(&s->sizes, &(attune_workload_entry){.problem = what});
  bench_check(attune_gemm(s->tuner, s->stream, &s->problem, &s->operands), "attune_gemm"); /* tunes */
  bench_check(attune_gemm_plan_create(&s->plan, s->tuner, s->stream, &s->problem, &s->operands),
              "attune_gemm_plan_create");
  static bench_turns turns;
  const bool there[SIDES] = {true, true, s->has_blas, prepare_libxsmm(s)};
  memcpy(s->there, there, sizeof there);
  bench_take_turns(&turns, SIDES, 2, ROUNDS, BENCH_ROTATED, sample, s);
  for (side which = SIDE_CALL; which < SIDES; which++) {
    size_t at = 0;
    at_append(text[which], sizeof text[which], &at, there[which] ? "%.1f" : "-", bench_turns_least(&turns, (int)which));
  }
  size_t at = 0;
  at_append(name, sizeof name, &at, "%s %dx%dx%d", attune_dtype_name(dtype), m, n, k);
  if (batch > 1) at_append(name, sizeof name, &at, " x %d", batch);
  bench_check(attune_explain(s->tuner, attune_stream_device(s->stream), what, &decision), "attune_explain");
  bench_line("| %s | %s | %s | %s | %s | %s %s |", name, text[SIDE_CALL], text[SIDE_PLAN], text[SIDE_CBLAS],
             text[SIDE_LIBXSMM], decision.implementation, decision.configuration);
  attune_plan_destroy(s->plan);
}

void hot_report_small(void) {
  static const int sizes[] = {2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 20, 24, 25, 31, 32, 33, 40, 48, 50, 56, 63, 64};
  static const int shapes[][3] = {{4, 4, 64}, {64, 4, 4}, {4, 64, 4}, {3, 17, 9}, {24, 5, 24}, {8, 64, 8}, {64, 8, 64}};
  static const int batched[][2] = {{3, 1000}, {4, 500}, {8, 100}, {16, 40}};
  scene s = {0};
  attune_device *host = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  options.mode = ATTUNE_MODE_TUNE;
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_tuner_create(&s.tuner, &options), "attune_tuner_create");
  s.stream = attune_stream_default(host);
  char *a = bench_random_new(ATTUNE_F32, MOST_BYTES, 1), *b = bench_random_new(ATTUNE_F32, MOST_BYTES, 2),
       *d = bench_random_new(ATTUNE_F32, MOST_BYTES, 3);
  s.operands = (attune_gemm_operands){1.0, a, b + 1088, 0.0, NULL, d + 2688};
  s.has_blas = bench_cblas_load(&s.blas, "libopenblas.so.0");
  if (s.has_blas && s.blas.set_threads) s.blas.set_threads(1);
  bench_line("%s", "");
  bench_table("| small products, one thread, least of %d | attune_gemm, ns >| plan >| cblas >| LIBXSMM >| chosen |",
              ROUNDS);
  for (attune_dtype dtype = ATTUNE_F64; dtype <= ATTUNE_F32; dtype++) {
    for (size_t i = 0; i < AT_COUNT(sizes); i++) report(&s, dtype, sizes[i], sizes[i], sizes[i], 1);
    for (size_t i = 0; i < AT_COUNT(shapes); i++) report(&s, dtype, shapes[i][0], shapes[i][1], shapes[i][2], 1);
    for (size_t i = 0; i < AT_COUNT(batched); i++)
      report(&s, dtype, batched[i][0], batched[i][0], batched[i][0], batched[i][1]);
  }
  attune_tuner_destroy(s.tuner);
  free(a);
  free(b);
  free(d);
}
