/* SPDX-License-Identifier: Apache-2.0
 * random.c: bench_random: bytes a second of random numbers, on the host and on CUDA, where cuRAND's Philox and a fill
 * of the same memory are timed beside. torch_random.py measures PyTorch's in the same way.
 *
 * What the kernels should reach on an H200: uniform and Bernoulli what a fill does, 4.5 TB/s. Normal f32 about 100
 * instructions for 16 bytes, of which Philox takes 39; wide multiplications, logic operations and conversions take two
 * issue slots, so about 146 clocks a warp and multiprocessor's quarter: 3.6 TB/s at 1.96 GHz. Normal bf16 about 140
 * clocks, 3.5 TB/s, where its 8 table look-ups would allow 3.9. */
#include "bench/tool.h"

#include <dlfcn.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 21, KINDS = 4 };
#define CURAND_PHILOX 161

typedef enum kind { UNIFORM, NORMAL, BERNOULLI, EXPONENTIAL } kind;
static const char *const kind_names[KINDS] = {"uniform", "normal", "Bernoulli", "exponential"};

/* cuRAND, if it is here: the host interface, with Philox as its generator. */
typedef struct curand {
  void *generator;
  int (*uniform)(void *generator, float *out, size_t count);
  int (*normal)(void *generator, float *out, size_t count, float mean, float deviation);
} curand;

static void *symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (!found) bench_die("cuRAND has no %s", name);
  return found;
}

static bool open_curand(curand *out, void *native_stream) {
  void *library = dlopen("libcurand.so.10", RTLD_NOW | RTLD_LOCAL);
  int (*create)(void **, int) = NULL, (*set_stream)(void *, void *) = NULL;
  if (!library) return false;
  *(void **)&create = symbol(library, "curandCreateGenerator");
  *(void **)&set_stream = symbol(library, "curandSetStream");
  *(void **)&out->uniform = symbol(library, "curandGenerateUniform");
  *(void **)&out->normal = symbol(library, "curandGenerateNormal");
  return create(&out->generator, CURAND_PHILOX) == 0 && set_stream(out->generator, native_stream) == 0;
}

typedef struct bench {
  attune_stream *stream;
  attune_event *start, *stop;
  attune_generator *generator;
  curand peer;
  bool has_peer;
  void *memory;
  size_t count;
} bench;

/* One draw; way 0 attune, 1 cuRAND, 2 a fill. False: there is none. */
static bool give(bench *b, int way, kind k, attune_dtype dtype) {
  if (way == 2) {
    bench_check(attune_fill(b->stream, b->memory, 1, b->count * attune_dtype_size(dtype)), "attune_fill");
    return true;
  }
  if (way == 1) {
    if (!b->has_peer || dtype != ATTUNE_F32 || k > NORMAL) return false;
    return (k == UNIFORM ? b->peer.uniform(b->peer.generator, b->memory, b->count)
                         : b->peer.normal(b->peer.generator, b->memory, b->count, 0.0f, 1.0f)) == 0;
  }
  if (k == UNIFORM)
    bench_check(attune_random_uniform(b->generator, b->stream, b->memory, dtype, b->count, 0, 1),
                "attune_random_uniform");
  if (k == NORMAL)
    bench_check(attune_random_normal(b->generator, b->stream, b->memory, dtype, b->count, 0, 1),
                "attune_random_normal");
  if (k == BERNOULLI)
    bench_check(attune_random_bernoulli(b->generator, b->stream, b->memory, dtype, b->count, 0.5),
                "attune_random_bernoulli");
  if (k == EXPONENTIAL)
    bench_check(attune_random_exponential(b->generator, b->stream, b->memory, dtype, b->count, 1),
                "attune_random_exponential");
  return true;
}

/* Nanoseconds of one draw, of `calls` between two events. */
static double sample(bench *b, int way, kind k, attune_dtype dtype, int calls) {
  double ns = 0;
  bench_check(attune_event_record(b->start, b->stream), "attune_event_record");
  for (int i = 0; i < calls; i++)
    if (!give(b, way, k, dtype)) return 0;
  bench_check(attune_event_record(b->stop, b->stream), "attune_event_record");
  bench_check(attune_event_synchronize(b->stop), "attune_event_synchronize");
  bench_check(attune_event_elapsed_ns(&ns, b->start, b->stop), "attune_event_elapsed_ns");
  return ns / calls;
}

static void cell(char out[32], const bench *b, attune_dtype dtype, double ns) {
  if (ns > 0)
    snprintf(out, 32, "%.*f", ns * 100 > (double)(b->count * attune_dtype_size(dtype)) ? 2 : 0,
             (double)(b->count * attune_dtype_size(dtype)) / ns);
  else
    snprintf(out, 32, "-");
}

static void report_row(bench *b, kind k, attune_dtype dtype, int ways, int calls) {
  double times[3][ROUNDS], medians[3] = {0};
  char cells[3][32];
  for (int way = 0; way < ways; way++) (void)sample(b, way, k, dtype, 1); /* compiles, and warms */
  for (int r = 0; r < ROUNDS; r++)
    for (int way = 0; way < ways; way++) times[way][r] = sample(b, way, k, dtype, calls);
  for (int way = 0; way < ways; way++) medians[way] = bench_median(times[way], ROUNDS);
  for (int way = 0; way < 3; way++) cell(cells[way], b, dtype, medians[way]);
  bench_line("| %s %s | %zu | %s | %s | %s |", kind_names[k], attune_dtype_name(dtype), b->count, cells[0], cells[1],
             cells[2]);
}

static void open_bench(bench *b, attune_device *device, size_t count) {
  memset(b, 0, sizeof *b);
  b->count = count;
  b->stream = attune_stream_default(device);
  attune_device_properties properties;
  bench_check(attune_device_get_properties(device, &properties), "attune_device_get_properties");
  if (properties.kind == ATTUNE_DEVICE_CUDA)
    bench_check(attune_stream_create(&b->stream, device), "attune_stream_create");
  bench_check(attune_event_create(&b->start, device), "attune_event_create");
  bench_check(attune_event_create(&b->stop, device), "attune_event_create");
  bench_check(attune_generator_create(&b->generator, 1), "attune_generator_create");
  bench_check(attune_alloc(&b->memory, b->stream, count * 8), "attune_alloc");
  if (properties.kind == ATTUNE_DEVICE_CUDA) b->has_peer = open_curand(&b->peer, attune_stream_native(b->stream));
  bench_line("### %s: %s, GB/s, median of %d", attune_device_name(device), properties.name, ROUNDS);
  bench_line("| numbers | count | attune | cuRAND Philox | fill |");
  bench_line("|---|---|---|---|---|");
}

static void close_bench(bench *b) {
  bench_check(attune_free(b->memory, b->stream), "attune_free");
  attune_generator_destroy(b->generator);
  attune_event_destroy(b->start);
  attune_event_destroy(b->stop);
  attune_stream_destroy(b->stream);
}

static void report(attune_device *device, size_t count, int calls) {
  static const attune_dtype dtypes[] = {ATTUNE_F32, ATTUNE_BF16, ATTUNE_F16, ATTUNE_F64};
  bench b;
  open_bench(&b, device, count);
  for (int k = 0; k < KINDS; k++)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) report_row(&b, (kind)k, dtypes[d], 3, calls);
  close_bench(&b);
}

int main(int argc, char **argv) {
  static const struct option options[] = {
      {"markdown", required_argument, NULL, 'm'}, {"count", required_argument, NULL, 'c'}, {NULL, 0, NULL, 0}};
  size_t count = (size_t)1 << 28;
  for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (c == 'm') bench_markdown_open(optarg);
    if (c == 'c') count = (size_t)strtoull(optarg, NULL, 10);
    if (c == '?' || count == 0) bench_die("usage: bench_random [--markdown FILE] [--count ELEMENTS]");
  }
  for (int i = 0; i < attune_device_count(); i++) {
    attune_device *device = NULL;
    attune_device_properties properties;
    bench_check(attune_device_at(&device, i), "attune_device_at");
    bench_check(attune_device_get_properties(device, &properties), "attune_device_get_properties");
    if (properties.kind == ATTUNE_DEVICE_CUDA) {
      report(device, count, 5);
      report(device, (size_t)1 << 20, 20);
    } else {
      report(device, (size_t)1 << 15, 100); /* one thread, within the L2 cache */
      report(device, (size_t)1 << 24, 2);   /* all threads */
    }
  }
  bench_markdown_close();
  return 0;
}
