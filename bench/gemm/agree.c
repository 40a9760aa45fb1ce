/* SPDX-License-Identifier: Apache-2.0
 * agree.c: do two ways give the same result? Both start from an output of NaN; a difference beyond what rounding on
 * both sides explains fails. attune verifies its winners by itself: this catches a bench that compares different
 * things. */
#include "bench/gemm/gemm.h"

#include "bench/common/tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Larger outputs are compared at both ends only. */
#define WINDOW_BYTES ((size_t)64 << 20)

static double half_value(uint16_t bits) {
  int exponent = (bits >> 10) & 31;
  double fraction = bits & 0x3ff, value;
  if (exponent == 31)
    value = fraction != 0.0 ? (double)NAN : (double)INFINITY;
  else if (exponent == 0)
    value = ldexp(fraction, -24);
  else
    value = ldexp(1024.0 + fraction, exponent - 25);
  return (bits & 0x8000u) != 0 ? -value : value;
}

/* Complex numbers are compared part by part. */
static attune_dtype part_of(attune_dtype dtype) {
  return dtype == ATTUNE_C64 ? ATTUNE_F32 : dtype == ATTUNE_C128 ? ATTUNE_F64 : dtype;
}
static int parts_of(attune_dtype dtype) {
  return part_of(dtype) == dtype ? 1 : 2;
}

static double element_at(const void *data, size_t index, attune_dtype dtype) {
  if (dtype == ATTUNE_F64) return ((const double *)data)[index];
  if (dtype == ATTUNE_F32) return (double)((const float *)data)[index];
  uint16_t bits = ((const uint16_t *)data)[index];
  if (dtype == ATTUNE_F16) return half_value(bits);
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return (double)value;
}

static double unit_of(attune_dtype dtype) {
  if (dtype == ATTUNE_F64) return 0x1p-53;
  if (dtype == ATTUNE_F32) return 0x1p-24;
  return dtype == ATTUNE_F16 ? 0x1p-11 : 0x1p-8;
}

/* What accumulation may add, for inputs in [-1,1]: gamma times a bound on the sum of |a||b|. */
static double accumulation(const attune_gemm_problem *g) {
  const attune_dtype part = part_of(g->dtype);
  double k = (double)g->k * parts_of(g->dtype), gamma;
  if (part == ATTUNE_F64 || part == ATTUNE_F32)
    gamma = fmax(8.0, fmax(2.0 * sqrt(k), k / 64.0)) * unit_of(part);
  else
    gamma = fmax(8.0, k / 16.0) * 0x1p-23;
  if (g->contract.accuracy == ATTUNE_REDUCED) gamma += g->dtype == ATTUNE_F32 ? 0x1p-10 : 4.0 * unit_of(g->dtype_out);
  return gamma * fmin(k, 16.0 + k / 2.0);
}

/* Compares the elements whose bytes lie wholly in [low, high); x and y hold that range. */
static double compare_window(const bench_problem *problem, const void *x, const void *y, size_t low, size_t high) {
  const attune_gemm_problem *g = &problem->gemm;
  const attune_dtype part = part_of(g->dtype_out);
  const int parts = parts_of(g->dtype_out);
  size_t element = attune_dtype_size(part);
  double unit = unit_of(part), sum = accumulation(g), worst = 0.0;
  for (int64_t batch = 0; batch < g->batch; batch++) {
    for (int64_t j = 0; j < g->n; j++) {
      size_t first = (size_t)((batch * g->stride_d + j * g->ldd) * parts), low_index = low / element,
             high_index = high / element;
      size_t begin = first < low_index ? low_index : first, end = first + (size_t)(g->m * parts);
      if (end > high_index) end = high_index;
      for (size_t i = begin; i < end; i++) {
        double a = element_at(x, i - low_index, part), b = element_at(y, i - low_index, part);
        double error = fabs(a - b) / (2.0 * (unit * fmax(fabs(a), fabs(b)) + sum));
        if (!(error <= worst)) worst = isnan(error) ? (double)INFINITY : error;
      }
    }
  }
  return worst;
}

static void run_once(bench_platform *platform, bench_way *way, const bench_set *set) {
  bench_check(attune_fill(platform->stream, set->d, 0xff, platform->problem->bytes_d), "attune_fill");
  if (!way->enqueue(platform, way, set)) bench_die("%s: %s failed", platform->problem->name, way->name);
}

static void fetch(bench_platform *platform, void *out, const bench_set *set, size_t low, size_t high) {
  bench_check(attune_copy(platform->stream, out, (const char *)set->d + low, high - low), "attune_copy");
  bench_check(attune_stream_synchronize(platform->stream), "attune_stream_synchronize");
}

bool bench_agree(bench_platform *platform, bench_way *way, bench_way *peer, const bench_set *set, double *worst) {
  size_t bytes = platform->problem->bytes_d, head = bytes < WINDOW_BYTES ? bytes : WINDOW_BYTES;
  size_t low[2] = {0, bytes - head < head ? head : bytes - head}, high[2] = {head, bytes};
  int windows = bytes > head ? 2 : 1;
  char *mine[2] = {NULL, NULL}, *theirs = malloc(head);
  run_once(platform, way, set);
  for (int w = 0; w < windows; w++) {
    mine[w] = malloc(head);
    if (mine[w] == NULL || theirs == NULL) bench_die("out of memory for %zu bytes to compare", head);
    fetch(platform, mine[w], set, low[w], high[w]);
  }
  run_once(platform, peer, set);
  *worst = 0.0;
  for (int w = 0; w < windows; w++) {
    fetch(platform, theirs, set, low[w], high[w]);
    double error = compare_window(platform->problem, mine[w], theirs, low[w], high[w]);
    if (error > *worst) *worst = error;
    free(mine[w]);
  }
  free(theirs);
  return *worst <= 1.0;
}
