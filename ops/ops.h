/* SPDX-License-Identifier: Apache-2.0
 * ops.h: the numbers of the operations: keys and recent calls tell them apart by these. */
#ifndef AT_OPS_H
#define AT_OPS_H

enum { AT_OP_GEMM, AT_OP_COUNT };

#endif
