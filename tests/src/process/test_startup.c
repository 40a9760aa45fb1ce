/* SPDX-License-Identifier: Apache-2.0
 * test_startup.c: what being linked with attune costs a program that does not use it, beside one that is linked with
 * SQLite alone: at most 5 ms of CPU time and 5 MB. ATTUNE_TEST_STARTS: how often each is started. */
#include "tests/support/check.h"

#include "tests/support/child.h"

#include <sys/resource.h>

typedef struct cost {
  double ms;
  long kib;
} cost;

/* CPU time of the programs that have ended: a busy machine does not lengthen it. */
static double children_ms(void) {
  struct rusage used;
  assert_int_equal(getrusage(RUSAGE_CHILDREN, &used), 0);
  return 1e3 * (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-3 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void start(cost *least, const char *program) {
  char text[256];
  const double before = children_ms();
  assert_int_equal(run_program((const char *const[]){program, NULL}, text, sizeof text), 0);
  const double ms = children_ms() - before;
  const long kib = strtol(text, NULL, 10);
  assert_true(kib > 0);
  if (ms < least->ms) least->ms = ms;
  if (kib < least->kib) least->kib = kib;
}

TEST(linking_costs_nothing) {
  const char *wanted = getenv("ATTUNE_TEST_STARTS");
  const int count = wanted ? atoi(wanted) : 20;
  cost with = {1e9, 1L << 40}, without = with;
  for (int i = 0; i < count; i++) {
    start(&with, STARTUP_WITH);
    start(&without, STARTUP_WITHOUT);
  }
  print_message("least of %d: with attune %.2f ms, %ld KiB; without %.2f ms, %ld KiB\n", count, with.ms, with.kib,
                without.ms, without.kib);
  assert_true(with.ms <= without.ms + 5.0);
  assert_true(with.kib <= without.kib + 5 * 1000);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
