/* SPDX-License-Identifier: Apache-2.0
 * test_stack.c: calls from threads with little stack: they work, or say how much they need, and never crash; and
 * what is asked for is what the calls take, with something to spare. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <pthread.h>
#include <sys/mman.h>

#include <attune/attune.h>
#include <attune/tools.h>

#include "src/base/support.h"
#include "src/process/limit.h"

enum { SIZE = 64, PAINTED = 2 << 20, PAINT = 0xa5 };

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

/* On a painted stack it is seen how deep a call went. */
TEST(what_is_asked_for_is_enough) {
  for (size_t i = 0; i < AT_COUNT(calls); i++) {
    unsigned char *stack = mmap(NULL, PAINTED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    job j = {.run = calls[i].run};
    size_t unused = 0;
    assert_true(stack != MAP_FAILED);
    memset(stack, PAINT, PAINTED);
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstack(&attributes, stack, PAINTED), 0);
    run_on(&j, &attributes);
    while (stack[unused] == PAINT) unused++;
    const size_t took = (size_t)(j.frame - (const char *)stack) - unused;
    printf("%s took %.1f KiB of stack; %zu are asked for\n", calls[i].name, (double)took / 1024, calls[i].needs >> 10);
    if (j.status != ATTUNE_OK) fail_msg("%s: %s", calls[i].name, j.message);
    if (took > calls[i].needs) fail_msg("%s took %zu bytes; %zu are asked for", calls[i].name, took, calls[i].needs);
    munmap(stack, PAINTED);
  }
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
