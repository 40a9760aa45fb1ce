/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b_epilogue.cuh: from a warpgroup's sums to D: through shared memory, so that lines of D are written as
 * wide as they may be. sm90_wgmma_16b_tile.cuh stands in front of it. */

/* Without matrices to read or to write besides D elements of 16 bits are made of the sums at once; otherwise the sums
 * pass. */
#define ROUNDED (OUT >= 2 && !READS_C && !MATRICES)
#if ROUNDED
typedef at_out at_passed;
#else
typedef float at_passed;
#endif

#define PACK (16 / (int)sizeof(at_passed))       /* that a thread takes at a time, at least */
#define EACH_D (BYTES_D / SIZE_D)                /* elements that a store may have */
/* Where D permits no wide stores, lanes write what lies side by side; single halves in pairs. */
#define PAIRS (ROUNDED && BYTES_D == 2)
#define UNIT_D (PAIRS ? 2 : BYTES_D < 16 || EACH_D > PACK ? EACH_D : PACK)
/* Columns of a tile that pass together. */
#define PASSING (ROUNDED && SPLIT == 1 && OWN % 64 == 0 ? 64 : OWN % 32 == 0 ? 32 : 16)
#define LINE_D (TURNED ? PASSING : 64)
#define LINES_D (TURNED ? 64 : PASSING)
#define PITCH_D (LINE_D + (ROUNDED || TURNED ? 8 : 4))
#define PASS_BYTES (LINES_D * PITCH_D * (int)sizeof(at_passed))
#define INBOX (STAGES * STAGE_BYTES + (PARTS > 1 ? 0 : GROUPS * PASS_BYTES)) /* where it is */
static_assert(BARRIERS >= INBOX + INBOX_BYTES && PASS_BYTES % 16 == 0 && OWN % 16 == 0, "there is room");

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

/* Columns FIRST on of 64 rows from m on; column 0 is n. */
template <int FIRST>
AT_INLINE void at_put_down(const at_arguments &a, at_passed *to, const float (&sum)[TN / 2], int m, int n) {
  const int lane = (int)threadIdx.x % 32, at = (int)threadIdx.x / 32 % 4 * 16;
#if ROUNDED
#pragma unroll
  for (int j = 0; j < PASSING; j += 16) {
    at_u32 x[4];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = (FIRST + j) / 2 + 2 * e;
      const int r = m + at + lane / 4 + i % 4 / 2 * 8, c = n + i / 4 * 8 + lane % 4 * 2;
      x[e] = (at_u32)at_finish_at(a, r, c, sum[i]) | (at_u32)at_finish_at(a, r, c + 1, sum[i + 1]) << 16;
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

#if PAIRS

/* What passed, to lines of D that begin at any element: two elements a lane, or, where the first two of a line do not
 * lie at a multiple of 4 bytes, those one further; the last lane then has the last of the line and the first. A
 * thread's lines are a multiple of 4 apart, so all or none of them are such. */
AT_INLINE void at_write_all(const at_arguments &a, at_i64 matrix, int line, int at, const at_passed *room) {
  constexpr int LANES = LINE_D / 2, APART = 4 * (32 / LANES), TIMES = LINES_D / APART, MOST = GROUPS > 1 && FM * TN >= 192 ? 2 : 8,
                SOME = TIMES < MOST ? TIMES : MOST;
  const int lane = (int)threadIdx.x % 32, i = lane % LANES, mine = (int)threadIdx.x % 128 / 32 * (32 / LANES) + lane / LANES,
            next = lane - i + (i + 1) % LANES;
  const int lines = (TURNED ? RAGGED_M : RAGGED_N) ? (TURNED ? a.m : a.n) - line - mine : LINES_D,
            left = (TURNED ? RAGGED_N : RAGGED_M) ? (TURNED ? a.n : a.m) - at - 2 * i : LINE_D + 1;
  const at_u32 *from = (const at_u32 *)room + mine * (PITCH_D / 2) + i;
  char *d = a.d + matrix * a.stride_d + (line + mine) * a.ldd + (at_i64)(at + 2 * i) * 2;
  const int odd = (int)((at_u64)d >> 1 & 1);
  const bool around = odd && i == LANES - 1, both = !around && left >= 2 + odd,
             one = around ? left >= 2 : left == 1 + odd, first = around && left + 2 * i >= 1;
  const at_i64 apart = APART * a.ldd;
  d += 2 * odd;
#pragma unroll
  for (int t = 0; t < TIMES; t += SOME) {
    at_u32 x[SOME], y[SOME];
#pragma unroll
    for (int s = 0; s < SOME; s++) x[s] = from[(t + s) * APART * (PITCH_D / 2)];
#pragma unroll
    for (int s = 0; s < SOME; s++) y[s] = __shfl_sync(0xffffffffu, x[s], next);
#pragma unroll
    for (int s = 0; s < SOME; s++) {
      const at_u32 two = __funnelshift_r(x[s], y[s], 16 * odd);
      if ((t + s) * APART < lines) {
        if (both) *(at_u32 *)d = two;
        if (one) *(at_u16 *)d = (at_u16)two;
        if (first) *(at_u16 *)(d - 2 * LINE_D + 2) = (at_u16)(two >> 16);
      }
      d += apart;
    }
  }
}

#elif ROUNDED

/* What passed are D's elements: as many at a time as a store may have, as words: of elements the compiler would load
 * each alone. */
typedef at_pack<at_u32, BYTES_D / 4> at_unit;

AT_INLINE void at_write_all(const at_arguments &a, at_i64 matrix, int line, int at, const at_passed *room) {
  constexpr int UNITS = LINE_D / UNIT_D, ALL = UNITS * LINES_D, TURNS = (ALL + 127) / 128,
                AT_A_TIME = BYTES_D < 16 ? (GROUPS > 1 && FM * TN >= 192 ? 1 : 4) : TURNS;
  const int lines = TURNED ? a.m : a.n, length = TURNED ? a.n : a.m;
#pragma unroll(AT_A_TIME)
  for (int t = 0; t < TURNS; t++) {
    const int i = (int)threadIdx.x % 128 + 128 * t, mine = line + i / UNITS, first = at + i % UNITS * UNIT_D;
    if (ALL % 128 != 0 && i >= ALL) break;
    if ((TURNED ? RAGGED_M : RAGGED_N) && mine >= lines) continue;
    const at_passed *from = room + i / UNITS * PITCH_D + i % UNITS * UNIT_D;
    char *d = a.d + matrix * a.stride_d + mine * a.ldd + (at_i64)first * SIZE_D;
    if (!(TURNED ? RAGGED_N : RAGGED_M) || first + UNIT_D <= length) {
      *(at_unit *)d = *(const at_unit *)from;
    } else {
#pragma unroll
      for (int e = 0; e < UNIT_D; e++)
        if (first + e < length) *(at_out *)(d + e * SIZE_D) = from[e];
    }
  }
}

#else

template <int COUNT> AT_INLINE void at_take(at_row<COUNT> &out, const at_passed *p) {
  if constexpr (COUNT < PACK) {
    const at_pack<at_passed, COUNT> some = *(const at_pack<at_passed, COUNT> *)p;
#pragma unroll
    for (int e = 0; e < COUNT; e++) out.x[e] = some.x[e];
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; i += PACK)
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                   : "=f"(out.x[i]), "=f"(out.x[i + 1]), "=f"(out.x[i + 2]), "=f"(out.x[i + 3])
                   : "r"(at_shared(p + i))
                   : "memory");
  }
}

/* What passed, to D. */
AT_INLINE void at_write_all(const at_arguments &a, at_i64 matrix, int line, int at, const at_passed *room) {
  constexpr int UNITS = LINE_D / UNIT_D, ALL = UNITS * LINES_D, TURNS = (ALL + 127) / 128,
                AT_A_TIME = BYTES_D < 16 ? (GROUPS > 1 && FM * TN >= 192 ? 1 : 4) : TURNS;
#pragma unroll(AT_A_TIME)
  for (int t = 0; t < TURNS; t++) {
    const int i = (int)threadIdx.x % 128 + 128 * t;
    if (ALL % 128 != 0 && i >= ALL) break;
    at_row<UNIT_D> x;
    at_take(x, room + i / UNITS * PITCH_D + i % UNITS * UNIT_D);
    at_write<AT_WRITE>(a, matrix, line + i / UNITS, at + i % UNITS * UNIT_D, x);
  }
}

#endif

/* A warpgroup's columns FIRST on and all after them up to END: 64 rows from m on, and column 0 is n. */
template <int FIRST, int END>
AT_INLINE void at_pass(const at_arguments &a, at_passed *room, const float (&sum)[TN / 2], int m, int n, at_i64 matrix,
                       int group) {
  at_group_wait(group);
  at_put_down<FIRST>(a, room, sum, m, n);
  at_group_wait(group);
  at_write_all(a, matrix, TURNED ? m : n + FIRST, TURNED ? n + FIRST : m, room);
  if constexpr (FIRST + PASSING < END) at_pass<FIRST + PASSING, END>(a, room, sum, m, n, matrix, group);
}

#if GATED
/* g and u of columns FIRST on of 64 rows of D from m on, column 0 being n, become f(g) u in g's place. */
template <int FIRST> AT_INLINE void at_gate_all(const at_arguments &a, at_sums &sum, int m, int n) {
  const int lane = (int)threadIdx.x % 32, at = (int)threadIdx.x / 32 % 4 * 16;
#pragma unroll
  for (int i = FIRST / 2; i < (FIRST + OWN) / 2; i++) {
    int r = m + at + lane / 4 + i % 4 / 2 * 8, c = n + i / 4 * 8 + lane % 4 * 2 + i % 2;
    r = r < a.m ? r : a.m - 1, c = c < a.n ? c : a.n - 1;
    float z[1] = {(float)a.alpha * sum[0][i]}, up[1] = {(float)a.alpha * sum[1][i]};
    at_gate<1, true>(a.epilogue, SWAPPED ? c : r, SWAPPED ? r : c, SWAPPED ? c : r + a.m, SWAPPED ? r + a.m : c, 1, z, up);
    sum[0][i] = z[0];
  }
}
#endif

#if SPLIT > 1

/* 16 bytes to `there` in the shared memory of a block of the cluster, whose barrier `theirs` counts them. */
AT_INLINE void at_send_sums(at_u32 there, at_u32 theirs, const float *x) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(there),
      "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3]), "r"(theirs)
      : "memory");
}

AT_INLINE at_u32 at_in_block(at_u32 shared, at_u32 rank) {
  at_u32 there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared), "r"(rank));
  return there;
}

/* The blocks that share k each get what the others have of their columns. `first`: that of them whose share is the
 * first. All blocks of the cluster have begun. */
AT_INLINE void at_send_all(const at_sums &sum, const char *inbox, at_u64 *arrived, int first, int mine) {
#pragma unroll
  for (int s = 0; s < SPLIT; s++) {
    if (s == mine) continue;
    const at_u32 rank = (at_u32)(first + s * AROUND), theirs = at_in_block(at_shared(arrived), rank),
                 there = at_in_block(at_shared(inbox), rank) +
                         (at_u32)((mine < s ? mine : mine - 1) * (TM * OWN * 4) + (int)threadIdx.x * 16);
#pragma unroll
    for (int f = 0; f < FM; f++)
#pragma unroll
      for (int j = 0; j < OWN / 8; j++)
        at_send_sums(there + (at_u32)((f * (OWN / 8) + j) * (MAKERS * 16)), theirs, &sum[f][s * (OWN / 2) + 4 * j]);
  }
}

/* What has come is added to columns FIRST on, in the order of the blocks. */
template <int FIRST> AT_INLINE void at_add_all(at_sums &sum, const char *inbox) {
#pragma unroll
  for (int s = 0; s < SPLIT - 1; s++)
#pragma unroll
    for (int f = 0; f < FM; f++)
#pragma unroll
      for (int j = 0; j < OWN / 8; j++) {
        const float4 x = *(const float4 *)(inbox + s * (TM * OWN * 4) + (f * (OWN / 8) + j) * (MAKERS * 16) +
                                           (int)threadIdx.x * 16);
        float *to = &sum[f][FIRST / 2 + 4 * j];
        to[0] += x.x, to[1] += x.y, to[2] += x.z, to[3] += x.w;
      }
}

#endif

#if PARTS > 1

/* Of a tile's sums, in the workspace: four of a thread lie together, then those of all threads of a block; then come
 * the thread's others, and the blocks of the cluster that share the tile. */
#define TILE_UNITS (TM * TN / 4)

AT_INLINE float4 *at_partial_sums(const at_arguments &a, int part, at_i64 matrix, int tiles, int tile) {
  return (float4 *)(a.sums + (at_i64)PADDED * 256) + (((at_i64)part * a.batch + matrix) * tiles + tile) * TILE_UNITS;
}

template <int FIRST> AT_INLINE void at_keep(float4 *tile, const at_sums &sum) {
  float4 *to = tile + FIRST / OWN * (TM * OWN / 4) + (int)threadIdx.x;
#pragma unroll
  for (int f = 0; f < FM; f++)
#pragma unroll
    for (int j = 0; j < OWN / 8; j++) {
      const float *x = &sum[f][FIRST / 2 + 4 * j];
      to[(f * (OWN / 8) + j) * MAKERS] = make_float4(x[0], x[1], x[2], x[3]);
    }
}

/* What the parts left in the workspace: 128 threads make 64 elements of a tile, 8 of them each 4; these add every
 * eighth part, and then what they have, in order. */
AT_INLINE void at_add_parts(const at_arguments &a, int tiles, int tile, int tile_m, int tile_n, at_i64 matrix, int which) {
  constexpr int TEAMS = 8, MINE = (PARTS + TEAMS - 1) / TEAMS;
  float4(*room)[16] = (float4(*)[16])at_room;
  const int team = (int)threadIdx.x / 16, unit = which * 16 + (int)threadIdx.x % 16;
  const float4 *p = at_partial_sums(a, 0, matrix, tiles, tile) + unit;
  const at_i64 apart = (at_i64)a.batch * tiles * TILE_UNITS;
  float4 some[MINE], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
  for (int e = 0; e < MINE; e++) some[e] = e * TEAMS + team < PARTS ? p[(e * TEAMS + team) * apart] : sum;
#pragma unroll
  for (int e = 0; e < MINE; e++) sum.x += some[e].x, sum.y += some[e].y, sum.z += some[e].z, sum.w += some[e].w;
  room[team][threadIdx.x % 16] = sum;
  __syncthreads();
  if (team >= 4) return;
  float x = 0.0f; /* of team 0 the first of each four, and so on */
#pragma unroll
  for (int t = 0; t < TEAMS; t++) x += ((const float *)&room[t][threadIdx.x % 16])[team];
  const int thread = unit % MAKERS, lane = thread % 32, j = unit / MAKERS % (OWN / 8), f = unit / MAKERS / (OWN / 8) % FM,
            share = unit / MAKERS / (OWN / 8) / FM;
  at_put<TURNED, READS_C>(
      a, tile_m * TM + thread / 128 * ROWS + f * 64 + thread / 32 % 4 * 16 + lane / 4 + team / 2 * 8,
      tile_n * TN + share * OWN + 8 * j + lane % 4 * 2 + team % 2, matrix, x);
}
#endif
