/* SPDX-License-Identifier: Apache-2.0
 * sm80_mma_tile.cuh: the sizes of sm80_mma.cuh's kernels, and how tiles of X and Y come into shared memory. A tile lies
 * there as it does in memory, along k or along its rows: lines of 16-byte pieces, whose order within a line changes
 * from line to line, so that neither copies nor tensor cores meet in a bank. kernel.cuh stands in front of it. */
#ifndef TM
#define TM 64
#define TN 64
#define BK 64
#define STAGES 4
#define WARPS_M 2
#define WARPS_N 2
#define WARPS_K 1
#define SPLIT 1
#define PARTS 1
#define X_K 1 /* X lies along k */
#define Y_K 1
#define BYTES_X 16 /* that a copy may have; 2: it goes through registers, one step ahead */
#define BYTES_Y 16
#define PAD_X 0 /* X is first copied to the workspace, lines at multiples of 16 bytes: phase 2 */
#define PAD_Y 0
#define BYTES_D 16 /* of C too */
#define TURNED 0   /* D lies along n */
#define READS_C 0
#define RAGGED_M 0 /* m is no multiple of TM */
#define RAGGED_N 0
#define RAGGED_K 0
#define EARLY 0 /* steps whose bytes are asked for before what comes first is done */
#define WHOLE 0 /* a block has no more steps than stages */
#endif

#define KERNEL at_mma
#define GAP_TURNED 8 /* sums between lines of D, where they lie along n */
#define THREADS (32 * WARPS_M * WARPS_N * WARPS_K)
#define SIZE ((int)sizeof(at_in))
#define SIZE_D ((int)sizeof(at_out))
#define WIDE (16 / SIZE)
#define WM (TM / WARPS_M) /* of a warp */
#define WN (TN / WARPS_N)
#define ORDERED (WHOLE ? STAGES : STAGES - 1) /* steps on their way */

#ifndef BLOCKS
#define BLOCKS 1
#endif

/* ---- tiles in shared memory ---- */

/* Where piece `piece` of line `line` lies. Halves are picked up by rows of 8 pieces of as many lines; f32 and f64 by
 * pairs of elements, a lane's pairs of steps or of rows. */
template <int PIECES, bool ALONG_K> AT_INLINE int at_place(int line, int piece) {
  constexpr int TURNS = PIECES < 8 ? PIECES : 8;
#if IN >= 2
  const int turn = line / (8 / TURNS) % TURNS;
#else
  const int turn = !ALONG_K      ? line / 2 % 4 * 2
                   : SIZE == 8   ? line % 2 * 4
                   : PIECES >= 8 ? line % 4 * 2
                                 : line / 2 % 4 * 2;
#endif
  return (line * PIECES + (piece ^ turn % TURNS)) * 16;
}

/* An operand's tile: ROWS of it, along k or along the rows. BYTES a copy. */
template <int ROWS, bool ALONG_K, int BYTES, bool RAGGED_ROWS> struct at_tile {
  static constexpr int LINES = ALONG_K ? ROWS : BK, LINE = (ALONG_K ? BK : ROWS) * SIZE, PIECES = LINE / 16,
                       UNIT = BYTES < 4 ? 16 : BYTES, UNITS = LINE / UNIT, EACH = THREADS / UNITS,
                       TIMES = (LINES + EACH - 1) / EACH, SPACE = LINE * LINES;
  static_assert(THREADS % UNITS == 0, "a thread keeps its place within a line");
  const char *from; /* this thread's first unit of the next step */
  at_i64 ld;
  int line, at; /* its line, the byte within */
  int rows, k;  /* that are left from the tile's first row, from the next step on */
#if BYTES_X < 4 || BYTES_Y < 4
  const char *begin, *end; /* of the matrix */
  uint4 low[BYTES < 4 ? TIMES : 1], high[BYTES < 4 ? TIMES : 1];
  at_u32 skip[BYTES < 4 ? TIMES : 1]; /* bytes of `low` in front of the unit, and 16 times the bytes that count */
#endif

  __device__ __forceinline__ void start(const char *matrix, at_i64 lead, int row, int all_rows, int first_k, int last_k,
                                        int all_k) {
    ld = lead;
    line = (int)threadIdx.x / UNITS, at = (int)threadIdx.x % UNITS * UNIT;
    rows = all_rows - row, k = last_k - first_k;
    from = matrix + (ALONG_K ? row * ld + (at_i64)first_k * SIZE : first_k * ld + (at_i64)row * SIZE) + line * ld + at;
#if BYTES_X < 4 || BYTES_Y < 4
    begin = matrix;
    end = matrix + (ALONG_K ? (all_rows - 1) * ld + (at_i64)all_k * SIZE : (all_k - 1) * ld + (at_i64)all_rows * SIZE);
#endif
  }

  /* Bytes that count of this thread's unit in line `l`. */
  __device__ __forceinline__ int valid(int l) const {
    constexpr bool ENDS = ALONG_K ? RAGGED_K : RAGGED_ROWS, FEWER = ALONG_K ? RAGGED_ROWS : RAGGED_K;
    if (FEWER && l >= (ALONG_K ? rows : k)) return 0;
    if (!ENDS) return UNIT;
    const int left = (ALONG_K ? k : rows) * SIZE - at;
    return left < 0 ? 0 : left < UNIT ? left : UNIT;
  }

  /* The next step's copies into `stage` are ordered; or, through registers, its loads. */
  __device__ __forceinline__ void order(char *stage) {
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
      const int l = line + i * EACH;
      if (LINES % EACH != 0 && l >= LINES) continue;
      const char *p = from + i * EACH * ld;
      const int count = valid(l);
      if constexpr (BYTES >= 4)
        at_copy<UNIT>(stage + at_place<PIECES, ALONG_K>(l, at / 16) + at % 16, count ? p : from - line * ld - at,
                      count);
#if BYTES_X < 4 || BYTES_Y < 4
      else
        fetch(i, p, count);
#endif
    }
    from += ALONG_K ? (at_i64)(BK * SIZE) : BK * ld;
    k -= BK;
  }

#if BYTES_X < 4 || BYTES_Y < 4
  __device__ __forceinline__ void fetch(int i, const char *p, int count) {
    const int off = (int)((at_i64)p & 15);
    low[i] = high[i] = make_uint4(0, 0, 0, 0);
    if (count > 0) low[i] = at_word(p - off, begin, end);
    if (off + count > 16) high[i] = at_word(p - off + 16, begin, end);
    skip[i] = (at_u32)(off + 16 * count);
  }

  /* What `order` loaded, in its place in `stage`. */
  __device__ __forceinline__ void settle(char *stage) {
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
      const int l = line + i * EACH;
      if (LINES % EACH != 0 && l >= LINES) continue;
      *(uint4 *)(stage + at_place<PIECES, ALONG_K>(l, at / 16)) =
          at_shifted(low[i], high[i], (int)skip[i] & 15, (int)skip[i] / 16);
    }
  }
#endif
};

typedef at_tile<TM, X_K, BYTES_X, RAGGED_M> at_tile_x;
typedef at_tile<TN, Y_K, BYTES_Y, RAGGED_N> at_tile_y;
constexpr int STAGE_BYTES = at_tile_x::SPACE + at_tile_y::SPACE;
