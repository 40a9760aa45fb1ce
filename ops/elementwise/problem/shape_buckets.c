/* SPDX-License-Identifier: Apache-2.0
 * shape_buckets.c: the class of a problem. Kernels are made for how operands lie, not for their sizes: what counts is
 * roughly how large a dimension is, what powers of two divide sizes and strides, which strides are 0, 1 or just step
 * over what lies inside, and the order of the strides. Folding replaces sizes and strides by the least ones that are
 * alike in this. It changes nothing when it is repeated: test_elementwise_problem. */
#include <string.h>

#include "ops/elementwise/problem/problem.h"

enum {
  EXACT_BELOW = 16, /* sizes */
  MOST_TWOS = 6,    /* more twos in a size or stride are not distinguished: the widest vector has 64 elements */
  MOST_GAP = 16     /* a stride so many times larger than what it steps over is far */
};

/* Twos in x > 0, as far as they count. */
static int twos(int64_t x) {
  const int n = __builtin_ctzll((unsigned long long)x);
  return n < MOST_TWOS ? n : MOST_TWOS;
}

/* The three highest bits, and the same twos: four classes an octave. */
static int64_t size_class(int64_t size) {
  if (size < EXACT_BELOW) return size;
  const int low = 61 - __builtin_clzll((unsigned long long)size); /* bits below the three */
  const int64_t least = size >> low << low;
  return twos(least) == twos(size) ? least : least + (INT64_C(1) << twos(size));
}

/* The least number that is at least `from`, or above it if `beyond`, and has the twos of `like`. It is at most `like`,
 * if that is at least `from`. */
static int64_t least_alike(int64_t from, bool beyond, int64_t like) {
  const int n = twos(like);
  const int64_t step = INT64_C(1) << n;
  int64_t x = (from + step - 1) / step * step;
  if (beyond && x == from) x += step;
  return twos(x) == n ? x : x + step;
}

/* The class of a stride over what reaches `own` elements, which reach `least` in the class; `previous` is the class's
 * stride before. */
static int64_t stride_class(int64_t stride, int64_t own, int64_t least, int64_t previous) {
  if (stride == own) return least;
  if (stride < own) { /* elements fall together: an input alone */
    const int64_t most = least > previous + 1 ? least - 1 : previous;
    return stride < previous ? previous : stride > most ? most : stride;
  }
  int64_t gap = 1;
  while (gap < MOST_GAP && stride / own >= 2 * gap) gap *= 2;
  return least_alike(gap * least, gap == 1, stride);
}

static int64_t magnitude(int64_t x) {
  return x < 0 ? -x : x;
}

/* The dimensions of an operand by the size of its strides, without those that are 0; their number. */
static int order(int out[AT_DIMS], const int64_t *strides, int dims) {
  int count = 0;
  for (int d = 0; d < dims; d++) {
    if (strides[d] == 0) continue;
    int at = count++;
    for (; at > 0 && magnitude(strides[out[at - 1]]) > magnitude(strides[d]); at--) out[at] = out[at - 1];
    out[at] = d;
  }
  return count;
}

/* Strides become those of the class; `sizes` are as they were, `classes` those of the class. */
static void fold_strides(int64_t *strides, const int64_t *sizes, const int64_t *classes, int dims) {
  int by_stride[AT_DIMS];
  const int count = order(by_stride, strides, dims);
  int64_t own = 1, least = 1, previous = 1;
  for (int i = 0; i < count; i++) {
    const int d = by_stride[i];
    const int64_t stride = magnitude(strides[d]), folded = stride_class(stride, own, least, previous);
    const int64_t reach = stride * sizes[d], reach_least = folded * classes[d];
    strides[d] = strides[d] < 0 ? -folded : folded;
    if (reach > own) own = reach;
    if (reach_least > least) least = reach_least;
    previous = folded;
  }
}

/* Numbers of 32 bits suffice where there are fewer elements than 2^31, counted with all that strides step over: a class
 * must not lie on the other side. */
static bool is_wide(const at_elementwise *p) {
  for (int k = 0; k < at_elementwise_tensors(p); k++) {
    const int64_t *strides = at_elementwise_strides(p, k);
    int64_t reach = 1;
    for (int d = 0; d < p->dims; d++) {
      int64_t way;
      if (!at_mul_i64(&way, magnitude(strides[d]), p->numbers[d]) || !at_add_i64(&reach, reach, way)) return true;
    }
    if (reach > INT32_MAX) return true;
  }
  return at_elementwise_count(p) > INT32_MAX;
}

static void fold_all(at_elementwise *p, const int64_t *classes) {
  for (int k = 0; k < at_elementwise_operand_count(p); k++)
    fold_strides(p->numbers + p->dims * (1 + k), p->numbers, classes, p->dims);
  memcpy(p->numbers, classes, p->dims * sizeof *classes);
  at_elementwise_set_offsets(p);
}

void at_elementwise_fold(void *problem, const attune_device *device) {
  at_elementwise *p = problem;
  _Alignas(8) char before[AT_PROBLEM_BYTES];
  int64_t classes[AT_DIMS];
  p->alignment = at_alignment_fold(device, p->alignment);
  const bool wide = is_wide(p);
  if (wide) memcpy(before, p, p->text_at);
  for (int d = 0; d < p->dims; d++) classes[d] = size_class(p->numbers[d]);
  fold_all(p, classes);
  if (!wide || is_wide(p)) return;
  memcpy(p, before, p->text_at); /* just beyond the bound: a class of its own */
}
