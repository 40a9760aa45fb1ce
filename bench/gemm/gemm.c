/* SPDX-License-Identifier: Apache-2.0
 * gemm.c: bench_gemm, attune's choice beside its peers for every problem of a workload, in one run, interleaved. */
#include "bench/gemm/gemm.h"

#include "bench/common/tool.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
  const char *workload, *database, *device, *markdown, *csv, *only, *blas;
  int rounds;
  bool tune, cpu_time;
  double budget_ms, time_limit_s;
} options;

static const char usage[] =
    "usage: bench_gemm WORKLOAD [options]\n"
    "Compares attune's choice for each problem of WORKLOAD (CSV) with its peers. On CUDA: cublasGemmEx, cublasGemmEx "
    "with\n"
    "CUBLAS_GEMM_AUTOTUNE, and cublasLt's first heuristic, the matrix-vector call where there is one;\n"
    "cublasGemmBatchedEx for arrays of pointers. On the host: OpenBLAS and BLIS with their default threads, "
    "LIBXSMM if "
    "it\n"
    "is built in, and attune through a plan.\n"
    "  --db FILE         tuning database (default: the user's own)\n"
    "  --device D        host, cuda:0, ... (default: best)\n"
    "  --tune            first tune problems that have no winner, in this process\n"
    "  --budget MS       milliseconds to tune one problem at most (default: 190, host 420, plus 400 calls)\n"
    "  --rounds N        number of samples of each call, 9 to 101 (default: 15)\n"
    "  --only TEXT       only problems whose name contains TEXT\n"
    "  --time-limit S    start no problem after S seconds (default: no limit)\n"
    "  --blas LIBRARY    the host's peer (default: libopenblas.so.0)\n"
    "  --cpu-time        on the host: CPU time of the calling thread, for one thread where other programs run\n"
    "  --markdown FILE   also write the table as Markdown\n"
    "  --csv FILE        also write the times as CSV\n"
    "Exit codes: 0 success, 1 a failure, or results that differ from the peer's, 2 wrong usage.\n"
    "Example: bench_gemm bench/workloads/gemm-h200.csv --tune --markdown gemm.md\n";

static options read_options(int argc, char **argv) {
  options o = {.device = "best", .blas = "libopenblas.so.0", .rounds = 15, .time_limit_s = INFINITY};
  const bench_option table[] = {{"db", BENCH_TEXT, &o.database, 0, 0},
                                {"device", BENCH_TEXT, &o.device, 0, 0},
                                {"tune", BENCH_FLAG, &o.tune, 0, 0},
                                {"budget", BENCH_NUMBER, &o.budget_ms, 1, INFINITY},
                                {"rounds", BENCH_WHOLE, &o.rounds, 9, 101},
                                {"only", BENCH_TEXT, &o.only, 0, 0},
                                {"time-limit", BENCH_NUMBER, &o.time_limit_s, 0, INFINITY},
                                {"blas", BENCH_TEXT, &o.blas, 0, 0},
                                {"cpu-time", BENCH_FLAG, &o.cpu_time, 0, 0},
                                {"markdown", BENCH_TEXT, &o.markdown, 0, 0},
                                {"csv", BENCH_TEXT, &o.csv, 0, 0},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  if (bench_read_options(argc, argv, table, usage, &o.workload, 1) != 1)
    bench_bad_usage("no WORKLOAD; should be one CSV file", usage);
  return o;
}

static void open_platform(bench_platform *platform, const options *o) {
  bench_check(attune_device_get(&platform->device, o->device), "--device");
  attune_device_properties properties = {0};
  bench_check(attune_device_get_properties(platform->device, &properties), "attune_device_get_properties");
  if (properties.kind == ATTUNE_DEVICE_HOST) {
    bench_host_open(platform, o->blas, o->cpu_time);
  } else {
#ifdef BENCH_WITH_CUDA
    bench_cuda_open(platform);
#else
    bench_die("this program was built without CUDA; build it with -DATTUNE_CUDA=ON");
#endif
  }
  attune_tuner_options settings = ATTUNE_TUNER_OPTIONS_INIT;
  settings.database = o->database;
  settings.mode = ATTUNE_MODE_CACHED;
  bench_check(attune_tuner_create(&platform->tuner, &settings), "attune_tuner_create");
  if (attune_tuner_database_status(platform->tuner) != ATTUNE_OK)
    fprintf(stderr, "bench_gemm: warning: no database: %s\n", attune_last_message());
}

static bool wanted(const options *o, const attune_workload_entry *entry) {
  return o->only == NULL || strstr(entry->name, o->only) != NULL;
}

/* Tunes what the database lacks; seconds of wall clock. */
static double tune_all(bench_platform *platform, const options *o, const attune_workload *workload) {
  double start = bench_now_ns();
  for (size_t i = 0; i < attune_workload_size(workload); i++) {
    const attune_workload_entry *entry = attune_workload_at(workload, i);
    if (!wanted(o, entry) || (bench_now_ns() - start) * 1e-9 > o->time_limit_s) continue;
    attune_status status = attune_tune(platform->tuner, platform->device, entry->problem,
                                       &(attune_tune_options){.budget_ms = o->budget_ms}, NULL);
    if (status != ATTUNE_OK) fprintf(stderr, "bench_gemm: %s was not tuned: %s\n", entry->name, attune_last_message());
  }
  return (bench_now_ns() - start) * 1e-9;
}

static void run_all(bench_platform *platform, const options *o, const attune_workload *workload, FILE *csv,
                    bench_row *rows, bench_summary *summary) {
  double start = bench_now_ns();
  for (size_t i = 0; i < attune_workload_size(workload); i++) {
    const attune_workload_entry *entry = attune_workload_at(workload, i);
    if (!wanted(o, entry)) continue;
    if ((bench_now_ns() - start) * 1e-9 + summary->tune_wall_s > o->time_limit_s) {
      summary->skipped++;
      continue;
    }
    bench_row *row = &rows[i];
    bench_problem_read(&row->problem, entry);
    bench_measure(platform, &row->problem, o->rounds, row);
    bench_explain(&row->decision, platform->tuner, platform->device, entry->problem);
    bench_report_row(platform, row);
    if (csv) bench_report_csv_row(csv, platform, row);
    if (!row->agrees)
      fprintf(stderr, "bench_gemm: %s: results differ from the peer's by %.3g times the rounding error allowed\n",
              entry->name, row->agreement);
    bench_summary_add(summary, platform, row);
  }
  summary->bench_wall_s = (bench_now_ns() - start) * 1e-9;
}

int main(int argc, char **argv) {
  options o = read_options(argc, argv);
  attune_workload *workload = NULL;
  bench_check(attune_workload_read(&workload, o.workload), o.workload);
  bench_platform platform = {0};
  open_platform(&platform, &o);
  bench_markdown_open(o.markdown);
  FILE *csv = o.csv ? fopen(o.csv, "w") : NULL;
  if (o.csv && !csv) bench_die("cannot write %s; name a file in a folder that exists", o.csv);
  bench_row *rows = calloc(attune_workload_size(workload) + 1, sizeof *rows);
  if (rows == NULL) bench_die("out of memory for %zu problems", attune_workload_size(workload));
  bench_summary summary = {0};
  if (o.tune) summary.tune_wall_s = tune_all(&platform, &o, workload);
  bench_report_head(&platform, o.rounds);
  if (csv) bench_report_csv_head(csv);
  run_all(&platform, &o, workload, csv, rows, &summary);
  bench_report_summary(&platform, &summary);
  bench_markdown_close();
  if (csv && fclose(csv) != 0) bench_die("cannot write %s", o.csv);
  free(rows);
  bench_random_release(platform.stream);
  attune_tuner_destroy(platform.tuner);
  platform.close(&platform);
  attune_workload_destroy(workload);
  return summary.disagree > 0 ? 1 : 0;
}
