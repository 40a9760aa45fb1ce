/* SPDX-License-Identifier: Apache-2.0
 * tune_budget.c: how `attune tune` shares a budget: first a look at every problem, the cheapest first, with half of
 * what is left for each; then rounds, first for those that it was too short for, then for all that are unfinished, by
 * calls x time, so that a problem is tuned for as long as it is worth; then for what noise left unsure, with what is
 * left. */
#include "tools/cli/tune_run.h"

#include <stdlib.h>
#include <string.h>

/* A shorter share is not worth its beginning. */
static const double LOOK_PART = 0.5, LOOK_LEAST_MS = 30.0, ROUND_LEAST_MS = 20.0;

/* A search is not begun where so many calls of the default, by an estimate that may be wrong by a few times, take
 * longer than its share; nor with a share that is hardly longer than one that was too short. */
static const double FEW_CALLS = 5.0, LONGER = 1.25;

double tune_budget_left_ms(const tune_run *run) {
  return 1e3 * (run->options->budget_s - (cli_now_s() - run->start_s));
}

static double call_ns(const tune_item *it) {
  return it->outcome == OUTCOME_TUNED && it->decision.default_time_ns > 0 ? it->decision.default_time_ns
                                                                          : it->estimate_ns;
}

static int cheapest_first(const void *left, const void *right) {
  const tune_item *a = *(tune_item *const *)left, *b = *(tune_item *const *)right;
  if (a->estimate_ns != b->estimate_ns) return a->estimate_ns < b->estimate_ns ? -1 : 1;
  return (a > b) - (a < b); /* as in the workload */
}

void tune_budget_order(tune_run *run, tune_item **items, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const attune_workload_entry *entry = items[i]->entry;
    tune_item *it = items[i];
    const attune_status status = attune_workload_estimate(&it->estimate_ns, run->tuner, run->device, entry->problem);
    if (status == ATTUNE_OUT_OF_MEMORY) {
      it->too_large = true;
      snprintf(it->message, sizeof it->message, "%s", attune_last_message());
    } else if (status != ATTUNE_OK) {
      it->estimate_ns = 0;
    }
    if (entry->time_ns > 0) it->estimate_ns = entry->time_ns;
  }
  qsort(items, count, sizeof(tune_item *), cheapest_first);
}

/* `ms`, but no less than is worth beginning, and no more than is left; -1: it is not begun. */
static double begin_with(const tune_item *it, double ms, double least_ms, double left_ms) {
  if (left_ms < ROUND_LEAST_MS) return -1;
  if (it && ms < LONGER * it->too_short_ms) ms = LONGER * it->too_short_ms;
  if (ms < least_ms) ms = least_ms;
  if (ms > left_ms) ms = left_ms;
  return it && (FEW_CALLS * call_ns(it) > 1e6 * ms || ms < LONGER * it->too_short_ms) ? -1 : ms;
}

double tune_budget_look_ms(const tune_run *run, const tune_item *it) {
  const size_t problems = run->to_measure - run->measured - run->busy;
  const double left_ms = tune_budget_left_ms(run);
  const double share = problems > 1 ? LOOK_PART * left_ms / (double)problems : left_ms;
  return begin_with(it, share, LOOK_LEAST_MS, left_ms);
}

double tune_budget_needed_ms(const tune_run *run) {
  double least_ms = 0;
  for (size_t i = 0; i < run->count; i++) {
    const tune_item *it = &run->items[i];
    double look_ms = FEW_CALLS * call_ns(it) * 1e-6;
    if (look_ms < LOOK_LEAST_MS) look_ms = LOOK_LEAST_MS;
    if (look_ms < LONGER * it->too_short_ms) look_ms = LONGER * it->too_short_ms;
    if (it->outcome == OUTCOME_LEFT && (least_ms == 0.0 || look_ms < least_ms)) least_ms = look_ms;
  }
  return least_ms;
}

bool tune_is_open(const tune_item *it) {
  return it->outcome == OUTCOME_TUNED && (it->decision.unsure || !it->decision.complete);
}

static bool is_left(const tune_item *it) {
  return it->outcome == OUTCOME_LEFT;
}

static bool is_unfinished(const tune_item *it) {
  return is_left(it) || (it->outcome == OUTCOME_TUNED && !it->decision.complete);
}

static double weight_of(const tune_item *it) {
  return (double)it->entry->count * call_ns(it);
}

static int heaviest_first(const void *left, const void *right) {
  const tune_item *a = *(tune_item *const *)left, *b = *(tune_item *const *)right;
  const double weight_a = weight_of(a), weight_b = weight_of(b);
  if (weight_a != weight_b) return weight_a < weight_b ? 1 : -1;
  return (a > b) - (a < b);
}

/* One round among some; how many of them it has finished. */
static size_t one_round(tune_run *run, tune_item **items, size_t count, bool (*wanted)(const tune_item *),
                        tune_budget_fn measure) {
  double all = 0;
  size_t finished = 0;
  for (size_t i = 0; i < count; i++) all += weight_of(items[i]);
  for (size_t i = 0; i < count && !cli_interrupted; i++) {
    const double left_ms = tune_budget_left_ms(run), weight = weight_of(items[i]);
    const double ms = begin_with(items[i], all > weight ? left_ms * weight / all : left_ms, ROUND_LEAST_MS, left_ms);
    all -= weight;
    if (ms < 0) continue;
    measure(run, items[i], ms);
    finished += !wanted(items[i]);
  }
  return finished;
}

void tune_budget_rounds(tune_run *run, tune_budget_fn measure) {
  enum { ROUNDS = 4, KINDS = 3 };
  bool (*const wanted[KINDS])(const tune_item *) = {is_left, is_unfinished, tune_is_open};
  tune_item **items = cli_alloc(run->count, sizeof *items);
  for (int kind = 0; kind < KINDS; kind++) {
    size_t finished = 1, count = 1;
    for (int round = 0; round < ROUNDS && count && !cli_interrupted; round++) {
      const bool last = !finished; /* once more with what the others did not need */
      count = 0;
      for (size_t i = 0; i < run->count; i++)
        if (wanted[kind](&run->items[i])) items[count++] = &run->items[i];
      qsort(items, count, sizeof *items, heaviest_first);
      finished = one_round(run, items, count, wanted[kind], measure);
      if (last && !finished) break;
    }
  }
  free(items);
}
