/* SPDX-License-Identifier: Apache-2.0
 * test_copies.c: several copies of attune in one process (parts of two plug-ins), forks while
 * one of them is used for the first time: the child can use all of them. The first use comes while the fork is under
 * way, as it does when another copy's libraries are being opened: what a copy asks of fork then is of no use for
 * that fork. */
#include "tests/support/check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/child.h"

enum { SIZE = 80, LONGEST_MS = 12 };

typedef int (*multiply_fn)(int size);

static multiply_fn first, second;
static atomic_int begun, forking;
static int delay_us;

static multiply_fn open_plugin(const char *path) {
  multiply_fn found = NULL;
  void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = plugin ? dlsym(plugin, "exit_plugin_multiply") : NULL;
  memcpy(&found, &symbol, sizeof found);
  return found;
}

/* Asked for before any copy asks, so it runs after their functions: the copy that is new begins here. */
static void hold_up_fork(void) {
  atomic_store(&forking, 1);
  while (!atomic_load(&begun)) usleep(10);
  usleep((useconds_t)delay_us);
}

static void *use_second(void *unused) {
  while (!atomic_load(&forking)) usleep(10);
  atomic_store(&begun, 1);
  (void)second(SIZE);
  return unused;
}

static int in_child(void) {
  alarm(20); /* it hangs */
  if (first(SIZE) != 0) return 4;
  return second(SIZE) != 0 ? 5 : 0;
}

/* In a process of its own, since a copy is new only once. */
static int fork_once(const char *delay) {
  pthread_t thread;
  int end = 0;
  delay_us = atoi(delay);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (pthread_atfork(hold_up_fork, NULL, NULL) != 0) return 10;
  first = open_plugin(AT_PLUGIN);
  second = open_plugin(AT_PLUGIN_AGAIN);
  if (!first || !second || first == second) return 11;
  if (first(SIZE) != 0) return 12;
  if (pthread_create(&thread, NULL, use_second, NULL) != 0) return 13;
  const pid_t child = fork();
  if (child == 0) _exit(in_child());
  if (child < 0 || waitpid(child, &end, 0) != child) return 14;
  pthread_join(thread, NULL);
  return WIFEXITED(end) ? WEXITSTATUS(end) : 20;
}

TEST(a_copy_begins_in_a_fork) {
  char self[4096], delay[16];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  for (int us = 0; us <= LONGEST_MS * 1000; us += 400) {
    snprintf(delay, sizeof delay, "%d", us);
    const int code = run_program((const char *const[]){self, delay, NULL}, NULL, 0);
    if (code != 0) fail_msg("a fork %d us after the first use: %d (20: the child was killed or hung)", us, code);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) return fork_once(argv[1]);
  return RUN_TESTS(NULL, NULL);
}
