/* SPDX-License-Identifier: Apache-2.0
 * dispatch.h: the public calls, whatever it is that they compute. No argument is NULL. */
#ifndef AT_ELEMENTWISE_DISPATCH_H
#define AT_ELEMENTWISE_DISPATCH_H

#include "ops/elementwise/call/call_binding.h"
#include "tuning/op/registry.h"

/* attune_elementwise. A call like one that the thread made before is found in calls.c and needs its addresses only;
 * others are made ready by call_bind.c. */
attune_status at_run(attune_tuner *tuner, attune_stream *stream, const at_formula *formula,
                     const attune_elementwise_operands *operands);

/* attune_elementwise_plan_create */
attune_status at_run_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                 const at_formula *formula, const attune_elementwise_operands *operands);

/* attune_elementwise_problem_format */
attune_status at_run_format(char *out, size_t size, const at_formula *formula,
                            const attune_elementwise_operands *operands);

/* Runs a plan with operands that were bound, or looked at. */
attune_status at_run_launch(const at_plan *plan, at_call_binding *prepared, const attune_elementwise_operands *operands,
                            attune_stream *stream);

/* watch.c: while the calls are watched (src/trace/instrument.h). Runs the plan for a checked call, and says what was
 * run and what it used. */
attune_status at_elementwise_run_watched(const at_plan *plan, at_call_binding *prepared,
                                         const attune_elementwise_operands *operands, attune_stream *stream);

#endif
