/* SPDX-License-Identifier: Apache-2.0
 * warm.c: compiles what the stored winners need, as attune/warm.h has it. */
#include <attune/warm.h>

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/struct_size.h"
#include "src/host/threads.h"
#include "src/process/compile_queue.h"
#include "src/process/exit.h"
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
  attune_decision *room = malloc(sizeof *room);
  const at_message kept = at_message_keep();
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

/* `winner` NULL: there was no memory for it. */
static void tell(work *w, const attune_decision *winner, attune_warm_outcome outcome, double ms) {
  while (pthread_mutex_trylock(&w->telling) != 0) { /* held while fn runs, which may have called exit() */
    if (at_exit_begun()) return;
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
  }
  w->sums.compiled += outcome == ATTUNE_WARM_COMPILED;
  w->sums.there += outcome == ATTUNE_WARM_THERE;
  w->sums.failed += outcome == ATTUNE_WARM_FAILED;
  w->sums.nothing += outcome == ATTUNE_WARM_NOTHING;
  if (w->fn && winner) w->fn(w->user, winner, outcome, ms, outcome == ATTUNE_WARM_FAILED ? attune_last_message() : "");
  pthread_mutex_unlock(&w->telling);
}

static void compile_and_tell(void *of, int i) {
  work *w = of;
  attune_decision *winner = malloc(sizeof *winner); /* what fn is given */
  const int64_t start_ns = at_now_ns();
  if (winner) at_decision_give(winner, w->winners->kept[i]);
  const attune_warm_outcome outcome = winner ? compile_one(w, winner) : ATTUNE_WARM_FAILED;
  tell(w, winner, outcome, (double)(at_now_ns() - start_ns) * 1e-6);
  free(winner);
}

static void compile_all(work *w) {
  const size_t count = w->winners->count;
  const at_message message = at_message_keep();
  at_compile_each(AT_COMPILE_WARM, at_cpu_count(), count < INT_MAX ? (int)count : INT_MAX, compile_and_tell, w);
  (void)at_message_settle(&message, ATTUNE_OK);
}

attune_status attune_tuner_warm(attune_tuner *tuner, attune_device *device, const char *const *problems, size_t count,
                                attune_warm_fn fn, void *user, attune_warmed *out) {
  AT_REQUIRE(tuner, device);
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
  if (status == ATTUNE_OK) compile_all(&w);
  pthread_mutex_destroy(&w.telling);
  for (size_t i = 0; i < found.count; i++) free(found.kept[i]);
  free(found.kept);
  w.sums.ms = (double)(at_now_ns() - start_ns) * 1e-6;
  return status == ATTUNE_OK && out ? AT_GIVE(out, &w.sums) : status;
}
