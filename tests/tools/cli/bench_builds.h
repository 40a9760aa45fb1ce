/* SPDX-License-Identifier: Apache-2.0
 * bench_builds.h: what the tests of `attune bench` share: folders of builds whose programs are workers, the runs that
 * were saved. */
#ifndef AT_TESTS_BENCH_BUILDS_H
#define AT_TESTS_BENCH_BUILDS_H

#include "tests/support/cli_fixture.h"

#include "tools/compare/results/results.h"

#include <sys/stat.h>

#define ROUNDS "--rounds", "3"

static char results[64];

/* A folder of the build `name` whose program `run` is a worker with these cases; its path. */
static inline const char *build(const char *name, const char *cases) {
  static char paths[4][64];
  static int next;
  char *path = paths[next++ % 4], script[128], text[512];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
  snprintf(script, sizeof script, "%s/run", path);
  snprintf(text, sizeof text, "#!/bin/sh\nexec " AT_WORKER " %s \"$@\"\n", cases);
  write_file(script, text);
  assert_int_equal(chmod(script, 0700), 0);
  return path;
}

static inline int empty_builds(void **state) {
  char command[160];
  snprintf(results, sizeof results, "%s/r.db", folder);
  snprintf(command, sizeof command, "rm -rf '%s'/*old* '%s'/*new*", folder, folder);
  return system(command) == 0 ? fresh(state) : 1;
}

static inline int remove_all(void **state) {
  return empty_builds(state) == 0 ? tear_down(state) : 1;
}

static inline gate_run loaded(const char *which) {
  char name[96];
  gate_run run;
  snprintf(name, sizeof name, "%s:%s", results, which);
  char *error = gate_load(name, &run);
  if (error) fail_msg("%s", error);
  return run;
}

static inline const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  assert_non_null(text);
  return text;
}

static const char *const program = "{build}/run";

#endif
