/* SPDX-License-Identifier: Apache-2.0
 * interpret_circle32.h: sin and cos of f32 that are not too large. */
#ifndef AT_INTERPRET_CIRCLE32_H
#define AT_INTERPRET_CIRCLE32_H

#include "ops/elementwise/interpret_math32.h"

#define NEAR_CIRCLE 1e5f

#ifdef __FMA__
/* sin (turn = 0) and cos (turn = 1) for |x| <= 1e5: x = n pi/2 + r + r_low, with pi/2 in three parts of 24 bits: n times the
 * first is taken off x without rounding. The polynomials are off by 2^-37 of sin and 2^-42 of cos. */
FLAT float circle32(float x, uint32_t turn) {
  const float shifted = MAC32(x, 0x1.45f306p-1f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float first = MAC32(n, -0x1.921fb6p+0f, x), second = n * 0x1.777a5cp-25f, r = first + second, back = r - first;
  const float lost = (first - (r - back)) + (second - back), z = r * r; /* either may be the larger one */
  const float r_low = MAC32(n, 0x1.ee59dap-50f, MAC32(n, 0x1.777a5cp-25f, -second) + lost);
  const uint32_t quadrant = at_bits_of_f32(shifted) + turn;
  float s = 0x1.6cb79p-19f, c = -0x1.240aa8p-22f;
  s = MAC32(s, z, -0x1.a00f1p-13f);
  c = MAC32(c, z, 0x1.a0107cp-16f);
  s = MAC32(s, z, 0x1.111108p-7f);
  c = MAC32(c, z, -0x1.6c16b8p-10f);
  s = MAC32(s, z, -0x1.555556p-3f);
  c = MAC32(c, z, 0x1.555556p-5f);
  s = r + MAC32(r * z, s, r_low);
  const float h = MAC32(z, -0.5f, 1.0f), h_low = MAC32(z, -0.5f, 1.0f - h);
  c = h + MAC32(z * z, c, MAC32(-r, r_low, h_low));
  const uint32_t sine = at_bits_of_f32(s), cosine = at_bits_of_f32(c), odd = 0u - (quadrant & 1u);
  const float y = at_f32_of_bits(((cosine & odd) | (sine & ~odd)) ^ (quadrant & 2u) << 30);
  return ((turn == 0) & (x == 0.0f)) ? x : y;
}
#else
/* sin (turn = 0) and cos (turn = 1) for |x| <= 1e5: x = n pi/2 + r, with pi/2 in three parts; the polynomials are off by
 * 2^-55 and 2^-48 of what they add to 1. */
FLAT float circle32(float x, uint64_t turn) {
  const double wide = x, shifted = wide * 0.63661977236758138 + 0x1.8p52, n = shifted - 0x1.8p52;
  const double r = mac(n, -0x1.3198a2e037073p-69, mac(n, -0x1.0b4611a6p-34, mac(n, -0x1.921fb544p+0, wide))), z = r * r;
  const uint64_t quadrant = at_bits_of_f64(shifted) + turn;
  double s = 0x1.5e0b0498ddbbap-33, c = 0x1.1c81b824dbc69p-29;
  s = mac(s, z, -0x1.ae600acd65338p-26);
  c = mac(c, z, -0x1.27e25f39eece7p-22);
  s = mac(s, z, 0x1.71de37965e2d6p-19);
  c = mac(c, z, 0x1.a019ff539a5c7p-16);
  s = mac(s, z, -0x1.a01a019e83906p-13);
  c = mac(c, z, -0x1.6c16c16b61512p-10);
  s = mac(s, z, 0x1.1111111110bb2p-7);
  c = mac(c, z, 0x1.5555555555437p-5);
  s = mac(s, z, -0x1.5555555555555p-3);
  s = mac(s * z, r, r);
  c = mac(z * z, c, 1.0 - 0.5 * z);
  const uint64_t sine = at_bits_of_f64(s), cosine = at_bits_of_f64(c), odd = 0u - (quadrant & 1u);
  const float y = (float)f64_of(((cosine & odd) | (sine & ~odd)) ^ (quadrant & 2u) << 62);
  return ((turn == 0) & (x == 0.0f)) ? x : y;
}
#endif

#endif
