/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_small.c: calls of few packed elements on the host, which run in a way of their own: which do, that
 * they give the same bits as the usual way, and that nothing is refused less than there. */
#include "tests/support/check.h"

#include "tests/ops/elementwise/elementwise_call.h"

#include <math.h>

#include "ops/elementwise/host/interpret.h"

enum { MOST = 3000, GAP = 16 };

static attune_device *host;
static attune_tuner *tuner;
static attune_stream *stream, *queued;
static int small_runs, usual_runs;

void __real_at_interpreter_run(const at_interpreter *program, const at_layout *layout, const at_interpreter_call *c);
void __wrap_at_interpreter_run(const at_interpreter *program, const at_layout *layout, const at_interpreter_call *c);
void __real_at_interpreter_run_small(const at_interpreter *p, void *const *tensors, const at_constant *s, int64_t n);
void __wrap_at_interpreter_run_small(const at_interpreter *p, void *const *tensors, const at_constant *s, int64_t n);

void __wrap_at_interpreter_run(const at_interpreter *program, const at_layout *layout, const at_interpreter_call *c) {
  __atomic_fetch_add(&usual_runs, 1, __ATOMIC_RELAXED);
  __real_at_interpreter_run(program, layout, c);
}

void __wrap_at_interpreter_run_small(const at_interpreter *p, void *const *tensors, const at_constant *s, int64_t n) {
  small_runs++;
  __real_at_interpreter_run_small(p, tensors, s, n);
}

/* Loops that are called without at_interpreter_run_small count too. */
static at_straight straight;

static void count_and_run(void *out, const void *x, const void *y, const void *z, size_t n) {
  small_runs++;
  straight(out, x, y, z, n);
}

at_straight __real_at_interpreter_straight(const at_interpreter *p);
at_straight __wrap_at_interpreter_straight(const at_interpreter *p);

at_straight __wrap_at_interpreter_straight(const at_interpreter *p) {
  at_straight made = __real_at_interpreter_straight(p);
  if (made) straight = made;
  return made ? count_and_run : NULL;
}

FIXTURE(open_all) {
  OK(attune_device_get(&host, "host"));
  stream = attune_stream_default(host);
  OK(attune_stream_create(&queued, host));
  tuner = call_tuner(ATTUNE_MODE_CACHED);
  return 0;
}

FIXTURE(close_all) {
  attune_tuner_destroy(tuner);
  attune_stream_destroy(queued);
  return 0;
}

static bool runs_small(const attune_plan *plan, const call *k) {
  small_runs = usual_runs = 0;
  OK(attune_elementwise_plan_run(plan, stream, &k->operands));
  assert_int_equal(small_runs + usual_runs, 1);
  return small_runs == 1;
}

/* ---- the same bits ---- */

typedef struct expression_case {
  const char *text;
  int inputs, scalars, outputs;
  attune_dtype dtype;
} expression_case;

static const expression_case cases[] = {
    {"a + b", 2, 0, 1, ATTUNE_F32},           {"exp(a)", 1, 0, 1, ATTUNE_F32},
    {"gelu(a + b) * b", 2, 0, 1, ATTUNE_F32}, {"a * 2 + 1", 1, 0, 1, ATTUNE_F32},
    {"s * a + b", 2, 1, 1, ATTUNE_F32},       {"where(a > b, a * s, b) - sin(a)", 2, 1, 1, ATTUNE_F32},
    {"a + b, a * b", 2, 0, 2, ATTUNE_F32},    {"a + b, (a + b) * s, exp(a)", 2, 1, 3, ATTUNE_F64},
    {"silu(a) * b", 2, 0, 1, ATTUNE_BF16},    {"a * b - a", 2, 0, 1, ATTUNE_F16},
    {"a % 7 + b", 2, 0, 1, ATTUNE_I32},       {"a ** b + tgamma(b)", 2, 0, 1, ATTUNE_F64},
};

typedef struct scene {
  call k;
  unsigned char *memory[6], *expected[3];
  size_t bytes;
} scene;

static void open_scene(scene *s, const expression_case *c, int64_t n, int offset) {
  static const char *const names[] = {"a", "b"};
  const size_t size = attune_dtype_size(c->dtype);
  const int64_t sizes[] = {n};
  call_begin(&s->k);
  s->bytes = (size_t)(n + 2 * GAP) * size;
  for (int i = 0; i < c->outputs; i++) {
    s->expected[i] = malloc(s->bytes);
    s->memory[i] = malloc(s->bytes);
    memset(s->expected[i], 0xA5, s->bytes);
    memset(s->memory[i], 0xA5, s->bytes);
    call_output(&s->k, s->memory[i] + (size_t)(GAP + offset) * size, c->dtype, 1, sizes);
  }
  for (int i = 0; i < c->inputs; i++) {
    unsigned char *m = s->memory[c->outputs + i] = malloc(s->bytes);
    for (size_t b = 0; b < s->bytes; b++) m[b] = (unsigned char)(0x38 + (b * 37 + (size_t)i * 11) % 9);
    call_input(&s->k, names[i], m + (size_t)(GAP + offset) * size, c->dtype, 1, sizes);
  }
  if (c->scalars) call_scalar(&s->k, "s", 0.75);
}

static void close_scene(scene *s, const expression_case *c) {
  for (int i = 0; i < c->outputs; i++) free(s->expected[i]);
  for (int i = 0; i < c->outputs + c->inputs; i++) free(s->memory[i]);
}

/* The usual way, on a thread of its own. */
static void expect_usual(scene *s, const expression_case *c, const attune_plan *plan) {
  const size_t from = (size_t)((unsigned char *)s->k.outputs[0].data - s->memory[0]);
  small_runs = usual_runs = 0;
  for (int i = 0; i < c->outputs; i++) s->k.outputs[i].data = s->expected[i] + from;
  OK(attune_elementwise_plan_run(plan, queued, &s->k.operands));
  OK(attune_stream_synchronize(queued));
  assert_int_equal(small_runs, 0);
  for (int i = 0; i < c->outputs; i++) s->k.outputs[i].data = s->memory[i] + from;
}

static void check_same(scene *s, const expression_case *c, const char *how, int64_t n) {
  for (int i = 0; i < c->outputs; i++) {
    if (memcmp(s->memory[i], s->expected[i], s->bytes) != 0)
      fail_msg("%s of %lld elements, %s: output %d differs from the usual way", c->text, (long long)n, how, i);
    memset(s->memory[i], 0xA5, s->bytes);
  }
}

TEST(gives_the_same_bits) {
  static const int64_t sizes[] = {1, 2, 15, 16, 17, 33, 100, 255, 300};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
      const expression_case *c = &cases[i];
      scene s;
      attune_plan *plan = NULL;
      open_scene(&s, c, sizes[j], (int)(j % 3));
      OK(attune_elementwise_plan_create(&plan, tuner, stream, c->text, &s.k.operands));
      expect_usual(&s, c, plan);
      if (!runs_small(plan, &s.k)) fail_msg("%s of %lld elements ran the usual way", c->text, (long long)sizes[j]);
      check_same(&s, c, "a plan", sizes[j]);
      for (int round = 0; round < 3; round++) {
        small_runs = 0;
        OK(attune_elementwise(tuner, stream, c->text, &s.k.operands));
        assert_int_equal(small_runs, round > 1); /* once it is remembered, and its plan found */
        check_same(&s, c, "a call", sizes[j]);
      }
      attune_plan_destroy(plan);
      close_scene(&s, c);
    }
}

/* ---- which ---- */

static float x[MOST], y[MOST], z[MOST];

static bool is_small(const char *text, int64_t n, const int64_t *in_strides, void *output) {
  call k;
  attune_plan *plan = NULL;
  call_begin(&k);
  call_output(&k, output, ATTUNE_F32, 1, CALL_SIZES(n));
  call_input(&k, "a", x, ATTUNE_F32, 1, CALL_SIZES(n))->strides = in_strides;
  if (strchr(text, 'b')) call_input(&k, "b", y, ATTUNE_F32, 1, CALL_SIZES(n));
  OK(attune_elementwise_plan_create(&plan, tuner, stream, text, &k.operands));
  const bool small = runs_small(plan, &k);
  attune_plan_destroy(plan);
  return small;
}

TEST(only_packed_ones_of_few_elements) {
  static const int64_t one = 1, two = 2, back = -1;
  assert_true(is_small("a + b", 1000, NULL, z));
  assert_true(is_small("a + b", 10, &one, z));
  assert_true(is_small("a + b", 10, NULL, x));   /* in place */
  assert_true(is_small("a + b", MOST, NULL, z)); /* one loop */
  assert_false(is_small("gelu(a + b) * b", MOST, NULL, z));
  assert_false(is_small("a + b", 10, &two, z));
  assert_false(is_small("a * index()", 10, NULL, z));
  call k;
  attune_plan *plan = NULL;
  call_begin(&k);
  call_output(&k, z, ATTUNE_F32, 1, CALL_SIZES(10));
  call_input(&k, "a", x + 9, ATTUNE_F32, 1, CALL_SIZES(10))->strides = &back;
  OK(attune_elementwise_plan_create(&plan, tuner, stream, "a + 1", &k.operands));
  for (int i = 0; i < 10; i++) x[i] = (float)i;
  assert_false(runs_small(plan, &k));
  for (int i = 0; i < 10; i++) assert_true(z[i] == (float)(10 - i));
  attune_plan_destroy(plan);
}

/* Many outputs in place: one must not be written before another is read. */
TEST(outputs_that_change_places) {
  call k;
  attune_plan *plan = NULL;
  call_begin(&k);
  call_output(&k, x, ATTUNE_F32, 1, CALL_SIZES(20));
  call_output(&k, y, ATTUNE_F32, 1, CALL_SIZES(20));
  call_input(&k, "a", x, ATTUNE_F32, 1, CALL_SIZES(20));
  call_input(&k, "b", y, ATTUNE_F32, 1, CALL_SIZES(20));
  OK(attune_elementwise_plan_create(&plan, tuner, stream, "a + b, a - b", &k.operands));
  for (int i = 0; i < 20; i++) x[i] = (float)i, y[i] = (float)(3 * i);
  assert_false(runs_small(plan, &k));
  for (int i = 0; i < 20; i++) assert_true(x[i] == (float)(4 * i) && y[i] == (float)(-2 * i));
  attune_plan_destroy(plan);
}

/* ---- what is refused ---- */

/* Not at multiples of more than an element. */
static void begin(call *k) {
  call_begin(k);
  call_output(k, z + 1, ATTUNE_F32, 2, CALL_SIZES(4, 5));
  call_input(k, "a", x + 1, ATTUNE_F32, 2, CALL_SIZES(4, 5));
  call_input(k, "b", y + 1, ATTUNE_F32, 2, CALL_SIZES(4, 5));
  call_scalar(k, "s", 3)->kind = ATTUNE_F64;
}

static void refused(const attune_plan *plan, const call *k, const char *words) {
  for (int i = 0; i < MOST; i++) z[i] = 77.0f;
  FAILS(attune_elementwise_plan_run(plan, stream, &k->operands), ATTUNE_INVALID_ARGUMENT);
  if (!strstr(attune_last_message(), words)) fail_msg("%s; should say %s", attune_last_message(), words);
  for (int i = 0; i < MOST; i++) assert_true(z[i] == 77.0f);
}

#define REFUSED(change, words) (begin(&k), (change), refused(plan, &k, words))

TEST(refuses_what_is_not_as_planned) {
  static const int64_t turned[] = {1, 4}, gaps[] = {6, 1}, packed[] = {5, 1};
  static const char *const like = "; the plan has ";
  call k;
  attune_plan *plan = NULL;
  begin(&k);
  OK(attune_elementwise_plan_create(&plan, tuner, stream, "a + b * s", &k.operands));
  assert_true(runs_small(plan, &k));
  k.inputs[0].strides = packed;
  assert_true(runs_small(plan, &k));
  REFUSED(k.operands.accuracy = (attune_accuracy)77, "operands.accuracy is 77");
  REFUSED(k.operands.accuracy = (attune_accuracy)-1, "operands.accuracy is -1");
  REFUSED(k.inputs[0].sizes[0] = 5, like);
  REFUSED(k.inputs[0].sizes[1] = 4, like);
  REFUSED(k.outputs[0].sizes[1] = 6, like);
  REFUSED(k.inputs[1].dims = 1, like);
  REFUSED(k.inputs[1].dtype = ATTUNE_I32, like);
  REFUSED(k.outputs[0].dtype = ATTUNE_F64, like);
  REFUSED(k.inputs[0].strides = turned, like);
  REFUSED(k.outputs[0].strides = gaps, like);
  REFUSED(k.operands.input_count = 1, like);
  REFUSED(k.operands.output_count = 2, like);
  REFUSED(k.operands.scalar_count = 0, like);
  REFUSED(k.operands.inputs = NULL, "operands.inputs is NULL");
  REFUSED(k.operands.outputs = NULL, "operands.outputs is NULL");
  REFUSED(k.operands.scalars = NULL, "operands.scalars is NULL");
  REFUSED(k.scalars[0].kind = ATTUNE_I64, "scalar 0 has kind");
  REFUSED(k.inputs[1].data = NULL, "input b is NULL");
  REFUSED(k.outputs[0].data = NULL, "output 0 is NULL");
  REFUSED(k.inputs[0].data = (char *)x + 2, "aligned");
  REFUSED(k.inputs[0].data = z + 1, "an output shares the memory of an input, but did not");
  REFUSED(k.inputs[0].data = z + 20, "output 0 overlaps input a");
  REFUSED(k.inputs[1].data = z + 2, "output 0 overlaps input b");
  REFUSED((k.outputs[0].data = z + 30, k.inputs[1].data = z + 11), "output 0 overlaps input b");
  begin(&k);
  k.inputs[0].data = z + 20; /* right behind, and right before */
  k.inputs[1].data = z + 40;
  k.outputs[0].data = z;
  assert_true(runs_small(plan, &k));
  k.outputs[0].data = z + 60;
  assert_true(runs_small(plan, &k));
  attune_plan_destroy(plan);
}

/* A remembered call is looked at as a new one is. */
TEST(calls_refuse_as_well) {
  call k;
  begin(&k);
  for (int i = 0; i < 20; i++) x[i + 1] = (float)i, y[i + 1] = (float)(2 * i);
  for (int round = 0; round < 2; round++) OK(attune_elementwise(tuner, stream, "a + b * s", &k.operands));
  k.inputs[1].data = z + 16;
  FAILS(attune_elementwise(tuner, stream, "a + b * s", &k.operands), ATTUNE_INVALID_ARGUMENT);
  k.inputs[1].data = NULL;
  FAILS(attune_elementwise(tuner, stream, "a + b * s", &k.operands), ATTUNE_INVALID_ARGUMENT);
  begin(&k);
  k.inputs[1].name = "c";
  FAILS(attune_elementwise(tuner, stream, "a + b * s", &k.operands), ATTUNE_INVALID_ARGUMENT);
  k.inputs[1].name = NULL;
  FAILS(attune_elementwise(tuner, stream, "a + b * s", &k.operands), ATTUNE_INVALID_ARGUMENT);
  begin(&k);
  k.inputs[0].name = "b", k.inputs[1].name = "a"; /* the names say which is which */
  OK(attune_elementwise(tuner, stream, "a + b * s", &k.operands));
  for (int i = 0; i < 20; i++) assert_true(z[i + 1] == (float)(5 * i));
  begin(&k);
  k.scalars[0].kind = ATTUNE_I64; /* another kind is another problem, and its own value */
  k.scalars[0].integer = 10;
  OK(attune_elementwise(tuner, stream, "a + b * s", &k.operands));
  for (int i = 0; i < 20; i++) assert_true(z[i + 1] == (float)(21 * i));
}

/* The text at an address may have changed, and an equal text may lie at another address. */
TEST(texts_that_change) {
  char text[2][16] = {"a + b", "a - b"};
  call k;
  call_begin(&k);
  call_output(&k, z, ATTUNE_F32, 1, CALL_SIZES(7));
  call_input(&k, "a", x, ATTUNE_F32, 1, CALL_SIZES(7));
  call_input(&k, "b", y, ATTUNE_F32, 1, CALL_SIZES(7));
  for (int i = 0; i < 7; i++) x[i] = (float)(i + 1), y[i] = 2.0f;
  for (int round = 0; round < 12; round++) {
    const char sign = "+-*"[round % 3];
    text[round % 2][2] = sign;
    OK(attune_elementwise(tuner, stream, text[round % 2], &k.operands));
    for (int i = 0; i < 7; i++) assert_true(z[i] == (sign == '+' ? x[i] + 2 : sign == '-' ? x[i] - 2 : x[i] * 2));
  }
}

/* ---- one loop: what at_small_quick looks at ---- */

enum { FEW = 10 };
typedef struct quick {
  call k;
  attune_plan *plan;
  float memory[8 * FEW];
  float *out, *a, *b;
} quick;

/* Off the vectors' alignment, so that operands may be moved by an element. */
static void open_quick(quick *q, const char *text, int inputs) {
  call_begin(&q->k);
  for (int i = 0; i < 8 * FEW; i++) q->memory[i] = 0.25f * (float)i;
  q->out = q->memory + 1, q->a = q->memory + 2 * FEW + 1, q->b = q->memory + 5 * FEW + 1;
  call_output(&q->k, q->out, ATTUNE_F32, 1, CALL_SIZES(FEW));
  call_input(&q->k, "a", q->a, ATTUNE_F32, 1, CALL_SIZES(FEW));
  if (inputs == 2) call_input(&q->k, "b", q->b, ATTUNE_F32, 1, CALL_SIZES(FEW));
  OK(attune_elementwise_plan_create(&q->plan, tuner, stream, text, &q->k.operands));
  assert_true(runs_small(q->plan, &q->k));
}

/* Nothing is launched. */
static void quick_refused(quick *q, const char *what) {
  float before[8 * FEW];
  memcpy(before, q->memory, sizeof before);
  small_runs = usual_runs = 0;
  if (attune_elementwise_plan_run(q->plan, stream, &q->k.operands) != ATTUNE_INVALID_ARGUMENT)
    fail_msg("%s is taken", what);
  assert_int_equal(small_runs + usual_runs, 0);
  assert_memory_equal(before, q->memory, sizeof before);
}

#define QUICK_REFUSED(change)               \
  do {                                      \
    const call kept = q.k;                  \
    change;                                 \
    quick_refused(&q, #change);             \
    q.k = kept; /* it points into itself */ \
  } while (0)

TEST(one_loop_refuses) {
  static const int64_t second[] = {2}, first[] = {1};
  for (int inputs = 1; inputs <= 2; inputs++) {
    static quick q;
    open_quick(&q, inputs == 1 ? "sqrt(a)" : "a - b", inputs);
    attune_tensor *last = &q.k.inputs[inputs - 1];
    for (int by = 1 - FEW; by < FEW; by++) {
      QUICK_REFUSED(q.k.outputs[0].data = q.a + by);
      QUICK_REFUSED(q.k.outputs[0].data = (float *)last->data + by);
      QUICK_REFUSED(last->data = q.out + by);
    }
    QUICK_REFUSED(q.k.outputs[0].strides = second);
    QUICK_REFUSED(last->strides = second);
    QUICK_REFUSED(q.k.inputs[0].strides = second);
    QUICK_REFUSED(last->data = NULL);
    QUICK_REFUSED(q.k.outputs[0].data = NULL);
    QUICK_REFUSED(last->data = (char *)last->data + 1);
    QUICK_REFUSED(q.k.outputs[0].data = (char *)q.out + 2);
    QUICK_REFUSED(last->dtype = ATTUNE_I32);
    QUICK_REFUSED(q.k.outputs[0].dtype = ATTUNE_F16);
    QUICK_REFUSED(last->sizes[0] = FEW - 1);
    QUICK_REFUSED(q.k.outputs[0].sizes[0] = FEW + 1);
    QUICK_REFUSED(last->dims = 2);
    QUICK_REFUSED(q.k.operands.scalar_count = 1);
    QUICK_REFUSED(q.k.operands.input_count = inputs - 1);
    QUICK_REFUSED(q.k.operands.input_count = inputs + 1);
    QUICK_REFUSED(q.k.operands.output_count = 2);
    QUICK_REFUSED(q.k.operands.outputs = NULL);
    QUICK_REFUSED(q.k.operands.inputs = NULL);
    last->strides = first; /* as if there were none */
    q.k.outputs[0].data = q.out + FEW - 1;
    assert_true(runs_small(q.plan, &q.k));
    for (int i = 0; i < FEW; i++) assert_true(q.out[FEW - 1 + i] == (inputs == 1 ? sqrtf(q.a[i]) : q.a[i] - q.b[i]));
    attune_plan_destroy(q.plan);
  }
}

/* Each input at its place, whatever order the text has them in, and one that is used again. */
TEST(one_loop_computes) {
  static quick q;
  static const char *const texts[] = {"b - a", "a - b", "b / a", "fma(a, b, a)", "fma(a, a, b)", "fma(b, a, b)"};
  for (size_t t = 0; t < AT_COUNT(texts); t++) {
    open_quick(&q, texts[t], 2);
    for (int i = 0; i < FEW; i++) {
      const float a = q.a[i], b = q.b[i];
      const float wanted[] = {b - a, a - b, b / a, fmaf(a, b, a), fmaf(a, a, b), fmaf(b, a, b)};
      assert_true(q.out[i] == wanted[t]);
    }
    attune_plan_destroy(q.plan);
  }
  open_quick(&q, "a * a", 1);
  for (int i = 0; i < FEW; i++) assert_true(q.out[i] == q.a[i] * q.a[i]);
  attune_plan_destroy(q.plan);
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
