/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_scaled.c: products of f8 and i8 on a GPU: random problems by the public call and by every implementation,
 * and searches, which verify all candidates. Exits 77 where there is no GPU. ATTUNE_TEST_PROBLEMS: how many random
 * problems (300; each may compile a kernel). */
#include "tests/support/check.h"

#include "ops/gemm/problem/problem.h"
#include "tests/ops/gemm/scaled/scaled_mirror.h"
#include "tests/support/gpu.h"
#include "tuning/op/registry.h"

enum { PROBLEMS = 300, CONFIGURATIONS = 32 };

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;

FIXTURE(open_all) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.mode = ATTUNE_MODE_OFF;
  options.database = "";
  if (attune_stream_create(&stream, device) != ATTUNE_OK) return -1;
  return attune_tuner_create(&tuner, &options) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return 0;
}

/* The tensor cores of capability 9.0 keep 13 bits of a sum behind the point (gemm.h). */
static void allow_tensor_cores(scaled_case *c) {
  c->loose = true;
  if (c->p.dtype != ATTUNE_I8) c->last_bit = 0x1p-13;
}

/* ---- the tests ---- */

static void call(scaled_case *c) {
  scaled_mirror m;
  allow_tensor_cores(c);
  scaled_mirror_open(&m, c, stream);
  const attune_gemm_operands o = scaled_mirror_operands(&m);
  if (attune_gemm(tuner, stream, &c->p, &o) != ATTUNE_OK) fail_msg("%s: %s", c->name, attune_last_message());
  scaled_mirror_check(&m, "attune_gemm");
  scaled_mirror_close(&m);
}

TEST(random_problems_are_right) {
  const char *asked = getenv("ATTUNE_TEST_PROBLEMS");
  const int problems = asked ? atoi(asked) : PROBLEMS;
  uint64_t state = 20261128;
  for (int i = 0; i < problems; i++) {
    scaled_case c;
    scaled_draw_case(&c, i % 16 ? 12 : 140, i % 16 ? 300 : 700, &state);
    call(&c);
    scaled_close(&c);
  }
}

TEST(without_a_product_only_c_counts) {
  uint64_t state = 3;
  for (int i = 0; i < 60; i++) {
    scaled_case c;
    scaled_draw_case(&c, 12, 40, &state);
    c.o.alpha = 0.0;
    call(&c);
    scaled_close(&c);
  }
}

/* Sizes and layouts that cuBLASLt has, by all that say they can: the first configurations of each. */
static void run_each(scaled_case *c) {
  static at_configuration list[CONFIGURATIONS];
  scaled_mirror m;
  at_gemm g;
  at_gemm_use use;
  bool swap = false;
  allow_tensor_cores(c);
  scaled_mirror_open(&m, c, stream);
  const attune_gemm_operands run = scaled_mirror_operands(&m);
  OK(at_gemm_check_operands(&c->p, &run, &use));
  OK(at_gemm_normalise(&c->p, use, &g, &swap));
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    if (!at_registry_usable(one, &g, device)) continue;
    const int count = one->configurations(one, &g, device, list, CONFIGURATIONS);
    printf("# %s: %s has %d\n", c->name, one->name, count);
    for (int j = 0; j < count; j++) {
      at_plan *plan = NULL;
      OK(at_plan_create(&plan, &at_gemm_op, one, &list[j], &g, device));
      scaled_mirror_write(&m);
      if (plan->launch(plan, &run, stream) != ATTUNE_OK)
        fail_msg("%s, %s %s: %s", c->name, one->name, list[j].text, attune_last_message());
      scaled_mirror_check(&m, one->name);
      at_plan_destroy(plan);
    }
  }
  scaled_mirror_close(&m);
}

TEST(what_the_library_has_is_right) {
  static const struct {
    attune_dtype in, b, out;
    uint8_t scale_a, scale_b, scale_d, amax;
    bool c;
  } kinds[] = {{ATTUNE_F8E4M3, 0, ATTUNE_BF16, 1, 1, 0, 0, false},
               {ATTUNE_F8E4M3, 0, ATTUNE_F32, 1, 1, 0, 0, true},
               {ATTUNE_F8E5M2, ATTUNE_F8E4M3, ATTUNE_F16, 1, 1, 0, 0, false},
               {ATTUNE_F8E4M3, 0, ATTUNE_F8E4M3, 1, 1, 1, 1, false},
               {ATTUNE_F8E4M3, 0, ATTUNE_F8E4M3, 0, 1, 0, 1, true},
               {ATTUNE_F8E4M3, 0, ATTUNE_BF16, 2, 2, 0, 0, false},
               {ATTUNE_F8E4M3, 0, ATTUNE_BF16, 3, 3, 0, 0, false},
               {ATTUNE_F8E4M3, 0, ATTUNE_BF16, 3, 4, 0, 0, false},
               {ATTUNE_F8E4M3, 0, ATTUNE_F32, 4, 3, 0, 0, false},
               {ATTUNE_I8, 0, ATTUNE_I32, 0, 0, 0, 0, false},
               {ATTUNE_I8, 0, ATTUNE_I32, 0, 0, 0, 0, true},
               {ATTUNE_I8, 0, ATTUNE_I8, 0, 0, 0, 0, false}};
  uint64_t state = 99;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    scaled_case c = {.p = ATTUNE_GEMM_PROBLEM_INIT};
    c.p.dtype = kinds[i].in, c.p.dtype_out = kinds[i].out;
    c.p.scaling = (attune_gemm_scaling){.dtype_b = (uint8_t)kinds[i].b,
                                        .scale_a = kinds[i].scale_a,
                                        .scale_b = kinds[i].scale_b,
                                        .scale_d = kinds[i].scale_d,
                                        .amax_d = kinds[i].amax};
    c.p.trans_a = ATTUNE_T;
    c.p.m = 256, c.p.n = 128, c.p.k = 640;
    do { /* packed matrices */
      scaled_close(&c);
      c.blocks = 0;
      scaled_open(&c, kinds[i].c, &state);
    } while (c.p.lda != c.p.k);
    run_each(&c);
    scaled_close(&c);
  }
}

static bool has(const scaled_case *c, const char *implementation) {
  at_gemm g;
  at_gemm_use use;
  bool swap = false;
  OK(at_gemm_check_operands(&c->p, &c->o, &use)); /* on a GPU as aligned as here */
  OK(at_gemm_normalise(&c->p, use, &g, &swap));
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++)
    if (strcmp(at_gemm_op.implementations[i]->name, implementation) == 0)
      return at_registry_usable(at_gemm_op.implementations[i], &g, device);
  return false;
}

/* Layouts, sizes, distances and places that cuBLASLt does not take, which are copied first. */
TEST(copies_are_right) {
  static const attune_dtype out[] = {ATTUNE_BF16, ATTUNE_F32, ATTUNE_F8E4M3, ATTUNE_F16, ATTUNE_I32, ATTUNE_I8};
  uint64_t state = 77;
  for (int i = 0; i < 96; i++) {
    scaled_case c = {.p = ATTUNE_GEMM_PROBLEM_INIT, .offset = i % 3 ? 0 : 4};
    const int of = i % 6;
    c.p.dtype = of >= 4 ? ATTUNE_I8 : ATTUNE_F8E4M3;
    c.p.dtype_out = out[of];
    c.p.trans_a = (attune_transpose)(i & 1), c.p.trans_b = (attune_transpose)(i >> 1 & 1);
    c.p.m = 33 + i, c.p.n = 40 + i % 7, c.p.k = i & 4 ? 256 : 201 + i;
    if (of < 4) c.p.scaling.scale_a = c.p.scaling.scale_b = (uint8_t)(i / 6 % 4);
    if (out[of] == ATTUNE_F8E4M3) {
      c.p.scaling.scale_a = c.p.scaling.scale_b = ATTUNE_SCALE_TENSOR;
      c.p.scaling.scale_d = 1, c.p.scaling.amax_d = 1;
    }
    if (c.p.scaling.scale_a == ATTUNE_SCALE_1X128 && i & 8) c.p.scaling.scale_a = ATTUNE_SCALE_128X128;
    scaled_open(&c, i % 5 == 0, &state);
    if (!has(&c, "cublaslt_packed") && !has(&c, "cublaslt")) fail_msg("%s: cuBLASLt has nothing", c.name);
    run_each(&c);
    scaled_close(&c);
  }
}

TEST(a_search_verifies) {
  static const char *const texts[] = {
      "gemm f8e4m3:bf16 tn 512x256x1024 strict scale_a=tensor scale_b=tensor",
      "gemm f8e4m3:bf16 tn 512x256x1024 reduced scale_a=vector scale_b=vector",
      "gemm f8e4m3:bf16 tn 512x256x1024 strict scale_a=1x128 scale_b=128x128",
      "gemm f8e4m3:f8e4m3 tn 512x256x1024 strict scale_a=tensor scale_b=tensor scale_d amax_d",
      "gemm f8e4m3:bf16 nn 130x67x257 strict scale_a=tensor scale_b=tensor",
      "gemm i8:i32 tn 512x256x1024 strict",
      "gemm i8:f16 tt 130x67x257 strict scale_a=vector scale_b=vector zero_a"};
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *searching = NULL;
  options.mode = ATTUNE_MODE_CACHED;
  options.database = "";
  OK(attune_tuner_create(&searching, &options));
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (attune_tune(searching, device, texts[i], NULL, NULL) != ATTUNE_OK)
      fail_msg("%s: %s", texts[i], attune_last_message());
  attune_tuner_destroy(searching);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s\n", attune_last_message());
  return RUN_TESTS(open_all, close_all);
}
