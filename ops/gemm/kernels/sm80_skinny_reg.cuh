/* SPDX-License-Identifier: Apache-2.0
 * sm80_skinny_reg.cuh: products of a large matrix and one of few columns: D (m x n) = L (m x k) S (k x n), n up to 64.
 * L goes from memory into registers once, 16 bytes a load, AHEAD steps ahead; S comes through shared memory, CHUNK of k
 * at a time, one chunk ahead. The warps of a block share its rows and the sums over k: WARPS_M x WARPS_K of them. SPLIT
 * blocks, a cluster, share k further. Sums are added up in a fixed order. kernel.cuh stands in front of it.
 *
 * FORM 0: L lies along m. A thread has PER vectors of rows, and takes STEP of k after another.
 * FORM 1: L lies along k. A warp has PER rows, its lanes side by side along k.
 * FORM 2: L lies along k, halves, by tensor cores: a warp has PER x 16 rows. A lane's 8 elements along k are those of
 * two instructions; which k an instruction takes for which does not matter as long as L and S agree. */
#ifndef FORM
#define FORM 0
#define COLS 16
#define PER 1
#define WARPS_M 1
#define WARPS_K 8
#define SPLIT 1
#define AHEAD 2
#define BLOCKS 0 /* that registers should be left for; 0: as the compiler likes */
#define CHUNK 128
#define BYTES_L 16
#define BYTES_S 16
#define SMALL_K 1 /* S lies along k */
#define TURNED 0  /* D lies along n */
#define READS_C 0
#define RAGGED 0 /* m (form 0) or k is no multiple of what 16 bytes hold */
#define TAIL 0   /* form 0: k is no multiple of STEP */
#endif

#define THREADS (32 * WARPS_M * WARPS_K)
#define SIZE ((int)sizeof(at_in))
#define WIDE (16 / SIZE)

/* STEP of k by a warp at a time, with LOADS of 16 bytes by a thread. S lies in shared memory as it lies in memory, or
 * along k; PITCH elements lie between its lines. */
#if FORM == 0
#define STEP (WIDE < 4 ? WIDE : 4)
#define WARP_ROWS (32 * WIDE * PER)
#define LOADS (PER * STEP)
#define ALONG_K SMALL_K
#define PITCH (ALONG_K ? CHUNK : COLS)
#elif FORM == 1
#define STEP (32 * WIDE)
#define WARP_ROWS PER
#define LOADS PER
#define ALONG_K 1
#define PITCH CHUNK
#else
#define STEP 32
#define WARP_ROWS (16 * PER)
#define LOADS (2 * PER)
#define ALONG_K 1
#define PITCH (CHUNK + 32) /* columns lie 64 bytes apart modulo 128 */
#endif
#define BLOCK_ROWS (WARP_ROWS * WARPS_M)
#define STRIDE_K (STEP * WARPS_K)              /* of k, by a block at a time */
#define UNIT_K (STRIDE_K < 16 ? 16 : STRIDE_K) /* of k, where a block of the cluster may begin */
#define LINES (ALONG_K ? COLS : CHUNK)
#define CHUNK_ELEMENTS (PITCH * LINES)

/* Where a thread loads L next. */
struct at_lane {
  const char *from; /* the first load of its next step */
  at_i64 ld;
  int k, row; /* of that load */
};

/* The loads of the next step: rows and k beyond the matrix are zeros. */
AT_INLINE void at_fetch(uint4 x[LOADS], const at_arguments &a, at_lane &lane, int end) {
#pragma unroll
  for (int i = 0; i < LOADS; i++) {
#if FORM == 0
    const int part = i / STEP * (32 * WIDE), left = lane.k + (TAIL ? i % STEP : 0) < end ? a.m - lane.row - part : 0;
    const char *p = lane.from + i % STEP * lane.ld + part * SIZE;
#else
    const int line = i * (FORM == 1 ? 1 : 8), left = lane.row + line < a.m ? end - lane.k : 0;
    const char *p = lane.from + line * lane.ld;
#endif
    x[i] = make_uint4(0, 0, 0, 0);
    if (left >= WIDE) x[i] = at_load16<BYTES_L>(p);
#if RAGGED
    if (left > 0 && left < WIDE) x[i] = at_load_part(p, left);
#endif
  }
  lane.k += STRIDE_K;
  lane.from += FORM == 0 ? STRIDE_K * lane.ld : (at_i64)(STRIDE_K * SIZE);
}

#if FORM != 0
/* Its first steps towards the L2 cache: before what came before is done. */
AT_INLINE void at_ask(const at_arguments &a, const at_lane &lane, int end) {
#pragma unroll
  for (int u = 0; u < AHEAD; u++)
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
      const int line = i * (FORM == 1 ? 1 : 8);
      if (lane.row + line < a.m && lane.k + u * STRIDE_K < end)
        at_early_line(lane.from + line * lane.ld + u * (STRIDE_K * SIZE));
    }
}
#endif

/* ---- S: CHUNK of k from `k` on, zeros beyond `end` and beyond the last column ---- */

#if SMALL_K == ALONG_K

/* As it lies in memory. Ordered here; there after at_copies_wait. */
AT_INLINE void at_bring(at_in *to, const char *from, at_i64 ld, int k, int end, int cols) {
  constexpr int LINE = (ALONG_K ? CHUNK : COLS) * SIZE, BYTES = BYTES_S < LINE ? BYTES_S : LINE, PIECES = LINE / BYTES;
  const int depth = end > k ? end - k : 0, lines = ALONG_K ? cols : depth, bytes = (ALONG_K ? depth : cols) * SIZE;
#pragma unroll 2
  for (int i = (int)threadIdx.x; i < LINES * PIECES; i += THREADS) {
    const int line = i / PIECES, at = i % PIECES * BYTES, left = line < lines ? bytes - at : 0;
    const int valid = left < 0 ? 0 : left < BYTES ? left : BYTES;
    const char *p = from + (ALONG_K ? line * ld + (at_i64)k * SIZE : (k + line) * ld) + at;
    at_copy_again<BYTES>((char *)to + line * (PITCH * SIZE) + at, valid ? p : from, valid);
  }
}

#else

/* Turned: it lies along n in memory. */
AT_INLINE void at_bring(at_in *to, const char *from, at_i64 ld, int k, int end, int cols) {
  constexpr int MANY = 4;
  for (int first = (int)threadIdx.x; first < CHUNK * COLS; first += THREADS * MANY) {
    at_in x[MANY];
#pragma unroll
    for (int j = 0; j < MANY; j++) {
      const int i = first + j * THREADS, c = i % COLS, line = k + i / COLS;
      x[j] = at_in{};
      if (i < CHUNK * COLS && line < end && c < cols) x[j] = *(const at_in *)(from + line * ld + c * SIZE);
    }
#pragma unroll
    for (int j = 0; j < MANY; j++) {
      const int i = first + j * THREADS;
      if (i < CHUNK * COLS) to[i % COLS * PITCH + i / COLS] = x[j];
    }
  }
}

#endif

/* ---- sums of a thread ---- */

#if FORM == 0

typedef at_sum at_sums[PER * WIDE][COLS];

/* An element of S, or several of a line, for the whole warp at once. */
template <int COUNT> AT_INLINE void at_pick(at_sum y[COUNT], const at_in *p) {
  const at_pack<at_in, COUNT> x = *(const at_pack<at_in, COUNT> *)p;
#pragma unroll
  for (int i = 0; i < COUNT; i++) y[i] = at_widen(x.x[i]);
}

AT_INLINE void at_add(at_sums &sum, const uint4 x[LOADS], const at_in *s, int k, int lane) {
  at_sum l[STEP][PER * WIDE];
#pragma unroll
  for (int i = 0; i < LOADS; i++) {
    union {
      uint4 whole;
      at_in x[WIDE];
    } u;
    u.whole = x[i];
#pragma unroll
    for (int e = 0; e < WIDE; e++) l[i % STEP][i / STEP * WIDE + e] = at_widen(u.x[e]);
  }
#if ALONG_K
#pragma unroll
  for (int c = 0; c < COLS; c++) {
    at_sum y[STEP];
    at_pick<STEP>(y, s + c * PITCH + k);
#pragma unroll
    for (int e = 0; e < STEP; e++)
#pragma unroll
      for (int i = 0; i < PER * WIDE; i++) sum[i][c] = at_multiply_add(l[e][i], y[e], sum[i][c]);
  }
#else
  constexpr int PACK = WIDE < COLS ? WIDE : COLS;
#pragma unroll
  for (int e = 0; e < STEP; e++)
#pragma unroll
    for (int c = 0; c < COLS; c += PACK) {
      at_sum y[PACK];
      at_pick<PACK>(y, s + (k + e) * PITCH + c);
#pragma unroll
      for (int v = 0; v < PACK; v++)
#pragma unroll
        for (int i = 0; i < PER * WIDE; i++) sum[i][c + v] = at_multiply_add(l[e][i], y[v], sum[i][c + v]);
    }
#endif
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

AT_INLINE void at_add(at_sums &sum, const uint4 x[LOADS], const at_in *s, int k, int lane) {
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

AT_INLINE void at_add(at_sums &sum, const uint4 x[LOADS], const at_in *s, int k, int lane) {
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
    at_put<TURNED, READS_C>(a, m0 + m, n0 + n, matrix, x);
  }
#if SPLIT > 1
  at_cluster_wait(); /* others read this block's memory */
#endif
}

#if BLOCKS
#define BOUNDS __launch_bounds__(THREADS, BLOCKS)
#else
#define BOUNDS __launch_bounds__(THREADS)
#endif

extern "C" __global__ void BOUNDS at_skinny(const __grid_constant__ at_arguments a) {
  at_let_next();
  at_wait_for_pointers();
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warp_m = warp / WARPS_K,
            warp_k = warp % WARPS_K;
  const int rank = (int)blockIdx.x % SPLIT, m0 = (int)blockIdx.x / SPLIT * BLOCK_ROWS, n0 = (int)blockIdx.z * COLS;
  const at_i64 matrix = blockIdx.y;
  const int share = ((a.k + SPLIT - 1) / SPLIT + UNIT_K - 1) / UNIT_K * UNIT_K;
  const int begin = rank * share < a.k ? rank * share : a.k, end = a.k - begin < share ? a.k : begin + share;
  const char *large = at_matrix(a.a, a.stride_a, matrix);
  const char *small = at_matrix(a.b, a.stride_b, matrix) + n0 * (SMALL_K ? a.ldb : (at_i64)SIZE);
  const int cols = a.n - n0 < COLS ? a.n - n0 : COLS;
  at_in *s = (at_in *)at_room;
  at_lane from;
  from.ld = a.lda;
  from.k = begin + warp_k * STEP;
#if FORM == 0
  from.row = m0 + warp_m * WARP_ROWS + lane * WIDE;
  from.from = large + (at_i64)from.row * SIZE + from.k * a.lda;
#else
  from.row = m0 + warp_m * WARP_ROWS + (FORM == 1 ? 0 : lane / 4);
  from.k += (FORM == 1 ? lane : lane % 4) * WIDE;
  from.from = large + from.row * a.lda + (at_i64)from.k * SIZE;
#endif
#if FORM != 0
  at_ask(a, from, end);
#endif
  at_wait_for_last();
  at_sums sum = {};
  uint4 ahead[AHEAD][LOADS];
#pragma unroll
  for (int u = 0; u < AHEAD; u++) at_fetch(ahead[u], a, from, end);
  at_bring(s, small, a.ldb, begin, end, cols);
  at_copies_commit();
  int side = 0;
#pragma unroll 1
  for (int chunk = begin; chunk < end; chunk += CHUNK) {
    at_copies_wait<0>();
    __syncthreads(); /* the chunk is there, and the one before is done with */
    const at_in *now = s + side * CHUNK_ELEMENTS;
    side ^= 1;
    if (chunk + CHUNK < end) at_bring(s + side * CHUNK_ELEMENTS, small, a.ldb, chunk + CHUNK, end, cols);
    at_copies_commit();
    const int most = end - chunk < CHUNK ? end - chunk : CHUNK;
#pragma unroll 1
    for (int k = 0; k < most; k += AHEAD * STRIDE_K) {
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        at_add(sum, ahead[u], now, k + u * STRIDE_K + warp_k * STEP, lane);
        at_fetch(ahead[u], a, from, end);
      }
    }
  }
  at_copies_wait<0>();
  __syncthreads();
  at_sum *sums = (at_sum *)at_room;
  at_put_down(sums + warp_k * (BLOCK_ROWS * COLS) + warp_m * WARP_ROWS, sum, lane);
  __syncthreads();
  at_gather(a, sums, rank, m0, n0, matrix);
}
