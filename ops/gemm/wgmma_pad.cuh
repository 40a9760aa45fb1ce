/* SPDX-License-Identifier: Apache-2.0
 * wgmma_pad.cuh: a kernel of its own, launched before wgmma.cuh's where tensor copies cannot take X or Y as they lie: it
 * copies the one or both to the workspace, X first, in lines that begin at multiples of 16 bytes. What is between a line's
 * end and the next one's begin is of no account: tensor copies put zeros there. kernel.cuh stands in front of it. */
#ifndef PAD_X
#define PAD_X 1
#define PAD_Y 1
#define X_K 1
#define Y_K 1
#endif

#define THREADS 256
#define EACH 2 /* pieces of 16 bytes that a thread copies: AT_WGMMA_PIECES of wgmma_maps.h has the product */

/* Lines as they lie, of one matrix or of a batch. */
struct at_lines {
  const char *from;
  char *to;
  at_i64 ld, stride;
  at_u32 count, length, pieces, total; /* of a matrix; bytes of a line; pieces of a line, of all */
};

AT_INLINE at_lines at_lines_of(const char *from, char *to, at_i64 ld, at_i64 stride, int count, int length, int batch) {
  at_lines l = {from, to, ld, stride, (at_u32)count, (at_u32)length * 2, ((at_u32)length + 7) / 8, 0};
  l.total = l.pieces * l.count * (stride == 0 ? 1u : (at_u32)batch);
  return l;
}

AT_INLINE at_i64 at_copied_bytes(const at_lines &l) {
  return ((at_i64)l.total * 16 + 255) / 256 * 256;
}

AT_INLINE at_u32 at_blocks_of(const at_lines &l) {
  return (l.total + THREADS * EACH - 1) / (THREADS * EACH);
}

/* 16 bytes at a multiple of 16; those outside [begin, end) are not read. */
AT_INLINE uint4 at_word(const char *p, const char *begin, const char *end) {
  if (p >= begin && p + 16 <= end) return *(const uint4 *)p;
  union {
    uint4 whole;
    at_u16 x[8];
  } u;
  u.whole = make_uint4(0, 0, 0, 0);
#pragma unroll 1
  for (int i = 0; i < 8; i++)
    if (p + 2 * i >= begin && p + 2 * i < end) u.x[i] = *(const at_u16 *)(p + 2 * i);
  return u.whole;
}

/* The 16 bytes from byte `off` of two words on. */
AT_INLINE uint4 at_from_both(uint4 low, uint4 high, int off) {
  const bool two = off & 8, one = off & 4;
  const at_u32 a = two ? low.z : low.x, b = two ? low.w : low.y, c = two ? high.x : low.z, d = two ? high.y : low.w,
               e = two ? high.z : high.x, f = two ? high.w : high.y;
  const at_u32 v = one ? b : a, w = one ? c : b, x = one ? d : c, y = one ? e : d, z = one ? f : e,
               bits = off & 2 ? 16u : 0u;
  return make_uint4(__funnelshift_r(v, w, bits), __funnelshift_r(w, x, bits), __funnelshift_r(x, y, bits),
                    __funnelshift_r(y, z, bits));
}

/* A piece of a line: where it lies, and what of its matrix may be read. */
struct at_piece {
  const char *source, *begin, *end;
  int left; /* bytes of the line from there on; 0: there is no such piece */
};

AT_INLINE at_piece at_piece_of(const at_lines &l, at_u32 index) {
  at_piece p = {0, 0, 0, 0};
  if (index >= l.total) return p;
  const at_u32 line = index / l.pieces, at = (index - line * l.pieces) * 16, matrix = line / l.count;
  p.begin = l.from + matrix * l.stride;
  p.end = p.begin + (l.count - 1) * l.ld + l.length;
  p.source = p.begin + (line - matrix * l.count) * l.ld + at;
  p.left = (int)(l.length - at);
  return p;
}

extern "C" __global__ void __launch_bounds__(THREADS) at_wgmma(const __grid_constant__ at_arguments a) {
  at_let_next();
  at_lines l = at_lines_of(a.a, a.sums, a.lda, a.stride_a, X_K ? a.m : a.k, X_K ? a.k : a.m, a.batch);
  at_u32 block = blockIdx.x;
  if (PAD_Y && (!PAD_X || block >= at_blocks_of(l))) {
    if (PAD_X) block -= at_blocks_of(l);
    l = at_lines_of(a.b, a.sums + (PAD_X ? at_copied_bytes(l) : 0), a.ldb, a.stride_b, Y_K ? a.n : a.k,
                    Y_K ? a.k : a.n, a.batch);
  }
  const at_u32 first = block * (THREADS * EACH) + threadIdx.x;
  at_piece p[EACH];
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    p[i] = at_piece_of(l, first + i * THREADS);
    if (p[i].left > 0) at_early_line(p[i].source);
  }
  at_wait_for_last();
  uint4 low[EACH], high[EACH];
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int off = (int)((at_u64)p[i].source & 15);
    low[i] = high[i] = make_uint4(0, 0, 0, 0);
    if (p[i].left > 0) low[i] = at_word(p[i].source - off, p[i].begin, p[i].end);
    if (off > 0 && p[i].left > 16 - off) high[i] = at_word(p[i].source - off + 16, p[i].begin, p[i].end);
  }
#pragma unroll
  for (int i = 0; i < EACH; i++)
    if (p[i].left > 0)
      *(uint4 *)(l.to + (at_i64)(first + i * THREADS) * 16) =
          at_from_both(low[i], high[i], (int)((at_u64)p[i].source & 15));
}
