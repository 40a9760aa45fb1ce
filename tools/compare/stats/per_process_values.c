/* SPDX-License-Identifier: Apache-2.0
 * per_process_values.c: one value for each visit.
 *
 * The value is the mean of the faster half of its samples. Noise of other work only ever adds time, and adds it to some
 * samples and not to others, so the slower half says more of the neighbours than of the code. Like the median, this
 * does not see what strikes fewer than half of the samples. */
#include "tools/compare/stats/per_process_values.h"

#include <math.h>
#include <stdlib.h>

#include "tools/compare/message.h"

static double faster_half(double *times, int count) {
  gate_sort(times, count);
  const int kept = (count + 1) / 2;
  double sum = 0.0;
  for (int i = 0; i < kept; i++) sum += times[i];
  return sum / kept;
}

double gate_visit_value(const gate_visit *visit) {
  double *times = gate_alloc(visit->sample_count > 0 ? (size_t)visit->sample_count : 1, sizeof *times);
  int count = 0;
  for (int i = 0; i < visit->sample_count; i++)
    if (isfinite(visit->samples[i].ns) && visit->samples[i].ns > 0.0) times[count++] = visit->samples[i].ns;
  const double value = count ? faster_half(times, count) : 0.0;
  free(times);
  return value;
}

void gate_side_make(gate_side *out, const gate_case *c) {
  out->count = out->throttled = 0;
  for (int i = 0; i < c->visit_count && out->count < GATE_MOST_VALUES; i++) {
    const gate_visit *visit = &c->visits[i];
    const double ns = gate_visit_value(visit);
    if (!(ns > 0.0)) continue;
    if (visit->throttled) {
      out->throttled++;
      continue;
    }
    out->ns[out->count] = ns;
    out->clock[out->count] = isfinite(visit->clock_mhz) && visit->clock_mhz > 0.0 ? visit->clock_mhz : 0.0;
    out->round[out->count++] = visit->round;
  }
}

/* NAN: it is asked for cycles and the clock is not known. */
static double value_at(const gate_side *side, int i, bool cycles) {
  if (!cycles) return log(side->ns[i]);
  return side->clock[i] > 0.0 ? log(side->ns[i]) + log(side->clock[i]) : NAN;
}

static int find_round(const gate_side *side, int round) {
  for (int i = 0; i < side->count; i++)
    if (side->round[i] == round) return i;
  return -1;
}

static bool add(double *values, int *count, double value) {
  values[(*count)++] = value;
  return !isnan(value);
}

static bool make_pairs(gate_values *out, const gate_side *base, const gate_side *head, bool cycles) {
  bool known = true;
  for (int i = 0; i < head->count; i++) {
    const int k = find_round(base, head->round[i]);
    if (k < 0 || find_round(head, head->round[i]) != i) continue;
    known &= add(out->base, &out->base_count, value_at(base, k, cycles));
    known &= add(out->head, &out->head_count, value_at(head, i, cycles));
  }
  return known;
}

bool gate_values_make(gate_values *out, const gate_side *base, const gate_side *head, bool paired, bool cycles) {
  bool known = true;
  out->base_count = out->head_count = 0;
  out->paired = paired;
  if (paired) {
    known = make_pairs(out, base, head, cycles);
  } else {
    for (int i = 0; i < base->count; i++) known &= add(out->base, &out->base_count, value_at(base, i, cycles));
    for (int i = 0; i < head->count; i++) known &= add(out->head, &out->head_count, value_at(head, i, cycles));
  }
  if (!known) out->base_count = out->head_count = 0;
  return out->base_count > 0 && out->head_count > 0;
}

static void differences(const gate_values *values, double *out) {
  for (int i = 0; i < values->head_count; i++) out[i] = values->head[i] - values->base[i];
}

double gate_values_p(const gate_values *values) {
  double d[GATE_MOST_VALUES];
  if (!values->paired) return gate_rank_sum(values->base, values->base_count, values->head, values->head_count);
  differences(values, d);
  return gate_signed_rank(d, values->head_count);
}

double gate_values_least_p(const gate_values *values) {
  return values->paired ? gate_signed_rank_least(values->head_count)
                        : gate_rank_sum_least(values->base_count, values->head_count);
}

gate_estimate gate_values_shift(const gate_values *values, double level) {
  double d[GATE_MOST_VALUES];
  if (!values->paired)
    return gate_group_shift(values->base, values->base_count, values->head, values->head_count, level);
  differences(values, d);
  return gate_paired_shift(d, values->head_count, level);
}
