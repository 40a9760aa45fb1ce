/* SPDX-License-Identifier: Apache-2.0
 * vmath_trig64.h: sin, cos and tan of f64 that are not too large, and the angle of two numbers, for CPUs with
 * fused multiply-add. All are within 2 units in the last place. See vmath.h and, for the same in f32,
 * vmath_trig32.h. */
#ifndef AT_VMATH_TRIG64_H
#define AT_VMATH_TRIG64_H

#include "ops/elementwise/host/vmath/vmath.h"

#ifdef __FMA__
#define NEAR_CIRCLE_64 1e5
#define MAC64 __builtin_fma

/* |x| <= 1e5 as n pi/2 + r + low, with pi/2 in three parts of 53 bits; the lowest bits of `turns` are n's. */
typedef struct near_axis_64 {
  double r, low;
  uint64_t turns;
} near_axis_64;
FLAT near_axis_64 to_axis_64(double x) {
  const double shifted = MAC64(x, 0x1.45f306dc9c883p-1, 0x1.8p52), n = shifted - 0x1.8p52;
  const double first = MAC64(n, -0x1.921fb54442d18p+0, x), second = n * -0x1.1a62633145c07p-54, r = first + second;
  const double back = r - first, lost = (first - (r - back)) + (second - back);
  const double low = MAC64(n, 0x1.f1976b7ed8fbcp-110, MAC64(n, -0x1.1a62633145c07p-54, -second) + lost);
  return (near_axis_64){r, low, at_bits_of_f64(shifted)};
}

/* tan(x): t + t_low = tan(r + low), off by 2^-56, or -1 / (t + t_low). */
FLAT double tan_64(double x) {
  const near_axis_64 near = to_axis_64(x);
  const double r = near.r, low = near.low, z = r * r, zz = z * z, zzzz = zz * zz;
  double p = MAC64(0x1.5dc9fba74c298p-16, z, -0x1.77f3ccec647fap-15);
  p = FOUR64(p, z, zz, zzzz, 0x1.76b934fb22ac9p-14, -0x1.b8a20d31ecc3fp-16, 0x1.1e215fe87a285p-13,
             0x1.d2748aad92bebp-13);
  p = FOUR64(p, z, zz, zzzz, 0x1.37fa392cd8997p-11, 0x1.7d5b66510519fp-10, 0x1.d6d932ebee059p-9, 0x1.226e126006443p-7);
  p = FOUR64(p, z, zz, zzzz, 0x1.664f49a83ba61p-6, 0x1.ba1ba1b46c69ap-5, 0x1.11111111182c2p-3, 0x1.55555555554f2p-2);
  const double more = MAC64(r * z, p, MAC64(z, low, low)), t = r + more, t_low = (r - t) + more;
  const double over = 1.0 / t, turned = MAC64(over, MAC64(-t_low, over, MAC64(-t, over, 1.0)), over);
  const double y = near.turns & 1u ? -turned : t;
  return x == 0.0 ? x : y;
}

/* sin(x), or cos(x) for quarter 1: r + r^3 s(r^2), s off by 2^-58 of the sine, or 1 - r^2 / 2 + r^4 c(r^2), c off by
 * 2^-64. */
FLAT double circle_64(double x, uint64_t quarter) {
  const near_axis_64 near = to_axis_64(x);
  const double r = near.r, low = near.low, z = r * r, zz = z * z, zzzz = zz * zz;
  double s = MAC64(0x1.5d9300cf18813p-33, z, -0x1.ae5e6639d428fp-26);
  double c = MAC64(-0x1.8fae9cb4449ffp-37, z, 0x1.1ee9ebe9aae80p-29);
  s = FOUR64(s, z, zz, zzzz, 0x1.71de3577b56b1p-19, -0x1.a01a019c11978p-13, 0x1.111111110f87ap-7,
             -0x1.5555555555549p-3);
  c = FOUR64(c, z, zz, zzzz, -0x1.27e4f809f15ecp-22, 0x1.a01a019cb1bebp-16, -0x1.6c16c16c1517ep-10,
             0x1.555555555554cp-5);
  const double half = 0.5 * z, most = 1.0 - half;
  const double sine = r + MAC64(r * z, s, MAC64(-half, low, low));
  const double cosine = most + (((1.0 - most) - half) + MAC64(z * z, c, -r * low));
  const uint64_t turns = near.turns + quarter;
  const double y = f64_of(at_bits_of_f64(turns & 1u ? cosine : sine) ^ (turns & 2u) << 62);
  return ((x == 0.0) & (quarter == 0)) ? x : y;
}

/* The angle of (x, y): j pi/4 plus or less atan(q), with pi/4 in two parts, so that j times the first is exact.
 * Above 5/9 the quotient is turned by pi/4, so that q lies between -2/7 and 5/9 and no turned angle is below 1/2,
 * where its units are smaller; the polynomial is off by 2^-58. 4 low and 5 rest are exact where numbers are
 * subnormal; 1.25 rest is not. Very large numbers are made smaller, for their sum must not overflow. Which octant it
 * is is computed on bits: of conditions that meet constants the compiler makes a choice for each product. */
FLAT double atan2_64(double y, double x) {
  const double a = __builtin_fabs(y), b = __builtin_fabs(x), larger = a > b ? a : b, smaller = a > b ? b : a;
  const double less = larger > 0x1p1000 ? 0x1p-100 : 1.0, high = less * larger, low = less * smaller, rest = high - low;
  const bool far = !(4.0 * low <= 5.0 * rest); /* two infinities, too */
  double q = (far ? -rest : low) / (far ? low + high : high);
  q = low == high ? 0.0 : q; /* both infinite, or both 0 */
  const double z = q * q, zz = z * z, zzzz = zz * zz;
  double p = FOUR64(-0x1.8f277fe8c747ap-8, z, zz, zzzz, 0x1.432dedc83b866p-6, -0x1.1772b0e22aa05p-5,
                    0x1.6cfc554758e20p-5, -0x1.a9486202e6679p-5);
  p = FOUR64(p, z, zz, zzzz, 0x1.e0e57823c4479p-5, -0x1.1101f69542784p-4, 0x1.3b126cc877487p-4, -0x1.745d04c41cacfp-4);
  p = FOUR64(p, z, zz, zzzz, 0x1.c71c7118ae702p-4, -0x1.24924922abd61p-3, 0x1.99999999943fbp-3, -0x1.555555555552bp-2);
  const uint64_t lead = at_bits_of_f64(b - a), steep = 0 - (lead >> 63), behind = 0 - (at_bits_of_f64(x) >> 63);
  const uint64_t back = (steep ^ behind) << 63, two = 0x4000000000000000u, four = 0x4010000000000000u;
  const double part = f64_of(at_bits_of_f64(MAC64(q * z, p, q)) ^ back);
  const double quarter = f64_of(at_bits_of_f64(far ? 1.0 : 0.0) ^ back);
  const double j = f64_of((steep & two) | (~steep & behind & four)) + quarter;
  const double angle = MAC64(j, 0x1.921fb54442d18p-1, MAC64(j, 0x1.1a62633145c07p-55, part));
  return ((x != x) | (y != y)) ? x + y : __builtin_copysign(angle, y);
}
#endif

#endif
