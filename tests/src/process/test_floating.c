/* SPDX-License-Identifier: Apache-2.0
 * test_floating.c: a program that flushes denormals and rounds up before it first calls attune gets from streams,
 * teams and tuned winners the bits that another program gets: attune's threads have the default environment, and so
 * have libraries that attune opens and all that outlasts a call. What runs alone in the program's own thread obeys
 * that thread, whose environment every call leaves as it was. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <fenv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <attune/attune.h>

#include "ops/gemm/problem/problem.h"
#include "src/host/cpu_capacity.h"
#include "src/host/threads.h"
#include "src/process/floating.h"
#include "tuning/op/registry.h"

enum { M = 96, N = 80, K = 64, ELEMENTS = 4096, CONFIGURATIONS = 512, RESULTS = 600, TEXT = 512 };

typedef struct result {
  char what[256];
  uint64_t hash;
} result;

/* Result of a process, in memory shared with its parent. */
typedef struct report {
  result results[RESULTS];
  int count, teams;
  bool kept, flushed, shares_usual, verified, done;
  char constant[TEXT], implementation[32], configuration[192];
  float winner[M * N];
} report;

static report *reports; /* 0: of the usual environment, 1: of the other */

static float a[M * K] __attribute__((aligned(128))), b[K * N] __attribute__((aligned(128))),
    d[M * N] __attribute__((aligned(128)));
static float x[ELEMENTS] __attribute__((aligned(128))), y[ELEMENTS] __attribute__((aligned(128)));

/* Numbers whose sums are inexact, and every third row of A so small that its products are denormal. */
static void fill(void) {
  uint32_t s = 12345;
  for (int i = 0; i < M * K; i++) {
    s = s * 1664525u + 1013904223u;
    a[i] = (float)(s >> 8) * 0x1p-24f - 0.4f;
    if (i % M % 3 == 0) a[i] *= 0x1p-126f;
  }
  for (int i = 0; i < K * N; i++) {
    s = s * 1664525u + 1013904223u;
    b[i] = (float)(s >> 8) * 0x1p-24f - 0.3f;
  }
  for (int i = 0; i < ELEMENTS; i++) x[i] = i % 3 ? (float)i / 7.0f : (float)i * 0x1p-140f;
}

#if defined(__aarch64__)
static uint64_t control(void) {
  uint64_t bits;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
#elif defined(__x86_64__)
static uint64_t control(void) {
  return _mm_getcsr() & 0xffc0u;
}
#else
static uint64_t control(void) {
  return (uint64_t)fegetround();
}
#endif

static void make_unusual(void) {
  assert_int_equal(fesetround(FE_UPWARD), 0);
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040u);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(control() | (uint64_t)1 << 24));
#endif
}

static uint64_t hash_of(const void *bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
  for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
  return hash;
}

static void note(report *r, const char *what, const void *bytes, size_t size) {
  assert_true(r->count < RESULTS);
  snprintf(r->results[r->count].what, sizeof r->results[r->count].what, "%s", what);
  r->results[r->count++].hash = hash_of(bytes, size);
}

static at_gemm problem(void) {
  const attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = M, .n = N, .k = K};
  at_gemm g;
  bool swap = false;
  OK(at_gemm_normalise(&p, (at_gemm_use){.c = AT_C_NONE, .alignment = AT_ALIGNMENT}, &g, &swap));
  return g;
}

static void run_plan(const at_implementation *implementation, const at_configuration *configuration,
                     attune_stream *stream) {
  const at_gemm g = problem();
  const at_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  at_plan *plan = NULL;
  memset(d, 0xff, sizeof d);
  OK(at_plan_create(&plan, &at_gemm_op, implementation, configuration, &g, attune_stream_device(stream)));
  OK(plan->launch(plan, &o, stream));
  OK(attune_stream_synchronize(stream));
  at_plan_destroy(plan);
}

/* Every configuration of every implementation on a stream of its own thread; those of teams in this thread, too. */
static void products(report *r, attune_device *host, attune_stream *stream) {
  static at_configuration list[CONFIGURATIONS];
  const at_gemm g = problem();
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    const at_implementation *one = at_gemm_op.implementations[i];
    if (!at_registry_usable(one, &g, host)) continue;
    const int count = one->configurations(one, &g, host, list, CONFIGURATIONS);
    for (int c = 0; c < count; c++) {
      char what[300];
      int64_t threads = 1;
      run_plan(one, &list[c], stream);
      snprintf(what, sizeof what, "%s %.191s on a stream", one->name, list[c].text);
      note(r, what, d, sizeof d);
      if (!at_configuration_get(&list[c], "threads", &threads) || threads < 2) continue;
      run_plan(one, &list[c], attune_stream_default(host));
      snprintf(what, sizeof what, "%s %.191s in a team", one->name, list[c].text);
      note(r, what, d, sizeof d);
      r->teams++;
    }
  }
}

static void elements(report *r, attune_tuner *tuner, attune_stream *stream) {
  attune_tensor in = {"x", x, ATTUNE_F32, 1, {ELEMENTS}, NULL}, out = {NULL, y, ATTUNE_F32, 1, {ELEMENTS}, NULL};
  const attune_elementwise_operands o = {.outputs = &out, .output_count = 1, .inputs = &in, .input_count = 1};
  const char *const text = "x * 0.3 + exp(x * (0.1 / 3.0)) * 1e-40";
  OK(attune_elementwise(tuner, stream, text, &o));
  OK(attune_stream_synchronize(stream));
  note(r, text, y, sizeof y);
  OK(attune_elementwise_problem_format(r->constant, sizeof r->constant, text, &o));
}

static void look_at_share(void *arg, const at_team *team) {
  report *r = arg;
  (void)team;
  if (fegetround() != FE_TONEAREST || (control() & 0x1000000u) != 0) r->shares_usual = false;
#if defined(__x86_64__)
  if (!at_floating_usual()) r->shares_usual = false;
#endif
}

/* The winner found by the unusual process is run by the other, too. */
static void tuned(report *r, attune_tuner *tuner, attune_device *host, attune_stream *stream, bool unusual) {
  attune_decision decision;
  if (unusual) {
    OK(attune_tune(tuner, host, "gemm f32 nn 96x80x64 strict", &(attune_tune_options){.budget_ms = 60.0, .force = 1},
                   &decision));
    r->verified = decision.max_error <= 1.0;
    snprintf(r->implementation, sizeof r->implementation, "%s", decision.implementation);
    snprintf(r->configuration, sizeof r->configuration, "%s", decision.configuration);
  } else {
    *r->implementation = '\0';
    memcpy(r->implementation, reports[1].implementation, sizeof r->implementation);
    memcpy(r->configuration, reports[1].configuration, sizeof r->configuration);
  }
  at_configuration configuration = {""};
  snprintf(configuration.text, sizeof configuration.text, "%s", r->configuration);
  run_plan(at_registry_find(&at_gemm_op, r->implementation, host), &configuration, stream);
  memcpy(r->winner, d, sizeof d);
}

/* One small product in this thread, whose results are denormal: 0 where it flushes them. */
static void alone(report *r, attune_tuner *tuner, attune_device *host) {
  float small[] = {0x1p-130f, 0x1p-130f, 0x1p-130f, 0x1p-130f}, ones[] = {1, 1, 1, 1}, to[4] = {1, 1, 1, 1};
  const attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = 2, .n = 2, .k = 2};
  const attune_gemm_operands o = {.alpha = 1.0, .a = small, .b = ones, .d = to};
  at_gemm g;
  at_plan *plan = NULL;
  bool swap = false;
  (void)tuner;
  OK(at_gemm_normalise(&p, (at_gemm_use){.c = AT_C_NONE, .alignment = 4}, &g, &swap));
  const at_implementation *plain = at_registry_find(&at_gemm_op, "host_reference", host);
  at_configuration one = {""};
  (void)plain->configurations(plain, &g, host, &one, 1);
  OK(at_plan_create(&plan, &at_gemm_op, plain, &one, &g, host));
  OK(plan->launch(plan, &o, attune_stream_default(host)));
  at_plan_destroy(plan);
  uint32_t bits = 0;
  memcpy(&bits, &to[0], sizeof bits);
  r->flushed = bits == 0;
}

static void process(bool unusual) {
  report *r = &reports[unusual];
  attune_device *host = NULL;
  attune_tuner *tuner = NULL;
  attune_stream *stream = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  fill();
  if (unusual) make_unusual();
  const uint64_t before = control();
  options.database = "";
  OK(attune_device_get(&host, "host"));
  OK(attune_tuner_create(&tuner, &options));
  OK(attune_stream_create(&stream, host));
  products(r, host, stream);
  elements(r, tuner, stream);
  r->shares_usual = true;
  at_parallel(4, look_at_share, r);
  tuned(r, tuner, host, stream, unusual);
  r->kept = control() == before;
  alone(r, tuner, host);
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  r->done = true;
}

static void run_process(bool unusual) {
  int status = 0;
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    process(unusual);
    _exit(reports[unusual].done ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A program that traps what is inexact: what attune measures of the CPUs in its thread does not trap.
 * The first test: the CPUs are measured once. */
TEST(a_trapping_caller) {
  const pid_t child = fork();
  if (child == 0) {
    feenableexcept(FE_ALL_EXCEPT);
    const double capacity = at_cpu_capacity();
    fedisableexcept(FE_ALL_EXCEPT);
    _exit(capacity > 0.0 ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

TEST(the_same_bits) {
  run_process(true);
  run_process(false);
  const report *clean = &reports[0], *other = &reports[1];
  assert_int_equal(clean->count, other->count);
  assert_true(clean->count > 4);
  for (int i = 0; i < clean->count; i++) {
    assert_string_equal(clean->results[i].what, other->results[i].what);
    if (clean->results[i].hash != other->results[i].hash) fail_msg("%s: other bits", clean->results[i].what);
  }
  print_message("%d results, %d of them by teams\n", clean->count, clean->teams);
  assert_string_equal(clean->constant, other->constant);
}

TEST(threads_are_usual) {
  assert_true(reports[0].shares_usual && reports[1].shares_usual);
}

TEST(a_winner_does_not_depend_on_it) {
  assert_true(reports[1].verified);
  if (memcmp(reports[0].winner, reports[1].winner, sizeof reports[0].winner) != 0)
    fail_msg("%s %s: other bits", reports[1].implementation, reports[1].configuration);
}

TEST(the_caller_keeps_its_own) {
  assert_true(reports[0].kept && reports[1].kept);
  assert_false(reports[0].flushed);
#if defined(__x86_64__) || defined(__aarch64__)
  assert_true(reports[1].flushed);
#endif
}

FIXTURE(open_reports) {
  reports = mmap(NULL, 2 * sizeof *reports, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return reports == MAP_FAILED ? -1 : 0;
}

int main(void) {
  if (getenv("AT_UNDER_VALGRIND"))
    return skip_all("valgrind computes without denormals as zeros, flushing and other rounding");
  return RUN_TESTS(open_reports, NULL);
}
