/* SPDX-License-Identifier: Apache-2.0
 * sm90_wgmma_16b_pad.cuh: a kernel of its own, launched before sm90_wgmma_16b.cuh's where tensor copies cannot take X
 * or Y as they lie: it copies the one or both to the workspace, X first, in lines that begin at multiples of 128 bytes.
 * What is between a line's end and the next one's begin is of no account: tensor copies put zeros there. kernel.cuh
 * stands in front of it. */
#ifndef PAD_X
#define PAD_X 1
#define PAD_Y 1
#define X_K 1
#define Y_K 1
#define HALVES 1 /* X has so many times m rows: 2 of a gated product */
#endif

#define THREADS 256
#define EACH 4 /* pieces of 16 bytes that a thread copies: AT_WGMMA_PIECES of sm90_tma_maps.h has the product */

/* Lines as they lie, of one matrix or of a batch. */
struct at_lines {
  const char *from;
  char *to;
  at_i64 ld, stride;
  at_u32 count, length, pieces, total; /* of a matrix; bytes of a line; pieces of a line, of all */
  at_u32 pitch, lines;                 /* bytes from a copied line to the next; of all matrices */
};

AT_INLINE at_lines at_lines_of(const char *from, char *to, at_i64 ld, at_i64 stride, int count, int length, int batch) {
  at_lines l = {from, to, ld, stride, (at_u32)count, (at_u32)length * 2, ((at_u32)length + 7) / 8, 0, 0, 0};
  l.lines = l.count * (stride == 0 ? 1u : (at_u32)batch);
  l.total = l.pieces * l.lines;
  l.pitch = (l.length + 127) / 128 * 128;
  return l;
}

AT_INLINE at_i64 at_copied_bytes(const at_lines &l) {
  return ((at_i64)l.lines * l.pitch + 255) / 256 * 256;
}

AT_INLINE at_u32 at_blocks_of(const at_lines &l) {
  return (l.total + THREADS * EACH - 1) / (THREADS * EACH);
}

/* Pieces, one of each THREADS: in which line the next one is, and which of that line. */
struct at_place {
  at_u32 line, piece, lines_on, pieces_on;
};

AT_INLINE at_place at_first_place(const at_lines &l, at_u32 index) {
  const at_u32 line = index / l.pieces, lines_on = THREADS / l.pieces;
  return {line, index - line * l.pieces, lines_on, THREADS - lines_on * l.pieces};
}

AT_INLINE void at_next_place(at_place &p, const at_lines &l) {
  p.piece += p.pieces_on;
  p.line += p.lines_on + (p.piece >= l.pieces ? 1 : 0);
  if (p.piece >= l.pieces) p.piece -= l.pieces;
}

/* What becomes a piece: two words around it, of which nothing outside the operand is read. */
struct at_around {
  const char *source, *begin, *end; /* of its matrix */
  char *to;
  uint4 low, high;
  bool is; /* there is such a piece */
};

AT_INLINE void at_find(at_around &x, const at_lines &l, const at_place &p, bool is) {
  const at_u32 matrix = l.lines > l.count ? p.line / l.count : 0;
  x.is = is;
  x.begin = l.from + matrix * l.stride;
  x.end = x.begin + (l.count - 1) * l.ld + l.length;
  x.to = l.to + (at_i64)p.line * l.pitch + p.piece * 16;
  x.source = x.begin + (p.line - matrix * l.count) * l.ld + p.piece * 16;
}

AT_INLINE void at_load(at_around &x) {
  const char *word = x.source - ((at_u64)x.source & 15);
  x.low = x.high = make_uint4(0, 0, 0, 0);
  if (!x.is) return;
  if (word >= x.begin && word + 32 <= x.end) {
    x.low = *(const uint4 *)word;
    x.high = *(const uint4 *)(word + 16);
  } else {
    x.low = at_word(word, x.begin, x.end);
    x.high = at_word(word + 16, x.begin, x.end);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS) at_wgmma(const __grid_constant__ at_arguments a) {
  at_let_next();
  at_lines l = at_lines_of(a.a, a.sums, a.lda, a.stride_a, X_K ? HALVES * a.m : a.k, X_K ? a.k : HALVES * a.m,
                           a.batch);
  at_u32 block = blockIdx.x;
  if (PAD_Y && (!PAD_X || block >= at_blocks_of(l))) {
    if (PAD_X) block -= at_blocks_of(l);
    l = at_lines_of(a.b, a.sums + (PAD_X ? at_copied_bytes(l) : 0), a.ldb, a.stride_b, Y_K ? a.n : a.k,
                    Y_K ? a.k : a.n, a.batch);
  }
  const at_u32 first = block * (THREADS * EACH) + threadIdx.x;
  at_around x[EACH];
  at_place p = at_first_place(l, first);
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    at_find(x[i], l, p, first + i * THREADS < l.total);
    if (x[i].is) at_early_line(x[i].source);
    at_next_place(p, l);
  }
  at_wait_for_last();
#pragma unroll
  for (int i = 0; i < EACH; i++) at_load(x[i]);
#pragma unroll
  for (int i = 0; i < EACH; i++)
    if (x[i].is)
      *(uint4 *)x[i].to = at_shifted(x[i].low, x[i].high, (int)((at_u64)x[i].source & 15), 16);
}
