/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_rows.c: elementwise problems in the command's workloads, beside gemm's in one file: tuned, shown,
 * explained, verified, recorded; commas in quotes; every wrong row told with its place. */
#include "tests/support/cli_fixture.h"

#include <attune/attune.h>

#define HERE "--db", database, "--device", "host"

static const char MIXED[] =
    "# both operations\n"
    "name,op,expression,shape,dtype,inputs,outputs,scalars,m,n,k,contract,align\n"
    "sum,elementwise,a + b,1000,f32,,,,,,,,\n"
    "ends,elementwise,\"min(a, b), max(a, b)\",33x65,bf16,,,,,,,,\n"
    "drop,elementwise,\"where(rand() < p, x / p, 0) # with \"\"quotes\"\"\",64x64,,x,@x,p=0.5,,,,reduced,16\n"
    "view,elementwise,a + b,16x24,f32,b:::1x16,f32:24x1,,,,,,\n"
    "prod,gemm,,,f32,,,,32,32,32,,\n"
    "also_gemm,,,,f64,,,,24,24,24,,\n"
    "again,elementwise,y + x,1000,f32,,,,,,,,\n";

/* Of the problems that `attune show` tells, the one whose text begins so. */
static const json_t *find_winner(const json_t *winners, const char *begins) {
  for (size_t i = 0; i < json_array_size(winners); i++) {
    const json_t *one = json_array_get(winners, i);
    if (strncmp(json_string_value(json_object_get(one, "problem")), begins, strlen(begins)) == 0) return one;
  }
  fail_msg("no winner of %s: %s", begins, out_text);
  return NULL;
}

TEST(both_operations_in_one_file) {
  write_file(workload, MIXED);
  expect_run(0, "tune", workload, HERE, "--json");
  json_t *report = parse_out();
  assert_int_equal(member(report, "problems"), 7);
  assert_int_equal(member(report, "tuned"), 6);
  assert_int_equal(member(report, "same"), 1); /* "again": names say nothing */
  json_decref(report);
  expect_run(0, "show", HERE, "--json");
  json_t *winners = parse_out();
  assert_int_equal(json_array_size(winners), 6);
  const json_t *drop = find_winner(winners, "elementwise 4096 reduced out=f32 in_place=o0:i0 : f32 i0, f64 s0: ");
  char *problem = strdup(json_string_value(json_object_get(drop, "problem")));
  (void)find_winner(winners, "gemm f32 nn 32x32x32 strict");
  (void)find_winner(winners, "elementwise 16x24 strict out=f32 i0=1,16 : ");
  json_decref(winners);
  expect_run(0, "explain", problem, HERE);
  expect_out("the measured winner of the database");
  free(problem);
  expect_run(0, "show", HERE);
  expect_out("min(t0, t1)), bf16(max(t0, t1))");
  /* On a busy machine a winner may not hold its time; its numbers hold anywhere. */
  const int code = finish(start((const char *const[]){"verify", HERE, "--sample", "0", "--json", NULL}, out_path));
  assert_in_range(code, 0, 1);
  json_t *checked = parse_out();
  assert_int_equal(member(checked, "timed"), 6);
  assert_int_equal(member(checked, "failed"), 0);
  assert_null(strstr(out_text, "wrong numbers"));
  json_decref(checked);
}

TEST(recorded_calls_are_tuned) {
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* the command, outside of it, sees another CPU */
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  float a[32] = {1}, y[32];
  options.database = database;
  options.mode = ATTUNE_MODE_RECORD;
  assert_int_equal(attune_device_get(&device, "host"), ATTUNE_OK);
  assert_int_equal(attune_tuner_create(&tuner, &options), ATTUNE_OK);
  const attune_tensor input = {.name = "a", .data = a, .dtype = ATTUNE_F32, .dims = 1, .sizes = {32}};
  const attune_tensor output = {.data = y, .dtype = ATTUNE_F32, .dims = 1, .sizes = {32}};
  const attune_elementwise_operands operands = {
      .outputs = &output, .output_count = 1, .inputs = &input, .input_count = 1};
  for (int i = 0; i < 5; i++)
    assert_int_equal(attune_elementwise(tuner, attune_stream_default(device), "a * 3 + a", &operands), ATTUNE_OK);
  attune_tuner_destroy(tuner);
  expect_run(0, "tune", "recorded", HERE, "--json");
  json_t *report = parse_out();
  assert_int_equal(member(report, "tuned"), 1);
  const json_t *first = json_array_get(json_object_get(report, "results"), 0);
  assert_int_equal(member(first, "count"), 5);
  assert_non_null(strstr(json_string_value(json_object_get(first, "problem")), "elementwise 32 strict out=f32"));
  json_decref(report);
}

typedef struct row {
  const char *text, *message; /* of the file; of the command */
} row;

static const row WRONG[] = {
    {"op,expression,shape\nelementwise,gelU(a),8\n",
     ":2:1: there is no function \"gelU\"; is gelu meant?\n  gelU(a)\n  ^\n"},
    {"op,expression,shape\nelementwise,\"min(a\n,b\",8\n", "is not closed"},
    {"op,expression,shape\nelementwise,min(a,b),8\n", "the row has 4 fields; should have 3"},
    {"op,expression,shape\nelementwise,,8\n", "expression"},
    {"op,expression,shape\nelementwise,a,\n", "shape"},
    {"op,expression,shape\nelementwise,a,8y\n", "shape is \"8y\""},
    {"op,expression,shape\nelementwise,a,0\n", "no elements"},
    {"op,expression,shape,dtype\nelementwise,a,8,f33\n", "\"f33\""},
    {"op,expression,shape,m\nelementwise,a,8,4\n", "\"m\" is not a column of elementwise"},
    {"op,expression,shape,align\nelementwise,a,8,3\n", "align"},
    {"op,expression,shape,contract\nelementwise,a,8,exact\n", "contract"},
    {"op,expression,shape,scalars\nelementwise,a * s,8,s=x\n", "the value of scalar"},
    {"op,expression,shape,outputs\nelementwise,a,8,@c\n", "should be @ and the name of an input"},
    {"op,problem\nelementwise,elementwise 8 strict out=f32 : f32 i0: i0 +\n", ":2:"},
    {"op,problem\n,elementwise 8 strict\n", "canonical form"},
};

TEST(wrong_rows_are_told) {
  for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) {
    write_file(workload, WRONG[i].text);
    const char *const words[] = {"tune", workload, HERE, NULL};
    const int code = finish(start(words, out_path));
    if (code != 2 || !strstr(err_text, WRONG[i].message))
      fail_msg("row %zu: exit code %d, should be 2 and say \"%s\": %s", i, code, WRONG[i].message, err_text);
  }
}

/* Every row of the benchmarks' files is a problem, and no two are the same. */
TEST(benchmarks_are_read) {
  static const struct {
    const char *path;
    size_t rows;
  } files[] = {{AT_SOURCE_DIR "/bench/workloads/elementwise-h200.csv", 108},
               {AT_SOURCE_DIR "/bench/workloads/elementwise-host.csv", 27}};
  for (size_t f = 0; f < 2; f++) {
    attune_workload *list = NULL;
    if (attune_workload_read(&list, files[f].path) != ATTUNE_OK) fail_msg("%s", attune_last_message());
    assert_int_equal(attune_workload_size(list), files[f].rows);
    for (size_t i = 0; i < files[f].rows; i++)
      for (size_t k = 0; k < i; k++)
        if (strcmp(attune_workload_at(list, i)->problem, attune_workload_at(list, k)->problem) == 0)
          fail_msg("%s and %s are one problem", attune_workload_at(list, i)->name, attune_workload_at(list, k)->name);
    attune_workload_destroy(list);
  }
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, set_up, tear_down);
}
