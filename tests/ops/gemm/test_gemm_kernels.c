/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_kernels.c: attune's own GEMM kernels compile for every architecture that we care for, without spilling what
 * counts: the configurations that a search can choose, of many problems. Needs no GPU. One of many in turn
 * (ATTUNE_TEST_EVERY: of so many); with ATTUNE_TEST_ALL all of them. What is the same text for the same architecture is
 * compiled once. */
#include "tests/support/check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ops/gemm/batched/copy_arrays.h"
#include "ops/gemm/epilogue/pass.h"
#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"

#define FAMILY(NAME) at_gemm_kernels_of(&at_gemm_##NAME)

static const struct {
  const char *name;
  int capability, processors;
} targets[] = {{"sm_80", 80, 108}, {"sm_90a", 90, 132}, {"sm_100", 100, 148}, {"sm_120", 120, 170}};

static at_machine machine_of(size_t target) {
  return at_machine_make(targets[target].capability, targets[target].processors, "");
}

/* Bytes: some kernels keep pointers in memory around their loops. */
enum { SPILL_MOST = 64 };
static int spilled;

/* The texts that were compiled, by their hashes; 0: a free place. */
enum { TEXTS = 1 << 16 };
static uint64_t compiled[TEXTS];

static bool is_new(const char *text, size_t target) {
  const uint64_t hash = XXH3_64bits_withSeed(text, strlen(text), target) | 1;
  size_t at = (size_t)(hash >> 20) % TEXTS;
  while (compiled[at] != 0 && compiled[at] != hash) at = (at + 1) % TEXTS;
  if (compiled[at] == hash) return false;
  compiled[at] = hash;
  return true;
}

/* Registers; 0 when this compiler does not know the architecture, or the text was compiled before. */
static int compile(const at_gemm_kernels *family, const at_gemm_launch_spec *spec, bool before, size_t target,
                   const char *what) {
  char *text = NULL, *report = NULL;
  at_architecture architecture;
  at_kernel_code code = {NULL, 0};
  OK(at_gemm_text(&text, family, spec, before));
  if (!is_new(text, target)) {
    free(text);
    return 0;
  }
  const at_kernel_source source = {.file = family->file, .text = text, .entry = family->entry};
  snprintf(architecture.name, sizeof architecture.name, "%s", targets[target].name);
  const attune_status status = at_kernel_compile(&code, &source, &architecture, &report);
  free(text);
  if (status == ATTUNE_UNSUPPORTED) return 0;
  if (status != ATTUNE_OK) fail_msg("%s for %s: %s", what, targets[target].name, attune_last_message());
  for (const char *at = report; at && (at = strstr(at, "bytes spill stores")); at++) {
    const char *number = at - 2;
    while (number > report && number[-1] >= '0' && number[-1] <= '9') number--;
    if (atoi(number) > SPILL_MOST) {
      print_message("%s for %s spills: %.24s\n", what, targets[target].name, at - 8);
      spilled++;
    }
  }
  const char *used = report ? strstr(report, "Used ") : NULL;
  const int registers = used ? atoi(used + 5) : 1;
  free(report);
  at_kernel_code_free(&code);
  return registers;
}

static at_gemm problem_of(attune_dtype in, attune_dtype out, int ta, int tb, int64_t m, int64_t n, int64_t k,
                          int64_t batch, at_gemm_c c, int alignment) {
  at_gemm g = {.m = m, .n = n, .k = k, .batch = batch, .dtype = (uint8_t)in, .dtype_out = (uint8_t)out};
  g.trans_a = (uint8_t)ta, g.trans_b = (uint8_t)tb, g.c = (uint8_t)c, g.alignment = (uint8_t)alignment;
  g.workspace_cap = ATTUNE_WORKSPACE_DEFAULT;
  g.lda = at_gemm_rows_a(&g), g.ldb = at_gemm_rows_b(&g), g.ldd = m, g.ldc = c ? m : 0;
  if (batch > 1) g.stride_a = m * k, g.stride_b = k * n, g.stride_d = m * n, g.stride_c = c ? m * n : 0;
  return g;
}

static const attune_dtype kinds[][2] = {{ATTUNE_F32, ATTUNE_F32},
                                        {ATTUNE_F64, ATTUNE_F64},
                                        {ATTUNE_F16, ATTUNE_F16},
                                        {ATTUNE_BF16, ATTUNE_BF16},
                                        {ATTUNE_BF16, ATTUNE_F32}};
static const int64_t tiny_sizes[][3] = {{8, 8, 8},    {16, 16, 16}, {32, 32, 32}, {48, 48, 48}, {64, 64, 64},
                                        {15, 33, 63}, {64, 16, 8},  {16, 64, 64}, {3, 5, 7}};
static const int64_t skinny_sizes[][3] = {{4096, 1, 4096},  {4096, 3, 4096},  {4096, 16, 4096}, {2, 4096, 4096},
                                          {8, 4096, 14336}, {4096, 64, 4096}, {33, 1001, 1003}, {999, 5, 77}};

static const int64_t mma_sizes[][3] = {{64, 64, 131072}, {131072, 64, 64}, {4096, 8, 4096},   {4096, 64, 4096},
                                       {16, 4096, 4096}, {512, 512, 512},  {999, 1001, 1003}, {77, 300, 1000}};

static const int64_t wgmma_sizes[][3] = {{64, 64, 131072},   {131072, 64, 64}, {4096, 64, 4096},   {28672, 16, 4096},
                                         {512, 512, 512},    {24, 4096, 4096}, {4096, 1000, 4096}, {1024, 1024, 128},
                                         {4096, 4096, 4096}, {333, 200, 1000}};
static const int64_t simt_sizes[][3] = {{128, 128, 65536}, {512, 512, 512}, {2048, 2048, 2048}, {777, 333, 555},
                                        {100, 100, 100},   {32, 4000, 400}, {70, 9, 3000}};

typedef struct counts {
  int problems, kernels, registers;
  unsigned turn;
} counts;

static void one_problem(const at_gemm_kernels *family, const at_gemm *g, int every, counts *n) {
  enum { ROOM = 64 };
  static at_configuration list[ROOM];
  for (size_t t = 0; t < AT_COUNT(targets); t++) {
    const at_machine one = machine_of(t), *machine = &one;
    if (!family->supports(g, machine)) continue;
    const int count = family->candidates(g, machine, list, ROOM, false);
    char what[512];
    n->problems++;
    for (int i = 0; i < count; i++) {
      at_gemm_launch_spec spec;
      assert_true(at_gemm_launch_spec_of(&spec, family, g, machine, &list[i]));
      snprintf(what, sizeof what, "%s %s %c%c %lldx%lldx%lld align %d \"%.192s\"", family->file,
               attune_dtype_name((attune_dtype)g->dtype), g->trans_a ? 't' : 'n', g->trans_b ? 't' : 'n',
               (long long)g->m, (long long)g->n, (long long)g->k, g->alignment, list[i].text);
      if (every > 1 && n->turn++ % (unsigned)every != 0) continue;
      if (at_gemm_has_before(family, &spec)) {
        const int used = compile(family, &spec, true, t, what);
        if (used * (int)spec.before.block[0] > 65536) fail_msg("%s takes %d registers before", what, used);
      }
      const int registers = compile(family, &spec, false, t, what);
      n->kernels += registers > 0;
      if (getenv("ATTUNE_TEST_VERBOSE")) print_message("%s %s: %d registers\n", targets[t].name, what, registers);
      if (registers > n->registers) n->registers = registers;
      if (registers * (int)spec.config.block[0] > 65536) fail_msg("%s takes %d registers", what, registers);
    }
  }
}

/* None, a residual, a written aux, both, or an aux that is read. */
static void add_matrices(at_gemm *g, int which) {
  attune_gemm_epilogue *e = &g->epilogue;
  e->residual = which % 5 == 1 || which % 5 == 3;
  e->gradient = which % 5 == 4 && e->activation != ATTUNE_ACTIVATION_NONE;
  e->aux = which % 5 >= 2 ? ATTUNE_AUX_INPUT : ATTUNE_AUX_NONE;
  if (e->gradient && e->activation == ATTUNE_ACTIVATION_RELU) e->aux = ATTUNE_AUX_RELU_MASK;
  g->scaling.scale_d = which % 4 == 2;
  if (e->residual) g->ld_residual = g->m, g->stride_residual = g->batch > 1 ? g->m * g->n : 0;
  if (e->aux) g->ld_aux = e->aux == ATTUNE_AUX_INPUT ? g->m : (g->m + 127) / 128 * 128;
  if (e->aux && g->batch > 1) g->stride_aux = g->ld_aux * g->n;
}

static void family_compiles(const at_gemm_kernels *family, const int64_t (*sizes)[3], size_t count, int64_t batch,
                            int every) {
  counts n = {0};
  for (size_t d = 0; d < AT_COUNT(kinds); d++)
    for (size_t s = 0; s < count; s++)
      for (int t = 0; t < 4; t++) {
        const int64_t *size = sizes[s];
        at_gemm g = problem_of(kinds[d][0], kinds[d][1], t & 1, t >> 1, size[0], size[1], size[2], batch,
                               (at_gemm_c)((s + (size_t)t) % 3), t == 3 ? 8 : 128);
        if (family->pointers && t == (int)(s + d) % 4 && !(family->has_epilogue && t >= 2))
          g.pointers = ATTUNE_POINTERS_DEVICE;
        if (family == FAMILY(sm80_mma)) g.accuracy = ATTUNE_REDUCED;
        if (family->has_epilogue && t >= 2) { /* those of the families that have any */
          g.epilogue.activation = (uint8_t)((s + d) % (ATTUNE_ACTIVATION_TANH + 1));
          g.epilogue.bias = (uint8_t)(1 + (s + d) % 2);
          g.epilogue.bias_dtype = t == 2 ? g.dtype_out : ATTUNE_F32;
          g.epilogue.clamp = s % 3 == 0;
          add_matrices(&g, (int)(s + d) + t);
        }
        one_problem(family, &g, every, &n);
      }
  print_message("%s: %d problems, %d kernels, %d registers at most\n", family->file, n.problems, n.kernels,
                n.registers);
  assert_true(n.kernels > 0);
  assert_int_equal(spilled, 0);
}

static int every(int usual) {
  const char *given = getenv("ATTUNE_TEST_EVERY");
  return getenv("ATTUNE_TEST_ALL") ? 1 : given ? atoi(given) : usual;
}

TEST(tiny_kernels) {
  family_compiles(FAMILY(sm80_batched_smem), tiny_sizes, AT_COUNT(tiny_sizes), 100, every(1499));
}

/* Each type with each pair of N, T and C. */
TEST(complex_tiny_kernels) {
  counts n = {0};
  for (int way = 0; way < 18; way++)
    for (size_t s = 0; s < AT_COUNT(tiny_sizes); s++) {
      const int64_t *size = tiny_sizes[s];
      const attune_dtype dtype = way % 2 ? ATTUNE_C128 : ATTUNE_C64;
      at_gemm g = problem_of(dtype, dtype, way / 2 % 3, way / 6, size[0], size[1], size[2], 100,
                             (at_gemm_c)((s + (size_t)way) % 3), s % 2 && way % 2 == 0 ? 8 : 128);
      if ((s + (size_t)way) % 4 == 0) g.pointers = ATTUNE_POINTERS_DEVICE;
      one_problem(FAMILY(sm80_batched_smem), &g, every(449), &n);
    }
  print_message("complex: %d problems, %d kernels, %d registers at most\n", n.problems, n.kernels, n.registers);
  assert_true(n.kernels > 0);
  assert_int_equal(spilled, 0);
}

TEST(direct_kernels) {
  family_compiles(FAMILY(sm80_batched_reg_16b), tiny_sizes, AT_COUNT(tiny_sizes), 100, every(499));
}

TEST(rows_kernels) {
  family_compiles(FAMILY(sm80_skinny_mmajor), skinny_sizes, AT_COUNT(skinny_sizes), 100, every(701));
}

TEST(skinny_kernels) {
  family_compiles(FAMILY(sm80_skinny_reg), skinny_sizes, AT_COUNT(skinny_sizes), 100, every(2499));
}

TEST(ring_kernels) {
  family_compiles(FAMILY(sm90_skinny_ring_16b), skinny_sizes, AT_COUNT(skinny_sizes), 100, every(41));
}

/* Types of elements and of D, scales, layouts; each with up to 32 columns. */
TEST(ring_8b_kernels) {
  static const char *const texts[] = {
      "gemm f8e4m3:bf16 tn 4096x1x7168 strict scale_a=tensor scale_b=tensor",
      "gemm f8e4m3:bf16 tn 4096x8x7168 strict beta scale_a=vector scale_b=vector",
      "gemm f8e5m2:f16 tn 28672x16x8192 strict dtype_b=f8e4m3 scale_a=tensor amax_d",
      "gemm f8e4m3:f32 tn 7168x32x16384 strict scale_a=128x128 scale_b=1x128",
      "gemm f8e4m3:bf16 tn 24x7168x2048 strict scale_a=1x128 scale_b=128x128",
      "gemm f8e4m3 tn 3x4096x4096 strict beta dtype_b=f8e5m2 scale_a=1x128 scale_b=1x128 scale_d amax_d",
      "gemm f8e4m3:f8e5m2 tn 100x30x272 strict dtype_b=f8e5m2 scale_a=vector scale_b=128x128",
      "gemm i8:i32 tn 4096x32x4096 strict beta",
      "gemm i8 tn 8x4096x14336x3 strict beta scale_a=tensor scale_d amax_d",
      "gemm i8:f16 tn 4096x1x4096 strict scale_a=vector scale_b=tensor"};
  counts n = {0};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_gemm g;
    OK(at_gemm_parse(texts[i], &g));
    one_problem(FAMILY(sm90_skinny_ring_8b), &g, every(19), &n);
  }
  print_message("sm90_skinny_ring_8b: %d problems, %d kernels, %d registers at most\n", n.problems, n.kernels,
                n.registers);
  assert_int_equal(n.problems, 3 * (int)AT_COUNT(texts)); /* of all architectures but sm_80 */
  assert_true(n.kernels > 0);
  assert_int_equal(spilled, 0);
}

TEST(mma_kernels) {
  family_compiles(FAMILY(sm80_mma), mma_sizes, AT_COUNT(mma_sizes), 1, every(999));
}

/* One kind of device and dtype: each tile and each transpose in turn. */
TEST(bf16x6_kernels) {
  static const int64_t sizes[][3] = {{2048, 2048, 2048}, {600, 777, 1001}};
  counts n = {0};
  for (int t = 0; t < 4; t++) {
    const int64_t *size = sizes[t % 2];
    at_gemm g = problem_of(ATTUNE_F32, ATTUNE_F32, t & 1, t >> 1, size[0], size[1], size[2], 1, (at_gemm_c)(t % 3),
                           t == 3 ? 4 : 128);
    g.accuracy = ATTUNE_EQUIVALENT;
    one_problem(FAMILY(sm90_wgmma_bf16x6), &g, every(5), &n);
  }
  print_message("bf16x6: %d problems, %d kernels, %d registers at most\n", n.problems, n.kernels, n.registers);
  assert_int_equal(n.problems, 4); /* of one architecture */
  assert_true(n.kernels > 1);
  assert_int_equal(spilled, 0);
}

TEST(wgmma_kernels) {
  family_compiles(FAMILY(sm90_wgmma_16b), wgmma_sizes, AT_COUNT(wgmma_sizes), 1, every(199));
}

/* Gated products, along both sides, of each layout. */
TEST(gated_wgmma_kernels) {
  static const int64_t sizes[][3] = {{8192, 16, 1024}, {28672, 512, 4096}, {1008, 200, 96}, {22016, 2048, 4096}};
  const at_gemm_kernels *family = FAMILY(sm90_wgmma_16b);
  counts n = {0};
  for (int way = 0; way < 32; way++) {
    const int64_t *size = sizes[way % 4];
    const bool rows = way / 4 % 2;
    const attune_dtype in = way % 3 ? ATTUNE_BF16 : ATTUNE_F16;
    at_gemm g = problem_of(in, way % 5 ? in : ATTUNE_F32, way / 8 % 2, way / 16, rows ? size[0] : size[1],
                           rows ? size[1] : size[0], size[2], way % 7 ? 1 : 3, AT_C_NONE, 128);
    g.gated = rows ? ATTUNE_GATED_M : ATTUNE_GATED_N;
    g.ldd = at_gemm_rows_d(&g), g.stride_d /= 2;
    g.epilogue.activation = (uint8_t)(way % 2 ? ATTUNE_ACTIVATION_SILU : way % (ATTUNE_ACTIVATION_TANH + 1));
    g.epilogue.bias = (uint8_t)(way % 3);
    g.epilogue.bias_dtype = g.epilogue.bias ? g.dtype_out : 0;
    if (way % 4 == 3) g.epilogue.residual = 1, g.ld_residual = g.ldd, g.stride_residual = g.stride_d;
    const at_machine machine = machine_of(1);
    assert_true(family->supports(&g, &machine));
    one_problem(family, &g, every(23), &n);
  }
  print_message("gated: %d problems, %d kernels, %d registers at most\n", n.problems, n.kernels, n.registers);
  assert_int_equal(n.problems, 32);
  assert_true(n.kernels > 3);
  assert_int_equal(spilled, 0);
}

/* Times that a load of one element from shared memory stands in the PTX of a product of bf16 with all lines aligned;
 * -1: there is no such compiler. */
static int narrow_loads(attune_dtype out, at_gemm_c c, const char *configuration) {
  static const char *const narrow[] = {"ld.shared.u16", "ld.shared.b16", "ld.shared.u32", "ld.shared.b32",
                                       "ld.shared.f32"};
  const at_gemm g = problem_of(ATTUNE_BF16, out, 0, 0, 4096, 512, 1024, 1, c, 128);
  const at_architecture architecture = {"compute_90a"};
  at_configuration choice = {""};
  at_gemm_launch_spec spec;
  at_kernel_code code = {NULL, 0};
  char *text = NULL;
  int found = 0;
  snprintf(choice.text, sizeof choice.text, "%s", configuration);
  const at_machine machine = machine_of(1);
  assert_true(FAMILY(sm90_wgmma_16b)->spec(&spec, &g, &machine, &choice));
  OK(at_gemm_text(&text, FAMILY(sm90_wgmma_16b), &spec, false));
  const at_kernel_source source = {
      .file = FAMILY(sm90_wgmma_16b)->file, .text = text, .entry = FAMILY(sm90_wgmma_16b)->entry};
  const attune_status status = at_kernel_compile(&code, &source, &architecture, NULL);
  free(text);
  if (status == ATTUNE_UNSUPPORTED) return -1;
  assert_int_equal(status, ATTUNE_OK);
  char *ptx = strndup(code.bytes, code.size);
  assert_non_null(ptx);
  assert_non_null(strstr(ptx, "st.global.v4"));
  for (size_t i = 0; i < AT_COUNT(narrow); i++)
    for (const char *at = ptx; (at = strstr(at, narrow[i])); at++) found++;
  free(ptx);
  at_kernel_code_free(&code);
  return found;
}

/* Sums that go to D through shared memory are read from there 16 bytes at a time: of a structure of halves the
 * compiler once made 16 loads of 2 bytes in each turn of an unrolled loop, which cost a short product a sixth. */
TEST(sums_pass_in_whole_words) {
  static const char *const some[] = {
      "tile=64x64,deep=2,stages=4,groups=1,splitk=1,parts=1,cluster=1x1,band=8,blocks=1,early=0,late=0,kept=0,turned=0",
      "tile=256x64,deep=1,stages=4,groups=2,splitk=1,parts=1,cluster=1x1,band=8,blocks=1,early=1,late=1,kept=0,turned="
      "0",
      "tile=64x128,deep=1,stages=4,groups=1,splitk=2,parts=1,cluster=1x1,band=8,blocks=1,early=0,late=0,kept=1,turned="
      "1"};
  for (size_t i = 0; i < AT_COUNT(some); i++)
    for (int out = 0; out < 2; out++)
      for (int c = 0; c < 3; c++) {
        const int found = narrow_loads(out ? ATTUNE_BF16 : ATTUNE_F32, (at_gemm_c)c, some[i]);
        if (found < 0) skip();
        assert_int_equal(found, 0);
      }
}

/* The kernels of the pass of every epilogue's parts: with vectors as wide as they may be, and element by element. */
TEST(epilogue_passes) {
  int made = 0;
  for (int i = 0; i < 5 * (ATTUNE_ACTIVATION_TANH + 1) * 2; i++) {
    const int activation = i % (ATTUNE_ACTIVATION_TANH + 1), kind = i / 2 % 5;
    const bool gradient = activation && i % 3 == 0;
    at_gemm g = problem_of(kinds[kind][0], kinds[kind][1], 0, 0, 100, 70, 30, 1, AT_C_NONE, i % 2 ? 8 : 128);
    g.epilogue = (attune_gemm_epilogue){.bias = (uint8_t)(i % 3),
                                        .bias_dtype = i % 4 && kind != 1 ? ATTUNE_F32 : g.dtype_out,
                                        .activation = (uint8_t)activation,
                                        .gradient = gradient,
                                        .aux = (uint8_t)(gradient || i % 4 == 0),
                                        .bias_gradient = (uint8_t)(i % 5),
                                        .residual = i % 5 < 3 && i % 2,
                                        .clamp = i % 5 < 3 && i % 7 == 0};
    if (g.epilogue.aux && activation == ATTUNE_ACTIVATION_RELU && i % 2) g.epilogue.aux = ATTUNE_AUX_RELU_MASK;
    g.ld_aux = g.epilogue.aux == ATTUNE_AUX_RELU_MASK ? 128 : 100, g.ld_residual = 100;
    g.scaling.scale_d = i % 5 < 3 && i % 3 == 1;
    if (!g.epilogue.aux && !g.epilogue.bias_gradient) g.gated = (uint8_t)(i % 3);
    char *texts[2];
    OK(at_pass_texts(&g, &texts[0], &texts[1]));
    for (int t = 0; t < 2; t++) {
      if (!texts[t]) continue;
      at_kernel_code code = {NULL, 0};
      const at_kernel_source source = at_pass_source(texts[t], t == 1);
      at_architecture architecture;
      snprintf(architecture.name, sizeof architecture.name, "%s", targets[(size_t)i % AT_COUNT(targets)].name);
      const attune_status status = at_kernel_compile(&code, &source, &architecture, NULL);
      if (status != ATTUNE_UNSUPPORTED) OK(status);
      made += status == ATTUNE_OK;
      at_kernel_code_free(&code);
      free(texts[t]);
    }
  }
  print_message("%d kernels of epilogues\n", made);
}

TEST(copies_of_arrays) {
  for (size_t t = 0; t < AT_COUNT(targets); t++) {
    at_kernel_code code = {NULL, 0};
    at_architecture architecture;
    snprintf(architecture.name, sizeof architecture.name, "%s", targets[t].name);
    const attune_status status = at_kernel_compile(&code, &at_copy_arrays_source, &architecture, NULL);
    if (status != ATTUNE_UNSUPPORTED) OK(status);
    at_kernel_code_free(&code);
  }
}

/* Epilogues that kernels apply to sums in registers, and others, which are left to a pass. */
TEST(epilogues_in_registers) {
  const at_gemm_kernels *const all[] = {FAMILY(sm80_mma), FAMILY(sm80_skinny_reg), FAMILY(sm90_skinny_ring_16b),
                                        FAMILY(sm90_wgmma_16b)};
  const attune_gemm_epilogue in_registers[] = {
      {.bias = ATTUNE_BIAS_N, .bias_dtype = ATTUNE_BF16, .activation = ATTUNE_ACTIVATION_SILU, .clamp = 1},
      {.residual = 1},
      {.activation = ATTUNE_ACTIVATION_GELU, .aux = ATTUNE_AUX_INPUT},
      {.activation = ATTUNE_ACTIVATION_GELU, .aux = ATTUNE_AUX_INPUT, .gradient = 1},
      {.activation = ATTUNE_ACTIVATION_RELU, .aux = ATTUNE_AUX_RELU_MASK, .gradient = 1}};
  const attune_gemm_epilogue by_pass[] = {{.activation = ATTUNE_ACTIVATION_RELU, .aux = ATTUNE_AUX_RELU_MASK},
                                          {.bias_gradient = ATTUNE_BIAS_GRADIENT_M, .bias_dtype = ATTUNE_BF16}};
  const at_machine machine = machine_of(1);
  for (size_t f = 0; f < AT_COUNT(all); f++) {
    at_gemm g = problem_of(ATTUNE_BF16, ATTUNE_BF16, 1, 0, 4096, 16, 4096, 1, AT_C_NONE, 128);
    g.ld_residual = g.ld_aux = 4096;
    assert_true(all[f]->has_epilogue && all[f]->supports(&g, &machine));
    for (size_t i = 0; i < AT_COUNT(in_registers); i++) {
      g.epilogue = in_registers[i];
      assert_true(at_gemm_in_registers(&g));
    }
    for (size_t i = 0; i < AT_COUNT(by_pass); i++) {
      g.epilogue = by_pass[i];
      assert_false(at_gemm_in_registers(&g));
    }
  }
}

TEST(simt_kernels) {
  family_compiles(FAMILY(sm80_simt_f32), simt_sizes, AT_COUNT(simt_sizes), 1, every(449));
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return RUN_TESTS(NULL, NULL);
}
