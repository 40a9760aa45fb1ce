/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_hostile.c: nothing of a user's text gets into the text for the CUDA compiler. Every kernel of an
 * expression is the same, character for character, as that of its canonical text, whatever its names and comments are:
 * those of expressions_hostile.txt, too. */
#include "tests/support/check.h"

#include "ops/elementwise/cuda/cuda_kernel.h"
#include "ops/elementwise/language/compile.h"
#include "ops/elementwise/problem/problem.h"

enum { LINES = 1200, LINE = 400 };

static char lines[LINES][LINE];
static int line_count;

/* Without the escapes: as they stand. */
FIXTURE(read_corpus) {
  char line[4096];
  FILE *file = fopen(AT_SOURCE_DIR "/tests/ops/elementwise/language/expressions_hostile.txt", "r");
  assert_non_null(file);
  for (int number = 1; fgets(line, sizeof line, file); number++) {
    line[strcspn(line, "\n")] = '\0';
    if (number > 3 && line_count < LINES) snprintf(lines[line_count++], LINE, "%.399s", line);
  }
  fclose(file);
  assert_true(line_count >= 500);
  return 0;
}

/* How operands lie: packed, a bias, transposed, with gaps; each has a form of kernels for it. */
static void lay_out(at_layout *out, const at_expression *e, int way) {
  static const int64_t strides[][2] = {{64, 1}, {0, 1}, {1, 32}, {640, 7}};
  const at_shape shape = {2, {32, 64}};
  at_view views[AT_TENSORS];
  const int tensors = e->output_count + e->input_count;
  for (int k = 0; k < tensors; k++) {
    const bool output = k < e->output_count;
    const attune_dtype dtype =
        (attune_dtype)(output ? e->nodes[e->outputs[k]].dtype : e->inputs[k - e->output_count].dtype);
    views[k] = at_view_packed(NULL, dtype, &shape);
    if (k == e->output_count) memcpy(views[k].strides, strides[way], sizeof strides[way]);
  }
  OK(at_elementwise_layout(out, e, views, views + e->output_count));
}

static void make_problem(at_cuda_problem *p, const at_expression *e, int way) {
  const void *tensors[AT_CUDA_TENSORS];
  memset(p, 0, sizeof *p);
  p->expression = e;
  for (int i = 0; i < e->output_count; i++) p->outputs[i] = e->nodes[e->outputs[i]].dtype;
  lay_out(&p->layout, e, way);
  for (int k = 0; k < AT_CUDA_TENSORS; k++) tensors[k] = (const void *)4096;
  at_cuda_align(p, tensors);
}

/* All kernels' texts of both, which lie in this way, are the same; which forms were seen. */
static unsigned compare(const at_expression *e, const at_expression *plain, int way) {
  static const at_cuda_choice bulk = {.form = AT_FORM_BULK, .bytes = 16, .loads = 2, .block = 128, .persistent = 1};
  at_cuda_choice choices[65];
  at_cuda_problem p, q;
  unsigned forms = 0;
  make_problem(&p, e, way);
  make_problem(&q, plain, way);
  int count = at_cuda_candidates(&p, 90, choices, 64);
  if (at_cuda_supports(&p, &bulk, 90)) choices[count++] = bulk;
  for (int i = 0; i < count; i++) {
    char *text = NULL, *same = NULL;
    if (forms & 1u << choices[i].form) continue; /* other tunables are numbers */
    forms |= 1u << choices[i].form;
    OK(at_cuda_generate(&text, &p, &choices[i]));
    OK(at_cuda_generate(&same, &q, &choices[i]));
    assert_string_equal(text, same);
    free(text);
    free(same);
  }
  return forms;
}

static at_expression *compile(const char *text, const char *a, const char *b, const char *s, bool may_fail) {
  at_operand_name tensors[2] = {{.dtype = ATTUNE_F32}, {.dtype = ATTUNE_BF16}}, scalar = {.dtype = ATTUNE_F64};
  at_expression *e = NULL;
  snprintf(tensors[0].name, sizeof tensors[0].name, "%.63s", a);
  snprintf(tensors[1].name, sizeof tensors[1].name, "%.63s", b);
  snprintf(scalar.name, sizeof scalar.name, "%.63s", s);
  const at_signature signature = {tensors, &scalar, 2, 1};
  const attune_status status = at_expression_create(&e, text, strlen(text), &signature);
  if (status != ATTUNE_OK && !may_fail) fail_msg("%s: %s", text, attune_last_message());
  return e;
}

static at_expression *canonical(const at_expression *e) {
  at_expression *plain = NULL;
  OK(at_expression_parse_canonical(&plain, e->text));
  return plain;
}

/* In a comment at the end, and with a local name. */
TEST(in_comments) {
  at_expression *wanted = compile("gelu(a + b) * s", "a", "b", "s", false), *plain = canonical(wanted);
  unsigned forms = 0;
  int taken = 0;
  for (int i = 0; i < line_count; i++) {
    char text[2 * LINE];
    snprintf(text, sizeof text, "__device__ = a + b; gelu(__device__) * s # %.399s", lines[i]);
    at_expression *e = compile(text, "a", "b", "s", true);
    if (!e) continue; /* not ASCII */
    taken++;
    if (i % 16 == 0) forms |= compare(e, plain, i / 16 % 4);
    assert_string_equal(e->text, wanted->text);
    at_expression_destroy(e);
  }
  assert_true(taken > line_count / 2);
  assert_int_equal(forms, (1u << AT_FORM_COUNT) - 1);
  at_expression_destroy(plain);
  at_expression_destroy(wanted);
}

/* Names that would mean something to a compiler, were they told to it. */
TEST(good_names) {
  static const char *const names[] = {"asm",
                                      "__asm__",
                                      "volatile",
                                      "threadIdx",
                                      "blockIdx",
                                      "int",
                                      "float",
                                      "__syncthreads",
                                      "template",
                                      "namespace",
                                      "struct",
                                      "main",
                                      "at_elementwise",
                                      "NULL",
                                      "printf",
                                      "goto",
                                      "sizeof",
                                      "union",
                                      "extern",
                                      "__global__",
                                      "__shared__",
                                      "_",
                                      "__",
                                      "define",
                                      "include",
                                      "pragma",
                                      "operator",
                                      "typename",
                                      "using",
                                      "std",
                                      "u1",
                                      "o0",
                                      "i0",
                                      "s0",
                                      "t0",
                                      "x",
                                      "N",
                                      "THREADS",
                                      "BLOCK",
                                      "VECTOR",
                                      "__LINE__",
                                      "__FILE__",
                                      "R",
                                      "u8R",
                                      "L",
                                      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
  static const char *const texts[] = {"%s + %s * %s", "max(%s, %s) * %s", "rand() < 0.5 ? %s - %s : %s",
                                      "%s - index(), %s / %s"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
      char text[600];
      const char *const own[] = {names[i], names[(i + 1) % (sizeof names / sizeof *names)],
                                 names[(i + 2) % (sizeof names / sizeof *names)]};
      size_t at = 0;
      int operand = 0;
      for (const char *c = texts[k]; *c; c++) /* each %s in turn */
        if (*c == '%')
          at += (size_t)snprintf(text + at, sizeof text - at, "%s", own[operand++]), c++;
        else
          text[at++] = *c;
      text[at] = '\0';
      at_expression *e = compile(text, own[0], own[1], own[2], false), *plain = canonical(e);
      compare(e, plain, (int)(i % 4));
      at_expression_destroy(plain);
      at_expression_destroy(e);
    }
}

/* Names that no check let through, in a graph: they are looked at by nobody. */
TEST(bad_names_in_a_graph) {
  at_expression *e = compile("gelu(a + b) * s, a - s", "a", "b", "s", false), *plain = canonical(e);
  for (int i = 0; i < line_count; i += 8) {
    snprintf(e->inputs[0].name, sizeof e->inputs[0].name, "%.63s", lines[i]);
    snprintf(e->inputs[1].name, sizeof e->inputs[1].name, "%.63s", lines[(i + 1) % line_count]);
    snprintf(e->scalars[0].name, sizeof e->scalars[0].name, "%.63s", lines[(i + 2) % line_count]);
    compare(e, plain, i / 8 % 4);
  }
  at_expression_destroy(plain);
  at_expression_destroy(e);
}

/* Numbers are their bits. */
TEST(numbers) {
  static const char *const texts[] = {"a * 1e308 + b * s",      "a * 4.9e-324 + b * s",
                                      "a + 0x7fffffff + b * s", "a * 3.14159265358979323846264338327950288 + b * s",
                                      "a + nan + b * s",        "a * inf + b * s",
                                      "a * -0.0 + b * s",       "a + 1.5j + b * s"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    at_expression *e = compile(texts[i], "a", "b", "s", false), *plain = canonical(e);
    compare(e, plain, (int)(i % 4));
    at_expression_destroy(plain);
    at_expression_destroy(e);
  }
}

int main(void) {
  return RUN_TESTS(read_corpus, NULL);
}
