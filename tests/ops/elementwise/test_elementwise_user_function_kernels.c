/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_user_function_kernels.c: functions in CUDA C of the program's own compile in every form, of every
 * type, with one output and with several, for every architecture, and what is wrong with them is told by the compiler
 * in the caller's lines. Needs NVRTC, no GPU. Each form for each architecture, the rest for one in turn; with
 * ATTUNE_TEST_ALL each. */
#include "tests/support/check.h"

#include "src/cuda/jit/kernel_compile.h"
#include "tests/ops/elementwise/elementwise_forms.h"
#include "tests/ops/elementwise/raw_function.h"

static const char *const architectures[] = {"sm_80", "sm_90a", "sm_100", "sm_120"};
static const int capabilities[] = {80, 90, 100, 120};

static attune_status compile(const at_cuda_problem *p, const at_cuda_choice *c, const char *architecture) {
  at_architecture target;
  at_kernel_code code = {NULL, 0};
  char *text = NULL;
  snprintf(target.name, sizeof target.name, "%s", architecture);
  OK(at_cuda_generate(&text, p, c));
  const at_kernel_source source = at_cuda_source(p, text);
  const attune_status status = at_kernel_compile(&code, &source, &target, NULL);
  assert_true(status != ATTUNE_OK || code.size > 100);
  at_kernel_code_free(&code);
  free(text);
  return status;
}

static bool all_of_it(void) {
  return getenv("ATTUNE_TEST_ALL") != NULL;
}

/* UNSUPPORTED: this compiler does not know the architecture. */
static void compiles(const at_cuda_problem *p, const at_cuda_choice *c, size_t turn, bool each, const char *what) {
  const bool all = each || all_of_it();
  for (size_t a = 0; a < AT_COUNT(architectures); a++) {
    if ((!all && turn % AT_COUNT(architectures) != a) || !at_cuda_supports(p, c, capabilities[a])) continue;
    const attune_status status = compile(p, c, architectures[a]);
    if (status != ATTUNE_OK && status != ATTUNE_UNSUPPORTED)
      fail_msg("%s for %s: %s", what, architectures[a], attune_last_message());
  }
}

TEST(forms) {
  static graph g;
  int count = 0;
  bool seen[AT_FORM_COUNT] = {false};
  for (size_t i = 0; i < AT_COUNT(form_cases); i++) {
    const form_case *f = &form_cases[i];
    ecase c;
    at_expression *e = NULL;
    at_configuration what;
    three(&g, f->dtypes[1], f->dtypes[2], f->dtypes[3], f->dtypes[0]);
    OK(case_make(&c, &g, &f->shape, f->ways, f->dtypes, false, true, 1));
    const attune_status status = raw_expression(&e, "template <typename T> T f(T a, T b, T c) { return a * b + c; }",
                                                "f", f->dtypes + 1, 3, 0, 1);
    c.problem.expression = e;
    assert_true(at_cuda_choice_format(&what, &f->choice));
    const bool first = status == ATTUNE_OK && !seen[f->choice.form];
    if (first || (status == ATTUNE_OK && all_of_it())) compiles(&c.problem, &f->choice, i, first, what.text);
    seen[f->choice.form] = seen[f->choice.form] || first;
    count += status == ATTUNE_OK;
    at_expression_destroy(e);
    case_free(&c);
  }
  assert_true(count >= 20);
  for (int f = 0; f < AT_FORM_COUNT; f++) assert_true(seen[f]);
}

/* One packed output or more of so many inputs. */
static void make(at_cuda_problem *p, at_expression *e, const attune_dtype *inputs, int input_count, int outputs) {
  at_view views[AT_CUDA_TENSORS];
  const at_shape shape = {1, {1000}};
  const void *places[AT_CUDA_TENSORS];
  memset(p, 0, sizeof *p);
  p->expression = e;
  for (int k = 0; k < outputs + input_count; k++) {
    const attune_dtype dtype = inputs[k < outputs ? 0 : k - outputs];
    if (k < outputs) p->outputs[k] = (uint8_t)dtype;
    views[k] = at_view_packed((const void *)4096, dtype, &shape);
    places[k] = (const void *)4096;
  }
  OK(at_layout_make(&p->layout, &shape, views, outputs + input_count));
  at_cuda_align(p, places);
}

static const at_cuda_choice vector = {.form = AT_FORM_VECTOR, .bytes = 16, .loads = 2, .block = 128};

/* Every dtype, with operators, helpers, scalars, and three outputs; 16 inputs, 8 scalars and 8 outputs. */
TEST(types) {
  static const char one[] = "template <typename T> T twice(T x) { return x + x; }\n"
                            "template <typename T> T f(T x, T y) { return twice(x) * y - x / y; }",
                    three_outputs[] = "template <typename T> void f(T x, T y, T alpha, T &a, T &b, T &c) {\n"
                                      "  a = alpha * x, b = x - y, c = x == y ? x : y;\n}";
  for (int d = 1; d <= AT_DTYPE_LAST; d++) {
    const attune_dtype inputs[] = {(attune_dtype)d, (attune_dtype)d};
    for (int outputs = 1; outputs <= 3; outputs += 2) {
      if (!all_of_it() && (d + outputs) % 6 != 0) continue;
      at_cuda_problem p;
      at_expression *e = NULL;
      OK(raw_expression(&e, outputs == 1 ? one : three_outputs, "f", inputs, 2, outputs > 1, outputs));
      make(&p, e, inputs, 2, outputs);
      compiles(&p, &vector, (size_t)(d + outputs), false, attune_dtype_name((attune_dtype)d));
      at_expression_destroy(e);
    }
  }
}

TEST(most_operands) {
  char source[2048] = "template <typename T> void f(", *at = source + strlen(source);
  attune_dtype inputs[16];
  at_cuda_problem p;
  at_expression *e = NULL;
  for (int i = 0; i < 24; i++) at += sprintf(at, "T x%d, ", i);
  for (int i = 0; i < 8; i++) at += sprintf(at, "T &y%d%s", i, i < 7 ? ", " : ") {\n");
  for (int i = 0; i < 8; i++) at += sprintf(at, "  y%d = x%d * x%d + x%d;\n", i, i, i + 8, i + 16);
  strcpy(at, "}\n");
  for (int i = 0; i < 16; i++) inputs[i] = i % 2 ? ATTUNE_BF16 : ATTUNE_F32;
  OK(raw_expression(&e, source, "f", inputs, 16, 8, 8));
  make(&p, e, inputs, 16, 8);
  compiles(&p, &(at_cuda_choice){.form = AT_FORM_STRIDED, .loads = 1, .block = 128}, 1, false, "24 operands");
  at_expression_destroy(e);
}

/* Complex functions; names that the kernel has as macros or for itself; contexts that compilers get wrong. */
TEST(uses) {
  static const struct {
    attune_dtype dtype;
    const char *name, *source;
  } all[] = {
      {ATTUNE_C64, "f",
       "template <typename T> T f(T x, T y) { return exp(x) * conj(y) - 2.0f * sqrt(x) / abs(y) + x.im; }"},
      {ATTUNE_C128, "f",
       "template <typename T> T f(T x, T y) { return x != y ? -sin(x) + log(y) : T{x.re, y.im} * cos(x); }"},
      {ATTUNE_F32, "BLOCK",
       "template <typename T> T BLOCK(T VECTOR, T TILE) { int LOAD = 1; return VECTOR * TILE + LOAD; }"},
      {ATTUNE_F32, "x", "float x(float a, float b) { return a + b; }"},
      {ATTUNE_F16, "f",
       "__device__ __forceinline__ float f(const float &a, const float &b) { return fmaf(a, b, sinf(a)); }"},
      {ATTUNE_F32, "f",
       "static __constant__ float table[2] = {1.f, 2.f};\nfloat f(float a, float b) { return table[a < b]; }"},
      {ATTUNE_F32, "f", "#define TWO 2\nfloat f(float a, float b) { return TWO * a + b; }\n#undef TWO"},
      {ATTUNE_F64, "g",
       "struct s { double x; double g() const { return x; } };\ndouble g(double a, double b) { return s{a}.g() + b; }"},
      {ATTUNE_I32, "f",
       "namespace n { int half(int x) { return x / 2; } }\nauto f = [](int a, int b) { return n::half(a) ^ b; };"},
      {ATTUNE_F32, "f",
       "float f(float a, float b) { float r; asm(\"add.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(a), \"f\"(b)); return r; "
       "}"},
  };
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    const attune_dtype inputs[] = {all[i].dtype, all[i].dtype};
    for (int written = all_of_it() ? 0 : i % 2; written < 2; written += all_of_it() ? 1 : 2) {
      at_cuda_problem p;
      at_expression *e = NULL;
      OK(raw_expression(&e, all[i].source, all[i].name, inputs, 2, 0, 1));
      make(&p, e, inputs, 2, 1);
      p.as_written = written;
      compiles(&p, &vector, i + (size_t)written, false, all[i].source);
      at_expression_destroy(e);
    }
  }
}

/* The compiler's words, with the caller's lines. */
TEST(errors) {
  static const struct {
    const char *source, *name, *words;
  } all[] = {
      {"float f(float a, float b) {\n  return a +\n    c;\n}", "f", "f(3): error"},
      {"float f(float a, float b) { return a }", "f", "f(1): error"},
      {"float f(float a, float b) { return a; }\n}\nextern \"C\" __global__ void evil() {", "f", "f(2): error"},
      {"float f(float a, float b) {", "f", "error"},
      {"#include <no_such_file.h>\nfloat f(float a, float b) { return a; }", "f", "f(1): "},
      {"float f(float a, float b) { asm(\"no such thing;\"); return a; }", "f", "no"},
      {"float g(float a, float b) { return a; }", "f", "\"f\""},
      {"float f(float a) { return a; }", "f", "argument"},
      {"#if 0\nfloat f(float a, float b) { return a; }", "f", "error"},
      {"#error no, no, no\nfloat f(float a, float b) { return a; }", "f", "no, no, no"},
      {"", "f", "\"f\""},
  };
  const attune_dtype inputs[] = {ATTUNE_F32, ATTUNE_F32};
  for (size_t i = 0; i < AT_COUNT(all); i++) {
    at_cuda_problem p;
    at_expression *e = NULL;
    OK(raw_expression(&e, all[i].source, all[i].name, inputs, 2, 0, 1));
    make(&p, e, inputs, 2, 1);
    for (int written = 0; written < 2; written++) {
      p.as_written = written;
      const attune_status status = compile(&p, &vector, "sm_90a");
      if (status != ATTUNE_INVALID_ARGUMENT)
        fail_msg("\"%s\" gives %s: %s", all[i].source, attune_status_string(status), attune_last_message());
    }
    if (!strstr(attune_last_message(), all[i].words))
      fail_msg("\"%s\": %s; should say \"%s\"", all[i].source, attune_last_message(), all[i].words);
    at_expression_destroy(e);
  }
}

/* Names and blanks make no other kernel; a problem whose source is gone has none. */
TEST(one_kernel) {
  const attune_dtype inputs[] = {ATTUNE_F32, ATTUNE_F32};
  at_cuda_problem p, q;
  at_expression *e = NULL, *f = NULL;
  char *text = NULL, *same = NULL, *none = NULL;
  OK(raw_expression(&e, "float mul(float a, float b) { return a * b; }", "mul", inputs, 2, 0, 1));
  make(&p, e, inputs, 2, 1);
  OK(at_cuda_generate(&text, &p, &vector));
  at_expression_destroy(e);
  OK(raw_expression(&f, "float f(float a,\n        float b) {\n  return a * b; // product\n}\n", "f", inputs, 2, 0, 1));
  make(&q, f, inputs, 2, 1);
  OK(at_cuda_generate(&same, &q, &vector));
  assert_string_equal(text, same);
  at_user_function_release(f->function);
  f->function = NULL;
  FAILS_SAYING(at_cuda_generate(&none, &q, &vector), ATTUNE_UNSUPPORTED, "attune_elementwise_cuda");
  assert_null(none);
  at_expression_destroy(f);
  free(text);
  free(same);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
