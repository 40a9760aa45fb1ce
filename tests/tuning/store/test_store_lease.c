/* SPDX-License-Identifier: Apache-2.0
 * test_store_lease.c: one holder at a time; the dead, the late and those of another machine. */
#include "tests/tuning/store/store_fixture.h"

#include <signal.h>
#include <time.h>

#include "src/device/device_lease.h"

static int take_and_exit(int lifetime_ms) {
  at_store *store = NULL;
  if (at_store_open(&store, path_of("tuning.db"), AT_STORE_READ_WRITE) != ATTUNE_OK) return 1;
  return at_store_lease_acquire(store, FINGERPRINT, "p", lifetime_ms, 500) == ATTUNE_OK
             ? 0
             : 2; /* not closed: as if it crashed */
}

static int ready_pipe[2];

static int take_and_stay(int lifetime_ms) {
  int code = take_and_exit(lifetime_ms);
  char byte = (char)code;
  if (write(ready_pipe[1], &byte, 1) == 1) (void)pause();
  return code;
}

TEST(lease_is_held_by_one) {
  at_store *one = open_store("tuning.db"), *two = open_store("tuning.db");
  assert_int_equal(at_store_lease_acquire(one, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  assert_int_equal(at_store_lease_acquire(one, FINGERPRINT, "p", 60000, 500),
                   ATTUNE_BUSY); /* by another thread, that is */
  assert_int_equal(at_store_lease_renew(one, FINGERPRINT, "p", 60000), ATTUNE_OK);
  assert_int_equal(at_store_lease_renew(two, FINGERPRINT, "p", 60000), ATTUNE_NOT_FOUND);
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "p", 60000, 500), ATTUNE_BUSY);
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "q", 60000, 500), ATTUNE_OK);
  assert_int_equal(at_store_lease_acquire(two, OTHER_FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  at_store_lease_release(two, FINGERPRINT, "p"); /* not its own: stays */
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "p", 60000, 500), ATTUNE_BUSY);
  at_store_lease_release(one, FINGERPRINT, "p");
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  at_store_close(two); /* drops all of its leases */
  assert_int_equal(query(path_of("tuning.db"), "SELECT count(*) FROM lease"), 0);
  assert_int_equal(at_store_lease_acquire(one, FINGERPRINT, "p", 0, 500), ATTUNE_INVALID_ARGUMENT);
  at_store_close(one);
}

TEST(lease_of_another_process) {
  at_store *store = open_store("tuning.db");
  assert_int_equal(wait_for(spawn(take_and_exit, 60000)), 0); /* dead: taken over */
  assert_int_equal(query(path_of("tuning.db"), "SELECT count(*) FROM lease"), 1);
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  at_store_lease_release(store, FINGERPRINT, "p");

  char byte = 1;
  assert_int_equal(pipe(ready_pipe), 0);
  pid_t pid = spawn(take_and_stay, 60000);
  assert_int_equal(read(ready_pipe[0], &byte, 1), 1);
  assert_int_equal(byte, 0);
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500), ATTUNE_BUSY); /* alive */
  assert_int_equal(kill(pid, SIGKILL), 0);
  siginfo_t info;
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* dead, but not yet waited for */
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  (void)wait_for(pid);
  at_store_lease_release(store, FINGERPRINT, "p");

  /* Late, though it lives: who does not renew a lease loses it. */
  pid = spawn(take_and_stay, 60000);
  assert_int_equal(read(ready_pipe[0], &byte, 1), 1);
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500), ATTUNE_BUSY);
  char held_by[64];
  (void)snprintf(held_by, sizeof held_by, "by process %ld", (long)pid);
  assert_non_null(strstr(attune_last_message(), held_by));
  execute(path_of("tuning.db"), "UPDATE lease SET expires = expires - 60001");
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  assert_int_equal(kill(pid, SIGKILL), 0);
  (void)wait_for(pid);
  (void)close(ready_pipe[0]);
  (void)close(ready_pipe[1]);
  at_store_close(store);
}

static void wait_until_stopped(pid_t pid) {
  siginfo_t info;
  assert_int_equal(kill(pid, SIGSTOP), 0);
  assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
}

/* It can neither renew its lease nor give it back, and is not waited for until that expires: only for a time, for it
 * may go on at once. */
TEST(lease_of_a_stopped_process) {
  char byte = 1;
  at_store *store = open_store("tuning.db");
  assert_int_equal(pipe(ready_pipe), 0);
  const pid_t pid = spawn(take_and_stay, 3600000);
  assert_int_equal(read(ready_pipe[0], &byte, 1), 1);
  assert_int_equal(byte, 0);
  wait_until_stopped(pid);
  const int64_t start_ns = at_now_ns();
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500), ATTUNE_BUSY);
  attune_status status = ATTUNE_BUSY;
  while (status == ATTUNE_BUSY && at_now_ns() - start_ns < 300000000000) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    status = at_store_lease_acquire(store, FINGERPRINT, "p", 60000, 500);
  }
  assert_int_equal(status, ATTUNE_OK);
  assert_true(at_now_ns() - start_ns >= (int64_t)AT_LEASE_STOPPED_MS * 1000000);
  assert_int_equal(kill(pid, SIGKILL), 0);
  (void)wait_for(pid);
  (void)close(ready_pipe[0]);
  (void)close(ready_pipe[1]);
  at_store_close(store);
}

TEST(lease_of_another_place) {
  at_store *one = open_store("tuning.db"), *two = open_store("tuning.db");
  const char *path = path_of("tuning.db");
  assert_int_equal(at_store_lease_acquire(one, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  execute(path, "UPDATE lease SET started = started + 1");
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  execute(path, "UPDATE lease SET place = 'elsewhere', pid = 4194304");
  assert_int_equal(at_store_lease_acquire(one, FINGERPRINT, "p", 60000, 500), ATTUNE_BUSY);
  execute(path, "UPDATE lease SET expires = 1000");
  assert_int_equal(at_store_lease_acquire(one, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  execute(path, "UPDATE lease SET place = 'elsewhere', expires = 9223372036854775807");
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  at_store_close(one);
  at_store_close(two);
}

static long long now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A lease lives elsewhere as long as it is renewed. */
TEST(renewing_keeps_a_lease) {
  at_store *one = open_store("tuning.db"), *two = open_store("tuning.db");
  const char *path = path_of("tuning.db");
  long long before_ms = now_ms();
  assert_int_equal(at_store_lease_acquire(one, FINGERPRINT, "p", 200, 500), ATTUNE_OK);
  assert_in_range(query(path, "SELECT expires FROM lease"), before_ms + 200, now_ms() + 200);
  execute(path, "UPDATE lease SET place = 'elsewhere', expires = 1000"); /* time goes by */
  before_ms = now_ms();
  assert_int_equal(at_store_lease_renew(one, FINGERPRINT, "p", 600000), ATTUNE_OK);
  assert_in_range(query(path, "SELECT expires FROM lease"), before_ms + 600000, now_ms() + 600000);
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "p", 60000, 500), ATTUNE_BUSY);
  execute(path, "UPDATE lease SET expires = 1000");
  assert_int_equal(at_store_lease_acquire(two, FINGERPRINT, "p", 60000, 500), ATTUNE_OK);
  assert_int_equal(at_store_lease_renew(one, FINGERPRINT, "p", 60000), ATTUNE_NOT_FOUND); /* lost: said so */
  at_store_lease_release(one, FINGERPRINT, "p");                                          /* and left alone */
  assert_int_equal(query(path, "SELECT count(*) FROM lease"), 1);
  at_store_close(one);
  at_store_close(two);
}

static int take_many_and_exit(int first) {
  at_store *store = NULL;
  if (at_store_open(&store, path_of("tuning.db"), AT_STORE_READ_WRITE) != ATTUNE_OK) return 1;
  for (int i = 0; i < 40; i++) {
    char problem[32];
    (void)snprintf(problem, sizeof problem, "p%d", first + i);
    if (at_store_lease_acquire(store, FINGERPRINT, problem, 60000, 500) != ATTUNE_OK) return 2;
  }
  return 0;
}

/* The table does not grow with the dead: each new lease clears some of their rows. */
TEST(rows_of_the_dead_go) {
  at_store *store = open_store("tuning.db");
  const char *path = path_of("tuning.db");
  assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "mine", 60000, 500), ATTUNE_OK);
  assert_int_equal(wait_for(spawn(take_many_and_exit, 0)), 0);
  assert_int_equal(query(path, "SELECT count(*) FROM lease"), 41);
  assert_int_equal(wait_for(spawn(take_many_and_exit, 40)), 0);
  assert_int_equal(query(path, "SELECT count(*) FROM lease"), 41);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(at_store_lease_acquire(store, FINGERPRINT, "other", 60000, 500), ATTUNE_OK);
    at_store_lease_release(store, FINGERPRINT, "other");
  }
  assert_int_equal(query(path, "SELECT count(*) FROM lease"), 1); /* the living stay */
  at_store_close(store);
  assert_int_equal(query(path, "SELECT count(*) FROM lease"), 0);
}

int main(void) {
  return RUN_TESTS_EACH(setup, teardown, NULL, NULL);
}
