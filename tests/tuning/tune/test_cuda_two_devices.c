/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_two_devices.c: two runs of the command tune one workload on two equal GPUs into one database: each problem
 * is measured once, none fails, both GPUs show every winner, and it takes about half the time. Needs two equal GPUs. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include "src/base/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

enum { PROBLEMS = 48, KINDS = 6, WIDTHS = 4 };
static const char *const kinds[KINDS] = {"bf16,strict", "f32,strict",  "f64,strict",
                                         "f16,strict",  "f32,reduced", "f32,equivalent"};

extern char **environ;

static char folder[64];

static pid_t start(const char *const *words, const char *out) {
  char path[128], errors[128];
  const char *arguments[16] = {"attune"};
  pid_t pid = 0;
  for (int i = 0; words[i]; i++) arguments[i + 1] = words[i];
  snprintf(path, sizeof path, "%s/%s", folder, out);
  snprintf(errors, sizeof errors, "%s/%s.err", folder, out);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_int_equal(posix_spawn(&pid, AT_COMMAND, &actions, NULL, (char *const *)(void *)arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

/* Its output as JSON; the exit code must be 0. */
static json_t *finish(pid_t pid, const char *out) {
  char path[128], command[160];
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
  snprintf(path, sizeof path, "%s/%s", folder, out);
  snprintf(command, sizeof command, "cat %s.err >&2", path);
  if (status != 0 && system(command) != 0) print_message("no %s.err\n", path);
  assert_int_equal(status, 0);
  json_t *value = json_load_file(path, 0, NULL);
  assert_non_null(value);
  return value;
}

static json_int_t number_of(const json_t *report, const char *name) {
  return json_integer_value(json_object_get(report, name));
}

/* Runs on `count` GPUs at once with one database; the seconds that took. */
static double tune_on(int count, const char *database, const char *workload) {
  pid_t pids[2];
  json_int_t tuned = 0;
  const int64_t start_ns = at_now_ns();
  for (int i = 0; i < count; i++) {
    const char *const words[] = {"tune",   workload, "--db", database, "--device", i ? "cuda:1" : "cuda:0",
                                 "--json", NULL};
    pids[i] = start(words, i ? "second" : "first");
  }
  for (int i = 0; i < count; i++) {
    json_t *report = finish(pids[i], i ? "second" : "first");
    print_message("cuda:%d: %d tuned, %d taken from the other, %.1f s\n", i, (int)number_of(report, "tuned"),
                  (int)number_of(report, "stored"), json_real_value(json_object_get(report, "seconds")));
    assert_int_equal(number_of(report, "failed"), 0);
    assert_int_equal(number_of(report, "left") + number_of(report, "busy"), 0);
    assert_int_equal(number_of(report, "tuned") + number_of(report, "stored"), PROBLEMS);
    tuned += number_of(report, "tuned");
    json_decref(report);
  }
  assert_int_equal(tuned, PROBLEMS);
  return (double)(at_now_ns() - start_ns) * 1e-9;
}

TEST(two_take_half_the_time) {
  char workload[96], one[96], both[96];
  snprintf(workload, sizeof workload, "%s/w.csv", folder);
  snprintf(one, sizeof one, "%s/one.db", folder);
  snprintf(both, sizeof both, "%s/both.db", folder);
  FILE *file = fopen(workload, "w");
  assert_non_null(file);
  fputs("dtype,contract,transa,m,n,k\n", file);
  for (int i = 0; i < PROBLEMS; i++)
    fprintf(file, "%s,%s,%d,%d,2048\n", kinds[i % KINDS], i % 2 ? "n" : "t", 1024 + 7 * i, 16 << (i / KINDS % WIDTHS));
  fclose(file);
  char warm[96];
  snprintf(warm, sizeof warm, "%s/warm.db", folder);
  (void)tune_on(1, warm, workload); /* which compiles the kernels */
  const double alone_s = tune_on(1, one, workload), together_s = tune_on(2, both, workload);
  print_message("%d problems: one GPU %.1f s, two %.1f s\n", PROBLEMS, alone_s, together_s);
  assert_true(together_s < 0.7 * alone_s);
  for (int i = 0; i < 2; i++) {
    const char *const words[] = {"show", "--db", both, "--device", i ? "cuda:1" : "cuda:0", "--json", NULL};
    json_t *winners = finish(start(words, "show"), "show");
    assert_int_equal(json_array_size(winners), PROBLEMS);
    json_decref(winners);
  }
  const char *const words[] = {"show", "--db", both, "--json", NULL};
  json_t *winners = finish(start(words, "show"), "show");
  assert_int_equal(json_array_size(winners), PROBLEMS);
  assert_true(json_array_size(json_object_get(json_array_get(winners, 0), "devices")) >= 2);
  json_decref(winners);
}

/* Two runs with databases of their own on one GPU: they take turns, and both come to an end. */
TEST(two_databases_on_one_gpu) {
  char workload[96], databases[2][96];
  pid_t pids[2];
  snprintf(workload, sizeof workload, "%s/few.csv", folder);
  FILE *file = fopen(workload, "w");
  assert_non_null(file);
  fputs("dtype,m,n,k\nbf16,1024,16,1024\nbf16,1024,32,1024\nbf16,1024,64,1024\n", file);
  fclose(file);
  for (int i = 0; i < 2; i++) {
    snprintf(databases[i], sizeof databases[i], "%s/own%d.db", folder, i);
    const char *const words[] = {"tune", workload, "--db", databases[i], "--device", "cuda:0", "--json", NULL};
    pids[i] = start(words, i ? "second" : "first");
  }
  for (int i = 0; i < 2; i++) {
    json_t *report = finish(pids[i], i ? "second" : "first");
    assert_int_equal(number_of(report, "tuned"), 3);
    json_decref(report);
  }
}

static int remove_all(void) {
  char command[160];
  snprintf(command, sizeof command, "rm -rf -- '%s'", folder);
  return system(command);
}

int main(void) {
  attune_device *devices[2] = {NULL, NULL};
  char prints[2][4096];
  for (int i = 0; i < 2; i++) {
    if (attune_device_get(&devices[i], i ? "cuda:1" : "cuda:0") != ATTUNE_OK ||
        attune_device_fingerprint(devices[i], prints[i], sizeof prints[i]) != ATTUNE_OK)
      return skip_all("fewer than two GPUs");
  }
  if (strcmp(prints[0], prints[1]) != 0) return skip_all("the first two GPUs differ");
  if (strcmp(devices[0]->identity, devices[1]->identity) == 0 || strncmp(devices[0]->identity, "GPU-", 4) != 0)
    return 1;
  snprintf(folder, sizeof folder, "/tmp/attune-two-gpus-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  return remove_all() == 0 ? failed : 1;
}
