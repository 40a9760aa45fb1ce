/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_tuning.c: elementwise problems are tuned, stored, found again and verified like any other; and an
 * interpreter that computes wrongly is refused. On the virtual clock. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include "tests/ops/elementwise/elementwise_call.h"
#include "tests/support/folder.h"
#include "tests/support/virtual_clock.h"

#include <attune/tools.h>
#include <stdio.h>

#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/ir/rewrites.h"
#include "ops/elementwise/problem/problem.h"
#include "tuning/measure/numerical_check.h"

static attune_device *host;
static attune_stream *stream;
static at_random *data;
static char folder[] = "/tmp/attune-test-elementwise-XXXXXX", database[64];

/* ---- an interpreter under the test's control ---- */

enum { MARKED = 64 }; /* the block by which the plan is told from the reference */
typedef enum fault { RIGHT, ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, GAP, LAST_BIT, MOVED } fault;
static fault wrong;
static const attune_dtype *dtypes; /* of the plan's outputs */

void __real_at_interpreter_run(const at_interpreter *program, const at_layout *layout, const at_interpreter_call *c);
void __wrap_at_interpreter_run(const at_interpreter *program, const at_layout *layout, const at_interpreter_call *c);
void __real_at_elements_compute(const at_elements *all, const uint8_t *output_dtypes);
void __wrap_at_elements_compute(const at_elements *all, const uint8_t *output_dtypes);

/* Element `walked` of output 0. */
static unsigned char *element(const at_layout *l, const at_interpreter_call *c, int64_t walked, size_t size) {
  return (unsigned char *)c->outputs[0] + at_element_offset(l, 0, walked) * (int64_t)size;
}

static void spoil(const at_layout *l, const at_interpreter_call *c, const unsigned char *before) {
  const size_t size = attune_dtype_size(dtypes[0]);
  const int64_t last = l->count - 1;
  switch (wrong) {
  case ONE_OF_MANY: element(l, c, l->count * 5 / 7, size)[size - 1] ^= 0x41; return;
  case TAIL: memcpy(element(l, c, last, size), before, size); return;
  case BEHIND: element(l, c, last, size)[size] ^= 0x5a; return;
  case BEFORE: ((unsigned char *)c->outputs[0])[-1] ^= 0x5a; return;
  case INPUT: ((unsigned char *)(uintptr_t)c->inputs[0])[0] ^= 1; return;
  case GAP: element(l, c, 0, size)[size] ^= 1; return;
  case LAST_BIT: element(l, c, l->count / 2, size)[0] ^= 1; return;
  case MOVED: memcpy(element(l, c, last / 2, size), element(l, c, last / 2 + 1, size), size); return;
  default: return;
  }
}

void __wrap_at_interpreter_run(const at_interpreter *program, const at_layout *layout, const at_interpreter_call *c) {
  unsigned char before[16] = {0};
  const bool spoils = wrong != RIGHT && c->block == MARKED;
  if (spoils) {
    const size_t size = attune_dtype_size(dtypes[0]);
    memcpy(before, element(layout, c, layout->count - 1, size), size);
  }
  __real_at_interpreter_run(program, layout, c);
  if (spoils) spoil(layout, c, before);
  if (virtual_clock_runs) virtual_clock_pass(c->block == 256 ? 2000 : 3000, 1);
}

void __wrap_at_elements_compute(const at_elements *all, const uint8_t *output_dtypes) {
  __real_at_elements_compute(all, output_dtypes);
  if (virtual_clock_runs) virtual_clock_pass(50000, 1);
}

/* ---- a rule of rewriting under the test's control ---- */

static bool wrong_rule; /* as if abs(x) were x */

const at_rewrite *__real_at_rewrite_find(const at_node_table *b, at_function function, const int *arguments);
const at_rewrite *__wrap_at_rewrite_find(const at_node_table *b, at_function function, const int *arguments);

const at_rewrite *__wrap_at_rewrite_find(const at_node_table *b, at_function function, const int *arguments) {
  static const at_rewrite rule = {AT_FN_ABS, AT_DTYPES_ANY, AT_WHEN_ALWAYS, 0.0, AT_THEN_FIRST, "abs(x)"};
  return wrong_rule && function == AT_FN_ABS ? &rule : __real_at_rewrite_find(b, function, arguments);
}

/* ---- what is wrong is refused ---- */

static attune_status verify(const char *problem, fault f, double *error) {
  static _Alignas(8) char room[AT_PROBLEM_BYTES];
  attune_dtype own[8];
  at_configuration configuration = {"isa=portable,threads=1,block=64"};
  at_numerical_check *check = NULL;
  at_plan *plan = NULL;
  OK(at_elementwise_parse(problem, room));
  const at_elementwise *p = at_elementwise_of(room);
  for (int i = 0; i < p->output_count; i++) own[i] = (attune_dtype)p->dtypes[i];
  dtypes = own;
  wrong = RIGHT;
  OK(at_numerical_check_create(&check, &at_elementwise_op, room, stream, data));
  const at_implementation *interpreter = NULL;
  for (size_t i = 0; i < (size_t)at_elementwise_op.implementation_count; i++)
    if (strcmp(at_elementwise_op.implementations[i]->name, "host_interpreter") == 0)
      interpreter = at_elementwise_op.implementations[i];
  OK(at_plan_create(&plan, &at_elementwise_op, interpreter, &configuration, room, host));
  wrong = f;
  *error = 0;
  const attune_status status = at_numerical_check_run(check, plan, error);
  wrong = RIGHT;
  at_plan_destroy(plan);
  at_numerical_check_destroy(check);
  return status;
}

TEST(what_is_wrong_is_refused) {
  static const struct {
    const char *problem;
    fault faults[9];
  } rows[] = {
      {"elementwise 100003 strict out=f32 : f32 i0, f32 i1: i0 * i1",
       {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, MOVED}},
      {"elementwise 1 strict out=f64 : f64 i0: -i0", {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT}},
      {"elementwise 20001 strict out=bf16 : bf16 i0, bf16 i1: i0 + i1",
       {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, MOVED}},
      {"elementwise 9999 strict out=u8 : u8 i0: i0 + 1", {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, LAST_BIT, MOVED}},
      {"elementwise 3001 strict out=bool : i32 i0: i0 < 3", {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, LAST_BIT}},
      {"elementwise 777 strict out=i64 : i32 i0: i64(i0) * 3",
       {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, LAST_BIT, MOVED}},
      {"elementwise 1000 strict out=c64 : c64 i0: i0 * i0", {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, MOVED}},
      {"elementwise 5000 strict out=f32 o0=2 : f32 i0: i0 * 2.0",
       {ONE_OF_MANY, TAIL, BEHIND, BEFORE, INPUT, GAP, MOVED}},
  };
  double error = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (verify(rows[i].problem, RIGHT, &error) != ATTUNE_OK) fail_msg("%s: %s", rows[i].problem, attune_last_message());
    assert_true(error <= 1.0);
    for (int f = 0; f < 9 && rows[i].faults[f]; f++)
      if (verify(rows[i].problem, rows[i].faults[f], &error) != ATTUNE_BAD_DATA)
        fail_msg("%s: fault %d is not seen: %s", rows[i].problem, (int)rows[i].faults[f], attune_last_message());
  }
}

/* ---- tuning ---- */

static attune_tuner *tuner_of(attune_mode mode) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *tuner = NULL;
  options.database = database;
  options.mode = mode;
  options.measure = ATTUNE_MEASURE_HOT_EAGER;
  OK(attune_tuner_create(&tuner, &options));
  return tuner;
}

static float a[5000], b[5000], out[5000];

static void begin(call *k, int64_t count) {
  call_begin(k);
  call_output(k, out, ATTUNE_F32, 1, &count);
  call_input(k, "x", a, ATTUNE_F32, 1, &count);
  call_input(k, "y", b, ATTUNE_F32, 1, &count);
}

static const char *text_of(const char *expression, const call *k) {
  static char text[ATTUNE_PROBLEM_CHARS];
  OK(attune_elementwise_problem_format(text, sizeof text, expression, &k->operands));
  return text;
}

static int fresh(void **state) {
  (void)state;
  static int number;
  snprintf(database, sizeof database, "%s/%d.db", folder, number++);
  virtual_clock_start();
  return 0;
}

TEST_WITH(tuned_and_found_again, fresh, NULL) {
  call k;
  attune_decision d;
  attune_recheck r = {0};
  begin(&k, 3000);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  OK(attune_explain(tuner, host, text_of("x * y + x", &k), &d));
  assert_int_equal(d.source, ATTUNE_SOURCE_DEFAULT);
  OK(attune_tune(tuner, host, text_of("x * y + x", &k), NULL, &d));
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  assert_string_equal(d.implementation, "host_interpreter");
  assert_int_equal(d.rejected, 0);
  assert_true(d.candidates > 2);
  attune_tuner_destroy(tuner);
  tuner = tuner_of(ATTUNE_MODE_CACHED);
  OK(attune_explain(tuner, host, text_of("y + x * y", &k), &d)); /* with the names the other way round */
  assert_int_equal(d.source, ATTUNE_SOURCE_STORED);
  for (int i = 0; i < 3000; i++) a[i] = (float)(i % 100), b[i] = (float)(i % 7);
  OK(attune_elementwise(tuner, stream, "x * y + x", &k.operands));
  for (int i = 0; i < 3000; i++) assert_true(out[i] == a[i] * b[i] + a[i]);
  begin(&k, 3007); /* of the same class or not, it is computed whole */
  OK(attune_elementwise(tuner, stream, "x * y + x", &k.operands));
  begin(&k, 3001);
  OK(attune_verify(tuner, host, d.problem, 0, NULL, &r));
  assert_int_not_equal(r.verdict, ATTUNE_VERDICT_WRONG);
  attune_tuner_destroy(tuner);
}

/* One winner for a class of sizes. */
TEST_WITH(sizes_of_one_class, fresh, NULL) {
  call k;
  attune_decision d;
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED);
  begin(&k, 3003);
  OK(attune_tune(tuner, host, text_of("x - y", &k), NULL, NULL));
  begin(&k, 3005);
  OK(attune_explain(tuner, host, text_of("x - y", &k), &d));
  assert_true(d.source == ATTUNE_SOURCE_STORED || d.source == ATTUNE_SOURCE_TUNED);
  begin(&k, 200);
  OK(attune_explain(tuner, host, text_of("x - y", &k), &d));
  assert_true(d.source != ATTUNE_SOURCE_STORED && d.source != ATTUNE_SOURCE_TUNED);
  attune_tuner_destroy(tuner);
}

static attune_generator *generator;

TEST_WITH(in_mode_tune, fresh, NULL) {
  call k;
  attune_decision d;
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE);
  begin(&k, 5000);
  for (int i = 0; i < 5000; i++) a[i] = (float)i, b[i] = 1.0f, out[i] = -1.0f;
  k.inputs[0].data = out; /* in place: measuring must not have touched it */
  memcpy(out, a, 5000 * sizeof *a);
  OK(attune_elementwise(tuner, stream, "x + y", &k.operands));
  for (int i = 0; i < 5000; i++) assert_true(out[i] == a[i] + 1.0f);
  OK(attune_explain(tuner, host, text_of("x + y", &k), &d));
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  assert_non_null(strstr(d.problem, "in_place=o0:i"));
  /* With numbers of a generator: tuning draws none of the program's. */
  uint64_t offset = 0;
  OK(attune_generator_create(&generator, 1));
  call_begin(&k);
  call_output(&k, out, ATTUNE_F32, 1, CALL_SIZES(4000));
  k.operands.generator = generator;
  OK(attune_elementwise(tuner, stream, "rand()", &k.operands));
  OK(attune_generator_get_offset(generator, &offset));
  assert_int_equal(offset, 4000);
  OK(attune_generator_set_offset(generator, 0));
  OK(attune_random_uniform(generator, stream, a, ATTUNE_F32, 4000, 0, 1));
  assert_memory_equal(a, out, 4000 * sizeof *a);
  attune_generator_destroy(generator);
  attune_tuner_destroy(tuner);
}

/* What is tuned is the rewritten text: that this gives what the program wrote is verified where the text is known, also
 * where the rewritten one is tuned already. */
TEST_WITH(rewriting_is_verified, fresh, NULL) {
  call k;
  char text[ATTUNE_PROBLEM_CHARS];
  attune_plan *plan = NULL;
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE), *recording = tuner_of(ATTUNE_MODE_RECORD);
  begin(&k, 3000);
  for (int i = 0; i < 3000; i++) a[i] = -2.0f, b[i] = 1.0f;
  wrong_rule = true;
  for (int turn = 0; turn < 2; turn++) {
    FAILS(attune_elementwise(tuner, stream, "abs(x) * y", &k.operands), ATTUNE_INTERNAL);
    assert_non_null(strstr(attune_last_message(), "the expression was rewritten as \"f32 i0, f32 i1: i0 * i1\""));
    FAILS(attune_elementwise(recording, stream, "abs(x) * y", &k.operands), ATTUNE_INTERNAL);
    FAILS(attune_elementwise_plan_create(&plan, tuner, stream, "abs(x) * y", &k.operands), ATTUNE_INTERNAL);
    assert_null(plan);
    FAILS(attune_elementwise_problem_format(text, sizeof text, "abs(x) * y", &k.operands), ATTUNE_INTERNAL);
    OK(attune_elementwise(tuner, stream, "x * y", &k.operands)); /* what it would be rewritten to */
  }
  wrong_rule = false;
  OK(attune_elementwise(tuner, stream, "abs(x) * y", &k.operands));
  for (int i = 0; i < 3000; i++) assert_true(out[i] == 2.0f);
  attune_tuner_destroy(recording);
  attune_tuner_destroy(tuner);
}

static attune_tuner *capturing;
static attune_status give(void *user, attune_stream *s) {
  const call *k = user;
  return attune_elementwise(capturing, s, "exp(x) + y", &k->operands);
}

TEST_WITH(recorded_and_pending, fresh, NULL) {
  call k;
  int tuned = 0;
  attune_decision d;
  attune_workload *workload = NULL;
  begin(&k, 3000);
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_RECORD);
  for (int i = 0; i < 25; i++) OK(attune_elementwise(tuner, stream, "x / y - x", &k.operands));
  OK(attune_workload_recorded(&workload, tuner, host));
  assert_int_equal(attune_workload_size(workload), 1);
  assert_int_equal(attune_workload_at(workload, 0)->count, 25);
  OK(attune_tune(tuner, host, attune_workload_at(workload, 0)->problem, NULL, &d));
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  attune_workload_destroy(workload);
  attune_tuner_destroy(tuner);
  capturing = tuner_of(ATTUNE_MODE_TUNE);
  attune_graph *graph = NULL;
  attune_stream *own = NULL;
  OK(attune_stream_create(&own, host));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, own, NULL, give, &k));
  OK(attune_tuner_tune_pending(capturing, 0, &tuned));
  assert_int_equal(tuned, 1);
  OK(attune_explain(capturing, host, text_of("exp(x) + y", &k), &d));
  assert_int_equal(d.source, ATTUNE_SOURCE_TUNED);
  attune_graph_destroy(graph);
  attune_stream_destroy(own);
  attune_tuner_destroy(capturing);
}

static int open_all(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return 1;
  OK(attune_device_get(&host, "host"));
  stream = attune_stream_default(host);
  OK(at_random_create(&data, 3));
  return 0;
}

static int close_all(void **state) {
  (void)state;
  at_random_destroy(data);
  return folder_remove(folder);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
