/* SPDX-License-Identifier: Apache-2.0
 * test_thread_limit.c: where no thread can be started (ulimit -u, a container's limit), a library that ends the
 * process for that (OpenBLAS) is opened with one thread, which is told once; products are right, and tuning works. */
#include "tests/support/check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/attune.h>

#include "src/host/threads.h"

enum { SIZE = 120, NOBODY = 54321, NO_OPENBLAS = 30 };

static int notices, openblas;

static void listen(void *user, attune_log_level level, const char *line) {
  (void)user;
  notices += level == ATTUNE_LOG_WARNING && strstr(line, "threads can be started") != NULL;
}

static int look(void *user, const attune_library *library) {
  (void)user;
  openblas += strcmp(library->name, "openblas") == 0 && library->problem[0] == '\0';
  return 0;
}

/* The limit is of the user, and does not bind the superuser. */
static bool limit_threads(void) {
  const struct rlimit limit = {1, 1};
  if (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) != 0) return false;
  return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

/* In a child: 0, NO_OPENBLAS, or what is wrong. The program's signal mask and affinity stay as they are. */
static int use(bool limited) {
  static double a[SIZE * SIZE], b[SIZE * SIZE], d[SIZE * SIZE];
  attune_device *host = NULL;
  attune_tuner *tuner = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  sigset_t before, after;
  cpu_set_t cpus_before, cpus_after;
  for (int i = 0; i < SIZE * SIZE; i++) a[i] = b[i] = 1.0;
  p.dtype = p.dtype_out = ATTUNE_F64;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldd = SIZE;
  options.database = ":memory:";
  alarm(100); /* it hangs */
  attune_set_log(listen, NULL, ATTUNE_LOG_WARNING);
  if (limited && !limit_threads()) return 10;
  const int cpus = at_cpu_count();
  if (pthread_sigmask(SIG_SETMASK, NULL, &before) != 0) return 12;
  if (sched_getaffinity(0, sizeof cpus_before, &cpus_before) != 0) return 11;
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 13;
  if (attune_gemm(tuner, attune_stream_default(host), &p, &o) != ATTUNE_OK || d[5] != SIZE) return 14;
  if (pthread_sigmask(SIG_SETMASK, NULL, &after) != 0 || sigismember(&before, SIGINT) != sigismember(&after, SIGINT))
    return 15;
  if (sched_getaffinity(0, sizeof cpus_after, &cpus_after) != 0 || !CPU_EQUAL(&cpus_before, &cpus_after)) return 16;
  if (attune_tune(tuner, host, "gemm f64 nn 120x120x120 strict", &(attune_tune_options){.budget_ms = 100.0, .force = 1},
                  NULL) != ATTUNE_OK) {
    fprintf(stderr, "%s\n", attune_last_message());
    return 17;
  }
  memset(d, 0, sizeof d);
  if (attune_gemm(tuner, attune_stream_default(host), &p, &o) != ATTUNE_OK || d[7] != SIZE) return 18;
  if (attune_device_libraries(host, look, NULL) != ATTUNE_OK) return 19;
  attune_tuner_destroy(tuner);
  if (notices != (limited && cpus > 1 && openblas)) return 20;
  return openblas ? 0 : NO_OPENBLAS;
}

static int run(bool limited) {
  int end = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(use(limited));
  assert_int_equal(waitpid(child, &end, 0), child);
  if (!WIFEXITED(end) || (WEXITSTATUS(end) != 0 && WEXITSTATUS(end) != NO_OPENBLAS))
    fail_msg("%s: %s %d", limited ? "no threads" : "threads", WIFEXITED(end) ? "wrong" : "signal",
             WIFEXITED(end) ? WEXITSTATUS(end) : WTERMSIG(end));
  return WEXITSTATUS(end);
}

/* The library is used with and without them. */
TEST(with_threads_and_without) {
  assert_int_equal(run(false), run(true));
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
