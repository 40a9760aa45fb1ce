/* SPDX-License-Identifier: Apache-2.0
 * tuners.c: see tuners.h. The list's lock is a leaf, held for a moment: the end of the process marks the tuner that it
 * is at, and who destroys that one waits. */
#include "tuning/dispatch/tuners.h"

#include <time.h>

#include "src/process/exit.h"
#include "src/process/fork.h"
#include "tuning/workload/profile_report.h"
#include "tuning/workload/recording.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and `ending` of each */
static attune_tuner *list;

static void finish(attune_tuner *tuner) {
  const at_message kept = at_message_keep();
  if (atomic_load(&tuner->mode) == ATTUNE_MODE_RECORD) at_recording_flush_last(tuner);
  at_profile_end(tuner);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

/* The tuner with the least number above `above`, marked; NULL: none. */
static attune_tuner *take_next(uint64_t above) {
  attune_tuner *next = NULL;
  pthread_mutex_lock(&list_lock);
  for (attune_tuner *tuner = list; tuner; tuner = tuner->next)
    if (tuner->id > above && (!next || tuner->id < next->id)) next = tuner;
  if (next) next->ending = true;
  pthread_mutex_unlock(&list_lock);
  return next;
}

static void at_end(void) {
  uint64_t above = 0;
  for (attune_tuner *tuner; (tuner = take_next(above)) != NULL;) {
    finish(tuner);
    above = tuner->id;
    pthread_mutex_lock(&list_lock);
    tuner->ending = false;
    pthread_mutex_unlock(&list_lock);
  }
}

/* The thread that was at a tuner's end is not in the child. */
static void after_fork(void *unused, bool child) {
  (void)unused;
  for (attune_tuner *tuner = list; child && tuner; tuner = tuner->next) tuner->ending = false;
}

static void start(void) {
  static at_fork_watch watch = {.lock = &list_lock, .after = after_fork};
  at_fork_watch_add(&watch);
  at_exit_call(at_end);
}

void at_tuners_add(attune_tuner *tuner) {
  pthread_once(&once, start);
  pthread_mutex_lock(&list_lock);
  tuner->previous = NULL;
  tuner->next = list;
  if (list) list->previous = tuner;
  list = tuner;
  pthread_mutex_unlock(&list_lock);
}

static bool unlink_tuner(attune_tuner *tuner) {
  pthread_mutex_lock(&list_lock);
  const bool free_now = !tuner->ending;
  if (free_now) {
    if (tuner->next) tuner->next->previous = tuner->previous;
    if (tuner->previous)
      tuner->previous->next = tuner->next;
    else
      list = tuner->next;
  }
  pthread_mutex_unlock(&list_lock);
  return free_now;
}

void at_tuners_remove(attune_tuner *tuner) {
  while (!unlink_tuner(tuner)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  finish(tuner);
}
