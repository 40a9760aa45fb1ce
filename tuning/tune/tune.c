/* SPDX-License-Identifier: Apache-2.0
 * tune.c: one problem's tuning from start to commit: one at a time a device, one a problem among threads and
 * processes. */
#include "tuning/tune/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/struct_size.h"
#include "src/device/device_lease.h"
#include "src/process/cancel.h"
#include "src/process/exit.h"
#include "src/process/limit.h"
#include "tuning/plans/guard.h"
#include "tuning/search/search.h"
#include "tuning/store/fingerprint.h"
#include "tuning/tune/single_flight.h"
#include "tuning/tuner/other_threads.h"

enum {
  COMMIT_WAIT_MS = 5000,
  CALL_WAIT_MS = 50, /* a call of an operation waits for another process */
  FLIGHTS_MOST = 3   /* measured again after a lease was lost */
};

/* A long wait is logged after this time, then each time after twice as long. */
static const int64_t TELL_FIRST_NS = 1000000000, TELL_MOST_NS = 60000000000;

/* Too large for the stack of a small thread. */
typedef struct room {
  at_key key;
  attune_decision head;   /* text of the problem, device, measure */
  attune_decision out;    /* the winner */
  attune_decision before; /* the one so far */
  attune_decision found;  /* in a database */
  at_search_result result;
  char family[AT_FAMILY_CHARS], fingerprint[AT_FINGERPRINT_CHARS];
} room;

typedef struct job {
  room *room;
  attune_tuner *tuner;
  const at_op *op;
  const void *problem;
  attune_device *device;
  const char *fingerprint;
  double budget_ns; /* 0: the problem's own */
  double most_ns;   /* the caller's hard limit, or what is left of the tuner's whole budget if that is less; 0: none */
  int64_t wait_until_ns; /* for others; 0: no limit */
  bool force;
  bool call;        /* a call of an operation, which waits for its result */
  bool locked;      /* the device's lock is held */
  int64_t setup_ns; /* making the first timer is no part of a budget */
  int64_t since;    /* seconds since 1970 when it began to wait for others; 0: it did not */
  at_flight flight;
} job;

/* A winner that needs no measuring: complete and sure, or another's since we began to wait. */
static bool enough(const job *j, const attune_decision *found) {
  if (found->changed[0]) return false; /* also another's, by another library: what is here is not compared yet */
  return at_evidence(found) == AT_EVIDENCE_FULL || (j->since > 0 && found->tuned_at >= j->since);
}

/* The winner so far, in this tuner or in a database. */
static bool incumbent(const job *j, attune_decision *out) {
  const bool used = at_plan_table_decision(&j->tuner->plans, &j->room->key, out) &&
                    out->source > ATTUNE_SOURCE_NEIGHBOUR && at_decision_has_threads(j->device, out);
  if (used && out->source == ATTUNE_SOURCE_TUNED) return true;
  attune_decision *stored = &j->room->found;
  if (at_weigh_winner(j->tuner, j->op, j->problem, j->device, stored) != ATTUNE_OK) return used;
  *out = *stored;
  return true;
}

/* Such a winner; the database may have a better one than this tuner knows. */
static bool known(const job *j, attune_decision *out) {
  if (incumbent(j, out) && enough(j, out)) return true;
  return at_weigh_winner(j->tuner, j->op, j->problem, j->device, out) == ATTUNE_OK && enough(j, out);
}

static bool lock_again(job *j) {
  bool waited;
  j->locked = at_tune_lock(j->device, j->wait_until_ns, &waited);
  return j->locked;
}

/* Tells that there will be a wait, and for whom: what the message says. The log is called without a lock; false: that
 * was not had again in time. */
static bool tell_wait(job *j, attune_log_level level, int64_t since_ns) {
  if (!at_log_wanted(level)) return true;
  const at_message kept = at_message_keep();
  at_tune_unlock(j->device);
  j->locked = false;
  if (level == ATTUNE_LOG_INFO)
    at_log(level, "waiting: %s", kept.text);
  else
    at_log(level, "waiting for %.0f s: %s", (double)(at_now_ns() - since_ns) * 1e-9, kept.text);
  const bool locked = lock_again(j);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return locked;
}

/* Tries until it has what another process has, until the time to wait is over, or a winner is there: then *won. Tells
 * that it waits, and again from time to time. The message names its holder. */
static attune_status wait_for(job *j, attune_status (*attempt)(job *j), attune_decision *out, bool *won) {
  const int64_t start_ns = at_now_ns();
  int64_t nap_ns = TELL_FIRST_NS;
  if (!j->since) j->since = (int64_t)time(NULL);
  for (attune_log_level level = ATTUNE_LOG_INFO;; level = ATTUNE_LOG_WARNING) {
    if (!tell_wait(j, level, start_ns)) return ATTUNE_BUSY;
    *won = !j->force && known(j, out); /* another thread may have found it while the wait was logged */
    if (*won) return ATTUNE_OK;
    j->flight.look_ns = at_now_ns() + nap_ns;
    at_tune_lock_waits(j->device, true);
    const attune_status status = attempt(j);
    at_tune_lock_waits(j->device, false);
    if (status != ATTUNE_BUSY || j->flight.ended || j->flight.lost) return status;
    nap_ns = nap_ns > TELL_MOST_NS / 2 ? TELL_MOST_NS : 2 * nap_ns;
  }
}

/* A winner in a database that needs no measuring. */
static bool others_winner(const job *j, attune_decision *out) {
  attune_decision *found = &j->room->found;
  if (j->force || at_weigh_winner(j->tuner, j->op, j->problem, j->device, found) != ATTUNE_OK) return false;
  if (!enough(j, found)) return false;
  *out = *found;
  return true;
}

static attune_status claim_once(job *j) {
  attune_status status = at_flight_claim(&j->flight);
  while (status == ATTUNE_BUSY) {
    if (at_flight_wait(&j->flight) != ATTUNE_OK) return at_flight_claim(&j->flight); /* once more, for the message */
    status = at_flight_claim(&j->flight);
  }
  return status;
}

/* One tunes and the others wait for its winner while it lives. *won: the winner is there; else, after OK, the problem
 * is ours to measure. */
static attune_status claim(job *j, attune_decision *out, bool *won) {
  attune_status status = at_flight_claim(&j->flight);
  if (status == ATTUNE_BUSY && !j->flight.at_once) status = wait_for(j, claim_once, out, won);
  *won = *won || (status == ATTUNE_OK && others_winner(j, out)); /* it may have been committed just before the claim */
  return status;
}

static attune_status turn_once(job *j) {
  return at_device_lease_acquire(j->device, at_flight_wait, &j->flight);
}

/* The device's turn among processes. *won: another thread found the winner while the wait was told. */
static attune_status take_turn(job *j, attune_decision *out, bool *won) {
  attune_status status = at_device_lease_try(j->device);
  if (status == ATTUNE_BUSY) status = wait_for(j, turn_once, out, won);
  j->flight.measures = status == ATTUNE_OK && !*won;
  return status;
}

static attune_status timer_of(const job *j, at_timer **out) {
  at_timer **slot = &j->tuner->timers[j->device->index];
  const attune_status status = *slot ? ATTUNE_OK : at_timer_create(slot, j->device);
  *out = *slot;
  return status;
}

static void commit(job *j, const attune_decision *winner) {
  const at_search_result *result = &j->room->result;
  char *family = j->room->family, *fingerprint = j->room->fingerprint;
  if (!j->tuner->user || j->op->problem->family(j->problem, family, AT_FAMILY_CHARS) != ATTUNE_OK) return;
  if (at_flight_check(&j->flight) != ATTUNE_OK) {
    at_log(ATTUNE_LOG_INFO, "the winner of %s is kept in memory only: another process is now measuring the problem",
           winner->problem);
    return;
  }
  attune_status status = at_fingerprint_whole(j->device, &j->op, 1, fingerprint, AT_FINGERPRINT_CHARS);
  if (status == ATTUNE_OK)
    status = at_store_put(j->tuner->user, fingerprint, family, winner, result->trials, result->trial_count,
                          j->call ? CALL_WAIT_MS : COMMIT_WAIT_MS);
  at_tuner_database_is(j->tuner, status);
  if (status != ATTUNE_OK)
    at_log(at_tuner_loss_level(j->tuner, status), "the winner of %s is kept in memory only: %s", winner->problem,
           attune_last_message());
}

/* Under the device's lock and lease. */
static attune_status measure_problem(job *j, const attune_decision *before, at_search_result *result,
                                     attune_decision *out) {
  at_timer *timer = NULL;
  const attune_measure measure = at_tuner_measure(j->tuner, j->device);
  const int64_t start_ns = at_now_ns();
  attune_status status = timer_of(j, &timer);
  j->setup_ns = at_now_ns() - start_ns;
  if (status != ATTUNE_OK) return status;
  timer->settings = at_tuner_search(j->tuner);
  timer->between = at_flight_renew;
  timer->between_user = &j->flight;
  status = at_search(result, timer, j->op, j->problem, measure, j->budget_ns, j->most_ns, before);
  timer->between = NULL;
  if (status == ATTUNE_OK) status = at_flight_check(&j->flight);
  if (status == ATTUNE_OK && at_exit_begun()) /* libraries were unloaded in between: the times are meaningless */
    status = at_fail(ATTUNE_DEVICE_ERROR, "the process is exiting; no more problems are tuned");
  if (status != ATTUNE_OK) return status;
  const attune_decision *head = &j->room->head;
  *out = result->decision;
  memcpy(out->problem, head->problem, sizeof out->problem);
  memcpy(out->device, head->device, sizeof out->device);
  memcpy(out->measure, head->measure, sizeof out->measure);
  out->source = ATTUNE_SOURCE_TUNED;
  out->tuned_at = (int64_t)time(NULL);
  return ATTUNE_OK;
}

/* Weaker evidence does not replace stronger: then *out becomes the winner so far, and says why. */
static bool stays(const attune_decision *before, const at_search_result *result, attune_decision *out) {
  char note[sizeof out->note];
  if (result->broken || !at_evidence_weaker(out, before, result->refuted)) return false;
  snprintf(note, sizeof note, "stays: measured again, but %s",
           !out->complete ? "the budget ended first"
           : out->unsure  ? "noise left the choice open"
                          : "with a larger error");
  *out = *before;
  at_copy_text(out->note, sizeof out->note, note);
  return true;
}

/* The winner is what calls use from now on. */
static void publish(const job *j, const attune_decision *winner) {
  at_plan *plan = NULL;
  if (at_plan_of_decision(j->op, j->problem, j->device, winner, &plan) == ATTUNE_OK &&
      at_plan_table_put(&j->tuner->plans, &j->room->key, &plan, winner, false) == ATTUNE_OK) {
    at_guard_renew(plan, winner); /* it may be the plan that there was */
    at_plan_lru_release(plan);
  }
}

/* What is left of the tuner's whole budget bounds the problem's. Less than a hundredth is nothing: a wait that ends
 * with the budget begins a little before it is counted. */
static attune_status bound_budget(job *j) {
  if (j->budget_ns <= 0.0) j->budget_ns = j->tuner->budget_ns;
  if (j->tuner->total_budget_ns <= 0.0) return ATTUNE_OK;
  const double left_ns = j->tuner->total_budget_ns - (double)atomic_load(&j->tuner->spent_ns);
  if (j->most_ns <= 0.0 || left_ns < j->most_ns) j->most_ns = left_ns;
  if (left_ns <= j->tuner->total_budget_ns * 0.01)
    return at_fail(
        ATTUNE_BUDGET_EXHAUSTED,
        "the tuner has spent its total budget of %.0f ms (options.total_budget_ms); create one with a larger budget",
        j->tuner->total_budget_ns * 1e-6);
  return ATTUNE_OK;
}

/* Until when it may wait for others: for as long as its budget, and no longer than the caller's limit and what is left
 * of the tuner's whole budget. */
static int64_t wait_until(const job *j) {
  double wait_ns = j->budget_ns > 0.0 ? j->budget_ns : j->tuner->budget_ns;
  const double call_ns = CALL_WAIT_MS * 1e6, spent_ns = (double)atomic_load(&j->tuner->spent_ns),
               left_ns = j->tuner->total_budget_ns > spent_ns ? j->tuner->total_budget_ns - spent_ns : 1.0;
  if (j->tuner->total_budget_ns > 0.0 && (wait_ns <= 0.0 || left_ns < wait_ns)) wait_ns = left_ns;
  if (j->most_ns > 0.0 && (wait_ns <= 0.0 || j->most_ns < wait_ns)) wait_ns = j->most_ns;
  if (j->call && (wait_ns <= 0.0 || call_ns < wait_ns)) wait_ns = call_ns;
  return wait_ns > 0.0 ? at_now_ns() + (int64_t)wait_ns : 0;
}

static at_flight flight_of(const job *j, bool at_once) {
  return (at_flight){.store = j->tuner->user,
                     .device = j->device,
                     .fingerprint = j->fingerprint,
                     .problem = j->room->head.problem,
                     .deadline_ns = j->wait_until_ns,
                     .at_once = at_once};
}

/* Waits for others, measures, or takes what they found. *measured: there is a new winner to commit. Under the device's
 * lock, which is not held any more where another thread waits for other processes. */
static attune_status fly_once(job *j, attune_decision *out, bool *measured) {
  at_search_result *result = &j->room->result;
  const int64_t start_ns = at_now_ns();
  bool won = false, found = false;
  j->setup_ns = 0;
  attune_status status = claim(j, out, &won);
  if (status == ATTUNE_OK && !won) status = take_turn(j, out, &won);
  if (status == ATTUNE_OK && !won && j->most_ns > 0.0) {
    j->most_ns -= (double)(at_now_ns() - start_ns);
    if (j->most_ns < 1.0) j->most_ns = 1.0;
  }
  if (status == ATTUNE_OK && !won) {
    attune_decision *before = &j->room->before;
    const bool had = incumbent(j, before);
    const bool races = had || at_find_other_threads(j->tuner, j->op, j->problem, j->device, before) == ATTUNE_OK;
    status = measure_problem(j, races ? before : NULL, result, out);
    found = status == ATTUNE_OK;
    *measured = found && !(had && stays(before, result, out));
  }
  if (j->flight.measures) at_device_lease_release(j->device);
  j->flight.measures = false;
  atomic_fetch_add(&j->tuner->spent_ns, at_now_ns() - start_ns - j->setup_ns);
  if (found || won) publish(j, out);
  return status;
}

/* What was measured before and after a gap in which another had the problem or the device says nothing, and a call has
 * no time to begin again. */
static attune_status fly(job *j, attune_decision *out, bool *measured) {
  const int64_t began = (int64_t)time(NULL);
  attune_status status = fly_once(j, out, measured);
  for (int i = 1; i < FLIGHTS_MOST && j->flight.lost && j->locked && !j->call && !at_exit_begun(); i++) {
    at_log(ATTUNE_LOG_INFO, "measured again: %s", attune_last_message());
    at_flight_end(&j->flight);
    j->flight.lost = false;
    if (!j->since) j->since = began; /* what the other has found since is as good */
    *out = j->room->head;
    memset(&j->room->result, 0, sizeof j->room->result);
    status = fly_once(j, out, measured);
  }
  return status;
}

/* Logs the problem, the time with all waiting, and the result. */
static void tell_result(const attune_decision *d, const at_search_result *result, int64_t took_ns) {
  const double *stage_ms = result->stage_ms;
  char versus[128] = "", raced[32] = "", took[AT_TIME_CHARS], time[AT_TIME_CHARS], other[AT_TIME_CHARS];
  if (!at_log_wanted(ATTUNE_LOG_INFO)) return;
  if (result->raced > 0.0) snprintf(raced, sizeof raced, " (%.3f in the race)", result->raced);
  if (d->default_time_ns > 0.0 && d->time_ns > 0.0 && !d->unsure)
    snprintf(versus, sizeof versus, ", %.3f x as fast as %s's %s%s", d->default_time_ns / d->time_ns,
             d->default_implementation, at_time_text(other, d->default_time_ns, 3), raced);
  at_log(ATTUNE_LOG_INFO,
         "tuned %s on %s in %s: %s%s%s, %s%s; %d candidates%s%s%s; of the time, in ms: open %.0f, screen %.0f, widen "
         "%.0f, race %.0f, verify %.0f, claim %.0f",
         d->problem, d->device, at_time_text(took, (double)took_ns, 0), d->implementation, *d->configuration ? " " : "",
         d->configuration, at_time_text(time, d->time_ns, 3), versus, d->candidates,
         d->complete ? "" : "; the budget ended first", *d->note ? "; " : "", d->note, stage_ms[AT_STAGE_OPEN],
         stage_ms[AT_STAGE_SCREEN], stage_ms[AT_STAGE_WIDEN], stage_ms[AT_STAGE_RACE], stage_ms[AT_STAGE_VERIFY],
         stage_ms[AT_STAGE_CLAIM]);
}

/* The winner into j->room->out. */
static attune_status tune_in_room(job *j, bool at_once) {
  attune_decision *out = &j->room->out;
  const at_search_result *result = &j->room->result;
  const int64_t start_ns = at_now_ns();
  attune_status status = at_tuner_fingerprint(j->tuner, j->device, &j->fingerprint);
  if (status != ATTUNE_OK) return status;
  at_key_make(&j->room->key, j->op, j->problem, j->device);
  if (!j->force && known(j, out)) return ATTUNE_OK;
  const int64_t now = (int64_t)time(NULL);
  bool measured = false, waited = false;
  j->wait_until_ns = wait_until(j);
  j->locked = at_tune_lock(j->device, j->wait_until_ns, &waited);
  if (waited) j->since = now;
  if (!j->locked)
    return at_fail(ATTUNE_BUSY,
                   "another thread of this process is already waiting for another process that is measuring on %s",
                   j->device->name);
  if (j->force || !known(j, out)) { /* another thread may have tuned it */
    status = bound_budget(j);
    if (status == ATTUNE_OK) status = at_decision_begin(j->tuner, j->op, j->problem, j->device, &j->room->head);
    if (status == ATTUNE_OK) {
      *out = j->room->head;
      j->flight = flight_of(j, at_once);
      status = fly(j, out, &measured);
    }
  }
  if (j->locked) at_tune_unlock(j->device);
  if (measured) commit(j, out);
  at_flight_end(&j->flight);
  if (status == ATTUNE_OK && result->decision.samples > 0) tell_result(out, result, at_now_ns() - start_ns);
  if (status == ATTUNE_BUDGET_EXHAUSTED && at_log_wanted(ATTUNE_LOG_INFO))
    at_log(ATTUNE_LOG_INFO, "left %s: %s", j->room->head.problem, attune_last_message());
  if (result->warning[0]) at_log(ATTUNE_LOG_WARNING, "a candidate was rejected: %s", result->warning);
  return status;
}

attune_status at_tune_check_stack(const attune_device *device) {
  const bool host = device->properties.kind == ATTUNE_DEVICE_HOST;
  return at_stack_check(host ? AT_STACK_TUNE : AT_STACK_TUNE_CUDA, "tuning");
}

/* `out` may be NULL. */
static attune_status tune_problem(job *j, bool at_once, attune_decision *out) {
  const attune_status enough = at_tune_check_stack(j->device);
  if (enough != ATTUNE_OK) return enough;
  j->room = malloc(sizeof *j->room);
  if (!j->room) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to tune a problem");
  memset(&j->room->result, 0, sizeof j->room->result);
  const attune_status status = tune_in_room(j, at_once);
  if (status == ATTUNE_OK && out) at_decision_give(out, &j->room->out);
  free(j->room);
  return status;
}

attune_status at_tune_problem(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                              double budget_ns, bool force, attune_decision *out) {
  job j = {.tuner = tuner, .op = op, .problem = problem, .device = device, .budget_ns = budget_ns, .force = force};
  return tune_problem(&j, false, out);
}

attune_status at_tune_call(attune_tuner *tuner, const at_op *op, const void *problem, attune_device *device,
                           attune_decision *out) {
  job j = {.tuner = tuner, .op = op, .problem = problem, .device = device, .call = true};
  return tune_problem(&j, false, out);
}

attune_status attune_tune(attune_tuner *tuner, attune_device *device, const char *problem,
                          const attune_tune_options *options, attune_decision *out) {
  attune_tune_options full, *o = &full;
  AT_REQUIRE(tuner, device, problem);
  AT_TRY(AT_TAKE(o, options));
  if (!(o->budget_ms <= 1e12))
    return AT_INVALID("budget_ms is %g; should be at most 1e12; 0 or less: the tuner's own", o->budget_ms);
  if (!(o->most_ms >= 0.0 && o->most_ms <= 1e12))
    return AT_INVALID("most_ms is %g; should be 0 to 1e12; 0: no limit", o->most_ms);
  const attune_status enough = at_tune_check_stack(device);
  if (enough != ATTUNE_OK) return enough;
  uint64_t bytes[AT_PROBLEM_BYTES / 8] = {0};
  const at_op *op = at_tuner_op(tuner, problem);
  if (!op) return ATTUNE_INVALID_ARGUMENT;
  at_tuner_open(tuner);
  const at_call_scope scope = at_call_enter(device);
  attune_status status = op->problem->parse(problem, bytes);
  if (status == ATTUNE_OK) op->problem->fold(bytes, device);
  job j = {.tuner = tuner, .op = op, .problem = bytes, .device = device, .force = o->force != 0};
  j.budget_ns = o->budget_ms > 0.0 ? o->budget_ms * 1e6 : 0.0;
  j.most_ns = o->most_ms * 1e6;
  if (status == ATTUNE_OK) status = tune_problem(&j, o->no_wait != 0, out);
  return at_call_leave(&scope, status);
}

static attune_status wait_for_turn(void *user) {
  const at_flight *flight = user;
  nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  if (at_exit_begun()) return at_fail(ATTUNE_BUSY, "the process ends");
  return at_now_ns() < flight->look_ns ? ATTUNE_OK : ATTUNE_BUSY;
}

/* Tells from time to time that it waits, as tuning does. Under the device's lock. */
static attune_status wait_to_measure(job *j) {
  const int64_t start_ns = at_now_ns();
  attune_status status = at_device_lease_try(j->device);
  for (int64_t nap_ns = TELL_FIRST_NS; status == ATTUNE_BUSY && !at_exit_begun();) {
    j->flight.look_ns = at_now_ns() + nap_ns;
    at_tune_lock_waits(j->device, true);
    status = at_device_lease_acquire(j->device, wait_for_turn, &j->flight);
    at_tune_lock_waits(j->device, false);
    if (status == ATTUNE_BUSY) (void)tell_wait(j, ATTUNE_LOG_WARNING, start_ns); /* without a deadline it locks again */
    nap_ns = nap_ns > TELL_MOST_NS / 2 ? TELL_MOST_NS : 2 * nap_ns;
  }
  j->flight.measures = status == ATTUNE_OK;
  return status;
}

attune_status at_with_timer(attune_tuner *tuner, attune_device *device,
                            attune_status (*fn)(void *user, at_timer *timer), void *user) {
  job j = {.tuner = tuner, .device = device, .flight = {.device = device, .problem = "what was stored"}};
  at_timer *timer = NULL;
  const attune_status enough = at_tune_check_stack(device);
  if (enough != ATTUNE_OK) return enough;
  (void)lock_again(&j);
  attune_status status = wait_to_measure(&j);
  if (status == ATTUNE_OK) {
    status = timer_of(&j, &timer);
    if (status == ATTUNE_OK) {
      timer->settings = at_tuner_search(tuner);
      timer->between = at_flight_renew;
      timer->between_user = &j.flight;
      status = fn(user, timer);
      timer->between = NULL;
    }
    if (status == ATTUNE_OK) status = at_flight_check(&j.flight);
    at_device_lease_release(device);
  }
  at_tune_unlock(device);
  return status;
}
