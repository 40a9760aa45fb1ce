/* SPDX-License-Identifier: Apache-2.0
 * simplify.h: calls of functions that are another node or another call. */
#ifndef AT_ELEMENTWISE_SIMPLIFY_H
#define AT_ELEMENTWISE_SIMPLIFY_H

#include "ops/elementwise/builder.h"

/* A function of nodes that is another, simpler node: *out, and true. It may build a constant. */
bool at_simplify(at_builder *b, at_function function, attune_dtype dtype, const int *arguments, int *out);

/* Turns a call into an equal one of another function or of other arguments that is cheaper, or the usual way to write
 * both; false: it is as it was. It may build a constant. */
bool at_rewrite(at_builder *b, at_function *function, int *arguments);

#endif
