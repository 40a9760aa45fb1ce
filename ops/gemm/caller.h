/* SPDX-License-Identifier: Apache-2.0
 * caller.h: a plan called through attune_gemm: the slots at_op.caller_*. */
#ifndef AT_GEMM_CALLER_H
#define AT_GEMM_CALLER_H

#include "tuning/op.h"

attune_status at_gemm_caller_create(void **out, const struct attune_plan *plan, const void *operands,
                                    attune_stream *stream);
attune_status at_gemm_caller_run(void *caller, const at_bare_calls *calls, attune_stream *stream);
void at_gemm_caller_destroy(void *caller);

#endif
