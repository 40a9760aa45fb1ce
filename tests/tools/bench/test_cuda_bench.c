/* SPDX-License-Identifier: Apache-2.0
 * test_cuda_bench.c: cases on a GPU: work of known size, problems of a workload and the suite "runtime", cold and hot,
 * call by call and as graphs. Exits 77 where there is no GPU. */
#include "tests/tools/bench/bench_client.h"

#include <attune/attune.h>
#include <attune/tools.h>

#include <math.h>

#include "tests/support/gpu.h"
#include "tools/cli/bench/suite_runtime.h"

enum { SAMPLE_NS = 1000000, SAMPLES = 3 };

static attune_device *device;
static attune_tuner *tuner;

/* The best of some samples; *mhz is the clock that was told. */
static double best_of(bench_client *c, int index, int *mhz) {
  double best = (double)INFINITY;
  char text[64];
  int throttled = 0;
  (void)bench_client_open(c, index, SAMPLE_NS);
  snprintf(text, sizeof text, "sample\t%d\n", SAMPLES);
  bench_client_ask(c, text);
  for (int i = 0; i < SAMPLES; i++) {
    double ns = 0.0;
    assert_int_equal(sscanf(bench_client_begins(c, "sample\t"), "sample\t%*d\t%lf", &ns), 1);
    if (ns < best) best = ns;
  }
  assert_int_equal(sscanf(bench_client_begins(c, "end\t"), "end\t%d\t%d", mhz, &throttled), 2);
  bench_client_close(c);
  return best;
}

static const unsigned ways[] = {0, ATTUNE_BENCH_COLD, ATTUNE_BENCH_GRAPH, ATTUNE_BENCH_COLD | ATTUNE_BENCH_GRAPH};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- work of known size ---- */

typedef struct copying {
  char *memory;
  size_t bytes;
} copying;

static attune_status copy(void *arg, attune_stream *stream) {
  const copying *c = arg;
  return attune_copy(stream, c->memory + c->bytes, c->memory, c->bytes);
}

/* A copy is not faster than any memory; one of much more takes longer; one that finds the L2 empty is not faster. */
TEST(copies_take_their_time) {
  static const size_t sizes[] = {(size_t)8 << 20, (size_t)512 << 20};
  const double most_bytes_a_ns = 20e3; /* L2's, and more */
  attune_stream *stream = attune_stream_default(device);
  copying work[2];
  attune_bench *bench = NULL;
  bench_client c;
  double ns[2][WAYS];
  OK(attune_bench_create(&bench));
  for (int i = 0; i < 2; i++) {
    void *memory = NULL;
    OK(attune_alloc(&memory, stream, 2 * sizes[i]));
    OK(attune_fill(stream, memory, 1, 2 * sizes[i]));
    work[i] = (copying){memory, sizes[i]};
    for (int way = 0; way < WAYS; way++) {
      char name[32];
      snprintf(name, sizeof name, "copy %d %d", i, way);
      OK(attune_bench_add(bench, &(attune_bench_case){.size = sizeof(attune_bench_case),
                                                      .name = name,
                                                      .device = device,
                                                      .run = copy,
                                                      .arg = &work[i],
                                                      .bytes = 2.0 * (double)sizes[i],
                                                      .flags = ways[way]}));
    }
  }
  OK(attune_stream_synchronize(stream));
  bench_client_start(&c, bench);
  for (int i = 0; i < 2; i++)
    for (int way = 0; way < WAYS; way++) {
      int mhz = -1;
      ns[i][way] = best_of(&c, i * WAYS + way, &mhz);
      print_message("copy of %zu MB, flags %u: %.0f ns, %d MHz\n", sizes[i] >> 20, ways[way], ns[i][way], mhz);
      assert_true(ns[i][way] >= 2.0 * (double)sizes[i] / most_bytes_a_ns);
      assert_true(mhz == 0 || (mhz >= 100 && mhz < 10000));
    }
  OK(bench_client_end(&c));
  for (int way = 0; way < WAYS; way++) assert_true(ns[1][way] > 4.0 * ns[0][way]);
  assert_true(ns[0][1] > 0.9 * ns[0][0]);
  attune_bench_destroy(bench);
  for (int i = 0; i < 2; i++) OK(attune_free(work[i].memory, stream));
}

/* ---- problems ---- */

static attune_workload *some_problems(void) {
  char path[] = "/tmp/attune-bench-XXXXXX";
  attune_workload *workload = NULL;
  const int file = mkstemp(path);
  FILE *out = file < 0 ? NULL : fdopen(file, "w");
  assert_non_null(out);
  fputs("name,problem\n"
        "large,gemm bf16 tn 2048x2048x2048 strict\n"
        "small,gemm f32 nn 64x48x32 strict\n"
        "add,\"elementwise 1000000 strict out=f32 : f32 i0, f32 i1: i0 + i1\"\n"
        "draw,\"elementwise 100000 strict out=f32 : : rand()\"\n",
        out);
  assert_int_equal(fclose(out), 0);
  const attune_status status = attune_workload_read(&workload, path);
  unlink(path);
  OK(status);
  return workload;
}

TEST(problems_are_timed) {
  attune_workload *workload = some_problems();
  for (int way = 0; way < WAYS; way++) {
    attune_bench *bench = NULL;
    bench_client c;
    OK(attune_bench_create(&bench));
    OK(attune_bench_add_workload(bench, tuner, device, workload, ways[way]));
    bench_client_start(&c, bench);
    for (int i = 0; i < (int)attune_bench_size(bench); i++) {
      int mhz = 0;
      const attune_bench_case *one = attune_bench_at(bench, (size_t)i);
      const double ns = best_of(&c, i, &mhz);
      print_message("%s, flags %u: %.0f ns, %d MHz\n", one->name, ways[way], ns, mhz);
      assert_true(ns > 100.0 && one->flops / ns < 4e6); /* below 4 PFLOP/s */
    }
    OK(bench_client_end(&c));
    attune_bench_destroy(bench);
  }
  attune_workload_destroy(workload);
}

TEST(the_runtime_is_timed) {
  attune_bench *bench = NULL;
  bench_client c;
  OK(attune_bench_create(&bench));
  assert_true(suite_runtime_add(bench, tuner, device));
  bench_client_start(&c, bench);
  for (int i = 0; i < (int)attune_bench_size(bench); i++) {
    int mhz = 0;
    const double ns = best_of(&c, i, &mhz);
    print_message("%s: %.0f ns, %d MHz\n", attune_bench_at(bench, (size_t)i)->name, ns, mhz);
    assert_true(ns > 0.0 && isfinite(ns));
  }
  OK(bench_client_end(&c));
  attune_bench_destroy(bench);
}

int main(void) {
  if (attune_device_get(&device, test_gpu()) != ATTUNE_OK) return skip_all("%s", attune_last_message());
  if (attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}) != ATTUNE_OK) return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_tuner_destroy(tuner);
  return failed;
}
