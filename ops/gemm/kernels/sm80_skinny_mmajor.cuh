/* SPDX-License-Identifier: Apache-2.0
 * sm80_skinny_mmajor.cuh: products D (m x n) = L (m x k) S (k x n) of f32 and f64 whose large L lies along m; n is
 * small. L goes from memory into registers once, 16 bytes a load, AHEAD loads ahead, or through shared memory, where
 * each lane finds what it copied itself. Of a warp's lanes LANES lie along the rows and 32 / LANES, its groups, along
 * k. WARPS_K warps of a block share its rows and the sums over k; SPLIT blocks, a cluster, share k further. Each warp
 * brings its part of S itself, CHUNK of k at a time into ROOMS rooms of shared memory, turned on the way where S lies
 * along k: no warp waits for another before all of its sums are done. Sums are added up in a fixed order. kernel.cuh
 * stands in front of it. */
#ifndef LANES
#define LANES 16
#define COLS 16
#define WARPS_M 1
#define WARPS_K 16
#define SPLIT 2
#define AHEAD 4
#define CHUNK 8
#define BLOCKS 1 /* of a processor: registers are left for so many */
#define TILES_N 1
#define BYTES_L 16
#define BYTES_S 16
#define SMALL_K 1 /* S lies along k */
#define TURNED 0  /* D lies along n */
#define READS_C 0
#define RAGGED 0 /* m is no multiple of what 16 bytes hold */
#define EXACT 1  /* k is a multiple of CHUNK, n one of COLS */
#define ROOMS 4
#define STAGED 0 /* L comes through shared memory too, a chunk of it with a chunk of S: more of it is on its way */
#endif

#define THREADS (32 * WARPS_M * WARPS_K)
#define SIZE ((int)sizeof(at_in))
#define WIDE (16 / SIZE)
#define GROUPS (32 / LANES)
#define STEPS (CHUNK / GROUPS) /* loads of a lane in a chunk: a multiple of AHEAD */
#define WARP_ROWS (LANES * WIDE)
#define BLOCK_ROWS (WARP_ROWS * WARPS_M)
#define WARP_COUNT (WARP_ROWS * COLS)       /* sums of a warp, of each of its groups */
#define PART (WARP_COUNT * WARPS_M / SPLIT) /* sums that a block of the cluster finishes */
/* Two rows beside each other have changed places in shared memory: see at_put_down. */
#define SWAP (IN == 0 ? 1 : 0)
/* A line of a room is COLS elements of one k. With the gap the copies of 8 k by 4 columns meet no bank twice. */
#define PITCH (COLS * SIZE < 32 ? COLS : COLS + WIDE)
#define ROOM (CHUNK * PITCH)
#define LARGE (STAGED ? STEPS * 32 * WIDE : 0) /* a chunk of L */
#define ALL_ROOMS (ROOMS * (ROOM + LARGE))
#define WARP_ROOM (ALL_ROOMS > GROUPS * WARP_COUNT ? ALL_ROOMS : GROUPS * WARP_COUNT) /* sums lie there later */

typedef at_sum at_sums[COLS][WIDE];
typedef at_pack<at_sum, WIDE> at_timeline; /* 16 bytes */

/* Where a lane loads L next. */
struct at_large {
  const char *from;
  at_i64 step;   /* bytes from one load to the next */
  int end, rows; /* where the lane ends; from its first row to the last */
};

/* The next load, that of `k`. Beyond the end x is zero or as it was. */
AT_INLINE uint4 at_fetch(at_large &l, int k) {
  uint4 x;
#if !EXACT
  x = make_uint4(0, 0, 0, 0);
#endif
  if (k < l.end) {
#if RAGGED
    x = l.rows < WIDE ? at_load_part(l.from, l.rows) : at_load16<BYTES_L>(l.from);
#else
    x = at_load16<BYTES_L>(l.from);
#endif
  }
  l.from += l.step;
  return x;
}

#if STAGED
/* A chunk of loads into a room, each lane's for itself. */
AT_INLINE void at_bring_large(at_in *to, at_large &l, int k, int lane) {
#if RAGGED
  const int whole = l.rows < WIDE ? l.rows * SIZE : 16;
#else
  constexpr int whole = 16;
#endif
#pragma unroll
  for (int i = 0; i < STEPS; i++) {
    const int bytes = k + i * GROUPS < l.end ? whole : 0;
#pragma unroll
    for (int b = 0; b < 16; b += BYTES_L)
      at_copy<BYTES_L>((char *)(to + (i * 32 + lane) * WIDE) + b, l.from + b,
                       bytes <= b ? 0 : bytes - b < BYTES_L ? bytes - b : BYTES_L);
    l.from += l.step;
  }
}
#endif

/* Where a lane copies S from next. */
struct at_small {
  const char *from;
  at_i64 ld;
  int end, cols;
};

/* The lanes copy SPAN of k by LINES columns at a time where S is turned, PIECES a line of k where it is not. */
#if SMALL_K
#define SPAN (COLS < 4 ? 32 / COLS : 8)
#define LINES (32 / SPAN)
#define STRIDE_S SIZE /* bytes from one k to the next */
#else
#define LINE_BYTES (COLS * SIZE)
#define BYTES (BYTES_S < LINE_BYTES ? BYTES_S : LINE_BYTES)
#define PIECES (LINE_BYTES / BYTES)
#define STRIDE_S s.ld
#endif

/* The chunk at k into a room. Ordered here; there after at_copies_wait. What is beyond the end of k or the last column
 * is zero. */
AT_INLINE void at_bring(at_in *to, at_small &s, int k, int lane) {
#if SMALL_K
  at_in *at = to + lane % SPAN * PITCH + lane / SPAN;
#pragma unroll
  for (int i = 0; i < COLS / LINES; i++)
#pragma unroll
    for (int j = 0; j < CHUNK / SPAN; j++) {
      const bool inside = EXACT || (k + j * SPAN + lane % SPAN < s.end && i * LINES + lane / SPAN < s.cols);
      at_copy<SIZE>((char *)(at + j * SPAN * PITCH + i * LINES), s.from + i * (LINES * s.ld) + j * (SPAN * SIZE),
                    inside ? SIZE : 0);
    }
#else
#pragma unroll
  for (int first = 0; first < CHUNK * PIECES; first += 32) {
    const int i = first + lane, line = i / PIECES, at = i % PIECES * BYTES, left = s.cols * SIZE - at;
    const int valid = EXACT ? BYTES : k + line >= s.end || left < 0 ? 0 : left < BYTES ? left : BYTES;
    if (CHUNK * PIECES % 32 == 0 || i < CHUNK * PIECES)
      at_copy<BYTES>((char *)(to + line * PITCH) + at, s.from + line * s.ld + at, valid);
  }
#endif
  s.from += CHUNK * STRIDE_S;
}

AT_INLINE void at_add(at_sums &sum, const uint4 &x, const at_in *s) {
  constexpr int PACK = WIDE < COLS ? WIDE : COLS;
  union {
    uint4 whole;
    at_in x[WIDE];
  } l;
  l.whole = x;
#pragma unroll
  for (int c = 0; c < COLS; c += PACK) {
    const at_pack<at_in, PACK> y = *(const at_pack<at_in, PACK> *)(s + c);
#pragma unroll
    for (int v = 0; v < PACK; v++)
#pragma unroll
      for (int f = 0; f < WIDE; f++) { /* there and back: neighbours share a register that is read once */
        const int e = (c + v) % 2 ? WIDE - 1 - f : f;
        sum[c + v][e] = at_multiply_add(l.x[e], y.x[v], sum[c + v][e]);
      }
  }
}

/* The lane's sums to those of its group. What is stored 16 bytes at a time binds the registers of the sums, and as L
 * comes 16 bytes at a time too, a sum and the element of L that it takes would lie in the same of two banks: so two
 * rows change places. */
AT_INLINE void at_put_down(at_sum *to, const at_sums &sum, int lane) {
#pragma unroll
  for (int c = 0; c < COLS; c++) {
    at_timeline x;
#pragma unroll
    for (int e = 0; e < WIDE; e++) x.x[e] = sum[c][e ^ SWAP];
    *(at_timeline *)(to + (lane / LANES * COLS + c) * WARP_ROWS + lane % LANES * WIDE) = x;
  }
}

/* The sums of the block's warps and their groups, each to the block of the cluster that finishes it: into its `parts`,
 * PART from each block. */
AT_INLINE void at_give(const at_sum *sums, at_sum *parts, at_u64 *inbox, int rank) {
  for (int i = (int)threadIdx.x * WIDE; i < PART * SPLIT; i += THREADS * WIDE) {
    const at_sum *p = sums + i / WARP_COUNT * (WARPS_K * WARP_ROOM) + i % WARP_COUNT;
    at_timeline x = *(const at_timeline *)p;
#pragma unroll
    for (int w = 1; w < WARPS_K * GROUPS; w++) {
      const at_timeline y = *(const at_timeline *)(p + w / GROUPS * WARP_ROOM + w % GROUPS * WARP_COUNT);
#pragma unroll
      for (int e = 0; e < WIDE; e++) x.x[e] += y.x[e];
    }
    at_sum *to = parts + rank * PART + i % PART;
#if SPLIT > 1
    at_send(to, *(const uint4 *)&x, inbox, (at_u32)(i / PART));
#else
    *(at_timeline *)to = x;
#endif
  }
}

/* The parts of the cluster's blocks, in their order, into D: neighbours in D by neighbours. */
AT_INLINE void at_take(const at_arguments &a, const at_sum *parts, int rank, int m0, int n0, at_i64 matrix) {
  constexpr int LINE = PART < WARP_ROWS ? PART : WARP_ROWS, TILE = PART < WARP_COUNT ? PART : WARP_COUNT,
                MANY = TILE / LINE;
  for (int i = (int)threadIdx.x; i < PART; i += THREADS) {
    const int t = i % TILE, here = TURNED ? i - t + t % MANY * LINE + t / MANY : i, at = rank * PART + here;
    at_sum x = parts[here ^ SWAP];
#pragma unroll
    for (int r = 1; r < SPLIT; r++) x += parts[r * PART + (here ^ SWAP)];
    at_put<TURNED, READS_C>(a, m0 + at / WARP_COUNT * WARP_ROWS + at % WARP_ROWS, n0 + at % WARP_COUNT / WARP_ROWS,
                            matrix, x);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) at_rows(const __grid_constant__ at_arguments a) {
  at_sum *sums = (at_sum *)at_room, *parts = sums + WARPS_M * WARPS_K * WARP_ROOM;
  at_u64 *inbox = (at_u64 *)(parts + PART * SPLIT);
#if SPLIT > 1
  if (threadIdx.x == 0) at_inbox_open(inbox, PART * SPLIT * (int)sizeof(at_sum));
  at_cluster_arrive();
#endif
  at_begin();
  const int lane = (int)threadIdx.x % 32, warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
  const int rank = (int)blockIdx.x % SPLIT, tile = (int)blockIdx.x / SPLIT, group = lane / LANES;
  const int m0 = tile / TILES_N * BLOCK_ROWS, n0 = tile % TILES_N * COLS;
  const int row = m0 + warp / WARPS_K * WARP_ROWS + lane % LANES * WIDE;
  const int share = ((a.k + WARPS_K * SPLIT - 1) / (WARPS_K * SPLIT) + CHUNK - 1) / CHUNK * CHUNK;
  const int part = (warp % WARPS_K * SPLIT + rank) * share, begin = part < a.k ? part : a.k;
  const int end = a.k - begin < share ? a.k : begin + share;
  const at_i64 matrix = blockIdx.y;
  at_large large;
  large.end = row < a.m ? end - group : begin;
  large.rows = a.m - row;
  large.step = GROUPS * a.lda;
  large.from = at_matrix(a.a, a.stride_a, matrix) + (at_i64)row * SIZE + (begin + group) * a.lda;
  at_small small;
  small.from = at_matrix(a.b, a.stride_b, matrix) + n0 * (SMALL_K ? a.ldb : (at_i64)SIZE) + begin * (SMALL_K ? SIZE : a.ldb);
#if SMALL_K
  small.from += lane / SPAN * a.ldb + lane % SPAN * SIZE;
#endif
  small.ld = a.ldb;
  small.end = end;
  small.cols = a.n - n0;
  at_in *mine = (at_in *)sums + warp * WARP_ROOM;
#if STAGED
  at_in *larges = mine + ROOMS * ROOM;
#else
  uint4 ring[AHEAD];
#pragma unroll
  for (int u = 0; u < AHEAD; u++) ring[u] = at_fetch(large, begin + u * GROUPS);
#endif
#pragma unroll
  for (int r = 0; r < ROOMS - 1; r++) {
    if (begin + r * CHUNK < end) {
      at_bring(mine + r * ROOM, small, begin + r * CHUNK, lane);
#if STAGED
      at_bring_large(larges + r * LARGE, large, begin + r * CHUNK, lane);
#endif
    }
    at_copies_commit();
  }
  at_sums sum = {};
  unsigned room = 0;
#pragma unroll 2
  for (int chunk = begin; chunk < end; chunk += CHUNK) {
    at_copies_wait<ROOMS - 2>();
    __syncwarp(); /* the chunk is there, and the room before it is done with */
    const at_in *s = mine + room * ROOM + group * PITCH;
    const int later = chunk + (ROOMS - 1) * CHUNK;
    const unsigned free = (room + ROOMS - 1) % ROOMS;
    if (later < end) {
      at_bring(mine + free * ROOM, small, later, lane);
#if STAGED
      at_bring_large(larges + free * LARGE, large, later, lane);
#endif
    }
    at_copies_commit();
    const unsigned now = room;
    room = (room + 1) % ROOMS;
#if STAGED
    const at_in *l = larges + now * LARGE + lane * WIDE;
    constexpr int MANY = AHEAD;
#pragma unroll MANY
    for (int i = 0; i < STEPS; i++) at_add(sum, *(const uint4 *)(l + i * (32 * WIDE)), s + i * (GROUPS * PITCH));
#else
#pragma unroll 1
    for (int i = 0; i < STEPS; i += AHEAD) {
      const int next = chunk + (i + AHEAD) * GROUPS;
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const uint4 x = ring[u];
        ring[u] = at_fetch(large, EXACT ? next : next + u * GROUPS);
        at_add(sum, x, s + (i + u) * (GROUPS * PITCH));
      }
    }
#endif
  }
  __syncwarp(); /* the last room is done with */
  at_put_down((at_sum *)mine, sum, lane);
#if SPLIT > 1
  at_cluster_await(); /* the others have opened their inboxes */
#endif
  __syncthreads();
  at_give(sums, parts, inbox, rank);
#if SPLIT > 1
  at_inbox_wait(inbox);
#else
  __syncthreads();
#endif
  at_take(a, parts, rank, m0, n0, matrix);
}
