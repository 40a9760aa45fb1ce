/* SPDX-License-Identifier: Apache-2.0
 * single_plan_tuner.c: see single_plan_tuner.h. */
#include "tuning/dispatch/single_plan_tuner.h"

#include <stdlib.h>

#include "tuning/tuner/tuner.h"

static attune_status make_tuner(at_single_plan_tuner *sole) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  return at_tuner_create_private(&sole->tuner, &options, sole->ops, 1);
}

/* The table gets a copy. */
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

attune_status at_single_plan_tuner_open(at_single_plan_tuner *out, const at_plan *plan) {
  *out = (at_single_plan_tuner){.ops = {plan->op}};
  const attune_status status = make_tuner(out);
  return status == ATTUNE_OK ? teach(out->tuner, plan) : status;
}

void at_single_plan_tuner_close(at_single_plan_tuner *sole) {
  attune_tuner_destroy(sole->tuner);
  sole->tuner = NULL;
}

bool at_single_plan_tuner_hit(const at_single_plan_tuner *sole) {
  return sole->tuner->plans.count == 1;
}

/* ---- calls that are timed ---- */

typedef struct timed_call {
  at_single_plan_tuner sole;
  const at_prepared_calls *type;
  void *calls;
} timed_call;

static void timed_destroy(void *call) {
  timed_call *c = call;
  if (c->calls) c->type->destroy(c->calls);
  at_single_plan_tuner_close(&c->sole);
  free(c);
}

static attune_status timed_create(void **out, const at_plan *plan, const at_bare_calls *calls, attune_stream *stream) {
  timed_call *c = calloc(1, sizeof *c);
  if (!c) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a timed call");
  c->type = plan->op->calls;
  attune_status status = at_single_plan_tuner_open(&c->sole, plan);
  if (status == ATTUNE_OK) status = c->type->create(&c->calls, c->sole.tuner, plan->problem, calls);
  if (status == ATTUNE_OK && (c->type->run(c->calls, stream, 0, 1) != ATTUNE_OK || !at_single_plan_tuner_hit(&c->sole)))
    status = at_fail(ATTUNE_NOT_FOUND, "the call runs another plan than that of %s", plan->implementation->name);
  if (status == ATTUNE_OK)
    *out = c;
  else
    timed_destroy(c);
  return status;
}

static attune_status timed_run(void *call, attune_stream *stream, int from, int to) {
  const timed_call *c = call;
  return c->type->run(c->calls, stream, from, to);
}

const at_timed_call at_timed_call_by_look_up = {.create = timed_create, .run = timed_run, .destroy = timed_destroy};
