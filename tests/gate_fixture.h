/* SPDX-License-Identifier: Apache-2.0
 * gate_fixture.h: what the tests of the gate share: a folder of its own, sentences that are expected, made-up runs. */
#ifndef AT_TESTS_GATE_FIXTURE_H
#define AT_TESTS_GATE_FIXTURE_H

#include "tests/check.h"

#include "tuning/gate/results.h"
#include "tuning/gate/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
  char command[192];
  snprintf(command, sizeof command, "chmod -R u+rwX %s && rm -rf %s", folder, folder);
  return system(command) == 0 ? 0 : 1;
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

#endif
