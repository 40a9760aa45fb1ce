/* SPDX-License-Identifier: Apache-2.0
 * vmath_f32_via_f64.h: more functions of f32 for loops that become vectors, computed in f64 and rounded once. They are
 * within 0.51 units in the last place. See vmath.h. */
#ifndef AT_VMATH_F32_VIA_F64_H
#define AT_VMATH_F32_VIA_F64_H

#include "ops/elementwise/host/vmath/vmath32.h"

#define HALF_PI 1.5707963267948966

/* atan(t) for t >= 0, infinity too: of 1 / t beyond 1, then turned by pi / 4 beyond tan(pi / 8). b P(b^2), P off by
 * 2^-49. */
FLAT double atan_64(double t) {
  const double a = t > 1.0 ? 1.0 / t : t, b = a > 0.41421356237309503 ? (a - 1.0) / (a + 1.0) : a, z = b * b;
  double p = -0x1.a150ebe7bae58p-6;
  p = mac(p, z, 0x1.9ca554f826f03p-5);
  p = mac(p, z, -0x1.0aa8240c679bbp-4);
  p = mac(p, z, 0x1.3a56f12d92e2ap-4);
  p = mac(p, z, -0x1.744f82c2fbe3fp-4);
  p = mac(p, z, 0x1.c71bd96ab0b49p-4);
  p = mac(p, z, -0x1.2492473e8e2c6p-3);
  p = mac(p, z, 0x1.99999993a45a8p-3);
  p = mac(p, z, -0x1.55555555521b6p-2);
  const double y = mac(b * z, p, b), turned = a > 0.41421356237309503 ? 0.5 * HALF_PI + y : y;
  return t > 1.0 ? HALF_PI - turned : turned;
}
#ifndef __FMA__ /* vmath_inverse32.h has the others */
FLAT float atan32(float x) {
  return __builtin_copysignf((float)atan_64(__builtin_fabs((double)x)), x);
}
/* Beyond 1 the root is NaN. */
FLAT float asin32(float x) {
  const double a = __builtin_fabs((double)x);
  return __builtin_copysignf((float)atan_64(a / __builtin_sqrt((1.0 - a) * (1.0 + a))), x);
}
FLAT float acos32(float x) {
  return (float)(2.0 * atan_64(__builtin_sqrt((1.0 - x) / (1.0 + x))));
}
FLAT float hypot32(float x, float y) {
  const double a = x, b = y, z = __builtin_sqrt(a * a + b * b), far = __builtin_inf();
  return (float)(((__builtin_fabs(a) == far) | (__builtin_fabs(b) == far)) ? far : z);
}
FLAT float cbrt32(float x) {
  const float y = (float)exp_64(log_64(__builtin_fabs((double)x)) * 0.33333333333333333);
  return __builtin_copysignf(y, x);
}
/* ln(a + sqrt(a^2 + 1)) as ln(1 + what is small when a is). */
FLAT float asinh32(float x) {
  const double a = __builtin_fabs((double)x), y = log1p_64(a + a * a / (1.0 + __builtin_sqrt(mac(a, a, 1.0))));
  return __builtin_copysignf((float)(a == __builtin_inf() ? a : y), x);
}
FLAT float acosh32(float x) {
  const double t = (double)x - 1.0, y = log1p_64(t + __builtin_sqrt(t * (t + 2.0)));
  return t < 0.0 ? __builtin_nanf("") : (float)y;
}
FLAT float atanh32(float x) {
  const double a = __builtin_fabs((double)x);
  return __builtin_copysignf((float)(0.5 * log1p_64(2.0 * a / (1.0 - a))), x);
}
#endif
/* Twice the share of the normal distribution above sqrt(2) |x|. */
FLAT float erfc32(float x) {
  double a = __builtin_fabs((double)x);
  a = a > 10.6 ? 10.6 : a;
  const double above = 2.0 * share_above_64(a * 1.4142135623730951);
  return (float)(x < 0.0f ? 2.0 - above : above);
}
FLAT float logit32(float x) {
  return (float)log_64(x / (1.0 - x));
}

#endif
