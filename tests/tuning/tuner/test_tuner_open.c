/* SPDX-License-Identifier: Apache-2.0
 * test_tuner_open.c: when a tuner opens its databases, and what it does and says where it cannot: locked, on a
 * filesystem without locks, not there. */
#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tuning/store/decision.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sqlite3.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/store_open.h"
#include "tests/support/toy/toy_clock.h"
#include "tuning/dispatch/dispatch.h"
#include "tuning/store/store_internal.h"

static attune_device *device;
static char folder[64], database[96], logged[8192];

static void note(void *user, attune_log_level level, const char *line) {
  (void)user;
  size_t at = strlen(logged);
  (void)at_append(logged, sizeof logged, &at, "%d %s\n", (int)level, line);
}

static int count_of(const char *text) {
  int count = 0;
  for (const char *at = strstr(logged, text); at; at = strstr(at + 1, text)) count++;
  return count;
}

FIXTURE(fresh) {
  (void)snprintf(folder, sizeof folder, "/tmp/attune-tuner-open-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  (void)snprintf(database, sizeof database, "%s/tuning.db", folder);
  setenv("XDG_RUNTIME_DIR", folder, 1);
  toy_reset();
  logged[0] = '\0';
  attune_set_log(note, NULL, ATTUNE_LOG_INFO);
  return 0;
}

FIXTURE(tear_down) {
  attune_set_log(NULL, NULL, ATTUNE_LOG_ERROR);
  return folder_remove(folder);
}

static attune_tuner *tuner_in(attune_mode mode, const char *system) {
  attune_tuner_options options = {.database = database, .system_database = system, .mode = mode};
  attune_tuner *tuner = NULL;
  assert_int_equal(at_tuner_create(&tuner, &options, toy_ops, 1), ATTUNE_OK);
  return tuner;
}

static void make_database(void) {
  attune_tuner *tuner = tuner_in(ATTUNE_MODE_CACHED, NULL);
  assert_int_equal(attune_tune(tuner, device, TOY_PROBLEM, NULL, NULL), ATTUNE_OK);
  attune_tuner_destroy(tuner);
  logged[0] = '\0';
}

static sqlite3 *lock_database(void) {
  sqlite3 *other = NULL;
  assert_int_equal(sqlite3_open(database, &other), SQLITE_OK);
  assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
  return other;
}

static void unlock_database(sqlite3 *other) {
  assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

/* Where the choice for the problem comes from now. */
static attune_source call(attune_tuner *tuner) {
  const at_key key = toy_key(TOY_PROBLEM, device);
  const at_plan *plan = NULL;
  attune_decision decision = {.source = ATTUNE_SOURCE_DEFAULT};
  assert_int_equal(at_dispatch_miss(tuner, &toy_op, &key, 0, attune_stream_default(device), &plan), ATTUNE_OK);
  return at_plan_table_decision(&tuner->plans, &key, &decision) ? decision.source : ATTUNE_SOURCE_DEFAULT;
}

/* A variable that nothing reads does nothing: said once in a process, with the name that is like it.
 * The first test: before any other tuner of the process. */
TEST(unknown_variables) {
  setenv("ATTUNE_MOD", "tune", 1);
  setenv("ATTUNE_TEST_KILLS", "1", 1);
  setenv("ATTUNE_LOG_FILE", "", 1);
  for (int i = 0; i < 2; i++) attune_tuner_destroy(tuner_in(ATTUNE_MODE_OFF, NULL));
  assert_int_equal(count_of("attune does not know the environment variable"), 1);
  assert_int_equal(count_of("2 attune does not know the environment variable ATTUNE_MOD; did you mean ATTUNE_MODE?"),
                   1);
  unsetenv("ATTUNE_MOD");
}

/* Mode off needs no database, so it waits for none; another mode opens it. */
TEST(mode_off_opens_nothing) {
  make_database();
  sqlite3 *other = lock_database();
  attune_tuner *tuner = tuner_in(ATTUNE_MODE_OFF, "/nowhere/system.db");
  assert_int_equal(call(tuner), ATTUNE_SOURCE_DEFAULT);
  assert_false(tuner->opened);
  assert_null(tuner->user);
  assert_int_equal(count_of("database"), 0);
  unlock_database(other);
  assert_int_equal(attune_tuner_set_mode(tuner, ATTUNE_MODE_CACHED), ATTUNE_OK);
  assert_true(tuner->opened);
  assert_int_equal(call(tuner), ATTUNE_SOURCE_STORED);
  assert_int_equal(count_of("working without the system database: "), 1);
  attune_tuner_destroy(tuner);
  tuner = tuner_in(ATTUNE_MODE_OFF, NULL); /* whoever asks for what is stored has it opened */
  assert_int_equal(attune_tune(tuner, device, TOY_PROBLEM, NULL, NULL), ATTUNE_OK);
  assert_non_null(tuner->user);
  assert_int_equal(attune_tuner_database_status(tuner), ATTUNE_OK);
  attune_tuner_destroy(tuner);
}

/* It is used as soon as it is free. */
TEST(a_locked_one_is_tried_again) {
  make_database();
  sqlite3 *other = lock_database();
  attune_tuner *tuner = tuner_in(ATTUNE_MODE_CACHED, NULL);
  assert_int_equal(count_of("the tuning database cannot be read yet: "), 1);
  assert_int_equal(count_of("tuning.db is in use by another thread or process"), 1);
  assert_non_null(tuner->user);
  assert_int_equal(call(tuner), ATTUNE_SOURCE_DEFAULT);
  assert_true(tuner->locked_until_ns > 0); /* the next calls do not wait each */
  unlock_database(other);
  tuner->locked_until_ns = 0;
  assert_int_equal(call(tuner), ATTUNE_SOURCE_STORED);
  attune_tuner_destroy(tuner);
}

TEST(whoever_asks_waits) {
  make_database();
  sqlite3 *other = lock_database();
  attune_tuner *tuner = tuner_in(ATTUNE_MODE_CACHED, NULL);
  assert_int_equal(attune_tuner_database_status(tuner), ATTUNE_BUSY);
  unlock_database(other);
  assert_int_equal(attune_tuner_database_status(tuner), ATTUNE_OK);
  assert_int_equal(call(tuner), ATTUNE_SOURCE_STORED);
  attune_tuner_destroy(tuner);
}

/* Said once, at level warning; a tuner works without it. */
TEST(no_system_database) {
  char absent[96];
  (void)snprintf(absent, sizeof absent, "%s/absent.db", folder);
  attune_tuner *tuner = tuner_in(ATTUNE_MODE_CACHED, absent);
  (void)call(tuner);
  (void)call(tuner);
  assert_int_equal(count_of("2 working without the system database: "), 1); /* 2: ATTUNE_LOG_WARNING */
  assert_int_equal(count_of("absent.db"), 1);
  attune_tuner_destroy(tuner);
}

/* Text of a damaged file in SQLite's message is printed as ASCII and cut where it is long. */
TEST(texts_of_sqlite) {
  char out[24];
  at_store_escape(out, sizeof out, "no such table: t");
  assert_string_equal(out, "no such table: t");
  at_store_escape(out, sizeof out, "a\xff\x1b[31m\n\x7f");
  assert_string_equal(out, "a\\xff\\x1b[31m\\x0a\\x7f");
  at_store_escape(out, sizeof out, "\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  assert_true(strlen(out) < sizeof out && strncmp(out, "\\xff\\xff", 8) == 0);
}

/* In a child: no file can be locked any more, as on some network filesystems. */
static bool lose_locks(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLK, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_SETLKW, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {AT_COUNT(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int open_without_locks(void) {
  at_store *store = NULL;
  if (!lose_locks()) return 77;
  const attune_status status = at_store_open(&store, database, AT_STORE_READ_WRITE);
  fprintf(stderr, "%s\n", attune_last_message());
  if (status != ATTUNE_UNSUPPORTED) return 1;
  if (strstr(attune_last_message(), "try again")) return 2;
  return strstr(attune_last_message(), "without file locks") ? 0 : 3;
}

TEST(a_filesystem_without_locks) {
  int status = 0;
  make_database();
  const pid_t child = fork();
  if (child == 0) _exit(open_without_locks());
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("skipped: no filter of system calls can be set here\n");
    skip();
  }
  assert_int_equal(status, 0);
}

int main(void) {
  if (attune_device_get(&device, "host") != ATTUNE_OK) return 1;
  return RUN_TESTS_EACH(fresh, tear_down, NULL, NULL);
}
