/* SPDX-License-Identifier: Apache-2.0
 * pad_cases.h: launches of the padding kernel: what is copied, the memory before, and the memory that must be there
 * after it. */
#ifndef AT_TESTS_PAD_CASES_H
#define AT_TESTS_PAD_CASES_H

#include <stdlib.h>
#include <string.h>

#include "ops/gemm/cublas/pad.h"

#define PAD_GUARD 64 /* bytes around every destination */
#define PAD_UNTOUCHED 0xa5

/* One matrix. Shifts are in units of the grain, from a multiple of 16 bytes; gaps in elements. */
typedef struct pad_shape {
  int64_t rows, cols, batch;
  int gap, step; /* behind each column, and behind each matrix, of the unpadded side */
  int shift;     /* of the unpadded side */
  bool out;      /* from padded to unpadded */
  int zero_cols; /* columns of zeros behind each matrix, when padding */
} pad_shape;

typedef struct pad_case {
  size_t element[AT_PAD_MATRICES], grain;
  pad_shape shape[AT_PAD_MATRICES];
  int count;
} pad_case;

/* One matrix with its memory: source_bytes from source on, destination in the middle of memory_bytes. */
typedef struct pad_memory {
  at_pad_copy copy;
  size_t source_offset, source_bytes; /* the source begins here in a buffer aligned to 16 bytes and ends with it */
  size_t destination_offset, destination_bytes; /* likewise; all bytes are compared */
  unsigned char *source, *expected;             /* whole buffers on the host */
} pad_memory;

static const pad_case pad_cases[] = {
    {{2}, 2, {{1, 1, 1, 0, 0, 1, false, 0}}, 1},
    {{2}, 2, {{1, 1, 1, 0, 0, 7, true, 0}}, 1},
    {{2}, 2, {{8, 3, 1, 0, 0, 0, false, 0}}, 1},
    {{2}, 2, {{999, 64, 1, 0, 0, 0, false, 0}}, 1},
    {{2}, 2, {{999, 64, 1, 0, 0, 3, true, 0}}, 1},
    {{2}, 2, {{999, 61, 2, 0, 3, 1, false, 3}}, 1},
    {{2, 2, 2},
     2,
     {{1003, 37, 1, 0, 0, 1, false, 0}, {999, 5, 2, 2, 3, 5, false, 0}, {17, 101, 1, 3, 0, 7, false, 0}},
     3},
    {{2, 2, 4}, 2, {{33, 9, 3, 1, 1, 2, false, 0}, {1, 77, 1, 0, 0, 3, false, 0}, {31, 20, 3, 0, 0, 6, false, 0}}, 3},
    {{4, 4}, 4, {{1001, 33, 1, 0, 0, 1, false, 0}, {5, 5, 5, 2, 1, 3, false, 0}}, 2},
    {{4}, 4, {{1001, 33, 2, 0, 0, 2, true, 0}}, 1},
    {{4}, 2, {{77, 13, 2, 1, 0, 5, true, 0}}, 1},
    {{8, 8, 8}, 8, {{63, 65, 1, 0, 0, 1, false, 0}, {1, 1, 9, 0, 4, 0, false, 0}, {511, 3, 1, 2, 0, 1, false, 0}}, 3},
    {{8}, 8, {{63, 65, 2, 0, 1, 1, true, 0}}, 1},
    {{8}, 2, {{7, 30, 1, 1, 0, 3, false, 0}}, 1},
};

/* A small generator, the same everywhere. */
static inline unsigned pad_random(uint64_t *state, unsigned below) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(*state >> 33) % below;
}

static inline pad_case pad_random_case(uint64_t *state) {
  pad_case c = {.count = 1 + (int)pad_random(state, AT_PAD_MATRICES)};
  c.grain = (size_t)2 << pad_random(state, 3);
  for (int i = 0; i < c.count; i++) {
    c.element[i] = c.grain;
    while (c.element[i] < 8 && pad_random(state, 3) == 0) c.element[i] *= 2;
    c.shape[i] = (pad_shape){
        .rows = 1 + pad_random(state, 70), .cols = 1 + pad_random(state, 40), .batch = 1 + pad_random(state, 4)};
    c.shape[i].gap = (int)pad_random(state, 4);
    c.shape[i].step = (int)pad_random(state, 3);
    c.shape[i].shift = (int)pad_random(state, (unsigned)(16 / c.grain));
    c.shape[i].out = pad_random(state, 2);
    c.shape[i].zero_cols = (int)pad_random(state, 5);
  }
  return c;
}

static inline size_t pad_at(int64_t ld, int64_t stride, int64_t column, int64_t matrix, size_t element) {
  return (size_t)(matrix * stride + column * ld) * element;
}

/* The memory of matrix i; false when there is none. */
static inline bool pad_make(pad_memory *out, const pad_case *c, int i, uint64_t *state) {
  const pad_shape *s = &c->shape[i];
  const size_t element = c->element[i], bytes = (size_t)s->rows * element, full = (bytes + 15) / 16 * 16;
  const int64_t wide = (int64_t)(full / element), ld = s->rows + s->gap, stride = ld * s->cols + s->step;
  const int64_t zero_cols = s->out ? 0 : s->zero_cols, written = s->cols + zero_cols, wide_stride = wide * written;
  at_pad_copy *copy = &out->copy;
  *copy = (at_pad_copy){s->rows, s->cols, s->batch, ld, wide, stride, wide_stride, element, !s->out, zero_cols};
  if (s->out) *copy = (at_pad_copy){s->rows, s->cols, s->batch, wide, ld, wide_stride, stride, element, false, 0};
  const size_t shift = (size_t)s->shift * c->grain;
  out->source_offset = s->out ? 0 : shift;
  out->destination_offset = PAD_GUARD + (s->out ? shift : 0);
  out->source_bytes =
      pad_at(copy->ld_source, copy->stride_source, s->cols - 1, s->batch - 1, element) + bytes + out->source_offset;
  out->destination_bytes = out->destination_offset +
                           pad_at(copy->ld_destination, copy->stride_destination, written - 1, s->batch - 1, element) +
                           full + PAD_GUARD;
  out->source = malloc(out->source_bytes);
  out->expected = malloc(out->destination_bytes);
  if (!out->source || !out->expected) return false;
  for (size_t b = 0; b < out->source_bytes; b++) out->source[b] = (unsigned char)(1 + pad_random(state, 255));
  memset(out->expected, PAD_UNTOUCHED, out->destination_bytes);
  for (int64_t matrix = 0; matrix < s->batch; matrix++)
    for (int64_t column = 0; column < written; column++) {
      unsigned char *to = out->expected + out->destination_offset +
                          pad_at(copy->ld_destination, copy->stride_destination, column, matrix, element);
      if (column >= s->cols) {
        memset(to, 0, full);
        continue;
      }
      memcpy(to,
             out->source + out->source_offset + pad_at(copy->ld_source, copy->stride_source, column, matrix, element),
             bytes);
      if (copy->fill) memset(to + bytes, 0, full - bytes);
    }
  return true;
}

static inline void pad_free(pad_memory *memory) {
  free(memory->source);
  free(memory->expected);
}

#endif
