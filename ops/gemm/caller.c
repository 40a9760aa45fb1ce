/* SPDX-License-Identifier: Apache-2.0
 * caller.c: a tuner that knows one plan, and attune_gemm on it. Every call looks up and hits, as a program's do. */
#include "ops/gemm/caller.h"

#include <stdlib.h>
#include <string.h>

#include "ops/gemm/problem.h"
#include "tuning/tuner.h"

typedef struct caller {
  attune_tuner *tuner;
  const at_op *ops[1]; /* the tuner's */
  attune_gemm_problem problem;
} caller;

static attune_status make_tuner(caller *c) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  return at_tuner_create(&c->tuner, &options, c->ops, 1);
}

/* The table gets a copy: the plan stays its owner's. */
static attune_status teach(attune_tuner *tuner, const at_plan *plan) {
  static const attune_decision decision = {.source = ATTUNE_SOURCE_TUNED};
  at_key key;
  at_plan *copy = malloc(sizeof *copy);
  if (!copy) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  *copy = *plan;
  copy->borrowed = true;
  at_key_make(&key, plan->op, plan->problem, plan->device);
  return at_plan_table_put(&tuner->plans, &key, &copy, &decision, false);
}

/* A call that does not come to the plan makes an entry of its own. */
static bool hits(caller *c, const void *operands, attune_stream *stream) {
  return attune_gemm(c->tuner, stream, &c->problem, operands) == ATTUNE_OK && c->tuner->plans.count == 1;
}

attune_status at_gemm_caller_create(void **out, const at_plan *plan, const void *operands, attune_stream *stream) {
  char text[AT_PROBLEM_CHARS];
  caller *c = calloc(1, sizeof *c);
  attune_status status = c ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a caller");
  if (status == ATTUNE_OK) c->ops[0] = plan->op;
  if (status == ATTUNE_OK) status = at_gemm_format(plan->problem, text, sizeof text);
  if (status == ATTUNE_OK) status = attune_gemm_problem_parse(&c->problem, text);
  if (status == ATTUNE_OK) status = make_tuner(c);
  if (status == ATTUNE_OK) status = teach(c->tuner, plan);
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
    status =
        attune_gemm(c->tuner, stream, &c->problem, (const attune_gemm_operands *)(const void *)calls->operands[copy]);
    if (++copy == calls->copies) copy = 0;
  }
  return status;
}

void at_gemm_caller_destroy(void *state) {
  caller *c = state;
  if (!c) return;
  attune_tuner_destroy(c->tuner);
  free(c);
}
