/* SPDX-License-Identifier: Apache-2.0
 * pad.c: the arguments of the kernel of pad.cu. */
#include "ops/gemm/cublas/pad.h"

#include <string.h>

#include "pad_cu.h"

const at_kernel_source *at_pad_source(size_t grain) {
  static const char *const macros[][2] = {
      {"ELEMENT_BYTES=2", NULL}, {"ELEMENT_BYTES=4", NULL}, {"ELEMENT_BYTES=8", NULL}};
  static const at_kernel_source sources[] = {
      {.file = "pad.cu", .text = at_pad_cu, .entry = "at_pad", .macros = macros[0]},
      {.file = "pad.cu", .text = at_pad_cu, .entry = "at_pad", .macros = macros[1]},
      {.file = "pad.cu", .text = at_pad_cu, .entry = "at_pad", .macros = macros[2]},
  };
  return grain == 2 ? &sources[0] : grain == 4 ? &sources[1] : grain == 8 ? &sources[2] : NULL;
}

/* With 2^shift >= d the factor is 2^32 (2^shift / d - 1), rounded up: n / d = (n + (n factor >> 32)) >> shift. */
static at_pad_divider divider(uint32_t d) {
  uint32_t shift = 0;
  while (((uint64_t)1 << shift) < d) shift++;
  return (at_pad_divider){(uint32_t)(((((uint64_t)1 << shift) - d) << 32) / d + 1), shift};
}

/* Not filled up, a column may begin and end anywhere within a piece: there is room for the worst. */
static int64_t pieces_of(const at_pad_copy *copy, int64_t bytes, size_t grain) {
  const int64_t most = copy->fill ? bytes : bytes + AT_PAD_PIECE - (int64_t)grain;
  return (most + AT_PAD_PIECE - 1) / AT_PAD_PIECE;
}

static bool plan_one(at_pad_matrix *m, const at_pad_copy *copy, size_t grain) {
  const int64_t element = (int64_t)copy->element, bytes = copy->rows * element;
  if (copy->rows < 1 || copy->cols < 1 || copy->batch < 1 || copy->rows >= INT32_MAX / 16) return false;
  const int64_t pieces = pieces_of(copy, bytes, grain);
  int64_t total, columns;
  if (!at_add_i64(&columns, copy->cols, copy->zero_cols) || !at_mul_i64(&total, pieces, columns) ||
      !at_mul_i64(&total, total, copy->batch) || total > INT32_MAX)
    return false;
  m->ld_source = copy->ld_source * element;
  m->ld_destination = copy->ld_destination * element;
  m->stride_source = copy->stride_source * element;
  m->stride_destination = copy->stride_destination * element;
  m->extent = (copy->batch - 1) * m->stride_source + (copy->cols - 1) * m->ld_source + bytes;
  m->bytes = (int32_t)bytes;
  m->bytes_destination = copy->fill ? (int32_t)(pieces * AT_PAD_PIECE) : m->bytes;
  m->pieces = (uint32_t)pieces;
  m->columns = (uint32_t)columns;
  m->columns_source = (uint32_t)copy->cols;
  m->total = (uint32_t)total;
  m->by_pieces = divider(m->pieces);
  m->by_columns = divider(m->columns);
  return true;
}

bool at_pad_plan(at_pad_arguments *out, const at_pad_copy *copies, int count, size_t grain, uint32_t *blocks) {
  const uint32_t each = AT_PAD_THREADS * AT_PAD_EACH;
  memset(out, 0, sizeof *out);
  *blocks = 0;
  for (int i = 0; i < AT_PAD_MATRICES; i++) {
    at_pad_matrix *m = &out->matrix[i];
    m->first_block = i < count ? *blocks : UINT32_MAX;
    if (i >= count) continue;
    if (!plan_one(m, &copies[i], grain)) return false;
    *blocks += (m->total + each - 1) / each;
  }
  return count > 0;
}
