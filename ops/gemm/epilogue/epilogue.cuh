/* SPDX-License-Identifier: Apache-2.0
 * epilogue.cuh: what an epilogue makes of z, on the device: activations and their derivatives, and one element's way
 * from the product to D. For at_sum, float or double, and at_widen_c, at_narrow of kernel.cuh. Macros: BIAS (0 none, 1
 * along m, 2 along n), BIAS_TYPE (0 f32, 1 f64, 2 f16, 3 bf16), ACTIVATION, AUX, GRADIENT, RESIDUAL, CLAMP, SCALE_D,
 * GATED (0, 1): see attune_gemm_epilogue; BYTES_BIAS, BYTES_AUX, BYTES_RESIDUAL: what an access may have; SWAPPED 1: the kernel's m and n
 * are D's n and m. */

#if BIAS_TYPE == 1
typedef double at_bias;
#elif BIAS_TYPE == 0
typedef float at_bias;
#else
typedef at_u16 at_bias;
#endif

AT_INLINE at_sum at_widen_bias(at_bias x) {
#if BIAS_TYPE == 2
  return at_from_f16(x);
#elif BIAS_TYPE == 3
  return at_from_bf16(x);
#else
  return (at_sum)x;
#endif
}

#if IN == 1
#define AT_EXP(x) exp(x)
#define AT_ERF(x) erf(x)
#define AT_TANH(x) tanh(x)
#define AT_RECIPROCAL(x) (1.0 / (x))
#else
#define AT_EXP(x) __expf(x)
#define AT_ERF(x) erff(x)
#define AT_TANH(x) tanhf(x)
#define AT_RECIPROCAL(x) __frcp_rn(x)
#endif

/* Of halves tanh.approx, within 2^-11, is enough: one instruction of the special function unit instead of two. */
#if OUT >= 2 && !defined(AT_ON_HOST)
AT_INLINE float at_tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
AT_INLINE at_sum at_sigmoid(at_sum x) {
  return 0.5f + 0.5f * at_tanh_approx(0.5f * x);
}
#else
AT_INLINE at_sum at_sigmoid(at_sum x) {
  return AT_RECIPROCAL((at_sum)1 + AT_EXP(-x));
}
#endif

/* f(z): as attune_activation numbers them */
AT_INLINE at_sum at_activate(at_sum z) {
#if ACTIVATION == 1
  return z <= (at_sum)0 ? (at_sum)0 : z;
#elif ACTIVATION == 2
  return (at_sum)0.5 * z * ((at_sum)1 + AT_ERF(z * (at_sum)0.70710678118654752));
#elif ACTIVATION == 3 /* 0.5 (1 + tanh(u)) is sigmoid(2 u) */
  return z * at_sigmoid((at_sum)1.5957691216057308 * (z + (at_sum)0.044715 * z * z * z));
#elif ACTIVATION == 4
  return z * at_sigmoid(z);
#elif ACTIVATION == 5
  return at_sigmoid(z);
#elif ACTIVATION == 6
  return AT_TANH(z);
#else
  return z;
#endif
}

/* f'(x) */
AT_INLINE at_sum at_derive(at_sum x) {
#if ACTIVATION == 1
  return x <= (at_sum)0 ? (at_sum)0 : (at_sum)1;
#elif ACTIVATION == 2
  return (at_sum)0.5 * ((at_sum)1 + AT_ERF(x * (at_sum)0.70710678118654752)) +
         x * (at_sum)0.39894228040143268 * AT_EXP((at_sum)-0.5 * x * x);
#elif ACTIVATION == 3 /* from 16 on tanh(u) is 1, and x^3 is far from overflow */
  x = x > (at_sum)16 ? (at_sum)16 : x < (at_sum)-16 ? (at_sum)-16 : x;
  const at_sum t = AT_TANH((at_sum)0.79788456080286536 * (x + (at_sum)0.044715 * x * x * x));
  const at_sum slope = (at_sum)0.79788456080286536 * ((at_sum)1 + (at_sum)0.134145 * x * x);
  return (at_sum)0.5 * ((at_sum)1 + t) + (at_sum)0.5 * x * ((at_sum)1 - t * t) * slope;
#elif ACTIVATION == 4
  const at_sum s = at_sigmoid(x);
  return s * ((at_sum)1 + x * ((at_sum)1 - s));
#elif ACTIVATION == 5
  const at_sum s = at_sigmoid(x);
  return s * ((at_sum)1 - s);
#elif ACTIVATION == 6
  const at_sum t = AT_TANH(x);
  return (at_sum)1 - t * t;
#else
  return (at_sum)1;
#endif
}

/* COUNT elements side by side, as many at a time as BYTES are; without ALL the first `count` of them. */
template <int BYTES, bool ALL, class T, int COUNT> AT_INLINE void at_side_load(T (&x)[COUNT], const T *from, int count) {
  constexpr int MOST = BYTES / (int)sizeof(T) < 1 || !ALL ? 1 : BYTES / (int)sizeof(T), EACH = MOST < COUNT ? MOST : COUNT;
#pragma unroll
  for (int i = 0; i < COUNT; i += EACH)
    if (ALL || i < count) {
      const at_pack<T, EACH> some = *(const at_pack<T, EACH> *)(from + i);
#pragma unroll
      for (int e = 0; e < EACH; e++) x[i + e] = some.x[e];
    }
}

template <int BYTES, bool ALL, class T, int COUNT> AT_INLINE void at_side_store(T *to, const T (&x)[COUNT], int count) {
  constexpr int MOST = BYTES / (int)sizeof(T) < 1 || !ALL ? 1 : BYTES / (int)sizeof(T), EACH = MOST < COUNT ? MOST : COUNT;
#pragma unroll
  for (int i = 0; i < COUNT; i += EACH)
    if (ALL || i < count) {
      at_pack<T, EACH> some;
#pragma unroll
      for (int e = 0; e < EACH; e++) some.x[e] = x[i + e];
      *(at_pack<T, EACH> *)(to + i) = some;
    }
}

/* COUNT elements side by side along m, from (m, n) of the product on; without ALL only the first `count` of them are
 * needed. */
template <int COUNT, bool ALL>
AT_INLINE void at_add_bias(const at_epilogue &e, at_i64 m, at_i64 n, int count, at_sum (&z)[COUNT]) {
#if BIAS == 1
  at_bias bias[COUNT] = {};
  if (COUNT == 1)
    bias[0] = __ldg((const at_bias *)e.bias + m);
  else
    at_side_load<BYTES_BIAS, ALL>(bias, (const at_bias *)e.bias + m, count);
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] += at_widen_bias(bias[i]);
#elif BIAS == 2
  const at_sum bias = at_widen_bias(__ldg((const at_bias *)e.bias + n));
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] += bias;
#endif
}

/* f(g) u: alpha op(A) op(B) of g, at (m, n) of the product, in z, and of u, at (m_up, n_up). */
template <int COUNT, bool ALL>
AT_INLINE void at_gate(const at_epilogue &e, at_i64 m, at_i64 n, at_i64 m_up, at_i64 n_up, int count,
                       at_sum (&z)[COUNT], at_sum (&up)[COUNT]) {
  at_add_bias<COUNT, ALL>(e, m, n, count, z);
  at_add_bias<COUNT, ALL>(e, m_up, n_up, count, up);
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] = at_activate(z[i]) * up[i];
}

/* COUNT elements of D side by side along m, from (m, n) of a matrix of the batch on: alpha op(A) op(B) + beta C, or
 * what at_gate made, in, D's out; without ALL only the first `count` of them are D's. m is a multiple of COUNT; a mask is
 * written 8 bits at a time. */
template <int COUNT, bool ALL>
AT_INLINE void at_epilogue_apply(const at_epilogue &e, at_i64 m, at_i64 n, at_i64 matrix, int count,
                                 at_sum (&z)[COUNT]) {
#if !GATED
  at_add_bias<COUNT, ALL>(e, m, n, count, z);
#endif
#if AUX == 1
  at_out *const aux = (at_out *)e.aux + matrix * e.stride_aux + n * e.ld_aux + m;
  at_out x[COUNT] = {};
#if GRADIENT
  at_side_load<BYTES_AUX, ALL>(x, aux, count);
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
#if ACTIVATION == 1
    z[i] = at_widen_c(x[i]) <= (at_sum)0 ? (at_sum)0 : z[i];
#else
    z[i] *= at_derive(at_widen_c(x[i]));
#endif
  }
#else
#pragma unroll
  for (int i = 0; i < COUNT; i++) x[i] = at_narrow(z[i]);
  at_side_store<BYTES_AUX, ALL>(aux, x, count);
#endif
#elif AUX == 2
  const at_i64 bit = matrix * e.stride_aux + n * e.ld_aux + m;
  unsigned char *const mask = (unsigned char *)e.aux + bit / 8;
#if GRADIENT
  const at_u32 bits = (at_u32)*mask >> bit % 8;
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] = bits >> i & 1u ? z[i] : (at_sum)0;
#else
  static_assert(COUNT == 8, "a mask's byte is one thread's");
  at_u32 bits = ALL ? 0 : *mask & 0xffu << count;
#pragma unroll
  for (int i = 0; i < COUNT; i++) bits |= (at_u32)((ALL || i < count) && z[i] > (at_sum)0) << i;
  *mask = (unsigned char)bits;
#endif
#endif
#if !GRADIENT && !GATED
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] = at_activate(z[i]);
#endif
#if RESIDUAL
  at_out more[COUNT] = {};
  at_side_load<BYTES_RESIDUAL, ALL>(more, (const at_out *)e.residual + matrix * e.stride_residual + n * e.ld_residual + m,
                                    count);
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] += at_widen_c(more[i]);
#endif
#if CLAMP
  const at_sum low = (at_sum)e.clamp_min, high = (at_sum)e.clamp_max;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    z[i] = z[i] < low ? low : z[i];
    z[i] = z[i] > high ? high : z[i];
  }
#endif
#if SCALE_D
  const at_sum scale = (at_sum)__ldg(e.scale);
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] *= scale;
#endif
}

#if EPILOGUE
/* ---- what kernel.cuh has without an epilogue ---- */

/* What at_gate made is scaled already. */
AT_INLINE at_sum at_scaled(const at_arguments &a, at_sum sum) {
  return GATED ? sum : (at_sum)a.alpha * sum;
}

AT_INLINE at_sum at_scaled(const at_arguments &a, at_sum sum, at_out c) {
  return at_multiply_add((at_sum)a.beta, at_widen_c(c), (at_sum)a.alpha * sum);
}

/* Of an epilogue without matrices. */
AT_INLINE at_out at_finish_at(const at_arguments &a, int m, int n, at_sum sum) {
  at_sum z[1] = {at_scaled(a, sum)};
  m = m < a.m ? m : a.m - 1, n = n < a.n ? n : a.n - 1;
  at_epilogue_apply<1, true>(a.epilogue, SWAPPED ? n : m, SWAPPED ? m : n, 0, 1, z);
  return at_narrow(z[0]);
}

template <bool TURNED_, bool READS_C_>
AT_INLINE void at_put(const at_arguments &a, int m, int n, at_i64 matrix, at_sum sum) {
  if (m >= a.m || n >= a.n) return;
  const int line = TURNED_ ? m : n, at = TURNED_ ? n : m;
  const at_out *c = (const at_out *)(a.c + matrix * a.stride_c + line * a.ldc) + at;
  at_sum z[1] = {READS_C_ && a.beta != 0.0 ? at_scaled(a, sum, *c) : at_scaled(a, sum)};
  at_epilogue_apply<1, true>(a.epilogue, at, line, matrix, 1, z);
  ((at_out *)(a.d + matrix * a.stride_d + line * a.ldd))[at] = at_narrow(z[0]);
}

/* COUNT elements, or the first `count`, that one access may have. */
template <bool READS_C_, bool ALL, int COUNT>
AT_INLINE void at_write_some(const at_arguments &a, at_i64 matrix, int line, int at, int count, const at_sum *sum) {
  at_out d[COUNT] = {};
  at_sum z[COUNT];
  if (READS_C_ && a.beta != 0.0) {
    at_side_load<16, ALL>(d, (const at_out *)(a.c + matrix * a.stride_c + line * a.ldc) + at, count);
#pragma unroll
    for (int i = 0; i < COUNT; i++) z[i] = at_scaled(a, sum[i], d[i]);
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; i++) z[i] = at_scaled(a, sum[i]);
  }
  at_epilogue_apply<COUNT, ALL>(a.epilogue, at, line, matrix, count, z);
#pragma unroll
  for (int i = 0; i < COUNT; i++) d[i] = at_narrow(z[i]);
  at_side_store<16, ALL>((at_out *)(a.d + matrix * a.stride_d + line * a.ldd) + at, d, count);
}

template <int EACH, bool TURNED_, bool ENDS, bool FEWER, bool READS_C_, int COUNT>
AT_INLINE void at_write(const at_arguments &a, at_i64 matrix, int line, int at, const at_row<COUNT> &sum) {
  constexpr int STORE = EACH < COUNT ? EACH : COUNT;
  const int lines = TURNED_ ? a.m : a.n, length = TURNED_ ? a.n : a.m;
  if (FEWER && line >= lines) return;
#pragma unroll
  for (int i = 0; i < COUNT; i += STORE) {
    const int count = length - at - i;
    if (!ENDS || count >= STORE)
      at_write_some<READS_C_, true, STORE>(a, matrix, line, at + i, STORE, sum.x + i);
    else
      at_write_some<READS_C_, false, STORE>(a, matrix, line, at + i, count, sum.x + i);
  }
}
#endif
