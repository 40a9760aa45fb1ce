/* SPDX-License-Identifier: Apache-2.0
 * database_verdict.c: verdicts on stored winners. Their samples are of one process each and of different times, and are
 * not kept: so the noise is what the search wrote down of it, the whole deviation between places in memory counts, and
 * a change must stand out from what the other problems did, as with any two runs of different times. */
#include "tools/compare/stats/database_verdict.h"

#include <math.h>
#include <stdlib.h>

#include "tools/compare/message.h"
#include "tools/compare/stats/multiple_testing.h"

enum { SAMPLES_LEAST = 5 };
static const double TWO_SIDES_95 = 1.96;

static const char OPEN[] = "the search left the choice open", FEW[] = "too few samples",
                  NOISE[] = "the stored noise exceeds the threshold", NEAR[] = "about as large as the threshold",
                  BASE_ONLY[] = "only the base has it", HEAD_ONLY[] = "only the head has it",
                  BASE_EMPTY[] = "the base has no times", HEAD_EMPTY[] = "the head has no times";

static bool timed(const gate_stored *s) {
  return isfinite(s->ns) && s->ns > 0.0;
}

/* The standard error of the median, 1.2533 deviations / sqrt(samples), and what the place in memory adds. */
static double error_of(const gate_stored *s) {
  const double deviation = 1.4826 * fmax(s->spread, 0.0), samples = 1.2533 * deviation / sqrt((double)s->samples);
  return sqrt(samples * samples + s->placement * s->placement);
}

/* One measurement, copied from one database to the other. */
static bool is_one(const gate_stored *a, const gate_stored *b) {
  return a->tuned_at && a->tuned_at == b->tuned_at && a->ns == b->ns && a->spread == b->spread &&
         a->samples == b->samples;
}

/* False: the verdict is settled. */
static bool gather(gate_judgement *out, const gate_stored *base, const gate_stored *head, double *shift,
                   double *error) {
  *out = (gate_judgement){.ratio = NAN, .low = NAN, .high = NAN, .p = 1.0, .p_corrected = 1.0};
  if (base) out->base_ns = base->ns, out->base_spread = base->spread, out->base_visits = 1;
  if (head) out->head_ns = head->ns, out->head_spread = head->spread, out->head_visits = 1;
  out->verdict = GATE_MISSING;
  out->why = base ? BASE_ONLY : HEAD_ONLY;
  if (!base || !head) return false;
  out->verdict = GATE_FAILED;
  out->why = timed(base) ? HEAD_EMPTY : BASE_EMPTY;
  if (!timed(base) || !timed(head)) return false;
  *shift = log(head->ns / base->ns);
  out->ratio = exp(*shift);
  if (is_one(base, head)) {
    out->low = out->high = 1.0;
    out->verdict = GATE_SAME;
    out->why = NULL;
    return false;
  }
  out->verdict = GATE_UNSURE;
  out->why = base->sure && head->sure ? FEW : OPEN;
  if (!base->sure || !head->sure || base->samples < SAMPLES_LEAST || head->samples < SAMPLES_LEAST) return false;
  *error = hypot(error_of(base), error_of(head));
  if (!isfinite(*error)) return false;
  out->low = exp(*shift - TWO_SIDES_95 * *error);
  out->high = exp(*shift + TWO_SIDES_95 * *error);
  out->p = *error > 0.0 ? erfc(fabs(*shift) / *error * M_SQRT1_2) : *shift != 0.0 ? 0.0 : 1.0;
  return true;
}

static void decide(gate_judgement *out, double shift, const gate_rule *rule, const gate_drift *drift) {
  const double margin = log1p(rule->floor);
  const int direction = shift > 0.0 ? 1 : -1;
  const bool certain = out->p_corrected <= rule->alpha;
  out->verdict = GATE_UNSURE;
  out->why = certain ? NEAR : NOISE;
  if (certain && gate_counts(shift, direction, margin)) {
    out->why = gate_drift_excuse(drift, shift, direction, margin);
    if (!out->why) out->verdict = direction > 0 ? GATE_SLOWER : GATE_FASTER;
  } else if (log(out->low) > -margin && log(out->high) < margin) {
    out->verdict = GATE_SAME;
    out->why = NULL;
  }
}

void gate_judge_stored(gate_judgement *out, const gate_stored *const *base, const gate_stored *const *head,
                       size_t count, const gate_rule *rule) {
  double *shifts = gate_alloc(count + 1, sizeof *shifts), *p = gate_alloc(count + 1, sizeof *p),
         *corrected = gate_alloc(count + 1, sizeof *corrected), error = 0.0;
  size_t *at = gate_alloc(count + 1, sizeof *at), judged = 0;
  for (size_t i = 0; i < count; i++)
    if (gather(&out[i], base[i], head[i], &shifts[judged], &error)) {
      p[judged] = out[i].p;
      at[judged++] = i;
    }
  const gate_drift drift = gate_drift_of(shifts, judged);
  gate_holm(p, judged, corrected);
  for (size_t k = 0; k < judged; k++) {
    out[at[k]].p_corrected = corrected[k];
    decide(&out[at[k]], shifts[k], rule, &drift);
  }
  free(at);
  free(corrected);
  free(p);
  free(shifts);
}
