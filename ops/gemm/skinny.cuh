/* SPDX-License-Identifier: Apache-2.0
 * skinny.cuh: products of a large matrix and one of few columns: D (m x n) = L (m x k) S (k x n), n up to 64. L goes from
 * memory into registers once, 16 bytes a load, AHEAD loads ahead; S lies in shared memory, CHUNK of k at a time. The warps
 * of a block share its rows and the sums over k: WARPS_M x WARPS_K of them. SPLIT blocks, a cluster, share k further. Sums
 * are added up in a fixed order. kernel.cuh stands in front of it.
 *
 * FORM 0: L lies along m. A thread has PER vectors of rows, and takes one k after the other.
 * FORM 1: L lies along k. A warp has PER rows, its lanes side by side along k.
 * FORM 2: L lies along k, halves, by tensor cores: a warp has PER x 16 rows. A lane's 8 elements along k are those of two
 * instructions; which k an instruction takes for which does not matter as long as L and S agree. */
#ifndef FORM
#define FORM 0
#define COLS 16
#define PER 1
#define WARPS_M 1
#define WARPS_K 8
#define SPLIT 1
#define AHEAD 8
#define CHUNK 512
#define BYTES_L 16
#define BYTES_S 16
#define SMALL_K 1 /* S lies along k */
#define TURNED 0  /* D lies along n */
#define READS_C 0
#define RAGGED 0 /* m (form 0) or k is no multiple of what 16 bytes hold */
#endif

#define THREADS (32 * WARPS_M * WARPS_K)
#define SIZE ((int)sizeof(at_in))
#define SIZE_D ((int)sizeof(at_out))
#define WIDE (16 / SIZE)

#if FORM == 0
#define STEP 1                    /* of k, by a warp at a time */
#define WARP_ROWS (32 * WIDE * PER)
#define LOADS PER                 /* of 16 bytes, by a thread a step */
typedef at_sum at_small;          /* S as it lies in shared memory: [k][n] */
constexpr int PITCH = COLS;
#elif FORM == 1
#define STEP (32 * WIDE)
#define WARP_ROWS PER
#define LOADS PER
typedef at_in at_small;           /* [n][k] */
constexpr int PITCH = CHUNK;
#else
#define STEP 32
#define WARP_ROWS (16 * PER)
#define LOADS (2 * PER)
typedef at_in at_small;           /* [n][k], columns 64 bytes apart modulo 128 */
constexpr int PITCH = CHUNK + 32;
#endif
#define BLOCK_ROWS (WARP_ROWS * WARPS_M)
#define STRIDE_K (STEP * WARPS_K) /* of k, by a block at a time */
#define UNIT_K (STRIDE_K < 16 ? 16 : STRIDE_K) /* of k, where a block of the cluster may begin */

/* A place of L from which a thread loads. */
struct at_lane {
  const char *from; /* of the first load, at k = 0 */
  at_i64 ld;
  int row, k; /* of the first load */
};

#if BYTES_L == 16
#define at_load_large at_stream16
#else
AT_INLINE uint4 at_load_large(const char *p) {
  typedef at_pack<char, BYTES_L> piece;
  union {
    uint4 whole;
    piece pieces[16 / BYTES_L];
  } x;
#pragma unroll
  for (int i = 0; i < 16 / BYTES_L; i++) x.pieces[i] = *(const piece *)(p + i * BYTES_L);
  return x.whole;
}
#endif

#if RAGGED
/* A part of 16 bytes of which only some are inside: element by element. */
AT_INLINE uint4 at_load_part(const char *p, int count) {
  union {
    uint4 whole;
    at_in x[WIDE];
  } u;
  u.whole = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int i = 0; i < WIDE; i++)
    if (i < count) u.x[i] = ((const at_in *)p)[i];
  return u.whole;
}
#endif

/* The loads of one step at `k`: rows and k beyond the matrix are zeros. */
AT_INLINE void at_fetch(uint4 x[LOADS], const at_arguments &a, const at_lane &lane, int k, int end) {
#pragma unroll
  for (int i = 0; i < LOADS; i++) {
#if FORM == 0
    const int row = lane.row + i * 32 * WIDE, left = k < end ? a.m - row : 0;
    const char *p = lane.from + (at_i64)k * lane.ld + i * 512;
#else
    const int row = lane.row + i * (FORM == 1 ? 1 : 8), at = k + lane.k, left = row < a.m ? end - at : 0;
    const char *p = lane.from + i * (FORM == 1 ? 1 : 8) * lane.ld + (at_i64)k * SIZE;
#endif
    x[i] = make_uint4(0, 0, 0, 0);
    if (left >= WIDE) x[i] = at_load_large(p);
#if RAGGED
    if (left > 0 && left < WIDE) x[i] = at_load_part(p, left);
#endif
  }
}

/* CHUNK of k of S from `k` on, zeros beyond `end` and beyond the last column, into shared memory. */
AT_INLINE void at_bring(at_small *to, const char *from, at_i64 ld, int k, int end, int cols) {
  constexpr int E = BYTES_S / SIZE, ALONG = SMALL_K ? CHUNK / E : COLS / E, ACROSS = SMALL_K ? COLS : CHUNK;
  constexpr int PIECES = ALONG * ACROSS, MANY = 4;
  typedef at_pack<at_in, E> piece;
  for (int first = (int)threadIdx.x; first < PIECES; first += THREADS * MANY) {
    piece x[MANY];
#pragma unroll
    for (int j = 0; j < MANY; j++) {
      const int i = first + j * THREADS;
      /* Neighbours in a warp go along k where S does, but for form 0, which lies across in shared memory. */
      const int along = SMALL_K && FORM == 0 ? i / ACROSS : i % ALONG, across = SMALL_K && FORM == 0 ? i % ACROSS : i / ALONG;
      const int kk = k + (SMALL_K ? along * E : across), c = SMALL_K ? across : along * E;
      x[j] = piece{};
      if (i < PIECES && kk < end && c < cols)
        x[j] = *(const piece *)(from + (SMALL_K ? c * ld + (at_i64)kk * SIZE : kk * ld + (at_i64)c * SIZE));
    }
#pragma unroll
    for (int j = 0; j < MANY; j++) {
      const int i = first + j * THREADS;
      const int along = SMALL_K && FORM == 0 ? i / ACROSS : i % ALONG, across = SMALL_K && FORM == 0 ? i % ACROSS : i / ALONG;
      const int kk = SMALL_K ? along * E : across, c = SMALL_K ? across : along * E;
      if (i >= PIECES) continue;
#if FORM > 0 && SMALL_K
      *(piece *)(to + c * PITCH + kk) = x[j];
#else
#pragma unroll
      for (int e = 0; e < E; e++) {
        const int at = SMALL_K ? kk + e : kk, col = SMALL_K ? c : c + e;
#if FORM == 0
        to[at * PITCH + col] = at_widen(x[j].x[e]);
#else
        to[col * PITCH + at] = x[j].x[e];
#endif
      }
#endif
    }
  }
}

/* ---- sums of a thread ---- */

#if FORM == 0

typedef at_sum at_sums[PER * WIDE][COLS];

AT_INLINE void at_add(at_sums &sum, const uint4 x[LOADS], const at_small *s, int k, int lane) {
  constexpr int PACK = 16 / (int)sizeof(at_sum) < COLS ? 16 / (int)sizeof(at_sum) : COLS;
  const at_small *row = s + k * PITCH;
  at_sum l[PER * WIDE];
#pragma unroll
  for (int i = 0; i < PER; i++) {
    union {
      uint4 whole;
      at_in x[WIDE];
    } u;
    u.whole = x[i];
#pragma unroll
    for (int e = 0; e < WIDE; e++) l[i * WIDE + e] = at_widen(u.x[e]);
  }
#pragma unroll
  for (int c = 0; c < COLS; c += PACK) {
    const at_pack<at_sum, PACK> y = *(const at_pack<at_sum, PACK> *)(row + c);
#pragma unroll
    for (int e = 0; e < PACK; e++)
#pragma unroll
      for (int i = 0; i < PER * WIDE; i++) sum[i][c + e] = at_multiply_add(l[i], y.x[e], sum[i][c + e]);
  }
}

AT_INLINE void at_put_down(at_sum *to, at_sums &sum, int lane) {
  typedef at_pack<at_sum, 16 / sizeof(at_sum)> pack;
  constexpr int EACH = 16 / (int)sizeof(at_sum);
#pragma unroll
  for (int c = 0; c < COLS; c++)
#pragma unroll
    for (int i = 0; i < PER; i++)
#pragma unroll
      for (int e = 0; e < WIDE; e += EACH) {
        pack p;
#pragma unroll
        for (int v = 0; v < EACH; v++) p.x[v] = sum[i * WIDE + e + v][c];
        *(pack *)(to + c * BLOCK_ROWS + i * 32 * WIDE + lane * WIDE + e) = p;
      }
}

#elif FORM == 1

typedef at_sum at_sums[PER][COLS];

AT_INLINE void at_add(at_sums &sum, const uint4 x[LOADS], const at_small *s, int k, int lane) {
  at_sum l[PER][WIDE];
#pragma unroll
  for (int i = 0; i < PER; i++) {
    union {
      uint4 whole;
      at_in x[WIDE];
    } u;
    u.whole = x[i];
#pragma unroll
    for (int e = 0; e < WIDE; e++) l[i][e] = at_widen(u.x[e]);
  }
#pragma unroll
  for (int c = 0; c < COLS; c++) {
    const at_pack<at_in, WIDE> y = *(const at_pack<at_in, WIDE> *)(s + c * PITCH + k + lane * WIDE);
#pragma unroll
    for (int e = 0; e < WIDE; e++)
#pragma unroll
      for (int i = 0; i < PER; i++) sum[i][c] = at_multiply_add(l[i][e], at_widen(y.x[e]), sum[i][c]);
  }
}

AT_INLINE void at_put_down(at_sum *to, at_sums &sum, int lane) {
#pragma unroll
  for (int i = 0; i < PER; i++)
#pragma unroll
    for (int c = 0; c < COLS; c++) {
      at_sum x = sum[i][c];
#pragma unroll
      for (int far = 16; far > 0; far /= 2) x += __shfl_xor_sync(0xffffffffu, x, far);
      if (lane == (i * COLS + c) % 32) to[c * BLOCK_ROWS + i] = x;
    }
}

#else

typedef float at_sums[PER][COLS / 8][4];

AT_INLINE void at_add(at_sums &sum, const uint4 x[LOADS], const at_small *s, int k, int lane) {
#pragma unroll
  for (int j = 0; j < COLS / 8; j++) {
    const uint4 y = *(const uint4 *)(s + (8 * j + lane / 4) * PITCH + k + lane % 4 * 8);
#pragma unroll
    for (int i = 0; i < PER; i++) {
      const uint4 low = x[2 * i], high = x[2 * i + 1];
      const at_u32 first[4] = {low.x, high.x, low.y, high.y}, second[4] = {low.z, high.z, low.w, high.w};
      at_mma16(sum[i][j], first, y.x, y.y);
      at_mma16(sum[i][j], second, y.z, y.w);
    }
  }
}

AT_INLINE void at_put_down(at_sum *to, at_sums &sum, int lane) {
#pragma unroll
  for (int i = 0; i < PER; i++)
#pragma unroll
    for (int j = 0; j < COLS / 8; j++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        to[(8 * j + lane % 4 * 2 + e % 2) * BLOCK_ROWS + 16 * i + e / 2 * 8 + lane / 4] = sum[i][j][e];
}

#endif

/* ---- D ---- */

AT_INLINE void at_write(const at_arguments &a, int m, int n, at_i64 matrix, at_sum sum) {
  if (m >= a.m || n >= a.n) return;
  const at_i64 at = TURNED ? m * a.ldd + (at_i64)n * SIZE_D : n * a.ldd + (at_i64)m * SIZE_D;
  at_out *d = (at_out *)(a.d + matrix * a.stride_d + at);
#if READS_C
  if (a.beta != 0.0) {
    const at_i64 at_c = TURNED ? m * a.ldc + (at_i64)n * SIZE_D : n * a.ldc + (at_i64)m * SIZE_D;
    *d = at_finish(a, sum, *(const at_out *)(a.c + matrix * a.stride_c + at_c));
    return;
  }
#endif
  *d = at_finish(a, sum);
}

/* The sums of the block's warps, then those of the cluster's blocks, each in their order. */
AT_INLINE void at_gather(const at_arguments &a, at_sum *sums, int rank, int m0, int n0, at_i64 matrix) {
  constexpr int COUNT = BLOCK_ROWS * COLS;
#if SPLIT > 1
  for (int i = (int)threadIdx.x; i < COUNT; i += THREADS) {
    at_sum x = sums[i];
#pragma unroll
    for (int w = 1; w < WARPS_K; w++) x += sums[w * COUNT + i];
    sums[i] = x;
  }
  at_cluster_wait();
#endif
  for (int i = (int)threadIdx.x + rank * THREADS; i < COUNT; i += THREADS * SPLIT) {
    const int m = TURNED ? i / COLS : i % BLOCK_ROWS, n = TURNED ? i % COLS : i / BLOCK_ROWS, at = n * BLOCK_ROWS + m;
    at_sum x;
#if SPLIT > 1
    at_sum parts[SPLIT];
#pragma unroll
    for (int r = 0; r < SPLIT; r++) parts[r] = at_of_block(sums + at, (at_u32)r);
    x = parts[0];
#pragma unroll
    for (int r = 1; r < SPLIT; r++) x += parts[r];
#else
    x = sums[at];
#pragma unroll
    for (int w = 1; w < WARPS_K; w++) x += sums[w * COUNT + at];
#endif
    at_write(a, m0 + m, n0 + n, matrix, x);
  }
#if SPLIT > 1
  at_cluster_wait(); /* others read this block's memory */
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS) at_skinny(const __grid_constant__ at_arguments a) {
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warp_m = warp / WARPS_K, warp_k = warp % WARPS_K;
  const int rank = (int)blockIdx.x % SPLIT, m0 = (int)blockIdx.x / SPLIT * BLOCK_ROWS, n0 = (int)blockIdx.z * COLS;
  const at_i64 matrix = blockIdx.y;
  const int share = ((a.k + SPLIT - 1) / SPLIT + UNIT_K - 1) / UNIT_K * UNIT_K;
  const int begin = rank * share < a.k ? rank * share : a.k, end = a.k - begin < share ? a.k : begin + share;
  const char *large = a.a + matrix * a.stride_a;
  const char *small = a.b + matrix * a.stride_b + n0 * (SMALL_K ? a.ldb : (at_i64)SIZE);
  const int cols = a.n - n0 < COLS ? a.n - n0 : COLS;
  at_small *s = (at_small *)at_room;
  at_lane from;
  from.ld = a.lda;
#if FORM == 0
  from.row = m0 + warp_m * WARP_ROWS + lane * WIDE;
  from.k = 0;
  from.from = large + (at_i64)from.row * SIZE;
#elif FORM == 1
  from.row = m0 + warp_m * WARP_ROWS;
  from.k = lane * WIDE;
  from.from = large + from.row * a.lda + from.k * SIZE;
#else
  from.row = m0 + warp_m * WARP_ROWS + lane / 4;
  from.k = lane % 4 * 8;
  from.from = large + from.row * a.lda + from.k * SIZE;
#endif
  at_sums sum = {};
  uint4 ahead[AHEAD][LOADS];
#pragma unroll
  for (int u = 0; u < AHEAD; u++) at_fetch(ahead[u], a, from, begin + u * STRIDE_K + warp_k * STEP, end);
  for (int chunk = begin; chunk < end; chunk += CHUNK) {
    __syncthreads();
    at_bring(s, small, a.ldb, chunk, end, cols);
    __syncthreads();
    const int most = end - chunk < CHUNK ? end - chunk : CHUNK;
#pragma unroll 1
    for (int k = 0; k < most; k += AHEAD * STRIDE_K) {
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const int at = k + u * STRIDE_K + warp_k * STEP;
        at_add(sum, ahead[u], s, at, lane);
        at_fetch(ahead[u], a, from, chunk + at + AHEAD * STRIDE_K, end);
      }
    }
  }
  __syncthreads();
  at_sum *sums = (at_sum *)at_room;
  at_put_down(sums + warp_k * (BLOCK_ROWS * COLS) + warp_m * WARP_ROWS, sum, lane);
  __syncthreads();
  at_gather(a, sums, rank, m0, n0, matrix);
}
