/* SPDX-License-Identifier: Apache-2.0
 * test_evaluation.c: described calls: their operands, the check of their results, and that a check finds one wrong
 * element among many. The call itself is wrapped, so that it can be made to go wrong. */
#include "tests/support/check.h"

#include <attune/attune.h>
#include <attune/tools.h>

#include <math.h>

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;

/* ---- a call that goes wrong ---- */

static enum { RIGHT, NOTHING_DONE, ONE_WRONG, ONE_NAN } fault;
static int64_t wrong_at; /* a number of output 0, which is f32 and packed */
static int calls;

attune_status __real_attune_elementwise(attune_tuner *t, attune_stream *s, const char *expression,
                                        const attune_elementwise_operands *operands);
attune_status __wrap_attune_elementwise(attune_tuner *t, attune_stream *s, const char *expression,
                                        const attune_elementwise_operands *operands);

attune_status __wrap_attune_elementwise(attune_tuner *t, attune_stream *s, const char *expression,
                                        const attune_elementwise_operands *operands) {
  calls++;
  if (fault == NOTHING_DONE) return ATTUNE_OK;
  const attune_status status = __real_attune_elementwise(t, s, expression, operands);
  float *out = operands->outputs[0].data;
  if (fault == ONE_WRONG) out[wrong_at] = out[wrong_at] * 1.001f + 1e-6f;
  if (fault == ONE_NAN) out[wrong_at] = NAN;
  return status;
}

static attune_evaluation *make(const attune_elementwise_words *words) {
  attune_evaluation *e = NULL;
  OK(attune_evaluation_create(&e, words));
  OK(attune_evaluation_place(e, stream, 5));
  return e;
}

static attune_evaluation_errors check(attune_evaluation *e, int64_t most) {
  attune_evaluation_errors errors;
  OK(attune_evaluation_check(e, tuner, most, &errors));
  return errors;
}

static double element(const attune_evaluation *e, int tensor, int64_t index) {
  attune_scalar value;
  OK(attune_evaluation_element(e, tensor, index, &value));
  assert_int_equal(value.kind, ATTUNE_F64);
  return value.value;
}

/* ---- tests ---- */

TEST(right_results_are_right) {
  static const attune_elementwise_words words[] = {
      {.expression = "a + b", .shape = "1000"},
      {.expression = "gelu(a + b) * b", .shape = "33x65", .dtype = "bf16"},
      {.expression = "exp(a)", .shape = "500", .dtype = "f16", .accuracy = ATTUNE_REDUCED},
      {.expression = "log(a) + sqrt(b)", .shape = "64x3", .dtype = "f64"},
      {.expression = "alpha * x + beta * y", .shape = "100x3", .outputs = "@y", .scalars = "alpha=2 beta=-0.5"},
      {.expression = "a - b", .shape = "30x20", .inputs = "a:::64x1 b:::-40x-2", .outputs = "f32:1x30"},
      {.expression = "s = a * z; s, real(s)", .shape = "40", .dtype = "c64", .scalars = "z:c128=1-2j"},
      {.expression = "rand() < p ? a / p : 0.1 * randn()", .shape = "1025", .scalars = "p=0.5"},
      {.expression = "a % 7 + n", .shape = "300", .dtype = "i16", .scalars = "n:i64=-3"},
      {.expression = "index(0) <= index(1) ? a : -inf", .shape = "20x30", .outputs = "f32:1x20"},
      {.expression = "f8e4m3(a)", .shape = "77"},
      {.expression = "a", .shape = ""},
  };
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    attune_evaluation *e = make(&words[i]);
    for (int again = 0; again < 2; again++) { /* also what is in place, and random numbers, begin anew */
      const attune_evaluation_errors errors = check(e, 0);
      assert_int_equal(errors.checked, errors.elements);
      if (!(errors.max_error <= 1.0)) fail_msg("%s: error %g", words[i].expression, errors.max_error);
      if (!(errors.max_ulps <= (strstr(words[i].expression, "gelu") || strstr(words[i].expression, "log") ? 1e6 : 64)))
        fail_msg("%s: %g ulp", words[i].expression, errors.max_ulps);
    }
    attune_evaluation_destroy(e);
  }
}

TEST(one_wrong_element_is_found) {
  attune_evaluation *e = make(&(attune_elementwise_words){.expression = "tanh(a) + b", .shape = "100x30"});
  assert_true(check(e, 0).max_error <= 1.0);
  const int64_t places[] = {0, 1, 1499, 2998, 2999};
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    wrong_at = places[i];
    fault = ONE_WRONG;
    assert_true(check(e, 0).max_error > 1.0);
    fault = ONE_NAN;
    assert_true(check(e, 0).max_error > 1.0);
  }
  wrong_at = 2999; /* the ends are in every sample */
  assert_true(check(e, 200).max_error > 1.0);
  fault = NOTHING_DONE;
  assert_true(check(e, 1).max_error > 1.0);
  fault = RIGHT;
  const attune_evaluation_errors errors = check(e, 200);
  assert_true(errors.max_error <= 1.0 && errors.checked == 200 && errors.elements == 3000);
  attune_evaluation_destroy(e);
}

TEST(elements_are_where_they_belong) {
  attune_evaluation *e = make(&(attune_elementwise_words){
      .expression = "x * 2 + bias + y", .shape = "4x6", .inputs = "bias::6 y::4x1 x:::-12x-2", .outputs = "f32:1x4"});
  attune_scalar value;
  FAILS(attune_evaluation_element(e, 0, 0, &value), ATTUNE_INVALID_ARGUMENT); /* not checked yet */
  (void)check(e, 0);
  for (int64_t i = 0; i < 24; i++) {
    const double bias = element(e, 1, i), y = element(e, 2, i), x = element(e, 3, i);
    assert_true(bias == element(e, 1, i % 6) && y == element(e, 2, i / 6 * 6));
    assert_true(fabs(2 * x + bias + y - element(e, 0, i)) < 1e-6);
  }
  assert_true(element(e, 3, 0) != element(e, 3, 1));
  FAILS(attune_evaluation_element(e, 0, 24, &value), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_element(e, 0, -1, &value), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_element(e, 4, 0, &value), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_element(e, -1, 0, &value), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_element(e, 0, 0, NULL), ATTUNE_INVALID_ARGUMENT);
  assert_int_equal(attune_evaluation_bytes(e), 4 * (24 + 6 + 4 + 24));
  attune_evaluation_destroy(e);
}

/* An input in whose memory the output lies is told as it was before. */
TEST(in_place) {
  attune_evaluation *e =
      make(&(attune_elementwise_words){.expression = "x * s", .shape = "50", .outputs = "@x", .scalars = "s=4"});
  (void)check(e, 0);
  for (int64_t i = 0; i < 50; i++) assert_true(element(e, 0, i) == 4 * element(e, 1, i));
  const attune_elementwise_operands *o = attune_evaluation_operands(e);
  assert_ptr_equal(o->outputs[0].data, o->inputs[0].data);
  attune_evaluation_destroy(e);
}

TEST(a_seed_gives_the_same_numbers) {
  const attune_elementwise_words words = {.expression = "rand() + a", .shape = "64"};
  double first[2];
  for (uint64_t seed = 1; seed < 3; seed++)
    for (int again = 0; again < 2; again++) {
      attune_evaluation *e = NULL;
      OK(attune_evaluation_create(&e, &words));
      OK(attune_evaluation_place(e, stream, seed));
      (void)check(e, 1);
      if (again) assert_true(element(e, 0, 63) == first[seed - 1]);
      first[seed - 1] = element(e, 0, 63);
      attune_evaluation_destroy(e);
    }
  assert_true(first[0] != first[1]);
}

TEST(misuse_is_refused) {
  attune_evaluation *e = NULL;
  attune_evaluation_errors errors;
  const attune_elementwise_words words = {.expression = "a + b", .shape = "8"};
  FAILS(attune_evaluation_create(NULL, &words), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_create(&e, NULL), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_create(&e, &(attune_elementwise_words){.shape = "8"}), ATTUNE_INVALID_ARGUMENT);
  assert_null(e);
  FAILS(attune_evaluation_create(&e, &(attune_elementwise_words){.expression = "a +", .shape = "8"}),
        ATTUNE_INVALID_ARGUMENT);
  assert_non_null(strstr(attune_last_message(), "\n  a +\n"));
  OK(attune_evaluation_create(&e, &words));
  assert_string_equal(attune_evaluation_problem(e), "elementwise 8 strict out=f32 : f32 i0, f32 i1: i0 + i1");
  assert_null(attune_evaluation_operands(e)->inputs[0].data);
  FAILS(attune_evaluation_check(e, tuner, 0, &errors), ATTUNE_INVALID_ARGUMENT); /* not placed */
  FAILS(attune_evaluation_place(e, NULL, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_place(NULL, stream, 1), ATTUNE_INVALID_ARGUMENT);
  OK(attune_evaluation_place(e, stream, 1));
  FAILS(attune_evaluation_place(e, stream, 1), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_check(NULL, tuner, 0, &errors), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_check(e, NULL, 0, &errors), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_evaluation_check(e, tuner, 0, NULL), ATTUNE_INVALID_ARGUMENT);
  attune_evaluation_destroy(e);
  attune_evaluation_destroy(NULL);
  assert_null(attune_evaluation_problem(NULL));
  assert_null(attune_evaluation_operands(NULL));
  assert_int_equal(attune_evaluation_bytes(NULL), 0);
  /* Too large for any machine: nothing is held, and it may be tried again. */
  OK(attune_evaluation_create(&e, &(attune_elementwise_words){.expression = "a", .shape = "100000000000000"}));
  for (int i = 0; i < 2; i++) FAILS(attune_evaluation_place(e, stream, 1), ATTUNE_OUT_OF_MEMORY);
  attune_evaluation_destroy(e);
}

int main(void) {
  attune_tuner_options options = {.database = ":memory:", .mode = ATTUNE_MODE_CACHED};
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed || calls == 0;
}
