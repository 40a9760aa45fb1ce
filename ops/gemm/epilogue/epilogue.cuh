/* SPDX-License-Identifier: Apache-2.0
 * epilogue.cuh: what an epilogue makes of z, on the device: activations and their derivatives, and one element's way
 * from the product to D. For at_sum, float or double, and at_widen_c, at_narrow of kernel.cuh. Macros: BIAS (0 none, 1
 * along m, 2 along n), BIAS_TYPE (0 f32, 1 f64, 2 f16, 3 bf16), ACTIVATION, AUX, GRADIENT, RESIDUAL, CLAMP: see
 * attune_gemm_epilogue. */

/* What every kernel with an epilogue takes: at_epilogue_arguments of pass_cuda.c. Pitches in elements of D's type, of
 * a mask in bits. */
struct at_epilogue {
  const char *bias, *residual;
  char *aux;
  at_i64 ld_aux, ld_residual, stride_aux, stride_residual;
  double clamp_min, clamp_max;
};

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
#elif ACTIVATION == 3
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

/* COUNT elements of D side by side along m, from (m, n) of a matrix of the batch on: z in, D's out. COUNT elements of
 * each operand are loaded at once, so their addresses are multiples of that. A mask wants COUNT to be 8. */
template <int COUNT>
AT_INLINE void at_epilogue_apply(const at_epilogue &e, at_i64 m, at_i64 n, at_i64 matrix, at_sum (&z)[COUNT]) {
#if BIAS == 1
  const at_pack<at_bias, COUNT> bias = *(const at_pack<at_bias, COUNT> *)((const at_bias *)e.bias + m);
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] += at_widen_bias(bias.x[i]);
#elif BIAS == 2
  const at_sum bias = at_widen_bias(((const at_bias *)e.bias)[n]);
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] += bias;
#endif
#if AUX == 1
  at_pack<at_out, COUNT> *const aux = (at_pack<at_out, COUNT> *)((at_out *)e.aux + matrix * e.stride_aux + n * e.ld_aux + m);
#if GRADIENT
  const at_pack<at_out, COUNT> x = *aux;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
#if ACTIVATION == 1
    z[i] = at_widen_c(x.x[i]) <= (at_sum)0 ? (at_sum)0 : z[i];
#else
    z[i] *= at_derive(at_widen_c(x.x[i]));
#endif
  }
#else
  at_pack<at_out, COUNT> x;
#pragma unroll
  for (int i = 0; i < COUNT; i++) x.x[i] = at_narrow(z[i]);
  *aux = x;
#endif
#elif AUX == 2
  unsigned char *const mask = (unsigned char *)e.aux + (matrix * e.stride_aux + n * e.ld_aux + m) / 8;
#if GRADIENT
  const at_u32 bits = *mask;
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] = bits >> i & 1u ? z[i] : (at_sum)0;
#else
  at_u32 bits = 0;
#pragma unroll
  for (int i = 0; i < COUNT; i++) bits |= (at_u32)(z[i] > (at_sum)0) << i;
  *mask = (unsigned char)bits;
#endif
#endif
#if !GRADIENT
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] = at_activate(z[i]);
#endif
#if RESIDUAL
  const at_pack<at_out, COUNT> more = *(const at_pack<at_out, COUNT> *)((const at_out *)e.residual +
                                                                         matrix * e.stride_residual + n * e.ld_residual + m);
#pragma unroll
  for (int i = 0; i < COUNT; i++) z[i] += at_widen_c(more.x[i]);
#endif
#if CLAMP
  const at_sum low = (at_sum)e.clamp_min, high = (at_sum)e.clamp_max;
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    z[i] = z[i] < low ? low : z[i];
    z[i] = z[i] > high ? high : z[i];
  }
#endif
}

/* One element; the bit of a mask is its own thread's only where COUNT is 8: of the rest of a column, below 8. */
AT_INLINE void at_epilogue_apply_rest(const at_epilogue &e, at_i64 m, at_i64 n, at_i64 matrix, int count, at_sum *z) {
#if AUX == 2
  unsigned char *const mask = (unsigned char *)e.aux + (matrix * e.stride_aux + n * e.ld_aux + m) / 8;
  at_u32 bits = *mask, kept = bits & 0xffu << count;
#if !GRADIENT
  bits = 0;
#endif
#endif
  for (int i = 0; i < count; i++) {
#if BIAS == 1
    z[i] += at_widen_bias(((const at_bias *)e.bias)[m + i]);
#elif BIAS == 2
    z[i] += at_widen_bias(((const at_bias *)e.bias)[n]);
#endif
#if AUX == 1
    at_out *const aux = (at_out *)e.aux + matrix * e.stride_aux + n * e.ld_aux + m + i;
#if GRADIENT && ACTIVATION == 1
    z[i] = at_widen_c(*aux) <= (at_sum)0 ? (at_sum)0 : z[i];
#elif GRADIENT
    z[i] *= at_derive(at_widen_c(*aux));
#else
    *aux = at_narrow(z[i]);
#endif
#elif AUX == 2 && GRADIENT
    z[i] = bits >> i & 1u ? z[i] : (at_sum)0;
#elif AUX == 2
    bits |= (at_u32)(z[i] > (at_sum)0) << i;
#endif
#if !GRADIENT
    z[i] = at_activate(z[i]);
#endif
#if RESIDUAL
    z[i] += at_widen_c(((const at_out *)e.residual)[matrix * e.stride_residual + n * e.ld_residual + m + i]);
#endif
#if CLAMP
    z[i] = z[i] < (at_sum)e.clamp_min ? (at_sum)e.clamp_min : z[i];
    z[i] = z[i] > (at_sum)e.clamp_max ? (at_sum)e.clamp_max : z[i];
#endif
  }
#if AUX == 2 && !GRADIENT
  *mask = (unsigned char)(bits | kept);
#endif
}

#if EPILOGUE
/* What a kernel that has the sums in registers makes of z, for element (m, n) of D: bias, activation, clamp. */
AT_INLINE at_sum at_followed(const at_arguments &a, int m, int n, at_sum z) {
#if BIAS == 1
  z += at_widen_bias(__ldg((const at_bias *)a.bias + (m < a.m ? m : a.m - 1)));
#elif BIAS == 2
  z += at_widen_bias(__ldg((const at_bias *)a.bias + (n < a.n ? n : a.n - 1)));
#endif
  z = at_activate(z);
#if CLAMP
  z = z < (at_sum)a.clamp_min ? (at_sum)a.clamp_min : z;
  z = z > (at_sum)a.clamp_max ? (at_sum)a.clamp_max : z;
#endif
  return z;
}
#endif
