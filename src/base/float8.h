/* SPDX-License-Identifier: Apache-2.0
 * float8.h: the 8-bit floats of the OCP specification (OFP8) to and from f32 and f64, rounded once, to nearest even.
 * NaN stays NaN, with its sign. Overflow gives what torch gives: infinity in E5M2, NaN in E4M3, which has no
 * infinity. */
#ifndef AT_FLOAT8_H
#define AT_FLOAT8_H

#include "src/base/half.h"

/* E5M2 is binary16 without its lower byte. */
static inline float at_f8e5m2_to_f32(uint8_t b) {
  return at_f16_to_f32((uint16_t)(b << 8));
}

static inline float at_f8e4m3_to_f32(uint8_t b) {
  const uint32_t sign = (uint32_t)(b & 0x80u) << 24, magnitude = b & 0x7fu;
  if (magnitude == 0x7fu) return at_f32_of_bits(sign | 0x7fc00000u);
  if (magnitude >= 8u) return at_f32_of_bits(sign | ((magnitude << 20) + (120u << 23)));
  return at_f32_of_bits(sign | at_bits_of_f32((float)magnitude * 0x1p-9f));
}

/* at_round_f64 makes 16-bit words, whose sign is bit 15. A NaN's payload is dropped. */
static inline uint8_t at_f64_to_f8e5m2(double x) {
  if (x != x) return (uint8_t)((at_bits_of_f64(x) >> 56 & 0x80u) | 0x7fu);
  const uint16_t wide = at_round_f64(at_bits_of_f64(x), 2, 15);
  return (uint8_t)((wide >> 8 & 0x80u) | (wide & 0x7fu));
}

/* The exponent that others keep for infinity holds numbers up to 448, which is 0x7e: rounding as if to a format with
 * the same mantissa and more exponents, and what is above becomes NaN. */
static inline uint8_t at_f64_to_f8e4m3(double x) {
  const uint8_t sign = (uint8_t)(at_bits_of_f64(x) >> 56 & 0x80u);
  const double magnitude = sign ? -x : x;
  if (!(magnitude <= 464.0)) return (uint8_t)(sign | 0x7fu); /* 464 lies half way to 480 and rounds to even, 448 */
  if (magnitude < 256.0) return (uint8_t)(sign | (at_round_f64(at_bits_of_f64(magnitude), 3, 7) & 0x7fu));
  return (uint8_t)(sign | (0x78u + (at_round_f64(at_bits_of_f64(magnitude / 256.0), 3, 7) - 0x38u)));
}

#endif
