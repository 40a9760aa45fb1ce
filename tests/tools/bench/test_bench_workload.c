/* SPDX-License-Identifier: Apache-2.0
 * test_bench_workload.c: problems of a workload as cases: what they are called and cost, that the tuner's own choice is
 * what runs, and that the calls which are timed are those of the public function. */
#include "tests/tools/bench/bench_client.h"

#include <attune/profile.h>

#include <math.h>

#include "ops/gemm/problem/problem.h"
#include "ops/ops.h"
#include "tests/support/toy/toy_database.h"
#include "tools/bench/suite.h"
#include "tuning/measure/operand_set.h"
#include "tuning/tuner/tuner.h"
#include "tuning/workload/workload.h"

enum { SAMPLE_NS = 100000 };

/* ---- workloads ---- */

static char folder[] = "/tmp/attune-bench-XXXXXX";

static attune_workload *workload_of(const char *text, const at_workload_ops *ops) {
  char path[64];
  attune_workload *workload = NULL;
  snprintf(path, sizeof path, "%s/workload.csv", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  OK(ops ? at_workload_read(&workload, path, ops) : attune_workload_read(&workload, path));
  (void)unlink(path);
  return workload;
}

static attune_tuner *tuner_without_database(void) {
  attune_tuner *tuner = NULL;
  OK(attune_tuner_create(&tuner, &(attune_tuner_options){.database = ""}));
  return tuner;
}

static attune_bench *bench_with(attune_tuner *tuner, const attune_workload *workload, unsigned flags) {
  attune_bench *bench = NULL;
  OK(attune_bench_create(&bench));
  OK(attune_bench_add_workload(bench, tuner, device, workload, flags));
  return bench;
}

/* ---- what runs ---- */

static double sample_of(attune_bench *bench, int index, long long *calls) {
  bench_client c;
  bench_client_sample samples[2];
  bench_client_start(&c, bench);
  *calls = bench_client_open(&c, index, SAMPLE_NS);
  assert_true(*calls >= 1);
  bench_client_samples(&c, 2, samples, "end\t0\t0");
  for (int i = 0; i < 2; i++)
    if (!(samples[i].ns > 0.0 && isfinite(samples[i].ns) && samples[i].cpu_ns >= 0.0))
      fail_msg("%s takes %g ns, %g ns of CPU", attune_bench_at(bench, (size_t)index)->name, samples[i].ns,
               samples[i].cpu_ns);
  bench_client_close(&c);
  OK(bench_client_end(&c));
  return samples[1].ns;
}

/* The stored winner takes 100 us, the default 200. First of all, and the last on the virtual clock. */
TEST(winners_run) {
  static const char *const spins[] = {"ns=100000", NULL};
  const at_op *const *each = toy_ops;
  const at_workload_ops ops = {each, 1, each[0]};
  long long calls = 0;
  toy_reset();
  at_copy_text(toy_base, sizeof toy_base, "ns=200000");
  toy_spins = spins;
  attune_workload *workload = workload_of("name,problem\ntoy," TOY_PROBLEM "\n", &ops);
  for (int tuned = 0; tuned < 2; tuned++) {
    if (tuned) (void)tune(0.0, 0);
    attune_tuner *tuner = tuner_of();
    attune_bench *bench = bench_with(tuner, workload, 0);
    const double ns = sample_of(bench, 0, &calls), right = tuned ? 100000.0 : 200000.0;
    if (!(fabs(ns - right) < 0.01 * right)) fail_msg("it takes %g ns, not %g", ns, right);
    attune_bench_destroy(bench);
    attune_tuner_destroy(tuner);
  }
  attune_workload_destroy(workload);
  virtual_clock_stop();
}

/* ---- cases ---- */

static void check_case(const attune_bench *bench, size_t index, const char *name, double bytes, double flops,
                       attune_dtype dtype) {
  const attune_bench_case *c = attune_bench_at(bench, index);
  assert_non_null(c);
  assert_string_equal(c->name, name);
  assert_ptr_equal(c->device, device);
  if (c->bytes != bytes || c->flops != flops || c->dtype != dtype)
    fail_msg("%s: %g bytes, %g flops in %s", name, c->bytes, c->flops, attune_dtype_name(c->dtype));
}

enum { ROWS = 6 };

static attune_workload *some_problems(void) {
  return workload_of("name,problem\n"
                     "small,gemm f32 nn 24x16x8 strict\n"
                     "small,gemm f64 tn 5x7x9 strict\n"
                     "add,\"elementwise 1001 strict out=f32 : f32 i0, f32 i1: i0 + i1\"\n"
                     "draw,elementwise 1000 strict out=f32 : : rand()\n"
                     "fast,gemm f32 nn 24x16x8 reduced\n"
                     ",\"gemm bf16 nn 33x35x37 strict ldd=40 lda=39 ldb=38 deterministic workspace=65536\"\n",
                     NULL);
}

TEST(problems_are_cases) {
  char arithmetic[AT_BENCH_ARITHMETIC_CHARS];
  attune_workload *workload = some_problems();
  attune_tuner *tuner = tuner_without_database();
  attune_bench *bench = bench_with(tuner, workload, 0);
  assert_int_equal(attune_bench_size(bench), ROWS);
  check_case(bench, 0, "small", 4.0 * (24 * 8 + 8 * 16 + 24 * 16), 2.0 * 24 * 16 * 8, ATTUNE_F32);
  check_case(bench, 1, "small #2", 8.0 * (5 * 9 + 9 * 7 + 5 * 7), 2.0 * 5 * 7 * 9, ATTUNE_F64);
  check_case(bench, 2, "add", 3.0 * 4 * 1001, 1001.0, ATTUNE_F32); /* of the row's own size, not of its class */
  check_case(bench, 3, "draw", 4.0 * 1000, 1000.0, ATTUNE_F32);
  assert_int_equal(attune_bench_at(bench, 4)->accuracy, ATTUNE_REDUCED);
  at_bench_arithmetic(arithmetic, attune_bench_at(bench, 4));
  assert_string_equal(arithmetic, "f32-reduced");
  check_case(bench, 5, attune_workload_at(workload, 5)->problem, 2.0 * (33 * 37 + 37 * 35 + 33 * 35),
             2.0 * 33 * 35 * 37, ATTUNE_BF16);
  OK(attune_bench_add_workload(bench, tuner, device, workload, ATTUNE_BENCH_COLD));
  assert_int_equal(attune_bench_size(bench), 2 * ROWS);
  assert_string_equal(attune_bench_at(bench, ROWS + 2)->name, "add #2");
  assert_int_equal(attune_bench_at(bench, ROWS + 2)->flags, ATTUNE_BENCH_COLD);
  assert_null(attune_bench_at(bench, 2 * ROWS));
  attune_workload_destroy(workload);
  attune_bench_destroy(bench);
  attune_tuner_destroy(tuner);
}

typedef struct wanted {
  const char *problem;
  uint64_t calls;
} wanted;

static int count_calls(void *user, const attune_profile_entry *entry) {
  wanted *w = user;
  if (strcmp(entry->problem, w->problem) == 0) w->calls += entry->calls;
  return 0;
}

/* The tuner counts every call of the public function; a graph's only when it is captured. */
TEST(every_kind_of_sample) {
  static const unsigned flags[] = {0, ATTUNE_BENCH_COLD, ATTUNE_BENCH_GRAPH, ATTUNE_BENCH_COLD | ATTUNE_BENCH_GRAPH};
  const uint64_t cache = device->properties.cache_bytes;
  device->properties.cache_bytes = 1 << 20; /* soon emptied */
  attune_workload *workload = some_problems();
  attune_bench *bench = NULL;
  attune_tuner *tuners[4];
  OK(attune_bench_create(&bench));
  for (int way = 0; way < 4; way++) {
    tuners[way] = tuner_without_database();
    OK(attune_bench_add_workload(bench, tuners[way], device, workload, flags[way]));
  }
  for (int i = 0; i < 4 * ROWS; i++) {
    long long calls = 0;
    const bool graph = flags[i / ROWS] & ATTUNE_BENCH_GRAPH;
    wanted w = {attune_workload_at(workload, (size_t)i % ROWS)->problem, 0};
    (void)sample_of(bench, i, &calls);
    OK(attune_tuner_profile(tuners[i / ROWS], count_calls, &w, NULL));
    if (i % ROWS == 2 || i % ROWS == 3) continue; /* told by their class */
    if (graph ? w.calls == 0 : w.calls < 2 * (uint64_t)calls)
      fail_msg("%s: %lld calls a sample, the tuner counts %llu", w.problem, calls, (unsigned long long)w.calls);
  }
  attune_bench_destroy(bench);
  for (int way = 0; way < 4; way++) attune_tuner_destroy(tuners[way]);
  attune_workload_destroy(workload);
  device->properties.cache_bytes = cache;
}

/* ---- the calls that are timed ---- */

static at_random *data;

static at_operand_set *operands_of(const at_op *op, const void *problem) {
  at_operand_set *set = NULL;
  OK(at_operand_set_create(&set, op, problem, attune_stream_default(device), data, 2, (size_t)8 << 20, false));
  assert_int_equal(set->copies, 2);
  at_operand_set_place(set, 7);
  return set;
}

/* Does the mapping that the address lies in ask for huge pages? The kernel's flag of it is hg. */
static bool asks_for_huge_pages(const void *address) {
  FILE *maps = fopen("/proc/self/smaps", "r");
  char line[512];
  bool here = false, found = false, huge = false;
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) {
    unsigned long from = 0, to = 0;
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) here = (uintptr_t)address >= from && (uintptr_t)address < to;
    if (!here || strncmp(line, "VmFlags:", 8) != 0) continue;
    found = true;
    huge = strstr(line, " hg") != NULL;
  }
  fclose(maps);
  assert_true(found);
  return huge;
}

/* Operands lie in ordinary memory, as a program's do; attune's own allocator asks for huge pages. */
TEST(operands_are_in_plain_memory) {
  uint64_t problem[AT_PROBLEM_BYTES / 8];
  void *own = NULL;
  at_operand_set *set = NULL;
  OK(attune_device_get(&device, "host"));
  OK(at_gemm_op.problem->parse("gemm f32 nn 1024x1024x1024 strict align=64", problem));
  at_random *random = NULL;
  OK(at_random_create(&random, 42));
  OK(at_operand_set_create(&set, &at_gemm_op, problem, attune_stream_default(device), random, 1, (size_t)32 << 20,
                           false));
  for (int i = 0; i < set->buffer_count; i++)
    assert_false(asks_for_huge_pages((char *)set->pointers[0][i] + (2 << 20)));
  at_operand_set_destroy(set);
  OK(attune_alloc(&own, attune_stream_default(device), 8 << 20));
  if (!asks_for_huge_pages((char *)own + (2 << 20))) print_message("this kernel has no huge pages to ask for\n");
  OK(attune_free(own, attune_stream_default(device)));
  at_random_destroy(random);
}

/* Call 1 of a row writes what the public call writes, into copy 1 alone. */
static void check_calls(attune_tuner *tuner, const at_op_test *op_test, const void *problem) {
  const at_op *op = op_test->op;
  attune_stream *stream = attune_stream_default(device);
  at_operand_set *one = operands_of(op, problem), *row = operands_of(op, problem);
  void *calls = NULL;
  char text[AT_PROBLEM_CHARS];
  OK(op->problem->format(problem, text, sizeof text));
  if (strstr(text, "pointers=device")) { /* of GPUs */
    at_operand_set_destroy(one);
    at_operand_set_destroy(row);
    return;
  }
  const at_bare_calls each = {row->operands, row->operands_stride, row->copies, 0, 0};
  OK(op_test->call(tuner, stream, problem, at_operand_set_operands(one, 1)));
  OK(op->calls->create(&calls, tuner, problem, &each));
  OK(op->calls->run(calls, stream, 2 * row->copies + 1, 2 * row->copies + 2));
  for (int copy = 0; copy < 2; copy++)
    for (int i = 0; i < one->buffer_count; i++)
      if (!one->buffers[i].addresses &&
          memcmp(one->pointers[copy][i], row->pointers[copy][i], one->buffers[i].bytes) != 0)
        fail_msg("%s: copy %d differs in buffer %d", text, copy, i);
  op->calls->destroy(calls);
  at_operand_set_destroy(one);
  at_operand_set_destroy(row);
}

TEST(calls_are_the_public_ones) {
  enum { BYTES = 1 << 18, EVERY = 7 };
  uint64_t problem[AT_PROBLEM_BYTES / 8];
  attune_tuner *tuner = tuner_without_database();
  OK(at_random_create(&data, 42));
  for (int o = 0; o < at_op_count; o++) {
    const at_op_test *op_test = at_op_test_at(o);
    const at_op *op = op_test->op;
    int checked = 0;
    assert_non_null(op->calls);
    for (int i = 0; i < op_test->case_count(); i += EVERY) {
      size_t bytes = 0;
      memset(problem, 0, sizeof problem);
      if (!op_test->case_at(i, problem) || at_operand_bytes(op, problem, &bytes) != ATTUNE_OK || bytes > BYTES)
        continue;
      check_calls(tuner, op_test, problem);
      checked++;
    }
    assert_true(checked > 3);
  }
  at_random_destroy(data);
  attune_tuner_destroy(tuner);
}

/* ---- what is refused ---- */

static void refused(attune_status status, attune_status wanted_status, const char *words) {
  FAILS(status, wanted_status);
  if (!strstr(attune_last_message(), words)) fail_msg("\"%s\" lacks \"%s\"", attune_last_message(), words);
}

TEST(bad_input_is_refused) {
  attune_workload *workload = some_problems();
  attune_tuner *gemm = tuner_without_database(), *toys = tuner_of();
  attune_bench *bench = bench_with(gemm, workload, 0);
  refused(attune_bench_add_workload(bench, toys, device, workload, 0), ATTUNE_BAD_DATA,
          "problem 1, \"gemm f32 nn 24x16x8 strict");
  refused(attune_bench_add_workload(NULL, gemm, device, workload, 0), ATTUNE_INVALID_ARGUMENT, "bench is NULL");
  refused(attune_bench_add_workload(bench, NULL, device, workload, 0), ATTUNE_INVALID_ARGUMENT, "tuner is NULL");
  refused(attune_bench_add_workload(bench, gemm, NULL, workload, 0), ATTUNE_INVALID_ARGUMENT, "device is NULL");
  refused(attune_bench_add_workload(bench, gemm, device, NULL, 0), ATTUNE_INVALID_ARGUMENT, "workload is NULL");
  refused(attune_bench_add_workload(bench, gemm, device, workload, 4), ATTUNE_INVALID_ARGUMENT, "flags is 0x4");
  assert_int_equal(attune_bench_size(bench), ROWS); /* as before */
  attune_workload_destroy(workload);
  attune_bench_destroy(bench);
  attune_tuner_destroy(gemm);
  attune_tuner_destroy(toys);
}

/* A later problem of several is of no known operation: none of them is added. */
TEST(all_or_none) {
  const at_op *const both[] = {at_ops[AT_OP_GEMM], &toy_op};
  const at_workload_ops ops = {both, 2, both[0]};
  attune_workload *workload = workload_of("problem\ngemm f32 nn 4x4x4 strict\n" TOY_PROBLEM "\n", &ops);
  attune_tuner *tuner = tuner_without_database();
  attune_bench *bench = NULL;
  OK(attune_bench_create(&bench));
  refused(attune_bench_add_workload(bench, tuner, device, workload, 0), ATTUNE_BAD_DATA, "problem 2, \"toy ");
  assert_int_equal(attune_bench_size(bench), 0);
  attune_workload_destroy(workload);
  attune_bench_destroy(bench);
  attune_tuner_destroy(tuner);
}

/* It is told as failed, and the next one is timed. */
TEST(a_problem_too_large_fails) {
  attune_workload *workload = workload_of(
      "name,problem\nhuge,gemm f64 nn 4000000x4000000x4000000 strict\nsmall,gemm f32 nn 4x4x4 strict\n", NULL);
  attune_tuner *tuner = tuner_without_database();
  attune_bench *bench = bench_with(tuner, workload, 0);
  bench_client c;
  bench_client_start(&c, bench);
  bench_client_ask(&c, "open\t0\t100000\n");
  bench_client_begins(&c, "failed\tset_up: out of memory: ");
  (void)bench_client_open(&c, 1, SAMPLE_NS);
  bench_client_close(&c);
  OK(bench_client_end(&c));
  attune_workload_destroy(workload);
  attune_bench_destroy(bench);
  attune_tuner_destroy(tuner);
}

int main(void) {
  if (!mkdtemp(folder) || !open_toy_database()) return 1;
  const int failed = close_toy_database(RUN_TESTS(NULL, NULL));
  return rmdir(folder) == 0 ? failed : 1;
}
