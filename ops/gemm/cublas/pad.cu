/* SPDX-License-Identifier: Apache-2.0
 * pad.cu: copies up to three matrices, column by column, to columns that start elsewhere: into the workspace with
 * padded columns (the padding is zeroed), and back. Columns start at any multiple of ELEMENT_BYTES (2, 4 or 8) on both
 * sides. A thread writes 16-byte pieces of the destination out of two aligned 16-byte loads, shifted into place.
 * Compiled at run time; pad.h has the arguments. It is also C, so that a test can run it on the host. */
#ifndef ELEMENT_BYTES
#define ELEMENT_BYTES 2
#endif
#define THREADS 256u
#define EACH 2 /* pieces a thread: their loads are in flight together */
#define PIECE 16

#if ELEMENT_BYTES == 2
typedef unsigned short element;
#elif ELEMENT_BYTES == 4
typedef unsigned int element;
#elif ELEMENT_BYTES == 8
typedef unsigned long long element;
#else
#error "ELEMENT_BYTES should be 2, 4 or 8"
#endif

/* n / d for n < 2^31 without a division. */
struct divider {
  unsigned int factor, shift;
};

/* at_pad_matrix of pad.h; ld, stride and extent in bytes. */
struct pad_matrix {
  const char *source;
  char *destination;
  long long ld_source, ld_destination, stride_source, stride_destination;
  long long extent;      /* of the source: nothing outside is read */
  int bytes;             /* of a column of the source */
  int bytes_destination; /* of a column as written: the rest is zeros */
  unsigned int pieces;   /* of a column */
  unsigned int columns;  /* of one matrix of the batch, as written */
  unsigned int total;    /* pieces of all columns of the batch, below 2^31 */
  unsigned int first_block;
  struct divider by_pieces, by_columns;
  unsigned int columns_source; /* those that come from the source: the rest is zeros */
  unsigned int unused;
};

struct pad_arguments {
  struct pad_matrix matrix[3];
};

/* 16 aligned bytes of the destination. Bytes [begin, end) are written; [begin, valid) come from the source, the rest
 * are zeros. */
struct piece {
  const char *source; /* of byte 0, even if that lies before the column */
  char *destination;
  int begin, end, valid;
  int aligned; /* loaded by 16-byte loads; else element by element, because they would leave the source */
  uint4 low, high;
};

static __device__ __forceinline__ unsigned int divide(unsigned int n, struct divider d) {
  return (__umulhi(n, d.factor) + n) >> d.shift;
}

static __device__ __forceinline__ void locate(struct piece *p, const struct pad_matrix *m, unsigned int index) {
  const unsigned int all = divide(index, m->by_pieces), batch = divide(all, m->by_columns),
                     column = all - batch * m->columns;
  char *to = m->destination + batch * m->stride_destination + column * m->ld_destination;
  const int offset = (int)(index - all * m->pieces) * PIECE - (int)((unsigned long long)to & (PIECE - 1));
  p->destination = to + offset;
  p->source = m->source + (batch * m->stride_source + column * m->ld_source) + offset;
  p->begin = max(0, -offset);
  p->end = min(PIECE, m->bytes_destination - offset);
  p->valid = column < m->columns_source ? min(PIECE, m->bytes - offset) : 0;
}

/* The loads, which may be in flight until shifted() needs them. */
static __device__ __forceinline__ void load(struct piece *p, const struct pad_matrix *m) {
  const int skew = (int)((unsigned long long)p->source & (PIECE - 1));
  const long long at = p->source - m->source - skew;
  const int low = p->begin<PIECE - skew, high = p->valid> PIECE - skew;
  p->aligned = at >= (low ? 0 : -PIECE) && at + (high ? 2 * PIECE : PIECE) <= m->extent;
  p->low = p->high = make_uint4(0, 0, 0, 0);
  if (p->aligned && low) p->low = __ldg((const uint4 *)(m->source + at));
  if (p->aligned && high) p->high = __ldg((const uint4 *)(m->source + at + PIECE));
}

static __device__ __forceinline__ void put_element(unsigned int word[4], int i, element value) {
#if ELEMENT_BYTES == 2
  word[i / 2] |= (unsigned int)value << (i % 2 * 16);
#elif ELEMENT_BYTES == 4
  word[i] = value;
#else
  word[2 * i] = (unsigned int)value;
  word[2 * i + 1] = (unsigned int)(value >> 32);
#endif
}

static __device__ __forceinline__ element get_element(const unsigned int word[4], int i) {
#if ELEMENT_BYTES == 2
  return (element)(word[i / 2] >> (i % 2 * 16));
#elif ELEMENT_BYTES == 4
  return word[i];
#else
  return word[2 * i] | (element)word[2 * i + 1] << 32;
#endif
}

static __device__ __forceinline__ void load_elements(unsigned int word[4], const struct piece *p) {
  word[0] = word[1] = word[2] = word[3] = 0;
#pragma unroll
  for (int i = 0; i < PIECE / ELEMENT_BYTES; i++)
    if (i * ELEMENT_BYTES >= p->begin && i * ELEMENT_BYTES < p->valid)
      put_element(word, i, __ldg((const element *)(p->source + i * ELEMENT_BYTES)));
}

/* The 16 bytes that begin at the source's place in the two loads. */
static __device__ __forceinline__ void shifted(unsigned int word[4], const struct piece *p) {
  const unsigned int skew = (unsigned int)(unsigned long long)p->source & (PIECE - 1);
  unsigned int w[8] = {p->low.x, p->low.y, p->low.z, p->low.w, p->high.x, p->high.y, p->high.z, p->high.w};
  if (skew & 8) {
#pragma unroll
    for (int i = 0; i < 6; i++) w[i] = w[i + 2];
  }
#if ELEMENT_BYTES < 8
  if (skew & 4) {
#pragma unroll
    for (int i = 0; i < 5; i++) w[i] = w[i + 1];
  }
#endif
#pragma unroll
  for (int i = 0; i < 4; i++) word[i] = ELEMENT_BYTES == 2 ? __funnelshift_r(w[i], w[i + 1], (skew & 2) * 8) : w[i];
}

static __device__ __forceinline__ void store(const struct piece *p) {
  unsigned int word[4];
  if (p->aligned) {
    shifted(word, p);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (p->valid < i * 4 + 4) word[i] = ELEMENT_BYTES == 2 && p->valid > i * 4 ? word[i] & 0xffff : 0;
    }
  } else {
    load_elements(word, p);
  }
  if (p->begin == 0 && p->end == PIECE) {
    *(uint4 *)p->destination = make_uint4(word[0], word[1], word[2], word[3]);
    return;
  }
#pragma unroll
  for (int i = 0; i < PIECE / ELEMENT_BYTES; i++)
    if (i * ELEMENT_BYTES >= p->begin && i * ELEMENT_BYTES < p->end)
      *(element *)(p->destination + i * ELEMENT_BYTES) = get_element(word, i);
}

#ifdef __cplusplus
extern "C"
#endif
    __global__ void
    __launch_bounds__(THREADS) at_pad(const __grid_constant__ struct pad_arguments arguments) {
  const int which = blockIdx.x < arguments.matrix[1].first_block   ? 0
                    : blockIdx.x < arguments.matrix[2].first_block ? 1
                                                                   : 2;
  const struct pad_matrix *m = &arguments.matrix[which];
  const unsigned int first = (blockIdx.x - m->first_block) * (THREADS * EACH) + threadIdx.x;
  struct piece pieces[EACH];
#pragma unroll
  for (unsigned int i = 0; i < EACH; i++) {
    pieces[i].begin = pieces[i].end = 0;
    if (first + i * THREADS >= m->total) continue;
    locate(&pieces[i], m, first + i * THREADS);
    load(&pieces[i], m);
  }
#pragma unroll
  for (unsigned int i = 0; i < EACH; i++)
    if (pieces[i].begin < pieces[i].end) store(&pieces[i]);
}
