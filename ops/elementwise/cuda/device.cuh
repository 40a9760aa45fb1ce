/* SPDX-License-Identifier: Apache-2.0
 * device.cuh: what every generated kernel begins with: element types as they lie in memory and as they are computed
 * with, conversions, loads and stores of several elements with cache hints, division by multiplication.
 *
 * Half and 8-bit floats are computed with as f32. A value on its way to memory is "unrounded": an f32 that at_encode
 * rounds once; what comes from f64 or a wide integer gets there by rounding to odd, so that the second rounding is
 * right. Compiled at run time; a test compiles the same text for the host, where there is no PTX. */
#if !defined(__CUDACC__) && !defined(AT_ON_HOST)
#error "device.cuh is for CUDA"
#endif

typedef unsigned int at_u32;
#ifdef __CUDACC__
typedef unsigned long long at_u64;
typedef long long at_i64;
#endif

#define AT_INLINE static __device__ __forceinline__

struct at_c64 {
  float re, im;
};
struct at_c128 {
  double re, im;
};

/* ---- kinds of values ---- */

template <class A, class B> struct at_same { static constexpr bool yes = false; };
template <class A> struct at_same<A, A> { static constexpr bool yes = true; };
template <class T> constexpr bool at_is_floating = at_same<T, float>::yes || at_same<T, double>::yes;
template <class T> constexpr bool at_is_complex = at_same<T, at_c64>::yes || at_same<T, at_c128>::yes;
template <class T> constexpr bool at_is_bool = at_same<T, bool>::yes;
template <class T> constexpr bool at_is_integer = !at_is_floating<T> && !at_is_complex<T> && !at_is_bool<T>;

/* The integer that sums and products wrap in: 32 or 64 bits, without a sign. */
template <int BYTES> struct at_wide { typedef at_u32 type; };
template <> struct at_wide<8> { typedef unsigned long long type; };

template <class T> AT_INLINE constexpr bool at_is_signed() {
  return (T)-1 < (T)0;
}
template <class T> AT_INLINE constexpr T at_least() {
  return at_is_signed<T>() ? (T)(1ull << (8 * sizeof(T) - 1)) : (T)0;
}
template <class T> AT_INLINE constexpr T at_most() {
  return (T) ~(unsigned long long)at_least<T>();
}

/* ---- conversions ---- */

/* Truncates; saturates; NaN gives 0. */
template <class T, class F> AT_INLINE T at_whole(F x) {
  constexpr F half = (F)(1ull << (8 * sizeof(T) - 1)), end = at_is_signed<T>() ? half : half * (F)2,
              begin = at_is_signed<T>() ? -half : (F)0;
  if (x != x) return (T)0;
  if (x >= end) return at_most<T>();
  if (x <= begin) return at_least<T>();
  return (T)x;
}

template <class T, class F> AT_INLINE T at_cast(F x) {
  if constexpr (at_same<T, F>::yes) {
    return x;
  } else if constexpr (at_is_complex<F>) {
    if constexpr (at_is_complex<T>)
      return T{at_cast<decltype(T::re)>(x.re), at_cast<decltype(T::re)>(x.im)};
    else if constexpr (at_is_bool<T>)
      return x.re != 0 || x.im != 0;
    else
      return at_cast<T>(x.re);
  } else if constexpr (at_is_complex<T>) {
    return T{at_cast<decltype(T::re)>(x), 0};
  } else if constexpr (at_is_bool<T>) {
    return x != (F)0;
  } else if constexpr (at_is_floating<F> && at_is_integer<T>) {
    return at_whole<T>(x);
  } else {
    return (T)x;
  }
}

/* To f32 with the last bit set where anything was lost: rounding that to 22 bits or fewer rounds the value itself. */
template <class F> AT_INLINE float at_odd(F x) {
  if constexpr (at_same<F, float>::yes) {
    return x;
  } else if constexpr (at_same<F, double>::yes) {
    const float z = __double2float_rz(x);
    if (!((double)z != x) || x != x) return z;
    return __uint_as_float(__float_as_uint(z) | 1u);
  } else if constexpr (at_is_bool<F> || sizeof(F) < 4) {
    return (float)x;
  } else {
    const bool negative = at_is_signed<F>() && x < (F)0;
    const at_u64 bits = negative ? 0u - (at_u64)x : (at_u64)x;
    const int zeros = __clzll((long long)bits), drop = zeros < 40 ? 40 - zeros : 0; /* keeps the highest 24 bits */
    const at_u64 kept = bits >> drop;
    const float scaled = (float)(at_u32)kept * __uint_as_float((at_u32)(127 + drop) << 23),
                z = kept << drop != bits ? __uint_as_float(__float_as_uint(scaled) | 1u) : scaled;
    return negative ? -z : z;
  }
}

AT_INLINE float at_from_f16(at_u32 bits) {
#ifdef __CUDA_ARCH__
  float x;
  asm("{ .reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h; }" : "=f"(x) : "r"(bits));
  return x;
#else
  return at_f16_to_f32((unsigned short)bits);
#endif
}

/* Two in one word, the first in the lower half. */
AT_INLINE at_u32 at_pair_f16(float low, float high) {
#ifdef __CUDA_ARCH__
  at_u32 pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return at_f32_to_f16(low) | (at_u32)at_f32_to_f16(high) << 16;
#endif
}

AT_INLINE at_u32 at_pair_bf16(float low, float high) {
#ifdef __CUDA_ARCH__
  at_u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return at_f32_to_bf16(low) | (at_u32)at_f32_to_bf16(high) << 16;
#endif
}

/* 8-bit floats with MANTISSA stored bits and exponents biased by BIAS. */
template <int MANTISSA, int BIAS> AT_INLINE float at_from_f8(at_u32 bits) {
  const at_u32 magnitude = bits & 0x7fu, sign = (bits & 0x80u) << 24;
  const float x = __uint_as_float(magnitude << (23 - MANTISSA)) * __uint_as_float((at_u32)(254 - BIAS) << 23);
  const bool nan = MANTISSA == 3 ? magnitude == 0x7fu : magnitude > 0x7cu,
             infinite = MANTISSA == 2 && magnitude == 0x7cu;
  return __uint_as_float(sign | (nan ? 0x7fc00000u : infinite ? 0x7f800000u : __float_as_uint(x)));
}

/* Overflow gives NaN in e4m3, which has no infinity, and infinity in e5m2. */
template <int MANTISSA, int BIAS> AT_INLINE at_u32 at_to_f8(float x) {
  constexpr int drop = 23 - MANTISSA;
  const at_u32 bits = __float_as_uint(x), magnitude = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
  if (magnitude > 0x7f800000u) return sign | 0x7fu;
  if (MANTISSA == 3 ? magnitude > 0x43e80000u : magnitude >= 0x47700000u) return sign | (MANTISSA == 3 ? 0x7fu : 0x7cu);
  if (magnitude >= (at_u32)(128 - BIAS) << 23) {
    const at_u32 rounded = magnitude + ((1u << (drop - 1)) - 1u) + (magnitude >> drop & 1u);
    return sign | (rounded - ((at_u32)(127 - BIAS) << 23)) >> drop;
  }
  return sign | (at_u32)rintf(__uint_as_float(magnitude) * __uint_as_float((at_u32)(126 + BIAS + MANTISSA) << 23));
}

AT_INLINE at_u32 at_pair_e4m3(float low, float high) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  unsigned short pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  at_u32 both = pair;
  if (!(fabsf(low) <= 464.0f)) both |= 0x7fu;
  if (!(fabsf(high) <= 464.0f)) both |= 0x7f00u;
  return both;
#else
  return at_to_f8<3, 7>(low) | at_to_f8<3, 7>(high) << 8;
#endif
}

AT_INLINE at_u32 at_pair_e5m2(float low, float high) {
  return at_to_f8<2, 15>(low) | at_to_f8<2, 15>(high) << 8;
}

/* ---- element types ---- */

#define AT_ELEMENT_TYPE(name, type, size) \
  struct name {                           \
    typedef type value;                   \
    static constexpr int bytes = size;    \
  };
AT_ELEMENT_TYPE(at_f64, double, 8)
AT_ELEMENT_TYPE(at_f32, float, 4)
AT_ELEMENT_TYPE(at_f16, float, 2)
AT_ELEMENT_TYPE(at_bf16, float, 2)
AT_ELEMENT_TYPE(at_e4m3, float, 1)
AT_ELEMENT_TYPE(at_e5m2, float, 1)
AT_ELEMENT_TYPE(at_s8, signed char, 1)
AT_ELEMENT_TYPE(at_s16, short, 2)
AT_ELEMENT_TYPE(at_s32, int, 4)
AT_ELEMENT_TYPE(at_s64, long long, 8)
AT_ELEMENT_TYPE(at_n8, unsigned char, 1)
AT_ELEMENT_TYPE(at_n16, unsigned short, 2)
AT_ELEMENT_TYPE(at_n32, unsigned int, 4)
AT_ELEMENT_TYPE(at_n64, unsigned long long, 8)
AT_ELEMENT_TYPE(at_truth, bool, 1)
AT_ELEMENT_TYPE(at_complex64, at_c64, 8)
AT_ELEMENT_TYPE(at_complex128, at_c128, 16)

template <class D> constexpr bool at_is_narrow = at_same<typename D::value, float>::yes &&D::bytes < 4;

/* Bits of an element of up to 8 bytes. */
template <class D> AT_INLINE typename D::value at_decode(at_u64 bits) {
  if constexpr (at_same<D, at_f64>::yes)
    return __longlong_as_double((long long)bits);
  else if constexpr (at_same<D, at_f32>::yes)
    return __uint_as_float((at_u32)bits);
  else if constexpr (at_same<D, at_f16>::yes)
    return at_from_f16((at_u32)bits);
  else if constexpr (at_same<D, at_bf16>::yes)
    return __uint_as_float((at_u32)bits << 16);
  else if constexpr (at_same<D, at_e4m3>::yes)
    return at_from_f8<3, 7>((at_u32)bits);
  else if constexpr (at_same<D, at_e5m2>::yes)
    return at_from_f16((at_u32)bits << 8);
  else if constexpr (at_same<D, at_truth>::yes)
    return bits != 0;
  else if constexpr (at_same<D, at_complex64>::yes)
    return at_c64{__uint_as_float((at_u32)bits), __uint_as_float((at_u32)(bits >> 32))};
  else
    return (typename D::value)bits;
}

/* Two elements of 2 bytes in a word, of 1 byte in its lower half. */
template <class D> AT_INLINE at_u32 at_encode_pair(typename D::value low, typename D::value high) {
  if constexpr (at_same<D, at_f16>::yes)
    return at_pair_f16(low, high);
  else if constexpr (at_same<D, at_bf16>::yes)
    return at_pair_bf16(low, high);
  else if constexpr (at_same<D, at_e4m3>::yes)
    return at_pair_e4m3(low, high);
  else if constexpr (at_same<D, at_e5m2>::yes)
    return at_pair_e5m2(low, high);
  else if constexpr (D::bytes == 2)
    return ((at_u32)low & 0xffffu) | (at_u32)high << 16;
  else
    return ((at_u32)low & 0xffu) | ((at_u32)high & 0xffu) << 8;
}

template <class D> AT_INLINE at_u64 at_encode(typename D::value x) {
  if constexpr (at_is_narrow<D>)
    return at_encode_pair<D>(x, 0.0f) & (D::bytes == 2 ? 0xffffu : 0xffu);
  else if constexpr (at_same<D, at_f64>::yes)
    return (at_u64)__double_as_longlong(x);
  else if constexpr (at_same<D, at_f32>::yes)
    return __float_as_uint(x);
  else if constexpr (at_same<D, at_complex64>::yes)
    return __float_as_uint(x.re) | (at_u64)__float_as_uint(x.im) << 32;
  else
    return (at_u64)x;
}

/* A value of any kind, unrounded, on its way to elements of D; and rounded to what D can hold. */
template <class D, class F> AT_INLINE typename D::value at_to(F x) {
  if constexpr (at_is_narrow<D>) {
    if constexpr (at_is_complex<F>)
      return at_odd(x.re);
    else
      return at_odd(x);
  } else {
    return at_cast<typename D::value>(x);
  }
}
template <class D> AT_INLINE typename D::value at_round(typename D::value x) {
  if constexpr (at_is_narrow<D>)
    return at_decode<D>(at_encode<D>(x));
  else
    return x;
}

/* ---- memory ---- */

/* What loads and stores ask of the caches. AT_LOAD_CONSTANT: nothing in the kernel writes there. */
#define AT_LOAD_PLAIN 0
#define AT_LOAD_STREAM 1
#define AT_LOAD_PAST_L1 2
#define AT_LOAD_CONSTANT 3
#define AT_STORE_PLAIN 0
#define AT_STORE_STREAM 1
#ifndef LOAD
#define LOAD AT_LOAD_PLAIN
#define STORE AT_STORE_PLAIN
#endif

#ifdef __CUDA_ARCH__
#define AT_ACCESS(operation, address)                                                                             \
  do {                                                                                                            \
    if constexpr (BYTES == 16)                                                                                    \
      asm volatile(operation ".v4.b32 {%0, %1, %2, %3}, [%4];"                                                    \
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])                                               \
                   : "l"(address));                                                                               \
    else if constexpr (BYTES == 8)                                                                                \
      asm volatile(operation ".v2.b32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(address));                  \
    else if constexpr (BYTES == 4)                                                                                \
      asm volatile(operation ".b32 %0, [%1];" : "=r"(w[0]) : "l"(address));                                       \
    else if constexpr (BYTES == 2)                                                                                \
      asm volatile("{ .reg .b16 h; " operation ".b16 h, [%1]; cvt.u32.u16 %0, h; }" : "=r"(w[0]) : "l"(address)); \
    else                                                                                                          \
      asm volatile("{ .reg .b16 h; " operation ".b8 h, [%1]; cvt.u32.u8 %0, h; }" : "=r"(w[0]) : "l"(address));   \
  } while (0)
#endif

/* BYTES: 1, 2, 4, 8 or 16, and the address is a multiple of it. */
template <int BYTES> AT_INLINE void at_load(at_u32 *w, const char *at) {
#ifdef __CUDA_ARCH__
  if (LOAD == AT_LOAD_STREAM) {
    AT_ACCESS("ld.global.cs", at);
    return;
  }
  if (LOAD == AT_LOAD_PAST_L1) {
    AT_ACCESS("ld.global.L1::no_allocate", at);
    return;
  }
  if (LOAD == AT_LOAD_CONSTANT) {
    AT_ACCESS("ld.global.nc.L1::no_allocate", at);
    return;
  }
#endif
  if constexpr (BYTES == 16) {
    const uint4 x = *(const uint4 *)at;
    w[0] = x.x, w[1] = x.y, w[2] = x.z, w[3] = x.w;
  } else if constexpr (BYTES == 8) {
    const uint2 x = *(const uint2 *)at;
    w[0] = x.x, w[1] = x.y;
  } else if constexpr (BYTES == 4) {
    w[0] = *(const at_u32 *)at;
  } else if constexpr (BYTES == 2) {
    w[0] = *(const unsigned short *)at;
  } else {
    w[0] = *(const unsigned char *)at;
  }
}

template <int BYTES> AT_INLINE void at_store(char *at, const at_u32 *w) {
#ifdef __CUDA_ARCH__
  if (STORE == AT_STORE_STREAM) {
    if constexpr (BYTES == 16)
      asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]));
    else if constexpr (BYTES == 8)
      asm volatile("st.global.cs.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(w[0]), "r"(w[1]));
    else if constexpr (BYTES == 4)
      asm volatile("st.global.cs.b32 [%0], %1;" ::"l"(at), "r"(w[0]));
    else if constexpr (BYTES == 2)
      asm volatile("st.global.cs.b16 [%0], %1;" ::"l"(at), "h"((unsigned short)w[0]));
    else
      asm volatile("{ .reg .b16 h; cvt.u16.u32 h, %1; st.global.cs.b8 [%0], h; }" ::"l"(at), "r"(w[0]));
    return;
  }
#endif
  if constexpr (BYTES == 16)
    *(uint4 *)at = make_uint4(w[0], w[1], w[2], w[3]);
  else if constexpr (BYTES == 8)
    *(uint2 *)at = make_uint2(w[0], w[1]);
  else if constexpr (BYTES == 4)
    *(at_u32 *)at = w[0];
  else if constexpr (BYTES == 2)
    *(unsigned short *)at = (unsigned short)w[0];
  else
    *(unsigned char *)at = (unsigned char)w[0];
}

/* N elements of D, N a power of two: 16 bytes an access at most. */
template <class D, int N> struct at_vector {
  static constexpr int bytes = N * D::bytes, access = bytes < 16 ? bytes : 16, words = (bytes + 3) / 4;
  alignas(access < 4 ? 4 : access) at_u32 w[words];

  __device__ __forceinline__ void load(const char *at) {
#pragma unroll
    for (int i = 0; i < bytes / access; i++) at_load<access>(w + 4 * i, at + 16 * i);
  }

  /* From shared memory. */
  __device__ __forceinline__ void load_shared(const char *at) {
#pragma unroll
    for (int i = 0; i < bytes / access; i++) {
      if constexpr (access == 16)
        *(uint4 *)(w + 4 * i) = *(const uint4 *)(at + 16 * i);
      else if constexpr (access == 8)
        *(uint2 *)w = *(const uint2 *)at;
      else if constexpr (access == 4)
        w[0] = *(const at_u32 *)at;
      else if constexpr (access == 2)
        w[0] = *(const unsigned short *)at;
      else
        w[0] = *(const unsigned char *)at;
    }
  }

  __device__ __forceinline__ void store(char *at) const {
#pragma unroll
    for (int i = 0; i < bytes / access; i++) at_store<access>(at + 16 * i, w + 4 * i);
  }

  __device__ __forceinline__ typename D::value get(int k) const {
    if constexpr (D::bytes == 16)
      return at_c128{__longlong_as_double((long long)(w[4 * k] | (at_u64)w[4 * k + 1] << 32)),
                     __longlong_as_double((long long)(w[4 * k + 2] | (at_u64)w[4 * k + 3] << 32))};
    else if constexpr (D::bytes == 8)
      return at_decode<D>(w[2 * k] | (at_u64)w[2 * k + 1] << 32);
    else if constexpr (D::bytes == 4)
      return at_decode<D>(w[k]);
    else if constexpr (D::bytes == 2)
      return at_decode<D>(w[k / 2] >> k % 2 * 16 & 0xffffu);
    else
      return at_decode<D>(w[k / 4] >> k % 4 * 8 & 0xffu);
  }

  __device__ __forceinline__ void put(const typename D::value *x) {
    if constexpr (D::bytes == 16) {
#pragma unroll
      for (int k = 0; k < N; k++) {
        const at_u64 re = (at_u64)__double_as_longlong(x[k].re), im = (at_u64)__double_as_longlong(x[k].im);
        w[4 * k] = (at_u32)re, w[4 * k + 1] = (at_u32)(re >> 32);
        w[4 * k + 2] = (at_u32)im, w[4 * k + 3] = (at_u32)(im >> 32);
      }
    } else if constexpr (D::bytes == 8) {
#pragma unroll
      for (int k = 0; k < N; k++) {
        const at_u64 bits = at_encode<D>(x[k]);
        w[2 * k] = (at_u32)bits, w[2 * k + 1] = (at_u32)(bits >> 32);
      }
    } else if constexpr (D::bytes == 4 || N == 1) {
#pragma unroll
      for (int k = 0; k < N; k++) w[k] = (at_u32)at_encode<D>(x[k]);
    } else if constexpr (D::bytes == 2 || N == 2) {
#pragma unroll
      for (int k = 0; k < N; k += 2) w[k / 2] = at_encode_pair<D>(x[k], x[k + 1]);
    } else {
#pragma unroll
      for (int k = 0; k < N; k += 4)
        w[k / 4] = at_encode_pair<D>(x[k], x[k + 1]) | at_encode_pair<D>(x[k + 2], x[k + 3]) << 16;
    }
  }
};

template <class D> AT_INLINE typename D::value at_load_one(const char *at) {
  at_vector<D, 1> v;
  v.load(at);
  return v.get(0);
}

/* ---- arguments ---- */

/* A scalar in the dtype of its node: bits of a real number or integer in the first word, an imaginary part in the
 * second. */
struct at_scalar {
  at_u64 w[2];
};
template <class D> AT_INLINE typename D::value at_scalar_value(const at_scalar &s) {
  if constexpr (at_same<D, at_complex64>::yes)
    return at_c64{__uint_as_float((at_u32)s.w[0]), __uint_as_float((at_u32)s.w[1])};
  else if constexpr (at_same<D, at_complex128>::yes)
    return at_c128{__longlong_as_double((long long)s.w[0]), __longlong_as_double((long long)s.w[1])};
  else if constexpr (at_is_narrow<D>)
    return __uint_as_float((at_u32)s.w[0]); /* already rounded */
  else
    return at_decode<D>(s.w[0]);
}

/* A kernel that is DEPENDENT may be started before the one in front of it in the stream is done. It does what needs no
 * memory; then every thread waits, before it touches memory or ends. Where it lets the next one start: 1 first of all,
 * so that several wait, 2 when it has waited. */
AT_INLINE void at_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && DEPENDENT == 1
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
AT_INLINE void at_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && DEPENDENT
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && DEPENDENT == 2
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* n / d without a division: for n < 2^31 with the first, n < 2^63 with the second. */
struct at_divider {
  at_u32 factor, shift;
};
struct at_long_divider {
  at_u64 factor, shift;
};
AT_INLINE at_u32 at_divide(at_u32 n, at_divider d) {
  return (__umulhi(n, d.factor) + n) >> d.shift;
}
AT_INLINE at_u64 at_divide(at_u64 n, at_long_divider d) {
  return (__umul64hi(n, d.factor) + n) >> d.shift;
}
