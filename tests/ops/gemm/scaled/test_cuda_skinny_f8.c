/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_skinny_f8.c: sm90_skinny_ring_8b on a GPU: random problems by all configurations that a search has and by
 * some of the others, with guards around all operands; amax of many blocks; and searches, which verify all candidates.
 * Exits 77 where there is no GPU, or one before capability 9.0. ATTUNE_TEST_PROBLEMS: how many (40). */
#include "tests/support/check.h"

#include "tests/ops/gemm/scaled/scaled_mirror.h"
#include "tests/ops/gemm/scaled/skinny_case.h"
#include "tests/support/gpu.h"

enum { LIST = 64, OTHERS = 6 };

static attune_device *device;
static attune_stream *stream;
static const at_implementation *const skinny = &at_gemm_sm90_skinny_ring_8b;
static uint64_t state = 20261128;
static int problems = 40, launches;

FIXTURE(open_all) {
  return attune_stream_create(&stream, device) == ATTUNE_OK ? 0 : -1;
}

FIXTURE(close_all) {
  attune_stream_destroy(stream);
  return 0;
}

static void run_one(const scaled_mirror *m, const at_gemm *g, const attune_gemm_operands *run,
                    const at_configuration *configuration) {
  at_plan *plan = NULL;
  if (at_plan_create(&plan, &at_gemm_op, skinny, configuration, g, device) != ATTUNE_OK)
    fail_msg("%s, %s: %s", m->c->name, configuration->text, attune_last_message());
  scaled_mirror_write(m);
  if (plan->launch(plan, run, stream) != ATTUNE_OK)
    fail_msg("%s, %s: %s", m->c->name, configuration->text, attune_last_message());
  scaled_mirror_check(m, configuration->text);
  at_plan_destroy(plan);
  launches++;
}

/* Some that no search offers. */
static int draw_others(const at_gemm *g, at_configuration *list) {
  const at_machine machine = at_machine_of(device);
  at_gemm_launch_spec spec;
  int count = 0;
  for (int tries = 0; tries < 300 && count < OTHERS; tries++) {
    skinny_draw_configuration(&list[count], &state);
    count += at_gemm_launch_spec_of(&spec, at_gemm_kernels_of(skinny), g, &machine, &list[count]);
  }
  return count;
}

static void run_all(scaled_case *c, bool others) {
  static at_configuration list[LIST + OTHERS];
  scaled_mirror m;
  at_gemm g;
  attune_gemm_operands run;
  scaled_mirror_open(&m, c, stream);
  const attune_gemm_operands o = scaled_mirror_operands(&m);
  skinny_normalise(c, &o, &g, &run);
  if (!skinny->supports(skinny, &g, device)) fail_msg("%s is not taken", c->name);
  int count = skinny->configurations(skinny, &g, device, list, LIST);
  assert_true(count > 0);
  if (others) count += draw_others(&g, list + count);
  skinny->prepare_many(skinny, &g, device, list, count);
  for (int i = 0; i < count; i++) run_one(&m, &g, &run, &list[i]);
  scaled_mirror_close(&m);
}

TEST(random_problems_are_right) {
  for (int i = 0; i < problems; i++) {
    scaled_case c;
    skinny_draw_case(&c, i % 4 ? 150 : 400, i % 4 ? 900 : 2100, &state);
    run_all(&c, i % 2);
    scaled_close(&c);
  }
  print_message("%d launches\n", launches);
}

/* More blocks than the device holds at once, each with a part of the amax. */
TEST(many_blocks_are_right) {
  static const attune_gemm_scaling scaling[] = {
      {.scale_a = ATTUNE_SCALE_TENSOR, .scale_b = ATTUNE_SCALE_TENSOR, .amax_d = 1},
      {.scale_a = ATTUNE_SCALE_1X128, .scale_b = ATTUNE_SCALE_1X128, .amax_d = 1},
      {.scale_a = ATTUNE_SCALE_128X128, .scale_b = ATTUNE_SCALE_1X128, .amax_d = 1}};
  for (size_t i = 0; i < sizeof scaling / sizeof *scaling; i++) {
    scaled_case c = {.p = ATTUNE_GEMM_PROBLEM_INIT, .grain = 16, .loose = true};
    c.p.dtype = ATTUNE_F8E4M3, c.p.dtype_out = ATTUNE_BF16;
    c.p.trans_a = ATTUNE_T;
    c.p.m = 9001, c.p.n = 1, c.p.k = 528;
    c.p.scaling = scaling[i];
    scaled_open(&c, false, &state);
    c.gamma += 0x1p-11;
    run_all(&c, false);
    scaled_close(&c);
  }
}

TEST(a_search_verifies) {
  static const char *const texts[] = {
      "gemm f8e4m3:bf16 tn 4096x1x7168 strict scale_a=tensor scale_b=tensor",
      "gemm f8e4m3:bf16 tn 2048x8x2048 strict scale_a=vector scale_b=vector",
      "gemm f8e4m3:bf16 tn 16x2048x2048 strict scale_a=1x128 scale_b=128x128",
      "gemm f8e4m3:f8e4m3 tn 2048x32x1024 strict beta scale_a=tensor scale_b=tensor scale_d amax_d",
      "gemm i8:i32 tn 2048x8x2048 strict"};
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

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (getenv("ATTUNE_TEST_PROBLEMS")) problems = atoi(getenv("ATTUNE_TEST_PROBLEMS"));
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s\n", attune_last_message());
  if (device->properties.capability_major < 9) return skip_all("the kernels need capability 9.0\n");
  return RUN_TESTS(open_all, close_all);
}
