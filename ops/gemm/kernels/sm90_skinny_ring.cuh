/* SPDX-License-Identifier: Apache-2.0
 * sm90_skinny_ring.cuh: products of a large matrix and one of few columns, both along k: D (m x n) = L (m x k) S (k x
 * n). Each warp has PER x 16 rows of L and a ring of STAGES places of its own in shared memory, into which it copies
 * its lines, STEP of k at a time: no warp waits for all others before all of its sums are done. The WARPS_M warps of a
 * team have the same part of k and one ring of S. WARPS_K teams, and the SPLIT blocks of a cluster, share k. Sums are
 * made by tensor cores and added up in a fixed order. Behind kernel.cuh; how elements of ELEMENT bytes are multiplied
 * and what sums become stands behind it, in sm90_skinny_ring_16b.cuh and sm90_skinny_ring_8b.cuh.
 *
 * A lane's 16 bytes along k are those of several instructions; which k an instruction takes for which does not matter
 * as long as L and S agree. Rows and columns beyond the matrices are whatever lay there: their sums go nowhere. */
#ifndef COLS
#define COLS 8 /* n, rounded up to a multiple of 8 */
#define PER 1
#define ELEMENT 2 /* bytes of an element of L and S */
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
#if ELEMENT == 1 /* bytes of scales in a place, behind its lines: of each line those of each 128 of k, if it has any */
#define BLOCKED (SCALE_L >= 3 || SCALE_S >= 3)
#define GROUPS (STEP / 128)
#define SCALES_L (SCALE_L >= 3 ? ROWS * GROUPS * 4 : 0)
#define SCALES_S (SCALE_S >= 3 ? COLS * GROUPS * 4 : 0)
#else
#define BLOCKED 0
#define SCALES_L 0
#define SCALES_S 0
#endif
#define BLOCK_ROWS (ROWS * WARPS_M)
#define PITCH (STEP * ELEMENT + 64) /* bytes from line to line in a place: lines lie 64 bytes apart modulo 128 */
#define PLACE_L (ROWS * PITCH + SCALES_L)
#define PLACE_S (LINES_S * PITCH + SCALES_S)
#define RING_L (STAGES * PLACE_L)
#define RING_S (STAGES * PLACE_S)
#define UNIT_K (128 / ELEMENT)    /* of k, where a team may begin: a line of the L2 cache */
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
#if ELEMENT == 1 && TYPE_L == 7
AT_INLINE int at_of_block(const int *p, at_u32 rank) {
  return __float_as_int(at_of_block((const float *)p, rank));
}
#endif
#endif

/* Lines that lie `ld` bytes apart, of which each lane copies 16 bytes at a time: LANES of them side by side. */
#define LANES (STEP * ELEMENT / 16 < 32 ? STEP * ELEMENT / 16 : 32)
#define AT_ONCE (32 / LANES) /* lines */

/* What a warp copies, and where to. */
struct at_warp {
  const char *large, *small; /* where the lane begins in its first line, in its part of k */
  at_i64 ld, ld_small;       /* bytes */
  int rows, cols, k, steps;  /* within the matrix; cols: 0 where another warp of the team copies S; k: elements */
  char *ring, *ring_s;
  at_u64 *full, *empty; /* of the team: one of each for a place */
#if BLOCKED
  const float *scale_l, *scale_s; /* of the first lines, in the first 128 of k */
  int lines_l, lines_s;           /* m and n */
#endif
};

/* Bytes of a line in step s. */
AT_INLINE int at_bytes(const at_warp &w, int s) {
  const int left = w.k - s * STEP;
  return (left < STEP ? left : STEP) * ELEMENT;
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
      for (int piece = 0; piece < STEP * ELEMENT; piece += LANES * 16)
        if (at + piece < bytes) at_ring_copy<AGAIN>(to + l * PITCH + piece, from + piece);
    from += AT_ONCE * ld;
  }
}

#if BLOCKED
/* Where the scale of a line lies in a block of 128 of k. */
template <int SCALE> AT_INLINE at_i64 at_first_scale(int line, int block, int lines, int k) {
  return SCALE == 3   ? line + (at_i64)block * lines
         : SCALE == 4 ? block + line / 128 * (at_i64)((k + 511) / 512 * 4)
                      : 0;
}
/* Scales of 128 of k each into a place, for step s. */
AT_INLINE void at_order_scales(const at_warp &w, int s, char *to_l, char *to_s, int bytes, int lane);
#endif

/* Step s into a place. */
AT_INLINE void at_order(const at_warp &w, int s, int place, int lane) {
  const int bytes = at_bytes(w, s);
  at_copy_lines<ROWS, false>(w.ring + place * PLACE_L, w.large + (at_i64)s * (STEP * ELEMENT), w.ld, w.rows, bytes,
                             lane);
  if (w.cols > 0)
    at_copy_lines<LINES_S, true>(w.ring_s + place * PLACE_S, w.small + (at_i64)s * (STEP * ELEMENT), w.ld_small, w.cols,
                                 bytes, lane);
#if BLOCKED
  at_order_scales(w, s, w.ring + place * PLACE_L + ROWS * PITCH, w.ring_s + place * PLACE_S + LINES_S * PITCH, bytes,
                  lane);
#endif
  at_barrier_arrive_with_copies(w.full + place);
}

#if EARLY
/* The first steps towards the L2 cache. `large` is the first row's beginning. */
AT_INLINE void at_ask(const at_warp &w, const char *large, int lane) {
  constexpr int LINES = (EARLY * STEP * ELEMENT + 127) / 128;
#pragma unroll
  for (int i = lane; i < LINES * ROWS; i += 32)
    if (i / LINES < w.rows && i % LINES * UNIT_K < w.k) at_early_line(large + i / LINES * w.ld + i % LINES * 128);
}
#endif

#if ELEMENT == 1
/* at_gemm_scaled_arguments of kernel.h. */
struct at_ring_arguments : at_arguments {
  const float *scale_l, *scale_s, *scale_d;
  float *amax;
};
#else
typedef at_arguments at_ring_arguments;
#endif
#if ELEMENT == 1 && TYPE_L == 7
typedef int at_total;
#else
typedef float at_total;
#endif
typedef at_total at_sums[PER][COLS / 8][4];

/* A step: `bytes` of each line, which lie PITCH apart. */
AT_INLINE void at_multiply(at_sums &sum, const char *l, const char *s, int bytes, int lane);
/* A sum into its place in D, if D has that; `most`: the largest number of this thread. */
AT_INLINE void at_ring_put(const at_ring_arguments &a, int m, int n, at_i64 matrix, at_total sum, float &most);
/* All of this thread's sums are there. */
AT_INLINE void at_ring_end(const at_ring_arguments &a, float most);

/* ---- D ---- */

#if WARPS_K * SPLIT == 1

AT_INLINE void at_finish_all(const at_ring_arguments &a, const at_sums &sum, int row, at_i64 matrix, int lane) {
  float most = 0.0f;
#pragma unroll
  for (int j = 0; j < COLS / 8; j++)
#pragma unroll
    for (int i = 0; i < PER; i++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        at_ring_put(a, row + 16 * i + e / 2 * 8 + lane / 4, 8 * j + lane % 4 * 2 + e % 2, matrix, sum[i][j][e], most);
  at_ring_end(a, most);
}

#else

/* The sums of a warp, where its ring was: nobody else copies there. Column by column. */
AT_INLINE void at_put_down(at_total *to, const at_sums &sum, int lane) {
#pragma unroll
  for (int i = 0; i < PER; i++)
#pragma unroll
    for (int j = 0; j < COLS / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        to[(8 * j + lane % 4 * 2 + e % 2) * ROWS + 16 * i + e / 2 * 8 + lane / 4] = sum[i][j][e];
}

/* The sum of row m, column n, that warp (m / ROWS) of team 0 has; a team later they lie WARPS_M rings further. */
AT_INLINE at_total *at_sum_of(char *rings, int m, int n) {
  return (at_total *)(rings + m / ROWS * RING_L) + n * ROWS + m % ROWS;
}

/* The sums of the block's teams, then those of the cluster's blocks, each in their order. */
AT_INLINE void at_gather(const at_ring_arguments &a, char *rings, int rank, int m0, at_i64 matrix) {
  float most = 0.0f;
#if SPLIT > 1
  for (int i = (int)threadIdx.x; i < COUNT; i += THREADS) {
    at_total *p = at_sum_of(rings, i % BLOCK_ROWS, i / BLOCK_ROWS), x = p[0];
#pragma unroll
    for (int w = 1; w < WARPS_K; w++) x += p[w * (WARPS_M * RING_L / 4)];
    p[0] = x;
  }
  at_cluster_wait();
#endif
  for (int i = (int)threadIdx.x + rank * THREADS; i < COUNT; i += THREADS * SPLIT) {
    const int m = TURNED ? i / COLS : i % BLOCK_ROWS, n = TURNED ? i % COLS : i / BLOCK_ROWS;
    if (n >= a.n) continue;
    at_total *p = at_sum_of(rings, m, n), x;
#if SPLIT > 1
    at_total parts[SPLIT];
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
    at_ring_put(a, m0 + m, n, matrix, x, most);
  }
  at_ring_end(a, most);
#if SPLIT > 1
  at_cluster_wait(); /* others read this block's memory */
#endif
}

#endif

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) at_ring(const __grid_constant__ at_ring_arguments a) {
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
  const char *large = at_matrix(a.a, a.stride_a, matrix) + row * a.lda + (at_i64)begin * ELEMENT,
             *small = at_matrix(a.b, a.stride_b, matrix) + (at_i64)begin * ELEMENT;
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
#if BLOCKED
  w.lines_l = a.m, w.lines_s = a.n;
  w.scale_l = a.scale_l + at_first_scale<SCALE_L>(row, begin / 128, a.m, a.k);
  w.scale_s = a.scale_s + at_first_scale<SCALE_S>(0, begin / 128, a.n, a.k);
#endif
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
  at_put_down((at_total *)w.ring, sum, lane);
  __syncthreads();
  at_gather(a, rings, rank, m0, matrix);
#endif
}
