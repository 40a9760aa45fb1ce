/* SPDX-License-Identifier: Apache-2.0
 * ops.h: the operations and their numbers: keys and recent calls tell them apart by these. */
#ifndef AT_OPS_H
#define AT_OPS_H

#include "tuning/op/op.h"

#define AT_OPERATION(name, NAME) AT_OP_##NAME,
enum {
#include "ops/operations.def"
  AT_OP_COUNT
};
#undef AT_OPERATION

/* list.c: all of them. A program that is linked with the static library may bring its own list, gemm first. */
extern const at_op *const at_ops[];
extern const int at_op_count;

#endif
