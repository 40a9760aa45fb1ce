/* SPDX-License-Identifier: Apache-2.0
 * evaluation.c: a described call gets its operands. */
#include "ops/elementwise/call/evaluation.h"

#include <stdlib.h>
#include <string.h>

#include "ops/elementwise/call/call_binding.h"
#include "src/base/backend.h"
#include "src/process/floating.h"
#include "tuning/measure/operand_set.h"

enum { UNWRITTEN = 0xff };

/* ---- create ---- */

/* The buffer of each tensor, in the order of at_elementwise_buffers. */
static void find_buffers(attune_evaluation *e) {
  const at_elementwise *p = e->prepared->problem;
  int next = p->output_count;
  for (int k = 0; k < at_elementwise_tensors(p); k++) {
    int owner = k < p->output_count ? k : -1;
    for (int o = 0; o < p->output_count && owner < 0; o++)
      if (p->in_place[o] == k - p->output_count + 1) owner = o;
    e->buffer_of[k] = owner >= 0 ? owner : next++;
  }
}

static attune_status describe(attune_evaluation *e, const attune_elementwise_words *words) {
  const at_spec_words w = {.expression = e->expression,
                           .shape = words->shape,
                           .dtype = words->dtype,
                           .inputs = words->inputs,
                           .outputs = words->outputs,
                           .scalars = words->scalars,
                           .accuracy = words->accuracy};
  attune_status status = at_spec_read(&e->spec, &w);
  const at_formula formula = {.text = e->expression, .checked = true};
  if (status == ATTUNE_OK) status = at_call_binding_describe(&e->prepared, &formula, &e->spec.operands);
  if (status == ATTUNE_OK) status = at_elementwise_format(e->prepared->problem, e->problem, sizeof e->problem);
  if (status == ATTUNE_OK) status = at_elementwise_buffers(e->prepared->problem, e->buffers, &e->buffer_count);
  if (status == ATTUNE_OK) find_buffers(e);
  if (status == ATTUNE_OK && !(e->plain = at_plain_values(e->prepared->expression->plain)))
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an evaluation");
  return status;
}

/* Before there is memory, no operand has an address. */
static void forget_addresses(at_spec *s) {
  for (int i = 0; i < s->operands.output_count; i++) s->outputs[i].data = NULL;
  for (int i = 0; i < s->operands.input_count; i++) s->inputs[i].data = NULL;
}

attune_status attune_evaluation_create(attune_evaluation **out, const attune_elementwise_words *words) {
  AT_REQUIRE(out, words);
  *out = NULL;
  attune_evaluation *e = calloc(1, sizeof *e);
  if (e) e->expression = strdup(words->expression ? words->expression : "");
  const at_floating floating = at_floating_enter(); /* numbers in words are read to the nearest */
  attune_status status =
      e && e->expression ? describe(e, words) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an evaluation");
  at_floating_leave(&floating);
  if (status != ATTUNE_OK) {
    attune_evaluation_destroy(e);
    return status;
  }
  forget_addresses(&e->spec);
  *out = e;
  return ATTUNE_OK;
}

void attune_evaluation_destroy(attune_evaluation *e) {
  if (!e) return;
  for (int i = 0; i < e->buffer_count; i++) {
    if (e->before[i] != e->memory[i]) free(e->before[i]);
    if (e->after[i] != e->memory[i]) free(e->after[i]);
    if (e->memory[i]) (void)attune_free(e->memory[i], e->stream);
  }
  attune_generator_destroy(e->generator);
  at_random_destroy(e->random);
  at_call_binding_destroy(e->prepared);
  free(e->plain);
  free(e->expression);
  free(e);
}

/* ---- place ---- */

static attune_status take_memory(attune_evaluation *e, attune_stream *stream) {
  double bytes = 0.0;
  for (int i = 0; i < e->buffer_count; i++) bytes += (double)e->buffers[i].bytes;
  attune_status status = at_operand_room(stream->device, bytes < 0x1p63 ? (size_t)bytes : SIZE_MAX);
  for (int i = 0; i < e->buffer_count && status == ATTUNE_OK; i++) {
    void *memory = NULL;
    status = attune_alloc(&memory, stream, e->buffers[i].bytes);
    e->memory[i] = memory;
  }
  return status;
}

static void give_memory(attune_evaluation *e, attune_stream *stream) {
  for (int i = 0; i < e->buffer_count; i++) {
    if (e->memory[i]) (void)attune_free(e->memory[i], stream);
    e->memory[i] = NULL;
  }
}

/* Where each operand's element 0 lies: `low` bytes below it is its first byte. */
static void set_addresses(attune_evaluation *e) {
  const at_call_binding *p = e->prepared;
  const int outputs = p->expression->output_count;
  for (int k = 0; k < p->tensors; k++) {
    attune_tensor *t = k < outputs ? &e->spec.outputs[k] : &e->spec.inputs[p->input_of[k - outputs]];
    t->data = e->memory[e->buffer_of[k]] - p->low[k];
  }
}

attune_status attune_evaluation_place(attune_evaluation *e, attune_stream *stream, uint64_t seed) {
  if (!e || !stream) return AT_INVALID("%s is NULL; should be given", e ? "stream" : "evaluation");
  if (e->stream) return AT_INVALID("the evaluation already has its memory; create another one");
  const at_expression *x = e->prepared->expression;
  attune_status status = take_memory(e, stream);
  if (status == ATTUNE_OK && !e->random) status = at_random_create(&e->random, seed);
  if (status == ATTUNE_OK && !e->generator && x->uniform_count + x->normal_count > 0)
    status = attune_generator_create(&e->generator, seed);
  if (status != ATTUNE_OK) {
    give_memory(e, stream);
    return status;
  }
  e->stream = stream;
  e->spec.operands.generator = e->generator;
  set_addresses(e);
  return at_evaluation_fill(e);
}

/* One turn of the pool from a place of the buffer's own, then copies of what is there. */
static attune_status fill_input(attune_evaluation *e, int buffer) {
  const at_buffer *b = &e->buffers[buffer];
  char *to = e->memory[buffer];
  const void *pool = NULL;
  size_t all = 0, done = 0;
  attune_status status = at_random_data(e->random, b->dtype, b->range, &pool, &all);
  if (status != ATTUNE_OK) return status;
  size_t from = (size_t)buffer * 1048583u % (all / attune_dtype_size(b->dtype)) * attune_dtype_size(b->dtype);
  while (status == ATTUNE_OK && done < b->bytes) {
    size_t chunk = all - from;
    if (done >= all) chunk = done; /* the pool is there once */
    if (chunk > b->bytes - done) chunk = b->bytes - done;
    status = attune_copy(e->stream, to + done, done >= all ? to : (const char *)pool + from, chunk);
    done += chunk;
    from = 0;
  }
  return status;
}

attune_status at_evaluation_fill(attune_evaluation *e) {
  attune_status status = e->generator ? attune_generator_set_offset(e->generator, 0) : ATTUNE_OK;
  for (int i = 0; i < e->buffer_count && status == ATTUNE_OK; i++)
    status =
        e->buffers[i].input ? fill_input(e, i) : attune_fill(e->stream, e->memory[i], UNWRITTEN, e->buffers[i].bytes);
  return status == ATTUNE_OK ? attune_stream_synchronize(e->stream) : status;
}

/* ---- what it is ---- */

const char *attune_evaluation_problem(const attune_evaluation *e) {
  return e ? e->problem : NULL;
}

uint64_t attune_evaluation_bytes(const attune_evaluation *e) {
  return e ? (uint64_t)at_elementwise_op.problem->bytes(e->prepared->problem) : 0;
}

const attune_elementwise_operands *attune_evaluation_operands(const attune_evaluation *e) {
  return e ? &e->spec.operands : NULL;
}

void at_evaluation_scalars(const attune_evaluation *e, at_constant out[AT_EXPRESSION_SCALARS]) {
  const at_call_binding *p = e->prepared;
  for (int i = 0; i < p->expression->scalar_count; i++) {
    const attune_scalar *s = &e->spec.scalars[p->scalar_of[i]];
    out[i] = (at_constant){.re = s->value, .im = s->imaginary, .integer = s->integer};
  }
}
