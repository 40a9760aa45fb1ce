/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_ring.c: which problems the family sm90_skinny_ring_16b takes, and how its kernels are launched. Needs no
 * GPU. */
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
