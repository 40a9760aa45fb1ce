/* SPDX-License-Identifier: Apache-2.0
 * form_strided.c: kernels for operands of any strides: what form_strided.cuh calls, and its numbers. */
#include "ops/elementwise/cuda/cuda_source.h"

#include "form_strided_cuh.h"

/* Whether numbers of elements, and distances between an operand's in elements, fit 31 bits. */
static bool is_small(const at_cuda_problem *p) {
  if (p->layout.count > INT32_MAX - 65536) return false;
  for (int k = 0; k < p->layout.operand_count; k++) {
    int64_t reach = 0, step;
    for (int d = 0; d < p->layout.dims; d++) {
      const int64_t stride = p->layout.operands[k].strides[d];
      if (stride == INT64_MIN || !at_mul_i64(&step, stride < 0 ? -stride : stride, p->layout.sizes[d]) ||
          !at_add_i64(&reach, reach, step))
        return false;
    }
    if (reach > INT32_MAX) return false;
  }
  return true;
}

static bool supports(const at_cuda_problem *p, const at_cuda_choice *c) {
  return c->wide || is_small(p);
}

static void fields(at_arguments *f, const at_cuda_problem *p, const at_cuda_choice *c) {
  const int dims = p->layout.dims;
  uint64_t sizes[AT_DIMS], by[2 * AT_DIMS];
  for (int d = 0; d < dims; d++) {
    sizes[d] = (uint64_t)p->layout.sizes[d];
    const uint64_t size = sizes[d] > 0 ? sizes[d] : 1;
    if (c->wide)
      at_cuda_long_divider(&by[2 * d], size);
    else
      by[d] = at_cuda_divider(size);
  }
  if (dims > 1) (void)at_argument(f, "at_u64", "sizes", sizes, dims);
  if (dims > 1 && f->source) at_write(f->source, "  %s by[%d];\n", c->wide ? "at_long_divider" : "at_divider", dims);
  if (dims > 1) {
    at_arguments quiet = {.launch = f->launch, .count = f->count};
    (void)at_argument(&quiet, "", "", by, c->wide ? 2 * dims : dims);
    f->count = quiet.count;
  }
  for (int k = 0; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    char name[16] = "";
    size_t at = 0;
    (void)at_append(name, sizeof name, &at, "s%c%d", o.letter, o.number);
    (void)at_argument(f, "at_i64", name, (const uint64_t *)p->layout.operands[k].strides, dims);
  }
}

/* The operands' offsets, walked dimension by dimension, innermost first. */
static void add_locate(at_writer *s, const at_cuda_problem *p) {
  const int dims = p->layout.dims, count = p->layout.operand_count;
  at_write(s, "struct at_offsets {\n");
  for (int k = 0; k < count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    at_write(s, "  at_offset %c%d;\n", o.letter, o.number);
  }
  at_write(s, "};\nAT_INLINE void at_locate(const at_arguments &a, at_number n, at_offsets &at) {\n");
  for (int d = 0; d < dims; d++) {
    if (d + 1 < dims)
      at_write(s, "  const at_number n%d = at_divide(n, a.by[%d]), c%d = n - n%d * (at_number)a.sizes[%d];\n", d, d, d,
               d, d);
    else
      at_write(s, "  const at_number c%d = n;\n", d);
    for (int k = 0; k < count; k++) {
      const at_cuda_operand o = at_cuda_operand_of(p, k);
      at_write(s,
               dims > 1 ? "  at.%c%d %s (at_offset)c%d * (at_offset)a.s%c%d[%d];\n"
                        : "  at.%c%d %s (at_offset)c%d * (at_offset)a.s%c%d;\n",
               o.letter, o.number, d ? "+=" : "=", d, o.letter, o.number, d);
    }
    if (d + 1 < dims) at_write(s, "  n = n%d;\n", d);
  }
  at_write(s, "}\n");
}

static void functions(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c) {
  const int outputs = p->expression->output_count, count = p->layout.operand_count;
  at_write(s, c->wide ? "typedef at_u64 at_number;\ntypedef at_i64 at_offset;\n"
                      : "typedef at_u32 at_number;\ntypedef int at_offset;\n");
  add_locate(s, p);
  at_write(s, "struct at_batch {\n  at_offsets at;\n  at_in x;\n};\n"
              "AT_INLINE void at_find(const at_arguments &a, at_number n, at_batch &batch) {\n"
              "  at_locate(a, n, batch.at);\n}\n"
              "AT_INLINE void at_fetch(const at_arguments &a, at_batch &batch) {\n");
  for (int k = outputs; k < count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    if (o.letter == 'p')
      at_write(s, "  batch.x.p%d = a.p%d + batch.at.p%d;\n", o.number, o.number, o.number);
    else
      at_write(s, "  batch.x.i%d = at_load_one<%s>(a.i%d + (at_i64)batch.at.i%d * %d);\n", o.number,
               at_cuda_tag(o.dtype), o.number, o.number, (int)o.bytes);
  }
  at_write(s, "}\nAT_INLINE void at_finish(const at_arguments &a, const at_once &once, const at_batch &batch) {\n"
              "  at_in x = batch.x;\n  at_out y;\n");
  at_generate_draw_one(s, p->expression, "x");
  at_write(s, "  at_element(a, once, x, y);\n");
  for (int k = 0; k < outputs; k++)
    at_write(s, "  at_vector<%s, 1> z%d;\n  z%d.put(&y.o%d);\n  z%d.store(a.o%d + (at_i64)batch.at.o%d * %d);\n",
             at_cuda_tag((attune_dtype)p->outputs[k]), k, k, k, k, k, k,
             (int)attune_dtype_size((attune_dtype)p->outputs[k]));
  at_write(s, "}\n");
}

static uint64_t blocks(const at_cuda_problem *p, const at_cuda_choice *c) {
  const uint64_t tile = (uint64_t)c->block * c->loads;
  return ((uint64_t)p->layout.count + tile - 1) / tile;
}

static int candidates(const at_cuda_problem *p, at_cuda_choice *out, int max) {
  static const at_cuda_choice best[] = {
      {.loads = 4, .block = 128}, {.loads = 1, .block = 256}, {.loads = 8, .block = 128}};
  static const at_cuda_choice few[AT_COUNT(best)] = {
      {.loads = 1, .block = 128}, {.loads = 1, .block = 256}, {.loads = 1, .block = 64}};
  const bool wide = !is_small(p), small = at_cuda_is_small(p);
  int count = 0;
  for (size_t i = 0; i < AT_COUNT(best) && count < max; i++) {
    out[count] = small ? few[i] : best[i];
    out[count].form = AT_FORM_STRIDED;
    out[count++].wide = wide;
  }
  return count;
}

const at_cuda_form_type at_form_strided = {
    .skeleton = at_form_strided_cuh,
    .supports = supports,
    .candidates = candidates,
    .fields = fields,
    .functions = functions,
    .blocks = blocks,
};
