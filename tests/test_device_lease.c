/* SPDX-License-Identifier: Apache-2.0
 * test_device_lease.c: one process has a device at a time; the lease ends with its holder, is not a child's, and
 * needs a safe folder. */
#include "tests/check.h"
#include "tests/folder.h"

#include "src/device_lease.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[40];
static attune_device device, other;

static void set_folder(const char *variable, const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_true(mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
  setenv(variable, path, 1);
}

static int fresh(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/attune-device-lease-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  set_folder("XDG_RUNTIME_DIR", "run");
  set_folder("XDG_CACHE_HOME", "cache");
  device = (attune_device){.name = "fake:0", .identity = "GPU-1", .index = 0};
  other = (attune_device){.name = "fake:1", .identity = "GPU-2", .index = 1};
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  return folder_remove(folder);
}

static bool in_folder(const char *name) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

/* A child that takes the lease, writes a byte when it has it, and goes on until the pipe's other end is closed. */
typedef struct holder {
  pid_t pid;
  int has_it, stay;
} holder;

static attune_status nap(void *user) {
  (void)user;
  (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return ATTUNE_OK;
}

static void hold(int has_it, int stay) {
  char byte = 0;
  const bool ok = at_device_lease_acquire(&device, nap, NULL) == ATTUNE_OK && write(has_it, "x", 1) == 1;
  (void)!read(stay, &byte, 1);
  _exit(ok ? 0 : 1);
}

static holder start_holder(void) {
  int up[2], down[2];
  assert_int_equal(pipe(up), 0);
  assert_int_equal(pipe(down), 0);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    close(up[0]);
    close(down[1]);
    hold(up[1], down[0]);
  }
  close(up[1]);
  close(down[0]);
  return (holder){pid, up[0], down[1]};
}

static void wait_for_it(const holder *h) {
  char byte = 0;
  assert_int_equal(read(h->has_it, &byte, 1), 1);
}

static int end_holder(holder *h, int number) {
  int status = 0;
  if (number) assert_int_equal(kill(h->pid, number), 0);
  close(h->stay);
  close(h->has_it);
  assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
  return status;
}

static void one_process_at_a_time(void **state) {
  (void)state;
  holder h = start_holder();
  wait_for_it(&h);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_BUSY);
  assert_non_null(strstr(attune_last_message(), "another process measures on fake:0"));
  assert_int_equal(at_device_lease_try(&other), ATTUNE_OK); /* another device is another lease */
  at_device_lease_release(&other);
  other.index = 0;
  at_copy_text(other.identity, sizeof other.identity, "GPU-1"); /* whatever its number */
  assert_int_equal(at_device_lease_try(&other), ATTUNE_BUSY);
  assert_int_equal(end_holder(&h, 0), 0);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK);
  at_device_lease_release(&device);
  at_device_lease_release(&device); /* without one: nothing */
}

static attune_status give_up(void *user) {
  return ++*(int *)user < 3 ? ATTUNE_OK : at_fail(ATTUNE_BUSY, "no more patience");
}

static void waiting_ends_as_told(void **state) {
  (void)state;
  int looks = 0;
  holder h = start_holder();
  wait_for_it(&h);
  assert_int_equal(at_device_lease_acquire(&device, give_up, &looks), ATTUNE_BUSY);
  assert_int_equal(looks, 3);
  assert_int_equal(end_holder(&h, 0), 0);
  assert_int_equal(at_device_lease_acquire(&device, give_up, &looks), ATTUNE_OK); /* the one who gave up left nothing */
  at_device_lease_release(&device);
}

static void a_killed_holder_has_it_no_more(void **state) {
  (void)state;
  const char *text = getenv("ATTUNE_TEST_KILLS");
  const int kills = text ? atoi(text) : 10;
  for (int i = 0; i < kills; i++) {
    holder h = start_holder(), next = start_holder();
    const struct timespec moment = {.tv_nsec = 1000000 + 1000000 * (i % 5)};
    (void)nanosleep(&moment, NULL); /* one of the two has it, the other waits */
    end_holder(&h, SIGKILL);
    wait_for_it(&next);
    end_holder(&next, SIGKILL);
    assert_int_equal(at_device_lease_try(&device), ATTUNE_OK);
    at_device_lease_release(&device);
  }
}

/* The parent dies while a child that it made with the lease in hand lives on. */
static void a_child_of_fork_does_not_keep_it(void **state) {
  (void)state;
  int up[2], down[2];
  char byte = 0;
  assert_int_equal(pipe(up), 0);
  assert_int_equal(pipe(down), 0);
  const pid_t parent = fork();
  assert_true(parent >= 0);
  if (parent == 0) {
    close(down[1]);
    if (at_device_lease_try(&device) != ATTUNE_OK) _exit(1);
    if (fork() == 0) {
      (void)!write(up[1], "x", 1);
      (void)!read(down[0], &byte, 1);
      _exit(0);
    }
    (void)!read(down[0], &byte, 1);
    _exit(0);
  }
  assert_int_equal(read(up[0], &byte, 1), 1); /* both live */
  assert_int_equal(at_device_lease_try(&device), ATTUNE_BUSY);
  assert_int_equal(kill(parent, SIGKILL), 0);
  assert_int_equal(waitpid(parent, NULL, 0), parent);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK);
  at_device_lease_release(&device);
  close(down[1]);
  close(down[0]);
  close(up[0]);
  close(up[1]);
}

/* In this process by another open file: as a second copy of the library has. */
static void where_the_file_is(void **state) {
  (void)state;
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK);
  struct stat info;
  char path[160];
  snprintf(path, sizeof path, "%s/run/attune/devices.lock", folder);
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  at_device_lease_release(&device);
  assert_false(in_folder("cache/attune"));

  /* A folder that others may write is not used: the next one is. */
  snprintf(path, sizeof path, "%s/run/attune", folder);
  assert_int_equal(chmod(path, 0777), 0);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK);
  at_device_lease_release(&device);
  assert_true(in_folder("cache/attune/devices.lock"));

  /* Nor is a link, nor a folder that is not there. */
  snprintf(path, sizeof path, "%s/absent", folder);
  setenv("XDG_RUNTIME_DIR", path, 1);
  snprintf(path, sizeof path, "%s/cache/attune/devices.lock", folder);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink("/tmp/attune-nowhere", path), 0);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK); /* nobody is kept away, and nothing fails */
  assert_int_equal(at_device_lease_try(&other), ATTUNE_OK);
  at_device_lease_release(&other);
  at_device_lease_release(&device);
  assert_int_not_equal(access("/tmp/attune-nowhere", F_OK), 0);
  assert_false(in_folder("absent"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(one_process_at_a_time),
      TEST(waiting_ends_as_told),
      TEST(a_killed_holder_has_it_no_more),
      TEST(a_child_of_fork_does_not_keep_it),
      TEST(where_the_file_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
