/* SPDX-License-Identifier: Apache-2.0
 * bench_work.h: a case of known cost on the virtual clock, for tests of workers. Included once in a test. */
#ifndef AT_TEST_BENCH_WORK_H
#define AT_TEST_BENCH_WORK_H

#include "tests/tools/bench/bench_client.h"

#include <math.h>

#include "tests/support/virtual_clock.h"

/* A case of known cost, that may fail. */
typedef struct work {
  int64_t ns;
  int set_ups, runs, tear_downs;
  int slow_runs;  /* the first ones take 20 times as long */
  int fails_at;   /* this run; 0: none */
  bool no_set_up; /* it fails */
  attune_stream *stream;
} work;

static inline attune_status set_up(void *arg) {
  work *w = arg;
  w->set_ups++;
  if (!w->no_set_up) return ATTUNE_OK;
  return attune_stream_synchronize(NULL); /* any call that fails */
}

static inline attune_status spend(void *arg, attune_stream *stream) {
  work *w = arg;
  w->stream = stream;
  w->runs++;
  virtual_clock_pass(w->runs <= w->slow_runs ? 20 * w->ns : w->ns, 2.0);
  return w->runs == w->fails_at ? ATTUNE_DEVICE_ERROR : ATTUNE_OK;
}

static inline void tear_down(void *arg) {
  ((work *)arg)->tear_downs++;
}

static inline attune_bench_case case_of(const char *name, work *w) {
  return (attune_bench_case){.size = sizeof(attune_bench_case),
                             .name = name,
                             .set_up = set_up,
                             .run = spend,
                             .tear_down = tear_down,
                             .arg = w};
}

static inline attune_bench *bench_of(const attune_bench_case *cases, int count) {
  attune_bench *bench = NULL;
  OK(attune_bench_create(&bench));
  for (int i = 0; i < count; i++) OK(attune_bench_add(bench, &cases[i]));
  return bench;
}

static inline void near(double value, double wanted, double part) {
  if (!(fabs(value - wanted) <= part * wanted)) fail_msg("%g is not %g", value, wanted);
}

#endif
