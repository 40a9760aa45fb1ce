/* SPDX-License-Identifier: Apache-2.0
 * outside_twice.c: how well does the outside agree with itself? A claim cannot be nearer to a measurement than that is
 * to its own repetition: all rows are measured again, in new processes, and both distances are told side by side. */
#include "bench/outside/outside.h"

#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <math.h>
#include <stdlib.h>

/* How far x is from y, in percent of y. */
static double off(double x, double y) {
  return 100.0 * fabs(x / y - 1.0);
}

typedef struct distances {
  double *itself, *claim;                 /* in percent */
  int count, itself_off, claim_off, near; /* near: the claim lies between both, or within the tolerance of one */
} distances;

static void note(distances *d, const outside_seen *row, double again, double tolerance) {
  const double first = row->ratio, percent = 100.0 * tolerance;
  const double low = fmin(first, again) * (1.0 - tolerance), high = fmax(first, again) * (1.0 + tolerance);
  d->itself[d->count] = off(again, first);
  d->claim[d->count] = off(row->claim, sqrt(first * again));
  d->itself_off += d->itself[d->count] > percent;
  d->claim_off += d->claim[d->count] > percent;
  d->near += row->claim >= low && row->claim <= high;
  d->count++;
}

static void tell(distances *d, double tolerance) {
  if (!d->count) return;
  const double itself = bench_median(d->itself, d->count), claim = bench_median(d->claim, d->count);
  bench_line("- the outside and its repetition: %d of %d rows differ by more than %.0f %%, by %.1f %% in the median",
             d->itself_off, d->count, 100.0 * tolerance, itself);
  bench_line(
      "- claims and the mean of both: %d of %d rows differ by more than %.0f %%, by %.1f %% in the median; %d lie "
      "between both or as near to one",
      d->claim_off, d->count, 100.0 * tolerance, claim, d->near);
}

void outside_twice(outside_side *side, outside_options *o, const attune_workload *workload, const outside_seen *rows,
                   int count) {
  distances d = {.itself = calloc((size_t)count + 1, sizeof(double)),
                 .claim = calloc((size_t)count + 1, sizeof(double))};
  if (!d.itself || !d.claim) bench_die("out of memory");
  outside_open(side, o);
  bench_line("%s", "");
  bench_table("| name | align >| claimed >| measured >| again >| again / measured >|");
  for (int i = 0; i < count; i++) {
    const attune_workload_entry *entry = attune_workload_at(workload, rows[i].entry);
    bench_problem problem = {.bytes_a = 0};
    bench_problem_read(&problem, entry);
    const double again = outside_ratio(side, o, &problem, rows[i].alignment);
    if (!(again > 0.0) || !(rows[i].claim > 0.0)) continue;
    bench_line("| %s | %zu | %.3f | %.3f | %.3f | %.3f |", problem.name, rows[i].alignment, rows[i].claim,
               rows[i].ratio, again, again / rows[i].ratio);
    note(&d, &rows[i], again, side->claim_tolerance);
  }
  bench_line("%s", "");
  tell(&d, side->claim_tolerance);
  side->end(side);
  free(d.itself);
  free(d.claim);
}
