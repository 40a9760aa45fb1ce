/* SPDX-License-Identifier: Apache-2.0
 * test_call_cache_fork.c: a child of fork, while threads of its parent call and add up, calls, adds up and ends. The
 * first argument is the number of children. */
#include "tests/support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/attune.h>

#include "tuning/plans/call_cache.h"

enum { THREADS = 3 };
static int children = 60;
static attune_stream *stream;
static attune_tuner *tuner;
static _Atomic bool over;
static _Alignas(128) double a[64], b[64];

static bool call_some(int first) {
  _Alignas(128) double d[64];
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  bool ok = true;
  for (int i = first; i < first + 600; i++) {
    attune_gemm_problem p = {.dtype = ATTUNE_F64, .m = 1 + i % 7, .n = 1 + i / 7 % 8, .k = 1 + i / 56 % 8};
    ok = ok && attune_gemm(tuner, stream, &p, &o) == ATTUNE_OK;
  }
  at_call_cache_collect(0);
  return ok;
}

static void *work(void *arg) {
  int *first = arg;
  bool ok = true;
  while (!over && ok) ok = call_some(*first);
  return ok ? NULL : arg;
}

static void *call_in_thread(void *arg) {
  return call_some(0) ? NULL : arg;
}

static int child(void) {
  pthread_t thread;
  void *failed = &thread;
  alarm(600);
  if (!call_some(3) || pthread_create(&thread, NULL, call_in_thread, &failed) != 0) return 1;
  pthread_join(thread, &failed);
  return failed ? 2 : 0;
}

TEST(children_call) {
  pthread_t threads[THREADS];
  int firsts[THREADS] = {0, 40, 90};
  assert_true(call_some(0)); /* the libraries are loaded now: forks beside that are another matter */
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &firsts[i]), 0);
  for (int i = 0; i < children; i++) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(child());
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0) fail_msg("child %d ended with %x", i, (unsigned)status);
  }
  over = true;
  for (int i = 0; i < THREADS; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
}

int main(int argc, char **argv) {
  if (argc > 1) children = atoi(argv[1]);
  attune_device *device = NULL;
  attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_OFF};
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  stream = attune_stream_default(device);
  const int failed = RUN_TESTS(NULL, NULL);
  if (!failed) attune_tuner_destroy(tuner); /* else threads still use it */
  return failed;
}
