/* SPDX-License-Identifier: Apache-2.0
 * hot_path.c: bench_hot_path: opening a tuner on a database with many winners, and the first look-up in it; on CUDA
 * what enqueuing a small call costs. The cost of attune alone is in parts_hot.c. */
#include "bench/runtime/hot_path.h"

#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/support.h"

enum { OPENS = 15 };

static const char problem[] = "gemm f32 nn 16x16x16 strict";

/* One real winner, found by tuning. */
static void tune_one(const char *path) {
  attune_tuner *tuner = NULL;
  attune_device *host = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = path;
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_tuner_create(&tuner, &options), "attune_tuner_create");
  bench_check(attune_tuner_database_status(tuner), path);
  bench_check(attune_tune(tuner, host, problem, &(attune_tune_options){.budget_ms = 10000.0}, NULL), problem);
  attune_tuner_destroy(tuner);
}

/* The columns of the table winner, the problem replaced by "... <number>". */
static void list_columns(sqlite3 *database, char *out, size_t size) {
  sqlite3_stmt *columns = NULL;
  size_t at = 0;
  if (sqlite3_prepare_v2(database, "PRAGMA table_info(winner)", -1, &columns, NULL) != SQLITE_OK)
    bench_die("%s", sqlite3_errmsg(database));
  while (sqlite3_step(columns) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(columns, 1);
    const char *value = strcmp(name, "problem") == 0 ? "'gemm f32 nn 17x' || value || 'x16 strict'" : name;
    if (!at_append(out, size, &at, "%s%s", at > 0 ? ", " : "", value))
      bench_die("the table `winner' has too many columns");
  }
  sqlite3_finalize(columns);
}

/* Copies of the one winner under other problems, in one transaction. The copies fail the row's own check, but weigh the
 * same in the file and its indexes; the look-up is of the real one. */
static void multiply(const char *path, int64_t count) {
  sqlite3 *database = NULL;
  char columns[2048] = "", sql[4096], *message = NULL;
  if (sqlite3_open(path, &database) != SQLITE_OK) bench_die("%s: %s", path, sqlite3_errmsg(database));
  list_columns(database, columns, sizeof columns);
  snprintf(sql, sizeof sql,
           "WITH RECURSIVE series(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM series WHERE value < %lld) "
           "INSERT INTO winner SELECT %s FROM series, winner",
           (long long)count, columns);
  if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK) bench_die("%s: %s", path, message);
  sqlite3_close(database);
}

static void time_open(const char *path, double *open_ms, double *look_ms) {
  attune_tuner *tuner = NULL;
  attune_device *host = NULL;
  bench_choice decision;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = path;
  options.mode = ATTUNE_MODE_CACHED;
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  int64_t start = at_now_ns();
  bench_check(attune_tuner_create(&tuner, &options), "attune_tuner_create");
  int64_t opened = at_now_ns();
  bench_explain(&decision, tuner, host, problem);
  *look_ms = (double)(at_now_ns() - opened) * 1e-6;
  *open_ms = (double)(opened - start) * 1e-6;
  if (decision.source != ATTUNE_SOURCE_STORED) bench_die("the stored winner was not found: %s", decision.note);
  attune_tuner_destroy(tuner);
}

static void report_database(int64_t winners) {
  char folder[] = "/tmp/attune-bench-XXXXXX", path[64];
  double open_ms[OPENS], look_ms[OPENS], both_ms[OPENS];
  if (mkdtemp(folder) == NULL) bench_die("no temporary folder could be made in /tmp");
  snprintf(path, sizeof path, "%s/tuning.db", folder);
  tune_one(path);
  multiply(path, winners - 1);
  for (int i = 0; i < OPENS; i++) {
    time_open(path, &open_ms[i], &look_ms[i]);
    both_ms[i] = open_ms[i] + look_ms[i];
  }
  bench_line("%s", "");
  bench_table("| database with %lld winners | ms, median of %d >|", (long long)winners, OPENS);
  bench_line("| attune_tuner_create | %.3f |", bench_median(open_ms, OPENS));
  bench_line("| the first look-up | %.3f |", bench_median(look_ms, OPENS));
  bench_line("| both | %.3f |", bench_median(both_ms, OPENS));
  unlink(path);
  rmdir(folder);
}

static const char usage[] =
    "usage: bench_hot_path [--winners N] [--markdown FILE]\n"
    "Times opening a database of N winners (default: 100000) with the first look-up and, if there is a CUDA device,\n"
    "enqueuing a small GEMM, compared with cuBLAS. bench_parts times a hit.\n";

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
  report_database(winners);
#ifdef BENCH_WITH_CUDA
  hot_report_cuda();
#endif
  bench_markdown_close();
  return 0;
}
