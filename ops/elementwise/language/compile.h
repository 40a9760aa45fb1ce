/* SPDX-License-Identifier: Apache-2.0
 * compile.h: from text to a compiled expression. */
#ifndef AT_ELEMENTWISE_COMPILE_H
#define AT_ELEMENTWISE_COMPILE_H

#include "ops/elementwise/ir/expression.h"

/* Compiles `length` bytes of text. Errors: INVALID_ARGUMENT, with the place: the message has the line of the text, a
 * caret under the fault, and the remedy; OUT_OF_MEMORY. The text reaches no compiler, whatever it is. */
attune_status at_expression_create(at_expression **out, const char *text, size_t length, const at_signature *signature);

/* From a canonical text, as `text` has it: an equal graph, node for node. Of operands that can change places the names
 * may have: operand k of the graph is operand k of the one that the text is of, whatever its name. */
attune_status at_expression_parse_canonical(at_expression **out, const char *text);

/* The same two with the graph of the text before any rewriting in `plain`: plain.h. */
attune_status at_expression_create_checked(at_expression **out, const char *text, size_t length,
                                           const at_signature *signature);
attune_status at_expression_parse_canonical_checked(at_expression **out, const char *text);

#endif
