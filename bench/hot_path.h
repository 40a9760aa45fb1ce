/* SPDX-License-Identifier: Apache-2.0
 * hot_path.h: the parts of bench_hot_path, a report each. */
#ifndef BENCH_HOT_PATH_H
#define BENCH_HOT_PATH_H

#include <stdint.h>

/* hot_path_database.c */
void hot_report_database(int64_t winners);
#ifdef BENCH_WITH_CUDA
/* hot_path_cuda.c: nothing when there is no CUDA device. */
void hot_report_cuda(void);
#endif

#endif
