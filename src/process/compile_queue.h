/* SPDX-License-Identifier: Apache-2.0
 * compile_queue.h: the queue of work for the compiler, and the threads that do it.
 *
 *   owner                  groups, by priority                threads, at most AT_COMPILE_THREADS in all
 *
 *   search, jit        -->  SEARCH      [group] [group]  <--+  Each serves one group at a time. Between two jobs
 *   deferred_decision  -->  DEFERRED    [group]          <--+  it moves to a group of higher priority that is short
 *   precompile         -->  PRECOMPILE  [group] [group]  <--+  of threads. It ends when no group is short of one.
 *   warm               -->  WARM        [group]          <--+
 *
 *   [group] = step(of): does the owner's next job    most: threads at once
 *
 * One lock guards the queue and what the steps of an owner share: which jobs are left, which are done. It is held for a
 * moment, and is a leaf: a step releases it while it does a job.
 * - Fork: the lock is held over it. In the child no group has a thread or waits for one; each may be started again.
 * - Exit: no further step begins on a thread of the queue, and exit() waits for those that run: the compiler's library
 *   must not be torn down under them. A nested at_compile_each goes on; its jobs ask at_exit_begun.
 * - Threads: the program's signal handlers do not run on them, and their floating-point environment is the default one
 *   (floating.h). A thread of the program that waits here is cancelled only after the call (cancel.h). */
#ifndef AT_COMPILE_QUEUE_H
#define AT_COMPILE_QUEUE_H

#include <stdbool.h>
#include <time.h>

enum { AT_COMPILE_THREADS = 256 };

/* The highest first. Threads of the two in the middle have a nice value, which they keep if they move. */
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
  /* Called under the lock: takes the next job, and does it between at_compile_unlock and at_compile_lock. Returns
   * false, without releasing the lock, when there is none now. */
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

/* Under the lock. Starts the threads that the group may have and has not: its step may have a job (again). Where the
 * queue has all its threads already, the group waits for one. Returns false if no thread starts, the group is cancelled
 * or the process ends. */
bool at_compile_start(at_compile_group *group);

/* Under the lock: does the group have a thread, or wait for one? */
bool at_compile_is_busy(at_compile_group *group);

/* Under the lock, which it releases while it waits: until a job ended or a group changed, at most until that time of
 * CLOCK_MONOTONIC (NULL: no limit). Returns false if the time is over. */
bool at_compile_wait_change(const struct timespec *until);

/* From now on no job of the group begins on a thread of the queue. Does not wait. */
void at_compile_cancel(at_compile_group *group);

/* Waits until the group is no longer busy: after at_compile_cancel, for the jobs that run. Call it before the group's
 * memory is released. */
void at_compile_wait(at_compile_group *group);

/* Calls job(of, i) for each i below `count`, on this thread and on threads of the queue, at most `threads` (and 64) at
 * once; returns when all are done, even if the process ends. A job may call it. */
void at_compile_each(at_compile_priority priority, int threads, int count, void (*job)(void *of, int i), void *of);

#endif
