/* SPDX-License-Identifier: Apache-2.0
 * test_main_thread_exit.c: SIGTERM ends a process whose main thread left by pthread_exit and that has only attune's
 * threads left: those of the team, or those of a stream. A handler of the program's does not run on them. */
#include "tests/support/check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <attune/attune.h>

#include "src/host/threads.h"

static void nothing(void *arg, const at_team *team) {
  (void)arg, (void)team;
}

static void on_signal(int number) {
  (void)number;
  _exit(3);
}

/* The child: its main thread takes no signal, and goes. */
static void leave(const char *way, int told) {
  sigset_t all;
  attune_device *host = NULL;
  attune_stream *stream = NULL;
  sigfillset(&all);
  if (strcmp(way, "handler") == 0) (void)signal(SIGTERM, on_signal);
  (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
  if (strcmp(way, "stream") != 0) at_parallel(2, nothing, NULL);
  if (strcmp(way, "stream") == 0 &&
      (attune_device_get(&host, "host") != ATTUNE_OK || attune_stream_create(&stream, host) != ATTUNE_OK))
    _exit(4);
  if (write(told, "x", 1) != 1) _exit(5);
  pthread_exit(NULL);
}

/* All begin at once, for each takes seconds. */
static const char *const ways[] = {"team", "stream", "handler"};
enum { WAYS = sizeof ways / sizeof ways[0] };
static pid_t children[WAYS];

FIXTURE(begin) {
  for (int i = 0; i < WAYS; i++) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0) return -1;
    children[i] = fork();
    if (children[i] == 0) leave(ways[i], ends[1]);
    close(ends[1]);
    if (read(ends[0], &byte, 1) != 1) return -1;
    close(ends[0]);
    if (kill(children[i], SIGTERM) != 0) return -1;
  }
  return 0;
}

/* The wait status; SIGKILL ends what does not end. */
static int end_of(int way, int seconds) {
  int status = 0;
  for (int i = 0; i < 100 * seconds; i++) {
    if (waitpid(children[way], &status, WNOHANG) == children[way]) return status;
    (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  assert_int_equal(kill(children[way], SIGKILL), 0);
  assert_int_equal(waitpid(children[way], &status, 0), children[way]);
  return status;
}

static void assert_ends_by(int number, int status) {
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), number);
}

TEST(the_team_does_not_hold_it) {
  assert_ends_by(SIGTERM, end_of(0, 50));
}

TEST(a_stream_does_not_hold_it) {
  assert_ends_by(SIGTERM, end_of(1, 50));
}

TEST(handlers_are_not_run) {
  assert_ends_by(SIGKILL, end_of(2, 1));
}

int main(void) {
  return RUN_TESTS(begin, NULL);
}
