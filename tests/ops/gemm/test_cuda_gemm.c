/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_gemm.c: GEMM on a GPU, the whole path: every implementation on the case list, tuning, the database,
 * capture, the program's own streams, threads. Exits 77 where there is no GPU. */
#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <attune/tools.h>
#include <pthread.h>
#include <unistd.h>

#include "src/cuda/context/cuda.h"
#include "tests/ops/gemm/gemm_mirror.h"
#include "tests/support/gpu.h"
#include "tuning/measure/numerical_check.h"
#include "tuning/op/registry.h"

#define CUDA(call) assert_int_equal((call), cudaSuccess)

enum { MOST = 256, MOST_SEEN = 48, THREADS = 4, BUDGET_MS = 1000 };

static attune_device *device;
static attune_stream *stream;
static char database[64];

static attune_tuner *tuner_of(attune_mode mode, const char *path) {
  attune_tuner_options options = {.database = path, .mode = mode, .budget_ms = BUDGET_MS * test_patience()};
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &options));
  OK(attune_tuner_database_status(tuner));
  return tuner;
}

static void text_of(const at_gemm_case *c, char out[256]) {
  OK(attune_gemm_problem_format(out, 256, &c->problem, NULL));
}

static int refused; /* candidates that verification turned away */

/* A candidate that is not the default must pass verification first, as in a search: then it may run, and must be right
 * here too. One thing is allowed beside: with C some kernels, cuBLAS's default too, round alpha A B to D's type and add
 * that to memory. */
static bool verified(mirror *m, const at_plan *plan, at_random *data, const at_gemm *g, const char *who) {
  at_numerical_check *check = NULL;
  double error = 0.0;
  OK(at_numerical_check_create(&check, &at_gemm_op, g, m->stream, data));
  const attune_status status = at_numerical_check_run(check, plan, &error);
  at_numerical_check_destroy(check);
  if (status != ATTUNE_OK && status != ATTUNE_BAD_DATA)
    fail_msg("%s, %s: %s", m->o->c.name, who, attune_last_message());
  if (status != ATTUNE_OK) print_message("refused, %s: %s\n", m->o->c.name, attune_last_message());
  refused += status != ATTUNE_OK;
  return status == ATTUNE_OK;
}

/* Kernels that are compiled for each problem take their time; test_cuda_kernels has many of them. */
static bool is_compiled(const at_implementation *implementation) {
  return implementation->prepare_many != NULL;
}

/* Of the cases: there are none of the contract equivalent, and Hopper's instructions are Hopper's. */
static bool takes_none(const char *name) {
  static const char *const others[] = {"sm90_wgmma_bf16x6", "cublas_3m",     "cuda_unfused",
                                       "cublas_batched",    "cuda_uploaded", "cuda_each",
                                       "cublaslt_packed",   "cuda_scaled",   "sm90_skinny_ring_8b"};
  for (size_t i = 0; i < AT_COUNT(others); i++)
    if (strcmp(name, others[i]) == 0) return true;
  return strcmp(name, "sm90_wgmma_16b") == 0 && device->properties.capability_major != 9;
}

static int run_configurations(mirror *m, const at_implementation *implementation, at_random *data, const at_gemm *g,
                              bool swap, int index) {
  static at_configuration configurations[MOST];
  const int count = implementation->configurations(implementation, g, device, configurations, MOST);
  const int picks[] = {0, count - 1, count > 0 ? index % count : 0};
  const bool standard = implementation == at_registry_default(&at_gemm_op, g, device);
  const bool c_is_added = m->o->c.beta != 0.0;
  attune_gemm_operands operands = mirror_operands(m);
  if (swap) {
    const void *a = operands.a;
    operands.a = operands.b;
    operands.b = a;
  }
  int runs = 0;
  const int most = is_compiled(implementation) ? 1 : 3;
  for (int i = 0; i < (count < most ? count : most); i++) {
    at_plan *plan = NULL;
    char who[256];
    snprintf(who, sizeof who, "%s %s", implementation->name, configurations[picks[i]].text);
    if (at_plan_create(&plan, &at_gemm_op, implementation, &configurations[picks[i]], g, device) != ATTUNE_OK)
      fail_msg("%s, %s: %s", m->o->c.name, who, attune_last_message());
    if (standard || verified(m, plan, data, g, who)) {
      m->o->rounds_product = c_is_added;
      mirror_write(m);
      OK(plan->launch(plan, &operands, m->stream));
      mirror_check(m, who);
      runs++;
    }
    at_plan_destroy(plan);
  }
  return runs;
}

TEST(each_implementation_does_each_case) {
  int cases[MOST_SEEN] = {0}, runs[MOST_SEEN] = {0};
  at_random *data = NULL;
  OK(at_random_create(&data, 7));
  assert_in_range(at_gemm_op.implementation_count, 1, MOST_SEEN);
  for (int index = 0; index < at_gemm_case_count(); index++) {
    at_gemm_case c;
    at_gemm_case_at(index, &c);
    const attune_gemm_problem *p = &c.problem;
    if (p->m == 0 || p->n == 0 || p->k == 0 || p->batch < 0 || c.alpha == 0.0) continue;
    oracle o;
    mirror m;
    at_gemm g;
    bool swap = false;
    oracle_open(&o, &c);
    mirror_open(&m, &o, stream);
    OK(at_gemm_normalise(p, (at_gemm_use){.c = c.c, .alignment = (uint8_t)c.alignment}, &g, &swap));
    for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
      const at_implementation *implementation = at_gemm_op.implementations[i];
      if (strcmp(implementation->backend, "cuda") != 0 || !implementation->supports(implementation, &g, device))
        continue;
      if (cases[i]++ % 8 != 0 && is_compiled(implementation)) continue;
      runs[i] += run_configurations(&m, implementation, data, &g, swap, index);
    }
    mirror_close(&m);
    oracle_close(&o);
  }
  at_random_destroy(data);
  int all = 0;
  for (size_t i = 0; i < at_gemm_op.implementation_count; i++) {
    if (strcmp(at_gemm_op.implementations[i]->backend, "cuda") != 0) continue;
    print_message("%s: %d cases, %d runs\n", at_gemm_op.implementations[i]->name, cases[i], runs[i]);
    assert_true(runs[i] > 0 || takes_none(at_gemm_op.implementations[i]->name));
    all += runs[i];
  }
  print_message("refused by verification: %d\n", refused);
  assert_true(refused < all / 20); /* the exception, not the rule */
}

/* Edges too: nothing, k = 0, alpha = 0. */
TEST(the_public_call_does_each_case) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_OFF, "");
  for (int index = 0; index < at_gemm_case_count(); index++) {
    at_gemm_case c;
    at_gemm_case_at(index, &c);
    if (!is_for_gpus(&c)) continue;
    call_and_check(tuner, index % 2 ? stream : attune_stream_default(device), &c, "attune_gemm");
  }
  attune_tuner_destroy(tuner);
}

static const struct {
  attune_dtype in, out;
  int m, n, k, batch;
  attune_accuracy accuracy;
} SHAPES[] = {{ATTUNE_F64, ATTUNE_F64, 192, 160, 224, 1, ATTUNE_STRICT},
              {ATTUNE_F32, ATTUNE_F32, 512, 16, 384, 1, ATTUNE_STRICT},
              {ATTUNE_F32, ATTUNE_F32, 256, 256, 256, 1, ATTUNE_REDUCED},
              {ATTUNE_F16, ATTUNE_F16, 64, 64, 64, 16, ATTUNE_STRICT},
              {ATTUNE_BF16, ATTUNE_BF16, 333, 257, 129, 1, ATTUNE_STRICT},
              {ATTUNE_F16, ATTUNE_F32, 128, 1, 512, 1, ATTUNE_STRICT},
              {ATTUNE_BF16, ATTUNE_F32, 128, 96, 2048, 1, ATTUNE_REDUCED},
              {ATTUNE_C64, ATTUNE_C64, 24, 24, 24, 500, ATTUNE_STRICT},
              {ATTUNE_C128, ATTUNE_C128, 255, 192, 200, 1, ATTUNE_EQUIVALENT}};

static at_gemm_case tuned_case(size_t i) {
  at_gemm_case c = plain_case(SHAPES[i].in, SHAPES[i].out, SHAPES[i].m, SHAPES[i].n, SHAPES[i].k, SHAPES[i].batch);
  c.problem.contract.accuracy = SHAPES[i].accuracy;
  return c;
}

TEST(tune_store_and_hit) {
  attune_tuner *first = tuner_of(ATTUNE_MODE_TUNE, database);
  attune_decision tuned[AT_COUNT(SHAPES)], found;
  char text[256];
  for (size_t i = 0; i < AT_COUNT(SHAPES); i++) {
    const at_gemm_case c = tuned_case(i);
    text_of(&c, text);
    call_and_check(first, stream, &c, "tuned call");
    OK(attune_explain(first, device, text, &tuned[i]));
    const attune_decision *d = &tuned[i];
    if (d->source != ATTUNE_SOURCE_TUNED) fail_msg("%s: source %d, %s", text, (int)d->source, d->note);
    print_message("%s: %s %s %.2f us, default %.2f us, %d candidates, %d rejected, %.0f ms\n", text, d->implementation,
                  d->configuration, d->time_ns * 1e-3, d->default_time_ns * 1e-3, d->candidates, d->rejected,
                  d->tuning_ms);
    assert_true(d->time_ns > 500.0 && d->time_ns <= d->default_time_ns * 1.000001);
    assert_true(d->samples >= 4 && d->candidates >= 2 && d->tuned_at > 0 && d->max_error >= 0.0 && d->max_error <= 1.0);
    assert_string_equal(d->default_implementation, "cublas");
    assert_string_equal(d->measure, "cold,graph");
  }
  attune_tuner_destroy(first);
  attune_tuner *second = tuner_of(ATTUNE_MODE_TUNE, database);
  for (size_t i = 0; i < AT_COUNT(SHAPES); i++) {
    const at_gemm_case c = tuned_case(i);
    text_of(&c, text);
    call_and_check(second, stream, &c, "stored call");
    OK(attune_explain(second, device, text, &found));
    assert_int_equal(found.source, ATTUNE_SOURCE_STORED);
    assert_string_equal(found.implementation, tuned[i].implementation);
    assert_string_equal(found.configuration, tuned[i].configuration);
    assert_int_equal(found.tuned_at, tuned[i].tuned_at);
  }
  attune_tuner_destroy(second);
}

/* A stored configuration that this library does not have is a miss; the call still works. */
TEST(a_foreign_configuration_is_a_miss) {
  const at_gemm_case c = plain_case(ATTUNE_F32, ATTUNE_F32, 64, 64, 64, 1);
  const at_implementation *lt = at_registry_find(&at_gemm_op, "cublaslt", device);
  at_gemm g;
  bool swap;
  OK(at_gemm_normalise(&c.problem, (at_gemm_use){.c = AT_C_NONE, .alignment = 16}, &g, &swap));
  static const char *const texts[] = {"",       "nonsense", "algo=999999", "algo=", "algo=1,tile=99999,stages=99999",
                                      "algo=-1"};
  for (size_t i = 0; i < AT_COUNT(texts); i++) {
    at_configuration configuration;
    at_plan *plan = NULL;
    at_copy_text(configuration.text, sizeof configuration.text, texts[i]);
    const attune_status status = at_plan_create(&plan, &at_gemm_op, lt, &configuration, &g, device);
    if (status != ATTUNE_NOT_FOUND) fail_msg("\"%s\": %s", texts[i], attune_status_string(status));
  }
}

static int count_vendors(void *user, const char *implementation, int version, int configurations) {
  int *counts = user;
  (void)version;
  if (strcmp(implementation, "cublas") == 0) counts[0] = configurations;
  if (strcmp(implementation, "cublaslt") == 0) counts[1] = configurations;
  return 0;
}

/* The libraries' algorithms are candidates, not only what their heuristics rank first. */
TEST(algorithms_of_the_libraries) {
  int counts[2] = {0};
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED, "");
  OK(attune_tuner_implementations(tuner, device, "gemm bf16 tn 4096x4096x4096 strict", count_vendors, counts));
  print_message("cublas %d, cublaslt %d configurations\n", counts[0], counts[1]);
  assert_true(counts[0] >= 1 && counts[1] > 8);
  attune_tuner_destroy(tuner);
}

/* ---- streams ---- */

/* The program's own calls of CUDA want the device to be current, attune's do not. */
static int enter(void) {
  int before = -1;
  CUDA(cudaGetDevice(&before));
  CUDA(cudaSetDevice(device->ordinal));
  return before;
}

static void leave(int before) {
  CUDA(cudaSetDevice(before));
}

static cudaStream_t stream_of_program(void) {
  cudaStream_t made = NULL;
  const int before = enter();
  CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
  leave(before);
  return made;
}

static void copy_of_program(void *to, const void *from, size_t bytes, cudaStream_t on) {
  const int before = enter();
  CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, on));
  leave(before);
}

static void fill_of_program(void *memory, size_t bytes, cudaStream_t on) {
  const int before = enter();
  CUDA(cudaMemsetAsync(memory, 0xFF, bytes, on));
  leave(before);
}

/* The program's own stream, and its own work before and after in order. */
TEST(the_programs_own_stream) {
  const cudaStream_t native = stream_of_program();
  attune_stream *wrapped = NULL;
  OK(attune_stream_wrap(&wrapped, device, native));
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED, "");
  const at_gemm_case c = plain_case(ATTUNE_F32, ATTUNE_F32, 65, 33, 129, 2);
  oracle o;
  mirror m;
  oracle_open(&o, &c);
  mirror_open(&m, &o, wrapped);
  for (int again = 0; again < 20; again++) {
    const attune_gemm_operands operands = mirror_operands(&m);
    OK(attune_fill(wrapped, m.raw[ORACLE_D], 0xFF, o.block[ORACLE_D].bytes));
    copy_of_program(m.raw[ORACLE_A], o.block[ORACLE_A].before, o.block[ORACLE_A].bytes, native);
    OK(attune_gemm(tuner, wrapped, &c.problem, &operands));
    copy_of_program(o.block[ORACLE_D].raw, m.raw[ORACLE_D], o.block[ORACLE_D].bytes, native);
    fill_of_program(m.raw[ORACLE_A], o.block[ORACLE_A].bytes, native);
    CUDA(cudaStreamSynchronize(native));
    oracle_check(&o, "wrapped stream");
  }
  mirror_close(&m);
  oracle_close(&o);
  attune_tuner_destroy(tuner);
  attune_stream_destroy(wrapped);
  CUDA(cudaStreamDestroy(native));
}

/* attune_gemm in the program's own capture, in mode tune: the default is captured, nothing is tuned, replays are right;
 * the next call outside tunes. */
TEST(capture_never_tunes) {
  const cudaStream_t native = stream_of_program();
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  attune_stream *wrapped = NULL;
  attune_decision decision;
  char text[256];
  OK(attune_stream_wrap(&wrapped, device, native));
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE, "");
  const at_gemm_case c = plain_case(ATTUNE_BF16, ATTUNE_BF16, 96, 80, 160, 1);
  text_of(&c, text);
  oracle o;
  mirror m;
  oracle_open(&o, &c);
  mirror_open(&m, &o, wrapped);
  OK(attune_stream_synchronize(wrapped));
  const attune_gemm_operands operands = mirror_operands(&m);
  CUDA(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal));
  OK(attune_gemm(tuner, wrapped, &c.problem, &operands));
  OK(attune_gemm(tuner, wrapped, &c.problem, &operands));
  CUDA(cudaStreamEndCapture(native, &graph));
  OK(attune_explain(tuner, device, text, &decision));
  assert_int_not_equal(decision.source, ATTUNE_SOURCE_TUNED);
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  for (int again = 0; again < 3; again++) {
    OK(attune_fill(wrapped, m.raw[ORACLE_D], 0xFF, o.block[ORACLE_D].bytes));
    CUDA(cudaGraphLaunch(exec, native));
    mirror_check(&m, "replay");
  }
  OK(attune_gemm(tuner, wrapped, &c.problem, &operands));
  OK(attune_explain(tuner, device, text, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
  OK(attune_fill(wrapped, m.raw[ORACLE_D], 0xFF, o.block[ORACLE_D].bytes));
  CUDA(cudaGraphLaunch(exec, native)); /* the captured plan outlives the better one */
  mirror_check(&m, "replay after tuning");
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  mirror_close(&m);
  oracle_close(&o);
  attune_tuner_destroy(tuner);
  attune_stream_destroy(wrapped);
  CUDA(cudaStreamDestroy(native));
}

/* A winner is captured as itself, and a plan too. */
TEST(capture_uses_the_winner) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE, database);
  const at_gemm_case c = tuned_case(4);
  oracle o;
  mirror m;
  attune_plan *plan = NULL;
  oracle_open(&o, &c);
  mirror_open(&m, &o, stream);
  OK(attune_stream_synchronize(stream));
  const attune_gemm_operands operands = mirror_operands(&m);
  const cudaStream_t native = attune_stream_native(stream);
  CUDA(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal));
  OK(attune_gemm(tuner, stream, &c.problem, &operands));
  OK(attune_gemm_plan_create(&plan, tuner, stream, &c.problem, &operands));
  OK(attune_gemm_plan_run(plan, stream, &operands));
  CUDA(cudaStreamEndCapture(native, &graph));
  char text[256];
  attune_decision decision;
  text_of(&c, text);
  OK(attune_explain(tuner, device, text, &decision));
  assert_int_equal(decision.source, ATTUNE_SOURCE_STORED);
  CUDA(cudaGraphInstantiate(&exec, graph, 0));
  OK(attune_fill(stream, m.raw[ORACLE_D], 0xFF, o.block[ORACLE_D].bytes));
  CUDA(cudaGraphLaunch(exec, native));
  mirror_check(&m, "replay of a winner");
  CUDA(cudaGraphExecDestroy(exec));
  CUDA(cudaGraphDestroy(graph));
  attune_plan_destroy(plan);
  mirror_close(&m);
  oracle_close(&o);
  attune_tuner_destroy(tuner);
}

TEST(operands_of_each_alignment) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE, "");
  for (int alignment = 2; alignment <= 64; alignment *= 2) {
    at_gemm_case c = plain_case(ATTUNE_BF16, ATTUNE_BF16, 64, 72, 40, 1);
    c.alignment = alignment;
    call_and_check(tuner, stream, &c, "misaligned bf16");
    char text[256];
    attune_decision decision;
    text_of(&c, text);
    snprintf(text + strlen(text), sizeof text - strlen(text), " align=%d", alignment);
    OK(attune_explain(tuner, device, text, &decision));
    assert_int_equal(decision.source, ATTUNE_SOURCE_TUNED);
  }
  attune_tuner_destroy(tuner);
}

/* A plan made with operands of one class takes that class and better ones, and says which it wants. */
TEST(a_plan_knows_its_alignment_class) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED, "");
  attune_gemm_problem p = {.dtype = ATTUNE_BF16, .m = 64, .n = 64, .k = 64};
  char *memory[3];
  for (int i = 0; i < 3; i++) OK(attune_alloc((void **)&memory[i], stream, 64 * 64 * 2 + 256));
  for (int made = 2; made <= 128; made *= 2)
    for (int given = 2; given <= 128; given *= 2) {
      attune_gemm_operands o = {.alpha = 1.0, .a = memory[0], .b = memory[1] + made % 128, .d = memory[2]};
      attune_plan *plan = NULL;
      char word[48];
      OK(attune_gemm_plan_create(&plan, tuner, stream, &p, &o));
      o.b = memory[1] + given % 128;
      snprintf(word, sizeof word, "operands.b is aligned to %d byte", given);
      const attune_status status = attune_gemm_plan_run(plan, stream, &o);
      assert_int_equal(status, given >= made ? ATTUNE_OK : ATTUNE_INVALID_ARGUMENT);
      if (given < made) assert_non_null(strstr(attune_last_message(), word));
      attune_plan_destroy(plan);
    }
  OK(attune_stream_synchronize(stream));
  for (int i = 0; i < 3; i++) OK(attune_free(memory[i], stream));
  attune_tuner_destroy(tuner);
}

TEST(bad_operands) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_CACHED, "");
  attune_device *host = NULL;
  const at_gemm_case c = plain_case(ATTUNE_F32, ATTUNE_F32, 8, 8, 8, 1);
  oracle o;
  mirror m;
  attune_plan *plan = NULL;
  OK(attune_device_get(&host, "host"));
  oracle_open(&o, &c);
  mirror_open(&m, &o, stream);
  attune_gemm_operands operands = mirror_operands(&m);
  OK(attune_gemm_plan_create(&plan, tuner, stream, &c.problem, &operands));
  FAILS_SAYING(attune_gemm_plan_run(plan, attune_stream_default(host), &operands), ATTUNE_INVALID_ARGUMENT,
               "stream is of host");
  operands.a = (const char *)operands.a + 2;
  FAILS_SAYING(attune_gemm(tuner, stream, &c.problem, &operands), ATTUNE_INVALID_ARGUMENT, "operands.a");
  operands.a = NULL;
  assert_int_equal(attune_gemm(tuner, stream, &c.problem, &operands), ATTUNE_INVALID_ARGUMENT);
  attune_plan_destroy(plan);
  mirror_close(&m);
  oracle_close(&o);
  call_and_check(tuner, stream, &c, "after bad operands");
  attune_tuner_destroy(tuner);
}

typedef struct worker {
  attune_tuner *tuner;
  int index;
} worker;

/* Own problems and a shared one, tuned while others run, each on a stream of its own. */
static void *tune_and_call(void *arg) {
  const worker *w = arg;
  attune_stream *own = NULL;
  if (attune_stream_create(&own, device) != ATTUNE_OK) return arg;
  for (int i = 0; i < 6; i++) {
    const at_gemm_case c = plain_case(ATTUNE_F32, ATTUNE_F32, 48, 40, i % 3 ? 64 : 32 * (w->index + 3), 1);
    call_and_check(w->tuner, own, &c, "threads");
  }
  attune_stream_destroy(own);
  return NULL;
}

TEST(threads_tune_and_call) {
  attune_tuner *tuner = tuner_of(ATTUNE_MODE_TUNE, "");
  pthread_t threads[THREADS];
  worker workers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    workers[i] = (worker){tuner, i};
    assert_int_equal(pthread_create(&threads[i], NULL, tune_and_call, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  attune_tuner_destroy(tuner);
  CUDA(cudaPeekAtLastError());
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  char folder[] = "/tmp/attune-test-cuda-gemm-XXXXXX";
  if (!mkdtemp(folder) || attune_stream_create(&stream, device) != ATTUNE_OK) return 1;
  snprintf(database, sizeof database, "%s/tuning.db", folder);
  const int failed = RUN_TESTS(NULL, NULL);
  attune_stream_destroy(stream);
  unlink(database);
  rmdir(folder);
  return failed;
}
