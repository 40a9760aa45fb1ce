/* SPDX-License-Identifier: Apache-2.0
 * other_threads.c: the host's winner of a problem that was measured with another number of CPU threads, as a guess. */
#include "tuning/tuner/other_threads.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/threads.h"
#include "tuning/plans/guard.h"
#include "tuning/tuner/winner.h"

/* The nearest row so far. */
typedef struct nearest {
  const at_op *op;
  attune_device *device;
  double distance; /* infinity: none */
  int threads;     /* that it was measured with */
  attune_decision row;
} nearest;

static int consider(void *user, const char *fingerprint, const attune_decision *row) {
  nearest *n = user;
  char words[AT_DIFFERENCE_CHARS];
  const int there = at_fingerprint_threads(fingerprint), here = at_cpu_count();
  if (there < 1 || there == here || row->changed[0]) return 0;
  if (at_implementation_difference(n->op, n->device, fingerprint, row, words, sizeof words) > 0) return 0;
  const double distance = fabs(log2((double)there / here));
  const bool same = n->threads == there, later = same && row->tuned_at > n->row.tuned_at;
  if (!later && (same || distance > n->distance || (distance >= n->distance && there < n->threads))) return 0;
  n->distance = distance;
  n->threads = there;
  n->row = *row;
  return 0;
}

/* "threads=M" in place of "threads=N". */
static bool with_threads(at_configuration *configuration, int threads) {
  static const char KEY[] = "threads=";
  char text[AT_CONFIGURATION_CHARS];
  size_t at = 0;
  const char *word = configuration->text;
  while (strncmp(word, KEY, sizeof KEY - 1) != 0) {
    word += strcspn(word, ",");
    if (!*word++) return false;
  }
  const char *rest = word + strcspn(word, ",");
  if (!at_append(text, sizeof text, &at, "%.*s%s%d%s", (int)(word - configuration->text), configuration->text, KEY,
                 threads, rest))
    return false;
  return at_copy_text(configuration->text, sizeof configuration->text, text);
}

/* The row as it may run here: with as many threads as there are, if it has more. */
static attune_status adapt(const nearest *n, attune_decision *out) {
  at_configuration configuration;
  int64_t threads = 1;
  const int here = at_cpu_count();
  if (!at_copy_text(configuration.text, sizeof configuration.text, n->row.configuration)) return ATTUNE_NOT_FOUND;
  const bool fewer = at_configuration_get(&configuration, "threads", &threads) && threads > here;
  if (fewer && !with_threads(&configuration, here)) return ATTUNE_NOT_FOUND;
  at_copy_text(out->implementation, sizeof out->implementation, n->row.implementation);
  out->implementation_version = n->row.implementation_version;
  at_copy_text(out->configuration, sizeof out->configuration, configuration.text);
  out->source = ATTUNE_SOURCE_NEIGHBOUR;
  snprintf(out->note, sizeof out->note, "a guess: the winner that was measured with %d CPU thread%s", n->threads,
           n->threads == 1 ? "" : "s");
  return ATTUNE_OK;
}

attune_status at_find_other_threads(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                    attune_decision *out) {
  const char *fingerprint = NULL;
  at_store *const layers[] = {tuner->user, tuner->system};
  if (device->properties.kind != ATTUNE_DEVICE_HOST) return ATTUNE_NOT_FOUND;
  nearest *n = calloc(1, sizeof *n); /* the stack may be small */
  if (!n) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a stored winner");
  n->op = op;
  n->device = device;
  n->distance = HUGE_VAL;
  attune_status status = at_decision_begin(tuner, op, problem, device, out);
  if (status == ATTUNE_OK) status = at_tuner_fingerprint(tuner, device, &fingerprint);
  for (size_t i = 0; i < AT_COUNT(layers) && status == ATTUNE_OK && !n->threads; i++)
    if (layers[i]) (void)at_store_each_of_key(layers[i], fingerprint, out->problem, out->measure, consider, n);
  if (status == ATTUNE_OK && !n->threads)
    status = at_fail(ATTUNE_NOT_FOUND, "no winner for another number of threads is stored");
  if (status == ATTUNE_OK) status = adapt(n, out);
  free(n);
  return status;
}

attune_status at_guess_other_threads(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                                     attune_decision *out, at_plan **plan) {
  if (op->problem->deterministic(problem))
    return ATTUNE_NOT_FOUND; /* what runs may not change, so nothing can watch it */
  const attune_status status = at_find_other_threads(tuner, op, problem, device, out);
  return status == ATTUNE_OK ? at_plan_of_decision(op, problem, device, out, plan) : status;
}
