/* SPDX-License-Identifier: Apache-2.0
 * gemm_cases.c: every dtype x transposes x layout x shape; what else can differ is drawn from the case's number, so
 * that each pair of values meets many times without a list of all products. */
#include "tests/ops/gemm/gemm_cases.h"
#include "src/base/splitmix64.h"

#include <stdio.h>

typedef struct dtypes {
  attune_dtype in, out;
} dtypes;

static const dtypes KINDS[] = {{ATTUNE_F64, ATTUNE_F64},   {ATTUNE_F32, ATTUNE_F32},  {ATTUNE_F16, ATTUNE_F16},
                               {ATTUNE_BF16, ATTUNE_BF16}, {ATTUNE_F16, ATTUNE_F32},  {ATTUNE_BF16, ATTUNE_F32},
                               {ATTUNE_C64, ATTUNE_C64},   {ATTUNE_C128, ATTUNE_C128}};

/* Tiny, odd, one below and above the vector and tile widths, skinny in each direction, k = 1, longer than the blocks of
 * a blocked product; the sizes of nothing; and one for kernels that take whole steps of k. The last column: matrices in
 * a batch, 0 draws it. */
static const struct {
  int m, n, k, batch;
} SHAPES[] = {{1, 1, 1, 0},    {2, 3, 1, 0},     {7, 5, 3, 0},     {16, 16, 16, 0},   {17, 31, 13, 0},
              {33, 1, 65, 0},  {1, 29, 40, 0},   {1, 1, 300, 0},   {64, 63, 65, 0},   {5, 130, 2, 0},
              {129, 4, 70, 0}, {3, 3, 1100, 1},  {96, 97, 1, 0},   {31, 48, 33, 0},   {32, 32, 32, 0},
              {8, 100, 24, 0}, {260, 25, 19, 1}, {70, 50, 520, 1}, {0, 4, 5, 0},      {4, 0, 5, 2},
              {4, 5, 0, 0},    {6, 5, 4, -1},    {96, 8, 512, 1},  {128, 16, 512, 1}, {64, 8, 1024, 1}};
enum { KIND_COUNT = 8, TRANSPOSES = 4, LAYOUTS = 2, SHAPE_COUNT = sizeof SHAPES / sizeof SHAPES[0] };

int at_gemm_case_count(void) {
  return KIND_COUNT * TRANSPOSES * LAYOUTS * SHAPE_COUNT;
}

static int draw(uint64_t *state, int count) {
  return (int)(at_splitmix64(state) % (uint64_t)count);
}

/* Leading dimension and stride of one matrix, `inner` elements side by side, `outer` of them: packed, padded, or the
 * same matrix. */
static void draw_matrix(uint64_t *state, int64_t inner, int64_t outer, int64_t batch, bool input, int64_t *ld,
                        int64_t *stride) {
  static const int pads[] = {0, 0, 1, 3, 8};
  const int pad = pads[draw(state, 5)];
  if (pad) *ld = (inner > 1 ? inner : 1) + pad;
  const int64_t own = *ld ? *ld : inner > 1 ? inner : 1;
  const int choice = draw(state, 4);
  if (batch < 2 || choice < 2) return;
  if (choice == 2)
    *stride = own * outer + 1 + draw(state, 12);
  else if (input)
    *stride = ATTUNE_BROADCAST;
}

static void draw_matrices(uint64_t *state, at_gemm_case *c) {
  attune_gemm_problem *p = &c->problem;
  const bool row = p->layout == ATTUNE_ROW_MAJOR;
  const bool a_lines_k = (p->trans_a != ATTUNE_N) != row,
             b_lines_n = (p->trans_b != ATTUNE_N) != row; /* elements side by side */
  const int64_t d_inner = row ? p->n : p->m, d_outer = row ? p->m : p->n;
  draw_matrix(state, a_lines_k ? p->k : p->m, a_lines_k ? p->m : p->k, p->batch, true, &p->lda, &p->stride_a);
  draw_matrix(state, b_lines_n ? p->n : p->k, b_lines_n ? p->k : p->n, p->batch, true, &p->ldb, &p->stride_b);
  draw_matrix(state, d_inner, d_outer, p->batch, false, &p->ldd, &p->stride_d);
  if (c->c == AT_C_SEPARATE) draw_matrix(state, d_inner, d_outer, p->batch, true, &p->ldc, &p->stride_c);
  if (c->c == AT_C_INPLACE) {
    p->ldc = p->ldd;
    p->stride_c = p->stride_d;
  }
}

void at_gemm_case_at(int index, at_gemm_case *out) {
  static const double alphas[] = {1.0, 1.0, -1.5, -1.5, 0.0}, betas[] = {1.0, -1.5, 0.0};
  uint64_t state = (uint64_t)index * 0x9E3779B97F4A7C15u + 12345;
  at_splitmix64(&state);
  const dtypes kind = KINDS[index % KIND_COUNT];
  const int transposes = index / KIND_COUNT % TRANSPOSES, layout = index / KIND_COUNT / TRANSPOSES % LAYOUTS;
  const int shape = index / KIND_COUNT / TRANSPOSES / LAYOUTS, batch = SHAPES[shape].batch;
  *out = (at_gemm_case){.problem = ATTUNE_GEMM_PROBLEM_INIT};
  attune_gemm_problem *p = &out->problem;
  p->dtype = kind.in;
  p->dtype_out = kind.in == kind.out && draw(&state, 2) ? (attune_dtype)0 : kind.out;
  p->layout = layout ? ATTUNE_ROW_MAJOR : ATTUNE_COLUMN_MAJOR;
  p->trans_a = transposes & 1 ? ATTUNE_T : ATTUNE_N;
  p->trans_b = transposes & 2 ? ATTUNE_T : ATTUNE_N;
  p->m = SHAPES[shape].m;
  p->n = SHAPES[shape].n;
  p->k = SHAPES[shape].k;
  p->batch = batch < 0         ? ATTUNE_EMPTY_BATCH
             : batch > 0       ? batch
             : draw(&state, 3) ? index / 7 % 2 /* 0 is one, too */
                               : 2 + draw(&state, 3);
  p->contract.deterministic = draw(&state, 4) == 0;
  out->c = (at_gemm_c)draw(&state, 3);
  out->alpha = alphas[draw(&state, 5)];
  out->beta = out->c == AT_C_NONE ? 0.0 : betas[draw(&state, 3)];
  out->data = (at_gemm_data)draw(&state, AT_DATA_KINDS);
  const int in = (int)attune_dtype_size(at_gemm_part(kind.in)), result = (int)attune_dtype_size(at_gemm_part(kind.out));
  out->alignment = AT_ALIGNMENT;
  for (int i = draw(&state, 7); i > 0 && out->alignment > (in > result ? in : result); i--) out->alignment /= 2;
  draw_matrices(&state, out);
  out->seed = at_splitmix64(&state);
  if (p->trans_a == ATTUNE_T && draw(&state, 2)) p->trans_a = ATTUNE_C; /* of a real type the same */
  if (p->trans_b == ATTUNE_T && draw(&state, 2)) p->trans_b = ATTUNE_C;
  if (at_gemm_complex(kind.in)) {
    static const double imaginary[] = {0.0, 0.0, 0.75, -2.0};
    out->alpha_imag = imaginary[draw(&state, 4)];
    if (out->c != AT_C_NONE) out->beta_imag = imaginary[draw(&state, 4)];
  }
  snprintf(out->name, sizeof out->name, "%d: %s:%s %c%c %s %dx%dx%d", index, attune_dtype_name(kind.in),
           attune_dtype_name(kind.out), "ntc"[p->trans_a], "ntc"[p->trans_b], layout ? "row" : "column",
           SHAPES[shape].m, SHAPES[shape].n, SHAPES[shape].k);
}
