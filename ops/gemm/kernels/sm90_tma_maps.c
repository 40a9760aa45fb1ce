/* SPDX-License-Identifier: Apache-2.0
 * sm90_tma_maps.c: tensor maps of A and B for sm90_wgmma_16b.cuh; which of them is padded first. */
#include "ops/gemm/kernels/sm90_tma_maps.h"

enum { UNIT = 64, SIZE = 2, PIECE = 16, LINE = 128 /* of the L2 cache */, PLACE = 256 };

/* Sums and products below which a copy first costs more than faster instructions bring. */
static const double WORTH_PADDING = 3e7;

static at_tensor_shape as_it_lies(const at_gemm *g, bool b, int box_lines) {
  return (at_tensor_shape){.length = b ? at_gemm_rows_b(g) : at_gemm_rows_a(g),
                           .lines = b ? at_gemm_cols_b(g) : at_gemm_cols_a(g),
                           .count = (b ? g->stride_b : g->stride_a) == 0 ? 1 : g->batch,
                           .line_bytes = (b ? g->ldb : g->lda) * SIZE,
                           .matrix_bytes = (b ? g->stride_b : g->stride_a) * SIZE,
                           .box_length = UNIT,
                           .box_lines = box_lines,
                           .bfloat = g->dtype == ATTUNE_BF16};
}

bool at_wgmma_pads(const at_gemm *g, bool b) {
  const at_tensor_shape s = as_it_lies(g, b, UNIT);
  return g->alignment < PIECE || (s.lines > 1 && s.line_bytes % PIECE != 0) ||
         (s.count > 1 && s.matrix_bytes % PIECE != 0);
}

at_tensor_shape at_wgmma_tensor(const at_gemm *g, bool b, int box_lines) {
  at_tensor_shape s = as_it_lies(g, b, box_lines);
  if (!at_wgmma_pads(g, b)) return s;
  s.line_bytes = (s.length * SIZE + LINE - 1) / LINE * LINE;
  s.matrix_bytes = s.lines * s.line_bytes;
  return s;
}

/* No overflow here: at_wgmma_reaches looks at the sizes. */
int64_t at_wgmma_padded_bytes(const at_gemm *g, bool b) {
  const at_tensor_shape s = at_wgmma_tensor(g, b, UNIT);
  return at_wgmma_pads(g, b) ? (s.matrix_bytes * s.count + PLACE - 1) / PLACE * PLACE : 0;
}

int64_t at_wgmma_pad_blocks(const at_gemm *g, bool b) {
  const at_tensor_shape s = at_wgmma_tensor(g, b, UNIT);
  const int64_t pieces = (s.length * SIZE + PIECE - 1) / PIECE * s.lines * s.count;
  return at_wgmma_pads(g, b) ? (pieces + AT_WGMMA_PIECES - 1) / AT_WGMMA_PIECES : 0;
}

bool at_wgmma_reaches(const at_gemm *g) {
  const at_tensor_shape a = at_wgmma_tensor(g, false, UNIT), b = at_wgmma_tensor(g, true, UNIT);
  const bool pads_a = at_wgmma_pads(g, false), pads_b = at_wgmma_pads(g, true);
  if (!at_tensor_shape_fits(&a) || !at_tensor_shape_fits(&b)) return false;
  if (!pads_a && !pads_b) return true;
  const double room = (double)g->workspace_cap, products = (double)g->m * (double)g->n * (double)g->k;
  if (g->alignment < SIZE || products * (double)g->batch < WORTH_PADDING) return false;
  if (pads_a && (double)a.matrix_bytes * (double)a.count > room) return false;
  if (pads_b && (double)b.matrix_bytes * (double)b.count > room) return false;
  return at_wgmma_padded_bytes(g, false) + at_wgmma_padded_bytes(g, true) <= (int64_t)(room < 2e9 ? room : 2e9);
}
