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

/* Problems to be tuned on a device, and threads that compile their candidates' kernels ahead. */
typedef struct attune_precompile attune_precompile;

/* Starts to compile, on idle CPUs and at low priority, the kernels that attune_tune would try for these problems (their
 * texts; not kept), so that compilation takes none of a problem's tuning time. First come winners in the tuner's
 * databases, then the best guesses for each problem, then the rest, in the order of the problems; at most a few dozen
 * problems ahead. For the host nothing is compiled, since that would disturb its measurements; for the same reason do
 * not measure the host while another device's problems are compiled. Nothing is compiled for a problem that cannot be
 * read: attune_tune reports the mistake. The caller ends it with attune_precompile_stop, before the tuner is destroyed.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_precompile_start(attune_precompile **out, attune_tuner *tuner, attune_device *device,
                                            const char *const *problems, size_t count);

/* Writes the index of the problem to tune next into *out, each once: the first in the list whose kernels are all
 * compiled. If there is none, waits up to wait_ms for one (0: does not wait); then, with nonzero `any` or if no
 * compilation is in progress, takes the first one left, whose remaining kernels are compiled in its own tuning time.
 * Errors: INVALID_ARGUMENT, BUSY (none is ready yet, without `any`), NOT_FOUND (all were returned). One thread at a
 * time. */
ATTUNE_API attune_status attune_precompile_next(attune_precompile *ahead, double wait_ms, int any, size_t *out);

/* Writes the numbers of kernels compiled so far, found in the cache, and failed; each may be NULL. A kernel that fails
 * here also fails in attune_tune, which omits that candidate. Any thread. */
ATTUNE_API void attune_precompile_counts(const attune_precompile *ahead, size_t *compiled, size_t *there, size_t *failed);

/* Stops compilation and releases `ahead`: waits for the kernels being compiled and starts no others. No other thread
 * may be using it. NULL does nothing. In a child of fork it only releases. */
ATTUNE_API void attune_precompile_stop(attune_precompile *ahead);

#ifdef __cplusplus
}
#endif
#endif
