/* SPDX-License-Identifier: Apache-2.0
 * outside_row.c: see outside.h: one problem at one alignment and all spacings, both ways in turns. */
#include "bench/outside/outside.h"

#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <string.h>

void outside_open(outside_side *side, const outside_options *o) {
  if (o->host) {
    outside_host_open(side, o);
  } else {
#ifdef BENCH_WITH_CUDA
    outside_cuda_open(side, o);
#else
    bench_die("this program was built without CUDA; build it with -DATTUNE_CUDA=ON");
#endif
  }
}

static double sample(void *arg, int way, int round) {
  outside_side *side = arg;
  (void)round;
  return side->sample(side, way);
}

/* The median over rounds of the ratio within a round. */
static double measure(outside_side *side, int rounds, double *attune_ns, double *vendor_ns) {
  static bench_turns turns;
  bench_take_turns(&turns, OUTSIDE_WAYS, 1, rounds, BENCH_ROTATED, sample, side);
  *attune_ns = bench_turns_median(&turns, OUTSIDE_ATTUNE);
  *vendor_ns = bench_turns_median(&turns, OUTSIDE_VENDOR);
  return bench_turns_ratio(&turns, OUTSIDE_VENDOR, OUTSIDE_ATTUNE);
}

bool outside_measure(outside_side *side, const outside_options *o, const bench_problem *problem, size_t alignment,
                     outside_row *row) {
  for (int i = 0; i < o->spacing_count; i++) {
    double attune_ns = 0, vendor_ns = 0;
    if (!side->open(side, problem, (bench_place){alignment, o->spacings[i]})) return false;
    row->ratio[i] = measure(side, o->rounds, &attune_ns, &vendor_ns);
    if (row->ratio[i] < side->floor_ratio) {
      row->ratio[i] = measure(side, 3 * o->rounds, &attune_ns, &vendor_ns);
      row->again = true;
    }
    if (i == 0) {
      row->attune_ns = attune_ns;
      row->vendor_ns = vendor_ns;
      side->explain(side, &row->decision);
      const bench_choice *d = &row->decision;
      if (d->time_ns > 0 && d->source >= ATTUNE_SOURCE_STORED && !d->unsure)
        row->claim = d->default_time_ns / d->time_ns;
    }
    side->close(side);
  }
  return true;
}

double outside_middle(const outside_row *row, int count) {
  double sorted[OUTSIDE_MAX_PLACES];
  memcpy(sorted, row->ratio, sizeof sorted);
  return bench_median(sorted, count);
}

double outside_ratio(outside_side *side, const outside_options *o, const bench_problem *problem, size_t alignment) {
  outside_row row = {.claim = 0};
  return outside_measure(side, o, problem, alignment, &row) ? outside_middle(&row, o->spacing_count) : 0.0;
}
