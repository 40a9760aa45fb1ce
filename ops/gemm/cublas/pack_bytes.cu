/* SPDX-License-Identifier: Apache-2.0
 * pack_bytes.cu: matrices of bytes so that each line, a row of op(A) or a column of op(B), lies contiguous along k, with
 * zeros up to a multiple of 16, and lines of zeros behind the last. A block of 256 threads moves 64 lines of 64 bytes. */
typedef unsigned char at_u8;
typedef long long at_i64;

enum { TILE = 64, ROW = TILE + 4 };

/* pack_arguments of cuda_packed.c */
struct pack_arguments {
  const at_u8 *from;
  at_u8 *to;
  at_i64 by_line, by_depth, stride_from, stride_to; /* to: lines are `width` apart */
  int lines, depth, width, tiles_line, tiles_depth, lines_to;
};

extern "C" __global__ void __launch_bounds__(256) at_pack_bytes(const pack_arguments a) {
  __shared__ __align__(4) at_u8 tile[TILE * ROW];
  const at_i64 matrix = blockIdx.y;
  const int line = (int)(blockIdx.x % (unsigned)a.tiles_line) * TILE, p = (int)(blockIdx.x / (unsigned)a.tiles_line) * TILE;
  const bool deep = a.by_depth == 1;
  const at_u8 *const from = a.from + matrix * a.stride_from;
  at_u8 *const to = a.to + matrix * a.stride_to;
#pragma unroll 4
  for (int i = (int)threadIdx.x; i < TILE * TILE; i += 256) {
    const int fast = i % TILE, slow = i / TILE, l = deep ? slow : fast, q = deep ? fast : slow;
    at_u8 x = 0;
    if (line + l < a.lines && p + q < a.depth) x = from[(line + l) * a.by_line + (p + q) * a.by_depth];
    tile[l * ROW + q] = x;
  }
  __syncthreads();
#pragma unroll 4
  for (int i = (int)threadIdx.x; i < TILE * TILE / 4; i += 256) {
    const int l = i / (TILE / 4), q = i % (TILE / 4) * 4;
    if (line + l < a.lines_to && p + q < a.width)
      *(unsigned int *)(to + (at_i64)(line + l) * a.width + p + q) = *(const unsigned int *)(tile + l * ROW + q);
  }
}
