/* SPDX-License-Identifier: Apache-2.0
 * turns.h: ways to do the same that take turns, and what their times say: the one loop of the programs that `attune
 * bench` cannot run, because a sample of theirs is more than calls of a function. */
#ifndef BENCH_TURNS_H
#define BENCH_TURNS_H

enum { BENCH_TURN_WAYS = 64, BENCH_TURN_ROUNDS = 201 };

typedef struct bench_turns {
  int ways, rounds;
  double ns[BENCH_TURN_WAYS][BENCH_TURN_ROUNDS];
} bench_turns;

typedef enum bench_order { BENCH_ROTATED, BENCH_DRAWN } bench_order;

/* Round after round: sample(arg, way, round) of each way, nanoseconds; each way comes first in turn, or the order is
 * drawn anew. Rounds below 0 warm up. */
void bench_take_turns(bench_turns *out, int ways, int warmups, int rounds, bench_order order,
                      double (*sample)(void *arg, int way, int round), void *arg);

/* Of the rounds of a way. */
double bench_turns_median(const bench_turns *t, int way);
double bench_turns_least(const bench_turns *t, int way);
double bench_turns_spread(const bench_turns *t, int way); /* median absolute deviation / median */
/* Medians of what the rounds say one by one, so that a drift of the clocks cancels: way / of, way - of. */
double bench_turns_ratio(const bench_turns *t, int way, int of);
double bench_turns_above(const bench_turns *t, int way, int of);

/* Sorts; of an even count the mean of the two middles; 0 of none. */
double bench_median(double *values, int count);

#endif
