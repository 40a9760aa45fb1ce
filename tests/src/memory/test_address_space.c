/* SPDX-License-Identifier: Apache-2.0
 * test_address_space.c: where a process may have little address space (ulimit -v), a library that would try for ever to
 * get more is not opened, and that is told; products work at every limit, or are refused: the first one, those of many
 * threads, and tuning, also when the program has taken all that was left. */
#include "tests/support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <attune/attune.h>

static int find_note(void *user, const attune_library *library) {
  if (strcmp(library->name, "openblas") == 0) (void)snprintf(user, 200, "%s|%s", library->path, library->problem);
  return 0;
}

/* ---- many threads, with nothing left ---- */

enum { CALLERS = 5, LARGE = 160, CALLS = 20, PIECE = 1 << 20 };

static attune_device *host;
static attune_tuner *tuner;
static atomic_int wrong;

static void *call_often(void *arg) {
  double *memory = arg;
  attune_gemm_problem p = {.dtype = ATTUNE_F64,
                           .dtype_out = ATTUNE_F64,
                           .m = LARGE,
                           .n = LARGE,
                           .k = LARGE,
                           .lda = LARGE,
                           .ldb = LARGE,
                           .ldd = LARGE};
  const attune_gemm_operands o = {
      .alpha = 1.0, .a = memory, .b = memory + LARGE * LARGE, .d = memory + 2 * LARGE * LARGE};
  for (int i = 0; i < CALLS; i++)
    if (attune_gemm(tuner, attune_stream_default(host), &p, &o) != ATTUNE_OK || memory[3 * LARGE * LARGE - 1] != LARGE)
      atomic_fetch_add(&wrong, 1);
  return arg;
}

/* All but what threads may need, and less than OpenBLAS's memory for a caller. */
static void take_the_rest(void) {
  static char *pieces[4096];
  enum { LEFT = 120 };
  int count = 0;
  while (count < 4096) {
    pieces[count] = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pieces[count] == MAP_FAILED) break;
    count++;
  }
  for (int i = 0; i < LEFT && count > 0; i++) (void)munmap(pieces[--count], PIECE);
}

static int call_with_nothing_left(void) {
  static double memory[CALLERS][3 * LARGE * LARGE];
  pthread_t threads[CALLERS];
  int started = 0;
  for (int i = 0; i < CALLERS; i++)
    for (int j = 0; j < 2 * LARGE * LARGE; j++) memory[i][j] = 1.0;
  take_the_rest();
  (void)attune_tuner_set_mode(tuner, ATTUNE_MODE_TUNE);
  while (started < CALLERS && pthread_create(&threads[started], NULL, call_often, memory[started]) == 0) started++;
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  const attune_tune_options options = {.budget_ms = 30.0, .force = 1};
  (void)attune_tune(tuner, host, "gemm f64 nn 48x48x48 strict", &options, NULL);
  (void)attune_tune(tuner, host, "gemm f32 nn 300x300x300 strict", &options, NULL);
  return atomic_load(&wrong) == 0 ? 0 : 15;
}

/* In a child. 0: products came out, right; REFUSED: with a message; ENDED: by OpenBLAS, whose own malloc failed once
 * the program had taken all the rest, which only OpenBLAS could mend (README, "Limits"); else what is wrong. */
enum { REFUSED = 50, ENDED = 1 };

static int first_use(rlim_t bytes) {
  static double a[48 * 48], b[48 * 48], d[48 * 48];
  const struct rlimit limit = {bytes, bytes};
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
  alarm(300); /* it hung for ever */
  attune_status status = attune_device_get(&host, "host");
  if (status == ATTUNE_OK) status = attune_tuner_create(&tuner, &options);
  if (status == ATTUNE_OK) status = attune_gemm(tuner, attune_stream_default(host), &p, &o);
  if (status != ATTUNE_OK) return attune_last_message()[0] ? REFUSED : 11;
  if (d[5] != 14.0) return 12;
  char note[200] = "";
  if (attune_device_libraries(host, find_note, note) != ATTUNE_OK) return 13;
  if (bytes < (rlim_t)100 << 20 && note[0] && !strstr(note, "not opened")) return 14;
  return call_with_nothing_left();
}

TEST(every_limit) {
  int worked = 0;
  for (rlim_t mb = 20; mb <= 980; mb += mb < 500 ? 40 : 160) {
    int end = 0;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(first_use(mb << 20));
    assert_int_equal(waitpid(child, &end, 0), child);
    if (!WIFEXITED(end) || (WEXITSTATUS(end) != 0 && WEXITSTATUS(end) != REFUSED && WEXITSTATUS(end) != ENDED))
      fail_msg("%d MB: %s %d", (int)mb, WIFEXITED(end) ? "wrong" : "signal",
               WIFEXITED(end) ? WEXITSTATUS(end) : WTERMSIG(end));
    worked += WEXITSTATUS(end) == 0;
  }
  assert_true(worked >= 5);
}

int main(void) {
  return RUN_TESTS(NULL, NULL);
}
