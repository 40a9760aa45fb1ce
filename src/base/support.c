/* SPDX-License-Identifier: Apache-2.0
 * support.c: checked arithmetic, bounded text, the clock. */
#include "src/base/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int64_t at_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + (int64_t)now.tv_nsec;
}

int64_t at_ticks(void) {
#if defined(__x86_64__) || defined(__i386__)
  return (int64_t)__builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  int64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return at_now_ns();
#endif
}

bool at_mul_i64(int64_t *out, int64_t a, int64_t b) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool at_add_i64(int64_t *out, int64_t a, int64_t b) {
  return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

void at_one_line(char *text) {
  for (; *text; text++) {
    unsigned char c = (unsigned char)*text;
    if (c < 0x20 || c == 0x7f) *text = ' ';
  }
}

bool at_copy_text(char *out, size_t size, const char *text) {
  if (size == 0) return false;
  size_t length = strnlen(text, size);
  bool fits = length < size;
  if (!fits) length = size - 1;
  memmove(out, text, length);
  out[length] = '\0';
  return fits;
}

const char *at_shown(char out[AT_SHOWN_CHARS], const char *text) {
  if (!at_copy_text(out, AT_SHOWN_CHARS, text)) memcpy(out + AT_SHOWN_CHARS - 4, "...", 4);
  return out;
}

const char *at_time_text(char out[AT_TIME_CHARS], double ns, int decimals) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  static const unsigned scales[] = {1, 10, 100, 1000};
  const unsigned scale = scales[decimals];
  double value = ns < 0.0 ? -ns : ns;
  int unit = 0;
  for (; unit < 3 && value >= 1000.0; unit++) value /= 1000.0;
  if (!(value < 1e15)) value = 1e15; /* and NaN */
  const unsigned long long parts = (unsigned long long)(value * scale + 0.5);
  snprintf(out, AT_TIME_CHARS, "%s%llu%s%.*llu %s", ns < 0.0 ? "-" : "", parts / scale, decimals ? "." : "", decimals,
           decimals ? parts % scale : 0, units[unit]);
  return out;
}

bool at_append(char *out, size_t size, size_t *at, const char *format, ...) {
  if (*at >= size) return false;
  size_t room = size - *at;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(out + *at, room, format, args);
  va_end(args);
  if (length < 0) {
    out[*at] = '\0';
    return false;
  }
  bool fits = (size_t)length < room;
  *at += fits ? (size_t)length : room - 1;
  return fits;
}

void *at_alloc_large(size_t bytes) {
  enum { HUGE = 2 << 20 };
  void *memory = NULL;
  if (bytes < HUGE) return malloc(bytes ? bytes : 1);
  if (posix_memalign(&memory, HUGE, bytes) != 0) return NULL;
  (void)madvise(memory, bytes, MADV_HUGEPAGE); /* advice: without it only slower */
  return memory;
}

/* The days since 1970 as year, month and day: Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013),
 * civil_from_days. */
void at_utc_text(char out[AT_UTC_CHARS], int64_t seconds) {
  const int64_t first = -62167219200, last = 253402300799; /* of the years 0 and 9999 */
  const int64_t at = seconds < first ? first : seconds > last ? last : seconds;
  const int64_t days = (at - ((at % 86400 + 86400) % 86400)) / 86400, second = at - days * 86400;
  const int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
  const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
                doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const int64_t mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 3 : mp - 9, year = yoe + era * 400 + (month <= 2);
  snprintf(out, AT_UTC_CHARS, "%04d-%02d-%02d %02d:%02d:%02d UTC", (int)year % 10000, (int)month % 100,
           (int)(doy - (153 * mp + 2) / 5 + 1) % 100, (int)(second / 3600) % 100, (int)(second / 60 % 60),
           (int)(second % 60));
}
