/* SPDX-License-Identifier: Apache-2.0
 * hot_path.c: bench_hot_path: what a small call costs beside the libraries' own, and opening a database with 100,000 winners.
 * The cost of attune alone is in parts_hot.c. */
#include "bench/hot_path.h"

#include "bench/tool.h"

#include <getopt.h>
#include <stdio.h>
#include <time.h>

#include "src/support.h"

static void report_machine(int argc, char **argv) {
  attune_device *host = NULL;
  attune_device_properties cpu;
  char date[32], command[512];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_device_get_properties(host, &cpu), "attune_device_get_properties");
  size_t at = 0;
  at_append(command, sizeof command, &at, "bench_hot_path");
  for (int i = 1; i < argc; i++) at_append(command, sizeof command, &at, " %s", argv[i]);
  bench_line("# The cost of attune itself\n");
  bench_line("- CPU: %s, %d CPUs (%s)", cpu.name, cpu.processors, cpu.features);
  bench_line("- attune %s", attune_version());
  bench_line("- command: %s", command);
  bench_line("- date: %s", date);
}

static const char usage[] = "usage: bench_hot_path [--winners N] [--markdown FILE]\n"
                            "Times small products beside the libraries that are here, opening a database of N winners "
                            "(default 100000) with the\n"
                            "first look-up and, where there is a CUDA device, enqueuing a small GEMM beside cuBLAS. "
                            "bench_parts has the hit alone.\n";

int main(int argc, char **argv) {
  static const struct option names[] = {{"winners", required_argument, NULL, 'w'},
                                        {"markdown", required_argument, NULL, 'm'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  int64_t winners = 100000;
  for (int letter; (letter = getopt_long(argc, argv, "h", names, NULL)) != -1;) {
    if (letter == 'h') {
      fputs(usage, stdout);
      return 0;
    }
    if (letter == 'm') bench_markdown_open(optarg);
    if (letter == '?' || (letter == 'w' && (!at_parse_i64(&winners, optarg) || winners < 1))) {
      fputs(usage, stderr);
      return 2;
    }
  }
  report_machine(argc, argv);
  hot_report_small();
  hot_report_database(winners);
#ifdef BENCH_WITH_CUDA
  hot_report_cuda();
#endif
  bench_markdown_close();
  return 0;
}
