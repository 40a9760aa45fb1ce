/* SPDX-License-Identifier: Apache-2.0
 * support.c: what every part of bench_gemm uses: ending with a message, the clock. */
#include "bench/bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

void bench_die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("bench_gemm: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

void bench_check(attune_status status, const char *what) {
  if (status != ATTUNE_OK) bench_die("%s: %s: %s", what, attune_status_string(status), attune_last_message());
}

double bench_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}
