/* SPDX-License-Identifier: Apache-2.0
 * workload.h: a list of problems with names and counts, from a CSV file or from a tuner's records.
 *
 * CSV: a line that begins with '#' is a comment. The first other line names the columns, in any order. An empty field
 * counts as not given. Each row is one problem, given
 * - either as text, in a column problem; the first word is its operation;
 * - or by the columns of an operation, listed in its header (gemm.h). A column op names the operation, gemm by default.
 *   Every operation has the columns contract (strict, equivalent or reduced), deterministic (0 or 1), workspace
 *   (maximum bytes) and align (a power of two that divides every operand's address; 128 by default).
 *
 * Either form may also have the columns name and count.
 *
 * A workload does not change after its creation: many threads may read it at once. */
#ifndef ATTUNE_WORKLOAD_H
#define ATTUNE_WORKLOAD_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One problem of a workload. */
typedef struct attune_workload_entry {
  const char *name;    /* from the row; else the problem as written in the row, or its text; owned by the workload */
  const char *problem; /* its text, as in attune_decision_info; owned by the workload */
  int64_t count;       /* number of calls, 1 if unknown */
  double time_ns;      /* approximate time of one call of the default, measured or estimated; 0 from a CSV file */
  const char *written; /* the problem as written in the row, even row-major, or its text; owned by the workload */
} attune_workload_entry;

/* Reads the CSV file `path` into *out; the caller destroys the workload. Errors: NOT_FOUND, PERMISSION, IO_ERROR,
 * BAD_DATA with file, line and column in the message, OUT_OF_MEMORY, INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_workload_read(attune_workload **out, const char *path);

/* Reads the problems that tuners in mode record wrote into `tuner`'s database for `device`, with their call counts,
 * into *out; the caller destroys the workload. Problems with the longest total time (count x time_ns) come first.
 * Includes what `tuner` itself has recorded so far. Errors: INVALID_ARGUMENT, NOT_FOUND (no database), IO_ERROR,
 * OUT_OF_MEMORY. Any thread. */
ATTUNE_API attune_status attune_workload_recorded(attune_workload **out, attune_tuner *tuner, attune_device *device);

/* Returns the number of entries; 0 for NULL. Any thread. */
ATTUNE_API size_t attune_workload_size(const attune_workload *workload);

/* Returns entry `index`, borrowed until the workload is destroyed; NULL if out of range. Any thread. */
ATTUNE_API const attune_workload_entry *attune_workload_at(const attune_workload *workload, size_t index);

/* Releases the workload. NULL does nothing. */
ATTUNE_API void attune_workload_destroy(attune_workload *workload);

#ifdef __cplusplus
}
#endif
#endif
