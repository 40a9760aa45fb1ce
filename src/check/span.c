/* SPDX-License-Identifier: Apache-2.0
 * span.c: see span.h. */
#include "src/check/span.h"

#define LOOKS_MOST (1 << 20)

/* By falling step. */
static void insert_dim(at_span *s, int64_t count, int64_t step) {
  int at = s->dims++;
  for (; at > 0 && s->dim[at - 1].step < step; at--) s->dim[at] = s->dim[at - 1];
  s->dim[at] = (at_span_dim){count, step};
}

/* A dimension whose steps are those of the next one gone on with is a longer one. */
static void merge_dims(at_span *s) {
  int kept = 0;
  for (int d = 1; d < s->dims; d++) {
    at_span_dim *outer = &s->dim[kept], inner = s->dim[d];
    if (outer->step == inner.step * inner.count)
      *outer = (at_span_dim){outer->count * inner.count, inner.step};
    else
      s->dim[++kept] = inner;
  }
  if (s->dims) s->dims = kept + 1;
}

bool at_span_make(at_span *out, const at_operand_access *use) {
  *out = (at_span){.start = (uintptr_t)use->data, .run = (int64_t)use->element};
  if (use->element == 0) return false;
  for (int d = 0; d < use->dims; d++) {
    int64_t count = use->counts[d], step = use->steps[d];
    if (count <= 0) return false;
    if (step < 0) {
      out->start -= (uintptr_t)-step * (uintptr_t)(count - 1);
      step = -step;
    }
    if (count > 1 && step > 0) insert_dim(out, count, step);
  }
  for (; out->dims && out->dim[out->dims - 1].step <= out->run; out->dims--)
    out->run += out->dim[out->dims - 1].step * (out->dim[out->dims - 1].count - 1);
  merge_dims(out);
  out->end = out->start + (uintptr_t)out->run;
  for (int d = 0; d < out->dims; d++) out->end += (uintptr_t)(out->dim[d].step * (out->dim[d].count - 1));
  return true;
}

at_span at_span_bytes(uintptr_t start, size_t bytes) {
  return (at_span){.start = start, .end = start + bytes, .run = (int64_t)bytes};
}

/* extent[d]: the bytes from the first to the last of dimensions d and inner ones. */
typedef struct walk {
  const at_span *a, *b;
  int64_t extent_a[AT_INSTRUMENT_DIMS + 1], extent_b[AT_INSTRUMENT_DIMS + 1];
  int looks;
} walk;

static void measure(const at_span *s, int64_t *extent) {
  extent[s->dims] = s->run;
  for (int d = s->dims - 1; d >= 0; d--) extent[d] = extent[d + 1] + s->dim[d].step * (s->dim[d].count - 1);
}

static int64_t div_down(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}
static int64_t div_up(int64_t a, int64_t b) {
  return -div_down(-a, b);
}
static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}
static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Dimension i and inner ones of a, which begin at 0, with j and inner ones of b, which begin at `shift`. The dimension
 * of the larger step is taken apart; where the steps are the same, only the difference of the two indices counts. */
static bool meet(walk *w, int i, int j, int64_t shift) {
  const int64_t *ea = w->extent_a, *eb = w->extent_b;
  if (shift >= ea[i] || -shift >= eb[j] || w->looks-- <= 0) return false;
  const at_span_dim none = {1, 0};
  const at_span_dim a = i < w->a->dims ? w->a->dim[i] : none, b = j < w->b->dims ? w->b->dim[j] : none;
  if (!a.step && !b.step) return true;
  const int next_i = a.step >= b.step ? i + 1 : i, next_j = b.step >= a.step ? j + 1 : j;
  const int64_t step = most(a.step, b.step);
  int64_t from = div_up(1 - eb[next_j] - shift, step), to = div_down(ea[next_i] - 1 - shift, step);
  from = most(from, a.step == step ? 1 - a.count : 0);
  to = least(to, b.step == step ? b.count - 1 : 0);
  for (int64_t k = from; k <= to && w->looks > 0; k++)
    if (meet(w, next_i, next_j, shift + k * step)) return true;
  return false;
}

bool at_span_meet(const at_span *a, const at_span *b) {
  if (a->end <= b->start || b->end <= a->start) return false;
  if (!a->dims && !b->dims) return true;
  walk w = {.a = a, .b = b, .looks = LOOKS_MOST};
  measure(a, w.extent_a);
  measure(b, w.extent_b);
  return meet(&w, 0, 0, (int64_t)(b->start - a->start));
}

bool at_span_cover(const at_span *a, const at_span *b) {
  if (a->start > b->start || a->end < b->end) return false;
  if (!a->dims) return true;
  bool same = a->start == b->start && a->run == b->run && a->dims == b->dims;
  for (int d = 0; d < a->dims && same; d++)
    same = a->dim[d].count == b->dim[d].count && a->dim[d].step == b->dim[d].step;
  return same;
}
