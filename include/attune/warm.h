/* SPDX-License-Identifier: Apache-2.0
 * warm.h: kernels compiled before they are wanted. Some implementations compile kernels when they are first used, tens
 * to hundreds of milliseconds each, and keep them in the kernel cache ($ATTUNE_CACHE_DIR/kernels). Here they are
 * compiled ahead: those of a shipped database on a new machine, and those of problems that will be tuned. */
#ifndef ATTUNE_WARM_H
#define ATTUNE_WARM_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a winner's kernels. */
typedef enum attune_warm_outcome {
  ATTUNE_WARM_COMPILED = 1, /* now */
  ATTUNE_WARM_THERE = 2,    /* they were in the kernel cache */
  ATTUNE_WARM_FAILED = 3,
  ATTUNE_WARM_NOTHING = 4 /* it has none: a library's code */
} attune_warm_outcome;

/* Called once for each winner that holds on the device: how it went, how long it took, and after FAILED why. No lock is
 * held, one call at a time, from any of the threads that compile. */
typedef void (*attune_warm_fn)(void *user, const attune_decision *winner, attune_warm_outcome outcome, double ms,
                               const char *message);

/* Winners by outcome, and the time of all. */
typedef struct attune_warmed {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  size_t compiled, there, failed, nothing;
  double ms;
} attune_warmed;

/* Compiles into the kernel cache what winners need that hold on `device`, on as many threads as attune_set_threads
 * permits: the winners of `count` problems (their texts), or with `problems` NULL all that the tuner's databases have.
 * Afterwards programs find the kernels there and wait for no compiler. `fn` (may be NULL) hears of each winner, *out
 * (may be NULL) has the sums. A winner that fails stops no other and is no error of this call; a problem without a
 * winner is let be. The device gets no work. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, BAD_DATA and IO_ERROR (of the
 * database). Any thread; not in capture. */
ATTUNE_API attune_status attune_tuner_warm(attune_tuner *tuner, attune_device *device, const char *const *problems,
                                           size_t count, attune_warm_fn fn, void *user, attune_warmed *out);

/* Problems that will be tuned on a device, and threads that compile what their candidates need meanwhile. */
typedef struct attune_precompile attune_precompile;

/* Begins to compile, on idle CPUs and at low priority, the kernels that attune_tune would try for these problems (their
 * texts; not kept), so that their compilation takes no part of a problem's time. First what is a winner in the tuner's
 * databases, then the best guesses for each problem, then the rest, in the order of the problems; no further ahead than
 * a few dozen problems. For the host nothing is compiled, since that would disturb what is measured there: nor should
 * the host be measured while another device's problems are compiled. A problem that cannot be read is let be:
 * attune_tune says what is wrong with it. The caller ends it with attune_precompile_stop, before the tuner is destroyed.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_precompile_start(attune_precompile **out, attune_tuner *tuner, attune_device *device,
                                            const char *const *problems, size_t count);

/* The problem to tune next: its number into *out, each once. It is the first in the list whose kernels are all
 * compiled. Where none is, waits up to wait_ms for one (0: not at all); then, with `any`, gives the first that is left:
 * the rest of its kernels is compiled in its own time. Errors: INVALID_ARGUMENT, BUSY (none is ready, without `any`),
 * NOT_FOUND (all were given). One thread at a time. */
ATTUNE_API attune_status attune_precompile_next(attune_precompile *ahead, double wait_ms, int any, size_t *out);

/* How many kernels were compiled so far, how many were in the cache already, and how many failed; each may be NULL.
 * What fails here fails in attune_tune too, which leaves that candidate out. Any thread. */
ATTUNE_API void attune_precompile_counts(const attune_precompile *ahead, size_t *compiled, size_t *there, size_t *failed);

/* Ends it: waits for the kernels that are being compiled at this moment, begins no other and releases it, when no other
 * thread uses it. NULL does nothing. In a child of fork it only releases it. */
ATTUNE_API void attune_precompile_stop(attune_precompile *ahead);

#ifdef __cplusplus
}
#endif
#endif
