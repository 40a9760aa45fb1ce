/* SPDX-License-Identifier: Apache-2.0
 * hot_path_cuda.c: host time to enqueue a 64^3 bf16 GEMM: cublasGemmEx, attune_gemm, attune_plan_run. */
#include "bench/hot_path.h"

#include "bench/tool.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "src/support.h"

enum { SIZE = 64, CALLS = 200, REPEATS = 15 };

typedef struct scene {
  attune_tuner *tuner;
  attune_device *device;
  attune_stream *stream;
  cublasHandle_t blas;
  attune_plan *plan;
  attune_gemm_problem problem;
  attune_gemm_operands operands;
} scene;

typedef int (*call_fn)(const scene *s);

static int call_cublas(const scene *s) {
  const float one = 1.0f, zero = 0.0f;
  return (int)cublasGemmEx(s->blas, CUBLAS_OP_N, CUBLAS_OP_N, SIZE, SIZE, SIZE, &one, s->operands.a, CUDA_R_16BF, SIZE,
                           s->operands.b, CUDA_R_16BF, SIZE, &zero, s->operands.d, CUDA_R_16BF, SIZE,
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static int call_gemm(const scene *s) {
  return (int)attune_gemm(s->tuner, s->stream, &s->problem, &s->operands);
}
static int call_plan(const scene *s) {
  return (int)attune_plan_run(s->plan, s->stream, &s->operands);
}

static void report(const scene *s, const char *name, call_fn call) {
  double runs[REPEATS], least = 0.0;
  for (int run = -2; run < REPEATS; run++) {
    int failed = 0;
    bench_check(attune_stream_synchronize(s->stream), "attune_stream_synchronize");
    int64_t start = at_now_ns();
    for (int i = 0; i < CALLS; i++) failed |= call(s);
    double ns = (double)(at_now_ns() - start) / CALLS;
    if (failed != 0) bench_die("%s failed", name);
    if (run < 0) continue;
    runs[run] = ns;
    if (run == 0 || ns < least) least = ns;
  }
  bench_line("| %s | %.0f | %.0f |", name, least, bench_median(runs, REPEATS));
}

static void open_scene(scene *s) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  void *buffers[3];
  options.database = "";
  bench_check(attune_tuner_create(&s->tuner, &options), "attune_tuner_create");
  bench_check(attune_stream_create(&s->stream, s->device), "attune_stream_create");
  for (int i = 0; i < 3; i++) {
    bench_check(attune_alloc(&buffers[i], s->stream, SIZE * SIZE * 2), "attune_alloc");
    bench_check(attune_fill(s->stream, buffers[i], 0x3c, SIZE * SIZE * 2),
                "attune_fill"); /* a small number, not zero */
  }
  s->problem = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  s->problem.dtype = ATTUNE_BF16;
  s->problem.m = s->problem.n = s->problem.k = SIZE;
  s->operands = (attune_gemm_operands){1.0, buffers[0], buffers[1], 0.0, NULL, buffers[2]};
  if (cublasCreate(&s->blas) != CUBLAS_STATUS_SUCCESS ||
      cublasSetStream(s->blas, (cudaStream_t)attune_stream_native(s->stream)) != CUBLAS_STATUS_SUCCESS)
    bench_die("cuBLAS could not be opened");
}

static void close_scene(scene *s) {
  cublasDestroy(s->blas);
  bench_check(attune_free((void *)(uintptr_t)s->operands.a, s->stream), "attune_free");
  bench_check(attune_free((void *)(uintptr_t)s->operands.b, s->stream), "attune_free");
  bench_check(attune_free(s->operands.d, s->stream), "attune_free");
  attune_stream_destroy(s->stream);
  attune_tuner_destroy(s->tuner);
}

/* The implementation that runs now: what attune_gemm adds is seen only where it is the same one. */
static void report_attune(scene *s, const char *state) {
  char text[256], name[512];
  attune_decision decision;
  bench_check(attune_gemm_problem_format(text, sizeof text, &s->problem, &s->operands), "attune_gemm_problem_format");
  bench_check(attune_explain(s->tuner, s->device, text, &decision), "attune_explain");
  bench_check(attune_gemm_plan_create(&s->plan, s->tuner, s->stream, &s->problem, &s->operands),
              "attune_gemm_plan_create");
  snprintf(name, sizeof name, "attune_gemm, %s (%s %s)", state, decision.implementation, decision.configuration);
  report(s, name, call_gemm);
  snprintf(name, sizeof name, "attune_plan_run, %s", state);
  report(s, name, call_plan);
  attune_plan_destroy(s->plan);
}

void hot_report_cuda(void) {
  static scene s;
  char text[256];
  if (attune_device_get(&s.device, "cuda:0") != ATTUNE_OK) return;
  attune_device_properties properties;
  bench_check(attune_device_get_properties(s.device, &properties), "attune_device_get_properties");
  open_scene(&s);
  bench_line("%s", "");
  bench_line("| enqueue bf16 64^3 on %s | ns a call, least of %d | median |", properties.name, REPEATS);
  bench_line("|---|---:|---:|");
  report(&s, "cublasGemmEx", call_cublas);
  report_attune(&s, "not tuned");
  bench_check(attune_gemm_problem_format(text, sizeof text, &s.problem, &s.operands), "attune_gemm_problem_format");
  if (attune_tune(s.tuner, s.device, text, 0.0, 0, NULL) == ATTUNE_OK) report_attune(&s, "tuned");
  close_scene(&s);
}
