/* SPDX-License-Identifier: Apache-2.0
 * hot_path.h: what the parts of bench_hot_path share. What cannot go on ends the program with a message. */
#ifndef BENCH_HOT_PATH_H
#define BENCH_HOT_PATH_H

#include <attune/attune.h>

#include <stdio.h>
#include <time.h>

void hot_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void hot_check(attune_status status, const char *what);
/* One line to the terminal and to the markdown file. */
void hot_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Opens the markdown file, and closes it with its errors. */
void hot_write_to(const char *path);
void hot_close(void);
/* Sorts; the upper of two middles. */
double hot_median(double *values, int count);

/* hot_path_database.c */
void hot_report_database(int64_t winners);
#ifdef BENCH_WITH_CUDA
/* hot_path_cuda.c: nothing when there is no CUDA device. */
void hot_report_cuda(void);
#endif

#endif
