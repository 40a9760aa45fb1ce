/* SPDX-License-Identifier: Apache-2.0
 * graph_inputs.c: the memory that captured work uses, noted so that a replay after its end is refused. While a capture
 * notes, the calls tell what they use as they tell the race check (watch.h). */
#include "src/base/array.h"
#include "src/graph/graph_user_data.h"

#include "src/memory/malloc/allocation_watch.h"
#include "src/trace/instrument.h"

#include <stdlib.h>

typedef struct at_inputs {
  size_t count, room;
  at_allocation_watch *each;
} at_inputs;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `noting` and its bit of at_instrumented_bits */
static int noting;                                       /* captures that note */

static void count_noting(int by) {
  pthread_mutex_lock(&lock);
  noting += by;
  if (noting > 0)
    atomic_fetch_or(&at_instrumented_bits, AT_INSTRUMENT_INPUTS);
  else
    atomic_fetch_and(&at_instrumented_bits, ~(unsigned)AT_INSTRUMENT_INPUTS);
  pthread_mutex_unlock(&lock);
}

attune_status at_inputs_begin(at_capture *capture) {
  capture->inputs = calloc(1, sizeof *capture->inputs);
  if (!capture->inputs) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to record the inputs of a graph");
  count_noting(1);
  return ATTUNE_OK;
}

void at_inputs_free(at_inputs *inputs) {
  if (!inputs) return;
  free(inputs->each);
  free(inputs);
}

at_inputs *at_inputs_end(at_capture *capture) {
  pthread_mutex_lock(&capture->lock); /* a stream of the capture may be another thread's */
  at_inputs *inputs = capture->inputs;
  capture->inputs = NULL;
  pthread_mutex_unlock(&capture->lock);
  if (inputs) count_noting(-1);
  return inputs;
}

static bool is_known(const at_inputs *inputs, const at_allocation_watch *one) {
  for (size_t i = 0; i < inputs->count; i++)
    if (inputs->each[i].base == one->base && inputs->each[i].tag == one->tag) return true;
  return false;
}

static bool add(at_inputs *inputs, const at_allocation_watch *one) {
  if (is_known(inputs, one)) return true;
  if (!AT_ARRAY_ROOM(inputs->each, inputs->count, inputs->room)) return false;
  inputs->each[inputs->count++] = *one;
  return true;
}

void at_inputs_note(at_capture *capture, const at_operand_access *uses, int count) {
  bool good = true;
  pthread_mutex_lock(&capture->lock);
  for (int i = 0; i < count && capture->inputs; i++) {
    at_allocation_watch one;
    if (at_allocation_watch_note(&one, capture->stream->device, uses[i].data))
      good = add(capture->inputs, &one) && good;
  }
  pthread_mutex_unlock(&capture->lock);
  if (!good) (void)at_capture_break(capture, ATTUNE_OUT_OF_MEMORY, "no memory to record the inputs of the graph");
}

attune_status at_graph_adopt_inputs(attune_graph *graph, at_inputs *inputs) {
  at_graph_user_data *extra = inputs ? at_graph_user_data_of(graph) : graph->extra;
  if (!extra) {
    at_inputs_free(inputs);
    return inputs ? ATTUNE_OUT_OF_MEMORY : ATTUNE_OK;
  }
  at_inputs_free(extra->inputs);
  extra->inputs = inputs;
  return ATTUNE_OK;
}

attune_status at_graph_check_inputs(const attune_graph *graph) {
  const at_inputs *inputs = graph->extra->inputs;
  for (size_t i = 0; inputs && i < inputs->count; i++)
    if (!at_allocation_watch_check(graph->device, &inputs->each[i]))
      return AT_INVALID("the graph uses memory at %p, which was freed after its capture; keep it allocated, or capture "
                        "the work again",
                        (void *)inputs->each[i].base);
  return ATTUNE_OK;
}
