/* SPDX-License-Identifier: Apache-2.0
 * test_store_late.c: a database is made by the first write and by nothing else, and what a limit on file sizes does. */
#include "tests/tuning/store/store_fixture.h"
#include "tuning/store/decision.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static char told[512];

static void listen(void *user, attune_log_level level, const char *line) {
  (void)user;
  if (level == ATTUNE_LOG_INFO) (void)snprintf(told, sizeof told, "%s", line);
}

static int unexpected(void *user, const char *fingerprint, const attune_decision *decision) {
  (void)user, (void)fingerprint, (void)decision;
  return 1;
}

static int unexpected_problem(void *user, const char *problem, int64_t count) {
  (void)user, (void)problem, (void)count;
  return 1;
}

static void read_all(at_store *store) {
  attune_decision found;
  assert_int_equal(find_number(store, 1, &found), ATTUNE_NOT_FOUND);
  assert_int_equal(at_store_each_winner(store, unexpected, NULL), ATTUNE_OK);
  assert_int_equal(at_store_each_of_family(store, FINGERPRINT, FAMILY, "hot,eager", unexpected, NULL), ATTUNE_OK);
  assert_int_equal(at_store_each_recorded(store, FINGERPRINT, unexpected_problem, NULL), ATTUNE_OK);
  at_store_lease_release(store, FINGERPRINT, "p");
}

TEST(reading_makes_nothing) {
  at_store *store = open_store("t.db");
  read_all(store);
  at_store_close(store);
  assert_int_equal(access(path_of("t.db"), F_OK), -1);
  assert_int_equal(at_store_open(&store, path_of("a/b/t.db"), AT_STORE_OWN), ATTUNE_OK);
  read_all(store);
  at_store_close(store);
  assert_int_equal(access(path_of("a"), F_OK), -1);
  write_file(path_of("empty.db"), "", 0); /* what a crash may leave */
  store = open_store("empty.db");
  read_all(store);
  at_store_close(store);
  struct stat info;
  assert_int_equal(stat(path_of("empty.db"), &info), 0);
  assert_int_equal(info.st_size, 0);
}

static attune_status put(at_store *store) {
  const attune_decision d = winner_of(1);
  return at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 1000);
}
static attune_status record(at_store *store) {
  return at_store_record(store, FINGERPRINT, "p", 1, 1000);
}
static attune_status lease(at_store *store) {
  return at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500);
}
static attune_status try_write(at_store *store) {
  return at_store_try_write(store, 1000);
}

TEST(each_write_makes_it) {
  static attune_status (*const writes[])(at_store *) = {put, record, lease, try_write};
  for (size_t i = 0; i < AT_COUNT(writes); i++) {
    char name[32];
    at_store *store = NULL;
    (void)snprintf(name, sizeof name, "new%zu/t.db", i);
    assert_int_equal(at_store_open(&store, path_of(name), AT_STORE_OWN), ATTUNE_OK);
    told[0] = '\0';
    attune_set_log(listen, NULL, ATTUNE_LOG_INFO);
    assert_int_equal(writes[i](store), ATTUNE_OK);
    assert_non_null(strstr(told, "created the tuning database "));
    assert_non_null(strstr(told, name));
    told[0] = '\0';
    assert_int_equal(record(store), ATTUNE_OK);
    attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
    assert_string_equal(told, ""); /* once */
    at_store_close(store);
    struct stat info;
    assert_int_equal(stat(path_of(name), &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(query(path_of(name), "PRAGMA integrity_check"), 1);
    assert_int_equal(query(path_of(name), "SELECT count(*) FROM lease"), 0);
  }
}

/* Stores that were opened before there was a database meet in the one that the first of them makes. */
TEST(made_by_another) {
  at_store *one = open_store("t.db"), *two = open_store("t.db"), *three = open_store("t.db");
  put_number(one, 1);
  assert_number(two, 1);
  put_number(three, 2);
  assert_number(one, 2);
  at_store_close(one);
  at_store_close(two);
  at_store_close(three);
}

/* A write to a database that was deleted or moved away meanwhile goes to the one at its path now, a new one if need
 * be. */
TEST(deleted_while_open) {
  static attune_status (*const writes[])(at_store *) = {put, record, lease, try_write};
  for (size_t i = 0; i < AT_COUNT(writes); i++) {
    at_store *store = open_store("t.db");
    put_number(store, 3);
    assert_int_equal(unlink(path_of("t.db")), 0);
    told[0] = '\0';
    attune_set_log(listen, NULL, ATTUNE_LOG_INFO);
    const attune_status status = writes[i](store);
    attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
    if (status != ATTUNE_OK) fail_msg("write %zu: %s", i, attune_last_message());
    assert_non_null(strstr(told, "created the tuning database "));
    put_number(store, 1);
    at_store_close(store);
    store = open_store("t.db");
    assert_number(store, 1);
    at_store_close(store);
    assert_int_equal(query(path_of("t.db"), "SELECT count(*) FROM lease"), 0);
    assert_int_equal(unlink(path_of("t.db")), 0);
  }
}

/* As a journal undoes it that another process wrote for the new database of the same name: reads find nothing there. */
TEST(emptied_after_it_was_deleted) {
  for (int other = 0; other < 2; other++) {
    at_store *store = open_store("t.db");
    put_number(store, 3);
    const int file = open(path_of("t.db"), O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(unlink(path_of("t.db")), 0);
    if (other) make_database("t.db", 2);
    assert_int_equal(ftruncate(file, 0), 0);
    assert_int_equal(close(file), 0);
    attune_decision found;
    const attune_status status = find_number(store, 3, &found);
    assert_true(status == ATTUNE_OK || status == ATTUNE_NOT_FOUND);
    put_number(store, 5);
    assert_number(store, 5);
    at_store_close(store);
    store = open_store("t.db");
    assert_number(store, 5);
    at_store_close(store);
    assert_int_equal(unlink(path_of("t.db")), 0);
  }
}

TEST(replaced_while_open) {
  at_store *store = open_store("t.db");
  char other[300];
  put_number(store, 3);
  make_database("other.db", 2);
  (void)snprintf(other, sizeof other, "%s", path_of("other.db"));
  assert_int_equal(rename(other, path_of("t.db")), 0);
  put_number(store, 77);
  assert_number(store, 77);
  assert_number(store, 1); /* of the database that came instead */
  write_file(other, "no database", 11);
  assert_int_equal(rename(other, path_of("t.db")), 0);
  const attune_decision d = winner_of(1);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 1000), ATTUNE_BAD_DATA);
  assert_unchanged(path_of("t.db"), (const unsigned char *)"no database", 11);
  at_store_close(store);
  assert_unchanged(path_of("t.db"), (const unsigned char *)"no database", 11);
}

static int put_one(int number) {
  at_store *store = NULL;
  if (at_store_open(&store, path_of("own/t.db"), AT_STORE_OWN) != ATTUNE_OK) return 1;
  const attune_decision d = winner_of(number);
  const attune_status status = at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 20000);
  at_store_close(store);
  return status == ATTUNE_OK ? 0 : 2;
}

TEST(made_by_many_at_once) {
  enum { MAKERS = 8 };
  for (int round = 0; round < 5; round++) {
    pid_t pids[MAKERS];
    for (int i = 0; i < MAKERS; i++) pids[i] = spawn(put_one, i);
    for (int i = 0; i < MAKERS; i++) assert_int_equal(wait_for(pids[i]), 0);
    assert_int_equal(query(path_of("own/t.db"), "SELECT count(*) FROM winner"), MAKERS);
    assert_int_equal(unlink(path_of("own/t.db")), 0);
    (void)unlink(path_of("own/t.db-journal"));
  }
}

/* A relative path means the folder that the program was in when it opened the database. */
TEST(the_program_changes_its_folder) {
  char before[4096];
  at_store *store = NULL;
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(at_store_open(&store, "t.db", AT_STORE_READ_WRITE), ATTUNE_OK);
  assert_int_equal(chdir("/"), 0);
  put_number(store, 1);
  at_store_close(store);
  assert_int_equal(access(path_of("t.db"), F_OK), 0);
  assert_int_equal(chdir(before), 0);
}

/* A file that replaced the database is not written to. */
TEST(another_file_came) {
  at_store *store = open_store("t.db");
  write_file(path_of("t.db"), "x", 1);
  assert_int_equal(record(store), ATTUNE_BAD_DATA);
  assert_int_equal(put(store), ATTUNE_BAD_DATA);
  assert_unchanged(path_of("t.db"), (const unsigned char *)"x", 1);
  at_store_close(store);
}

/* --- the limit on file sizes, in a child, which SIGXFSZ would end --- */

static int limited(int program_has_one) {
  sigset_t it, pending;
  at_store *store = NULL;
  attune_decision d = winner_of(0);
  (void)signal(SIGXFSZ, SIG_DFL);
  (void)sigemptyset(&it);
  (void)sigaddset(&it, SIGXFSZ);
  if (program_has_one && (pthread_sigmask(SIG_BLOCK, &it, NULL) != 0 || raise(SIGXFSZ) != 0)) return 1;
  const struct rlimit limit = {.rlim_cur = 8192, .rlim_max = 8192};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  if (at_store_open(&store, path_of("t.db"), AT_STORE_READ_WRITE) != ATTUNE_OK) return 3;
  if (at_store_try_write(store, 100) != ATTUNE_IO_ERROR) return 4;
  if (!strstr(attune_last_message(), "ulimit -f")) return 5;
  if (at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 50) != ATTUNE_IO_ERROR) return 6;
  at_store_close(store);
  if (sigpending(&pending) != 0 || sigismember(&pending, SIGXFSZ) != program_has_one) return 7;
  sigset_t mask;
  if (pthread_sigmask(SIG_BLOCK, NULL, &mask) != 0 || sigismember(&mask, SIGXFSZ) != program_has_one) return 8;
  return 0;
}

TEST(a_limit_on_file_sizes) {
  assert_int_equal(wait_for(spawn(limited, 0)), 0);
  assert_int_equal(wait_for(spawn(limited, 1)), 0);
}

int main(void) {
  return RUN_TESTS_EACH(setup, teardown, NULL, NULL);
}
