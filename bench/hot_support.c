/* SPDX-License-Identifier: Apache-2.0
 * hot_support.c: what every part of bench_hot_path uses: ending with a message, the report's lines, the median. */
#include "bench/hot_path.h"

#include <stdarg.h>
#include <stdlib.h>

static FILE *markdown;

void hot_die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("bench_hot_path: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

void hot_check(attune_status status, const char *what) {
  if (status != ATTUNE_OK) hot_die("%s: %s: %s", what, attune_status_string(status), attune_last_message());
}

void hot_line(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  puts(text);
  fflush(stdout);
  if (markdown != NULL) fprintf(markdown, "%s\n", text);
}

static int by_value(const void *x, const void *y) {
  double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double hot_median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_value);
  return values[count / 2];
}

void hot_write_to(const char *path) {
  markdown = fopen(path, "w");
  if (markdown == NULL) hot_die("cannot write %s", path);
}

void hot_close(void) {
  if (markdown != NULL && fclose(markdown) != 0) hot_die("the markdown file could not be written");
}
