/* SPDX-License-Identifier: Apache-2.0
 * elementwise_calls.c: bench_elementwise_calls [--device NAME] [--markdown FILE]: host time of a call of
 * attune_elementwise and of a plan, for few elements. On CUDA beside the launch of an empty kernel; on the host, where
 * the time includes the work, beside a C loop over the same memory. All take turns in each round. */
#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <stdbool.h>
#include <stdlib.h>

#include "src/base/backend.h"
#ifdef AT_WITH_CUDA
#include <cuda_runtime_api.h>

#include "src/cuda/jit/jit.h"
#endif

#define CHECK(call) bench_check((call), #call)

enum { ROUNDS = 101, WAYS = 3, CALLS = 100 };

typedef struct bench {
  attune_device *device;
  attune_stream *stream;
  attune_tuner *tuner;
  attune_plan *plan;
  const char *expression;
  attune_tensor in[2], out;
  attune_scalar scalar;
  attune_elementwise_operands operands;
  bool cuda;
  int64_t count;
  float *a, *b, *y;
#ifdef AT_WITH_CUDA
  at_jit_kernel *empty;
#endif
} bench;

typedef void (*way_fn)(bench *s);

static void way_call(bench *s) {
  CHECK(attune_elementwise(s->tuner, s->stream, s->expression, &s->operands));
}

static void way_plan(bench *s) {
  CHECK(attune_elementwise_plan_run(s->plan, s->stream, &s->operands));
}

__attribute__((noinline)) static void add_loop(float *restrict y, const float *restrict a, const float *restrict b,
                                               int64_t count) {
  for (int64_t i = 0; i < count; i++) y[i] = a[i] + b[i];
}

/* The least that a program could do. */
static void way_peer(bench *s) {
#ifdef AT_WITH_CUDA
  if (s->cuda) {
    int argument = 0;
    void *arguments[] = {&argument};
    if (cudaLaunchKernel((const void *)at_jit_native(s->empty), (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0,
                         (cudaStream_t)attune_stream_native(s->stream)) != cudaSuccess)
      exit(1);
    return;
  }
#endif
  add_loop(s->y, s->a, s->b, s->count);
}

static double sample(void *arg, int index, int round) {
  static const way_fn ways[WAYS] = {way_peer, way_call, way_plan};
  bench *s = arg;
  const way_fn way = ways[index];
  (void)round;
  CHECK(attune_stream_synchronize(s->stream));
  const int64_t start = at_now_ns();
  for (int i = 0; i < CALLS; i++) way(s);
  const double spent = (double)(at_now_ns() - start) / CALLS;
  CHECK(attune_stream_synchronize(s->stream));
  return spent;
}

static void measure(bench *s) {
  static bench_turns turns;
  double median[WAYS];
  bench_take_turns(&turns, WAYS, 1, ROUNDS, BENCH_ROTATED, sample, s);
  for (int w = 0; w < WAYS; w++) median[w] = bench_turns_median(&turns, w);
  bench_line("| %lld | %.0f | %.0f | %.0f | %.2f | %.2f |", (long long)s->count, median[0], median[1], median[2],
             median[1] / median[0], median[2] / median[0]);
}

static void set_operands(bench *s) {
  const size_t bytes = (size_t)s->count * sizeof(float);
  void *memory[3];
  for (int i = 0; i < 3; i++) {
    CHECK(attune_alloc(&memory[i], s->stream, bytes));
    CHECK(attune_fill(s->stream, memory[i], 0, bytes));
  }
  s->a = memory[0], s->b = memory[1], s->y = memory[2];
  s->in[0] = (attune_tensor){.name = "a", .data = memory[0], .dtype = ATTUNE_F32, .dims = 1, .sizes = {s->count}};
  s->in[1] = s->in[0];
  s->in[1].name = "b";
  s->in[1].data = memory[1];
  s->out = s->in[0];
  s->out.data = memory[2];
  s->operands = (attune_elementwise_operands){.outputs = &s->out, .output_count = 1, .inputs = s->in, .input_count = 2};
}

static void run_size(bench *s) {
  char problem[ATTUNE_PROBLEM_CHARS];
  set_operands(s);
  s->expression = "a + b";
  CHECK(attune_elementwise_problem_format(problem, sizeof problem, s->expression, &s->operands));
  CHECK(attune_tune(s->tuner, s->device, problem, NULL, NULL));
  CHECK(attune_elementwise_plan_create(&s->plan, s->tuner, s->stream, s->expression, &s->operands));
  measure(s);
  attune_plan_destroy(s->plan);
  CHECK(attune_free(s->a, s->stream));
  CHECK(attune_free(s->b, s->stream));
  CHECK(attune_free(s->y, s->stream));
}

int main(int argc, char **argv) {
  const char *name = "best", *markdown = NULL;
  const bench_option table[] = {
      {"device", BENCH_TEXT, &name, 0, 0}, {"markdown", BENCH_TEXT, &markdown, 0, 0}, {NULL, BENCH_FLAG, NULL, 0, 0}};
  bench s = {0};
  (void)bench_read_options(argc, argv, table, "usage: bench_elementwise_calls [--device NAME] [--markdown FILE]\n",
                           NULL, 0);
  bench_markdown_open(markdown);
  CHECK(attune_device_get(&s.device, name));
  s.cuda = bench_is_cuda(s.device);
  if (s.cuda)
    CHECK(attune_stream_create(&s.stream, s.device));
  else
    s.stream = attune_stream_default(s.device);
  attune_tuner_options tuner = ATTUNE_TUNER_OPTIONS_INIT;
  tuner.mode = ATTUNE_MODE_TUNE;
  tuner.database = "";
  CHECK(attune_tuner_create(&s.tuner, &tuner));
#ifdef AT_WITH_CUDA
  const at_kernel_source source = {
      .file = "empty.cu", .text = "extern \"C\" __global__ void empty(int) {}", .entry = "empty"};
  if (s.cuda) CHECK(at_jit_get(&s.empty, s.device, &source));
#endif
  bench_head("Host time of elementwise calls", s.device, NULL,
             "a + b of f32, ns of a call, medians of rounds of 100 in turns");
  bench_table("| elements >| %s >| attune_elementwise >| plan >| call / first >| plan / first >|",
              s.cuda ? "empty launch" : "C loop");
  for (int64_t count = s.cuda ? 1 << 10 : 10; count <= (s.cuda ? 1 << 20 : 100000); count *= s.cuda ? 4 : 10) {
    s.count = count;
    run_size(&s);
  }
  bench_markdown_close();
  return 0;
}
