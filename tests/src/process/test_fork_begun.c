/* SPDX-License-Identifier: Apache-2.0
 * test_fork_begun.c: a fork has begun, and another thread uses a lock for the first time: the child is as if the thread
 * had not. Each case is a process of its own, for there is one first time in a process. */
#include "tests/support/check.h"

#include "src/device/device_lease.h"
#include "src/process/fork.h"
#include "tests/support/child.h"
#include "tests/support/folder.h"
#include "tuning/plans/call_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { WAITS = 200 }; /* of a millisecond: how long a fork lets the other thread try */

static atomic_bool begun, done;
static attune_device device = {.name = "fake:0", .identity = "GPU-1", .index = 0};
static at_plan_entry entry;
static const at_call_signature asked = {.use = 7};

static void nap(void) {
  (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* What the thread does then either waits until the fork is over, or is whole before it. */
static void let_it_try(void *unused) {
  (void)unused;
  atomic_store(&begun, true);
  for (int i = 0; i < WAITS && !atomic_load(&done); i++) nap();
}

static void go_on(void *unused, bool child) {
  (void)unused;
  (void)child;
}

/* Forks while the thread is at it: the child's exit code, -1 when it hung or was killed. */
static int fork_beside(void *(*work)(void *), int (*in_child)(void)) {
  static at_fork_watch watch = {.before = let_it_try, .after = go_on};
  pthread_t thread;
  int end = 0;
  at_fork_watch_add(&watch);
  if (pthread_create(&thread, NULL, work, NULL) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(600);
    _exit(in_child());
  }
  pthread_join(thread, NULL);
  if (child < 0 || waitpid(child, &end, 0) != child) return -1;
  return WIFEXITED(end) ? WEXITSTATUS(end) : -1;
}

static void *take_lease(void *unused) {
  while (!atomic_load(&begun)) nap();
  (void)at_device_lease_try(&device);
  atomic_store(&done, true);
  return unused;
}

/* The parent's lease is not kept open here, and the lock of the table of files is free. */
static int look_for_lease(void) {
  for (int file = 3; file < 64; file++) {
    char name[48], target[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(name, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    EXPECT(!strstr(target, "/device-"), "the child has the parent's lease in file %d", file);
  }
  const attune_status status = at_device_lease_try(&device); /* the parent may have it by now */
  EXPECT(status == ATTUNE_OK || status == ATTUNE_BUSY, "%s", attune_last_message());
  return 0;
}

static int lease(void) {
  const int failed = fork_beside(take_lease, look_for_lease);
  at_device_lease_release(&device);
  return failed;
}

static void *call_once(void *unused) {
  while (!atomic_load(&begun)) nap();
  at_call_cache_put(1, &device, &entry, &asked);
  atomic_store(&done, true);
  return unused;
}

static int look_for_threads(void) {
  for (int i = 0; i < AT_CALL_CACHE_THREADS; i++)
    EXPECT(atomic_load(&at_call_cache_threads[i].thread) == 0, "the child has the calls of a thread that it has not");
  at_call_cache_put(1, &device, &entry, &asked);
  at_call_cache_collect(0);
  EXPECT(atomic_load(&entry.calls) == 1, "%llu calls", (unsigned long long)atomic_load(&entry.calls));
  return 0;
}

static int call_cache(void) {
  return fork_beside(call_once, look_for_threads);
}

/* ---- a watch that is added again, as by a pthread_once that a fork cut off ---- */

static pthread_mutex_t kept = PTHREAD_MUTEX_INITIALIZER;
static int befores, afters;

/* The watch's lock is held, and free outside. */
static bool is_kept(void) {
  if (pthread_mutex_trylock(&kept) != 0) return true;
  pthread_mutex_unlock(&kept);
  return false;
}

static void count_before(void *of) {
  (void)of;
  befores += is_kept();
}

static void count_after(void *of, bool child) {
  (void)of;
  (void)child;
  afters += is_kept();
}

static int count_in_child(int times) {
  int end = 0;
  alarm(600);
  const pid_t child = fork();
  if (child == 0) _exit(befores == times && afters == times && !is_kept() ? 0 : 1);
  EXPECT(child > 0 && waitpid(child, &end, 0) == child && end == 0, "the child ended with %#x", (unsigned)end);
  EXPECT(befores == times && afters == times && !is_kept(), "%d and %d times", befores, afters);
  return 0;
}

static int added_twice(void) {
  static at_fork_watch watch = {.lock = &kept, .before = count_before, .after = count_after}, other = {.after = go_on};
  at_fork_watch_add(&watch);
  at_fork_watch_add(&watch);
  if (count_in_child(1) != 0) return 1;
  at_fork_watch_add(&other);
  at_fork_watch_add(&watch);
  if (count_in_child(2) != 0) return 2;
  at_fork_watch_remove(&watch);
  if (count_in_child(2) != 0) return 3;
  at_fork_watch_add(&watch);
  return count_in_child(3);
}

static const part parts[] = {{"lease", lease}, {"call_cache", call_cache}, {"added_twice", added_twice}};

TEST(the_first_lease_waits) {
  char folder[] = "/tmp/attune-fork-begun-XXXXXX";
  assert_non_null(mkdtemp(folder));
  setenv("XDG_RUNTIME_DIR", folder, 1);
  const int failed = run_part("lease");
  assert_int_equal(folder_remove(folder), 0);
  assert_int_equal(failed, 0);
}

TEST(the_first_call_waits) {
  assert_int_equal(run_part("call_cache"), 0);
}

TEST(a_watch_is_added_once) {
  assert_int_equal(run_part("added_twice"), 0);
}

int main(int argc, char **argv) {
  if (argc > 1) return run_named(parts, sizeof parts / sizeof *parts, argv[1]);
  return RUN_TESTS(NULL, NULL);
}
