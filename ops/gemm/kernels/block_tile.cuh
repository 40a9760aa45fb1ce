/* SPDX-License-Identifier: Apache-2.0
 * block_tile.cuh: the kernel of products that are made in tiles: D (m x n) = X (m x k) Y (k x n). A block
 * makes TM x TN of D and steps along k, BK at a time; STAGES - 1 steps are on their way into shared memory while one is
 * multiplied, or all of them at once where there are so few (WHOLE). The warps of a block are WARPS_M x WARPS_N over
 * the tile, times WARPS_K along a step. k is shared further by the SPLIT blocks of a cluster, and by PARTS of such,
 * whose sums go to the workspace: the same kernel, launched again with a.phase = 1, adds these up. All sums are added
 * in a fixed order. In front of it stands how tiles come into shared memory and how they are multiplied, by tensor
 * cores (sm80_mma_tile.cuh, sm80_mma.cuh) or without them (sm80_simt_f32.cuh): at_tile_x, at_tile_y, at_sums,
 * at_multiply (or at_run, a loop of its own), at_put_down. */

/* ---- sums: lines along D's contiguous side ---- */

#define LINE_D (TURNED ? TN : TM)
#define LINES_D (TURNED ? TM : TN)
#define PITCH_D (LINE_D + (TURNED ? GAP_TURNED : 4))
#define SUMS (LINES_D * PITCH_D)
#define PACK (16 / (int)sizeof(at_sum))
#define EACH_D (BYTES_D / SIZE_D)              /* elements that a store may have */
#define UNIT_D (EACH_D < PACK ? PACK : EACH_D) /* that a thread makes at a time */
#define PART_UNIT PACK                         /* likewise of what lies in the workspace */
#ifndef SUMS_BY_PAIRS
#define SUMS_BY_PAIRS 0 /* in shared memory two neighbours of a line have changed places */
#endif

template <int COUNT> AT_INLINE void at_take(at_row<COUNT> &out, const at_sum *p) {
#pragma unroll
  for (int i = 0; i < COUNT; i += PACK) {
    const at_pack<at_sum, PACK> some = *(const at_pack<at_sum, PACK> *)(p + i);
#pragma unroll
    for (int e = 0; e < PACK; e++) out.x[i + e] = some.x[e];
  }
}

template <int COUNT> AT_INLINE void at_take_more(at_row<COUNT> &out, const at_sum *p) {
  at_row<COUNT> more;
  at_take(more, p);
#pragma unroll
  for (int e = 0; e < COUNT; e++) out.x[e] += more.x[e];
}

/* As they lie in D. */
template <int COUNT> AT_INLINE void at_settle(at_row<COUNT> &row) {
#if SUMS_BY_PAIRS
#pragma unroll
  for (int e = 0; e < COUNT; e += 2) {
    const at_sum first = row.x[e];
    row.x[e] = row.x[e + 1], row.x[e + 1] = first;
  }
#endif
}

/* The sums of the block's warps, then those of the cluster's blocks, each in their order; to D or to the workspace. */
AT_INLINE void at_gather(const at_arguments &a, at_sum *sums, int rank, int m0, int n0, at_i64 matrix, at_sum *part) {
  constexpr int UNIT = PARTS > 1 ? PART_UNIT : UNIT_D, UNITS = LINE_D / UNIT, ALL = UNITS * LINES_D;
#if SPLIT > 1
  if (WARPS_K > 1) {
    for (int i = (int)threadIdx.x; i < SUMS; i += THREADS) {
      at_sum x = sums[i];
#pragma unroll
      for (int w = 1; w < WARPS_K; w++) x += sums[w * SUMS + i];
      sums[i] = x;
    }
  }
  at_cluster_wait();
#endif
#pragma unroll 1
  for (int i = (int)threadIdx.x + rank * THREADS; i < ALL; i += THREADS * SPLIT) {
    const int line = i / UNITS, at = i % UNITS * UNIT;
    at_row<UNIT> x;
#if SPLIT > 1
    at_row<UNIT> of[SPLIT];
#pragma unroll
    for (int r = 0; r < SPLIT; r++)
#pragma unroll
      for (int e = 0; e < UNIT; e += PACK) at_pack_of_block(of[r].x + e, sums + line * PITCH_D + at + e, (at_u32)r);
    x = of[0];
#pragma unroll
    for (int r = 1; r < SPLIT; r++)
#pragma unroll
      for (int e = 0; e < UNIT; e++) x.x[e] += of[r].x[e];
#else
    at_take(x, sums + line * PITCH_D + at);
#pragma unroll
    for (int w = 1; w < WARPS_K; w++) at_take_more(x, sums + w * SUMS + line * PITCH_D + at);
#endif
    at_settle(x);
#if PARTS > 1
#pragma unroll
    for (int e = 0; e < UNIT; e += PACK)
      *(at_pack<at_sum, PACK> *)(part + i * UNIT + e) = *(at_pack<at_sum, PACK> *)(x.x + e);
#else
    at_write<AT_WRITE>(a, matrix, (TURNED ? m0 : n0) + line, (TURNED ? n0 : m0) + at, x);
#endif
  }
#if SPLIT > 1
  at_cluster_wait(); /* others read this block's memory */
#endif
}

/* Tiles of D in an order in which those that run together share lines of X and Y. */
AT_INLINE void at_tile_of(int tile, int tiles_m, int tiles_n, int &tile_m, int &tile_n) {
  constexpr int GROUP = 8;
  const int group = tile / (GROUP * tiles_n), within = tile % (GROUP * tiles_n), first = group * GROUP,
            size = tiles_m - first < GROUP ? tiles_m - first : GROUP;
  tile_m = first + within % size;
  tile_n = within / size;
}

/* ---- the workspace: X and Y where they are padded, then sums ---- */

#define LENGTH_X ((at_i64)(X_K ? a.k : a.m) * SIZE) /* bytes of a line */
#define LENGTH_Y ((at_i64)(Y_K ? a.k : a.n) * SIZE)
#define LINES_X ((at_i64)(X_K ? a.m : a.k))
#define LINES_Y ((at_i64)(Y_K ? a.n : a.k))

AT_INLINE at_i64 at_up(at_i64 bytes, at_i64 unit) {
  return (bytes + unit - 1) / unit * unit;
}

AT_INLINE char *at_padded_y(const at_arguments &a) {
  return a.sums + (PAD_X ? at_up(a.batch * LINES_X * at_up(LENGTH_X, 16), 256) : 0);
}

AT_INLINE at_sum *at_partial_sums(const at_arguments &a) {
  return (at_sum *)(at_padded_y(a) + (PAD_Y ? at_up(a.batch * LINES_Y * at_up(LENGTH_Y, 16), 256) : 0));
}

#if PAD_X || PAD_Y
/* A warp copies a line after the other, `first` being its first of all matrices' one after the other. */
AT_INLINE void at_pad_lines(char *to, const char *from, at_i64 ld, at_i64 stride, at_i64 lines, at_i64 length,
                            int batch, at_i64 first, at_i64 step) {
  constexpr int MANY = 4;
  const at_i64 pitch = at_up(length, 16);
  for (at_i64 l = first; l < lines * batch; l += step) {
    const char *begin = from + l / lines * stride, *end = begin + (lines - 1) * ld + length,
               *source = begin + l % lines * ld;
    for (at_i64 at = (at_i64)threadIdx.x % 32 * 16; at < length; at += 32 * 16 * MANY) {
      uint4 low[MANY], high[MANY];
      const int off = (int)((at_i64)source & 15);
#pragma unroll
      for (int i = 0; i < MANY; i++) {
        const at_i64 there = at + i * 512, left = length - there;
        low[i] = high[i] = make_uint4(0, 0, 0, 0);
        if (left > 0) low[i] = at_word(source + there - off, begin, end);
        if (left > 16 - off) high[i] = at_word(source + there - off + 16, begin, end);
      }
#pragma unroll
      for (int i = 0; i < MANY; i++)
        if (at + i * 512 < length) *(uint4 *)(to + l * pitch + at + i * 512) = at_shifted(low[i], high[i], off, 16);
    }
  }
}

AT_INLINE void at_pad(const at_arguments &a) {
  const at_i64 step = (at_i64)gridDim.x * (THREADS / 32), warp = (at_i64)blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
  const at_i64 lines = PAD_X ? LINES_X * a.batch : 0;
  if (PAD_X) at_pad_lines(a.sums, a.a, a.lda, a.stride_a, LINES_X, LENGTH_X, a.batch, warp, step);
  /* Y's lines come after X's */
  if (PAD_Y)
    at_pad_lines(at_padded_y(a), a.b, a.ldb, a.stride_b, LINES_Y, LENGTH_Y, a.batch,
                 warp >= lines ? warp - lines : warp + (lines - warp + step - 1) / step * step - lines, step);
}
#endif

#if PARTS > 1
/* What the parts left in the workspace, in their order. A thread makes an element of D. */
AT_INLINE void at_add_parts(const at_arguments &a, int tiles_m, int tiles_n) {
  constexpr int ALL = TM * TN, BLOCKS_D = (ALL + THREADS - 1) / THREADS, MANY = PARTS < 33 ? PARTS : 33;
  const int tile = (int)blockIdx.x / BLOCKS_D, i = (int)blockIdx.x % BLOCKS_D * THREADS + (int)threadIdx.x;
  const at_i64 matrix = blockIdx.y, apart = (at_i64)a.batch * tiles_m * tiles_n * ALL;
  int tile_m, tile_n;
  if (i >= ALL) return;
  at_tile_of(tile, tiles_m, tiles_n, tile_m, tile_n);
  const at_sum *p = at_partial_sums(a) + (matrix * tiles_m * tiles_n + tile) * ALL + i;
  at_row<1> x = {{0}};
#pragma unroll 1
  for (int first = 0; first < PARTS; first += MANY) {
    at_sum some[MANY];
#pragma unroll
    for (int e = 0; e < MANY; e++) some[e] = first + e < PARTS ? p[(first + e) * apart] : (at_sum)0;
#pragma unroll
    for (int e = 0; e < MANY; e++) x.x[0] += some[e];
  }
  at_write<AT_WRITE>(a, matrix, (TURNED ? tile_m * TM : tile_n * TN) + i / LINE_D,
           (TURNED ? tile_n * TN : tile_m * TM) + i % LINE_D, x);
}
#endif

/* The first steps of a tile towards the L2 cache. */
template <int ROWS, bool ALONG_K>
AT_INLINE void at_ask(const char *matrix, at_i64 ld, int row, int all_rows, int first_k, int last_k) {
  const int rows = all_rows - row < ROWS ? all_rows - row : ROWS,
            k = last_k - first_k < EARLY * BK ? last_k - first_k : EARLY * BK;
  const int lines = ALONG_K ? rows : k, bytes = (ALONG_K ? k : rows) * SIZE / 16 * 16;
  const char *from = matrix + (ALONG_K ? row * ld + (at_i64)first_k * SIZE : first_k * ld + (at_i64)row * SIZE);
  if (bytes <= 0) return;
  for (int l = (int)threadIdx.x; l < lines; l += THREADS) at_early(from + l * ld, bytes);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) KERNEL(const __grid_constant__ at_arguments a) {
  at_let_next();
  at_wait_for_pointers();
  const int tiles_m = (a.m + TM - 1) / TM, tiles_n = (a.n + TN - 1) / TN;
#if PAD_X || PAD_Y
  if (a.phase == 2) {
    at_wait_for_last();
    at_pad(a);
    return;
  }
#endif
#if PARTS > 1
  if (a.phase == 1) {
    at_wait_for_last();
    at_add_parts(a, tiles_m, tiles_n);
    return;
  }
#endif
  const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32, warp_k = warp / (WARPS_M * WARPS_N),
            m = warp % WARPS_M * WM, n = warp / WARPS_M % WARPS_N * WN;
  const int rank = (int)blockIdx.x % SPLIT, tile = (int)blockIdx.x / SPLIT, share = (int)blockIdx.z * SPLIT + rank;
  const at_i64 matrix = blockIdx.y, all = (a.k + BK - 1) / BK;
  const int begin = (int)(all * share / (SPLIT * PARTS)), steps = (int)(all * (share + 1) / (SPLIT * PARTS)) - begin;
  int tile_m, tile_n;
  at_tile_of(tile, tiles_m, tiles_n, tile_m, tile_n);
  at_tile_x x;
  at_tile_y y;
  const at_i64 ld_x = PAD_X ? at_up(LENGTH_X, 16) : a.lda, ld_y = PAD_Y ? at_up(LENGTH_Y, 16) : a.ldb;
  x.start(PAD_X ? a.sums + matrix * LINES_X * ld_x : at_matrix(a.a, a.stride_a, matrix), ld_x, tile_m * TM, a.m, begin * BK, a.k,
          a.k);
  y.start(PAD_Y ? at_padded_y(a) + matrix * LINES_Y * ld_y : at_matrix(a.b, a.stride_b, matrix), ld_y, tile_n * TN, a.n,
          begin * BK, a.k, a.k);
#if EARLY
  const int last = a.k - begin * BK < steps * BK ? a.k : (begin + steps) * BK;
  if (BYTES_X == 16 && !PAD_X) at_ask<TM, X_K>(at_matrix(a.a, a.stride_a, matrix), a.lda, tile_m * TM, a.m, begin * BK, last);
  if (BYTES_Y == 16 && !PAD_Y) at_ask<TN, Y_K>(at_matrix(a.b, a.stride_b, matrix), a.ldb, tile_n * TN, a.n, begin * BK, last);
#endif
  at_wait_for_last();
  char *room = (char *)at_room;
  at_sums sum = {};
#pragma unroll 1
  for (int s = 0; s < ORDERED; s++) {
    char *to = room + s * STAGE_BYTES;
    if (s < (BYTES_X >= 4 || steps == 0 ? steps : 1)) x.order(to);
    if (s < (BYTES_Y >= 4 || steps == 0 ? steps : 1)) y.order(to + at_tile_x::SPACE);
#if BYTES_X < 4
    if (s == 0 && steps > 0) x.settle(to);
#endif
#if BYTES_Y < 4
    if (s == 0 && steps > 0) y.settle(to + at_tile_x::SPACE);
#endif
    at_copies_commit();
  }
#if OWN_LOOP
  at_run(sum, x, y, room, steps, m, n, warp_k, lane);
#else
  int now = 0, next = STAGES - 1; /* stages */
#pragma unroll 1
  for (int s = 0; s < steps; s++) {
    at_copies_wait<ORDERED - 1>();
    __syncthreads(); /* this step is there for all, and the one before is done with */
    const int after = now + 1 == STAGES ? 0 : now + 1;
    const bool more = !WHOLE && s + ORDERED < steps, one_more = s + 1 < steps; /* for copies, for registers */
    char *to = room + next * STAGE_BYTES;
    if (BYTES_X >= 4 ? more : one_more) x.order(to);
    if (BYTES_Y >= 4 ? more : one_more) y.order(to + at_tile_x::SPACE);
    at_copies_commit();
    at_multiply(sum, room + now * STAGE_BYTES, m, n, warp_k, lane);
#if BYTES_X < 4
    if (one_more) x.settle(room + after * STAGE_BYTES);
#endif
#if BYTES_Y < 4
    if (one_more) y.settle(room + after * STAGE_BYTES + at_tile_x::SPACE);
#endif
    now = after;
    next = next + 1 == STAGES ? 0 : next + 1;
  }
#endif
  at_copies_wait<0>();
  __syncthreads();
  at_sum *sums = (at_sum *)at_room, *part = 0;
#if PARTS > 1
  part = at_partial_sums(a) + (((at_i64)blockIdx.z * a.batch + matrix) * tiles_m * tiles_n + tile) * (TM * TN);
#endif
  at_put_down<PITCH_D>(sums + warp_k * SUMS, sum, m, n, lane, (at_u32)a.zero);
  __syncthreads();
  at_gather(a, sums, rank, tile_m * TM, tile_n * TN, matrix, part);
}
