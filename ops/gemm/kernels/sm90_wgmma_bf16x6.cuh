/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_bf16x6.cuh: f32 products by the tensor cores of bf16, as exact as those in f32. Each element is the sum of
 * three bf16 numbers, 8 bits each: x = x0 + x1 + x2 without a rest. Of the nine products of two such sums the six
 * largest are added, the small ones first; the three that are left out are below 2^-24 of the largest (Henry, Tang,
 * Heinecke: Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations, 2019). Tensor
 * cores cut off what they add to large sums, so every 64 steps along k have a sum of their own, which is added by f32
 * instructions.
 *
 * The kernel before, with BEFORE, writes the three parts of op(B)' (the rows of the product) and of A (its columns) to
 * the workspace, as the tiles of shared memory lie: lines of 64 steps along k, whose eight pieces of 16 bytes are
 * turned by the line's number. ROWS: warp groups, 64 rows of a tile each. COLUMNS: of a tile. STAGES: of 64 steps in
 * shared memory. X_K, Y_K: B, A lie along k. BYTES_X, BYTES_Y, BYTES_D: that may be read or written together. READS_C:
 * there may be a C.
 *
 * Infinities, NaN and numbers that have no three such parts are told by a flag for each 64 x 64 elements; tiles that
 * they concern are made by f32 instructions. */
#define STEP 64
#define UNIT_X (64 * STEP * 2)      /* bytes of one part of 64 rows */
#define UNIT_Y (COLUMNS * STEP * 2) /* of COLUMNS columns */
#define TILE_X (3 * UNIT_X * ROWS)
#define STAGE_BYTES (TILE_X + 3 * UNIT_Y)
#define WORKERS (128 * ROWS) /* and a warp that fetches */
#ifdef BEFORE
#define THREADS 256
#else
#define THREADS (WORKERS + 32)
#endif
#define SUMS (COLUMNS / 2) /* of a thread */

AT_INLINE int at_parts_of(int size, int unit) {
  return (size + unit - 1) / unit;
}

/* ---- the workspace: parts of X, parts of Y, flags of X, flags of Y; each for all matrices ---- */

struct at_places {
  int steps, units_x, units_y; /* along k; of 64 rows; of COLUMNS columns */
  at_i64 bytes_x, bytes_y;     /* of a matrix */
  char *x, *y;
  at_u32 *flags_x, *flags_y; /* of 64 rows or columns by 64 steps */

  AT_INLINE at_places of(const at_arguments &a, at_i64 matrix) {
    at_places p;
    p.steps = at_parts_of(a.k, STEP);
    p.units_x = at_parts_of(a.n, 64 * ROWS) * ROWS;
    p.units_y = at_parts_of(a.m, COLUMNS);
    p.bytes_x = (at_i64)p.units_x * p.steps * (3 * UNIT_X);
    p.bytes_y = (at_i64)p.units_y * p.steps * (3 * UNIT_Y);
    const at_i64 count_x = (at_i64)p.units_x * p.steps, count_y = (at_i64)p.units_y * (COLUMNS / 64) * p.steps;
    at_u32 *flags = (at_u32 *)(a.sums + (p.bytes_x + p.bytes_y) * a.batch);
    p.x = a.sums + matrix * p.bytes_x;
    p.y = a.sums + p.bytes_x * a.batch + matrix * p.bytes_y;
    p.flags_x = flags + matrix * count_x;
    p.flags_y = flags + count_x * a.batch + matrix * count_y;
    return p;
  }
};

#ifdef BEFORE
/* ---- parts ---- */

/* No infinity or NaN, nothing that rounding to bf16 makes infinite, and large enough for the last part to be exact. */
AT_INLINE bool at_has_parts(float x) {
  const at_u32 bits = __float_as_uint(x) & 0x7fffffff;
  return bits < 0x7f7f8000 && (bits >= 0x0d800000 || bits == 0); /* 2^-100 */
}

/* Elements line, line + 1 ... of `left` that there are. */
template <int BYTES> AT_INLINE void at_four(float out[4], const float *from, int left) {
  constexpr int EACH = BYTES / 4;
#pragma unroll
  for (int i = 0; i < 4; i += EACH) {
    at_pack<float, EACH> some = {};
    if (i + EACH <= left)
      some = *(const at_pack<float, EACH> *)(from + i);
    else
      for (int e = 0; e < EACH; e++)
        if (i + e < left) some.x[e] = from[i + e];
#pragma unroll
    for (int e = 0; e < EACH; e++) out[i + e] = some.x[e];
  }
}

/* 64 rows by 64 steps of a matrix into t[row][step]; whether all have parts. */
template <bool ALONG_K, int BYTES>
AT_INLINE bool at_take(float (*t)[STEP + 1], const char *matrix, at_i64 ld, int row, int rows, int step, int steps) {
  bool good = true;
  for (int at = (int)threadIdx.x; at < 64 * STEP / 4; at += THREADS) {
    const int line = at / 16, place = at % 16 * 4, r = row + (ALONG_K ? line : place), p = step + (ALONG_K ? place : line);
    const int left = ALONG_K ? (r < rows ? steps - p : 0) : (p < steps ? rows - r : 0);
    float x[4];
    at_four<BYTES>(x, (const float *)(matrix + (ALONG_K ? r : p) * ld) + (ALONG_K ? p : r), left);
#pragma unroll
    for (int e = 0; e < 4; e++) {
      good = good && at_has_parts(x[e]);
      t[ALONG_K ? line : place + e][ALONG_K ? place + e : line] = x[e];
    }
  }
  return good;
}

/* The parts of two neighbours. */
AT_INLINE void at_split(at_u32 out[3], float x, float y) {
#pragma unroll
  for (int i = 0; i < 3; i++) {
    const at_u16 low = at_to_bf16(x), high = at_to_bf16(y);
    out[i] = low | (at_u32)high << 16;
    x -= at_from_bf16(low);
    y -= at_from_bf16(high);
  }
}

/* A 64 x 64 block of X or Y, `block` of them along the rows, `step` along k. */
template <bool ALONG_K, int BYTES, int LINES>
AT_INLINE void at_block(char *parts, at_u32 *flags, const char *matrix, at_i64 ld, int block, int rows, int step, int k,
                        int steps) {
  __shared__ float t[64][STEP + 1];
  const bool good = at_take<ALONG_K, BYTES>(t, matrix, ld, block * 64, rows, step * STEP, k);
  const int bad = __syncthreads_or(!good);
  if (threadIdx.x == 0) flags[block * steps + step] = (at_u32)bad;
  for (int at = (int)threadIdx.x; at < 64 * 8; at += THREADS) {
    const int row = at / 8, piece = at % 8, line = (block * 64 + row) % LINES;
    uint4 part[3];
    at_u32 two[3];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      at_split(two, t[row][piece * 8 + 2 * e], t[row][piece * 8 + 2 * e + 1]);
#pragma unroll
      for (int i = 0; i < 3; i++) (&part[i].x)[e] = two[i];
    }
    char *to = parts + ((at_i64)((block * 64 + row) / LINES) * steps + step) * (3 * LINES * STEP * 2) +
               line * (STEP * 2) + (piece ^ (line & 7)) * 16;
#pragma unroll
    for (int i = 0; i < 3; i++) *(uint4 *)(to + i * (LINES * STEP * 2)) = part[i];
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 4) at_bf16x6(const __grid_constant__ at_arguments a) {
  at_let_next();
  at_wait_for_last();
  const at_i64 matrix = blockIdx.y;
  const at_places p = at_places::of(a, matrix);
  const int block = (int)blockIdx.x / p.steps, step = (int)blockIdx.x % p.steps;
  if (block < p.units_x)
    at_block<X_K, BYTES_X, 64>(p.x, p.flags_x, a.b + matrix * a.stride_b, a.ldb, block, a.n, step, a.k, p.steps);
  else
    at_block<Y_K, BYTES_Y, COLUMNS>(p.y, p.flags_y, a.a + matrix * a.stride_a, a.lda, block - p.units_x, a.m, step, a.k,
                                    p.steps);
}

#else
/* ---- products ---- */

AT_INLINE void at_fetch(char *to, const char *from, int bytes, at_u64 *signal) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   at_shared(to)),
               "l"(from), "r"(bytes), "r"(at_shared(signal))
               : "memory");
}

/* How a matrix of lines of 128 bytes, 8 of them 1,024 bytes apart, lies in shared memory (PTX: matrix descriptor,
 * 128-byte swizzle). */
AT_INLINE at_u64 at_descriptor(const char *p) {
  return (at_u64)((at_shared(p) & 0x3ffff) >> 4) | (at_u64)1 << 16 | (at_u64)(1024 >> 4) << 32 | (at_u64)1 << 62;
}

/* sum = x y (+ sum) for 64 rows, COLUMNS columns, 16 steps: of a warp group. */
AT_INLINE void at_wgmma(float (&d)[SUMS], at_u64 x, at_u64 y, int add) {
#define AT_8(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#if COLUMNS == 128
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
               "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "
               "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
               "}, %64, %65, p, 1, 1, 0, 0;\n}"
               : AT_8(0), AT_8(8), AT_8(16), AT_8(24), AT_8(32), AT_8(40), AT_8(48), AT_8(56)
               : "l"(x), "l"(y), "r"(add));
#else
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\nwgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
               "%23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;\n}"
               : AT_8(0), AT_8(8), AT_8(16), AT_8(24)
               : "l"(x), "l"(y), "r"(add));
#endif
}

/* 64 steps: the six products of parts, the smallest first. */
AT_INLINE void at_multiply(float (&part)[SUMS], const char *x, const char *y) {
  constexpr int OF_X[6] = {2, 1, 0, 1, 0, 0}, OF_Y[6] = {0, 1, 2, 0, 1, 0};
  const at_u64 dx = at_descriptor(x), dy = at_descriptor(y);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int pair = 0; pair < 6; pair++)
#pragma unroll
    for (int s = 0; s < STEP * 2; s += 32)
      at_wgmma(part, dx + (at_u64)((OF_X[pair] * UNIT_X + s) >> 4), dy + (at_u64)((OF_Y[pair] * UNIT_Y + s) >> 4),
               pair + s > 0);
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < SUMS; i++) asm volatile("" : "+f"(part[i])::"memory");
}

/* Two neighbours of a line of D. */
AT_INLINE void at_put_two(const at_arguments &a, int m, int n, at_i64 matrix, float x, float y) {
#if BYTES_D >= 8
  if (m + 1 < a.m && n < a.n && (!READS_C || a.beta == 0.0)) {
    const at_pack<float, 2> two = {{at_finish(a, x), at_finish(a, y)}};
    *(at_pack<float, 2> *)(a.d + matrix * a.stride_d + n * a.ldd + (at_i64)m * 4) = two;
    return;
  }
#endif
  at_put<false, READS_C>(a, m, n, matrix, x);
  at_put<false, READS_C>(a, m + 1, n, matrix, y);
}

/* By f32 instructions: for what has no parts. A thread makes 8 rows of COLUMNS / 16 columns. */
AT_INLINE void at_by_hand(const at_arguments &a, at_i64 matrix, int n0, int m0) {
  constexpr int DEEP = 8, EACH = COLUMNS / 16, ALL = 64 * ROWS;
  float *x = (float *)at_room, *y = x + DEEP * ALL;
  const int tid = (int)threadIdx.x, row = tid / 16 * 8, column = tid % 16;
  float sum[8][EACH] = {};
  for (int k0 = 0; k0 < a.k; k0 += DEEP) {
    for (int i = tid; i < DEEP * (ALL + COLUMNS); i += WORKERS) {
      const bool is_x = i < DEEP * ALL;
      const int at = is_x ? i : i - DEEP * ALL, lines = is_x ? ALL : COLUMNS, r = at % lines, p = k0 + at / lines;
      const int line = (is_x ? n0 : m0) + r;
      const char *from = is_x ? a.b + matrix * a.stride_b : a.a + matrix * a.stride_a;
      const at_i64 ld = is_x ? a.ldb : a.lda, along = is_x ? X_K : Y_K;
      const bool there = p < a.k && line < (is_x ? a.n : a.m);
      x[i] = there ? *(const float *)(from + (along ? line * ld + (at_i64)p * 4 : p * ld + (at_i64)line * 4)) : 0.0f;
    }
    at_team_wait<WORKERS>(0);
    const int deep = a.k - k0 < DEEP ? a.k - k0 : DEEP;
    for (int p = 0; p < deep; p++)
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < EACH; j++)
          sum[i][j] = __fmaf_rn(x[p * ALL + row + i], y[p * COLUMNS + column + 16 * j], sum[i][j]);
    at_team_wait<WORKERS>(0);
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < EACH; j++)
      at_put<false, READS_C>(a, m0 + column + 16 * j, n0 + row + i, matrix, sum[i][j]);
}

/* Whether all that the tile is made of has parts; the same answer for all threads. */
AT_INLINE bool at_all_have_parts(const at_places &p, int tile_x, int tile_y) {
  at_u32 bad = 0;
  for (int s = (int)threadIdx.x; s < p.steps; s += THREADS) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) bad |= p.flags_x[(tile_x * ROWS + i) * p.steps + s];
#pragma unroll
    for (int i = 0; i < COLUMNS / 64; i++) bad |= p.flags_y[(tile_y * (COLUMNS / 64) + i) * p.steps + s];
  }
  return !__syncthreads_or((int)bad);
}

/* Tiles in an order in which those that run together share rows and columns. */
AT_INLINE void at_tile_of(int tile, int tiles_x, int tiles_y, int &tile_x, int &tile_y) {
  constexpr int GROUP = 8;
  const int group = tile / (GROUP * tiles_y), within = tile % (GROUP * tiles_y), first = group * GROUP,
            size = tiles_x - first < GROUP ? tiles_x - first : GROUP;
  tile_x = first + within % size;
  tile_y = within / size;
}

AT_INLINE void at_fetch_all(const at_places &p, char *room, at_u64 *full, at_u64 *empty, int tile_x, int tile_y) {
  const char *x = p.x + (at_i64)tile_x * ROWS * p.steps * (3 * UNIT_X),
             *y = p.y + (at_i64)tile_y * p.steps * (3 * UNIT_Y);
  for (int s = 0, at = 0, parity = 1; s < p.steps; s++) {
    char *to = room + at * STAGE_BYTES;
    at_barrier_wait(&empty[at], parity);
    at_barrier_expect(&full[at], STAGE_BYTES);
#pragma unroll
    for (int i = 0; i < ROWS; i++)
      at_fetch(to + i * (3 * UNIT_X), x + ((at_i64)i * p.steps + s) * (3 * UNIT_X), 3 * UNIT_X, &full[at]);
    at_fetch(to + TILE_X, y + (at_i64)s * (3 * UNIT_Y), 3 * UNIT_Y, &full[at]);
    if (++at == STAGES) at = 0, parity ^= 1;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) at_bf16x6(const __grid_constant__ at_arguments a) {
  __shared__ at_u64 full[STAGES], empty[STAGES];
  at_let_next();
  const at_i64 matrix = blockIdx.y;
  const at_places p = at_places::of(a, matrix);
  const int tid = (int)threadIdx.x, group = tid / 128;
  char *room = (char *)(((at_u64)at_room + 1023) & ~(at_u64)1023);
  int tile_x, tile_y;
  at_tile_of((int)blockIdx.x, p.units_x / ROWS, p.units_y, tile_x, tile_y);
  if (tid == 0) {
    for (int s = 0; s < STAGES; s++) {
      at_barrier_start(&full[s], 1);
      at_barrier_start(&empty[s], ROWS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  at_wait_for_last();
  if (!at_all_have_parts(p, tile_x, tile_y)) {
    if (tid < WORKERS) at_by_hand(a, matrix, tile_x * 64 * ROWS, tile_y * COLUMNS);
    return;
  }
  if (group == ROWS) {
    if (tid % 32 == 0) at_fetch_all(p, room, full, empty, tile_x, tile_y);
    return;
  }
  float sum[SUMS] = {}, part[SUMS];
#pragma unroll 1
  for (int s = 0, at = 0, parity = 0; s < p.steps; s++) {
    const char *x = room + at * STAGE_BYTES;
    at_barrier_wait(&full[at], parity);
    at_multiply(part, x + group * (3 * UNIT_X), x + TILE_X);
    if (tid % 128 == 0) at_barrier_arrive(&empty[at]);
#pragma unroll
    for (int i = 0; i < SUMS; i++) sum[i] += part[i];
    if (++at == STAGES) at = 0, parity ^= 1;
  }
  const int lane = tid % 32, row = (tile_x * ROWS + group) * 64 + tid / 32 % 4 * 16 + lane / 4,
            column = tile_y * COLUMNS + lane % 4 * 2;
#pragma unroll
  for (int j = 0; j < SUMS / 4; j++) {
    at_put_two(a, column + 8 * j, row, matrix, sum[4 * j], sum[4 * j + 1]);
    at_put_two(a, column + 8 * j, row + 8, matrix, sum[4 * j + 2], sum[4 * j + 3]);
  }
}
#endif
