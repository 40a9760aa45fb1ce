/* SPDX-License-Identifier: Apache-2.0
 * profile.h: the problems that a tuner ran in this process: how often, with which implementation, for how long, and
 * what tuning would save. The environment variable ATTUNE_PROFILE writes this profile without a change to the
 * program. */
#ifndef ATTUNE_PROFILE_H
#define ATTUNE_PROFILE_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One problem on one device. Times are estimates in nanoseconds: the number of calls times the stored time of one call;
 * 0 if none is stored. The pointers are valid only during the callback. */
typedef struct attune_profile_entry {
  const char *problem;             /* as its first caller wrote it, even row-major; attune_explain accepts it */
  const attune_decision *decision; /* the latest: device, implementation, source, times of one call */
  uint64_t calls;
  double time_ns;  /* of all calls */
  double share;    /* of the total time of all problems whose time is known, 0 to 1 */
  double saved_ns; /* compared with the default; negative if the default would be faster */
  double worth_ns; /* saving of the stored winner if it ran (in mode off it does not) */
  double flops;    /* arithmetic of one call */
  int untuned;     /* nonzero: a guess or the default runs, so tuning may save time */
} attune_profile_entry;

/* Totals over all problems of a tuner. */
typedef struct attune_profile_totals {
  size_t size;            /* sizeof this struct, or 0 (types.h) */
  uint64_t calls;         /* all */
  uint64_t untuned_calls; /* of untuned problems */
  uint64_t unknown_calls; /* of problems of unknown time */
  uint64_t other_calls;   /* of problems beyond the number that a tuner counts individually; they have no entry */
  double time_ns, saved_ns, worth_ns;
} attune_profile_totals;

/* All zeros but for the size. */
#define ATTUNE_PROFILE_TOTALS_INIT \
  { sizeof(attune_profile_totals), 0, 0, 0, 0, 0.0, 0.0, 0.0 }

/* Called with one problem; a nonzero return ends the walk. */
typedef int (*attune_profile_fn)(void *user, const attune_profile_entry *entry);

/* Calls `fn` for each problem that `tuner` has run so far in this process (in a child of fork: since the fork).
 * Problems with the longest time come first, then those of unknown time, ordered by calls and arithmetic. A nonzero
 * return of `fn` ends the walk; fn NULL: no walk. *out_totals (may be NULL) has the totals over all problems. Calls
 * that return during this one may be missing. No lock is held while `fn` runs. A captured call counts once at its
 * capture and once at each replay of its attune_graph; replays of a graph that the program captured itself
 * (cudaGraphLaunch) are not counted. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_profile(attune_tuner *tuner, attune_profile_fn fn, void *user,
                                              attune_profile_totals *out_totals);

/* Writes the profile as JSON to the file `path`, replacing it; docs/formats.md describes the fields.
 * ATTUNE_PROFILE=FILE.json does this when a tuner is destroyed and when the process ends, for all tuners that ran
 * anything; "%p" in the name is replaced by the process ID. ATTUNE_PROFILE=stderr prints a table to standard error
 * instead. Another value makes attune_tuner_create fail. If the variable's file cannot be written, the log has an
 * error. Errors: INVALID_ARGUMENT, NOT_FOUND, PERMISSION, IO_ERROR, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_tuner_profile_write(attune_tuner *tuner, const char *path);

#ifdef __cplusplus
}
#endif
#endif
