/* SPDX-License-Identifier: Apache-2.0
 * alloc.c: the caching allocator. Time of alloc + free by threads, beside the C library (host) or cudaMallocAsync
 * (CUDA); memory that it reserves on traces of a training step and of LLM serving, against the most that was in use.
 *   bench_alloc [--device D] [--markdown FILE] [--traces DIR] [--settings TEXT]
 * --traces also writes the traces there as text, "a ID BYTES" and "f ID", for torch_alloc.py to replay. */
#include "bench/alloc_trace.h"
#include "bench/alloc_way.h"
#include "bench/tool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2000, REPEATS = 25, THREADS_MAX = 16 };

typedef struct worker {
  const alloc_way *way;
  void *context;
  size_t bytes;
  pthread_barrier_t *start;
  double least, median;
  int failed;
} worker;

/* Nanoseconds of one alloc and one free of a block that is cached. */
static void *measure(void *arg) {
  worker *w = arg;
  double runs[REPEATS];
  for (int i = 0; i < 100; i++) w->failed |= w->way->pair(w->context, w->bytes);
  pthread_barrier_wait(w->start);
  for (int run = 0; run < REPEATS; run++) {
    double start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) w->failed |= w->way->pair(w->context, w->bytes);
    runs[run] = (bench_now_ns() - start) / ROUNDS;
  }
  w->median = bench_median(runs, REPEATS); /* sorts */
  w->least = runs[0];
  return NULL;
}

static void report_way(const alloc_way *way, attune_device *device, size_t bytes, int threads) {
  worker workers[THREADS_MAX];
  pthread_t handles[THREADS_MAX];
  pthread_barrier_t start;
  double least = 0.0, median = 0.0;
  int failed = 0;
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int i = 0; i < threads; i++) {
    workers[i] = (worker){.way = way, .context = way->open(device), .bytes = bytes, .start = &start};
    if (pthread_create(&handles[i], NULL, measure, &workers[i]) != 0) bench_die("a thread cannot start");
  }
  for (int i = 0; i < threads; i++) {
    pthread_join(handles[i], NULL);
    way->close(workers[i].context);
    failed |= workers[i].failed;
    if (workers[i].least > least) least = workers[i].least;
    if (workers[i].median > median) median = workers[i].median;
  }
  pthread_barrier_destroy(&start);
  if (failed) bench_die("%s failed", way->name);
  bench_line("| %s | %zu | %d | %.0f | %.0f |", way->name, bytes, threads, least, median);
}

static void *open_stream(attune_device *device) {
  attune_stream *stream = NULL;
  bench_check(attune_stream_create(&stream, device), "attune_stream_create");
  return stream;
}

static void close_stream(void *context) {
  attune_stream_destroy(context);
}

static int attune_pair(void *context, size_t bytes) {
  void *p = NULL;
  return attune_alloc(&p, context, bytes) != ATTUNE_OK || attune_free(p, context) != ATTUNE_OK;
}

static void *open_nothing(attune_device *device) {
  (void)device;
  return NULL;
}

static void close_nothing(void *context) {
  (void)context;
}

static int malloc_pair(void *context, size_t bytes) {
  (void)context;
  void *p = malloc(bytes);
  __asm__ volatile("" : : "r"(p) : "memory"); /* or the compiler leaves both out */
  free(p);
  return !p;
}

static void report_times(attune_device *device) {
  static const alloc_way ours = {"attune_alloc + attune_free", open_stream, attune_pair, close_stream};
  static const alloc_way libc = {"malloc + free", open_nothing, malloc_pair, close_nothing};
  static const size_t sizes[] = {4096, (size_t)1 << 20, (size_t)64 << 20};
  bench_line("| way | bytes | threads, a stream each | ns a pair, least | median |");
  bench_line("|---|---:|---:|---:|---:|");
  for (int threads = 1; threads <= 8; threads *= 8)
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
      report_way(&ours, device, sizes[i], threads);
      report_way(&libc, device, sizes[i], threads);
#ifdef BENCH_WITH_CUDA
      if (strncmp(attune_device_name(device), "cuda", 4) == 0) report_way(&alloc_cuda_way, device, sizes[i], threads);
#endif
    }
  bench_line("%s", "");
}

static void give(attune_stream *stream, void **block) {
  bench_check(attune_free(*block, stream), "attune_free");
  *block = NULL;
}

/* Replays on one stream; *reserved the most that was taken from the device. */
static void replay(attune_device *device, const alloc_trace *trace, const char *settings) {
  attune_stream *stream = NULL;
  attune_memory_statistics s;
  void **blocks = calloc(trace->ids, sizeof *blocks);
  if (!blocks) bench_die("no memory to replay");
  bench_check(attune_memory_empty_cache(device), "attune_memory_empty_cache");
  bench_check(attune_memory_configure(device, settings), "attune_memory_configure");
  bench_check(attune_stream_create(&stream, device), "attune_stream_create");
  bench_check(attune_memory_reset_peaks(device), "attune_memory_reset_peaks");
  bench_check(attune_memory_reset_accumulated(device), "attune_memory_reset_accumulated");
  double start = bench_now_ns();
  for (size_t i = 0; i < trace->count; i++) {
    const alloc_operation *op = &trace->operations[i];
    if (op->bytes)
      bench_check(attune_alloc(&blocks[op->id], stream, op->bytes), "attune_alloc");
    else
      give(stream, &blocks[op->id]);
  }
  double ns = (bench_now_ns() - start) / (double)trace->count;
  bench_check(attune_memory_get_statistics(device, &s), "attune_memory_get_statistics");
  bench_line("| %s | %s | %zu | %.1f | %.1f | %.3f | %llu | %.0f |", trace->name, settings, trace->count,
             (double)trace->peak / (1 << 20), (double)s.reserved_bytes[0].peak / (1 << 20),
             (double)s.reserved_bytes[0].peak / (double)trace->peak, (unsigned long long)s.device_allocs, ns);
  for (size_t i = 0; i < trace->ids; i++) give(stream, &blocks[i]);
  free(blocks);
  attune_stream_destroy(stream);
  bench_check(attune_memory_empty_cache(device), "attune_memory_empty_cache");
}

static void report_traces(attune_device *device, const char *folder, const char *settings) {
  static const char *const usual[] = {"expandable_segments:false", "expandable_segments:true"};
  bench_line("| trace | settings | operations | peak in use, MiB | reserved, MiB | reserved / peak | taken from the "
             "device, times | ns an operation |");
  bench_line("|---|---|---:|---:|---:|---:|---:|---:|");
  for (int i = 0; i < ALLOC_TRACES; i++) {
    alloc_trace trace;
    alloc_trace_make(&trace, i);
    if (folder) alloc_trace_write(&trace, folder);
    for (int j = 0; j < (settings ? 1 : 2); j++) replay(device, &trace, settings ? settings : usual[j]);
    alloc_trace_drop(&trace);
  }
}

int main(int argc, char **argv) {
  const char *name = NULL, *folder = NULL, *settings = NULL;
  attune_device *device = NULL;
  attune_device_properties properties;
  for (int i = 1; i < argc; i++) {
    if (i + 1 == argc) bench_die("%s wants a value, or is no option", argv[i]);
    if (strcmp(argv[i], "--device") == 0)
      name = argv[++i];
    else if (strcmp(argv[i], "--markdown") == 0)
      bench_markdown_open(argv[++i]);
    else if (strcmp(argv[i], "--traces") == 0)
      folder = argv[++i];
    else if (strcmp(argv[i], "--settings") == 0)
      settings = argv[++i];
    else
      bench_die("no option %s", argv[i]);
  }
  bench_check(attune_device_get(&device, name), "attune_device_get");
  bench_check(attune_device_get_properties(device, &properties), "attune_device_get_properties");
  bench_line("Allocator of %s, %s; attune %s", attune_device_name(device), properties.name, attune_version());
  bench_line("%s", "");
  report_times(device);
  report_traces(device, folder, settings);
  bench_markdown_close();
  return 0;
}
