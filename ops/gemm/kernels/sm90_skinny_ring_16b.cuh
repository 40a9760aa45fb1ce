/* SPDX-License-Identifier: Apache-2.0
 * sm90_skinny_ring_16b.cuh: products of a large matrix of halves and one of up to 16 columns, both along k: D (m x n) =
 * L (m x k) S (k x n). Each warp has PER x 16 rows of L and a ring of STAGES places of its own in shared memory, into
 * which it copies its lines, STEP of k at a time: no warp waits for all others before all of its sums are done. The
 * WARPS_M warps of a team have the same part of k and one ring of S. WARPS_K teams, and the SPLIT blocks of a cluster,
 * share k. Sums are made by tensor cores and added up in a fixed order. kernel.cuh stands in front of it.
 *
 * A lane's 8 elements along k are those of two instructions; which k an instruction takes for which does not matter as
 * long as L and S agree. Rows and columns beyond the matrices are whatever lay there: their sums go nowhere. */
#ifndef COLS
#define COLS 8 /* n, rounded up to a multiple of 8 */
#define PER 1
#define WARPS_M 2
#define WARPS_K 2
#define SPLIT 1
#define STEP 256
#define STAGES 3
#define EARLY 0 /* steps that are asked for before what comes first is done */
#define BLOCKS 1
#define LINES_S 8 /* of S in shared memory: COLS, or fewer where n is less than 8 */
#define TURNED 0  /* D lies along n */
#define READS_C 0
#endif

#define THREADS (32 * WARPS_M * WARPS_K)
#define ROWS (16 * PER)
#define BLOCK_ROWS (ROWS * WARPS_M)
#define PITCH (STEP * 2 + 64) /* bytes from line to line in a place: lines lie 64 bytes apart modulo 128 */
#define PLACE_L (ROWS * PITCH)
#define PLACE_S (LINES_S * PITCH)
#define RING_L (STAGES * PLACE_L)
#define RING_S (STAGES * PLACE_S)
#define UNIT_K 64 /* of k, where a team may begin: a line of the L2 cache */
#define COUNT (BLOCK_ROWS * COLS) /* sums of a team */

/* ---- copies that barriers tell of ---- */

#ifndef AT_ON_HOST
/* This thread arrives when all that it ordered before has been copied. */
AT_INLINE void at_barrier_arrive_with_copies(at_u64 *barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at_shared(barrier)) : "memory");
}
/* 16 bytes, for the barrier that this thread arrives at next with its copies. AGAIN: other blocks of the processor read
 * them too, by way of its L1 cache. */
template <bool AGAIN> AT_INLINE void at_ring_copy(char *to, const char *from) {
  if constexpr (AGAIN)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(at_shared(to)), "l"(from) : "memory");
  else
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(at_shared(to)), "l"(from) : "memory");
}
#endif

/* Lines that lie `ld` bytes apart, of which each lane copies 16 bytes at a time: LANES of them side by side. */
#define LANES (STEP / 8 < 32 ? STEP / 8 : 32)
#define AT_ONCE (32 / LANES) /* lines */

/* What a warp copies, and where to. */
struct at_warp {
  const char *large, *small; /* where the lane begins in its first line, in its part of k */
  at_i64 ld, ld_small;       /* bytes */
  int rows, cols, k, steps;  /* within the matrix; cols: 0 where another warp of the team copies S; k: elements */
  char *ring, *ring_s;
  at_u64 *full, *empty; /* of the team: one of each for a place */
};

/* Bytes of a line in step s. */
AT_INLINE int at_bytes(const at_warp &w, int s) {
  const int left = w.k - s * STEP;
  return (left < STEP ? left : STEP) * 2;
}

/* `lines` of up to MOST lines into a place. */
template <int MOST, bool AGAIN>
AT_INLINE void at_copy_lines(char *to, const char *from, at_i64 ld, int lines, int bytes, int lane) {
  const int first = lane / LANES, at = lane % LANES * 16;
  to += first * PITCH + at;
#pragma unroll
  for (int l = 0; l < MOST; l += AT_ONCE) {
    if (l + first < lines)
#pragma unroll
      for (int piece = 0; piece < STEP * 2; piece += LANES * 16)
        if (at + piece < bytes) at_ring_copy<AGAIN>(to + l * PITCH + piece, from + piece);
    from += AT_ONCE * ld;
  }
}

/* Step s into a place. */
AT_INLINE void at_order(const at_warp &w, int s, int place, int lane) {
  const int bytes = at_bytes(w, s);
  at_copy_lines<ROWS, false>(w.ring + place * PLACE_L, w.large + (at_i64)s * (STEP * 2), w.ld, w.rows, bytes, lane);
  if (w.cols > 0)
    at_copy_lines<LINES_S, true>(w.ring_s + place * PLACE_S, w.small + (at_i64)s * (STEP * 2), w.ld_small, w.cols, bytes,
                           lane);
  at_barrier_arrive_with_copies(w.full + place);
}

#if EARLY
/* The first steps towards the L2 cache. `large` is the first row's beginning. */
AT_INLINE void at_ask(const at_warp &w, const char *large, int lane) {
  constexpr int LINES = (EARLY * STEP * 2 + 127) / 128;
#pragma unroll
  for (int i = lane; i < LINES * ROWS; i += 32)
    if (i / LINES < w.rows && i % LINES * 64 < w.k) at_early_line(large + i / LINES * w.ld + i % LINES * 128);
}
#endif

typedef float at_sums[PER][COLS / 8][4];

/* 32 of k, from `at` bytes on within their lines. */
AT_INLINE void at_add(at_sums &sum, const char *l, const char *s, int lane) {
  uint4 x[2 * PER];
#pragma unroll
  for (int i = 0; i < 2 * PER; i++) x[i] = *(const uint4 *)(l + i * (8 * PITCH));
#pragma unroll
  for (int j = 0; j < COLS / 8; j++) {
    const uint4 y = *(const uint4 *)(s + j * (8 * PITCH));
#pragma unroll
    for (int i = 0; i < PER; i++) {
      const uint4 low = x[2 * i], high = x[2 * i + 1];
      const at_u32 first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
      at_mma16(sum[i][j], first, y.x, y.y);
      at_mma16(sum[i][j], second, y.z, y.w);
    }
  }
}

AT_INLINE void at_multiply(at_sums &sum, const char *l, const char *s, int bytes, int lane) {
  l += lane / 4 * PITCH + lane % 4 * 16;
  s += lane / 4 % LINES_S * PITCH + lane % 4 * 16;
  if (bytes == STEP * 2) {
#pragma unroll 4
    for (int at = 0; at < STEP * 2; at += 64) at_add(sum, l + at, s + at, lane);
  } else {
#pragma unroll 1
    for (int at = 0; at < bytes; at += 64) at_add(sum, l + at, s + at, lane);
  }
}

/* ---- D ---- */

#if WARPS_K * SPLIT == 1

AT_INLINE void at_finish_all(const at_arguments &a, const at_sums &sum, int row, at_i64 matrix, int lane) {
#pragma unroll
  for (int j = 0; j < COLS / 8; j++)
#pragma unroll
    for (int i = 0; i < PER; i++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        at_put<TURNED, READS_C>(a, row + 16 * i + e / 2 * 8 + lane / 4, 8 * j + lane % 4 * 2 + e % 2, matrix,
                                sum[i][j][e]);
}

#else

/* The sums of a warp, where its ring was: nobody else copies there. Column by column. */
AT_INLINE void at_put_down(float *to, const at_sums &sum, int lane) {
#pragma unroll
  for (int i = 0; i < PER; i++)
#pragma unroll
    for (int j = 0; j < COLS / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        to[(8 * j + lane % 4 * 2 + e % 2) * ROWS + 16 * i + e / 2 * 8 + lane / 4] = sum[i][j][e];
}

/* The sum of row m, column n, that warp (m / ROWS) of team 0 has; a team later they lie WARPS_M rings further. */
AT_INLINE float *at_sum_of(char *rings, int m, int n) {
  return (float *)(rings + m / ROWS * RING_L) + n * ROWS + m % ROWS;
}

/* The sums of the block's teams, then those of the cluster's blocks, each in their order. */
AT_INLINE void at_gather(const at_arguments &a, char *rings, int rank, int m0, at_i64 matrix) {
#if SPLIT > 1
  for (int i = (int)threadIdx.x; i < COUNT; i += THREADS) {
    float *p = at_sum_of(rings, i % BLOCK_ROWS, i / BLOCK_ROWS), x = p[0];
#pragma unroll
    for (int w = 1; w < WARPS_K; w++) x += p[w * (WARPS_M * RING_L / 4)];
    p[0] = x;
  }
  at_cluster_wait();
#endif
  for (int i = (int)threadIdx.x + rank * THREADS; i < COUNT; i += THREADS * SPLIT) {
    const int m = TURNED ? i / COLS : i % BLOCK_ROWS, n = TURNED ? i % COLS : i / BLOCK_ROWS;
    if (n >= a.n) continue;
    float *p = at_sum_of(rings, m, n), x;
#if SPLIT > 1
    float parts[SPLIT];
#pragma unroll
    for (int r = 0; r < SPLIT; r++) parts[r] = at_of_block(p, (at_u32)r);
    x = parts[0];
#pragma unroll
    for (int r = 1; r < SPLIT; r++) x += parts[r];
#else
    x = p[0];
#pragma unroll
    for (int w = 1; w < WARPS_K; w++) x += p[w * (WARPS_M * RING_L / 4)];
#endif
    at_put<TURNED, READS_C>(a, m0 + m, n, matrix, x);
  }
#if SPLIT > 1
  at_cluster_wait(); /* others read this block's memory */
#endif
}

#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) at_ring(const __grid_constant__ at_arguments a) {
  at_let_next();
  at_wait_for_pointers();
  const int lane = (int)threadIdx.x % 32, warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0),
            warp_m = warp % WARPS_M, warp_k = warp / WARPS_M;
  const int rank = (int)blockIdx.x % SPLIT, m0 = (int)blockIdx.x / SPLIT * BLOCK_ROWS, row = m0 + warp_m * ROWS;
  const at_i64 matrix = blockIdx.y;
  const int share = ((a.k + WARPS_K * SPLIT - 1) / (WARPS_K * SPLIT) + UNIT_K - 1) / UNIT_K * UNIT_K,
            part = (rank * WARPS_K + warp_k) * share, begin = part < a.k ? part : a.k;
  char *rings = (char *)at_room, *rings_s = rings + WARPS_M * WARPS_K * RING_L;
  at_u64 *barriers = (at_u64 *)(rings_s + WARPS_K * RING_S);
  const char *large = at_matrix(a.a, a.stride_a, matrix) + row * a.lda + (at_i64)begin * 2,
             *small = at_matrix(a.b, a.stride_b, matrix) + (at_i64)begin * 2;
  at_warp w;
  w.large = large + lane / LANES * a.lda + lane % LANES * 16;
  w.small = small + lane / LANES * a.ldb + lane % LANES * 16;
  w.ld = a.lda, w.ld_small = a.ldb;
  w.rows = a.m - row < 0 ? 0 : a.m - row < ROWS ? a.m - row : ROWS;
  w.cols = warp_m == 0 ? a.n : 0;
  w.k = a.k - begin < share ? a.k - begin : share;
  w.steps = (w.k + STEP - 1) / STEP;
  w.ring = rings + warp * RING_L;
  w.ring_s = rings_s + warp_k * RING_S;
  w.full = barriers + warp_k * (2 * STAGES);
  w.empty = w.full + STAGES;
  if (threadIdx.x < WARPS_K * STAGES * 2)
    at_barrier_start(barriers + threadIdx.x, (int)threadIdx.x / STAGES % 2 ? WARPS_M : 32 * WARPS_M);
#if EARLY
  at_ask(w, large, lane);
#endif
  __syncthreads();
  at_wait_for_last();
  for (int s = 0; s < STAGES && s < w.steps; s++) at_order(w, s, s, lane);
  at_sums sum = {};
  int place = 0, parity = 0, last = STAGES - 1, last_parity = 1;
#pragma unroll 1
  for (int s = 0; s < w.steps; s++) {
    const int next = s - 1 + STAGES;
    if (s > 0 && next < w.steps) { /* the step before is done with */
      if (WARPS_M > 1 && warp_m == 0) at_barrier_wait(w.empty + last, last_parity);
      __syncwarp();
      at_order(w, next, last, lane);
    }
    at_barrier_wait(w.full + place, parity);
    at_multiply(sum, w.ring + place * PLACE_L, w.ring_s + place * PLACE_S, at_bytes(w, s), lane);
    __syncwarp();
    if (WARPS_M > 1 && lane == 0) at_barrier_arrive(w.empty + place);
    last = place, last_parity = parity;
    place = place + 1 == STAGES ? 0 : place + 1;
    parity ^= place == 0;
  }
#if WARPS_K * SPLIT == 1
  at_finish_all(a, sum, row, matrix, lane);
#else
  at_put_down((float *)w.ring, sum, lane);
  __syncthreads();
  at_gather(a, rings, rank, m0, matrix);
#endif
}
