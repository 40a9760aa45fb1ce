/* SPDX-License-Identifier: Apache-2.0
 * compile_queue.h: the queue of work for the compiler, and the threads that do it.
 *
 *   owner                          the queue                         its threads, at most AT_COMPILE_THREADS
 *
 *   candidate_build, jit_all -->  SEARCH      [group] - [group]  <-+  A thread serves one group at a time. Between
 *   deferred_decision ---------->  DEFERRED    [group]            <-+  two jobs it moves to a group of higher
 *   precompile ---------------->  PRECOMPILE  [group] - [group]  <-+  priority that is short of threads. It ends
 *   warm ---------------------->  WARM        [group]            <-+  where no group is short of one.
 *
 *   [group] = step(of): does the owner's next job    most: threads at once
 *
 * One lock guards the queue and whatever the steps of an owner share: what is left, what is done. It is held for a moment,
 * and is a leaf: a step gives it up while it does a job.
 * - Fork: the lock is held over it. In the child no group has a thread or waits for one; each may be started again.
 * - Exit: no further job begins on a thread of the queue, and exit() waits for those that run: the end of the
 *   compiler's library must not meet them.
 * - The program's signal handlers do not run on these threads, and its floating-point environment is not theirs
 *   (floating.h). Who waits here is cancelled after the call (cancel.h). */
#ifndef AT_COMPILE_QUEUE_H
#define AT_COMPILE_QUEUE_H

#include <stdbool.h>
#include <time.h>

enum { AT_COMPILE_THREADS = 256 };

/* The highest first. Threads of the two in the middle have a nice value, and keep it where they move. */
typedef enum at_compile_priority {
  AT_COMPILE_SEARCH,
  AT_COMPILE_DEFERRED,
  AT_COMPILE_PRECOMPILE,
  AT_COMPILE_WARM
} at_compile_priority;

/* The owner's memory; zeros behind `of` at first. */
typedef struct at_compile_group {
  at_compile_priority priority;
  int most; /* threads at once */
  /* Called under the lock: takes the next job, and does it between at_compile_unlock and at_compile_lock. False: there is
   * none now, and the lock was not given up. */
  bool (*step)(void *of);
  void *of;
  /* Private to compile_queue.c. */
  bool listed; /* in the queue: it may have a job to begin */
  bool cancelled;
  int threads;
  unsigned generation; /* of the process that this holds for */
  struct at_compile_group *next;
} at_compile_group;

void at_compile_lock(void);
void at_compile_unlock(void);

/* Under the lock. Gives the group the threads that it may have, also where it has some already: its step may have a job
 * again. Where all threads of the queue are taken it waits for them. False: no thread starts, the group is cancelled, or
 * the process ends. */
bool at_compile_start(at_compile_group *group);

/* Under the lock: does the group have a thread, or wait for one? */
bool at_compile_is_busy(at_compile_group *group);

/* Under the lock, which it gives up meanwhile: waits until a job ended or a group changed, no longer than `until` of
 * CLOCK_MONOTONIC (NULL: no bound). False: the time is over. */
bool at_compile_wait_change(const struct timespec *until);

/* From now on no job of the group begins on a thread of the queue. */
void at_compile_cancel(at_compile_group *group);

/* Waits until the group has no thread and waits for none: after at_compile_cancel, for the jobs that run. Before the
 * group's memory goes. */
void at_compile_wait(at_compile_group *group);

/* Calls job(of, i) for each i below `count`, on this thread and on those of the queue, on no more than `threads` of them
 * (and 64) at once; returns when all are done, also where the process ends. May be called by a job. */
void at_compile_each(at_compile_priority priority, int threads, int count, void (*job)(void *of, int i), void *of);

#endif
