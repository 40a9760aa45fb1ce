/* SPDX-License-Identifier: Apache-2.0
 * workload.h: a list of problems with names and counts, read from CSV or from what a tuner recorded.
 *
 * CSV: '#' starts a comment line; the first other line names the columns: name, dtype, contract, transa, transb, m, n,
 * k, batch (needed: dtype, m, n, k) and, optionally, dtype_out, layout, lda, ldb, ldc, ldd, stride_a, stride_b,
 * stride_c, stride_d, align (bytes that every operand's address is a multiple of, a power of two; 128 by default),
 * count. Column order is free; an empty field is one not given; a column `op` names the operation (gemm). Or a column
 * `problem` with the text of attune_gemm_problem_format. */
#ifndef ATTUNE_WORKLOAD_H
#define ATTUNE_WORKLOAD_H

#include <attune/tuner.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attune_workload_entry {
  char name[64];
  char problem[ATTUNE_PROBLEM_CHARS]; /* as attune_gemm_problem_format writes it */
  int64_t count;     /* how often it is called, 1 if not known */
  double time_ns;    /* one call by the default, about: as measured, else by arithmetic and traffic; 0 in a CSV file */
} attune_workload_entry;

/* Reads the CSV file `path` into *out; the caller destroys it. Errors: NOT_FOUND, PERMISSION, IO_ERROR, BAD_DATA with
 * file, line and column in the message, OUT_OF_MEMORY, INVALID_ARGUMENT. Any thread. */
ATTUNE_API attune_status attune_workload_read(attune_workload **out, const char *path);

/* The problems that tuners in mode record wrote into `tuner`'s database for `device`, with the number of calls, those
 * first whose calls take longest in all (count x time_ns). What `tuner` itself recorded so far is among them. Errors:
 * INVALID_ARGUMENT, NOT_FOUND (no database), IO_ERROR, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_workload_recorded(attune_workload **out, attune_tuner *tuner, attune_device *device);

/* The number of entries; 0 for NULL. */
ATTUNE_API size_t attune_workload_size(const attune_workload *workload);

/* Entry `index`, borrowed until the workload is destroyed; NULL out of range. */
ATTUNE_API const attune_workload_entry *attune_workload_at(const attune_workload *workload, size_t index);

/* Releases the workload; NULL is left alone. */
ATTUNE_API void attune_workload_destroy(attune_workload *workload);

#ifdef __cplusplus
}
#endif
#endif
