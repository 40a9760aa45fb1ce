/* SPDX-License-Identifier: Apache-2.0
 * list.h: the list of all operations. A program that is linked with the static library may bring its own. */
#ifndef AT_OPS_LIST_H
#define AT_OPS_LIST_H

#include "tuning/op.h"

extern const at_op *const at_ops[];
extern const int at_op_count;

#endif
