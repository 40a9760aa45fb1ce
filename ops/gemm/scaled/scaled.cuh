/* SPDX-License-Identifier: Apache-2.0
 * scaled.cuh: any product of 8-bit elements, of any layout, size and scales: f8 in f32, i8 exactly in i32. Behind
 * kernel.cuh and scaled_element.cuh. Macros, as dtypes are numbered in types.h: IN_A, IN_B, D_TYPE; SCALE_A, SCALE_B,
 * attune_scale; SCALE_D, AMAX, ZERO_A, ZERO_B, 0 or 1. A block of 256 threads makes 64 x 64 elements of D, each thread
 * 4 x 4, in steps of 32 along k. */
enum { TILE = 64, STEP = 32, EACH = 4, SIDE = 16, ROW = TILE + 4 };

/* scaled_side of scaled_cuda.c: op(A) by rows, or op(B) by columns; distances in elements. */
struct at_side {
  const at_u8 *data;
  const float *scale;
  const signed char *zero;
  at_i64 by_line, by_depth, stride;
  at_i64 scale_line, scale_block; /* from a scale to that of the next line, or group of 128, and of the next 128 of k */
  int lines, unused;
};

/* scaled_arguments of scaled_cuda.c */
struct at_scaled_arguments {
  at_side a, b;
  const char *c;
  char *d;
  const float *scale_d;
  float *amax;
  at_i64 ldc, ldd, stride_c, stride_d;
  float alpha, beta;
  int integer_alpha, integer_beta;
  int k, batch, with_c, unused;
};

#if IN_A == 7
typedef int at_word;
#else
typedef float at_word;
#endif

/* ---- elements ---- */

template <int DTYPE> AT_INLINE at_word at_number(at_u8 x) {
  const at_u32 sign = (at_u32)(x & 0x80u) << 24, size = x & 0x7fu;
  if (DTYPE == 7) return (at_word)(signed char)x;
  if (DTYPE == 14) { /* e4m3: its bits as those of a float whose exponent is 120 too small */
    const float y = __uint_as_float(size << 20) * 0x1p120f;
    return (at_word)__uint_as_float(sign | (size == 0x7fu ? 0x7fc00000u : __float_as_uint(y)));
  }
  const float y = __uint_as_float(size << 21) * 0x1p112f;
  return (at_word)__uint_as_float(sign | (size >= 0x7cu ? 0x7f800000u | (size & 3u) << 21 : __float_as_uint(y)));
}

/* ---- a step's elements, numbers by then, into shared memory: line fastest ---- */

template <int DTYPE, int SCALE, int ZERO>
AT_INLINE void at_fill(at_word *tile, const at_side &s, const at_u8 *data, int line, int p, int k) {
  const int thread = (int)threadIdx.x;
  const bool deep = s.by_depth == 1; /* neighbours of a warp lie along k */
#pragma unroll 2                     /* more, and the addresses take all registers */
  for (int i = 0; i < TILE * STEP / 256; i++) {
    const int at = thread + i * 256, l = deep ? at / STEP : at % TILE, q = deep ? at % STEP : at / TILE;
    at_word x = 0;
    if (line + l < s.lines && p + q < k) {
      x = at_number<DTYPE>(data[(line + l) * s.by_line + (p + q) * s.by_depth]);
      if (ZERO) x -= (at_word)*s.zero;
      if (SCALE >= 3)
        x *=
            (at_word)s.scale[(SCALE == 4 ? (line + l) / 128 : line + l) * s.scale_line + (p + q) / 128 * s.scale_block];
    }
    tile[q * ROW + l] = x;
  }
}

AT_INLINE float at_end(const at_scaled_arguments &a, at_word sum, int m, int n, at_i64 matrix, float most) {
  const at_i64 at = matrix * a.stride_d + n * a.ldd + m, at_c = matrix * a.stride_c + n * a.ldc + m;
#if D_TYPE == 5
  at_u32 x = (at_u32)a.integer_alpha * (at_u32)(int)sum;
  if (a.with_c) x += (at_u32)a.integer_beta * (at_u32)((const int *)a.c)[at_c];
  ((int *)a.d)[at] = (int)x;
  return most;
#else
  float x = 0.0f;
  if (a.k > 0) {
    x = (float)sum;
    if (SCALE_A == 1 || SCALE_A == 2) x *= a.a.scale[SCALE_A == 2 ? m : 0];
    if (SCALE_B == 1 || SCALE_B == 2) x *= a.b.scale[SCALE_B == 2 ? n : 0];
    x *= a.alpha;
  }
  if (a.with_c) x += a.beta * at_load_c(a.c, at_c);
  at_store_d(a.d, at, SCALE_D ? x * *a.scale_d : x);
  return fmaxf(most, fabsf(x)); /* leaves NaN out */
#endif
}

extern "C" __global__ void __launch_bounds__(256) at_scaled(const at_scaled_arguments a) {
  __shared__ __align__(16) at_word tile_a[STEP * ROW], tile_b[STEP * ROW];
  const int m = a.a.lines, n = a.b.lines, row = (int)threadIdx.x % SIDE * EACH, column = (int)threadIdx.x / SIDE * EACH;
  const at_i64 tiles_m = (m + TILE - 1) / TILE, tiles_n = (n + TILE - 1) / TILE, all = tiles_m * tiles_n * a.batch;
  float most = 0.0f;
  for (at_i64 tile = blockIdx.x; tile < all; tile += gridDim.x) {
    const at_i64 matrix = tile / (tiles_m * tiles_n);
    const int line_a = (int)(tile % tiles_m * TILE), line_b = (int)(tile / tiles_m % tiles_n * TILE);
    const at_u8 *const data_a = a.a.data + matrix * a.a.stride, *const data_b = a.b.data + matrix * a.b.stride;
    at_word sum[EACH][EACH] = {};
    for (int p = 0; p < a.k; p += STEP) {
      at_fill<IN_A, SCALE_A, ZERO_A>(tile_a, a.a, data_a, line_a, p, a.k);
      at_fill<IN_B, SCALE_B, ZERO_B>(tile_b, a.b, data_b, line_b, p, a.k);
      __syncthreads();
#pragma unroll 8
      for (int q = 0; q < STEP; q++) {
        at_word x[EACH], y[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) x[i] = tile_a[q * ROW + row + i], y[i] = tile_b[q * ROW + column + i];
#pragma unroll
        for (int j = 0; j < EACH; j++)
#pragma unroll
          for (int i = 0; i < EACH; i++) sum[j][i] += x[i] * y[j];
      }
      __syncthreads();
    }
#pragma unroll
    for (int j = 0; j < EACH; j++)
#pragma unroll
      for (int i = 0; i < EACH; i++)
        if (line_a + row + i < m && line_b + column + j < n)
          most = at_end(a, sum[j][i], line_a + row + i, line_b + column + j, matrix, most);
  }
#if AMAX
#pragma unroll
  for (int down = 16; down > 0; down /= 2) most = fmaxf(most, __shfl_down_sync(0xffffffffu, most, down));
  if (threadIdx.x % 32 == 0) at_raise(a.amax, most);
#endif
}
