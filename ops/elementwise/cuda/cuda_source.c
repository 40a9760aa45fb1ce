/* SPDX-License-Identifier: Apache-2.0
 * cuda_source.c: texts that grow, arguments described once, and what the forms ask about operands. */
#include "ops/elementwise/cuda/cuda_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int at_argument(at_arguments *f, const char *type, const char *name, const uint64_t *values, int count) {
  const int first = f->count;
  if (f->source && count == 1) at_write(f->source, "  %s %s;\n", type, name);
  if (f->source && count > 1) at_write(f->source, "  %s %s[%d];\n", type, name, count);
  for (int i = 0; i < count; i++, f->count++)
    if (f->launch && f->count < AT_CUDA_WORDS) f->launch->words[f->count] = values ? values[i] : 0;
  return first;
}

int at_cuda_tensor_count(const at_cuda_problem *p) {
  return p->expression->output_count + p->expression->input_count;
}

at_cuda_operand at_cuda_operand_of(const at_cuda_problem *p, int k) {
  const at_expression *e = p->expression;
  at_cuda_operand o = {.letter = 'p', .number = k - at_cuda_tensor_count(p), .dtype = ATTUNE_I64};
  if (k < e->output_count)
    o = (at_cuda_operand){.letter = 'o', .number = k, .dtype = (attune_dtype)p->outputs[k]};
  else if (k < at_cuda_tensor_count(p))
    o = (at_cuda_operand){.letter = 'i', .number = k - e->output_count};
  if (o.letter == 'i') o.dtype = (attune_dtype)e->inputs[o.number].dtype;
  o.bytes = attune_dtype_size(o.dtype);
  return o;
}

typedef struct type_name {
  const char *tag, *value;
} type_name;

static const type_name names[] = {
    [ATTUNE_F64] = {"at_f64", "double"},
    [ATTUNE_F32] = {"at_f32", "float"},
    [ATTUNE_F16] = {"at_f16", "float"},
    [ATTUNE_BF16] = {"at_bf16", "float"},
    [ATTUNE_I32] = {"at_s32", "int"},
    [ATTUNE_I64] = {"at_s64", "at_i64"},
    [ATTUNE_I8] = {"at_s8", "signed char"},
    [ATTUNE_I16] = {"at_s16", "short"},
    [ATTUNE_U8] = {"at_n8", "unsigned char"},
    [ATTUNE_U16] = {"at_n16", "unsigned short"},
    [ATTUNE_U32] = {"at_n32", "at_u32"},
    [ATTUNE_U64] = {"at_n64", "at_u64"},
    [ATTUNE_BOOL] = {"at_truth", "bool"},
    [ATTUNE_F8E4M3] = {"at_e4m3", "float"},
    [ATTUNE_F8E5M2] = {"at_e5m2", "float"},
    [ATTUNE_C64] = {"at_complex64", "at_c64"},
    [ATTUNE_C128] = {"at_complex128", "at_c128"},
};

const char *at_cuda_tag(attune_dtype dtype) {
  return names[dtype].tag;
}

const char *at_cuda_value(attune_dtype dtype) {
  return names[dtype].value;
}

bool at_cuda_moves(const at_cuda_problem *p, int k) {
  for (int d = 0; d < p->layout.dims; d++)
    if (p->layout.operands[k].strides[d] != 0) return true;
  return false;
}

int at_cuda_width(const at_cuda_problem *p, int bytes) {
  size_t widest = 1;
  for (int k = 0; k < at_cuda_tensor_count(p); k++) {
    const size_t size = at_cuda_operand_of(p, k).bytes;
    if (at_cuda_moves(p, k) && size > widest) widest = size;
  }
  return bytes / (int)widest;
}

bool at_cuda_aligned(const at_cuda_problem *p, int k, int dimension, int width) {
  const int64_t size = (int64_t)at_cuda_operand_of(p, k).bytes, bytes = size * width, access = bytes < 16 ? bytes : 16;
  if (p->alignment[k] % access != 0) return false;
  for (int d = 0; d < p->layout.dims; d++) {
    const int64_t stride = p->layout.operands[k].strides[d];
    if (d != dimension && stride * size % access != 0) return false;
  }
  return true;
}

/* With 2^shift >= d the factor is 2^w (2^shift / d - 1), rounded up: n / d = (n + (n factor >> w)) >> shift. */
uint64_t at_cuda_divider(uint64_t d) {
  uint64_t shift = 0;
  while ((UINT64_C(1) << shift) < d) shift++;
  const uint64_t factor = (((UINT64_C(1) << shift) - d) << 32) / d + 1;
  return (factor & UINT32_MAX) | shift << 32;
}

__extension__ typedef unsigned __int128 wide;

void at_cuda_long_divider(uint64_t out[2], uint64_t d) {
  uint64_t shift = 0;
  while (shift < 63 && (UINT64_C(1) << shift) < d) shift++;
  out[0] = (uint64_t)(((((wide)1 << shift) - d) << 64) / d + 1);
  out[1] = shift;
}

int at_cuda_indices(const at_expression *e, int out[AT_CUDA_INDICES]) {
  int count = 0;
  if (e->element || e->uniform_count || e->normal_count) out[count++] = -1;
  for (int d = 0; d <= e->max_position && d < AT_DIMS; d++) out[count++] = d;
  return count;
}
