/* SPDX-License-Identifier: Apache-2.0
 * test_read_only.c: a database that can be read and not written serves the command and programs; what a mode cannot
 * store is told once. Everything runs in children: modes must bind them, and the log's level is read once a process. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/attune.h>
#include <attune/tools.h>

#include "tests/support/no_rights.h"
#include "tuning/store/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PROBLEM "gemm f32 nn 24x16x8 strict"

enum { FREE_RIGHTS = 77 }; /* exit code: this process may write everywhere */

static char base[32], made[64], closed[64], database[96];
static char out_text[16384], err_text[16384];

static const char *in_base(const char *name) {
  static char path[4][160];
  static int next;
  char *at = path[next++ % 4];
  snprintf(at, sizeof path[0], "%s/%s", base, name);
  return at;
}

static void read_text(char *to, size_t size, const char *path) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  to[fread(to, 1, size - 1, file)] = '\0';
  fclose(file);
}

/* Runs `work` in a child whose output goes to out_text and err_text; its exit code. `bound`: by modes too. */
static int in_child(int (*work)(void *user), void *user, bool bound) {
  char out[160], err[160];
  int status = 0;
  snprintf(out, sizeof out, "%s", in_base("out"));
  snprintf(err, sizeof err, "%s", in_base("err"));
  const pid_t child = fork();
  if (child == 0) {
    const int to_out = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600),
              to_err = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(to_out, STDOUT_FILENO);
    dup2(to_err, STDERR_FILENO);
    if (bound && !give_up_rights(closed)) _exit(FREE_RIGHTS);
    _exit(work(user));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  read_text(out_text, sizeof out_text, out);
  read_text(err_text, sizeof err_text, err);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  if (code == FREE_RIGHTS) {
    print_message("skipped: modes do not bind this process\n");
    skip();
  }
  return code;
}

static void expect(int wanted, int code) {
  if (code != wanted) fail_msg("exit code %d, should be %d; %s%s", code, wanted, out_text, err_text);
}

static void expect_in(const char *all, const char *text) {
  if (!strstr(all, text)) fail_msg("\"%s\" is not in: %s", text, all);
}

static size_t count_of(const char *all, const char *text) {
  size_t count = 0;
  for (const char *at = strstr(all, text); at; at = strstr(at + 1, text)) count++;
  return count;
}

/* In a child: says what is wrong, and ends it. */
#define WANT(condition)                                                                  \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, attune_last_message()); \
      _exit(1);                                                                          \
    }                                                                                    \
  } while (0)

static attune_device *host_device(void) {
  attune_device *host = NULL;
  WANT(attune_device_get(&host, "host") == ATTUNE_OK);
  return host;
}

static attune_tuner *tuner_in(attune_mode mode) {
  attune_tuner *tuner = NULL;
  WANT(attune_tuner_create(&tuner, &(attune_tuner_options){.mode = mode}) == ATTUNE_OK);
  return tuner;
}

static attune_status multiply(attune_tuner *tuner, int64_t m) {
  static float a[64 * 64], b[64 * 64], d[64 * 64];
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  problem.m = m, problem.n = 16, problem.k = 8;
  const attune_gemm_operands operands = {.alpha = 1.0, .a = a, .b = b, .d = d};
  return attune_gemm(tuner, attune_stream_default(host_device()), &problem, &operands);
}

static int make_database(void *user) {
  (void)user;
  setenv("ATTUNE_DB", made, 1);
  attune_tuner *tuner = tuner_in(ATTUNE_MODE_CACHED);
  WANT(attune_tune(tuner, host_device(), PROBLEM, &(attune_tune_options){.budget_ms = 30.0}, NULL) == ATTUNE_OK);
  attune_tuner_destroy(tuner);
  return 0;
}

static int close_folder(void) {
  return chmod(database, 0400) == 0 && chmod(closed, 0500) == 0 ? 0 : -1;
}

static int run_command(void *words) {
  execv(AT_COMMAND, words);
  return 126;
}

FIXTURE(begin) {
  snprintf(base, sizeof base, "/tmp/attune-read-only-XXXXXX");
  if (!mkdtemp(base)) return -1;
  snprintf(made, sizeof made, "%s/made.db", base);
  snprintf(closed, sizeof closed, "%s/closed", base);
  snprintf(database, sizeof database, "%s/t.db", closed);
  setenv("HOME", base, 1);
  setenv("ASAN_OPTIONS", "intercept_tls_get_addr=0:detect_leaks=0", 1);
  unsetenv("XDG_DATA_HOME");
  FILE *file = fopen(in_base("made.csv"), "w");
  if (!file) return -1;
  fputs("problem\n" PROBLEM "\n", file);
  fclose(file);
  /* By both: to this program the CPU may be another one than to the command, as under valgrind. */
  const int code = in_child(make_database, NULL, false);
  char csv[160];
  snprintf(csv, sizeof csv, "%s", in_base("made.csv"));
  return code ? code
              : in_child(
                    run_command,
                    (char *[]){"attune", "tune", csv, "--db", made, "--device", "host", "--problem-budget", "30", NULL},
                    false);
}

static int run_shell(const char *format, const char *one, const char *two) {
  char command[256];
  snprintf(command, sizeof command, format, one, two);
  return system(command);
}

FIXTURE(end) {
  return run_shell("chmod -R u+rwX %s && rm -rf %s", base, base);
}

FIXTURE(fresh) {
  setenv("ATTUNE_DB", database, 1);
  unsetenv("ATTUNE_LOG");
  unsetenv("ATTUNE_MODE");
  unsetenv("ATTUNE_BUDGET_MS");
  if (access(closed, F_OK) == 0 && run_shell("chmod -R u+rwX %s && rm -rf %s", closed, closed) != 0) return -1;
  return mkdir(closed, 0700) == 0 && run_shell("cp %s %s", made, database) == 0 ? close_folder() : -1;
}

#define COMMAND(...) in_child(run_command, (char *[]){"attune", __VA_ARGS__, NULL}, true)

TEST(the_command_reads) {
  expect(0, COMMAND("show"));
  expect_in(out_text, PROBLEM);
  assert_string_equal(err_text, "");
  expect(0, COMMAND("explain", PROBLEM, "--device", "host", "--db", database));
  expect_in(out_text, "the measured winner of the database");
  assert_string_equal(err_text, "");
  const int code = COMMAND("verify", "--device", "host"); /* whether it still holds is no matter here */
  assert_true(code == 0 || code == 1);
  expect_in(out_text, "1 of 1 winner timed again");
  assert_string_equal(err_text, "");
}

/* Results of a measurement could not be stored. */
TEST(the_command_refuses_to_tune) {
  FILE *file = fopen(in_base("w.csv"), "w");
  fputs("dtype,m,n,k\nf32,8,8,8\n", file);
  fclose(file);
  expect(2, COMMAND("tune", (char *)(uintptr_t)in_base("w.csv"), "--device", "host"));
  expect_in(err_text, "t.db cannot be written: Permission denied");
  assert_int_equal(count_of(err_text, "attune: "), 1);
  assert_string_equal(out_text, "");
}

/* Number of log lines, by level. */
static int heard[ATTUNE_LOG_INFO + 1];
static void hear(void *user, attune_log_level level, const char *line) {
  (void)user;
  heard[level]++;
  fprintf(stderr, "%s\n", line);
}

static int use_winners(void *user) {
  (void)user;
  attune_decision decision;
  attune_set_log(hear, NULL, ATTUNE_LOG_WARNING);
  attune_tuner *tuner = tuner_in(ATTUNE_MODE_CACHED);
  WANT(attune_tuner_database_status(tuner) == ATTUNE_OK);
  WANT(multiply(tuner, 24) == ATTUNE_OK);
  WANT(attune_explain(tuner, host_device(), PROBLEM, &decision) == ATTUNE_OK);
  WANT(decision.source == ATTUNE_SOURCE_STORED);
  WANT(heard[ATTUNE_LOG_ERROR] == 0 && heard[ATTUNE_LOG_WARNING] == 0);
  WANT(attune_tuner_database_prepare(tuner) == ATTUNE_PERMISSION);
  WANT(strstr(attune_last_message(), "cannot be written") != NULL);
  WANT(attune_tuner_set_mode(tuner, ATTUNE_MODE_TUNE) == ATTUNE_OK);
  WANT(heard[ATTUNE_LOG_ERROR] == 1);
  WANT(attune_tuner_database_status(tuner) == ATTUNE_PERMISSION);
  WANT(attune_tune(tuner, host_device(), "gemm f32 nn 5x6x7 strict", &(attune_tune_options){.budget_ms = 30.0}, NULL) ==
       ATTUNE_OK);
  WANT(attune_tuner_set_mode(tuner, ATTUNE_MODE_RECORD) == ATTUNE_OK);
  WANT(heard[ATTUNE_LOG_ERROR] == 1);
  WANT(attune_tuner_set_mode(tuner, ATTUNE_MODE_CACHED) == ATTUNE_OK);
  WANT(attune_tuner_database_status(tuner) == ATTUNE_OK);
  attune_tuner_destroy(tuner);
  return 0;
}

TEST(a_program_uses_its_winners) {
  expect(0, in_child(use_winners, NULL, true));
}

/* The database itself must be made to be read only after all that changes it. */
static void change(const char *sql) {
  sqlite3 *db = NULL;
  assert_int_equal(chmod(closed, 0700) | chmod(database, 0600), 0);
  assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
}

/* Its journal would have to be played back first, and without that its pages may be half of one state, half of
 * another. */
TEST(what_a_crash_left_is_not_read) {
  char journal[160];
  assert_int_equal(chmod(closed, 0700), 0);
  snprintf(journal, sizeof journal, "%s-journal", database);
  FILE *file = fopen(journal, "w");
  for (int i = 0; i < 512; i++) fputc(0xd9, file);
  fclose(file);
  assert_int_equal(chmod(journal, 0600) | close_folder(), 0);
  expect(2, COMMAND("show"));
  expect_in(err_text, "an unfinished write");
  expect_in(err_text, "where its folder is writable");
  assert_int_equal(chmod(closed, 0700) | chmod(database, 0600), 0);
  expect(0, in_child(run_command, (char *[]){"attune", "show", NULL}, false));
  expect_in(out_text, PROBLEM);
}

/* attune makes no such database; another program may have changed one. */
TEST(a_write_ahead_log_needs_its_folder) {
  change("PRAGMA journal_mode = WAL; PRAGMA user_version = 3");
  assert_int_equal(close_folder(), 0);
  expect(2, COMMAND("show"));
  expect_in(err_text, "PRAGMA journal_mode = DELETE");
  change("PRAGMA journal_mode = DELETE");
  assert_int_equal(close_folder(), 0);
  expect(0, COMMAND("show"));
  expect_in(out_text, PROBLEM);
}

/* --- what cannot be stored is told once, where nobody asked for a log --- */

/* A program as it is mostly written: it asks for nothing but the products. */
static int call_three(void *user) {
  (void)user;
  attune_tuner *tuner = tuner_in((attune_mode)0);
  for (int64_t m = 30; m < 33; m++) WANT(multiply(tuner, m) == ATTUNE_OK);
  attune_tuner_destroy(tuner);
  return 0;
}

static void expect_told(const char *mode, const char *log, size_t lines, const char *text) {
  setenv("ATTUNE_MODE", mode, 1);
  setenv("ATTUNE_BUDGET_MS", "5", 1);
  if (log)
    setenv("ATTUNE_LOG", log, 1);
  else
    unsetenv("ATTUNE_LOG");
  expect(0, in_child(call_three, NULL, true));
  assert_int_equal(count_of(err_text, "attune: "), lines);
  if (lines) expect_in(err_text, text);
}

TEST(a_database_that_cannot_be_made_is_told_once) {
  setenv("ATTUNE_DB", in_base("absent/t.db"), 1);
  expect_told("record", NULL, 1, "attune: error: mode record, but no calls are recorded: ");
  expect_told("tune", NULL, 1, "attune: error: mode tune, but winners are kept in memory only: ");
  expect_told("cached", NULL, 0, NULL); /* which has nothing to lose */
  expect_told("record", "off", 0, NULL);
  setenv("ATTUNE_DB", database, 1);
  expect_told("record", NULL, 1, "t.db cannot be written: Permission denied");
  expect_told("tune", NULL, 1, "t.db cannot be written: Permission denied");
}

/* With a database that disappears in between. */
static int lose_the_database(void *user) {
  (void)user;
  attune_tuner *tuner = tuner_in((attune_mode)0);
  WANT(multiply(tuner, 29) == ATTUNE_OK);
  WANT(attune_tuner_database_status(tuner) == ATTUNE_OK);
  char journal[160];
  snprintf(journal, sizeof journal, "%s-journal", database);
  (void)unlink(journal);
  WANT(unlink(database) == 0 && rmdir(closed) == 0);
  for (int64_t m = 30; m < 33; m++) WANT(multiply(tuner, m) == ATTUNE_OK);
  attune_tuner_destroy(tuner);
  return 0;
}

/* Once, and what is lost when there is no next time. */
TEST(a_write_that_fails_is_told_once) {
  for (int tune = 0; tune < 2; tune++) {
    assert_int_equal(fresh(NULL), 0);
    assert_int_equal(chmod(closed, 0700) | chmod(database, 0600), 0);
    setenv("ATTUNE_MODE", tune ? "tune" : "record", 1);
    setenv("ATTUNE_BUDGET_MS", "5", 1);
    expect(0, in_child(lose_the_database, NULL, false));
    const size_t lost = count_of(err_text, "problems are not recorded: ");
    if (lost != (tune ? 0u : 1u) || count_of(err_text, "attune: error: ") != 1 + lost) fail_msg("told %s", err_text);
  }
}

int main(void) {
  return RUN_TESTS_EACH(fresh, NULL, begin, end);
}
