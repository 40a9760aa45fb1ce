/* SPDX-License-Identifier: Apache-2.0
 * sm80_batched_smem.cuh: many small products. A team of WARPS warps makes SHARE matrices of D after the other: A and B
 * (and C) are copied into shared memory, STAGES of them ahead, multiplied there, and D leaves through shared memory, so
 * that all that goes to or from memory is whole pieces side by side; where a team's threads have such pieces anyway
 * (STRAIGHT), D leaves from their registers. M, N, K are sizes up to which all is filled with zeros; the real ones may
 * be smaller. kernel.cuh stands in front of it.
 *
 * f32, f64 and complex: a thread has TM x TN of D. Along the side that lies contiguous in shared memory its elements are
 * vectors, along the other they are spread, a row for each lane, as rows begin 16 bytes apart modulo 32: no two lanes
 * meet in a bank. Halves: a warp has TM x TN, by tensor cores that make D transposed, so that pairs lie along m. */
#ifndef M
#define M 16
#define N 16
#define K 16
#define TM 4
#define TN 2
#define WARPS 1
#define TEAMS 8
#define SHARE 1 /* matrices of a team at once, not of halves */
#define STRAIGHT 0
#define STAGES 2
#define TRANS_A 0
#define TRANS_B 0
#define BYTES_A 16
#define BYTES_B 16
#define BYTES_C 16
#define BYTES_D 16
#define READS_C 0
#define STAYS 0    /* a team has several matrices */
#define EXACT 1    /* M, N, K are the real sizes */
#define PACKED_A 1 /* and nothing lies between the lines */
#define PACKED_B 1
#define PACKED_D 1
#endif

#define HALVES (IN == 2 || IN == 3)
#define THREADS (32u * WARPS)
#define SIZE ((int)sizeof(at_in))
#define SIZE_D ((int)sizeof(at_out))
#define INNER_A (TRANS_A ? K : M)
#define OUTER_A (TRANS_A ? M : K)
#define INNER_B (TRANS_B ? N : K)
#define OUTER_B (TRANS_B ? K : N)

/* Bytes from one line to the next in shared memory: an odd number of 16-byte pieces where threads read different lines
 * at once. Where they read one line, nothing lies between lines: copies then fill whole 128 bytes, which is quicker. */
static __device__ constexpr int at_pitch(int bytes, bool spread) {
  return ((bytes + 15) / 16 | (spread ? 1 : 0)) * 16;
}
constexpr int PITCH_A = at_pitch(INNER_A * SIZE, TRANS_A || HALVES),
              PITCH_B = at_pitch(INNER_B * SIZE, !TRANS_B || HALVES), PITCH_D = at_pitch(M * SIZE_D, true);
constexpr int AT_B = PITCH_A * OUTER_A, AT_C = AT_B + PITCH_B * OUTER_B, ONE_BYTES = AT_C + (READS_C ? PITCH_D * N : 0),
              STAGE_BYTES = SHARE * ONE_BYTES, RESULT_BYTES = STRAIGHT ? 0 : PITCH_D * N,
              TEAM_BYTES = STAGES * STAGE_BYTES + SHARE * RESULT_BYTES;

/* A matrix of `outer` lines of `bytes` bytes into lines PITCH apart, with zeros up to OUTER lines of LINE bytes. */
template <int LINE, int OUTER, int PITCH, int BYTES, bool PACKED>
AT_INLINE void at_fetch(char *to, const char *from, at_i64 ld, int bytes, int outer, at_u32 thread) {
  constexpr at_u32 PIECES = LINE / BYTES, ALL = OUTER * PIECES;
  constexpr int UNROLL = ALL / THREADS <= 8 ? 8 : 4;
#pragma unroll UNROLL
  for (at_u32 i = thread; i < ALL; i += THREADS) {
    const at_u32 line = i / PIECES, at = i % PIECES * BYTES;
    char *place = to + line * PITCH + at;
    if constexpr (PACKED) {
      at_copy<BYTES>(place, from + i * BYTES, BYTES);
    } else if constexpr (EXACT) {
      at_copy<BYTES>(place, from + (at_i64)line * ld + at, BYTES);
    } else {
      const int left = (int)line < outer ? bytes - (int)at : 0, valid = left < 0 ? 0 : left < BYTES ? left : BYTES;
      at_copy<BYTES>(place, valid ? from + (at_i64)line * ld + at : from, valid);
    }
  }
}

/* The matrices of `group`, SHARE of them. */
AT_INLINE void at_order(const at_arguments &a, char *stage, at_i64 group, at_u32 thread) {
#pragma unroll
  for (int i = 0; i < SHARE; i++, stage += ONE_BYTES) {
    const at_i64 matrix = group * SHARE + i;
    if (matrix >= a.batch) break;
    at_fetch<INNER_A * SIZE, OUTER_A, PITCH_A, BYTES_A, PACKED_A>(
        stage, at_matrix(a.a, a.stride_a, matrix), a.lda, (TRANS_A ? a.k : a.m) * SIZE, TRANS_A ? a.m : a.k, thread);
    at_fetch<INNER_B * SIZE, OUTER_B, PITCH_B, BYTES_B, PACKED_B>(
        stage + AT_B, at_matrix(a.b, a.stride_b, matrix), a.ldb, (TRANS_B ? a.n : a.k) * SIZE, TRANS_B ? a.k : a.n, thread);
#if READS_C
    if (at_adds_c(a))
      at_fetch<M * SIZE_D, N, PITCH_D, BYTES_C, false>(stage + AT_C, at_matrix(a.c, a.stride_c, matrix), a.ldc, a.m * SIZE_D,
                                                       a.n, thread);
#endif
  }
  at_copies_commit();
}

/* Element (m, n) of D, with C if WITH_C. */
template <bool WITH_C> AT_INLINE at_out at_element(const at_arguments &a, const char *stage, int m, int n, at_sum sum) {
  if constexpr (WITH_C)
    return at_finish(a, sum, *(const at_out *)(stage + AT_C + n * PITCH_D + m * SIZE_D));
  else
    return at_finish(a, sum);
}

/* D from shared memory: whole pieces but for the end of a column. */
AT_INLINE void at_store(const at_arguments &a, const char *from, at_i64 matrix, at_u32 thread) {
  constexpr at_u32 PIECES = M * SIZE_D / BYTES_D, ALL = N * PIECES;
  constexpr int UNROLL = ALL / THREADS <= 8 ? 8 : 4;
  typedef at_pack<char, BYTES_D> piece;
  char *to = at_matrix(a.d, a.stride_d, matrix);
#pragma unroll UNROLL
  for (at_u32 i = thread; i < ALL; i += THREADS) {
    const at_u32 line = i / PIECES, at = i % PIECES * BYTES_D;
    const char *place = from + line * PITCH_D + at;
    char *there = PACKED_D ? to + i * BYTES_D : to + (at_i64)line * a.ldd + at;
    const int bytes = a.m * SIZE_D - (int)at;
    if (EXACT || ((int)line < a.n && bytes >= BYTES_D)) {
      *(piece *)there = *(const piece *)place;
    } else if ((int)line < a.n) {
#pragma unroll 1
      for (int e = 0; e < bytes; e += SIZE_D) *(at_out *)(there + e) = *(const at_out *)(place + e);
    }
  }
}

#if !HALVES

constexpr int WIDE = 16 / SIZE, ROWS = M / TM, COLS = N / TN; /* elements of a load; threads along m and n */
constexpr int WIDE_M = TM < WIDE ? TM : WIDE, WIDE_N = TN < WIDE ? TN : WIDE;

/* Where element i of a thread's lies along its side: in vectors where that side is contiguous, else spread. */
template <int SPREAD, int VECTOR, int LANES> AT_INLINE int at_timeline(int lane, int i) {
  return SPREAD ? lane + i * LANES : i / VECTOR * (VECTOR * LANES) + lane * VECTOR + i % VECTOR;
}

/* x[i][k] for the thread's COUNT lines and WIDE steps of k. */
template <int ALONG_K, int COUNT, int VECTOR, int LANES, int PITCH>
AT_INLINE void at_pick(at_sum x[COUNT][WIDE], const char *from, int lane, int k) {
  if (ALONG_K) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
      const at_pack<at_in, WIDE> p =
          *(const at_pack<at_in, WIDE> *)(from + at_timeline<1, VECTOR, LANES>(lane, i) * PITCH + k * SIZE);
#pragma unroll
      for (int j = 0; j < WIDE; j++) x[i][j] = p.x[j];
    }
  } else {
#pragma unroll
    for (int j = 0; j < WIDE; j++)
#pragma unroll
      for (int i = 0; i < COUNT; i += VECTOR) {
        const at_pack<at_in, VECTOR> p =
            *(const at_pack<at_in, VECTOR> *)(from + (k + j) * PITCH + at_timeline<0, VECTOR, LANES>(lane, i) * SIZE);
#pragma unroll
        for (int v = 0; v < VECTOR; v++) x[i + v][j] = p.x[v];
      }
  }
}

/* Of an operand that is conjugated (2, as attune_transpose). */
template <int TRANS, int COUNT> AT_INLINE void at_conjugate(at_sum x[COUNT][WIDE]) {
#if IN >= 4
#pragma unroll
  for (int i = 0; i < COUNT; i++)
#pragma unroll
    for (int j = 0; j < WIDE; j++)
      if (TRANS == 2) x[i][j].im = -x[i][j].im;
#endif
}

/* A thread's part of D into shared memory, or where it belongs. */
template <bool WITH_C>
AT_INLINE void at_put(const at_arguments &a, const char *stage, char *result, const at_sum sum[TM][TN], int row,
                      int col) {
  constexpr int RUN = TRANS_A ? 1 : WIDE_M;
  const at_i64 pitch = STRAIGHT ? a.ldd : PITCH_D;
#pragma unroll
  for (int j = 0; j < TN; j++)
#pragma unroll
    for (int i = 0; i < TM; i += RUN) {
      const int m = at_timeline<TRANS_A, WIDE_M, ROWS>(row, i), n = at_timeline<!TRANS_B, WIDE_N, COLS>(col, j);
      at_pack<at_out, RUN> p;
#pragma unroll
      for (int v = 0; v < RUN; v++) p.x[v] = at_element<WITH_C>(a, stage, m + v, n, sum[i + v][j]);
      *(at_pack<at_out, RUN> *)(result + n * pitch + m * SIZE_D) = p;
    }
}

/* A team's threads beyond SHARE x ROWS x COLS do what the first one does, and put nothing down. */
AT_INLINE void at_product(const at_arguments &a, const char *stage, char *result, at_i64 group, at_u32 thread) {
  const bool idle = thread >= SHARE * ROWS * COLS;
  const at_u32 mine = idle ? 0 : thread / (ROWS * COLS); /* of the group's matrices */
  const int row = idle ? 0 : (int)(thread % ROWS), col = idle ? 0 : (int)(thread % (ROWS * COLS) / ROWS);
  if (SHARE > 1) stage += mine * ONE_BYTES, result += mine * RESULT_BYTES;
  const bool none = STRAIGHT && group * SHARE + mine >= a.batch;
  if (STRAIGHT && !(POINTERS && none)) result = at_matrix(a.d, a.stride_d, group * SHARE + mine);
  at_sum sum[TM][TN] = {}, x[TM][WIDE], y[TN][WIDE];
  constexpr int UNROLL = EXACT && K <= 16 ? 4 : 2;
  const int steps = EXACT ? K : a.k;
#pragma unroll UNROLL
  for (int k = 0; k < steps; k += WIDE) {
    at_pick<TRANS_A, TM, WIDE_M, ROWS, PITCH_A>(x, stage, row, k);
    at_pick<!TRANS_B, TN, WIDE_N, COLS, PITCH_B>(y, stage + AT_B, col, k);
    at_conjugate<TRANS_A, TM>(x);
    at_conjugate<TRANS_B, TN>(y);
#pragma unroll
    for (int l = 0; l < WIDE; l++)
#pragma unroll
      for (int i = 0; i < TM; i++)
#pragma unroll
        for (int j = 0; j < TN; j++) sum[i][j] = at_multiply_add(x[i][l], y[j][l], sum[i][j]);
  }
  if (idle || none) return;
  if (READS_C && at_adds_c(a))
    at_put<READS_C>(a, stage, result, sum, row, col);
  else
    at_put<false>(a, stage, result, sum, row, col);
}

#else

/* 16 lines of n by 16 of k of B, and 16 of k by 16 lines of m of A, as the tensor cores want them. */
AT_INLINE void at_take_b(at_u32 x[4], const char *from, int n, int k, int lane) {
  if (TRANS_B)
    at_matrices_turned(x, from + (k + lane / 16 * 8 + lane % 8) * PITCH_B + (n + lane / 8 % 2 * 8) * SIZE);
  else
    at_matrices(x, from + (n + lane % 16) * PITCH_B + (k + lane / 16 * 8) * SIZE);
}
AT_INLINE void at_take_a(at_u32 y[4], const char *from, int m, int k, int lane) {
  if (TRANS_A)
    at_matrices(y, from + (m + lane / 16 * 8 + lane % 8) * PITCH_A + (k + lane / 8 % 2 * 8) * SIZE);
  else
    at_matrices_turned(y, from + (k + lane / 8 % 2 * 8 + lane % 8) * PITCH_A + (m + lane / 16 * 8) * SIZE);
}

/* A warp's part of D into shared memory, m and n are its first. */
template <bool WITH_C>
AT_INLINE void at_put(const at_arguments &a, const char *stage, char *result, const float sum[TN / 16][TM / 8][4],
                      int m0, int n0, int lane) {
#pragma unroll
  for (int j = 0; j < TN / 16; j++)
#pragma unroll
    for (int i = 0; i < TM / 8; i++)
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int m = m0 + 8 * i + lane % 4 * 2, n = n0 + 16 * j + 8 * h + lane / 4;
        at_pack<at_out, 2> p;
        p.x[0] = at_element<WITH_C>(a, stage, m, n, sum[j][i][2 * h]);
        p.x[1] = at_element<WITH_C>(a, stage, m + 1, n, sum[j][i][2 * h + 1]);
        *(at_pack<at_out, 2> *)(result + n * PITCH_D + m * SIZE_D) = p;
      }
}

AT_INLINE void at_product(const at_arguments &a, const char *stage, char *result, at_i64, at_u32 thread) {
  const int lane = (int)(thread % 32), warp = (int)(thread / 32), m0 = warp % (M / TM) * TM, n0 = warp / (M / TM) * TN;
  float sum[TN / 16][TM / 8][4] = {};
#pragma unroll
  for (int k = 0; k < K; k += 16) {
    at_u32 x[TN / 16][4], y[TM / 16][4];
#pragma unroll
    for (int j = 0; j < TN / 16; j++) at_take_b(x[j], stage + AT_B, n0 + 16 * j, k, lane);
#pragma unroll
    for (int i = 0; i < TM / 16; i++) at_take_a(y[i], stage, m0 + 16 * i, k, lane);
#pragma unroll
    for (int j = 0; j < TN / 16; j++)
#pragma unroll
      for (int i = 0; i < TM / 8; i++) at_mma16(sum[j][i], x[j], y[i / 2][i % 2 * 2], y[i / 2][i % 2 * 2 + 1]);
  }
  if (READS_C && at_adds_c(a))
    at_put<READS_C>(a, stage, result, sum, m0, n0, lane);
  else
    at_put<false>(a, stage, result, sum, m0, n0, lane);
}

#endif

extern "C" __global__ void __launch_bounds__(THREADS *TEAMS) at_tiny(const __grid_constant__ at_arguments a) {
  const at_u32 team = threadIdx.x / THREADS, thread = threadIdx.x % THREADS;
  const at_i64 step = (at_i64)gridDim.x * TEAMS;
  char *room = (char *)at_room + team * TEAM_BYTES, *result = room + STAGES * STAGE_BYTES;
  at_i64 group = (at_i64)blockIdx.x * TEAMS + team;
  at_begin();
#pragma unroll 1
  for (int s = 0; s < STAGES; s++) at_order(a, room + s * STAGE_BYTES, group + s * step, thread);
#pragma unroll 1
  for (int s = 0; group * SHARE < a.batch; group += step) {
    char *stage = room + s * STAGE_BYTES;
    at_copies_wait<STAGES - 1>();
    at_team_wait<(int)THREADS>((int)team);
    at_product(a, stage, result, group, thread);
#if STAYS || !STRAIGHT
    at_team_wait<(int)THREADS>((int)team);
#endif
#if STAYS
    at_order(a, stage, group + STAGES * step, thread);
#endif
#if !STRAIGHT
#pragma unroll
    for (int i = 0; i < SHARE; i++)
      if (SHARE == 1 || group * SHARE + i < a.batch) at_store(a, result + i * RESULT_BYTES, group * SHARE + i, thread);
#endif
#if !STAYS
    break;
#endif
    if (++s == STAGES) s = 0;
  }
}
