/* SPDX-License-Identifier: Apache-2.0
 * test_libxsmm.c: LIBXSMM is found at run time, and its kernels are called: by a made library (fake_xsmm.c), each case
 * a process of its own. Without one, or with one of other functions, nothing is offered; forks and the process's end
 * wait for calls inside. Whether a real one computes right the conformance tests say on machines that have it. */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "ops/gemm/host/libxsmm/libxsmm_library.h"
#include "ops/gemm/problem/problem.h"
#include "src/base/backend.h"
#include "src/base/support.h"
#include "src/process/exit.h"
#include "tests/support/child.h"
#include "tuning/op/registry.h"

extern const at_implementation at_gemm_host_libxsmm;

enum { SIZE = 8 };
static const at_gemm square = {.m = SIZE,
                               .n = SIZE,
                               .k = SIZE,
                               .batch = 1,
                               .lda = SIZE,
                               .ldb = SIZE,
                               .ldd = SIZE,
                               .workspace_cap = 1,
                               .dtype = ATTUNE_F64,
                               .dtype_out = ATTUNE_F64,
                               .alignment = 8};
static attune_device *host;
static double a[4 * SIZE * SIZE], b[4 * SIZE * SIZE], d[4 * SIZE * SIZE];

static at_plan *plan_of(const at_gemm *g, const char *configuration) {
  at_plan *plan = NULL;
  at_configuration text;
  at_copy_text(text.text, sizeof text.text, configuration);
  (void)at_plan_create(&plan, &at_gemm_op, &at_gemm_host_libxsmm, &text, g, host);
  return plan;
}

static double run(const at_plan *plan, double alpha, double beta, const double *c) {
  const attune_gemm_operands operands = {.alpha = alpha, .beta = beta, .a = a, .b = b, .c = c, .d = d};
  return plan->launch(plan, &operands, attune_stream_default(host)) == ATTUNE_OK ? d[0] : -1.0;
}

static bool supports(const at_gemm *g) {
  return at_gemm_host_libxsmm.supports(&at_gemm_host_libxsmm, g, host);
}

static int is_told; /* libraries of that name and version */

static int look_for_it(void *unused, const attune_library *library) {
  (void)unused;
  is_told += strcmp(library->name, "libxsmm") == 0 && strcmp(library->version, "1-fake") == 0;
  return 0;
}

static int told(void) {
  is_told = 0;
  return attune_device_libraries(host, look_for_it, NULL) == ATTUNE_OK ? is_told : -1;
}

/* ---- it is used ---- */

static int offered(void) {
  at_configuration found[8];
  at_gemm batch = square, turned = square, none = square, wide = square;
  batch.batch = 2000, batch.stride_a = batch.stride_b = batch.stride_d = SIZE * SIZE;
  turned.trans_a = 1, none.m = 13, none.lda = none.ldd = 13, wide.m = 65, wide.lda = wide.ldd = 65;
  EXPECT(supports(&square) && supports(&batch), "not offered");
  EXPECT(!supports(&turned) && !supports(&none) && !supports(&wide), "what it lacks is offered");
  int count = at_gemm_host_libxsmm.configurations(&at_gemm_host_libxsmm, &square, host, found, 8);
  EXPECT(count == 1 && strcmp(found[0].text, "library=libxsmm-1-fake") == 0, "%d: %s", count, found[0].text);
  count = at_gemm_host_libxsmm.configurations(&at_gemm_host_libxsmm, &batch, host, found, 8);
  EXPECT(count >= 1 && strstr(found[count - 1].text, "library=libxsmm-1-fake,threads=1"), "%s", found[0].text);
  EXPECT(!plan_of(&square, "library=libxsmm-0-fake") && !plan_of(&square, "library=libxsmm-1-fake,threads=1"), "taken");
  EXPECT(!plan_of(&none, "library=libxsmm-1-fake"), "a kernel that is not there");
  return 0;
}

static int used(void) {
  char text[4096];
  at_gemm in_place = square, separate = square;
  in_place.c = AT_C_INPLACE, separate.c = AT_C_SEPARATE, in_place.ldc = separate.ldc = SIZE;
  static double c[SIZE * SIZE] = {1000.0};
  at_plan *plan = plan_of(&square, "library=libxsmm-1-fake"), *onto = plan_of(&in_place, "library=libxsmm-1-fake"),
          *other = plan_of(&separate, "library=libxsmm-1-fake");
  EXPECT(plan && onto && other, "%s", attune_last_message());
  EXPECT(run(plan, 1.0, 0.0, NULL) == 54321.0, "%g", d[0]);
  EXPECT(run(onto, 1.0, 0.0, d) == 54321.0, "%g", d[0]);
  EXPECT(run(onto, 1.0, 1.0, d) == 2 * 54321.0, "%g", d[0]);
  EXPECT(run(plan, 2.0, 0.0, NULL) == 2 * 54321.0, "%g", d[0]); /* by way of sums, as the next */
  EXPECT(run(other, 3.0, -1.0, c) == 3 * 54321.0 - 1000.0, "%g", d[0]);
  EXPECT(run(other, 1.0, 1.0, c) == 54321.0 + 1000.0, "%g", d[0]);
  EXPECT(told() == 1, "not told");
  EXPECT(attune_device_fingerprint(host, text, sizeof text) == ATTUNE_OK && strstr(text, "libxsmm-1-fake"), "%s", text);
  at_plan_destroy(plan), at_plan_destroy(onto), at_plan_destroy(other);
  return offered();
}

/* Each matrix of a batch, in threads too. */
static int batches(void) {
  at_gemm g = square;
  g.batch = 4, g.stride_a = g.stride_b = g.stride_d = SIZE * SIZE;
  at_plan *plan = plan_of(&g, "library=libxsmm-1-fake,threads=2");
  EXPECT(plan, "%s", attune_last_message());
  for (int twice = 1; twice <= 2; twice++) {
    memset(d, 0, sizeof d);
    run(plan, twice, 0.0, NULL);
    for (int i = 0; i < 4; i++) EXPECT(d[i * SIZE * SIZE] == twice * 54321.0, "%d: %g", i, d[i * SIZE * SIZE]);
  }
  at_plan_destroy(plan);
  return 0;
}

static int the_programs(void) {
  void *fake = dlopen(FAKES "/libxsmm.so.1.99", RTLD_NOW | RTLD_LOCAL);
  EXPECT(fake, "%s", dlerror());
  EXPECT(strcmp(at_libxsmm_id(), "libxsmm-1.99-fake") == 0, "%s", at_libxsmm_id());
  at_plan *plan = plan_of(&square, "library=libxsmm-1.99-fake");
  EXPECT(plan && run(plan, 1.0, 0.0, NULL) == 54321.0, "%g", d[0]);
  at_plan_destroy(plan);
  return 0;
}

/* ---- it is not here ---- */

static int absent(void) {
  char words[64];
  EXPECT(!at_libxsmm_here() && !supports(&square), "%s is taken", at_libxsmm_id());
  EXPECT(!plan_of(&square, "library=libxsmm-1-fake"), "made");
  EXPECT(at_gemm_host_libxsmm.depends(&at_gemm_host_libxsmm, NULL, host, words, sizeof words), "no room");
  EXPECT(strcmp(words, "libxsmm-none") == 0, "%s", words);
  EXPECT(told() == 0, "told");
  return 0;
}

/* ---- forks and the end ---- */

static atomic_int rounds;
static at_plan *shared;

static void *find_always(void *unused) {
  at_libxsmm_shape shape = {.f64 = true, .m = 4, .n = 4, .k = 4, .lda = 4, .ldb = 4, .ldc = 4};
  for (;; atomic_fetch_add(&rounds, 1)) (void)at_libxsmm_find(&shape);
  return unused;
}

static void *run_always(void *unused) {
  static _Thread_local double mine[SIZE * SIZE];
  const attune_gemm_operands operands = {.alpha = 1.0, .a = a, .b = b, .d = mine};
  for (;; atomic_fetch_add(&rounds, 1))
    if (shared->launch(shared, &operands, attune_stream_default(host)) != ATTUNE_OK) _exit(21);
  return unused;
}

/* A child whose parent's thread held the library's lock would wait for ever. */
static int forks(void) {
  pthread_t thread;
  EXPECT(at_libxsmm_here() && pthread_create(&thread, NULL, find_always, NULL) == 0, "no thread");
  while (atomic_load(&rounds) < 3) usleep(100);
  for (int i = 0; i < 10; i++) {
    int end = 0;
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      at_plan *plan = plan_of(&square, "library=libxsmm-1-fake");
      _exit(plan && run(plan, 1.0, 0.0, NULL) == 54321.0 ? 0 : 1);
    }
    EXPECT(child > 0 && waitpid(child, &end, 0) == child, "no child");
    EXPECT(WIFEXITED(end) && WEXITSTATUS(end) == 0, "child %d: %d", i, end);
  }
  _exit(0);
}

/* The fake dies when a kernel runs at or after its end. Those who come later are served by attune's own loops. */
static int ends(void) {
  pthread_t thread;
  alarm(100);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  shared = plan_of(&square, "library=libxsmm-1-fake");
  EXPECT(shared, "%s", attune_last_message());
  for (int i = 0; i < 3; i++) EXPECT(pthread_create(&thread, NULL, run_always, NULL) == 0, "no thread");
  while (atomic_load(&rounds) < 10) usleep(100);
  usleep((useconds_t)((unsigned)getpid() * 2654435761u % 3000u));
  exit(0);
}

/* The plan is run after attune's function of exit(): a product of ones has no made number. */
static void run_late(void) {
  for (int i = 0; i < SIZE * SIZE; i++) a[i] = b[i] = 1.0;
  if (!at_exit_begun() || run(shared, 1.0, 0.0, NULL) != (double)SIZE) _exit(22);
}

static int runs_late(void) {
  atexit(run_late); /* before attune's, so after it */
  shared = plan_of(&square, "library=libxsmm-1-fake");
  EXPECT(shared && run(shared, 1.0, 0.0, NULL) == 54321.0, "%s", attune_last_message());
  exit(0);
}

/* ---- */

static const part parts[] = {{"used", used},   {"batches", batches}, {"the_programs", the_programs}, {"absent", absent},
                             {"forks", forks}, {"ends", ends},       {"runs_late", runs_late}};

static void of(const char *name, const char *folder, const char *end, int times) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", FAKES, folder);
  setenv("LD_LIBRARY_PATH", path, 1);
  if (end) setenv("FAKE_END", end, 1);
  for (int i = 0; i < times; i++) assert_int_equal(run_part(name), 0);
  unsetenv("FAKE_END");
  unsetenv("LD_LIBRARY_PATH");
}

static void it_is_used(void **state) {
  (void)state;
  of("used", "xsmm", NULL, 1);
  of("batches", "xsmm", NULL, 1);
}
static void the_programs_copy_is_used(void **state) {
  (void)state;
  of("the_programs", "xsmm", NULL, 1);
}
static void one_of_other_functions_is_none(void **state) {
  (void)state;
  of("absent", "xsmm_other", NULL, 1);
}
static void forks_are_safe(void **state) {
  (void)state;
  if (!may_fork()) skip();
  of("forks", "xsmm", NULL, 1);
}
static void the_end_is_safe(void **state) {
  (void)state;
  of("ends", "xsmm", "at its destructor", 4);
  of("ends", "xsmm", "opened", 4);
  of("runs_late", "xsmm", NULL, 1);
}

int main(int count, char **words) {
  if (attune_device_get(&host, "host") != ATTUNE_OK) return 3;
  if (count > 1) return run_named(parts, AT_COUNT(parts), words[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(it_is_used),
      cmocka_unit_test(the_programs_copy_is_used),
      cmocka_unit_test(one_of_other_functions_is_none),
      cmocka_unit_test(forks_are_safe),
      cmocka_unit_test(the_end_is_safe),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
