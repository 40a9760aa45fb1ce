/* SPDX-License-Identifier: Apache-2.0
 * ir_build.h: casts and functions of a graph in the making: what is known is folded, what changes nothing is left out. */
#ifndef AT_ELEMENTWISE_IR_BUILD_H
#define AT_ELEMENTWISE_IR_BUILD_H

#include "ops/elementwise/ir/node_table.h"

int at_build_cast(at_node_table *b, int node, attune_dtype dtype);
int at_build_function(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments);

/* The same as they are written: nothing is folded, left out or changed. */
int at_plain_cast(at_node_table *b, int node, attune_dtype dtype);
int at_plain_function(at_node_table *b, at_function function, attune_dtype dtype, const int *arguments);

#endif
