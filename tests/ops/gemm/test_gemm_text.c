/* SPDX-License-Identifier: Apache-2.0
 * test_gemm_text.c: a problem's text is its identity: there and back for random problems, no two problems with one
 * text, and each field that differs gives another text. */
#include "tests/support/check.h"

#include "ops/gemm/problem/problem.h"
#include "src/base/backend.h"
#include "src/base/splitmix64.h"

enum { PROBLEMS = 100000 };

static uint64_t random_state = 20240229;

static uint64_t draw(uint64_t count) {
  return at_splitmix64(&random_state) % count;
}

/* Small sizes most of the time, so that problems are near each other; now and then large ones. */
static int64_t draw_size(void) {
  return 1 + (int64_t)(draw(16) ? draw(9) : draw(1 << 14));
}

static void draw_matrix(int64_t inner, int64_t outer, int64_t batch, int input, int64_t *ld, int64_t *stride) {
  if (draw(3) == 0) *ld = inner + (int64_t)draw(4);
  const int64_t own = *ld ? *ld : inner;
  if (batch > 1 && draw(3) == 0)
    *stride = own * outer + (int64_t)draw(4);
  else if (batch > 1 && input && draw(4) == 0)
    *stride = ATTUNE_BROADCAST;
}

static void draw_problem(attune_gemm_problem *p, at_gemm_use *use) {
  static const struct {
    attune_dtype in, out;
  } kinds[] = {{ATTUNE_F64, 0},  {ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F16, 0},
               {ATTUNE_BF16, 0}, {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};
  static const size_t caps[] = {0, 0, 0, 1, 4096, SIZE_MAX / 2, SIZE_MAX};
  const size_t kind = (size_t)draw(6);
  *p = (attune_gemm_problem)ATTUNE_GEMM_PROBLEM_INIT;
  p->dtype = kinds[kind].in;
  p->dtype_out = kinds[kind].out;
  p->layout = (attune_layout)draw(2);
  p->trans_a = (attune_transpose)draw(2);
  p->trans_b = (attune_transpose)draw(2);
  p->m = draw_size();
  p->n = draw_size();
  p->k = draw_size();
  p->batch = draw(2) ? 1 : draw_size();
  p->contract = (attune_contract){(attune_accuracy)draw(3), (int)draw(2), caps[draw(sizeof caps / sizeof caps[0])]};
  const int row = p->layout == ATTUNE_ROW_MAJOR, a_k = (p->trans_a == ATTUNE_T) != row,
            b_n = (p->trans_b == ATTUNE_T) != row;
  const int64_t inner = row ? p->n : p->m, outer = row ? p->m : p->n;
  const size_t in = attune_dtype_size(p->dtype), out = p->dtype_out ? attune_dtype_size(p->dtype_out) : in;
  use->c = (at_gemm_c)draw(3);
  const size_t least = in < out ? in : out;
  for (use->alignment = 128; use->alignment > least && draw(2);) use->alignment /= 2;
  draw_matrix(a_k ? p->k : p->m, a_k ? p->m : p->k, p->batch, 1, &p->lda, &p->stride_a);
  draw_matrix(b_n ? p->n : p->k, b_n ? p->k : p->n, p->batch, 1, &p->ldb, &p->stride_b);
  draw_matrix(inner, outer, p->batch, 0, &p->ldd, &p->stride_d);
  if (use->c == AT_C_SEPARATE) draw_matrix(inner, outer, p->batch, 1, &p->ldc, &p->stride_c);
  if (use->c == AT_C_INPLACE) {
    p->ldc = p->ldd;
    p->stride_c = p->stride_d;
  }
}

typedef struct entry {
  at_gemm g;
  char text[AT_PROBLEM_CHARS];
} entry;

static int by_bytes(const void *left, const void *right) {
  return memcmp(&((const entry *)left)->g, &((const entry *)right)->g, sizeof(at_gemm));
}
static int by_text(const void *left, const void *right) {
  return strcmp(((const entry *)left)->text, ((const entry *)right)->text);
}

TEST(random_problems) {
  entry *entries = calloc(PROBLEMS, sizeof *entries);
  assert_non_null(entries);
  for (int i = 0; i < PROBLEMS; i++) {
    attune_gemm_problem p = {0};
    at_gemm_use use;
    at_gemm back;
    bool swap;
    draw_problem(&p, &use);
    if (at_gemm_normalise(&p, use, &entries[i].g, &swap) != ATTUNE_OK) fail_msg("%s", attune_last_message());
    if (at_gemm_format(&entries[i].g, entries[i].text, sizeof entries[i].text) != ATTUNE_OK)
      fail_msg("%s", attune_last_message());
    memset(&back, 0xA5, sizeof back);
    if (at_gemm_parse(entries[i].text, &back) != ATTUNE_OK) fail_msg("%s: %s", entries[i].text, attune_last_message());
    if (memcmp(&back, &entries[i].g, sizeof back) != 0) fail_msg("%s is read as another problem", entries[i].text);
  }
  /* ordered by bytes, equal neighbours have equal texts; ordered by text, equal neighbours have equal bytes */
  int same_bytes = 0, same_text = 0;
  qsort(entries, PROBLEMS, sizeof *entries, by_bytes);
  for (int i = 1; i < PROBLEMS; i++) {
    if (by_bytes(&entries[i - 1], &entries[i]) != 0) continue;
    same_bytes++;
    assert_string_equal(entries[i - 1].text, entries[i].text);
  }
  qsort(entries, PROBLEMS, sizeof *entries, by_text);
  for (int i = 1; i < PROBLEMS; i++) {
    if (by_text(&entries[i - 1], &entries[i]) != 0) continue;
    same_text++;
    if (by_bytes(&entries[i - 1], &entries[i]) != 0) fail_msg("two problems have one text: %s", entries[i].text);
  }
  assert_int_equal(same_bytes, same_text);
  assert_true(same_bytes < PROBLEMS / 4);
  free(entries);
}

/* Everything that a caller can change in one step, applied to one problem: no two of the results are the same. */
typedef struct variant {
  attune_gemm_problem problem;
  at_gemm_use use;
} variant;

static size_t variants_of(variant *out) {
  static const variant base = {.problem = {.size = sizeof(attune_gemm_problem),
                                           .dtype = ATTUNE_F16,
                                           .dtype_out = ATTUNE_F16,
                                           .trans_b = ATTUNE_T,
                                           .m = 40,
                                           .n = 30,
                                           .k = 20,
                                           .batch = 3,
                                           .lda = 44,
                                           .ldb = 33,
                                           .ldc = 42,
                                           .ldd = 41,
                                           .stride_a = 2000,
                                           .stride_b = 900,
                                           .stride_c = 1500,
                                           .stride_d = 1600},
                               .use = {.c = AT_C_SEPARATE, .alignment = 8}};
  static const size_t numbers[] = {offsetof(attune_gemm_problem, m),        offsetof(attune_gemm_problem, n),
                                   offsetof(attune_gemm_problem, k),        offsetof(attune_gemm_problem, batch),
                                   offsetof(attune_gemm_problem, lda),      offsetof(attune_gemm_problem, ldb),
                                   offsetof(attune_gemm_problem, ldc),      offsetof(attune_gemm_problem, ldd),
                                   offsetof(attune_gemm_problem, stride_a), offsetof(attune_gemm_problem, stride_b),
                                   offsetof(attune_gemm_problem, stride_c), offsetof(attune_gemm_problem, stride_d)};
  size_t count = 0;
  out[count++] = base;
  for (size_t i = 0; i < AT_COUNT(numbers); i++) {
    int64_t value;
    out[count] = base;
    memcpy(&value, (char *)&out[count].problem + numbers[i], sizeof value);
    value++;
    memcpy((char *)&out[count++].problem + numbers[i], &value, sizeof value);
  }
  for (size_t i = 8; i < 11; i++) { /* A, B and C the same for the whole batch */
    const int64_t broadcast = ATTUNE_BROADCAST;
    out[count] = base;
    memcpy((char *)&out[count++].problem + numbers[i], &broadcast, sizeof broadcast);
  }
  for (int i = 0; i < 14; i++) out[count + (size_t)i] = base;
  out[count++].problem.dtype_out = ATTUNE_F32;
  out[count].problem.dtype = ATTUNE_BF16;
  out[count++].problem.dtype_out = ATTUNE_BF16;
  out[count].problem.dtype = ATTUNE_BF16;
  out[count++].problem.dtype_out = ATTUNE_F32;
  out[count++].problem.trans_a = ATTUNE_T;
  out[count++].problem.trans_b = ATTUNE_N;
  out[count++].problem.contract.accuracy = ATTUNE_EQUIVALENT;
  out[count++].problem.contract.accuracy = ATTUNE_REDUCED;
  out[count++].problem.contract.deterministic = 1;
  out[count++].problem.contract.workspace_cap = 1 << 20;
  out[count++].use.alignment = 128;
  out[count++].use.alignment = 16;
  out[count++].use.alignment = 4;
  out[count++].use.c = AT_C_NONE;
  out[count].use.c = AT_C_INPLACE;
  out[count].problem.ldc = out[count].problem.ldd;
  out[count].problem.stride_c = out[count].problem.stride_d;
  return count + 1;
}

TEST(each_field_is_in_the_key) {
  static variant variants[64];
  static entry entries[64];
  const size_t count = variants_of(variants);
  for (size_t i = 0; i < count; i++) {
    bool swap;
    if (at_gemm_normalise(&variants[i].problem, variants[i].use, &entries[i].g, &swap) != ATTUNE_OK)
      fail_msg("variant %zu: %s", i, attune_last_message());
    assert_int_equal(at_gemm_format(&entries[i].g, entries[i].text, AT_PROBLEM_CHARS), ATTUNE_OK);
    for (size_t j = 0; j < i; j++)
      if (by_bytes(&entries[i], &entries[j]) == 0 || by_text(&entries[i], &entries[j]) == 0)
        fail_msg("variants %zu and %zu are one: %s", j, i, entries[i].text);
  }
}

TEST(texts) {
  static const struct {
    attune_gemm_problem problem;
    const char *text;
  } samples[] = {
      {{.dtype = ATTUNE_BF16, .trans_a = ATTUNE_T, .m = 4096, .n = 16, .k = 4096, .batch = 1},
       "gemm bf16 tn 4096x16x4096 strict"},
      {{.dtype = ATTUNE_BF16,
        .layout = ATTUNE_ROW_MAJOR,
        .trans_b = ATTUNE_T,
        .m = 16,
        .n = 4096,
        .k = 4096,
        .batch = 1},
       "gemm bf16 tn 4096x16x4096 strict"},
      {{.dtype = ATTUNE_F16,
        .dtype_out = ATTUNE_F32,
        .m = 1,
        .n = 2,
        .k = 3,
        .batch = 4,
        .contract = {ATTUNE_REDUCED, 1, 0}},
       "gemm f16:f32 nn 1x2x3x4 reduced deterministic"},
      {{.dtype = ATTUNE_F32,
        .m = 8,
        .n = 8,
        .k = 8,
        .batch = 2,
        .lda = 9,
        .stride_b = ATTUNE_BROADCAST,
        .stride_d = 65},
       "gemm f32 nn 8x8x8x2 strict lda=9 stride_b=broadcast stride_d=65"},
      {{.dtype = ATTUNE_F64, .m = 8, .n = 8, .k = 8, .batch = 1, .stride_a = 99}, "gemm f64 nn 8x8x8 strict"}};
  for (size_t i = 0; i < AT_COUNT(samples); i++) {
    char text[256];
    assert_int_equal(attune_gemm_problem_format(text, sizeof text, &samples[i].problem, NULL), ATTUNE_OK);
    assert_string_equal(text, samples[i].text);
    attune_gemm_problem back = {0};
    assert_int_equal(attune_gemm_problem_parse(&back, text), ATTUNE_OK);
    char again[256];
    assert_int_equal(attune_gemm_problem_format(again, sizeof again, &back, NULL), ATTUNE_OK);
    assert_string_equal(again, text);
  }
}

/* What cannot be read is not written. */
TEST(empty_problems_have_no_text) {
  for (int i = 0; i < 4; i++) {
    attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 2, .n = 2, .k = 2};
    char text[256], words[64];
    if (i == 3) p.batch = ATTUNE_EMPTY_BATCH;
    if (i < 3) *(int64_t *[]){&p.m, &p.n, &p.k}[i] = 0;
    snprintf(words, sizeof words, "problem.%s is %s, which has no text", (const char *[]){"m", "n", "k", "batch"}[i],
             i < 3 ? "0" : "ATTUNE_EMPTY_BATCH");
    FAILS_SAYING(attune_gemm_problem_format(text, sizeof text, &p, NULL), ATTUNE_INVALID_ARGUMENT, words);
  }
}

/* Pitches of matrices that a problem does not have are ignored, and so are those that are packed: ld_aux of a relu mask
 * is m, in row-major n, rounded up to a multiple of 128. A residual and an aux that is read may be broadcast. */
TEST(pitches_without_a_matrix) {
  static const char *const texts[][2] = {
      {"ldc=99 stride_c=5", ""},
      {"beta=inplace ldc=99", ""},
      {"ld_aux=1 stride_aux=1000", ""},
      {"ld_residual=3 stride_residual=broadcast", ""},
      {"relu aux=mask ld_aux=128", " relu aux=mask"},
      {"relu aux=mask ld_aux=384", " relu aux=mask ld_aux=384"},
      {"row-major relu aux=mask ld_aux=384", " relu aux=mask"},
      {"relu gradient aux=mask residual stride_aux=broadcast stride_residual=broadcast",
       " relu gradient aux=mask residual stride_aux=broadcast stride_residual=broadcast"}};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    char text[256], expected[256], found[256];
    const bool row = strncmp(texts[i][0], "row-major", 9) == 0;
    attune_gemm_problem p = {0};
    snprintf(text, sizeof text, "gemm f32 nn 8x300x8x4 %s", texts[i][0]);
    snprintf(expected, sizeof expected, "gemm f32 nn %s strict%s", row ? "300x8x8x4" : "8x300x8x4", texts[i][1]);
    assert_int_equal(attune_gemm_problem_parse(&p, text), ATTUNE_OK);
    assert_int_equal(attune_gemm_problem_format(found, sizeof found, &p, NULL), ATTUNE_OK);
    assert_string_equal(found, expected);
  }
}

TEST(operands_are_in_the_text) {
  static _Alignas(128) char memory[4][128];
  const attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 2, .n = 2, .k = 2, .batch = 1};
  attune_gemm_operands o = {.alpha = 1.0, .a = memory[0], .b = memory[1], .beta = 1.0, .c = memory[2], .d = memory[3]};
  char text[256];
  assert_int_equal(attune_gemm_problem_format(text, sizeof text, &p, &o), ATTUNE_OK);
  assert_string_equal(text, "gemm f32 nn 2x2x2 strict beta");
  for (int offset = 16; offset <= 64; offset *= 2) {
    char expected[64];
    o.a = memory[0] + offset;
    snprintf(expected, sizeof expected, "gemm f32 nn 2x2x2 strict beta align=%d", offset);
    assert_int_equal(attune_gemm_problem_format(text, sizeof text, &p, &o), ATTUNE_OK);
    assert_string_equal(text, expected);
  }
  o.c = o.d;
  o.a = memory[0] + 4;
  assert_int_equal(attune_gemm_problem_format(text, sizeof text, &p, &o), ATTUNE_OK);
  assert_string_equal(text, "gemm f32 nn 2x2x2 strict beta=inplace align=4");
}

static char align_memory[8][256] __attribute__((aligned(128)));

/* The text of operands that are each aligned to their own element, A to no more. */
static void reads_back(attune_gemm_problem p, attune_gemm_operands o, const char *expected) {
  char text[256], again[256];
  at_gemm g;
  o.alpha = 1.0;
  o.b = align_memory[1], o.d = align_memory[2];
  OK(attune_gemm_problem_format(text, sizeof text, &p, &o));
  assert_string_equal(text, expected);
  if (at_gemm_parse(text, &g) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
  OK(at_gemm_format(&g, again, sizeof again));
  assert_string_equal(again, text);
  attune_gemm_problem back = {0};
  OK(attune_gemm_problem_parse(&back, text));
}

TEST(operands_aligned_to_their_own_elements) {
  attune_gemm_problem p = {.dtype = ATTUNE_BF16, .dtype_out = ATTUNE_F32, .m = 8, .n = 8, .k = 8};
  attune_gemm_operands o = {.a = align_memory[0] + 2};
  reads_back(p, o, "gemm bf16:f32 nn 8x8x8 strict align=2");
  p.dtype = ATTUNE_I8, o.a = align_memory[0] + 1;
  reads_back(p, o, "gemm i8:f32 nn 8x8x8 strict align=1");
  p.dtype = ATTUNE_F8E4M3, p.dtype_out = ATTUNE_F16;
  reads_back(p, o, "gemm f8e4m3:f16 nn 8x8x8 strict align=1");
  p.dtype = p.dtype_out = ATTUNE_F32, o.a = align_memory[0];
  p.epilogue.activation = ATTUNE_ACTIVATION_RELU, p.epilogue.aux = ATTUNE_AUX_RELU_MASK, o.aux = align_memory[3] + 1;
  reads_back(p, o, "gemm f32 nn 8x8x8 strict relu aux=mask align=1");
}

/* Tuning gives each operand the alignment of the text, and at least that of its elements. */
TEST(buffers_are_aligned_to_their_own_elements) {
  static const struct {
    const char *text;
    size_t a, d, last;
  } each[] = {{"gemm bf16:f32 nn 8x8x8 strict align=2", 2, 4, 4},
              {"gemm i8:f32 nn 8x8x8 strict align=1", 1, 4, 4},
              {"gemm f16:f32 nn 8x8x8 strict align=8", 8, 8, 8},
              {"gemm bf16 nn 8x8x8 strict relu aux=mask align=1", 2, 2, 1}};
  for (size_t i = 0; i < AT_COUNT(each); i++) {
    at_gemm g;
    at_buffer buffers[AT_MAX_BUFFERS];
    int count = 0;
    OK(at_gemm_parse(each[i].text, &g));
    OK(at_gemm_buffers(&g, buffers, &count));
    assert_int_equal(buffers[AT_GEMM_A].alignment, each[i].a);
    assert_int_equal(buffers[AT_GEMM_D].alignment, each[i].d);
    assert_int_equal(buffers[count - 1].alignment, each[i].last);
  }
}

/* A promise of less than an element is none: such a problem can be called. */
TEST(alignment_of_arrays) {
  attune_gemm_problem p = {0};
  OK(attune_gemm_problem_parse(&p, "gemm bf16:f32 nn 8x8x8x2 strict pointers=device align=2"));
  assert_int_equal(p.alignment, 0);
  OK(attune_gemm_problem_parse(&p, "gemm bf16:f32 nn 8x8x8x2 strict pointers=device align=4"));
  assert_int_equal(p.alignment, 4);
}

/* A GPU tells every class apart, the host those below 16 bytes: the rest is one. */
TEST(classes_fold_by_device) {
  static attune_device host = {.alignment_mask = 15, .properties = {.kind = ATTUNE_DEVICE_HOST}},
                       gpu = {.alignment_mask = 127, .properties = {.kind = ATTUNE_DEVICE_CUDA}};
  for (int alignment = 1; alignment <= AT_ALIGNMENT; alignment *= 2) {
    at_gemm g = {.alignment = (uint8_t)alignment};
    at_gemm_fold(&g, &gpu);
    assert_int_equal(g.alignment, alignment);
    at_gemm_fold(&g, &host);
    assert_int_equal(g.alignment, alignment < 16 ? alignment : AT_ALIGNMENT);
    for (uintptr_t better = 1; better <= 8; better *= 2) /* the least aligned pointer counts, 128 bytes at most */
      assert_int_equal(at_alignment_of((uintptr_t)alignment | (uintptr_t)alignment * better | 4096), alignment);
  }
}

TEST(broken_texts) {
  static const struct {
    const char *text, *words;
  } samples[] = {{"", "ends after 0"},
                 {"gemm", "ends after 1"},
                 {"gemv f32 nn 1x1x1 strict", "gemv"},
                 {"gemm f31 nn 1x1x1 strict", "f31"},
                 {"gemm f32:f16 nn 1x1x1 strict", "dtype_out"},
                 {"gemm f32: nn 1x1x1 strict", "f32:"},
                 {"gemm f32 n 1x1x1 strict", "\"n\""},
                 {"gemm f32 nq 1x1x1 strict", "nq"},
                 {"gemm f32 nn 1x1 strict", "1x1"},
                 {"gemm f32 nn 1x1x1x1x1 strict", "1x1x1x1x1"},
                 {"gemm f32 nn 1x1x strict", "1x1x"},
                 {"gemm f32 nn 1x1x-1 strict", "-1"},
                 {"gemm f32 nn 0x1x1 strict", "0"},
                 {"gemm f32 nn 99999999999999999999x1x1 strict", "99999"},
                 {"gemm f32 nn 1x1x1 exact", "exact"},
                 {"gemm f32 nn 1x1x1 strict fast", "fast"},
                 {"gemm f32 nn 1x1x1 strict bogus", " residual, clamp, and ld_aux= ... stride_residual="},
                 {"gemm f32 nn 1x1x1 strict lda", "lda"},
                 {"gemm f32 nn 4x1x1 strict lda=2", "lda"},
                 {"gemm f32 nn 1x1x1 strict lda=0", "lda=0"},
                 {"gemm f32 nn 1x1x1 strict lda=broadcast", "lda=broadcast"},
                 {"gemm f32 nn 1x1x1x2 strict stride_d=broadcast", "stride_d"},
                 {"gemm f32 nn 1x1x1 strict align=3", "align=3"},
                 {"gemm f32 nn 1x1x1 strict align=256", "align=256"},
                 {"gemm f64 nn 1x1x1 strict align=4", "align=4"},
                 {"gemm bf16:f32 nn 1x1x1 strict align=1", "should be 2 or more"},
                 {"gemm c128 nn 1x1x1 strict align=4", "should be 8 or more"},
                 {"gemm f32 nn 1x1x1 strict workspace=-1", "workspace=-1"},
                 {"gemm f32 nn 1x1x1 strict workspace=18446744073709551616", "workspace"},
                 {"gemm f32 nn 9223372036854775807x9223372036854775807x2 strict", "matrix"}};
  attune_gemm_problem p = {0};
  char letters[4200];
  memset(letters, 'x', sizeof letters);
  letters[sizeof letters - 1] = '\0';
  for (size_t i = 0; i < AT_COUNT(samples); i++) {
    if (attune_gemm_problem_parse(&p, samples[i].text) != ATTUNE_INVALID_ARGUMENT)
      fail_msg("\"%s\" was read", samples[i].text);
    if (!strstr(attune_last_message(), samples[i].words))
      fail_msg("\"%s\": %s", samples[i].text, attune_last_message());
  }
  FAILS_SAYING(attune_gemm_problem_parse(&p, letters), ATTUNE_INVALID_ARGUMENT, "4199 characters");
  assert_int_equal(attune_gemm_problem_parse(NULL, "gemm f32 nn 1x1x1 strict"), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_gemm_problem_parse(&p, NULL), ATTUNE_INVALID_ARGUMENT);
}

/* Of words of one name, and of activations, a text and a column have one. */
TEST(words_that_contradict) {
  static const struct {
    const char *text, *said;
  } texts[] = {{"gemm f32 nn 8x8x8 relu gelu", "has \"relu\" and \"gelu\"; should have one of them"},
               {"gemm f32 nn 8x8x8 strict bias=m relu bias=n", "has \"bias=m\" and \"bias=n\""},
               {"gemm f32 nn 8x8x8 residual residual", "has \"residual\" and \"residual\""},
               {"gemm f32 nn 8x8x8 beta beta=inplace", "has \"beta\" and \"beta=inplace\""},
               {"gemm f32 nn 8x8x8 lda=8 ldb=9 lda=9", "has \"lda=8\" and \"lda=9\""},
               {"gemm i8:f32 nn 8x8x8 scale_a=tensor scale_a=vector", "\"scale_a=tensor\" and \"scale_a=vector\""}};
  static const struct {
    const char *name, *value, *said;
  } columns[] = {{"epilogue", "bias=m  bias=n", "epilogue has \"bias=m\" and \"bias=n\""},
                 {"epilogue", "gelu relu", "epilogue has \"gelu\" and \"relu\""},
                 {"scaling", "amax_d amax_d", "scaling has \"amax_d\" and \"amax_d\""},
                 {"scaling", "scale_b=tensor scale_b=vector", "\"scale_b=tensor\" and \"scale_b=vector\""}};
  attune_gemm_problem p = {0};
  for (size_t i = 0; i < AT_COUNT(texts); i++)
    FAILS_SAYING(attune_gemm_problem_parse(&p, texts[i].text), ATTUNE_INVALID_ARGUMENT, texts[i].said);
  for (size_t i = 0; i < AT_COUNT(columns); i++) {
    char text[AT_PROBLEM_CHARS], label[AT_PROBLEM_CHARS];
    const at_column fields[] = {
        {"dtype", "f8e4m3", 1}, {"m", "8", 2}, {"n", "8", 3}, {"k", "8", 4}, {columns[i].name, columns[i].value, 5}};
    FAILS_SAYING(at_gemm_from_fields(fields, 5, text, sizeof text, label, sizeof label), ATTUNE_BAD_DATA,
                 columns[i].said);
  }
}

/* Bytes of a good text changed at random: read or refused, and what is read can be written. */
TEST(damaged_texts) {
  for (int i = 0; i < 20000; i++) {
    char text[] =
        "gemm bf16:f32 tn 40x16x30x2 strict beta align=4 lda=44 stride_a=2000 stride_b=broadcast workspace=99",
         again[AT_PROBLEM_CHARS];
    at_gemm g, back;
    for (uint64_t changes = draw(3); changes < 3; changes++)
      text[draw(sizeof text - 1)] = (char)(draw(4) ? 32 + draw(95) : 1 + draw(255));
    if (at_gemm_parse(text, &g) != ATTUNE_OK) continue;
    assert_int_equal(at_gemm_format(&g, again, sizeof again), ATTUNE_OK);
    assert_int_equal(at_gemm_parse(again, &back), ATTUNE_OK);
    assert_memory_equal(&g, &back, sizeof g);
  }
}

/* Terminated at every size; all problems of the widest numbers fit into half of what a text may have. */
TEST(small_out) {
  const attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 100, .n = 200, .k = 300, .batch = 1};
  char whole[256], text[256];
  assert_int_equal(attune_gemm_problem_format(whole, sizeof whole, &p, NULL), ATTUNE_OK);
  for (size_t size = 0; size <= strlen(whole); size++) {
    memset(text, '#', sizeof text);
    FAILS_SAYING(attune_gemm_problem_format(text, size, &p, NULL), ATTUNE_INVALID_ARGUMENT, "should have 4096");
    assert_int_equal(text[size], '#');
    if (size) assert_true(strlen(text) < size);
  }
  assert_int_equal(attune_gemm_problem_format(text, strlen(whole) + 1, &p, NULL), ATTUNE_OK);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
