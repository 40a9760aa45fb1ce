/* SPDX-License-Identifier: Apache-2.0
 * list.c: the list of all operations. Alone in its file, so that a linker takes a program's own list in its place. */
#include "ops/ops.h"

#define AT_OPERATION(name, NAME) extern const at_op at_##name##_op;
#include "ops/operations.def"
#undef AT_OPERATION

#define AT_OPERATION(name, NAME) [AT_OP_##NAME] = &at_##name##_op,
const at_op *const at_ops[] = {
#include "ops/operations.def"
};
const int at_op_count = AT_OP_COUNT;
