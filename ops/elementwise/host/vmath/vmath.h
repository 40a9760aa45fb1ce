/* SPDX-License-Identifier: Apache-2.0
 * vmath.h: functions without branches on f32, for loops that become vectors.
 *
 * Here they are computed in f64 and rounded to f32 at the end, so that they are within 0.51 units in the last place,
 * with fused multiply-add and without; vmath32.h has the frequent ones in f32. Arguments are reduced as Cody
 * and Waite do (Software Manual for the Elementary Functions, 1980): less n times a constant in two parts. Polynomials
 * are minimax ones: Remez exchange in 50 digits, coefficients then rounded to the format; each says what it
 * approximates, where, and how far off it is. */
#ifndef AT_VMATH_H
#define AT_VMATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/half.h"

#define FLAT static inline __attribute__((always_inline))

#define LOG2_E 1.4426950408889634
#define LOG10_E 0.43429448190325182

FLAT double f64_of(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* first ? x : y, by bits: two of these in a row would become branches. */
FLAT float pickf(bool first, float x, float y) {
  uint32_t a, b;
  const uint32_t mask = 0 - (uint32_t)first;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  a = (a & mask) | (b & ~mask);
  memcpy(&x, &a, sizeof x);
  return x;
}
FLAT double pick(bool first, double x, double y) {
  uint64_t a, b;
  const uint64_t mask = 0 - (uint64_t)first;
  memcpy(&a, &x, sizeof a);
  memcpy(&b, &y, sizeof b);
  return f64_of((a & mask) | (b & ~mask));
}

/* NaN if either is; of two zeros -0 is the lesser one. */
FLAT float leastf(float x, float y) {
  return pickf((x != x) | (x < y) | ((x == y) & (__builtin_copysignf(1, x) < 0)), x, y);
}
FLAT double least(double x, double y) {
  return pick((x != x) | (x < y) | ((x == y) & (__builtin_copysign(1, x) < 0)), x, y);
}
FLAT float greatestf(float x, float y) {
  return pickf((x != x) | (x > y) | ((x == y) & (__builtin_copysignf(1, x) > 0)), x, y);
}
FLAT double greatest(double x, double y) {
  return pick((x != x) | (x > y) | ((x == y) & (__builtin_copysign(1, x) > 0)), x, y);
}

/* min(max(x, low), high), where it does not matter which zero is the lesser one. */
FLAT float clampf(float x, float low, float high) {
  float y = x > low ? x : low; /* NaN of `low` stays, of x does not */
  y = ((y != y) | (y < high)) ? y : high;
  return x != x ? x : y;
}
FLAT double clamp(double x, double low, double high) {
  double y = x > low ? x : low; /* NaN of `low` stays, of x does not */
  y = ((y != y) | (y < high)) ? y : high;
  return x != x ? x : y;
}

/* a * b + c where speed counts and either rounding will do. */
FLAT double mac(double a, double b, double c) {
#ifdef __FMA__
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/* Four steps of a polynomial in x at once, by its powers: y x^4 + a x^3 + b x^2 + c x + d. A quarter as many wait for
 * each the last. */
#define FOUR64(y, x, xx, xxxx, a, b, c, d) mac(y, xxxx, mac(mac(a, x, b), xx, mac(c, x, d)))

/* exp(r) - 1 for |r| <= ln(2) / 2: r + r^2 q(r), q off by 2^-53 of its value. */
FLAT double expm1_factor(double r) {
  const double rr = r * r, rrrr = rr * rr;
  const double q = FOUR64(mac(0x1.af639856439dfp-26, r, 0x1.2891d5cc1caabp-22), r, rr, rrrr, 0x1.71ddf6797c975p-19,
                          0x1.a019b8c96c8aap-16, 0x1.a01a01b021289p-13, 0x1.6c16c1789d506p-10);
  return FOUR64(q, r, rr, rrrr, 0x1.111111110f7d6p-7, 0x1.5555555553d36p-5, 0x1.5555555555558p-3, 0x1.0000000000001p-1);
}
FLAT double expm1_reduced(double r) {
  return mac(r * r, expm1_factor(r), r);
}

/* exp(x) = scale (1 + small): x = n ln(2) + r; n is in the low bits of `shifted`. */
typedef struct split_exp {
  double scale, small;
} split_exp;
FLAT split_exp split_exp_64(double x) {
  x = x > 700.0 ? 700.0 : x;
  x = x < -700.0 ? -700.0 : x;
  const double shifted = x * LOG2_E + 0x1.8p52, n = shifted - 0x1.8p52;
  const double r = mac(n, -0x1.a39ef35793c76p-33, mac(n, -0x1.62e42feep-1, x)); /* n times the first part is exact */
  return (split_exp){f64_of((at_bits_of_f64(shifted) + 1023u) << 52), expm1_reduced(r)};
}

/* Held between exp(-700) and exp(700), which are 0 and infinity in f32. */
FLAT double exp_64(double x) {
  const split_exp e = split_exp_64(x);
  return mac(e.scale, e.small, e.scale);
}
FLAT double expm1_64(double x) {
  const split_exp e = split_exp_64(x);
  return mac(e.scale, e.small, e.scale - 1.0);
}

/* ln(x) for x that is a normal number of f64, 0, infinite, negative or NaN: x = 2^k m, m from sqrt(1/2) to sqrt(2),
 * s = (m - 1) / (m + 1), ln(m) = 2 s + s^3 P(s^2), P off by 2^-51. */
FLAT double log_64(double x) {
  const uint64_t bits = at_bits_of_f64(x), k = (bits - 0x3fe6a09e667f3bcdu) & 0xfff0000000000000u;
  /* k's exponent as a number: its sign and 11 bits below a constant that makes it an integer of f64 */
  const double m = f64_of(bits - k), e = f64_of(((k >> 52) ^ 0x800u) | 0x4330000000000000u) - (0x1p52 + 2048.0);
  const double s = (m - 1.0) / (m + 1.0), z = s * s;
  double p = 0x1.2b662a48f0b95p-3;
  p = mac(p, z, 0x1.39fd3412f6f6fp-3);
  p = mac(p, z, 0x1.7462be2c20333p-3);
  p = mac(p, z, 0x1.c71c62c21853cp-3);
  p = mac(p, z, 0x1.2492492e0f049p-2);
  p = mac(p, z, 0x1.99999999951bfp-2);
  p = mac(p, z, 0x1.5555555555558p-1);
  double y = mac(e, 0.69314718055994531, mac(s * z, p, s + s));
  y = x == 0.0 ? -__builtin_inf() : y;
  y = x < 0.0 ? (double)__builtin_nanf("") : y;
  y = x == __builtin_inf() ? x : y;
  return x != x ? x : y;
}

/* Adds back the rounding error of 1 + x: ln(u) + (x - (u - 1)) / u. */
FLAT double log1p_64(double x) {
  const double u = 1.0 + x, rest = (x - (u - 1.0)) / u, y = log_64(u);
  const bool special = (u == 0.0) | (u == __builtin_inf());
  return special ? y : x == 0.0 ? x : y + rest;
}

/* The share of the normal distribution above a, 0 <= a <= 15, is exp(-a^2 / 2) t R(t) with t = 1 / (1 + a / 4); R, off
 * by 2^-42 of its value, in powers of t - 0.60546875. */
FLAT double share_above_64(double a) {
  const double t = 1.0 / mac(a, 0.25, 1.0), s = t - 0x1.36p-1;
  double r = -0x1.0b882dbdef33ap-11;
  r = mac(r, s, -0x1.681435a27fc89p-8);
  r = mac(r, s, 0x1.87f80876eb3f7p-9);
  r = mac(r, s, 0x1.677491ab0cc16p-7);
  r = mac(r, s, -0x1.2282c6c3faf5dp-7);
  r = mac(r, s, -0x1.1b03ab0aa084ap-6);
  r = mac(r, s, 0x1.3acddd09c1240p-6);
  r = mac(r, s, 0x1.0f3dbc8523a91p-5);
  r = mac(r, s, -0x1.15cad040c3dddp-5);
  r = mac(r, s, -0x1.6b8242eca3f47p-4);
  r = mac(r, s, 0x1.c7bebdd1f34b5p-7);
  r = mac(r, s, 0x1.0c60256194ce8p-2);
  r = mac(r, s, 0x1.ebac7a0d20a69p-2);
  r = mac(r, s, 0x1.0b348ac13dad4p-1);
  r = mac(r, s, 0x1.98ce79313b8dfp-2);
  r = mac(r, s, 0x1.ce23246d13715p-3);
  return exp_64(-0.5 * a * a) * (t * r);
}

/* q = floor(x / y): of f32 the quotient in f64 is on the right side of every integer. Infinite y: -1 for other
 * signs. */
FLAT float floor_divide32(float x, float y) {
  const double exact = (double)x / (double)y, q = __builtin_floor(exact);
  const bool below = (exact == 0.0) & (x != 0.0f) & ((x < 0.0f) != (y < 0.0f));
  float result = (float)(below ? -1.0 : q);
  result = ((q == 0.0) & !below) ? (float)__builtin_copysign(0.0, exact) : result;
  result = y == 0.0f ? x / y : result;
  return ((__builtin_fabsf(x) == __builtin_inff()) & (y != 0.0f)) ? (float)__builtin_nanf("") : result;
}

#endif
