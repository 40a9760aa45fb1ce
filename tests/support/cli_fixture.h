/* SPDX-License-Identifier: Apache-2.0
 * cli_fixture.h: what the tests of the command share: a folder of its own, runs of the command, what they print. */
#ifndef AT_TESTS_CLI_FIXTURE_H
#define AT_TESTS_CLI_FIXTURE_H

#include "tests/support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#define WORDS 24
/* Large enough that one call is not lost in the noise of a busy machine. */
#define SMALL "dtype,m,n,k\nf32,64,64,64\nf64,50,60,70\nf32,80,80,80\n"

extern char **environ;

static char folder[] = "/tmp/attune-test-cli-XXXXXX";
static char database[64], workload[64], out_path[64], err_path[64];

/* Output of the last run. */
static char *out_text, *err_text;

static inline char *read_file(const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char *text = calloc(1, 1 << 20);
  assert_non_null(text);
  assert_in_range(fread(text, 1, (1 << 20) - 1, file) + 1, 1, (1 << 20) - 1);
  fclose(file);
  return text;
}

static inline void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

/* Starts `attune WORDS...` with its output in two files. `in`: NULL closes standard input. */
static inline pid_t start_with(const char *const *words, const char *out, const char *in) {
  const char *arguments[WORDS + 2] = {"attune"};
  for (int i = 0; words[i]; i++) arguments[i + 1] = words[i];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (in)
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, in, O_RDONLY, 0);
  else
    posix_spawn_file_actions_addclose(&actions, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  assert_int_equal(posix_spawn(&child, AT_COMMAND, &actions, NULL, (char *const *)(void *)arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

static inline pid_t start(const char *const *words, const char *out) {
  return start_with(words, out, "/dev/null");
}

/* The exit code; a signal as 1000 + its number. */
static inline int finish(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) assert_int_equal(errno, EINTR);
  free(out_text);
  free(err_text);
  out_text = err_text = NULL;
  out_text = read_file(out_path);
  err_text = read_file(err_path);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline void expect_code(int wanted, pid_t child) {
  int code = finish(child);
  if (code != wanted) fail_msg("exit code %d, should be %d; standard error: %s", code, wanted, err_text);
}

#define expect_run(code, ...) expect_code(code, start((const char *const[]){__VA_ARGS__, NULL}, out_path))

/* stderr holds `text`, in a line that says who speaks. */
static inline void expect_error(const char *text) {
  assert_true(strncmp(err_text, "attune", 6) == 0 || strstr(err_text, "\nattune"));
  if (!strstr(err_text, text)) fail_msg("standard error lacks \"%s\": %s", text, err_text);
}

static inline void expect_out(const char *text) {
  if (!strstr(out_text, text)) fail_msg("standard output lacks \"%s\": %s", text, out_text);
}

static inline json_t *parse_out(void) {
  json_error_t error;
  json_t *value = json_loads(out_text, JSON_REJECT_DUPLICATES, &error);
  if (!value) fail_msg("line %d: %s: %s", error.line, error.text, out_text);
  return value;
}

static inline json_int_t member(const json_t *object, const char *name) {
  const json_t *value = json_object_get(object, name);
  assert_true(json_is_integer(value));
  return json_integer_value(value);
}

/* Under AddressSanitizer a request for too much memory must give NULL, as it does without; and its search for leaks
 * cannot look into the CBLAS libraries that the command loads into namespaces of their own. */
static inline void set_sanitizer_options(void) {
  const char *given = getenv("ASAN_OPTIONS");
  char options[512];
  snprintf(options, sizeof options, "%s:allocator_may_return_null=1:detect_leaks=0", given ? given : "verbosity=0");
  setenv("ASAN_OPTIONS", options, 1);
}

static inline int set_up(void **state) {
  (void)state;
  set_sanitizer_options();
  if (!mkdtemp(folder)) return 1;
  snprintf(database, sizeof database, "%s/t.db", folder);
  snprintf(workload, sizeof workload, "%s/w.csv", folder);
  snprintf(out_path, sizeof out_path, "%s/out", folder);
  snprintf(err_path, sizeof err_path, "%s/err", folder);
  return 0;
}

/* All that a run may have left, a journal too. */
static inline void empty_folder(void) {
  DIR *listing = opendir(folder);
  for (struct dirent *entry; listing && (entry = readdir(listing));) unlinkat(dirfd(listing), entry->d_name, 0);
  if (listing) closedir(listing);
}

static inline int fresh(void **state) {
  (void)state;
  empty_folder();
  write_file(workload, SMALL);
  write_file(out_path, "");
  return 0;
}

static inline int tear_down(void **state) {
  (void)state;
  empty_folder();
  free(out_text);
  free(err_text);
  return rmdir(folder);
}

#endif
