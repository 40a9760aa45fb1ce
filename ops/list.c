/* SPDX-License-Identifier: Apache-2.0
 * list.c: see list.h. Alone in its file, so that a linker takes a program's own list in its place. */
#include "ops/list.h"

#include "ops/gemm/problem.h"

const at_op *const at_ops[] = {&at_gemm_op};
const int at_op_count = AT_COUNT(at_ops);
