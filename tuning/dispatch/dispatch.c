/* SPDX-License-Identifier: Apache-2.0
 * dispatch.c: decides what runs: stored winner, tuning, or the best guess. Whatever fails on the way is a miss, never a
 * failed call. */
#include "tuning/dispatch/dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/process/cancel.h"
#include "src/process/floating.h"
#include "src/process/limit.h"
#include "tuning/compile/deferred_decision.h"
#include "tuning/plans/guard.h"
#include "tuning/tune/tune.h"
#include "tuning/tuner/other_threads.h"
#include "tuning/workload/recording.h"

/* A neighbour's winner is a guess: it must be near (the sum of |log2| of size ratios) and have won by much. */
static const double NEIGHBOUR_DISTANCE = 0.25, NEIGHBOUR_SPEEDUP = 1.10;
enum { NEIGHBOUR_ROWS = 512 };

static const int64_t BUSY_NS = 1000000000; /* after a wait in vain: until then no other call waits */

/* Everything that a choice depends on. */
typedef struct question {
  attune_tuner *tuner;
  const at_op *op;
  const void *problem;
  attune_device *device;
  attune_mode mode;
} question;

/* Too large for the stack of a small thread. */
typedef struct nearest {
  const question *q;
  bool *uncompiled; /* NULL: kernels that must be compiled are waited for */
  double distance;
  int rows;
  attune_decision decision;
  uint64_t other[AT_PROBLEM_BYTES / 8];
  char family[AT_FAMILY_CHARS];
} nearest;

static int consider(void *user, const char *fingerprint, const attune_decision *row) {
  nearest *n = user;
  char words[AT_DIFFERENCE_CHARS];
  if (row->time_ns > 0.0 && row->default_time_ns >= NEIGHBOUR_SPEEDUP * row->time_ns &&
      n->q->op->problem->parse(row->problem, n->other) == ATTUNE_OK) {
    const double distance = n->q->op->problem->distance(n->q->problem, n->other);
    const bool older = strcmp(row->problem, n->decision.problem) == 0 && row->tuned_at < n->decision.tuned_at;
    if (distance <= n->distance && !older &&
        at_winner_difference(n->q->op, n->q->device, fingerprint, row, words, sizeof words) == 0) {
      n->distance = distance;
      n->decision = *row;
    }
  }
  return ++n->rows >= NEIGHBOUR_ROWS;
}

/* A near problem's winner that can do this problem too. */
static attune_status find_neighbour(nearest *n, attune_decision *out, at_plan **plan) {
  const attune_tuner *tuner = n->q->tuner;
  const char *fingerprint = NULL;
  if (n->q->op->problem->family(n->q->problem, n->family, sizeof n->family) != ATTUNE_OK ||
      at_tuner_fingerprint(n->q->tuner, n->q->device, &fingerprint) != ATTUNE_OK)
    return ATTUNE_NOT_FOUND;
  if (tuner->user) at_store_each_of_family(tuner->user, fingerprint, n->family, out->measure, consider, n);
  if (tuner->system) at_store_each_of_family(tuner->system, fingerprint, n->family, out->measure, consider, n);
  const attune_decision *found = &n->decision;
  if (!found->problem[0]) return ATTUNE_NOT_FOUND;
  if (n->uncompiled && at_compiles_first(n->q->op, n->q->problem, n->q->device, found)) {
    *n->uncompiled = true;
    return ATTUNE_NOT_FOUND;
  }
  AT_TRY(at_plan_of_decision(n->q->op, n->q->problem, n->q->device, found, plan));
  at_copy_text(out->implementation, sizeof out->implementation, found->implementation);
  out->implementation_version = found->implementation_version;
  at_copy_text(out->configuration, sizeof out->configuration, found->configuration);
  out->source = ATTUNE_SOURCE_NEIGHBOUR;
  snprintf(out->note, sizeof out->note, "a guess: the winner of %.100s%s", found->problem,
           strlen(found->problem) > 100 ? "..." : "");
  return ATTUNE_OK;
}

static attune_status guess_neighbour(const question *q, attune_decision *out, at_plan **plan, bool *uncompiled) {
  if ((!q->tuner->user && !q->tuner->system) || at_tuner_search(q->tuner).no_guess) return ATTUNE_NOT_FOUND;
  nearest *n = calloc(1, sizeof *n);
  if (!n) return ATTUNE_NOT_FOUND;
  n->q = q;
  n->uncompiled = uncompiled;
  n->distance = NEIGHBOUR_DISTANCE;
  const attune_status status = find_neighbour(n, out, plan);
  free(n);
  return status;
}

static attune_status guess_other_threads(const question *q, attune_decision *out, at_plan **plan) {
  if ((!q->tuner->user && !q->tuner->system) || at_tuner_search(q->tuner).no_guess) return ATTUNE_NOT_FOUND;
  attune_decision *found = malloc(sizeof *found); /* the stack may be small */
  const attune_status status =
      found ? at_guess_other_threads(q->tuner, q->op, q->problem, q->device, found, plan) : ATTUNE_NOT_FOUND;
  if (status == ATTUNE_OK) *out = *found;
  free(found);
  return status;
}

/* By a rule of an implementation; nothing is measured. */
static attune_status guess_by_rule(const question *q, attune_decision *out, at_plan **plan) {
  at_configuration configuration = {""};
  if (at_tuner_search(q->tuner).no_guess) return ATTUNE_NOT_FOUND;
  for (size_t i = 0; i < q->op->implementation_count; i++) {
    const at_implementation *one = q->op->implementations[i];
    if (!one->untuned || !at_registry_usable(one, q->problem, q->device) ||
        !one->untuned(one, q->problem, q->device, &configuration))
      continue;
    AT_TRY(at_plan_create(plan, q->op, one, &configuration, q->problem, q->device));
    at_copy_text(out->implementation, sizeof out->implementation, one->name);
    out->implementation_version = one->version;
    at_copy_text(out->configuration, sizeof out->configuration, configuration.text);
    out->source = ATTUNE_SOURCE_NEIGHBOUR;
    snprintf(out->note, sizeof out->note, "a guess: a rule for problems of these sizes");
    return ATTUNE_OK;
  }
  return ATTUNE_NOT_FOUND;
}

static attune_status guess_default(const question *q, attune_decision *out, at_plan **plan) {
  const at_implementation *base = at_registry_default(q->op, q->problem, q->device);
  if (!base) return at_registry_fail(q->op, out->problem, q->device);
  at_configuration configuration = {""};
  if (base->configurations(base, q->problem, q->device, &configuration, 1) < 1)
    return at_fail(ATTUNE_INTERNAL, "%s offers no configuration", base->name);
  at_copy_text(out->implementation, sizeof out->implementation, base->name);
  out->implementation_version = base->version;
  at_copy_text(out->configuration, sizeof out->configuration, configuration.text);
  out->source = ATTUNE_SOURCE_DEFAULT;
  snprintf(out->note, sizeof out->note, "the default: %s",
           q->mode == ATTUNE_MODE_OFF ? "mode off uses it" : "no stored winner is valid here");
  return at_plan_create(plan, q->op, base, &configuration, q->problem, q->device);
}

/* A call waited in vain for a process that measures: for a time none waits. */
static bool is_busy(const attune_tuner *tuner, const attune_device *device) {
  return at_now_ns() < atomic_load_explicit(&tuner->busy_until_ns[device->index], memory_order_relaxed);
}

/* Like is_busy, of a database that was locked. */
static bool is_locked(const attune_tuner *tuner) {
  return at_now_ns() < atomic_load_explicit(&tuner->locked_until_ns, memory_order_relaxed);
}

/* *uncompiled (NULL: it is waited for): set before, or here by a neighbour, it says that the default is only for
 * now. */
static attune_status guess(const question *q, attune_decision *out, at_plan **plan, bool *uncompiled) {
  AT_TRY(at_decision_begin(q->tuner, q->op, q->problem, q->device, out));
  const bool may = q->mode != ATTUNE_MODE_OFF && !(uncompiled && *uncompiled);
  if (may && !is_locked(q->tuner) &&
      (guess_other_threads(q, out, plan) == ATTUNE_OK || guess_neighbour(q, out, plan, uncompiled) == ATTUNE_OK))
    return ATTUNE_OK;
  if (may && !(uncompiled && *uncompiled) && guess_by_rule(q, out, plan) == ATTUNE_OK) return ATTUNE_OK;
  attune_status status = guess_default(q, out, plan);
  if (uncompiled && *uncompiled)
    snprintf(out->note, sizeof out->note, "the default, until the winner's kernel is compiled");
  return status;
}

/* On the thread of deferred_decision.h, where waiting for the compiler delays no call: the winner replaces the default.
 * What was tuned in between stays. */
static void decide_later(attune_tuner *tuner, const at_op *op, const at_key *key, attune_device *device) {
  const question q = {tuner, op, key->words + 1, device, attune_tuner_get_mode(tuner)};
  at_plan *plan = NULL;
  attune_decision *d = malloc(sizeof *d);
  if (!d) return;
  attune_status status = at_find_winner(tuner, op, q.problem, device, d, &plan);
  if (status != ATTUNE_OK) {
    status = at_decision_begin(tuner, op, q.problem, device, d);
    if (status == ATTUNE_OK) status = guess_neighbour(&q, d, &plan, NULL);
  }
  attune_decision *now = status == ATTUNE_OK ? malloc(sizeof *now) : NULL;
  const bool tuned = now && at_plan_table_decision(&tuner->plans, key, now) && now->source > ATTUNE_SOURCE_NEIGHBOUR;
  free(now);
  if (status != ATTUNE_OK && status != ATTUNE_NOT_FOUND)
    at_log(ATTUNE_LOG_WARNING, "the default stays, since a winner could not be compiled: %s", attune_last_message());
  else if (status != ATTUNE_OK || tuned || attune_tuner_get_mode(tuner) == ATTUNE_MODE_OFF)
    at_plan_destroy(plan);
  else if (at_plan_table_put(&tuner->plans, key, &plan, d, false) == ATTUNE_OK)
    at_plan_lru_release(plan);
  free(d);
}

/* Tunes and makes the winner's plan; else why it did not come to a winner. */
static attune_status tune(const question *q, attune_decision *out, at_plan **plan) {
  attune_status status = at_tune_call(q->tuner, q->op, q->problem, q->device, out);
  if (status == ATTUNE_OK) status = at_plan_of_decision(q->op, q->problem, q->device, out, plan);
  if (status != ATTUNE_OK) at_log(ATTUNE_LOG_WARNING, "not tuned: %s", attune_last_message());
  if (status == ATTUNE_BUSY) atomic_store(&q->tuner->busy_until_ns[q->device->index], at_now_ns() + BUSY_NS);
  return status;
}

/* Logs and records a problem that has its plan in the table now; `uncompiled`: only until that of its winner is
 * compiled. */
static void note(const question *q, at_plan_table *table, const at_key *key, int as, const attune_decision *decision,
                 bool uncompiled) {
  const bool guessed = decision->source <= ATTUNE_SOURCE_NEIGHBOUR && !uncompiled; /* else it has a winner */
  const bool records = q->mode == ATTUNE_MODE_RECORD;
  const char *fingerprint = NULL;
  if (q->mode == ATTUNE_MODE_OFF && q->tuner->profile) { /* it reports, perhaps at the process's end, what is stored */
    at_tuner_open(q->tuner);
    (void)at_tuner_fingerprint(q->tuner, q->device, &fingerprint);
  }
  at_plan_table_note(table, key, as, records && guessed && at_recording_first(q->tuner, q->device, decision->problem));
  if (records) at_recording_flush_sometimes(q->tuner);
  if (at_log_wanted(ATTUNE_LOG_INFO)) at_log_dispatch(q->tuner, q->op, q->problem, as, q->device, q->mode, decision);
}

/* May a call run the default while kernels are compiled? A graph would keep it. */
static bool may_run_before(const attune_tuner *tuner, attune_mode mode, attune_stream *stream) {
  return (mode == ATTUNE_MODE_CACHED || mode == ATTUNE_MODE_RECORD) &&
         atomic_load_explicit(&tuner->compile, memory_order_relaxed) == ATTUNE_COMPILE_BACKGROUND &&
         !at_stream_capturing(stream);
}

/* A decision with its plan, and how long it holds. */
typedef struct choice {
  attune_decision *decision;
  at_plan *plan;
  bool provisional; /* another call may do better: a guess is not kept */
  bool uncompiled;  /* only until the winner's kernel is compiled */
} choice;

/* The plan of an earlier decision beyond the table's bound; of a provisional one while nothing better can be had. */
static const at_plan *find_kept(attune_tuner *tuner, const at_key *key, bool provisional) {
  const at_plan *plan = at_plan_table_use_beyond(&tuner->plans, key);
  if (!plan && provisional) plan = at_plan_table_find(&tuner->captured, key);
  if (!plan && provisional) plan = at_plan_table_use_beyond(&tuner->captured, key);
  return plan;
}

static attune_status find_winner(const question *q, bool locked, choice *out, bool *uncompiled) {
  if (q->mode == ATTUNE_MODE_OFF) return ATTUNE_NOT_FOUND;
  if (locked) return ATTUNE_BUSY;
  const attune_status status =
      at_find_ready_winner(q->tuner, q->op, q->problem, q->device, out->decision, &out->plan, uncompiled);
  if (status == ATTUNE_BUSY) atomic_store(&q->tuner->locked_until_ns, at_now_ns() + BUSY_NS);
  if (status == ATTUNE_UNSUPPORTED) at_log(ATTUNE_LOG_INFO, "a stored winner is not used: %s", attune_last_message());
  return status;
}

/* The stored winner, else the one that tuning finds, else a guess. `uncompiled` is &out->uncompiled; NULL: kernels that
 * must be compiled are waited for. */
static attune_status choose(const question *q, bool locked, bool late, choice *out, bool *uncompiled) {
  attune_status status = find_winner(q, locked, out, uncompiled);
  out->provisional = late || status == ATTUNE_BUSY;
  if (status != ATTUNE_OK && q->mode == ATTUNE_MODE_TUNE && !late) {
    status = tune(q, out->decision, &out->plan);
    out->provisional = out->provisional || status == ATTUNE_BUSY;
  }
  return status == ATTUNE_OK ? status : guess(q, out->decision, &out->plan, uncompiled);
}

/* Puts the choice into its table. */
static attune_status keep(const question *q, const at_key *key, int as, choice *made, const at_plan **out) {
  const bool kept_apart = made->provisional && made->decision->source <= ATTUNE_SOURCE_NEIGHBOUR;
  at_plan_table *table = kept_apart ? &q->tuner->captured : &q->tuner->plans;
  const attune_status status = at_plan_table_put(table, key, &made->plan, made->decision, true);
  *out = made->plan;
  if (status == ATTUNE_OK) note(q, table, key, as, made->decision, made->uncompiled);
  return status;
}

static attune_status decide(attune_tuner *tuner, const at_op *op, const at_key *key, int as, attune_stream *stream,
                            bool waits, const at_plan **out) {
  const attune_mode mode = (attune_mode)atomic_load_explicit(&tuner->mode, memory_order_relaxed);
  const question q = {tuner, op, key->words + 1, stream->device, mode};
  const bool locked = mode != ATTUNE_MODE_OFF && is_locked(tuner);
  const bool late = mode == ATTUNE_MODE_TUNE && /* would tune, may not now */
                    (at_stream_capturing(stream) || is_busy(tuner, stream->device));
  if ((*out = find_kept(tuner, key, late || locked))) return ATTUNE_OK;
  choice made = {.decision = malloc(sizeof *made.decision)}; /* the stack may be small */
  if (!made.decision) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a decision");
  const bool may_run_default = !waits && may_run_before(tuner, mode, stream);
  attune_status status = choose(&q, locked, late, &made, may_run_default ? &made.uncompiled : NULL);
  if (status == ATTUNE_OK) status = keep(&q, key, as, &made, out);
  free(made.decision);
  if (status == ATTUNE_OK && made.uncompiled && !at_deferred_add(tuner, op, key, q.device, decide_later))
    at_log(ATTUNE_LOG_INFO,
           "a winner is not compiled in the background: the queue is full, or no thread could be started");
  return status;
}

static attune_status miss(attune_tuner *tuner, const at_op *op, const at_key *key, int as, attune_stream *stream,
                          bool waits, const at_plan **out) {
  const attune_status room = at_stack_check(AT_STACK_CALL, "a problem's first call");
  if (room != ATTUNE_OK) return room;
  const at_call_scope scope = at_call_enter(stream->device);
  const at_floating floating = at_floating_enter(); /* a plan outlasts the call, and so do threads of libraries */
  const attune_status status = decide(tuner, op, key, as, stream, waits, out);
  at_floating_leave(&floating);
  return at_call_leave(&scope, status);
}

attune_status at_dispatch_miss(attune_tuner *tuner, const at_op *op, const at_key *key, int as, attune_stream *stream,
                               const at_plan **out) {
  return miss(tuner, op, key, as, stream, false, out);
}

attune_status at_dispatch_kept(attune_tuner *tuner, const at_op *op, const at_key *key, int as, attune_stream *stream,
                               const at_plan **out) {
  at_deferred_wait(tuner, key);
  *out = at_plan_table_find(&tuner->plans, key);
  return *out ? ATTUNE_OK : miss(tuner, op, key, as, stream, true, out);
}

size_t attune_tuner_compiling(const attune_tuner *tuner, int wait) {
  if (!tuner) return 0;
  if (wait) at_deferred_wait(tuner, NULL);
  return at_deferred_left(tuner);
}

/* Says what has changed since a winner was measured: of one in use what is known of it, else what differs from one that
 * does not hold. */
static void tell_changes(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                         attune_decision *d) {
  if (d->source <= ATTUNE_SOURCE_NEIGHBOUR) at_why_no_winner(tuner, op, device, d, d->changed, sizeof d->changed);
  if (d->source <= ATTUNE_SOURCE_NEIGHBOUR || d->source == ATTUNE_SOURCE_TUNED) return;
  attune_decision *stored = malloc(sizeof *stored); /* the stack may be small */
  if (stored && at_weigh_winner(tuner, op, problem, device, stored) == ATTUNE_OK && stored->tuned_at == d->tuned_at)
    at_copy_text(d->changed, sizeof d->changed, stored->changed);
  free(stored);
}

static attune_status explain(attune_tuner *tuner, attune_device *device, const char *problem, attune_decision *out) {
  at_key key = {{0}};
  const at_op *op = at_tuner_op(tuner, problem);
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  AT_TRY(op->problem->parse(problem, at_key_problem(&key)));
  at_key_set(&key, op, device);
  const at_plan *used = at_plan_table_find(&tuner->plans, &key);
  if (at_plan_table_decision(&tuner->plans, &key, out)) {
    if (attune_tuner_get_mode(tuner) != ATTUNE_MODE_OFF) tell_changes(tuner, op, at_key_problem(&key), device, out);
    if (used) at_guard_tell(used, out);
    return ATTUNE_OK;
  }
  const attune_mode mode = attune_tuner_get_mode(tuner);
  if (mode != ATTUNE_MODE_OFF && at_weigh_winner(tuner, op, at_key_problem(&key), device, out) == ATTUNE_OK)
    return ATTUNE_OK;
  at_plan *plan = NULL;
  const question q = {tuner, op, at_key_problem(&key), device, mode};
  attune_status status = guess(&q, out, &plan, NULL);
  if (status == ATTUNE_OK && mode != ATTUNE_MODE_OFF) tell_changes(tuner, op, at_key_problem(&key), device, out);
  at_plan_destroy(plan);
  return status;
}

attune_status attune_explain(attune_tuner *tuner, attune_device *device, const char *problem, attune_decision *out) {
  AT_REQUIRE(tuner, device, problem, out);
  const attune_status room = at_stack_check(AT_STACK_CALL, "explaining a decision");
  if (room != ATTUNE_OK) return room;
  const at_call_scope scope = at_call_enter(NULL);
  return at_call_leave(&scope, explain(tuner, device, problem, out));
}
