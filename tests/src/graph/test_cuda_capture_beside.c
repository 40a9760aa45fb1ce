/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_capture_beside.c: one thread captures through the CUDA runtime in mode global, as PyTorch does; another
 * does everything that attune can do. No capture breaks. ATTUNE_TEST_CAPTURES is the number of captures for all kinds
 * of work together (300); ATTUNE_TEST_KIND names a single kind. */
#include <attune/attune.h>
#include <attune/graph.h>
#include <attune/pinned.h>

#include "tests/support/check.h"

#include <cuda_runtime_api.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/support/other_process.h"

enum { MIB = 1024 * 1024, PIECES = 40, FIRST_CAPTURES = 40, LEAST_TURNS = 10 };

static attune_device *device;

/* ---- the thread that captures ---- */

typedef struct captures {
  int wanted, least_turns; /* more captures than wanted until so many turns were made beside */
  atomic_int made, broken, turns;
  char why[160]; /* of the first one that broke */
  atomic_bool done;
} captures;

static cudaError_t give_pieces(cudaStream_t stream, char *memory) {
  cudaError_t error = cudaSuccess;
  for (int i = 0; i < PIECES && error == cudaSuccess; i++) {
    error = cudaMemsetAsync(memory, i, 4096, stream);
    if (error == cudaSuccess) error = cudaMemcpyAsync(memory + 4096, memory, 4096, cudaMemcpyDeviceToDevice, stream);
  }
  return error;
}

/* One capture, and what a program does with it. */
static cudaError_t capture_once(cudaStream_t stream, char *memory, bool run) {
  cudaGraph_t graph = NULL;
  cudaGraphExec_t executable = NULL;
  cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  if (error != cudaSuccess) return error;
  const cudaError_t given = give_pieces(stream, memory), ended = cudaStreamEndCapture(stream, &graph);
  error = given != cudaSuccess ? given : ended;
  if (error == cudaSuccess && run) {
    error = cudaGraphInstantiateWithFlags(&executable, graph, 0);
    if (error == cudaSuccess) error = cudaGraphLaunch(executable, stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  }
  if (executable) (void)cudaGraphExecDestroy(executable);
  if (graph) (void)cudaGraphDestroy(graph);
  return error;
}

static void *capture_all(void *arg) {
  captures *c = arg;
  cudaStream_t stream = NULL;
  char *memory = NULL;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
      cudaMalloc((void **)&memory, 8192) != cudaSuccess) {
    atomic_store(&c->broken, c->wanted);
    atomic_store(&c->done, true);
    return NULL;
  }
  for (int i = 0; i < c->wanted || atomic_load(&c->turns) < c->least_turns; i++) {
    const cudaError_t error = capture_once(stream, memory, i % 8 == 0);
    atomic_fetch_add(&c->made, 1);
    if (error == cudaSuccess) continue;
    (void)cudaGetLastError();
    if (atomic_fetch_add(&c->broken, 1) == 0)
      snprintf(c->why, sizeof c->why, "capture %d: %s", i, cudaGetErrorName(error));
  }
  (void)cudaFree(memory);
  (void)cudaStreamDestroy(stream);
  atomic_store(&c->done, true);
  return NULL;
}

/* ---- what is done beside ---- */

static attune_tuner *tuner;
static attune_stream *stream;

static attune_status multiply(attune_tuner *with, attune_stream *on, int64_t m, int64_t n, int64_t k) {
  attune_gemm_problem p = ATTUNE_GEMM_PROBLEM_INIT;
  void *a = NULL, *b = NULL, *d = NULL;
  p.m = m, p.n = n, p.k = k;
  attune_status status = attune_alloc(&a, on, (size_t)(m * k) * 4);
  if (status == ATTUNE_OK) status = attune_alloc(&b, on, (size_t)(k * n) * 4);
  if (status == ATTUNE_OK) status = attune_alloc(&d, on, (size_t)(m * n) * 4);
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  if (status == ATTUNE_OK) status = attune_gemm(with, on, &p, &o);
  (void)attune_free(a, on);
  (void)attune_free(b, on);
  (void)attune_free(d, on);
  return status;
}

static attune_status streams(int turn) {
  attune_stream *made = NULL;
  attune_status status = attune_stream_create(&made, device);
  if (status == ATTUNE_OK && turn % 2 == 0) status = multiply(tuner, made, 64, 64, 64);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(made);
  attune_stream_destroy(made);
  return status;
}

static attune_status events(int turn) {
  attune_event *start = NULL, *stop = NULL;
  double ns = 0;
  attune_status status = attune_event_create(&start, device, NULL);
  if (status == ATTUNE_OK) status = attune_event_create(&stop, device, NULL);
  if (status == ATTUNE_OK) status = attune_event_record(start, stream);
  if (status == ATTUNE_OK) status = attune_event_record(stop, stream);
  if (status == ATTUNE_OK && turn % 2) status = attune_event_query(stop);
  if (status == ATTUNE_NOT_READY) status = ATTUNE_OK;
  if (status == ATTUNE_OK) status = attune_event_synchronize(stop);
  if (status == ATTUNE_OK) status = attune_event_elapsed_ns(&ns, start, stop);
  attune_event_destroy(start);
  attune_event_destroy(stop);
  return status;
}

static attune_status memory(int turn) {
  void *small = NULL, *large = NULL;
  char host[64] = {0};
  attune_status status = attune_alloc(&small, stream, 1000);
  if (status == ATTUNE_OK) status = attune_alloc(&large, stream, (size_t)(21 + turn % 40) * MIB);
  if (status == ATTUNE_OK) status = attune_copy(stream, large, host, sizeof host);
  if (status == ATTUNE_OK) status = attune_copy(stream, host, large, sizeof host);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  (void)attune_free(small, stream);
  (void)attune_free(large, stream);
  return status;
}

static attune_status given_back(int turn) {
  const attune_status status = memory(turn);
  return status == ATTUNE_OK ? attune_memory_empty_cache(device) : status;
}

static attune_status pinned(int turn) {
  void *made = NULL;
  attune_status status = attune_pinned_alloc(&made, device, (size_t)(1 + turn % 9) * 1000000);
  if (status == ATTUNE_OK) status = attune_pinned_record_use(made, stream);
  if (made) (void)attune_pinned_free(made);
  if (status == ATTUNE_OK && turn % 8 == 0) status = attune_pinned_empty_cache(device);
  return status;
}

static attune_status give_work(void *user, attune_stream *on) {
  (void)user;
  return multiply(tuner, on, 32, 32, 32);
}

static attune_status graphs(int turn) {
  attune_graph *made = NULL;
  attune_capture_options options = {.keep_graph = turn % 2};
  int in_place = 0;
  attune_status status = attune_graph_create(&made, device);
  if (status == ATTUNE_OK) status = attune_graph_capture_callback(made, stream, &options, give_work, NULL);
  if (status == ATTUNE_OK) status = attune_graph_replay(made, stream);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  if (status == ATTUNE_OK) status = attune_graph_update(made, stream, give_work, NULL, &in_place);
  if (status == ATTUNE_OK) status = attune_graph_replay(made, stream);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  attune_graph_destroy(made);
  return status;
}

static attune_status numbers(int turn) {
  static const attune_dtype types[] = {ATTUNE_F32, ATTUNE_F64, ATTUNE_F16, ATTUNE_BF16};
  void *made = NULL;
  attune_generator *generator = NULL;
  attune_status status = attune_generator_create(&generator, (uint64_t)turn);
  if (status == ATTUNE_OK) status = attune_alloc(&made, stream, 80000);
  if (status == ATTUNE_OK) status = attune_random_normal(generator, stream, made, types[turn % 4], 10000, 0.0, 1.0);
  (void)attune_free(made, stream);
  attune_generator_destroy(generator);
  return status;
}

/* Problems that were never seen: each is decided, and its kernels are loaded. */
static attune_status products(int turn) {
  return multiply(tuner, stream, 16 + turn % 97, 16 + turn % 89, 16 + turn % 83);
}

static attune_status tuning(int turn) {
  char problem[64];
  snprintf(problem, sizeof problem, "gemm f32 nn %dx%dx%d strict", 64 + 8 * (turn % 50), 64, 64 + turn % 7);
  const attune_status status =
      attune_tune(tuner, device, problem, &(attune_tune_options){.budget_ms = 30.0, .force = 1}, NULL);
  return status == ATTUNE_BUDGET_EXHAUSTED ? ATTUNE_OK : status;
}

static attune_status tuners(int turn) {
  attune_tuner_options options = {
      .database = "", .mode = turn % 4 ? ATTUNE_MODE_CACHED : ATTUNE_MODE_TUNE, .budget_ms = 20.0};
  attune_tuner *made = NULL;
  attune_status status = attune_tuner_create(&made, &options);
  if (status == ATTUNE_OK) status = multiply(made, stream, 100 + turn % 20, 32, 32);
  if (status == ATTUNE_OK) status = attune_stream_synchronize(stream);
  attune_tuner_destroy(made);
  return status;
}

static attune_status figures(int turn) {
  char *text = NULL;
  char line[4096];
  attune_memory_statistics statistics = {0};
  attune_status status = attune_memory_get_statistics(device, &statistics);
  if (status == ATTUNE_OK) status = attune_memory_snapshot(&text, device);
  free(text);
  if (status == ATTUNE_OK) status = attune_device_fingerprint(device, line, sizeof line);
  if (status == ATTUNE_OK && turn % 2) status = attune_stream_query(stream);
  return status == ATTUNE_NOT_READY ? ATTUNE_OK : status;
}

static void nothing(void *user) {
  (void)user;
}

static attune_status calls(int turn) {
  (void)turn;
  return attune_stream_call(stream, nothing, NULL);
}

typedef struct kind {
  const char *name;
  attune_status (*work)(int turn);
} kind;

static const kind kinds[] = {{"streams", streams}, {"events", events}, {"memory", memory},   {"given back", given_back},
                             {"pinned", pinned},   {"graphs", graphs}, {"numbers", numbers}, {"products", products},
                             {"tuning", tuning},   {"tuners", tuners}, {"figures", figures}, {"calls", calls}};
enum { KINDS = (int)(sizeof kinds / sizeof kinds[0]) };

static attune_status open_attune(void) {
  attune_tuner_options options = {.database = "", .mode = ATTUNE_MODE_CACHED};
  attune_status status = attune_device_get(&device, "cuda:0");
  if (status == ATTUNE_OK) status = attune_tuner_create(&tuner, &options);
  return status == ATTUNE_OK ? attune_stream_create(&stream, device) : status;
}

/* Captures while `work` runs turn after turn. */
static bool run_beside(const char *name, attune_status (*work)(int turn), int wanted, int least_turns) {
  captures c = {.wanted = wanted, .least_turns = least_turns};
  pthread_t thread;
  attune_status status = ATTUNE_OK;
  int turns = 0;
  assert_int_equal(pthread_create(&thread, NULL, capture_all, &c), 0);
  while (!atomic_load(&c.done)) {
    status = work(turns);
    if (status != ATTUNE_OK) break;
    atomic_store(&c.turns, ++turns);
  }
  atomic_store(&c.turns, INT_MAX); /* whatever became of the work, the captures end */
  pthread_join(thread, NULL);
  const int broken = atomic_load(&c.broken);
  printf("%-12s %5d captures, %d broken%s%s; %d turns beside%s%s\n", name, atomic_load(&c.made), broken,
         broken ? ", the first is " : "", c.why, turns,
         status == ATTUNE_OK ? "" : ", which then failed: ", status == ATTUNE_OK ? "" : attune_last_message());
  return broken == 0 && status == ATTUNE_OK && turns >= least_turns;
}

static int captures_wanted(void) {
  const char *text = getenv("ATTUNE_TEST_CAPTURES");
  return text ? atoi(text) : 300;
}

/* In a process of its own: everything for the first time, from the device on. */
static attune_status first_use(int turn) {
  if (turn == 0) {
    const attune_status status = open_attune();
    if (status != ATTUNE_OK) return status;
  }
  for (int i = 0; i < KINDS; i++) {
    const attune_status status = kinds[i].work == tuning ? ATTUNE_OK : kinds[i].work(turn);
    if (status != ATTUNE_OK) return status;
  }
  return ATTUNE_OK;
}

TEST(none_breaks_at_first_use) {
  const char *only = getenv("ATTUNE_TEST_KIND");
  if (only && strcmp(only, "first use") != 0) return;
  for (int left = captures_wanted() / 4; left > 0; left -= FIRST_CAPTURES) {
    const attune_memory_handle none = {{0}, 0, 0};
    const pid_t child = start_other("--first", &none, NULL);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
}

TEST(none_breaks) {
  const char *only = getenv("ATTUNE_TEST_KIND");
  bool whole = true;
  assert_int_equal(open_attune(), ATTUNE_OK);
  for (int i = 0; i < KINDS; i++)
    if (!only || strcmp(only, kinds[i].name) == 0)
      whole = run_beside(kinds[i].name, kinds[i].work, captures_wanted() / KINDS + 1, LEAST_TURNS) && whole;
  (void)attune_stream_synchronize(stream);
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  assert_true(whole);
}

int main(int argc, char **argv) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return skip_all("no CUDA device");
  if (argc > 1 && strcmp(argv[1], "--first") == 0) return run_beside("first use", first_use, FIRST_CAPTURES, 1) ? 0 : 1;
  return RUN_TESTS(NULL, NULL);
}
