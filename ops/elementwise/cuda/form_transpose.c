/* SPDX-License-Identifier: Apache-2.0
 * form_transpose.c: kernels for inputs that are contiguous along another dimension than the output: what
 * form_transpose.cuh calls, and its numbers. */
#include "ops/elementwise/cuda/cuda_source.h"

#include "device_tile_cuh.h"
#include "form_transpose_cuh.h"

#define MOST (INT64_C(1) << 30)
#define SHARED_BYTES 49152 /* what every device gives a block without asking */

static int64_t stride_of(const at_cuda_problem *p, int k, int d) {
  return p->layout.operands[k].strides[d];
}

/* Goes its way through shared memory: an input that is neither contiguous nor the same along a row. */
static bool is_turned(const at_cuda_problem *p, int k) {
  return k >= p->expression->output_count && k < at_cuda_tensor_count(p) && stride_of(p, k, 0) != 0 &&
         stride_of(p, k, 0) != 1;
}

/* The dimension of the rows: the one along which all turned inputs are contiguous; 0: there is none. */
static int row_dimension(const at_cuda_problem *p) {
  int found = 0;
  for (int k = 0; k < at_cuda_tensor_count(p); k++) {
    if (!is_turned(p, k)) continue;
    int own = 1;
    while (own < p->layout.dims && stride_of(p, k, own) != 1) own++;
    if (own == p->layout.dims || (found && own != found)) return 0;
    found = own;
  }
  return found;
}

/* Rows that a thread takes at once: those of the smallest turned input that fill a word. */
static int group_of(const at_cuda_problem *p) {
  int group = 1;
  for (int k = 0; k < at_cuda_tensor_count(p); k++) {
    const int bytes = (int)at_cuda_operand_of(p, k).bytes;
    if (is_turned(p, k) && bytes < 4 && 4 / bytes > group) group = 4 / bytes;
  }
  return group;
}

static int64_t shared_bytes(const at_cuda_problem *p, int tile) {
  int64_t sum = 0;
  for (int k = 0; k < at_cuda_tensor_count(p); k++) {
    const int64_t bytes = (int64_t)at_cuda_operand_of(p, k).bytes;
    if (is_turned(p, k)) sum += (tile * (tile * bytes + (bytes < 4 ? 4 : bytes)) + 15) / 16 * 16;
  }
  return sum;
}

static int64_t tiles(const at_cuda_problem *p, const at_cuda_choice *c, int d) {
  return (p->layout.sizes[d] + c->tile - 1) / c->tile;
}

static uint64_t blocks(const at_cuda_problem *p, const at_cuda_choice *c) {
  const int rows = row_dimension(p);
  int64_t all;
  if (!at_mul_i64(&all, tiles(p, c, 0), tiles(p, c, rows))) return 0;
  for (int d = 1; d < p->layout.dims; d++)
    if (d != rows && !at_mul_i64(&all, all, p->layout.sizes[d])) return 0;
  return all <= MOST ? (uint64_t)all : 0;
}

static bool supports(const at_cuda_problem *p, const at_cuda_choice *c) {
  const int width = at_cuda_width(p, c->bytes), rows = row_dimension(p), tensors = at_cuda_tensor_count(p);
  if (rows == 0 || width < 1 || width > c->tile || p->layout.sizes[0] > MOST || p->layout.sizes[rows] > MOST ||
      c->persistent)
    return false;
  const int units = c->tile / width * (c->tile / group_of(p)), pieces = c->tile * c->tile / width;
  if (units % c->block != 0 || pieces % c->block != 0 || shared_bytes(p, c->tile) > SHARED_BYTES) return false;
  for (int k = 0; k < tensors; k++) {
    if (k < p->expression->output_count && stride_of(p, k, 0) != 1) return false;
    if (is_turned(p, k) ? !at_cuda_aligned(p, k, rows, width)
                        : stride_of(p, k, 0) == 1 && !at_cuda_aligned(p, k, 0, width))
      return false;
  }
  return p->layout.count == 0 || blocks(p, c) > 0;
}

static void add_number(at_arguments *f, const char *type, const char *stem, int d, uint64_t value) {
  char name[16] = "";
  size_t at = 0;
  (void)at_append(name, sizeof name, &at, "%s%d", stem, d);
  (void)at_argument(f, type, name, &value, 1);
}

static void fields(at_arguments *f, const at_cuda_problem *p, const at_cuda_choice *c) {
  const int rows = row_dimension(p);
  const uint64_t columns = (uint64_t)p->layout.sizes[0], row_count = (uint64_t)p->layout.sizes[rows],
                 across = (uint64_t)tiles(p, c, 0), down = (uint64_t)tiles(p, c, rows),
                 by_across = at_cuda_divider(across ? across : 1), by_down = at_cuda_divider(down ? down : 1);
  (void)at_argument(f, "at_u64", "columns", &columns, 1);
  (void)at_argument(f, "at_u64", "rows", &row_count, 1);
  (void)at_argument(f, "at_u64", "across", &across, 1);
  (void)at_argument(f, "at_u64", "down", &down, 1);
  (void)at_argument(f, "at_divider", "by_across", &by_across, 1);
  (void)at_argument(f, "at_divider", "by_down", &by_down, 1);
  for (int d = 1; d < p->layout.dims; d++) {
    const uint64_t size = (uint64_t)p->layout.sizes[d];
    if (d == rows) continue;
    add_number(f, "at_u64", "size", d, size);
    add_number(f, "at_divider", "by", d, at_cuda_divider(size && size < INT32_MAX ? size : 1));
  }
  for (int k = 0; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    char name[16] = "";
    size_t at = 0;
    (void)at_append(name, sizeof name, &at, "s%c%d", o.letter, o.number);
    (void)at_argument(f, "at_i64", name, (const uint64_t *)p->layout.operands[k].strides, p->layout.dims);
  }
}

/* Where the matrix of a batch begins, in each operand. */
static void add_locate(at_writer *s, const at_cuda_problem *p, int rows) {
  at_write(s, "struct at_origin {\n");
  for (int k = 0; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    at_write(s, "  at_i64 %c%d;\n", o.letter, o.number);
  }
  at_write(s, "};\nAT_INLINE void at_locate(const at_arguments &a, at_u32 n, at_origin &at) {\n");
  for (int k = 0; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    at_write(s, "  at.%c%d = 0;\n", o.letter, o.number);
  }
  for (int d = 1; d < p->layout.dims; d++) {
    if (d == rows) continue;
    at_write(s, "  const at_u32 n%d = at_divide(n, a.by%d), c%d = n - n%d * (at_u32)a.size%d;\n", d, d, d, d, d);
    for (int k = 0; k < p->layout.operand_count; k++) {
      const at_cuda_operand o = at_cuda_operand_of(p, k);
      at_write(s, "  at.%c%d += (at_i64)c%d * a.s%c%d[%d];\n", o.letter, o.number, d, o.letter, o.number, d);
    }
    at_write(s, "  n = n%d;\n", d);
  }
  at_write(s, "}\n");
}

/* Code for each transposed input: ~ is its number, @ its element type, $ its bytes. */
static void for_turned(at_writer *s, const at_cuda_problem *p, const char *before, const char *each,
                       const char *after) {
  at_write(s, "%s", before);
  for (int k = p->expression->output_count; k < at_cuda_tensor_count(p); k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    if (!is_turned(p, k)) continue;
    for (const char *c = each; *c; c++) {
      if (*c == '~')
        at_write(s, "%d", o.number);
      else if (*c == '@')
        at_write(s, "%s", at_cuda_tag(o.dtype));
      else if (*c == '$')
        at_write(s, "%d", (int)o.bytes);
      else
        at_write(s, "%c", *c);
    }
  }
  at_write(s, "%s", after);
}

static void add_turned(at_writer *s, const at_cuda_problem *p) {
  for_turned(s, p, "struct at_turned {\n", "  at_tile<@> i~;\n", "};\n");
  for_turned(s, p, "struct at_lines {\n", "  at_vector<@, VECTOR> i~;\n", "};\n");
  for_turned(
      s, p,
      "AT_INLINE void at_read(const at_arguments &a, const at_origin &at, at_u32 column, at_u32 row, at_lines &to) {\n",
      "  to.i~.load(a.i~ + (at.i~ + (at_i64)column * a.si~[0] + row) * $);\n", "}\n");
  for_turned(s, p, "AT_INLINE void at_put(at_turned &to, at_u32 column, at_u32 row, const at_lines &from) {\n",
             "  to.i~.put(column, row, from.i~);\n", "}\n");
  for_turned(s, p, "template <int N> struct at_group {\n", "  at_vector<@, GROUP> i~[N];\n", "};\n");
  for_turned(s, p, "template <int N> struct at_single {\n", "  at_vector<@, 1> i~[N];\n", "};\n");
  for_turned(
      s, p,
      "template <int N> AT_INLINE void at_take(const at_turned &from, at_u32 column, at_u32 row, at_group<N> &to) {\n",
      "#pragma unroll\n  for (int k = 0; k < N; k++) from.i~.take(column + k, row, to.i~[k]);\n", "}\n");
  for_turned(s, p, "AT_INLINE void at_pick(const at_turned &from, at_u32 column, at_u32 row, at_single<1> &to) {\n",
             "  from.i~.take(column, row, to.i~[0]);\n", "}\n");
  for_turned(
      s, p,
      "AT_INLINE void at_carry(const at_arguments &a, const at_origin &at, at_u32 column, at_u32 row, at_turned &to,\n"
      "                        at_u32 to_column, at_u32 to_row) {\n",
      "  at_vector<@, 1> v~;\n  v~.load(a.i~ + (at.i~ + (at_i64)column * a.si~[0] + row) * $);\n"
      "  to.i~.put(to_column, to_row, v~);\n",
      "}\n");
}

static void add_fetch(at_writer *s, const at_cuda_problem *p, int rows) {
  at_write(s, "template <int N> struct at_batch {\n");
  for (int k = p->expression->output_count; k < at_cuda_tensor_count(p); k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    if (is_turned(p, k)) continue;
    if (stride_of(p, k, 0) == 0)
      at_write(s, "  %s i%d;\n", at_cuda_value(o.dtype), o.number);
    else
      at_write(s, "  at_vector<%s, N> i%d;\n", at_cuda_tag(o.dtype), o.number);
  }
  at_write(s,
           "};\ntemplate <int N> AT_INLINE void at_fetch(const at_arguments &a, const at_origin &at, at_u32 column,\n"
           "                                       at_u32 row, at_batch<N> &to) {\n");
  for (int k = p->expression->output_count; k < at_cuda_tensor_count(p); k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    const int i = o.number, bytes = (int)o.bytes;
    if (is_turned(p, k)) continue;
    if (stride_of(p, k, 0) == 0)
      at_write(s, "  to.i%d = at_load_one<%s>(a.i%d + (at.i%d + (at_i64)row * a.si%d[%d]) * %d);\n", i,
               at_cuda_tag(o.dtype), i, i, i, rows, bytes);
    else
      at_write(s, "  to.i%d.load(a.i%d + (at.i%d + (at_i64)row * a.si%d[%d] + column) * %d);\n", i, i, i, i, rows,
               bytes);
  }
  at_write(s, "}\n");
}

static void add_finish(at_writer *s, const at_cuda_problem *p, int rows) {
  const int outputs = p->expression->output_count;
  at_write(s, "template <int N, class G> AT_INLINE void at_finish(const at_arguments &a, const at_once &once, const "
              "at_origin &at,\n"
              "    at_u32 column, at_u32 row, const G &group, int g, const at_batch<N> &batch) {\n");
  for (int k = 0; k < outputs; k++) at_write(s, "  %s y%d[N];\n", at_cuda_value((attune_dtype)p->outputs[k]), k);
  at_write(s, "#pragma unroll\n  for (int k = 0; k < N; k++) {\n    at_in x;\n    at_out y;\n");
  for (int k = outputs; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    const int i = o.number;
    if (o.letter == 'p')
      at_write(s, "    x.p%d = a.p%d + at.p%d + (at_i64)(column + k) * a.sp%d[0] + (at_i64)row * a.sp%d[%d];\n", i, i,
               i, i, i, rows);
    else if (is_turned(p, k))
      at_write(s, "    x.i%d = group.i%d[k].get(g);\n", i, i);
    else
      at_write(s, "    x.i%d = batch.i%d%s;\n", i, i, stride_of(p, k, 0) ? ".get(k)" : "");
  }
  at_generate_draw_one(s, p->expression, "x");
  at_write(s, "    at_element(a, once, x, y);\n");
  for (int k = 0; k < outputs; k++) at_write(s, "    y%d[k] = y.o%d;\n", k, k);
  at_write(s, "  }\n");
  for (int k = 0; k < outputs; k++)
    at_write(s,
             "  at_vector<%s, N> z%d;\n  z%d.put(y%d);\n  z%d.store(a.o%d + (at.o%d + (at_i64)row * a.so%d[%d] + "
             "column) * %d);\n",
             at_cuda_tag((attune_dtype)p->outputs[k]), k, k, k, k, k, k, k, rows,
             (int)attune_dtype_size((attune_dtype)p->outputs[k]));
  at_write(s, "}\n");
}

static void functions(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c) {
  const int rows = row_dimension(p);
  (void)c;
  at_write(s, "#define GROUP %d\n%s", group_of(p), at_device_tile_cuh);
  add_locate(s, p, rows);
  add_turned(s, p);
  add_fetch(s, p, rows);
  add_finish(s, p, rows);
}

/* By the sweep on an H200, as the vector form's; tiles of 32 for what has no room for 64. */
static int candidates(const at_cuda_problem *p, at_cuda_choice *out, int max) {
  static const at_cuda_choice best[] = {
      {.bytes = 4, .tile = 64, .block = 256},  {.bytes = 8, .tile = 64, .block = 128},
      {.bytes = 8, .tile = 64, .block = 256},  {.bytes = 16, .tile = 64, .block = 256},
      {.bytes = 16, .tile = 64, .block = 128}, {.bytes = 16, .tile = 64, .block = 64},
      {.bytes = 16, .tile = 64, .block = 32},  {.bytes = 16, .tile = 32, .block = 256},
      {.bytes = 8, .tile = 32, .block = 256},  {.bytes = 4, .tile = 32, .block = 128},
      {.bytes = 8, .tile = 32, .block = 128},  {.bytes = 4, .tile = 32, .block = 256},
      {.bytes = 2, .tile = 64, .block = 256},  {.bytes = 2, .tile = 32, .block = 64},
      {.bytes = 1, .tile = 64, .block = 256},  {.bytes = 1, .tile = 32, .block = 128},
  };
  const int rows = row_dimension(p);
  int count = 0;
  if (rows == 0) return 0;
  const int64_t side = p->layout.sizes[0] < p->layout.sizes[rows] ? p->layout.sizes[0] : p->layout.sizes[rows];
  for (size_t i = 0; i < AT_COUNT(best) && count < max; i++) {
    if (best[i].tile > 32 && (at_cuda_is_small(p) || side < best[i].tile)) continue; /* few blocks, or no whole tile */
    if (best[i].bytes < 4 && count > 0 && out[0].bytes > best[i].bytes) break;
    out[count] = best[i];
    out[count].form = AT_FORM_TRANSPOSE;
    if (supports(p, &out[count])) count++;
  }
  return count;
}

const at_cuda_form_type at_form_transpose = {
    .skeleton = at_form_transpose_cuh,
    .supports = supports,
    .candidates = candidates,
    .fields = fields,
    .functions = functions,
    .blocks = blocks,
};
