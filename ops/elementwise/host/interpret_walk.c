/* SPDX-License-Identifier: Apache-2.0
 * interpret_walk.c: gathers and scatters, stretch by stretch along the innermost dimension. */
#include "ops/elementwise/host/interpret_walk.h"

#include <string.h>

typedef struct pair {
  uint64_t low, high;
} pair;

at_place at_place_of(const at_layout *l, int64_t element) {
  at_place place = {{0}};
  for (int d = 0; d < l->dims && element > 0; d++) {
    place.at[d] = d + 1 < l->dims ? element % l->sizes[d] : element;
    element /= l->sizes[d];
  }
  return place;
}

void at_place_move(at_place *place, const at_layout *l, int64_t n) {
  place->at[0] += n;
  for (int d = 0; d + 1 < l->dims && place->at[d] >= l->sizes[d]; d++) {
    place->at[d + 1] += place->at[d] / l->sizes[d];
    place->at[d] %= l->sizes[d];
  }
}

int64_t at_place_offset(const at_place *place, const at_layout *l, int operand) {
  int64_t offset = l->operands[operand].offset;
  for (int d = 0; d < l->dims; d++) offset += place->at[d] * l->operands[operand].strides[d];
  return offset;
}

#define AT_STEP_COPY(T)                                                        \
  do {                                                                         \
    T *to = out;                                                               \
    const T *from = in;                                                        \
    for (int64_t i = 0; i < n; i++) to[i * to_stride] = from[i * from_stride]; \
  } while (0)

/* Elements apart by strides, either of which is 1. */
static void copy_apart(void *out, int64_t to_stride, const void *in, int64_t from_stride, size_t size, int64_t n) {
  switch (size) {
  case 1: AT_STEP_COPY(uint8_t); return;
  case 2: AT_STEP_COPY(uint16_t); return;
  case 4: AT_STEP_COPY(uint32_t); return;
  case 8: AT_STEP_COPY(uint64_t); return;
  default: AT_STEP_COPY(pair); return;
  }
}

/* Elements to the end of the row, at most n. */
static int64_t stretch(const at_layout *l, const at_place *place, int64_t n) {
  const int64_t left = l->sizes[0] - place->at[0];
  return left < n ? left : n;
}

void at_walk_load(void *out, const at_layout *l, int operand, const void *data, size_t size, at_place place,
                  int64_t n) {
  const int64_t stride = l->operands[operand].strides[0];
  char *to = out;
  while (n > 0) {
    const int64_t part = stretch(l, &place, n);
    const char *from = (const char *)data + at_place_offset(&place, l, operand) * (int64_t)size;
    if (stride == 1)
      memcpy(to, from, (size_t)part * size);
    else
      copy_apart(to, 1, from, stride, size, part);
    to += (size_t)part * size;
    n -= part;
    if (n > 0) at_place_move(&place, l, part);
  }
}

void at_walk_store(const void *from, const at_layout *l, int operand, void *data, size_t size, at_place place,
                   int64_t n) {
  const int64_t stride = l->operands[operand].strides[0];
  const char *in = from;
  while (n > 0) {
    const int64_t part = stretch(l, &place, n);
    char *to = (char *)data + at_place_offset(&place, l, operand) * (int64_t)size;
    if (stride == 1)
      memmove(to, in, (size_t)part * size); /* a copy in place is the same memory */
    else
      copy_apart(to, stride, in, 1, size, part);
    in += (size_t)part * size;
    n -= part;
    if (n > 0) at_place_move(&place, l, part);
  }
}

void at_walk_offsets(int64_t *out, const at_layout *l, int operand, at_place place, int64_t n) {
  const int64_t stride = l->operands[operand].strides[0];
  while (n > 0) {
    const int64_t part = stretch(l, &place, n), first = at_place_offset(&place, l, operand);
    for (int64_t i = 0; i < part; i++) out[i] = first + i * stride;
    out += part;
    n -= part;
    if (n > 0) at_place_move(&place, l, part);
  }
}
