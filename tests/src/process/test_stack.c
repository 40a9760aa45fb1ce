/* SPDX-License-Identifier: Apache-2.0
 * test_stack.c: calls from threads with little stack: they work, or say how much they need, and never crash; and
 * what is asked for is what the calls take, with something to spare. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <attune/attune.h>
#include <attune/tools.h>

#include "src/base/support.h"
#include "src/host/cpu_count.h"
#include "src/process/limit.h"

enum { SIZE = 64, PAINTED = 2 << 20, PAINT = 0xa5, UNCHECKED = 16 << 10 };

static attune_device *host;
static attune_tuner *tuner;
static float a[SIZE * SIZE], b[SIZE * SIZE], d[SIZE * SIZE];
static int turn; /* so that each problem is a new one */

/* ---- the calls ---- */

static attune_status multiply(void) {
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  p.dtype = ATTUNE_F32;
  p.m = p.n = p.k = p.lda = p.ldb = p.ldd = 20 + turn++ % 40;
  return attune_gemm(tuner, attune_stream_default(host), &p, &o);
}

static attune_status evaluate(void) {
  char text[64];
  attune_tensor in = {"a", a, ATTUNE_F32, 2, {SIZE, SIZE}, NULL}, out = {NULL, b, ATTUNE_F32, 2, {SIZE, SIZE}, NULL};
  const attune_elementwise_operands o = {.outputs = &out, .output_count = 1, .inputs = &in, .input_count = 1};
  snprintf(text, sizeof text, "gelu(a + %d) * exp(a)", turn++);
  return attune_elementwise(tuner, attune_stream_default(host), text, &o);
}

static attune_status tune_text(const char *format) {
  char text[96];
  snprintf(text, sizeof text, format, 20 + turn++);
  return attune_tune(tuner, host, text, &(attune_tune_options){.budget_ms = 20.0, .force = 1}, NULL);
}

static attune_status tune_product(void) {
  return tune_text("gemm f64 nn %dx300x300 strict");
}

static attune_status tune_expression(void) {
  return tune_text("elementwise %d strict out=f32 : f32 i0: gelu(i0 + 1)");
}

static attune_status verify(void) {
  static attune_recheck found;
  const attune_status status = attune_verify(tuner, host, "gemm f32 nn 48x48x48 strict", 20.0, NULL, &found);
  return status == ATTUNE_NOT_FOUND ? ATTUNE_OK : status; /* none may be stored */
}

static attune_status explain(void) {
  static attune_decision found;
  return attune_explain(tuner, host, "gemm f32 nn 48x48x48 strict", &found);
}

static const struct {
  attune_status (*run)(void);
  const char *name;
  size_t needs;
} calls[] = {{multiply, "a product", AT_STACK_CALL},
             {evaluate, "an expression", AT_STACK_EXPRESSION},
             {tune_product, "tuning a product", AT_STACK_TUNE},
             {tune_expression, "tuning an expression", AT_STACK_TUNE},
             {verify, "verifying", AT_STACK_TUNE},
             {explain, "explaining", AT_STACK_CALL}};

/* ---- threads ---- */

typedef struct job {
  attune_status (*run)(void);
  attune_status status;
  const char *frame; /* where the call began */
  char message[512];
} job;

static void *run_job(void *arg) {
  job *j = arg;
  j->frame = __builtin_frame_address(0);
  j->status = j->run();
  if (j->status != ATTUNE_OK) snprintf(j->message, sizeof j->message, "%s", attune_last_message());
  return NULL;
}

static void run_on(job *j, pthread_attr_t *attributes) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, attributes, run_job, j), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(attributes);
}

TEST(small_stacks_are_told) {
  int refused = 0, worked = 0;
  for (size_t i = 0; i < AT_COUNT(calls); i++)
    for (size_t kib = 32; kib <= 256; kib += kib < 128 ? 16 : 128) {
      pthread_attr_t attributes;
      job j = {.run = calls[i].run};
      pthread_attr_init(&attributes);
      assert_int_equal(pthread_attr_setstacksize(&attributes, kib << 10), 0);
      run_on(&j, &attributes);
      const bool told = j.status == ATTUNE_OUT_OF_MEMORY && strstr(j.message, "of stack") != NULL;
      if (j.status != ATTUNE_OK && !told) fail_msg("%s with %zu KiB: %s", calls[i].name, kib, j.message);
      if (kib == 256 && told) fail_msg("%s is refused with 256 KiB: %s", calls[i].name, j.message);
      refused += told;
      worked += !told;
    }
  assert_true(refused >= (int)AT_COUNT(calls) && worked >= (int)AT_COUNT(calls));
}

/* Bytes of stack that the call takes: how deep it went is seen on a painted stack. */
static size_t taken(attune_status (*run)(void), const char *name) {
  unsigned char *stack = mmap(NULL, PAINTED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_attr_t attributes;
  job j = {.run = run};
  size_t unused = 0;
  assert_true(stack != MAP_FAILED);
  memset(stack, PAINT, PAINTED);
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstack(&attributes, stack, PAINTED), 0);
  run_on(&j, &attributes);
  while (stack[unused] == PAINT) unused++;
  const size_t took = (size_t)(j.frame - (const char *)stack) - unused;
  if (j.status != ATTUNE_OK) fail_msg("%s: %s", name, j.message);
  munmap(stack, PAINTED);
  return took;
}

static void check_need(attune_status (*run)(void), const char *name, size_t needs) {
  const size_t took = taken(run, name);
  printf("%s took %.1f KiB of stack; %zu are asked for\n", name, (double)took / 1024, needs >> 10);
  if (took > needs) fail_msg("%s took %zu bytes; %zu are asked for", name, took, needs);
}

TEST(what_is_asked_for_is_enough) {
  for (size_t i = 0; i < AT_COUNT(calls); i++) check_need(calls[i].run, calls[i].name, calls[i].needs);
}

/* ---- calls that check nothing: docs/limits.md says what they need ---- */

static attune_status find_devices(void) {
  return at_cgroup_quota("/sys/fs/cgroup", "/proc/self/cgroup") >= 0.0 ? attune_device_get(&host, "host")
                                                                       : ATTUNE_INTERNAL;
}

static attune_status open_tuner(void) {
  char path[] = "/tmp/attune-test-stack-XXXXXX";
  attune_tuner *other = NULL;
  if (!mkdtemp(path)) return ATTUNE_IO_ERROR;
  char file[64];
  snprintf(file, sizeof file, "%s/tune.db", path);
  const attune_status status = attune_tuner_create(&other, &(attune_tuner_options){.database = file});
  attune_tuner_destroy(other);
  (void)unlink(file);
  (void)rmdir(path);
  return status;
}

static attune_status use_memory(void) {
  attune_stream *stream = NULL;
  void *p = NULL;
  attune_status status = attune_stream_create(&stream, host);
  if (status == ATTUNE_OK) status = attune_alloc(&p, stream, (size_t)3 << 20);
  if (status == ATTUNE_OK) status = attune_fill(stream, p, 0, 4096);
  if (status == ATTUNE_OK) status = attune_free(p, stream);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  attune_stream_destroy(stream);
  return status;
}

static attune_status read_workload(void) {
  attune_workload *workload = NULL;
  const attune_status status = attune_workload_read(&workload, AT_SOURCE_DIR "/bench/workloads/host.csv");
  attune_workload_destroy(workload);
  return status;
}

TEST(other_calls_need_little) {
  check_need(find_devices, "finding devices", UNCHECKED);
  check_need(open_tuner, "opening a tuner", UNCHECKED);
  check_need(use_memory, "memory and streams", UNCHECKED);
  check_need(read_workload, "reading a workload", UNCHECKED);
}

int main(void) {
  attune_tuner_options options = {.database = ":memory:"};
  if (attune_device_get(&host, "host") != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK ||
      attune_tune(tuner, host, "gemm f32 nn 48x48x48 strict", &(attune_tune_options){.budget_ms = 200.0}, NULL) !=
          ATTUNE_OK)
    return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
