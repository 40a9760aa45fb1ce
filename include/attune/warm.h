/* SPDX-License-Identifier: Apache-2.0
 * warm.h: compiling kernels before they are needed. Some implementations compile kernels at their first use, tens to
 * hundreds of milliseconds each, and keep them in the kernel cache ($ATTUNE_CACHE_DIR/kernels). The functions here
 * compile them ahead: those of a shipped database on a new machine, and those of problems that will be tuned. */
#ifndef ATTUNE_WARM_H
#define ATTUNE_WARM_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Outcome for a winner's kernels. */
typedef enum attune_warm_outcome {
  ATTUNE_WARM_COMPILED = 1, /* by this call */
  ATTUNE_WARM_THERE = 2,    /* already in the kernel cache */
  ATTUNE_WARM_FAILED = 3,
  ATTUNE_WARM_NOTHING = 4 /* it has no kernels to compile: it calls a library */
} attune_warm_outcome;

/* Called once for each winner that holds on the device, with the outcome, the time in milliseconds, and after FAILED
 * the reason. No lock is held. One call at a time, from any of the compiling threads. */
typedef void (*attune_warm_fn)(void *user, const attune_decision *winner, attune_warm_outcome outcome, double ms,
                               const char *message);

/* Number of winners by outcome, and the total time in milliseconds. */
typedef struct attune_warmed {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  size_t compiled, there, failed, nothing;
  double ms;
} attune_warmed;

/* Compiles the kernels of winners that hold on `device` into the kernel cache, on as many threads as attune_set_threads
 * permits: the winners of `count` problems (their texts); `problems` NULL: all in the tuner's databases. Programs then
 * load the kernels from there and do not wait for a compiler. `fn` (may be NULL) is called for each winner; *out (may
 * be NULL) receives the totals. A winner that fails does not stop the others and is not an error of this call; problems
 * without a winner are skipped. Runs nothing on the device. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, BAD_DATA and
 * IO_ERROR (of the database). Any thread; not in capture. */
ATTUNE_API attune_status attune_tuner_warm(attune_tuner *tuner, attune_device *device, const char *const *problems,
                                           size_t count, attune_warm_fn fn, void *user, attune_warmed *out);

#ifdef __cplusplus
}
#endif
#endif
