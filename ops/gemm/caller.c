/* SPDX-License-Identifier: Apache-2.0
 * caller.c: attune_gemm on a tuner that knows one plan. */
#include "ops/gemm/caller.h"

#include <stdlib.h>

#include "ops/gemm/problem.h"
#include "tuning/sole_plan.h"

typedef struct caller {
  at_sole_plan sole;
  attune_gemm_problem problem;
} caller;

static bool hits(caller *c, const void *operands, attune_stream *stream) {
  return attune_gemm(c->sole.tuner, stream, &c->problem, operands) == ATTUNE_OK && at_sole_plan_hit(&c->sole);
}

attune_status at_gemm_caller_create(void **out, const at_plan *plan, const void *operands, attune_stream *stream) {
  char text[AT_PROBLEM_CHARS];
  caller *c = calloc(1, sizeof *c);
  attune_status status = c ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a caller");
  if (status == ATTUNE_OK) status = at_gemm_format(plan->problem, text, sizeof text);
  if (status == ATTUNE_OK) status = attune_gemm_problem_parse(&c->problem, text);
  if (status == ATTUNE_OK) status = at_sole_plan_open(&c->sole, plan);
  if (status == ATTUNE_OK && !hits(c, operands, stream))
    status = at_fail(ATTUNE_NOT_FOUND, "a call of %s comes to another plan", text);
  if (status == ATTUNE_OK)
    *out = c;
  else
    at_gemm_caller_destroy(c);
  return status;
}

attune_status at_gemm_caller_run(void *state, const at_bare_calls *calls, attune_stream *stream) {
  const caller *c = state;
  attune_status status = ATTUNE_OK;
  int copy = calls->from % calls->copies;
  for (int i = calls->from; i < calls->to && status == ATTUNE_OK; i++) {
    status = attune_gemm(c->sole.tuner, stream, &c->problem,
                         (const attune_gemm_operands *)(const void *)calls->operands[copy]);
    if (++copy == calls->copies) copy = 0;
  }
  return status;
}

void at_gemm_caller_destroy(void *state) {
  caller *c = state;
  if (!c) return;
  at_sole_plan_close(&c->sole);
  free(c);
}
