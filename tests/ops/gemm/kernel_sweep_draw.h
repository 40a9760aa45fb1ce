/* SPDX-License-Identifier: Apache-2.0
 * kernel_sweep_draw.h: what test_cuda_kernel_sweep.c draws: the families' sizes, classes of problems that have dtype,
 * transposes and alignment in common, and problems of a class. */
#ifndef TESTS_KERNEL_SWEEP_DRAW_H
#define TESTS_KERNEL_SWEEP_DRAW_H

#include "ops/gemm/implementations.h"
#include "ops/gemm/kernels/kernel.h"
#include "tests/ops/gemm/kernel_sweep.h"

enum { SIDE_MOST = 8192, OUTPUTS_MOST = 1 << 20 };

typedef int64_t sizes[3]; /* m, n, k */

static inline int64_t between(int64_t least, int64_t most) {
  return least + (int64_t)((random_bits() >> 20) % (uint64_t)(most - least + 1));
}

/* Small numbers as often as large ones. */
static inline int64_t any_size(int64_t most) {
  const int64_t top = (int64_t)1 << between(0, 13);
  const int64_t size = between(top / 2 + 1, top + 1);
  return size < most ? size : most;
}

static inline void tiny_sizes(sizes s) {
  for (int i = 0; i < 3; i++) s[i] = between(1, 64);
}

static inline void direct_sizes(sizes s) {
  for (int i = 0; i < 3; i++) s[i] = 16 * between(1, 4);
}

static inline void thin_sizes(sizes s) {
  const bool across = between(0, 1);
  s[across ? 0 : 1] = between(1, 64);
  s[across ? 1 : 0] = any_size(SIDE_MOST);
  s[2] = any_size(between(0, 3) ? 2000 : SIDE_MOST);
}

static inline void tiled_sizes(sizes s) {
  const bool deep = between(0, 3) == 0;
  s[0] = any_size(deep ? 200 : SIDE_MOST), s[1] = any_size(deep ? 200 : 1500);
  s[2] = deep ? between(500, SIDE_MOST) : any_size(1500);
  if (between(0, 1)) {
    const int64_t m = s[0];
    s[0] = s[1], s[1] = m;
  }
}

static inline void large_sizes(sizes s) {
  for (int i = 0; i < 3; i++) s[i] = any_size(2047);
  for (int i = 0; i < 3; i++) s[i] = s[i] < 300 ? s[i] + 300 : s[i];
}

typedef struct family {
  const at_implementation *implementation;
  void (*draw)(sizes s);
  bool own;  /* each size has a kernel of its own */
  int least; /* of sizes that are swept */
} family;

static const family families[] = {
    {&at_gemm_sm80_batched_smem, tiny_sizes, true, 1},   {&at_gemm_sm80_batched_reg_16b, direct_sizes, true, 1},
    {&at_gemm_sm80_skinny_mmajor, thin_sizes, false, 1}, {&at_gemm_sm80_skinny_reg, thin_sizes, false, 1},
    {&at_gemm_sm80_mma, tiled_sizes, false, 1},          {&at_gemm_sm80_simt_f32, tiled_sizes, false, 1},
    {&at_gemm_sm90_wgmma_16b, tiled_sizes, false, 1},    {&at_gemm_sm90_wgmma_bf16x6, large_sizes, false, 64}};

/* ---- problems ---- */

static const attune_dtype kinds[][2] = {{ATTUNE_F32, ATTUNE_F32}, {ATTUNE_F64, ATTUNE_F64},
                                        {ATTUNE_F16, ATTUNE_F16}, {ATTUNE_BF16, ATTUNE_BF16},
                                        {ATTUNE_F16, ATTUNE_F32}, {ATTUNE_BF16, ATTUNE_F32}};

/* Fields that the problems of a batch share. */
typedef struct class {
  attune_dtype in, out;
  int ta, tb;
  at_gemm_c c;
  attune_accuracy accuracy;
  int address, lines[3]; /* operands, and lines of A, B and D, begin at multiples of so many bytes */
} class;

enum { WIDEST = 16 }; /* the largest alignment that a kernel asks for */

static inline class class_at(const family *f, uint64_t number) {
  class c = {.ta = number & 1, .tb = number >> 1 & 1, .c = (at_gemm_c)between(0, 2)};
  const int kind = (int)(number / 4 % AT_COUNT(kinds));
  c.in = kinds[kind][0], c.out = kinds[kind][1];
  if (f->implementation == &at_gemm_sm90_wgmma_bf16x6) c.in = c.out = ATTUNE_F32, c.accuracy = ATTUNE_EQUIVALENT;
  if (f->implementation == &at_gemm_sm80_simt_f32) {
    c.in = c.out = ATTUNE_F32;
    if (between(0, 2) == 0) c.accuracy = ATTUNE_EQUIVALENT;
  }
  if (f->implementation == &at_gemm_sm80_mma && c.in == ATTUNE_F32) c.accuracy = ATTUNE_REDUCED;
  if (f->implementation == &at_gemm_sm80_skinny_mmajor) c.in = c.out = kinds[kind & 1][0];
  if (c.in == ATTUNE_F64 || c.in == ATTUNE_F32) c.out = c.in;
  const bool aligned = c.in != c.out || c.in == ATTUNE_F16 || c.in == ATTUNE_BF16
                           ? f->implementation == &at_gemm_sm90_wgmma_16b ||
                                 f->implementation == &at_gemm_sm80_batched_reg_16b || between(0, 1)
                           : between(0, 1);
  c.address = aligned ? WIDEST << between(0, 1) : between(0, 1) ? WIDEST : 1 << between(0, 3);
  for (int i = 0; i < 3; i++) c.lines[i] = aligned ? WIDEST : c.address < WIDEST ? c.address : 1 << between(0, 4);
  return c;
}

static inline int64_t unit_of(int bytes, attune_dtype dtype) {
  const int element = (int)attune_dtype_size(dtype);
  return bytes > element ? bytes / element : 1;
}

/* A multiple of the unit, from `size` on. `exactly`: of no unit twice as large, so that all problems of a class permit
 * the same accesses. */
static inline int64_t place(int64_t size, int64_t unit, bool exactly) {
  const int64_t count = (size + unit - 1) / unit + between(0, 1) * between(0, 2);
  return unit * (exactly ? count | 1 : count);
}

/* A matrix's line and stride; `shared`: one matrix for the whole batch. */
static inline void lay_out(block *m, int64_t rows, int64_t cols, int bytes, attune_dtype dtype, int64_t batch,
                           bool shared) {
  const int64_t unit = unit_of(bytes, dtype);
  m->rows = rows, m->cols = cols;
  m->ld = place(rows, unit, bytes < WIDEST);
  m->stride = batch == 1 || shared ? 0 : place(m->ld * cols, unit, bytes < WIDEST);
}

static inline bool fits_the_pool(const trial *t) {
  const int64_t batch = t->g.batch;
  return elements_of(&t->a, batch) <= POOL && elements_of(&t->b, batch) <= POOL &&
         t->d.rows * t->d.cols * batch <= OUTPUTS_MOST;
}

/* The problem without its alignment, which its addresses make. */
static inline bool set_up(trial *t, const class *of, const sizes s, int64_t batch) {
  *t = (trial){.alpha = between(0, 1) ? 1.0 : -1.5, .data = (int)between(0, DATA_ALL - 1)};
  at_gemm *g = &t->g;
  *g = (at_gemm){.m = s[0], .n = s[1], .k = s[2], .batch = batch, .workspace_cap = ATTUNE_WORKSPACE_DEFAULT};
  g->dtype = (uint8_t)of->in, g->dtype_out = (uint8_t)of->out, g->accuracy = (uint8_t)of->accuracy;
  g->trans_a = (uint8_t)of->ta, g->trans_b = (uint8_t)of->tb, g->c = (uint8_t)of->c;
  g->deterministic = (uint8_t)between(0, 1);
  lay_out(&t->a, at_gemm_rows_a(g), at_gemm_cols_a(g), of->lines[0], of->in, batch, between(0, 5) == 0);
  lay_out(&t->b, at_gemm_rows_b(g), at_gemm_cols_b(g), of->lines[1], of->in, batch, between(0, 5) == 0);
  lay_out(&t->d, g->m, g->n, of->lines[2], of->out, batch, false);
  g->lda = t->a.ld, g->ldb = t->b.ld, g->ldd = t->d.ld;
  g->stride_a = t->a.stride, g->stride_b = t->b.stride, g->stride_d = t->d.stride;
  if (of->c == AT_C_SEPARATE) {
    lay_out(&t->c, g->m, g->n, of->lines[2], of->out, batch, between(0, 5) == 0);
    g->ldc = t->c.ld, g->stride_c = t->c.stride;
  } else if (of->c == AT_C_INPLACE) {
    g->ldc = g->ldd, g->stride_c = g->stride_d;
  }
  t->beta = of->c == AT_C_NONE || between(0, 2) == 0 ? 0.0 : between(0, 1) ? 0.75 : 1.0;
  return fits_the_pool(t);
}

/* Elements between guard and operand, of A, B, C, D; the problem's alignment. */
static inline void shift(trial *t, const class *of, int shifts[4]) {
  uint64_t bits = 128;
  for (int i = 0; i < 4; i++) {
    const attune_dtype dtype = i < 2 ? of->in : of->out;
    const int64_t unit = unit_of(of->address, dtype), count = i == 3 && of->address < WIDEST ? 1 : between(0, 5);
    shifts[i] = (int)(unit * count);
    if (i != 2 || of->c == AT_C_SEPARATE) bits |= (uint64_t)shifts[i] * attune_dtype_size(dtype);
  }
  t->g.alignment = (uint8_t)(bits & (~bits + 1));
}

#endif
