/* SPDX-License-Identifier: Apache-2.0
 * hot_path.c: bench_hot_path: what a small call costs beside the libraries' own, and opening a database with 100,000 winners.
 * The cost of attune alone is in parts_hot.c. */
#include "bench/hot_path.h"

#include "bench/tool.h"

static const char usage[] = "usage: bench_hot_path [--winners N] [--markdown FILE]\n"
                            "Times opening a database of N winners "
                            "(default 100000) with the\n"
                            "first look-up and, where there is a CUDA device, enqueuing a small GEMM beside cuBLAS. "
                            "bench_parts has the hit alone.\n";

int main(int argc, char **argv) {
  int winners = 100000;
  const char *markdown = NULL;
  const bench_option table[] = {{"winners", BENCH_WHOLE, &winners, 1, 1e9},
                                {"markdown", BENCH_TEXT, &markdown, 0, 0},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  attune_device *host = NULL;
  (void)bench_read_options(argc, argv, table, usage, NULL, 0);
  bench_markdown_open(markdown);
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_head("What a small call costs", host, NULL, "ways in turns; each table says which of the rounds count");
  hot_report_database(winners);
#ifdef BENCH_WITH_CUDA
  hot_report_cuda();
#endif
  bench_markdown_close();
  return 0;
}
