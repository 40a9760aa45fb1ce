/* SPDX-License-Identifier: Apache-2.0
 * test_elementwise_call.c: what attune_elementwise computes, against at_evaluate: random expressions with operands in
 * any order, of any dtypes, that lie in any way, in place too; each as a call, as the same call again with other
 * numbers and addresses, and as a plan. ATTUNE_TEST_EXPRESSIONS: how many (600). */
#include "tests/support/check.h"

#include "tests/ops/elementwise/elementwise_call.h"

#include <math.h>

#include "ops/elementwise/language/compile.h"
#include "tests/ops/elementwise/evaluate_views.h"

enum { MOST_ELEMENTS = 300, GAP = 64, TENSORS = 24 };

static attune_device *host;
static attune_tuner *tuner;
static uint64_t seed = 4;

static int64_t draw(int64_t from, int64_t to) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return from + (int64_t)((seed >> 33) % (uint64_t)(to - from + 1));
}

/* A tensor's memory, and the same memory as the reference has it. */
typedef struct memory {
  unsigned char *bytes, *expected;
  size_t size;
  int64_t low; /* elements before data */
} memory;

/* One call, and the views of the reference, which lie in the same way in its own memory. */
typedef struct scene {
  call call;
  char names[TENSORS + 8][16], text[4096];
  int64_t strides[TENSORS][ATTUNE_DIMS], own_strides[TENSORS][ATTUNE_DIMS];
  memory memory[TENSORS]; /* outputs, then inputs; of an input in place: none */
  int place[ATTUNE_ELEMENTWISE_OUTPUTS];
  at_shape shape;
} scene;

static bool is_f8(attune_dtype d) {
  return d == ATTUNE_F8E4M3 || d == ATTUNE_F8E5M2;
}

static void draw_shape(at_shape *shape) {
  int64_t count = 1;
  shape->dims = (int)draw(0, 8);
  for (int d = 0; d < shape->dims; d++) {
    const int64_t most = MOST_ELEMENTS / count;
    shape->sizes[d] = draw(0, 60) == 0 ? 0 : draw(0, 3) == 0 ? 1 : draw(1, most < 12 ? most : 12);
    if (shape->sizes[d] > 0) count *= shape->sizes[d];
  }
}

/* Any order of the dimensions, gaps, backward; of inputs also still ones. NULL now and then: packed. */
static void draw_strides(scene *s, int k, attune_tensor *t, bool output) {
  int order[ATTUNE_DIMS];
  int64_t stride = draw(0, 3) ? 1 : draw(1, 3);
  if (draw(0, 3) == 0) return;
  for (int d = 0; d < t->dims; d++) order[d] = d;
  for (int d = t->dims - 1; d > 0 && draw(0, 1); d--) {
    const int other = (int)draw(0, d), kept = order[d];
    order[d] = order[other];
    order[other] = kept;
  }
  for (int d = t->dims - 1; d >= 0; d--) {
    int64_t *own = &s->strides[k][order[d]];
    *own = draw(0, 5) ? stride : -stride;
    if (!output && draw(0, 5) == 0) *own = 0;
    stride *= t->sizes[order[d]] > 0 ? t->sizes[order[d]] : 1;
    if (draw(0, 4) == 0) stride += draw(1, 3);
  }
  t->strides = s->strides[k];
}

static at_view view_of(const attune_tensor *t) {
  at_shape shape = {.dims = t->dims};
  memcpy(shape.sizes, t->sizes, sizeof shape.sizes);
  at_view view = at_view_packed(t->data, t->dtype, &shape);
  if (t->strides) memcpy(view.strides, t->strides, (size_t)t->dims * sizeof *view.strides);
  return view;
}

/* Numbers that every dtype holds; of unsigned ones none is negative. */
static void fill(unsigned char *bytes, size_t size, attune_dtype dtype) {
  const size_t element = attune_dtype_size(dtype);
  for (size_t i = 0; i + element <= size; i += element) {
    const bool natural = dtype == ATTUNE_U8 || dtype == ATTUNE_U16 || dtype == ATTUNE_U32 || dtype == ATTUNE_U64;
    const int64_t x = dtype == ATTUNE_BOOL ? draw(0, 1) : draw(natural ? 0 : -4, 4);
    at_wide_value_store(dtype, bytes + i, at_wide_value_cast(dtype, ATTUNE_I64, (at_wide_value){.integer = x}));
  }
}

static void give_memory(scene *s, int k, attune_tensor *t) {
  const at_view view = view_of(t);
  const size_t element = attune_dtype_size(t->dtype);
  int64_t low = 0, high = 0;
  for (int d = 0; d < view.shape.dims; d++) {
    const int64_t way = view.shape.sizes[d] > 0 ? view.strides[d] * (view.shape.sizes[d] - 1) : 0;
    *(way < 0 ? &low : &high) += way;
  }
  memory *m = &s->memory[k];
  m->low = GAP + draw(0, 3) - low;
  m->size = (size_t)(m->low + high + 1 + GAP) * element;
  m->bytes = malloc(m->size);
  m->expected = malloc(m->size);
  assert_true(m->bytes && m->expected);
  fill(m->bytes, m->size, t->dtype);
  t->data = m->bytes + (size_t)m->low * element;
}

/* ---- texts ---- */

static void put(scene *s, const char *format, ...) {
  va_list args;
  const size_t at = strlen(s->text);
  va_start(args, format);
  const int length = vsnprintf(s->text + at, sizeof s->text - at, format, args);
  va_end(args);
  assert_true(length >= 0 && at + (size_t)length < sizeof s->text);
}

/* As something that goes with everything else. */
static void put_operand(scene *s, int i) {
  const call *c = &s->call;
  const attune_tensor *t = &c->inputs[i];
  if (is_f8(t->dtype) || t->dtype == ATTUNE_U64)
    put(s, "f32(%s)", t->name);
  else if (t->dtype == ATTUNE_C64 || t->dtype == ATTUNE_C128)
    put(s, draw(0, 1) ? "real(%s)" : "imag(%s + 1j)", t->name);
  else
    put(s, "%s", t->name);
}

static void put_scalar(scene *s, int i) {
  const attune_scalar *x = &s->call.scalars[i];
  put(s, x->kind == ATTUNE_C128 ? "real(%s * 1j)" : "%s", x->name);
}

static void put_output(scene *s, int which) {
  static const char *const between[] = {" + ", " - ", " + ", " - ", " + 2 * "};
  const call *c = &s->call;
  put(s, which ? ", " : "");
  bool any = false;
  for (int i = 0; i < c->operands.input_count; i++) {
    if (which > 0 && draw(0, 2)) continue;
    if (any) put(s, "%s", between[draw(0, 4)]);
    any = true;
    if (draw(0, 6) == 0) put(s, "-");
    put_operand(s, i);
  }
  for (int i = 0; i < c->operands.scalar_count; i++) {
    if (which > 0 && draw(0, 2)) continue;
    put(s, "%s", any ? between[draw(0, 4)] : "");
    any = true;
    put_scalar(s, i);
  }
  if (!any || draw(0, 9) == 0) put(s, "%s%d", any ? " - " : "", (int)draw(-3, 3));
  if (draw(0, 9) == 0) put(s, " + i16(index() %% 7)");
  if (draw(0, 9) == 0) put(s, " + i16(index(%d))", (int)draw(0, 7));
}

static attune_dtype draw_dtype(void) {
  return (attune_dtype)draw(1, 17);
}

static void draw_operands(scene *s) {
  call *c = &s->call;
  const int outputs = (int)(draw(0, 2) ? 1 : draw(1, 8)), inputs = (int)(draw(0, 3) ? draw(0, 3) : draw(0, 16)),
            scalars = (int)(draw(0, 2) ? 0 : draw(0, 8));
  static const attune_dtype kinds[] = {(attune_dtype)0, ATTUNE_F64, ATTUNE_I64, ATTUNE_BOOL, ATTUNE_C128};
  draw_shape(&s->shape);
  for (int i = 0; i < outputs; i++) {
    attune_tensor *t = call_output(c, NULL, draw_dtype(), s->shape.dims, s->shape.sizes);
    s->place[i] = -1;
    draw_strides(s, i, t, true);
    give_memory(s, i, t);
  }
  for (int i = 0; i < inputs; i++) {
    const int skip = draw(0, 3) ? 0 : (int)draw(0, s->shape.dims), k = ATTUNE_ELEMENTWISE_OUTPUTS + i;
    snprintf(s->names[k], sizeof s->names[k], "%c_%d", (char)draw('a', 'z'), i);
    attune_tensor *t = call_input(c, s->names[k], NULL, draw_dtype(), s->shape.dims - skip, s->shape.sizes + skip);
    if (i < outputs && draw(0, 3) == 0) { /* in place */
      const char *name = t->name;
      while (attune_dtype_size(t->dtype) != attune_dtype_size(c->outputs[i].dtype)) t->dtype = draw_dtype();
      const attune_dtype dtype = t->dtype;
      *t = c->outputs[i];
      t->name = name;
      t->dtype = dtype;
      s->place[i] = i;
      fill(s->memory[i].bytes, s->memory[i].size, dtype);
      continue;
    }
    for (int d = 0; d < t->dims; d++)
      if (draw(0, 6) == 0 && t->sizes[d] > 0) t->sizes[d] = 1;
    draw_strides(s, k, t, false);
    give_memory(s, k, t);
  }
  for (int i = 0; i < scalars; i++) {
    snprintf(s->names[TENSORS + i], sizeof s->names[0], "S%d", i);
    attune_scalar *x = call_scalar(c, s->names[TENSORS + i], 0);
    x->kind = kinds[draw(0, 4)];
  }
}

static void draw_numbers(scene *s) {
  for (int i = 0; i < s->call.operands.scalar_count; i++) {
    attune_scalar *x = &s->call.scalars[i];
    x->value = (double)draw(-4, 4) * (x->kind == ATTUNE_I64 || x->kind == ATTUNE_BOOL ? 1e9 : 1); /* not looked at */
    x->imaginary = (double)draw(-4, 4) * (x->kind == ATTUNE_C128 ? 1 : 1e9);
    if (!x->kind) x->imaginary = 0.0; /* a kind that was left out must not hide a value */
    x->integer = !x->kind                 ? 0
                 : x->kind == ATTUNE_I64  ? draw(-4, 4)
                 : x->kind == ATTUNE_BOOL ? draw(-1, 2)
                                          : draw(1 << 20, 1 << 30);
  }
}

/* ---- the reference ---- */

static at_expression *compile(const scene *s) {
  at_operand_name tensors[16] = {0}, scalars[8] = {0};
  const attune_elementwise_operands *o = &s->call.operands;
  for (int i = 0; i < o->input_count; i++) {
    snprintf(tensors[i].name, sizeof tensors[i].name, "%s", o->inputs[i].name);
    tensors[i].dtype = (uint8_t)o->inputs[i].dtype;
  }
  for (int i = 0; i < o->scalar_count; i++) {
    snprintf(scalars[i].name, sizeof scalars[i].name, "%s", o->scalars[i].name);
    scalars[i].dtype = (uint8_t)(o->scalars[i].kind ? o->scalars[i].kind : ATTUNE_F64);
  }
  const at_signature signature = {tensors, scalars, o->input_count, o->scalar_count};
  at_expression *e = NULL;
  if (at_expression_create(&e, s->text, strlen(s->text), &signature) != ATTUNE_OK)
    fail_msg("%s: %s", s->text, attune_last_message());
  return e;
}

/* `data` in the reference's memory. */
static const void *as_expected(const scene *s, const void *data) {
  for (int k = 0; k < TENSORS; k++) {
    const memory *m = &s->memory[k];
    if (m->bytes && (const unsigned char *)data >= m->bytes && (const unsigned char *)data < m->bytes + m->size)
      return m->expected + ((const unsigned char *)data - m->bytes);
  }
  return NULL;
}

static void evaluate(const scene *s, const at_expression *e) {
  const attune_elementwise_operands *o = &s->call.operands;
  at_view outputs[8], inputs[16];
  at_constant scalars[8];
  for (int k = 0; k < TENSORS; k++)
    if (s->memory[k].bytes) memcpy(s->memory[k].expected, s->memory[k].bytes, s->memory[k].size);
  for (int i = 0; i < o->output_count; i++) {
    outputs[i] = view_of(&o->outputs[i]);
    outputs[i].data = as_expected(s, outputs[i].data);
  }
  for (int i = 0; i < e->input_count; i++)
    for (int k = 0; k < o->input_count; k++) {
      if (strcmp(e->inputs[i].name, o->inputs[k].name) != 0) continue;
      inputs[i] = view_of(&o->inputs[k]);
      inputs[i].data = as_expected(s, inputs[i].data);
    }
  for (int i = 0; i < e->scalar_count; i++)
    for (int k = 0; k < o->scalar_count; k++) {
      if (strcmp(e->scalars[i].name, o->scalars[k].name) != 0) continue;
      const attune_scalar *x = &o->scalars[k];
      scalars[i] = (at_constant){.re = x->value, .im = x->imaginary, .integer = x->integer};
      if (x->kind == ATTUNE_BOOL) scalars[i].integer = x->integer != 0;
    }
  OK(at_evaluate_views(e, outputs, inputs, scalars, NULL, AT_ROUND_NODES));
}

static void fail_at(const scene *s, const char *how, int k, size_t byte) {
  const memory *m = &s->memory[k];
  const bool output = k < ATTUNE_ELEMENTWISE_OUTPUTS;
  const int i = output ? k : k - ATTUNE_ELEMENTWISE_OUTPUTS;
  const attune_dtype dtype = output ? s->call.outputs[i].dtype : s->call.inputs[i].dtype;
  const size_t size = attune_dtype_size(dtype);
  const at_wide_value got = at_wide_value_load(dtype, m->bytes + byte / size * size),
                      wanted = at_wide_value_load(dtype, m->expected + byte / size * size);
  fail_msg("%s, %s: element %zu of %zu of %s %d, %s: %Lg %Lg %lld; should be %Lg %Lg %lld", how, s->text, byte / size,
           m->size / size, output ? "output" : "input", i, attune_dtype_name(dtype), got.re, got.im,
           (long long)got.integer, wanted.re, wanted.im, (long long)wanted.integer);
}

static void compare(const scene *s, const char *how) {
  for (int k = 0; k < TENSORS; k++) {
    const memory *m = &s->memory[k];
    for (size_t i = 0; m->bytes && i < m->size; i++)
      if (m->bytes[i] != m->expected[i]) fail_at(s, how, k, i);
  }
}

/* New numbers everywhere; and elsewhere, as far as memory is free for it. */
static void renew(scene *s, bool move) {
  call *c = &s->call;
  draw_numbers(s);
  for (int k = 0; k < TENSORS; k++) {
    memory *m = &s->memory[k];
    if (!m->bytes) continue;
    const bool output = k < ATTUNE_ELEMENTWISE_OUTPUTS;
    attune_tensor *t = output ? &c->outputs[k] : &c->inputs[k - ATTUNE_ELEMENTWISE_OUTPUTS];
    const attune_dtype dtype = output && s->place[k] >= 0 ? c->inputs[s->place[k]].dtype : t->dtype;
    fill(m->bytes, m->size, dtype);
    if (!move) continue;
    t->data = (char *)t->data + 16 * attune_dtype_size(t->dtype); /* as well aligned */
    if (output && s->place[k] >= 0) c->inputs[s->place[k]].data = t->data;
  }
}

static void check(int number) {
  static scene s;
  attune_stream *stream = attune_stream_default(host);
  memset(&s, 0, sizeof s);
  call_begin(&s.call);
  draw_operands(&s);
  for (int i = 0; i < s.call.operands.output_count; i++) put_output(&s, i);
  draw_numbers(&s);
  for (int i = s.call.operands.input_count - 1; i > 0; i--) { /* in any order: but then s.place would be of others */
    const int other = (int)draw(0, i);
    bool placed = false;
    for (int k = 0; k < 8; k++) placed = placed || s.place[k] == i || s.place[k] == other;
    if (placed || s.memory[8 + i].bytes == NULL || s.memory[8 + other].bytes == NULL) continue;
    const attune_tensor kept = s.call.inputs[i];
    const memory m = s.memory[8 + i];
    s.call.inputs[i] = s.call.inputs[other];
    s.memory[8 + i] = s.memory[8 + other];
    s.call.inputs[other] = kept;
    s.memory[8 + other] = m;
  }
  at_expression *e = compile(&s);
  for (int round = 0; round < 4; round++) {
    if (round) renew(&s, round == 2);
    evaluate(&s, e);
    if (attune_elementwise(tuner, stream, s.text, &s.call.operands) != ATTUNE_OK)
      fail_msg("%d: %s: %s", number, s.text, attune_last_message());
    compare(&s, round ? "again" : "new");
  }
  attune_plan *plan = NULL;
  int64_t count = 0;
  assert_true(at_shape_count(&count, &s.shape));
  if (count) {
    OK(attune_elementwise_plan_create(&plan, tuner, stream, s.text, &s.call.operands));
    renew(&s, true);
    evaluate(&s, e);
    OK(attune_elementwise_plan_run(plan, stream, &s.call.operands));
    compare(&s, "as a plan");
    attune_plan_destroy(plan);
  }
  at_expression_destroy(e);
  for (int k = 0; k < TENSORS; k++) {
    free(s.memory[k].bytes);
    free(s.memory[k].expected);
  }
}

TEST(random_calls) {
  const char *asked = getenv("ATTUNE_TEST_EXPRESSIONS");
  const int wanted = asked ? atoi(asked) : 600;
  OK(attune_device_get(&host, "host"));
  tuner = call_tuner(ATTUNE_MODE_CACHED);
  for (int i = 0; i < wanted; i++) check(i);
  attune_tuner_destroy(tuner);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
