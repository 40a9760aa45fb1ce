/* SPDX-License-Identifier: Apache-2.0
 * host_call.c: packs a call into words, and unpacks it where it runs. */
#include "ops/elementwise/host/host_call.h"

#include <stdlib.h>
#include <string.h>

#include "src/host/host.h"
#include "src/random/generator.h"
#include "src/stream/capture.h"

/* A packed call: tensors, scalars, then the layout as in a problem. A capture keeps it with its graph, however long it
 * is. */
typedef struct packed {
  at_host_plan *plan; /* the state and the problem are the tuner's, also where the caller's plan is gone */
  const at_elementwise *problem;
  uint64_t seed, offset;
  const uint64_t *state; /* in a graph: seed and offset when it runs */
  uint64_t *longer; /* the words of a call that is too long for a queue, freed when it has run; NULL: they follow */
  uint32_t words, dims;
  uint64_t word[];
} packed;

enum {
  WORDS_BY_VALUE = (AT_HOST_ARGS_BYTES - sizeof(packed)) / sizeof(uint64_t),
  SCALAR_WORDS = sizeof(at_constant) / 8
};
_Static_assert(sizeof(at_constant) == 24, "a scalar is whole words");

attune_status at_host_plan_make(at_plan *plan, size_t bytes, at_host_fill fill) {
  at_expression *expression = NULL;
  at_host_plan *state = calloc(1, bytes);
  if (!state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  attune_status status = at_elementwise_expression(&expression, at_elementwise_of(plan->problem));
  if (status == ATTUNE_OK) status = fill(state, plan, &expression);
  at_expression_destroy(expression);
  if (status != ATTUNE_OK) {
    free(state);
    return status;
  }
  plan->state = state;
  return ATTUNE_OK;
}

void at_host_plan_destroy(at_plan *plan) {
  free(plan->state);
}

/* ---- packing ---- */

static size_t words_of(const at_elementwise *p, const at_layout *layout) {
  return (size_t)at_elementwise_tensors(p) + (size_t)p->scalar_count * SCALAR_WORDS +
         (size_t)layout->dims * (size_t)(1 + layout->operand_count) + (size_t)at_elementwise_indices(p);
}

static void pack(uint64_t *to, const at_elementwise *p, const at_elementwise_operands *o, const at_layout *layout) {
  const int tensors = at_elementwise_tensors(p);
  memcpy(to, o->tensors, (size_t)tensors * sizeof *to);
  to += tensors;
  memcpy(to, o->scalars, (size_t)p->scalar_count * sizeof *o->scalars);
  to += p->scalar_count * SCALAR_WORDS;
  for (int d = 0; d < layout->dims; d++) *to++ = (uint64_t)layout->sizes[d];
  for (int k = 0; k < layout->operand_count; k++)
    for (int d = 0; d < layout->dims; d++) *to++ = (uint64_t)layout->operands[k].strides[d];
  for (int k = tensors; k < layout->operand_count; k++) *to++ = (uint64_t)layout->operands[k].offset;
}

static void unpack_layout(at_layout *out, const at_elementwise *p, const uint64_t *from, int dims) {
  const int tensors = at_elementwise_tensors(p);
  memset(out, 0, sizeof *out);
  out->dims = dims;
  out->operand_count = at_elementwise_operand_count(p);
  out->count = 1;
  for (int d = 0; d < dims; d++) out->count *= out->sizes[d] = (int64_t)*from++;
  for (int k = 0; k < out->operand_count; k++)
    for (int d = 0; d < dims; d++) out->operands[k].strides[d] = (int64_t)*from++;
  for (int k = tensors; k < out->operand_count; k++) out->operands[k].offset = (int64_t)*from++;
  at_layout_classify(out);
}

/* ---- running ---- */

static void run_packed(const void *args) {
  const packed *call = args;
  const at_elementwise *p = call->problem;
  const uint64_t *words = call->longer ? call->longer : call->word;
  void *tensors[AT_TENSORS];
  at_constant scalars[AT_EXPRESSION_SCALARS];
  at_layout layout;
  memcpy(tensors, words, (size_t)at_elementwise_tensors(p) * sizeof *tensors);
  words += at_elementwise_tensors(p);
  memcpy(scalars, words, (size_t)p->scalar_count * sizeof *scalars);
  unpack_layout(&layout, p, words + p->scalar_count * SCALAR_WORDS, (int)call->dims);
  at_host_elements c = {.problem = p, .layout = &layout, .tensors = tensors, .scalars = scalars};
  c.draws = (at_random_draws){.seed = call->seed, .offset = call->offset};
  if (call->state) {
    c.draws.seed = call->state[0];
    c.draws.offset += call->state[1];
  }
  call->plan->run(call->plan, &c);
  free(call->longer);
}

static attune_status submit_longer(packed *call, attune_stream *stream, const at_elementwise_operands *o,
                                   const at_layout *layout) {
  const bool capturing = at_stream_capturing(stream);
  const size_t head = capturing ? sizeof *call : 0, bytes = head + call->words * sizeof *call->word;
  char *room = malloc(bytes);
  if (!room) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a call with %u words of operands", call->words);
  pack((uint64_t *)(void *)(room + head), call->problem, o, layout);
  if (!capturing) call->longer = (uint64_t *)(void *)room;
  memcpy(room, call, head);
  const attune_status status =
      at_host_submit(stream, run_packed, capturing ? (void *)room : call, capturing ? bytes : sizeof *call);
  if (status != ATTUNE_OK || capturing) free(room);
  return status;
}

static attune_status draw(packed *call, const at_elementwise_operands *o, const at_layout *layout,
                          attune_stream *stream) {
  const at_elementwise *p = call->problem;
  at_random_call taken = {0};
  call->seed = o->draws.seed;
  call->offset = o->draws.offset;
  if (!o->generator || at_elementwise_draws(p) == 0) return ATTUNE_OK;
  const uint64_t words = at_draw_words(layout->count, at_elementwise_draws(p));
  const attune_status status = at_generator_take(o->generator, stream, words, &taken);
  call->seed = taken.seed;
  call->offset = taken.offset;
  call->state = taken.state;
  return status;
}

/* At once, on the calling thread: nothing needs to be copied. */
static void run_now(const packed *call, const at_elementwise_operands *o, const at_layout *layout) {
  at_host_elements c = {.problem = call->problem, .layout = layout, .tensors = o->tensors, .scalars = o->scalars};
  c.draws = (at_random_draws){.seed = call->seed, .offset = call->offset};
  call->plan->run(call->plan, &c);
}

attune_status at_host_elements_launch(const at_plan *plan, const void *operands, attune_stream *stream) {
  const at_elementwise_operands *o = operands;
  const at_elementwise *p = at_elementwise_of(plan->problem);
  union {
    packed call;
    uint64_t room[AT_HOST_ARGS_BYTES / 8];
  } args;
  packed *call = &args.call;
  *call = (packed){.plan = plan->state, .problem = p};
  at_layout own;
  const at_layout *layout = o->layout;
  if (!layout) {
    at_elementwise_layout_of(&own, p);
    layout = &own;
  }
  AT_TRY(draw(call, o, layout, stream));
  if (at_host_inline(stream) && !call->state) {
    run_now(call, o, layout);
    return ATTUNE_OK;
  }
  call->words = (uint32_t)words_of(p, layout);
  call->dims = (uint32_t)layout->dims;
  if (call->words > WORDS_BY_VALUE) return submit_longer(call, stream, o, layout);
  pack(call->word, p, o, layout);
  return at_host_submit(stream, run_packed, call, sizeof *call + call->words * sizeof *call->word);
}
