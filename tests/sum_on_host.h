/* SPDX-License-Identifier: Apache-2.0
 * sum_on_host.h: the kernel of sum.cu as C functions, one for each DTYPE and WIDE. Included once for each: it has no guard. */
#define PASTE_(name, dtype, wide) name##_##dtype##_##wide
#define PASTE(name, dtype, wide) PASTE_(name, dtype, wide)
#define element PASTE(element, DTYPE, WIDE)
#define wider PASTE(wider, DTYPE, WIDE)
#define at_sum_arguments PASTE(at_sum_arguments, DTYPE, WIDE)
#define piece PASTE(piece, DTYPE, WIDE)
#define add_one PASTE(add_one, DTYPE, WIDE)
#define add_piece PASTE(add_piece, DTYPE, WIDE)
#define at_sum PASTE(at_sum, DTYPE, WIDE)
#include "src/comm/sum.cu"

_Static_assert(sizeof(struct at_sum_arguments) == sizeof(at_sum_call), "sum.h and sum.cu agree");
#undef PASTE_
#undef PASTE
#undef element
#undef wider
#undef at_sum_arguments
#undef piece
#undef add_one
#undef add_piece
#undef at_sum
#undef EACH
#undef load
#undef store
#undef DTYPE
#undef WIDE
