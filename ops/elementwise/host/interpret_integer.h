/* SPDX-License-Identifier: Apache-2.0
 * interpret_integer.h: integer arithmetic where C leaves it open; evaluate.h says what it means. Every narrower integer
 * fits int64_t, but for u64, which travels as its bits. */
#ifndef AT_INTERPRET_INTEGER_H
#define AT_INTERPRET_INTEGER_H

#include <stdbool.h>
#include <stdint.h>

#define IS_SIGNED(T) ((T)-1 < (T)1)
#define BITS_LESS_1(T) (8 * (int)sizeof(T) - 1)
#define SHIFTS(T, y) ((uint64_t)(y) <= (uint64_t)BITS_LESS_1(T)) /* a negative count is a large one */

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t popcount(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return x * 0x0101010101010101u >> 56;
}

/* Of the lowest `bytes`. */
INLINE int leading_zeros(int64_t x, int bytes) {
  const uint64_t bits = (uint64_t)x << (64 - 8 * bytes);
  return bits ? __builtin_clzll(bits) : 8 * bytes;
}

INLINE int64_t quotient(bool is_signed, int64_t x, int64_t y) {
  if (y == 0) return 0;
  if (!is_signed) return (int64_t)((uint64_t)x / (uint64_t)y);
  return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

INLINE int64_t rest(bool is_signed, int64_t x, int64_t y) {
  if (y == 0) return 0;
  return (int64_t)((uint64_t)x - (uint64_t)quotient(is_signed, x, y) * (uint64_t)y);
}

INLINE int64_t floor_quotient(bool is_signed, int64_t x, int64_t y) {
  const int64_t q = quotient(is_signed, x, y);
  return is_signed && rest(true, x, y) != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

INLINE int64_t floor_rest(bool is_signed, int64_t x, int64_t y) {
  const int64_t r = rest(is_signed, x, y);
  return is_signed && r != 0 && (x < 0) != (y < 0) ? r + y : r;
}

INLINE int64_t whole_power(bool is_signed, int64_t x, int64_t n) {
  if (is_signed && n < 0) return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)x;
  for (uint64_t left = (uint64_t)n; left; left >>= 1) {
    if (left & 1) result *= square;
    square *= square;
  }
  return (int64_t)result;
}

#endif
