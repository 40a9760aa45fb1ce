/* SPDX-License-Identifier: Apache-2.0
 * form_vector.c: kernels for operands that are contiguous or one element: what form_vector.cuh calls, and its
 * numbers. */
#include "ops/elementwise/cuda/cuda_source.h"
#include "ops/elementwise/cuda/form_contiguous.h"

#include "form_vector_cuh.h"

bool at_contiguous_supports(const at_cuda_problem *p, const at_cuda_choice *c) {
  const int width = at_cuda_width(p, c->bytes);
  if (p->layout.dims != 1 || width < 1) return false;
  for (int k = 0; k < at_cuda_tensor_count(p); k++) {
    const int64_t stride = p->layout.operands[k].strides[0];
    if (stride != 0 && (stride != 1 || !at_cuda_aligned(p, k, 0, width))) return false;
  }
  return true;
}

void at_contiguous_fields(at_arguments *f, const at_cuda_problem *p, const at_cuda_choice *c) {
  const int64_t width = at_cuda_width(p, c->bytes), head = width > 1 && p->head < p->layout.count ? p->head : 0;
  const uint64_t fields[] = {(uint64_t)head, (uint64_t)((p->layout.count - head) / width)};
  uint64_t steps[AT_CUDA_INDICES];
  (void)at_argument(f, "at_u64", "head", &fields[0], 1);
  (void)at_argument(f, "at_u64", "vectors", &fields[1], 1);
  const int tensors = at_cuda_tensor_count(p), indices = p->layout.operand_count - tensors;
  for (int k = 0; k < indices; k++) steps[k] = (uint64_t)p->layout.operands[tensors + k].strides[0];
  for (int k = 0; k < indices; k++) {
    char name[16] = "";
    size_t at = 0;
    (void)at_append(name, sizeof name, &at, "step%d", k);
    (void)at_argument(f, "at_i64", name, &steps[k], 1);
  }
}

int at_contiguous_number(const at_cuda_problem *p) {
  int list[AT_CUDA_INDICES];
  const int count = at_cuda_indices(p->expression, list);
  for (int k = 0; k < count; k++)
    if (list[k] == -1 && p->layout.operands[at_cuda_tensor_count(p) + k].strides[0] == 1) return k;
  return -1;
}

static void finish(at_writer *s, const at_cuda_problem *p) {
  const int outputs = p->expression->output_count;
  at_write(
      s,
      "template <int N> AT_INLINE void at_finish(const at_arguments &a, const at_once &once, const at_still &still,\n"
      "                                        at_u64 element, const at_batch<N> &batch) {\n");
  for (int k = 0; k < outputs; k++) at_write(s, "  %s y%d[N];\n", at_cuda_value((attune_dtype)p->outputs[k]), k);
  const int number = at_contiguous_number(p);
  if (number >= 0) {
    char element[48] = "", first[48] = "";
    size_t at = 0, first_at = 0;
    (void)at_append(element, sizeof element, &at, "a.p%d + (at_i64)element", number);
    (void)at_append(first, sizeof first, &first_at, "a.p%d + (at_i64)a.head", number);
    at_generate_draw_row(s, p->expression, element, first);
  }
  at_write(s, "#pragma unroll\n  for (int k = 0; k < N; k++) {\n    at_in x;\n    at_out y;\n");
  for (int k = outputs; k < p->layout.operand_count; k++) {
    const at_cuda_operand o = at_cuda_operand_of(p, k);
    if (o.letter == 'p')
      at_write(s, "    x.p%d = a.p%d + (at_i64)(element + k) * a.step%d;\n", o.number, o.number, o.number);
    else if (at_cuda_moves(p, k))
      at_write(s, "    x.i%d = batch.i%d.get(k);\n", o.number, o.number);
    else
      at_write(s, "    x.i%d = still.i%d;\n", o.number, o.number);
  }
  if (number >= 0)
    at_generate_draw_take(s, p->expression);
  else
    at_generate_draw_one(s, p->expression, "x");
  at_write(s, "    at_element(a, once, x, y);\n");
  for (int k = 0; k < outputs; k++) at_write(s, "    y%d[k] = y.o%d;\n", k, k);
  at_write(s, "  }\n");
  for (int k = 0; k < outputs; k++)
    at_write(s, "  at_vector<%s, N> z%d;\n  z%d.put(y%d);\n  z%d.store(a.o%d + element * %d);\n",
             at_cuda_tag((attune_dtype)p->outputs[k]), k, k, k, k, k,
             (int)attune_dtype_size((attune_dtype)p->outputs[k]));
  at_write(s, "}\n");
}

/* What lies still is loaded once: at_still. The rest comes in batches. */
void at_contiguous_functions(at_writer *s, const at_cuda_problem *p, const at_cuda_choice *c) {
  (void)c;
  const int tensors = at_cuda_tensor_count(p);
  for (int moving = 0; moving < 2; moving++) {
    at_write(s, moving ? "template <int N> struct at_batch {\n" : "struct at_still {\n");
    for (int k = p->expression->output_count; k < tensors; k++) {
      const at_cuda_operand o = at_cuda_operand_of(p, k);
      if (at_cuda_moves(p, k) != (moving == 1)) continue;
      if (moving)
        at_write(s, "  at_vector<%s, N> i%d;\n", at_cuda_tag(o.dtype), o.number);
      else
        at_write(s, "  %s i%d;\n", at_cuda_value(o.dtype), o.number);
    }
    at_write(s, "};\n");
  }
  for (int moving = 0; moving < 2; moving++) {
    at_write(
        s,
        moving
            ? "template <int N> AT_INLINE void at_fetch(const at_arguments &a, at_u64 element, at_batch<N> &batch) {\n"
            : "AT_INLINE void at_hold(const at_arguments &a, at_still &still) {\n");
    for (int k = p->expression->output_count; k < tensors; k++) {
      const at_cuda_operand o = at_cuda_operand_of(p, k);
      if (at_cuda_moves(p, k) != (moving == 1)) continue;
      if (moving)
        at_write(s, "  batch.i%d.load(a.i%d + element * %d);\n", o.number, o.number, (int)o.bytes);
      else
        at_write(s, "  still.i%d = at_load_one<%s>(a.i%d);\n", o.number, at_cuda_tag(o.dtype), o.number);
    }
    at_write(s, "}\n");
  }
  finish(s, p);
}

static uint64_t blocks(const at_cuda_problem *p, const at_cuda_choice *c) {
  const uint64_t width = (uint64_t)at_cuda_width(p, c->bytes), tile = (uint64_t)c->block * c->loads,
                 vectors = (uint64_t)p->layout.count / width;
  return vectors < tile ? 1 : (vectors + tile - 1) / tile;
}

/* Functions that take long: several vectors a thread then share what is made once, and their chains overlap. */
static bool is_heavy(const at_cuda_problem *p) {
  const at_expression *e = p->expression;
  if (e->uniform_count + e->normal_count > 0 || e->node_count > 40) return true;
  for (int i = 0; i < e->node_count; i++) {
    if (e->nodes[i].kind != AT_NODE_FUNCTION) continue;
    switch ((at_function)e->nodes[i].function) {
    case AT_FN_GELU:
    case AT_FN_ERF:
    case AT_FN_ERFC:
    case AT_FN_POWER:
    case AT_FN_MISH: return true;
    default: break;
    }
  }
  return false;
}

/* Adds choices of a list that the problem can be computed with. */
static int take(const at_cuda_problem *p, const at_cuda_choice *list, size_t length, at_cuda_choice *out, int max) {
  int count = 0;
  for (size_t i = 0; i < length && count < max; i++) {
    out[count] = list[i];
    out[count].form = AT_FORM_VECTOR;
    if (at_contiguous_supports(p, &out[count])) count++;
  }
  return count;
}

const at_cuda_choice at_few_choices[AT_FEW_CHOICES] = {
    {.bytes = 4, .loads = 1, .block = 128},  {.bytes = 8, .loads = 1, .block = 128},
    {.bytes = 16, .loads = 1, .block = 128}, {.bytes = 16, .loads = 1, .block = 256},
    {.bytes = 4, .loads = 1, .block = 256},  {.bytes = 4, .loads = 1, .block = 64},
    {.bytes = 2, .loads = 1, .block = 128},  {.bytes = 1, .loads = 1, .block = 128},
};

static int few(const at_cuda_problem *p, at_cuda_choice *out, int max) {
  return take(p, at_few_choices, AT_FEW_CHOICES, out, max);
}

/* More for random numbers, whose making takes about as long as the memory does. By a sweep of their own on an H200
 * (bench/results/h200-elementwise-dropout.md), of many elements: the first is the best of f32, the second of bf16. */
static int with_draws(const at_cuda_problem *p, at_cuda_choice *out, int max) {
  static const at_cuda_choice more[] = {{.bytes = 16, .loads = 2, .block = 128},
                                        {.bytes = 16, .loads = 6, .block = 128},
                                        {.bytes = 16, .loads = 4, .block = 64}};
  if (p->expression->uniform_count + p->expression->normal_count == 0) return 0;
  const int count = take(p, more, AT_COUNT(more), out, max);
  if (count < 2 || attune_dtype_size(p->outputs[0]) > 2) return count;
  const at_cuda_choice first = out[0];
  out[0] = out[1], out[1] = first;
  return count;
}

/* By bench_elementwise_cuda --sweep on an H200: each was once within 1 % of the best. The last two are
 * for operands that are aligned no better. */
static int candidates(const at_cuda_problem *p, at_cuda_choice *out, int max) {
  static const at_cuda_choice best[] = {
      {.bytes = 16, .loads = 1, .block = 256}, {.bytes = 16, .loads = 4, .block = 128},
      {.bytes = 4, .loads = 4, .block = 256},  {.bytes = 16, .loads = 4, .block = 512},
      {.bytes = 16, .loads = 8, .block = 128}, {.bytes = 16, .loads = 2, .block = 512, .load = 1, .store = 1},
      {.bytes = 16, .loads = 2, .block = 256}, {.bytes = 8, .loads = 4, .block = 256},
      {.bytes = 8, .loads = 1, .block = 128},  {.bytes = 2, .loads = 4, .block = 256},
      {.bytes = 1, .loads = 4, .block = 256},
  };
  const bool large = p->layout.count > 1 << 20;
  const int first = large && is_heavy(p) ? 1 : 0;
  if (at_cuda_is_small(p)) return few(p, out, max);
  int count = large ? with_draws(p, out, max) : 0;
  for (size_t i = 0; i < AT_COUNT(best) && count < max; i++) {
    const size_t k = i > 1 ? i : i == 0 ? (size_t)first : (size_t)(1 - first);
    if (best[k].bytes < 4 && count > 0) break;
    count += take(p, &best[k], 1, out + count, 1);
  }
  return large ? count : count + with_draws(p, out + count, max - count);
}

const at_cuda_form_type at_form_vector = {
    .skeleton = at_form_vector_cuh,
    .supports = at_contiguous_supports,
    .candidates = candidates,
    .fields = at_contiguous_fields,
    .functions = at_contiguous_functions,
    .blocks = blocks,
};
