/* SPDX-License-Identifier: Apache-2.0
 * convert.h: 8-bit floats to and from f32, without branches, so that loops over them become vectors. The same bits as
 * src/base/float8.h gives; wide_value.h says what all conversions do. */
#ifndef AT_CONVERT_H
#define AT_CONVERT_H

#include "src/base/float8.h"

#define AT_FLAT static inline __attribute__((always_inline))

/* Bits of |x| in an 8-bit format with `mantissa` stored bits and exponents biased by `bias`, which f32's product with a
 * power of two gives exactly. */
AT_FLAT uint32_t at_flat_magnitude(uint32_t bits, int mantissa, int bias) {
  return at_bits_of_f32(at_f32_of_bits((bits & 0x7fu) << (23 - mantissa)) *
                        at_f32_of_bits((uint32_t)(254 - bias) << 23));
}

AT_FLAT float at_flat_of_e4m3(uint8_t b) {
  const uint32_t bits = b, x = (bits & 0x7fu) == 0x7fu ? 0x7fc00000u : at_flat_magnitude(bits, 3, 7);
  return at_f32_of_bits(x | (bits & 0x80u) << 24);
}

AT_FLAT float at_flat_of_e5m2(uint8_t b) {
  const uint32_t bits = b, low = bits & 0x7fu, x = at_flat_magnitude(bits, 2, 15);
  const uint32_t special = 0x7f800000u | (low & 3u ? 0x400000u | (low & 3u) << 21 : 0u);
  return at_f32_of_bits((low >= 0x7cu ? special : x) | (bits & 0x80u) << 24);
}

/* Rounds to nearest even: normal numbers by an integer addition, subnormal ones by adding a number whose last place is
 * the format's. `end`: bits of the least magnitude that overflows; `over`: what it then is. */
AT_FLAT uint8_t at_flat_round(float x, int mantissa, int bias, uint32_t end, uint32_t over) {
  const uint32_t bits = at_bits_of_f32(x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  const int drop = 23 - mantissa;
  const uint32_t rounded = magnitude + ((1u << (drop - 1)) - 1u) + (magnitude >> drop & 1u);
  const uint32_t normal = (rounded - ((uint32_t)(127 - bias) << 23)) >> drop;
  const uint32_t place = (uint32_t)(127 - bias + 1 - mantissa + 23) << 23; /* its last place is the least subnormal */
  const uint32_t small = at_bits_of_f32(at_f32_of_bits(magnitude) + at_f32_of_bits(place)) - place;
  const uint32_t finite = magnitude >= (uint32_t)(128 - bias) << 23 ? normal : small;
  const uint32_t result = magnitude >= end ? over : finite;
  return (uint8_t)((magnitude > 0x7f800000u ? 0x7fu : result) | sign);
}

AT_FLAT uint8_t at_flat_to_e4m3(float x) {
  return at_flat_round(x, 3, 7, 0x43e80001u, 0x7fu); /* just above 464 */
}
AT_FLAT uint8_t at_flat_to_e5m2(float x) {
  return at_flat_round(x, 2, 15, 0x47700000u, 0x7cu); /* 61440 */
}

#endif
