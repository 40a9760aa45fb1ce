/* SPDX-License-Identifier: Apache-2.0
 * test_churn.c: rounds of making and destroying on the host: nothing grows. */
#include "tests/src/memory/churn.h"

FIXTURE(open_all) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  const char *text = getenv("ATTUNE_TEST_ROUNDS");
  rounds = text ? atoi(text) : 2000;
  options.database = "";
  options.mode = ATTUNE_MODE_CACHED;
  return attune_device_get(&device, "host") != ATTUNE_OK || attune_stream_create(&stream, device) != ATTUNE_OK ||
         attune_tuner_create(&tuner, &options) != ATTUNE_OK;
}

FIXTURE(close_all) {
  attune_stream_destroy(stream);
  attune_tuner_destroy(tuner);
  return 0;
}

TEST(handles) {
  churn("streams", rounds, one_stream);
  churn("events", rounds, one_event);
  churn("generators", rounds, one_generator);
  churn("workloads", rounds / 10, one_workload);
}

TEST(memory) {
  churn("pools", rounds, one_pool);
  churn("pools with an allocator", rounds, one_own_pool);
  churn("pinned memory", rounds, one_pinned);
  churn("snapshots and histories", rounds / 10, one_text);
}

TEST(graphs) {
  churn("graphs", rounds, one_graph);
  churn("broken captures", rounds, one_broken_graph);
}

TEST(other_segments) {
  OK(attune_memory_empty_cache(device));
  OK(attune_memory_configure(device, "expandable_segments:false"));
  churn("graphs, plain segments", rounds, one_graph);
  churn("pools, plain segments", rounds, one_pool);
  OK(attune_memory_empty_cache(device));
  OK(attune_memory_configure(device, "backend:none"));
  churn("graphs, nothing cached", rounds / 4, one_graph);
  churn("pools, nothing cached", rounds / 4, one_pool);
  OK(attune_memory_empty_cache(device));
  OK(attune_memory_configure(device, "backend:caching,expandable_segments:true"));
}

TEST(tuners_and_plans) {
  churn("plans", rounds, one_plan);
  churn("modes", rounds, one_mode);
  churn("tuners", rounds / 4, one_tuner);
  free_operands();
}

int main(void) {
  return RUN_TESTS(open_all, close_all);
}
