/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_elementwise_user_function.c: functions in CUDA C of the program's own on the device: every way in which
 * operands lie, promotion, several outputs, in place, plans, captures, tuning and verification, what does not compile,
 * memory that stays flat. All numbers are whole and small, so that every sum is exact whatever is contracted. Needs a
 * GPU. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include "src/base/support.h"
#include "src/cuda/jit/jit.h"
#include "tests/support/gpu.h"

enum { ROWS = 67, COLUMNS = 129, COUNT = ROWS * COLUMNS };
#define AXPY "template <typename T> T axpy(T x, T y, T alpha) { return alpha * x + y; }"

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;
static float *x, *y, *out, *other; /* on the device, COUNT each */
static float host_x[COUNT], host_y[COUNT], got[COUNT];

static attune_tensor tensor(void *data, attune_dtype dtype, int64_t rows, int64_t columns) {
  return (attune_tensor){.data = data, .dtype = dtype, .dims = 2, .sizes = {rows, columns}};
}

static void fetch(const void *from, size_t bytes) {
  OK(attune_copy(stream, got, from, bytes));
  OK(attune_stream_synchronize(stream));
}

static void expect(int i, float wanted, const char *what) {
  if (got[i] != wanted) fail_msg("%s: element %d is %g; should be %g", what, i, (double)got[i], (double)wanted);
}

typedef struct call {
  attune_tensor outputs[2], inputs[2];
  attune_scalar alpha;
  attune_elementwise_operands operands;
} call;

/* alpha * x + y of whole matrices, alpha = 3. */
static void make_call(call *c) {
  memset(c, 0, sizeof *c);
  c->outputs[0] = tensor(out, ATTUNE_F32, ROWS, COLUMNS);
  c->outputs[1] = tensor(other, ATTUNE_F32, ROWS, COLUMNS);
  c->inputs[0] = tensor(x, ATTUNE_F32, ROWS, COLUMNS);
  c->inputs[1] = tensor(y, ATTUNE_F32, ROWS, COLUMNS);
  c->alpha.value = 3;
  c->operands = (attune_elementwise_operands){.outputs = c->outputs,
                                              .output_count = 1,
                                              .inputs = c->inputs,
                                              .input_count = 2,
                                              .scalars = &c->alpha,
                                              .scalar_count = 1};
}

FIXTURE(setup) {
  OK(attune_copy(stream, x, host_x, sizeof host_x));
  OK(attune_copy(stream, y, host_y, sizeof host_y));
  OK(attune_fill(stream, out, 0xFF, sizeof host_x));
  OK(attune_fill(stream, other, 0xFF, sizeof host_x));
  return 0;
}

/* Packed, a row for all rows, a column for all columns, transposed, one element, every second element. */
TEST(ways) {
  for (int way = 0; way < 6; way++) {
    static const char *const names[] = {"packed", "row", "column", "transposed", "one", "strided"};
    const int64_t turned[] = {1, ROWS}, second[] = {COLUMNS, 2};
    call c;
    make_call(&c);
    attune_tensor *t = &c.inputs[1];
    int columns = COLUMNS;
    if (way == 1) t->sizes[0] = 1;
    if (way == 2) t->sizes[1] = 1;
    if (way == 3) t->strides = turned;
    if (way == 4) t->dims = 0, t->sizes[0] = 1;
    if (way == 5) {
      columns = COLUMNS / 2;
      c.outputs[0].sizes[1] = c.inputs[0].sizes[1] = t->sizes[1] = columns;
      t->strides = second;
    }
    OK(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands));
    fetch(out, sizeof got);
    for (int i = 0; i < ROWS * columns; i++) {
      const int row = i / columns, column = i % columns;
      const int at = way == 0   ? i
                     : way == 1 ? column
                     : way == 2 ? row
                     : way == 3 ? row + ROWS * column
                     : way == 4 ? 0
                                : row * COLUMNS + 2 * column;
      expect(i, 3 * host_x[i] + host_y[at], names[way]);
    }
  }
}

/* i32 and f16 are computed in float, and written as f64; bf16 comes in and goes out. */
TEST(promotion) {
  enum { SOME = 1000 };
  static int32_t whole[SOME];
  static uint16_t half[SOME];
  static double wanted[SOME];
  call c;
  void *a = NULL, *b = NULL, *d = NULL;
  for (int i = 0; i < SOME; i++) {
    whole[i] = i - 500;
    half[i] = (uint16_t)(0x3c00 + 0x400 * (i % 4)); /* 1, 2, 4, 8 as f16 */
    wanted[i] = 3.0 * whole[i] + (double)(1 << i % 4);
  }
  OK(attune_alloc(&a, stream, sizeof whole));
  OK(attune_alloc(&b, stream, sizeof half));
  OK(attune_alloc(&d, stream, sizeof wanted));
  OK(attune_copy(stream, a, whole, sizeof whole));
  OK(attune_copy(stream, b, half, sizeof half));
  make_call(&c);
  c.outputs[0] = tensor(d, ATTUNE_F64, 1, SOME);
  c.inputs[0] = tensor(a, ATTUNE_I32, 1, SOME);
  c.inputs[1] = tensor(b, ATTUNE_F16, 1, SOME);
  OK(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands));
  static double back[SOME];
  OK(attune_copy(stream, back, d, sizeof back));
  OK(attune_stream_synchronize(stream));
  assert_memory_equal(back, wanted, sizeof back);
  OK(attune_free(a, stream));
  OK(attune_free(b, stream));
  OK(attune_free(d, stream));
}

TEST(outputs) {
  static const char source[] = "template <typename T> void both(T x, T y, T alpha, T &sum, T &scaled) {\n"
                               "  sum = x + y;\n  scaled = alpha * x;\n}";
  call c;
  make_call(&c);
  c.operands.output_count = 2;
  OK(attune_elementwise_cuda(tuner, stream, source, "both", &c.operands));
  fetch(out, sizeof got);
  for (int i = 0; i < COUNT; i++) expect(i, host_x[i] + host_y[i], "sum");
  fetch(other, sizeof got);
  for (int i = 0; i < COUNT; i++) expect(i, 3 * host_x[i], "scaled");
}

TEST(in_place) {
  call c;
  make_call(&c);
  c.outputs[0].data = x;
  OK(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands));
  fetch(x, sizeof got);
  for (int i = 0; i < COUNT; i++) expect(i, 3 * host_x[i] + host_y[i], "in place");
  c.outputs[0].data = x + 1; /* overlaps */
  c.outputs[0].sizes[0] = c.inputs[0].sizes[0] = c.inputs[1].sizes[0] = ROWS - 1;
  FAILS(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands), ATTUNE_INVALID_ARGUMENT);
}

TEST(plans) {
  attune_plan *plan = NULL;
  call c;
  make_call(&c);
  OK(attune_elementwise_cuda_plan_create(&plan, tuner, stream, AXPY, "axpy", &c.operands));
  c.inputs[0].name = "any", c.inputs[1].name = NULL;
  c.alpha.value = 5;
  OK(attune_elementwise_plan_run(plan, stream, &c.operands));
  fetch(out, sizeof got);
  for (int i = 0; i < COUNT; i++) expect(i, 5 * host_x[i] + host_y[i], "plan");
  c.inputs[0].sizes[0] = 1;
  FAILS(attune_elementwise_plan_run(plan, stream, &c.operands), ATTUNE_INVALID_ARGUMENT);
  attune_plan_destroy(plan);
}

TEST(captures) {
  attune_graph *graph = NULL;
  call c;
  make_call(&c);
  OK(attune_graph_create(&graph, device));
  OK(attune_graph_capture_begin(graph, stream, NULL));
  OK(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands));
  c.inputs[0].data = out, c.outputs[0].data = other;
  OK(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands));
  OK(attune_graph_capture_end(graph, stream));
  for (int turn = 0; turn < 2; turn++) {
    OK(attune_fill(stream, other, 0, sizeof got));
    OK(attune_graph_replay(graph, stream));
    fetch(other, sizeof got);
    for (int i = 0; i < COUNT; i++) expect(i, 3 * (3 * host_x[i] + host_y[i]) + host_y[i], "graph");
  }
  attune_graph_destroy(graph);
}

/* Each candidate is compared with the plainest kernel; the winner runs from then on. A function that is not one (it
 * counts the clock's ticks) is seen. */
TEST(tuning) {
  call c;
  char problem[ATTUNE_PROBLEM_CHARS];
  attune_decision decision;
  make_call(&c);
  OK(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands)); /* so that the source is known */
  OK(attune_elementwise_cuda_problem_format(problem, sizeof problem, AXPY, "axpy", &c.operands));
  OK(attune_tune(tuner, device, problem, &(attune_tune_options){.budget_ms = 300.0, .force = 1}, &decision));
  assert_string_equal(decision.implementation, "cuda_kernel");
  OK(attune_explain(tuner, device, problem, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
  OK(attune_elementwise_cuda(tuner, stream, AXPY, "axpy", &c.operands));
  fetch(out, sizeof got);
  for (int i = 0; i < COUNT; i++) expect(i, 3 * host_x[i] + host_y[i], "tuned");
  static const char impure[] = "float f(float x, float y, float a) { return x + y + a + clock64() % 1021; }";
  OK(attune_elementwise_cuda(tuner, stream, impure, "f", &c.operands));
  OK(attune_elementwise_cuda_problem_format(problem, sizeof problem, impure, "f", &c.operands));
  const attune_status status =
      attune_tune(tuner, device, problem, &(attune_tune_options){.budget_ms = 100.0, .force = 1}, &decision);
  if (status == ATTUNE_OK) assert_true(decision.rejected > 0);
}

TEST(errors) {
  call c;
  make_call(&c);
  FAILS(
      attune_elementwise_cuda(tuner, stream, "float f(float x, float y, float a) {\n  return z;\n}", "f", &c.operands),
      ATTUNE_INVALID_ARGUMENT);
  if (!strstr(attune_last_message(), "f(2): error")) fail_msg("%s", attune_last_message());
  fetch(out, sizeof got);
  for (int i = 0; i < COUNT; i++) assert_true(got[i] != got[i]); /* nothing was launched */
  char problem[ATTUNE_PROBLEM_CHARS];
  attune_decision decision;
  OK(attune_elementwise_cuda_problem_format(
      problem, sizeof problem, "float gone(float x, float y, float a) { return x; }", "gone", &c.operands));
  FAILS(attune_tune(tuner, device, problem, &(attune_tune_options){.budget_ms = 50.0, .force = 1}, &decision),
        ATTUNE_UNSUPPORTED);
}

/* Another name and other blanks: nothing is compiled. */
TEST(one_kernel) {
  at_jit_counts before, after;
  call c;
  make_call(&c);
  OK(attune_elementwise_cuda(tuner, stream, "float mine(float a, float b, float c) { return a - b - c; }", "mine",
                             &c.operands));
  at_jit_get_counts(&before);
  OK(attune_elementwise_cuda(tuner, stream,
                             "float yours(float a,\n  float b, float c) {\n  return a - b - c; // less\n}", "yours",
                             &c.operands));
  at_jit_get_counts(&after);
  assert_int_equal(after.compiled + after.from_disk, before.compiled + before.from_disk);
}

/* Many sources: kernels stay within their bound, and each gives its own results. A tuner's plans hold theirs, so that
 * one tuner has no more of them than the bound. */
TEST(many) {
  const char *asked = getenv("ATTUNE_TEST_EXPRESSIONS");
  const int count = asked && atoi(asked) > 0 ? atoi(asked) : 100;
  const unsigned most = at_jit_set_most(64);
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *some = NULL;
  call c;
  at_jit_counts counts;
  options.database = "";
  make_call(&c);
  for (int i = 0; i < count; i++) {
    char source[128];
    if (i % 25 == 0) {
      attune_tuner_destroy(some);
      OK(attune_tuner_create(&some, &options));
    }
    snprintf(source, sizeof source, "float f(float x, float y, float a) { return a * x + y + %d; }", i);
    OK(attune_elementwise_cuda(some, stream, source, "f", &c.operands));
    if (i % 25 != 0) continue;
    fetch(out, sizeof got);
    for (int k = 0; k < COUNT; k++) expect(k, 3 * host_x[k] + host_y[k] + (float)i, source);
  }
  at_jit_get_counts(&counts);
  print_message("%d sources, %u kernels loaded, %llu unloaded\n", count, counts.loaded,
                (unsigned long long)counts.unloaded);
  attune_tuner_destroy(some);
  (void)at_jit_set_most(most);
}

static bool begin(void) {
  attune_tuner_options options = {.database = ":memory:", .mode = ATTUNE_MODE_CACHED};
  for (int i = 0; i < COUNT; i++) {
    host_x[i] = (float)(i % 251 - 125);
    host_y[i] = (float)(i % 127);
  }
  float **all[] = {&x, &y, &out, &other};
  if (attune_stream_create(&stream, device) != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK)
    return false;
  for (size_t i = 0; i < AT_COUNT(all); i++)
    if (attune_alloc((void **)all[i], stream, sizeof host_x) != ATTUNE_OK) return false;
  return true;
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (!begin()) return 1;
  const int failures = RUN_TESTS_EACH(setup, NULL, NULL, NULL);
  (void)attune_free(x, stream);
  (void)attune_free(y, stream);
  (void)attune_free(out, stream);
  (void)attune_free(other, stream);
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  return failures;
}
