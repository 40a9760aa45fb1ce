/* SPDX-License-Identifier: Apache-2.0
 * tune.c: tunes one problem now, says what won and by how much, and runs the winner by a plan: calls without a look-up.
 *   tune [DATABASE [PROBLEM]] */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

/* Memory of one operand, zeroed: enough for a packed square of the largest size. */
static void *operand(attune_stream *stream, const attune_gemm_problem *p) {
  int64_t side = p->m > p->n ? p->m : p->n;
  side = side > p->k ? side : p->k;
  const size_t bytes = (size_t)side * (size_t)side * (size_t)p->batch * sizeof(double);
  void *out = NULL;
  check(attune_alloc(&out, stream, bytes));
  check(attune_fill(stream, out, 0, bytes));
  return out;
}

int main(int argc, char **argv) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = argc > 1 ? argv[1] : ":memory:";
  const char *text = argc > 2 ? argv[2] : "gemm f32 nn 64x48x32 strict";

  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  attune_gemm_problem problem = {0};
  attune_decision_info found = ATTUNE_DECISION_INFO_INIT;
  attune_decision *decision = NULL;
  check(attune_device_get(&device, "best"));
  check(attune_tuner_create(&tuner, &options));
  check(attune_gemm_problem_parse(&problem, text));
  check(attune_decision_create(&decision, NULL));
  check(attune_tune(tuner, device, text, &(attune_tune_options){.budget_ms = 1000.0}, decision));
  check(attune_decision_get_info(decision, &found));
  printf("%s on %s: %s %s, %.0f ns; the default %s takes %.0f ns (%d candidates, %.0f ms)\n", found.problem,
         found.device, found.implementation, found.configuration, found.time_ns, found.default_implementation,
         found.default_time_ns, found.candidates, found.tuning_ms);

  attune_stream *stream = NULL;
  attune_plan *plan = NULL;
  check(attune_stream_create(&stream, device));
  void *a = operand(stream, &problem), *b = operand(stream, &problem), *d = operand(stream, &problem);
  attune_gemm_operands operands = {.alpha = 1.0, .a = a, .b = b, .d = d};
  check(attune_gemm_plan_create(&plan, tuner, stream, &problem, &operands));
  check(attune_plan_explain(plan, decision)); /* for the life of the plan */
  check(attune_decision_get_info(decision, &found));
  printf("the plan runs %s: %s\n", found.implementation, found.note);
  for (int i = 0; i < 1000; i++) check(attune_gemm_plan_run(plan, stream, &operands));
  check(attune_stream_synchronize(stream));

  attune_plan_destroy(plan);
  attune_decision_destroy(decision);
  check(attune_free(a, stream));
  check(attune_free(b, stream));
  check(attune_free(d, stream));
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return 0;
}
