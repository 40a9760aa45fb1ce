/* SPDX-License-Identifier: Apache-2.0
 * eval.h: what the files of `attune eval` share: how long a call takes, compared with a plain copy. */
#ifndef CLI_EVAL_H
#define CLI_EVAL_H

#include "tools/cli/cli.h"

/* Medians of one call and of a copy that reads and writes as many bytes; 0: not measured. */
typedef struct eval_times {
  double call_ns, copy_ns;
  double copy_bytes;   /* read and written */
  const char *measure; /* as attune_decision has it: "hot,eager" */
  int rounds;
} eval_times;

/* Times calls of `expression` with `evaluation`'s operands on `stream`, in turns with copies. Errors: the call's. */
attune_status eval_time(eval_times *out, attune_tuner *tuner, attune_stream *stream,
                        const attune_elementwise_words *words, attune_evaluation *evaluation, uint64_t seed);

#endif
