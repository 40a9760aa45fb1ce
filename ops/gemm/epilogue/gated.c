/* SPDX-License-Identifier: Apache-2.0
 * gated.c: see gated.h. */
#include "ops/gemm/epilogue/gated.h"

enum {
  PLACE = 256 /* bytes: where what lies in a workspace begins */,
  UNIT = 64 /* elements: pieces begin at multiples of it, which keep the alignment */,
  GRAIN = 8 /* of a column */
};

static int64_t up(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

/* The side that is not halved. */
static bool along_n(const at_gemm *g) {
  return g->gated == ATTUNE_GATED_M;
}

static size_t element_of(const at_gemm *g) {
  return attune_dtype_size((attune_dtype)g->dtype_out);
}

/* What a matrix of the batch is aligned to where each is a problem of its own. */
static uint8_t alignment_of(const at_gemm *g) {
  const uint64_t in = attune_dtype_size((attune_dtype)g->dtype), out = element_of(g);
  const uint64_t bits =
      g->alignment | (uint64_t)(g->stride_a | g->stride_b) * in | (uint64_t)(g->stride_d | g->stride_residual) * out;
  return (uint8_t)(bits & (~bits + 1));
}

static void use_scratch(at_gated_split *s) {
  at_gemm *p = &s->product;
  *p = at_gemm_without_epilogue(&s->piece);
  p->ldd = up(p->m, GRAIN);
  p->stride_d = p->batch > 1 ? p->ldd * p->n : 0;
  s->bytes = (size_t)up(p->ldd * p->n * p->batch * (int64_t)element_of(p), PLACE);
}

static void take_matrices_apart(at_gated_split *s, const at_gemm *g) {
  at_gemm *p = &s->piece;
  s->matrices = g->batch;
  p->alignment = alignment_of(g);
  p->batch = 1;
  p->stride_a = p->stride_b = p->stride_d = p->stride_residual = 0;
}

bool at_gated_split_of(at_gated_split *out, const at_gemm *g, size_t room) {
  *out = (at_gated_split){.piece = *g, .count = 1, .matrices = 1};
  room = room / PLACE * PLACE;
  const double line = (double)element_of(g) * (double)up(along_n(g) ? g->m : g->n, GRAIN),
               all = along_n(g) ? (double)g->n : (double)up(g->m, GRAIN), most = (double)room / line;
  if (all * (double)g->batch > most) {
    int64_t *side = along_n(g) ? &out->piece.n : &out->piece.m;
    take_matrices_apart(out, g);
    if (all > most) {
      const int64_t whole = *side, fits = (int64_t)most - (along_n(g) ? 0 : GRAIN);
      *side = whole - up(whole - fits, UNIT);
      if (*side < UNIT) return false;
      out->step = *side / UNIT * UNIT;
      out->last = whole - *side;
      out->count = 1 + (out->last + out->step - 1) / out->step;
    }
  }
  use_scratch(out);
  const uint64_t left = g->workspace_cap > out->bytes ? (g->workspace_cap - out->bytes) / PLACE * PLACE : 0;
  out->product.workspace_cap = left ? left : 1;
  return true;
}

static const void *later(const void *data, int64_t elements, size_t element) {
  return data ? (const char *)data + elements * (int64_t)element : NULL;
}

at_gemm_operands at_gated_operands(const at_gated_split *s, const at_gemm *g, const at_gemm_operands *o, int64_t i) {
  at_gemm_operands out = *o;
  const int64_t matrix = i / s->count, wanted = i % s->count * s->step, first = wanted < s->last ? wanted : s->last;
  const size_t in = attune_dtype_size((attune_dtype)g->dtype), result = element_of(g),
               bias = g->epilogue.bias ? attune_dtype_size(at_gemm_bias_dtype(g)) : 0;
  const bool n = along_n(g);
  out.a = later(o->a, matrix * g->stride_a + (n ? 0 : first * (g->trans_a ? g->lda : 1)), in);
  out.b = later(o->b, matrix * g->stride_b + (n ? first * (g->trans_b ? 1 : g->ldb) : 0), in);
  out.d = (void *)(uintptr_t)later(o->d, matrix * g->stride_d + first * (n ? g->ldd : 1), result);
  out.residual = later(o->residual, matrix * g->stride_residual + first * (n ? g->ld_residual : 1), result);
  if ((g->epilogue.bias == ATTUNE_BIAS_N) == n) out.bias = later(o->bias, first, bias);
  return out;
}
