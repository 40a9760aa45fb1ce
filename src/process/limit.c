/* SPDX-License-Identifier: Apache-2.0
 * limit.c: what the calling thread may still use: time and stack. */
#include "src/process/limit.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

static _Thread_local int64_t limit_ns; /* 0: none */

int64_t at_limit_of(void) {
  return limit_ns ? limit_ns : AT_NO_LIMIT;
}

int64_t at_limit_set(int64_t until_ns) {
  const int64_t before = at_limit_of();
  limit_ns = until_ns == AT_NO_LIMIT ? 0 : until_ns;
  return before;
}

double at_limit_left_ns(void) {
  if (!limit_ns) return HUGE_VAL;
  const int64_t now = at_now_ns();
  return now < limit_ns ? (double)(limit_ns - now) : 0.0;
}

attune_status at_limit_look(void) {
  return at_limit_afford(1.0);
}

attune_status at_limit_afford(double ns) {
  const double left_ns = at_limit_left_ns();
  if (left_ns >= ns) return ATTUNE_OK;
  if (left_ns <= 0.0)
    return at_fail(ATTUNE_BUDGET_EXHAUSTED, "the time for this problem is over; give it a larger budget");
  return at_fail(
      ATTUNE_BUDGET_EXHAUSTED,
      "the next step takes about %.0f ms, but only %.0f ms are left for this problem; give it a larger budget",
      ns * 1e-6, left_ns * 1e-6);
}

/* --- its stack --- */

typedef struct bounds {
  uintptr_t low, high; /* the same: not known */
  bool asked;
} bounds;

static _Thread_local bounds mine;

/* The main thread's stack grows up to a limit; what the C library says of it may be its extent now (valgrind). */
static uintptr_t lowest(uintptr_t low, uintptr_t high) {
  struct rlimit limit;
  if (gettid() != getpid() || getrlimit(RLIMIT_STACK, &limit) != 0) return low;
  return limit.rlim_cur < high && high - limit.rlim_cur < low ? high - limit.rlim_cur : low;
}

static __attribute__((noinline)) void ask(void) {
  pthread_attr_t attributes;
  void *low = NULL;
  size_t size = 0;
  mine.asked = true;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
    mine.high = (uintptr_t)low + size;
    mine.low = lowest((uintptr_t)low, mine.high);
  }
  (void)pthread_attr_destroy(&attributes);
}

attune_status at_stack_check(size_t bytes, const char *what) {
  const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (AT_UNLIKELY(!mine.asked)) ask();
  if (AT_LIKELY(here - mine.low >= bytes) || here >= mine.high || here < mine.low) return ATTUNE_OK;
  return at_fail(ATTUNE_OUT_OF_MEMORY,
                 "%s needs %zu KiB of stack, and this thread has %zu KiB left of %zu; should be a thread with a larger "
                 "stack (pthread_attr_setstacksize)",
                 what, bytes >> 10, (size_t)(here - mine.low) >> 10, (size_t)(mine.high - mine.low) >> 10);
}
