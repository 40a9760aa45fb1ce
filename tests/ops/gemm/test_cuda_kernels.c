/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_kernels.c: attune's own GEMM kernels on a GPU: sizes, transposes, dtypes, leading dimensions, strides,
 * addresses, C and kinds of data, drawn and compared with sums on the CPU; NaN and infinities; the same bits each time;
 * graphs. Exits 77 where there is no GPU. ATTUNE_TEST_PROBLEMS: problems of each family (160; 40 under
 * compute-sanitizer). */
#include <attune/attune.h>

#include "tests/support/check.h"

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"
#include "tests/support/cuda_gemm.h"
#include "tests/support/gpu.h"
#include "tuning/measure/numerical_check.h"

enum { BATCH = 40, TRIED = 3, ROOM = 64, RUNS = 100 };

static attune_device *device;
static attune_stream *stream;
static at_random *data;
static int problems = 160;

static const attune_dtype kinds[][2] = {{ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F64, ATTUNE_F64},
                                        {ATTUNE_F16, ATTUNE_F16}, {ATTUNE_BF16, ATTUNE_BF16},
                                        {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};

static int draw(int count) {
  return (int)((random_bits() >> 20) % (uint64_t)count);
}

/* Draws the fields that all families share; `number` walks through dtypes and transposes. */
static shape common(int number) {
  shape s = {
      .dtype = kinds[number % 6][0], .dtype_out = kinds[number % 6][1], .ta = number / 6 % 2, .tb = number / 12 % 2};
  s.gap = draw(2) ? 0 : 1 + draw(9);
  s.shift = draw(2) ? 0 : draw(9);
  s.c = (at_gemm_c)draw(3);
  s.alpha = draw(2) ? 1.0 : -1.5;
  s.beta = s.c == AT_C_NONE || draw(3) == 0 ? 0.0 : draw(2) ? 0.75 : 1.0;
  s.data = draw(DATA_KINDS);
  if (s.dtype == ATTUNE_F16) s.data = draw(3); /* wide is too wide */
  return s;
}

static void draw_batch(shape *s, int most) {
  s->batch = 1 + draw(most);
  s->step = draw(2) ? 0 : draw(20);
  s->share_a = draw(6) == 0;
  s->share_b = draw(6) == 0;
  s->share_c = draw(6) == 0;
}

static shape tiny_shape(int number) {
  shape s = common(number);
  const int side = number % 64 + 1;
  s.m = draw(3) ? 1 + draw(64) : side;
  s.n = draw(3) ? 1 + draw(64) : side;
  s.k = draw(3) ? 1 + draw(64) : side;
  if (draw(3) == 0) s.m = s.n = s.k = 8 << draw(4);
  draw_batch(&s, s.m * s.n * s.k > 50000 ? 12 : 60);
  if (s.batch < 2) s.batch = 2;
  return s;
}

static shape complex_shape(int number) {
  shape s = tiny_shape(number);
  s.dtype = s.dtype_out = number % 2 ? ATTUNE_C128 : ATTUNE_C64;
  s.ta = draw(3), s.tb = draw(3);
  s.alpha_imag = draw(2) ? 0.0 : 0.5;
  s.beta_imag = s.c == AT_C_NONE || draw(2) ? 0.0 : -2.0;
  return s;
}

static shape direct_shape(int number) {
  shape s = tiny_shape(number);
  s.dtype = number % 2 ? ATTUNE_F16 : ATTUNE_BF16;
  s.dtype_out = number % 3 ? s.dtype : ATTUNE_F32;
  if (s.dtype == ATTUNE_F16 && s.data == DATA_WIDE) s.data = DATA_NORMAL; /* sums beyond what f16 holds */
  s.m = 16 * (1 + draw(4)), s.n = 16 * (1 + draw(4)), s.k = 16 * (1 + draw(4));
  if (draw(3) == 0) { /* cut along its long side */
    s.batch = 1, s.step = 0, s.share_a = s.share_b = s.share_c = false;
    *(draw(2) ? &s.m : &s.n) = 16 * (5 + draw(200));
  }
  return s;
}

static shape skinny_shape(int number) {
  shape s = common(number);
  const int small = draw(2) ? 1 + draw(16) : number % 64 + 1, large = draw(4) ? 1 + draw(700) : 1 + draw(5000);
  s.k = draw(4) ? 1 + draw(900) : 16 * draw(200) + 16;
  const bool across = draw(2);
  s.m = across ? small : large;
  s.n = across ? large : small;
  if (large <= 64 && s.k <= 64) s.k += 64;
  draw_batch(&s, draw(3) ? 1 : 4);
  return s;
}

/* For copies of 16 bytes: both matrices along k, lines and matrices that begin at multiples of 16 bytes. */
static shape ring_shape(int number) {
  shape s = common(2 + number % 4);
  const int small = draw(2) ? 1 + draw(8) : number % 16 + 1, large = draw(4) ? 64 + draw(700) : 64 + draw(5000);
  if (s.dtype == ATTUNE_F16 && s.data == DATA_WIDE) s.data = DATA_NORMAL; /* sums beyond what f16 holds */
  s.k = 32 * (8 + draw(draw(4) ? 60 : 300));
  const bool across = draw(2);
  s.m = across ? small : large;
  s.n = across ? large : small;
  s.ta = 1, s.tb = 0;
  draw_batch(&s, draw(3) ? 1 : 4);
  s.gap = 8 * draw(3), s.shift = 8 * draw(2), s.step = 8 * draw(3);
  return s;
}

static shape mma_shape(int number) {
  shape s = common(number);
  s.accuracy = s.dtype == ATTUNE_F32 ? ATTUNE_REDUCED : ATTUNE_STRICT;
  s.m = draw(2) ? 1 + draw(400) : 8 * (1 + draw(60));
  s.n = draw(2) ? 4 + draw(200) : 8 * (1 + draw(30));
  s.k = draw(2) ? 65 + draw(700) : 16 * (5 + draw(60));
  if (draw(4) == 0) s.m = 1 + s.m / 8, s.n = 4 + s.n / 8, s.k = 1000 + draw(9000); /* deep */
  draw_batch(&s, draw(3) ? 1 : 4);
  return s;
}

/* f32 by parts of bf16: large products. */
static shape bf16x6_shape(int number) {
  shape s = common(number);
  s.dtype = s.dtype_out = ATTUNE_F32;
  s.accuracy = ATTUNE_EQUIVALENT;
  s.m = 400 + draw(400), s.n = 300 + draw(400);
  s.k = draw(3) ? 1000 + draw(300) : 64 * (16 + draw(10));
  draw_batch(&s, 3);
  return s;
}

/* For tensor copies: lines and matrices that begin at multiples of 16 bytes. */
static shape wgmma_shape(int number) {
  shape s = common(number);
  s.dtype = number % 2 ? ATTUNE_F16 : ATTUNE_BF16;
  s.dtype_out = draw(3) ? s.dtype : ATTUNE_F32;
  if (s.dtype == ATTUNE_F16 && s.data == DATA_WIDE) s.data = DATA_NORMAL; /* sums beyond what f16 holds */
  s.m = 8 + draw(300), s.n = 8 + draw(150), s.k = draw(2) ? 1 + draw(500) : 64 * (1 + draw(8));
  if (draw(4) == 0) s.m = 8 + s.m / 8, s.n = 8 + s.n / 8, s.k = 1000 + draw(9000); /* deep */
  if (draw(8) == 0) s.m += 1000, s.n = 8 + s.n / 8;
  if (draw(3) == 0) {
    const int64_t m = s.m;
    s.m = s.n, s.n = m;
  }
  if (s.m <= 64 && s.n <= 64 && s.k <= 64) s.k += 64;
  draw_batch(&s, draw(3) ? 1 : 4);
  int64_t *const lines[] = {s.ta ? &s.k : &s.m, s.tb ? &s.n : &s.k};
  const int odd = draw(2) ? draw(8) : 0; /* the gap makes up for it */
  for (int i = 0; i < 2; i++)
    if (i == 0 || lines[0] != lines[1]) *lines[i] = (*lines[i] + 7) / 8 * 8 - odd;
  s.gap = odd + 8 * draw(3);
  s.shift = s.shift / 8 * 8, s.step = s.step / 8 * 8;
  return s;
}

/* Matrices that tensor copies reach only in padded copies: large ones, which are worth these. */
static shape odd_shape(int number) {
  shape s = common(number);
  s.dtype = number % 2 ? ATTUNE_F16 : ATTUNE_BF16;
  s.dtype_out = draw(3) ? s.dtype : ATTUNE_F32;
  if (s.dtype == ATTUNE_F16 && s.data == DATA_WIDE) s.data = DATA_NORMAL;
  s.m = 200 + draw(400), s.n = 200 + draw(300), s.k = 200 + draw(500);
  draw_batch(&s, 2);
  s.batch = (int64_t)(3e7 / (double)(s.m * s.n * s.k)) + 1;
  return s;
}

static shape simt_shape(int number) {
  shape s = mma_shape(number);
  s.dtype = s.dtype_out = ATTUNE_F32;
  s.accuracy = number % 3 ? ATTUNE_STRICT : ATTUNE_EQUIVALENT;
  if (s.n < 8) s.n += 8;
  if (s.m < 8) s.m += 8;
  return s;
}

/* f32 and f64 whose large factor lies along its rows. */
static shape rows_shape(int number) {
  shape s = skinny_shape(number);
  s.dtype = s.dtype_out = number % 2 ? ATTUNE_F64 : ATTUNE_F32;
  const int most = number % 2 ? 8 : 64;
  const bool across = s.m < s.n;
  if (across)
    s.m = (s.m - 1) % most + 1, s.tb = 1;
  else
    s.n = (s.n - 1) % most + 1, s.ta = 0;
  return s;
}

/* A family's problems, BATCH at a time, whose kernels are compiled beside each other. */
typedef struct group {
  shape shapes[BATCH];
  at_gemm problems[BATCH];
  at_configuration tried[BATCH][TRIED];
  at_jit_request requests[2 * BATCH * TRIED];
  int counts[BATCH], count, made;
} group;

static void add_problem(group *all, const at_implementation *implementation, const shape *s) {
  const at_gemm_kernels *family = at_gemm_kernels_of(implementation);
  static at_configuration list[ROOM];
  const at_machine machine = at_machine_of(device);
  const int i = all->count++;
  at_gemm *g = &all->problems[i];
  all->shapes[i] = *s;
  set_problem(g, s);
  if (!family->supports(g, &machine)) { /* some of what is drawn is left to others */
    all->count--;
    return;
  }
  const int count = family->candidates(g, &machine, list, ROOM, draw(2));
  assert_true(count > 0);
  for (int t = 0; t < TRIED && t < count; t++) {
    at_gemm_launch_spec spec;
    char *text = NULL;
    all->tried[i][all->counts[i]++] = list[t == 0 ? 0 : draw(count)];
    assert_true(at_gemm_launch_spec_of(&spec, family, g, &machine, &all->tried[i][t]));
    for (int before = 0; before <= (int)at_gemm_has_before(family, &spec); before++) {
      OK(at_gemm_text(&text, family, &spec, before));
      all->requests[all->made++].source =
          (at_kernel_source){.file = family->file, .text = text, .entry = family->entry};
    }
  }
}

static void close_group(group *all) {
  for (int i = 0; i < all->made; i++) {
    at_jit_release(all->requests[i].kernel);
    free((char *)(uintptr_t)all->requests[i].source.text);
  }
}

static int wrong;

static void one_run(gemm_case *t, const at_implementation *implementation, const at_configuration *configuration) {
  at_plan *plan = NULL;
  const at_gemm *g = &t->g;
  char what[640];
  snprintf(
      what, sizeof what,
      "%s %s:%s %c%c %lldx%lldx%lld batch %lld ld %lld,%lld,%lld align %d c %d alpha %g beta %g data %d \"%.192s\"",
      implementation->name, attune_dtype_name((attune_dtype)g->dtype), attune_dtype_name((attune_dtype)g->dtype_out),
      g->trans_a ? 't' : 'n', g->trans_b ? 't' : 'n', (long long)g->m, (long long)g->n, (long long)g->k,
      (long long)g->batch, (long long)g->lda, (long long)g->ldb, (long long)g->ldd, g->alignment, g->c, t->s.alpha,
      t->s.beta, t->s.data, configuration->text);
  const attune_status made = at_plan_create(&plan, &at_gemm_op, implementation, configuration, g, device);
  if (made != ATTUNE_OK) fail_msg("%s: %s", what, attune_last_message());
  assert_true(reset_output(t));
  const attune_status status = plan->launch(plan, &t->operands, stream);
  if (status != ATTUNE_OK) fail_msg("%s: %s", what, attune_last_message());
  const double error = output_error(t);
  if (attune_stream_synchronize(stream) != ATTUNE_OK) fail_msg("%s: %s", what, attune_last_message());
  if (!(error <= 1.0)) {
    print_message("%s: error %g of what is allowed\n", what, error);
    wrong++;
  }
  at_plan_destroy(plan);
}

static void drawn_problems(const at_implementation *implementation, shape (*next)(int)) {
  int runs = 0;
  wrong = 0;
  for (int first = 0; first < problems; first += BATCH) {
    static group all;
    memset(&all, 0, sizeof all);
    for (int i = first; i < first + BATCH && i < problems; i++) {
      const shape s = next(i);
      add_problem(&all, implementation, &s);
    }
    at_jit_get_all(all.requests, all.made, device);
    for (int i = 0; i < all.count; i++) {
      gemm_case t;
      assert_true(make_case(&t, &all.shapes[i], stream));
      for (int j = 0; j < all.counts[i]; j++, runs++) one_run(&t, implementation, &all.tried[i][j]);
      free_case(&t);
    }
    close_group(&all);
  }
  print_message("%s: %d runs, %d wrong\n", implementation->name, runs, wrong);
  assert_true(runs >= problems);
  assert_int_equal(wrong, 0);
}

TEST(tiny_is_right) {
  drawn_problems(&at_gemm_sm80_batched_smem, tiny_shape);
}

TEST(complex_tiny_is_right) {
  drawn_problems(&at_gemm_sm80_batched_smem, complex_shape);
}

TEST(direct_is_right) {
  drawn_problems(&at_gemm_sm80_batched_reg_16b, direct_shape);
}

TEST(rows_is_right) {
  drawn_problems(&at_gemm_sm80_skinny_mmajor, rows_shape);
}

TEST(skinny_is_right) {
  drawn_problems(&at_gemm_sm80_skinny_reg, skinny_shape);
}

TEST(ring_is_right) {
  if (device->properties.capability_major >= 9)
    drawn_problems(&at_gemm_sm90_skinny_ring_16b, ring_shape);
  else
    skip();
}

TEST(mma_is_right) {
  drawn_problems(&at_gemm_sm80_mma, mma_shape);
}

TEST(bf16x6_is_right) {
  const int all = problems;
  problems = problems < 12 ? problems : 12; /* large ones, whose sums a CPU makes too */
  drawn_problems(&at_gemm_sm90_wgmma_bf16x6, bf16x6_shape);
  problems = all;
}

/* The error, in units of what is allowed, of the first configuration. */
static double error_of(const at_implementation *implementation, gemm_case *t) {
  static at_configuration list[ROOM];
  at_plan *plan = NULL;
  assert_true(implementation->configurations(implementation, &t->g, device, list, ROOM) > 0);
  OK(at_plan_create(&plan, &at_gemm_op, implementation, &list[0], &t->g, device));
  assert_true(reset_output(t));
  OK(plan->launch(plan, &t->operands, stream));
  const double error = output_error(t);
  at_plan_destroy(plan);
  return error;
}

/* No more than twice the error of f32's own arithmetic, on data of each kind. */
TEST(bf16x6_is_as_exact_as_f32) {
  for (int kind = DATA_NORMAL; kind < DATA_KINDS; kind++) {
    gemm_case t;
    const shape s = {ATTUNE_F32,  .accuracy = ATTUNE_EQUIVALENT, .m = 512, .n = 512, .k = 2048, .alpha = 1,
                     .data = kind};
    assert_true(make_case(&t, &s, stream));
    const double plain = error_of(&at_gemm_cublas, &t), ours = error_of(&at_gemm_sm90_wgmma_bf16x6, &t);
    print_message("data %d: f32 %.4f, bf16x6 %.4f of what is allowed\n", kind, plain, ours);
    assert_true(plain > 0.0 && ours > 0.0 && ours <= 2.0 * plain);
    free_case(&t);
  }
}

TEST(wgmma_is_right) {
  if (device->properties.capability_major == 9)
    drawn_problems(&at_gemm_sm90_wgmma_16b, wgmma_shape);
  else
    skip();
}

TEST(wgmma_pads) {
  if (device->properties.capability_major != 9) skip();
  const int all = problems;
  problems = problems < 24 ? problems : 24; /* large ones, whose sums a CPU makes too */
  drawn_problems(&at_gemm_sm90_wgmma_16b, odd_shape);
  problems = all;
}

TEST(simt_is_right) {
  drawn_problems(&at_gemm_sm80_simt_f32, simt_shape);
}

/* As the check of a winner: NaN, infinities, denormals, huge numbers; the memory around outputs. */
static void verified(const at_implementation *implementation, shape (*next)(int), int count) {
  for (int i = 0; i < count; i++) {
    const shape s = next(i);
    static at_configuration list[ROOM];
    at_gemm g;
    at_numerical_check *check = NULL;
    set_problem(&g, &s);
    if (!implementation->supports(implementation, &g, device)) continue;
    OK(at_numerical_check_create(&check, &at_gemm_op, &g, stream, data));
    assert_true(implementation->configurations(implementation, &g, device, list, ROOM) > 0);
    at_plan *plan = NULL;
    double error = 0.0;
    OK(at_plan_create(&plan, &at_gemm_op, implementation, &list[0], &g, device));
    const attune_status status = at_numerical_check_run(check, plan, &error);
    if (status != ATTUNE_OK)
      fail_msg("%s \"%s\" %lldx%lldx%lld: %s", implementation->name, list[0].text, (long long)g.m, (long long)g.n,
               (long long)g.k, attune_last_message());
    at_plan_destroy(plan);
    at_numerical_check_destroy(check);
  }
}

TEST(special_values_are_kept) {
  verified(&at_gemm_sm80_batched_smem, tiny_shape, problems / 20);
  verified(&at_gemm_sm80_batched_smem, complex_shape, problems / 20);
  verified(&at_gemm_sm80_batched_reg_16b, direct_shape, problems / 20);
  verified(&at_gemm_sm80_skinny_mmajor, rows_shape, problems / 20);
  verified(&at_gemm_sm80_skinny_reg, skinny_shape, problems / 20);
  verified(&at_gemm_sm90_skinny_ring_16b, ring_shape, problems / 20);
  verified(&at_gemm_sm80_mma, mma_shape, problems / 20);
  verified(&at_gemm_sm90_wgmma_bf16x6, bf16x6_shape, problems / 20);
  verified(&at_gemm_sm90_wgmma_16b, wgmma_shape, problems / 20);
  verified(&at_gemm_sm90_wgmma_16b, odd_shape, problems / 80);
  verified(&at_gemm_sm80_simt_f32, simt_shape, problems / 20);
}

/* The same bits in RUNS runs, in a graph too. */
static void repeats(const at_implementation *implementation, const shape *s) {
  static at_configuration list[ROOM];
  gemm_case t;
  at_plan *plan = NULL;
  at_graph *graph = NULL;
  assert_true(make_case(&t, s, stream));
  assert_true(implementation->configurations(implementation, &t.g, device, list, ROOM) > 0);
  OK(at_plan_create(&plan, &at_gemm_op, implementation, &list[0], &t.g, device));
  unsigned char *first = malloc(t.d.bytes), *again = malloc(t.d.bytes);
  assert_true(first && again);
  OK(device->backend.graph->capture_begin(stream));
  const attune_status captured = plan->launch(plan, &t.operands, stream);
  OK(device->backend.graph->capture_end(stream, &graph));
  OK(captured);
  for (int i = 0; i < RUNS; i++) {
    assert_true(reset_output(&t));
    if (i % 2)
      OK(device->backend.graph->launch(graph, stream));
    else
      OK(plan->launch(plan, &t.operands, stream));
    OK(attune_copy(stream, i ? again : first, t.d.device, t.d.bytes));
    OK(attune_stream_synchronize(stream));
    if (i > 0) assert_memory_equal(first, again, t.d.bytes);
  }
  device->backend.graph->destroy(graph);
  at_plan_destroy(plan);
  free(first);
  free(again);
  free_case(&t);
}

TEST(the_same_bits_each_time) {
  repeats(&at_gemm_sm80_batched_smem, &(shape){ATTUNE_F32, .m = 16, .n = 16, .k = 16, .batch = 3000, .alpha = 1});
  repeats(&at_gemm_sm80_batched_smem, &(shape){ATTUNE_F16, .m = 33, .n = 31, .k = 17, .batch = 100, .alpha = 1});
  repeats(&at_gemm_sm80_batched_smem, &(shape){ATTUNE_C64, .m = 20, .n = 31, .k = 17, .batch = 999, .alpha = 1});
  repeats(&at_gemm_sm80_batched_smem, &(shape){ATTUNE_C128, .tb = 2, .m = 9, .n = 9, .k = 9, .batch = 999, .alpha = 1});
  repeats(&at_gemm_sm80_batched_reg_16b, &(shape){ATTUNE_BF16, .m = 64, .n = 48, .k = 32, .batch = 300, .alpha = 1});
  repeats(&at_gemm_sm80_skinny_mmajor,
          &(shape){ATTUNE_F32, .m = 1000, .n = 16, .k = 2000, .alpha = 1, .data = DATA_WIDE});
  repeats(&at_gemm_sm80_skinny_mmajor,
          &(shape){ATTUNE_F64, .tb = 1, .m = 5, .n = 777, .k = 999, .alpha = 1, .data = DATA_WIDE});
  repeats(&at_gemm_sm80_skinny_reg,
          &(shape){ATTUNE_F32, .ta = 1, .m = 1000, .n = 16, .k = 2000, .alpha = 1, .data = DATA_WIDE});
  repeats(&at_gemm_sm80_skinny_reg,
          &(shape){ATTUNE_BF16, .ta = 1, .m = 512, .n = 8, .k = 2048, .alpha = 1, .data = DATA_NORMAL});
  if (device->properties.capability_major >= 9)
    repeats(&at_gemm_sm90_skinny_ring_16b,
            &(shape){ATTUNE_BF16, .ta = 1, .m = 4096, .n = 8, .k = 4096, .alpha = 1, .data = DATA_NORMAL});
  repeats(&at_gemm_sm80_mma,
          &(shape){ATTUNE_BF16, .tb = 1, .m = 64, .n = 64, .k = 32768, .alpha = 1, .data = DATA_NORMAL});
  repeats(&at_gemm_sm80_mma, &(shape){ATTUNE_F64, .m = 500, .n = 16, .k = 3000, .alpha = 1, .data = DATA_NORMAL});
  repeats(&at_gemm_sm80_mma, &(shape){ATTUNE_F16, .m = 333, .n = 201, .k = 499, .alpha = 1, .data = DATA_NORMAL});
  if (device->properties.capability_major == 9) {
    repeats(&at_gemm_sm90_wgmma_16b,
            &(shape){ATTUNE_BF16, .tb = 1, .m = 64, .n = 64, .k = 32768, .alpha = 1, .data = DATA_NORMAL});
    repeats(&at_gemm_sm90_wgmma_16b,
            &(shape){ATTUNE_BF16, .ta = 1, .m = 4096, .n = 64, .k = 4096, .alpha = 1, .data = DATA_NORMAL});
    repeats(&at_gemm_sm90_wgmma_16b, &(shape){ATTUNE_F16, .m = 1000, .n = 504, .k = 776, .alpha = 1});
    repeats(&at_gemm_sm90_wgmma_16b,
            &(shape){ATTUNE_BF16, .m = 501, .n = 503, .k = 777, .alpha = 1, .data = DATA_NORMAL});
  }
  repeats(&at_gemm_sm80_simt_f32,
          &(shape){ATTUNE_F32, .tb = 1, .m = 128, .n = 128, .k = 30000, .alpha = 1, .data = DATA_WIDE});
  repeats(&at_gemm_sm80_simt_f32, &(shape){ATTUNE_F32, .m = 512, .n = 512, .k = 512, .alpha = 1, .data = DATA_WIDE});
  repeats(&at_gemm_sm80_skinny_reg, &(shape){ATTUNE_F64, .ta = 1, .m = 700, .n = 3, .k = 3000, .alpha = 1});
  repeats(&at_gemm_sm90_wgmma_bf16x6, &(shape){ATTUNE_F32, .accuracy = ATTUNE_EQUIVALENT, .m = 700, .n = 333, .k = 1000,
                                               .alpha = 1, .data = DATA_WIDE});
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (getenv("ATTUNE_TEST_PROBLEMS"))
    problems = atoi(getenv("ATTUNE_TEST_PROBLEMS"));
  else if (test_patience() > 1)
    problems = 40;
  if (attune_stream_create(&stream, device) != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  const int failures = RUN_TESTS(NULL, NULL);
  at_random_destroy(data);
  attune_stream_destroy(stream);
  return failures;
}
