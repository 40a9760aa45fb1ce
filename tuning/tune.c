/* SPDX-License-Identifier: Apache-2.0
 * tune.c: one problem's tuning from start to commit: one at a time a device in the process, one a problem among
 * processes. */
#include "tuning/tune.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/host/threads.h"
#include "tuning/search.h"

enum { LEASE_MS = 60000, COMMIT_WAIT_MS = 5000, POLL_MS = 5 };

/* One search at a time on a device, whatever the tuner: two would disturb each other's times. */
static pthread_mutex_t device_lock[AT_MAX_DEVICES];
static pthread_once_t device_lock_once = PTHREAD_ONCE_INIT;
static void device_lock_init(void) {
  for (int i = 0; i < AT_MAX_DEVICES; i++) pthread_mutex_init(&device_lock[i], NULL);
}

typedef struct job {
  attune_tuner *tuner;
  const at_op *op;
  const void *problem;
  attune_device *device;
  const char *fingerprint;
  double budget_ns; /* 0: the problem's own */
  double most_ns;   /* what is left of the tuner's whole budget; 0: no limit */
  bool force;
  bool leased;
} job;

/* The winner so far, in this tuner or in a database. */
static bool incumbent(const job *j, attune_decision *out) {
  at_key key = {{0}};
  memcpy(at_key_problem(&key), j->problem, AT_PROBLEM_BYTES);
  at_key_set(&key, j->op, j->device);
  if (at_plan_table_decision(&j->tuner->plans, &key, out) && out->source > ATTUNE_SOURCE_NEIGHBOUR) return true;
  return at_find_winner(j->tuner, j->op, j->problem, j->device, out, NULL) == ATTUNE_OK;
}

/* A winner that needs no measuring. */
static bool known(const job *j, attune_decision *out) {
  return incumbent(j, out) && at_evidence(out) == AT_EVIDENCE_FULL;
}

/* Among processes, one tunes and the others wait for its winner, twice as long as they would tune themselves; then they
 * tune after all. */
static bool other_process_won(job *j, attune_decision *out) {
  at_store *store = j->tuner->user;
  if (!store) return false;
  const int64_t give_up_ns = at_now_ns() + (int64_t)(1e9 + 2.0 * (j->budget_ns > 0.0 ? j->budget_ns : 1e9));
  while (at_store_lease_acquire(store, j->fingerprint, out->problem, LEASE_MS) == ATTUNE_BUSY) {
    attune_decision found;
    if (!j->force && at_find_winner(j->tuner, j->op, j->problem, j->device, &found, NULL) == ATTUNE_OK) {
      *out = found;
      return true;
    }
    if (at_now_ns() > give_up_ns) return false;
    nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
  }
  j->leased = true;
  attune_decision found; /* it may have been committed just before the lease was free */
  if (j->force || at_find_winner(j->tuner, j->op, j->problem, j->device, &found, NULL) != ATTUNE_OK ||
      at_evidence(&found) != AT_EVIDENCE_FULL)
    return false;
  *out = found;
  return true;
}

static attune_status profiler_of(const job *j, at_profiler **out) {
  at_profiler **slot = &j->tuner->profilers[j->device->index];
  const attune_status status = *slot ? ATTUNE_OK : at_profiler_create(slot, j->device);
  *out = *slot;
  return status;
}

/* The database has a winner that only holds where more threads are than here: what was found with fewer is no reason to
 * lose it. */
static bool needs_more_threads(const job *j, const attune_decision *winner) {
  attune_decision row;
  at_configuration configuration;
  int64_t threads = 1;
  return j->device->properties.kind == ATTUNE_DEVICE_HOST && !j->force &&
         at_store_find(j->tuner->user, j->fingerprint, winner->problem, winner->measure, &row) == ATTUNE_OK &&
         at_copy_text(configuration.text, sizeof configuration.text, row.configuration) &&
         at_configuration_get(&configuration, "threads", &threads) && threads > at_cpu_count();
}

static void commit(const job *j, const at_search_result *result, const attune_decision *winner) {
  char family[AT_FAMILY_CHARS];
  if (!j->tuner->user || j->op->family(j->problem, family, sizeof family) != ATTUNE_OK) return;
  if (needs_more_threads(j, winner)) {
    at_log(ATTUNE_LOG_INFO, "the winner of %s is kept in memory: the database's needs more than the %d threads of here",
           winner->problem, at_cpu_count());
    return;
  }
  const attune_status status =
      at_store_put(j->tuner->user, j->fingerprint, family, winner, result->trials, result->trial_count, COMMIT_WAIT_MS);
  at_tuner_database_is(j->tuner, status);
  if (status != ATTUNE_OK)
    at_log(ATTUNE_LOG_WARNING, "the winner of %s is kept in memory only: %s", winner->problem, attune_last_message());
}

/* Under the device's lock. */
static attune_status measure_problem(const job *j, const attune_decision *before, at_search_result *result,
                                     attune_decision *out) {
  at_profiler *profiler = NULL;
  const attune_measure measure = at_tuner_measure(j->tuner, j->device);
  attune_status status = profiler_of(j, &profiler);
  const int64_t start_ns = at_now_ns(); /* making the first profiler is no part of a budget */
  if (status == ATTUNE_OK)
    status = at_search_again(result, profiler, j->op, j->problem, measure, j->budget_ns, j->most_ns, before);
  atomic_fetch_add(&j->tuner->spent_ns, at_now_ns() - start_ns);
  if (status != ATTUNE_OK) return status;
  const attune_decision head = *out;
  *out = result->decision;
  memcpy(out->problem, head.problem, sizeof out->problem);
  memcpy(out->device, head.device, sizeof out->device);
  memcpy(out->measure, head.measure, sizeof out->measure);
  out->source = ATTUNE_SOURCE_TUNED;
  out->tuned_at = (int64_t)time(NULL);
  return ATTUNE_OK;
}

/* Weaker evidence does not replace stronger: then *out becomes the winner so far, and says why. */
static bool stays(const attune_decision *before, attune_decision *out) {
  char note[sizeof out->note];
  if (!at_evidence_weaker(out, before)) return false;
  snprintf(note, sizeof note, "stays: measured anew, but %s",
           !out->complete ? "the budget ended first"
           : out->unsure  ? "noise left the choice open"
                          : "with a larger error");
  *out = *before;
  at_copy_text(out->note, sizeof out->note, note);
  return true;
}

/* The winner is what calls use from now on. */
static void publish(const job *j, const attune_decision *winner) {
  at_key key = {{0}};
  at_plan *plan = NULL;
  memcpy(at_key_problem(&key), j->problem, AT_PROBLEM_BYTES);
  at_key_set(&key, j->op, j->device);
  if (at_plan_of_decision(j->op, j->problem, j->device, winner, &plan) == ATTUNE_OK)
    at_plan_table_put(&j->tuner->plans, &key, &plan, winner, false);
}

/* What is left of the tuner's whole budget bounds the problem's. */
static attune_status bound_budget(job *j) {
  if (j->budget_ns <= 0.0) j->budget_ns = j->tuner->budget_ns;
  if (j->tuner->total_budget_ns <= 0.0) return ATTUNE_OK;
  j->most_ns = j->tuner->total_budget_ns - (double)atomic_load(&j->tuner->spent_ns);
  if (j->most_ns <= 0.0)
    return at_fail(ATTUNE_BUDGET_EXHAUSTED, "the tuner's total budget of %.0f ms is spent",
                   j->tuner->total_budget_ns * 1e-6);
  return ATTUNE_OK;
}

attune_status at_tune_problem(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                              double budget_ns, bool force, attune_decision *out) {
  job j = {.tuner = tuner, .op = op, .problem = problem, .device = device, .budget_ns = budget_ns, .force = force};
  at_search_result result = {.warning = ""};
  attune_status status = at_tuner_fingerprint(tuner, device, &j.fingerprint);
  if (status != ATTUNE_OK) return status;
  if (!force && known(&j, out)) return ATTUNE_OK;
  pthread_once(&device_lock_once, device_lock_init);
  pthread_mutex_lock(&device_lock[device->index]);
  bool measured = false;
  if (force || !known(&j, out)) { /* another thread may have tuned it meanwhile */
    status = bound_budget(&j);
    if (status == ATTUNE_OK) status = at_decision_begin(tuner, op, problem, device, out);
    if (status == ATTUNE_OK && !other_process_won(&j, out)) {
      attune_decision before;
      const bool had = incumbent(&j, &before);
      status = measure_problem(&j, had ? &before : NULL, &result, out);
      measured = status == ATTUNE_OK;
      if (measured && had && stays(&before, out)) measured = false;
      if (status == ATTUNE_OK) publish(&j, out);
    }
  }
  pthread_mutex_unlock(&device_lock[device->index]);
  if (measured) commit(&j, &result, out);
  if (j.leased) at_store_lease_release(tuner->user, j.fingerprint, out->problem);
  if (result.warning[0]) at_log(ATTUNE_LOG_WARNING, "a candidate was refused: %s", result.warning);
  return status;
}

attune_status attune_tune(attune_tuner *tuner, attune_device *device, const char *problem, double budget_ms, int force,
                          attune_decision *out) {
  if (!tuner || !device || !problem)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", !tuner ? "tuner" : !device ? "device" : "problem");
  uint64_t bytes[AT_PROBLEM_BYTES / 8] = {0};
  attune_decision decision;
  const at_op *op = at_tuner_op(tuner, problem);
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  attune_status status = op->parse(problem, bytes);
  if (status == ATTUNE_OK && op->fold) op->fold(bytes, device);
  if (status == ATTUNE_OK)
    status = at_tune_problem(tuner, op, bytes, device, budget_ms > 0.0 ? budget_ms * 1e6 : 0.0, force != 0, &decision);
  if (status == ATTUNE_OK && out) *out = decision;
  return status;
}
