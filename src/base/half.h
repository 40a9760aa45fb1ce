/* SPDX-License-Identifier: Apache-2.0
 * half.h: IEEE binary16 and bfloat16 to and from f32 and f64, rounded once, to nearest even. NaN stays NaN (quiet, with
 * its sign), overflow gives infinity, subnormals are kept. */
#ifndef AT_HALF_H
#define AT_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t at_bits_of_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float at_f32_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t at_bits_of_f64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static inline float at_bf16_to_f32(uint16_t h) {
  return at_f32_of_bits((uint32_t)h << 16);
}

static inline float at_f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t magnitude = h & 0x7fffu;
  if (magnitude >= 0x7c00u) /* infinity, or NaN with its payload, made quiet */
    return at_f32_of_bits(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13) | (magnitude > 0x7c00u ? 0x400000u : 0u));
  if (magnitude >= 0x400u) return at_f32_of_bits(sign | ((magnitude << 13) + (112u << 23)));
  float subnormal = (float)magnitude * 0x1p-24f;
  return at_f32_of_bits(sign | at_bits_of_f32(subnormal));
}

/* |x| of `bits` rounded to a format with `mantissa` stored bits and the largest exponent `bias` (= its exponent bias).
 */
static inline uint16_t at_round_f64(uint64_t bits, int mantissa, int bias) {
  uint16_t sign = (uint16_t)((bits >> 48) & 0x8000u);
  uint64_t fraction = bits & 0xfffffffffffffu;
  int exponent = (int)((bits >> 52) & 0x7ffu) - 1023;
  uint32_t infinity = (2u * (uint32_t)bias + 1u) << mantissa;
  if (exponent == 1024) /* infinity or NaN: keep the payload's top bits, set the quiet bit */
    return (uint16_t)(sign | infinity |
                      (fraction ? (uint32_t)(fraction >> (52 - mantissa)) | (1u << (mantissa - 1)) : 0u));
  if (exponent > bias) return (uint16_t)(sign | infinity);
  int shift = 52 - mantissa;
  uint64_t whole = fraction;
  if (exponent >= 1 - bias) {
    whole |= (uint64_t)(exponent + bias) << 52;
  } else { /* subnormal in the target, perhaps zero */
    whole |= UINT64_C(1) << 52;
    shift += 1 - bias - exponent;
    if (shift > 53) return sign;
  }
  uint64_t rest = whole & ((UINT64_C(1) << shift) - 1);
  uint64_t half = UINT64_C(1) << (shift - 1);
  uint32_t rounded = (uint32_t)(whole >> shift);
  if (rest > half || (rest == half && (rounded & 1u)))
    rounded++; /* a carry into the exponent is right, up to infinity */
  return (uint16_t)(sign | rounded);
}

static inline uint16_t at_f64_to_f16(double x) {
  return at_round_f64(at_bits_of_f64(x), 10, 15);
}
static inline uint16_t at_f64_to_bf16(double x) {
  return at_round_f64(at_bits_of_f64(x), 7, 127);
}

/* A float is a double, exactly: still one rounding. */
static inline uint16_t at_f32_to_f16(float x) {
  return at_f64_to_f16((double)x);
}

static inline uint16_t at_f32_to_bf16(float x) {
  uint32_t bits = at_bits_of_f32(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
