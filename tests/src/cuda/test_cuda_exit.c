/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_exit.c: a process ends, in every way there is, while threads tune, multiply and evaluate expressions on
 * a GPU: it ends as asked and neither crashes nor hangs. The test runs itself again with the way as its argument.
 * ATTUNE_TEST_EXITS: how often each way; ATTUNE_TEST_WAY: this way only; ATTUNE_TEST_JOBS: so many at once. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/support.h"
#include "tests/support/folder.h"
#include "tests/support/gpu.h"

extern char **environ;

enum { SIZE = 1024, BYTES = 4 * SIZE * SIZE, JOBS_MOST = 64 };

/* ---- attune, linked in or opened at run time ---- */

#define CALLS(X)          \
  X(attune_device_get)    \
  X(attune_tuner_create)  \
  X(attune_stream_create) \
  X(attune_alloc)         \
  X(attune_gemm) X(attune_tune) X(attune_elementwise) X(attune_stream_synchronize) X(attune_last_message)
static struct {
#define DECLARE(name) __typeof__(&name) name;
  CALLS(DECLARE)
} api = {
#define LINKED(name) .name = name,
    CALLS(LINKED)};

static bool open_shared(void **library) {
  *library = dlopen(AT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
#define FIND(name)                                       \
  {                                                      \
    void *found = *library ? dlsym(*library, #name) : 0; \
    if (!found) return false;                            \
    memcpy(&api.name, &found, sizeof found);             \
  }
  CALLS(FIND)
  return true;
}

/* ---- what threads do until the end ---- */

static attune_device *device;
static attune_tuner *tuner;
static atomic_int at_work;

static attune_status tune(attune_stream *stream, void *memory, int turn) {
  static const int sizes[] = {4096, 1000, 512, 2048, 300};
  char text[80];
  (void)stream, (void)memory;
  const int n = sizes[turn % 5];
  snprintf(text, sizeof text, "gemm f32 nn %dx%dx%d strict", n + turn / 5, n, n);
  return api.attune_tune(tuner, device, text, &(attune_tune_options){.budget_ms = 2000.0, .force = 1}, NULL);
}

static attune_status multiply(attune_stream *stream, void *memory, int turn) {
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  char *at = memory;
  p.dtype = ATTUNE_F32;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldc = p.ldd = 64 + turn % 128 * 4; /* often one that is new */
  const attune_gemm_operands o = {.alpha = 1.0, .a = at, .b = at + BYTES, .d = at + 2 * BYTES};
  const attune_status status = api.attune_gemm(tuner, stream, &p, &o);
  return status == ATTUNE_OK && turn % 64 == 63 ? api.attune_stream_synchronize(stream) : status;
}

static attune_status evaluate(attune_stream *stream, void *memory, int turn) {
  char text[80];
  attune_tensor in = {"a", memory, ATTUNE_F32, 2, {SIZE, SIZE}, NULL};
  attune_tensor out = {NULL, (char *)memory + BYTES, ATTUNE_F32, 2, {SIZE, SIZE}, NULL};
  const attune_elementwise_operands o = {.outputs = &out, .output_count = 1, .inputs = &in, .input_count = 1};
  snprintf(text, sizeof text, "gelu(a + %d) * a", turn / 20); /* a new kernel each 20 turns */
  const attune_status status = api.attune_elementwise(tuner, stream, text, &o);
  return status == ATTUNE_OK && turn % 16 == 15 ? api.attune_stream_synchronize(stream) : status;
}

static attune_status (*const works[])(attune_stream *, void *, int) = {tune, multiply, evaluate};

/* A call that fails because the process ends is told so; any other failure is one. */
static void *work_on(void *arg) {
  const size_t which = (size_t)(uintptr_t)arg;
  attune_stream *stream = NULL;
  void *memory = NULL;
  if (api.attune_stream_create(&stream, device) != ATTUNE_OK ||
      api.attune_alloc(&memory, stream, 3 * BYTES) != ATTUNE_OK)
    _exit(20);
  for (int turn = 0;; turn++) {
    const attune_status status = works[which](stream, memory, turn);
    if (turn == 0) atomic_fetch_add(&at_work, 1);
    if (status == ATTUNE_OK) continue;
    const char *message = api.attune_last_message();
    if (strstr(message, "the process") == NULL) {
      fprintf(stderr, "a call failed: %s\n", message);
      if (!strstr(message, "Unloading") && !strstr(message, "deinitialized")) _exit(21);
    }
    usleep(1000);
  }
  return NULL;
}

/* ---- the ways ---- */

static pthread_t first, workers[AT_COUNT(works)];
static atomic_bool ending; /* the process has been asked to end */

static void wait_a_little(void) {
  usleep((useconds_t)((unsigned)getpid() * 2654435761u % 500000u));
}

static void *exit_elsewhere(void *unused) {
  wait_a_little();
  atomic_store(&ending, true);
  exit(0);
  return unused;
}

static void trace_here(int signal_number) {
  void *frames[48];
  (void)signal_number;
  backtrace_symbols_fd(frames, backtrace(frames, 48), 2);
  (void)!write(2, "\n", 1);
}

/* Where it crashed, and where the other threads were then, for the reader of the log. */
static void trace(int signal_number) {
  const char *when = atomic_load(&ending) ? "crashed while it ends:\n" : "crashed before it was asked to end:\n";
  (void)!write(2, when, strlen(when));
  trace_here(0);
  for (size_t i = 0; i <= AT_COUNT(works); i++) {
    const pthread_t other = i ? workers[i - 1] : first;
    if (!other || pthread_equal(other, pthread_self())) continue;
    (void)pthread_kill(other, SIGUSR2);
    usleep(200000);
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

static int end_by(const char *way) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  void *library = NULL;
  pthread_t thread;
  options.database = ":memory:";
  first = pthread_self();
  signal(SIGUSR2, trace_here);
  signal(SIGSEGV, trace);
  signal(SIGABRT, trace);
  alarm((unsigned)(100 * test_patience())); /* it hangs */
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (strcmp(way, "dlclose") == 0 && !open_shared(&library)) return 2;
  if (api.attune_device_get(&device, test_gpu()) != ATTUNE_OK || api.attune_tuner_create(&tuner, &options) != ATTUNE_OK)
    return 3;
  for (size_t i = 0; i < AT_COUNT(works); i++)
    if (pthread_create(&workers[i], NULL, work_on, (void *)(uintptr_t)i) != 0) return 4;
  while (atomic_load(&at_work) < 2) usleep(1000); /* the search of the first problem may still go on */
  if (strcmp(way, "elsewhere") == 0 || strcmp(way, "thread") == 0) {
    if (pthread_create(&thread, NULL, exit_elsewhere, NULL) != 0) return 4;
    if (strcmp(way, "thread") == 0) pthread_exit(NULL);
    for (;;) pause();
  }
  wait_a_little();
  atomic_store(&ending, true);
  if (library && dlclose(library) != 0) return 5;
  if (library) wait_a_little();
  if (strcmp(way, "quick_exit") == 0) quick_exit(0);
  if (strcmp(way, "_exit") == 0) _exit(0);
  if (strcmp(way, "exit") == 0) exit(0);
  return 0; /* "return", "dlclose" */
}

/* ---- the test ---- */

static char self[4096], folder[64];

/* Each has a run-time folder of its own: else those at once would wait for each other's turn on the device. */
static pid_t start(const char *way, int slot) {
  char run_time[128], *const arguments[] = {self, (char *)(uintptr_t)way, NULL};
  pid_t child = 0;
  snprintf(run_time, sizeof run_time, "%s/%d", folder, slot);
  (void)mkdir(run_time, 0700);
  setenv("XDG_RUNTIME_DIR", run_time, 1);
  assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
  return child;
}

static void end_many(const char *way, int times, int jobs) {
  pid_t running[JOBS_MOST] = {0};
  int failed = 0, begun = 0, ended = 0, last = 0;
  for (; begun < jobs && begun < times; begun++) running[begun] = start(way, begun);
  for (; ended < begun; ended++) {
    int status = 0, slot = 0;
    const pid_t child = wait(&status);
    while (slot < jobs && running[slot] != child) slot++;
    if (slot == jobs) fail_msg("a child that was not started ended");
    if (status != 0) failed++, last = status;
    if (begun < times) running[slot] = start(way, slot), begun++;
  }
  printf("%s: %d of %d ended as asked\n", way, times - failed, times);
  if (failed) fail_msg("%d of %d ends by %s failed; the last has wait status %#x", failed, times, way, (unsigned)last);
}

static int number(const char *name, int usual, int most) {
  const char *text = getenv(name);
  const int value = text ? atoi(text) : usual;
  return value < 1 ? 1 : value > most ? most : value;
}

TEST(ends_in_every_way) {
  static const char *const ways[] = {"return", "exit", "elsewhere", "thread", "dlclose", "quick_exit", "_exit"};
  const char *only = getenv("ATTUNE_TEST_WAY");
  for (size_t i = 0; i < AT_COUNT(ways); i++)
    if (!only || strcmp(only, ways[i]) == 0)
      end_many(ways[i], number("ATTUNE_TEST_EXITS", 3, 100000), number("ATTUNE_TEST_JOBS", 1, JOBS_MOST));
}

int main(int argc, char **argv) {
  if (argc > 1) return end_by(argv[1]);
  const char *temporary = getenv("TMPDIR");
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  int devices = 0;
  if (attune_cuda_count(&devices) != ATTUNE_OK || devices == 0) return skip_all("no CUDA device");
  snprintf(folder, sizeof folder, "%.40s/exitXXXXXX", temporary ? temporary : "/tmp");
  if (length < 0 || !mkdtemp(folder)) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  return folder_remove(folder) == 0 ? failed : 1;
}
