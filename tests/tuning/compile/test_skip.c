/* SPDX-License-Identifier: Apache-2.0
 * test_skip.c: implementations left out by name, a tighter tolerance, what a search measured beside its winner, TF32
 * for a whole process, and the log in a file. */
#include "tests/support/check.h"
#include "tests/support/decision.h"

#include <attune/attune.h>
#include <attune/tools.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBLEM "gemm f32 nn 96x96x96 strict"

static attune_device *host;
static char folder[] = "test_skip_XXXXXX", database[64], log_path[64];

static attune_tuner *tuner_of(const char *path) {
  attune_tuner *tuner = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = path;
  OK(attune_tuner_create(&tuner, &options));
  return tuner;
}

static int add_name(void *user, const char *implementation, int version, int configurations) {
  char *names = user;
  (void)version;
  (void)configurations;
  if (*names) strcat(names, ",");
  strcat(names, implementation);
  return 0;
}

static void names_of(attune_tuner *tuner, char out[1024]) {
  out[0] = '\0';
  OK(attune_tuner_implementations(tuner, host, PROBLEM, add_name, out));
}

TEST(names_are_left_out) {
  attune_tuner *tuner = tuner_of("");
  DECISION(d);
  char all[1024], first[64], rest[1024];
  names_of(tuner, all);
  assert_non_null(strchr(all, ','));
  snprintf(first, sizeof first, "%.*s", (int)strcspn(all, ","), all);
  assert_string_equal(attune_skipped_implementations(), "");
  OK(attune_explain(tuner, host, PROBLEM, d));
  assert_string_equal(info_of(d).implementation, first); /* the default */
  attune_tuner_destroy(tuner);
  OK(attune_skip_implementations(first));
  assert_string_equal(attune_skipped_implementations(), first);
  tuner = tuner_of("");
  names_of(tuner, rest);
  assert_null(strstr(rest, first));
  OK(attune_explain(tuner, host, PROBLEM, d));
  assert_string_not_equal(info_of(d).implementation, first);
  OK(attune_tune(tuner, host, PROBLEM, &(attune_tune_options){.budget_ms = 60.0, .force = 1}, d));
  assert_string_not_equal(info_of(d).implementation, first);
  assert_true(strncmp(info_of(d).default_implementation, first, strlen(first)) != 0);
  FAILS(attune_skip_implementations("host_cblas,host_magic"), ATTUNE_INVALID_ARGUMENT);
  assert_non_null(strstr(attune_last_message(), "host_magic"));
  FAILS(attune_skip_implementations(NULL), ATTUNE_INVALID_ARGUMENT);
  assert_string_equal(attune_skipped_implementations(), first);
  OK(attune_skip_implementations(all));
  FAILS(attune_explain(tuner, host, "gemm f32 nn 95x96x96 strict", d), ATTUNE_UNSUPPORTED);
  assert_non_null(strstr(attune_last_message(), "left out: "));
  attune_tuner_destroy(tuner);
  OK(attune_skip_implementations(""));
}

typedef struct seen {
  int count, winners, wrong;
  double last;
  bool rises;
} seen;

static int see(void *user, const attune_trial *trial) {
  seen *s = user;
  s->count++;
  s->winners += strcmp(trial->verdict, "winner") == 0;
  s->wrong += strcmp(trial->verdict, "wrong") == 0;
  s->rises = s->rises && trial->implementation[0] && trial->samples >= 0 && trial->spread >= 0.0;
  return 0;
}

TEST(trials_are_told) {
  attune_tuner *tuner = tuner_of(database);
  DECISION(d);
  seen s = {.rises = true};
  FAILS(attune_tuner_trials(tuner, host, PROBLEM, see, &s), ATTUNE_NOT_FOUND);
  OK(attune_tune(tuner, host, PROBLEM, &(attune_tune_options){.budget_ms = 100.0, .force = 1}, d));
  OK(attune_tuner_trials(tuner, host, PROBLEM, see, &s));
  assert_true(s.count >= 2 && s.count <= 32 && s.winners == 1 && s.rises);
  FAILS(attune_tuner_trials(tuner, host, "gemm f99", see, &s), ATTUNE_INVALID_ARGUMENT);
  FAILS(attune_tuner_trials(tuner, NULL, PROBLEM, see, &s), ATTUNE_INVALID_ARGUMENT);
  attune_tuner_destroy(tuner);
  tuner = tuner_of(database); /* another one reads them */
  s = (seen){.rises = true};
  OK(attune_tuner_trials(tuner, host, PROBLEM, see, &s));
  assert_int_equal(s.winners, 1);
  attune_tuner_destroy(tuner);
}

/* No kernel's error is that small: only the default is left, whatever its own. */
TEST(a_tolerance_refuses) {
  attune_tuner *tuner = tuner_of("");
  DECISION(d);
  OK(attune_tuner_set_search(tuner, &(attune_search_options){.tolerance = 1e-6}));
  OK(attune_tune(tuner, host, "gemm f32 nn 256x256x256 strict", &(attune_tune_options){.budget_ms = 200.0, .force = 1},
                 d));
  const char *winner = info_of(d).implementation;
  assert_true(strncmp(info_of(d).default_implementation, winner, strlen(winner)) == 0);
  attune_tuner_destroy(tuner);
}

/* In a process of its own: the environment is read once. */
static int with_tf32(void) {
  attune_tuner *tuner = NULL;
  DECISION(d);
  setenv("ATTUNE_TF32", "1", 1);
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  if (attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 2;
  if (attune_explain(tuner, host, PROBLEM, d) != ATTUNE_OK) return 3;
  if (!strstr(info_of(d).problem, " reduced")) return 4;
  if (attune_explain(tuner, host, "gemm f64 nn 96x96x96 strict", d) != ATTUNE_OK) return 5;
  if (!strstr(info_of(d).problem, " strict")) return 6;
  attune_tuner_destroy(tuner);
  return 0;
}

static int with_log_file(void) {
  attune_tuner *tuner = NULL;
  char path[80];
  DECISION(d);
  snprintf(path, sizeof path, "%s-%%p", log_path);
  setenv("ATTUNE_LOG_FILE", path, 1);
  setenv("ATTUNE_LOG", "info", 1);
  setenv("ATTUNE_SKIP", "host_cblas", 1);
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = "";
  if (attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 2;
  if (strcmp(attune_skipped_implementations(), "host_cblas") != 0) return 3;
  if (attune_tune(tuner, host, PROBLEM, &(attune_tune_options){.budget_ms = 30.0, .force = 1}, d) != ATTUNE_OK)
    return 4;
  attune_tuner_destroy(tuner);
  setenv("ATTUNE_SKIP", "no_such", 1);
  if (attune_skip_implementations("") != ATTUNE_OK) return 5;
  if (attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 6; /* the program's word goes before */
  attune_tuner_destroy(tuner);
  char name[100];
  snprintf(name, sizeof name, "%s-%ld", log_path, (long)getpid());
  FILE *file = fopen(name, "re");
  char text[4096] = "";
  if (!file) return 7;
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  unlink(name);
  return strncmp(text, "attune: info: ", 14) == 0 && strstr(text, PROBLEM) ? 0 : 8;
}

static void run(const char *what) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    setenv("AT_LOG_PATH", log_path, 1);
    execl(self, self, what, (char *)NULL);
    _exit(99);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(tf32_for_the_process) {
  run("tf32");
}

TEST(the_log_goes_to_a_file) {
  run("log");
}

int main(int argc, char **argv) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return 1;
  if (argc > 1) {
    snprintf(log_path, sizeof log_path, "%s", getenv("AT_LOG_PATH") ? getenv("AT_LOG_PATH") : "log");
    return strcmp(argv[1], "tf32") == 0 ? with_tf32() : with_log_file();
  }
  if (!mkdtemp(folder)) return 1;
  snprintf(database, sizeof database, "%s/tuning.db", folder);
  snprintf(log_path, sizeof log_path, "%s/log", folder);
  const int failed = RUN_TESTS(NULL, NULL);
  char side[80];
  static const char *const ends[] = {"", "-wal", "-shm"};
  for (int i = 0; i < 3; i++) {
    snprintf(side, sizeof side, "%s%s", database, ends[i]);
    unlink(side);
  }
  rmdir(folder);
  return failed;
}
