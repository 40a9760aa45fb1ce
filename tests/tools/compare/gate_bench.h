/* SPDX-License-Identifier: Apache-2.0
 * gate_bench.h: a benchmark run by the gate's schedule, with workers that do what their words say (gate_worker.c). */
#ifndef TEST_GATE_BENCH_H
#define TEST_GATE_BENCH_H

#include "tests/tools/compare/gate_fixture.h"

#include "tools/compare/run/schedule.h"
#include "tools/compare/stats/comparison.h"
#include "tools/compare/stats/summary.h"

#include <signal.h>
#include <sys/stat.h>
#include <time.h>

enum { ARGUMENTS = 16 };

typedef struct bench {
  gate_source *sources[GATE_SIDES][2];
  gate_rounds_side sides[GATE_SIDES];
  gate_run runs[GATE_SIDES];
  gate_rounds *rounds;
  gate_outcome outcome;
  int side_count;
} bench;

static volatile sig_atomic_t stopped;

static const gate_schedule plain = {.rounds = 4,
                                    .samples = 3,
                                    .sample_ns = 1000,
                                    .case_s = 1e6,
                                    .seed = 12345,
                                    .limits = {.hang_s = 120, .interrupted = &stopped}};

static inline gate_source *worker(const gate_limits *limits, const char *const *words) {
  const char *argv[ARGUMENTS + 2] = {AT_WORKER};
  for (int i = 0; words[i]; i++) argv[i + 1] = words[i];
  return gate_worker_create(argv, limits, 99);
}

/* One worker a side; NULL base: one side. */
static inline void begin(bench *b, const gate_schedule *schedule, const char *const *head, const char *const *base) {
  const char *const *words[GATE_SIDES] = {head, base};
  *b = (bench){.side_count = base ? 2 : 1};
  stopped = 0;
  for (int i = 0; i < b->side_count; i++) {
    b->sources[i][0] = worker(&schedule->limits, words[i]);
    b->sides[i] = (gate_rounds_side){b->sources[i], 1, &b->runs[i]};
  }
  b->rounds = gate_rounds_create(schedule, b->sides, b->side_count);
}

static inline void end(bench *b) {
  gate_outcome_free(&b->outcome);
  gate_rounds_destroy(b->rounds);
  for (int i = 0; i < b->side_count; i++) {
    gate_source_destroy(b->sources[i][0]);
    gate_run_free(&b->runs[i]);
  }
}

static inline void do_all(bench *b, const gate_schedule *schedule, const char *const *head, const char *const *base) {
  begin(b, schedule, head, base);
  FINE(gate_rounds_list(b->rounds));
  FINE(gate_rounds_run(b->rounds, &b->outcome));
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline const gate_case *named(const bench *b, int side, const char *name) {
  for (size_t i = 0; i < b->runs[side].case_count; i++)
    if (strcmp(b->runs[side].cases[i].name, name) == 0) return &b->runs[side].cases[i];
  fail_msg("no case %s", name);
  return NULL;
}

static inline void does_well(const bench *b, int side, const char *name, int visits) {
  const gate_case *c = named(b, side, name);
  if (c->state != GATE_CASE_OK) fail_msg("%s failed: %s", name, c->message);
  assert_int_equal(c->visit_count, visits);
}

static inline void failed_with(const bench *b, int side, const char *name, const char *words) {
  const gate_case *c = named(b, side, name);
  assert_int_equal(c->state, GATE_CASE_FAILED);
  assert_non_null(c->message);
  if (!strstr(c->message, words)) fail_msg("%s: \"%s\"; should say \"%s\"", name, c->message, words);
}

static inline char *text_of(const char *path) {
  FILE *stream = fopen(path, "r");
  assert_non_null(stream);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_in_range(fread(text, 1, (1 << 20) - 1, stream), 1, (1 << 20) - 2);
  fclose(stream);
  return text;
}

static inline const char *log_word(void) {
  static char word[160];
  snprintf(word, sizeof word, "--log=%s", path_of("log"));
  return word;
}

#endif
