/* SPDX-License-Identifier: Apache-2.0
 * profile.h: what a tuner dispatched in this process: which problems, how often, what ran, what it took, and what
 * tuning would be worth. The environment variable ATTUNE_PROFILE writes the same without a change to the program. */
#ifndef ATTUNE_PROFILE_H
#define ATTUNE_PROFILE_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One problem on one device. Times are in nanoseconds and are estimates: calls times the stored time of one call; 0
 * where nothing is stored. The pointers are borrowed for the length of the call of attune_profile_fn. */
typedef struct attune_profile_entry {
  const char *problem;             /* as its first caller wrote it, row-major too; attune_explain reads it */
  const attune_decision *decision; /* the latest: device, what runs, where the choice comes from, one call's times */
  uint64_t calls;
  double time_ns;  /* of all calls */
  double share;    /* of the time of all problems whose time is known, 0 to 1 */
  double saved_ns; /* against the default; negative where the default would be faster */
  double worth_ns; /* what the stored winner would save, where it does not run (mode off) */
  double flops;    /* arithmetic of one call */
  int untuned;     /* nonzero: a guess or the default runs, tuning may be worth something */
} attune_profile_entry;

typedef struct attune_profile_totals {
  uint64_t calls;         /* all */
  uint64_t untuned_calls; /* of problems that run untuned */
  uint64_t unknown_calls; /* of problems whose time is not known */
  uint64_t other_calls;   /* of problems beyond the bound of those that a tuner keeps apart; no entry tells of them */
  double time_ns, saved_ns, worth_ns;
} attune_profile_totals;

#define ATTUNE_PROFILE_TOTALS_INIT \
  { 0, 0, 0, 0, 0.0, 0.0, 0.0 }

typedef int (*attune_profile_fn)(void *user, const attune_profile_entry *entry);

/* Walks the problems that calls with `tuner` dispatched so far in this process (a child of fork counts from none), those
 * that took longest first, then those whose time is not known, by calls and arithmetic. A nonzero return of `fn` (NULL:
 * no walk) ends the walk. *out_totals (may be NULL) is of all of them. Calls that return while this runs may be missing.
 * No lock is held while `fn` runs. Captured calls count once, when they are captured: replays of a graph are not seen.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_profile(attune_tuner *tuner, attune_profile_fn fn, void *user,
                                              attune_profile_totals *out_totals);

/* Writes the same as JSON to the file `path`, made anew: {"attune", "process", "tuners": [{"tuner", "mode", totals,
 * "problems": [...]}]}. ATTUNE_PROFILE=FILE.json does this when a tuner is destroyed and when the process ends, for all
 * tuners that dispatched anything, "%p" in the name standing for the process's number; ATTUNE_PROFILE=stderr prints a
 * table to standard error instead. A file that cannot be written is then a warning of the log.
 * Errors: INVALID_ARGUMENT, NOT_FOUND, PERMISSION, IO_ERROR, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_profile_write(attune_tuner *tuner, const char *path);

#ifdef __cplusplus
}
#endif
#endif
