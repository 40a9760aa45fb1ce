/* SPDX-License-Identifier: Apache-2.0
 * measure.c: the measurement of one problem: every way in turn, round after round, so that a drift of the machine meets
 * all alike. */
#include "bench/gemm/gemm.h"

#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <math.h>

#define MAX_SETS 4096

static bool attune_prepare(bench_platform *platform, bench_way *way, const bench_problem *problem,
                           const bench_set *example) {
  (void)way;
  const attune_gemm_operands operands = bench_operands(problem, example);
  bench_check(attune_gemm(platform->tuner, platform->stream, &problem->given, &operands), problem->name);
  return true;
}

static bool attune_enqueue(bench_platform *platform, bench_way *way, const bench_set *set) {
  (void)way;
  const attune_gemm_operands operands = bench_operands(platform->problem, set);
  return attune_gemm(platform->tuner, platform->stream, &platform->problem->given, &operands) == ATTUNE_OK;
}

bench_way bench_attune_way(void) {
  return (bench_way){.name = "attune", .prepare = attune_prepare, .enqueue = attune_enqueue};
}

/* A first idea of one call's time, launch cost included: the least of three short runs. */
static double estimate_ns(bench_platform *platform, bench_way *way, const bench_set *set) {
  double least = INFINITY;
  for (int run = 0; run < 4; run++) {
    double start = bench_now_ns();
    if (!way->enqueue(platform, way, set))
      bench_die("%s: %s failed: %s", platform->problem->name, way->name, attune_last_message());
    bench_check(attune_stream_synchronize(platform->stream), "attune_stream_synchronize");
    double took = bench_now_ns() - start;
    if (run > 0 && took < least) least = took;
  }
  return least;
}

/* Calls in a sample and sets to rotate over. All sets are used before one comes again: either a sample goes through all
 * of them a whole number of times, or consecutive samples take consecutive windows of `calls` sets. */
static int plan_calls(const bench_platform *platform, const bench_problem *problem, double call_ns, int *sets) {
  double wanted = platform->target_ns / call_ns;
  int calls = wanted >= (double)platform->max_calls ? platform->max_calls : (int)ceil(wanted);
  if (calls < platform->min_calls) calls = platform->min_calls;
  *sets = 1;
  if (platform->rotate_bytes == 0) return calls;
  size_t each = problem->bytes_a + problem->bytes_b + problem->bytes_d, needed = platform->rotate_bytes / each + 2;
  *sets = needed > MAX_SETS ? MAX_SETS : (int)needed;
  if (*sets <= calls) return (calls + *sets - 1) / *sets * *sets;
  *sets = (*sets + calls - 1) / calls * calls;
  return calls;
}

static void prepare_ways(bench_platform *platform, const bench_problem *problem, const bench_set *example) {
  platform->problem = problem;
  for (int w = 0; w < platform->way_count; w++) {
    bench_way *way = &platform->ways[w];
    way->note = NULL;
    way->active = way->prepare(platform, way, problem, example);
  }
}

static double sample(void *arg, int way, int round) {
  bench_platform *platform = arg;
  (void)round;
  if (!platform->ways[way].active) return 0.0;
  const double ns = platform->sample(platform, way);
  if (ns < 0.0) bench_die("%s: %s failed while it was timed", platform->problem->name, platform->ways[way].name);
  return ns;
}

static void fill_figures(const bench_platform *platform, const bench_turns *turns, bench_row *row) {
  row->best = 0;
  for (int w = 0; w < platform->way_count; w++) {
    const bench_way *way = &platform->ways[w];
    if (!way->active) continue;
    const double ratio = bench_turns_ratio(turns, w, BENCH_ATTUNE);
    row->figures[w] =
        (bench_figure){true, bench_turns_median(turns, w), bench_turns_spread(turns, w), ratio, way->note};
    if (w != BENCH_ATTUNE && !way->own && (row->best == 0 || ratio < row->figures[row->best].ratio)) row->best = w;
  }
}

void bench_measure(bench_platform *platform, const bench_problem *problem, int rounds, bench_row *row) {
  static bench_turns turns;
  bench_sets sets;
  bench_sets_create(&sets, platform->stream, problem, 1);
  prepare_ways(platform, problem, &sets.items[0]);
  bench_way *mine = &platform->ways[BENCH_ATTUNE], *peer = &platform->ways[BENCH_DEFAULT];
  row->agreement = -1.0;
  row->agrees = true;
  if (platform->way_count > BENCH_DEFAULT && peer->active)
    row->agrees = bench_agree(platform, mine, peer, &sets.items[0], &row->agreement);
  int count, calls = plan_calls(platform, problem, estimate_ns(platform, mine, &sets.items[0]), &count);
  if (count > 1) {
    bench_sets_destroy(&sets, platform->stream);
    bench_sets_create(&sets, platform->stream, problem, count);
  }
  for (int w = 0; w < platform->way_count; w++)
    if (platform->ways[w].active && !platform->ready(platform, w, &sets, calls))
      bench_die("%s: %s could not be prepared for timing", problem->name, platform->ways[w].name);
  bench_take_turns(&turns, platform->way_count, 1, rounds, BENCH_ROTATED, sample, platform);
  fill_figures(platform, &turns, row);
  platform->unready(platform);
  bench_sets_destroy(&sets, platform->stream);
}
