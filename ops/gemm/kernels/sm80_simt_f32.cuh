/* SPDX-License-Identifier: Apache-2.0
 * sm80_simt_f32.cuh: how threads multiply tiles of f32 without tensor cores, for block_tile.cuh's kernel, which stands
 * behind it. In shared memory a tile is lines of one k each, whichever way it lies in memory: what lies along k is
 * turned by its copies, of an element each. A warp's lanes are LANES_M x LANES_N; each makes RM x RN sums, in blocks of
 * 4 x 4 that are LANES_M or LANES_N blocks apart. */
#ifndef TM
#define TM 64
#define TN 64
#define BK 16
#define STAGES 4
#define WARPS_M 2
#define WARPS_N 1
#define WARPS_K 4
#define LANES_M 4
#define SPLIT 1
#define PARTS 1
#define X_K 0 /* X lies along k */
#define Y_K 1
#define BYTES_X 16 /* that a copy may have, of what lies along its rows */
#define BYTES_Y 16
#define BYTES_D 16 /* of C too */
#define TURNED 0   /* D lies along n */
#define READS_C 0
#define RAGGED_M 0 /* m is no multiple of TM */
#define RAGGED_N 0
#define RAGGED_K 0
#define EARLY 0 /* steps whose bytes are asked for before what comes first is done */
#define WHOLE 0 /* a block has no more steps than stages */
#define BLOCKS 1
#define BOUND 0 /* sums lie in registers by pairs: at_put_down */
#endif

#define KERNEL at_simt
#define GAP_TURNED 4
#define SUMS_BY_PAIRS BOUND
#define PAD_X 0
#define PAD_Y 0
#define THREADS (32 * WARPS_M * WARPS_N * WARPS_K)
#define SIZE ((int)sizeof(at_in))
#define SIZE_D ((int)sizeof(at_out))
#define WM (TM / WARPS_M) /* of a warp */
#define WN (TN / WARPS_N)
#define LANES_N (32 / LANES_M)
#define RM (WM / LANES_M) /* of a thread */
#define RN (WN / LANES_N)
#define ORDERED (WHOLE ? STAGES : STAGES - 1) /* steps on their way */

/* ---- tiles in shared memory ---- */

/* ROWS of an operand and BK of k. Lines that are written across, by copies of 8 k and 4 rows a warp, have a gap between
 * them: so no two of these meet in a bank. */
template <int ROWS, bool ALONG_K, int BYTES, bool RAGGED_ROWS> struct at_tile {
  static constexpr int PITCH = ROWS + (ALONG_K ? 4 : 0), SPACE = PITCH * BK * SIZE, UNIT = ALONG_K ? SIZE : BYTES,
                       UNITS = ALONG_K ? 8 : ROWS * SIZE / UNIT, LINES = ALONG_K ? ROWS : BK, EACH = THREADS / UNITS,
                       TIMES = (LINES + EACH - 1) / EACH, MORE = ALONG_K ? BK / 8 : 1;
  static_assert(THREADS % UNITS == 0, "a thread keeps its place within a line");
  const char *from; /* this thread's first unit of the next step */
  at_i64 ld;
  int line, at; /* its line in memory, its unit within */
  int rows, k;  /* that are left from the tile's first row, from the next step on */

  __device__ __forceinline__ void start(const char *matrix, at_i64 lead, int row, int all_rows, int first_k, int last_k,
                                        int) {
    ld = lead;
    line = (int)threadIdx.x / UNITS, at = (int)threadIdx.x % UNITS;
    rows = all_rows - row, k = last_k - first_k;
    from = matrix + (ALONG_K ? row * ld + (at_i64)first_k * SIZE : first_k * ld + (at_i64)row * SIZE) + line * ld +
           at * UNIT;
  }

  /* Bytes that count of a unit in line `l`, MORE units further. */
  __device__ __forceinline__ int valid(int l, int more) const {
    constexpr bool ENDS = ALONG_K ? RAGGED_K : RAGGED_ROWS, FEWER = ALONG_K ? RAGGED_ROWS : RAGGED_K;
    if (FEWER && l >= (ALONG_K ? rows : k)) return 0;
    if (!ENDS) return UNIT;
    const int left = (ALONG_K ? k : rows) * SIZE - (at + more) * UNIT;
    return left < 0 ? 0 : left < UNIT ? left : UNIT;
  }

  /* Some of the next step's copies into `stage` are ordered: those of part `part` of `parts`. */
  __device__ __forceinline__ void order_part(char *stage, int part, int parts) const {
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
      const int l = line + i * EACH;
      if (LINES % EACH != 0 && l >= LINES) continue;
      const char *p = from + i * EACH * ld;
#pragma unroll
      for (int j = 0; j < MORE; j++) {
        if ((i * MORE + j) * parts / (TIMES * MORE) != part) continue;
        const int to = ALONG_K ? (at + j * UNITS) * PITCH + l : l * PITCH + at * (UNIT / SIZE),
                  count = valid(l, j * UNITS);
        at_copy<UNIT>(stage + to * SIZE, p + j * UNITS * UNIT, count);
      }
    }
  }

  __device__ __forceinline__ void advance() {
    from += ALONG_K ? (at_i64)(BK * SIZE) : BK * ld;
    k -= BK;
  }

  __device__ __forceinline__ void order(char *stage) {
    order_part(stage, 0, 1);
    advance();
  }
};

typedef at_tile<TM, X_K, BYTES_X, RAGGED_M> at_tile_x;
typedef at_tile<TN, Y_K, BYTES_Y, RAGGED_N> at_tile_y;
constexpr int STAGE_BYTES = at_tile_x::SPACE + at_tile_y::SPACE;

/* ---- what threads take and make ---- */

constexpr int STEPS = BK / WARPS_K, CHUNK = STEPS < 16 ? STEPS : 16, /* that are unrolled */
    EVERY = CHUNK < 4 ? CHUNK : 4;                                   /* steps of them have copies */
static_assert(IN == 0 && OUT == 0 && RM % 4 == 0 && RN % 4 == 0 && CHUNK % 2 == 0, "");

typedef at_sum at_sums[RM][RN];

/* Two lanes beside each other take the same of X, two that are two apart the same of Y: so shared memory serves half a
 * warp at a time. */
AT_INLINE int at_lane_m(int lane) {
  return (lane >> 1 & 1) | (lane >> 2 & (LANES_M - 2));
}
AT_INLINE int at_lane_n(int lane) {
  return (lane & 1) | (lane >> 1 & 2) | (LANES_M == 4 ? lane >> 2 & 4 : 0);
}

struct at_pieces {
  at_in x[RM], y[RN];
};

AT_INLINE void at_pick(at_pieces &p, const at_in *x, const at_in *y) {
#pragma unroll
  for (int i = 0; i < RM; i += 4) *(at_pack<at_in, 4> *)(p.x + i) = *(const at_pack<at_in, 4> *)(x + i * LANES_M);
#pragma unroll
  for (int j = 0; j < RN; j += 4) *(at_pack<at_in, 4> *)(p.y + j) = *(const at_pack<at_in, 4> *)(y + j * LANES_N);
}

/* There and back along the shorter side, or where sums are bound along D's: neighbours share an element of X or Y,
 * which is read from the registers once. */
AT_INLINE void at_add(at_sums &sum, const at_pieces &p) {
  constexpr bool ACROSS = BOUND ? TURNED : RM > RN;
  constexpr int OUTER = ACROSS ? RM : RN, INNER = ACROSS ? RN : RM;
#pragma unroll
  for (int i = 0; i < OUTER; i++)
#pragma unroll
    for (int j = 0; j < INNER; j++) {
      const int at = i % 2 ? INNER - 1 - j : j, row = ACROSS ? i : at, col = ACROSS ? at : i;
      sum[row][col] = at_multiply_add(p.x[row], p.y[col], sum[row][col]);
    }
}

/* This family's loop over steps is its own: tiles are ordered while others are multiplied, a few copies at a time, so
 * that they do not stand in the way of what is picked up; and what the next step begins with is picked up before this
 * one's last products, which hide the barrier. */
#define OWN_LOOP 1

/* `m` and `n` are the warp's place within the tile. ORDERED steps are on their way into `room`. */
AT_INLINE void at_run(at_sums &sum, at_tile_x &x, at_tile_y &y, char *room, int steps, int m, int n, int warp_k,
                      int lane) {
  constexpr int PX = at_tile_x::PITCH, PY = at_tile_y::PITCH;
  const at_in *first_x = (const at_in *)room + warp_k * STEPS * PX + m + at_lane_m(lane) * 4,
              *first_y = (const at_in *)(room + at_tile_x::SPACE) + warp_k * STEPS * PY + n + at_lane_n(lane) * 4;
  const at_in *from_x = first_x, *from_y = first_y;
  int now = 0, next = STAGES - 1; /* stages */
  at_pieces p[2];
  at_copies_wait<ORDERED - 1>();
  __syncthreads();
  at_pick(p[0], from_x, from_y);
#pragma unroll 1
  for (int s = 0; s < steps; s++) {
    const bool more = !WHOLE && s + ORDERED < steps;
    char *to = room + next * STAGE_BYTES;
#pragma unroll 1
    for (int first = 0; first < STEPS; first += CHUNK) {
#pragma unroll
      for (int i = 0; i < CHUNK; i++) {
        if (more && first == 0 && i % EVERY == 0) {
          x.order_part(to, i / EVERY, CHUNK / EVERY);
          y.order_part(to + at_tile_x::SPACE, i / EVERY, CHUNK / EVERY);
        }
        if (i + 1 < CHUNK) {
          at_pick(p[(i + 1) % 2], from_x + (i + 1) * PX, from_y + (i + 1) * PY);
        } else {
          from_x += CHUNK * PX, from_y += CHUNK * PY;
          if (first + CHUNK == STEPS) {
            at_copies_commit();
            at_copies_wait<ORDERED - 1>();
            __syncthreads(); /* the next step is there for all, and this one is picked up */
            now = now + 1 == STAGES ? 0 : now + 1;
            from_x = first_x + now * (STAGE_BYTES / SIZE), from_y = first_y + now * (STAGE_BYTES / SIZE);
          }
          at_pick(p[0], from_x, from_y); /* after the last step: what is not used */
        }
        at_add(sum, p[i % 2]);
      }
    }
    x.advance();
    y.advance();
    next = next + 1 == STAGES ? 0 : next + 1;
  }
}

/* x, in another register, as far as the compiler can know. */
AT_INLINE at_sum at_other(at_sum x, at_u32 zero) {
  return __uint_as_float(__float_as_uint(x) ^ zero);
}

/* The thread's sums among the block's, in lines of PITCH along D's contiguous side. What is stored four at a time binds
 * the registers of the sums. Registers lie in two banks, even and odd, each of which gives a product one word a cycle.
 * So either nothing is bound (`zero` is 0, which no compiler knows), or the sums of two neighbours change places, here
 * and in what reads them: then a sum and the element of X or Y that it takes next to it, which come from memory four at
 * a time too, lie in different banks. */
template <int PITCH> AT_INLINE void at_put_down(at_sum *to, const at_sums &sum, int m, int n, int lane, at_u32 zero) {
#pragma unroll
  for (int i = 0; i < RM; i += 4)
#pragma unroll
    for (int j = 0; j < RN; j += 4) {
      const int row = m + i * LANES_M + at_lane_m(lane) * 4, col = n + j * LANES_N + at_lane_n(lane) * 4;
#pragma unroll
      for (int e = 0; e < 4; e++) {
        at_pack<at_sum, 4> some;
#pragma unroll
        for (int f = 0; f < 4; f++) {
          const int from = BOUND ? f ^ 1 : f;
          const at_sum x = TURNED ? sum[i + e][j + from] : sum[i + from][j + e];
          some.x[f] = BOUND ? x : at_other(x, zero);
        }
        *(at_pack<at_sum, 4> *)(to + (TURNED ? (row + e) * PITCH + col : (col + e) * PITCH + row)) = some;
      }
    }
}
