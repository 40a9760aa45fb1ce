/* SPDX-License-Identifier: Apache-2.0
 * evaluate_gelu.c: both forms of gelu. The exponential of what is rounded multiplies the error by as much as that
 * number is large, so what was lost is carried along in `low`: the results are within 2^-60 of their value for x of
 * f64. */
#include "ops/elementwise/ir/evaluate.h"

#include <float.h>
#include <math.h>

typedef long double real;

typedef struct pair {
  real high, low;
} pair;

static pair sum(real a, real b) {
  const real high = a + b, rest = high - a;
  return (pair){high, (a - (high - rest)) + (b - rest)};
}

/* Dekker's product: each factor in two halves. */
static pair product(real a, real b) {
  const real cut = ldexpl(1.0L, (LDBL_MANT_DIG + 1) / 2) + 1.0L;
  const real a_cut = cut * a, a_high = a_cut - (a_cut - a), a_low = a - a_high;
  const real b_cut = cut * b, b_high = b_cut - (b_cut - b), b_low = b - b_high;
  const real high = a * b;
  return (pair){high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

/* x / 2 erfc(-x sqrt(1/2)), whose derivative is known. The first part of sqrt(1/2) has so few bits that its product is
 * exact. */
real at_evaluate_gelu(real x) {
  const real most = x * 0.70703125L, rest = x * 0.0000755311865475244008443621048490392848359377L, z = most + rest;
  if (!isfinite(z)) return 0.5L * x * erfcl(-z);
  const real lost = (most - z) + rest, slope = 1.12837916709551257389615890312154517L * expl(-z * z);
  return 0.5L * x * (erfcl(-z) + slope * lost);
}

/* x / (1 + exp(-x (k + j x^2))), k = 2 sqrt(2 / pi) and j = 0.044715 k, both in two parts. */
real at_evaluate_gelu_tanh(real x) {
  if (!(fabsl(x) < 64.0L)) return x / (1.0L + expl(-x * x * x)); /* x or -0 */
  const pair z = product(x, x), cubic = product(0.07135009765625L, z.high), most = sum(1.595703125L, cubic.high);
  const real j_rest = 0.00000471861635024877633875227986354099559207477L,
             k_rest = 0.0000659966057307117597842397375274739034345247L;
  const real rest = k_rest + (cubic.low + (0.07135009765625L * z.low + j_rest * z.high));
  const pair s = sum(most.high, most.low + rest), u = product(x, s.high);
  return x / (1.0L + expl(-u.high) * (1.0L - (u.low + x * s.low)));
}
