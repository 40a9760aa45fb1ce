/* SPDX-License-Identifier: Apache-2.0
 * test_expression_types.c: promotion against tables written out by hand from PyTorch's documentation
 * (torch.result_type, "Type promotion"), the dtypes of every function, and what is refused. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/language/expression_fixture.h"

/* torch.promote_types. A dash: none. PyTorch has none for u16, u32 and u64 with other integers either; those are
 * NumPy's. */
static const char *const ORDER = "bool u8 i8 i16 i32 i64 u16 u32 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2 c64 c128";
static const char *const TABLE[] = {
    "bool u8   i8   i16  i32  i64  u16  u32  u64  f16  bf16 f32  f64  - - c64  c128",  /* bool */
    "u8   u8   i16  i16  i32  i64  u16  u32  u64  f16  bf16 f32  f64  - - c64  c128",  /* u8 */
    "i8   i16  i8   i16  i32  i64  i32  i64  -    f16  bf16 f32  f64  - - c64  c128",  /* i8 */
    "i16  i16  i16  i16  i32  i64  i32  i64  -    f16  bf16 f32  f64  - - c64  c128",  /* i16 */
    "i32  i32  i32  i32  i32  i64  i32  i64  -    f16  bf16 f32  f64  - - c64  c128",  /* i32 */
    "i64  i64  i64  i64  i64  i64  i64  i64  -    f16  bf16 f32  f64  - - c64  c128",  /* i64 */
    "u16  u16  i32  i32  i32  i64  u16  u32  u64  f16  bf16 f32  f64  - - c64  c128",  /* u16 */
    "u32  u32  i64  i64  i64  i64  u32  u32  u64  f16  bf16 f32  f64  - - c64  c128",  /* u32 */
    "u64  u64  -    -    -    -    u64  u64  u64  f16  bf16 f32  f64  - - c64  c128",  /* u64 */
    "f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f32  f64  - - c64  c128",  /* f16 */
    "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  bf16 f32  f64  - - c64  c128",  /* bf16 */
    "f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  - - c64  c128",  /* f32 */
    "f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  - - c128 c128",  /* f64 */
    "-    -    -    -    -    -    -    -    -    -    -    -    -    f8e4m3 - - -",   /* f8e4m3 */
    "-    -    -    -    -    -    -    -    -    -    -    -    -    - f8e5m2 - -",   /* f8e5m2 */
    "c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c64  c128 - - c64  c128",  /* c64 */
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 - - c128 c128"}; /* c128 */

/* torch.result_type of a tensor with True, 1, 1.5 and 1j. */
static const char *const WITH_NUMBERS[][5] = {{"bool", "bool", "i64", "f32", "c64"},
                                              {"u8", "u8", "u8", "f32", "c64"},
                                              {"i8", "i8", "i8", "f32", "c64"},
                                              {"i16", "i16", "i16", "f32", "c64"},
                                              {"i32", "i32", "i32", "f32", "c64"},
                                              {"i64", "i64", "i64", "f32", "c64"},
                                              {"u16", "u16", "u16", "f32", "c64"},
                                              {"u32", "u32", "u32", "f32", "c64"},
                                              {"u64", "u64", "u64", "f32", "c64"},
                                              {"f16", "f16", "f16", "f16", "c64"},
                                              {"bf16", "bf16", "bf16", "bf16", "c64"},
                                              {"f32", "f32", "f32", "f32", "c64"},
                                              {"f64", "f64", "f64", "f64", "c128"},
                                              {"f8e4m3", "f8e4m3", "f8e4m3", "f8e4m3", "c64"},
                                              {"f8e5m2", "f8e5m2", "f8e5m2", "f8e5m2", "c64"},
                                              {"c64", "c64", "c64", "c64", "c64"},
                                              {"c128", "c128", "c128", "c128", "c128"}};

enum { DTYPES = 17 };

static void word_of(const char *line, int number, char out[8]) {
  for (; number > 0; number--) {
    line += strcspn(line, " ");
    line += strspn(line, " ");
  }
  snprintf(out, 8, "%.*s", (int)strcspn(line, " "), line);
}

/* The dtype of the first output; NULL: an error. */
static const char *dtype_of(const char *line, const char *text) {
  at_expression *e = NULL;
  if (compile_mentioned(&e, line, text) != ATTUNE_OK) return NULL;
  const char *name = attune_dtype_name((attune_dtype)e->nodes[e->outputs[0]].dtype);
  at_expression_destroy(e);
  return name;
}

static void expect(const char *line, const char *text, const char *dtype) {
  const char *got = dtype_of(line, text);
  if (!got != !dtype || (got && strcmp(got, dtype) != 0))
    fail_msg("%s of %s is %s; should be %s (%s)", text, line, got ? got : "refused", dtype ? dtype : "refused",
             attune_last_message());
}

/* The table itself, and where() as the function that has just the common dtype. */
TEST(pairs) {
  for (int i = 0; i < DTYPES; i++)
    for (int j = 0; j < DTYPES; j++) {
      char a[8], b[8], common[8], line[64];
      word_of(ORDER, i, a);
      word_of(ORDER, j, b);
      word_of(TABLE[i], j, common);
      const attune_dtype x = at_dtype_find(a, strlen(a)), y = at_dtype_find(b, strlen(b)), both = at_promote(x, y);
      if (both != at_dtype_find(common, strlen(common)))
        fail_msg("%s with %s is %s; should be %s", a, b, attune_dtype_name(both), common);
      snprintf(line, sizeof line, "%s a, %s b, bool c", a, b);
      expect(line, "where(c, a, b)", both ? common : NULL);
    }
  assert_int_equal(at_promote((attune_dtype)0, ATTUNE_F32), 0);
  assert_int_equal(at_promote(ATTUNE_F32, (attune_dtype)18), 0);
}

TEST(numbers) {
  static const char *const texts[] = {"where(c, a, true)", "where(c, a, 1)", "where(c, a, 1.5)", "where(c, a, 1j)"},
                           *const scalars[] = {"bool s", "i64 s", "f64 s", "c128 s"};
  for (int i = 0; i < DTYPES; i++)
    for (int k = 0; k < 4; k++) {
      char line[64];
      snprintf(line, sizeof line, "%s a, bool c; %s", WITH_NUMBERS[i][0], scalars[k]);
      expect(line, texts[k], WITH_NUMBERS[i][k + 1]);
      expect(line, "where(c, a, s)", WITH_NUMBERS[i][k + 1]);
      expect(line, "where(c, s, a)", WITH_NUMBERS[i][k + 1]);
    }
}

/* Numbers and scalars alone are as Python has them, until they are stored. */
TEST(weak_alone) {
  static const char *const rows[][2] = {{"1", "i64"},      {"1.5", "f32"},     {"true", "bool"},
                                        {"2j", "c64"},     {"1 / 2", "f32"},   {"s + 1", "f32"},
                                        {"n + 1", "i64"},  {"n + 1.5", "f32"}, {"f64(s)", "f64"},
                                        {"f64(1)", "f64"}, {"s < n", "bool"},  {"true + true", "i64"},
                                        {"f16(s)", "f16"}, {"i8(n)", "i8"},    {"18446744073709551615", "u64"}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) expect("; f64 s, i64 n", rows[i][0], rows[i][1]);
  expect("f16 h; f64 s", "h * (s + 1.0)", "f16");
  expect("f16 h; i64 n", "h * (n / 3)", "f16");
  expect("i32 i; f64 s", "i * (s > 1)", "i32");
  expect("i32 i", "i * f64(2)", "f64"); /* a cast is no number any more */
  expect("f16 h", "h * f32(2)", "f32");
  /* in f64, as Python computes it, and then rounded */
  GIVES("f32 x; f64 s", "x * (s + 0.1)", "f32(s0 + 0.1) * i0");
  GIVES("f32 x; f64 s", "x * s", "i0 * f32(s0)");
  GIVES("f32 x", "x * (1 / 3)", "i0 * f32(0.33333334)");
  GIVES("f64 x", "x * (1 / 3)", "i0 * 0.3333333333333333");
}

/* Rules of functions.def: dtype in, dtype out; NULL: refused. */
TEST(rules) {
  static const char *const inputs[] = {"bool a", "i8 a",  "u64 a",    "f16 a", "bf16 a",
                                       "f32 a",  "f64 a", "f8e4m3 a", "c64 a", "c128 a"};
  static const struct {
    const char *text, *out[10];
  } rows[] = {{"a + a", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}},
              {"-a", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}},
              {"a / a", {"f32", "f32", "f32", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}},
              {"exp(a)", {"f32", "f32", "f32", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}},
              {"gelu(a)", {"f32", "f32", "f32", "f16", "bf16", "f32", "f64", "f8e4m3", NULL, NULL}},
              {"max(a, a * a)", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", NULL, NULL}},
              {"a // a", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", NULL, NULL}},
              {"a < 1", {"bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", NULL, NULL}},
              {"a == a * a", {"bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool"}},
              {"a & a ^ 1", {"i64", "i8", "u64", NULL, NULL, NULL, NULL, NULL, NULL, NULL}},
              {"~a", {"bool", "i8", "u64", NULL, NULL, NULL, NULL, NULL, NULL, NULL}},
              {"popcount(a)", {"bool", "i8", "u64", NULL, NULL, NULL, NULL, NULL, NULL, NULL}},
              {"clz(a)", {NULL, "i8", "u64", NULL, NULL, NULL, NULL, NULL, NULL, NULL}},
              {"a << a", {NULL, "i8", "u64", NULL, NULL, NULL, NULL, NULL, NULL, NULL}},
              {"a && a || !a", {"bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool"}},
              {"a ? a : a * a", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}},
              {"isnan(a)", {"bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool"}},
              {"signbit(a)", {"bool", "bool", "bool", "bool", "bool", "bool", "bool", "bool", NULL, NULL}},
              {"abs(a)", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "f32", "f64"}},
              {"real(a)", {"bool", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "f32", "f64"}},
              {"imag(a)", {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "f32", "f64"}},
              {"angle(a)", {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "f32", "f64"}},
              {"conj(a)", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}},
              {"complex(a, a)", {"c64", "c64", "c64", "c64", "c64", "c64", "c128", "c64", NULL, NULL}},
              {"nextafter(a, a)", {"f32", "f32", "f32", NULL, NULL, "f32", "f64", NULL, NULL, NULL}},
              {"a ** 2", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}},
              {"round(a)", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", NULL, NULL}},
              {"clamp(a, 0, 1)", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", NULL, NULL}},
              {"+a", {"i64", "i8", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "c64", "c128"}}};
  for (size_t r = 0; r < AT_COUNT(rows); r++)
    for (size_t i = 0; i < AT_COUNT(inputs); i++) expect(inputs[i], rows[r].text, rows[r].out[i]);
}

/* Halves are computed in f32 and rounded where they are stored or cast, and nowhere else. */
TEST(halves) {
  GIVES("bf16 a, bf16 b", "gelu(a + b) * b", "t0 = f32(i0); bf16(gelu(f32(i1) + t0) * t0)");
  GIVES("f16 a", "a", "i0");
  GIVES("f16 a", "t = a * a; t - 1", "t0 = f32(i0); f16(t0 * t0 - f32(1.0))");
  GIVES("f16 a", "f32(a * a)", "t0 = f32(i0); t0 * t0");
  GIVES("f16 a", "f32(f16(a * a))", "t0 = f32(i0); f32(f16(t0 * t0))");
  GIVES("f32 x", "bf16(x) * x", "f32(bf16(i0)) * i0");
  GIVES("f16 a, bf16 b", "a + b", "f32(i0) + f32(i1)");
  GIVES("bf16 a", "f64(a)", "f64(i0)");
  GIVES("f8e4m3 a", "a * 0.5", "f8e4m3(f32(i0) * f32(0.5))");
  GIVES("bf16 a", "a < 0.1", "f32(i0) < f32(0.1)");
  GIVES("bf16 a", "-a", "bf16(-f32(i0))");
  GIVES("bf16 a", "bf16(0.1) * a", "bf16(f32(i0) * f32(0.100097656))");
  GIVES("bf16 a", "bf16(f32(a))", "i0");
  GIVES("", "bf16(0.1), f16(2)", "bf16(f32(0.100097656)), f16(f32(2.0))");
  expect("", "f8e5m2(1)", "f8e5m2");
}

TEST(casts) {
  GIVES("f32 a", "f32(a)", "i0");
  GIVES("f32 a", "f32(f64(a))", "i0");
  GIVES("f64 a", "f64(f32(a))", "f64(f32(i0))");
  GIVES("i8 a", "f16(i64(a))", "f16(i0)");
  GIVES("u8 a", "u8(bf16(a))", "i0");
  GIVES("i16 a", "i16(bf16(a))", "i16(bf16(i0))");
  GIVES("u8 a", "i8(i32(a))", "i8(i0)");
  GIVES("i8 a", "i32(u8(a))", "i32(u8(i0))");
  GIVES("i32 a", "i32(f32(a))", "i32(f32(i0))");
  GIVES("i32 a", "i32(f64(a))", "i0");
  GIVES("c64 a", "f32(a)", "f32(i0)");
  GIVES("f32 a", "f32(c64(a))", "i0");
  GIVES("f32 a", "bool(f64(a))", "bool(i0)");
  GIVES("; f64 s", "f64(f32(s))", "f64(f32(s0))");
  GIVES("; i64 n", "f32(n), f64(n), n", "f32(s0), f64(s0), s0");
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
