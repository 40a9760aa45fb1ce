/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_offers.c: what attune's own GEMM kernels offer on an H200, for many problems: each family's configurations
 * in their order, few and wide, and how each is launched, in one number a family. A change of a model, a tunable or a
 * table that is meant to change nothing leaves the numbers as they are; one that is meant to changes those of its
 * family here, and a configuration that means other code raises its version too. With --print: all of them as text, to
 * compare with those of the commit before. Needs no GPU. */
#include "tests/support/check.h"

#include "tests/ops/gemm/gemm_cases.h"
#include "tests/ops/gemm/gemm_problem.h"

enum { MOST = 256 };

static bool prints;

typedef struct total {
  uint64_t hash;
  int problems, offers;
} total;

/* FNV-1a. */
static void mix(total *t, const char *text) {
  for (; *text; text++) t->hash = (t->hash ^ (unsigned char)*text) * 0x100000001b3;
}

static void mix_grid(char *out, size_t size, size_t *at, const at_jit_config *c) {
  assert_true(at_append(out, size, at, " %ux%ux%u/%u/%u/%u/%d", c->grid[0], c->grid[1], c->grid[2], c->block[0],
                        c->cluster[0], c->shared_bytes, c->dependent));
}

static void mix_spec(total *t, const at_gemm_launch_spec *r) {
  char line[2048] = "";
  size_t at = 0;
  for (int i = 0; i < r->define_count; i++)
    assert_true(at_append(line, sizeof line, &at, " %s=%d", r->defines[i].name, r->defines[i].value));
  mix_grid(line, sizeof line, &at, &r->config);
  mix_grid(line, sizeof line, &at, &r->before);
  mix_grid(line, sizeof line, &at, &r->after);
  assert_true(at_append(line, sizeof line, &at, " %d %d %d %zu\n", r->before_defines, r->stays, r->swapped,
                        r->workspace_bytes));
  mix(t, line);
  if (prints) printf("   %s", line);
}

static void add_problem(total *t, const at_gemm_kernels *f, const at_gemm *g, const at_machine *machine) {
  static at_configuration list[MOST];
  at_gemm_launch_spec spec;
  if (!f->supports(g, machine)) return;
  t->problems++;
  if (prints)
    printf("%s %d %d%d %lldx%lldx%lldx%lld align %d c %d\n", f->file, g->dtype, g->trans_a, g->trans_b, (long long)g->m,
           (long long)g->n, (long long)g->k, (long long)g->batch, g->alignment, g->c);
  for (int wide = 0; wide < 2; wide++) {
    const int count = f->candidates(g, machine, list, MOST, wide);
    for (int i = 0; i < count; i++, t->offers++) {
      mix(t, list[i].text);
      if (prints) printf("%d: %s\n", wide, list[i].text);
      assert_true(f->spec(&spec, g, machine, &list[i]));
      if (!wide || i % 16 == 0) mix_spec(t, &spec);
    }
  }
}

static const int64_t sizes[][4] = {
    {1, 4096, 4096, 1},   {4096, 1, 4096, 1},   {4096, 3, 4096, 1},  {6144, 8, 4096, 1},    {4096, 16, 14336, 1},
    {28672, 16, 4096, 1}, {4096, 32, 14336, 1}, {33, 5000, 777, 1},  {4096, 64, 4096, 1},   {1024, 8, 2816, 16},
    {64, 64, 131072, 1},  {131072, 64, 64, 1},  {512, 512, 512, 1},  {999, 1001, 1003, 1},  {300, 300, 300, 3},
    {6144, 128, 4096, 1}, {2048, 2048, 512, 1}, {100, 9, 100000, 1}, {1024, 1024, 128, 32}, {16, 16, 16, 16384},
    {32, 48, 64, 4096},   {23, 24, 25, 1000},   {64, 64, 64, 50},    {80, 16, 48, 1},       {10, 10, 10, 2},
    {200, 120, 40, 7},    {8192, 4096, 2048, 1}};

static const attune_dtype dtypes[][2] = {
    {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F64, ATTUNE_F64}, {ATTUNE_BF16, ATTUNE_BF16}, {ATTUNE_F16, ATTUNE_F32}};

static void add_accuracies(total *t, const at_gemm_kernels *f, at_gemm g, const at_machine *machine) {
  for (int accuracy = ATTUNE_STRICT; accuracy <= ATTUNE_REDUCED; accuracy++) {
    if (accuracy > ATTUNE_STRICT && g.dtype != ATTUNE_F32) break;
    g.accuracy = (uint8_t)accuracy;
    add_problem(t, f, &g, machine);
  }
}

static total total_of(const at_gemm_kernels *f, const at_machine *machine) {
  total t = {.hash = 0xcbf29ce484222325};
  for (size_t d = 0; d < AT_COUNT(dtypes); d++)
    for (size_t i = 0; i < AT_COUNT(sizes); i++)
      for (int way = 0; way < 4; way++) {
        const int64_t *s = sizes[i];
        at_gemm g = problem_of(dtypes[d][0], way & 1, way >> 1, s[0], s[1], s[2], s[3]);
        g.dtype_out = (uint8_t)dtypes[d][1];
        if ((i + (size_t)way) % 3 == 1) g.c = AT_C_INPLACE, g.ldc = g.ldd, g.stride_c = g.stride_d;
        if ((i + (size_t)way) % 5 == 2) g.alignment = 4, g.lda += 1;
        if ((i + (size_t)way) % 7 == 3) g.workspace_cap = 1 << 16;
        add_accuracies(&t, f, g, machine);
      }
  return t;
}

static const struct {
  const at_implementation *implementation;
  int problems, offers;
  uint64_t hash;
} known[] = {
    {&at_gemm_sm80_batched_smem, 120, 3838, 0xb9b3fbd9475828f8},
    {&at_gemm_sm80_batched_reg_16b, 40, 536, 0xc566df666c104eb1},
    {&at_gemm_sm80_skinny_mmajor, 82, 5874, 0xe40a9a38f4bea7a7},
    {&at_gemm_sm80_skinny_reg, 200, 14064, 0x3c171df3b08878e4},
    {&at_gemm_sm90_skinny_ring_16b, 14, 3654, 0xa97da1d620f8ae77},
    {&at_gemm_sm80_mma, 268, 20991, 0x8f564543e2d66140},
    {&at_gemm_sm80_simt_f32, 152, 5558, 0x473bb22d8f5fd941},
    {&at_gemm_sm90_wgmma_bf16x6, 19, 133, 0xb14b99b0f1a22571},
    {&at_gemm_sm90_wgmma_16b, 134, 33175, 0x2e1c14906594fc7c},
};

TEST(check_h200) {
  bool right = true;
  for (size_t i = 0; i < AT_COUNT(known); i++) {
    const total t = total_of(at_gemm_kernels_of(known[i].implementation), &h200);
    const bool as_known = t.hash == known[i].hash && t.offers == known[i].offers && t.problems == known[i].problems;
    if (!as_known)
      print_message("{&at_gemm_%s, %d, %d, 0x%016llx},\n", known[i].implementation->name, t.problems, t.offers,
                    (unsigned long long)t.hash);
    right = right && as_known;
  }
  assert_true(right);
}

/* Each family but bf16x6, which strict problems have no use for, has some of the cases that implementations must get
 * right. */
TEST(each_family_has_cases) {
  const at_implementation *const all[] = {&at_gemm_sm80_batched_smem,    &at_gemm_sm80_batched_reg_16b,
                                          &at_gemm_sm80_skinny_mmajor,   &at_gemm_sm80_skinny_reg,
                                          &at_gemm_sm90_skinny_ring_16b, &at_gemm_sm80_mma,
                                          &at_gemm_sm90_wgmma_16b,       &at_gemm_sm80_simt_f32};
  for (size_t f = 0; f < AT_COUNT(all); f++) {
    int cases = 0;
    for (int index = 0; index < at_gemm_case_count(); index++) {
      at_gemm_case c;
      at_gemm g;
      bool swap;
      at_gemm_case_at(index, &c);
      const at_gemm_use use = {.c = c.c, .alignment = (uint8_t)c.alignment};
      if (at_gemm_normalise(&c.problem, use, &g, &swap) != ATTUNE_OK || at_gemm_empty(&g) || g.k == 0) continue;
      if (at_gemm_complex(g.dtype)) continue;
      cases += at_gemm_kernels_of(all[f])->supports(&g, &h200);
    }
    print_message("%s: %d cases\n", all[f]->name, cases);
    assert_true(cases > 0);
  }
}

int main(int argc, char **argv) {
  prints = argc > 1 && strcmp(argv[1], "--print") == 0;
#if !defined(__x86_64__) || defined(__FMA__)
  if (!prints)
    return skip_all("multiplications and additions may be fused here, and guesses of equal cost change places");
#endif
  return RUN_TESTS(NULL, NULL);
}
