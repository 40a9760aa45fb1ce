/* SPDX-License-Identifier: Apache-2.0
 * extent.c: see extent.h. */
#include "tuning/op/extent.h"

void at_extent_add(at_extent *e, int64_t size, int64_t step) {
  if (size <= 1 || step == 0) return;
  const int64_t reach = step * (size - 1);
  if (reach < 0)
    e->low -= (uintptr_t)-reach;
  else
    e->high += (uintptr_t)reach;
  e->sizes[e->dims] = size;
  e->steps[e->dims++] = step < 0 ? -step : step;
}

static int64_t divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* How many bytes of every `period` the elements reach over, from the first one; more than the period: not known. */
static int64_t window(const at_extent *e, int64_t period) {
  int64_t width = e->element;
  for (int d = 0; d < e->dims; d++)
    if (e->steps[d] % period != 0) width += (e->sizes[d] - 1) * e->steps[d];
  return width;
}

static bool apart_by(const at_extent *a, const at_extent *b, int64_t period) {
  const int64_t wide_a = window(a, period), wide_b = window(b, period);
  if (wide_a > period || wide_b > period) return false;
  const uintptr_t unit = (uintptr_t)period;
  const int64_t phase = (int64_t)((b->low % unit + unit - a->low % unit) % unit); /* of b after a */
  return phase >= wide_a && phase + wide_b <= period;
}

bool at_extents_apart(const at_extent *a, const at_extent *b) {
  if (a->high <= b->low || b->high <= a->low) return true;
  int64_t common = 0;
  for (int d = 0; d < a->dims; d++) common = divisor(a->steps[d], common);
  for (int d = 0; d < b->dims; d++) common = divisor(b->steps[d], common);
  if (common > 0 && apart_by(a, b, common)) return true;
  for (int d = 0; d < a->dims; d++)
    if (apart_by(a, b, a->steps[d])) return true;
  for (int d = 0; d < b->dims; d++)
    if (apart_by(a, b, b->steps[d])) return true;
  return false;
}

static int least_of(const at_extent *e) {
  int least = 0;
  for (int d = 1; d < e->dims; d++)
    if (e->steps[d] < e->steps[least]) least = d;
  return least;
}

static void drop(at_extent *e, int dimension) {
  e->dims--;
  e->steps[dimension] = e->steps[e->dims];
  e->sizes[dimension] = e->sizes[e->dims];
}

/* Each dimension, from the smallest step on, steps over all that the ones before reach. */
bool at_extent_distinct(const at_extent *extent) {
  at_extent e = *extent;
  int64_t reach = e.element;
  while (e.dims > 0) {
    const int least = least_of(&e);
    if (e.steps[least] < reach) return false;
    reach += e.steps[least] * (e.sizes[least] - 1);
    drop(&e, least);
  }
  return true;
}

/* The same bytes with fewer dimensions: what leaves no gap becomes one longer element. */
static at_extent merged(const at_extent *extent) {
  at_extent e = *extent;
  while (e.dims > 0) {
    const int least = least_of(&e);
    if (e.steps[least] > e.element) break;
    e.element += e.steps[least] * (e.sizes[least] - 1);
    drop(&e, least);
  }
  return e;
}

static int64_t longest_of(const at_extent *e, int *dimension) {
  int64_t longest = 0;
  for (int d = 0; d < e->dims; d++) {
    const int64_t reach = e->steps[d] * (e->sizes[d] - 1);
    if (reach > longest) {
      longest = reach;
      *dimension = d;
    }
  }
  return longest;
}

static bool share(const at_extent *a, const at_extent *b);

/* In two halves along the dimension. */
static bool halves_share(const at_extent *whole, int dimension, const at_extent *other) {
  at_extent half = *whole;
  const int64_t first = whole->sizes[dimension] / 2, rest = whole->sizes[dimension] - first,
                step = whole->steps[dimension];
  half.high -= (uintptr_t)(rest * step);
  half.sizes[dimension] = first;
  if (first == 1) drop(&half, dimension);
  if (share(&half, other)) return true;
  half = *whole;
  half.low += (uintptr_t)(first * step);
  half.sizes[dimension] = rest;
  if (rest == 1) drop(&half, dimension);
  return share(&half, other);
}

static bool share(const at_extent *a, const at_extent *b) {
  int in_a = 0, in_b = 0;
  if (at_extents_apart(a, b)) return false;
  const int64_t wide_a = longest_of(a, &in_a), wide_b = longest_of(b, &in_b);
  if (wide_a == 0 && wide_b == 0) return true; /* two stretches of bytes */
  return wide_a >= wide_b ? halves_share(a, in_a, b) : halves_share(b, in_b, a);
}

bool at_extents_meet(const at_extent *a, const at_extent *b) {
  const at_extent plain_a = merged(a), plain_b = merged(b);
  return share(&plain_a, &plain_b);
}
