/* SPDX-License-Identifier: Apache-2.0
 * telemetry.c: bench_telemetry [--device D] [--calls N] [--markdown FILE]: how long a call takes that asks a device how
 * busy, warm and hungry it is, while nothing runs on the device and while work does; the first call of the process is
 * told by itself. */
#include <attune/attune.h>

#include <stdio.h>
#include <stdlib.h>

#include "bench/common/tool.h"

enum { CALLS_MOST = 100000 };
#define BYTES ((size_t)1 << 30)

static double times[CALLS_MOST];

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double ask(attune_device *device) {
  attune_telemetry told = {0};
  const double start = bench_now_ns();
  bench_check(attune_device_get_telemetry(device, &told), "attune_device_get_telemetry");
  return bench_now_ns() - start;
}

/* stream NULL: idle. Else it has work all the time. */
static void tell(attune_device *device, attune_stream *stream, void *memory, int calls, const char *what) {
  for (int i = 0; i < calls; i++) {
    if (stream && attune_stream_query(stream) == ATTUNE_OK)
      for (int j = 0; j < 20; j++) bench_check(attune_fill(stream, memory, j, BYTES), "attune_fill");
    times[i] = ask(device);
  }
  qsort(times, (size_t)calls, sizeof *times, by_size);
  bench_line("| %s | %.1f | %.1f | %.1f | %.1f |", what, times[0] / 1e3, times[calls / 2] / 1e3,
             times[(int)(0.99 * calls)] / 1e3, times[calls - 1] / 1e3);
}

int main(int argc, char **argv) {
  const char *markdown = NULL, *name = NULL;
  int calls = 2000;
  const bench_option options[] = {{"device", BENCH_TEXT, &name, 0, 0},
                                  {"calls", BENCH_WHOLE, &calls, 10, CALLS_MOST},
                                  {"markdown", BENCH_TEXT, &markdown, 0, 0},
                                  {NULL, BENCH_FLAG, NULL, 0, 0}};
  (void)bench_read_options(argc, argv, options, "bench_telemetry [--device D] [--calls N] [--markdown FILE]", NULL, 0);
  attune_device *device = NULL;
  attune_stream *stream = NULL;
  void *memory = NULL;
  bench_check(attune_device_get(&device, name), "attune_device_get");
  const double first = ask(device);
  bench_check(attune_stream_create(&stream, device), "attune_stream_create");
  bench_check(attune_alloc(&memory, stream, BYTES), "attune_alloc");
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  bench_markdown_open(markdown);
  bench_head("Telemetry of a device", device, NULL,
             "calls of attune_device_get_telemetry one after another, all fields");
  bench_table("| while the device is | least, us >| median >| 99 of 100 >| most >|");
  tell(device, NULL, NULL, calls, "idle");
  tell(device, stream, memory, calls, "busy with fills");
  bench_line("| the first call of the process | %.1f | | | |", first / 1e3);
  bench_check(attune_stream_synchronize(stream), "attune_stream_synchronize");
  bench_markdown_close();
  bench_check(attune_free(memory, stream), "attune_free");
  attune_stream_destroy(stream);
  return 0;
}
