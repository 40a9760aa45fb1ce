/* SPDX-License-Identifier: Apache-2.0
 * test_exit_vendor.c: the process ends while threads are inside libraries of vendors: none is met by the library's
 * end, and none comes in later. Needs no GPU: cuBLASLt and NVML are made ones that end the process when that happens
 * (fake_end.h), NVRTC is the toolkit's. The test runs itself again with the library and the way as its argument. */
#include "tests/support/check.h"

#include <attune/attune.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "ops/gemm/cublas/cublaslt.h"
#include "src/cuda/context/state.h"
#include "src/cuda/jit/kernel_compile.h"
#include "src/cuda/library/nvml.h"
#include "src/process/exit.h"
#include "src/process/fork.h"
#include "src/process/vendor.h"
#include "tests/support/child.h"

enum { THREADS = 3 };

/* A device of a machine without a driver: the runtime is asked only which one is current. */
cudaError_t __wrap_cudaGetDevice(int *out);
cudaError_t __wrap_cudaGetDevice(int *out) {
  *out = 0;
  return cudaSuccess;
}

static at_cuda_device state;
static attune_device device = {.state = &state, .name = "cuda:0"};
static atomic_int calls;

/* ---- what threads do, each as attune does it ---- */

static void search_once(void) {
  static _Thread_local at_configuration found[8];
  const at_gemm g = {.dtype = ATTUNE_F32,
                     .dtype_out = ATTUNE_F32,
                     .c = AT_C_NONE,
                     .m = 64,
                     .n = 64,
                     .k = 64,
                     .batch = 1,
                     .lda = 64,
                     .ldb = 64,
                     .ldc = 64,
                     .ldd = 64};
  (void)at_lt_search(&g, 0, &device, NULL, found, 8);
}

static void *nvml;
static void clock_once(void) {
  (void)at_nvml_clock(nvml);
}

static void compile_once(void) {
  const at_kernel_source source = {
      .file = "a.cu", .entry = "a", .text = "extern \"C\" __global__ void a(float *x) { x[0] = sqrtf(x[1]); }"};
  at_architecture target = {"compute_80"};
  at_kernel_code code;
  if (at_kernel_compile(&code, &source, &target, NULL) == ATTUNE_OK) at_kernel_code_free(&code);
}

/* Waits for a device for ever, as CUDA does: computing. */
static void wait_once(void) {
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return;
  at_vendor_wait_begin();
  atomic_fetch_add(&calls, 1);
  for (volatile bool never = true; never;) continue;
}

/* Waits for a device until exit() has given it up, and goes on in a call that it had begun. */
static atomic_bool kept_out;
static void wait_long(void) {
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) return;
  at_vendor_wait_begin();
  atomic_fetch_add(&calls, 1);
  while (!at_exit_begun()) usleep(1000);
  usleep(2000000);
  at_vendor_wait_end();
  if (at_vendor_enter(AT_VENDOR_LIBRARY)) _exit(24);
  at_vendor_leave();
  atomic_store(&kept_out, true);
  for (;;) pause();
}

static void wait_for_it(void) {
  for (int i = 0; i < 1000 && !atomic_load(&kept_out); i++) usleep(10000);
  if (!atomic_load(&kept_out)) _exit(25);
}

static void (*work)(void);

static void *work_on(void *unused) {
  for (;; atomic_fetch_add(&calls, 1)) work();
  return unused;
}

static void *exit_elsewhere(void *unused) {
  exit(0);
  return unused;
}

/* Asked for before anything is opened, so it comes last: what the thread that ends the process calls is kept from the
 * libraries too, but not from the driver. */
static void call_late(void) {
  work();
  if (!at_vendor_enter(AT_VENDOR_DRIVER)) _exit(21);
  if (at_vendor_enter(AT_VENDOR_LIBRARY)) _exit(22);
  if (!at_vendor_gone()) _exit(23);
  at_vendor_leave();
}

/* ---- the ways ---- */

static bool set_up(const char *library) {
  state.generation = at_fork_generation();
  if (strncmp(library, "nvrtc", 5) == 0) {
    work = compile_once;
    return at_nvrtc_open() == ATTUNE_OK;
  }
  if (strcmp(library, "waits") == 0) {
    work = wait_once;
    at_vendor_opened();
    return true;
  }
  if (strcmp(library, "waits_long") == 0) {
    work = wait_long;
    at_vendor_opened();
    return true;
  }
  if (strcmp(library, "cublaslt_opened") == 0) {
    at_exit_watch(); /* as at attune's first use */
    work = search_once;
    return true;
  }
  const bool is_nvml = strcmp(library, "nvml") == 0;
  if (!dlopen(is_nvml ? FAKES "/nvml/libnvidia-ml.so.1" : FAKES "/13/libcublas.so.13", RTLD_NOW | RTLD_LOCAL))
    return false;
  work = is_nvml ? clock_once : search_once;
  return !is_nvml || (nvml = at_nvml_device("0000:01:00.0")) != NULL;
}

static int end_by(const char *library, const char *way) {
  pthread_t thread;
  alarm(strcmp(library, "waits") == 0 ? 40 : 100); /* it hangs, or waits for who is inside */
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  if (strncmp(library, "waits", 5) != 0 && strcmp(library, "cublaslt_opened") != 0) atexit(call_late);
  if (strcmp(library, "waits_long") == 0) atexit(wait_for_it);
  if (!set_up(library)) return 2;
  const bool one = work == wait_once || work == wait_long;
  for (int i = 0; i < (one ? 1 : THREADS); i++)
    if (pthread_create(&thread, NULL, work_on, NULL) != 0) return 3;
  const bool opened = strcmp(library, "cublaslt_opened") == 0, first = opened || strcmp(library, "nvrtc_first") == 0;
  while (!first && atomic_load(&calls) < (one ? 1 : 20)) usleep(100);
  usleep((useconds_t)((unsigned)getpid() * 2654435761u % (opened ? 120000u : first ? 400000u : 3000u)));
  if (strcmp(way, "thread") == 0) {
    if (pthread_create(&thread, NULL, exit_elsewhere, NULL) != 0) return 3;
    pthread_exit(NULL);
  }
  if (strcmp(way, "quick_exit") == 0) quick_exit(0);
  if (strcmp(way, "exit") == 0) exit(0);
  return 0; /* "return" */
}

static void ends(const char *library, const char *end) {
  static const char *const ways[] = {"return", "exit", "thread", "quick_exit"};
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  if (end)
    setenv("FAKE_END", end, 1);
  else
    unsetenv("FAKE_END");
  const char *text = getenv("ATTUNE_TEST_EXITS");
  for (size_t i = 0; i < AT_COUNT(ways); i++)
    for (int j = 0; j < (text ? atoi(text) : strcmp(library, "nvrtc_first") == 0 ? 6 : 2); j++) {
      const int code = run_program((const char *const[]){self, library, ways[i], NULL}, NULL, 0);
      if (code != 0) fail_msg("end %d of %s by %s: exit code %d (-1: killed)", j, library, ways[i], code);
    }
}

TEST(cublaslt_is_left) {
  ends("cublaslt", "at its destructor");
  ends("cublaslt", "late");
}

/* The process ends between any two steps of a function's registration. */
TEST(cublaslt_is_left_while_it_registers) {
  for (int i = 0; i < 3; i++) ends("cublaslt", "often");
}

/* The process ends while the library is opened: what it registered by then is called before attune's function. */
TEST(cublaslt_is_left_while_it_is_opened) {
  setenv("LD_LIBRARY_PATH", FAKES "/13", 1);
  for (int i = 0; i < 3; i++) ends("cublaslt_opened", "opened");
  unsetenv("LD_LIBRARY_PATH");
}

/* ---- a library is unloaded ---- */

static void call_and_close(const char *path) {
  int (*call)(void *, int, unsigned *) = NULL;
  unsigned mhz;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, "nvmlDeviceGetClockInfo") : NULL;
  if (!found) _exit(31);
  memcpy(&call, &found, sizeof found);
  at_vendor_opened(); /* attune's own function goes into its table */
  for (int i = 0; i < 3; i++) call(NULL, 0, &mhz);
  if (dlclose(library) != 0 || dlopen(path, RTLD_NOW | RTLD_NOLOAD)) _exit(32);
}

static int lines_of(const char *path) {
  char line[16];
  int lines = 0;
  FILE *log = fopen(path, "r");
  while (log && fgets(line, sizeof line, log)) lines++;
  if (log) fclose(log);
  return lines;
}

/* Its function runs once, when the library goes, and attune goes on. */
static int unload(void) {
  const char *log = getenv("FAKE_END_LOG");
  for (int round = 1; round <= 3; round++) {
    call_and_close(FAKES "/nvml/libnvidia-ml.so.1");
    if (lines_of(log) != round) return 33;
    if (at_exit_begun() || !at_vendor_enter(AT_VENDOR_LIBRARY)) return 34;
    at_vendor_leave();
  }
  return 0;
}

TEST(a_library_is_unloaded) {
  char log[] = "/tmp/attune-unload-XXXXXX";
  close(mkstemp(log));
  setenv("FAKE_END_LOG", log, 1);
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  setenv("FAKE_END", "count", 1);
  assert_int_equal(run_program((const char *const[]){self, "unload", "return", NULL}, NULL, 0), 0);
  assert_int_equal(lines_of(log), 3);
  assert_int_equal(unlink(log), 0);
}

TEST(nvml_is_left) {
  ends("nvml", "at its destructor");
  ends("nvml", "late");
}

TEST(nvrtc_is_left) {
  ends("nvrtc", NULL);
}

/* In the first call a library registers most of its exit functions, and exit() would call those before attune's. */
TEST(nvrtc_is_left_in_its_first_call) {
  ends("nvrtc_first", NULL);
}

/* Threads that wait for a device for ever do not hold up the end. */
TEST(waits_are_cut) {
  ends("waits", NULL);
}

TEST(a_wait_that_was_given_up_stays_out) {
  ends("waits_long", NULL);
}

int main(int argc, char **argv) {
  device.backend = at_cuda_backend;
  if (argc > 2 && strcmp(argv[1], "unload") == 0) return unload();
  if (argc > 2) return end_by(argv[1], argv[2]);
  return RUN_TESTS(NULL, NULL);
}
