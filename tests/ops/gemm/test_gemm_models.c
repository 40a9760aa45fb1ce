/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_models.c: which problems attune's own GEMM kernels take, which configurations they offer, best guess first,
 * and how these are launched. Needs no GPU. */
#include "tests/support/check.h"

#include "tests/ops/gemm/gemm_problem.h"

#include "ops/gemm/kernels/block_tile.h"
#include "ops/gemm/kernels/skinny_shape.h"

enum { FEW = 8 };

TEST(what_tiny_takes) {
  const at_gemm_kernels *f = FAMILY(sm80_batched_smem);
  at_gemm g = problem_of(ATTUNE_F32, 0, 0, 64, 64, 64, 2);
  assert_true(f->supports(&g, &h200));
  assert_true(f->supports(&g, &a100));
  assert_false(f->supports(&g, &v100));
  g.m = 65;
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 64, 64, 64, 1);
  assert_false(f->supports(&g, &h200));
}

TEST(what_direct_takes) {
  const at_gemm_kernels *f = FAMILY(sm80_batched_reg_16b);
  at_gemm g = problem_of(ATTUNE_BF16, 0, 1, 16, 48, 64, 2);
  assert_true(f->supports(&g, &h200));
  assert_true(f->supports(&g, &a100));
  assert_false(f->supports(&g, &v100));
  g.alignment = 2;
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 16, 16, 16, 100);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 16, 16, 17, 100); /* no multiple of 16 */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 16, 16, 16, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 80, 16, 16, 100);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 82, 16, 16, 1); /* one long side is cut, into multiples of 16 */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F16, 0, 0, 80, 80, 16, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 131072, 64, 64, 1);
  assert_true(f->supports(&g, &h200));
  static at_configuration list[ROOM];
  at_gemm_launch_spec spec;
  assert_true(f->candidates(&g, &h200, list, ROOM, false) > 0);
  assert_true(f->spec(&spec, &g, &h200, &list[0]));
  assert_int_equal(spec.arguments.batch, 2048);
  assert_int_equal(spec.arguments.m, 64);
  assert_int_equal(spec.arguments.stride_a, 64 * 2);
  assert_int_equal(spec.arguments.stride_b, 0);
  assert_int_equal(spec.arguments.stride_d, 64 * 2);
  g = problem_of(ATTUNE_BF16, 0, 0, 16, 96, 32, 1);
  assert_true(f->candidates(&g, &h200, list, ROOM, false) > 0);
  assert_true(f->spec(&spec, &g, &h200, &list[0]));
  assert_int_equal(spec.arguments.batch, 2);
  assert_int_equal(spec.arguments.n, 48);
  assert_int_equal(spec.arguments.stride_a, 0);
  assert_int_equal(spec.arguments.stride_b, 48 * 32 * 2);
}

TEST(what_skinny_takes) {
  const at_gemm_kernels *f = FAMILY(sm80_skinny_reg);
  at_gemm g = problem_of(ATTUNE_BF16, 1, 0, 4096, 64, 4096, 1);
  assert_true(f->supports(&g, &h200));
  assert_false(f->supports(&g, &v100));
  g = problem_of(ATTUNE_BF16, 1, 0, 4096, 65, 4096, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 0, 65, 4096, 4096, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 0, 3, 4096, 4096, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 0, 64, 64, 64, 100); /* sm80_batched_smem's */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 0, 4096, 4, 64, 65536);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 4096, 4, 4096, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 4096, 5, 4096, 1); /* rows' */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F64, 1, 1, 16, 4096, 4096, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 1, 0, 4096, 16, 4096, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 1, 64, 64, 131072, 1); /* hopeless: too few rows; many columns without tensor cores */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 131072, 64, 64, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 131072, 16, 64, 1);
  assert_true(f->supports(&g, &h200));
}

TEST(what_mma_takes) {
  const at_gemm_kernels *f = FAMILY(sm80_mma);
  at_gemm g = problem_of(ATTUNE_BF16, 0, 1, 64, 64, 131072, 1);
  assert_true(f->supports(&g, &h200));
  assert_true(f->supports(&g, &a100));
  assert_false(f->supports(&g, &v100));
  g = problem_of(ATTUNE_F16, 0, 0, 131072, 64, 64, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 64, 64, 64, 100); /* sm80_batched_smem's */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 1, 0, 4096, 3, 4096, 1); /* sm80_skinny_reg's */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 4096, 4096, 4096, 1); /* Hopper has faster instructions for what sums bound */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 1001, 1001, 1001, 1); /* that take no such leading dimensions */
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F64, 0, 0, 4096, 16, 4096, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F64, 0, 0, 512, 512, 512, 1); /* vendors have no faster ones for f64 */
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 4096, 16, 4096, 1); /* TF32 only where the contract says so */
  assert_false(f->supports(&g, &h200));
  g.accuracy = ATTUNE_EQUIVALENT;
  assert_false(f->supports(&g, &h200));
  g.accuracy = ATTUNE_REDUCED;
  assert_true(f->supports(&g, &h200));
}

/* Every problem that is supported has few configurations, all different, all readable, all launchable. */
static void check_offers(const at_gemm_kernels *f, const at_gemm *g, const at_machine *machine) {
  static at_configuration list[ROOM], other = {"form=rows,tile=1"};
  at_gemm_launch_spec spec;
  if (!f->supports(g, machine)) return;
  const int count = f->candidates(g, machine, list, ROOM, false);
  assert_in_range(count, 1, FEW);
  assert_int_equal(f->candidates(g, machine, list, 1, false), 1);
  assert_int_equal(f->candidates(g, machine, list, ROOM, false), count);
  for (int i = 0; i < count; i++) {
    for (int j = 0; j < i; j++) assert_string_not_equal(list[i].text, list[j].text);
    if (!f->spec(&spec, g, machine, &list[i])) fail_msg("%s: %s", f->file, list[i].text);
    const at_jit_config *c = &spec.config;
    assert_true(c->grid[0] > 0 && c->block[0] >= 32 && c->block[0] <= 512 && c->block[0] % 32 == 0);
    assert_true((int)c->shared_bytes <= machine->shared_bytes);
    assert_true(spec.define_count < AT_GEMM_DEFINES);
    if (c->cluster[0]) {
      assert_true(machine->capability >= 90);
      assert_int_equal(c->grid[0] % c->cluster[0], 0);
    }
    at_configuration longer = list[i];
    strcat(longer.text, ",x=1");
    assert_false(f->spec(&spec, g, machine, &longer));
  }
  assert_false(f->spec(&spec, g, machine, &other));
  assert_false(f->spec(&spec, g, machine, &(at_configuration){""}));
}

TEST(what_bf16x6_takes) {
  static at_configuration list[ROOM];
  at_gemm_launch_spec spec;
  const at_gemm_kernels *f = FAMILY(sm90_wgmma_bf16x6);
  at_gemm g = problem_of(ATTUNE_F32, 0, 0, 2048, 2048, 2048, 1);
  assert_false(f->supports(&g, &h200)); /* never for strict */
  g.accuracy = ATTUNE_REDUCED;
  assert_false(f->supports(&g, &h200)); /* TF32 is faster */
  g.accuracy = ATTUNE_EQUIVALENT;
  assert_true(f->supports(&g, &h200));
  assert_false(f->supports(&g, &a100));
  g.dtype = g.dtype_out = ATTUNE_F64;
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 2048, 32, 2048, 1);
  g.accuracy = ATTUNE_EQUIVALENT;
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 300, 300, 300, 1); /* its parts cost more than they save */
  g.accuracy = ATTUNE_EQUIVALENT;
  assert_false(f->supports(&g, &h200));
  /* Six bytes an element and a flag for each 64 x 64, of two operands, with whole tiles. */
  g = problem_of(ATTUNE_F32, 0, 1, 1000, 1000, 1000, 2);
  g.accuracy = ATTUNE_EQUIVALENT;
  assert_true(f->candidates(&g, &h200, list, ROOM, true) == 4);
  for (int i = 0; i < 4; i++) {
    assert_true(f->spec(&spec, &g, &h200, &list[i]));
    assert_true(at_gemm_has_before(f, &spec));
    assert_int_equal(spec.workspace_bytes, 2 * 2 * 16 * 16 * (64 * 64 * 6 + 4));
    assert_int_equal(spec.before.grid[0], 2 * 16 * 16);
    assert_int_equal(spec.before.grid[1], 2);
    assert_int_equal(spec.config.grid[1], 2);
  }
  check_offers(f, &g, &h200);
  g.workspace_cap = spec.workspace_bytes;
  assert_true(f->supports(&g, &h200));
  g.workspace_cap--;
  assert_false(f->supports(&g, &h200));
}

TEST(what_simt_takes) {
  const at_gemm_kernels *f = FAMILY(sm80_simt_f32);
  at_gemm g = problem_of(ATTUNE_F32, 0, 0, 512, 512, 512, 1);
  assert_true(f->supports(&g, &h200));
  assert_true(f->supports(&g, &a100));
  assert_false(f->supports(&g, &v100));
  g.accuracy = ATTUNE_EQUIVALENT;
  assert_true(f->supports(&g, &h200));
  g.accuracy = ATTUNE_REDUCED; /* tensor cores' */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F64, 0, 0, 512, 512, 512, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 512, 512, 512, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 64, 64, 64, 100); /* sm80_batched_smem's */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 1, 0, 4096, 7, 4096, 1); /* sm80_skinny_reg's */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 1, 1, 777, 333, 555, 3);
  g.alignment = 4;
  assert_true(f->supports(&g, &h200));
}

/* A deep product of one tile has a block for each processor, whose sums go to the workspace, as large as it may be. */
TEST(simt_shares_a_long_k) {
  static at_configuration list[ROOM];
  at_gemm_launch_spec spec;
  at_gemm g = problem_of(ATTUNE_F32, 0, 1, 128, 128, 65536, 1);
  assert_true(FAMILY(sm80_simt_f32)->candidates(&g, &h200, list, ROOM, false) > 0);
  assert_true(FAMILY(sm80_simt_f32)->spec(&spec, &g, &h200, &list[0]));
  assert_in_range(spec.config.grid[0] * spec.config.grid[2], 120, 264);
  assert_true(spec.workspace_bytes > 0);
  assert_int_equal(spec.after.grid[0] * spec.after.block[0], 128 * 128);
  g.workspace_cap = 1;
  assert_true(FAMILY(sm80_simt_f32)->candidates(&g, &a100, list, ROOM, false) > 0);
  assert_true(FAMILY(sm80_simt_f32)->spec(&spec, &g, &a100, &list[0]));
  assert_int_equal(spec.workspace_bytes, 0);
  assert_int_equal(spec.after.grid[0], 0);
  assert_int_equal(spec.config.cluster[0], 0);
}

/* Blocks that all find a place at once ask for so much shared memory that no processor takes more of them than
 * others. */
TEST(blocks_keep_apart) {
  static at_configuration list[ROOM];
  at_gemm_launch_spec spec;
  assert_true(2 * at_gemm_spread(132, 1000, &h200) + 2 * 1024 > 228 * 1024);
  assert_true(at_gemm_spread(132, 1000, &h200) <= h200.shared_bytes);
  assert_true(2 * (at_gemm_spread(133, 1000, &h200) + 1024) <= 228 * 1024);
  assert_true(3 * (at_gemm_spread(264, 1000, &h200) + 1024) > 228 * 1024);
  assert_int_equal(at_gemm_spread(132, 200000, &h200), 200000);
  assert_int_equal(at_gemm_spread(100000, 1000, &h200), 1000);
  const at_gemm g = problem_of(ATTUNE_F32, 0, 0, 512, 512, 512, 1);
  assert_true(FAMILY(sm80_simt_f32)->candidates(&g, &h200, list, ROOM, false) > 0);
  assert_true(FAMILY(sm80_simt_f32)->spec(&spec, &g, &h200, &list[0]));
  assert_true(2 * spec.config.shared_bytes + 2 * 1024 > 228 * 1024);
}

/* Where one tile has a long k, blocks share it: in clusters, and beyond these by the workspace, as large as it may
 * be. */
TEST(shares_of_a_long_k) {
  static at_configuration list[ROOM];
  at_gemm_launch_spec spec;
  at_gemm g = problem_of(ATTUNE_BF16, 0, 1, 64, 64, 131072, 1);
  assert_true(FAMILY(sm80_mma)->candidates(&g, &h200, list, ROOM, false) > 0);
  assert_true(FAMILY(sm80_mma)->spec(&spec, &g, &h200, &list[0]));
  const unsigned parts = spec.config.grid[2];
  assert_in_range(spec.config.cluster[0], 2, 8);
  assert_in_range(spec.config.grid[0] * parts, 100, 264);
  if (spec.config.cluster[0] > 2) assert_true(spec.config.grid[0] * parts <= 240); /* clusters that it holds */
  assert_int_equal(spec.workspace_bytes, parts * 64 * 64 * 4);
  assert_int_equal(spec.after.grid[0] * spec.after.block[0], 64 * 64);
  assert_int_equal(spec.after.cluster[0], 0);
  assert_true(FAMILY(sm80_mma)->candidates(&g, &a100, list, ROOM, false) > 0);
  assert_true(FAMILY(sm80_mma)->spec(&spec, &g, &a100, &list[0]));
  assert_int_equal(spec.config.cluster[0], 0);
  assert_true(spec.config.grid[2] > 30);
  g.workspace_cap = 1;
  assert_true(FAMILY(sm80_mma)->candidates(&g, &h200, list, ROOM, false) > 0);
  assert_true(FAMILY(sm80_mma)->spec(&spec, &g, &h200, &list[0]));
  assert_int_equal(spec.workspace_bytes, 0);
  assert_int_equal(spec.config.grid[2], 1);
  assert_int_equal(spec.after.grid[0], 0);
}

TEST(what_rows_takes) {
  const at_gemm_kernels *f = FAMILY(sm80_skinny_mmajor);
  at_gemm g = problem_of(ATTUNE_F32, 0, 0, 4096, 16, 4096, 1);
  assert_true(f->supports(&g, &h200));
  assert_true(f->supports(&g, &a100));
  assert_false(f->supports(&g, &v100));
  g = problem_of(ATTUNE_F32, 1, 0, 4096, 16, 4096, 1); /* the large factor lies along k */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 1, 1, 16, 4096, 4096, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 16, 4096, 4096, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_BF16, 0, 0, 4096, 16, 4096, 1);
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F64, 0, 0, 4096, 8, 4096, 1);
  assert_true(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F64, 0, 0, 4096, 9, 4096, 1); /* more sums than memory gives time for */
  assert_false(f->supports(&g, &h200));
  g = problem_of(ATTUNE_F32, 0, 0, 4096, 65, 4096, 1);
  assert_false(f->supports(&g, &h200));
}

/* Clusters of 4 leave 12 of 132 processors without work: 32 of them take two rounds, which 64 of two blocks do not. */
TEST(clusters_have_fewer_places) {
  assert_true(at_gemm_uneven(&h200, 132, 1) == 1.0);
  assert_true(at_gemm_uneven(&h200, 133, 1) > 1.9);
  assert_true(at_gemm_uneven(&h200, 66, 2) == 1.0);
  assert_true(at_gemm_uneven(&h200, 64, 2) < 1.05);
  assert_true(at_gemm_uneven(&h200, 30, 4) < 1.15);
  assert_true(at_gemm_uneven(&h200, 32, 4) > 2.0);
  assert_true(at_gemm_uneven(&h200, 15, 8) < 1.15);
  assert_true(at_gemm_uneven(&h200, 16, 8) > 2.0);
  assert_true(at_gemm_uneven(&h200, 1, 1) == 132.0);
  const at_machine small = at_machine_make(90, 4, "");
  assert_true(at_gemm_uneven(&small, 1, 8) == 1.0); /* more blocks than processors */
}

/* smNN_TECHNIQUE: a name in a database says which capability its kernels need, at least. */
TEST(names_say_the_architecture) {
  static const int64_t sizes[][4] = {{64, 64, 64, 100}, {4096, 4, 4096, 1}, {4096, 16, 4096, 1}, {1000, 500, 700, 1}};
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_F16, ATTUNE_F8E4M3};
  int named = 0;
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    if (strcmp(one->backend, "cuda") != 0 || strncmp(one->name, "cu", 2) == 0) continue; /* cublas..., cuda_... */
    int number = 0, taken = 0;
    assert_int_equal(sscanf(one->name, "sm%d_", &number), 1);
    attune_device device = {.properties = {.processors = 132}};
    for (size_t c = 0; c < AT_COUNT(sizes) * AT_COUNT(dtypes) * 6; c++) {
      const int64_t *of = sizes[c % AT_COUNT(sizes)];
      const int way = (int)(c / AT_COUNT(sizes) / AT_COUNT(dtypes));
      at_gemm g = problem_of(dtypes[c / AT_COUNT(sizes) % AT_COUNT(dtypes)], way & 1, 0, of[0], of[1], of[2], of[3]);
      g.accuracy = (uint8_t)(way % 3);
      device.properties.capability_major = number / 10, device.properties.capability_minor = number % 10;
      taken += one->supports(one, &g, &device);
      device.properties.capability_major = (number - 1) / 10, device.properties.capability_minor = (number - 1) % 10;
      if (one->supports(one, &g, &device))
        fail_msg("%s takes %dx%dx%d below its capability", one->name, (int)g.m, (int)g.n, (int)g.k);
    }
    if (!taken) fail_msg("%s takes nothing at its capability", one->name);
    named++;
  }
  assert_true(named > 0);
}

TEST(every_problem_is_offered_something) {
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_F64, ATTUNE_F16, ATTUNE_BF16};
  static const int64_t small[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 40, 47, 48, 49, 63, 64},
                       large[] = {65, 100, 1000, 4096, 28672, 1000000};
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (int t = 0; t < 4; t++)
      for (size_t i = 0; i < AT_COUNT(small); i++) {
        for (size_t j = (i + (size_t)t) % 5; j < AT_COUNT(small); j += 5) {
          const at_gemm g =
              problem_of(dtypes[d], t & 1, t >> 1, small[i], small[j], small[(i + j) % AT_COUNT(small)], 77);
          check_offers(FAMILY(sm80_batched_smem), &g, &h200);
          check_offers(FAMILY(sm80_batched_smem), &g, &a100);
          check_offers(FAMILY(sm80_batched_reg_16b), &g, &h200);
          check_offers(FAMILY(sm80_batched_reg_16b), &g, &a100);
        }
        for (size_t j = 0; j < AT_COUNT(large); j++) {
          const at_gemm g = problem_of(dtypes[d], t & 1, t >> 1, large[j], small[i], large[(i + j) % 5],
                                       1 + (int64_t)j % 2),
                        h = problem_of(dtypes[d], t & 1, t >> 1, small[i], large[j], small[(i + j) % 5], 1);
          check_offers(FAMILY(sm80_skinny_mmajor), &g, &h200);
          check_offers(FAMILY(sm80_skinny_mmajor), &h, &h200);
          check_offers(FAMILY(sm80_skinny_mmajor), &g, &a100);
          check_offers(FAMILY(sm80_skinny_reg), &g, &h200);
          check_offers(FAMILY(sm80_skinny_reg), &h, &h200);
          check_offers(FAMILY(sm80_skinny_reg), &g, &a100);
          check_offers(FAMILY(sm90_skinny_ring_16b), &g, &h200);
          check_offers(FAMILY(sm90_skinny_ring_16b), &h, &h200);
          const at_gemm f8 = problem_of(ATTUNE_F8E4M3, t & 1, t >> 1, large[j], small[i], large[(i + j) % 5] / 16 * 16,
                                        1 + (int64_t)j % 2);
          check_offers(FAMILY(sm90_skinny_ring_8b), &f8, &h200);
          if ((i + j) % 4 != 0) continue;
          check_offers(FAMILY(sm80_mma), &g, &h200);
          check_offers(FAMILY(sm80_mma), &h, &a100);
          if ((i + j) % 12 == 0) check_offers(FAMILY(sm90_wgmma_16b), &g, &h200);
          if ((i + j) % 12 == 4) check_offers(FAMILY(sm90_wgmma_16b), &h, &h200);
          check_offers(FAMILY(sm80_simt_f32), &g, &h200);
          check_offers(FAMILY(sm80_simt_f32), &h, &a100);
        }
      }
}

/* Candidates include the configurations that were fastest on an H200. */
TEST(the_best_are_tried) {
  const struct {
    const at_gemm_kernels *family;
    attune_dtype dtype;
    int ta;
    int64_t m, n, k, batch;
    const char *best;
  } known[] = {
      {FAMILY(sm80_batched_smem), ATTUNE_F32, 0, 16, 16, 16, 16384, "tile=4x4,teams=4,stages=1,grid=whole"},
      {FAMILY(sm80_batched_smem), ATTUNE_F16, 0, 32, 32, 32, 16384, "tile=32x16,teams=4,stages=1,grid=whole"},
      {FAMILY(sm80_batched_smem), ATTUNE_BF16, 0, 64, 64, 64, 4096, "tile=32x16,teams=1,stages=1,grid=whole"},
      {FAMILY(sm80_batched_reg_16b), ATTUNE_F16, 0, 32, 32, 32, 16384, "tile=32x32,teams=4,blocks=5"},
      {FAMILY(sm80_batched_reg_16b), ATTUNE_BF16, 0, 64, 64, 64, 4096, "tile=32x32,teams=1,blocks=5"},
      {FAMILY(sm80_skinny_mmajor), ATTUNE_F32, 0, 4096, 16, 4096, 1,
       "lanes=16,columns=16,warps=1x16,splitk=2,ahead=4,chunk=8,rooms=0"},
      {FAMILY(sm80_skinny_mmajor), ATTUNE_F32, 0, 4096, 8, 4096, 1,
       "lanes=8,columns=8,warps=2x8,splitk=2,ahead=8,chunk=32,rooms=0"},
      {FAMILY(sm80_skinny_mmajor), ATTUNE_F32, 0, 4096, 4, 4096, 1,
       "lanes=8,columns=4,warps=1x8,splitk=1,ahead=16,chunk=64,rooms=0"},
      {FAMILY(sm80_skinny_mmajor), ATTUNE_F32, 0, 4096, 1, 4096, 1,
       "lanes=8,columns=1,warps=1x16,splitk=1,ahead=8,chunk=128,rooms=0"},
      {FAMILY(sm80_skinny_mmajor), ATTUNE_F32, 0, 262144, 16, 64, 1,
       "lanes=16,columns=16,warps=4x1,splitk=1,ahead=4,chunk=8,rooms=0"},
      {FAMILY(sm80_skinny_mmajor), ATTUNE_F64, 0, 4096, 8, 4096, 1,
       "lanes=16,columns=8,warps=2x4,splitk=2,ahead=16,chunk=32,rooms=0"},
      {FAMILY(sm80_simt_f32), ATTUNE_F32, 0, 512, 512, 512, 1,
       "tile=64x32,step=64,warps=1x1,along=8,lanes=8,stages=3,splitk=1,parts=1,bound=0"},
      {FAMILY(sm80_simt_f32), ATTUNE_F32, 0, 1024, 1024, 1024, 1,
       "tile=128x64,step=32,warps=4x1,along=2,lanes=4,stages=3,splitk=1,parts=1,bound=0"},
      {FAMILY(sm80_mma), ATTUNE_F32, 0, 4096, 16, 4096, 1,
       "tile=32x16,step=64,warps=2x1,along=2,stages=10,splitk=1,parts=1,pads=0,early=0"},
      {FAMILY(sm80_simt_f32), ATTUNE_F32, 0, 2048, 2048, 2048, 1,
       "tile=256x128,step=8,warps=4x2,along=1,lanes=8,stages=3,splitk=1,parts=1,bound=1"},
      {FAMILY(sm80_skinny_reg), ATTUNE_BF16, 1, 6144, 1, 4096, 1,
       "form=depth,columns=1,per=4,warps=2x2,splitk=1,ahead=2"},
      {FAMILY(sm90_skinny_ring_16b), ATTUNE_BF16, 1, 4096, 8, 4096, 1,
       "rows=16,warps=2x4,step=128,stages=3,splitk=1,early=2"},
      {FAMILY(sm90_skinny_ring_16b), ATTUNE_BF16, 1, 2048, 16, 8192, 1,
       "rows=16,warps=2x4,step=128,stages=3,splitk=2,early=2"},
      {FAMILY(sm90_skinny_ring_16b), ATTUNE_BF16, 1, 1024, 8, 2816, 16,
       "rows=16,warps=8x2,step=128,stages=2,splitk=1,early=1"},
      {FAMILY(sm90_skinny_ring_8b), ATTUNE_F8E4M3, 1, 4096, 1, 7168, 1,
       "rows=16,warps=1x4,step=512,stages=2,splitk=1,early=1"},
      {FAMILY(sm90_skinny_ring_8b), ATTUNE_F8E4M3, 1, 28672, 32, 8192, 1,
       "rows=32,warps=8x1,step=256,stages=2,splitk=1,early=1"},
      {FAMILY(sm80_skinny_reg), ATTUNE_F32, 1, 4096, 8, 4096, 1,
       "form=depth,columns=8,per=4,warps=8x1,splitk=1,ahead=4"},
      {FAMILY(sm90_wgmma_16b), ATTUNE_BF16, 1, 4096, 64, 4096, 1,
       "tile=64x64,deep=2,stages=6,groups=1,splitk=2,parts=1,cluster=1x1,band=8,blocks=1,early=0,late=0,kept=1,turned="
       "0"},
      {FAMILY(sm90_wgmma_16b), ATTUNE_BF16, 1, 4096, 32, 14336, 1,
       "tile=64x32,deep=2,stages=9,groups=1,splitk=2,parts=1,cluster=1x1,band=8,blocks=1,early=2,late=1,kept=2,turned="
       "0"},
      {FAMILY(sm90_wgmma_16b), ATTUNE_BF16, 0, 131072, 64, 64, 1,
       "tile=256x64,deep=1,stages=5,groups=2,splitk=1,parts=1,cluster=1x1,band=8,blocks=1,early=1,late=1,kept=0,turned="
       "0"},
      {FAMILY(sm90_wgmma_16b), ATTUNE_BF16, 0, 512, 512, 512, 1,
       "tile=64x64,deep=2,stages=4,groups=1,splitk=1,parts=1,cluster=1x1,band=8,blocks=1,early=2,late=0,kept=0,turned="
       "0"},
  };
  for (size_t i = 0; i < AT_COUNT(known); i++) {
    static at_configuration list[ROOM];
    at_gemm g = problem_of(known[i].dtype, known[i].ta, 0, known[i].m, known[i].n, known[i].k, known[i].batch);
    if (known[i].family == FAMILY(sm80_mma) && g.dtype == ATTUNE_F32) g.accuracy = ATTUNE_REDUCED;
    const int count = known[i].family->candidates(&g, &h200, list, ROOM, false);
    bool found = false;
    for (int c = 0; c < count; c++) found = found || strcmp(list[c].text, known[i].best) == 0;
    if (!found) fail_msg("%s is not tried; %s is the first of %d", known[i].best, list[0].text, count);
  }
}

/* Where few rows share a long k, those tried elsewhere would leave most of the device idle: others are, too. */
TEST(few_rows_of_a_long_k) {
  static at_configuration list[ROOM];
  const at_gemm g = problem_of(ATTUNE_F64, 1, 0, 999, 1, 5001, 1);
  (void)FAMILY(sm80_skinny_reg)->candidates(&g, &h200, list, ROOM, false);
  assert_string_equal(list[0].text, "form=depth,columns=1,per=8,warps=1x8,splitk=1,ahead=2");
}

/* The arguments are bytes, and A and B change places where m is the small size. */
TEST(arguments) {
  static at_configuration list[ROOM];
  at_gemm_launch_spec spec;
  at_gemm g = problem_of(ATTUNE_F64, 0, 1, 3, 4000, 500, 2);
  g.lda = 5, g.ldb = 4001, g.ldd = 7;
  char a, b, c, d;
  const at_gemm_operands o = {.alpha = 2, .a = &a, .b = &b, .beta = 3, .c = &c, .d = &d};
  assert_true(FAMILY(sm80_skinny_reg)->candidates(&g, &h200, list, ROOM, false) > 0);
  assert_true(FAMILY(sm80_skinny_reg)->spec(&spec, &g, &h200, &list[0]));
  at_gemm_arguments *x = &spec.arguments;
  at_gemm_bind(x, &g, spec.swapped, &o);
  assert_true(spec.swapped);
  assert_int_equal(x->m, 4000);
  assert_int_equal(x->n, 3);
  assert_int_equal(x->lda, 8 * 4001);
  assert_int_equal(x->ldb, 8 * 5);
  assert_int_equal(x->ldd, 8 * 7);
  assert_ptr_equal(x->a, &b);
  assert_ptr_equal(x->b, &a);
  assert_ptr_equal(x->d, &d);
  assert_true(x->beta == 0.0); /* no C */
  g.c = AT_C_SEPARATE;
  at_gemm_bind(x, &g, false, &o);
  assert_ptr_equal(x->a, &a);
  assert_ptr_equal(x->c, &c);
  assert_true(x->beta == 3.0);
}

TEST(grains) {
  at_gemm g = problem_of(ATTUNE_F32, 0, 0, 64, 64, 64, 2);
  assert_int_equal(at_gemm_grain(&g, 4, 64, 64, 4096), 16);
  assert_int_equal(at_gemm_grain(&g, 4, 64, 66, 4096), 8);
  assert_int_equal(at_gemm_grain(&g, 4, 1, 65, 4096), 16);
  assert_int_equal(at_gemm_grain(&g, 4, 64, 64, 4097), 4);
  assert_int_equal(at_gemm_grain(&g, 2, 64, 65, 0), 2);
  g.alignment = 8;
  assert_int_equal(at_gemm_grain(&g, 4, 64, 64, 4096), 8);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
