/* SPDX-License-Identifier: Apache-2.0
 * test_trace.c: what a profiler is told through NVTX, by one that is made for it (fake_nvtx.c), and what happens
 * without. */
#include "tests/support/check.h"

#include <attune/attune.h>
#include <unistd.h>

static const char *program;

/* ---- in the child ---- */

static int marks(void) {
  attune_trace_mark("here");
  attune_trace_mark(NULL);
  const int outer = attune_trace_push("outer"), inner = attune_trace_push("inner");
  const int none = attune_trace_push(NULL), after_inner = attune_trace_pop(), after_outer = attune_trace_pop();
  const uint64_t range = attune_trace_start("wide");
  attune_trace_end(range);
  attune_trace_end(attune_trace_start(NULL));
  printf("%d %d %d %d %d %llu\n", outer, inner, none, after_inner, after_outer, (unsigned long long)range);
  return 0;
}

static attune_status one_fill(void *user, attune_stream *stream) {
  return attune_fill(stream, user, 3, 64);
}

static int calls(void) {
  attune_device *host = NULL;
  attune_tuner *tuner = NULL;
  attune_generator *generator = NULL;
  attune_plan *plan = NULL;
  attune_graph *graph = NULL;
  attune_stream *created = NULL;
  float x[64] = {0};
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  const attune_gemm_operands o = {.alpha = 1.0, .a = x, .b = x + 16, .d = x + 32};
  const attune_tensor t = {.name = "t", .data = x, .dtype = ATTUNE_F32, .dims = 1, .sizes = {8}};
  const attune_elementwise_operands e = {.outputs = &t, .output_count = 1, .inputs = &t, .input_count = 1};
  p.m = p.n = p.k = 2;
  OK(attune_device_get(&host, "host"));
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = ":memory:", .mode = ATTUNE_MODE_OFF}));
  OK(attune_generator_create(&generator, 1));
  attune_stream *stream = attune_stream_default(host);
  OK(attune_fill(stream, x, 0, 32));
  OK(attune_copy(stream, x + 32, x, 64));
  OK(attune_random_normal(generator, stream, x, ATTUNE_F32, 10, 0.0, 1.0));
  for (int i = 0; i < 2; i++) {
    OK(attune_gemm(tuner, stream, &p, &o));
    p.layout = ATTUNE_ROW_MAJOR;
  }
  OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
  OK(attune_gemm_plan_run(plan, stream, &o));
  OK(attune_elementwise(tuner, stream, "t + 1", &e));
  OK(attune_stream_create(&created, host));
  OK(attune_graph_create(&graph, host));
  OK(attune_graph_capture_callback(graph, created, NULL, one_fill, x));
  OK(attune_graph_replay(graph, created));
  OK(attune_set_trace(!attune_get_trace()));
  printf("now %d\n", attune_get_trace());
  OK(attune_fill(stream, x, 0, 16));
  attune_graph_destroy(graph);
  attune_stream_destroy(created);
  attune_plan_destroy(plan);
  attune_generator_destroy(generator);
  attune_tuner_destroy(tuner);
  return 0;
}

/* ---- in the test ---- */

static char folder[] = "/tmp/attune_trace_XXXXXX";
static char told[8192], printed[512];

static void run(const char *variables, const char *way, int with_profiler) {
  char command[2048], path[256];
  snprintf(path, sizeof path, "%s/log", folder);
  (void)unlink(path);
  snprintf(command, sizeof command, "%s FAKE_NVTX='%s' NVTX_INJECTION64_PATH='%s' '%s' %s", variables, path,
           with_profiler ? FAKES "/nvtx/libfake_nvtx.so" : "", program, way);
  FILE *from = popen(command, "r");
  assert_non_null(from);
  printed[fread(printed, 1, sizeof printed - 1, from)] = '\0';
  assert_int_equal(pclose(from), 0);
  FILE *log = fopen(path, "r");
  *told = '\0';
  if (!log) return;
  told[fread(told, 1, sizeof told - 1, log)] = '\0';
  fclose(log);
}

TEST(the_program_s_own) {
  run("", "marks", 1);
  assert_string_equal(told, "mark here\npush outer\npush inner\npop\npop\nstart wide\nend 7\n");
  assert_string_equal(printed, "0 1 -2 1 0 7\n");
  run("", "marks", 0);
  assert_string_equal(told, "");
  assert_string_equal(printed, "-2 -2 -2 -2 -2 0\n");
}

/* In their order, each followed by its end. */
TEST(every_call_has_a_name) {
  static const char *const names[] = {"domain attune\n",
                                      "call attune_fill 32 bytes\ndone\n",
                                      "call attune_copy 64 bytes\ndone\n",
                                      "call attune_random_normal f32 10\ndone\n",
                                      "call attune_gemm: gemm f32 nn 2x2x2 strict",
                                      ", host_",
                                      "call attune_gemm: gemm f32 nn 2x2x2 strict",
                                      "row-major",
                                      "call attune_gemm: gemm f32 nn 2x2x2 strict",
                                      "row-major",
                                      "call attune_elementwise: elementwise",
                                      ", host_",
                                      "call attune_fill 64 bytes\ndone\n",
                                      "call attune_graph_replay 1 nodes\ndone\n"};
  run("ATTUNE_NVTX=1", "calls", 1);
  assert_string_equal(printed, "now 0\n");
  const char *at = told;
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *found = strstr(at, names[i]);
    if (!found) fail_msg("no \"%s\" in: %s", names[i], at);
    at = found + strlen(names[i]);
  }
  assert_null(strstr(at, "call")); /* switched off before the last fill */
}

TEST(off_says_nothing) {
  run("ATTUNE_NVTX=0", "calls", 1);
  assert_string_equal(printed, "now 1\n");
  assert_string_equal(told, "domain attune\ncall attune_fill 16 bytes\ndone\n");
  run("ATTUNE_NVTX=1", "calls", 0);
  assert_string_equal(told, "");
}

/* Names and the race check at the same time. */
TEST(with_the_race_check) {
  run("ATTUNE_NVTX=1 ATTUNE_CHECK=races", "calls", 1);
  assert_non_null(strstr(told, "call attune_gemm: gemm f32 nn 2x2x2 strict"));
  assert_string_equal(printed, "now 0\n");
}

TEST(a_profiler_needs_a_gpu) {
  attune_device *device = NULL;
  OK(attune_device_get(&device, NULL));
  if (strcmp(attune_device_name(device), "host") == 0) {
    FAILS(attune_profiler_start(), ATTUNE_UNSUPPORTED);
    FAILS(attune_profiler_stop(), ATTUNE_UNSUPPORTED);
  } else {
    OK(attune_profiler_start());
    OK(attune_profiler_stop());
  }
}

FIXTURE(start) {
  return mkdtemp(folder) ? 0 : -1;
}

FIXTURE(stop) {
  char command[64];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  return system(command);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "marks") == 0) return marks();
  if (argc == 2 && strcmp(argv[1], "calls") == 0) return calls();
  program = argv[0];
  return RUN_TESTS(start, stop);
}
