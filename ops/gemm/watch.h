/* SPDX-License-Identifier: Apache-2.0
 * watch.h: products while calls are watched (src/trace/instrument.h). */
#ifndef AT_GEMM_WATCH_H
#define AT_GEMM_WATCH_H

#include "ops/gemm/problem/problem.h"
#include "tuning/op/registry.h"

/* Reports the memory that a product used; of arrays of pointers in device memory the arrays alone. `swap`: A and B have
 * changed places. `scaled`: nothing was multiplied, so that A and B were read at most for a bias gradient. */
void at_gemm_note(attune_stream *stream, const at_gemm *g, const at_gemm_operands *operands, bool swap, bool scaled);

/* Runs the plan as the public calls do, and says what was run and what it used. */
attune_status at_gemm_run_watched(const at_plan *plan, const at_gemm *g, const at_gemm_operands *operands,
                                  attune_stream *stream, bool swap);

#endif
