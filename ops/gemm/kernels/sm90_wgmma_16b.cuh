/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b.cuh: products of halves by warpgroups: D (m x n) = X (m x k) Y (k x n). The last warps of a block copy
 * tiles by tensor maps into STAGES places, one after the other, each with two barriers: `full` when its bytes are
 * there, `empty` when all have multiplied them. The other warps, GROUPS x 128 threads, multiply, and write D. The
 * blocks of a cluster stand side by side along m and n, where each copies a part of what they share to all of them, and
 * along k, where they send each other their sums at the end. Without a shared k a block goes from tile to tile, and the
 * copies run ahead of it. PARTS clusters may share k too: their sums go to the workspace, and the same kernel, launched
 * again with a.phase = 1, adds them. All sums are added in a fixed order. kernel.cuh, sm90_wgmma_16b_tile.cuh and
 * sm90_wgmma_16b_epilogue.cuh stand in front of it. */

/* Where blocks are within their cluster. */
struct at_rank {
  int all, m, n, k;
};
AT_INLINE at_rank at_rank_of(int rank) {
  return {rank, rank % ALONG_M, rank / ALONG_M % ALONG_N, rank / AROUND};
}

struct at_work {
  int matrix, part, tile, tiles, tile_m, tile_n, first, steps; /* tile: of the matrix's `tiles`; first: step */
};

AT_INLINE int at_up(int x, int unit) {
  return (x + unit - 1) / unit;
}

/* Bands of BAND tiles along m, each from one end of n to the other. Tiles are those of a cluster. */
AT_INLINE void at_tile_of(int tile, int tiles_m, int tiles_n, int &tile_m, int &tile_n) {
  const int first = tile / (BAND * tiles_n) * BAND, rows = tiles_m - first < BAND ? tiles_m - first : BAND,
            within = tile - first * tiles_n;
  tile_m = first + within % rows;
  tile_n = within / rows;
}

AT_INLINE at_work at_work_of(const at_arguments &a, int i, at_rank r) {
  at_work w;
  const int tiles_m = at_up(a.m, TM_D * ALONG_M), tiles_n = at_up(a.n, TN * ALONG_N), tiles = tiles_m * tiles_n;
  const int all = at_up(a.k, BK), tile = i % tiles;
  w.part = i / tiles % PARTS;
  w.matrix = i / tiles / PARTS;
  at_tile_of(tile, tiles_m, tiles_n, w.tile_m, w.tile_n);
  w.tile_m = w.tile_m * ALONG_M + r.m;
  w.tile_n = w.tile_n * ALONG_N + r.n;
  w.tile = tile * AROUND + r.n * ALONG_M + r.m;
  w.tiles = tiles * AROUND;
  const int share = w.part * SPLIT + r.k;
  w.first = (int)((at_i64)all * share / (SPLIT * PARTS));
  w.steps = (int)((at_i64)all * (share + 1) / (SPLIT * PARTS)) - w.first;
  return w;
}

#if GATED
static_assert(FM == 2 && PARTS == 1 && (!X_K || TM / 64 % ALONG_N == 0), "a thread has g and u of its elements");

/* 64 of k of a tile's X, in boxes of 64 rows: u's are m rows behind g's. Where X lies along k blocks that share it
 * bring boxes of their own, else a part of k of each. */
template <bool EARLY_>
AT_INLINE void at_gated_copy(const at_wgmma_arguments &t, at_u32 to, const at_work &w, int k, at_u32 full, int mine,
                             at_u16 blocks) {
  constexpr int BOXES = X_K ? TM / 64 / ALONG_N : TM / 64, LINES = X_K ? 0 : 64 / ALONG_N;
  const int matrix = MANY_X ? w.matrix : 0, line = mine * LINES;
#pragma unroll
  for (int i = 0; i < BOXES; i++) {
    const int box = X_K ? mine * BOXES + i : i, row = box % 2 * t.a.m + w.tile_m * TM_D + box / 2 * 64;
    const int x = X_K ? k : row, y = X_K ? row : k + line;
    if (EARLY_)
      at_box_early(&t.x, x, y, matrix);
    else
      at_box<(ALONG_N > 1), KEEPS_X>(to + box * 8192 + line * 128, &t.x, x, y, matrix, full, blocks);
  }
}
#endif

template <bool EARLY_>
AT_INLINE void at_step_copy(const at_wgmma_arguments &t, at_u32 stage, at_u32 full, const at_work &w, int step, at_rank r) {
  const int k = (w.first + step) * BK;
  at_u16 with_x = 0, with_y = 0;
#pragma unroll
  for (int i = 0; i < ALONG_N; i++) with_x |= (at_u16)(1 << (r.k * AROUND + i * ALONG_M + r.m));
#pragma unroll
  for (int i = 0; i < ALONG_M; i++) with_y |= (at_u16)(1 << (r.k * AROUND + r.n * ALONG_M + i));
#pragma unroll
  for (int d = 0; d < DEEP; d++)
#if GATED
    at_gated_copy<EARLY_>(t, stage + d * SLICE_X, w, k + d * 64, full, r.n, with_x);
#else
    at_tile_copy<TM, X_K, ALONG_N, KEEPS_X, EARLY_>(stage + d * SLICE_X, &t.x, w.tile_m * TM, k + d * 64, MANY_X ? w.matrix : 0,
                                           full, r.n, with_x);
#endif
#pragma unroll
  for (int d = 0; d < DEEP; d++)
    at_tile_copy<TN, Y_K, ALONG_M, KEEPS_Y, EARLY_>(stage + DEEP * SLICE_X + d * SLICE_Y, &t.y, w.tile_n * TN, k + d * 64,
                                           MANY_Y ? w.matrix : 0, full, r.m, with_y);
}

/* The thread that copies. */
AT_INLINE void at_copy_all(const at_wgmma_arguments &t, at_u32 ring, at_u32 barriers, int begin, int works, int apart,
                           at_rank r) {
  int stage = 0, phase = 0;
#pragma unroll 1
  for (int i = begin; i < works; i += apart) {
    const at_work w = at_work_of(t.a, i, r);
#pragma unroll 1
    for (int s = 0; s < w.steps; s++) {
      const at_u32 full = barriers + stage * 16;
      at_barrier_wait(full + 8, phase ^ 1);
      at_barrier_expect(full, STAGE_BYTES);
      at_step_copy<false>(t, ring + stage * STAGE_BYTES, full, w, s, r);
      stage = stage + 1 == STAGES ? 0 : stage + 1;
      phase ^= stage == 0;
    }
  }
}

/* A warp has multiplied what is in a place: this goes to all whose copies come there. */
AT_INLINE void at_place_free(at_u32 empty, at_rank r) {
  const int lane = (int)threadIdx.x % 32;
#if AROUND > 1
  if (lane < PEERS) {
    const int other = lane - ALONG_M, n = lane < ALONG_M ? r.n : other < r.n ? other : other + 1;
    at_barrier_arrive_at(empty, (at_u32)(r.k * AROUND + n * ALONG_M + (lane < ALONG_M ? lane : r.m)));
  }
#else
  (void)r;
  if (lane == 0) at_barrier_arrive(empty);
#endif
}

/* A warpgroup's sums of the columns that its block finishes: FIRST on, or later ones. */
template <int FIRST>
AT_INLINE void at_end(const at_wgmma_arguments &t, at_sums &sum, char *room, const at_work &w, at_rank r, int group) {
  const at_arguments &a = t.a;
  if (FIRST / OWN == r.k || SPLIT == 1) {
#if SPLIT > 1
    at_add_all<FIRST>(sum, room + INBOX);
#endif
#if PARTS > 1
    at_keep<FIRST>(at_partial_sums(a, w.part, w.matrix, w.tiles, w.tile), sum);
#else
    constexpr int PASSES = GATED ? 1 : FM;
#if GATED
    at_gate_all<FIRST>(a, sum, w.tile_m * TM_D + group * 64, w.tile_n * TN);
#endif
#pragma unroll
    for (int f = 0; f < PASSES; f++)
      at_pass<FIRST, FIRST + OWN>(a, (at_passed *)(room + STAGES * STAGE_BYTES + group * PASS_BYTES), sum[f],
                                  w.tile_m * TM_D + group * (64 * PASSES) + f * 64, w.tile_n * TN, w.matrix, group);
#endif
  } else if constexpr (FIRST + OWN < TN) {
    at_end<FIRST + OWN>(t, sum, room, w, r, group);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) at_wgmma(const __grid_constant__ at_wgmma_arguments t) {
  const at_arguments &a = t.a;
  if (!LATE || (PARTS > 1 && a.phase == 1)) at_let_next();
  const int warp = (int)threadIdx.x / 32, group = warp / 4;
  const int tiles = at_up(a.m, TM_D * ALONG_M) * at_up(a.n, TN * ALONG_N);
#if PARTS > 1
  if (a.phase == 1) {
    constexpr int EACH = TM * TN / 64;
    const int which = (int)blockIdx.x % EACH, inner = (int)blockIdx.x / EACH, tile = inner / AROUND;
    const at_rank r = at_rank_of(inner % AROUND);
    int tile_m, tile_n;
    at_tile_of(tile, at_up(a.m, TM * ALONG_M), at_up(a.n, TN * ALONG_N), tile_m, tile_n);
    at_wait_for_last();
    at_add_parts(a, tiles * AROUND, inner, tile_m * ALONG_M + r.m, tile_n * ALONG_N + r.n, blockIdx.y, which);
    return;
  }
#endif
  const at_u32 ring = (at_shared(at_room) + 1023) & ~1023u;
  char *room = (char *)at_room + (ring - at_shared(at_room));
  const at_rank r = at_rank_of((int)blockIdx.x % CLUSTER);
  const int begin = (int)blockIdx.x / CLUSTER, apart = (int)gridDim.x / CLUSTER, works = tiles * PARTS * a.batch;
  const at_u32 barriers = ring + BARRIERS;
#if SPLIT > 1
  at_u64 *arrived = (at_u64 *)(room + BARRIERS + 16 * STAGES);
#endif
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; i++) {
      at_barrier_start(barriers + 16 * i, 1);
      at_barrier_start(barriers + 16 * i + 8, 4 * GROUPS * PEERS);
    }
#if SPLIT > 1
    at_inbox_open(arrived, INBOX_BYTES);
#endif
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if (threadIdx.x == MAKERS) {
    at_map_early(&t.x);
    at_map_early(&t.y);
#if EARLY
    const at_work w = at_work_of(a, begin, r);
    for (int s = 0; s < EARLY && s < w.steps; s++) at_step_copy<true>(t, 0, 0, w, s, r);
#endif
  }
  __syncthreads();
#if CLUSTER > 1
  at_cluster_arrive();
#endif
#if AROUND > 1
  at_cluster_await();
#endif
  at_wait_for_last();
  if (warp >= MAKERS / 32) {
    at_leave_registers();
    if (threadIdx.x == MAKERS) {
      at_copy_all(t, ring, barriers, begin, works, apart, r);
#if LATE
      at_let_next(); /* it asks for its first bytes while the last of these are multiplied */
#endif
    }
    __syncwarp();
#if CLUSTER > 1 && AROUND == 1
    at_cluster_await();
#endif
  } else {
    at_take_registers();
    at_sums sum;
    int stage = 0, phase = 0;
#pragma unroll 1
    for (int i = begin; i < works; i += apart) {
      const at_work w = at_work_of(a, i, r);
      int last = 0;
#pragma unroll 1
      for (int s = 0; s < w.steps; s++) {
        at_barrier_wait(barriers + 16 * stage, phase);
        at_multiply(sum, ring + stage * STAGE_BYTES, group, s > 0);
        if (s > 0) {
          at_sums_wait<1>();
          at_place_free(barriers + 16 * last + 8, r);
        }
        last = stage;
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        phase ^= stage == 0;
      }
      at_sums_wait<0>();
      at_place_free(barriers + 16 * last + 8, r);
#pragma unroll
      for (int f = 0; f < FM; f++)
#pragma unroll
        for (int e = 0; e < TN / 2; e++) asm volatile("" : "+f"(sum[f][e])::"memory");
#if SPLIT > 1
#if AROUND == 1
      at_cluster_await(); /* all have begun */
#endif
      at_send_all(sum, room + INBOX, arrived, r.all % AROUND, r.k);
      at_inbox_wait(arrived);
#endif
      at_end<0>(t, sum, room, w, r, group);
    }
  }
#if AROUND > 1
  at_cluster_wait(); /* nobody leaves whom others still write to */
#endif
}
