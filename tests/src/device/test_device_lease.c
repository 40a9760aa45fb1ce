/* SPDX-License-Identifier: Apache-2.0
 * test_device_lease.c: one process has a device at a time; the lease ends with its holder, is not a child's, and
 * needs a safe folder. */
#include "tests/support/check.h"
#include "tests/support/folder.h"

#include "src/device/device_lease.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
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

FIXTURE(fresh) {
  snprintf(folder, sizeof folder, "/tmp/attune-device-lease-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  set_folder("XDG_RUNTIME_DIR", "run");
  set_folder("XDG_CACHE_HOME", "cache");
  device = (attune_device){.name = "fake:0", .identity = "GPU-1", .index = 0};
  other = (attune_device){.name = "fake:1", .identity = "GPU-2", .index = 1};
  return 0;
}

FIXTURE(tear_down) {
  return folder_remove(folder);
}

static bool in_folder(const char *name) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

/* The device's own file in that folder, into out; how many there are. */
static int lease_files(const char *in, char out[512]) {
  char path[160];
  int count = 0;
  snprintf(path, sizeof path, "%s/%s", folder, in);
  DIR *all = opendir(path);
  for (const struct dirent *one; all && (one = readdir(all));)
    if (strncmp(one->d_name, "device-", 7) == 0 && ++count) snprintf(out, 512, "%s/%s", path, one->d_name);
  if (all) closedir(all);
  return count;
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
  while (read(stay, &byte, 1) == 1) { /* each byte asks whether it still has it */
    const char answer = at_device_lease_renew(&device) == ATTUNE_OK ? 'y' : 'n';
    if (write(has_it, &answer, 1) != 1) break;
  }
  at_device_lease_release(&device);
  _exit(ok ? 0 : 1);
}

static holder start_holder(void) {
  int up[2], down[2];
  assert_int_equal(pipe(up), 0);
  assert_int_equal(pipe(down), 0);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    for (int i = 3; i < 64; i++) /* those of other holders too, else they would not see the end of theirs */
      if (i != up[1] && i != down[0]) close(i);
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

TEST(one_process_at_a_time) {
  holder h = start_holder();
  wait_for_it(&h);
  FAILS_SAYING(at_device_lease_try(&device), ATTUNE_BUSY, "another process is measuring on fake:0");
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

static char still_has_it(const holder *h) {
  char byte = 0;
  assert_int_equal(write(h->stay, "?", 1), 1);
  assert_int_equal(read(h->has_it, &byte, 1), 1);
  return byte;
}

static void stop(const holder *h) {
  siginfo_t info;
  assert_int_equal(kill(h->pid, SIGSTOP), 0);
  assert_int_equal(waitid(P_PID, (id_t)h->pid, &info, WSTOPPED | WNOWAIT), 0);
}

/* How long it took to have the device, in ns. */
static int64_t take_over(void) {
  const int64_t start_ns = at_now_ns();
  while (at_device_lease_try(&device) != ATTUNE_OK && at_now_ns() - start_ns < 300000000000) (void)nap(NULL);
  return at_now_ns() - start_ns;
}

/* A stopped holder keeps the others away for a time only, and notices when it goes on. */
TEST(a_stopped_holder_loses_it) {
  char by[64];
  holder h = start_holder();
  wait_for_it(&h);
  assert_int_equal(still_has_it(&h), 'y');
  stop(&h);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_BUSY);
  snprintf(by, sizeof by, "process %ld, since ", (long)h.pid);
  assert_non_null(strstr(attune_last_message(), by));
  assert_non_null(strstr(attune_last_message(), "it is suspended"));
  assert_in_range(take_over(), (int64_t)AT_LEASE_STOPPED_MS * 900000, 299000000000); /* since the try above */
  assert_int_equal(at_device_lease_renew(&device), ATTUNE_OK);
  assert_int_equal(kill(h.pid, SIGCONT), 0);
  assert_int_equal(still_has_it(&h), 'n');
  holder third = start_holder();          /* waits for the one who has it now, not for the one who had it */
  assert_int_equal(end_holder(&h, 0), 0); /* and what that one gives back is not this one's */
  assert_int_equal(at_device_lease_renew(&device), ATTUNE_OK);
  at_device_lease_release(&device);
  wait_for_it(&third);
  assert_int_equal(still_has_it(&third), 'y');
  assert_int_equal(end_holder(&third, 0), 0);
}

/* One that goes on before anybody took its lease keeps it. */
TEST(a_short_stop_loses_nothing) {
  holder h = start_holder();
  wait_for_it(&h);
  stop(&h);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_BUSY);
  assert_int_equal(kill(h.pid, SIGCONT), 0);
  assert_int_equal(still_has_it(&h), 'y');
  assert_int_equal(at_device_lease_try(&device), ATTUNE_BUSY);
  assert_null(strstr(attune_last_message(), "suspended"));
  assert_int_equal(end_holder(&h, 0), 0);
}

/* The device's file, open once more, and the bytes of it that are locked: see device_lease.c. */
enum { GATE = 1 << 20, WAITER_AT = 40 };

static int open_lease_file(void) {
  char path[512];
  assert_int_equal(lease_files("run/attune", path), 1);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  assert_true(file >= 0);
  return file;
}

static struct flock gate_lock(void) {
  return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = GATE, .l_len = 1};
}

/* What a waiter writes of itself, by hand. */
typedef struct waiter {
  uint64_t place;
  int64_t pid, since;
  uint64_t beat;
} waiter;

/* Until somebody waits for the turn, and has written who it is. */
static void wait_for_a_waiter(void) {
  const int file = open_lease_file();
  struct flock lock = {.l_type = F_UNLCK};
  for (waiter w = {.pid = 0}; lock.l_type == F_UNLCK || w.pid == 0; (void)nap(NULL)) {
    lock = gate_lock();
    assert_int_equal(fcntl(file, F_OFD_GETLK, &lock), 0);
    if (pread(file, &w, sizeof w, WAITER_AT) != sizeof w) w.pid = 0;
  }
  close(file);
}

/* One that is stopped while it waits for its turn keeps nobody away, not for a moment. */
TEST(a_stopped_waiter_keeps_nobody_away) {
  holder h = start_holder();
  wait_for_it(&h);
  holder second = start_holder();
  wait_for_a_waiter();
  stop(&second);
  assert_int_equal(end_holder(&h, 0), 0);
  OK(at_device_lease_try(&device));
  assert_int_equal(kill(second.pid, SIGCONT), 0);
  at_device_lease_release(&device);
  wait_for_it(&second);
  assert_int_equal(end_holder(&second, 0), 0);
}

static int hold_gate(const waiter *w) {
  struct flock lock = gate_lock();
  const int file = open_lease_file();
  assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
  if (w) assert_int_equal(pwrite(file, w, sizeof *w, WAITER_AT), sizeof *w);
  return file;
}

static pid_t dead_process(void) {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  assert_int_equal(waitpid(pid, NULL, 0), pid);
  return pid;
}

/* The message names the one that is next, not the one that has had the device and is dead. One of another container
 * that does not show that it lives is passed by after a time, one that does is waited for. */
TEST(a_frozen_waiter_is_named_and_passed) {
  waiter w = {.place = 77, .pid = 4242, .since = 1700000000, .beat = 1};
  char dead[64];
  holder h = start_holder();
  wait_for_it(&h);
  end_holder(&h, SIGKILL);
  snprintf(dead, sizeof dead, "process %ld,", (long)h.pid);
  const int file = hold_gate(&w);
  const int64_t start_ns = at_now_ns();
  while (at_now_ns() - start_ns < 2 * (int64_t)AT_LEASE_STOPPED_MS * 1000000) {
    FAILS(at_device_lease_try(&device), ATTUNE_BUSY);
    assert_null(strstr(attune_last_message(), dead));
    assert_non_null(strstr(attune_last_message(), "process 4242 of another container or machine is next to measure on "
                                                  "fake:0, since 2023-11-14 22:13:20 UTC"));
    w.beat++;
    assert_int_equal(pwrite(file, &w, sizeof w, WAITER_AT), sizeof w);
    (void)nap(NULL);
  }
  assert_in_range(take_over(), 0, 299000000000);
  at_device_lease_release(&device);
  close(file);
}

/* Files left by a dead process (a child has them open) do not block others. */
TEST(a_dead_one_keeps_nobody_away) {
  waiter w = {.since = 1700000000, .beat = 1};
  OK(at_device_lease_try(&device));
  int file = open_lease_file();
  assert_int_equal(pread(file, &w.place, sizeof w.place, 8), sizeof w.place); /* this one */
  at_device_lease_release(&device);
  close(file);
  w.pid = dead_process();
  file = hold_gate(&w);
  OK(at_device_lease_try(&device));
  at_device_lease_release(&device);
  /* The lease itself: another generation is taken at once. */
  struct flock lease = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = GATE + 1, .l_len = 1};
  assert_int_equal(fcntl(file, F_OFD_SETLK, &lease), 0);
  assert_int_equal(pwrite(file, &w, sizeof w, 8), sizeof w);
  OK(at_device_lease_try(&device));
  at_device_lease_release(&device);
  close(file);
}

static attune_status give_up(void *user) {
  return ++*(int *)user < 3 ? ATTUNE_OK : at_fail(ATTUNE_BUSY, "no more patience");
}

TEST(waiting_ends_as_told) {
  int looks = 0;
  holder h = start_holder();
  wait_for_it(&h);
  assert_int_equal(at_device_lease_acquire(&device, give_up, &looks), ATTUNE_BUSY);
  assert_int_equal(looks, 3);
  assert_int_equal(end_holder(&h, 0), 0);
  assert_int_equal(at_device_lease_acquire(&device, give_up, &looks), ATTUNE_OK); /* the one who gave up left nothing */
  at_device_lease_release(&device);
}

TEST(a_killed_holder_has_it_no_more) {
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
TEST(a_child_of_fork_does_not_keep_it) {
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
TEST(where_the_file_is) {
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK);
  struct stat info;
  char path[160], file[512];
  assert_int_equal(lease_files("run/attune", file), 1);
  assert_int_equal(stat(file, &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  at_device_lease_release(&device);
  assert_false(in_folder("cache/attune"));

  /* A folder that others may write is not used: the next one is. */
  snprintf(path, sizeof path, "%s/run/attune", folder);
  assert_int_equal(chmod(path, 0777), 0);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK);
  at_device_lease_release(&device);
  assert_int_equal(lease_files("cache/attune", file), 1);

  /* Nor is a link, nor a folder that is not there. */
  snprintf(path, sizeof path, "%s/absent", folder);
  setenv("XDG_RUNTIME_DIR", path, 1);
  assert_int_equal(unlink(file), 0);
  assert_int_equal(symlink("/tmp/attune-nowhere", file), 0);
  assert_int_equal(at_device_lease_try(&device), ATTUNE_OK); /* nobody is kept away, and nothing fails */
  assert_int_equal(at_device_lease_try(&other), ATTUNE_OK);
  at_device_lease_release(&other);
  at_device_lease_release(&device);
  assert_int_not_equal(access("/tmp/attune-nowhere", F_OK), 0);
  assert_false(in_folder("absent"));
}

int main(void) {
  return RUN_TESTS_EACH(fresh, tear_down, NULL, NULL);
}
