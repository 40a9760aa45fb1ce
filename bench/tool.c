/* SPDX-License-Identifier: Apache-2.0
 * tool.c: what every benchmark uses: ending with a message, the report's lines, the clock, the median. */
#include "bench/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static FILE *markdown;

void bench_die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", program_invocation_short_name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

void bench_check(attune_status status, const char *what) {
  if (status != ATTUNE_OK) bench_die("%s: %s: %s", what, attune_status_string(status), attune_last_message());
}

void bench_line(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  puts(text);
  fflush(stdout);
  if (markdown != NULL) fprintf(markdown, "%s\n", text);
}

void bench_markdown_open(const char *path) {
  markdown = fopen(path, "w");
  if (markdown == NULL) bench_die("cannot write %s: give a path in a folder that exists", path);
}

void bench_markdown_close(void) {
  if (markdown != NULL && fclose(markdown) != 0) bench_die("the markdown file was not written whole");
}

bool bench_is_cuda(const attune_device *device) {
  return strncmp(attune_device_name(device), "cuda:", 5) == 0;
}

int bench_ordinal(const attune_device *device) {
  return bench_is_cuda(device) ? atoi(attune_device_name(device) + 5) : 0;
}

double bench_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double bench_median(double *values, int count) {
  if (count == 0) return 0.0;
  qsort(values, (size_t)count, sizeof *values, by_value);
  return count % 2 != 0 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}
