/* SPDX-License-Identifier: Apache-2.0
 * workload.h: a list of problems with names and counts, from a CSV file or from what a tuner recorded.
 *
 * CSV: a line that begins with '#' is a comment. The first other line names the columns, in any order. An empty field
 * counts as not given. Each row is one problem:
 * - either as text, in a column problem; the first word is its operation;
 * - or by the columns of an operation, which its header lists (gemm.h). A column op names the operation; rows without
 *   are of gemm. Any operation has the columns contract (strict, equivalent or reduced), deterministic (0 or 1),
 *   workspace (the most bytes) and align (every operand's address is a multiple of so many bytes, a power of two; 128
 *   by default).
 * Beside either there may be name and count.
 *
 * A workload does not change once it is made: many threads may read it at once. */
#ifndef ATTUNE_WORKLOAD_H
#define ATTUNE_WORKLOAD_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One problem of a workload. */
typedef struct attune_workload_entry {
  const char *name;    /* its own; without one the problem as the row wrote it, or its text; the workload's */
  const char *problem; /* its text, as attune_decision has it; the workload's */
  int64_t count;       /* how often it is called, 1 if not known */
  double time_ns;      /* about one call of the default: as measured, else estimated from the sizes; 0 in a CSV file */
  const char *written; /* the problem as the row wrote it, row-major too, or its text; the workload's */
} attune_workload_entry;

/* Reads the CSV file `path` into *out; the caller destroys it. Errors: NOT_FOUND, PERMISSION, IO_ERROR, BAD_DATA with
 * file, line and column in the message, OUT_OF_MEMORY, INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_workload_read(attune_workload **out, const char *path);

/* The problems that tuners in mode record wrote into `tuner`'s database for `device`, with their numbers of calls, into
 * *out, which the caller destroys. Those whose calls take longest in all (count x time_ns) come first. What `tuner`
 * itself recorded so far is among them. Errors: INVALID_ARGUMENT, NOT_FOUND (no database), IO_ERROR, OUT_OF_MEMORY. Any
 * thread. */
ATTUNE_API attune_status attune_workload_recorded(attune_workload **out, attune_tuner *tuner, attune_device *device);

/* What one call of the default takes for `problem` (its text) on `device`, about, into *out_ns: as measured, if the
 * tuner's database knows it, else estimated from the sizes. Measures nothing. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY
 * (also of a problem that is too large to be measured there; *out_ns is set all the same). Any thread. */
ATTUNE_API attune_status attune_workload_estimate(double *out_ns, attune_tuner *tuner, attune_device *device,
                                                  const char *problem);

/* The number of entries; 0 for NULL. */
ATTUNE_API size_t attune_workload_size(const attune_workload *workload);

/* Entry `index`, borrowed until the workload is destroyed; NULL out of range. */
ATTUNE_API const attune_workload_entry *attune_workload_at(const attune_workload *workload, size_t index);

/* Releases the workload. NULL does nothing. */
ATTUNE_API void attune_workload_destroy(attune_workload *workload);

#ifdef __cplusplus
}
#endif
#endif
