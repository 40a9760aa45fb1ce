/* SPDX-License-Identifier: Apache-2.0
 * What is rewritten gives the bits of what is written (but a NaN's own): every row of rewrites.def for every dtype, all
 * values of 8 bits, many of 16 (ATTUNE_TEST_ALL: all) and the special ones of more; every chain of two and three casts;
 * constants; and what the host's loops make of them. */
#include "tests/support/check.h"

#include <math.h>

#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/ir/keywords.h"
#include "ops/elementwise/ir/rewrites.h"
#include "ops/elementwise/language/compile.h"

enum { MOST = 65536, ROOM = MOST + 1024, BYTES = 16, TEXT = 200, TURNS = 16 };

/* ---- values ---- */

static const double NUMBERS[] = {0.0,           -0.0,
                                 1.0,           -1.0,
                                 0.5,           -0.5,
                                 1.5,           2.5,
                                 -2.5,          0.75,
                                 2.0,           3.0,
                                 -30.0,         100.7,
                                 127.0,         127.5,
                                 128.0,         -128.0,
                                 -128.9,        -129.0,
                                 226.0,         255.0,
                                 255.9,         256.0,
                                 448.0,         464.0,
                                 465.0,         2047.0,
                                 32767.0,       32768.0,
                                 -32769.,       57344.0,
                                 61440.0,       65504.0,
                                 65519.0,       65520.0,
                                 65535.0,       65536.0,
                                 1e-40,         -1e-310,
                                 4.9e-324,      1e-45,
                                 6e-8,          3e-8,
                                 1e-3,          1e38,
                                 3.5e38,        -3.5e38,
                                 1e300,         -1e300,
                                 0x1p24,        0x1.000001p24,
                                 0x1p31,        -0x1p31,
                                 0x1p32,        0x1p53,
                                 0x1p63,        -0x1p63,
                                 0x1p64,        -0x1p64,
                                 0x1.fffffep30, 0x1.fffffffffffffp62,
                                 1.0 / 3,       3.14159,
                                 1e10};

static int wide_integers(attune_dtype dtype, unsigned char *to) {
  int count = 0;
  for (int k = 0; k < 64; k++)
    for (int off = -1; off <= 1; off++)
      for (int sign = 0; sign < 2; sign++) {
        const uint64_t x = (UINT64_C(1) << k) + (uint64_t)(int64_t)off;
        at_wide_value_store(dtype, to + count++ * (int)attune_dtype_size(dtype),
                            (at_wide_value){.integer = at_integer_wrap(dtype, (int64_t)(sign ? 0 - x : x))});
      }
  return count;
}

static int floats(attune_dtype dtype, unsigned char *to) {
  const bool complex = at_dtype_kind_of(dtype) == AT_KIND_COMPLEX;
  const int parts = (int)AT_COUNT(NUMBERS) + 3;
  int count = 0;
  for (int i = 0; i < parts; i++)
    for (int k = 0; k < (complex ? 5 : 1); k++) {
      const double extra[] = {(double)NAN, (double)INFINITY, (double)-INFINITY};
      const int j = (i + 7 * k) % parts;
      const at_wide_value x = {.re = i < 3 ? extra[i] : NUMBERS[i - 3], .im = j < 3 ? extra[j] : NUMBERS[j - 3]};
      at_wide_value_store(dtype, to + count++ * (int)attune_dtype_size(dtype), x);
    }
  return count;
}

/* Numbers with all digits: what is rounded twice shows in one of some thousands. */
static int many_doubles(unsigned char *to) {
  static uint64_t state = 88172645463325252u;
  enum { COUNT = 20000 };
  for (int i = 0; i < COUNT; i++) { /* xorshift64 (Marsaglia 2003) */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const double x = ldexp((double)(int64_t)state, (int)(state >> 8 & 7) - 66);
    memcpy(to + (size_t)i * sizeof x, &x, sizeof x);
  }
  return COUNT;
}

/* The values of a dtype: all of them, or the special ones if there are too many or `some` is asked for. Of 16 bits each
 * call gives another sixteenth of them and the special ones; ATTUNE_TEST_ALL: all. */
static int values_of(attune_dtype dtype, bool some, unsigned char *to) {
  static int turn;
  const size_t size = attune_dtype_size(dtype);
  if (dtype == ATTUNE_BOOL) return to[0] = 0, to[1] = 1, 2;
  const int step = size == 1 || getenv("ATTUNE_TEST_ALL") ? 1 : 16;
  int count = size == 1 ? 0 : at_dtype_whole(dtype) ? wide_integers(dtype, to) : floats(dtype, to);
  if (dtype == ATTUNE_F64 && !some) return count + many_doubles(to + (size_t)count * size);
  if (size > 2 || (size == 2 && some)) return count;
  for (int i = step == 1 ? 0 : turn++ % step; i < (size == 1 ? 256 : MOST); i += step)
    memcpy(to + (size_t)count++ * size, &(uint16_t){(uint16_t)i}, size);
  return count;
}

/* ---- both graphs ---- */

static unsigned char xs[ROOM * BYTES], ys[ROOM * BYTES];
static at_wide_value values[AT_EXPRESSION_NODES], plain[AT_EXPRESSION_NODES];

/* Of a text whose operands are x of `dtype`, and y of it; NULL: the dtype is not for it. */
static at_expression *compile(const char *text, attune_dtype x, attune_dtype y) {
  const at_operand_name names[2] = {{"x", (uint8_t)x, 0}, {"y", (uint8_t)y, 0}};
  const at_signature signature = {names, NULL, strchr(text, 'y') ? 2 : 1, 0};
  at_expression *e = NULL;
  if (at_expression_create_checked(&e, text, strlen(text), &signature) != ATTUNE_OK) return NULL;
  assert_non_null(e->plain);
  return e;
}

static at_element element_of(const at_expression *e, const void *x, const void *y) {
  at_element element = {.count = 1};
  for (int i = 0; i < AT_EXPRESSION_INPUTS; i++) element.inputs[i] = e->plain->inputs[i].name[0] == 'y' ? y : x;
  return element;
}

static void check_pair(const at_expression *e, const char *text, attune_dtype dtype, const void *x, const void *y) {
  const at_element element = element_of(e, x, y);
  at_evaluate(values, e, &element, AT_ROUND_NODES);
  at_evaluate(plain, e->plain, &element, AT_ROUND_NODES);
  if (at_plain_same(e, values, plain)) return;
  const at_wide_value a = at_wide_value_load(dtype, x), b = values[e->outputs[0]], c = plain[e->plain->outputs[0]];
  fail_msg("%s, %s: x = %Lg (%lld) gives %Lg (%lld), and %Lg (%lld) as it is written", e->text, text, a.re,
           (long long)a.integer, b.re, (long long)b.integer, c.re, (long long)c.integer);
}

/* x takes all values, y special ones. */
static void check_all(const at_expression *e, const char *text, attune_dtype x, attune_dtype y, bool some) {
  const int count = values_of(x, some, xs), others = strchr(text, 'y') ? values_of(y, true, ys) : 1;
  for (int i = 0; i < count; i++)
    for (int k = i % 9; k < others || k == i % 9; k += 9)
      check_pair(e, text, x, xs + (size_t)i * attune_dtype_size(x), ys + (size_t)(k % others) * attune_dtype_size(y));
}

static int calls_of(const at_expression *e, at_function function) {
  int count = 0;
  for (int i = 0; i < e->node_count; i++)
    count += e->nodes[i].kind == AT_NODE_FUNCTION && e->nodes[i].function == (uint8_t)function;
  return count;
}

/* Of the last call of the function in the text as it is written. */
static unsigned dtypes_of_call(const at_expression *e, at_function function) {
  for (int i = e->plain->node_count - 1; i >= 0; i--) {
    const at_node *n = &e->plain->nodes[i];
    if (n->kind != AT_NODE_FUNCTION || n->function != (uint8_t)function) continue;
    return (unsigned)at_dtypes_of((attune_dtype)e->plain->nodes[n->argument[n->count - 1]].dtype);
  }
  return 0;
}

TEST(rows) {
  for (int r = 0; r < at_rewrite_count; r++) {
    const at_rewrite *row = &at_rewrites[r];
    unsigned seen = 0;
    for (int d = 1; d <= AT_DTYPE_LAST; d++) {
      at_expression *e = compile(row->text, (attune_dtype)d, (attune_dtype)d);
      if (!e) continue;
      const bool once =
          row->when == AT_WHEN_TWICE && calls_of(e->plain, row->function) < 2; /* abs of complex is another */
      const unsigned dtypes = once ? 0 : dtypes_of_call(e, row->function) & row->dtypes;
      const at_function gone = row->then == AT_THEN_OF_INNER    ? AT_FN_NEGATE
                               : row->then == AT_THEN_SIGN_BITS ? AT_FN_INVERT /* of the constant */
                                                                : row->function;
      if (dtypes && calls_of(e, gone) >= calls_of(e->plain, gone))
        fail_msg("%s of %s stays %s", row->text, attune_dtype_name((attune_dtype)d), e->text);
      seen |= dtypes;
      check_all(e, row->text, (attune_dtype)d, (attune_dtype)d, false);
      at_expression_destroy(e);
    }
    if (seen != row->dtypes)
      fail_msg("%s is for dtypes that no tensor gives it: %x of %x", row->text, seen, row->dtypes);
  }
}

/* ---- casts ---- */

static const char *name_of(int dtype) {
  return attune_dtype_name((attune_dtype)dtype);
}

/* Without fewer nodes nothing was rewritten. */
static void check_chain(const char *text, attune_dtype from, bool some) {
  at_expression *e = compile(text, from, from);
  assert_non_null(e);
  if (e->node_count < e->plain->node_count) check_all(e, text, from, from, some);
  at_expression_destroy(e);
}

TEST(chains_of_two) {
  char text[TEXT];
  for (int from = 1; from <= AT_DTYPE_LAST; from++)
    for (int a = 1; a <= AT_DTYPE_LAST; a++)
      for (int b = 1; b <= AT_DTYPE_LAST; b++) {
        snprintf(text, sizeof text, "%s(%s(x))", name_of(b), name_of(a));
        check_chain(text, (attune_dtype)from, false);
      }
}

TEST(chains_of_three) {
  char text[TEXT];
  for (int from = 1; from <= AT_DTYPE_LAST; from++)
    for (int a = 1; a <= AT_DTYPE_LAST; a++)
      for (int b = 1; b <= AT_DTYPE_LAST; b++)
        for (int c = 1; c <= AT_DTYPE_LAST; c++) {
          snprintf(text, sizeof text, "%s(%s(%s(x)))", name_of(c), name_of(b), name_of(a));
          check_chain(text, (attune_dtype)from, true);
        }
}

/* Every row of casts drops one, and holds only where the table says so. */
TEST(cast_rows) {
  for (int r = 0; r < at_cast_rewrite_count; r++) {
    bool dropped = false;
    for (int d = 1; d <= AT_DTYPE_LAST; d++) {
      at_expression *e = compile(at_cast_rewrites[r].text, (attune_dtype)d, (attune_dtype)d);
      assert_non_null(e);
      dropped = dropped || (((unsigned)at_dtypes_of((attune_dtype)d) & at_cast_rewrites[r].source) &&
                            e->node_count == 2 && e->plain->node_count == 3);
      at_expression_destroy(e);
    }
    if (!dropped) fail_msg("%s is never shorter", at_cast_rewrites[r].text);
  }
  assert_false(at_rewrite_drops_cast(ATTUNE_I16, ATTUNE_F32, ATTUNE_U8));
  assert_false(at_rewrite_drops_cast(ATTUNE_U8, ATTUNE_C64, ATTUNE_I8));
  assert_true(at_rewrite_drops_cast(ATTUNE_U8, ATTUNE_F16, ATTUNE_I16));
  assert_true(at_rewrite_drops_cast(ATTUNE_I16, ATTUNE_I64, ATTUNE_U8));
  assert_false(at_rewrite_drops_cast(ATTUNE_I32, ATTUNE_F32, ATTUNE_F64));
}

/* ---- constants ---- */

static void put_constant(char *out, size_t size, attune_dtype dtype, double x) {
  const char *sign = signbit(x) && !isnan(x) ? "-" : "";
  if (at_dtype_whole(dtype))
    snprintf(out, size, "%s(%lld)", attune_dtype_name(dtype), fabs(x) < 0x1p62 ? (long long)x : 0);
  else if (isfinite(x))
    snprintf(out, size, "%s(%s%.17g)", attune_dtype_name(dtype), sign, fabs(x));
  else
    snprintf(out, size, "%s(%s%s)", attune_dtype_name(dtype), sign, isnan(x) ? "nan" : "inf");
}

static void check_constants(at_function function, attune_dtype dtype, int i) {
  char arguments[3][48], text[TEXT];
  const size_t count = AT_COUNT(NUMBERS);
  const int arity = at_function_arity(function);
  const char *name = at_function_name(function);
  for (int k = 0; k < arity; k++) {
    double x = NUMBERS[(size_t)(i * (k + 1) + 11 * k) % count];
    if ((i + k) % 13 == 0) x = (i + k) % 2 ? (double)NAN : (double)INFINITY;
    put_constant(arguments[k], sizeof arguments[k], dtype, x);
  }
  const bool operator= at_function_precedence(function) > 0;
  if (operator)
    snprintf(text, sizeof text, arity == 1 ? "%.0s%s(%s)" : "(%s) %s (%s)", arity == 1 ? "" : arguments[0], name,
             arguments[arity - 1]);
  else
    snprintf(text, sizeof text, "%s(%s%s%s%s%s)", name, arguments[0], arity > 1 ? ", " : "",
             arity > 1 ? arguments[1] : "", arity > 2 ? ", " : "", arity > 2 ? arguments[2] : "");
  const at_signature none = {0};
  at_expression *e = NULL;
  if (at_expression_create_checked(&e, text, strlen(text), &none) != ATTUNE_OK) return;
  const at_element element = {.count = 1};
  at_evaluate(values, e, &element, AT_ROUND_NODES);
  at_evaluate(plain, e->plain, &element, AT_ROUND_NODES);
  if (!at_plain_same(e, values, plain)) fail_msg("%s becomes %s, another number", text, e->text);
  at_expression_destroy(e);
}

TEST(constants) {
  static const attune_dtype dtypes[] = {ATTUNE_F64, ATTUNE_F32, ATTUNE_BF16, ATTUNE_I64, ATTUNE_U64,
                                        ATTUNE_I8,  ATTUNE_U8,  ATTUNE_BOOL, ATTUNE_C64, ATTUNE_C128};
  for (int f = 0; f < AT_FN_COUNT; f++)
    for (size_t d = 0; d < AT_COUNT(dtypes); d++)
      for (int i = 0; i < 3 * (int)AT_COUNT(NUMBERS); i++) check_constants((at_function)f, dtypes[d], i);
}

/* ---- the host's loops ---- */

static unsigned char got[ROOM * BYTES], wanted[ROOM * BYTES];

static bool same_bits(attune_dtype dtype, const void *a, const void *b) {
  if (memcmp(a, b, attune_dtype_size(dtype)) == 0) return true;
  if (at_dtype_whole(dtype)) return false;
  const at_wide_value x = at_wide_value_load(dtype, a), y = at_wide_value_load(dtype, b);
  return ((isnan(x.re) && isnan(y.re)) || (x.re == y.re && !signbit(x.re) == !signbit(y.re))) &&
         ((isnan(x.im) && isnan(y.im)) || (x.im == y.im && !signbit(x.im) == !signbit(y.im)));
}

/* Every instruction set's loops of the rewritten graph beside the text as it is written. */
static void check_loops(const char *text, attune_dtype x) {
  const at_interpret_isa *isas[4];
  at_expression *e = compile(text, x, x);
  assert_non_null(e);
  const attune_dtype dtype = (attune_dtype)e->nodes[e->outputs[0]].dtype;
  const size_t size = attune_dtype_size(dtype);
  const int each = values_of(x, true, ys), count = each * (e->input_count > 1 ? TURNS : 1);
  for (int i = 0; i < count; i++)
    memcpy(xs + (size_t)i * attune_dtype_size(x), ys + (size_t)(i % each) * attune_dtype_size(x), attune_dtype_size(x));
  for (int i = each; i < count; i++) { /* the same, the ones beside them, and others */
    const int turn = i / each, by = turn < 5 ? turn - 2 + each : 7 * turn;
    memcpy(ys + (size_t)i * attune_dtype_size(x), ys + (size_t)((i + by) % each) * attune_dtype_size(x),
           attune_dtype_size(x));
  }
  for (int i = 0; i < count; i++) {
    const at_element element =
        element_of(e, xs + (size_t)i * attune_dtype_size(x), ys + (size_t)i * attune_dtype_size(x));
    at_evaluate(plain, e->plain, &element, AT_ROUND_NODES);
    at_wide_value_store(dtype, wanted + (size_t)i * size, plain[e->plain->outputs[0]]);
  }
  const at_shape shape = {1, {count}};
  const at_view output = at_view_packed(got, dtype, &shape);
  at_view inputs[2];
  for (int i = 0; i < e->input_count; i++) inputs[i] = at_view_packed(e->inputs[i].name[0] == 'y' ? ys : xs, x, &shape);
  at_interpret_isas(isas);
  for (int k = 0; isas[k]; k++) {
    at_interpreter *p = NULL;
    at_layout layout;
    OK(at_interpreter_create(&p, e, NULL, isas[k]));
    OK(at_interpreter_layout(&layout, p, &output, inputs));
    at_interpreter_call call = {.outputs = {got}, .inputs = {NULL}, .threads = 1};
    for (int i = 0; i < e->input_count; i++) call.inputs[i] = inputs[i].data;
    memset(got, 0xa5, sizeof got);
    at_interpreter_run(p, &layout, &call);
    at_interpreter_destroy(p);
    for (int i = 0; i < count; i++) {
      if (same_bits(dtype, got + (size_t)i * size, wanted + (size_t)i * size)) continue;
      const at_wide_value a = at_wide_value_load(x, xs + (size_t)i * attune_dtype_size(x)),
                          b = at_wide_value_load(x, ys + (size_t)i * attune_dtype_size(x)),
                          c = at_wide_value_load(dtype, got + (size_t)i * size),
                          w = at_wide_value_load(dtype, wanted + (size_t)i * size);
      fail_msg("%s: %s of x = %Lg (%lld), y = %Lg (%lld) gives %Lg (%lld); should be %Lg (%lld)",
               at_interpret_isa_name(isas[k]), text, a.re, (long long)a.integer, b.re, (long long)b.integer, c.re,
               (long long)c.integer, w.re, (long long)w.integer);
    }
  }
  at_expression_destroy(e);
}

TEST(loops_of_casts) {
  char text[TEXT];
  for (int from = 1; from <= AT_DTYPE_LAST; from++)
    for (int a = 1; a <= AT_DTYPE_LAST; a++)
      for (int b = 1; b <= AT_DTYPE_LAST; b++) {
        snprintf(text, sizeof text, "%s(%s(x))", name_of(b), name_of(a));
        check_loops(text, (attune_dtype)from);
      }
}

/* Functions with one right answer: only the last step rounds. Both zeros are among the numbers. */
TEST(loops_of_choices) {
  static const char *const texts[] = {"min(x, y)",      "max(x, y)",      "fmin(x, y)",     "fmax(x, y)",
                                      "clamp(x, y, 1)", "clamp(1, x, y)", "clamp(x, 0, y)", "relu(x)",
                                      "sign(x)",        "x % y",          "fmod(x, y)",     "abs(-x)",
                                      "abs(x)",         "x > y",          "x >= y",         "x == x",
                                      "relu(-x)",       "x / 8",          "x - x",          "where(x < y, x, y)"};
  for (size_t t = 0; t < AT_COUNT(texts); t++)
    for (int d = 1; d <= AT_DTYPE_LAST; d++)
      if (at_dtype_kind_of((attune_dtype)d) != AT_KIND_COMPLEX) {
        at_expression *e = compile(texts[t], (attune_dtype)d, (attune_dtype)d);
        if (!e) continue; /* 8-bit floats and numbers have no common dtype everywhere */
        at_expression_destroy(e);
        check_loops(texts[t], (attune_dtype)d);
      }
}

/* ---- what is refused ---- */

/* x and y are of `dtype`, s is an i64 scalar. */
static attune_status compile_with_scalar(at_expression **out, const char *text, attune_dtype dtype) {
  const at_operand_name names[2] = {{"x", (uint8_t)dtype, 0}, {"y", (uint8_t)dtype, 0}}, s = {"s", ATTUNE_I64, 0};
  const at_signature signature = {names, &s, strchr(text, 'y') ? 2 : 1, strchr(text, 's') ? 1 : 0};
  return at_expression_create_checked(out, text, strlen(text), &signature);
}

/* A program may write what the canonical text says, as write_call does. */
static void check_body(const at_expression *e) {
  at_operand_name names[2] = {0};
  at_expression *again = NULL;
  for (int i = 0; i < e->input_count; i++)
    names[i] = (at_operand_name){.name = {'i', (char)('0' + i)}, .dtype = e->inputs[i].dtype};
  const at_signature signature = {names, NULL, e->input_count, 0};
  const char *body = strstr(e->text, ": ") + 2;
  if (at_expression_create(&again, body, strlen(body), &signature) != ATTUNE_OK)
    fail_msg("%s: %s", e->text, attune_last_message());
  assert_string_equal(again->text, e->text);
  at_expression_destroy(again);
}

/* Only numbers as they are written are refused: what the operands or rewrites make a constant has the results of values
 * that are known when it runs, in every loop, and the canonical text of it is read again. */
TEST(refused_as_written) {
  static const char *const run[] = {"x % (y ^ y)",
                                    "x // (y - y)",
                                    "fmod(x, y * 0)",
                                    "x % (y % 1)",
                                    "x << ~(y - y)",
                                    "x >> ~(y ^ y)",
                                    "x << 100 * (y == y)",
                                    "x >> (y ^ y) + 77",
                                    "x ** ~(y - y)",
                                    "x + (y - y) // (y ^ y)",
                                    "x % (y != y)",
                                    "x // (f32(y) != f32(y) && false)",
                                    "x ** (~(y - y) - (y == y))",
                                    "i8(f32(y - y) + 1000.0) + i8(x)",
                                    "u8(-1.5 - f64(y ^ y)) + u8(x)"};
  static const char *const never[] = {"x % 0",           "x // (2 - 2)", "fmod(x, false)", "x << -1",
                                      "x >> 64",         "x << ~0",      "x ** -1",        "x % i32(0.5)",
                                      "x + i8(1000.0)",  "x + u8(-1.5)", "z = 0; x % z",   "x % (true ? 0 : 1)",
                                      "x + index(y - y)"};
  static const attune_dtype dtypes[] = {ATTUNE_I8, ATTUNE_I16, ATTUNE_I32, ATTUNE_I64,
                                        ATTUNE_U8, ATTUNE_U16, ATTUNE_U32, ATTUNE_U64};
  at_expression *e = NULL, *again = NULL;
  for (size_t d = 0; d < AT_COUNT(dtypes); d++) {
    for (size_t i = 0; i < AT_COUNT(run); i++) {
      e = compile(run[i], dtypes[d], dtypes[d]);
      if (!e && dtypes[d] == ATTUNE_U64 && strstr(attune_last_message(), "no common dtype")) continue;
      if (!e) fail_msg("%s of %s: %s", run[i], attune_dtype_name(dtypes[d]), attune_last_message());
      check_all(e, run[i], dtypes[d], dtypes[d], true);
      OK(at_expression_parse_canonical_checked(&again, e->text));
      assert_string_equal(again->text, e->text);
      at_expression_destroy(again);
      check_body(e);
      at_expression_destroy(e);
      check_loops(run[i], dtypes[d]);
    }
    for (size_t i = 0; i < AT_COUNT(never); i++)
      if ((e = compile(never[i], dtypes[d], dtypes[d])))
        fail_msg("%s of %s is accepted", never[i], attune_dtype_name(dtypes[d]));
  }
  /* A number of the text must fit; a scalar wraps, and so does what is made of it. */
  FAILS(compile_with_scalar(&e, "x + 300", ATTUNE_U8), ATTUNE_INVALID_ARGUMENT);
  OK(compile_with_scalar(&e, "x + (s - s + 300)", ATTUNE_U8));
  const at_constant s = {.integer = 5};
  const uint8_t x = 3;
  at_element element = element_of(e, &x, &x);
  element.scalars = &s;
  at_evaluate(values, e, &element, AT_ROUND_NODES);
  at_evaluate(plain, e->plain, &element, AT_ROUND_NODES);
  assert_int_equal(values[e->outputs[0]].integer, 47);
  assert_true(at_plain_same(e, values, plain));
  at_expression_destroy(e);
}

/* ---- what the documents say ---- */

static long double value_of(const char *text, attune_dtype dtype, double x, double y) {
  unsigned char a[BYTES], b[BYTES];
  at_expression *e = compile(text, dtype, dtype);
  assert_non_null(e);
  at_wide_value_store(dtype, a,
                      at_dtype_whole(dtype) ? (at_wide_value){.integer = (int64_t)x} : (at_wide_value){.re = x});
  at_wide_value_store(dtype, b,
                      at_dtype_whole(dtype) ? (at_wide_value){.integer = (int64_t)y} : (at_wide_value){.re = y});
  const at_element element = element_of(e, a, b);
  at_evaluate(plain, e->plain, &element, AT_ROUND_NODES);
  const at_wide_value out = plain[e->plain->outputs[0]];
  const bool whole = at_dtype_whole((attune_dtype)e->plain->nodes[e->plain->outputs[0]].dtype);
  at_expression_destroy(e);
  return whole ? (long double)out.integer : out.re;
}

TEST(decisions) {
  static const struct {
    const char *text;
    attune_dtype dtype;
    double x, y, value;
  } rows[] = {{"u8(f32(x))", ATTUNE_I16, -30, 0, 0},
              {"u8(f32(x))", ATTUNE_I16, 300, 0, 255},
              {"u8(x)", ATTUNE_I16, -30, 0, 226},
              {"abs(-x)", ATTUNE_U8, 80, 0, 176},
              {"x % y", ATTUNE_F32, 4, -2, -0.0},
              {"x % y", ATTUNE_F64, -4, 2, 0.0},
              {"x % y", ATTUNE_F16, -0.0, 3, 0.0},
              {"min(x, y)", ATTUNE_F32, 0.0, -0.0, -0.0},
              {"min(x, y)", ATTUNE_F64, -0.0, 0.0, -0.0},
              {"max(x, y)", ATTUNE_BF16, -0.0, 0.0, 0.0},
              {"fmax(x, y)", ATTUNE_F32, 0.0, -0.0, 0.0},
              {"fmin(x, y)", ATTUNE_F32, 0.0, -0.0, -0.0},
              {"clamp(x, 0, 1)", ATTUNE_F32, -0.0, 0, 0.0},
              {"x % (y ^ y)", ATTUNE_I32, 7, 3, 0},
              {"x // (y - y)", ATTUNE_U8, 7, 3, 0},
              {"x << ~(y - y)", ATTUNE_I16, 7, 3, 0},
              {"x >> ~(y - y)", ATTUNE_I16, -7, 3, -1},
              {"x ** ~(y - y)", ATTUNE_I64, -1, 3, -1},
              {"x ** ~(y - y)", ATTUNE_I64, 5, 3, 0},
              {"i8(f32(x - x) + 1000.0)", ATTUNE_I16, 5, 3, 127},
              {"relu(x)", ATTUNE_F32, -0.0, 0, 0.0},
              {"sign(x)", ATTUNE_F64, -0.0, 0, 0.0},
              {"sign(x)", ATTUNE_F32, (double)NAN, 0, (double)NAN},
              {"relu(x)", ATTUNE_F32, (double)NAN, 0, (double)NAN}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    const long double value = value_of(rows[i].text, rows[i].dtype, rows[i].x, rows[i].y);
    const bool same =
        isnan(rows[i].value) ? isnan(value) : value == rows[i].value && !signbit(value) == !signbit(rows[i].value);
    if (!same) fail_msg("%s of %g, %g is %Lg; should be %g", rows[i].text, rows[i].x, rows[i].y, value, rows[i].value);
  }
}

/* ---- it is found ---- */

/* A graph that was rewritten wrongly differs from its text; operands and draws that it lost change nothing. */
TEST(found) {
  at_expression *e = compile("abs(-x) + y", ATTUNE_I16, ATTUNE_I16);
  assert_non_null(e);
  const int16_t x = -30, y = 7;
  const at_element element = element_of(e, &x, &y);
  at_evaluate(values, e, &element, AT_ROUND_NODES);
  at_evaluate(plain, e->plain, &element, AT_ROUND_NODES);
  assert_true(at_plain_same(e, values, plain));
  for (int i = 0; i < e->node_count; i++)
    if (e->nodes[i].kind == AT_NODE_FUNCTION && e->nodes[i].function == AT_FN_ABS)
      e->nodes[i].function = AT_FN_CONJUGATE; /* as if abs(x) were x */
  at_evaluate(values, e, &element, AT_ROUND_NODES);
  assert_false(at_plain_same(e, values, plain));
  at_expression_destroy(e);
  e = compile("x * 0 + y - where(false, rand(), 0.0) + rand()", ATTUNE_I16, ATTUNE_F32);
  assert_non_null(e);
  assert_int_equal(e->input_count, 1);
  assert_int_equal(e->uniform_count, 1);
  assert_int_equal(e->uniform_of[0], 1);
  const at_random_draws draws = {.seed = 3};
  at_element drawn = element_of(e, &x, &(float){0.25f});
  drawn.draws = &draws;
  at_evaluate(values, e, &drawn, AT_ROUND_NODES);
  at_evaluate(plain, e->plain, &drawn, AT_ROUND_NODES);
  assert_true(at_plain_same(e, values, plain));
  at_expression_destroy(e);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
