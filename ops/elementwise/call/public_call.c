/* SPDX-License-Identifier: Apache-2.0
 * public_call.c: the public calls for a normalised problem: what a program would write that comes to it. */
#include <attune/elementwise_cuda.h>

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/call/call_binding.h"
#include "ops/elementwise/call/public_call.h"
#include "ops/elementwise/ir/canonical.h"
#include "ops/elementwise/ir/user_function.h"
#include "tuning/op/registry.h"

/* Where dimension d of the problem belongs in the program's shape, counted from the innermost one: where its coordinate
 * is asked for, else in the order of the element's number. */
static void place_dimensions(const at_elementwise *p, int slots[AT_DIMS], bool backward[AT_DIMS]) {
  const int tensors = at_elementwise_tensors(p);
  bool placed[AT_DIMS] = {false};
  for (int d = 0; d < p->dims; d++) backward[d] = false;
  for (int k = 0; k < p->positions; k++)
    for (int d = 0; d < p->dims; d++) {
      const int64_t stride = at_elementwise_strides(p, tensors + p->number + k)[d];
      if (stride == 0) continue;
      slots[d] = k;
      placed[d] = true;
      backward[d] = stride < 0;
    }
  int next = p->positions;
  for (int left = p->dims; left > 0; left--) {
    int best = -1;
    for (int d = 0; d < p->dims; d++) {
      if (placed[d]) continue;
      const int64_t *number = at_elementwise_strides(p, tensors);
      if (best < 0 || (p->number && llabs(number[d]) < llabs(number[best]))) best = d;
    }
    if (best < 0) return;
    placed[best] = true;
    slots[best] = next++;
    if (p->number) backward[best] = at_elementwise_strides(p, tensors)[best] < 0;
  }
}

static void write_tensor(at_written_call *w, const at_elementwise *p, int k, const int slots[AT_DIMS],
                         const bool backward[AT_DIMS], const at_elementwise_operands *o) {
  const int64_t *strides = at_elementwise_strides(p, k), size = (int64_t)attune_dtype_size((attune_dtype)p->dtypes[k]);
  attune_tensor *t = &w->tensors[k];
  char *data = o->tensors[k];
  int dims = p->positions;
  for (int d = 0; d < p->dims; d++) dims = slots[d] >= dims ? slots[d] + 1 : dims;
  *t = (attune_tensor){.dtype = (attune_dtype)p->dtypes[k], .dims = dims, .strides = w->strides[k]};
  for (int d = 0; d < dims; d++) {
    t->sizes[d] = 1;
    w->strides[k][d] = 0;
  }
  for (int d = 0; d < p->dims; d++) {
    const int at = dims - 1 - slots[d];
    const bool still = k >= p->output_count && strides[d] == 0;
    t->sizes[at] = still ? 1 : p->numbers[d];
    w->strides[k][at] = backward[d] ? -strides[d] : strides[d];
    if (backward[d]) data += strides[d] * (p->numbers[d] - 1) * size;
  }
  t->data = data;
}

attune_status at_write_call(at_written_call *w, const at_elementwise *p, const at_elementwise_operands *o) {
  int slots[AT_DIMS];
  bool backward[AT_DIMS];
  const char *body = strstr(at_elementwise_text(p), ": ");
  memset(w, 0, sizeof *w);
  w->expression = body ? body + 2 : at_elementwise_text(p);
  if (p->raw && !(w->function = at_user_function_find(strrchr(at_elementwise_text(p), ' ') + 1)))
    return at_fail(ATTUNE_UNSUPPORTED, "the problem uses a function in CUDA C whose source this process does not have; "
                                       "call attune_elementwise_cuda with it");
  place_dimensions(p, slots, backward);
  for (int k = 0; k < at_elementwise_tensors(p); k++) {
    write_tensor(w, p, k, slots, backward, o);
    if (k >= p->output_count) w->tensors[k].name = at_canonical_tensor(k - p->output_count);
  }
  static const char *const scalars[] = {"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"};
  for (int i = 0; i < p->scalar_count; i++)
    w->scalars[i] = (attune_scalar){.name = scalars[i],
                                    .kind = (attune_dtype)p->kinds[i],
                                    .value = o->scalars[i].re,
                                    .imaginary = o->scalars[i].im,
                                    .integer = o->scalars[i].integer};
  w->operands = (attune_elementwise_operands){.outputs = w->tensors,
                                              .output_count = p->output_count,
                                              .inputs = w->tensors + p->output_count,
                                              .input_count = p->input_count,
                                              .scalars = w->scalars,
                                              .scalar_count = p->scalar_count,
                                              .accuracy = (attune_accuracy)p->accuracy};
  if (at_elementwise_draws(p) == 0) return ATTUNE_OK;
  attune_status status = attune_generator_create(&w->generator, o->draws.seed);
  if (status == ATTUNE_OK) status = attune_generator_set_offset(w->generator, o->draws.offset);
  w->operands.generator = w->generator;
  return status;
}

void at_written_call_finish(at_written_call *w) {
  attune_generator_destroy(w->generator);
  at_user_function_release(w->function);
}

static attune_status make_call(attune_tuner *tuner, attune_stream *stream, const at_written_call *w) {
  const at_user_function *f = w->function;
  return f ? attune_elementwise_cuda(tuner, stream, f->own_text, f->own_name, &w->operands)
           : attune_elementwise(tuner, stream, w->expression, &w->operands);
}

/* A program's calls, written beforehand: one for each copy of the operands. */
typedef struct many_calls {
  attune_tuner *tuner;
  int copies;
  at_written_call each[];
} many_calls;

static void calls_destroy(void *calls) {
  many_calls *m = calls;
  for (int i = 0; i < m->copies; i++) at_written_call_finish(&m->each[i]);
  free(m);
}

static attune_status calls_create(void **out, attune_tuner *tuner, const void *problem, const at_bare_calls *calls) {
  many_calls *m = calloc(1, sizeof *m + (size_t)calls->copies * sizeof *m->each);
  if (!m) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the calls of %d copies", calls->copies);
  attune_status status = ATTUNE_OK;
  m->tuner = tuner;
  while (m->copies < calls->copies && status == ATTUNE_OK) {
    const int i = m->copies++;
    status = at_write_call(&m->each[i], problem, at_bare_operands(calls, i));
  }
  if (status == ATTUNE_OK)
    *out = m;
  else
    calls_destroy(m);
  return status;
}

static attune_status calls_run(void *calls, attune_stream *stream, int from, int to) {
  const many_calls *m = calls;
  attune_status status = ATTUNE_OK;
  int copy = from % m->copies;
  for (int i = from; i < to && status == ATTUNE_OK; i++) {
    status = make_call(m->tuner, stream, &m->each[copy]);
    if (++copy == m->copies) copy = 0;
  }
  return status;
}

const at_prepared_calls at_elementwise_prepared_calls = {
    .create = calls_create, .run = calls_run, .destroy = calls_destroy};
