/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_refuse.c: what a call of attune_elementwise refuses, with its status, its message and the place in
 * the text; and that nothing was written then. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/host_tuner.h"

static float a[64], b[64], c[64], out[64], out2[64];

/* a + b into out, of 8 elements each. */
static void begin(call *k) {
  call_begin(k);
  call_output(k, out, ATTUNE_F32, 1, CALL_SIZES(8));
  call_input(k, "a", a, ATTUNE_F32, 1, CALL_SIZES(8));
  call_input(k, "b", b, ATTUNE_F32, 1, CALL_SIZES(8));
}

/* Refused by every call, with these words, and nothing is written. */
static void refused_as(attune_status status, const char *text, const call *k, const char *words) {
  attune_plan *plan = NULL;
  for (int i = 0; i < 64; i++) out[i] = out2[i] = 77.0f;
  for (int which = 0; which < 3; which++) {
    const attune_status got = which == 1 ? attune_elementwise_plan_create(&plan, tuner, stream, text, &k->operands)
                                         : attune_elementwise(tuner, stream, text, &k->operands);
    if (got != status || !strstr(attune_last_message(), words))
      fail_msg("%.60s: %s: %s; should say %s", text, attune_status_string(got), attune_last_message(), words);
    assert_null(plan);
  }
  for (int i = 0; i < 64; i++) assert_true(out[i] == 77.0f && out2[i] == 77.0f);
}

static void refused(const char *text, const call *k, const char *words) {
  refused_as(ATTUNE_INVALID_ARGUMENT, text, k, words);
}

static void works(const char *text, const call *k) {
  attune_plan *plan = NULL;
  for (int i = 0; i < 2; i++) OK(attune_elementwise(tuner, stream, text, &k->operands));
  OK(attune_elementwise_plan_create(&plan, tuner, stream, text, &k->operands));
  OK(attune_elementwise_plan_run(plan, stream, &k->operands));
  attune_plan_destroy(plan);
}

/* ---- the text ---- */

TEST(texts) {
  call k;
  begin(&k);
  works("a + b", &k);
  refused("a + bb", &k, "\n  a + bb\n      ^");
  refused("a +\n b * gelU(a)", &k, "\n   b * gelU(a)\n       ^");
  refused("", &k, "the expression has no output");
  refused("a + b)", &k, "\n  a + b)\n       ^");
  refused("a", &k, "b");
  refused("a + b, a - b", &k, "the expression has 2 outputs, but operands has 1");
  refused("a & b", &k, "\n  a & b\n    ^");
  refused("popcount(a) + b", &k, "\n  popcount(a) + b\n  ^");
  refused("a + \xc3\xa4", &k, "ASCII");
  refused("a + b \xe2\x80\x8b", &k, "ASCII");
  refused("a + b\x01", &k, "\n  a + b");
  works("a + b\0 + what(", &k); /* a C string ends there */
  refused("rand() + a + b", &k, "the generator is NULL");
  refused("where(randn() < 0, a, b)", &k, "randn()");
}

/* A text of a megabyte, of `piece` again and again. */
static void long_text(const char *start, const char *piece, const char *end, const char *words) {
  enum { BYTES = 1 << 20 };
  char *text = malloc(BYTES + 64);
  call k;
  assert_non_null(text);
  size_t at = strlen(start), size = strlen(piece);
  memcpy(text, start, at);
  for (; at < BYTES; at += size) memcpy(text + at, piece, size);
  strcpy(text + at, end);
  begin(&k);
  refused(text, &k, words);
  text[12000] = '\0'; /* within the characters, but too deep or too large still */
  refused(text, &k, "");
  free(text);
}

TEST(very_long_and_very_deep) {
  long_text("a + b", " + a", "", "16384");
  long_text("a + b", " + a * 3.25", "", "16384");
  long_text("", "(", "a", "16384");
  long_text("a + ", "-", "b", "16384");
  long_text("", "aaaaaaaa", "", "16384");
  call k;
  begin(&k);
  char text[2000] = "b + ";
  memset(text + 4, '(', 500);
  strcpy(text + 504, "a");
  memset(text + 505, ')', 500);
  text[1005] = '\0';
  refused(text, &k, "200");
}

/* It is an expression, but has no room in a problem. */
TEST(too_long_for_a_problem) {
  char text[12000] = "a + b";
  call k;
  begin(&k);
  for (size_t at = strlen(text), i = 0; i < 150; i++) {
    at += (size_t)snprintf(text + at, sizeof text - at, " + sin(a * %d.1234567 + b)", (int)i);
    assert_true(at + 40 < sizeof text);
  }
  refused(text, &k, "too long");
}

/* ---- counts and names ---- */

TEST(counts) {
  static const int bad[] = {-1, INT32_MIN, 17, 9, 1000000, INT32_MAX};
  call k;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    begin(&k);
    k.operands.output_count = bad[i];
    refused("a + b", &k, "operands.output_count is");
    begin(&k);
    k.operands.scalar_count = bad[i];
    refused("a + b", &k, "operands.scalar_count is");
    if (bad[i] == 9) continue;
    begin(&k);
    k.operands.input_count = bad[i];
    refused("a + b", &k, "operands.input_count is");
  }
  begin(&k);
  k.operands.output_count = 0;
  refused("a + b", &k, "operands.output_count is 0; should be 1 to 8");
  begin(&k);
  k.operands.inputs = NULL;
  refused("a + b", &k, "operands.inputs is NULL");
  begin(&k);
  k.operands.outputs = NULL;
  refused("a + b", &k, "operands.outputs is NULL");
  begin(&k);
  call_scalar(&k, "s", 1);
  k.operands.scalars = NULL;
  refused("a + b * s", &k, "operands.scalars is NULL");
  begin(&k);
  k.operands.accuracy = (attune_accuracy)3;
  refused("a + b", &k, "operands.accuracy is 3");
  k.operands.accuracy = (attune_accuracy)-1;
  refused("a + b", &k, "operands.accuracy is -1");
  k.operands.accuracy = ATTUNE_EQUIVALENT;
  works("a + b", &k);
}

TEST(names) {
  call k;
  begin(&k);
  call_input(&k, "c", c, ATTUNE_F32, 1, CALL_SIZES(8));
  refused("a + b", &k, "c");
  begin(&k);
  k.inputs[1].name = NULL;
  refused("a + b", &k, "input 1 has no name");
  k.inputs[1].name = "a";
  refused("a + b", &k, "a");
  refused("a + a", &k, "a");
  k.inputs[1].name = "";
  refused("a + b", &k, "name");
  k.inputs[1].name = "gelu";
  refused("a + gelu", &k, "gelu");
  k.inputs[1].name = "b b";
  refused("a + b", &k, "b b");
  k.inputs[1].name = "b\n\"); evil();";
  refused("a + b", &k, "name");
  char name[200];
  memset(name, 'n', sizeof name);
  name[199] = '\0';
  k.inputs[1].name = name;
  refused("a + b", &k, "63");
  name[64] = '\0';
  refused("a + b", &k, "63");
  name[63] = '\0';
  char text[100] = "";
  snprintf(text, sizeof text, "a + %.63s", name);
  works(text, &k);
  begin(&k);
  call_scalar(&k, NULL, 1);
  refused("a + b * s", &k, "scalar 0 has no name");
  k.scalars[0].name = "a";
  refused("a + b", &k, "a");
  k.scalars[0].name = "s";
  refused("a + b", &k, "s");
  works("a + b * s", &k);
  static const int kinds[] = {2, 3, 7, 16, 18, 100, -1, INT32_MAX, INT32_MIN, 258};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    k.scalars[0].kind = (attune_dtype)kinds[i];
    refused("a + b * s", &k, "s");
  }
}

/* A scalar whose value lies where its kind does not look, for its kind was left 0. */
TEST(scalars_without_a_kind) {
  call k;
  begin(&k);
  call_scalar(&k, "s", 0);
  k.scalars[0].kind = (attune_dtype)0;
  works("a + b * s", &k);
  k.scalars[0].integer = 3;
  refused("a + b * s", &k, "scalar s has integer 3, but kind 0, which is f64; should be i64 or bool");
  k.scalars[0].integer = 0;
  k.scalars[0].imaginary = 0.5;
  refused("a + b * s", &k, "scalar s has imaginary 0.5, but kind 0, which is f64; should be c128");
  k.scalars[0].kind = ATTUNE_F64;
  works("a + b * s", &k);
}

/* ---- shapes and dtypes ---- */

/* Sizes without their number. */
TEST(dims_left_out) {
  call k;
  begin(&k);
  k.outputs[0].dims = 0;
  refused("a + b", &k, "output 0 has dims 0, but sizes[0] is 8; dims should be the number of sizes");
  begin(&k);
  k.inputs[0].dims = 0;
  refused("a + b", &k, "input a has dims 0, but sizes[0] is 8");
  k.inputs[0].sizes[0] = 1;
  works("a + b", &k);
  k.inputs[0].sizes[0] = 0;
  works("a + b", &k);
}

TEST(shapes) {
  call k;
  begin(&k);
  k.inputs[1].sizes[0] = 7;
  refused("a + b", &k, "b has size 7 in its last dimension; should be 8 or 1");
  begin(&k);
  k.inputs[0].dims = 2;
  k.inputs[0].sizes[0] = 1;
  k.inputs[0].sizes[1] = 8;
  refused("a + b", &k, "a has 2 dimensions; should have at most as many as the output, 1");
  begin(&k);
  k.outputs[0].sizes[0] = 1;
  refused("a + b", &k, "has size 8 in its last dimension; should be 1, like the output");
  static const int bad[] = {-1, 9, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    begin(&k);
    k.inputs[0].dims = bad[i];
    refused("a + b", &k, "input a has");
    begin(&k);
    k.outputs[0].dims = bad[i];
    refused("a + b", &k, "output 0 has");
    k.outputs[0].name = "the result";
    refused("a + b", &k, "output the result has");
  }
  begin(&k);
  k.inputs[0].sizes[0] = -8;
  refused("a + b", &k, "a has size -8 in dimension 0");
  begin(&k);
  for (int i = 0; i < 2; i++) k.inputs[i].sizes[0] = -1;
  k.outputs[0].sizes[0] = -1;
  refused("a + b", &k, "negative");
  begin(&k);
  call_output(&k, out2, ATTUNE_F32, 2, CALL_SIZES(1, 8));
  refused("a + b, a", &k, "output 1 ");
  k.outputs[1].dims = 1;
  k.outputs[1].sizes[0] = 1;
  refused("a + b, a", &k, "output 1 ");
  k.outputs[1].sizes[0] = 8;
  works("a + b, a", &k);
}

/* Nothing would be written, and yet it is wrong. */
TEST(shapes_without_elements) {
  call k;
  begin(&k);
  for (int i = 0; i < 2; i++) k.inputs[i].sizes[0] = 0;
  k.outputs[0].sizes[0] = 0;
  OK(attune_elementwise(tuner, stream, "a + b", &k.operands));
  k.outputs[0].data = k.inputs[0].data = NULL;
  OK(attune_elementwise(tuner, stream, "a + b", &k.operands));
  attune_plan *plan = NULL;
  FAILS_SAYING(attune_elementwise_plan_create(&plan, tuner, stream, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT,
               "at least one element");
  char text[ATTUNE_PROBLEM_CHARS];
  FAILS(attune_elementwise_problem_format(text, sizeof text, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
  refused("a + ", &k, "\n  a +");
  refused("rand() + a + b", &k, "the generator");
  k.inputs[1].sizes[0] = 3;
  refused("a + b", &k, "b has size 3");
  k.inputs[1].sizes[0] = 1;
  OK(attune_elementwise(tuner, stream, "a + b", &k.operands));
  call_output(&k, out2, ATTUNE_F32, 1, CALL_SIZES(1));
  refused("a + b, a", &k, "output 1 differs in shape from output 0");
  k.outputs[1] = tensor_of_shape(NULL, out2, ATTUNE_F32, 2, CALL_SIZES(4, 0));
  refused("a + b, a", &k, "output 1 ");
}

TEST(sizes_that_overflow) {
  call k;
  begin(&k);
  k.outputs[0] = tensor_of_shape(NULL, out, ATTUNE_F32, 2, CALL_SIZES(INT64_MAX, 2));
  for (int i = 0; i < 2; i++) k.inputs[i].sizes[0] = 1;
  refused("a + b", &k, "2^59");
  k.outputs[0] = tensor_of_shape(NULL, out, ATTUNE_F32, 2, CALL_SIZES(1 << 30, INT64_C(1) << 30));
  refused("a + b", &k, "2^59");
  k.outputs[0] = tensor_of_shape(NULL, out, ATTUNE_F32, 1, CALL_SIZES(8));
  static const int64_t strides[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_C(1) << 62, INT64_C(1) << 58};
  for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
    begin(&k);
    k.inputs[0].strides = &strides[i];
    refused("a + b", &k, "a spans more than 2^63 bytes");
    begin(&k);
    k.outputs[0].strides = &strides[i];
    refused("a + b", &k, "spans more than 2^63 bytes");
    begin(&k); /* of a dimension of one element nothing is asked */
    k.inputs[0].sizes[0] = 1;
    k.inputs[0].strides = &strides[i];
    works("a + b", &k);
  }
}

TEST(dtypes) {
  static const int none[] = {0, -1, 18, 256, 258, INT32_MAX, INT32_MIN};
  call k;
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    begin(&k);
    k.inputs[1].dtype = (attune_dtype)none[i];
    refused("a + b", &k, "the dtype of input b is");
    begin(&k);
    k.outputs[0].dtype = (attune_dtype)none[i];
    refused("a + b", &k, "the dtype of output 0 is");
  }
  begin(&k);
  k.inputs[1].dtype = ATTUNE_F8E4M3;
  refused("a + b", &k, "\n  a + b\n    ^");
  works("a + f32(b)", &k);
  k.inputs[1].dtype = ATTUNE_I32;
  refused("a + clz(a) + b", &k, "clz");
  works("a + clz(b)", &k);
  begin(&k);
  k.inputs[1].dtype = ATTUNE_C64;
  k.inputs[1].sizes[0] = 1;
  refused("a < b", &k, "\n  a < b\n    ^");
  refused("max(a, b)", &k, "max");
  k.inputs[1].dtype = ATTUNE_U64;
  k.inputs[0].dtype = ATTUNE_I64;
  k.inputs[0].sizes[0] = 1;
  refused("a + b", &k, "\n  a + b\n    ^");
}

/* ---- memory ---- */

TEST(data) {
  call k;
  begin(&k);
  k.inputs[1].data = NULL;
  refused("a + b", &k, "input b is NULL");
  begin(&k);
  k.outputs[0].data = NULL;
  refused("a + b", &k, "output 0 is NULL");
  for (int by = 1; by < 4; by++) {
    begin(&k);
    k.inputs[1].data = (char *)b + by;
    refused("a + b", &k, "input b is not aligned for its dtype, f32");
    begin(&k);
    k.outputs[0].data = (char *)out + by;
    refused("a + b", &k, "output 0 is not aligned");
  }
}

/* Each kind, made where it is new and where a call like it was made before with addresses that are good. */
TEST(overlap) {
  static const int64_t back = -1, two = 2, zero = 0;
  call k;
  begin(&k);
  works("a + b", &k);
  for (int by = -7; by < 8; by++) {
    if (by == 0) continue;
    k.outputs[0].data = out + 16;
    works("a + b", &k);
    k.inputs[1].data = out + 16 + by;
    refused("a + b", &k, "output 0 overlaps input b");
    k.inputs[1].data = b;
    k.outputs[0].data = a + 16;
    k.inputs[0].data = a + 16 + by;
    FAILS(attune_elementwise(tuner, stream, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
    k.inputs[0].data = a;
  }
  begin(&k); /* in place, but the other way round */
  k.outputs[0].data = out;
  k.inputs[0].data = out + 7;
  k.inputs[0].strides = &back;
  refused("a + b", &k, "output 0 overlaps input a");
  begin(&k); /* in place of another size of elements */
  k.inputs[0].data = out;
  k.inputs[0].dtype = ATTUNE_F16;
  refused("a + b", &k, "output 0 overlaps input a");
  k.inputs[0].dtype = ATTUNE_I32;
  works("a + b", &k);
  begin(&k); /* in place of what is broadcast */
  k.inputs[0].data = out;
  k.inputs[0].sizes[0] = 1;
  refused("a + b", &k, "output 0 overlaps input a");
  begin(&k);
  k.outputs[0].strides = &zero;
  refused("a + b", &k, "stride 0");
  begin(&k);
  call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(8));
  refused("a + b, a - b", &k, "output 0 overlaps output 1");
  k.outputs[1].data = out + 7;
  refused("a + b, a - b", &k, "output 0 overlaps output 1");
  k.outputs[1].data = out + 8;
  works("a + b, a - b", &k);
  k.outputs[0].strides = k.outputs[1].strides = &two;
  refused("a + b, a - b", &k, "output 0 overlaps output 1");
  k.outputs[1].data = out + 9; /* the odd ones */
  works("a + b, a - b", &k);
  k.outputs[1].data = out + 10;
  refused("a + b, a - b", &k, "output 0 overlaps output 1");
  static const int64_t diagonal[] = {1, 1}, steps[] = {3, 2};
  begin(&k);
  k.outputs[0] = tensor_of_shape(NULL, out, ATTUNE_F32, 2, CALL_SIZES(8, 8));
  k.outputs[0].strides = diagonal;
  refused("a + b", &k, "elements of output 0 may overlap");
  k.outputs[0].strides = steps;
  refused("a + b", &k, "elements of output 0 may overlap");
}

TEST(null_arguments) {
  call k;
  attune_plan *plan = NULL;
  char text[100];
  begin(&k);
  FAILS(attune_elementwise(NULL, stream, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "tuner is NULL; should be given");
  FAILS(attune_elementwise(tuner, NULL, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "stream is NULL; should be given");
  FAILS(attune_elementwise(tuner, stream, NULL, &k.operands), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "expression is NULL; should be given");
  FAILS(attune_elementwise(tuner, stream, "a + b", NULL), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_last_message(), "operands is NULL; should be given");
  FAILS(attune_elementwise_plan_create(NULL, tuner, stream, "a", &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_plan_create(&plan, NULL, stream, "a", &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_plan_create(&plan, tuner, NULL, "a", &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_plan_create(&plan, tuner, stream, NULL, &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_plan_create(&plan, tuner, stream, "a", NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_plan_run(NULL, stream, &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_problem_format(NULL, 100, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_problem_format(text, 100, NULL, &k.operands), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_elementwise_problem_format(text, 100, "a + b", NULL), ATTUNE_INVALID_ARGUMENT);
  OK(attune_elementwise_problem_format(text, 100, "a + b", &k.operands));
  FAILS(attune_elementwise_problem_format(text, 10, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
  assert_true(strlen(text) < 10);
  FAILS(attune_elementwise_problem_format(text, 0, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
}

/* What the text of a problem would be of is refused as a call is, as far as addresses do not matter. */
TEST(problems) {
  static const int64_t zero = 0, back = -1;
  char text[ATTUNE_PROBLEM_CHARS];
  call k;
  begin(&k);
  k.outputs[0].data = k.inputs[0].data = k.inputs[1].data = NULL;
  OK(attune_elementwise_problem_format(text, sizeof text, "a + b", &k.operands));
  assert_string_equal(text, "elementwise 8 strict out=f32 : f32 i0, f32 i1: i0 + i1");
  k.inputs[0].strides = &back;
  OK(attune_elementwise_problem_format(text, sizeof text, "a + b", &k.operands));
  assert_string_equal(text, "elementwise 8 strict out=f32 i0=-1 : f32 i0, f32 i1: i0 + i1");
  k.inputs[0].strides = NULL;
  k.outputs[0].strides = &zero;
  FAILS(attune_elementwise_problem_format(text, sizeof text, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(text, "");
  assert_non_null(strstr(attune_last_message(), "elements of output 0 overlap"));
  k.outputs[0].strides = NULL;
  FAILS(attune_elementwise_problem_format(text, sizeof text, "a +", &k.operands), ATTUNE_INVALID_ARGUMENT);
  k.outputs[0].data = k.inputs[0].data = out; /* another way than element for element */
  k.inputs[0].strides = &back;
  FAILS(attune_elementwise_problem_format(text, sizeof text, "a + b", &k.operands), ATTUNE_INVALID_ARGUMENT);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
