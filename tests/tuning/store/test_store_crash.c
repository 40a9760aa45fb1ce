/* SPDX-License-Identifier: Apache-2.0
 * test_store_crash.c: writers killed at any point, programs that fork, a disk that is full: no acknowledged row is
 * lost. */
#include "tests/tuning/store/store_fixture.h"
#include "tuning/store/decision.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

enum { WRITERS = 4, RANGE = 100000 };
static int acknowledged[2]; /* a pipe of numbers whose put returned OK */

static int say(int code) {
  fprintf(stderr, "writer: %s\n", attune_last_message());
  return code;
}

static int write_until_killed(int number) {
  at_store *store = NULL;
  at_trial trials[8];
  memset(trials, 0, sizeof trials);
  for (int i = 0; i < 8; i++) {
    (void)snprintf(trials[i].implementation, sizeof trials[i].implementation, "candidate_%d", i);
    (void)snprintf(trials[i].verdict, sizeof trials[i].verdict, "slower");
  }
  if (at_store_open(&store, path_of("tuning.db"), AT_STORE_READ_WRITE) != ATTUNE_OK) return say(1);
  for (int i = 0; i < RANGE; i++) {
    int id = number * RANGE + i;
    attune_decision d = winner_of(id);
    if (at_store_put(store, FINGERPRINT, FAMILY, &d, trials, 8, 60000) != ATTUNE_OK) return say(2);
    if (write(acknowledged[1], &id, sizeof id) != sizeof id) return 3;
  }
  return 0;
}

typedef struct id_list {
  int *ids;
  size_t count;
  size_t room;
} id_list;

static void drain(id_list *list) {
  int id;
  while (read(acknowledged[0], &id, sizeof id) == sizeof id) {
    if (list->count == list->room) {
      list->room = list->room ? 2 * list->room : 1024;
      list->ids = realloc(list->ids, list->room * sizeof *list->ids);
      assert_non_null(list->ids);
    }
    list->ids[list->count++] = id;
  }
}

static void sleep_us(long us) {
  struct timespec time = {us / 1000000, us % 1000000 * 1000};
  (void)nanosleep(&time, NULL);
}

TEST(killed_writers_lose_nothing) {
  long kills = scale("ATTUNE_TEST_KILLS", 60);
  unsigned seed = (unsigned)scale("ATTUNE_TEST_SEED", 1);
  id_list list = {NULL, 0, 0};
  pid_t pids[WRITERS];
  int started = 0, readable = 0;
  long longest_us = 25000; /* of a writer's life; more where even the first row takes longer */
  assert_int_equal(pipe2(acknowledged, O_CLOEXEC), 0);
  assert_int_equal(fcntl(acknowledged[0], F_SETFL, O_NONBLOCK), 0);
  for (int i = 0; i < WRITERS; i++) pids[i] = spawn(write_until_killed, started++);
  for (long k = 0; k < kills; k++) {
    int victim = (int)((unsigned)rand_r(&seed) % WRITERS);
    sleep_us(rand_r(&seed) % longest_us);
    assert_int_equal(kill(pids[victim], SIGKILL), 0);
    assert_int_equal(wait_for(pids[victim]), 128 + SIGKILL); /* or it had failed before */
    drain(&list);
    if (list.count == 0 && longest_us < 4000000) longest_us *= 2;
    if (k % 8 == 0) { /* a reader repairs what the dead left behind, or waits for who does */
      at_store *reader = NULL;
      attune_status status = at_store_open(&reader, path_of("tuning.db"), AT_STORE_READ_ONLY);
      if (status == ATTUNE_OK && list.count > 0) {
        assert_number(reader, list.ids[list.count - 1]);
        readable++;
      }
      at_store_close(reader);
    }
    pids[victim] = spawn(write_until_killed, started++);
  }
  for (int i = 0; i < WRITERS; i++) {
    assert_int_equal(kill(pids[i], SIGKILL), 0);
    assert_int_equal(wait_for(pids[i]), 128 + SIGKILL);
  }
  drain(&list);
  at_store *store = open_store("tuning.db");
  for (size_t i = 0; i < list.count; i++) assert_number(store, list.ids[i]);
  at_store_close(store);
  assert_int_equal(query(path_of("tuning.db"), "PRAGMA integrity_check"), 1);
  /* A winner and its trials are one transaction. */
  assert_int_equal(
      query(path_of("tuning.db"), "SELECT (SELECT count(*) FROM trial) - 8 * (SELECT count(*) FROM winner)"), 0);
  print_message("%ld kills, %zu rows acknowledged, all there; %d reads in between\n", kills, list.count, readable);
  assert_true(list.count > 0);
  free(list.ids);
  (void)close(acknowledged[0]);
  (void)close(acknowledged[1]);
}

/* --- fork --- */

static at_store *inherited;

/* The child's store is a connection of its own, opened at its first use; another one may be opened beside it. */
static int child_of_fork(int number) {
  attune_decision found, d = winner_of(number);
  if (at_store_put(inherited, FINGERPRINT, FAMILY, &d, NULL, 0, 60000) != ATTUNE_OK) return 1;
  attune_status status = ATTUNE_BUSY;
  for (int i = 0; i < 100 && status == ATTUNE_BUSY; i++) status = find_number(inherited, number, &found);
  if (status != ATTUNE_OK) return 2;
  if (at_store_lease_acquire(inherited, FINGERPRINT, "p", 60000, 500) == ATTUNE_IO_ERROR) return 3;
  at_store_lease_release(inherited, FINGERPRINT, "held"); /* the parent's, if there is one: it stays */
  at_store *own = NULL;
  if (at_store_open(&own, path_of("tuning.db"), AT_STORE_READ_WRITE) != ATTUNE_OK) return 4;
  status = ATTUNE_BUSY;
  for (int i = 0; i < 100 && status == ATTUNE_BUSY; i++) status = find_number(own, number, &found);
  if (status != ATTUNE_OK) return 5;
  at_store_close(own);
  at_store_close(inherited);
  return 0;
}

static int child_that_closes(int unused) {
  (void)unused;
  at_store_close(inherited);
  return 0;
}

/* The file is gone: a miss, and the next write makes it again. */
static int child_without_file(int unused) {
  (void)unused;
  attune_decision found, d = winner_of(9);
  (void)unlink(path_of("tuning.db"));
  if (find_number(inherited, 1, &found) != ATTUNE_NOT_FOUND) return 1;
  if (at_store_put(inherited, FINGERPRINT, FAMILY, &d, NULL, 0, 100) != ATTUNE_OK) return 2; /* makes it again */
  if (find_number(inherited, 9, &found) != ATTUNE_OK) return 3;
  at_store_close(inherited);
  return 0;
}

TEST(child_leaves_the_store_alone) {
  inherited = open_store("tuning.db");
  put_number(inherited, 1);
  assert_int_equal(at_store_lease_acquire(inherited, FINGERPRINT, "held", 60000, 500), ATTUNE_OK);
  assert_int_equal(wait_for(spawn(child_that_closes, 0)), 0);
  assert_int_equal(wait_for(spawn(child_of_fork, 2)), 0);
  assert_number(inherited, 1);
  assert_number(inherited, 2);
  assert_int_equal(query(path_of("tuning.db"), "SELECT count(*) FROM lease"), 1);
  put_number(inherited, 3);
  assert_int_equal(query(path_of("tuning.db"), "SELECT count(*) FROM winner"), 3);
  assert_int_equal(wait_for(spawn(child_without_file, 0)), 0);
  at_store_close(inherited);
}

static atomic_bool stop;
static atomic_int put_count;

static void *put_until_stopped(void *user) {
  int first = *(int *)user, i = 0;
  for (; !stop; i++) {
    attune_decision d = winner_of(first + i), found;
    attune_status status = at_store_put(inherited, FINGERPRINT, FAMILY, &d, NULL, 0, 60000);
    if (status != ATTUNE_OK) return "put";
    do status = find_number(inherited, first + i, &found);
    while (status == ATTUNE_BUSY);
    if (status != ATTUNE_OK) return "find";
    atomic_fetch_add(&put_count, 1);
  }
  return NULL;
}

/* Forks in the middle of other threads' transactions: the child opens the same file and neither hangs nor disturbs. */
TEST(forks_among_transactions) {
  int forks = (int)scale("ATTUNE_TEST_FORKS", 40);
  int first[2] = {100000, 200000};
  pthread_t threads[2];
  stop = false;
  put_count = 0;
  inherited = open_store("tuning.db");
  for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, put_until_stopped, &first[i]), 0);
  for (int i = 0; i < forks; i++) assert_int_equal(wait_for(spawn(child_of_fork, 1000 + i)), 0);
  stop = true;
  for (int i = 0; i < 2; i++) {
    void *wrong = NULL;
    assert_int_equal(pthread_join(threads[i], &wrong), 0);
    if (wrong) fail_msg("%s failed in a thread", (const char *)wrong);
  }
  for (int i = 0; i < forks; i++) assert_number(inherited, 1000 + i);
  at_store_close(inherited);
  assert_int_equal(query(path_of("tuning.db"), "SELECT count(*) FROM winner"), forks + put_count);
  assert_int_equal(query(path_of("tuning.db"), "PRAGMA integrity_check"), 1);
}

/* --- a disk that is full, a writer that does not end --- */

static void set_file_limit(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes == RLIM_INFINITY ? limit.rlim_max : bytes;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(full_disk_keeps_rows_in_memory) {
  struct stat info;
  (void)signal(SIGXFSZ, SIG_DFL); /* it would end this program */
  at_store *store = open_store("tuning.db");
  put_number(store, 0);
  assert_int_equal(stat(path_of("tuning.db"), &info), 0);
  set_file_limit((rlim_t)info.st_size);
  int stored = 1;
  attune_decision d = winner_of(stored), found;
  while (at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 50) == ATTUNE_OK && stored < 1000)
    d = winner_of(++stored);
  assert_true(stored < 1000);
  int next = stored + 1;
  for (; next < stored + 20; next++) {
    d = winner_of(next);
    assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 50), ATTUNE_IO_ERROR);
  }
  for (int i = 0; i < next; i++) assert_number(store, i);
  d = winner_of(next - 1);
  d.samples++; /* the newest row of a key is found */
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 50), ATTUNE_IO_ERROR);
  assert_int_equal(find_number(store, next - 1, &found), ATTUNE_OK);
  assert_same_winner(&d, &found);
  at_store *memory = open_store(":memory:"); /* nothing else is disturbed */
  put_number(memory, 1);
  at_store_close(memory);
  set_file_limit(RLIM_INFINITY);
  put_number(store, next - 1);
  put_number(store, next);
  at_store *reader = open_store("tuning.db");
  for (int i = 0; i <= next; i++) assert_number(reader, i);
  at_store_close(reader);
  at_store_close(store);
  assert_int_equal(query(path_of("tuning.db"), "PRAGMA integrity_check"), 1);
}

/* Another program holds the database: puts answer in time, keep so many rows, and closing writes them. */
TEST(busy_database_keeps_rows_in_memory) {
  enum { KEPT = 4096 };
  sqlite3 *other = NULL;
  at_store *store = open_store("tuning.db");
  put_number(store, 0);
  assert_int_equal(sqlite3_open(path_of("tuning.db"), &other), SQLITE_OK);
  assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  attune_decision d = winner_of(1), found;
  int64_t start = at_now_ns();
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 30), ATTUNE_BUSY);
  double ms = (double)(at_now_ns() - start) / 1e6;
  assert_true(ms >= 29 && ms < 30000); /* a busy machine may stop it for long */
  assert_number(store, 0);
  assert_number(store, 1);
  for (int i = 2; i <= KEPT; i++) {
    d = winner_of(i);
    assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 0), ATTUNE_BUSY);
  }
  d = winner_of(KEPT + 1);
  assert_int_equal(at_store_put(store, FINGERPRINT, FAMILY, &d, NULL, 0, 0), ATTUNE_BUSY);
  assert_int_equal(find_number(store, KEPT + 1, &found), ATTUNE_NOT_FOUND);
  assert_number(store, KEPT);
  assert_int_equal(at_store_record(store, FINGERPRINT, "p", 1, 0), ATTUNE_BUSY);
  assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_close(other), SQLITE_OK);
  at_store_close(store);
  store = open_store("tuning.db");
  for (int i = 0; i <= KEPT; i++) assert_number(store, i);
  at_store_close(store);
}

int main(void) {
  return RUN_TESTS_EACH(setup, teardown, NULL, NULL);
}
