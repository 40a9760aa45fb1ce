/* SPDX-License-Identifier: Apache-2.0
 * test_cli_bench_ends.c: how `attune bench' ends when it is stopped, killed, or cannot go on: what is saved, what is
 * told, and that no process stays. Nothing here depends on how long anything takes. */
#include "tests/support/cli_fixture.h"

#include "tools/compare/message.h"
#include "tools/compare/results/results.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

enum { PATIENCE = 6000 }; /* hundredths of a second */

static char results[64];

static int begin(void **state) {
  char command[128];
  snprintf(results, sizeof results, "%s/r.db", folder);
  snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
  return system(command) == 0 ? fresh(state) : 1;
}

static int end(void **state) {
  return begin(state) == 0 ? tear_down(state) : 1;
}

static void nap(void) {
  nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* A zombie that nobody waits for is gone. */
static bool is_gone(long pid) {
  char path[64], line[256] = "";
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  FILE *stream = fopen(path, "r");
  const bool there = stream && fgets(line, sizeof line, stream);
  if (stream) fclose(stream);
  const char *name_end = strrchr(line, ')');
  return !there || (name_end && name_end[1] == ' ' && name_end[2] == 'Z');
}

static void expect_gone(long pid) {
  for (int i = 0; i < PATIENCE; i++) {
    if (is_gone(pid)) return;
    nap();
  }
  (void)kill((pid_t)pid, SIGKILL);
  fail_msg("process %ld is still there", pid);
}

/* --- stopped --- */

/* The number of the worker that logs, once it samples case "z". */
static long worker_at_z(const char *log_path) {
  for (int i = 0; i < PATIENCE; i++, nap()) {
    long worker = 0;
    char *log = access(log_path, R_OK) == 0 ? read_file(log_path) : NULL;
    const char *line = log ? strstr(log, " sample z") : NULL;
    while (line && line > log && line[-1] != '\n') line--;
    if (line && sscanf(line, "%*s %ld", &worker) != 1) worker = 0;
    free(log);
    if (worker) return worker;
  }
  fail_msg("the case was not reached");
  return 0;
}

/* The second case hangs; the first one's samples are there, if it came first. */
static void stopped_by(int number) {
  char words[256], log_path[96], base[96], script[160], report[96];
  gate_run run;
  bool timed = false;
  assert_int_equal(begin(NULL), 0);
  snprintf(log_path, sizeof log_path, "%s/log", folder);
  snprintf(base, sizeof base, "%s/old", folder);
  snprintf(script, sizeof script, "%s/run", base);
  snprintf(report, sizeof report, "%s/report.md", folder);
  snprintf(words, sizeof words, "#!/bin/sh\nexec " AT_WORKER " --log=%s a=time:1500 z=hang \"$@\"\n", log_path);
  assert_int_equal(mkdir(base, 0700), 0);
  write_file(script, words);
  assert_int_equal(chmod(script, 0700), 0);
  signal(number, SIG_DFL); /* what is ignored at the start stays so */
  const pid_t child = start((const char *const[]){"bench", "--program", "{build}/run", "--build", base, "--against",
                                                  base, "--save", results, "--markdown", report, NULL},
                            out_path);
  const long worker = worker_at_z(log_path);
  assert_int_equal(kill(child, number), 0);
  expect_code(128 + number, child);
  if (strstr(err_text, "did not end")) return; /* the command gives itself 3 s, which a busy machine may not have */
  expect_out(", interrupted");
  assert_true(is_gone(worker));
  char *text = read_file(report);
  const char *first = strstr(text, ", interrupted");
  if (!first || !strstr(first + 1, ", interrupted")) fail_msg("the report does not say so of both runs: %s", text);
  free(text);
  for (int i = 1; i <= 2; i++) {
    char *name = gate_say("%s:%d", results, i), *error = gate_load(name, &run);
    if (error) fail_msg("%s", error);
    assert_int_equal(run.state, GATE_RUN_INTERRUPTED);
    assert_int_equal(run.case_count, 2);
    for (int c = 0; c < 2; c++) assert_int_equal(run.cases[c].state, GATE_CASE_OK); /* not its fault */
    assert_int_equal(run.cases[1].visit_count, 0);
    assert_in_range(run.cases[0].visit_count, 0, 1);
    timed = run.cases[0].visit_count > 0;
    gate_run_free(&run);
    free(name);
  }
  expect_run(timed ? 0 : 2, "compare", results, "--allow-different"); /* nothing was compared, and that is not well */
  expect_out(", interrupted");
}

TEST(each_signal_saves_and_marks) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) stopped_by(numbers[i]);
}

/* --- killed --- */

/* A child of the process; 0: it has none now. */
static long child_of(pid_t parent) {
  char path[64];
  long child = 0;
  snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)parent, (long)parent);
  FILE *stream = fopen(path, "r");
  if (!stream) return 0;
  if (fscanf(stream, "%ld", &child) != 1) child = 0;
  fclose(stream);
  return child;
}

/* Visits that are saved so far. */
static int visits_saved(void) {
  gate_run run;
  int visits = 0;
  char *name = gate_say("%s:1", results), *error = gate_load(name, &run);
  for (size_t i = 0; !error && i < run.case_count; i++) visits += run.cases[i].visit_count;
  if (!error) gate_run_free(&run);
  free(error);
  free(name);
  return visits;
}

/* The worker serves when its first visit is saved. It is stopped then, so that it cannot see that its socket closed:
 * only the kernel, which it asked to, ends it with the runner. This process becomes its parent, else the kernel would
 * hang up on it. */
static void worker_ends_with(const char *const *words) {
  assert_int_equal(begin(NULL), 0);
  assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  const pid_t runner = start(words, out_path);
  for (int i = 0; i < PATIENCE && !visits_saved(); i++) nap();
  const long worker = child_of(runner);
  const bool stopped = worker && kill((pid_t)worker, SIGSTOP) == 0;
  (void)kill(runner, SIGKILL);
  const int code = finish(runner);
  if (!stopped) skip(); /* the kernel does not tell children, or all was over by then */
  assert_int_equal(code, 1000 + SIGKILL);
  expect_gone(worker);
  while (waitpid(-1, NULL, WNOHANG) > 0) continue;
}

TEST(a_killed_runner_leaves_no_worker) {
  worker_ends_with((const char *const[]){"bench", workload, "--device", "host", "--rounds", "1", "--samples", "10000",
                                         "--save", results, NULL});
#ifdef EXAMPLE
  worker_ends_with((const char *const[]){"bench", "--program", EXAMPLE, "--rounds", "1", "--samples", "10000", "--save",
                                         results, NULL});
#endif
}

/* --- hung --- */

/* A second is too short for a busy machine to start a process in: then that is what hung. Without the option it is two
 * minutes. */
TEST(hang_is_how_long_an_answer_may_take) {
  const int code = finish(
      start((const char *const[]){"bench", "--program", AT_WORKER " a=hang", "--rounds", "1", "--hang", "1", NULL},
            out_path));
  assert_in_range(code, 1, 2);
  if (!strstr(out_text, "hung (no answer after 1 s)") && !strstr(err_text, "hung (no answer after 1 s)"))
    fail_msg("\"%s\", \"%s\"; should say how long it hung", out_text, err_text);
}

/* --- what cannot be a file, or cannot grow --- */

TEST(a_fifo_is_no_side) {
  char fifo[96];
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  expect_run(0, "bench", "--program", AT_WORKER " a=time:1", "--rounds", "1", "--save", results);
  expect_run(2, "compare", fifo, results);
  expect_error("is not a regular file");
  expect_run(2, "compare", results, fifo);
  expect_error("is not a regular file");
  expect_run(2, "compare", fifo);
  expect_error("is not a regular file");
  expect_run(2, "history", "a", "--results", fifo);
  expect_error("is not a regular file");
  expect_run(2, "bench", "--program", AT_WORKER " a=time:1", "--save", fifo);
  expect_error("is not a regular file");
}

/* A run with a limit on the size of files. */
static void limited(rlim_t bytes, int wanted) {
  struct rlimit was, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
  limit = (struct rlimit){bytes, was.rlim_max};
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const pid_t child =
      start((const char *const[]){"bench", "--program", AT_WORKER " a=time:1", "--save", results, NULL}, out_path);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
  expect_code(wanted, child);
  expect_error("cannot grow: this process may not write larger files; raise the limit (ulimit -f)");
}

TEST(a_limit_on_files_is_named) {
  struct stat info;
  limited(8192, 1);
  assert_int_equal(access(results, F_OK), -1);
  expect_run(0, "bench", "--program", AT_WORKER " a=time:1", "--rounds", "1", "--save", results);
  assert_int_equal(stat(results, &info), 0);
  limited((rlim_t)info.st_size + 1024, 1);
  expect_run(0, "compare", results, results); /* what was there is */
}

int main(void) {
  return RUN_TESTS_EACH(begin, NULL, set_up, end);
}
