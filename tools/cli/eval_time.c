/* SPDX-License-Identifier: Apache-2.0
 * eval_time.c: times of an expression's call and of a plain copy, in turns, so that both see the same machine. As the
 * tuner measures: on CUDA cold, with operands that rotate over more than twice the cache, and replayed as a graph; on
 * the host hot, by plain calls. */
#include "tools/cli/eval.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_SETS = 64, MOST_CALLS = 1024, ROUNDS = 15, LEAST_ROUNDS = 3 };
static const double ROUND_NS = 2e6, ALL_NS = 4e9;

/* Work of one kind: calls number 0, 1, 2 ... go over the sets in turn. */
typedef struct work {
  attune_status (*call)(void *user, attune_stream *stream, int number);
  void *user;
  int calls; /* of one round */
  attune_graph *graph;
  attune_event *start, *stop;
  double ns[ROUNDS];
} work;

typedef struct timing {
  attune_tuner *tuner;
  attune_device *device;
  attune_stream *stream;
  const char *expression;
  attune_evaluation *sets[MOST_SETS]; /* the first one is the caller's */
  void *copies[MOST_SETS];            /* from the first half of each to the second */
  size_t half;
  int set_count;
  work call, copy;
} timing;

static attune_status call_expression(void *user, attune_stream *stream, int number) {
  const timing *t = user;
  return attune_elementwise(t->tuner, stream, t->expression,
                            attune_evaluation_operands(t->sets[number % t->set_count]));
}

static attune_status call_copy(void *user, attune_stream *stream, int number) {
  const timing *t = user;
  char *from = t->copies[number % t->set_count];
  return attune_copy(stream, from + t->half, from, t->half);
}

/* ---- sets of operands ---- */

/* How many are needed so that a call finds nothing of its operands in the cache; 1 where they shall stay there. */
static int sets_wanted(const timing *t, uint64_t bytes) {
  attune_device_properties p = {0};
  if (attune_device_get_properties(t->device, &p) != ATTUNE_OK || p.kind == ATTUNE_DEVICE_HOST) return 1;
  const uint64_t wanted = 2 * p.cache_bytes / (bytes ? bytes : 1) + 1;
  return wanted < MOST_SETS ? (int)wanted : MOST_SETS;
}

static attune_status add_set(timing *t, const attune_elementwise_words *words, uint64_t seed) {
  attune_status status = ATTUNE_OK;
  const int i = t->set_count;
  if (i > 0) {
    status = attune_evaluation_create(&t->sets[i], words);
    if (status == ATTUNE_OK) status = attune_evaluation_place(t->sets[i], t->stream, seed + (uint64_t)i);
  }
  if (status == ATTUNE_OK) status = attune_alloc(&t->copies[i], t->stream, 2 * t->half);
  if (status == ATTUNE_OK) status = attune_fill(t->stream, t->copies[i], 1, 2 * t->half);
  if (status == ATTUNE_OK) t->set_count++;
  return status;
}

static void release(timing *t) {
  (void)attune_stream_synchronize(t->stream);
  for (int i = 0; i < MOST_SETS; i++) {
    if (i > 0) attune_evaluation_destroy(t->sets[i]);
    if (t->copies[i]) (void)attune_free(t->copies[i], t->stream);
  }
  work *const works[] = {&t->call, &t->copy};
  for (int i = 0; i < 2; i++) {
    attune_graph_destroy(works[i]->graph);
    attune_event_destroy(works[i]->start);
    attune_event_destroy(works[i]->stop);
  }
}

/* ---- rounds ---- */

static attune_status give(void *user, attune_stream *stream) {
  const work *w = user;
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < w->calls && status == ATTUNE_OK; i++) status = w->call(w->user, stream, i);
  return status;
}

static attune_status time_round(work *w, attune_stream *stream, double *out_ns) {
  attune_status status = attune_event_record(w->start, stream);
  if (status == ATTUNE_OK) status = w->graph ? attune_graph_replay(w->graph, stream) : give(w, stream);
  if (status == ATTUNE_OK) status = attune_event_record(w->stop, stream);
  if (status == ATTUNE_OK) status = attune_event_synchronize(w->stop);
  double ns = 0;
  if (status == ATTUNE_OK) status = attune_event_elapsed_ns(&ns, w->start, w->stop);
  *out_ns = ns / w->calls;
  return status;
}

/* As many calls as take about a round, once the first have run. */
static attune_status warm_up(timing *t, work *w) {
  double ns = 0;
  attune_status status = attune_event_create(&w->start, t->device, NULL);
  if (status == ATTUNE_OK) status = attune_event_create(&w->stop, t->device, NULL);
  for (int i = 0; i < t->set_count && status == ATTUNE_OK; i++) status = w->call(w->user, t->stream, i);
  w->calls = 1;
  for (int i = 0; i < 4 && status == ATTUNE_OK; i++) {
    status = time_round(w, t->stream, &ns);
    const double calls = ns > 0 ? ROUND_NS / ns : MOST_CALLS;
    const int wanted = calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
    if (wanted <= w->calls) break;
    w->calls = wanted < 32 * w->calls ? wanted : 32 * w->calls;
  }
  return status;
}

/* Where a graph cannot be made the calls are plain ones. */
static bool capture(timing *t, work *w) {
  attune_status status = attune_graph_create(&w->graph, t->device);
  for (int i = 0; i < t->set_count && status == ATTUNE_OK && w == &t->call; i++) {
    attune_generator *generator = attune_evaluation_operands(t->sets[i])->generator;
    if (generator) status = attune_graph_register_generator(w->graph, generator);
  }
  if (status == ATTUNE_OK) status = attune_graph_capture_callback(w->graph, t->stream, NULL, give, w);
  if (status == ATTUNE_OK) return true;
  attune_graph_destroy(w->graph);
  w->graph = NULL;
  return false;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(double *ns, int count) {
  qsort(ns, (size_t)count, sizeof *ns, compare);
  return count % 2 ? ns[count / 2] : 0.5 * (ns[count / 2 - 1] + ns[count / 2]);
}

static attune_status take_turns(timing *t, eval_times *out) {
  double spent = 0;
  attune_status status = ATTUNE_OK;
  int done = 0;
  for (; done < ROUNDS && status == ATTUNE_OK && (done < LEAST_ROUNDS || spent < ALL_NS); done++) {
    work *const works[] = {&t->call, &t->copy};
    for (int i = 0; i < 2 && status == ATTUNE_OK; i++) {
      work *w = works[(i + done) % 2];
      status = time_round(w, t->stream, &w->ns[done]);
      spent += w->ns[done] * w->calls;
    }
  }
  if (status != ATTUNE_OK) return status;
  out->rounds = done;
  out->call_ns = median(t->call.ns, done);
  out->copy_ns = t->half ? median(t->copy.ns, done) : 0;
  out->copy_bytes = 2.0 * (double)t->half;
  return ATTUNE_OK;
}

static attune_status measure(timing *t, eval_times *out, const attune_elementwise_words *words, uint64_t seed) {
  const int wanted = sets_wanted(t, attune_evaluation_bytes(t->sets[0]));
  attune_status status = add_set(t, words, seed);
  while (status == ATTUNE_OK && t->set_count < wanted && add_set(t, words, seed) == ATTUNE_OK) continue;
  if (status == ATTUNE_OK) status = warm_up(t, &t->call);
  if (status == ATTUNE_OK) status = warm_up(t, &t->copy);
  if (status != ATTUNE_OK) return status;
  attune_device_properties p = {0};
  const bool cuda = attune_device_get_properties(t->device, &p) == ATTUNE_OK && p.kind == ATTUNE_DEVICE_CUDA;
  const bool graph = cuda && capture(t, &t->call) && capture(t, &t->copy);
  if (!graph) {
    attune_graph_destroy(t->call.graph);
    t->call.graph = NULL;
  }
  out->measure = graph ? "cold,graph" : cuda ? "cold,eager" : "hot,eager";
  return take_turns(t, out);
}

attune_status eval_time(eval_times *out, attune_tuner *tuner, attune_stream *stream,
                        const attune_elementwise_words *words, attune_evaluation *evaluation, uint64_t seed) {
  timing *t = cli_alloc(1, sizeof *t);
  *out = (eval_times){.measure = ""};
  *t = (timing){.tuner = tuner,
                .device = attune_stream_device(stream),
                .stream = stream,
                .expression = words->expression,
                .sets = {evaluation}};
  t->half = (size_t)(attune_evaluation_bytes(evaluation) / 2);
  t->half -= t->half > 256 ? t->half % 256 : 0;
  t->call.call = call_expression;
  t->copy.call = call_copy;
  t->call.user = t->copy.user = t;
  const attune_status status = measure(t, out, words, seed);
  release(t);
  free(t);
  return status;
}
