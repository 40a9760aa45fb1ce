/* SPDX-License-Identifier: Apache-2.0
 * gated.h: the product of a gated problem on its way through scratch memory, since D has no room for it: in pieces
 * along the side that is not halved where the memory is small. */
#ifndef AT_GEMM_EPILOGUE_GATED_H
#define AT_GEMM_EPILOGUE_GATED_H

#include "ops/gemm/epilogue/pass.h"

/* All pieces have the same size, so the last one overlaps the one before it: D's elements may be made twice. */
typedef struct at_gated_split {
  at_gemm product;              /* of a piece, into the scratch memory; no epilogue */
  at_gemm piece;                /* what the pass sees */
  int64_t count;                /* of pieces of a matrix; step: from one to the next; last: where the last begins */
  int64_t step, last, matrices; /* matrices: taken one by one; 1: all of a batch are one piece */
  size_t bytes;                 /* of scratch memory */
} at_gated_split;

/* False: `room` bytes are too few for any piece. */
bool at_gated_split_of(at_gated_split *out, const at_gemm *g, size_t room);

static inline int64_t at_gated_pieces(const at_gated_split *s) {
  return s->count * s->matrices;
}

/* The operands of piece i for the pass; for the product d is the scratch memory. */
at_gemm_operands at_gated_operands(const at_gated_split *s, const at_gemm *g, const at_gemm_operands *o, int64_t i);

/* Where the product of a piece is. */
static inline at_pass_input at_gated_input(const at_gated_split *s, const void *scratch) {
  return (at_pass_input){scratch, s->product.ldd, s->product.stride_d};
}

#endif
