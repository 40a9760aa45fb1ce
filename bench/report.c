/* SPDX-License-Identifier: Apache-2.0
 * report.c: the table of bench_gemm, and CSV, one line a way. */
#include "bench/bench.h"

#include "bench/tool.h"

#include <string.h>

void bench_report_head(const bench_platform *platform, int rounds) {
  char method[384], names[256] = "";
  size_t at = 0;
  snprintf(method, sizeof method,
           "%s; ways interleaved, median of %d rounds, microseconds a call, +- median absolute deviation",
           platform->method, rounds);
  bench_head("GEMM, attune beside its peers", platform->device, platform->libraries, method);
  for (int w = 0; w < platform->way_count; w++)
    at += (size_t)snprintf(names + at, sizeof names - at, " %s >|", platform->ways[w].name);
  bench_table("| name | problem |%s default / attune >| attune runs |", names);
}

static void figure_text(char *out, size_t size, const bench_figure *figure) {
  if (!figure->present) {
    snprintf(out, size, "-");
    return;
  }
  double us = figure->median_ns * 1e-3;
  int digits = us >= 1000.0 ? 0 : us >= 100.0 ? 1 : us >= 1.0 ? 2 : 3;
  snprintf(out, size, "%.*f +-%.1f%%%s%s", digits, us, 100.0 * figure->spread, figure->note != NULL ? " " : "",
           figure->note != NULL ? figure->note : "");
}

static void choice_text(char *out, size_t size, const bench_row *row) {
  const attune_decision *d = &row->decision;
  const char *state = d->source == ATTUNE_SOURCE_DEFAULT || d->source == ATTUNE_SOURCE_NEIGHBOUR ? " (not tuned)" : "";
  snprintf(out, size, "%s%s%s%s%s", d->implementation, d->configuration[0] != 0 ? " " : "", d->configuration, state,
           row->agrees ? "" : " RESULTS DIFFER");
}

void bench_report_row(const bench_platform *platform, const bench_row *row) {
  char choice[320], ratio[32] = "-", figures[512] = "";
  const char *problem = row->problem.text;
  size_t at = 0;
  if (strncmp(problem, "gemm ", 5) == 0) problem += 5;
  for (int w = 0; w < platform->way_count; w++) {
    char text[64];
    figure_text(text, sizeof text, &row->figures[w]);
    at += (size_t)snprintf(figures + at, sizeof figures - at, " %s |", text);
  }
  if (row->ratio > 0.0) snprintf(ratio, sizeof ratio, "%.3f", row->ratio);
  choice_text(choice, sizeof choice, row);
  bench_line("| %s | %s |%s %s | %s |", row->problem.name, problem, figures, ratio, choice);
}

void bench_report_summary(const bench_platform *platform, const bench_summary *summary) {
  char wall[64] = "";
  bench_line("%s", "");
  if (summary->problems == 0 || summary->least_name == NULL)
    bench_line("- no peer to compare with");
  else
    bench_line("- %s / attune: geomean %.4f over %d problems, least %.3f (%s), %d below %.2f",
               platform->ways[BENCH_DEFAULT].name, summary->geomean, summary->problems, summary->least,
               summary->least_name, summary->below, platform->floor_ratio);
  if (summary->tune_wall_s > 0.0)
    snprintf(wall, sizeof wall, ", %.2f s of wall clock in this run", summary->tune_wall_s);
  bench_line("- tuning took %.2f s in all (from the stored decisions)%s; this measurement %.1f s", summary->tuning_s,
             wall, summary->bench_wall_s);
  if (summary->untuned > 0) bench_line("- %d problems had no stored winner", summary->untuned);
  if (summary->disagree > 0) bench_line("- RESULTS DIFFER from the peer for %d problems", summary->disagree);
  if (summary->skipped > 0) bench_line("- %d problems left out: the time limit was reached", summary->skipped);
}

void bench_report_csv_head(FILE *file) {
  fprintf(file, "name,problem,way,us,spread,note\n");
}

void bench_report_csv_row(FILE *file, const bench_platform *platform, const bench_row *row) {
  char choice[320];
  choice_text(choice, sizeof choice, row);
  for (int w = 0; w < platform->way_count; w++) {
    const bench_figure *figure = &row->figures[w];
    if (!figure->present) continue;
    const char *note = w == BENCH_ATTUNE ? choice : figure->note != NULL ? figure->note : "";
    fprintf(file, "%s,%s,%s,%.4f,%.5f,\"%s\"\n", row->problem.name, row->problem.text, platform->ways[w].name,
            figure->median_ns * 1e-3, figure->spread, note);
  }
  fflush(file);
}
