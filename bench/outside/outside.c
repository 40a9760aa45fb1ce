/* SPDX-License-Identifier: Apache-2.0
 * outside.c: bench_outside, a program as a user would write it: does what attune chose hold here too? It has memory,
 * streams and library handles of its own, lays operands out at several alignments and spacings, and compares
 * attune_gemm with the vendor's own call and with what tuning claimed. */
#include "bench/outside/outside.h"

#include "bench/common/tool.h"
#include "bench/common/turns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: bench_outside WORKLOAD [options]\n"
    "Compares attune_gemm with the vendor's own call for each problem of WORKLOAD (CSV), at several alignments and\n"
    "spacings of the operands, in a program with its own memory, streams and handles.\n"
    "  --db FILE           tuning database (default: the user's own)\n"
    "  --device D          host, cuda:0, ... (default: best)\n"
    "  --alignments LIST   bytes, powers of two: operands start at odd multiples (default: 16,64,256; host: 64)\n"
    "  --spacings LIST     unused bytes between operands (default: 0,8192,1048576; host: 0)\n"
    "  --rounds N          pairs of samples, 5 to 101 (default: 11); ratios below the floor are repeated with 3 N\n"
    "  --tune              tune problems that have no winner, in their first calls\n"
    "  --only TEXT         only problems whose name contains TEXT\n"
    "  --time-limit S      start no problem after S seconds (default: no limit)\n"
    "  --slice MS          host: time of each process in a turn (default: 30); under a CPU quota use 400, several "
    "periods\n"
    "  --pause MS          host: pause before each turn, until the other's idle threads stop spinning (default: 40)\n"
    "  --twice             measure all rows again at the end, in new processes, and compare the differences between\n"
    "                      the two measurements with those between claims and measurements\n"
    "  --blas LIBRARY      host: the CBLAS to compare with (default: libopenblas.so.0)\n"
    "  --markdown FILE     also write the table as Markdown\n"
    "  --csv FILE          also write every ratio as CSV\n"
    "Exit codes: 0 success, 1 a failure, 2 wrong usage.\n"
    "Example: bench_outside bench/workloads/gemm-h200.csv --tune --markdown outside.md\n";

static int sizes(const char *text, size_t *out, bool powers, const char *what) {
  int count = 0;
  for (const char *at = text; *at;) {
    char *end = NULL;
    const unsigned long long value = strtoull(at, &end, 10);
    if (end == at || (*end && *end != ',') || count == OUTSIDE_MAX_PLACES || value > (1ull << 30) || value % 16 ||
        (powers && (value < 16 || (value & (value - 1)))))
      bench_bad_usage(what, usage);
    out[count++] = (size_t)value;
    at = *end ? end + 1 : end;
  }
  if (!count) bench_bad_usage(what, usage);
  return count;
}

static outside_options read_options(int argc, char **argv) {
  outside_options o = {.device = "best",
                       .blas = "libopenblas.so.0",
                       .rounds = 11,
                       .time_limit_s = INFINITY,
                       .slice_ms = 30,
                       .pause_ms = 40};
  const char *alignments = NULL, *spacings = NULL;
  const bench_option table[] = {{"db", BENCH_TEXT, &o.database, 0, 0},
                                {"device", BENCH_TEXT, &o.device, 0, 0},
                                {"alignments", BENCH_TEXT, &alignments, 0, 0},
                                {"spacings", BENCH_TEXT, &spacings, 0, 0},
                                {"rounds", BENCH_WHOLE, &o.rounds, 5, 33},
                                {"tune", BENCH_FLAG, &o.tune, 0, 0},
                                {"only", BENCH_TEXT, &o.only, 0, 0},
                                {"time-limit", BENCH_NUMBER, &o.time_limit_s, 0, 1e9},
                                {"slice", BENCH_NUMBER, &o.slice_ms, 0.1, 1e4},
                                {"pause", BENCH_NUMBER, &o.pause_ms, 0, 1e4},
                                {"twice", BENCH_FLAG, &o.twice, 0, 0},
                                {"blas", BENCH_TEXT, &o.blas, 0, 0},
                                {"markdown", BENCH_TEXT, &o.markdown, 0, 0},
                                {"csv", BENCH_TEXT, &o.csv, 0, 0},
                                {"worker", BENCH_TEXT, &o.program, 0, 0},
                                {NULL, BENCH_FLAG, NULL, 0, 0}};
  if (bench_read_options(argc, argv, table, usage, &o.workload, 1) != 1 && !o.program)
    bench_bad_usage("no WORKLOAD; should be one CSV file", usage);
  if (alignments)
    o.alignment_count =
        sizes(alignments, o.alignments, true, "--alignments should be powers of two from 16, separated by commas");
  if (spacings)
    o.spacing_count = sizes(spacings, o.spacings, false, "--spacings should be multiples of 16, separated by commas");
  return o;
}

/* The places of this kind of device, where none are given. */
static void fill_places(outside_options *o) {
  attune_device *device = NULL;
  attune_device_properties properties = {0};
  bench_check(attune_device_get(&device, o->device), "--device");
  bench_check(attune_device_get_properties(device, &properties), "attune_device_get_properties");
  o->host = properties.kind == ATTUNE_DEVICE_HOST;
  if (!o->alignment_count) o->alignment_count = sizes(o->host ? "64" : "16,64,256", o->alignments, true, "");
  if (!o->spacing_count) o->spacing_count = sizes(o->host ? "0" : "0,8192,1048576", o->spacings, false, "");
}

typedef struct tally {
  int rows, ratios, below, untuned, claims, claims_off;
  double logs, claim_logs, least;
  char least_at[128];
} tally;

static void count_row(const outside_side *side, const outside_options *o, const bench_problem *problem,
                      size_t alignment, const outside_row *row, tally *t) {
  const double median = outside_middle(row, o->spacing_count);
  t->rows++;
  t->logs += log(median);
  for (int i = 0; i < o->spacing_count; i++) {
    t->ratios++;
    t->below += row->ratio[i] < side->floor_ratio;
    if (t->least > 0 && row->ratio[i] >= t->least) continue;
    t->least = row->ratio[i];
    snprintf(t->least_at, sizeof t->least_at, "%s, alignment %zu, spacing %zu", problem->name, alignment,
             o->spacings[i]);
  }
  if (!(row->claim > 0)) {
    t->untuned++;
    return;
  }
  t->claims++;
  t->claim_logs += log(row->claim / median);
  t->claims_off += fabs(row->claim / median - 1.0) > side->claim_tolerance;
}

static void print_head(const outside_side *side, const outside_options *o) {
  char method[512], libraries[384], spacings[256] = "";
  size_t at = 0;
  attune_device *device = NULL;
  bench_check(attune_device_get(&device, o->device), "--device");
  snprintf(libraries, sizeof libraries, "%s; the vendor's call: %s", side->libraries, side->vendor);
  snprintf(method, sizeof method,
           "%s; median of %d rounds of the ratio within a round; a ratio below %.2f is taken again with %d",
           side->method, o->rounds, side->floor_ratio, 3 * o->rounds);
  bench_head("What attune chose, measured from outside", device, libraries, method);
  for (int i = 0; i < o->spacing_count; i++)
    at += (size_t)snprintf(spacings + at, sizeof spacings - at, " +%zu >|", o->spacings[i]);
  bench_table("| name | problem | align >| attune us >| vendor us >| claimed >|%s attune runs |", spacings);
}

static void print_row(const outside_options *o, const bench_problem *problem, size_t alignment, const outside_row *row,
                      FILE *csv) {
  char ratios[256] = "", claim[32] = "-";
  size_t at = 0;
  for (int i = 0; i < o->spacing_count; i++)
    at += (size_t)snprintf(ratios + at, sizeof ratios - at, " %.3f |", row->ratio[i]);
  if (row->claim > 0) snprintf(claim, sizeof claim, "%.3f", row->claim);
  const bench_choice *d = &row->decision;
  bench_line("| %s | %s | %zu | %.4g | %.4g | %s |%s %s %s%s |", problem->name,
             strncmp(d->problem, "gemm ", 5) == 0 ? d->problem + 5 : d->problem, alignment, row->attune_ns * 1e-3,
             row->vendor_ns * 1e-3, claim, ratios, d->implementation, d->configuration, row->again ? " (again)" : "");
  for (int i = 0; csv && i < o->spacing_count; i++)
    fprintf(csv, "%s,\"%s\",%zu,%zu,%.4f,%.4f,%.1f,%.1f,%s,\"%s\"\n", problem->name, d->problem, alignment,
            o->spacings[i], row->ratio[i], row->claim, row->attune_ns, row->vendor_ns, d->implementation,
            d->configuration);
}

static void print_tally(const outside_side *side, const char *what, const tally *t) {
  if (!t->rows) return;
  bench_line(
      "- %s: geomean vendor / attune %.3f over %d rows, %d of %d ratios below %.2f, least %.3f (%s), %d not tuned",
      what, exp(t->logs / t->rows), t->rows, t->below, t->ratios, side->floor_ratio, t->least, t->least_at, t->untuned);
  if (t->claims)
    bench_line("- %s: claimed / measured %.3f in the geometric mean; %d of %d claims off by more than %.0f %%", what,
               exp(t->claim_logs / t->claims), t->claims_off, t->claims, 100.0 * side->claim_tolerance);
}

/* The count of rows, which are noted in `seen`. */
static int run_all(outside_side *side, const outside_options *o, const attune_workload *workload, tally *by_alignment,
                   tally *all, FILE *csv, outside_seen *seen) {
  const double start = bench_now_ns();
  int skipped = 0, count = 0;
  for (size_t i = 0; i < attune_workload_size(workload); i++) {
    const attune_workload_entry *entry = attune_workload_at(workload, i);
    if (o->only && !strstr(entry->name, o->only)) continue;
    bench_problem problem = {.bytes_a = 0};
    bench_problem_read(&problem, entry);
    for (int a = 0; a < o->alignment_count; a++) {
      if ((bench_now_ns() - start) * 1e-9 > o->time_limit_s) {
        skipped++;
        continue;
      }
      outside_row row = {.claim = 0};
      if (!outside_measure(side, o, &problem, o->alignments[a], &row)) continue;
      print_row(o, &problem, o->alignments[a], &row, csv);
      count_row(side, o, &problem, o->alignments[a], &row, &by_alignment[a]);
      count_row(side, o, &problem, o->alignments[a], &row, all);
      seen[count++] = (outside_seen){i, o->alignments[a], outside_middle(&row, o->spacing_count), row.claim};
    }
  }
  bench_line("%s", "");
  if (skipped) bench_line("- %d rows were not begun: the time limit", skipped);
  return count;
}

int main(int argc, char **argv) {
  outside_options o = read_options(argc, argv);
  if (o.program)
    return outside_worker(strcmp(o.program, "attune") == 0 ? NULL : o.program,
                          o.database && o.database[0] ? o.database : NULL, o.tune);
  attune_workload *workload = NULL;
  bench_check(attune_workload_read(&workload, o.workload), o.workload);
  outside_side side = {.vendor = ""};
  bench_markdown_open(o.markdown);
  FILE *csv = o.csv ? fopen(o.csv, "w") : NULL;
  if (o.csv && !csv) bench_die("cannot write %s; name a file in a folder that exists", o.csv);
  fill_places(&o);
  outside_open(&side, &o);
  if (csv)
    fputs("name,problem,alignment,spacing,ratio,claimed,attune_ns,vendor_ns,implementation,configuration\n", csv);
  print_head(&side, &o);
  tally by_alignment[OUTSIDE_MAX_PLACES] = {{0}}, all = {0};
  outside_seen *seen = calloc(attune_workload_size(workload) * OUTSIDE_MAX_PLACES + 1, sizeof *seen);
  if (!seen) bench_die("out of memory");
  const int rows = run_all(&side, &o, workload, by_alignment, &all, csv, seen);
  for (int a = 0; a < o.alignment_count; a++) {
    char what[64];
    snprintf(what, sizeof what, "alignment %zu", o.alignments[a]);
    print_tally(&side, what, &by_alignment[a]);
  }
  print_tally(&side, "all", &all);
  side.end(&side);
  if (o.twice) outside_twice(&side, &o, workload, seen, rows);
  free(seen);
  bench_markdown_close();
  if (csv && fclose(csv) != 0) bench_die("%s could not be written completely", o.csv);
  attune_workload_destroy(workload);
  return all.rows ? 0 : 1;
}
