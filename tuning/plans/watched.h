/* SPDX-License-Identifier: Apache-2.0
 * watched.h: launches while calls are watched (src/trace/instrument.h), of any operation. */
#ifndef AT_INSTRUMENTED_H
#define AT_INSTRUMENTED_H

#include "tuning/op/registry.h"

/* Launches the plan as the public function `call`; for profilers the launch has a range that names the call, its
 * problem and the implementation. `as`: see at_problem_type.show. */
attune_status at_instrumented_launch(const at_plan *plan, const char *call, const void *operands, attune_stream *stream,
                                int as);

#endif
