/* SPDX-License-Identifier: Apache-2.0
 * tune_deferred.c: tunes afterwards what was only guessed at because its call lay in a capture. */
#include "tuning/tune/tune.h"

#include <stdlib.h>

#include "src/process/cancel.h"

/* The keys of the guesses, the earliest last. Entries are never taken out, so those of one look are enough. */
static attune_status list_keys(at_plan_table *table, const at_key ***out, size_t *out_count) {
  size_t count = 0;
  pthread_mutex_lock(&table->lock);
  const at_key **keys = malloc((table->count + 1) * sizeof *keys);
  for (const at_plan_entry *entry = table->entries; keys && entry; entry = entry->next)
    keys[count++] = at_plan_entry_key(entry);
  pthread_mutex_unlock(&table->lock);
  *out = keys;
  *out_count = count;
  return keys ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the list of problems to tune");
}

static bool has_winner(attune_tuner *tuner, const at_key *key) {
  attune_decision *decision = malloc(sizeof *decision); /* the stack may be small */
  const bool is =
      decision && at_plan_table_decision(&tuner->plans, key, decision) && decision->source > ATTUNE_SOURCE_NEIGHBOUR;
  free(decision);
  return is;
}

static attune_status tune_key(attune_tuner *tuner, const at_key *key, double budget_ns) {
  attune_device *device = NULL;
  const at_op *op = at_tuner_op_of(tuner, key);
  attune_status status =
      op ? attune_device_at(&device, at_key_device(key)) : at_fail(ATTUNE_INTERNAL, "a plan without an operation");
  return status == ATTUNE_OK ? at_tune_problem(tuner, op, key->words + 1, device, budget_ns, false, NULL) : status;
}

static attune_status tune_pending(attune_tuner *tuner, double budget_ms, int *out_tuned) {
  if (out_tuned) *out_tuned = 0;
  AT_REQUIRE_AS(tuner, "be a tuner from attune_tuner_create");
  if (!(budget_ms <= 1e12)) return AT_INVALID("budget_ms is %g; should be a number of milliseconds, or 0", budget_ms);
  const at_key **keys = NULL;
  size_t count = 0;
  attune_status status = list_keys(&tuner->captured, &keys, &count);
  const int64_t start_ns = at_now_ns();
  for (; status == ATTUNE_OK && count > 0; count--) {
    const at_key *key = keys[count - 1];
    if (has_winner(tuner, key)) continue;
    const double left_ns = budget_ms > 0.0 ? budget_ms * 1e6 - (double)(at_now_ns() - start_ns) : 0.0;
    if (left_ns < 0.0) {
      status =
          at_fail(ATTUNE_BUDGET_EXHAUSTED,
                  "the budget of %g ms ended before every problem was tuned; call again to tune the rest", budget_ms);
      break;
    }
    status = tune_key(tuner, key, left_ns);
    if (status == ATTUNE_OK && out_tuned) ++*out_tuned;
  }
  free((void *)keys);
  return status;
}

attune_status attune_tuner_tune_pending(attune_tuner *tuner, double budget_ms, int *out_tuned) {
  const at_call_scope scope = at_call_enter(NULL);
  return at_call_leave(&scope, tune_pending(tuner, budget_ms, out_tuned));
}
