/* SPDX-License-Identifier: Apache-2.0
 * limit.c: see limit.h. */
#include "src/process/limit.h"

#include <math.h>

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
  if (left_ns <= 0.0) return at_fail(ATTUNE_BUDGET_EXHAUSTED, "the time for this problem is over; give it more");
  return at_fail(ATTUNE_BUDGET_EXHAUSTED,
                 "what comes next takes about %.0f ms and %.0f ms are left for this problem; give it more", ns * 1e-6,
                 left_ns * 1e-6);
}
