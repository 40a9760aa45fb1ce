/* SPDX-License-Identifier: Apache-2.0
 * test_expression_grammar.c: what binds to what, against a table of its own; numbers, names, statements. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/language/expression_fixture.h"

static const char *const INTEGERS = "i32 a, i32 b, i32 c, i32 d, bool m", *const FLOATS =
                                                                              "f32 x, f32 y, f32 z, bf16 h; f64 s";

/* From the loosest to the tightest, as C and Python have them. */
static const char *const LEVELS[][5] = {{"||"},
                                        {"&&"},
                                        {"|"},
                                        {"^"},
                                        {"&"},
                                        {"==", "!="},
                                        {"<", "<=", ">", ">="},
                                        {"<<", ">>"},
                                        {"+", "-"},
                                        {"*", "/", "//", "%"},
                                        {"**"}};

static char *canonical(const char *line, const char *text) {
  at_expression *e = NULL;
  if (compile_mentioned(&e, line, text) != ATTUNE_OK) fail_msg("%s: %s", text, attune_last_message());
  char *out = strdup(e->text);
  at_expression_destroy(e);
  return out;
}

static void same(const char *line, const char *one, const char *other) {
  char *x = canonical(line, one), *y = canonical(line, other);
  if (strcmp(x, y) != 0) fail_msg("%s is %s, %s is %s", one, x, other, y);
  free(x);
  free(y);
}

static void differ(const char *line, const char *one, const char *other) {
  char *x = canonical(line, one), *y = canonical(line, other);
  if (strcmp(x, y) == 0) fail_msg("%s and %s are both %s", one, other, x);
  free(x);
  free(y);
}

static bool compares(const char *sign) {
  return strchr("=!<>", sign[0]) && strcmp(sign, "<<") != 0 && strcmp(sign, ">>") != 0;
}

/* a P b Q c is (a P b) Q c or a P (b Q c). */
static void pair(const char *p, int p_level, const char *q, int q_level) {
  char bare[64], left[64], right[64];
  const char *line = p[0] == '/' || q[0] == '/' ? "f64 a, f64 b, f64 c" : INTEGERS;
  if (strpbrk(p, "|^&<>") && strpbrk(q, "/*%") && line != INTEGERS && !compares(p) && p[1] != p[0])
    return; /* bits of floats */
  if (strpbrk(q, "|^&<>") && line != INTEGERS && !compares(q) && !(q[0] == q[1] && strchr("|&", q[0]))) return;
  if (strpbrk(p, "|^&<>") && line != INTEGERS && !compares(p) && !(p[0] == p[1] && strchr("|&", p[0]))) return;
  snprintf(bare, sizeof bare, "a %s b %s c", p, q);
  snprintf(left, sizeof left, "(a %s b) %s c", p, q);
  snprintf(right, sizeof right, "a %s (b %s c)", p, q);
  if (compares(p) && compares(q)) {
    at_expression *e = NULL;
    FAILS_SAYING(compile_mentioned(&e, line, bare), ATTUNE_INVALID_ARGUMENT, "comparisons do not chain");
    return;
  }
  const bool to_left = p_level > q_level || (p_level == q_level && strcmp(p, "**") != 0);
  same(line, bare, to_left ? left : right);
}

TEST(precedence) {
  const int levels = (int)AT_COUNT(LEVELS);
  int pairs = 0;
  for (int i = 0; i < levels; i++)
    for (int k = 0; k < 5 && LEVELS[i][k]; k++)
      for (int j = 0; j < levels; j++)
        for (int l = 0; l < 5 && LEVELS[j][l]; l++, pairs++) pair(LEVELS[i][k], i, LEVELS[j][l], j);
  assert_int_equal(pairs, 20 * 20);
}

TEST(unary_and_power) {
  same(FLOATS, "-x**y", "-(x**y)");
  differ(FLOATS, "-x**y", "(-x)**y");
  same(FLOATS, "x**y**z", "x**(y**z)");
  differ(FLOATS, "x**y**z", "(x**y)**z");
  same(FLOATS, "x**-y**z", "x**(-(y**z))");
  same(FLOATS, "-x*y", "(-x)*y");
  same(FLOATS, "x - -y", "x-(-y)");
  same(FLOATS, "+x", "x");
  same(FLOATS, "!x == y", "(!x) == y");
  same(INTEGERS, "~a & b", "(~a) & b");
  same(INTEGERS, "-a ** 2", "-(a*a)");
  same(INTEGERS, "!a || b && c", "(!a) || (b && c)");
}

TEST(conditional) {
  same(FLOATS, "x < y ? x : y", "where(x < y, x, y)");
  same(FLOATS, "x ? y : z ? x : y", "x ? y : (z ? x : y)");
  same(FLOATS, "x ? y ? x : z : y", "x ? (y ? x : z) : y");
  same(FLOATS, "x || y ? x + 1 : y + 1", "(x || y) ? (x + 1) : (y + 1)");
  same(FLOATS, "(x ? y : z) + 1", "1 + where(x, y, z)");
}

TEST(numbers) {
  GIVES("f64 x", "x + 0x1F", "i0 + 31.0");
  GIVES("f64 x", "x + 1.5e-3", "i0 + 0.0015");
  GIVES("f64 x", "x + .5", "i0 + 0.5");
  GIVES("f64 x", "x + 1.", "i0 + 1.0");
  GIVES("f64 x", "x + 1E2", "i0 + 100.0");
  GIVES("f64 x", "x + 1e+2", "i0 + 100.0");
  GIVES("f64 x", "x + pi", "i0 + 3.141592653589793");
  GIVES("f64 x", "x + e", "i0 + 2.718281828459045");
  GIVES("f64 x", "x + inf", "i0 + inf");
  GIVES("f64 x", "x - inf", "i0 - inf");
  GIVES("f64 x", "x + nan", "i0 + nan");
  GIVES("f64 x", "x + 4.9e-324", "i0 + 5e-324");
  GIVES("f64 x", "x * 0.1", "i0 * 0.1");
  GIVES("f32 x", "x * 0.1", "i0 * f32(0.1)");
  GIVES("c128 x", "x + 1.5j", "i0 + complex(0.0, 1.5)");
  GIVES("c64 x", "x + (1 - 2j)", "i0 + complex(f32(1.0), f32(-2.0))");
  GIVES("bool x", "x ^ true", "i0 ^ true");
  GIVES("u64 x", "x + 18446744073709551615", "i0 + u64(18446744073709551615)");
  GIVES("i64 x", "x + -9223372036854775808", "i0 + -9223372036854775808");
  GIVES("i64 x", "x + 9223372036854775807", "i0 + 9223372036854775807");
  GIVES("i64 x", "x + 0", "i0");
}

TEST(statements) {
  GIVES(FLOATS, "t = x + y; t * t", "t0 = i0 + i1; t0 * t0");
  GIVES(FLOATS, "t = x + y; t, gelu(t)", "t0 = i0 + i1; t0, gelu(t0)");
  GIVES(FLOATS, "t = x + y;\n\tu = t * 2; # twice\r\n u", "(i0 + i1) * f32(2.0)");
  GIVES(FLOATS, "x + y # the sum", "i0 + i1");
  GIVES(FLOATS, "x;", "i0");
  GIVES(FLOATS, "x, y, x - y;", "i0, i1, i0 - i1");
  GIVES(FLOATS, "# first\n#\n x", "i0");
  GIVES(FLOATS, "i0 = x; s0 = y; t0 = i0 - s0; t0 * t0 - s0", "t0 = i0 - i1; t0 * t0 - i1");
  GIVES("f32 _a1, f32 E9", "_a1 - E9", "i0 - i1");
  GIVES("f32 a", "a,a,a,a,a,a,a,a", "i0, i0, i0, i0, i0, i0, i0, i0");
}

TEST(calls) {
  same(FLOATS, "min(x, y, z)", "min(min(x, y), z)");
  same(FLOATS, "max(x, y, z, 1, 2)", "max(max(max(max(x, y), z), 1), 2)");
  same(FLOATS, "hypot(x, y, z)", "hypot(hypot(x, y), z)");
  GIVES(FLOATS, "clamp(x, -1, 1)", "clamp(i0, f32(-1.0), f32(1.0))");
  GIVES(FLOATS, "gelu ( x )", "gelu(i0)");
  GIVES(FLOATS, "bf16(x)", "bf16(i0)");
  GIVES("c64 z", "abs(z)", "abs(i0)");
  GIVES("c64 z", "real(z), imag(z), angle(z)", "real(i0), imag(i0), angle(i0)");
  GIVES(FLOATS, "real(x), conj(x)", "i0, i0");
  GIVES("", "index()", "index()");
  GIVES("", "index(0) >= index(1)", "index(1) <= index(0)");
  GIVES("", "index(3 + 4)", "index(7)");
  GIVES("", "rand() + rand()", "rand() + rand()");
  GIVES("", "r = rand(); r + r", "t0 = rand(); t0 + t0");
  GIVES("", "randn() * 2", "randn() * f32(2.0)");
}

/* Properties of the graph besides its text. */
TEST(figures) {
  at_expression *e = NULL;
  OK(compile_mentioned(&e, "f32 a, bf16 b; f64 s, i64 n",
                       "b * s + a * n + rand() - rand() * randn() + index(2), index()"));
  assert_int_equal(e->input_count, 2);
  assert_int_equal(e->scalar_count, 2);
  assert_int_equal(e->output_count, 2);
  assert_int_equal(e->uniform_count, 2);
  assert_int_equal(e->normal_count, 1);
  assert_int_equal(e->max_position, 2);
  assert_true(e->element);
  assert_int_equal(e->nodes[e->outputs[0]].dtype, ATTUNE_F32);
  assert_int_equal(e->nodes[e->outputs[1]].dtype, ATTUNE_I64);
  for (int i = 0; i < e->input_count; i++)
    assert_true(e->inputs[i].dtype == (strcmp(e->inputs[i].name, "a") == 0 ? ATTUNE_F32 : ATTUNE_BF16));
  for (int i = 0; i < e->node_count; i++) {
    const at_node *n = &e->nodes[i];
    for (int k = 0; k < n->count; k++) assert_true(n->argument[k] < i);
    if (n->kind == AT_NODE_FUNCTION) {
      assert_int_equal(n->count, at_function_arity((at_function)n->function));
      assert_true(n->dtype != ATTUNE_BF16);
    }
  }
  at_expression_destroy(e);
  OK(compile(&e, "f32 a", "a"));
  assert_true(e->max_position == -1 && !e->element && e->uniform_count == 0);
  at_expression_destroy(e);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
