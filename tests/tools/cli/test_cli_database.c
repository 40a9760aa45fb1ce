/* SPDX-License-Identifier: Apache-2.0
 * test_cli_database.c: what the command does about its database: refuses before it measures, makes none by looking,
 * shares one with other processes, and ends when it is told to. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>

#include "src/base/backend.h"
#include "src/device/device_lease.h"
#include "tests/support/store_open.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

extern char **environ;

enum { MOST = 24 };

static char folder[32], workload[64], database[64];
static char *out_text, *err_text;

static const char *in_folder(const char *name) {
  static char path[4][96];
  static int next;
  char *at = path[next++ % 4];
  snprintf(at, sizeof path[0], "%s/%s", folder, name);
  return at;
}

static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static char *read_text(const char *path) {
  char *text = calloc(1, 1 << 18);
  FILE *file = fopen(path, "r");
  assert_non_null(text);
  assert_non_null(file);
  assert_in_range(fread(text, 1, (1 << 18) - 1, file), 0, (1 << 18) - 1);
  fclose(file);
  return text;
}

typedef struct started {
  pid_t pid;
  char out[96], err[96];
} started;

/* Starts `program WORDS...` with its output in files of its own. */
static started start(const char *program, const char *const *words) {
  static int number;
  started s;
  const char *arguments[MOST + 2] = {program};
  for (int i = 0; words[i]; i++) arguments[i + 1] = words[i];
  snprintf(s.out, sizeof s.out, "%s/out%d", folder, number);
  snprintf(s.err, sizeof s.err, "%s/err%d", folder, number++);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, s.out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, s.err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_int_equal(posix_spawn(&s.pid, program, &actions, NULL, (char *const *)(void *)arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  return s;
}

#define START(...) start(AT_COMMAND, (const char *const[]){__VA_ARGS__, NULL})

/* The exit code must be `wanted`; a signal counts as 1000 and its number. */
static void expect_end(const started *s, int wanted) {
  int status = 0;
  while (waitpid(s->pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
  free(out_text);
  free(err_text);
  out_text = read_text(s->out);
  err_text = read_text(s->err);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  if (code != wanted) fail_msg("exit code %d, should be %d; %s%s", code, wanted, out_text, err_text);
}

#define EXPECT_RUN(code, ...)               \
  do {                                      \
    const started run = START(__VA_ARGS__); \
    expect_end(&run, code);                 \
  } while (0)

static void expect_error(const char *text) {
  if (!strstr(err_text, text)) fail_msg("standard error lacks \"%s\": %s", text, err_text);
}

static void expect_out(const char *text) {
  if (!strstr(out_text, text)) fail_msg("standard output lacks \"%s\": %s", text, out_text);
}

static bool there(const char *path) {
  return access(path, F_OK) == 0;
}

static json_int_t number_of(const json_t *report, const char *name) {
  return json_integer_value(json_object_get(report, name));
}

/* Sends SIGTERM as soon as the command has its handler. */
static void terminate(const started *s, long after_ms) {
  char path[64];
  bool caught = false;
  snprintf(path, sizeof path, "/proc/%ld/status", (long)s->pid);
  for (int i = 0; i < 3000 && !caught; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    char *text = read_text(path);
    const char *at = strstr(text, "SigCgt:");
    caught = at && (strtoull(at + 7, NULL, 16) >> (SIGTERM - 1) & 1);
    free(text);
  }
  assert_true(caught);
  nanosleep(&(struct timespec){.tv_sec = after_ms / 1000, .tv_nsec = after_ms % 1000 * 1000000}, NULL);
  assert_int_equal(kill(s->pid, SIGTERM), 0);
}

FIXTURE(fresh) {
  snprintf(folder, sizeof folder, "/tmp/attune-cli-database-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(workload, sizeof workload, "%s/w.csv", folder);
  snprintf(database, sizeof database, "%s/t.db", folder);
  write_text(workload, "dtype,m,n,k\nf32,64,64,64\nf64,50,60,70\nf32,80,80,80\n");
  setenv("HOME", folder, 1);
  setenv("XDG_RUNTIME_DIR", folder, 1);
  setenv("ASAN_OPTIONS", "intercept_tls_get_addr=0:detect_leaks=0", 1);
  unsetenv("XDG_DATA_HOME");
  unsetenv("ATTUNE_DB");
  unsetenv("ATTUNE_LOG");
  return 0;
}

FIXTURE(clear) {
  free(out_text);
  free(err_text);
  out_text = err_text = NULL;
  return folder_remove(folder);
}

/* --- refused before anything is measured --- */

TEST(no_home_is_refused) {
  unsetenv("HOME");
  EXPECT_RUN(2, "tune", workload, "--device", "host");
  expect_error("--db");
  expect_error("ATTUNE_DB");
  assert_string_equal(out_text, "");
  EXPECT_RUN(2, "show");
  expect_error("the tuning database has no default path");
  EXPECT_RUN(0, "tune", workload, "--problem-budget", "50", "--device", "host", "--db",
             ":memory:"); /* who wants none gets none */
  EXPECT_RUN(2, "tune", workload, "--problem-budget", "50", "--device", "host", "--db", "", "--budget", "1");
  expect_error("--db is empty");
  EXPECT_RUN(2, "show", "--db", "");
  EXPECT_RUN(2, "warm", "");
  EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8 strict", "--device", "host");
  EXPECT_RUN(0, "tune", workload, "--problem-budget", "50", "--device", "host", "--db", database);
  assert_true(there(database));
}

TEST(an_unwritable_database_is_refused) {
  char command[512];
  snprintf(command, sizeof command, "ulimit -f 8; exec %s tune %s --device host --db %s", AT_COMMAND, workload,
           database);
  const started limited = start("/bin/sh", (const char *const[]){"-c", command, NULL});
  expect_end(&limited, 1); /* and not by SIGXFSZ */
  expect_error("ulimit -f");
  assert_string_equal(out_text, "");
  write_text(in_folder("one"), "x");
  chmod(in_folder("one"), 0600);
  EXPECT_RUN(2, "tune", workload, "--device", "host", "--db", in_folder("one"));
  expect_error("is not a tuning database");
  assert_string_equal(out_text, "");
}

/* --- nothing is made by looking --- */

TEST(a_mistyped_name_makes_nothing) {
  char absent[96];
  snprintf(absent, sizeof absent, "%s/absent/t.db", folder);
  setenv("ATTUNE_DB", absent, 1);
  EXPECT_RUN(2, "tune", workload, "--device", "host");
  expect_error("/absent of the tuning database");
  EXPECT_RUN(2, "show");
  EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8 strict", "--device", "host");
  assert_false(there(in_folder("absent")));

  setenv("ATTUNE_DB", database, 1);
  EXPECT_RUN(2, "show");
  expect_error(database);
  EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8 strict", "--device", "host");
  EXPECT_RUN(1, "tune", "recorded", "--device", "host");
  EXPECT_RUN(2, "tune", in_folder("none.csv"), "--device", "host");
  EXPECT_RUN(2, "tune", workload, "--device", "toaster");
  assert_false(there(database));
  setenv("ATTUNE_LOG", "info", 1);
  EXPECT_RUN(0, "tune", workload, "--problem-budget", "50", "--device", "host");
  expect_error("created the tuning database ");
  assert_true(there(database));
}

TEST(the_users_own_place_is_made_when_it_is_needed) {
  EXPECT_RUN(0, "show");
  EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8 strict", "--device", "host");
  assert_false(there(in_folder(".local")));
  EXPECT_RUN(0, "tune", workload, "--problem-budget", "50", "--device", "host");
  assert_true(there(in_folder(".local/share/attune/tuning.db")));
}

/* --- what is told of it --- */

TEST(nothing_stored_is_told_with_what_helps) {
  at_store *store = NULL;
  const attune_decision elsewhere = {.problem = "gemm f32 nn 8x8x8 strict",
                                     .implementation = "host_reference",
                                     .implementation_version = 1,
                                     .time_ns = 10,
                                     .samples = 9,
                                     .default_time_ns = 20,
                                     .measure = "hot,eager",
                                     .complete = 1,
                                     .tuned_at = 1700000000};
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_put(store, "another machine", "gemm f32 nn strict", &elsewhere, NULL, 0, 1000), ATTUNE_OK);
  at_store_close(store);
  EXPECT_RUN(0, "verify", "--device", "host", "--db", database);
  expect_out("no stored winner is valid on host: `attune tune' finds them");
  EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8", "--trials", "--device", "host", "--db", database);
  expect_out("`attune tune' measures and stores them");
  setenv("ATTUNE_MODE", "tune", 1);
  EXPECT_RUN(0, "explain", "gemm f32 nn 9x8x8", "--device", "host", "--db", database);
  expect_out("a call in mode tune would measure");
  setenv("ATTUNE_MODE", "off", 1);
  EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8", "--device", "host", "--db", database);
  expect_out("mode off uses it");
  unsetenv("ATTUNE_MODE");
  write_text(in_folder("large.csv"), "problem\ngemm f32 nn 100000000x100000000x100000000 strict\n");
  EXPECT_RUN(1, "tune", in_folder("large.csv"), "--budget", "1", "--device", "host", "--db", database);
  expect_error("too large to be measured");
  expect_out("1 failed, 0 left");
  setenv("ATTUNE_LOG_FILE", in_folder("absent/log"), 1);
  setenv("ATTUNE_LOG", "info", 1);
  EXPECT_RUN(0, "tune", workload, "--problem-budget", "20", "--device", "host", "--db", ":memory:");
  unsetenv("ATTUNE_LOG_FILE");
  expect_error("absent/log of ATTUNE_LOG_FILE cannot be opened");
}

/* Whether winner and default were measured alone behind the race, which the winner's trial tells; the runner-up was
 * not. */
TEST(a_runner_up_that_looks_faster_is_explained) {
  at_store *store = NULL;
  attune_device *host = NULL;
  char fingerprint[AT_FINGERPRINT_CHARS];
  if (getenv("AT_UNDER_VALGRIND")) skip(); /* whose CPU is another than the command's */
  attune_decision winner = {.problem = "gemm f32 nn 8x8x8 strict",
                            .implementation = "host_reference",
                            .implementation_version = 1,
                            .time_ns = 10,
                            .samples = 9,
                            .default_time_ns = 20,
                            .runner_up = "host_small",
                            .runner_up_time_ns = 9,
                            .measure = "hot,eager",
                            .complete = 1,
                            .tuned_at = 1700000000};
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_device_fingerprint(host, fingerprint, sizeof fingerprint), ATTUNE_OK);
  at_trial trials[2] = {{.implementation = "host_reference", .time_ns = 12, .samples = 9, .verdict = "winner"},
                        {.implementation = "host_small", .time_ns = 9, .samples = 9, .verdict = "runner-up"}};
  for (int slower = 0; slower <= 1; slower++)
    for (int alone = 0; alone <= 1; alone++) {
      trials[0].time_ns = alone ? 12 : winner.time_ns;
      assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
      winner.runner_up_time_ns = trials[1].time_ns = slower ? 11 : 9;
      winner.tuned_at++;
      assert_int_equal(at_store_put(store, fingerprint, "gemm f32 nn strict", &winner, trials, 2, 1000), ATTUNE_OK);
      at_store_close(store);
      EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8", "--device", "host", "--db", database);
      expect_out(slower ? "1.100x as fast" : "0.900x as fast");
      assert_true((alone && !slower) ==
                  !!strstr(out_text, "this time is from the race; afterwards winner and default"));
      assert_true((!alone && !slower) == !!strstr(out_text, "the race compares samples taken in direct succession"));
      assert_null(strstr(out_text, "trials"));
      EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8", "--trials", "--device", "host", "--db", database);
      expect_out("  trials          times in the race, where the candidates take turns\n");
      assert_true(!alone == !strstr(out_text, "each alone: see the times above\n"));
    }
}

/* Not the text that was typed, which may be another's of the same problem. */
TEST(a_problem_is_told_as_it_is_stored) {
  EXPECT_RUN(0, "explain", "gemm float32 nn 008x08x8", "--device", "host", "--db", ":memory:");
  expect_out("gemm f32 nn 8x8x8 strict on host\n  asked as        gemm float32 nn 8x8x8\n");
  EXPECT_RUN(0, "explain", "gemm f32 nn 008x08x100 row-major", "--device", "host", "--db", ":memory:");
  expect_out("gemm f32 nn 8x8x100 row-major on host\n  stored as       gemm f32 nn 8x8x100 strict\n");
  assert_null(strstr(out_text, "vendor"));
  EXPECT_RUN(0, "explain", "gemm f32 nn 8x8x8 strict", "--device", "host", "--db", ":memory:");
  assert_null(strstr(out_text, "asked as"));
  write_text(in_folder("zeros.csv"), "problem\ngemm f32 nt 008x08x8 row-major\n");
  EXPECT_RUN(0, "show", in_folder("zeros.csv"), "--device", "host", "--db", ":memory:");
  expect_out("gemm f32 nt 8x8x8 row-major\n");
}

/* --- with others --- */

/* The lease of the workload's first problem, held by this process. */
static at_store *hold_first(char fingerprint[AT_FINGERPRINT_CHARS]) {
  at_store *store = NULL;
  attune_device *host = NULL;
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(attune_device_fingerprint(host, fingerprint, AT_FINGERPRINT_CHARS), ATTUNE_OK);
  assert_int_equal(at_store_open(&store, database, AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(at_store_lease_acquire(store, fingerprint, "gemm f32 nn 64x64x64 strict", 60000, 500), ATTUNE_OK);
  return store;
}

TEST(what_others_measure_comes_last) {
  char fingerprint[AT_FINGERPRINT_CHARS], by[64];
  at_store *store = hold_first(fingerprint);
  EXPECT_RUN(0, "tune", workload, "--problem-budget", "50", "--device", "host", "--db", database, "--budget", "6",
             "--json");
  json_t *report = json_loads(out_text, 0, NULL);
  assert_non_null(report);
  assert_int_equal(number_of(report, "tuned") + number_of(report, "left"), 2); /* a busy machine may be too slow */
  assert_int_equal(number_of(report, "busy"), 1);
  assert_int_equal(number_of(report, "failed"), 0);
  const json_t *first = json_array_get(json_object_get(report, "results"), 0);
  assert_string_equal(json_string_value(json_object_get(first, "outcome")), "busy");
  snprintf(by, sizeof by, "is being measured by process %ld", (long)getpid());
  assert_non_null(strstr(json_string_value(json_object_get(first, "message")), by));
  json_decref(report);

  /* Without a budget it waits, until the other one is done or has given up. */
  const started s = START("tune", workload, "--device", "host", "--db", database);
  nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
  assert_int_equal(waitpid(s.pid, NULL, WNOHANG), 0);
  at_store_lease_release(store, fingerprint, "gemm f32 nn 64x64x64 strict");
  expect_end(&s, 0);
  assert_non_null(strstr(out_text, " tuned, ")); /* what the budget cut short is tuned further */
  assert_null(strstr(out_text, "another process"));
  assert_non_null(strstr(out_text, "0 failed, 0 left"));
  at_store_close(store);
}

static bool file_says(const char *path, const char *text) {
  char *all = read_text(path);
  const bool found = strstr(all, text) != NULL;
  free(all);
  return found;
}

/* Holds the device until both runs wait for it or for each other, and a second longer: what is measured then was
 * measured since both began. */
static void start_together(started runs[2]) {
  attune_device *host = NULL;
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(at_device_lease_try(host), ATTUNE_OK);
  setenv("ATTUNE_LOG", "info", 1);
  for (int i = 0; i < 2; i++) runs[i] = START("tune", workload, "--device", "host", "--db", database, "--json");
  for (int i = 0; i < 2; i++)
    for (int look = 0; look < 6000 && !file_says(runs[i].err, "waiting: "); look++)
      nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  unsetenv("ATTUNE_LOG");
  nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100000000}, NULL);
  at_device_lease_release(host);
}

TEST(two_runs_share_the_work) {
  started runs[2];
  json_int_t tuned = 0, stored = 0, unsure = 0;
  start_together(runs);
  for (int i = 0; i < 2; i++) {
    expect_end(&runs[i], 0);
    json_t *report = json_loads(out_text, 0, NULL);
    assert_non_null(report);
    tuned += number_of(report, "tuned");
    stored += number_of(report, "stored");
    unsure += number_of(report, "unsure");
    assert_int_equal(number_of(report, "failed") + number_of(report, "left") + number_of(report, "busy"), 0);
    json_decref(report);
  }
  assert_int_equal(tuned + stored, 6);
  /* What noise left unsure may be measured again by the other, if its look and its claim lie on two sides of the
   * commit. */
  assert_in_range(tuned, 3, unsure ? 4 : 3);
}

/* Without a budget it waits for as long as that takes, and says for whom. */
TEST(a_wait_is_told) {
  char by[64];
  attune_device *host = NULL;
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(at_device_lease_try(host), ATTUNE_OK);
  started s = START("tune", workload, "--device", "host", "--db", database);
  snprintf(by, sizeof by, "process %ld, since ", (long)getpid());
  bool told = false;
  for (int look = 0; look < 30000 && !told; look++) {
    assert_int_equal(waitpid(s.pid, NULL, WNOHANG), 0);
    assert_int_equal(at_device_lease_renew(host), ATTUNE_OK);
    told = file_says(s.err, by);
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  assert_true(told);
  assert_true(file_says(s.err, "warning: waiting for "));
  at_device_lease_release(host);
  expect_end(&s, 0);
  expect_out("3 tuned");
}

/* --- SIGTERM --- */

TEST(a_signal_ends_a_wait) {
  char fingerprint[AT_FINGERPRINT_CHARS];
  attune_device *host = NULL;
  at_store *store = hold_first(fingerprint);
  started s = START("tune", workload, "--device", "host", "--db", database);
  terminate(&s, 300);
  expect_end(&s, 143);
  at_store_close(store);
  assert_int_equal(attune_device_get(&host, "host"), ATTUNE_OK);
  assert_int_equal(at_device_lease_try(host), ATTUNE_OK);
  unlink(database);
  s = START("tune", workload, "--device", "host", "--db", database); /* waits for its turn on the device */
  terminate(&s, 300);
  expect_end(&s, 143);
  /* on a machine that is too slow to come to an orderly end in three seconds, standard error says so */
  if (strstr(out_text, "interrupted"))
    assert_non_null(strstr(out_text, "0 tuned"));
  else
    expect_error("interrupted");
  assert_null(strstr(out_text, "  default "));
  at_device_lease_release(host);
}

/* nohup, and a shell for its background jobs, start a command with signals that do not reach it. */
TEST(what_is_ignored_ends_nothing) {
  signal(SIGHUP, SIG_IGN);
  started s = START("tune", workload, "--device", "host", "--db", database);
  signal(SIGHUP, SIG_DFL);
  for (int i = 0; i < 20; i++) {
    (void)kill(s.pid, SIGHUP);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  }
  expect_end(&s, 0);
  expect_out("3 tuned");
}

/* A problem that does not come to its end, as in a library that has no memory and never gives up. */
TEST(a_signal_ends_a_problem_without_an_end) {
  write_text(workload, "dtype,m,n,k\nf64,4000,4000,4000\n");
  const started s = START("tune", workload, "--device", "host", "--db", database, "--problem-budget", "600000");
  const time_t begin = time(NULL);
  terminate(&s, 1000);
  expect_end(&s, 143);
  assert_true(time(NULL) - begin < 30);
}

int main(void) {
  return RUN_TESTS_EACH(fresh, clear, NULL, NULL);
}
