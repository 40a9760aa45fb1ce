/* SPDX-License-Identifier: Apache-2.0
 * test_turns.c: the loop of the benchmark programs and what it makes of the times, with times that are made up. */
#include "tests/support/check.h"

#include "bench/common/turns.h"

typedef struct log {
  int count, rounds[64], ways[64];
} log;

static double note(void *arg, int way, int round) {
  log *l = arg;
  l->rounds[l->count] = round;
  l->ways[l->count++] = way;
  return round < 0 ? 1e9 : 100.0 * (way + 1) + round;
}

/* Each way comes first in turn, and the rounds that warm up are thrown away. */
TEST(ways_rotate) {
  static bench_turns t;
  log l = {.count = 0};
  bench_take_turns(&t, 3, 1, 4, BENCH_ROTATED, note, &l);
  const int ways[] = {0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2, 1, 2, 0};
  assert_int_equal(l.count, 15);
  assert_memory_equal(l.ways, ways, sizeof ways);
  for (int i = 0; i < 15; i++) assert_int_equal(l.rounds[i], i / 3 - 1);
  assert_int_equal(t.ways, 3);
  assert_int_equal(t.rounds, 4);
  for (int way = 0; way < 3; way++)
    for (int r = 0; r < 4; r++) assert_true(t.ns[way][r] == 100.0 * (way + 1) + r);
  assert_true(bench_turns_median(&t, 1) == 201.5);
  assert_true(bench_turns_least(&t, 2) == 300.0);
}

/* All ways once a round, in orders that differ; each time goes to its own way. */
TEST(orders_are_drawn) {
  static bench_turns t;
  log l = {.count = 0};
  int unlike_first = 0;
  bench_take_turns(&t, 5, 2, 8, BENCH_DRAWN, note, &l);
  assert_int_equal(l.count, 50);
  for (int r = 0; r < 10; r++) {
    int seen = 0;
    for (int i = 0; i < 5; i++) seen |= 1 << l.ways[5 * r + i];
    assert_int_equal(seen, 31);
    unlike_first += memcmp(l.ways, l.ways + 5L * r, 5 * sizeof *l.ways) != 0;
  }
  assert_in_range(unlike_first, 5, 9);
  for (int way = 0; way < 5; way++) assert_true(t.ns[way][7] == 100.0 * (way + 1) + 7);
}

/* Medians of pairs are not those of the columns. */
TEST(pairs_come_before_medians) {
  static bench_turns t = {.ways = 2, .rounds = 3, .ns = {{10, 40, 30}, {20, 40, 90}}};
  assert_true(bench_turns_ratio(&t, 1, 0) == 2.0);
  assert_true(bench_turns_above(&t, 1, 0) == 10.0);
  assert_true(bench_turns_above(&t, 0, 0) == 0.0);
  assert_true(bench_turns_median(&t, 1) == 40.0);
  assert_true(bench_turns_spread(&t, 1) == 0.5); /* 20, 0, 50 from 40 */
  assert_true(t.ns[0][1] == 40.0);               /* nothing was sorted in place */
}

TEST(medians) {
  double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
  assert_true(bench_median(odd, 3) == 2.0);
  assert_true(bench_median(even, 4) == 2.5);
  assert_true(bench_median(odd, 0) == 0.0);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
