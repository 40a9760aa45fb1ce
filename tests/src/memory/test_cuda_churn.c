/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_churn.c: rounds of making and destroying on a GPU: neither the process nor the device grows. */
#include "tests/src/memory/churn.h"
#include "tests/support/gpu.h"

#include <cuda_runtime_api.h>

static uint64_t used_bytes(void) {
  size_t available = 0, total = 0;
  assert_int_equal(cudaMemGetInfo(&available, &total), cudaSuccess);
  return total - available;
}

FIXTURE(open_all) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  const char *text = getenv("ATTUNE_TEST_ROUNDS");
  rounds = text ? atoi(text) : 200;
  device_bytes = used_bytes;
  options.database = "";
  options.mode = ATTUNE_MODE_CACHED;
  return attune_stream_create(&stream, device) != ATTUNE_OK || attune_tuner_create(&tuner, &options) != ATTUNE_OK;
}

FIXTURE(close_all) {
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return 0;
}

/* With a product on it the stream has a cuBLAS handle and a workspace. */
static void one_busy_stream(int round) {
  attune_stream *made = NULL;
  void *memory = NULL;
  attune_gemm_problem problem = ATTUNE_GEMM_PROBLEM_INIT;
  problem.m = problem.n = problem.k = 16 + round % 3;
  OK(attune_stream_create(&made, device));
  OK(attune_alloc(&memory, made, 3 * 4096));
  char *bytes = memory;
  const attune_gemm_operands o = {.alpha = 1.0, .a = bytes, .b = bytes + 4096, .d = bytes + 8192};
  OK(attune_gemm(tuner, made, &problem, &o));
  OK(attune_free(memory, made));
  attune_stream_destroy(made);
}

static void one_wrapped_stream(int round) {
  attune_stream *made = NULL;
  (void)round;
  OK(attune_stream_wrap(&made, device, attune_stream_native(stream)));
  void *memory = NULL;
  OK(attune_alloc(&memory, made, 4096));
  OK(attune_free(memory, made));
  attune_stream_destroy(made);
}

static void one_export(int round) {
  attune_memory_handle handle;
  attune_event_ipc words;
  attune_event *event = NULL;
  void *memory = NULL;
  OK(attune_alloc(&memory, stream, (size_t)(1 + round % 5) * 8 * MIB));
  OK(attune_memory_export(&handle, memory));
  OK(attune_free(memory, stream));
  OK(attune_event_create(&event, device, &(attune_event_options){.no_timing = 1, .interprocess = 1}));
  OK(attune_event_ipc_export(event, &words));
  attune_event_destroy(event);
}

TEST(handles) {
  churn("streams", rounds, one_stream);
  churn("streams with products", rounds, one_busy_stream);
  churn("wrapped streams", rounds, one_wrapped_stream);
  churn("events", rounds, one_event);
  churn("generators", rounds, one_generator);
  churn("exports", rounds, one_export);
}

TEST(memory) {
  churn("pools", rounds, one_pool);
  churn("pinned memory", rounds, one_pinned);
}

TEST(graphs) {
  churn("graphs", rounds, one_graph);
  churn("broken captures", rounds, one_broken_graph);
}

TEST(tuners_and_plans) {
  churn("plans", rounds, one_plan);
  churn("modes", rounds, one_mode);
  churn("tuners", rounds / 4, one_tuner);
  free_operands();
}

TEST(plain_segments) {
  OK(attune_memory_empty_cache(device));
  OK(attune_memory_configure(device, "expandable_segments:false"));
  churn("graphs, plain segments", rounds, one_graph);
  churn("pools, plain segments", rounds, one_pool);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("no CUDA device");
  return RUN_TESTS(open_all, close_all);
}
