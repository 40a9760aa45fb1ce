/* SPDX-License-Identifier: Apache-2.0
 * sole_plan.c: see sole_plan.h. */
#include "tuning/sole_plan.h"

#include <stdlib.h>

#include "tuning/tuner.h"

static attune_status make_tuner(at_sole_plan *sole) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  return at_tuner_create(&sole->tuner, &options, sole->ops, 1);
}

/* The table gets a copy. */
static attune_status teach(attune_tuner *tuner, const at_plan *plan) {
  static const attune_decision decision = {.source = ATTUNE_SOURCE_TUNED};
  at_key key = {{0}};
  at_plan *copy = malloc(sizeof *copy);
  if (!copy) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a plan");
  *copy = *plan;
  copy->borrowed = true;
  memcpy(at_key_problem(&key), plan->problem, sizeof plan->problem);
  at_key_set(&key, plan->op, plan->device);
  return at_plan_table_put(&tuner->plans, &key, &copy, &decision, false);
}

attune_status at_sole_plan_open(at_sole_plan *out, const at_plan *plan) {
  *out = (at_sole_plan){.ops = {plan->op}};
  const attune_status status = make_tuner(out);
  return status == ATTUNE_OK ? teach(out->tuner, plan) : status;
}

void at_sole_plan_close(at_sole_plan *sole) {
  attune_tuner_destroy(sole->tuner);
  sole->tuner = NULL;
}

bool at_sole_plan_hit(const at_sole_plan *sole) {
  return sole->tuner->plans.count == 1;
}
