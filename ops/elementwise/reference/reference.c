/* SPDX-License-Identifier: Apache-2.0
 * reference.c: what a problem's outputs should be. Every element is compared with the host's interpreter; those that
 * are not near its value, and a few thousand others, are computed in long double, with the bound that tolerance.h
 * finds. */
#include "ops/elementwise/reference/reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/host/interpret.h"
#include "ops/elementwise/language/plain.h"
#include "ops/elementwise/reference/tolerance.h"
#include "src/host/threads.h"
#include "src/process/limit.h"

enum {
  DRAWN = 1024,         /* elements computed in long double in any case */
  ENDS = 64,            /* and so many at the start and the end */
  EXACT_MOST = 1 << 15, /* of those that are not near; of more only a part is looked at */
  EXACT_STEP = 61,
  LOOK = 1 << 20 /* elements between two looks at the limit */
};

typedef struct reference {
  at_user_function_reference
      *raw; /* of a function of the program's own: it alone knows the results, and most of this is empty */
  at_elementwise *problem; /* a copy */
  at_expression *expression;
  at_interpreter *program;
  bool copies; /* no function is computed: outputs are inputs, numbers of the element or draws, converted perhaps */
  at_layout layout;
  at_buffer buffers[AT_MAX_BUFFERS];
  int buffer_count;
  char *inputs[AT_MAX_BUFFERS];  /* what the buffers held; NULL: no input */
  char *planted[AT_MAX_BUFFERS]; /* the same with special values; NULL: not made yet */
  char *expected[AT_EXPRESSION_OUTPUTS];
  unsigned char *covered;        /* of one output: bits of its elements */
  at_wide_value *values, *plain; /* of the expression's nodes, and of those of the text as it is written */
  double *bounds;
} reference;

/* One comparison. */
typedef struct comparison {
  reference *r;
  at_elementwise_operands operands; /* the tensors are those of the host's copies, expected outputs among them */
  at_elements elements;
  const at_outputs *outputs;
  char *const *from; /* what the buffers held before */
  int64_t exact;     /* elements computed so far */
  double worst;
} comparison;

void at_elementwise_reference_destroy(void *state) {
  reference *r = state;
  if (!r) return;
  for (int i = 0; i < AT_MAX_BUFFERS; i++) {
    free(r->inputs[i]);
    free(r->planted[i]);
  }
  for (int i = 0; i < AT_EXPRESSION_OUTPUTS; i++) free(r->expected[i]);
  at_user_function_reference_destroy(r->raw);
  at_interpreter_destroy(r->program);
  at_expression_destroy(r->expression);
  free(r->covered);
  free(r->values);
  free(r->plain);
  free(r->bounds);
  free(r->problem);
  free(r);
}

static attune_status make(reference *r, const at_elementwise *p) {
  attune_dtype outputs[AT_EXPRESSION_OUTPUTS];
  r->problem = malloc(p->bytes);
  if (!r->problem) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
  memcpy(r->problem, p, p->bytes);
  at_elementwise_layout_of(&r->layout, p);
  for (int i = 0; i < p->output_count; i++) outputs[i] = (attune_dtype)p->dtypes[i];
  AT_TRY(at_elementwise_buffers(p, r->buffers, &r->buffer_count));
  AT_TRY(at_elementwise_expression_checked(&r->expression, p));
  AT_TRY(at_interpreter_create(&r->program, r->expression, outputs, NULL));
  r->copies = true;
  for (int i = 0; i < r->expression->node_count; i++)
    r->copies = r->copies && r->expression->nodes[i].kind != AT_NODE_FUNCTION;
  r->values = calloc((size_t)r->expression->node_count, sizeof *r->values);
  r->plain = at_plain_values(r->expression->plain);
  r->bounds = calloc((size_t)r->expression->node_count, sizeof *r->bounds);
  return r->values && r->plain && r->bounds ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
}

static attune_status fetch(reference *r, attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]) {
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < r->buffer_count && status == ATTUNE_OK; i++) {
    if (!r->buffers[i].input) continue;
    r->inputs[i] = at_alloc_large(r->buffers[i].bytes);
    status = r->inputs[i] ? attune_copy(stream, r->inputs[i], pointers[i], r->buffers[i].bytes)
                          : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes of operands", r->buffers[i].bytes);
  }
  return status == ATTUNE_OK ? attune_stream_synchronize(stream) : status;
}

static attune_status make_raw(reference *r, const at_elementwise *p, attune_device *device, attune_stream *stream,
                              void *const pointers[AT_MAX_BUFFERS]) {
  r->problem = malloc(p->bytes);
  if (!r->problem) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
  memcpy(r->problem, p, p->bytes);
  const attune_status status = at_elementwise_buffers(p, r->buffers, &r->buffer_count);
  return status == ATTUNE_OK ? at_user_function_reference_create(&r->raw, p, device, stream, pointers) : status;
}

attune_status at_elementwise_reference_create(void **out, const void *problem, attune_device *device,
                                              attune_stream *stream, void *const pointers[AT_MAX_BUFFERS]) {
  reference *r = calloc(1, sizeof *r);
  if (!r) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a reference");
  if (at_elementwise_of(problem)->raw) {
    const attune_status made = make_raw(r, problem, device, stream, pointers);
    *out = made == ATTUNE_OK ? r : NULL;
    if (made != ATTUNE_OK) at_elementwise_reference_destroy(r);
    return made;
  }
  attune_status status = make(r, at_elementwise_of(problem));
  if (status == ATTUNE_OK) status = fetch(r, stream, pointers);
  for (int i = 0; i < r->buffer_count && status == ATTUNE_OK; i++)
    if (r->buffers[i].output && !(r->expected[i] = at_alloc_large(r->buffers[i].bytes)))
      status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes of results", r->buffers[i].bytes);
  if (status == ATTUNE_OK)
    *out = r;
  else
    at_elementwise_reference_destroy(r);
  return status;
}

/* ---- one element ---- */

static void check_exactly(comparison *c, int64_t walked) {
  const reference *r = c->r;
  const at_expression *e = r->expression;
  at_element_values(r->values, &c->elements, walked, AT_ROUND_NODES);
  at_tolerance_bounds(r->bounds, r->values, e, r->problem->accuracy == ATTUNE_REDUCED);
  if (!at_plain_agrees(r->plain, &c->elements, walked, r->values)) c->worst = (double)INFINITY;
  c->exact++;
  for (int i = 0; i < e->output_count; i++) {
    const attune_dtype dtype = (attune_dtype)r->problem->dtypes[i];
    const int64_t at = (char *)c->operands.tensors[i] - r->expected[i] +
                       at_element_offset(&r->layout, i, walked) * (int64_t)attune_dtype_size(dtype);
    const int node = e->outputs[i];
    const double error = at_tolerance_error((const char *)c->outputs->bytes[i] + at, dtype,
                                            (attune_dtype)e->nodes[node].dtype, r->values[node], r->bounds[node]);
    if (!(error <= c->worst)) c->worst = error;
  }
}

/* The first look: equal, or so near that check_exactly would find nothing: within half of what it allows one function.
 * Infinity is near to nothing else, and where no function is computed only equal bits are near. */
static bool is_near(const reference *r, attune_dtype dtype, const char *got, const char *wanted) {
  if (memcmp(got, wanted, attune_dtype_size(dtype)) == 0) return true;
  if (dtype == ATTUNE_F32 && !r->copies) {
    float x, y;
    memcpy(&x, got, sizeof x);
    memcpy(&y, wanted, sizeof y);
    return (fabsf(x - y) <= 0x1p-22f * fabsf(y) && fabsf(y) <= FLT_MAX) || (isnan(x) && isnan(y));
  }
  if (at_dtype_whole(dtype)) return false;
  const at_wide_value x = at_wide_value_load(dtype, got), y = at_wide_value_load(dtype, wanted);
  if (isnan(x.re) && isnan(y.re) && (x.im == y.im || (isnan(x.im) && isnan(y.im)))) return true;
  if (r->copies || !isfinite(y.re) || !isfinite(y.im)) return false;
  const int bits = dtype == ATTUNE_F64 ? 50 : dtype == ATTUNE_C128 ? 49 : dtype == ATTUNE_C64 ? 20 : 100;
  return fabsl(x.re - y.re) + fabsl(x.im - y.im) <= ldexpl(fabsl(y.re) + fabsl(y.im), -bits);
}

static void check_near(comparison *c, int output, int64_t walked, int64_t at) {
  const reference *r = c->r;
  if (is_near(r, (attune_dtype)r->problem->dtypes[output], (const char *)c->outputs->bytes[output] + at,
              r->expected[output] + at))
    return;
  if (c->exact < EXACT_MOST || walked % EXACT_STEP == 0) check_exactly(c, walked);
}

/* ---- all of them ---- */

static attune_status walk_output(comparison *c, int output) {
  const reference *r = c->r;
  const at_layout *l = &r->layout;
  const int64_t size = (int64_t)attune_dtype_size((attune_dtype)r->problem->dtypes[output]),
                start = (char *)c->operands.tensors[output] - r->expected[output],
                step = l->operands[output].strides[0];
  attune_status status = ATTUNE_OK;
  for (int64_t row = 0, look = 0; row < l->count && status == ATTUNE_OK; row += l->sizes[0]) {
    int64_t at = start + at_element_offset(l, output, row) * size;
    for (int64_t i = 0; i < l->sizes[0] && c->worst <= 1.0; i++, at += step * size) {
      if (look-- == 0) {
        status = at_limit_look();
        look = LOOK;
        if (status != ATTUNE_OK) break;
      }
      check_near(c, output, row + i, at);
      if (r->covered) r->covered[at / size / 8] |= (unsigned char)(1 << at / size % 8);
    }
  }
  return status;
}

/* Between the elements everything must be as it was. */
static bool gaps_are_whole(const comparison *c, int output) {
  const reference *r = c->r;
  const size_t size = attune_dtype_size((attune_dtype)r->problem->dtypes[output]);
  const char *got = c->outputs->bytes[output], *was = c->from[output];
  for (size_t i = 0; i < r->buffers[output].bytes / size; i++) {
    if (r->covered[i / 8] >> i % 8 & 1) continue;
    for (size_t b = i * size; b < (i + 1) * size; b++)
      if (got[b] != (was ? was[b] : (char)c->outputs->poison[output])) return false;
  }
  return true;
}

static attune_status check_output(comparison *c, int output) {
  reference *r = c->r;
  const size_t size = attune_dtype_size((attune_dtype)r->problem->dtypes[output]),
               elements = r->buffers[output].bytes / size;
  free(r->covered);
  r->covered = NULL;
  if (elements != (size_t)r->layout.count && !(r->covered = calloc(elements / 8 + 1, 1)))
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to verify %zu elements", elements);
  AT_TRY(walk_output(c, output));
  if (r->covered && c->worst <= 1.0 && !gaps_are_whole(c, output)) c->worst = (double)INFINITY;
  return ATTUNE_OK;
}

static void check_some(comparison *c) {
  const int64_t count = c->r->layout.count;
  uint64_t state = 88172645463325252u;
  for (int64_t i = 0; i < ENDS && i < count; i++) {
    check_exactly(c, i);
    check_exactly(c, count - 1 - i);
  }
  for (int i = 0; i < DRAWN; i++) { /* xorshift64 (Marsaglia 2003) */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    check_exactly(c, (int64_t)(state % (uint64_t)count));
  }
}

/* Where the inputs are `from`, buffer by buffer; the outputs are expected ones. */
static void begin(comparison *c, reference *r, char *const *from, const double *scalars, const at_outputs *outputs) {
  void *pointers[AT_MAX_BUFFERS] = {NULL}, *results[AT_MAX_BUFFERS] = {NULL};
  at_elementwise_operands expected;
  for (int i = 0; i < r->buffer_count; i++) {
    pointers[i] = from[i] ? from[i] : r->expected[i];
    results[i] = r->buffers[i].output ? r->expected[i] : pointers[i];
  }
  memset(c, 0, sizeof *c);
  c->r = r;
  c->outputs = outputs;
  c->from = from;
  at_elementwise_bind(r->problem, pointers, scalars, &c->operands);
  at_elementwise_bind(r->problem, results, scalars, &expected);
  memcpy(c->operands.tensors, expected.tensors, r->problem->output_count * sizeof *expected.tensors);
  c->elements = (at_elements){.expression = r->expression,
                              .layout = &r->layout,
                              .number = r->problem->number,
                              .tensors = c->operands.tensors,
                              .scalars = c->operands.scalars,
                              .draws = c->operands.draws};
}

static attune_status compare(comparison *c) {
  reference *r = c->r;
  at_interpreter_call call = {.scalars = c->operands.scalars, .draws = &c->operands.draws, .threads = at_cpu_count()};
  memcpy(call.outputs, c->operands.tensors, r->problem->output_count * sizeof *call.outputs);
  memcpy(call.inputs, c->operands.tensors + r->problem->output_count, r->problem->input_count * sizeof *call.inputs);
  at_interpreter_run(r->program, &r->layout, &call);
  attune_status status = at_limit_look();
  if (status == ATTUNE_OK) check_some(c);
  for (int i = 0; i < r->problem->output_count && status == ATTUNE_OK && c->worst <= 1.0; i++)
    status = check_output(c, i);
  return status;
}

attune_status at_elementwise_reference_compare(void *state, const double *scalars, const at_outputs *outputs,
                                               double *max_error) {
  at_user_function_reference *raw = ((reference *)state)->raw;
  comparison c;
  if (raw) return at_user_function_reference_compare(raw, NULL, scalars, outputs, max_error);
  begin(&c, state, ((reference *)state)->inputs, scalars, outputs);
  const attune_status status = compare(&c);
  *max_error = c.worst;
  return status;
}

/* ---- special values ---- */

static bool is_real(attune_dtype dtype) {
  return at_dtype_kind_of(dtype) == AT_KIND_FLOAT || at_dtype_kind_of(dtype) == AT_KIND_COMPLEX;
}

/* Buffers are outputs, then inputs that are no output's memory. */
static attune_dtype buffer_dtype(const at_elementwise *p, int buffer, bool *input) {
  at_buffer all[AT_MAX_BUFFERS];
  int count = 0;
  if (at_elementwise_buffers(p, all, &count) != ATTUNE_OK || buffer >= count) {
    *input = false;
    return ATTUNE_BOOL;
  }
  *input = all[buffer].input;
  return all[buffer].dtype;
}

int at_elementwise_special_count(const void *problem) {
  const at_elementwise *p = at_elementwise_of(problem);
  for (int i = 0; i < p->input_count; i++)
    if (is_real((attune_dtype)p->dtypes[p->output_count + i])) return 1;
  return 0;
}

int at_elementwise_special_contents(const void *problem, int which, int buffer) {
  (void)which;
  bool input;
  const attune_dtype dtype = buffer_dtype(at_elementwise_of(problem), buffer, &input);
  return input && is_real(dtype);
}

/* One element in seven, at places that differ from buffer to buffer. */
void at_elementwise_special_plant(const void *problem, int which, int buffer, void *bytes) {
  static const double special[] = {(double)NAN, 0.0,  -0.0,  (double)INFINITY, (double)-INFINITY, 1e-40,
                                   -1e-310,     3e38, -6e-8, 65000.0};
  (void)which;
  at_buffer all[AT_MAX_BUFFERS];
  int count = 0;
  if (at_elementwise_buffers(problem, all, &count) != ATTUNE_OK || buffer >= count) return;
  const attune_dtype dtype = all[buffer].dtype;
  const size_t size = attune_dtype_size(dtype), elements = all[buffer].bytes / size;
  for (size_t i = (size_t)buffer % 3, k = (size_t)buffer; i < elements; i += 5 + k % 5, k++) {
    const at_wide_value x = {.re = special[k % AT_COUNT(special)], .im = special[(k / 3) % AT_COUNT(special)]};
    at_wide_value value = at_wide_value_round(dtype, x);
    if (at_dtype_kind_of(dtype) == AT_KIND_FLOAT) value.im = 0;
    at_wide_value_store(dtype, (char *)bytes + i * size, value);
  }
}

void at_elementwise_special_scalars(const void *problem, int which, double *scalars) {
  (void)problem, (void)which, (void)scalars;
}

/* The input's contents with special values among them. */
static attune_status plant(reference *r, int which, int i, const char *input) {
  if (r->planted[i]) return ATTUNE_OK;
  r->planted[i] = at_alloc_large(r->buffers[i].bytes);
  if (!r->planted[i]) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for special values");
  memcpy(r->planted[i], input, r->buffers[i].bytes);
  at_elementwise_special_plant(r->problem, which, i, r->planted[i]);
  return ATTUNE_OK;
}

attune_status at_elementwise_special_compare(void *state, int which, const at_outputs *outputs, uint32_t *lost) {
  reference *r = state;
  char *from[AT_MAX_BUFFERS] = {NULL};
  double usual[AT_MAX_SCALARS] = {0}, error = 0.0;
  at_scalar scalars[AT_MAX_SCALARS];
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < r->buffer_count && status == ATTUNE_OK; i++) {
    const char *input = r->raw ? at_user_function_reference_input(r->raw, i) : r->inputs[i];
    from[i] = r->inputs[i];
    if (!input || !is_real(r->buffers[i].dtype)) continue;
    status = plant(r, which, i, input);
    from[i] = r->planted[i];
  }
  if (status != ATTUNE_OK) return status;
  const int count = at_elementwise_scalars(r->problem, scalars);
  for (int i = 0; i < count; i++) usual[i] = scalars[i].usual;
  if (r->raw) {
    status = at_user_function_reference_compare(r->raw, from, usual, outputs, &error);
  } else {
    comparison c;
    begin(&c, r, from, usual, outputs);
    status = compare(&c);
    error = c.worst;
  }
  *lost = error <= 1.0 ? 0 : 1;
  return status;
}

const char *at_elementwise_special_name(int bit) {
  return bit == 0 ? "gives different results for NaN, infinities, denormals or zeros in its inputs" : NULL;
}
