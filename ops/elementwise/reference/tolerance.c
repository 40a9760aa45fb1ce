/* SPDX-License-Identifier: Apache-2.0
 * tolerance.c: see tolerance.h. */
#include "ops/elementwise/reference/tolerance.h"

#include <float.h>
#include <math.h>

/* The distance of the dtype's numbers near x. */
static double unit_of(attune_dtype dtype, double x) {
  int bits, least, exponent;
  switch (dtype) {
  case ATTUNE_F64:
  case ATTUNE_C128: bits = 53, least = -1022; break;
  case ATTUNE_F16: bits = 11, least = -14; break;
  case ATTUNE_BF16: bits = 8, least = -126; break;
  case ATTUNE_F8E4M3: bits = 4, least = -6; break;
  case ATTUNE_F8E5M2: bits = 3, least = -14; break;
  default: bits = 24, least = -126; break;
  }
  if (!isfinite(x)) return 0.0;
  (void)frexp(x, &exponent);
  return ldexp(1.0, (x == 0.0 || exponent - 1 < least ? least : exponent - 1) - bits + 1);
}

/* Units that a function's result may be off. */
static double units_allowed(const at_node *node, bool reduced) {
  const attune_dtype d = (attune_dtype)node->dtype;
  const at_function f = (at_function)node->function;
  if (node->kind != AT_NODE_FUNCTION) return 0.0;
  if (reduced && (d == ATTUNE_F32 || d == ATTUNE_C64)) return 0x1p14; /* 2^-9 relative */
  if (at_dtype_kind_of(d) == AT_KIND_COMPLEX) return f == AT_FN_POWER ? 400.0 : 32.0;
  if (d == ATTUNE_F64) return f == AT_FN_LGAMMA || f == AT_FN_TGAMMA ? 128.0 : 8.0;
  return 4.0;
}

static double size_of(attune_dtype dtype, at_wide_value x) {
  if (at_dtype_whole(dtype)) return 0.0;
  return fmax(fabs((double)x.re), fabs((double)x.im));
}

/* The difference of two integers, which f64 may not tell apart. */
static double whole_difference(attune_dtype dtype, int64_t a, int64_t b) {
  const bool less = dtype == ATTUNE_U64 ? (uint64_t)a < (uint64_t)b : a < b;
  return (double)(less ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b);
}

/* The difference of two values of a dtype; infinity where only one of them is a number. */
static double difference(attune_dtype dtype, at_wide_value x, at_wide_value y) {
  if (at_dtype_whole(dtype)) return whole_difference(dtype, x.integer, y.integer);
  const long double parts[2][2] = {{x.re, y.re}, {x.im, y.im}};
  double most = 0.0;
  for (int i = 0; i < 2; i++) {
    const long double a = parts[i][0], b = parts[i][1];
    if (a == b || (isnan(a) && isnan(b))) continue;
    const double apart = isfinite(a) && isfinite(b) ? (double)fabsl(a - b) : (double)INFINITY;
    if (apart > most) most = apart;
  }
  return most;
}

/* `x` of the dtype moved by `by` in part `part`. */
static at_wide_value moved(attune_dtype dtype, at_wide_value x, double by, int part) {
  if (at_dtype_whole(dtype))
    x.integer = dtype == ATTUNE_BOOL ? x.integer ^ 1
                                     : at_integer_wrap(dtype, (int64_t)((uint64_t)x.integer + (uint64_t)(int64_t)by));
  else if (part == 0)
    x.re += by;
  else
    x.im += by;
  return x;
}

static at_wide_value apply(const at_expression *e, const at_node *node, const at_wide_value *x) {
  const attune_dtype dtype = (attune_dtype)node->dtype,
                     from = (attune_dtype)e->nodes[node->argument[node->count - 1]].dtype;
  if (node->kind == AT_NODE_CAST) return at_wide_value_cast(dtype, from, x[0]);
  return at_evaluate_function((at_function)node->function, from, dtype, x);
}

/* How far the result goes when argument k is off by its bound. */
static double spread(const at_expression *e, const at_node *node, const at_wide_value *x, const at_wide_value *result,
                     int k, double bound) {
  const attune_dtype dtype = (attune_dtype)e->nodes[node->argument[k]].dtype;
  const int parts = at_dtype_kind_of(dtype) == AT_KIND_COMPLEX ? 2 : 1;
  double most = 0.0;
  if (bound == 0.0) return 0.0;
  if (!isfinite(bound) || (at_dtype_whole(dtype) && bound > 0x1p53)) return (double)INFINITY;
  for (int part = 0; part < parts; part++)
    for (int sign = -1; sign <= 1; sign += 2) {
      at_wide_value other[3] = {x[0], x[1], x[2]};
      other[k] = moved(dtype, x[k], sign * bound, part);
      const double apart = difference((attune_dtype)node->dtype, apply(e, node, other), *result);
      if (apart > most) most = apart;
    }
  return most;
}

/* Functions whose value is only seen as a narrow float may be computed with no more digits than that (generate.c): next
 * to the middle of two narrow numbers either is right. */
static double narrowing(const at_node *node, const double *bounds, at_wide_value value) {
  const attune_dtype d = (attune_dtype)node->dtype;
  const bool narrow = d == ATTUNE_F16 || d == ATTUNE_BF16 || d == ATTUNE_F8E4M3 || d == ATTUNE_F8E5M2;
  return node->kind == AT_NODE_CAST && narrow && bounds[node->argument[0]] > 0.0 ? unit_of(d, size_of(d, value)) : 0.0;
}

void at_tolerance_bounds(double *bounds, const at_wide_value *values, const at_expression *e, bool reduced) {
  for (int i = 0; i < e->node_count; i++) {
    const at_node *node = &e->nodes[i];
    const attune_dtype dtype = (attune_dtype)node->dtype;
    at_wide_value x[3] = {{0}};
    bounds[i] = units_allowed(node, reduced) * unit_of(dtype, size_of(dtype, values[i]));
    if (at_dtype_whole(dtype)) bounds[i] = 0.0;
    if (node->count == 0) continue;
    for (int k = 0; k < node->count; k++) x[k] = values[node->argument[k]];
    const at_wide_value exact = apply(e, node, x);
    for (int k = 0; k < node->count; k++) bounds[i] += 1.25 * spread(e, node, x, &exact, k, bounds[node->argument[k]]);
    bounds[i] = fmax(bounds[i], narrowing(node, bounds, values[i]));
  }
}

/* Infinity where the largest number is meant, or the other way round. */
static bool both_huge(attune_dtype dtype, double got, double wanted) {
  const double most = dtype == ATTUNE_F64 || dtype == ATTUNE_C128 ? DBL_MAX
                      : dtype == ATTUNE_F16                       ? 65504.0
                      : dtype == ATTUNE_F8E4M3                    ? 448.0
                      : dtype == ATTUNE_F8E5M2                    ? 57344.0
                                                                  : (double)FLT_MAX;
  return (got < 0) == (wanted < 0) && fabs(got) > 0.99 * most && fabs(wanted) > 0.99 * most;
}

static double part_error(attune_dtype dtype, long double got, long double wanted, double bound, double unit) {
  if (got == wanted || (isnan(got) && isnan(wanted)) || !isfinite(bound)) return 0.0;
  if (both_huge(dtype, (double)got, (double)wanted)) return 0.0;
  if (!isfinite(got) || !isfinite(wanted)) return (double)INFINITY;
  return (double)fabsl(got - wanted) / (bound + unit);
}

double at_tolerance_error(const void *got, attune_dtype stored, attune_dtype node_dtype, at_wide_value value,
                          double bound) {
  const at_wide_value x = at_wide_value_load(stored, got), wanted = at_wide_value_cast(stored, node_dtype, value);
  double apart = 0.0; /* what the conversion makes of the bound */
  if (stored == ATTUNE_BOOL && *(const unsigned char *)got > 1) return (double)INFINITY; /* neither true nor false */
  if (bound > 0.0 && isfinite(bound)) {
    const int parts = at_dtype_kind_of(node_dtype) == AT_KIND_COMPLEX ? 2 : 1;
    for (int part = 0; part < parts; part++)
      for (int sign = -1; sign <= 1; sign += 2) {
        const double d = difference(
            stored, at_wide_value_cast(stored, node_dtype, moved(node_dtype, value, sign * bound, part)), wanted);
        if (d > apart) apart = d;
      }
  } else if (bound > 0.0) {
    return 0.0;
  }
  if (at_dtype_whole(stored)) {
    const double off = difference(stored, x, wanted);
    return off == 0.0 ? 0.0 : off <= apart ? 1.0 : (double)INFINITY;
  }
  const bool copied = bound == 0.0 && stored == node_dtype; /* then there is not even a rounding */
  const double unit = copied ? 0.0 : unit_of(stored, size_of(stored, wanted)),
               re = part_error(stored, x.re, wanted.re, apart, unit);
  return at_dtype_kind_of(stored) == AT_KIND_COMPLEX ? fmax(re, part_error(stored, x.im, wanted.im, apart, unit)) : re;
}

double at_tolerance_unit(attune_dtype dtype, double x) {
  return unit_of(dtype, x);
}
