/* SPDX-License-Identifier: Apache-2.0
 * sm90_skinny_ring_8b.cuh: sums of 8-bit elements, for sm90_skinny_ring.cuh, behind scaled_element.cuh. f8 become
 * f16, which all of them are exactly, on their way to tensor cores that add up f32: a lane's 16 elements along k are
 * those of four instructions. i8 are multiplied as they are, by two. Dtypes as in types.h: TYPE_L, TYPE_S, D_TYPE;
 * attune_scale: SCALE_L, SCALE_S; 0 or 1: SCALE_D, AMAX. Scales of 128 elements come through the rings, and multiply
 * sums of 128 of k. */

#ifndef AT_ON_HOST
/* The low two elements of a word and the high two, as f16. */
template <int DTYPE> AT_INLINE uint2 at_to_halves(at_u32 x) {
  uint2 y;
  if constexpr (DTYPE == 14)
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.rn.f16x2.e4m3x2 %0, low;\ncvt.rn.f16x2.e4m3x2 %1, "
        "high;\n}"
        : "=r"(y.x), "=r"(y.y)
        : "r"(x));
  else
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.rn.f16x2.e5m2x2 %0, low;\ncvt.rn.f16x2.e5m2x2 %1, "
        "high;\n}"
        : "=r"(y.x), "=r"(y.y)
        : "r"(x));
  return y;
}
/* c += x y for 16 x 32 x and 32 x 8 y, i8. */
AT_INLINE void at_mma_i8(int c[4], const at_u32 x[4], at_u32 y0, at_u32 y1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y0), "r"(y1));
}
/* One f32, for the barrier that this thread arrives at next with its copies. */
AT_INLINE void at_ring_copy_scale(char *to, const float *from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(at_shared(to)), "l"(from) : "memory");
}
#endif

/* ---- sums ---- */

/* 64 of k, from l and s on; ENDS: the lane's 16 may not be `there`. */
template <bool ENDS> AT_INLINE void at_add(at_sums &sum, const char *l, const char *s, bool there) {
  const uint4 none = {0, 0, 0, 0};
  uint4 x[2 * PER];
#pragma unroll
  for (int i = 0; i < 2 * PER; i++) x[i] = ENDS && !there ? none : *(const uint4 *)(l + i * (8 * PITCH));
#if TYPE_L == 7
#pragma unroll
  for (int j = 0; j < COLS / 8; j++) {
    const uint4 y = ENDS && !there ? none : *(const uint4 *)(s + j * (8 * PITCH));
#pragma unroll
    for (int i = 0; i < PER; i++) {
      const uint4 low = x[2 * i], high = x[2 * i + 1];
      const at_u32 first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
      at_mma_i8(sum[i][j], first, y.x, y.y);
      at_mma_i8(sum[i][j], second, y.z, y.w);
    }
  }
#else
  at_u32 wide[PER][4][4];
#pragma unroll
  for (int i = 0; i < PER; i++) {
    const uint4 low = x[2 * i], high = x[2 * i + 1];
    const at_u32 words[2][4] = {{low.x, low.y, low.z, low.w}, {high.x, high.y, high.z, high.w}};
#pragma unroll
    for (int w = 0; w < 4; w++) {
      const uint2 a = at_to_halves<TYPE_L>(words[0][w]), b = at_to_halves<TYPE_L>(words[1][w]);
      wide[i][w][0] = a.x, wide[i][w][1] = b.x, wide[i][w][2] = a.y, wide[i][w][3] = b.y;
    }
  }
#pragma unroll
  for (int j = 0; j < COLS / 8; j++) {
    const uint4 y = ENDS && !there ? none : *(const uint4 *)(s + j * (8 * PITCH));
    const at_u32 words[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int w = 0; w < 4; w++) {
      const uint2 b = at_to_halves<TYPE_S>(words[w]);
#pragma unroll
      for (int i = 0; i < PER; i++) at_mma16(sum[i][j], wide[i][w], b.x, b.y);
    }
  }
#endif
}

/* 128 of k. A single tile's sums wait for each other: every other 64 of k has sums of its own. */
#define ALONE (PER * COLS == 8)
AT_INLINE void at_add_group(at_sums &sum, at_sums &other, const char *l, const char *s) {
  at_add<false>(sum, l, s, true);
  at_add<false>(ALONE ? other : sum, l + 64, s + 64, true);
}

/* The first `left` of k. */
AT_INLINE void at_add_ends(at_sums &sum, const char *l, const char *s, int left, int lane) {
#pragma unroll 1
  for (int at = 0; at < left; at += 64) at_add<true>(sum, l + at, s + at, at + lane % 4 * 16 < left);
}

AT_INLINE void at_add_other(at_sums &sum, const at_sums &other) {
  if (ALONE)
#pragma unroll
    for (int e = 0; e < 4; e++) sum[0][0][e] += other[0][0][e];
}

#if BLOCKED

AT_INLINE void at_order_scales(const at_warp &w, int s, char *to_l, char *to_s, int bytes, int lane) {
#if SCALE_L >= 3
#pragma unroll
  for (int i = lane; i < ROWS * GROUPS; i += 32) {
    const int line = i % ROWS, group = i / ROWS;
    const at_i64 at = s * GROUPS + group;
    if (line < w.rows && group * 128 < bytes)
      at_ring_copy_scale(to_l + i * 4, w.scale_l + (SCALE_L == 3 ? line + at * w.lines_l : at));
  }
#endif
#if SCALE_S >= 3
#pragma unroll
  for (int i = lane; i < COLS * GROUPS; i += 32) {
    const int line = i % COLS, group = i / COLS;
    const at_i64 at = s * GROUPS + group;
    if (line < w.cols && group * 128 < bytes)
      at_ring_copy_scale(to_s + i * 4, w.scale_s + (SCALE_S == 3 ? line + at * w.lines_s : at));
  }
#endif
}

/* Sums of 128 of k, group `group` of a step, times its scales. */
AT_INLINE void at_add_scaled(at_sums &sum, const at_sums &part, const float *scale_l, const float *scale_s, int group,
                             int lane) {
#pragma unroll
  for (int i = 0; i < PER; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const float of_row = SCALE_L >= 3 ? scale_l[group * ROWS + 16 * i + 8 * h + lane / 4] : 1.0f;
#pragma unroll
      for (int j = 0; j < COLS / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const float of_column = SCALE_S >= 3 ? scale_s[group * COLS + 8 * j + lane % 4 * 2 + e] : 1.0f;
          sum[i][j][2 * h + e] = __fmaf_rn(part[i][j][2 * h + e] * of_row, of_column, sum[i][j][2 * h + e]);
        }
    }
}

AT_INLINE void at_multiply(at_sums &sum, const char *l, const char *s, int bytes, int lane) {
  const float *scale_l = (const float *)(l + ROWS * PITCH), *scale_s = (const float *)(s + LINES_S * PITCH);
  l += lane / 4 * PITCH + lane % 4 * 16;
  s += lane / 4 % LINES_S * PITCH + lane % 4 * 16;
#pragma unroll 1
  for (int at = 0; at < bytes; at += 128) {
    at_sums part = {}, other = {};
    if (bytes - at >= 128)
      at_add_group(part, other, l + at, s + at);
    else
      at_add_ends(part, l + at, s + at, bytes - at, lane);
    at_add_other(part, other);
    at_add_scaled(sum, part, scale_l, scale_s, at / 128, lane);
  }
}

#else

AT_INLINE void at_multiply(at_sums &sum, const char *l, const char *s, int bytes, int lane) {
  at_sums other = {};
  l += lane / 4 * PITCH + lane % 4 * 16;
  s += lane / 4 % LINES_S * PITCH + lane % 4 * 16;
  if (bytes == STEP) {
#pragma unroll 2
    for (int at = 0; at < STEP; at += 128) at_add_group(sum, other, l + at, s + at);
  } else {
    const int ends = bytes % 128, whole = bytes - ends;
#pragma unroll 1
    for (int at = 0; at < whole; at += 128) at_add_group(sum, other, l + at, s + at);
    at_add_ends(sum, l + whole, s + whole, ends, lane);
  }
  at_add_other(sum, other);
}

#endif

/* ---- D ---- */

#if D_TYPE == 5
/* A scalar of an i32 problem: towards zero, at most an i32. */
AT_INLINE int at_integer(double x) {
  return x != x ? 0 : x <= -2147483648.0 ? (int)0x80000000u : x >= 2147483647.0 ? 0x7fffffff : (int)x;
}
#endif

AT_INLINE void at_ring_put(const at_ring_arguments &a, int m, int n, at_i64 matrix, at_total sum, float &most) {
  if (m >= a.m || n >= a.n) return;
  const at_i64 line = TURNED ? m : n, at = TURNED ? n : m;
  const char *c = a.c + matrix * a.stride_c + line * a.ldc;
  char *d = a.d + matrix * a.stride_d + line * a.ldd;
#if D_TYPE == 5
  at_u32 x = (at_u32)at_integer(a.alpha) * (at_u32)sum;
  if (READS_C && a.beta != 0.0) x += (at_u32)at_integer(a.beta) * (at_u32)((const int *)c)[at];
  ((int *)d)[at] = (int)x;
#else
  float x = (float)sum;
  if (SCALE_L == 1 || SCALE_L == 2) x *= a.scale_l[SCALE_L == 2 ? m : 0];
  if (SCALE_S == 1 || SCALE_S == 2) x *= a.scale_s[SCALE_S == 2 ? n : 0];
  x *= (float)a.alpha;
  if (READS_C && a.beta != 0.0) x += (float)a.beta * at_load_c(c, at);
  at_store_d(d, at, SCALE_D ? x * *a.scale_d : x);
  if (AMAX) most = fmaxf(most, fabsf(x)); /* leaves NaN out */
#endif
}

AT_INLINE void at_ring_end(const at_ring_arguments &a, float most) {
#if AMAX
#pragma unroll
  for (int far = 16; far > 0; far /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, far));
  if (threadIdx.x % 32 == 0) at_raise(a.amax, most);
#endif
}
