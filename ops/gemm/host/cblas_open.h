/* SPDX-License-Identifier: Apache-2.0
 * cblas_open.h: opening libraries that start threads as they are opened. One that gets none ends the process (OpenBLAS
 * raises SIGINT), and attune opens it on its own account: so it looks before, and is on its guard. */
#ifndef AT_GEMM_CBLAS_OPEN_H
#define AT_GEMM_CBLAS_OPEN_H

#include <stdbool.h>

/* CPUs that this thread may run on, at least 1: so many threads a library has, whatever quota or setting attune goes
 * by. */
int at_cblas_cpus(void);

/* Number of threads that can be started besides this one, `most` at most: starts them all at once, and ends them. */
int at_cblas_startable(int most);

/* dlopen. `alone`: the library sees one CPU, and starts no thread. NULL: it is not here, or, with *refused, it could
 * not start its threads after all, or could not be kept from trying; then it is not to be used, and stays loaded. */
void *at_cblas_open(const char *file, int flags, bool alone, bool *refused);

#endif
