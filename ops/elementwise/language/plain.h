/* SPDX-License-Identifier: Apache-2.0
 * plain.h: the graph of a text as it is written: nothing is folded, shared between two forms, left out or put in
 * another order. It is what the rewritten graph is checked by: both give every element the same bits. Slow, and large:
 * never run, only evaluated. */
#ifndef AT_ELEMENTWISE_PLAIN_H
#define AT_ELEMENTWISE_PLAIN_H

#include "ops/elementwise/language/parser.h"

/* Of a text that was parsed with keeps_plain. It numbers operands and draws as `like`, the rewritten one, does, so that
 * both are evaluated with one at_element; operands that only this one reads have the numbers from like->input_count on,
 * and any value. It has no text. OUT_OF_MEMORY. */
attune_status at_plain_create(at_expression **out, const at_parser *parser, const at_expression *like);

#endif
