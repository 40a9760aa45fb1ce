/* SPDX-License-Identifier: Apache-2.0
 * hot_path_cuda.c: host time to enqueue a 64^3 bf16 GEMM: cublasGemmEx called by the program, attune_gemm and
 * attune_gemm_plan_run on cuBLAS and on the winner. All take turns in each round, in an order drawn anew, so that what
 * one costs above another is seen in pairs. The first way runs twice a round: what its second turn costs above its
 * first is noise. */
#include "bench/runtime/hot_path.h"

#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "src/base/support.h"
#include "src/cuda/blas/blas.h"

enum { SIZE = 64, CALLS = 200, ROUNDS = 201, WAYS_MAX = 11 };

/* A tuner that has one choice for the problem. */
typedef struct side {
  attune_tuner *tuner;
  attune_plan *plan;
} side;

struct scene;
typedef struct way {
  char name[256];
  int (*call)(const struct scene *s);
} way;

typedef struct scene {
  way ways[WAYS_MAX];
  attune_device *device;
  attune_stream *stream;
  cublasHandle_t blas;     /* as a program makes it: a stream, and nothing else */
  cublasHandle_t like_own; /* with the settings that attune gives its own */
  void *workspace;
  side cublas, winner;
  attune_gemm_problem problem;
  attune_gemm_operands operands;
} scene;

static int call_program(const scene *s) {
  const float one = 1.0f, zero = 0.0f;
  return (int)cublasGemmEx(s->blas, CUBLAS_OP_N, CUBLAS_OP_N, SIZE, SIZE, SIZE, &one, s->operands.a, CUDA_R_16BF, SIZE,
                           s->operands.b, CUDA_R_16BF, SIZE, &zero, s->operands.d, CUDA_R_16BF, SIZE,
                           CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static int call_64(const scene *s, cublasHandle_t blas) {
  const float one = 1.0f, zero = 0.0f;
  return (int)cublasGemmEx_64(blas, CUBLAS_OP_N, CUBLAS_OP_N, SIZE, SIZE, SIZE, &one, s->operands.a, CUDA_R_16BF, SIZE,
                              s->operands.b, CUDA_R_16BF, SIZE, &zero, s->operands.d, CUDA_R_16BF, SIZE,
                              CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

static int call_program_64(const scene *s) {
  return call_64(s, s->blas);
}
static int call_like_own(const scene *s) {
  return call_64(s, s->like_own);
}

static int call_own_handle(const scene *s) {
  cublasHandle_t handle = NULL;
  return at_cuda_blas_mode(s->stream, AT_CUDA_STRICT_MATH, ATTUNE_WORKSPACE_DEFAULT, &handle) == ATTUNE_OK
             ? call_64(s, handle)
             : 1;
}

static int call_device(const scene *s) {
  int device = 0;
  (void)s;
  return (int)cudaGetDevice(&device);
}

static int call_gemm_cublas(const scene *s) {
  return (int)attune_gemm(s->cublas.tuner, s->stream, &s->problem, &s->operands);
}
static int call_plan_cublas(const scene *s) {
  return (int)attune_gemm_plan_run(s->cublas.plan, s->stream, &s->operands);
}
static int call_gemm_winner(const scene *s) {
  return (int)attune_gemm(s->winner.tuner, s->stream, &s->problem, &s->operands);
}
static int call_plan_winner(const scene *s) {
  return (int)attune_gemm_plan_run(s->winner.plan, s->stream, &s->operands);
}

static double sample(void *arg, int index, int round) {
  const scene *s = arg;
  const way *w = &s->ways[index];
  int failed = 0;
  (void)round;
  bench_check(attune_stream_synchronize(s->stream), "attune_stream_synchronize");
  const int64_t start = at_now_ns();
  for (int i = 0; i < CALLS; i++) failed |= w->call(s);
  const double ns = (double)(at_now_ns() - start) / CALLS;
  if (failed != 0) bench_die("%s failed", w->name);
  return ns;
}

static void report(scene *s, int count) {
  static bench_turns turns;
  bench_take_turns(&turns, count, 4, ROUNDS, BENCH_DRAWN, sample, s);
  for (int i = 0; i < count; i++)
    bench_line("| %s | %.0f | %.0f | %.0f |", s->ways[i].name, bench_turns_least(&turns, i),
               bench_turns_median(&turns, i), bench_turns_above(&turns, i, 0));
}

static cublasHandle_t open_handle(const scene *s) {
  cublasHandle_t handle = NULL;
  if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS ||
      cublasSetStream(handle, (cudaStream_t)attune_stream_native(s->stream)) != CUBLAS_STATUS_SUCCESS)
    bench_die("cuBLAS could not be opened");
  return handle;
}

static void open_side(scene *s, side *out) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  options.mode = ATTUNE_MODE_CACHED;
  bench_check(attune_tuner_create(&out->tuner, &options), "attune_tuner_create");
  if (out == &s->winner) {
    char text[256];
    bench_check(attune_gemm_problem_format(text, sizeof text, &s->problem, &s->operands), "attune_gemm_problem_format");
    if (attune_tune(out->tuner, s->device, text, NULL, NULL) != ATTUNE_OK)
      bench_line("not tuned: %s", attune_last_message());
  }
  bench_check(attune_gemm_plan_create(&out->plan, out->tuner, s->stream, &s->problem, &s->operands),
              "attune_gemm_plan_create");
}

static void close_side(side *out) {
  attune_plan_destroy(out->plan);
  attune_tuner_destroy(out->tuner);
}

static void open_scene(scene *s) {
  void *buffers[3];
  bench_check(attune_stream_create(&s->stream, s->device), "attune_stream_create");
  for (int i = 0; i < 3; i++) {
    bench_check(attune_alloc(&buffers[i], s->stream, SIZE * SIZE * 2), "attune_alloc");
    bench_check(attune_fill(s->stream, buffers[i], 0x3c, SIZE * SIZE * 2),
                "attune_fill"); /* a small number, not zero */
  }
  s->problem = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  s->problem.dtype = ATTUNE_BF16;
  s->problem.m = s->problem.n = s->problem.k = SIZE;
  s->operands = (attune_gemm_operands){.alpha = 1.0, .a = buffers[0], .b = buffers[1], .d = buffers[2]};
  s->blas = open_handle(s);
  s->like_own = open_handle(s);
  bench_check(attune_alloc(&s->workspace, s->stream, ATTUNE_WORKSPACE_DEFAULT), "attune_alloc");
  if (cublasSetMathMode(s->like_own,
                        (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)) !=
          CUBLAS_STATUS_SUCCESS ||
      cublasSetWorkspace(s->like_own, s->workspace, ATTUNE_WORKSPACE_DEFAULT) != CUBLAS_STATUS_SUCCESS)
    bench_die("cuBLAS could not be set");
  open_side(s, &s->cublas);
  open_side(s, &s->winner);
}

static void close_scene(scene *s) {
  close_side(&s->winner);
  close_side(&s->cublas);
  cublasDestroy(s->like_own);
  cublasDestroy(s->blas);
  bench_check(attune_free(s->workspace, s->stream), "attune_free");
  bench_check(attune_free((void *)(uintptr_t)s->operands.a, s->stream), "attune_free");
  bench_check(attune_free((void *)(uintptr_t)s->operands.b, s->stream), "attune_free");
  bench_check(attune_free(s->operands.d, s->stream), "attune_free");
  attune_stream_destroy(s->stream);
}

/* Implementation that runs on a side; the rows name it. */
static const char *choice_of(const scene *s, const side *of, char *out, size_t size) {
  char text[256];
  bench_choice decision;
  bench_check(attune_gemm_problem_format(text, sizeof text, &s->problem, &s->operands), "attune_gemm_problem_format");
  bench_explain(&decision, of->tuner, s->device, text);
  snprintf(out, size, "%s%s%.160s", decision.implementation, decision.configuration[0] ? " " : "",
           decision.configuration);
  return out;
}

static int print_cublas(void *user, const attune_library *library) {
  (void)user;
  bench_line("- attune calls %s %s, %s%s", library->name, library->version, library->path,
             library->loaded_by_program ? " (the program's)" : "");
  return 0;
}

void hot_report_cuda(void) {
  static scene s;
  way *const ways = s.ways;
  char choice[224];
  int count = 0;
  if (attune_device_get(&s.device, "cuda:0") != ATTUNE_OK) return;
  attune_device_properties properties = {0};
  bench_check(attune_device_get_properties(s.device, &properties), "attune_device_get_properties");
  open_scene(&s);
  ways[count++] = (way){"cublasGemmEx, called by the program", call_program};
  ways[count++] = (way){"cublasGemmEx, the same again", call_program};
  ways[count++] = (way){"cublasGemmEx_64, the same", call_program_64};
  ways[count++] = (way){"cublasGemmEx_64, by the program, with attune's math mode and workspace", call_like_own};
  ways[count++] = (way){"cublasGemmEx_64, by the program, on the handle that attune has", call_own_handle};
  ways[count] = (way){"", call_gemm_cublas};
  snprintf(ways[count++].name, sizeof ways->name, "attune_gemm on %s", choice_of(&s, &s.cublas, choice, sizeof choice));
  ways[count++] = (way){"attune_gemm_plan_run, the same", call_plan_cublas};
  ways[count] = (way){"", call_gemm_winner};
  snprintf(ways[count++].name, sizeof ways->name, "attune_gemm on the winner, %s",
           choice_of(&s, &s.winner, choice, sizeof choice));
  ways[count++] = (way){"attune_gemm_plan_run, the same", call_plan_winner};
  ways[count++] = (way){"cudaGetDevice alone", call_device};
  bench_line("%s", "");
  (void)attune_device_libraries(s.device, print_cublas, NULL);
  bench_line("%s", "");
  bench_table("| enqueue bf16 64^3 on %s, ways in turns | ns a call, least of %d >| median >| above the first, median "
              "of pairs >|",
              properties.name, ROUNDS);
  report(&s, count);
  close_scene(&s);
  hot_report_own(s.device);
}
