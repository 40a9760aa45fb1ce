/* SPDX-License-Identifier: Apache-2.0
 * call_bind.h: from a caller's text and operands to a call made ready. */
#ifndef AT_ELEMENTWISE_CALL_BIND_H
#define AT_ELEMENTWISE_CALL_BIND_H

#include "ops/elementwise/call/call_binding.h"

/* Checks a call and makes it ready, into *out; at_call_binding_destroy releases it. *empty: there is no element, and nothing
 * to do; *out is NULL then. Errors: see attune_elementwise. */
attune_status at_call_binding_create(at_call_binding **out, bool *empty, const attune_device *device, const at_formula *formula,
                                 const attune_elementwise_operands *operands);

/* The same for the problem's text: addresses say the alignment and what is in place only, and may be NULL; there must be
 * an element. */
attune_status at_call_binding_describe(at_call_binding **out, const at_formula *formula,
                                   const attune_elementwise_operands *operands);

#endif
