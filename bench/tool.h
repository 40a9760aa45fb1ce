/* SPDX-License-Identifier: Apache-2.0
 * tool.h: what every benchmark uses: ending with a message, the report's lines, the clock, the median. */
#ifndef BENCH_TOOL_H
#define BENCH_TOOL_H

#include <attune/attune.h>

#include <stdbool.h>

/* Prints "PROGRAM: ..." on standard error and ends the program with 1. */
void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Ends the program when attune failed. */
void bench_check(attune_status status, const char *what);

/* One line, of less than 512 characters, to the terminal and to the markdown file where one is open. */
void bench_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_markdown_open(const char *path);
/* Nothing when none is open; ends the program when not all of it was written. */
void bench_markdown_close(void);

/* "cuda:1": true, and 1; others: false, and 0. */
bool bench_is_cuda(const attune_device *device);
int bench_ordinal(const attune_device *device);

double bench_now_ns(void);
/* Sorts; of an even count the mean of the two middles; 0 of none. */
double bench_median(double *values, int count);

#endif
