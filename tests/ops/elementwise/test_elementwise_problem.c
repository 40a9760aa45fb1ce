/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_problem.c: problems of elementwise: texts, classes, and that what is made for a class is right for
 * every problem of it. ATTUNE_TEST_CLASSES: how many random ones (2000). */
#include "tests/support/check.h"

#include "ops/elementwise/language/compile.h"
#include "ops/elementwise/problem/workload_columns.h"
#include "src/base/backend.h"
#ifdef AT_WITH_CUDA
#include "ops/elementwise/cuda/cuda_kernel.h"
#endif

static attune_device *host;
static attune_device gpu; /* of no machine: what folding asks of a device */
static uint64_t seed = 7;

static int64_t draw(int64_t from, int64_t to) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return from + (int64_t)((seed >> 33) % (uint64_t)(to - from + 1));
}

static int64_t draw_size(void) {
  switch (draw(0, 5)) {
  case 0: return 1;
  case 1: return draw(2, 20);
  case 2: return draw(20, 300);
  case 3: return (int64_t)1 << draw(1, 12);
  case 4: return 8 * draw(1, 500);
  default: return draw(300, 5000);
  }
}

/* Strides of a view over the shape: packed in some order of the dimensions, with gaps, still in some, backward. */
static void draw_strides(at_view *v, bool output, bool dense) {
  int order[AT_DIMS];
  int64_t stride = dense || draw(0, 3) ? 1 : draw(1, 9);
  for (int d = 0; d < v->shape.dims; d++) order[d] = d;
  for (int d = v->shape.dims - 1; d > 0 && draw(0, 2) == 0; d--) {
    const int other = (int)draw(0, d), kept = order[d];
    order[d] = order[other];
    order[other] = kept;
  }
  for (int d = v->shape.dims - 1; d >= 0; d--) {
    const int at = order[d];
    const int64_t size = v->shape.sizes[at];
    if (!output && draw(0, 5) == 0) {
      v->strides[at] = 0;
      continue;
    }
    v->strides[at] = !output && draw(0, 7) == 0 ? -stride : stride;
    stride *= size;
    if (!dense && draw(0, 3) == 0) stride += draw(1, 70);
    if (!dense && draw(0, 9) == 0) stride *= draw(2, 40);
    if (!output && draw(0, 30) == 0 && stride > 2) stride /= 2; /* falls together */
  }
}

static at_expression *expression_of(const char *text, int inputs, attune_dtype dtype) {
  static const at_operand_name names[] = {{"a", ATTUNE_F32, 0}, {"b", ATTUNE_F32, 0}, {"c", ATTUNE_F32, 0}};
  at_operand_name tensors[3];
  memcpy(tensors, names, sizeof names);
  tensors[0].dtype = (uint8_t)dtype;
  const at_signature signature = {tensors, NULL, inputs, 0};
  at_expression *e = NULL;
  OK(at_expression_create(&e, text, strlen(text), &signature));
  return e;
}

static const struct {
  const char *text;
  int inputs;
} texts[] = {{"a * b + c", 3},
             {"exp(a)", 1},
             {"a + index()", 1},
             {"index(0) < index(1) ? a : b", 2},
             {"rand() < 0.5 ? a : b", 2},
             {"a + b, a - b", 2},
             {"index(2) + a", 1}};

static void draw_problem(at_elementwise *out, at_expression **expression, at_layout *layout) {
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_BF16, ATTUNE_F64, ATTUNE_I8};
  at_view views[AT_TENSORS];
  at_shape shape = {.dims = (int)draw(1, 4)};
  const int which = (int)draw(0, (int64_t)AT_COUNT(texts) - 1);
  at_expression *e = expression_of(texts[which].text, texts[which].inputs, dtypes[draw(0, 3)]);
  at_elementwise_use use = {.alignment = (uint8_t)(8 << draw(0, 4))};
  for (int d = 0; d < shape.dims; d++) shape.sizes[d] = draw_size();
  const bool dense = draw(0, 2) > 0;
  for (int k = 0; k < e->output_count + e->input_count; k++) {
    const bool output = k < e->output_count;
    const attune_dtype dtype =
        output ? (attune_dtype)e->nodes[e->outputs[k]].dtype : (attune_dtype)e->inputs[k - e->output_count].dtype;
    views[k] = at_view_packed(NULL, dtype, &shape);
    if (output) use.outputs[k] = (uint8_t)dtype;
    if (draw(0, 2)) draw_strides(&views[k], output, dense);
  }
  OK(at_elementwise_layout(layout, e, views, views + e->output_count));
  OK(at_elementwise_make(out, e, layout, &use));
  *expression = e;
}

/* ---- texts ---- */

static void check_text(const at_elementwise *p) {
  char text[AT_PROBLEM_CHARS];
  uint64_t read[AT_PROBLEM_BYTES / 8];
  OK(at_elementwise_format(p, text, sizeof text));
  OK(at_elementwise_parse(text, read));
  const at_elementwise *q = (const at_elementwise *)(const void *)read;
  if (q->bytes != p->bytes || memcmp(p, q, p->bytes) != 0) fail_msg("%s is read as another problem", text);
}

/* ---- classes ---- */

static int64_t reach(const at_elementwise *p, int k) {
  int64_t sum = 1;
  for (int d = 0; d < p->dims; d++) sum += llabs(at_elementwise_strides(p, k)[d]) * (p->numbers[d] - 1);
  return sum;
}

/* All that kernels depend on is equal: zeros, ones, signs, order, what divides what. */
static void check_alike(const at_elementwise *p, const at_elementwise *c) {
  assert_int_equal(p->dims, c->dims);
  for (int d = 0; d < p->dims; d++) {
    assert_true(c->numbers[d] <= p->numbers[d] && 2 * c->numbers[d] > p->numbers[d]);
    for (int twos = 2; twos <= 64; twos *= 2) assert_int_equal(p->numbers[d] % twos == 0, c->numbers[d] % twos == 0);
  }
  for (int k = 0; k < at_elementwise_operand_count(p); k++) {
    const int64_t *was = at_elementwise_strides(p, k), *is = at_elementwise_strides(c, k);
    bool overlaps = false;
    for (int d = 0; d < p->dims; d++) {
      assert_int_equal(was[d] == 0, is[d] == 0);
      assert_int_equal(was[d] < 0, is[d] < 0);
      assert_true(llabs(is[d]) <= llabs(was[d]));
      for (int e = 0; e < p->dims; e++)
        overlaps = overlaps || (e != d && was[d] && llabs(was[d]) >= llabs(was[e]) &&
                                llabs(was[d]) < llabs(was[e]) * p->numbers[e]);
    }
    for (int d = 0; d < p->dims && !overlaps; d++) {
      assert_int_equal(llabs(was[d]) == 1, llabs(is[d]) == 1);
      for (int twos = 2; twos <= 64 && was[d]; twos *= 2) {
        const bool packed = llabs(was[d]) % twos == 0;
        if (packed && is[d] % twos != 0) fail_msg("stride %lld became %lld", (long long)was[d], (long long)is[d]);
      }
    }
    assert_true(reach(c, k) <= reach(p, k));
  }
}

#ifdef AT_WITH_CUDA
static void cuda_problem(at_cuda_problem *out, const at_elementwise *p, const at_expression *e,
                         const at_layout *layout) {
  memset(out, 0, sizeof *out);
  out->expression = e;
  memcpy(out->outputs, p->dtypes, p->output_count);
  out->layout = *layout;
  for (int k = 0; k < AT_TENSORS; k++) out->alignment[k] = p->alignment;
}

/* Each kernel that the class is worth is one of the problem too, and its text is the same. */
static void check_kernels(const at_elementwise *p, const at_expression *e, const at_layout *layout,
                          const at_elementwise *c) {
  at_cuda_problem own, class;
  at_cuda_choice choices[64];
  at_layout class_layout;
  at_cuda_launch launch;
  at_elementwise_layout_of(&class_layout, c);
  cuda_problem(&own, p, e, layout);
  cuda_problem(&class, c, e, &class_layout);
  own.head = 0;
  const int count = at_cuda_candidates(&class, 90, choices, 64);
  assert_true(count > 0);
  for (int i = 0; i < count; i++) {
    char *one = NULL, *two = NULL, text[AT_PROBLEM_CHARS], folded[AT_PROBLEM_CHARS];
    at_configuration configuration;
    (void)at_cuda_choice_format(&configuration, &choices[i]);
    OK(at_elementwise_format(p, text, sizeof text));
    OK(at_elementwise_format(c, folded, sizeof folded));
    if (!at_cuda_supports(&own, &choices[i], 90))
      fail_msg("%s is for %s, but not for %s", configuration.text, folded, text);
    OK(at_cuda_plan(&launch, &own, &choices[i], 132, 2));
    OK(at_cuda_generate(&one, &own, &choices[i]));
    OK(at_cuda_generate(&two, &class, &choices[i]));
    if (strcmp(one, two) != 0) fail_msg("%s: %s and %s have different kernels", configuration.text, text, folded);
    free(one);
    free(two);
  }
}
#endif

TEST(classes) {
  const char *asked = getenv("ATTUNE_TEST_CLASSES");
  const int count = asked ? atoi(asked) : 2000;
  uint64_t room[AT_PROBLEM_BYTES / 8], again[AT_PROBLEM_BYTES / 8];
  for (int i = 0; i < count; i++) {
    at_expression *e = NULL;
    at_layout layout;
    at_elementwise *p = (at_elementwise *)(void *)room, *c = (at_elementwise *)(void *)again;
    draw_problem(p, &e, &layout);
    check_text(p);
    memcpy(c, p, p->bytes);
    at_elementwise_fold(c, &gpu);
    check_text(c);
    check_alike(p, c);
    uint64_t twice[AT_PROBLEM_BYTES / 8];
    memcpy(twice, c, c->bytes);
    at_elementwise_fold(twice, &gpu);
    assert_memory_equal(twice, c, c->bytes);
#ifdef AT_WITH_CUDA
    if (i % 10 == 0 && layout.count < INT64_C(1) << 30) check_kernels(p, e, &layout, c);
#endif
    at_expression_destroy(e);
  }
}

static void describe(char *out, const char *expression, const char *shape, const char *inputs, const char *outputs) {
  const at_spec_words words = {.expression = expression, .shape = shape, .inputs = inputs, .outputs = outputs};
  OK(at_elementwise_describe(&words, out, AT_PROBLEM_CHARS));
}

static void same_problem(const char *one, const char *inputs, const char *other, const char *other_inputs) {
  char a[AT_PROBLEM_CHARS], b[AT_PROBLEM_CHARS];
  describe(a, one, "64x96", inputs, "");
  describe(b, other, "64x96", other_inputs, "");
  assert_string_equal(a, b);
}

TEST(spellings) {
  same_problem("a + b", "", "  x+y # a sum", "");
  same_problem("gelu(p + q) * q", "", "t = q + p; q * gelu(t)", "");
  same_problem("x + bias", "x bias::96", "y + z", "y z::96");
}

/* Sizes that divide alike and are near are one class; others are not. */
TEST(neighbours) {
  static const struct {
    const char *one, *other;
    bool same;
  } pairs[] = {{"1048576", "1048576", true},     {"1000064", "1040000", true},
               {"1048576", "1300032", true},     {"1048576", "1400064", false},
               {"4096x4096", "4096x4096", true}, {"1001", "1003", true},
               {"1001", "1002", false},          {"7", "8", false},
               {"1048576", "2097152", false}};
  for (size_t i = 0; i < AT_COUNT(pairs); i++) {
    char text[AT_PROBLEM_CHARS];
    uint64_t room[2][AT_PROBLEM_BYTES / 8];
    for (int k = 0; k < 2; k++) {
      describe(text, "a + b", k ? pairs[i].other : pairs[i].one, "", "");
      OK(at_elementwise_parse(text, room[k]));
      at_elementwise_fold(room[k], host);
    }
    const bool same = memcmp(room[0], room[1], at_elementwise_size(room[0])) == 0;
    if (same != pairs[i].same) fail_msg("%s and %s: same is %d", pairs[i].one, pairs[i].other, same);
  }
}

/* Each operand is aligned to its own elements: the smallest may be the least aligned. */
TEST(elements_of_two_sizes) {
  static const char text[] = "elementwise 64 strict out=f32 align=2 : bf16 i0: i0";
  uint64_t room[AT_PROBLEM_BYTES / 8];
  at_buffer buffers[AT_MAX_BUFFERS];
  char again[AT_PROBLEM_CHARS];
  int count = 0;
  OK(at_elementwise_parse(text, room));
  OK(at_elementwise_format(room, again, sizeof again));
  assert_string_equal(again, text);
  OK(at_elementwise_buffers(room, buffers, &count));
  assert_int_equal(count, 2);
  assert_int_equal(buffers[0].alignment, 4);
  assert_int_equal(buffers[1].alignment, 2);
  FAILS_SAYING(at_elementwise_parse("elementwise 64 strict out=f32 align=1 : bf16 i0: i0", room),
               ATTUNE_INVALID_ARGUMENT, "should be 2 or more");
}

/* Texts that are none, and what the message says. */
TEST(bad_texts) {
  static const char *const texts_of[][2] = {
      {"elementwise 64 strict out=f32 f32 i0: i0", " : "},
      {"elementwise 64y strict out=f32 : f32 i0: i0", "64y"},
      {"elementwise 0 strict out=f32 : f32 i0: i0", "\"0\""},
      {"elementwise 64 strict out=f31 : f32 i0: i0", "out=f31"},
      {"elementwise 64 strict out=f32,f32 : f32 i0: i0", "out=f32,f32"},
      {"elementwise 64 strict : f32 i0: i0", "out="},
      {"elementwise 64 strict out=f32 i3=1 : f32 i0: i0", "i3=1"},
      {"elementwise 64 strict out=f32 i0=1,1 : f32 i0: i0", "i0=1,1"},
      {"elementwise 64 strict out=f32 o0=0 : f32 i0: i0", "overlap"},
      {"elementwise 8x8 strict out=f32 o0=1,1 : f32 i0: i0", "overlap"},
      {"elementwise 64 strict out=f32 in_place=o0:i4 : f32 i0: i0", "in_place=o0:i4"},
      {"elementwise 64 strict out=f64 in_place=o0:i0 : f32 i0: i0", "memory"},
      {"elementwise 64 strict out=f32 align=2 : f32 i0: i0", "align"},
      {"elementwise 64 strict out=f32 i0=9223372036854775807 : f32 i0: i0", "i0="},
      {"elementwise 64 strict out=f32 i0=4611686018427387904 : f32 i0: i0", "2^63"},
      {"elementwise 4611686018427387904x4 strict out=f32 : f32 i0: i0", "too large"},
      {"elementwise 64 strict out=f32 : f32 i0: i0 +", "i0 +"},
      {"elementwise 64 strict out=f32 : ", ""},
      {"elementwise", " : "}};
  uint64_t room[AT_PROBLEM_BYTES / 8];
  for (size_t i = 0; i < AT_COUNT(texts_of); i++) {
    FAILS(at_elementwise_parse(texts_of[i][0], room), ATTUNE_INVALID_ARGUMENT);
    if (!strstr(attune_last_message(), texts_of[i][1]))
      fail_msg("%s: the message is %s", texts_of[i][0], attune_last_message());
  }
}

/* An expression that is too long for a problem is told so; one just below is a problem. */
TEST(long_ones) {
  char text[12000] = "a", out[AT_PROBLEM_CHARS];
  for (int i = 0; i < 300; i++) snprintf(text + strlen(text), 32, " * %d.5 + exp(a)", i + 3);
  const at_spec_words words = {.expression = text, .shape = "64"};
  FAILS_SAYING(at_elementwise_describe(&words, out, sizeof out), ATTUNE_INVALID_ARGUMENT, "too long");
}

int main(void) {
  gpu = (attune_device){
      .backend.kind = ATTUNE_DEVICE_CUDA, .alignment_mask = 127, .properties = {.kind = ATTUNE_DEVICE_CUDA}};
  if (attune_device_get(&host, "host") != ATTUNE_OK) return 1;
  return RUN_TESTS(NULL, NULL);
}
