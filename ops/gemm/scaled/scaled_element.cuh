/* SPDX-License-Identifier: Apache-2.0
 * scaled_element.cuh: elements of C and D of a product of 8-bit elements, and its amax. Behind kernel.cuh. D_TYPE: the
 * dtype of D as in types.h; not i32. */
typedef unsigned char at_u8;

/* To f8 with `MANTISSA` stored bits and the least exponent `LEAST`; saturates at MOST. */
template <int MANTISSA, int LEAST> AT_INLINE at_u8 at_to_f8(float x, float most) {
  const at_u32 sign = __float_as_uint(x) >> 24 & 0x80u;
  float size = fabsf(x);
  if (x != x) return (at_u8)(sign | 0x7fu);
  if (size > most) size = most;
  if (size < __uint_as_float((at_u32)(127 + LEAST) << 23))
    return (at_u8)(sign | (at_u32)rintf(size * __uint_as_float((at_u32)(127 + MANTISSA - LEAST) << 23)));
  at_u32 bits = __float_as_uint(size);
  bits += (1u << (22 - MANTISSA)) - 1u + (bits >> (23 - MANTISSA) & 1u);
  return (at_u8)(sign | ((bits >> (23 - MANTISSA)) - ((at_u32)(126 + LEAST) << MANTISSA)));
}

/* C has D's type, or is bf16 where that is f8. */
AT_INLINE float at_load_c(const char *c, at_i64 at) {
#if D_TYPE == 2
  return ((const float *)c)[at];
#elif D_TYPE == 3
  return at_from_f16(((const at_u16 *)c)[at]);
#elif D_TYPE == 7
  return (float)((const signed char *)c)[at];
#else
  return __uint_as_float((at_u32)((const at_u16 *)c)[at] << 16);
#endif
}

AT_INLINE void at_store_d(char *d, at_i64 at, float x) {
#if D_TYPE == 2
  ((float *)d)[at] = x;
#elif D_TYPE == 3
  ((at_u16 *)d)[at] = at_to_f16(x);
#elif D_TYPE == 4
  ((at_u16 *)d)[at] = at_to_bf16(x);
#elif D_TYPE == 7
  ((signed char *)d)[at] = (signed char)(x != x ? 0.0f : rintf(fminf(fmaxf(x, -128.0f), 127.0f)));
#elif D_TYPE == 14
  ((at_u8 *)d)[at] = at_to_f8<3, -6>(x, 448.0f);
#else
  ((at_u8 *)d)[at] = at_to_f8<2, -14>(x, 57344.0f);
#endif
}

#ifndef AT_ON_HOST
/* *amax becomes `most` if that is more. Neither is negative: they are ordered as their bits. */
AT_INLINE void at_raise(float *amax, float most) {
  atomicMax((at_u32 *)amax, __float_as_uint(most));
}
#endif
