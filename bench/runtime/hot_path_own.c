/* SPDX-License-Identifier: Apache-2.0
 * hot_path_own.c: host time to enqueue a small GEMM by a kernel of attune's own, beside an empty kernel that the
 * program launches and cuBLAS called by the program. The kernel is the first that the family offers: which one would
 * win does not matter to what its launch costs. */
#include "bench/runtime/hot_path.h"

#include "bench/common/cublas.h"
#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <string.h>

#include "ops/gemm/problem/problem.h"
#include "src/cuda/jit/jit.h"
#include "tuning/dispatch/single_plan_tuner.h"

enum { CALLS = 100, ROUNDS = 201, OPERANDS = 8 << 20, WAYS_MAX = 32, ARGUMENT = 152 };

typedef struct own {
  const char *implementation;
  attune_gemm_problem problem;
  attune_gemm_operands operands;
  at_plan *made;
  at_single_plan_tuner sole;
  attune_plan *plan;
} own;

struct scene;
typedef struct way {
  char name[192];
  int (*call)(const struct scene *s, const own *of);
  const own *of;
} way;

typedef struct scene {
  attune_device *device;
  attune_stream *stream;
  cublasHandle_t blas;
  void *buffers[3];
  at_jit_kernel *empty, *taking;
  way ways[WAYS_MAX];
} scene;

static const char EMPTY[] = "extern \"C\" __global__ void empty() {}\n";
static const char TAKING[] = "struct argument { long long word[19]; };\n"
                             "extern \"C\" __global__ void empty(const __grid_constant__ argument a) {}\n";

/* ---- ways ---- */

static int launch(const scene *s, const at_jit_kernel *kernel, void **arguments, bool dependent) {
  cudaLaunchAttribute attribute = {.id = cudaLaunchAttributeProgrammaticStreamSerialization};
  attribute.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config = {.gridDim = {1, 1, 1},
                                     .blockDim = {128, 1, 1},
                                     .stream = (cudaStream_t)attune_stream_native(s->stream),
                                     .attrs = &attribute,
                                     .numAttrs = dependent};
  return (int)cudaLaunchKernelExC(&config, (const void *)at_jit_native(kernel), arguments);
}

static int call_empty(const scene *s, const own *of) {
  (void)of;
  return launch(s, s->empty, NULL, false);
}

static int launch_taking(const scene *s, bool dependent) {
  char argument[ARGUMENT] = {0};
  void *arguments[] = {argument};
  return launch(s, s->taking, arguments, dependent);
}
static int call_taking(const scene *s, const own *of) {
  (void)of;
  return launch_taking(s, false);
}
static int call_dependent(const scene *s, const own *of) {
  (void)of;
  return launch_taking(s, true);
}

static int call_cublas(const scene *s, const own *of) {
  return (int)bench_cublas_gemm(s->blas, &of->problem, of->operands.a, of->operands.b, of->operands.d,
                                CUBLAS_GEMM_DEFAULT);
}
static int call_gemm(const scene *s, const own *of) {
  return (int)attune_gemm(of->sole.tuner, s->stream, &of->problem, &of->operands);
}
static int call_plan(const scene *s, const own *of) {
  return (int)attune_gemm_plan_run(of->plan, s->stream, &of->operands);
}

static double sample(void *arg, int index, int round) {
  const scene *s = arg;
  const way *w = &s->ways[index];
  int failed = 0;
  (void)round;
  bench_check(attune_stream_synchronize(s->stream), "attune_stream_synchronize");
  const int64_t start = at_now_ns();
  for (int i = 0; i < CALLS; i++) failed |= w->call(s, w->of);
  const double ns = (double)(at_now_ns() - start) / CALLS;
  if (failed != 0) bench_die("%s failed: %s", w->name, attune_last_message());
  return ns;
}

/* ---- the scene ---- */

static attune_gemm_problem problem_of(attune_dtype dtype, int64_t m, int64_t n, int64_t k, int64_t batch) {
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  p.dtype = p.dtype_out = dtype;
  p.m = m, p.n = n, p.k = k, p.batch = batch;
  p.lda = p.ldd = m, p.ldb = k; /* the peer takes them as they stand */
  p.stride_a = m * k, p.stride_b = k * n, p.stride_d = m * n;
  return p;
}

/* False: the device has no such kernel. */
static bool open_own(scene *s, own *o) {
  char text[256];
  uint64_t problem[AT_PROBLEM_BYTES / 8] = {0};
  at_configuration configuration;
  const at_implementation *implementation = at_registry_find(&at_gemm_op, o->implementation, s->device);
  o->operands = (attune_gemm_operands){.alpha = 1.0, .a = s->buffers[0], .b = s->buffers[1], .d = s->buffers[2]};
  bench_check(attune_gemm_problem_format(text, sizeof text, &o->problem, &o->operands), "attune_gemm_problem_format");
  bench_check(at_gemm_op.problem->parse(text, problem), text);
  at_gemm_op.problem->fold(problem, s->device);
  if (!implementation || !implementation->supports(implementation, problem, s->device) ||
      implementation->configurations(implementation, problem, s->device, &configuration, 1) < 1)
    return false;
  bench_check(at_plan_create(&o->made, &at_gemm_op, implementation, &configuration, problem, s->device), text);
  bench_check(at_single_plan_tuner_open(&o->sole, o->made), "at_single_plan_tuner_open");
  bench_check(attune_gemm_plan_create(&o->plan, o->sole.tuner, s->stream, &o->problem, &o->operands),
              "attune_gemm_plan_create");
  return true;
}

static void close_own(own *o) {
  attune_plan_destroy(o->plan);
  at_single_plan_tuner_close(&o->sole);
  at_plan_destroy(o->made);
}

static void open_scene(scene *s) {
  const at_kernel_source empty = {.file = "empty.cu", .text = EMPTY, .entry = "empty"},
                         taking = {.file = "taking.cu", .text = TAKING, .entry = "empty"};
  bench_check(attune_stream_create(&s->stream, s->device), "attune_stream_create");
  for (int i = 0; i < 3; i++) {
    bench_check(attune_alloc(&s->buffers[i], s->stream, OPERANDS), "attune_alloc");
    bench_check(attune_fill(s->stream, s->buffers[i], 0x3c, OPERANDS), "attune_fill"); /* a small number, not zero */
  }
  bench_cublas_must(cublasCreate(&s->blas), "cublasCreate");
  bench_cublas_must(cublasSetStream(s->blas, (cudaStream_t)attune_stream_native(s->stream)), "cublasSetStream");
  bench_check(at_jit_get(&s->empty, s->device, &empty), "an empty kernel");
  bench_check(at_jit_get(&s->taking, s->device, &taking), "an empty kernel");
}

static void close_scene(scene *s) {
  at_jit_release(s->taking);
  at_jit_release(s->empty);
  cublasDestroy(s->blas);
  for (int i = 0; i < 3; i++) bench_check(attune_free(s->buffers[i], s->stream), "attune_free");
  attune_stream_destroy(s->stream);
}

static void put(scene *s, int *count, const char *what, const own *of, int (*call)(const scene *s, const own *of)) {
  way *w = &s->ways[(*count)++];
  *w = (way){.call = call, .of = of};
  snprintf(w->name, sizeof w->name, "%s%s%s", of ? of->implementation : "", of ? ": " : "", what);
}

void hot_report_own(attune_device *device) {
  static scene s;
  static own owns[] = {{.implementation = "sm80_batched_smem"},
                       {.implementation = "sm80_batched_reg_16b"},
                       {.implementation = "sm80_skinny_mmajor"},
                       {.implementation = "sm80_skinny_reg"},
                       {.implementation = "sm80_mma"}};
  static bench_turns turns;
  int count = 0;
  s.device = device;
  owns[0].problem = problem_of(ATTUNE_F32, 16, 16, 16, 64);
  owns[1].problem = problem_of(ATTUNE_F16, 32, 32, 32, 64);
  owns[2].problem = problem_of(ATTUNE_F32, 512, 16, 512, 1);
  owns[3].problem = problem_of(ATTUNE_BF16, 512, 1, 512, 1);
  owns[4].problem = problem_of(ATTUNE_BF16, 512, 8, 512, 1);
  open_scene(&s);
  put(&s, &count, "an empty kernel, cudaLaunchKernelExC by the program", NULL, call_empty);
  put(&s, &count, "the same again", NULL, call_empty);
  put(&s, &count, "with an argument of 152 bytes", NULL, call_taking);
  put(&s, &count, "with it, as a programmatic dependent launch", NULL, call_dependent);
  for (size_t i = 0; i < AT_COUNT(owns); i++) {
    if (!open_own(&s, &owns[i])) continue;
    put(&s, &count, "attune_gemm_plan_run", &owns[i], call_plan);
    put(&s, &count, "attune_gemm", &owns[i], call_gemm);
    put(&s, &count, "cublasGemmEx of that problem, by the program", &owns[i], call_cublas);
  }
  bench_line("%s", "");
  bench_table("| enqueue a kernel of attune's own, ways in turns | ns a call, least of %d >| median >| of the first, "
              "median of pairs >|",
              ROUNDS);
  bench_take_turns(&turns, count, 4, ROUNDS, BENCH_DRAWN, sample, &s);
  for (int i = 0; i < count; i++)
    bench_line("| %s | %.0f | %.0f | %.2f |", s.ways[i].name, bench_turns_least(&turns, i),
               bench_turns_median(&turns, i), bench_turns_ratio(&turns, i, 0));
  for (size_t i = 0; i < AT_COUNT(owns); i++)
    if (owns[i].made) close_own(&owns[i]);
  close_scene(&s);
}
