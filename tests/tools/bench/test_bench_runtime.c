/* SPDX-License-Identifier: Apache-2.0
 * test_bench_runtime.c: every case of the suite "runtime" does its work on the host, again and again, and leaves
 * nothing behind; served, each gives a time. */
#include "tests/tools/bench/bench_client.h"

#include <math.h>

#include "tools/cli/bench/suite_runtime.h"

enum { LEAST_CASES = 15, OPENINGS = 2 };

static attune_device *device;
static attune_tuner *tuner;
static attune_bench *bench;

static uint64_t allocated(void) {
  attune_memory_statistics s = {0};
  OK(attune_memory_get_statistics(device, &s));
  return s.allocation[0].current;
}

/* Before there is a stream's thread: else the pool's take over its stack, which a memory checker holds to be lost. */
static bool start_pool(void) {
  enum { COUNT = 1 << 20 };
  attune_stream *stream = attune_stream_default(device);
  attune_generator *generator = NULL;
  void *memory = NULL;
  const bool done = attune_generator_create(&generator, 1) == ATTUNE_OK &&
                    attune_alloc(&memory, stream, COUNT * sizeof(float)) == ATTUNE_OK &&
                    attune_random_normal(generator, stream, memory, ATTUNE_F32, COUNT, 0.0, 1.0) == ATTUNE_OK &&
                    attune_free(memory, stream) == ATTUNE_OK;
  attune_generator_destroy(generator);
  return done;
}

TEST(cases_work_and_leave_nothing) {
  assert_true(attune_bench_size(bench) >= LEAST_CASES);
  const uint64_t before = allocated();
  const int calls = getenv("AT_UNDER_VALGRIND") ? 1 : 3;
  for (size_t i = 0; i < attune_bench_size(bench); i++) {
    const attune_bench_case *c = attune_bench_at(bench, i);
    assert_int_equal(strncmp(c->name, "runtime/", 8), 0);
    assert_null(c->device); /* of the host: the calling thread's */
    for (int opening = 0; opening < OPENINGS; opening++) {
      OK(c->set_up(c->arg));
      for (int call = 0; call < calls; call++)
        if (c->run(c->arg, NULL) != ATTUNE_OK) fail_msg("%s: %s", c->name, attune_last_message());
      c->tear_down(c->arg);
    }
    if (allocated() != before) fail_msg("%s leaves memory behind", c->name);
  }
}

TEST(each_gives_a_time) {
  bench_client c;
  bench_client_start(&c, bench);
  for (int i = 0; i < (int)attune_bench_size(bench); i++) {
    bench_client_sample sample;
    (void)bench_client_open(&c, i, 20000);
    bench_client_samples(&c, 1, &sample, "end\t0\t0");
    if (!(sample.ns > 0.0 && isfinite(sample.ns))) fail_msg("case %d takes %g ns", i, sample.ns);
    bench_client_close(&c);
  }
  OK(bench_client_end(&c));
}

TEST(names_are_taken_once) {
  assert_false(suite_runtime_add(bench, tuner, device));
  assert_non_null(strstr(attune_last_message(), "runtime/"));
}

int main(void) {
  attune_tuner_options options = {.database = ""};
  if (attune_device_get(&device, "host") != ATTUNE_OK || !start_pool() ||
      attune_tuner_create(&tuner, &options) != ATTUNE_OK || attune_bench_create(&bench) != ATTUNE_OK ||
      !suite_runtime_add(bench, tuner, device))
    return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_bench_destroy(bench);
  attune_tuner_destroy(tuner);
  return failed;
}
