/* SPDX-License-Identifier: Apache-2.0
 * reduce_on_host.h: the kernel of reduce.cu as a C function of an at_reduce_call, run_OP_DTYPE_0 and, for its WIDE
 * form, run_OP_DTYPE_1. Included once for each OP and DTYPE: it has no guard, and includes itself for the two forms. */
#ifndef WIDE
#define WIDE 0
#include "tests/src/comm/reduce_on_host.h"
#define WIDE 1
#include "tests/src/comm/reduce_on_host.h"
#undef DTYPE
#else
#define PASTE_(name, op, dtype, wide) name##_##op##_##dtype##_##wide
#define PASTE(name, op, dtype, wide) PASTE_(name, op, dtype, wide)
#define element PASTE(element, OP, DTYPE, WIDE)
#define wider PASTE(wider, OP, DTYPE, WIDE)
#define at_reduce_arguments PASTE(at_reduce_arguments, OP, DTYPE, WIDE)
#define piece PASTE(piece, OP, DTYPE, WIDE)
#define combine PASTE(combine, OP, DTYPE, WIDE)
#define take_one PASTE(take_one, OP, DTYPE, WIDE)
#define take_piece PASTE(take_piece, OP, DTYPE, WIDE)
#define at_reduce PASTE(at_reduce, OP, DTYPE, WIDE)
#include "src/cuda/reduce/reduce.cu"

_Static_assert(sizeof(struct at_reduce_arguments) == sizeof(at_reduce_call), "reduce.h and reduce.cu agree");

static void PASTE(run, OP, DTYPE, WIDE)(const at_reduce_call *call) {
  struct at_reduce_arguments a;
  memcpy(&a, call, sizeof a);
  at_reduce(a);
}
#undef PASTE_
#undef PASTE
#undef element
#undef wider
#undef at_reduce_arguments
#undef piece
#undef combine
#undef take_one
#undef take_piece
#undef at_reduce
#undef EACH
#undef SIGNED
#undef finish
#undef load
#undef store
#undef WIDE
#endif
