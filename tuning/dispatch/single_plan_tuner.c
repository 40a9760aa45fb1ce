/* SPDX-License-Identifier: Apache-2.0
 * single_plan_tuner.c: see single_plan_tuner.h. */
#include "tuning/dispatch/single_plan_tuner.h"

#include <stdlib.h>

#include "tuning/tuner/tuner.h"

static attune_status make_tuner(at_single_plan_tuner *sole) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  return at_tuner_create(&sole->tuner, &options, sole->ops, 1);
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
