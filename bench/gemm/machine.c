/* SPDX-License-Identifier: Apache-2.0
 * machine.c: bench_machine: a row of the table that cost models take a device's figures from (tuning/model/machine.c),
 * as far as programs can measure it: memory and the L2 cache by copies, products by the vendor's GEMM, what one more
 * kernel costs by small ones, latencies by a chain of loads. The least of some rounds; the device should be idle. */
#include <attune/attune.h>
#include <attune/details.h>
#include <attune/telemetry.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/tool.h"

enum { MANY = 200, LOADS = 4096 };

typedef struct machine {
  attune_device *device;
  attune_device_properties properties;
  attune_tuner *tuner;
  attune_stream *stream;
  attune_event *begin, *end;
  int rounds;
  bool cuda;
} machine;

typedef struct work {
  attune_tensor in, out;       /* of a copy */
  attune_gemm_problem problem; /* m > 0: a product */
  attune_gemm_operands operands;
  int64_t loads; /* > 0: a chain of them, which begins in `in` */
} work;

/* `p` is the address of a place that holds the address of the next; past the L1 cache. */
static const char chain[] = "long long chain(long long p, long long loads) {\n"
                            "  for (long long i = 0; i < loads; i++) p = __ldcg((const long long *)p);\n"
                            "  return p;\n"
                            "}\n";

static void run(const machine *m, const work *w) {
  const attune_scalar loads = {.kind = ATTUNE_I64, .integer = w->loads};
  const attune_elementwise_operands o = {
      .outputs = &w->out, .output_count = 1, .inputs = &w->in, .input_count = 1, .scalars = &loads, .scalar_count = 1};
  if (w->problem.m > 0)
    bench_check(attune_gemm(m->tuner, m->stream, &w->problem, &w->operands), "attune_gemm");
  else if (w->loads > 0 && m->cuda)
    bench_check(attune_elementwise_cuda(m->tuner, m->stream, chain, "chain", &o), "attune_elementwise_cuda");
  else if (w->loads > 0)
    for (int64_t i = 0; i < w->loads; i++) *(int64_t *)w->in.data = **(int64_t *volatile *)w->in.data;
  else
    bench_check(attune_tensor_copy(m->tuner, m->stream, &w->out, &w->in), "attune_tensor_copy");
}

/* Microseconds of one of `count` runs, the least of the rounds; the first warms up. */
static double time_of(const machine *m, const work *w, int count) {
  double least = 0.0;
  for (int round = 0; round <= m->rounds; round++) {
    double ns = 0.0;
    bench_check(attune_stream_synchronize(m->stream), "attune_stream_synchronize");
    bench_check(attune_event_record(m->begin, m->stream), "attune_event_record");
    for (int i = 0; i < count; i++) run(m, w);
    bench_check(attune_event_record(m->end, m->stream), "attune_event_record");
    bench_check(attune_event_synchronize(m->end), "attune_event_synchronize");
    bench_check(attune_event_elapsed_ns(&ns, m->begin, m->end), "attune_event_elapsed_ns");
    if (round == 1 || (round > 0 && ns < least)) least = ns;
  }
  return least / 1e3 / count;
}

static void *memory(const machine *m, size_t bytes) {
  void *out = NULL;
  bench_check(attune_alloc(&out, m->stream, bytes), "attune_alloc");
  bench_check(attune_fill(m->stream, out, 0x3c, bytes), "attune_fill"); /* small numbers, not zero */
  return out;
}

/* Bytes a microsecond, read and written, of a copy of so many. */
static double copy_rate(const machine *m, size_t bytes, int count) {
  void *from = memory(m, bytes), *to = memory(m, bytes);
  work w = {.in = {.data = from, .dtype = ATTUNE_F32, .dims = 1, .sizes = {(int64_t)(bytes / 4)}}};
  w.out = w.in, w.out.data = to;
  const double us = time_of(m, &w, count);
  bench_check(attune_free(from, m->stream), "attune_free");
  bench_check(attune_free(to, m->stream), "attune_free");
  return 2.0 * (double)bytes / us;
}

/* Products and sums a microsecond. */
static double product_rate(const machine *m, attune_dtype dtype, attune_accuracy accuracy, int64_t side) {
  const size_t bytes = (size_t)(side * side) * attune_dtype_size(dtype);
  void *of[3];
  work w = {.problem = ATTUNE_GEMM_PROBLEM_INIT};
  for (int i = 0; i < 3; i++) of[i] = memory(m, bytes);
  w.problem.dtype = dtype, w.problem.contract.accuracy = accuracy;
  w.problem.m = w.problem.n = w.problem.k = side;
  w.operands = (attune_gemm_operands){.alpha = 1e-3, .a = of[0], .b = of[1], .d = of[2]};
  const double us = time_of(m, &w, 1);
  for (int i = 0; i < 3; i++) bench_check(attune_free(of[i], m->stream), "attune_free");
  return (double)side * (double)side * (double)side / us;
}

/* Nanoseconds of a load of a chain through so many bytes: a line of 256 bytes after another, far apart. */
static double latency(const machine *m, size_t bytes) {
  const int64_t places = (int64_t)(bytes / 256), apart = (places / 2 + 1616) | 1;
  char *ring = memory(m, bytes), *first = memory(m, sizeof(int64_t)), *filled = calloc(1, bytes);
  if (!filled) bench_die("no memory for %zu bytes", bytes);
  for (int64_t i = 0; i < places; i++) *(int64_t *)(filled + i * 256) = (int64_t)(ring + (i + apart) % places * 256);
  bench_check(attune_copy(m->stream, ring, filled, bytes), "attune_copy");
  bench_check(attune_copy(m->stream, first, &ring, sizeof ring), "attune_copy");
  work w = {.in = {.data = first, .dtype = ATTUNE_I64, .dims = 1, .sizes = {1}}, .loads = LOADS};
  w.out = w.in; /* the next run goes on where this one ended */
  const double us = time_of(m, &w, 4);
  bench_check(attune_free(ring, m->stream), "attune_free");
  bench_check(attune_free(first, m->stream), "attune_free");
  free(filled);
  return us * 1e3 / LOADS;
}

/* Cycles a microsecond, after work that keeps all processors busy. */
static double clock_now(const machine *m) {
  attune_telemetry t = {0};
  attune_device_details d = {0};
  bench_check(attune_device_get_telemetry(m->device, &t), "attune_device_get_telemetry");
  bench_check(attune_device_get_details(m->device, &d), "attune_device_get_details");
  return t.clock_mhz > 0 ? (double)t.clock_mhz : d.clock_khz > 0 ? (double)d.clock_khz / 1e3 : 1000.0;
}

static void print_products(const machine *m, const char *field, attune_dtype dtype, attune_accuracy accuracy,
                           int64_t side) {
  const double rate = product_rate(m, dtype, accuracy, side), cycles = clock_now(m) * m->properties.processors;
  printf("      .%s = %.0f, /* at %.0f MHz */\n", field, rate / cycles, cycles / m->properties.processors);
}

static void print_row(const machine *m, size_t large, int64_t side) {
  const attune_device_properties *p = &m->properties;
  const size_t small = p->cache_bytes > 0 ? (size_t)p->cache_bytes / 8 >> 8 << 8 : 1 << 20;
  const double rate = copy_rate(m, large, 1), near = latency(m, small), far = latency(m, large);
  printf("    {\"%s\",\n     {.capability = %d,\n      .processors = %d,\n", p->name,
         10 * p->capability_major + p->capability_minor, p->processors);
  printf("      .memory = %.3g,\n      .level2 = %.3g,\n", rate, copy_rate(m, small, MANY));
  printf("      .wanted = %.0f, /* at least: %.0f ns of it; the L2 cache takes %.0f ns */\n",
         rate / p->processors * far / 1e3, far, near);
  print_products(m, m->cuda ? "wgmma_f16" : "f16", ATTUNE_F16, ATTUNE_STRICT, m->cuda ? side : side / 2);
  print_products(m, "mma_tf32", ATTUNE_F32, ATTUNE_REDUCED, side);
  print_products(m, "mma_f64", ATTUNE_F64, ATTUNE_STRICT, side);
  print_products(m, "fma_f32", ATTUNE_F32, ATTUNE_STRICT, side);
  printf("      .cycle_fma = 1.0 / %.0f,\n      .launch = %.2f}},\n", clock_now(m), 512.0 / copy_rate(m, 256, MANY));
}

static const char usage[] =
    "usage: bench_machine [--device D] [--rounds N] [--mib N] [--side N]\n"
    "Measures this device for the cost models and prints a row for the table in tuning/model/machine.c.\n"
    "  --device D    host, cuda:0, ... (default: best)\n"
    "  --rounds N    number of samples (default: 9)\n"
    "  --mib N       MiB of a copy that fits into no cache (default: 2048; host: 256)\n"
    "  --side N      rows and columns of the products (default: 8192; host: 512)\n";

int main(int argc, char **argv) {
  machine m = {.rounds = 9};
  const char *name = "best";
  int mib = 0, side = 0;
  const bench_option table[] = {{"device", BENCH_TEXT, &name, 0, 0},
                                {"rounds", BENCH_WHOLE, &m.rounds, 1, 1000},
                                {"mib", BENCH_WHOLE, &mib, 1, 65536},
                                {"side", BENCH_WHOLE, &side, 16, 32768},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  (void)bench_read_options(argc, argv, table, usage, NULL, 0);
  options.database = "", options.mode = ATTUNE_MODE_OFF;
  bench_check(attune_device_get(&m.device, name), "attune_device_get");
  bench_check(attune_device_get_properties(m.device, &m.properties), "attune_device_get_properties");
  bench_check(attune_tuner_create(&m.tuner, &options), "attune_tuner_create");
  bench_check(attune_event_create(&m.begin, m.device, NULL), "attune_event_create");
  bench_check(attune_event_create(&m.end, m.device, NULL), "attune_event_create");
  m.stream = attune_stream_default(m.device); /* on the host it works at once */
  m.cuda = bench_is_cuda(m.device);
  print_row(&m, (size_t)(mib ? mib : m.cuda ? 2048 : 256) << 20, side ? side : m.cuda ? 8192 : 512);
  attune_event_destroy(m.begin);
  attune_event_destroy(m.end);
  attune_tuner_destroy(m.tuner);
  return 0;
}
