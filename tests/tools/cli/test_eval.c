/* SPDX-License-Identifier: Apache-2.0
 * test_eval.c: `attune eval` as a user meets it: what it prints, its exit codes, and each kind of wrong input. */
#include "tests/support/cli_fixture.h"

#include <math.h>

#define EVAL(...) "eval", "--db", database, "--device", "host", __VA_ARGS__
#define QUICK "--no-tune", "--shape"

TEST(tunes_runs_and_checks) {
  expect_run(0, EVAL("gelu(a + b) * b", "--shape", "64x32", "--dtype", "bf16"));
  expect_out("gelu(a + b) * b on host\n");
  expect_out("problem    elementwise 2048 strict out=bf16 : bf16 i0, bf16 i1: ");
  expect_out("measured now\n");
  expect_out("checked    all of the 2048 elements checked (of 2048) are right: largest error ");
  expect_out(" per call (hot,eager, median of ");
  expect_out(" GB/s; a copy of as many bytes, timed in turns: ");
  expect_out("element ");
  expect_out("out:bf16");
  assert_string_equal(err_text, "");
  expect_run(0, EVAL("gelu(y + x) * x", "--shape", "2048", "--dtype", "bf16", "--no-tune"));
  expect_out("the stored winner\n");
  expect_run(0, "show", "--db", database, "--device", "host");
  expect_out("elementwise 2048 strict");
}

static double number_at(const json_t *object, const char *of, size_t tensor, size_t index) {
  const json_t *one = json_array_get(json_object_get(object, of), tensor);
  const json_t *value = json_array_get(json_object_get(one, "values"), index);
  assert_non_null(value);
  return json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
}

static json_t *evaluated(void) {
  json_t *object = parse_out();
  assert_true(json_is_true(json_object_get(object, "correct")));
  assert_true(json_number_value(json_object_get(object, "time_ns")) > 0);
  assert_true(json_number_value(json_object_get(object, "gb_per_s")) > 0);
  return object;
}

/* An expression may begin with a sign, wherever it stands; letters after it are an option's only where they can be. */
TEST(begins_with_a_sign) {
  expect_run(0, EVAL("-a ** 2", QUICK, "4", "--dtype", "i32"));
  expect_out("i32 i0: -(i0 * i0)");
  expect_run(0, EVAL("--dtype", "torch.float64", QUICK, "4", "-a**2"));
  expect_out("f64 i0: -(i0 * i0)");
  expect_run(0, EVAL("-s*a", QUICK, "4", "--sample", "2"));
  expect_out("all of the 2 elements checked (of 4) are right");
  expect_run(0, EVAL("-(a + b)", QUICK, "4"));
  expect_run(0, EVAL("--a*2", QUICK, "4", "-n", "1"));
  expect_run(0, EVAL(QUICK, "4", "--", "--a"));
  expect_run(0, "eval", "-b", database, "-d", "host", "-a", QUICK, "4");
  /* Letters of options that wait for a value, and have none. */
  static const char *const letters[] = {"-b", "-s", "-n", "-d"};
  for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
    expect_run(0, EVAL(letters[i], "--no-tune", "--shape", "4"));
    expect_out("f32 i0: -i0");
    expect_run(0, EVAL("--no-tune", "--shape=4", letters[i]));
    expect_out("f32 i0: -i0");
  }
  expect_run(2, EVAL("-j", QUICK, "4"));
  expect_error("one that looks like an option goes after --: -- -j");
  expect_run(0, EVAL(QUICK, "4", "--", "-j"));
  expect_run(2, EVAL("a", QUICK, "4", "-n"));
  expect_run(2, EVAL("--a", QUICK, "4"));
  expect_error("there is no option --a");
  expect_run(2, EVAL("a", "-x", QUICK, "4"));
  expect_run(2, EVAL("a and b", QUICK, "4"));
  expect_error("write &&");
  expect_run(2, EVAL("x^2", QUICK, "4"));
  expect_error("for a power write x ** y");
}

/* Conversions of integers, and lengths of unsigned ones, as the text gives them. */
TEST(computes_what_is_written) {
  expect_run(0, EVAL("u8(f32(x))", QUICK, "64", "--dtype", "int16", "--print", "64", "--json"));
  json_t *o = evaluated();
  for (size_t i = 0; i < 64; i++) {
    const double x = number_at(o, "inputs", 0, i);
    assert_true(number_at(o, "outputs", 0, i) == fmin(fmax(x, 0), 255));
  }
  json_decref(o);
  expect_run(0, EVAL("abs(-x)", QUICK, "64", "--dtype", "uint8", "--print", "64", "--json"));
  o = evaluated();
  for (size_t i = 0; i < 64; i++)
    assert_true(number_at(o, "outputs", 0, i) == fmod(256 - number_at(o, "inputs", 0, i), 256));
  json_decref(o);
}

/* A dtype that the options accept is a cast, too, with a module or without. */
TEST(casts_have_other_names) {
  static const char *const names[] = {"float16", "half", "torch.float16", "np.float16", "fp16", "torch.half", "F16"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char text[64];
    snprintf(text, sizeof text, "%s(x) + 1", names[i]);
    expect_run(0, EVAL(text, QUICK, "8"));
    expect_out("elementwise 8 strict out=f16 : f32 i0: f16(");
    expect_run(0, EVAL("x", QUICK, "8", "--dtype", names[i]));
    expect_out("elementwise 8 strict out=f16 : f16 i0: i0");
  }
}

/* Each option reaches the numbers. */
TEST(computes_what_is_asked) {
  expect_run(0, EVAL("s * x + b", QUICK, "3x5", "--inputs", "b::5", "--scalars", "s=0.25", "--print", "15", "--json"));
  json_t *o = evaluated();
  assert_int_equal(member(o, "elements"), 15);
  assert_int_equal(member(o, "checked"), 15);
  assert_int_equal(member(o, "bytes"), 4 * (15 + 15 + 5));
  for (size_t i = 0; i < 15; i++) {
    const double b = number_at(o, "inputs", 0, i), x = number_at(o, "inputs", 1, i);
    assert_true(b == number_at(o, "inputs", 0, i % 5));
    assert_true(fabs(0.25 * x + b - number_at(o, "outputs", 0, i)) < 1e-6);
  }
  json_decref(o);
  /* Strides, also from the end; kinds of scalars; a dtype. */
  expect_run(0, EVAL("a * n", QUICK, "4", "--dtype", "i32", "--inputs", "a:::-2", "--scalars", "n:i64=-3", "--outputs",
                     "i64", "--json"));
  o = evaluated();
  for (size_t i = 0; i < 4; i++) assert_true(number_at(o, "inputs", 0, i) * -3 == number_at(o, "outputs", 0, i));
  json_decref(o);
  expect_run(0, EVAL("index(0) + 100 * index(1)", QUICK, "2x3", "--outputs", "i64:1x2", "--print", "6", "--json"));
  o = evaluated();
  for (size_t i = 0; i < 6; i++) assert_true(number_at(o, "outputs", 0, i) == (double)(i % 3 + 100 * (i / 3)));
  json_decref(o);
}

TEST(in_place_and_random) {
  expect_run(0, EVAL("x + y", QUICK, "1000", "--outputs", "@x", "--json"));
  json_t *o = evaluated();
  for (size_t i = 0; i < 4; i++)
    assert_true(fabs(number_at(o, "inputs", 0, i) + number_at(o, "inputs", 1, i) - number_at(o, "outputs", 0, i)) <
                1e-6);
  json_decref(o);
  expect_run(0, EVAL("m = rand() < 0.5; m ? x : 0, m", QUICK, "1000", "--seed", "7", "--json"));
  o = evaluated();
  for (size_t i = 0; i < 4; i++)
    assert_true(number_at(o, "outputs", 0, i) == number_at(o, "outputs", 1, i) * number_at(o, "inputs", 0, i));
  char *first = json_dumps(json_object_get(o, "outputs"), 0);
  json_decref(o);
  expect_run(0, EVAL("m = rand() < 0.5; m ? x : 0, m", QUICK, "1000", "--seed", "7", "--json"));
  o = evaluated();
  char *second = json_dumps(json_object_get(o, "outputs"), 0);
  json_decref(o);
  assert_string_equal(first, second);
  free(second);
  expect_run(0, EVAL("m = rand() < 0.5; m ? x : 0, m", QUICK, "1000", "--seed", "8", "--json"));
  o = evaluated();
  second = json_dumps(json_object_get(o, "outputs"), 0);
  json_decref(o);
  assert_string_not_equal(first, second);
  free(first);
  free(second);
}

TEST(prints_every_kind) {
  static const char *const dtypes[] = {"f64", "bf16", "f8e4m3", "i8", "u64", "bool", "c128"};
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
    expect_run(0, EVAL("a", QUICK, "33", "--dtype", dtypes[i], "--sample", "10"));
    expect_out("checked    all of the 10 elements checked (of 33) are right");
    expect_out(dtypes[i]);
  }
  expect_out("j"); /* an imaginary part */
  expect_run(0, EVAL("z * a", QUICK, "5", "--dtype", "c64", "--scalars", "z:c128=1-2j", "--print", "0", "--contract",
                     "reduced"));
  assert_null(strstr(out_text, "element "));
  expect_run(0, EVAL("a && f", QUICK, "", "--dtype", "bool", "--scalars", "f:bool=true", "--sample", "0"));
  expect_out("all of the 1 elements checked (of 1)");
}

/* Arguments of the command, and the words of the message. */
typedef struct row {
  const char *words[5];
  const char *message;
} row;

static const row WRONG[] = {
    {{"--shape", "4"}, "no EXPRESSION"},
    {{"a + b"}, "no --shape"},
    {{"a", "b", "--shape", "4"}, "eval takes one EXPRESSION"},
    {{"a", "--shape", "4", "--no-such-option"}, "there is no option --no-such-option"},
    {{"", "--shape", "4"}, "there is no expression"},
    {{"gelU(a) + b", "--shape", "4"}, "there is no function \"gelU\"; is gelu meant?\n  gelU(a) + b\n  ^\n"},
    {{"a + (b", "--shape", "4"}, "\n  a + (b\n      ^\n"},
    {{"a\x01", "--shape", "4"}, "control character"},
    {{"a", "--shape", "4x"}, "shape is \"4x\""},
    {{"a", "--shape", "-4"}, "shape is \"-4\""},
    {{"a", "--shape", "0"}, "no elements"},
    {{"a", "--shape", "1x1x1x1x1x1x1x1x1"}, "should be up to 8 sizes"},
    {{"a", "--shape", "4611686018427387904x4"}, "more than 2^59 elements"},
    {{"a", "--shape", "9223372036854775807"}, "shape is"},
    {{"a", "--shape", "4", "--dtype", "f12"}, "should be f64, f32"},
    {{"a + b", "--shape", "4", "--inputs", "c"}, "c"},
    {{"a", "--shape", "4", "--inputs", "a::3"}, "3"},
    {{"a", "--shape", "4", "--inputs", "a:::1x1"}, "the strides of a"},
    {{"a", "--shape", "4", "--inputs", "a:x"}, "the dtype of a"},
    {{"a", "--shape", "4", "--inputs", "a:f32:4:1:9"}, "should be a name, dtype, shape and strides"},
    {{"a", "--shape", "4", "--outputs", "@b"}, "should be @ and the name of an input"},
    {{"a", "--shape", "4", "--outputs", "f32 f32"}, "more outputs than the expression's 1"},
    {{"a", "--shape", "4", "--outputs", "f32:0"}, "stride"},
    {{"a * s", "--shape", "4", "--scalars", "s=half"}, "the value of scalar \"s=half\" should be a number"},
    {{"a * s", "--shape", "4", "--scalars", "s="}, "the value of scalar"},
    {{"a * s", "--shape", "4", "--scalars", "s:i64=1.5"}, "should be a whole number"},
    {{"a * s", "--shape", "4", "--scalars", "s:bool=2"}, "should be true or false"},
    {{"a * s", "--shape", "4", "--scalars", "s:c128=1+j2"}, "should be a complex number"},
    {{"a * s", "--shape", "4", "--scalars", "s:f32=1"}, "s"},
    {{"a", "--shape", "4", "--scalars", "s=1"}, "s"},
    {{"a", "--shape", "4", "--contract", "exact"}, "should be strict, equivalent or reduced"},
    {{"a", "--shape", "4", "--sample", "-1"}, "--sample is \"-1\""},
    {{"a", "--shape", "4", "--print", "x"}, "--print is \"x\""},
    {{"a", "--shape", "4", "--seed", "-1"}, "--seed is \"-1\""},
    {{"a", "--shape", "4", "--budget", "0"}, "--budget is \"0\""},
    {{"a", "--shape", "4", "--device", "gpu"}, "gpu"},
};

TEST(wrong_input_is_told) {
  for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
    const char *words[WORDS] = {"eval", "--db", database};
    for (int w = 0; w < 5 && WRONG[i].words[w]; w++) words[3 + w] = WRONG[i].words[w];
    const int code = finish(start(words, out_path));
    if (code != 2 || !strstr(err_text, WRONG[i].message) || *out_text)
      fail_msg("row %zu, %s: exit code %d, should be 2; standard error: %s", i, WRONG[i].message, code, err_text);
  }
}

TEST(limits) {
  enum { LONG = 100000 };
  char *text = calloc(1, LONG + 1);
  assert_non_null(text);
  for (int i = 0; i < LONG; i++) text[i] = i % 2 ? '+' : (char)('a' + i / 2 % 26);
  expect_run(2, EVAL(text, "--shape", "4"));
  expect_error("16384");
  memset(text, '(', LONG);
  expect_run(2, EVAL(text, "--shape", "4"));
  free(text);
  /* No machine has the memory. It is told, not killed. */
  expect_run(1, EVAL("a + b", "--shape", "1000000x1000000x100"));
  expect_error("it is too large to be measured on host: its operands are 1.");
  expect_run(1, EVAL("a + b", "--no-tune", "--shape", "1000000x1000000x100"));
  expect_error("its operands are 1.2 PB");
  expect_run(2, "eval", "a", "--shape", "4", "--db", "/no/such/folder/t.db");
  assert_true(strlen(err_text) > 0);
}

#ifdef AT_IDLE
TEST(wrong_results_are_told) {
  setenv("LD_PRELOAD", AT_IDLE, 1);
  const int code = finish(start((const char *const[]){EVAL("a + b", QUICK, "100"), NULL}, out_path));
  unsetenv("LD_PRELOAD");
  assert_int_equal(code, 1);
  expect_out("some of the 100 elements checked (of 100) are WRONG");
  expect_error("the results are wrong");
  expect_run(0, EVAL("a + b", QUICK, "100"));
}
#endif

TEST(help_has_examples) {
  expect_run(0, "eval", "--help");
  expect_out("attune eval 'gelu(a + b) * b' --shape 4096x4096 --dtype bf16\n");
  expect_out("attune eval 's * x + b' --shape 64x1024 --inputs b::1024 --scalars s=0.5\n");
  expect_out("--no-tune");
  expect_run(0, "--help");
  expect_out("eval EXPRESSION");
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, set_up, tear_down);
}
