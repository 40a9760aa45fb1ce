/* SPDX-License-Identifier: Apache-2.0
 * gate_fixture.h: what the tests of the gate share: a folder of its own, sentences that are expected, made-up runs. */
#ifndef AT_TESTS_GATE_FIXTURE_H
#define AT_TESTS_GATE_FIXTURE_H

#include "tests/support/check.h"
#include "tests/support/folder.h"

#include "tools/compare/message.h"
#include "tools/compare/results/results.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static inline int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "%s/attune-test-gate-XXXXXX",
           access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp");
  return mkdtemp(folder) ? 0 : 1;
}

static inline int tear_down(void **state) {
  (void)state;
  return folder_remove(folder);
}

/* One of a few paths in the folder, good until the fourth call from now. */
static inline const char *path_of(const char *name) {
  static char paths[4][128];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

/* No error; else its sentence is told. */
#define FINE(call)                                         \
  do {                                                     \
    char *fine_error = (call);                             \
    if (fine_error) fail_msg("%s: %s", #call, fine_error); \
  } while (0)

/* An error whose sentence holds `words`. */
#define SAYS(call, words)                                                                                \
  do {                                                                                                   \
    char *says_error = (call);                                                                           \
    if (!says_error) fail_msg("%s: no error; should say \"%s\"", #call, words);                          \
    if (!strstr(says_error, words)) fail_msg("%s: \"%s\"; should say \"%s\"", #call, says_error, words); \
    free(says_error);                                                                                    \
  } while (0)

/* A run whose members are literals: not to be given to gate_run_free. */
static inline gate_run made_up_run(const char *label) {
  return (gate_run){.suite = (char *)(uintptr_t) "sums.csv",
                    .label = (char *)(uintptr_t)label,
                    .revision = (char *)(uintptr_t) "0123456789abcdef0123456789abcdef01234567",
                    .dirty = true,
                    .fingerprint = (char *)(uintptr_t) "{\"cpu\": \"a cpu\"}",
                    .command = (char *)(uintptr_t) "attune bench sums.csv",
                    .started = 1700000000,
                    .state = GATE_RUN_OPEN};
}

static inline gate_case made_up_case(const char *name) {
  return (gate_case){.name = (char *)(uintptr_t)name,
                     .device = (char *)(uintptr_t) "host",
                     .mode = (char *)(uintptr_t) "hot",
                     .dtype = (char *)(uintptr_t) "f32",
                     .bytes = 4096.5,
                     .flops = 1e6,
                     .state = GATE_CASE_OK};
}

static inline gate_file *opened(const char *name) {
  gate_file *file = NULL;
  FINE(gate_file_open(&file, path_of(name), true));
  return file;
}

/* A visit whose samples tell `round` and `seed`. */
static inline gate_visit visit_of(gate_sample *samples, int count, int round, double seed) {
  for (int i = 0; i < count; i++) samples[i] = (gate_sample){seed + round + 0.25 * i, 2 * seed + i, 1000 + i};
  return (gate_visit){.round = round,
                      .calls = 7,
                      .clock_mhz = 1980.5,
                      .throttled = round == 1,
                      .load = 0.5,
                      .samples = samples,
                      .sample_count = count};
}

/* A run with one case of `visits` visits. Its number. */
static inline int64_t save(const char *name, const char *label, int visits, gate_run_state state) {
  gate_file *file = opened(name);
  gate_run run = made_up_run(label);
  gate_case c = made_up_case("sum/1M");
  gate_sample samples[3];
  FINE(gate_file_begin(file, &run));
  for (int i = 0; i < visits; i++) {
    const gate_visit v = visit_of(samples, 3, i, 100);
    FINE(gate_file_add(file, run.id, &c, &v));
  }
  if (state != GATE_RUN_OPEN) FINE(gate_file_end(file, run.id, state));
  gate_file_close(file);
  return run.id;
}

static inline void sql(const char *name, const char *text) {
  sqlite3 *db;
  char *message = NULL;
  assert_int_equal(sqlite3_open(path_of(name), &db), SQLITE_OK);
  if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s: %s", text, message);
  assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static inline int ended(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  return status;
}

#endif
