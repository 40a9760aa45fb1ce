/* SPDX-License-Identifier: Apache-2.0
 * sm80_batched_reg_16b.cuh: many small products of halves, sizes multiples of 16. A warp makes TM x TN of a matrix of D
 * and takes A and B from memory straight into the registers that tensor cores want, and D from them straight to memory:
 * no shared memory, no waiting for other warps. WARPS warps make a matrix, TEAMS such teams are a block. kernel.cuh
 * stands in front of it.
 *
 * An instruction multiplies 16 lines of n by 8 lines of m, 16 of k at a time, and gives a thread certain elements of
 * each. Which m, n and k stand for which of its places is free, as long as A, B and D agree. So a thread has
 * neighbours:
 *   k: DEPTH of every UNIT, side by side. UNIT of k are two instructions where K permits.
 *   m: ALONG_M side by side, one for each instruction along m; D then has twice as many side by side.
 *   n: ALONG_N side by side where B lies along n, else lines 8 apart. */
#ifndef M
#define M 32
#define N 32
#define K 32
#define TM 32
#define TN 32
#define WARPS 1
#define TEAMS 4
#define BLOCKS 1 /* of a processor, that registers should be left for */
#define TRANS_A 0
#define TRANS_B 0
#define BYTES_A 16
#define BYTES_B 16
#define BYTES_C 16
#define BYTES_D 16
#define READS_C 0
#endif

#define SIZE ((int)sizeof(at_in))
#define SIZE_D ((int)sizeof(at_out))
constexpr int UNIT = K % 32 ? 16 : 32, UNITS = K / UNIT, DEPTH = UNIT / 4, PAIRS = DEPTH / 2;
constexpr int ALONG_M = TM / 8, ALONG_N = TN / 8;

/* COUNT pairs of halves that lie side by side, in loads of at most BYTES. */
template <int COUNT, int BYTES> AT_INLINE void at_take(at_u32 x[COUNT], const char *from) {
  if constexpr (BYTES >= 4) {
    constexpr int EACH = BYTES / 4 < COUNT ? BYTES / 4 : COUNT;
#pragma unroll
    for (int i = 0; i < COUNT; i += EACH) {
      const at_pack<at_u32, EACH> p = *(const at_pack<at_u32, EACH> *)(from + 4 * i);
#pragma unroll
      for (int e = 0; e < EACH; e++) x[i + e] = p.x[e];
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
      x[i] = (at_u32)((const at_in *)from)[2 * i] | (at_u32)((const at_in *)from)[2 * i + 1] << 16;
  }
}

/* The first halves of two pairs, or the second ones. */
AT_INLINE at_u32 at_signature_pair(at_u32 x, at_u32 y, int second) {
  return second ? x >> 16 | (y & 0xffff0000u) : (x & 0xffffu) | y << 16;
}

/* Pairs along k of COUNT lines, from an operand that lies along k: line i is GAP lines after line i - 1. */
template <int COUNT, int GAP, int BYTES>
AT_INLINE void at_along_k(at_u32 x[UNITS][COUNT][PAIRS], const char *from, at_i64 ld) {
#pragma unroll
  for (int u = 0; u < UNITS; u++)
#pragma unroll
    for (int i = 0; i < COUNT; i++) at_take<PAIRS, BYTES>(x[u][i], from + i * GAP * ld + u * (UNIT * SIZE));
}

/* The same of COUNT elements side by side, from an operand whose lines are k. */
template <int COUNT, int BYTES> AT_INLINE void at_across_k(at_u32 x[UNITS][COUNT][PAIRS], const char *from, at_i64 ld) {
#pragma unroll
  for (int u = 0; u < UNITS; u++) {
    at_u32 line[DEPTH][COUNT / 2];
#pragma unroll
    for (int l = 0; l < DEPTH; l++) at_take<COUNT / 2, BYTES>(line[l], from + (u * UNIT + l) * ld);
#pragma unroll
    for (int i = 0; i < COUNT; i++)
#pragma unroll
      for (int p = 0; p < PAIRS; p++) x[u][i][p] = at_signature_pair(line[2 * p][i / 2], line[2 * p + 1][i / 2], i % 2);
  }
}

/* 2 ALONG_M elements of D side by side; of sum[.][.][2 h], then of sum[.][.][2 h + 1]. */
template <bool WITH_C>
AT_INLINE void at_put(const at_arguments &a, const float sum[ALONG_M][4], int h, char *to, const char *c) {
  constexpr int MOST =
      (WITH_C && BYTES_C < BYTES_D ? BYTES_C : BYTES_D) / SIZE_D; /* 0: the problem's halves lie worse */
  constexpr int EACH = MOST < 1 ? 1 : MOST < 2 * ALONG_M ? MOST : 2 * ALONG_M;
  typedef at_pack<at_out, EACH> pack;
#pragma unroll
  for (int i = 0; i < 2 * ALONG_M; i += EACH) {
    pack p;
    if constexpr (WITH_C) p = *(const pack *)(c + i * SIZE_D);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const float x = sum[(i + e) % ALONG_M][2 * h + (i + e) / ALONG_M];
      if constexpr (WITH_C)
        p.x[e] = at_finish(a, x, p.x[e]);
      else
        p.x[e] = at_finish(a, x);
    }
    *(pack *)(to + i * SIZE_D) = p;
  }
}

template <bool WITH_C>
AT_INLINE void at_put_all(const at_arguments &a, const float sum[ALONG_N / 2][ALONG_M][4], at_i64 matrix, int m,
                          int n) {
  char *d = at_matrix(a.d, a.stride_d, matrix) + n * a.ldd + m * SIZE_D;
  const char *c = WITH_C ? at_matrix(a.c, a.stride_c, matrix) + n * a.ldc + m * SIZE_D : 0;
#pragma unroll
  for (int j = 0; j < ALONG_N; j++) {
    const at_i64 line = j * (TRANS_B ? 1 : 8);
    at_put<WITH_C>(a, sum[j / 2], j % 2, d + line * a.ldd, c + line * a.ldc);
  }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS * TEAMS, BLOCKS)
    at_direct(const __grid_constant__ at_arguments a) {
  const int warp = (int)threadIdx.x / 32, part = warp % WARPS, group = (int)threadIdx.x % 32 / 4,
            quarter = (int)threadIdx.x % 4;
  const at_i64 matrix = (at_i64)blockIdx.x * TEAMS + warp / WARPS;
  const int m0 = part % (M / TM) * TM, n0 = part / (M / TM) * TN;
  at_begin();
  if (matrix >= a.batch) return;
  const char *from_a = at_matrix(a.a, a.stride_a, matrix), *from_b = at_matrix(a.b, a.stride_b, matrix);
  at_u32 x[UNITS][ALONG_N][PAIRS], y[UNITS][ALONG_M][PAIRS];
  const int m = m0 + ALONG_M * group, k = DEPTH * quarter, n = n0 + (TRANS_B ? ALONG_N : 1) * group;
  if constexpr (TRANS_B)
    at_across_k<ALONG_N, BYTES_B>(x, from_b + k * a.ldb + n * SIZE, a.ldb);
  else
    at_along_k<ALONG_N, 8, BYTES_B>(x, from_b + n * a.ldb + k * SIZE, a.ldb);
  if constexpr (TRANS_A)
    at_along_k<ALONG_M, 1, BYTES_A>(y, from_a + m * a.lda + k * SIZE, a.lda);
  else
    at_across_k<ALONG_M, BYTES_A>(y, from_a + k * a.lda + m * SIZE, a.lda);
  float sum[ALONG_N / 2][ALONG_M][4] = {};
#pragma unroll
  for (int u = 0; u < UNITS; u++)
#pragma unroll
    for (int p = 0; p < PAIRS; p += 2)
#pragma unroll
      for (int i = 0; i < ALONG_M; i++)
#pragma unroll
        for (int j = 0; j < ALONG_N; j += 2) {
          const at_u32 lines[4] = {x[u][j][p], x[u][j + 1][p], x[u][j][p + 1], x[u][j + 1][p + 1]};
          at_mma16(sum[j / 2][i], lines, y[u][i][p], y[u][i][p + 1]);
        }
  if (READS_C && a.beta != 0.0)
    at_put_all<READS_C>(a, sum, matrix, m0 + 2 * ALONG_M * quarter, n);
  else
    at_put_all<false>(a, sum, matrix, m0 + 2 * ALONG_M * quarter, n);
}
