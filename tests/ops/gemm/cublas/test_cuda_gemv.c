/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_gemv.c: products with one row or one column by the vendor's matrix-vector calls on a GPU: types,
 * transposes, increments, batches, C and kinds of data, drawn and compared with sums on the CPU; special values;
 * replays. Exits 77 where there is no GPU. ATTUNE_TEST_PROBLEMS: problems (600; 100 under compute-sanitizer). */
#include <attune/attune.h>

#include "tests/support/check.h"

#include "ops/gemm/implementations.h"
#include "tests/support/cuda_gemm.h"
#include "tests/support/gpu.h"
#include "tuning/measure/numerical_check.h"

static attune_device *device;
static attune_stream *stream;
static at_random *data;
static int problems = 600;

static const attune_dtype kinds[][2] = {
    {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F64, ATTUNE_F64},  {ATTUNE_F16, ATTUNE_F16}, {ATTUNE_BF16, ATTUNE_BF16},
    {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}, {ATTUNE_C64, ATTUNE_C64}, {ATTUNE_C128, ATTUNE_C128}};

static int draw(int count) {
  return (int)((random_bits() >> 20) % (uint64_t)count);
}

static void draw_batch(shape *s) {
  s->batch = draw(2) ? 1 : 1 + draw(5);
  s->step = draw(2) ? 0 : draw(20);
  s->share_a = draw(6) == 0;
  s->share_b = draw(6) == 0;
}

/* `number` walks through types and transposes. */
static shape shape_of(int number) {
  shape s = {.dtype = kinds[number % 8][0], .dtype_out = kinds[number % 8][1]};
  const bool complex = at_gemm_complex(s.dtype);
  s.ta = number / 8 % 3, s.tb = number / 24 % 3;
  if (!complex) s.ta %= 2, s.tb %= 2;
  s.gap = draw(2) ? 0 : 1 + draw(9);
  s.shift = draw(2) ? 0 : draw(9);
  s.c = (at_gemm_c)draw(3);
  s.alpha = draw(2) ? 1.0 : -1.5;
  s.beta = s.c == AT_C_NONE || draw(3) == 0 ? 0.0 : 0.75;
  s.alpha_imag = complex && draw(2) ? 0.5 : 0.0;
  s.beta_imag = complex && s.c != AT_C_NONE && draw(2) ? -2.0 : 0.0;
  s.data = s.dtype == ATTUNE_F16 ? draw(3) : draw(DATA_KINDS); /* f16: wide is too wide */
  s.m = s.n = 1;
  const bool is_long = draw(4) == 0;
  if (draw(12)) *(draw(2) ? &s.m : &s.n) = is_long ? 1 + draw(4000) : 1 + draw(400);
  s.k = !is_long && draw(4) == 0 ? 1 + draw(5000) : 1 + draw(300);
  draw_batch(&s);
  return s;
}

static at_plan *plan_of(const at_gemm *g) {
  const at_configuration none = {""};
  at_plan *plan = NULL;
  OK(at_plan_create(&plan, &at_gemm_op, &at_gemm_cublas_gemv, &none, g, device));
  return plan;
}

static bool supported(const at_gemm *g) {
  return at_gemm_cublas_gemv.supports(&at_gemm_cublas_gemv, g, device);
}

static void launch(gemm_case *t, const at_plan *plan, at_graph *graph) {
  assert_true(reset_output(t));
  if (graph)
    OK(device->backend.graph->launch(graph, stream));
  else
    OK(plan->launch(plan, &t->operands, stream));
  /* The product of halves may be rounded to D's type before C is added. */
  const bool rounds = t->s.beta != 0.0 && attune_dtype_size((attune_dtype)t->g.dtype_out) == 2;
  const double error = output_error(t);
  if (!(error <= (rounds ? 1e30 : 1.0)))
    fail_msg("%s %d%d %lldx%lldx%lld batch %lld c %d: error %g of what is allowed%s", attune_dtype_name(t->s.dtype),
             t->s.ta, t->s.tb, (long long)t->s.m, (long long)t->s.n, (long long)t->s.k, (long long)t->s.batch,
             (int)t->s.c, error, graph ? ", replayed" : "");
}

static at_graph *capture(gemm_case *t, const at_plan *plan) {
  at_graph *graph = NULL;
  OK(device->backend.graph->capture_begin(stream));
  const attune_status captured = plan->launch(plan, &t->operands, stream);
  OK(device->backend.graph->capture_end(stream, &graph));
  OK(captured);
  return graph;
}

TEST(drawn_problems_are_right) {
  int made = 0, of_kind[8] = {0};
  for (int i = 0; i < problems; i++) {
    const shape s = shape_of(i);
    gemm_case t;
    at_gemm g;
    set_problem(&g, &s);
    if (!supported(&g)) continue;
    assert_true(make_case(&t, &s, stream));
    at_plan *plan = plan_of(&t.g);
    launch(&t, plan, NULL);
    if (i % 5 == 0) {
      at_graph *graph = capture(&t, plan);
      launch(&t, plan, graph);
      launch(&t, plan, graph);
      device->backend.graph->destroy(graph);
    }
    at_plan_destroy(plan);
    free_case(&t);
    made++, of_kind[i % 8]++;
  }
  print_message("%d products\n", made);
  assert_true(made > problems / 2);
  for (int kind = 0; kind < 8; kind++) assert_true(of_kind[kind] > 0);
}

/* As the check of a winner: NaN, infinities, denormals, the memory around outputs. */
TEST(special_values_are_kept) {
  int refused = 0, checked = 0;
  for (int i = 0; i < problems / 10; i++) {
    const shape s = shape_of(i);
    at_gemm g;
    at_numerical_check *check = NULL;
    double error = 0.0;
    set_problem(&g, &s);
    if (!supported(&g)) continue;
    OK(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data));
    at_plan *plan = plan_of(&g);
    const attune_status status = at_numerical_check_run(check, plan, &error);
    if (status != ATTUNE_OK) print_message("refused: %s\n", attune_last_message());
    refused += status != ATTUNE_OK, checked++;
    at_plan_destroy(plan);
    at_numerical_check_destroy(check);
  }
  print_message("%d checked, %d refused\n", checked, refused);
  assert_true(refused <= checked / 20);
}

static bool supports_text(const char *text) {
  at_gemm g;
  OK(at_gemm_parse(text, &g));
  return supported(&g);
}

TEST(what_it_takes) {
  assert_true(supports_text("gemm f64 tn 999x1x5001 strict"));
  assert_true(supports_text("gemm bf16:f32 nt 1x4096x4096 strict"));
  assert_true(supports_text("gemm c64 cn 33x1x40x7 strict"));
  assert_true(supports_text("gemm f32 nn 33x1x40x7 strict pointers=device"));
  assert_false(supports_text("gemm c64 nc 33x1x40 strict")); /* no call conjugates x */
  assert_false(supports_text("gemm f32 nn 2x2x4096 strict"));
  assert_false(supports_text("gemm f32 nn 33x1x40 strict relu"));
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (getenv("ATTUNE_TEST_PROBLEMS"))
    problems = atoi(getenv("ATTUNE_TEST_PROBLEMS"));
  else if (test_patience() > 1)
    problems = 100;
  if (attune_stream_create(&stream, device) != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  at_random_destroy(data);
  attune_stream_destroy(stream);
  return failures;
}
