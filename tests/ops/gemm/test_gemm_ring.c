/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_ring.c: which problems the families sm90_skinny_ring_16b and sm90_skinny_ring_8b take, and how their
 * kernels are launched. Needs no GPU. */
#include "tests/support/check.h"

#include "tests/ops/gemm/gemm_problem.h"

TEST(what_ring_takes) {
  const at_gemm_kernels *f = FAMILY(sm90_skinny_ring_16b);
  at_gemm g = problem_of(ATTUNE_BF16, 1, 0, 6144, 1, 4096, 1);
  assert_true(f->supports(&g, &h200));
  assert_false(f->supports(&g, &a100));
  g.alignment = 16; /* lines may begin anywhere that copies of 16 bytes may */
  assert_true(f->supports(&g, &h200));
  g.alignment = 8;
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 1, 0, 16, 4096, 4096, 3);
  assert_true(f->supports(&g, &h200));
  g.stride_b += 4;
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 0, 4096, 17, 4096, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 0, 4096, 8, 4080, 1); /* k is no multiple of what two instructions take */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 4096, 8, 4096, 1); /* lies along m */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 1, 4096, 8, 4096, 1); /* the small one lies along n */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 1, 0, 4096, 8, 4096, 1);
  assert_false(f->supports(&g, &h200));
}

/* As the public call asks: at_gemm_kernel_supports knows which families are for 8-bit types. */
static bool is_taken(const char *text) {
  attune_device device = {.properties = {.processors = 132, .capability_major = 9}};
  at_gemm g;
  OK(at_gemm_parse(text, &g));
  return at_gemm_sm90_skinny_ring_8b.supports(&at_gemm_sm90_skinny_ring_8b, &g, &device);
}

TEST(what_the_ring_of_8_bits_takes) {
  static const char *const taken[] = {
      "gemm f8e4m3:bf16 tn 4096x1x7168 strict scale_a=tensor scale_b=tensor",
      "gemm f8e4m3:f8e5m2 tn 32x4096x272 strict beta dtype_b=f8e5m2 scale_a=128x128 scale_b=1x128 scale_d amax_d",
      "gemm f8e5m2:f32 tn 100x3x4096x7 reduced dtype_b=f8e4m3 scale_a=tensor",
      "gemm i8:i32 tn 4096x32x4096 strict beta", "gemm f8e4m3:bf16 tn 4096x8x4096 strict align=16"};
  static const char *const refused[] = {
      "gemm f8e4m3:bf16 tn 4096x33x4096 strict",  "gemm f8e4m3:bf16 tn 4096x8x4088 strict",
      "gemm f8e4m3:bf16 nn 4096x8x4096 strict",   "gemm f8e4m3:bf16 tt 4096x8x4096 strict",
      "gemm f8e4m3:bf16 tn 63x8x4096 strict",     "gemm f8e4m3:bf16 tn 4096x8x4096 strict align=8",
      "gemm i8:i32 tn 4096x8x4096 strict zero_a", "gemm f16 tn 4096x8x4096 strict"};
  for (size_t i = 0; i < AT_COUNT(taken); i++)
    if (!is_taken(taken[i])) fail_msg("%s is not taken", taken[i]);
  for (size_t i = 0; i < AT_COUNT(refused); i++)
    if (is_taken(refused[i])) fail_msg("%s is taken", refused[i]);
}

/* Scales of 128 elements have a place behind the lines that they are of. C is bf16 where D is f8. */
TEST(rooms_of_scales) {
  const at_gemm_kernels *f = FAMILY(sm90_skinny_ring_8b);
  at_gemm g;
  at_gemm_launch_spec spec;
  const at_configuration c = {"rows=16,warps=2x4,step=256,stages=2,splitk=1,early=1"};
  OK(at_gemm_parse("gemm f8e4m3 tn 4096x3x4096 strict beta scale_a=1x128 scale_b=128x128", &g));
  assert_true(f->spec(&spec, &g, &h200, &c));
  assert_int_equal(spec.config.shared_bytes, 4 * 2 * (320 * (32 + 4) + 2 * 4 * (32 + 8) + 16));
  assert_int_equal(spec.arguments.ldc, 2 * 4096);
  assert_int_equal(spec.arguments.ldd, 4096);
}

/* A kernel takes the shared memory that its rings and barriers have, and no more than there is. */
TEST(rooms_of_ring) {
  const at_gemm_kernels *f = FAMILY(sm90_skinny_ring_16b);
  const at_gemm g = problem_of(ATTUNE_BF16, 1, 0, 4096, 3, 4096, 2);
  at_gemm_launch_spec spec;
  at_configuration c = {"rows=16,warps=2x4,step=256,stages=2,splitk=2,early=1"};
  assert_true(f->spec(&spec, &g, &h200, &c));
  assert_int_equal(spec.config.shared_bytes, 2 * (8 * 16 * 576 + 4 * 4 * 576 + 4 * 16));
  assert_int_equal(spec.config.grid[0], 4096 / 32 * 2);
  assert_int_equal(spec.config.grid[1], 2);
  assert_int_equal(spec.config.cluster[0], 2);
  assert_int_equal(spec.config.block[0], 256);
  static const char *const none[] = {
      "rows=16,warps=2x4,step=256,stages=8,splitk=2,early=1", /* more than there is */
      "rows=16,warps=2x4,step=256,stages=1,splitk=2,early=1", "rows=48,warps=2x4,step=256,stages=2,splitk=2,early=1",
      "rows=16,warps=2x3,step=256,stages=2,splitk=2,early=1", "rows=16,warps=2x4,step=96,stages=2,splitk=2,early=1",
      "rows=16,warps=2x4,step=256,stages=2,splitk=3,early=1", "rows=16,warps=2x4,step=256,stages=2,splitk=2,early=17",
      "rows=16,warps=2x4,step=256,stages=2,splitk=2",         "rows=16,warps=2x4,step=256,stages=2,early=1,splitk=2",
      "rows=16,warps=2x16,step=256,stages=2,splitk=2,early=1"};
  for (size_t i = 0; i < AT_COUNT(none); i++) {
    assert_true(at_copy_text(c.text, sizeof c.text, none[i]));
    if (f->spec(&spec, &g, &h200, &c)) fail_msg("%s is taken", c.text);
  }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
