/* SPDX-License-Identifier: Apache-2.0
 * warm.c: compiles what the stored winners need, as attune/warm.h has it. */
#include <attune/warm.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/struct_size.h"
#include "src/host/threads.h"
#include "src/process/cancel.h"
#include "src/process/floating.h"
#include "tuning/compile/precompile.h"
#include "tuning/store/decision.h"
#include "tuning/tuner/winner.h"

typedef struct winners {
  const attune_device *device;
  attune_decision **kept;
  size_t count, room;
  bool short_of_memory;
} winners;

/* Nonzero: memory is short. */
static int keep(winners *w, const attune_decision *winner) {
  if (w->count == w->room) {
    const size_t room = w->room ? 2 * w->room : 64;
    attune_decision **larger = realloc(w->kept, room * sizeof(*larger));
    w->short_of_memory = !larger;
    if (!larger) return 1;
    w->kept = larger;
    w->room = room;
  }
  attune_decision *kept = malloc(at_decision_bytes(winner));
  w->short_of_memory = !kept;
  if (!kept) return 1;
  at_decision_keep(kept, winner);
  w->kept[w->count++] = kept;
  return 0;
}

static int keep_valid(void *user, const attune_decision *winner, const char *fingerprint, int valid) {
  winners *w = user;
  (void)fingerprint;
  return valid && strcmp(winner->device, w->device->name) == 0 ? keep(w, winner) : 0;
}

/* The winner of a problem, into *room: as calls of this tuner have it, else as a database has it. */
static bool find_one(attune_tuner *tuner, attune_device *device, const char *problem, attune_decision *room) {
  at_key key = {{0}};
  const at_op *op = problem ? at_tuner_op(tuner, problem) : NULL;
  if (!op || op->problem->parse(problem, at_key_problem(&key)) != ATTUNE_OK) return false;
  at_key_set(&key, op, device);
  if (at_plan_table_decision(&tuner->plans, &key, room) && room->source > ATTUNE_SOURCE_NEIGHBOUR) return true;
  return at_weigh_winner(tuner, op, at_key_problem(&key), device, room) == ATTUNE_OK;
}

static void find_some(winners *w, attune_tuner *tuner, attune_device *device, const char *const *problems,
                      size_t count) {
  at_message kept;
  attune_decision *room = malloc(sizeof *room);
  at_message_keep(&kept);
  w->short_of_memory = !room;
  for (size_t i = 0; i < count && !w->short_of_memory; i++)
    if (find_one(tuner, device, problems[i], room)) (void)keep(w, room);
  free(room);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

typedef struct work {
  attune_tuner *tuner;
  attune_device *device;
  const winners *winners;
  attune_warm_fn fn;
  void *user;
  atomic_size_t next;
  pthread_mutex_t telling; /* guards `sums`, and one call of fn at a time */
  attune_warmed sums;
} work;

static attune_warm_outcome compile_one(const work *w, const attune_decision *winner) {
  uint64_t bytes[AT_PROBLEM_BYTES / 8] = {0};
  at_configuration configuration;
  bool made = false;
  const at_op *op = at_tuner_op(w->tuner, winner->problem);
  const at_implementation *implementation = op ? at_registry_find(op, winner->implementation, w->device) : NULL;
  if (!implementation || op->problem->parse(winner->problem, bytes) != ATTUNE_OK ||
      !at_copy_text(configuration.text, sizeof configuration.text, winner->configuration))
    return ATTUNE_WARM_FAILED;
  if (!implementation->compile) return ATTUNE_WARM_NOTHING;
  if (implementation->compile(implementation, bytes, w->device, &configuration, &made) != ATTUNE_OK)
    return ATTUNE_WARM_FAILED;
  return made ? ATTUNE_WARM_COMPILED : ATTUNE_WARM_THERE;
}

static void tell(work *w, const attune_decision *winner, attune_warm_outcome outcome, double ms) {
  pthread_mutex_lock(&w->telling);
  w->sums.compiled += outcome == ATTUNE_WARM_COMPILED;
  w->sums.there += outcome == ATTUNE_WARM_THERE;
  w->sums.failed += outcome == ATTUNE_WARM_FAILED;
  w->sums.nothing += outcome == ATTUNE_WARM_NOTHING;
  if (w->fn) w->fn(w->user, winner, outcome, ms, outcome == ATTUNE_WARM_FAILED ? attune_last_message() : "");
  pthread_mutex_unlock(&w->telling);
}

static void *compile_some(void *user) {
  work *w = user;
  at_message kept;
  attune_decision *whole = malloc(sizeof *whole); /* what fn is given */
  at_message_keep(&kept);
  for (size_t i = atomic_fetch_add(&w->next, 1); whole && i < w->winners->count; i = atomic_fetch_add(&w->next, 1)) {
    const int64_t start_ns = at_now_ns();
    at_decision_give(whole, w->winners->kept[i]);
    const attune_warm_outcome outcome = compile_one(w, whole);
    tell(w, whole, outcome, (double)(at_now_ns() - start_ns) * 1e-6);
  }
  free(whole);
  (void)at_message_settle(&kept, ATTUNE_OK);
  return NULL;
}

/* By this thread and others. Not by the pool of host/threads.h: a
 * compilation takes long, and operations of the host would run alone meanwhile. */
static void compile_all(work *w) {
  enum { HELPERS_MOST = 63 };
  pthread_t threads[HELPERS_MOST];
  const size_t cpus = (size_t)at_cpu_count(), wanted = cpus < w->winners->count ? cpus : w->winners->count;
  size_t started = 0;
  while (started + 1 < wanted && started < HELPERS_MOST && at_thread_start(&threads[started], compile_some, w) == 0)
    started++;
  (void)compile_some(w);
  for (size_t i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
}

attune_status attune_tuner_warm(attune_tuner *tuner, attune_device *device, const char *const *problems, size_t count,
                                attune_warm_fn fn, void *user, attune_warmed *out) {
  if (!tuner || !device)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be given", tuner ? "device" : "tuner");
  const int64_t start_ns = at_now_ns();
  winners found = {.device = device};
  attune_status status = out ? AT_CLEAR(out) : ATTUNE_OK;
  if (status != ATTUNE_OK) return status;
  at_tuner_open(tuner);
  if (problems)
    find_some(&found, tuner, device, problems, count);
  else
    status = attune_tuner_winners(tuner, keep_valid, &found);
  if (status == ATTUNE_OK && found.short_of_memory)
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the stored winners");
  work w = {.tuner = tuner, .device = device, .winners = &found, .fn = fn, .user = user};
  pthread_mutex_init(&w.telling, NULL);
  const int cancel = at_cancel_hold(); /* threads have what is on this stack */
  if (status == ATTUNE_OK) compile_all(&w);
  at_cancel_let(cancel);
  pthread_mutex_destroy(&w.telling);
  for (size_t i = 0; i < found.count; i++) free(found.kept[i]);
  free(found.kept);
  w.sums.ms = (double)(at_now_ns() - start_ns) * 1e-6;
  return status == ATTUNE_OK && out ? AT_GIVE(out, &w.sums) : status;
}
