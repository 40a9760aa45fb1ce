/* SPDX-License-Identifier: Apache-2.0
 * test_expression_fold.c: what is computed at once is what the device would compute; what changes nothing is left out,
 * and what would change something for one input, NaN, -0 or infinity, stays. */
#include "tests/support/check.h"

#include <math.h>

#include "ops/elementwise/ir/fold.h"
#include "tests/ops/elementwise/language/expression_fixture.h"

TEST(integers) {
  GIVES("", "2 + 3 * 4 - 1", "13");
  GIVES("", "9223372036854775807 + 1", "-9223372036854775808");
  GIVES("", "i8(127) + i8(1)", "i8(-128)");
  GIVES("", "u8(200) + u8(100)", "u8(44)");
  GIVES("", "i32(65536) * i32(65536)", "i32(0)");
  GIVES("", "-7 // 2, -7 % 2, 7 % -2, fmod(-7, 2), fmod(7, -2)", "-4, 1, -1, -1, 1");
  GIVES("", "i8(-128) // i8(-1), i8(-128) % i8(-1), -i8(-128), abs(i8(-128))", "i8(-128), i8(0), i8(-128), i8(-128)");
  GIVES("", "-9223372036854775808 // -1, -9223372036854775808 % -1, fmod(-9223372036854775808, -1)",
        "-9223372036854775808, 0, 0");
  GIVES("", "u32(7) // u32(2), u8(250) % u8(7)", "u32(3), u8(5)");
  GIVES("", "2 ** 10, 3 ** 41, i8(3) ** i8(7), 0 ** 0", "1024, -420491770248316829, i8(-117), 1");
  GIVES("", "1 << 62, -8 >> 1, u8(240) >> 3, i8(1) << i8(7)", "4611686018427387904, -4, u8(30), i8(-128)");
  GIVES("", "12 & 10, 12 | 10, 12 ^ 10, ~5, ~u8(5), ~true", "8, 14, 6, -6, u8(250), false");
  GIVES("", "popcount(i8(-1)), clz(i8(1)), clz(u64(0)), clz(1)", "i8(8), i8(7), u64(64), 63");
  GIVES("", "min(3, -4), max(u8(3), u8(200)), clamp(9, 0, 5), sign(-9), sign(u8(9))", "-4, u8(200), 5, -1, u8(1)");
  GIVES("", "u64(18446744073709551615) > u64(1), -1 < 1, 3 == 3, 3 != 3", "true, true, true, false");
  GIVES("", "true && 0, true || 0, !3, !0", "false, true, false, true");
  GIVES("", "u8(-1), u8(300), i8(200), i64(3.9), i64(-3.9), bool(0.1), bool(nan), bool(-0.0)",
        "u8(255), u8(44), i8(-56), 3, -3, true, true, false");
  GIVES("", "f32(16777217), f64(9007199254740993), f32(u64(18446744073709551615))",
        "f32(16777216.0), 9007199254740992.0, f32(1.8446744e+19)");
  GIVES("", "true + true, relu(-4), abs(-4), round(5), floor(5)", "2, 0, 4, 5, 5");
}

/* f32 rounds to f32 after each operation; a weak number is f64 until it meets a tensor. */
TEST(reals) {
  GIVES("", "f32(0.1) + f32(0.2)", "f32(0.3)");
  GIVES("", "f64(0.1) + f64(0.2)", "0.30000000000000004");
  GIVES("", "f32(16777216) + f32(1)", "f32(16777216.0)");
  GIVES("", "f32(1e30) * f32(1e30), f32(1) / f32(0)", "f32(inf), f32(inf)");
  GIVES("", "f64(sqrt(2.0)), f32(sqrt(2))", "1.4142135623730951, f32(1.4142135)");
  GIVES("f32 x", "x + (0.1 + 0.2)", "i0 + f32(0.3)");
  GIVES("", "f64(-7) // 2, f64(-0.0), f64(4) % -2, f64(min(0.0, -0.0)), f64(relu(-0.0))",
        "-4.0, -0.0, -0.0, -0.0, 0.0");
  GIVES("", "f64(fmod(-7.5, 2)), f64(copysign(3, -0.0))", "-1.5, -3.0");
  GIVES("", "f64(round(2.5)), f64(round(3.5)), f64(floor(-2.5)), f64(ceil(2.1)), f64(trunc(-2.7))",
        "2.0, 4.0, -3.0, 3.0, -2.0");
  GIVES("", "f64(min(1.5, 2)), f64(max(1.5, 2)), f64(clamp(7.5, 0, 1)), f64(sign(-3.5))", "1.5, 2.0, 1.0, -1.0");
  GIVES("", "1.5 < 2, nan == nan, nan != nan, nan < 1, isnan(nan), isinf(-inf), isfinite(1.0), signbit(-0.0)",
        "true, false, true, false, true, true, true, true");
  GIVES("", "f32(nextafter(f32(1), f32(2)))", "f32(1.0000001)");
  GIVES("", "fma(f32(1.0000001), f32(1.0000001), f32(-1))", "f32(2.3841858e-07)");
  GIVES("", "complex(1.0, 2.0) + 1j, real(3 + 4j), imag(3 + 4j), conj(3 + 4j)",
        "complex(f32(1.0), f32(3.0)), f32(3.0), f32(4.0), complex(f32(3.0), f32(-4.0))");
  GIVES("", "where(1 < 2, 3, 4), true ? 1.5 : 2", "3, f32(1.5)");
}

/* Each function of one real at some places against libm in long double: within one unit of f64; under valgrind,
 * whose long double is a double, within some. */
TEST(transcendental) {
  const double unit = getenv("AT_UNDER_VALGRIND") ? 4e-15 : 2.3e-16;
  static const struct {
    const char *text;
    double value;
  } rows[] = {{"exp(1.0)", 2.718281828459045},
              {"log(10.0)", 2.302585092994046},
              {"sin(1.0)", 0.8414709848078965},
              {"cos(1.0)", 0.5403023058681398},
              {"tan(1.0)", 1.5574077246549023},
              {"tanh(0.5)", 0.46211715726000973},
              {"erf(0.5)", 0.5204998778130465},
              {"erfc(2.0)", 0.004677734981047266},
              {"gelu(1.0)", 0.8413447460685429},
              {"gelu(-3.0)", -0.004049694094890284},
              {"gelu_tanh(1.0)", 0.8411919906082768},
              {"sigmoid(2.0)", 0.8807970779778823},
              {"silu(2.0)", 1.7615941559557646},
              {"softplus(1.0)", 1.3132616875182228},
              {"mish(1.0)", 0.8650983882673103},
              {"softsign(-3.0)", -0.75},
              {"logit(0.25)", -1.0986122886681098},
              {"rsqrt(4.0)", 0.5},
              {"cbrt(27.0)", 3.0},
              {"exp2(0.5)", 1.4142135623730951},
              {"expm1(1e-10)", 1.00000000005e-10},
              {"log1p(1e-10)", 9.9999999995e-11},
              {"log2(8.0)", 3.0},
              {"log10(1000.0)", 3.0},
              {"lgamma(10.0)", 12.801827480081469},
              {"tgamma(5.0)", 24.0},
              {"hypot(3.0, 4.0)", 5.0},
              {"atan2(1.0, -1.0)", 2.356194490192345},
              {"2.0 ** 0.5", 1.4142135623730951},
              {"elu(-1.0, 2.0)", -1.2642411176571153},
              {"leaky_relu(-2.0, 0.5)", -1.0},
              {"hardswish(1.0)", 0.6666666666666666},
              {"hardsigmoid(0.0)", 0.5},
              {"hardtanh(3.0)", 1.0},
              {"ldexp(3.0, 4.0)", 48.0},
              {"reciprocal(4.0)", 0.25},
              {"asin(0.5)", 0.5235987755982989},
              {"acos(0.5)", 1.0471975511965979},
              {"atan(2.0)", 1.1071487177940904},
              {"sinh(1.0)", 1.1752011936438014},
              {"cosh(1.0)", 1.5430806348152437},
              {"asinh(1.0)", 0.881373587019543},
              {"acosh(2.0)", 1.3169578969248166},
              {"atanh(0.5)", 0.5493061443340549}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    char text[80];
    at_expression *e = NULL;
    snprintf(text, sizeof text, "f64(%s)", rows[i].text);
    OK(compile(&e, "", text));
    assert_int_equal(e->node_count, 1);
    assert_int_equal(e->nodes[0].kind, AT_NODE_CONSTANT);
    const double got = e->nodes[0].constant.re, away = fabs(got - rows[i].value);
    if (!(away <= unit * fabs(rows[i].value)))
      fail_msg("%s is %.17g; should be %.17g", rows[i].text, got, rows[i].value);
    at_expression_destroy(e);
  }
}

/* Expressions with a NaN, or with a float that its integer cannot hold, are left to the device. */
TEST(stays) {
  static const char *const texts[] = {
      "0.0 / 0.0",          "nan + 1",      "-nan",        "sqrt(-1.0)", "log(-1.0)", "inf - inf",
      "copysign(1.0, nan)", "signbit(nan)", "min(nan, 1)", "sign(nan)",  "inf * 0.0"};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_expression *e = NULL;
    OK(compile(&e, "", texts[i]));
    bool function = false;
    for (int n = 0; n < e->node_count; n++) function = function || e->nodes[n].kind == AT_NODE_FUNCTION;
    if (!function) fail_msg("%s was folded to %s", texts[i], e->text);
    at_expression_destroy(e);
  }
}

TEST(simpler) {
  static const char *const rows[][3] = {{"f32 x", "x * 1", "i0"},
                                        {"f32 x", "1 * x", "i0"},
                                        {"f32 x", "x / 1", "i0"},
                                        {"f32 x", "x + 0", "i0 + f32(0.0)"},
                                        {"f32 x", "x + -0.0", "i0"},
                                        {"f32 x", "x - 0", "i0"},
                                        {"f32 x", "x - -0.0", "i0 - f32(-0.0)"},
                                        {"f32 x", "x * 0", "i0 * f32(0.0)"},
                                        {"f32 x", "x - x", "i0 - i0"},
                                        {"f32 x", "x == x", "i0 == i0"},
                                        {"f32 x", "x / x", "i0 / i0"},
                                        {"f32 x", "0 - x", "f32(0.0) - i0"},
                                        {"f32 x", "x ** 1", "i0"},
                                        {"f32 x", "x ** 2", "i0 * i0"},
                                        {"f32 x", "x ** 0", "f32(1.0)"},
                                        {"f32 x", "x ** 0.5", "i0 ** f32(0.5)"},
                                        {"f32 x", "x / 8", "i0 * f32(0.125)"},
                                        {"f32 x", "x / 3", "i0 / f32(3.0)"},
                                        {"f32 x", "x / 1e-45", "i0 / f32(1e-45)"},
                                        {"f32 x", "x / inf", "i0 / f32(inf)"},
                                        {"f32 x", "x / -4", "i0 * f32(-0.25)"},
                                        {"f32 x", "--x", "i0"},
                                        {"f32 x", "abs(-x)", "abs(i0)"},
                                        {"u8 x", "abs(-x)", "-i0"},
                                        {"f32 x", "abs(abs(x))", "abs(i0)"},
                                        {"f32 x", "relu(relu(x))", "relu(i0)"},
                                        {"f32 x", "floor(floor(x))", "floor(i0)"},
                                        {"f32 x", "min(x, x)", "i0"},
                                        {"f32 x", "where(x < 0, x, x)", "i0"},
                                        {"bool m", "!!m", "i0"},
                                        {"f32 x", "!!x", "bool(i0)"},
                                        {"bool m", "m && true", "i0"},
                                        {"bool m", "m && false", "false"},
                                        {"bool m", "m || true", "true"},
                                        {"bool m", "m | false", "i0"},
                                        {"bool m", "m & m", "i0"},
                                        {"i32 i", "i + 0", "i0"},
                                        {"i32 i", "i * 0", "i32(0)"},
                                        {"i32 i", "i - i", "i32(0)"},
                                        {"i32 i", "i ^ i", "i32(0)"},
                                        {"i32 i", "i & 0", "i32(0)"},
                                        {"i32 i", "i | 0", "i0"},
                                        {"i32 i", "i & 1", "i0 & i32(1)"},
                                        {"i32 i", "i << 0", "i0"},
                                        {"i32 i", "~~i", "i0"},
                                        {"i32 i", "i // 1", "i0"},
                                        {"i32 i", "i % 1", "i32(0)"},
                                        {"i32 i", "i == i", "true"},
                                        {"i32 i", "i < i", "false"},
                                        {"i32 i", "floor(i)", "i0"},
                                        {"u8 u", "abs(u)", "i0"},
                                        {"u8 u", "relu(u)", "i0"},
                                        {"i32 i", "abs(i)", "abs(i0)"},
                                        {"c64 z", "z * 1", "i0 * complex(f32(1.0), f32(0.0))"},
                                        {"c64 z", "z + 0", "i0 + complex(f32(0.0), f32(0.0))"},
                                        {"c64 z", "z / 1", "i0 / complex(f32(1.0), f32(0.0))"},
                                        {"c64 z", "conj(conj(z))", "i0"},
                                        {"c64 z", "z ** 2", "i0 ** complex(f32(2.0), f32(0.0))"},
                                        {"i32 i", "i * 1.0", "f32(i0)"},
                                        {"i32 i", "i ** 2", "i0 * i0"},
                                        {"bool m", "m ^ true", "i0 ^ true"},
                                        {"i32 i", "i + 1 - 1", "i0 + i32(1) - i32(1)"},
                                        {"f32 x", "x > 0", "f32(0.0) < i0"}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) GIVES(rows[i][0], rows[i][1], rows[i][2]);
}

/* One node for what is written twice; dead values leave none; rand is never shared. */
TEST(sharing) {
  GIVES("f32 x, f32 y", "(x + y) * (y + x)", "t0 = i0 + i1; t0 * t0");
  GIVES("f32 x, f32 y", "(x - y) * (y - x)", "(i0 - i1) * (i1 - i0)");
  GIVES("f32 x", "gelu(x) + gelu(x)", "t0 = gelu(i0); t0 + t0");
  GIVES("f32 x, f32 y", "(x > y) == (y < x)", "true");
  GIVES("f32 x", "where(true, x, exp(x))", "i0");
  GIVES("i32 i, i32 j", "exp(j) * 0 < 1 ? i : i", "i0");
  GIVES("", "rand() - rand()", "rand() - rand()");
  GIVES("", "rand() == rand()", "rand() == rand()");
  GIVES("", "randn() / randn()", "randn() / randn()");
  at_expression *e = NULL;
  OK(compile(&e, "", "rand() - rand() + where(false, rand(), 0.0)"));
  assert_int_equal(e->uniform_count, 2); /* a dead draw is not drawn */
  at_expression_destroy(e);
  OK(compile(&e, "i32 i, i32 j", "i + j * 0"));
  assert_int_equal(e->input_count, 1);
  assert_string_equal(e->inputs[0].name, "i");
  at_expression_destroy(e);
}

static int64_t folded(at_function function, attune_dtype dtype, int a, int b) {
  const at_constant x[] = {{.integer = a}, {.integer = b}};
  at_constant out = {0};
  assert_true(at_fold(function, dtype, dtype, x, &out));
  return out.integer;
}

/* Every pair of 8-bit integers against wide arithmetic. */
TEST(bytes) {
  for (int a = -128; a < 128; a++)
    for (int b = -128; b < 128; b++) {
      const int u = a & 255, v = b & 255, down = b ? (int)floor((double)a / b) : 0;
      assert_true(folded(AT_FN_MULTIPLY, ATTUNE_I8, a, b) == (int8_t)(a * b));
      assert_true(folded(AT_FN_SUBTRACT, ATTUNE_U8, u, v) == (uint8_t)(a - b));
      assert_true(folded(AT_FN_FLOOR_DIVIDE, ATTUNE_I8, a, b) == (int8_t)down);
      assert_true(folded(AT_FN_REMAINDER, ATTUNE_I8, a, b) == (b ? (int8_t)(a - b * down) : 0));
      assert_true(folded(AT_FN_FMOD, ATTUNE_U8, u, v) == (v ? u % v : 0));
      assert_true(folded(AT_FN_MINIMUM, ATTUNE_I8, a, b) == (a < b ? a : b));
      assert_true(folded(AT_FN_SHIFT_RIGHT, ATTUNE_I8, a, b) == (b >= 0 && b < 8 ? a >> b : a < 0 ? -1 : 0));
    }
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
