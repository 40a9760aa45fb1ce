/* SPDX-License-Identifier: Apache-2.0
 * test_messages.c: what a stranger reads when a call is refused: what is wrong, by the argument's name, and after a
 * semicolon what would be right. */
#include "tests/support/check.h"
#include "tests/support/decision.h"

#include <attune/attune.h>
#include <attune/tools.h>

#include <unistd.h>

#define PROBLEM "gemm f32 nn 9x8x7 strict"

static attune_device *host;
static attune_tuner *tuner;

/* The latest message names `what` before its semicolon and says `remedy` behind it. */
static void said(int line, attune_status status, const char *what, const char *remedy) {
  const char *message = attune_last_message(), *named = strstr(message, what), *behind = strstr(message, "; ");
  if (status == ATTUNE_OK) fail_msg("line %d: not refused", line);
  if (!named || !behind || named > behind || !strstr(behind, remedy))
    fail_msg("line %d: \"%s\" lacks \"%s; ... %s\"", line, message, what, remedy);
}
#define SAYS(call, what, remedy) said(__LINE__, (call), (what), (remedy))

TEST(arguments) {
  attune_tuner_options o = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  DECISION(decision);
  attune_tuner *other = NULL;
  SAYS(attune_gemm(NULL, attune_stream_default(host), &p, NULL), "tuner is NULL", "should be given");
  SAYS(attune_gemm(tuner, attune_stream_default(host), &p, NULL), "operands is NULL", "should be given");
  SAYS(attune_gemm_plan_run(NULL, NULL, NULL), "plan is NULL", "should be given");
  SAYS(attune_tune(NULL, host, PROBLEM, NULL, NULL), "tuner is NULL", "should be given");
  SAYS(attune_tune(tuner, host, "sort 9", NULL, NULL), "sort 9", "should be one of: gemm");
  SAYS(attune_explain(tuner, host, NULL, decision), "problem is NULL", "should be given");
  SAYS(attune_explain(tuner, host, "gemm f32 nn 9x8", decision), "9x8", "should be sizes as MxNxK");
  SAYS(attune_explain(tuner, host, "gemm f32 nn -9x8x7", decision), "-9x8x7", "each 1 or more");
  SAYS(attune_explain(tuner, host, "gemm f32 nn 9x8x0", decision), "9x8x0", "each 1 or more");
  SAYS(attune_explain(tuner, host, "gemm f32 nn 9x8x7 lda=0", decision), "\"lda=0\"", "a whole number, 1 or more");
  SAYS(attune_explain(tuner, host, "gemm f32 nn 9x8x7 ldb=-4", decision), "\"ldb=-4\"", "a whole number, 1 or more");
  SAYS(attune_explain(tuner, host, "gemm f32 nn 9x8x7x2 stride_a=x", decision), "\"stride_a=x\"", "or broadcast");
  SAYS(attune_explain(tuner, host, "gemm f32 nn 9x8x7x2 stride_d=broadcast", decision), "stride_d is ATTUNE_BROADCAST",
       "should be 1 or more, or 0 for packed");
  SAYS(attune_explain(tuner, host, "gemm f32 nn 9x8x7 speed=4", decision), "\"speed=4\"", "should be strict");
  SAYS(attune_tuner_winners(tuner, NULL, NULL), "fn is NULL", "should be given");
  SAYS(attune_tuner_set_mode(NULL, ATTUNE_MODE_OFF), "tuner is NULL", "should be given");
  SAYS(attune_device_fingerprint(host, NULL, 0), "out is NULL", "should be given");
  SAYS(attune_gemm_problem_format(NULL, 8, &p, NULL), "out is NULL", "should be given");
  o.measure = (attune_measure)9;
  SAYS(attune_tuner_create(&other, &o), "options.measure is 9", "hot,eager (4)");
}

TEST(stored_winners) {
  attune_recheck recheck = {0};
  SAYS(attune_verify(tuner, host, PROBLEM, 0.0, NULL, &recheck), PROBLEM, "tune it first");
}

TEST(budgets) {
  attune_tuner_options o = {.database = "", .total_budget_ms = 1e-3};
  attune_tuner *other = NULL;
  OK(attune_tuner_create(&other, &o));
  SAYS(attune_tune(other, host, PROBLEM, NULL, NULL), "the time for this problem", "give it a larger budget");
  SAYS(attune_tune(other, host, "gemm f32 nn 7x8x9 strict", NULL, NULL), "options.total_budget_ms",
       "create one with a larger budget");
  attune_tuner_destroy(other);
}

TEST(databases) {
  char folder[] = "/tmp/attune-messages-XXXXXX", path[64];
  attune_tuner_options o = ATTUNE_TUNER_OPTIONS_INIT;
  attune_tuner *other = NULL;
  assert_non_null(mkdtemp(folder));
  o.mode = ATTUNE_MODE_CACHED;
  o.database = folder;
  OK(attune_tuner_create(&other, &o));
  SAYS(attune_tuner_database_status(other), folder, "should be a file");
  attune_tuner_destroy(other);
  snprintf(path, sizeof path, "%s/absent/t.db", folder);
  o.database = path;
  OK(attune_tuner_create(&other, &o));
  SAYS(attune_tuner_database_status(other), "absent", "create it, or name another");
  attune_tuner_destroy(other);
  rmdir(folder);
}

int main(void) {
  attune_tuner_options options = {.database = ""};
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
