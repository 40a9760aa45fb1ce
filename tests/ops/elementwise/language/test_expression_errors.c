/* SPDX-License-Identifier: Apache-2.0
 * test_expression_errors.c: each thing that can be wrong has its own message: what is wrong and the remedy, the line of
 * the text, and a caret under the place. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/language/expression_fixture.h"

static const char *const LINE = "f32 a, f32 b, i32 i, u8 u, u64 w, c64 z, bool m, f16 h, f8e4m3 q; f64 s, i64 n";

typedef struct row {
  const char *text, *words, *at; /* what the message says; what stands at the caret, "" the end of the line */
} row;

static const row ROWS[] = {
    /* characters */
    {"a @ b", "the character @ has no meaning here", "@ b"},
    {"a $ b", "the character $", "$ b"},
    {"a + \"b\"", "quotes have no meaning here", "\"b"},
    {"a + 'b'", "quotes have no meaning here", "'b"},
    {"a \\ b", "the character \\", "\\ b"},
    {"a + \xc3\xa9", "byte 4, 0xc3, is not ASCII", "\\xc3"},
    {"a \x01+ b", "byte 2 is the control character 0x01", "\\x01"},
    {"a \x7f b", "byte 2, 0x7f, is not ASCII", "\\x7f"},
    {"a.b", "a dot occurs only in numbers", ".b"},
    {"torch.exp(a)", "a dot occurs only in numbers, as in 1.5; write exp(...) with nothing before it", ".exp"},
    {"a.float()", "a dot occurs only in numbers, as in 1.5; write float(...) with nothing before it", ".float"},
    {"torch.float99(a)", "a dot occurs only in numbers, as in 1.5; a function is called as gelu(x)", ".float99"},
    {"torch.float32 + a", "torch.float32 is a dtype and needs its parentheses, as in torch.float32(x)", "torch"},
    {"{a}", "the character {", "{a"},
    /* numbers */
    {"a * 2.5f", "\"f\" cannot follow a number; leave it out, or write f32(2.5)", "f"},
    {"a * 10L", "\"L\" cannot follow a number; leave it out, or write i64(10)", "L"},
    {"a * 10ull", "\"ull\" cannot follow a number; leave it out, or write u64(10)", "ull"},
    {"a * 0x10U", "\"U\" cannot follow a number; leave it out, or write u32(0x10)", "U"},
    {"a * 2.5h", "\"h\" cannot follow a number; leave it out, or write f16(2.5)", "h"},
    {"a * 1_000", "numbers contain no _", "_000"},
    {"a * 0b11", "integers are written in decimal or as 0x1f", "b11"},
    {"a * 012", "an integer does not begin with 0", "012"},
    {"a * 1e", "the exponent has no digits", "e"},
    {"a * 1e+", "the exponent has no digits", "e+"},
    {"a * 0x", "0x has no digits", "0x"},
    {"a * 0x1.8p3", "hexadecimal numbers are integers", ".8p3"},
    {"a * 0x1g", "\"g\" cannot follow a number; write its dtype as a cast, as in f32(0x1)", "g"},
    {"a * 1.2.3", "a number has one decimal point", ".3"},
    {"a * 18446744073709551616", "this integer is above 18446744073709551615", "18446"},
    {"a * 0x1ffffffffffffffff", "this integer is above", "0x1f"},
    {"a * 1e999", "this number is above 1.8e308; write inf", "1e999"},
    {"a * 1e-999", "this number is below 4.9e-324", "1e-999"},
    {"a * 3jj", "\"jj\" cannot follow a number", "jj"},
    /* names */
    {"foo + a", "\"foo\" is unknown; should be an operand or a value named earlier. The operands are a", "foo"},
    {"gelU(a)", "there is no function \"gelU\"; is gelu meant?", "gelU"},
    {"sigmoidd(a)", "is sigmoid meant?", "sigmoidd"},
    {"zzzzzz(a)", "there is no function \"zzzzzz\"; docs/expressions.md lists them", "zzzzzz"},
    {"pow(a, 2)", "write x ** y", "pow"},
    {"a and b", "\"and\" is not part of the language; write &&", "and"},
    {"(a or b)", "\"or\" is not part of the language; write ||", "or"},
    {"min(a or b, a)", "\"or\" is not part of the language; write ||", "or"},
    {"a ^ 2", "^ needs integers or bools, but has arguments of f32; for a power write x ** y; otherwise cast", "^ 2"},
    {"sum(a)", "\"sum\" is not part of the language; there are no reductions", "sum"},
    {"softmax(a)", "there are no reductions: each element is computed from the input elements at the same index",
     "softmax"},
    {"matmul(a, b)", "use attune_gemm for products of matrices", "matmul"},
    {"sqtr(a)", "there is no function \"sqtr\"; is sqrt meant?", "sqtr"},
    {"float23(a)", "there is no function \"float23\"", "float23"},
    {"and", "\"and\" is not part of the language; write &&", "and"},
    {"not a", "write !", "not"},
    {"float + a", "write f32(x)", "float"},
    {"gelu + a", "gelu is a function and needs its parentheses, as in gelu(x)", "gelu"},
    {"rand + a", "rand is a function and needs its parentheses, as in rand()", "rand"},
    {"f32 * a", "f32 is a dtype and needs its parentheses", "f32"},
    {"a(b)", "\"a\" is a value, not a function", "a(b)"},
    {"pi(a)", "pi is a constant, not a function", "pi"},
    {"t = a; t(b)", "\"t\" is a value, not a function", "t(b)"},
    {"t = t + a; t", "\"t\" is unknown", "t + a"},
    /* statements */
    {"  # nothing", "the expression has no output", ""},
    {"t = a;", "the expression has no output", ""},
    {"t = a", "the value of t should be followed by a ; and the outputs", ""},
    {"t = a, b", "the value of t should be followed by a ;", ", b"},
    {"t = a; t = b; t", "t already has a value", "t = b"},
    {"a = b; a", "a is an operand and cannot be assigned", "a = b"},
    {"gelu = a; gelu", "gelu is a function and cannot be assigned", "gelu ="},
    {"torch.half = a; a", "torch.half is a dtype and cannot be assigned", "torch"},
    {"f32 = a; f32", "f32 is a dtype and cannot be assigned", "f32 ="},
    {"e = a; e", "e is a constant and cannot be assigned", "e ="},
    {"if = a; if", "if is a reserved word and cannot be assigned", "if ="},
    {"t = a; b", "t is assigned but never used", "t = a"},
    {"a; b", "this value has no name and is not an output", "a; b"},
    {"t = = b", "= only names a value, at the start of a statement; write == to compare", "= b"},
    {"(t = a)", "= only names a value", "= a"},
    {"(a = b)", "\"=\" is not allowed here; should be an operator or )", "= b"},
    {"a + b = i", "= only names a value", "= i"},
    {"a,b,a,b,a,b,a,b,i", "this is output 9; an expression has at most 8", "i"},
    {"a,", "the expression ends where a value is expected", ""},
    {"a;;", "this value has no name and is not an output", "a;;"},
    /* structure */
    {"(a + b", "this parenthesis is not closed", "(a"},
    {"a + b)", "this ) closes nothing", ")"},
    {"gelu(a", "the call of gelu is not closed", "(a"},
    {"(a, b)", "a comma only separates arguments and outputs", ", b"},
    {"()", "\")\" is not a value", ")"},
    {"a +", "the expression ends where a value is expected", ""},
    {"a + * b", "\"*\" is not a value", "* b"},
    {"a b", "\"b\" is not allowed here; should be an operator, a comma or the end", "b"},
    {"gelu(a b)", "\"b\" is not allowed in the arguments of gelu", "b)"},
    {"min(a, )", "an argument is missing before this )", ")"},
    {"min(, a)", "\",\" is not a value", ", a"},
    {"a < b < i", "comparisons do not chain; write a < b && b < c", "< i"},
    {"a == b == i", "comparisons do not chain", "== i"},
    {"a < b == m", "comparisons do not chain", "== m"},
    {"a ? b", "this ? has no : after it", "? b"},
    {"a : b", "this : has no ? before it", ": b"},
    {"a &&& b", "\"&\" is not a value", "& b"},
    {"a /* b */", "\"*\" is not a value", "* b"},
    /* arguments */
    {"gelu()", "gelu has 0 arguments; should have 1", "gelu"},
    {"gelu(a, b)", "gelu has more than 1 argument; should have 1", "gelu"},
    {"clamp(a, 1)", "clamp has 2 arguments; should have 3", "clamp"},
    {"min(a)", "min has 1 argument; should have 2 or more", "min"},
    {"f32()", "f32 has 0 arguments; should have 1", "f32"},
    {"f32(a, b)", "f32 has more than 1 argument", "f32"},
    {"rand(a)", "rand has more than 0 arguments; should have 0", "rand"},
    {"index(a)", "the dimension of index should be a number", "a)"},
    {"index(1.5)", "the dimension of index should be a number", "1.5"},
    {"index(8)", "dimension 8 of index should be 0 to 7: 0 is the last one", "8)"},
    {"index(-1)", "dimension -1 of index should be 0 to 7", "-1"},
    {"index(0, 1)", "index has more than 1 argument", "index"},
    /* dtypes */
    {"a & i", "& needs integers or bools, but has arguments of f32; cast as in i32(x)", "& i"},
    {"~a", "~ needs integers or bools, but has an argument of f32", "~a"},
    {"a << 1", "<< needs integers, but has arguments of f32", "<< 1"},
    {"m << m", "<< has no bool; cast it to an integer", "<< m"},
    {"z < 1", "< has no c64; take real(z), imag(z) or abs(z)", "< 1"},
    {"gelu(z)", "gelu has no c64", "gelu"},
    {"imag(a)", "imag needs a complex number, but has f32", "imag"},
    {"angle(a)", "angle needs a complex number, but has f32; write where(x < 0, pi, 0.0)", "angle"},
    {"nextafter(h, h)", "nextafter has no f16; it has f32 and f64", "nextafter"},
    {"w + i", "+ of u64 and i32: these have no common dtype; cast one of them", "+ i"},
    {"q + a", "+ of f8e4m3 and f32: these have no common dtype", "+ a"},
    {"where(m, w, i)", "where of u64 and i32", "where"},
    {"u + 300", "300 does not fit into u8, the dtype of the other operand", "+ 300"},
    {"u + -300", "-300 does not fit into u8", "+ -300"},
    {"i + 3000000000", "3000000000 does not fit into i32", "+ 3000"},
    {"i8(1e9)", "1e+09 does not fit into i8", "i8"},
    {"i32(nan)", "nan does not fit into i32", "i32"},
    {"i // 0", "an integer is divided by 0", "// 0"},
    {"i % (2 - 2)", "an integer is divided by 0", "% (2"},
    {"fmod(i, 0)", "an integer is divided by 0", "fmod"},
    {"1 // 0", "an integer is divided by 0", "// 0"},
    {"i << 32", "i32 is shifted by 32; should be by 0 to 31", "<< 32"},
    {"u >> 8", "u8 is shifted by 8; should be by 0 to 7", ">> 8"},
    {"i << -1", "i32 is shifted by -1; should be by 0 to 31", "<< -1"},
    {"i ** -2", "an integer to the power -2 is not an integer", "** -2"},
    {"2 ** -1", "an integer to the power -1 is not an integer", "** -1"}};

static void split(const char *message, char lines[3][AT_MESSAGE_CHARS], int *count) {
  *count = 0;
  while (*count < 3) {
    const size_t length = strcspn(message, "\n");
    memcpy(lines[*count], message, length);
    lines[(*count)++][length] = '\0';
    if (!message[length]) return;
    message += length + 1;
  }
  fail_msg("more than three lines: %s", message);
}

static void check_message(const char *text, const char *words, const char *at) {
  char lines[3][AT_MESSAGE_CHARS];
  int count;
  split(attune_last_message(), lines, &count);
  if (count != 3 || !strstr(lines[0], words))
    fail_msg("%s: \"%s\" does not say \"%s\"", text, attune_last_message(), words);
  const size_t column = strcspn(lines[2], "^");
  if (lines[2][column] != '^' || strspn(lines[2], " ") != column || lines[2][column + 1])
    fail_msg("%s: no caret in \"%s\"", text, lines[2]);
  const char *under = column <= strlen(lines[1]) ? lines[1] + column : "outside";
  if (at[0] ? strncmp(under, at, strlen(at)) != 0 : under[0] != '\0')
    fail_msg("%s: the caret is at \"%s\"; should be at \"%s\"", text, under, at);
}

TEST(each_message) {
  for (size_t i = 0; i < AT_COUNT(ROWS); i++) {
    at_expression *e = (at_expression *)8;
    if (compile_mentioned(&e, LINE, ROWS[i].text) != ATTUNE_INVALID_ARGUMENT) fail_msg("%s is taken", ROWS[i].text);
    assert_null(e);
    check_message(ROWS[i].text, ROWS[i].words, ROWS[i].at);
  }
}

/* Beside what is refused stands what is not. */
TEST(neighbours) {
  GIVES(LINE, "i / 0", "f32(i0) / f32(0.0)"); /* floats are divided by 0 */
  GIVES(LINE, "i // 0.0", "f32(i0) // f32(0.0)");
  GIVES(LINE, "u + -1", "i0 + u8(255)");
  GIVES(LINE, "i32(u) + 300", "i32(i0) + i32(300)");
  GIVES(LINE, "(a < b) == m", "(i0 < i1) == i2");
}

/* Where there is nothing to show, no place is shown. */
TEST(no_text) {
  static const char *const texts[] = {"", "  ", "\n \n", "a +\n\n"};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_expression *e = NULL;
    FAILS(compile_mentioned(&e, LINE, texts[i]), ATTUNE_INVALID_ARGUMENT);
    if (strchr(attune_last_message(), '\n')) fail_msg("\"%s\": %s", texts[i], attune_last_message());
  }
}

/* The line with the fault, of several; cut on both sides where it is long. */
TEST(excerpts) {
  at_expression *e = NULL;
  FAILS_SAYING(compile_mentioned(&e, LINE, "t = a;\nu2 = t +* b;\nu2"), ATTUNE_INVALID_ARGUMENT,
               "\n  u2 = t +* b;\n          ^");
  char text[400];
  size_t at = 0;
  for (int i = 0; i < 40; i++) at_append(text, sizeof text, &at, "a + ");
  at_append(text, sizeof text, &at, "? ");
  for (int i = 0; i < 40; i++) at_append(text, sizeof text, &at, "+ b");
  FAILS(compile_mentioned(&e, LINE, text), ATTUNE_INVALID_ARGUMENT);
  check_message("a long line", "is not a value", "? + b");
  char lines[3][AT_MESSAGE_CHARS];
  int count;
  split(attune_last_message(), lines, &count);
  assert_true(strncmp(lines[1], "  ...", 5) == 0 && strlen(lines[1]) < 90);
  assert_string_equal(lines[1] + strlen(lines[1]) - 3, "...");
  /* nothing but controls and odd bytes around the fault: the message still fits */
  memset(text, '\t', 200);
  memset(text + 200, 0xfe, 100);
  FAILS(compile_with(&e, LINE, text, 300), ATTUNE_INVALID_ARGUMENT);
  check_message("odd bytes", "is not ASCII", "\\xfe");
  assert_true(strlen(attune_last_message()) < AT_MESSAGE_CHARS - 1);
  for (const char *c = attune_last_message(); *c; c++) assert_true(*c == '\n' || (*c >= ' ' && *c < 127));
}

TEST(sizes) {
  const size_t million = 1 << 20;
  char *text = malloc(million + 1);
  assert_non_null(text);
  memset(text, 'a', million);
  text[million] = '\0';
  at_expression *e = NULL;
  operands o;
  read_operands(&o, "f32 a");
  FAILS_SAYING(at_expression_create(&e, text, million, &o.signature), ATTUNE_INVALID_ARGUMENT,
               "the expression has more than 16384 characters, the maximum");
  FAILS(at_expression_create(&e, text, 64, &o.signature), ATTUNE_INVALID_ARGUMENT);
  check_message("a long name", "this name has 64 characters; should have at most 63", "aaaa");
  FAILS(at_expression_create(&e, "a + \0b", 6, &o.signature), ATTUNE_INVALID_ARGUMENT);
  check_message("NUL", "the expression has a NUL byte at 4 of 6", "\\x00");
  FAILS(at_expression_create(&e, "a # \0b", 6, &o.signature), ATTUNE_INVALID_ARGUMENT);
  check_message("NUL in a comment", "the expression has a NUL byte at 4 of 6", "\\x00");
  FAILS_SAYING(at_expression_create(&e, NULL, 0, &o.signature), ATTUNE_INVALID_ARGUMENT, "the expression is NULL");
  memset(text, '1', 500);
  text[1] = '.';
  FAILS(at_expression_create(&e, text, 500, &o.signature), ATTUNE_INVALID_ARGUMENT);
  check_message("a long number", "this number has 500 characters", "1.11");
  free(text);
}

/* 198 parentheses and what they hold are fine; one more level is not, whatever nests. */
TEST(depth) {
  static const char *const opens[] = {"(", "-", "gelu(", "a ? a : ", "a ** ", "!", "min(a, ", "f32(", "~", "("},
                           *const closes[] = {")", "", ")", "", "", "", ")", ")", "", ""};
  static char text[AT_EXPRESSION_CHARS];
  for (size_t k = 0; k < AT_COUNT(opens); k++)
    for (int times = 20; times <= 1500; times = times * 5) {
      size_t at = 0;
      for (int i = 0; i < times; i++) at_append(text, sizeof text, &at, "%s", opens[k]);
      at_append(text, sizeof text, &at, "a");
      for (int i = 0; i < times; i++) at_append(text, sizeof text, &at, "%s", closes[k]);
      at_expression *e = NULL;
      const attune_status status = compile_mentioned(&e, k == 8 ? "i32 a" : LINE, text);
      at_expression_destroy(e);
      if (times > 200) {
        FAILS_SAYING(status, ATTUNE_INVALID_ARGUMENT, "nested more than 200 deep here; name a part of it");
      } else if (k != 9 && times < 60) {
        assert_int_equal(status, ATTUNE_OK);
      }
    }
}

TEST(too_many) {
  static char text[AT_EXPRESSION_CHARS];
  size_t at = 0;
  at_expression *e = NULL;
  for (int i = 0; i < 1100; i++) at_append(text, sizeof text, &at, "%sa*%d.5", i ? "+" : "", i);
  FAILS(compile_mentioned(&e, LINE, text), ATTUNE_INVALID_ARGUMENT);
  assert_non_null(
      strstr(attune_last_message(), "operations and operands; should be at most 1024: split it into two expressions"));
  at = 0;
  for (int i = 0; i < 65; i++) at_append(text, sizeof text, &at, "%srand()", i ? "+" : "");
  FAILS(compile_mentioned(&e, LINE, text), ATTUNE_INVALID_ARGUMENT);
  assert_non_null(
      strstr(attune_last_message(), "this is random number 65 of an element; an expression has at most 64"));
}

/* More than a table of nodes takes, although they all fold to one number. */
TEST(far_too_many) {
  enum { CHARS = 250000 };
  char *text = malloc(CHARS);
  size_t at = 0;
  at_expression *e = NULL;
  assert_non_null(text);
  at_append(text, CHARS, &at, ": 1");
  for (int i = 2; at + 10 < CHARS; i++) at_append(text, CHARS, &at, "+%d", i);
  FAILS_SAYING(at_expression_parse_canonical(&e, text), ATTUNE_INVALID_ARGUMENT,
               "the expression has too many operations; should be at most 1024");
  free(text);
}

static void refused(const at_signature *signature, const char *words) {
  at_expression *e = (at_expression *)8;
  FAILS(at_expression_create(&e, "a", 1, signature), ATTUNE_INVALID_ARGUMENT);
  assert_null(e);
  if (!strstr(attune_last_message(), words)) fail_msg("\"%s\" does not say \"%s\"", attune_last_message(), words);
}

TEST(signatures) {
  static const char *const rows[][2] = {{"f32 a, f32 b", "operand b is not used by the expression"},
                                        {"f32 a; f64 s", "scalar s is not used by the expression"},
                                        {"f32 a, f32 a", "two operands are named a"},
                                        {"f32 a; f64 a", "two operands are named a"},
                                        {"f32 gelu, f32 a", "the name of tensor 0, gelu, is a function"},
                                        {"f32 a; f64 pi", "the name of scalar 0, pi, is a constant"},
                                        {"f32 a, f32 f32", "the name of tensor 1, f32, is a dtype"},
                                        {"f32 a, f32 if", "is a reserved word"},
                                        {"f32 a, f32 2b", "the name of tensor 1 is \"2b\""},
                                        {"f32 a, f32 b-c", "should consist of at most"},
                                        {"x32 a", "the dtype of tensor a is 0"},
                                        {"; f32 a", "the dtype of scalar a is f32; should be f64, i64, bool or c128"},
                                        {"f32 a0,f32 a1,f32 a2,f32 a3,f32 a4,f32 a5,f32 a6,f32 a7,f32 a8,f32 a9,f32 "
                                         "b0,f32 b1,f32 b2,f32 b3,f32 b4,f32 b5,f32 b6",
                                         "the expression has 17 tensors; should be at most 16"},
                                        {"; f64 a0,f64 a1,f64 a2,f64 a3,f64 a4,f64 a5,f64 a6,f64 a7,f64 a8",
                                         "the expression has 9 scalars; should be at most 8"}};
  for (size_t i = 0; i < AT_COUNT(rows); i++) {
    operands o;
    read_operands(&o, rows[i][0]);
    refused(&o.signature, rows[i][1]);
  }
  refused(NULL, "signature is NULL");
  at_operand_name bad = {.dtype = ATTUNE_F32};
  memset(bad.name, 'a', sizeof bad.name); /* without an end */
  refused(&(at_signature){.tensors = &bad, .tensor_count = 1}, "the name of tensor 0 is");
  refused(&(at_signature){.tensors = &(at_operand_name){.dtype = ATTUNE_F32}, .tensor_count = 1},
          "the name of tensor 0 is \"\"");
  refused(&(at_signature){.tensor_count = -1}, "the expression has -1 tensors");
}

/* A call that succeeds leaves the message alone. */
TEST(message_stays) {
  at_expression *e = NULL;
  FAILS(compile_mentioned(&e, LINE, "a +"), ATTUNE_INVALID_ARGUMENT);
  char *before = strdup(attune_last_message());
  OK(compile_mentioned(&e, LINE, "gelu(a + b) * 2 ** 0.5 + log(2)"));
  assert_string_equal(attune_last_message(), before);
  at_expression_destroy(e);
  at_expression_destroy(NULL);
  free(before);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
