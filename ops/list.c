/* SPDX-License-Identifier: Apache-2.0
 * list.c: the list of all operations. Alone in its file, so that a linker takes a program's own list in its place. */
#include "ops/elementwise/problem/problem.h"
#include "ops/gemm/problem/problem.h"
#include "ops/ops.h"

const at_op *const at_ops[] = {[AT_OP_GEMM] = &at_gemm_op, [AT_OP_ELEMENTWISE] = &at_elementwise_op};
const int at_op_count = AT_OP_COUNT;
