/* SPDX-License-Identifier: Apache-2.0
 * test_exit.c: a process ends, in every way there is, while products are in flight: it ends as asked, at once, and
 * neither hangs nor crashes, with each CBLAS. The test runs itself again with the way as its argument.
 * ATTUNE_TEST_EXITS: how often each; ATTUNE_TEST_WAY: this way only. */
#include "tests/support/check.h"

#include "src/host/host.h"
#include "tests/src/process/without_blas.h"

#include <attune/attune.h>

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { SIZE = 300, PRODUCTS = 60, LARGE = 700, CALLERS = 2 };

static char self[4096];
static attune_device *host;
static attune_tuner *tuner;
static attune_stream *stream;
static double *a, *b, *c[CALLERS + 1];

static attune_gemm_problem square(int64_t n) {
  return (attune_gemm_problem){.dtype = ATTUNE_F64, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n, .ldd = n};
}

static attune_status multiply(attune_stream *on, int64_t n, double *out) {
  const attune_gemm_problem p = square(n);
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = out};
  return attune_gemm(tuner, on, &p, &o);
}

static bool set_up(void) {
  attune_tuner_options options = {.database = ":memory:", .mode = ATTUNE_MODE_CACHED};
  a = malloc(sizeof *a * LARGE * LARGE);
  b = malloc(sizeof *b * LARGE * LARGE);
  for (int i = 0; i <= CALLERS; i++) c[i] = calloc(LARGE * LARGE, sizeof **c);
  for (int i = 0; i < LARGE * LARGE; i++) a[i] = b[i] = 1.0;
  return attune_device_get(&host, "host") == ATTUNE_OK && attune_tuner_create(&tuner, &options) == ATTUNE_OK &&
         attune_stream_create(&stream, host) == ATTUNE_OK;
}

static bool fill_stream(void) {
  for (int i = 0; i < PRODUCTS; i++)
    if (multiply(stream, SIZE, c[CALLERS]) != ATTUNE_OK) return false;
  return true;
}

static atomic_int at_work;

static void *call_on(void *arg) {
  for (int calls = 0; multiply(attune_stream_default(host), LARGE, arg) == ATTUNE_OK; calls++)
    if (calls == 0) atomic_fetch_add(&at_work, 1);
  fprintf(stderr, "a call failed: %s\n", attune_last_message());
  _exit(8);
}

static void *tune_on(void *arg) {
  (void)arg;
  atomic_fetch_add(&at_work, 1);
  for (int n = 100;; n++) {
    char text[64];
    snprintf(text, sizeof text, "gemm f64 nn %dx%dx%d strict", n, n, n);
    if (attune_tune(tuner, host, text, &(attune_tune_options){.budget_ms = 200.0, .force = 1}, NULL) != ATTUNE_OK)
      fprintf(stderr, "%s\n", attune_last_message());
  }
  return NULL;
}

static bool start(int count, void *(*run)(void *)) {
  for (int i = 0; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, c[i]) != 0) return false;
  }
  while (atomic_load(&at_work) < count) usleep(100);
  return true;
}

/* A moment that is another one in each process. */
static void wait_a_little(void) {
  usleep((useconds_t)((unsigned)getpid() * 2654435761u % 3000u));
}

static void exit_here(const void *args) {
  (void)args;
  exit(0);
}

static void never_ends(const void *args) {
  (void)args;
  for (;;) pause();
}

static void *exit_elsewhere(void *arg) {
  (void)arg;
  wait_a_little();
  exit(0);
}

/* Runs after attune's own function of exit(): products are still right, also those of the stream. */
static bool late;
static void multiply_late(void) {
  if (!late) return;
  if (multiply(attune_stream_default(host), SIZE, c[0]) != ATTUNE_OK || multiply(stream, SIZE, c[1]) != ATTUNE_OK ||
      attune_stream_synchronize(stream) != ATTUNE_OK)
    _exit(9);
  for (int i = 0; i < SIZE * SIZE; i++)
    if (c[0][i] != SIZE || c[1][i] != SIZE) _exit(10);
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
}

__attribute__((destructor)) static void multiply_last(void) {
  if (!late) return;
  if (attune_tuner_create(&tuner, &(attune_tuner_options){.database = ":memory:"}) != ATTUNE_OK) _exit(11);
  if (multiply(attune_stream_default(host), SIZE, c[0]) != ATTUNE_OK || c[0][7] != SIZE) _exit(12);
  attune_tuner_destroy(tuner);
}

/* ---- attune as a library that is opened and closed at run time ---- */

#define CALL(name) __typeof__(&name) name##_
static struct {
  CALL(attune_device_get);
  CALL(attune_tuner_create);
  CALL(attune_stream_create);
  CALL(attune_gemm);
} opened;

static bool find(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int close_library(void) {
  void *library = dlopen(AT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  const attune_gemm_problem p = square(SIZE);
  options.database = ":memory:";
  if (!library || !find(library, "attune_device_get", &opened.attune_device_get_) ||
      !find(library, "attune_tuner_create", &opened.attune_tuner_create_) ||
      !find(library, "attune_stream_create", &opened.attune_stream_create_) ||
      !find(library, "attune_gemm", &opened.attune_gemm_))
    return 13;
  a = malloc(sizeof *a * SIZE * SIZE);
  b = malloc(sizeof *b * SIZE * SIZE);
  c[0] = malloc(sizeof *b * SIZE * SIZE);
  for (int i = 0; i < SIZE * SIZE; i++) a[i] = b[i] = 1.0;
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = c[0]};
  if (opened.attune_device_get_(&host, "host") != ATTUNE_OK ||
      opened.attune_tuner_create_(&tuner, &options) != ATTUNE_OK ||
      opened.attune_stream_create_(&stream, host) != ATTUNE_OK)
    return 14;
  for (int i = 0; i < PRODUCTS; i++)
    if (opened.attune_gemm_(tuner, stream, &p, &o) != ATTUNE_OK) return 15;
  if (dlclose(library) != 0) return 16;
  wait_a_little();
  return 0;
}

/* With a plug-in that attune is linked into. */
static int close_plugin(void) {
  int (*start_plugin)(int, int) = NULL;
  void *plugin = dlopen(AT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (!plugin || !find(plugin, "exit_plugin_start", &start_plugin)) return 18;
  if (start_plugin(SIZE, PRODUCTS) != 0) return 19;
  if (dlclose(plugin) != 0) return 20;
  wait_a_little();
  return 0;
}

/* ---- the ways ---- */

static int end_by(const char *way) {
#define IS(name) (strcmp(way, name) == 0)
  alarm(600); /* it hangs */
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (IS("dlclose")) return close_library();
  if (IS("plugin")) return close_plugin();
  late = IS("late");
  atexit(multiply_late);
  if (!set_up()) return 2;
  if (IS("tune")) return start(1, tune_on) ? wait_a_little(), 0 : 3;
  if (IS("callers")) return start(CALLERS, call_on) ? wait_a_little(), 0 : 3;
  if (IS("stuck")) return at_host_submit(stream, never_ends, NULL, 0) == ATTUNE_OK && fill_stream() ? 0 : 4;
  if (IS("elsewhere")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_elsewhere, NULL) != 0) return 3;
    call_on(c[0]);
  }
  if (!fill_stream()) return 5;
  if (IS("callback")) {
    if (at_host_submit(stream, exit_here, NULL, 0) != ATTUNE_OK) return 6;
    for (;;) pause();
  }
  if (IS("thread")) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, exit_elsewhere, NULL) != 0) return 3;
    pthread_exit(NULL);
  }
  if (IS("child")) {
    wait_a_little();
    const pid_t child = fork();
    int status = 1;
    if (child == 0) exit(multiply(attune_stream_default(host), SIZE, c[0]) == ATTUNE_OK && c[0][3] == SIZE ? 0 : 7);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return 17;
  }
  if (IS("quick_exit")) quick_exit(0);
  if (IS("_exit")) _exit(0);
  if (IS("abort")) abort();
  return 0; /* "return", "child", "late" */
}

static int end_of(const char *way) {
  char *const arguments[] = {self, (char *)(uintptr_t)way, NULL};
  pid_t child = 0;
  int status = 0;
  assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static int times(void) {
  const char *text = getenv("ATTUNE_TEST_EXITS");
  return text ? atoi(text) : 1;
}

static const char *const ways[] = {"return", "callers", "elsewhere", "thread", "callback",   "child", "late",
                                   "stuck",  "tune",    "dlclose",   "plugin", "quick_exit", "_exit"};

static void end_in_every_way(void) {
  const char *only = getenv("ATTUNE_TEST_WAY");
  for (size_t i = 0; i < AT_COUNT(ways); i++) {
    if (only && strcmp(only, ways[i]) != 0) continue;
    for (int j = 0; j < times(); j++) {
      const int status = end_of(ways[i]);
      if (status != 0) fail_msg("end %d by %s has wait status %#x", j, ways[i], (unsigned)status);
    }
  }
}

TEST(ends_with_openblas) {
  setenv("ATTUNE_TEST_WITHOUT", "blis", 1);
  end_in_every_way();
}

TEST(ends_with_blis) {
  setenv("ATTUNE_TEST_WITHOUT", "openblas", 1);
  end_in_every_way();
}

TEST(aborts) {
  const int status = end_of("abort");
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(int argc, char **argv) {
  if (argc > 1) return end_by(argv[1]);
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length < 0) return 1;
  return RUN_TESTS(NULL, NULL);
}
