/* SPDX-License-Identifier: Apache-2.0
 * test_graph_exit.c: a process ends, in every way there is, with replays in flight, a capture under way and pooled
 * streams at work: it ends at once and as asked. The test runs itself again with the way as its argument. */
#include "tests/support/check.h"

#include "src/host/host.h"

#include <attune/graph.h>

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char self[4096];

/* Static, so that the leak checker sees that all of it is still held. */
static attune_device *host;
static attune_stream *busy, *captured, *pooled[4];
static attune_graph *graph, *open_graph;
static pthread_t worker;

static void sleep_2s(const void *args) {
  (void)args;
  nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
}

static attune_status two_sleeps(void *user, attune_stream *stream) {
  (void)user;
  attune_status status = at_host_submit(stream, sleep_2s, NULL, 0);
  return status == ATTUNE_OK ? at_host_submit(stream, sleep_2s, NULL, 0) : status;
}

static void *start_work(void *arg) {
  (void)arg;
  bool ok = attune_stream_create(&busy, host) == ATTUNE_OK && attune_stream_create(&captured, host) == ATTUNE_OK &&
            attune_graph_create(&graph, host) == ATTUNE_OK && attune_graph_create(&open_graph, host) == ATTUNE_OK &&
            attune_graph_capture_callback(graph, busy, NULL, two_sleeps, NULL) == ATTUNE_OK;
  for (int i = 0; i < 100 && ok; i++) ok = attune_graph_replay(graph, busy) == ATTUNE_OK;
  for (int i = 0; i < 4 && ok; i++)
    ok =
        attune_stream_from_pool(&pooled[i], host, 0) == ATTUNE_OK && attune_graph_replay(graph, pooled[i]) == ATTUNE_OK;
  ok = ok && attune_graph_capture_begin(open_graph, captured, NULL) == ATTUNE_OK &&
       two_sleeps(NULL, captured) == ATTUNE_OK;
  return ok ? NULL : &worker;
}

/* In the new process. 77 and others: something before the end went wrong. */
static int end_by(const char *way) {
  void *failed = NULL;
  alarm(60);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (attune_device_get(&host, "host") != ATTUNE_OK) return 2;
  if (strcmp(way, "thread") == 0) { /* the thread that made all of it is gone */
    if (pthread_create(&worker, NULL, start_work, NULL) != 0) return 3;
    pthread_join(worker, &failed);
  } else {
    failed = start_work(NULL);
  }
  if (failed) return 4;
  if (strcmp(way, "_exit") == 0) _exit(0);
  if (strcmp(way, "abort") == 0) abort();
  if (strcmp(way, "term") == 0) raise(SIGTERM);
  if (strcmp(way, "exit") == 0) exit(0);
  return 0;
}

/* The wait status of a process that ends by `way`; it must not wait for its work, some minutes of it: SIGALRM comes
 * before. */
static int end_of(const char *way) {
  char *const arguments[] = {self, (char *)(uintptr_t)way, NULL};
  pid_t child = 0;
  int status = 0;
  assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

TEST(ends) {
  const char *const clean[] = {"return", "exit", "_exit", "thread"};
  for (size_t i = 0; i < AT_COUNT(clean); i++) {
    const int status = end_of(clean[i]);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      fail_msg("the end by %s has wait status %#x", clean[i], (unsigned)status);
  }
}

TEST(ends_by_signals) {
  int status = end_of("term");
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  status = end_of("abort");
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(int argc, char **argv) {
  if (argc > 1) return end_by(argv[1]);
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return 1;
  return RUN_TESTS(NULL, NULL);
}
