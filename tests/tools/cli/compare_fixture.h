/* SPDX-License-Identifier: Apache-2.0
 * compare_fixture.h: runs and pairs made here and saved, for the tests of `attune compare'. */
#ifndef AT_TESTS_COMPARE_FIXTURE_H
#define AT_TESTS_COMPARE_FIXTURE_H

#include "tests/support/cli_fixture.h"

#include "tools/compare/results/results.h"

enum { CASES = 6, ROUNDS = 16, SAMPLES = 4 };

/* A run to make: the first case's time is multiplied by `factor`. */
typedef struct plan {
  const char *file, *label, *fingerprint, *first;
  double factor;
  int64_t started, pair;
  int rounds;
  int slow_rounds; /* of all cases, each takes twice as long in so many, the last ones */
  bool first_failed, first_missing;
} plan;

static const plan usual = {.file = "r.db",
                           .label = "",
                           .fingerprint = "{\"cpu\": \"one\"}",
                           .first = "case/0",
                           .factor = 1.0,
                           .started = 1000,
                           .rounds = ROUNDS};

static inline char *text(const char *words) {
  return (char *)(uintptr_t)words;
}

static inline const char *in_folder(const char *name) {
  static char paths[4][128];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static inline void fine(char *error) {
  if (error) fail_msg("%s", error);
}

/* A small number from -1 to 1 that looks random and is always the same. */
static inline double jitter(unsigned a, unsigned b, unsigned c) {
  const unsigned hash = (a * 2654435761u ^ b * 40503u * 65537u ^ c * 2246822519u) * 3266489917u;
  return (double)(hash >> 8) / 8388608.0 - 1.0;
}

static inline void add_case(gate_file *file, const plan *p, int64_t run, int i) {
  char name[32];
  snprintf(name, sizeof name, "case/%d", i);
  gate_case c = {.name = i ? name : text(p->first), .device = text("-"), .mode = text("hot"), .dtype = text("-")};
  if (!i && p->first_failed) {
    c.state = GATE_CASE_FAILED;
    c.message = text("crashed (signal 11)");
    fine(gate_file_add(file, run, &c, NULL));
    return;
  }
  for (int r = 0; r < p->rounds; r++) {
    gate_sample samples[SAMPLES];
    for (int k = 0; k < SAMPLES; k++)
      samples[k] = (gate_sample){
          .ns = 100.0 * (i + 1) * (r >= p->rounds - p->slow_rounds ? 2.0 : 1.0) * (i ? 1.0 : p->factor) *
                (1.0 + 0.002 * jitter((unsigned)run + (unsigned)p->started, (unsigned)(r * CASES + i), (unsigned)k)),
          .start = 1};
    const gate_visit visit = {.round = r, .calls = 1, .load = -1.0, .samples = samples, .sample_count = SAMPLES};
    fine(gate_file_add(file, run, &c, &visit));
  }
}

/* Its number. */
static inline int64_t save(plan p) {
  gate_file *file = NULL;
  gate_run run = {.suite = text("made"),
                  .label = text(p.label),
                  .revision = text("0123456789abcdef0123456789abcdef01234567"),
                  .fingerprint = text(p.fingerprint),
                  .command = text("made"),
                  .started = p.started,
                  .pair = p.pair};
  fine(gate_file_open(&file, in_folder(p.file), true));
  fine(gate_file_begin(file, &run));
  for (int i = p.first_missing; i < CASES; i++) add_case(file, &p, run.id, i);
  fine(gate_file_end(file, run.id, GATE_RUN_COMPLETE));
  gate_file_close(file);
  return run.id;
}

static inline plan with_factor(double factor) {
  plan p = usual;
  p.factor = factor;
  return p;
}

/* Base and head, which alternated: runs 1 and 2. */
static inline void save_pair(double factor) {
  plan head = with_factor(factor);
  head.pair = save(usual);
  (void)save(head);
}

#endif
