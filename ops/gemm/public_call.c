/* SPDX-License-Identifier: Apache-2.0
 * public_call.c: gemm's public calls for a normalised problem, and on a tuner that knows one plan. */
#include "ops/gemm/public_call.h"

#include <stdlib.h>

#include "ops/gemm/problem/problem.h"
#include "tuning/dispatch/single_plan_tuner.h"

/* The public problem: how C is used and the alignment are the operands'. */
static attune_status public_problem(attune_gemm_problem *out, const void *problem) {
  char text[AT_PROBLEM_CHARS];
  const attune_status status = at_gemm_format(problem, text, sizeof text);
  return status == ATTUNE_OK ? attune_gemm_problem_parse(out, text) : status;
}

attune_status at_gemm_call(attune_tuner *tuner, attune_stream *stream, const void *problem, const void *operands) {
  attune_gemm_problem p;
  const attune_status status = public_problem(&p, problem);
  return status == ATTUNE_OK ? attune_gemm(tuner, stream, &p, operands) : status;
}

attune_status at_gemm_call_plan_create(attune_plan **out, attune_tuner *tuner, attune_stream *stream,
                                       const void *problem, const void *operands) {
  attune_gemm_problem p;
  const attune_status status = public_problem(&p, problem);
  return status == ATTUNE_OK ? attune_gemm_plan_create(out, tuner, stream, &p, operands) : status;
}

attune_status at_gemm_call_plan_run(const attune_plan *plan, attune_stream *stream, const void *operands) {
  return attune_gemm_plan_run(plan, stream, operands);
}

typedef struct caller {
  at_single_plan_tuner sole;
  attune_gemm_problem problem;
} caller;

static bool hits(caller *c, const void *operands, attune_stream *stream) {
  return attune_gemm(c->sole.tuner, stream, &c->problem, operands) == ATTUNE_OK && at_single_plan_tuner_hit(&c->sole);
}

attune_status at_gemm_public_call_create(void **out, const at_plan *plan, const void *operands, attune_stream *stream) {
  caller *c = calloc(1, sizeof *c);
  attune_status status = c ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a caller");
  if (status == ATTUNE_OK) status = public_problem(&c->problem, plan->problem);
  if (status == ATTUNE_OK) status = at_single_plan_tuner_open(&c->sole, plan);
  if (status == ATTUNE_OK && !hits(c, operands, stream))
    status = at_fail(ATTUNE_NOT_FOUND, "a call comes to another plan than that of %s", plan->implementation->name);
  if (status == ATTUNE_OK)
    *out = c;
  else
    at_gemm_public_call_destroy(c);
  return status;
}

attune_status at_gemm_public_call_run(void *state, const at_bare_calls *calls, attune_stream *stream) {
  const caller *c = state;
  attune_status status = ATTUNE_OK;
  int copy = calls->from % calls->copies;
  for (int i = calls->from; i < calls->to && status == ATTUNE_OK; i++) {
    status = attune_gemm(c->sole.tuner, stream, &c->problem, at_bare_operands(calls, copy));
    if (++copy == calls->copies) copy = 0;
  }
  return status;
}

void at_gemm_public_call_destroy(void *state) {
  caller *c = state;
  if (!c) return;
  at_single_plan_tuner_close(&c->sole);
  free(c);
}

typedef struct many_calls {
  attune_tuner *tuner;
  attune_gemm_problem problem;
  at_bare_calls each;
} many_calls;

attune_status at_gemm_calls_create(void **out, attune_tuner *tuner, const void *problem, const at_bare_calls *calls) {
  many_calls *m = malloc(sizeof *m);
  if (!m) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for calls");
  m->tuner = tuner;
  m->each = *calls;
  const attune_status status = public_problem(&m->problem, problem);
  if (status == ATTUNE_OK)
    *out = m;
  else
    free(m);
  return status;
}

attune_status at_gemm_calls_run(void *calls, attune_stream *stream, int from, int to) {
  const many_calls *m = calls;
  attune_status status = ATTUNE_OK;
  int copy = from % m->each.copies;
  for (int i = from; i < to && status == ATTUNE_OK; i++) {
    status = attune_gemm(m->tuner, stream, &m->problem, at_bare_operands(&m->each, copy));
    if (++copy == m->each.copies) copy = 0;
  }
  return status;
}

void at_gemm_calls_destroy(void *calls) {
  free(calls);
}
