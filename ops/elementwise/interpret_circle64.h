/* SPDX-License-Identifier: Apache-2.0
 * interpret_circle64.h: sin, cos and tan of f64 that are not too large, and the angle of two numbers, for CPUs with
 * fused multiply-add. All are within 2 units in the last place. See interpret_math.h and, for the same in f32,
 * interpret_circle32.h. */
#ifndef AT_INTERPRET_CIRCLE64_H
#define AT_INTERPRET_CIRCLE64_H

#include "ops/elementwise/interpret_math.h"

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
  const double r = near.r, low = near.low, z = r * r;
  double p = 0x1.5dc9fba74c298p-16;
  p = MAC64(p, z, -0x1.77f3ccec647fap-15);
  p = MAC64(p, z, 0x1.76b934fb22ac9p-14);
  p = MAC64(p, z, -0x1.b8a20d31ecc3fp-16);
  p = MAC64(p, z, 0x1.1e215fe87a285p-13);
  p = MAC64(p, z, 0x1.d2748aad92bebp-13);
  p = MAC64(p, z, 0x1.37fa392cd8997p-11);
  p = MAC64(p, z, 0x1.7d5b66510519fp-10);
  p = MAC64(p, z, 0x1.d6d932ebee059p-9);
  p = MAC64(p, z, 0x1.226e126006443p-7);
  p = MAC64(p, z, 0x1.664f49a83ba61p-6);
  p = MAC64(p, z, 0x1.ba1ba1b46c69ap-5);
  p = MAC64(p, z, 0x1.11111111182c2p-3);
  p = MAC64(p, z, 0x1.55555555554f2p-2);
  const double more = MAC64(r * z, p, MAC64(z, low, low)), t = r + more, t_low = (r - t) + more;
  const double over = 1.0 / t, turned = MAC64(over, MAC64(-t_low, over, MAC64(-t, over, 1.0)), over);
  const double y = near.turns & 1u ? -turned : t;
  return x == 0.0 ? x : y;
}

/* sin(x), or cos(x) for quarter 1: r + r^3 s(r^2), s off by 2^-58 of the sine, or 1 - r^2 / 2 + r^4 c(r^2), c off by
 * 2^-64. */
FLAT double circle_64(double x, uint64_t quarter) {
  const near_axis_64 near = to_axis_64(x);
  const double r = near.r, low = near.low, z = r * r;
  double s = 0x1.5d9300cf18813p-33;
  s = MAC64(s, z, -0x1.ae5e6639d428fp-26);
  s = MAC64(s, z, 0x1.71de3577b56b1p-19);
  s = MAC64(s, z, -0x1.a01a019c11978p-13);
  s = MAC64(s, z, 0x1.111111110f87ap-7);
  s = MAC64(s, z, -0x1.5555555555549p-3);
  double c = -0x1.8fae9cb4449ffp-37;
  c = MAC64(c, z, 0x1.1ee9ebe9aae80p-29);
  c = MAC64(c, z, -0x1.27e4f809f15ecp-22);
  c = MAC64(c, z, 0x1.a01a019cb1bebp-16);
  c = MAC64(c, z, -0x1.6c16c16c1517ep-10);
  c = MAC64(c, z, 0x1.555555555554cp-5);
  const double half = 0.5 * z, most = 1.0 - half;
  const double sine = r + MAC64(r * z, s, MAC64(-half, low, low));
  const double cosine = most + (((1.0 - most) - half) + MAC64(z * z, c, -r * low));
  const uint64_t turns = near.turns + quarter;
  const double y = f64_of(at_bits_of_f64(turns & 1u ? cosine : sine) ^ (turns & 2u) << 62);
  return ((x == 0.0) & (quarter == 0)) ? x : y;
}

/* The angle of (x, y): j pi/4 plus or less atan(q). Above 1/2 the quotient is turned by pi/4, so that q lies between
 * -1/3 and 1/2; the polynomial is off by 2^-57. Very large numbers are made smaller, for their sum must not
 * overflow. */
FLAT double atan2_64(double y, double x) {
  const double a = __builtin_fabs(y), b = __builtin_fabs(x), less = ((a > 0x1p1000) | (b > 0x1p1000)) ? 0x1p-100 : 1.0;
  const double high = less * (a > b ? a : b), low = less * (a > b ? b : a);
  const bool far = (low > 0.5 * high) | ((low == high) & (high != 0.0));
  double q = (far ? low - high : low) / (far ? low + high : high);
  q = low == high ? 0.0 : q; /* both infinite, or both 0 */
  q = low == 0.0 ? 0.0 : q;
  const double z = q * q;
  double p = 0x1.4b81b8b409e5bp-7;
  p = MAC64(p, z, -0x1.c17e2a386259bp-6);
  p = MAC64(p, z, 0x1.56f543766fb34p-5);
  p = MAC64(p, z, -0x1.a3983830c3bb8p-5);
  p = MAC64(p, z, 0x1.dfe96db5d6aedp-5);
  p = MAC64(p, z, -0x1.10f31e604f1c0p-4);
  p = MAC64(p, z, 0x1.3b113daf023b3p-4);
  p = MAC64(p, z, -0x1.745cf4ca14a4dp-4);
  p = MAC64(p, z, 0x1.c71c7090dda32p-4);
  p = MAC64(p, z, -0x1.249249215dc52p-3);
  p = MAC64(p, z, 0x1.999999999113ep-3);
  p = MAC64(p, z, -0x1.5555555555516p-2);
  const double part = MAC64(q * z, p, q), quarter = far ? 1.0 : 0.0;
  const bool behind = __builtin_copysign(1.0, x)<0.0, steep = a> b, back = steep != behind;
  const double j = (steep ? 2.0 : behind ? 4.0 : 0.0) + (back ? -quarter : quarter);
  const double base = j * 0x1.921fb54442d18p-1, base_low = MAC64(j, 0x1.921fb54442d18p-1, -base);
  const double angle = base + (MAC64(j, 0x1.1a62633145c07p-55, base_low) + (back ? -part : part));
  return ((x != x) | (y != y)) ? x + y : __builtin_copysign(angle, y);
}
#endif

#endif
