/* SPDX-License-Identifier: Apache-2.0
 * evaluation_check.c: compares a described call's results with values in long double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/call/evaluation.h"
#include "ops/elementwise/evaluate/element.h"
#include "ops/elementwise/reference/tolerance.h"
#include "src/base/backend.h"
#include "src/process/floating.h"

enum { ENDS = 64 }; /* elements at the start and at the end that every sample has */

/* A buffer's bytes in host memory: into *room, which is made at the first time; on the host those that are there,
 * unless the call will overwrite them. */
static attune_status fetch(const attune_evaluation *e, int buffer, bool keep, char **room) {
  const bool host = attune_stream_device(e->stream)->properties.kind == ATTUNE_DEVICE_HOST;
  const size_t bytes = e->buffers[buffer].bytes;
  if (host && !keep) {
    *room = e->memory[buffer];
    return ATTUNE_OK;
  }
  if (!*room) *room = at_alloc_large(bytes);
  return *room ? attune_copy(e->stream, *room, e->memory[buffer], bytes)
               : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu bytes of an operand", bytes);
}

static attune_status run(attune_evaluation *e, attune_tuner *tuner) {
  attune_status status = at_evaluation_fill(e);
  for (int i = 0; i < e->buffer_count && status == ATTUNE_OK; i++)
    if (e->buffers[i].input) status = fetch(e, i, e->buffers[i].output, &e->before[i]);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(e->stream);
  if (status == ATTUNE_OK) status = attune_elementwise(tuner, e->stream, e->expression, &e->spec.operands);
  for (int i = 0; i < e->buffer_count && status == ATTUNE_OK; i++)
    if (e->buffers[i].output) status = fetch(e, i, false, &e->after[i]);
  return status == ATTUNE_OK ? attune_stream_synchronize(e->stream) : status;
}

/* ---- one element ---- */

typedef struct comparison {
  const attune_evaluation *e;
  at_elements elements;
  void *tensors[AT_TENSORS]; /* in host memory: the first element walked of each */
  at_constant scalars[AT_EXPRESSION_SCALARS];
  at_wide_value values[AT_EXPRESSION_NODES];
  double bounds[AT_EXPRESSION_NODES];
  attune_evaluation_errors *out;
} comparison;

static double part_ulps(attune_dtype dtype, long double got, long double exact, long double size) {
  if (got == exact || (isnan(got) && isnan(exact))) return 0.0;
  /* What overflows is as the contract says: max_error has looked at it. */
  if (!isfinite(got) || !isfinite(exact)) return 0.0;
  return (double)(fabsl(got - exact) / (long double)at_tolerance_unit(dtype, (double)size));
}

/* The node whose value an output is before it is rounded to the output's dtype. */
static int formula_of(const at_expression *x, int output) {
  int node = x->outputs[output];
  while (x->nodes[node].kind == AT_NODE_CAST && !at_dtype_whole((attune_dtype)x->nodes[node].dtype) &&
         !at_dtype_whole((attune_dtype)x->nodes[x->nodes[node].argument[0]].dtype))
    node = x->nodes[node].argument[0];
  return node;
}

/* `exact` is the node's value, not rounded. */
static double ulps_of(attune_dtype dtype, at_wide_value got, at_wide_value exact) {
  if (at_dtype_whole(dtype)) return 0.0;
  const bool complex = at_dtype_kind_of(dtype) == AT_KIND_COMPLEX;
  const long double size = complex ? fmaxl(fabsl(exact.re), fabsl(exact.im)) : fabsl(exact.re);
  const double re = part_ulps(dtype, got.re, exact.re, size);
  return complex ? fmax(re, part_ulps(dtype, got.im, exact.im, size)) : re;
}

static void look_at(comparison *c, int64_t walked) {
  const at_call_binding *p = c->e->prepared;
  const at_expression *x = p->expression;
  at_element_values(c->values, &c->elements, walked, AT_ROUND_NODES);
  at_tolerance_bounds(c->bounds, c->values, x, p->problem->accuracy == ATTUNE_REDUCED);
  if (!at_plain_agrees(c->e->plain, &c->elements, walked, c->values)) c->out->max_error = (double)INFINITY;
  const char *at[AT_EXPRESSION_OUTPUTS];
  for (int i = 0; i < x->output_count; i++) {
    const attune_dtype dtype = (attune_dtype)p->problem->dtypes[i];
    const int node = x->outputs[i];
    at[i] = (const char *)c->tensors[i] + at_element_offset(&p->layout, i, walked) * (int64_t)p->size[i];
    const double error =
        at_tolerance_error(at[i], dtype, (attune_dtype)x->nodes[node].dtype, c->values[node], c->bounds[node]);
    if (!(error <= c->out->max_error)) c->out->max_error = error;
  }
  at_element_values(c->values, &c->elements, walked, AT_ROUND_CASTS);
  for (int i = 0; i < x->output_count; i++) {
    const attune_dtype dtype = (attune_dtype)p->problem->dtypes[i];
    const int node = formula_of(x, i);
    if (at_dtype_whole((attune_dtype)x->nodes[node].dtype)) continue; /* converted: exact or wrong */
    const double ulps = ulps_of(dtype, at_wide_value_load(dtype, at[i]), c->values[node]);
    if (ulps > c->out->max_ulps) c->out->max_ulps = ulps;
  }
  c->out->checked++;
}

static void look_at_all(comparison *c, int64_t most) {
  const int64_t count = c->out->elements;
  if (most <= 0 || most >= count) {
    for (int64_t i = 0; i < count; i++) look_at(c, i);
    return;
  }
  uint64_t state = 88172645463325252u;
  for (int64_t i = 0; i < most; i++) {
    int64_t walked = i / 2;
    if (i < 2 * ENDS) {
      if (i % 2) walked = count - 1 - walked;
    } else { /* xorshift64 (Marsaglia 2003) */
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      walked = (int64_t)(state % (uint64_t)count);
    }
    look_at(c, walked);
  }
}

static void begin(comparison *c, const attune_evaluation *e) {
  const at_call_binding *p = e->prepared;
  c->e = e;
  for (int k = 0; k < p->tensors; k++) {
    const int b = e->buffer_of[k];
    c->tensors[k] = (k < p->expression->output_count ? e->after[b] : e->before[b]) - p->low[k] + p->first[k];
  }
  at_evaluation_scalars(e, c->scalars);
  c->elements = (at_elements){.expression = p->expression,
                              .layout = &p->layout,
                              .number = p->problem->number,
                              .tensors = c->tensors,
                              .scalars = c->scalars};
}

attune_status attune_evaluation_check(attune_evaluation *e, attune_tuner *tuner, int64_t most,
                                      attune_evaluation_errors *out) {
  if (!e || !tuner || !out)
    return AT_INVALID("%s is NULL; should be given", !e ? "evaluation" : !tuner ? "tuner" : "out");
  if (!e->stream) return AT_INVALID("the evaluation has no memory; call attune_evaluation_place first");
  memset(out, 0, sizeof *out);
  comparison *c = calloc(1, sizeof *c);
  if (!c) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to compare results");
  const at_floating floating = at_floating_enter();
  e->checked = false;
  attune_status status = run(e, tuner);
  if (status == ATTUNE_OK) {
    begin(c, e);
    c->out = out;
    out->elements = e->prepared->layout.count;
    if (e->generator) (void)attune_generator_get_seed(e->generator, &c->elements.draws.seed);
    look_at_all(c, most);
    e->checked = true;
  }
  at_floating_leave(&floating);
  free(c);
  return status;
}

/* ---- for display ---- */

/* Bytes from a tensor's data to the element of a row-major number of the whole shape. */
static int64_t place_of(const attune_tensor *t, const attune_tensor *whole, int64_t index) {
  int64_t at = 0, packed = 1;
  for (int d = whole->dims - 1, own = t->dims - 1; d >= 0; d--, own--) {
    const int64_t i = index % whole->sizes[d];
    index /= whole->sizes[d];
    if (own < 0) break;
    if (t->sizes[own] != 1) at += i * (t->strides ? t->strides[own] : packed);
    packed *= t->sizes[own];
  }
  return at * (int64_t)attune_dtype_size(t->dtype);
}

attune_status attune_evaluation_element(const attune_evaluation *e, int tensor, int64_t index, attune_scalar *out) {
  if (!e || !out) return AT_INVALID("%s is NULL; should be given", e ? "out" : "evaluation");
  const at_call_binding *p = e->prepared;
  if (!e->checked) return AT_INVALID("there are no results yet; call attune_evaluation_check first");
  if (tensor < 0 || tensor >= p->tensors)
    return AT_INVALID("tensor is %d; should be 0 to %d, outputs first", tensor, p->tensors - 1);
  if (index < 0 || index >= p->layout.count)
    return AT_INVALID("index is %lld; should be 0 to %lld", (long long)index, (long long)p->layout.count - 1);
  const int outputs = p->expression->output_count;
  int k = tensor; /* in the expression's order */
  for (int i = 0; i < p->expression->input_count && tensor >= outputs; i++)
    if (p->input_of[i] == tensor - outputs) k = outputs + i;
  const attune_tensor *t = tensor < outputs ? &e->spec.outputs[tensor] : &e->spec.inputs[tensor - outputs];
  const int b = e->buffer_of[k];
  const char *memory = (tensor < outputs ? e->after[b] : e->before[b]) - p->low[k];
  const at_wide_value x = at_wide_value_load(t->dtype, memory + place_of(t, &e->spec.outputs[0], index));
  const at_dtype_kind kind = at_dtype_kind_of(t->dtype);
  *out = (attune_scalar){.kind = t->dtype == ATTUNE_BOOL    ? ATTUNE_BOOL
                                 : at_dtype_whole(t->dtype) ? ATTUNE_I64
                                 : kind == AT_KIND_COMPLEX  ? ATTUNE_C128
                                                            : ATTUNE_F64,
                         .value = (double)x.re,
                         .imaginary = (double)x.im,
                         .integer = x.integer};
  return ATTUNE_OK;
}
