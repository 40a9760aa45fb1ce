/* SPDX-License-Identifier: Apache-2.0
 * public_call.h: the public calls for a normalised problem: the slots at_op.call, plan_create and plan_run; and a plan called
 * through attune_gemm many times: caller_*; and a program's calls: calls_*. */
#ifndef AT_GEMM_PUBLIC_CALL_H
#define AT_GEMM_PUBLIC_CALL_H

#include "tuning/op/op.h"

attune_status at_gemm_call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands);
attune_status at_gemm_call_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                       const void *problem, const void *operands);
attune_status at_gemm_call_plan_run(const attune_plan *plan, attune_stream *stream, const void *operands);

attune_status at_gemm_public_call_create(void **out, const struct attune_plan *plan, const void *operands,
                                    attune_stream *stream);
attune_status at_gemm_public_call_run(void *caller, const at_bare_calls *calls, attune_stream *stream);
void at_gemm_public_call_destroy(void *caller);

attune_status at_gemm_calls_create(void **out, attune_tuner *tuner, const void *problem, const at_bare_calls *calls);
attune_status at_gemm_calls_run(void *calls, attune_stream *stream, int from, int to);
void at_gemm_calls_destroy(void *calls);

#endif
