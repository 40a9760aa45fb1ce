/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_elementwise_random.c: the CUDA kernels of random expressions on the device, each function in them against
 * evaluate.h. Needs a GPU. ATTUNE_TEST_EXPRESSIONS: how many (100). */
#include <attune/attune.h>

#include "tests/check.h"

#include "src/cuda/jit.h"
#include "tests/random_graph.h"

enum { BATCH = 64 };

static attune_device *device;
static attune_stream *stream;
static int capability, processors;

typedef struct job {
  graph g;
  ecase c;
  at_cuda_choice choice;
  char *text;
} job;

/* Runs the kernel over copies of the operands on the device; `got` receives the outputs. */
static void run(const job *j, at_jit_kernel *kernel, unsigned char **got) {
  const at_cuda_problem *p = &j->c.problem;
  void *memory[RANDOM_TENSORS], *data[RANDOM_TENSORS];
  at_cuda_launch launch;
  for (int k = 0; k < RANDOM_TENSORS; k++) {
    const case_operand *o = &j->c.operands[k];
    OK(attune_alloc(&memory[k], stream, o->bytes));
    OK(attune_copy(stream, memory[k], o->memory, o->bytes));
    data[k] = (unsigned char *)memory[k] + CASE_EDGE;
  }
  OK(at_cuda_plan(&launch, p, &j->choice, processors, 2));
  at_cuda_bind_tensors(&launch, p, data);
  OK(at_jit_launch(kernel, &launch.config, launch.words, stream));
  for (int k = 0; k < AT_EXPRESSION_OUTPUTS; k++) {
    got[k] = malloc(j->c.operands[k].bytes);
    assert_non_null(got[k]);
    OK(attune_copy(stream, got[k], memory[k], j->c.operands[k].bytes));
  }
  OK(attune_stream_synchronize(stream));
  for (int k = 0; k < RANDOM_TENSORS; k++) OK(attune_free(memory[k], stream));
}

static void check(job *j, at_jit_kernel *kernel, uint64_t seed) {
  unsigned char *got[AT_EXPRESSION_OUTPUTS];
  double allowed[AT_EXPRESSION_OUTPUTS];
  run(j, kernel, got);
  random_expect(&j->c, got, allowed);
  for (int k = 0; k < AT_EXPRESSION_OUTPUTS; k++) {
    int64_t place = 0;
    const double worst = case_compare(&j->c, k, got[k], &place);
    if (worst > allowed[k])
      fail_msg("expression %llu: %s", (unsigned long long)seed, random_tell(&j->c, k, got[k], place));
    free(got[k]);
  }
}

static void random_expressions(void **state) {
  (void)state;
  const char *asked = getenv("ATTUNE_TEST_EXPRESSIONS");
  const int count = asked && atoi(asked) > 0 ? atoi(asked) : 100;
  job *jobs = calloc(BATCH, sizeof *jobs);
  at_jit_request *requests = calloc(BATCH, sizeof *requests);
  assert_true(jobs && requests);
  for (int from = 0; from < count; from += BATCH) {
    const int many = count - from < BATCH ? count - from : BATCH;
    memset(requests, 0, BATCH * sizeof *requests);
    for (int i = 0; i < many; i++) {
      job *j = &jobs[i];
      random_case(&j->c, &j->g, &j->choice, capability, (uint64_t)(from + i));
      OK(at_cuda_generate(&j->text, &j->c.problem, &j->choice));
      requests[i].source = at_cuda_source(&j->c.problem, j->text);
    }
    at_jit_get_all(requests, many, device);
    for (int i = 0; i < many; i++) {
      if (!requests[i].kernel) fail_msg("expression %d: %.600s", from + i, requests[i].message);
      check(&jobs[i], requests[i].kernel, (uint64_t)(from + i));
      at_jit_release(requests[i].kernel);
      free(jobs[i].text);
      case_free(&jobs[i].c);
    }
  }
  print_message("%d expressions\n", count);
  free(jobs);
  free(requests);
}

int main(void) {
  if (attune_device_get(&device, "cuda:0") != ATTUNE_OK) {
    puts("skipped: no CUDA device");
    return 77;
  }
  attune_device_properties properties;
  if (attune_device_get_properties(device, &properties) != ATTUNE_OK ||
      attune_stream_create(&stream, device) != ATTUNE_OK)
    return 1;
  capability = properties.capability_major * 10 + properties.capability_minor;
  processors = properties.processors;
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_expressions)};
  const int failures = cmocka_run_group_tests(tests, NULL, NULL);
  attune_stream_destroy(stream);
  return failures;
}
