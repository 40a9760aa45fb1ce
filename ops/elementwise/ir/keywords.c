/* SPDX-License-Identifier: Apache-2.0
 * keywords.c: see keywords.h. */
#include "ops/elementwise/ir/keywords.h"

#include <math.h>
#include <string.h>

static bool is(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

/* ---- constants ---- */

static const struct {
  const char *name;
  attune_dtype dtype;
  double value;
} CONSTANTS[] = {{"pi", ATTUNE_F64, 0x1.921fb54442d18p1},
                 {"e", ATTUNE_F64, 0x1.5bf0a8b145769p1},
                 {"inf", ATTUNE_F64, (double)INFINITY},
                 {"nan", ATTUNE_F64, (double)NAN},
                 {"true", ATTUNE_BOOL, 1.0},
                 {"false", ATTUNE_BOOL, 0.0}};

attune_dtype at_constant_find(const char *text, size_t length, at_constant *out) {
  for (size_t i = 0; i < AT_COUNT(CONSTANTS); i++)
    if (is(CONSTANTS[i].name, text, length)) {
      const bool whole = CONSTANTS[i].dtype == ATTUNE_BOOL;
      *out = (at_constant){.re = whole ? 0.0 : CONSTANTS[i].value, .integer = whole && CONSTANTS[i].value != 0.0};
      return CONSTANTS[i].dtype;
    }
  return (attune_dtype)0;
}

/* ---- rand, randn, index ---- */

static const char *const SPECIALS[] = {"", "rand", "randn", "index"};

at_special at_special_find(const char *text, size_t length) {
  for (size_t i = 1; i < AT_COUNT(SPECIALS); i++)
    if (is(SPECIALS[i], text, length)) return (at_special)i;
  return AT_SPECIAL_NONE;
}

/* ---- words of other languages ---- */

#define NO_REDUCTION "there are no reductions: each element is computed from the input elements at the same index"

static const struct {
  const char *word, *hint;
  bool reserved;
} WORDS[] = {{"and", "write &&", true},
             {"or", "write ||", true},
             {"not", "write !", true},
             {"if", "write condition ? a : b", true},
             {"else", "write condition ? a : b", true},
             {"True", "write true", true},
             {"False", "write false", true},
             {"None", "every value is a number", true},
             {"for", "there are no loops", true},
             {"while", "there are no loops", true},
             {"return", "the last part of the expression is the output", true},
             {"def", "values are named as in s = a + b;", true},
             {"lambda", "values are named as in s = a + b;", true},
             {"let", "values are named as in s = a + b;", true},
             {"import", "functions cannot be defined", true},
             {"xor", "write a ^ b of integers or bools", false},
             {"pow", "write x ** y", false},
             {"power", "write x ** y", false},
             {"mod", "write x % y", false},
             {"remainder", "write x % y", false},
             {"fabs", "write abs(x)", false},
             {"ln", "write log(x)", false},
             {"swish", "write silu(x)", false},
             {"maximum", "write max(a, b)", false},
             {"minimum", "write min(a, b)", false},
             {"clip", "write clamp(x, low, high)", false},
             {"select", "write where(condition, a, b)", false},
             {"rint", "write round(x)", false},
             {"nearbyint", "write round(x)", false},
             {"square", "write x ** 2", false},
             {"sgn", "write sign(x)", false},
             {"arctan", "write atan(x)", false},
             {"arcsin", "write asin(x)", false},
             {"arccos", "write acos(x)", false},
             {"float", "write f32(x)", false},
             {"double", "write f64(x)", false},
             {"half", "write f16(x)", false},
             {"bfloat16", "write bf16(x)", false},
             {"int", "write i32(x)", false},
             {"long", "write i64(x)", false},
             {"arange", "write index()", false},
             {"iota", "write index()", false},
             {"dropout", "write where(rand() < keep, x / keep, 0)", false},
             {"sum", NO_REDUCTION, false},
             {"mean", NO_REDUCTION, false},
             {"prod", NO_REDUCTION, false},
             {"std", NO_REDUCTION, false},
             {"var", NO_REDUCTION, false},
             {"norm", NO_REDUCTION, false},
             {"any", NO_REDUCTION, false},
             {"all", NO_REDUCTION, false},
             {"amax", NO_REDUCTION, false},
             {"amin", NO_REDUCTION, false},
             {"argmax", NO_REDUCTION, false},
             {"argmin", NO_REDUCTION, false},
             {"cumsum", NO_REDUCTION, false},
             {"softmax", NO_REDUCTION, false},
             {"layer_norm", NO_REDUCTION, false},
             {"dot", "use attune_gemm for products of matrices", false},
             {"matmul", "use attune_gemm for products of matrices", false}};

const char *at_word_hint(const char *text, size_t length) {
  for (size_t i = 0; i < AT_COUNT(WORDS); i++)
    if (is(WORDS[i].word, text, length)) return WORDS[i].hint;
  return NULL;
}

bool at_word_reserved(const char *text, size_t length) {
  for (size_t i = 0; i < AT_COUNT(WORDS); i++)
    if (WORDS[i].reserved && is(WORDS[i].word, text, length)) return true;
  return false;
}

const char *at_name_taken(const char *text, size_t length) {
  at_constant ignored;
  if (at_function_find(text, length) >= 0 || at_special_find(text, length)) return "a function";
  if (at_dtype_find(text, length) || memchr(text, '.', length)) return "a dtype"; /* torch.float32 */
  if (at_constant_find(text, length, &ignored)) return "a constant";
  return at_word_reserved(text, length) ? "a reserved word" : NULL;
}

/* ---- nearest ---- */

/* How many characters have to be put in, taken out or replaced, or neighbours exchanged (Damerau 1964); names are
 * shorter than 64. */
static int distance(const char *a, size_t a_length, const char *b) {
  int rows[3][AT_EXPRESSION_NAME + 1]; /* of the prefixes of a, in turn */
  const size_t b_length = strlen(b);
  for (size_t j = 0; j <= b_length; j++) rows[0][j] = (int)j;
  for (size_t i = 1; i <= a_length; i++) {
    int *row = rows[i % 3];
    const int *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
    row[0] = (int)i;
    for (size_t j = 1; j <= b_length; j++) {
      const int replaced = last[j - 1] + (a[i - 1] != b[j - 1]),
                one = (last[j] < row[j - 1] ? last[j] : row[j - 1]) + 1;
      row[j] = replaced < one ? replaced : one;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < row[j])
        row[j] = before[j - 2] + 1;
    }
  }
  return rows[a_length % 3][b_length];
}

static void keep_nearer(const char *text, size_t length, const char *name, int *least, const char **best) {
  const int away = distance(text, length, name);
  if (away >= *least) return;
  *least = away;
  *best = name;
}

const char *at_nearest_name(const char *text, size_t length, const char *names, size_t stride, int count) {
  const char *best = NULL;
  int least = length < 3 ? 1 : length < 6 ? 2 : 3;
  for (int i = 0; i < count; i++) keep_nearer(text, length, names + stride * (size_t)i, &least, &best);
  for (int i = 0; i < AT_FN_COUNT; i++)
    if (!at_function_precedence((at_function)i))
      keep_nearer(text, length, at_function_name((at_function)i), &least, &best);
  for (int i = 1; i <= AT_DTYPE_LAST; i++) keep_nearer(text, length, attune_dtype_name((attune_dtype)i), &least, &best);
  for (size_t i = 1; i < AT_COUNT(SPECIALS); i++) keep_nearer(text, length, SPECIALS[i], &least, &best);
  return best;
}
