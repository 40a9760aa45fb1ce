/* SPDX-License-Identifier: Apache-2.0
 * wgmma_sums.cuh: from a warpgroup's sums to D: through shared memory, so that lines of D are written as wide as they may
 * be. wgmma_tile.cuh stands in front of it. */

/* Without C elements of 16 bits are made of the sums at once; otherwise the sums pass. */
#define ROUNDED (OUT >= 2 && !READS_C && !WHOLE)
#if ROUNDED
typedef at_out at_passed;
#else
typedef float at_passed;
#endif

#define PACK (16 / (int)sizeof(at_passed))       /* that a thread takes at a time, at least */
#define EACH_D (BYTES_D / SIZE_D)                /* elements that a store may have */
#define UNIT_D (EACH_D < PACK ? PACK : EACH_D)
/* Columns of a tile that pass together. */
#define PASSING (WHOLE ? TN : ROUNDED && TN % 64 == 0 ? 64 : TN % 32 == 0 ? 32 : 16)
#define ROWS_D (WHOLE ? TM : 64) /* likewise rows */
#define LINE_D (TURNED ? PASSING : ROWS_D)
#define LINES_D (TURNED ? ROWS_D : PASSING)
#define PITCH_D (LINE_D + (ROUNDED || TURNED ? 8 : 4))
#define PASS_BYTES (LINES_D * PITCH_D * (int)sizeof(at_passed))
static_assert(BARRIERS >= (WHOLE ? PASS_BYTES : STAGES * STAGE_BYTES + GROUPS * PASS_BYTES) &&
                  BARRIERS >= STAGES * STAGE_BYTES && PASS_BYTES % 16 == 0,
              "there is room");

/* Four matrices of 8 x 8 halves, a line of each wherever its lanes say; or a column. */
template <bool TURNED_> AT_INLINE void at_store_matrices(const void *to, const at_u32 x[4]) {
  if constexpr (TURNED_)
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at_shared(to)),
                 "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                 : "memory");
  else
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at_shared(to)), "r"(x[0]),
                 "r"(x[1]), "r"(x[2]), "r"(x[3])
                 : "memory");
}

AT_INLINE void at_group_wait(int group) {
  asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
}
AT_INLINE void at_makers_wait() {
  asm volatile("bar.sync 7, %0;" ::"n"(MAKERS) : "memory");
}

/* Columns FIRST on of the 64 rows that the warpgroup has, which are row `row` on of what passes together. */
template <int FIRST> AT_INLINE void at_put_down(const at_arguments &a, at_passed *to, const float (&sum)[TN / 2], int row) {
  const int lane = (int)threadIdx.x % 32, at = row + (int)threadIdx.x / 32 % 4 * 16;
#if ROUNDED
#pragma unroll
  for (int j = 0; j < PASSING; j += 16) {
    at_u32 x[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = (FIRST + j) / 2 + 2 * e;
      x[e] = (at_u32)at_finish(a, sum[i]) | (at_u32)at_finish(a, sum[i + 1]) << 16;
    }
    const int r = at + lane / 8 % 2 * 8, c = j + lane / 16 * 8, i = lane % 8;
    at_store_matrices<!TURNED>(to + (TURNED ? (r + i) * PITCH_D + c : (c + i) * PITCH_D + r), x);
  }
#else
#pragma unroll
  for (int j = 0; j < PASSING / 8; j++)
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int r = at + lane / 4 + e / 2 * 8, c = 8 * j + lane % 4 * 2 + e % 2;
      to[TURNED ? r * PITCH_D + c : c * PITCH_D + r] = sum[FIRST / 2 + 4 * j + e];
    }
#endif
}

#if ROUNDED
AT_INLINE at_out at_made(const at_arguments &a, at_out x) {
  (void)a;
  return x;
}
AT_INLINE at_out at_made(const at_arguments &a, at_out x, at_out c) {
  (void)a, (void)c;
  return x;
}
#else
AT_INLINE at_out at_made(const at_arguments &a, float x) {
  return at_finish(a, x);
}
AT_INLINE at_out at_made(const at_arguments &a, float x, at_out c) {
  return at_finish(a, x, c);
}
#endif

/* COUNT side by side. */
template <int COUNT> struct at_row { at_passed x[COUNT]; };

template <int COUNT> AT_INLINE void at_take(at_row<COUNT> &out, const at_passed *p) {
#pragma unroll
  for (int i = 0; i < COUNT; i += PACK) {
    const at_pack<at_passed, PACK> some = *(const at_pack<at_passed, PACK> *)(p + i);
#pragma unroll
    for (int e = 0; e < PACK; e++) out.x[i + e] = some.x[e];
  }
}

/* Elements of D, COUNT side by side from (line, at) on. */
template <int COUNT>
AT_INLINE void at_write(const at_arguments &a, at_i64 matrix, int line, int at, const at_row<COUNT> &sum) {
  constexpr int STORE = EACH_D < COUNT ? EACH_D : COUNT;
  const int lines = TURNED ? a.m : a.n, length = TURNED ? a.n : a.m;
  if ((TURNED ? RAGGED_M : RAGGED_N) && line >= lines) return;
  char *d = a.d + matrix * a.stride_d + line * a.ldd + (at_i64)at * SIZE_D;
  const char *c = READS_C ? a.c + matrix * a.stride_c + line * a.ldc + (at_i64)at * SIZE_D : 0;
  const bool with_c = READS_C && a.beta != 0.0;
#pragma unroll
  for (int i = 0; i < COUNT; i += STORE) {
    at_pack<at_out, STORE> out;
    if (!(TURNED ? RAGGED_N : RAGGED_M) || at + i + STORE <= length) {
      if (with_c) {
        const at_pack<at_out, STORE> old = *(const at_pack<at_out, STORE> *)(c + i * SIZE_D);
#pragma unroll
        for (int e = 0; e < STORE; e++) out.x[e] = at_made(a, sum.x[i + e], old.x[e]);
      } else {
#pragma unroll
        for (int e = 0; e < STORE; e++) out.x[e] = at_made(a, sum.x[i + e]);
      }
      *(at_pack<at_out, STORE> *)(d + i * SIZE_D) = out;
    } else {
#pragma unroll
      for (int e = 0; e < STORE; e++)
        if (at + i + e < length)
          *(at_out *)(d + (i + e) * SIZE_D) =
              with_c ? at_made(a, sum.x[i + e], *(const at_out *)(c + (i + e) * SIZE_D)) : at_made(a, sum.x[i + e]);
    }
  }
}

#if !WHOLE

/* A warpgroup's columns FIRST on and all after them, from (m, n) on. */
template <int FIRST>
AT_INLINE void at_pass(const at_arguments &a, at_passed *room, const float (&sum)[TN / 2], int m, int n, at_i64 matrix,
                       int group) {
  constexpr int UNITS = LINE_D / UNIT_D, ALL = UNITS * LINES_D;
  at_group_wait(group);
  at_put_down<FIRST>(a, room, sum, 0);
  at_group_wait(group);
#pragma unroll
  for (int i = (int)threadIdx.x % 128; i < ALL; i += 128) {
    const int line = i / UNITS, at = i % UNITS * UNIT_D;
    at_row<UNIT_D> x;
    at_take(x, room + line * PITCH_D + at);
    at_write(a, matrix, (TURNED ? m : n + FIRST) + line, (TURNED ? n + FIRST : m) + at, x);
  }
  if constexpr (FIRST + PASSING < TN) at_pass<FIRST + PASSING>(a, room, sum, m, n, matrix, group);
}

#else

AT_INLINE float *at_partial_sums(const at_arguments &a, int part, at_i64 matrix, int tiles, int tile) {
  return (float *)a.sums + (((at_i64)part * a.batch + matrix) * tiles + tile) * (TM * TN);
}

/* The sums of the cluster's blocks that share k, of which the first is `first`, in their order: to D or, as the lines of
 * shared memory, to `part`. Each block does its share. */
AT_INLINE void at_gather(const at_arguments &a, const float *sums, int first, int share, int m0, int n0, at_i64 matrix,
                         float *part) {
  constexpr int UNIT = PARTS > 1 ? PACK : UNIT_D, UNITS = LINE_D / UNIT, ALL = UNITS * LINES_D;
#pragma unroll 2
  for (int i = (int)threadIdx.x + share * MAKERS; i < ALL; i += MAKERS * SPLIT) {
    const int line = i / UNITS, at = i % UNITS * UNIT;
    at_row<UNIT> x;
#if SPLIT > 1
    at_row<UNIT> of[SPLIT];
#pragma unroll
    for (int r = 0; r < SPLIT; r++)
#pragma unroll
      for (int e = 0; e < UNIT; e += PACK)
        at_pack_of_block(of[r].x + e, sums + line * PITCH_D + at + e, (at_u32)(first + r * AROUND));
    x = of[0];
#pragma unroll
    for (int r = 1; r < SPLIT; r++)
#pragma unroll
      for (int e = 0; e < UNIT; e++) x.x[e] += of[r].x[e];
#else
    at_take(x, sums + line * PITCH_D + at);
#endif
#if PARTS > 1
    at_pack<float, UNIT> out;
#pragma unroll
    for (int e = 0; e < UNIT; e++) out.x[e] = x.x[e];
    *(at_pack<float, UNIT> *)(part + line * LINE_D + at) = out;
#else
    at_write(a, matrix, (TURNED ? m0 : n0) + line, (TURNED ? n0 : m0) + at, x);
#endif
  }
}

#if PARTS > 1
/* What the parts left in the workspace: 128 threads make 64 elements of a tile, 8 of them each 4; these add every eighth
 * part, and then what they have, in order. */
AT_INLINE void at_add_parts(const at_arguments &a, int tiles, int tile, int tile_m, int tile_n, at_i64 matrix, int which) {
  constexpr int TEAMS = 8, MINE = (PARTS + TEAMS - 1) / TEAMS;
  float(*room)[64] = (float(*)[64])at_room;
  const int team = (int)threadIdx.x / 16, i = which * 64 + (int)threadIdx.x % 16 * 4;
  const float *p = at_partial_sums(a, 0, matrix, tiles, tile) + i;
  const at_i64 apart = (at_i64)a.batch * tiles * (TM * TN);
  float4 some[MINE], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int e = 0; e < MINE; e++)
    some[e] = e * TEAMS + team < PARTS ? *(const float4 *)(p + (e * TEAMS + team) * apart) : sum;
#pragma unroll
  for (int e = 0; e < MINE; e++) sum.x += some[e].x, sum.y += some[e].y, sum.z += some[e].z, sum.w += some[e].w;
  *(float4 *)&room[team][threadIdx.x % 16 * 4] = sum;
  __syncthreads();
  if (team > 0) return;
  at_row<4> x;
#pragma unroll
  for (int e = 0; e < 4; e++) {
    x.x[e] = 0.0f;
#pragma unroll
    for (int t = 0; t < TEAMS; t++) x.x[e] += room[t][threadIdx.x * 4 + e];
  }
  at_write(a, matrix, (TURNED ? tile_m * TM : tile_n * TN) + i / LINE_D,
           (TURNED ? tile_n * TN : tile_m * TM) + i % LINE_D, x);
}
#endif
#endif
