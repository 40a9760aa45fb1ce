/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_elementwise_random.c: the CUDA kernels of random expressions on the device, each function in them against
 * evaluate.h. Needs a GPU. ATTUNE_TEST_EXPRESSIONS: how many (100), ATTUNE_TEST_FIRST: from which on (0). */
#include <attune/attune.h>

#include "tests/support/check.h"

#include <pthread.h>

#include "src/cuda/jit/jit.h"
#include "tests/ops/elementwise/random_graph.h"
#include "tests/support/gpu.h"

enum { BATCH = 256 };

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

/* Expressions whose kernels a thread gets while the ones before are checked. */
typedef struct batch {
  job jobs[BATCH];
  at_jit_request requests[BATCH];
  int from, count;
  pthread_t thread;
} batch;

static void *get_kernels(void *arg) {
  batch *b = arg;
  at_jit_get_all(b->requests, b->count, device);
  return NULL;
}

static void begin_batch(batch *b, int from, int end) {
  b->from = from;
  b->count = end - from < BATCH ? end - from : BATCH;
  memset(b->requests, 0, sizeof b->requests);
  for (int i = 0; i < b->count; i++) {
    job *j = &b->jobs[i];
    random_case(&j->c, &j->g, &j->choice, capability, (uint64_t)(from + i));
    OK(at_cuda_generate(&j->text, &j->c.problem, &j->choice));
    b->requests[i].source = at_cuda_source(&j->c.problem, j->text);
  }
  assert_int_equal(pthread_create(&b->thread, NULL, get_kernels, b), 0);
}

static void check_batch(batch *b) {
  for (int i = 0; i < b->count; i++) {
    job *j = &b->jobs[i];
    if (!b->requests[i].kernel) fail_msg("expression %d: %.600s", b->from + i, b->requests[i].message);
    check(j, b->requests[i].kernel, (uint64_t)(b->from + i));
    at_jit_release(b->requests[i].kernel);
    free(j->text);
    case_free(&j->c);
  }
}

TEST(random_expressions) {
  const char *asked = getenv("ATTUNE_TEST_EXPRESSIONS"), *before = getenv("ATTUNE_TEST_FIRST");
  const int first = before && atoi(before) > 0 ? atoi(before) : 0;
  const int count = first + (asked && atoi(asked) > 0 ? atoi(asked) : 100);
  batch *batches = calloc(2, sizeof *batches);
  assert_non_null(batches);
  int now = 0;
  begin_batch(&batches[0], first, count);
  for (int from = first; from < count; from += BATCH, now = !now) {
    assert_int_equal(pthread_join(batches[now].thread, NULL), 0);
    if (from + BATCH < count) begin_batch(&batches[!now], from + BATCH, count);
    check_batch(&batches[now]);
  }
  print_message("%d expressions\n", count - first);
  free(batches);
}

/* min(x, int16(0.75)) of i16, of which expm1 follows: ptxas took the comparison of the two for that of another half. */
TEST(a_minimum_of_16_bits) {
  batch *b = calloc(1, sizeof *b);
  assert_non_null(b);
  begin_batch(b, 4441, 4442);
  assert_int_equal(pthread_join(b->thread, NULL), 0);
  const graph *g = &b->jobs[0].g;
  bool least = false, then = false;
  for (int i = 0; i < g->e.node_count; i++) {
    const at_node *n = &g->nodes[i];
    if (n->kind != AT_NODE_FUNCTION) continue;
    least = least || (n->function == AT_FN_MINIMUM && n->dtype == ATTUNE_I16);
    then = then || (least && n->function == AT_FN_EXPM1);
  }
  assert_true(then); /* else another number draws it now */
  check_batch(b);
  free(b);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  attune_device_properties properties = {0};
  if (attune_device_get_properties(device, &properties) != ATTUNE_OK ||
      attune_stream_create(&stream, device) != ATTUNE_OK)
    return 1;
  capability = properties.capability_major * 10 + properties.capability_minor;
  processors = properties.processors;
  const int failures = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  return failures;
}
