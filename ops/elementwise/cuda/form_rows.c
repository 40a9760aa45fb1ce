/* SPDX-License-Identifier: Apache-2.0
 * form_rows.c: kernels for rows: a bias, a part of a larger tensor. What form_rows.cuh calls, and its numbers. */
#include "ops/elementwise/cuda/cuda_source.h"
#include "ops/elementwise/cuda/form_contiguous.h"

#include "form_rows_cuh.h"

#define MOST (INT64_C(1) << 30) /* rows, columns and blocks: their numbers and the next steps fit 32 bits */

static int64_t rows_of(const at_cuda_problem *p) {
  int64_t rows = 1;
  for (int d = 1; d < p->layout.dims; d++)
    if (!at_mul_i64(&rows, rows, p->layout.sizes[d])) return INT64_MAX;
  return rows;
}

static int64_t inner_stride(const at_cuda_problem *p, int k) {
  return p->layout.operands[k].strides[0];
}

/* The same in all rows. */
static bool is_kept(const at_cuda_problem *p, int k) {
  for (int d = 1; d < p->layout.dims; d++)
    if (p->layout.operands[k].strides[d] != 0) return false;
  return true;
}

/* Threads side by side: as many as a row has vectors, up to the block. */
static int shift_of(const at_cuda_problem *p, const at_cuda_choice *c) {
  const int64_t width = at_cuda_width(p, c->bytes), vectors = (p->layout.sizes[0] + width - 1) / width;
  int shift = 0;
  while (((int64_t)1 << shift) < vectors && (1 << shift) < c->block) shift++;
  return shift;
}

static int64_t tiles_of(const at_cuda_problem *p, const at_cuda_choice *c) {
  const int64_t tile = (int64_t)at_cuda_width(p, c->bytes) << shift_of(p, c);
  return (p->layout.sizes[0] + tile - 1) / tile;
}

static uint64_t blocks(const at_cuda_problem *p, const at_cuda_choice *c) {
  const int64_t band = (int64_t)(c->block >> shift_of(p, c)) * c->loads, bands = (rows_of(p) + band - 1) / band;
  int64_t all;
  return at_mul_i64(&all, bands, tiles_of(p, c)) && all <= MOST ? (uint64_t)all : 0;
}

static bool supports(const at_cuda_problem *p, const at_cuda_choice *c) {
  const int width = at_cuda_width(p, c->bytes);
  if (width < 1 || c->persistent || p->layout.sizes[0] > MOST || rows_of(p) > MOST) return false;
  for (int k = 0; k < p->layout.operand_count; k++) {
    const bool tensor = k < at_cuda_tensor_count(p);
    if (tensor && inner_stride(p, k) != 0 && inner_stride(p, k) != 1) return false;
    if (k < p->expression->output_count && inner_stride(p, k) != 1) return false;
    if (tensor && inner_stride(p, k) == 1 && !at_cuda_aligned(p, k, 0, width)) return false;
  }
  return p->layout.count == 0 || blocks(p, c) > 0;
}

static void fields(at_arguments *f, const at_cuda_problem *p, const at_cuda_choice *c) {
  const int outer = p->layout.dims - 1;
  const uint64_t columns = (uint64_t)p->layout.sizes[0], rows = (uint64_t)rows_of(p), shift = (uint64_t)shift_of(p, c),
                 tiles = (uint64_t)tiles_of(p, c), by = at_cuda_divider(tiles ? tiles : 1);
  (void)at_argument(f, "at_u64", "columns", &columns, 1);
  (void)at_argument(f, "at_u64", "rows", &rows, 1);
  (void)at_argument(f, "at_u64", "shift", &shift, 1);
  (void)at_argument(f, "at_u64", "tiles", &tiles, 1);
  (void)at_argument(f, "at_divider", "by_tiles", &by, 1);
  for (int d = 0; d + 1 < outer; d++) {
    char name[16] = "";
    size_t at = 0;
    const uint64_t size = (uint64_t)p->layout.sizes[d + 1], divider = at_cuda_divider(size ? size : 1);
    (void)at_append(name, sizeof name, &at, "size%d", d);
    (void)at_argument(f, "at_u64", name, &size, 1);
    at = 0;
    (void)at_append(name, sizeof name, &at, "by%d", d);
    (void)at_argument(f, "at_divider", name, &divider, 1);
  }
  for (int k = 0; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    char name[16] = "";
    size_t at = 0;
    (void)at_append(name, sizeof name, &at, "s%c%d", o.letter, o.number);
    (void)at_argument(f, "at_i64", name, (const uint64_t *)p->layout.operands[k].strides, p->layout.dims);
  }
}

/* Where a row of each operand begins. */
static void add_locate(at_writer *s, const at_cuda_problem *p) {
  const int dims = p->layout.dims;
  at_write(s, "struct at_row {\n");
  for (int k = 0; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    if (!is_kept(p, k)) at_write(s, "  at_i64 %c%d;\n", o.letter, o.number);
  }
  at_write(s, "};\nAT_INLINE void at_locate(const at_arguments &a, at_u32 n, at_row &at) {\n");
  for (int d = 1; d < dims; d++) {
    if (d + 1 < dims)
      at_write(s, "  const at_u32 n%d = at_divide(n, a.by%d), c%d = n - n%d * (at_u32)a.size%d;\n", d, d - 1, d, d,
               d - 1);
    else
      at_write(s, "  const at_u32 c%d = n;\n", d);
    for (int k = 0; k < p->layout.operand_count; k++) {
      const at_cuda_operand o = at_cuda_operand_of(p, k);
      if (!is_kept(p, k))
        at_write(s, "  at.%c%d %s (at_i64)c%d * a.s%c%d[%d];\n", o.letter, o.number, d > 1 ? "+=" : "=", d, o.letter,
                 o.number, d);
    }
    if (d + 1 < dims) at_write(s, "  n = n%d;\n", d);
  }
  at_write(s, "}\n");
}

/* Inputs of one kind: kept or not, as members or as their loads. */
static void add_inputs(at_writer *s, const at_cuda_problem *p, bool kept, bool loads) {
  for (int k = p->expression->output_count; k < at_cuda_tensor_count(p); k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    const bool one = inner_stride(p, k) == 0;
    if (is_kept(p, k) != kept) continue;
    if (!loads && one) at_write(s, "  %s i%d;\n", at_cuda_value(o.dtype), o.number);
    if (!loads && !one) at_write(s, "  at_vector<%s, N> i%d;\n", at_cuda_tag(o.dtype), o.number);
    if (!loads) continue;
    if (one)
      at_write(s, "  to.i%d = at_load_one<%s>(a.i%d", o.number, at_cuda_tag(o.dtype), o.number);
    else
      at_write(s, "  to.i%d.load(a.i%d", o.number, o.number);
    if (!kept && one) at_write(s, " + at.i%d * %d", o.number, (int)o.bytes);
    if (!kept && !one) at_write(s, " + (at.i%d + column) * %d", o.number, (int)o.bytes);
    if (kept && !one) at_write(s, " + (at_i64)column * %d", (int)o.bytes);
    at_write(s, ");\n");
  }
}

static void add_finish(at_writer *s, const at_cuda_problem *p) {
  const int outputs = p->expression->output_count;
  at_write(s,
           "template <int N> AT_INLINE void at_finish(const at_arguments &a, const at_once &once, const at_row &at,\n"
           "                                        at_u32 column, const at_sync_state<N> &kept, const at_batch<N> "
           "&batch) {\n");
  for (int k = 0; k < outputs; k++) at_write(s, "  %s y%d[N];\n", at_cuda_value((attune_dtype)p->outputs[k]), k);
  const int number = at_contiguous_number(p);
  if (number >= 0) {
    char element[80] = "";
    size_t at = 0;
    (void)at_append(element, sizeof element, &at, "a.p%d + (at_i64)column", number);
    if (!is_kept(p, at_cuda_tensor_count(p) + number))
      (void)at_append(element, sizeof element, &at, " + at.p%d", number);
    at_generate_draw_row(s, p->expression, element, element);
  }
  at_write(s, "#pragma unroll\n  for (int k = 0; k < N; k++) {\n    at_in x;\n    at_out y;\n");
  for (int k = outputs; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    const bool one = p->layout.dims == 1;
    if (o.letter == 'p')
      at_write(s, "    x.p%d = a.p%d + (at_i64)(column + k) * a.sp%d%s", o.number, o.number, o.number,
               one ? "" : "[0]");
    else
      at_write(s, "    x.i%d = %s.i%d%s", o.number, is_kept(p, k) ? "kept" : "batch", o.number,
               inner_stride(p, k) ? ".get(k)" : "");
    if (o.letter == 'p' && !is_kept(p, k)) at_write(s, " + at.p%d", o.number);
    at_write(s, ";\n");
  }
  if (number >= 0)
    at_generate_draw_take(s, p->expression);
  else
    at_generate_draw_one(s, p->expression, "x");
  at_write(s, "    at_element(a, once, x, y);\n");
  for (int k = 0; k < outputs; k++) at_write(s, "    y%d[k] = y.o%d;\n", k, k);
  at_write(s, "  }\n");
  for (int k = 0; k < outputs; k++) {
    const attune_dtype dtype = (attune_dtype)p->outputs[k];
    at_write(s, "  at_vector<%s, N> z%d;\n  z%d.put(y%d);\n", at_cuda_tag(dtype), k, k, k);
    if (is_kept(p, k))
      at_write(s, "  z%d.store(a.o%d + (at_i64)column * %d);\n", k, k, (int)attune_dtype_size(dtype));
    else
      at_write(s, "  z%d.store(a.o%d + (at.o%d + column) * %d);\n", k, k, k, (int)attune_dtype_size(dtype));
  }
  at_write(s, "}\n");
}

static void functions(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c) {
  (void)c;
  add_locate(s, p);
  at_write(s, "template <int N> struct at_sync_state {\n");
  add_inputs(s, p, true, false);
  at_write(s, "};\ntemplate <int N> struct at_batch {\n");
  add_inputs(s, p, false, false);
  at_write(
      s, "};\ntemplate <int N> AT_INLINE void at_keep(const at_arguments &a, at_u32 column, at_sync_state<N> &to) {\n");
  add_inputs(s, p, true, true);
  at_write(s, "}\ntemplate <int N> AT_INLINE void at_fetch(const at_arguments &a, const at_row &at, at_u32 column,\n"
              "                                       at_batch<N> &to) {\n");
  add_inputs(s, p, false, true);
  at_write(s, "}\n");
  add_finish(s, p);
}

/* By the sweep on an H200, as the vector form's. */
static int candidates(const at_cuda_problem *p, at_cuda_choice *out, int max) {
  static const at_cuda_choice best[] = {
      {.bytes = 16, .loads = 1, .block = 256}, {.bytes = 8, .loads = 4, .block = 256},
      {.bytes = 16, .loads = 2, .block = 256}, {.bytes = 16, .loads = 4, .block = 256},
      {.bytes = 4, .loads = 4, .block = 256},  {.bytes = 16, .loads = 4, .block = 128, .store = 1},
      {.bytes = 2, .loads = 8, .block = 256},  {.bytes = 1, .loads = 8, .block = 256},
  };
  _Static_assert(AT_COUNT(best) == AT_FEW_CHOICES, "as many for few elements");
  const bool small = at_cuda_is_small(p);
  int count = 0;
  if (p->layout.dims < 2) return 0;
  for (size_t i = 0; i < AT_COUNT(best) && count < max; i++) {
    if (!small && best[i].bytes < 4 && count > 0) break;
    out[count] = small ? at_few_choices[i] : best[i];
    out[count].form = AT_FORM_ROWS;
    if (supports(p, &out[count])) count++;
  }
  return count;
}

const at_cuda_form_type at_form_rows = {
    .skeleton = at_form_rows_cuh,
    .supports = supports,
    .candidates = candidates,
    .fields = fields,
    .functions = functions,
    .blocks = blocks,
};
