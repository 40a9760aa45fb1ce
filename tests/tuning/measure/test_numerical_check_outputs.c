/* SPDX-License-Identifier: Apache-2.0
 * test_numerical_check_outputs.c: verification of an operation with two outputs, integers, scalars and ranges: each way
 * of being wrong is caught, and what is right passes. */
#include "tests/support/check.h"

#include <math.h>

#include "tests/support/toy/toy_op.h"
#include "tuning/measure/numerical_check.h"

static attune_device *device;
static attune_stream *stream;
static at_random *data;

FIXTURE(fresh) {
  toy_reset();
  at_copy_text(toy_base, sizeof toy_base, "ns=1");
  return 0;
}

static attune_status run_check(const char *problem, const char *fault) {
  const at_key key = toy_key(problem, device);
  at_configuration configuration = {"ns=1"};
  at_numerical_check *check = NULL;
  at_plan *plan = NULL;
  double error = 0.0;
  if (fault) assert_true(at_configuration_put_text(&configuration, "fault", fault));
  OK(at_numerical_check_create(&check, &toy_op, key.words + 1, stream, data));
  OK(at_plan_create(&plan, &toy_op, &toy_spin_implementation, &configuration, key.words + 1, device));
  const attune_status status = at_numerical_check_run(check, plan, &error);
  assert_true(status != ATTUNE_OK || error <= 1.0);
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
  return status;
}

static const char *const PROBLEMS[] = {TOY_PROBLEM,
                                       TOY("f32:i64 9x7"),
                                       TOY("f64 31x2") " align=8",
                                       TOY("f64:i64 1x1"),
                                       TOY("f32 1x50") " deterministic",
                                       TOY("f32 50x1") " align=4"};

TEST(what_is_right_passes) {
  for (size_t i = 0; i < AT_COUNT(PROBLEMS); i++) OK(run_check(PROBLEMS[i], NULL));
}

TEST(each_fault_is_caught) {
  static const struct {
    const char *fault, *words;
  } rows[] = {{"wrong", "tolerance"},     {"second", "tolerance"},      {"leaves", "tolerance"},
              {"behind", "outside"},      {"second_behind", "outside"}, {"codes", "changes its inputs"},
              {"scale", "with scale="},   {"offset", "with scale="},    {"nan", "loses NaN of X"},
              {"skips", "loses NaN of X"}};
  for (size_t i = 0; i < AT_COUNT(PROBLEMS); i++)
    for (size_t r = 0; r < AT_COUNT(rows); r++) {
      const attune_status status = run_check(PROBLEMS[i], rows[r].fault);
      if (status != ATTUNE_BAD_DATA) fail_msg("%s: %s: %s", PROBLEMS[i], rows[r].fault, attune_status_string(status));
      if (!strstr(attune_last_message(), rows[r].words))
        fail_msg("%s: %s: %s", PROBLEMS[i], rows[r].fault, attune_last_message());
    }
}

TEST(other_bits_are_refused_where_asked) {
  OK(run_check(TOY("f32 9x7"), "bits"));
  FAILS_SAYING(run_check(TOY("f32 9x7") " deterministic", "bits"), ATTUNE_BAD_DATA, "different bits");
}

/* ---- integers that are what they were poisoned with ---- */

static attune_status all_codes_are_1(const void *problem, at_buffer out[AT_MAX_BUFFERS], int *count) {
  const toy *g = toy_of(problem);
  const size_t elements = (size_t)g->rows * (size_t)g->cols;
  for (int i = 0; i < TOY_BUFFERS; i++)
    out[i] = (at_buffer){.bytes = 4 * (i == TOY_BIAS ? (size_t)g->cols : elements),
                         .alignment = 16,
                         .dtype = i == TOY_CODES || i == TOY_N ? ATTUNE_I32 : ATTUNE_F32,
                         .input = i < TOY_Y,
                         .output = i >= TOY_Y};
  out[TOY_X].range = (at_range){0.25, 4.0};
  out[TOY_CODES].range = (at_range){1.0, 1.0};
  *count = TOY_BUFFERS;
  return ATTUNE_OK;
}

/* Neither helps: the other scalars are the usual ones. */
static int scalars_that_stay(const void *problem, at_scalar out[AT_MAX_SCALARS]) {
  (void)problem;
  out[TOY_SCALE] = (at_scalar){"scale", 1.0, {1.0, 1.0}};
  out[TOY_OFFSET] = (at_scalar){"offset", 0.0, {0.0, 0.0}};
  return TOY_SCALARS;
}

/* n is the tap: whatever one byte pattern is in an output before a launch, one that is not written is found. */
TEST(an_integer_that_is_not_written_is_found) {
  static const char *const taps[] = {"-1", "0", "2071690107", "-2071690108", "1515870810", "-1515870811"};
  toy_operand_type.buffers = all_codes_are_1;
  toy_operand_type.scalars = scalars_that_stay;
  toy_op.specials = NULL;
  for (size_t i = 0; i < AT_COUNT(taps); i++) {
    char problem[AT_PROBLEM_CHARS];
    snprintf(problem, sizeof problem, "toy f32 3x4 strict taps=%s", taps[i]);
    OK(run_check(problem, NULL));
    if (run_check(problem, "leaves") != ATTUNE_BAD_DATA) fail_msg("taps=%s: an unwritten n was not found", taps[i]);
  }
}

/* ---- what the operation is given ---- */

static attune_status look(void **out, const void *problem, attune_device *on, attune_stream *of,
                          void *const pointers[AT_MAX_BUFFERS]) {
  const toy *g = toy_of(problem);
  const float *x = pointers[TOY_X];
  const int32_t *codes = pointers[TOY_CODES];
  bool negative = false, large = false;
  for (int i = 0; i < g->rows * g->cols; i++) {
    assert_true(x[i] >= 0.25f && x[i] <= 4.0f);
    assert_in_range(codes[i] + 1000, 0, 2000);
    negative = negative || codes[i] < 0;
    large = large || x[i] > 1.0f;
  }
  assert_true(negative && large);
  return toy_reference_create(out, problem, on, of, pointers);
}

TEST(buffers_hold_what_their_ranges_say) {
  toy_reference_type.create = look;
  OK(run_check(TOY("f32 40x30"), NULL));
}

TEST(plans_see_both_scalars_and_special_ones) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  at_numerical_check *check = NULL;
  at_plan *plan = NULL;
  uint32_t lost = 0;
  char words[128];
  const at_configuration configuration = {"ns=1,fault=nan"};
  OK(at_numerical_check_create(&check, &toy_op, key.words + 1, stream, data));
  OK(at_plan_create(&plan, &toy_op, &toy_spin_implementation, &configuration, key.words + 1, device));
  toy_launches = 0;
  OK(at_numerical_check_lost(check, plan, &lost));
  assert_int_equal(toy_launches, 4); /* usual scalars, others, special values of x, of scale */
  at_numerical_check_rules(check, lost, words, sizeof words);
  assert_string_equal(words, "loses NaN of X, loses NaN of scale");
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK || at_random_create(&data, 3) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS_EACH(fresh, NULL, NULL, NULL);
  at_random_destroy(data);
  return failed;
}
