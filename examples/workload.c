/* SPDX-License-Identifier: Apache-2.0
 * workload.c: a program records the problems that it calls, tunes them, and shows what that gains. Instead of tuning in
 * the program, run `attune tune recorded` when the machine is free. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 96, CALLS = 50, BYTES = SIZE * SIZE * (int)sizeof(float) };
static const char *const DATABASE = "attune-workload.db", *const PROFILE = "attune-workload.json";

static void check(attune_status status) {
  if (status == ATTUNE_OK) return;
  fprintf(stderr, "%s: %s\n", attune_status_string(status), attune_last_message());
  exit(1);
}

typedef struct program {
  attune_tuner *tuner;
  attune_device *device;
  attune_stream *stream;
  void *a, *b, *d;
} program;

static void work(const program *p) {
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  const attune_gemm_operands operands = {.alpha = 1.0, .a = p->a, .b = p->b, .d = p->d};
  problem.k = SIZE;
  for (int i = 0; i < CALLS; i++) {
    problem.m = problem.n = i % 2 ? SIZE : SIZE / 2;
    check(attune_gemm(p->tuner, p->stream, &problem, &operands));
  }
  check(attune_stream_synchronize(p->stream));
}

/* Each problem once, with the least that a search needs. */
static size_t tune_recorded(const program *p) {
  attune_workload *workload = NULL;
  attune_search_options search = ATTUNE_SEARCH_OPTIONS_INIT;
  check(attune_tuner_get_search(p->tuner, &search)); /* ATTUNE_SEARCH, or the defaults */
  search.rounds = 5;
  check(attune_tuner_set_search(p->tuner, &search));
  check(attune_workload_recorded(&workload, p->tuner, p->device));
  const size_t count = attune_workload_size(workload);
  for (size_t i = 0; i < count; i++) {
    const attune_workload_entry *entry = attune_workload_at(workload, i);
    printf("%s: called %lld times\n", entry->name, (long long)entry->count);
    check(attune_tune(p->tuner, p->device, entry->problem, &(attune_tune_options){.budget_ms = 300.0}, NULL));
  }
  attune_workload_destroy(workload);
  return count;
}

static int show_winner(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  attune_decision_info info = ATTUNE_DECISION_INFO_INIT;
  check(attune_decision_get_info(decision, &info));
  printf("%s: %s %s%s\n", info.problem, info.implementation, info.configuration, valid ? "" : " (not here)");
  if (++*(size_t *)user == 1) printf("  valid for %s\n", fingerprint);
  return 0;
}

static int show_profile(void *user, const attune_profile_entry *entry) {
  (void)user;
  printf("%s: %llu calls, %.0f %% of the time, %.1f us less than the default\n", entry->problem,
         (unsigned long long)entry->calls, 100.0 * entry->share, entry->saved_ns / 1e3);
  return 0;
}

int main(void) {
  program p = {NULL, NULL, NULL, NULL, NULL, NULL};
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_profile_totals totals = ATTUNE_PROFILE_TOTALS_INIT;
  attune_warmed warmed = {0};
  char fingerprint[4096];
  size_t winners = 0;
  check(attune_set_threads(1)); /* of the host, for one operation: the program has threads of its own */
  check(attune_skip_implementations("host_cblas")); /* a library that this program must not use */
  check(attune_device_get(&p.device, "best"));
  check(attune_stream_create(&p.stream, p.device));
  check(attune_alloc(&p.a, p.stream, BYTES));
  check(attune_alloc(&p.b, p.stream, BYTES));
  check(attune_alloc(&p.d, p.stream, BYTES));
  check(attune_fill(p.stream, p.a, 0, BYTES));
  check(attune_fill(p.stream, p.b, 0, BYTES));
  options.database = DATABASE;
  options.mode = ATTUNE_MODE_RECORD;
  check(attune_tuner_create(&p.tuner, &options));
  check(attune_tuner_database_status(p.tuner)); /* OK, or the reason why nothing would be stored */
  printf("%d thread, without %s\n", attune_get_threads(), attune_skipped_implementations());

  work(&p);
  const size_t problems = tune_recorded(&p);
  if (attune_tuner_get_mode(p.tuner) == ATTUNE_MODE_RECORD) check(attune_tuner_set_mode(p.tuner, ATTUNE_MODE_CACHED));
  check(attune_tuner_winners(p.tuner, show_winner, &winners));
  check(attune_device_fingerprint(p.device, fingerprint, sizeof fingerprint));
  printf("this device is %.60s...\n", fingerprint);
  check(attune_tuner_warm(p.tuner, p.device, NULL, 0, NULL, NULL, &warmed)); /* what a new machine does once */
  check(attune_tuner_set_compile(p.tuner, ATTUNE_COMPILE_WAIT)); /* calls wait for the compiler if they must */
  work(&p);
  check(attune_tuner_profile(p.tuner, show_profile, NULL, &totals));
  check(attune_tuner_profile_write(p.tuner, PROFILE));

  const int good = problems == 2 && winners == 2 && totals.calls == 2 * CALLS && warmed.failed == 0 &&
                   attune_tuner_compiling(p.tuner, 1) == 0 && remove(PROFILE) == 0;
  check(attune_free(p.a, p.stream));
  check(attune_free(p.b, p.stream));
  check(attune_free(p.d, p.stream));
  attune_stream_destroy(p.stream);
  attune_tuner_destroy(p.tuner);
  return good && remove(DATABASE) == 0 ? 0 : 1;
}
