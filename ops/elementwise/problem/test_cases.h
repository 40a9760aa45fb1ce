/* SPDX-License-Identifier: Apache-2.0
 * test_cases.h: the one list of problems that every implementation has to get right, and the public calls for a normalised
 * problem: slots of at_elementwise_op. */
#ifndef AT_ELEMENTWISE_TEST_CASES_H
#define AT_ELEMENTWISE_TEST_CASES_H

#include "ops/elementwise/problem/problem.h"

int at_elementwise_case_count(void);
bool at_elementwise_case_at(int index, void *problem);

attune_status at_elementwise_call(attune_tuner *tuner, attune_stream *stream, const void *problem,
                                  const void *operands);
attune_status at_elementwise_call_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                              const void *problem, const void *operands);
attune_status at_elementwise_call_plan_run(const attune_plan *plan, attune_stream *stream, const void *operands);
/* The expression is the problem's, which outlives them. */
attune_status at_elementwise_calls_create(void **out, attune_tuner *tuner, const void *problem,
                                          const at_bare_calls *calls);
attune_status at_elementwise_calls_run(void *calls, attune_stream *stream, int from, int to);
void at_elementwise_calls_destroy(void *calls);

#endif
