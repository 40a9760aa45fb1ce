/* SPDX-License-Identifier: Apache-2.0
 * test_address_space.c: where a process may have little address space (ulimit -v), a library that would try for ever to
 * get more is not opened, and that is told; products work at every limit, or are refused. */
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/attune.h>

static int find_note(void *user, const attune_library *library) {
  if (strcmp(library->name, "openblas") == 0) (void)snprintf(user, 200, "%s|%s", library->path, library->problem);
  return 0;
}

/* In a child. 0: a product came out, right; 1: it was refused, with a message; else what is wrong. */
static int first_use(rlim_t bytes) {
  static double a[48 * 48], b[48 * 48], d[48 * 48];
  const struct rlimit limit = {bytes, bytes};
  attune_device *host = NULL;
  attune_tuner *tuner = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  for (int i = 0; i < 48; i++) a[i * 48 + i] = 2.0;
  b[5] = 7.0;
  p.dtype = p.dtype_out = ATTUNE_F64;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldd = 48;
  options.database = "";
  options.mode = ATTUNE_MODE_OFF;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 10;
  alarm(600); /* it hung for ever */
  attune_status status = attune_device_get(&host, "host");
  if (status == ATTUNE_OK) status = attune_tuner_create(&tuner, &options);
  if (status == ATTUNE_OK) status = attune_gemm(tuner, attune_stream_default(host), &p, &o);
  if (status != ATTUNE_OK) return attune_last_message()[0] ? 1 : 11;
  if (d[5] != 14.0) return 12;
  char note[200] = "";
  if (attune_device_libraries(host, find_note, note) != ATTUNE_OK) return 13;
  if (bytes < (rlim_t)100 << 20 && note[0] && !strstr(note, "not opened")) return 14;
  return 0;
}

static void every_limit(void **state) {
  (void)state;
  int worked = 0;
  for (rlim_t mb = 20; mb <= 420; mb += 40) {
    int end = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(first_use(mb << 20));
    assert_int_equal(waitpid(child, &end, 0), child);
    if (!WIFEXITED(end) || WEXITSTATUS(end) > 1)
      fail_msg("%d MB: %s %d", (int)mb, WIFEXITED(end) ? "wrong" : "signal",
               WIFEXITED(end) ? WEXITSTATUS(end) : WTERMSIG(end));
    worked += WEXITSTATUS(end) == 0;
  }
  assert_true(worked >= 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_limit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
