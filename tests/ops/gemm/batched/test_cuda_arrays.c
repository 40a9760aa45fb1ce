/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_arrays.c: each implementation of batches that arrays of pointers name, in device memory and in the host's,
 * on a GPU: types, transposes, sizes, addresses, C, equal pointers, drawn and compared with sums on the CPU; nothing
 * else written; replays. Exits 77 where there is no GPU. ATTUNE_TEST_PROBLEMS: problems (160; 32 under
 * compute-sanitizer). */
#include <attune/attune.h>

#include "tests/support/check.h"

#include "ops/gemm/implementations.h"
#include "tests/support/cuda_gemm.h"
#include "tests/support/gpu.h"
#include "tuning/op/registry.h"

enum { KINDS = 8, MOST = 256, TRIED = 2, MOST_SEEN = 48, MOST_BATCH = 40 };

static attune_device *device;
static attune_stream *stream;
static int problems = 160, wrong, runs[MOST_SEEN];

static const attune_dtype kinds[KINDS][2] = {
    {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F64, ATTUNE_F64},  {ATTUNE_F16, ATTUNE_F16}, {ATTUNE_BF16, ATTUNE_BF16},
    {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}, {ATTUNE_C64, ATTUNE_C64}, {ATTUNE_C128, ATTUNE_C128}};

static int draw(int count) {
  return (int)((random_bits() >> 20) % (uint64_t)count);
}

/* Small ones, thin ones with one row or column among them, and some that fill tiles. */
static void draw_sizes(shape *s) {
  const int kind = draw(3), thin = draw(3) ? 1 + draw(16) : 1, wide = 65 + draw(300);
  const bool across = draw(2);
  s->m = kind == 1 ? (across ? thin : wide) : kind == 0 ? 1 + draw(64) : 64 + draw(130);
  s->n = kind == 1 ? (across ? wide : thin) : kind == 0 ? 1 + draw(64) : 64 + draw(130);
  s->k = kind == 0 ? 1 + draw(64) : 1 + draw(300);
  if (draw(3) == 0) s->m = s->n = s->k = 16 * (1 + draw(6));
  if (draw(4) == 0) s->k = 32 * (1 + draw(9));
  s->batch = s->m * s->n * s->k > 200000 ? 1 + draw(5) : 1 + draw(MOST_BATCH);
}

/* `number` walks through types and transposes. */
static shape shape_of(int number) {
  shape s = {.dtype = kinds[number % KINDS][0], .dtype_out = kinds[number % KINDS][1], .apart = true};
  const bool complex = at_gemm_complex(s.dtype);
  s.ta = number / KINDS % (complex ? 3 : 2), s.tb = number / KINDS / 2 % (complex ? 3 : 2);
  s.gap = draw(2) ? 0 : draw(2) ? 8 : 1 + draw(9);
  s.shift = draw(2) ? 0 : draw(2) ? 8 : draw(9);
  s.c = (at_gemm_c)draw(3);
  s.alpha = draw(2) ? 1.0 : -1.5;
  s.beta = s.c == AT_C_NONE || draw(3) == 0 ? 0.0 : 0.75;
  s.alpha_imag = complex && draw(2) ? 0.5 : 0.0;
  s.beta_imag = complex && s.c != AT_C_NONE && draw(2) ? -2.0 : 0.0;
  s.accuracy = draw(3) ? ATTUNE_STRICT : complex ? ATTUNE_EQUIVALENT : ATTUNE_REDUCED;
  s.data = draw(2);
  s.share_a = draw(6) == 0, s.share_b = draw(6) == 0, s.share_c = draw(6) == 0;
  draw_sizes(&s);
  return s;
}

/* ---- arrays ---- */

/* The addresses of the matrices, the last one first. */
static void *array_of(const gemm_case *t, const void *first, int64_t stride, size_t element) {
  const void **all = calloc(MOST_BATCH, sizeof *all);
  void *memory = NULL;
  const int64_t batch = t->g.batch;
  assert_non_null(all);
  for (int64_t i = 0; i < batch; i++) all[i] = (const char *)first + (size_t)((batch - 1 - i) * stride) * element;
  if (t->g.pointers == ATTUNE_POINTERS_HOST) return all;
  OK(attune_alloc(&memory, stream, (size_t)batch * sizeof *all));
  OK(attune_copy(stream, memory, all, (size_t)batch * sizeof *all));
  OK(attune_stream_synchronize(stream));
  free(all);
  return memory;
}

static void free_array(const gemm_case *t, const void *array) {
  if (t->g.pointers == ATTUNE_POINTERS_HOST)
    free((void *)(uintptr_t)array);
  else
    OK(attune_free((void *)(uintptr_t)array, stream));
}

static at_gemm_operands arrays_of(const gemm_case *t) {
  const at_gemm *g = &t->g;
  at_gemm_operands o = t->operands;
  o.a = array_of(t, o.a, g->stride_a, t->a.element);
  o.b = array_of(t, o.b, g->stride_b, t->b.element);
  o.d = array_of(t, o.d, g->stride_d, t->d.element);
  o.c = g->c == AT_C_SEPARATE ? array_of(t, o.c, g->stride_c, t->c.element) : g->c == AT_C_INPLACE ? o.d : NULL;
  return o;
}

static void free_arrays(const gemm_case *t, const at_gemm_operands *o) {
  free_array(t, o->a), free_array(t, o->b), free_array(t, o->d);
  if (t->g.c == AT_C_SEPARATE) free_array(t, o->c);
}

/* ---- runs ---- */

/* A vendor's kernel may round the product of halves to D's type before it adds C: then only that all of D and nothing
 * else was written is known. */
static double limit_of(const gemm_case *t, const at_plan *plan) {
  const bool rounds = t->s.beta != 0.0 && attune_dtype_size((attune_dtype)t->g.dtype_out) == 2;
  const bool vendor =
      strncmp(plan->implementation->name, "cublas", 6) == 0 || strstr(plan->configuration.text, "cublas");
  return rounds && vendor ? 1e30 : 1.0;
}

static void check(gemm_case *t, const at_plan *plan, const char *how) {
  const at_gemm *g = &t->g;
  const double error = output_error(t);
  if (error <= limit_of(t, plan)) return;
  print_message("%s \"%.192s\"%s: %s:%s %d%d %lldx%lldx%lld batch %lld ld %lld,%lld,%lld align %d c %d accuracy %d: "
                "error %g of what is allowed\n",
                plan->implementation->name, plan->configuration.text, how, attune_dtype_name((attune_dtype)g->dtype),
                attune_dtype_name((attune_dtype)g->dtype_out), g->trans_a, g->trans_b, (long long)g->m, (long long)g->n,
                (long long)g->k, (long long)g->batch, (long long)g->lda, (long long)g->ldb, (long long)g->ldd,
                g->alignment, g->c, g->accuracy, error);
  wrong++;
}

static void replay(gemm_case *t, const at_plan *plan, const at_gemm_operands *o) {
  at_graph *graph = NULL;
  OK(device->backend.graph->capture_begin(stream));
  const attune_status captured = plan->launch(plan, o, stream);
  OK(device->backend.graph->capture_end(stream, &graph));
  if (captured != ATTUNE_OK) fail_msg("%s, captured: %s", plan->implementation->name, attune_last_message());
  for (int turn = 0; turn < 2; turn++) {
    assert_true(reset_output(t));
    OK(device->backend.graph->launch(graph, stream));
    check(t, plan, ", replayed");
  }
  device->backend.graph->destroy(graph);
}

static void one_run(gemm_case *t, const at_gemm_operands *o, const at_implementation *implementation,
                    const at_configuration *configuration, bool in_graph) {
  at_plan *plan = NULL;
  if (at_plan_create(&plan, &at_gemm_op, implementation, configuration, &t->g, device) != ATTUNE_OK)
    fail_msg("%s \"%s\": %s", implementation->name, configuration->text, attune_last_message());
  assert_true(reset_output(t));
  if (plan->launch(plan, o, stream) != ATTUNE_OK)
    fail_msg("%s \"%s\": %s", implementation->name, configuration->text, attune_last_message());
  check(t, plan, "");
  if (in_graph) replay(t, plan, o);
  at_plan_destroy(plan);
}

static void each_configuration(gemm_case *t, const at_gemm_operands *o, const at_implementation *implementation,
                               bool in_graph, int *made) {
  static at_configuration list[MOST];
  at_configuration tried[TRIED];
  const int count = implementation->configurations(implementation, &t->g, device, list, MOST);
  int taken = 0;
  for (; taken < TRIED && taken < count; taken++) tried[taken] = list[taken == 0 ? 0 : 1 + draw(count - 1)];
  if (implementation->prepare_many) implementation->prepare_many(implementation, &t->g, device, tried, taken);
  for (int i = 0; i < taken; i++, ++*made) one_run(t, o, implementation, &tried[i], in_graph);
}

static bool by_name(const char *name) {
  static const char *const all[] = {
      "cublas_batched", "sm80_batched_smem", "sm80_batched_reg_16b", "sm80_skinny_mmajor", "sm80_skinny_reg",
      "sm80_mma",       "sm80_simt_f32",     "cublas_gemv",          "cuda_uploaded",      "cuda_each"};
  for (size_t i = 0; i < AT_COUNT(all); i++)
    if (strcmp(name, all[i]) == 0) return true;
  return false;
}

TEST(each_implementation_is_right) {
  for (int number = 0; number < problems; number++) {
    const shape s = shape_of(number);
    gemm_case t;
    assert_true(make_case(&t, &s, stream));
    t.g.pointers = number % 4 == 1 ? ATTUNE_POINTERS_HOST : ATTUNE_POINTERS_DEVICE;
    const at_gemm_operands o = arrays_of(&t);
    for (size_t i = 0; i < at_gemm_op.implementation_count; i++)
      if (at_registry_usable(at_gemm_op.implementations[i], &t.g, device))
        each_configuration(&t, &o, at_gemm_op.implementations[i], number % 4 < 2, &runs[i]);
    OK(attune_stream_synchronize(stream));
    free_arrays(&t, &o);
    free_case(&t);
  }
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const char *name = at_gemm_op.implementations[i]->name;
    if (runs[i] > 0) print_message("%s: %d runs\n", name, runs[i]);
    if (strcmp(at_gemm_op.implementations[i]->backend, "cuda") == 0 && problems >= 160)
      assert_true(runs[i] > 0 || !by_name(name));
  }
  assert_int_equal(wrong, 0);
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (getenv("ATTUNE_TEST_PROBLEMS"))
    problems = atoi(getenv("ATTUNE_TEST_PROBLEMS"));
  else if (test_patience() > 1)
    problems = 32;
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  return failures;
}
