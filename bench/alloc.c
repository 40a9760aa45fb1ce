/* SPDX-License-Identifier: Apache-2.0
 * alloc.c: memory that the caching allocator reserves on traces of a training step and of LLM serving, against the most that
 * was in use. The time of alloc + free is in parts_alloc.c.
 *   bench_alloc [--device D] [--markdown FILE] [--traces DIR] [--settings TEXT]
 * --traces also writes the traces there as text, "a ID BYTES" and "f ID", for torch_alloc.py to replay. */
#include "bench/alloc_trace.h"
#include "bench/tool.h"

#include <stdlib.h>
#include <string.h>

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
  report_traces(device, folder, settings);
  bench_markdown_close();
  return 0;
}
