/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_compile.c: a stored winner whose kernel is not compiled on this machine yet: a program's calls run the
 * default until it is compiled beside them, or wait for it; `attune_tuner_warm` and the kernel cache spare them both.
 * Each step is a process of its own, as kernels stay in a process's memory. */
#include <attune/attune.h>
#include <attune/graph.h>
#include <attune/warm.h>

#include "tests/support/check.h"
#include "tests/support/folder.h"
#include "tests/support/gpu.h"
#include "tuning/store/decision.h"

#include <math.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ops/gemm/problem/problem.h"
#include "src/cuda/jit/jit.h"
#include "tests/support/other_process.h"
#include "tuning/store/fingerprint.h"
#include "tuning/tuner/tuner.h"
#include "tuning/tuner/winner.h"

enum { SIZE = 16, BATCH = 64, COUNT = SIZE * SIZE * BATCH, CALLERS = 6, CALLS = 200 };

static const char WINNER[] = "sm80_batched_smem";
static attune_device *device;
static attune_tuner *tuner;
static char folder[64];

static attune_gemm_problem problem(void) {
  return (attune_gemm_problem){.dtype = ATTUNE_F32, .m = SIZE, .n = SIZE, .k = SIZE, .batch = BATCH};
}

/* ---- what a step does, in its process; each says with a number what failed ---- */

typedef struct caller {
  attune_stream *stream;
  void *memory[3];
  float *host, *expected;
  int failed;
} caller;

static float number(int i) {
  return (float)((i * 7919 + 13) % 17 - 8) * 0.25f;
}

static int open_caller(caller *c) {
  c->host = calloc(COUNT, sizeof *c->host);
  c->expected = calloc(COUNT, sizeof *c->expected);
  if (!c->host || !c->expected || attune_stream_create(&c->stream, device) != ATTUNE_OK) return 1;
  for (int i = 0; i < COUNT; i++) c->host[i] = number(i);
  for (int b = 0; b < BATCH; b++)
    for (int j = 0; j < SIZE; j++)
      for (int i = 0; i < SIZE; i++)
        for (int k = 0; k < SIZE; k++)
          c->expected[b * SIZE * SIZE + j * SIZE + i] +=
              c->host[b * SIZE * SIZE + k * SIZE + i] * c->host[b * SIZE * SIZE + j * SIZE + k];
  for (int i = 0; i < 3; i++)
    if (attune_alloc(&c->memory[i], c->stream, COUNT * sizeof(float)) != ATTUNE_OK ||
        attune_copy(c->stream, c->memory[i], c->host, COUNT * sizeof(float)) != ATTUNE_OK)
      return 1;
  return attune_stream_synchronize(c->stream) != ATTUNE_OK;
}

static attune_status multiply(const caller *c, attune_stream *on) {
  const attune_gemm_problem p = problem();
  const attune_gemm_operands o = {.alpha = 1.0, .a = c->memory[0], .b = c->memory[1], .d = c->memory[2]};
  return attune_gemm(tuner, on, &p, &o);
}

/* The numbers are small multiples of 1/16: every order of summation is exact. */
static bool right(const caller *c) {
  if (attune_copy(c->stream, c->host, c->memory[2], COUNT * sizeof(float)) != ATTUNE_OK ||
      attune_stream_synchronize(c->stream) != ATTUNE_OK)
    return false;
  return memcmp(c->host, c->expected, COUNT * sizeof(float)) == 0;
}

static bool clear(const caller *c) {
  return attune_fill(c->stream, c->memory[2], 0xFF, COUNT * sizeof(float)) == ATTUNE_OK;
}

static bool call_is_right(const caller *c) {
  return clear(c) && multiply(c, c->stream) == ATTUNE_OK && right(c);
}

static bool text_of(char out[256], const caller *c) {
  const attune_gemm_problem p = problem();
  const attune_gemm_operands o = {.alpha = 1.0, .a = c->memory[0], .b = c->memory[1], .d = c->memory[2]};
  return attune_gemm_problem_format(out, 256, &p, &o) == ATTUNE_OK;
}

static bool runs(const caller *c, const char *implementation, attune_decision *decision) {
  char text[256];
  return text_of(text, c) && attune_explain(tuner, device, text, decision) == ATTUNE_OK &&
         (strcmp(decision->implementation, WINNER) == 0) == (strcmp(implementation, WINNER) == 0);
}

static uint64_t compiled(void) {
  at_jit_counts counts;
  at_jit_get_counts(&counts);
  return counts.compiled;
}

/* A database with WINNER as the problem's, as tuning would have stored it. */
static int store(const caller *c) {
  static char text[256], fingerprint[AT_FINGERPRINT_CHARS], family[AT_FAMILY_CHARS];
  static uint64_t words[AT_PROBLEM_BYTES / 8];
  const at_op *op = &at_gemm_op;
  const at_implementation *implementation = at_registry_find(op, WINNER, device);
  attune_decision d;
  at_configuration configuration;
  if (!text_of(text, c) || op->problem->parse(text, words) != ATTUNE_OK || !implementation) return 2;
  op->problem->fold(words, device);
  if (!implementation->supports(implementation, words, device) ||
      implementation->configurations(implementation, words, device, &configuration, 1) < 1)
    return 77;
  if (at_decision_begin(tuner, op, words, device, &d) != ATTUNE_OK) return 3;
  snprintf(d.implementation, sizeof d.implementation, "%s", WINNER);
  snprintf(d.configuration, sizeof d.configuration, "%s", configuration.text);
  d.implementation_version = implementation->version;
  snprintf(d.default_implementation, sizeof d.default_implementation, "cublas");
  d.time_ns = 1000.0;
  d.default_time_ns = 3000.0;
  d.samples = 12;
  d.complete = 1;
  d.source = ATTUNE_SOURCE_TUNED;
  d.tuned_at = (int64_t)time(NULL);
  if (op->problem->family(words, family, sizeof family) != ATTUNE_OK ||
      at_fingerprint_whole(device, &op, 1, fingerprint, sizeof fingerprint) != ATTUNE_OK)
    return 4;
  return at_store_put(tuner->user, fingerprint, family, &d, NULL, 0, 5000) == ATTUNE_OK ? 0 : 5;
}

/* The first call comes back with the default's result, a later one runs the winner; both are right. */
static int in_background(const caller *c) {
  attune_decision d;
  if (!call_is_right(c)) return 2;
  if (attune_tuner_compiling(tuner, 1) != 0) return 3;
  if (compiled() != 1) return 4;
  if (!runs(c, WINNER, &d) || d.source != ATTUNE_SOURCE_STORED) return 5;
  return call_is_right(c) ? 0 : 6;
}

/* That the default ran is seen where the compiler cannot be done: the first call is given with nothing waited for, and
 * explain, which is asked at once, names the default unless the compiler was faster than one call. */
static int default_first(const caller *c) {
  attune_decision d;
  if (!clear(c) || multiply(c, c->stream) != ATTUNE_OK) return 2;
  const bool by_default = runs(c, "cublas", &d);
  if (by_default && !strstr(d.note, "until the winner's kernel is compiled")) return 3;
  if (!by_default && attune_tuner_compiling(tuner, 0) != 0) return 4;
  if (!right(c)) return 5;
  (void)attune_tuner_compiling(tuner, 1);
  return runs(c, WINNER, &d) && call_is_right(c) ? 0 : 6;
}

static int waits(const caller *c) {
  attune_decision d;
  if (!call_is_right(c)) return 2;
  if (compiled() != 1 || attune_tuner_compiling(tuner, 0) != 0) return 3;
  return runs(c, WINNER, &d) && d.source == ATTUNE_SOURCE_STORED ? 0 : 4;
}

/* The kernel is in the cache: the first call runs the winner, and no compiler. */
static int at_once(const caller *c) {
  attune_decision d;
  if (!call_is_right(c)) return 2;
  if (attune_tuner_compiling(tuner, 0) != 0 || compiled() != 0) return 3;
  return runs(c, WINNER, &d) && d.source == ATTUNE_SOURCE_STORED ? 0 : 4;
}

static int warm(const caller *c) {
  attune_warmed first = {0}, again = {0};
  (void)c;
  if (attune_tuner_warm(tuner, device, NULL, 0, NULL, NULL, &first) != ATTUNE_OK) return 2;
  if (first.compiled != 1 || first.there || first.failed || compiled() != 1) return 3;
  if (attune_tuner_warm(tuner, device, NULL, 0, NULL, NULL, &again) != ATTUNE_OK) return 4;
  return again.there == 1 && !again.compiled && !again.failed ? 0 : 5;
}

/* A graph keeps what was captured: it waits for the winner. */
static int in_capture(const caller *c) {
  attune_graph *graph = NULL;
  attune_decision d;
  if (attune_graph_create(&graph, device) != ATTUNE_OK ||
      attune_graph_capture_begin(graph, c->stream, NULL) != ATTUNE_OK)
    return 2;
  if (multiply(c, c->stream) != ATTUNE_OK) return 3;
  if (attune_graph_capture_end(graph, c->stream) != ATTUNE_OK) return 4;
  if (compiled() != 1 || !runs(c, WINNER, &d)) return 5;
  for (int i = 0; i < 3; i++)
    if (!clear(c) || attune_graph_replay(graph, c->stream) != ATTUNE_OK || !right(c)) return 6;
  attune_graph_destroy(graph);
  return 0;
}

static void *call_often(void *pointer) {
  caller *c = pointer;
  for (int i = 0; i < CALLS && !c->failed; i++) c->failed = !call_is_right(c);
  return NULL;
}

/* Threads call from before the compiler begins until after it is done. */
static int many_threads(const caller *c) {
  static caller callers[CALLERS];
  pthread_t threads[CALLERS];
  attune_decision d;
  for (int i = 0; i < CALLERS; i++)
    if (open_caller(&callers[i])) return 2;
  for (int i = 0; i < CALLERS; i++)
    if (pthread_create(&threads[i], NULL, call_often, &callers[i])) return 3;
  for (int i = 0; i < CALLERS; i++) (void)pthread_join(threads[i], NULL);
  for (int i = 0; i < CALLERS; i++)
    if (callers[i].failed) return 4;
  (void)attune_tuner_compiling(tuner, 1);
  return compiled() == 1 && runs(c, WINNER, &d) && call_is_right(c) ? 0 : 5;
}

/* The tuner goes while its winner is being compiled. */
static int destroyed_meanwhile(const caller *c) {
  return call_is_right(c) ? 0 : 2;
}

typedef struct step {
  const char *name;
  int (*run)(const caller *c);
} step;
static const step STEPS[] = {{"store", store},        {"background", in_background}, {"default-first", default_first},
                             {"wait", waits},         {"at-once", at_once},          {"warm", warm},
                             {"capture", in_capture}, {"threads", many_threads},     {"destroy", destroyed_meanwhile}};

static int run_step(const char *name) {
  static caller c;
  attune_tuner_options options = {.mode = ATTUNE_MODE_CACHED};
  if (open_caller(&c) || attune_tuner_create(&tuner, &options) != ATTUNE_OK) return 1;
  for (size_t i = 0; i < AT_COUNT(STEPS); i++) {
    if (strcmp(name, STEPS[i].name) != 0) continue;
    const int code = STEPS[i].run(&c);
    attune_tuner_destroy(tuner);
    if (code && code != 77) fprintf(stderr, "%s: %d, %s\n", name, code, attune_last_message());
    return code;
  }
  return 9;
}

/* ---- the test's own process ---- */

static int code_of(const char *name) {
  int end = 0;
  const pid_t child = start_other(name, NULL, NULL);
  assert_int_equal(waitpid(child, &end, 0), child);
  return WIFEXITED(end) ? WEXITSTATUS(end) : 128 + WTERMSIG(end);
}

/* With a kernel cache of its own, empty at first. */
static void use_cache(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(setenv("ATTUNE_CACHE_DIR", path, 1), 0);
}

TEST(calls_run_the_default_until_the_winner_is_compiled) {
  use_cache("background");
  assert_int_equal(code_of("background"), 0);
  assert_int_equal(code_of("at-once"), 0); /* it is in the cache now */
  use_cache("default-first");
  assert_int_equal(code_of("default-first"), 0);
}

TEST(calls_wait_where_that_is_asked) {
  use_cache("wait");
  assert_int_equal(setenv("ATTUNE_COMPILE", "wait", 1), 0);
  assert_int_equal(code_of("wait"), 0);
  assert_int_equal(unsetenv("ATTUNE_COMPILE"), 0);
  assert_int_equal(code_of("at-once"), 0);
}

TEST(what_was_warmed_runs_at_once) {
  use_cache("warm");
  assert_int_equal(code_of("warm"), 0);
  assert_int_equal(code_of("at-once"), 0);
}

TEST(a_capture_waits) {
  use_cache("capture");
  assert_int_equal(code_of("capture"), 0);
}

TEST(threads_call_meanwhile) {
  use_cache("threads");
  assert_int_equal(code_of("threads"), 0);
}

TEST(a_tuner_may_go_meanwhile) {
  use_cache("destroy");
  assert_int_equal(code_of("destroy"), 0);
}

int main(int argc, char **argv) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  if (argc > 2) return run_step(argv[1]);
  char path[96];
  snprintf(folder, sizeof folder, "/tmp/attune-compile-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  snprintf(path, sizeof path, "%s/winner.db", folder);
  setenv("ATTUNE_DB", path, 1);
  unsetenv("ATTUNE_COMPILE");
  unsetenv("ATTUNE_MODE");
  const int stored = code_of("store");
  if (stored == 77) puts("skipped: the device has no such kernels");
  const int failed = stored ? stored : RUN_TESTS(NULL, NULL);
  if (folder_remove(folder) != 0) puts("its folder stays");
  return failed;
}
