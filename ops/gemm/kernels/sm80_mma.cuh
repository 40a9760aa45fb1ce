/* SPDX-License-Identifier: Apache-2.0
 * sm80_mma.cuh: how tensor cores multiply tiles in shared memory: sm80_mma_tile.cuh's, for block_tile.cuh's kernel,
 * which stands behind it. */

/* ---- what tensor cores take and make ---- */

constexpr int FM = WM / 16, FN = WN / 8, DEPTH = IN >= 2 ? 16 : 8, STEPS = BK / DEPTH / WARPS_K;

typedef at_sum at_sums[FM][FN][4];

AT_INLINE int at_place_x(int line, int piece) {
  return at_place<at_tile_x::PIECES, X_K>(line, piece);
}
AT_INLINE int at_place_y(int line, int piece) {
  return at_tile_x::SPACE + at_place<at_tile_y::PIECES, Y_K>(line, piece);
}

#if IN >= 2

struct at_pieces {
  at_u32 x[FM][4], y[FN][2];
};

/* What the warp needs for DEPTH of k from `k` on. `m` and `n` are its place within the tile. */
AT_INLINE void at_pick(at_pieces &p, const char *stage, int m, int n, int k, int lane) {
#pragma unroll
  for (int i = 0; i < FM; i++) {
    if (X_K)
      at_matrices(p.x[i], stage + at_place_x(m + 16 * i + lane % 16, k / 8 + lane / 16));
    else
      at_matrices_turned(p.x[i], stage + at_place_x(k + lane % 8 + lane / 16 * 8, (m + 16 * i) / 8 + lane / 8 % 2));
  }
  if constexpr (FN == 1) {
    if (Y_K)
      at_matrices_two(p.y[0], stage + at_place_y(n + lane % 8, k / 8 + lane / 8 % 2));
    else
      at_matrices_two_turned(p.y[0], stage + at_place_y(k + lane % 16, n / 8));
  } else {
#pragma unroll
    for (int j = 0; j < FN; j += 2) {
      at_u32 both[4];
      if (Y_K)
        at_matrices(both, stage + at_place_y(n + 8 * j + lane % 8 + lane / 16 * 8, k / 8 + lane / 8 % 2));
      else
        at_matrices_turned(both, stage + at_place_y(k + lane % 16, n / 8 + j + lane / 16));
      p.y[j][0] = both[0], p.y[j][1] = both[1], p.y[j + 1][0] = both[2], p.y[j + 1][1] = both[3];
    }
  }
}

AT_INLINE void at_add(at_sums &sum, const at_pieces &p) {
#pragma unroll
  for (int i = 0; i < FM; i++)
#pragma unroll
    for (int j = 0; j < FN; j++) at_mma16(sum[i][j], p.x[i], p.y[j][0], p.y[j][1]);
}

AT_INLINE int at_row_of(int i, int h, int lane) {
  return 16 * i + 8 * h + lane / 4;
}
AT_INLINE int at_col_of(int j, int e, int lane) {
  return 8 * j + lane % 4 * 2 + e;
}

#else

/* Lane 4 g + t has pairs: of what lies along k, steps 2 t and 2 t + 1; of what lies along its rows, rows 2 g and 2 g +
 * 1 of 16. An instruction of f64 takes step 2 t + u of each lane, one of f32 both. */
struct at_pieces {
  at_in x[FM][2][2], y[FN][2]; /* [row][step], [step] */
};

AT_INLINE void at_pick(at_pieces &p, const char *stage, int m, int n, int k, int lane) {
  const int g = lane / 4, t = lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < FM; i++)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = X_K ? m + 16 * i + 8 * h + g : m + 16 * i + 2 * g, line = X_K ? row : k + t + h,
                at = X_K ? k + t : row;
      const at_pack<at_in, 2> two =
          *(const at_pack<at_in, 2> *)(stage + at_place_x(line, at / WIDE) + at % WIDE * SIZE);
#pragma unroll
      for (int e = 0; e < 2; e++) p.x[i][X_K ? h : e][X_K ? e : h] = at_rounded(two.x[e]);
    }
#if Y_K
#pragma unroll
  for (int j = 0; j < FN; j++) {
    const int at = k + t;
    const at_pack<at_in, 2> two =
        *(const at_pack<at_in, 2> *)(stage + at_place_y(n + 8 * j + g, at / WIDE) + at % WIDE * SIZE);
#pragma unroll
    for (int e = 0; e < 2; e++) p.y[j][e] = at_rounded(two.x[e]);
  }
#else
  constexpr int COUNT = FN == 1 ? 1 : 2;
#pragma unroll
  for (int j = 0; j < FN; j += COUNT)
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int at = n + 8 * j + COUNT * g;
      const at_pack<at_in, COUNT> some =
          *(const at_pack<at_in, COUNT> *)(stage + at_place_y(k + t + h, at / WIDE) + at % WIDE * SIZE);
#pragma unroll
      for (int e = 0; e < COUNT; e++) p.y[j + e][h] = at_rounded(some.x[e]);
    }
#endif
}

AT_INLINE void at_add(at_sums &sum, const at_pieces &p) {
#pragma unroll
  for (int i = 0; i < FM; i++)
#pragma unroll
    for (int j = 0; j < FN; j++) at_mma8(sum[i][j], p.x[i], p.y[j]);
}

AT_INLINE int at_row_of(int i, int h, int lane) {
  return X_K ? 16 * i + 8 * h + lane / 4 : 16 * i + lane / 4 * 2 + h;
}
AT_INLINE int at_col_of(int j, int e, int lane) {
  const int col = lane % 4 * 2 + e;
  return Y_K || FN == 1 ? 8 * j + col : 8 * (j & ~1) + 2 * col + (j & 1);
}

#endif

AT_INLINE void at_multiply(at_sums &sum, const char *stage, int m, int n, int warp_k, int lane) {
  at_pieces p[2];
  const int k = warp_k * STEPS * DEPTH;
  at_pick(p[0], stage, m, n, k, lane);
#pragma unroll
  for (int s = 0; s < STEPS; s++) {
    if (s + 1 < STEPS) at_pick(p[(s + 1) % 2], stage, m, n, k + (s + 1) * DEPTH, lane);
    at_add(sum, p[s % 2]);
  }
}

/* The thread's sums among the block's, in lines of PITCH along D's contiguous side. */
template <int PITCH> AT_INLINE void at_put_down(at_sum *to, const at_sums &sum, int m, int n, int lane, at_u32) {
#pragma unroll
  for (int i = 0; i < FM; i++)
#pragma unroll
    for (int j = 0; j < FN; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int row = m + at_row_of(i, e / 2, lane), col = n + at_col_of(j, e % 2, lane);
        to[TURNED ? row * PITCH + col : col * PITCH + row] = sum[i][j][e];
      }
}
