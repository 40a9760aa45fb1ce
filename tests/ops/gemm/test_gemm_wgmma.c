/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_wgmma.c: which problems the family sm90_wgmma_16b takes, and how its kernels are launched: maps of tensors,
 * places, copies. Needs no GPU. */
#include "tests/support/check.h"

#include "tests/ops/gemm/gemm_problem.h"

TEST(what_wgmma_takes) {
  const at_gemm_kernels *f = FAMILY(sm90_wgmma_16b);
  at_gemm g = problem_of(ATTUNE_BF16, 1, 0, 4096, 64, 4096, 1);
  assert_true(f->supports(&g, &h200));
  assert_false(f->supports(&g, &a100));
  const at_machine b200 = at_machine_make(100, 148, ""); /* has no such instructions */
  assert_false(f->supports(&g, &b200));
  g.dtype_out = ATTUNE_F32;
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 1, 0, 4096, 64, 4096, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 4096, 7, 4096, 1); /* sm80_skinny_reg's */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 64, 64, 64, 100); /* sm80_batched_smem's */
  assert_false(f->supports(&g, &h200));
  /* Lines and matrices begin at multiples of 16 bytes, or else large ones are copied. */
  g = problem_of(ATTUNE_F16, 0, 0, 1000, 1001, 1000, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 301, 300, 304, 1);
  assert_false(f->supports(&g, &h200));
  g.lda = 304;
  assert_true(f->supports(&g, &h200));
  g.alignment = 8;
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 1001, 1000, 1000, 1);
  assert_true(f->supports(&g, &h200));
  g.workspace_cap = 1000 * 1001 * 2;
  assert_false(f->supports(&g, &h200));
  g.workspace_cap = 1000 * 1024 * 2;
  assert_true(f->supports(&g, &h200));
  g.alignment = 2; /* B too */
  assert_false(f->supports(&g, &h200));
  g.workspace_cap = ATTUNE_WORKSPACE_DEFAULT;
  assert_true(f->supports(&g, &h200));
  g.alignment = 1;
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 128, 128, 128, 3);
  assert_true(f->supports(&g, &h200));
  g.stride_b += 4;
  assert_false(f->supports(&g, &h200));
  g.stride_b = 0;
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 1000, 8, 1, 1); /* one column needs no distance to the next */
  g.lda = 1001, g.ldb = 8;
  assert_true(f->supports(&g, &h200));
}

/* Tensor maps describe the matrices as they lie, in boxes of a step's tile or of a block's share of it. */
TEST(maps_of_wgmma) {
  static const char
      *const plain = "tile=128x96,deep=2,stages=3,groups=2,splitk=1,parts=1,cluster=1x1,band=8,blocks=1,early=0,late=0,"
                     "kept=0,turned=0",
             *const shared = "tile=128x64,deep=1,stages=4,groups=2,splitk=1,parts=1,cluster=2x4,band=8,"
                             "blocks=1,early=0,late=0,kept=2,turned=1";
  at_configuration text = {""};
  at_gemm_launch_spec r;
  at_gemm g = problem_of(ATTUNE_BF16, 1, 0, 300, 200, 1000, 5);
  g.ldb = 1008, g.stride_b = 0;
  at_copy_text(text.text, sizeof text.text, plain);
  assert_true(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &h200, &text));
  assert_true(r.mapped && !r.swapped);
  const at_tensor_shape *x = &r.maps[0], *y = &r.maps[1];
  assert_true(x->length == 1000 && x->lines == 300 && x->count == 5 && x->bfloat);
  assert_true(x->line_bytes == 2000 && x->matrix_bytes == 600000 && x->box_length == 64 && x->box_lines == 128);
  assert_true(y->length == 1000 && y->lines == 200 && y->count == 1 && y->line_bytes == 2016 && y->box_lines == 96);
  assert_int_equal(r.config.grid[0], 3 * 3 * 5); /* tiles, fewer than processors */
  assert_int_equal(r.config.block[0], 288);
  g = problem_of(ATTUNE_F16, 0, 0, 2000, 3000, 640, 1);
  at_copy_text(text.text, sizeof text.text, shared);
  assert_true(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &h200, &text));
  assert_true(r.swapped); /* X is B, along k: its 128 rows come from 4 blocks; Y is A, along m: its 64 of k from 2 */
  assert_true(x->length == 640 && x->lines == 3000 && x->box_lines == 32 && !x->bfloat);
  assert_true(y->length == 2000 && y->lines == 640 && y->box_lines == 32);
  assert_int_equal(r.arguments.m, 3000);
  assert_int_equal(r.config.cluster[0], 8);
  assert_int_equal(r.config.grid[0], 15 * 8); /* clusters that an H200 holds */
}

/* A stored or guessed configuration with one place for steps: only where there is one step, for others would wait for
 * ever. */
TEST(places_of_wgmma) {
  at_configuration text = {""};
  at_gemm_launch_spec r;
  for (int k = 8; k <= 5312; k += 664) {
    const at_gemm g = problem_of(ATTUNE_F16, 0, 0, 10, 200, k, 1);
    for (int stages = 1; stages <= 2; stages++) {
      snprintf(
          text.text, sizeof text.text,
          "tile=64x16,deep=2,stages=%d,groups=1,splitk=1,parts=1,cluster=1x1,band=8,blocks=1,early=0,late=0,kept=0,"
          "turned=1",
          stages);
      assert_int_equal(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &h200, &text), stages > 1 || k <= 128);
    }
  }
}

/* Copies in the workspace: X, then Y, then the sums of parts; nothing is asked for early, for it is not there. */
TEST(copies_of_wgmma) {
  static at_configuration list[ROOM];
  at_configuration text = {""};
  at_gemm_launch_spec r;
  at_gemm g = problem_of(ATTUNE_BF16, 0, 0, 999, 1001, 1003, 2);
  assert_true(FAMILY(sm90_wgmma_16b)->candidates(&g, &h200, list, ROOM, false) > 1);
  assert_true(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &h200, &list[0]));
  assert_true(at_gemm_has_before(FAMILY(sm90_wgmma_16b), &r));
  const int x = r.swapped ? 1 : 0, bytes_a = 2 * 1003 * 2048, bytes_b = 2 * 1001 * 2048;
  assert_true(r.copied[0] && r.copied[1]);
  assert_true(r.maps[x].length == 999 && r.maps[x].line_bytes == 2048 && r.maps[x].matrix_bytes == 1003 * 2048);
  assert_true(r.maps[!x].length == 1003 && r.maps[!x].line_bytes == 2048 && r.maps[!x].count == 2);
  assert_int_equal(r.places[0], 0);
  assert_int_equal(r.places[1], ((x ? bytes_b : bytes_a) + 255) / 256 * 256);
  assert_int_equal(r.before.grid[0], (2 * 1003 * 125 + 1023) / 1024 + (2 * 1001 * 126 + 1023) / 1024);
  /* One of them alone, of which all the batch has the same; parts' sums come behind it. */
  g = problem_of(ATTUNE_BF16, 1, 0, 64, 128, 16001, 1);
  g.ldb = 16008;
  at_copy_text(text.text, sizeof text.text,
               "tile=64x128,deep=1,stages=4,groups=1,splitk=1,parts=4,cluster=1x1,band=8,blocks=1,early=0,late=0,kept="
               "0,turned=0");
  assert_true(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &h200, &text));
  assert_true(r.copied[0] && !r.copied[1]);
  assert_true(r.maps[0].line_bytes == 32128 && r.maps[1].line_bytes == 32016 && r.maps[0].length == 16001);
  assert_int_equal(r.workspace_bytes, (64 * 32128 + 255) / 256 * 256 + 4 * 64 * 128 * 4);
  at_copy_text(text.text, sizeof text.text,
               "tile=64x128,deep=1,stages=4,groups=1,splitk=1,parts=4,cluster=1x1,band=8,blocks=1,early=1,late=1,kept="
               "0,turned=0");
  assert_false(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &h200, &text));
  g.lda = 16008;
  assert_true(FAMILY(sm90_wgmma_16b)->spec(&r, &g, &h200, &text));
  assert_false(r.copied[0] || at_gemm_has_before(FAMILY(sm90_wgmma_16b), &r));
}

/* Shapes that no tensor map can have. */
TEST(shapes_of_tensors) {
  const at_tensor_shape good = {100, 50, 3, 208, 16000, 64, 256, true};
  assert_true(at_tensor_shape_fits(&good));
#define REFUSED(CHANGE)                     \
  do {                                      \
    at_tensor_shape s = good;               \
    CHANGE;                                 \
    assert_false(at_tensor_shape_fits(&s)); \
  } while (0)
  REFUSED(s.line_bytes = 200);
  REFUSED(s.line_bytes = 0);
  REFUSED(s.matrix_bytes = 16008);
  REFUSED(s.matrix_bytes = (int64_t)1 << 40);
  REFUSED(s.box_lines = 257);
  REFUSED(s.box_length = 72);
  REFUSED(s.box_length = 60);
  REFUSED(s.length = 0);
#undef REFUSED
  at_tensor_shape one = good;
  one.lines = one.count = 1, one.line_bytes = 7, one.matrix_bytes = 0;
  assert_true(at_tensor_shape_fits(&one));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
