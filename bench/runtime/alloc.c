/* SPDX-License-Identifier: Apache-2.0
 * alloc.c: memory that the caching allocator reserves on traces of a training step and of LLM serving, against the most
 * that was in use. The time of alloc + free is in parts_alloc.c.
 *   bench_alloc [--device D] [--markdown FILE] [--traces DIR] [--settings TEXT]
 * --traces also writes the traces there as text, "a ID BYTES" and "f ID", for torch_alloc.py to replay. */
#include "bench/common/tool.h"
#include "bench/runtime/alloc_trace.h"

#include <stdlib.h>

static void give(attune_stream *stream, void **block) {
  bench_check(attune_free(*block, stream), "attune_free");
  *block = NULL;
}

/* Replays on one stream; *reserved the most that was taken from the device. */
static void replay(attune_device *device, const alloc_trace *trace, const char *settings) {
  attune_stream *stream = NULL;
  attune_memory_statistics s = {0};
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
  bench_table("| trace | settings | operations >| peak in use, MiB >| reserved, MiB >| reserved / peak >| taken from "
              "the device, "
              "times >| ns an operation >|");
  for (int i = 0; i < ALLOC_TRACES; i++) {
    alloc_trace trace;
    alloc_trace_make(&trace, i);
    if (folder) alloc_trace_write(&trace, folder);
    for (int j = 0; j < (settings ? 1 : 2); j++) replay(device, &trace, settings ? settings : usual[j]);
    alloc_trace_drop(&trace);
  }
}

int main(int argc, char **argv) {
  const char *name = NULL, *folder = NULL, *settings = NULL, *markdown = NULL;
  const bench_option table[] = {{"device", BENCH_TEXT, &name, 0, 0},
                                {"markdown", BENCH_TEXT, &markdown, 0, 0},
                                {"traces", BENCH_TEXT, &folder, 0, 0},
                                {"settings", BENCH_TEXT, &settings, 0, 0},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  attune_device *device = NULL;
  (void)bench_read_options(
      argc, argv, table,
      "usage: bench_alloc [--device D] [--markdown FILE] [--traces DIR] [--settings TEXT]\nReplays traces of "
      "allocations and reports the memory that the allocator reserves.\n  --traces DIR      also write the traces "
      "there, for torch_alloc.py\n  --settings TEXT   settings of the allocator, as in ATTUNE_ALLOC (default: without "
      "and with expandable segments)\n",
      NULL, 0);
  bench_markdown_open(markdown);
  bench_check(attune_device_get(&device, name), "attune_device_get");
  bench_head("Memory that the allocator reserves", device, NULL, "traces replayed once on one stream");
  report_traces(device, folder, settings);
  bench_markdown_close();
  return 0;
}
