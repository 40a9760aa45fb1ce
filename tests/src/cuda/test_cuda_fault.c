/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_fault.c: a kernel of the program writes where it must not; the first message that attune gives names that
 * fault, whichever call sees it. Each case is a process of its own, for the device is lost to it. */
#include <attune/attune.h>
#include <attune/graph.h>

#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

#include "src/cuda/jit/kernel_compile.h"
#include "tests/support/other_process.h"

static attune_device *device;
static attune_tuner *tuner;
static attune_stream *stream;
static attune_graph *graph;
static void *a, *b, *d;

/* The program's own kernel: attune knows nothing of it. */
static bool fault(void) {
  static const at_kernel_source source = {
      .file = "fault.cu", .text = "extern \"C\" __global__ void fault(int *p) { *p = 1; }", .entry = "fault"};
  at_architecture targets[2];
  at_kernel_code code;
  cudaLibrary_t library = NULL;
  cudaKernel_t kernel = NULL;
  attune_device_properties p = {0};
  if (attune_device_get_properties(device, &p) != ATTUNE_OK ||
      at_architectures(targets, p.capability_major * 10 + p.capability_minor) < 1 ||
      at_kernel_compile(&code, &source, &targets[0], NULL) != ATTUNE_OK ||
      cudaLibraryLoadData(&library, code.bytes, NULL, NULL, 0, NULL, NULL, 0) != cudaSuccess ||
      cudaLibraryGetKernel(&kernel, library, "fault") != cudaSuccess)
    return false;
  int *nowhere = (int *)(uintptr_t)64;
  void *arguments[] = {&nowhere};
  const dim3 one = {1, 1, 1};
  if (cudaLaunchKernel((const void *)kernel, one, one, arguments, 0, NULL) != cudaSuccess) return false;
  usleep(300000); /* it has run; nobody has asked */
  return true;
}

static attune_status multiply(attune_stream *on, int64_t k) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 64, .n = 64, .k = k};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  return attune_gemm(tuner, on, &p, &o);
}

static attune_status give_work(void *user, attune_stream *on) {
  (void)user;
  return multiply(on, 64);
}

/* What sees the fault first. */
static attune_status see(const char *how) {
  void *more = NULL;
  attune_stream *made = NULL;
  attune_event *event = NULL;
  attune_decision decision;
  if (strcmp(how, "product") == 0) return multiply(stream, 64);
  if (strcmp(how, "new-problem") == 0) return multiply(stream, 48);
  if (strcmp(how, "tune") == 0)
    return attune_tune(tuner, device, "gemm f32 nn 96x96x96 strict",
                       &(attune_tune_options){.budget_ms = 50.0, .force = 1}, &decision);
  if (strcmp(how, "alloc") == 0) return attune_alloc(&more, stream, (size_t)300 << 20);
  if (strcmp(how, "copy") == 0) return attune_copy(stream, d, a, 4096);
  if (strcmp(how, "synchronize") == 0) return attune_stream_synchronize(stream);
  if (strcmp(how, "query") == 0) return attune_stream_query(stream);
  if (strcmp(how, "stream") == 0) return attune_stream_create(&made, device);
  if (strcmp(how, "event") == 0) return attune_event_create(&event, device, NULL);
  if (strcmp(how, "program") == 0) return attune_cuda_check(device, (int)cudaDeviceSynchronize(), "the program's wait");
  if (strcmp(how, "replay") == 0) return attune_graph_replay(graph, stream);
  return ATTUNE_INTERNAL;
}

static const char *const ways[] = {"product", "new-problem", "tune",  "alloc",  "copy",   "synchronize",
                                   "query",   "stream",      "event", "replay", "program"};

static bool open_attune(void) {
  attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  return attune_tuner_create(&tuner, &options) == ATTUNE_OK && attune_stream_create(&stream, device) == ATTUNE_OK &&
         attune_alloc(&a, stream, 1 << 20) == ATTUNE_OK && attune_alloc(&b, stream, 1 << 20) == ATTUNE_OK &&
         attune_alloc(&d, stream, 1 << 20) == ATTUNE_OK && multiply(stream, 64) == ATTUNE_OK &&
         attune_graph_create(&graph, device) == ATTUNE_OK &&
         attune_graph_capture_callback(graph, stream, NULL, give_work, NULL) == ATTUNE_OK &&
         attune_stream_synchronize(stream) == ATTUNE_OK;
}

static bool child_says(const char *word) {
  if (strstr(attune_last_message(), word)) return true;
  printf("\"%s\" does not say \"%s\"\n", attune_last_message(), word);
  return false;
}

/* A call that was launched before the fault was noticed may succeed; the next one does not. */
static int run_case(const char *how) {
  if (!open_attune() || !fault()) {
    printf("%s: cannot be set up: %s\n", how, attune_last_message());
    return 2;
  }
  attune_status status = see(how);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  printf("%s: %s\n", how, attune_last_message());
  if (status != ATTUNE_DEVICE_ERROR || !child_says("cudaErrorIllegalAddress") || !child_says("earlier") ||
      !child_says("restart the process"))
    return 1;
  if (strstr(attune_last_message(), "CUBLAS_STATUS")) return 1;
  if (attune_last_status() != ATTUNE_DEVICE_ERROR || attune_last_cuda_error() != cudaErrorIllegalAddress) return 1;
  char first[512] = ""; /* "... earlier failed, and CALL is the first call to notice" */
  const char *from = strstr(attune_last_message(), "failed, and ");
  if (from) snprintf(first, sizeof first, "since %.*s reported", (int)strcspn(from + 12, " "), from + 12);
  if (strcmp(how, "program") == 0) snprintf(first, sizeof first, "since the program's wait reported");
  status = multiply(stream, 64); /* and every later call says so too */
  if (status != ATTUNE_DEVICE_ERROR || !child_says("cudaErrorIllegalAddress") || !child_says("restart the process") ||
      !child_says(first))
    return 1;
  attune_graph_destroy(graph);
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return 0;
}

static int run_self(const char *how) {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  assert_true(length > 0);
  self[length] = '\0';
  char *const arguments[] = {self, (char *)(uintptr_t) "--fault", (char *)(uintptr_t)how, NULL};
  pid_t child = 0;
  int status = 0;
  assert_int_equal(posix_spawn(&child, self, NULL, NULL, arguments, environ), 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(the_fault_is_named) {
  int failed = 0;
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    const int code = run_self(ways[i]);
    if (code != 0) printf("%s ended with %d\n", ways[i], code);
    failed += code != 0;
  }
  assert_int_equal(failed, 0);
}

int main(int argc, char **argv) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) return skip_all("no CUDA device");
  if (argc > 2 && strcmp(argv[1], "--fault") == 0) return run_case(argv[2]);
  return RUN_TESTS(NULL, NULL);
}
