/* SPDX-License-Identifier: Apache-2.0
 * kernel.cuh: what every GEMM kernel of attune begins with: the argument, element types as they lie in memory and as
 * they are added up, and the one place where a sum becomes an element of D. IN and OUT are dtypes: 0 f32, 1 f64, 2 f16,
 * 3 bf16, 4 c64, 5 c128. Compiled at run time; a test compiles the same text for the host. */
#ifndef IN
#define IN 0
#endif
#ifndef OUT
#define OUT IN
#endif
#ifndef EPILOGUE
#define EPILOGUE 0
#endif
#ifndef POINTERS
#define POINTERS 0 /* 1: a, b, c and d are arrays of pointers to the matrices of the batch */
#endif
#ifndef MATRICES
#define MATRICES 0 /* the epilogue reads or writes matrices */
#endif
#ifndef GATED
#define GATED 0 /* D = f(g) u: see attune_gated */
#endif

typedef unsigned int at_u32;
typedef unsigned short at_u16;
typedef long long at_i64;
typedef unsigned long long at_u64;

#define AT_INLINE static __device__ __forceinline__

/* at_epilogue_arguments of kernel.h. Pitches in elements of D's type, of a mask in bits. */
struct at_epilogue {
  const char *bias, *residual;
  char *aux;
  at_i64 ld_aux, ld_residual, stride_aux, stride_residual;
  double clamp_min, clamp_max;
  const float *scale;
};

/* at_gemm_arguments of kernel.h. Leading dimensions and strides in bytes. */
struct at_arguments {
  const char *a, *b, *c;
  char *d;
  at_i64 lda, ldb, ldc, ldd, stride_a, stride_b, stride_c, stride_d;
  double alpha, beta;
  int m, n, k, batch;
  char *sums; /* in the workspace */
  int phase, zero;
  double alpha_imag, beta_imag;
  at_epilogue epilogue;
};

/* Where matrix number i of a batch begins. */
AT_INLINE const char *at_matrix(const char *first, at_i64 stride, at_i64 i) {
  return POINTERS ? ((const char *const *)first)[i] : first + i * stride;
}
AT_INLINE char *at_matrix(char *first, at_i64 stride, at_i64 i) {
  return POINTERS ? ((char *const *)first)[i] : first + i * stride;
}

/* ---- elements ---- */

template <class T> struct alignas(2 * sizeof(T)) at_complex {
  typedef T part;
  T re, im;
};

#if IN == 4
typedef at_complex<float> at_in;
typedef at_in at_sum;
#elif IN == 5
typedef at_complex<double> at_in;
typedef at_in at_sum;
#elif IN == 1
typedef double at_in;
typedef double at_sum;
#elif IN == 0
typedef float at_in;
typedef float at_sum;
#else
typedef at_u16 at_in;
typedef float at_sum;
#endif

#if OUT >= 4
typedef at_in at_out;
#elif OUT == 1
typedef double at_out;
#elif OUT == 0
typedef float at_out;
#else
typedef at_u16 at_out;
#endif

template <class T, int COUNT> struct alignas(sizeof(T) * COUNT) at_pack { T x[COUNT]; };

#ifndef AT_ON_HOST
AT_INLINE float at_from_f16(at_u16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
  return y;
}
AT_INLINE float at_from_bf16(at_u16 x) {
  return __uint_as_float((at_u32)x << 16);
}
AT_INLINE at_u16 at_to_f16(float x) {
  at_u16 y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
AT_INLINE at_u16 at_to_bf16(float x) {
  at_u16 y;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x));
  return y;
}
#endif

/* An element as it is computed with. */
AT_INLINE at_sum at_widen(at_in x) {
#if IN == 2
  return at_from_f16(x);
#elif IN == 3
  return at_from_bf16(x);
#else
  return x;
#endif
}

AT_INLINE at_sum at_widen_c(at_out x) {
#if OUT == 2
  return at_from_f16(x);
#elif OUT == 3
  return at_from_bf16(x);
#else
  return (at_sum)x;
#endif
}

AT_INLINE at_out at_narrow(at_sum x) {
#if OUT == 2
  return at_to_f16(x);
#elif OUT == 3
  return at_to_bf16(x);
#else
  return (at_out)x;
#endif
}

AT_INLINE float at_multiply_add(float x, float y, float z) {
  return __fmaf_rn(x, y, z);
}
AT_INLINE double at_multiply_add(double x, double y, double z) {
  return __fma_rn(x, y, z);
}
template <class T> AT_INLINE at_complex<T> at_multiply_add(at_complex<T> x, at_complex<T> y, at_complex<T> z) {
  return at_complex<T>{at_multiply_add(-x.im, y.im, at_multiply_add(x.re, y.re, z.re)),
                       at_multiply_add(x.im, y.re, at_multiply_add(x.re, y.im, z.im))};
}

/* ---- the epilogue: what a sum becomes. C is not read where beta is 0. ---- */

AT_INLINE bool at_adds_c(const at_arguments &a) {
  return a.beta != 0.0 || (IN >= 4 && a.beta_imag != 0.0);
}

#if IN >= 4
/* A scalar times x, with z. A real scalar leaves a part alone where the other one is not finite. */
AT_INLINE at_sum at_scale_add(double re, double im, at_sum x, at_sum z) {
  typedef at_sum::part part;
  const at_sum y = {at_multiply_add((part)re, x.re, z.re), at_multiply_add((part)re, x.im, z.im)};
  if ((part)im == 0) return y;
  return at_sum{at_multiply_add(-(part)im, x.im, y.re), at_multiply_add((part)im, x.re, y.im)};
}

AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum) {
  return at_scale_add(a.alpha, a.alpha_imag, sum, at_sum{0, 0});
}

AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum, at_out c) {
  return at_scale_add(a.beta, a.beta_imag, c, at_finish(a, sum));
}
#else
AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum) {
  return at_narrow((at_sum)a.alpha * sum);
}

AT_INLINE at_out at_finish(const at_arguments &a, at_sum sum, at_out c) {
  return at_narrow(at_multiply_add((at_sum)a.beta, at_widen_c(c), (at_sum)a.alpha * sum));
}
#endif

/* COUNT sums side by side. */
template <int COUNT> struct at_row { at_sum x[COUNT]; };

#define AT_WRITE EACH_D, TURNED, TURNED ? RAGGED_N : RAGGED_M, TURNED ? RAGGED_M : RAGGED_N, READS_C

#if !EPILOGUE /* else epilogue.cuh has these three */

/* What element (m, n) of D, which may lie outside of it, gets of a sum. */
AT_INLINE at_out at_finish_at(const at_arguments &a, int m, int n, at_sum sum) {
  return at_finish(a, sum);
}

/* A sum into its place in D; TURNED: D lies along n. READS_C: there may be a C. */
template <bool TURNED_, bool READS_C_>
AT_INLINE void at_put(const at_arguments &a, int m, int n, at_i64 matrix, at_sum sum) {
  if (m >= a.m || n >= a.n) return;
  const at_i64 line = TURNED_ ? m : n, at = (at_i64)(TURNED_ ? n : m) * (at_i64)sizeof(at_out);
  at_out *d = (at_out *)(at_matrix(a.d, a.stride_d, matrix) + line * a.ldd + at);
  if (READS_C_ && a.beta != 0.0)
    *d = at_finish(a, sum, *(const at_out *)(at_matrix(a.c, a.stride_c, matrix) + line * a.ldc + at));
  else
    *d = at_finish(a, sum);
}

/* Elements of D, COUNT side by side from (line, at) on; a store may have EACH. Of a family whose macros say how D lies:
 * at_write<AT_WRITE>. */
template <int EACH, bool TURNED_, bool ENDS, bool FEWER, bool READS_C_, int COUNT>
AT_INLINE void at_write(const at_arguments &a, at_i64 matrix, int line, int at, const at_row<COUNT> &sum) {
  constexpr int STORE = EACH < COUNT ? EACH : COUNT, SIZE_OUT = (int)sizeof(at_out);
  const int lines = TURNED_ ? a.m : a.n, length = TURNED_ ? a.n : a.m;
  if (FEWER && line >= lines) return;
  char *d = at_matrix(a.d, a.stride_d, matrix) + line * a.ldd + (at_i64)at * SIZE_OUT;
  const char *c = READS_C_ ? at_matrix(a.c, a.stride_c, matrix) + line * a.ldc + (at_i64)at * SIZE_OUT : 0;
  const bool with_c = READS_C_ && a.beta != 0.0;
#pragma unroll
  for (int i = 0; i < COUNT; i += STORE) {
    at_pack<at_out, STORE> out;
    if (!ENDS || at + i + STORE <= length) {
      if (with_c) {
        const at_pack<at_out, STORE> old = *(const at_pack<at_out, STORE> *)(c + i * SIZE_OUT);
#pragma unroll
        for (int e = 0; e < STORE; e++) out.x[e] = at_finish(a, sum.x[i + e], old.x[e]);
      } else {
#pragma unroll
        for (int e = 0; e < STORE; e++) out.x[e] = at_finish(a, sum.x[i + e]);
      }
      *(at_pack<at_out, STORE> *)(d + i * SIZE_OUT) = out;
    } else {
#pragma unroll
      for (int e = 0; e < STORE; e++)
        if (at + i + e < length)
          *(at_out *)(d + (i + e) * SIZE_OUT) =
              with_c ? at_finish(a, sum.x[i + e], *(const at_out *)(c + (i + e) * SIZE_OUT))
                     : at_finish(a, sum.x[i + e]);
    }
  }
}

#endif
