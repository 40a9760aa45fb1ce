/* SPDX-License-Identifier: Apache-2.0
 * report.c: the table of bench_gemm and what its last lines sum up; as CSV one line a way, and one that repeats the
 * best peer's figures. */
#include "bench/gemm/gemm.h"

#include "bench/common/tool.h"

#include <math.h>
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
  bench_table("| name | problem |%s default / attune >| best peer / attune >| attune runs |", names);
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
  const bench_choice *d = &row->decision;
  const char *state = d->source == ATTUNE_SOURCE_DEFAULT || d->source == ATTUNE_SOURCE_NEIGHBOUR ? " (not tuned)" : "";
  snprintf(out, size, "%s%s%s%s%s", d->implementation, d->configuration[0] != 0 ? " " : "", d->configuration, state,
           row->agrees ? "" : " RESULTS DIFFER");
}

void bench_report_row(const bench_platform *platform, const bench_row *row) {
  char choice[320], usual[32] = "-", best[64] = "-", figures[512] = "";
  const char *problem = row->problem.text;
  size_t at = 0;
  if (strncmp(problem, "gemm ", 5) == 0) problem += 5;
  for (int w = 0; w < platform->way_count; w++) {
    char text[64];
    figure_text(text, sizeof text, &row->figures[w]);
    at += (size_t)snprintf(figures + at, sizeof figures - at, " %s |", text);
  }
  if (row->figures[BENCH_DEFAULT].present) snprintf(usual, sizeof usual, "%.3f", row->figures[BENCH_DEFAULT].ratio);
  if (row->best > 0)
    snprintf(best, sizeof best, "%.3f (%s)", row->figures[row->best].ratio, platform->ways[row->best].name);
  choice_text(choice, sizeof choice, row);
  bench_line("| %s | %s |%s %s | %s | %s |", row->problem.name, problem, figures, usual, best, choice);
}

static void add_ratio(bench_ratios *ratios, double ratio, double floor_ratio, const char *name) {
  if (ratios->problems == 0 || ratio < ratios->least) {
    ratios->least = ratio;
    ratios->least_name = name;
  }
  ratios->problems++;
  ratios->log_sum += log(ratio);
  if (ratio < floor_ratio) ratios->below++;
}

void bench_summary_add(bench_summary *summary, const bench_platform *platform, const bench_row *row) {
  const bench_choice *d = &row->decision;
  const bench_figure *usual = &row->figures[BENCH_DEFAULT], *best = &row->figures[row->best];
  if (d->source == ATTUNE_SOURCE_DEFAULT || d->source == ATTUNE_SOURCE_NEIGHBOUR) summary->untuned++;
  summary->tuning_s += d->tuning_ms * 1e-3;
  if (!row->agrees) summary->disagree++;
  if (usual->present) add_ratio(&summary->usual, usual->ratio, platform->floor_ratio, row->problem.name);
  if (row->best > 0) add_ratio(&summary->best, best->ratio, platform->floor_ratio, row->problem.name);
}

static void put_ratios(const char *what, const bench_ratios *ratios, double floor_ratio) {
  if (ratios->problems == 0) return;
  bench_line("- %s / attune: geomean %.4f over %d problems, least %.3f (%s), %d below %.2f", what,
             exp(ratios->log_sum / ratios->problems), ratios->problems, ratios->least, ratios->least_name,
             ratios->below, floor_ratio);
}

void bench_report_summary(const bench_platform *platform, const bench_summary *summary) {
  char wall[64] = "";
  bench_line("%s", "");
  if (summary->best.problems == 0) bench_line("- no peer to compare with");
  put_ratios(platform->ways[BENCH_DEFAULT].name, &summary->usual, platform->floor_ratio);
  put_ratios("best peer of each problem", &summary->best, platform->floor_ratio);
  if (summary->tune_wall_s > 0.0)
    snprintf(wall, sizeof wall, ", %.2f s of wall clock in this run", summary->tune_wall_s);
  bench_line("- tuning took %.2f s in all (from the stored decisions)%s; this measurement %.1f s", summary->tuning_s,
             wall, summary->bench_wall_s);
  if (summary->untuned > 0) bench_line("- %d problems had no stored winner", summary->untuned);
  if (summary->disagree > 0) bench_line("- RESULTS DIFFER from the peer for %d problems", summary->disagree);
  if (summary->skipped > 0) bench_line("- %d problems left out: the time limit was reached", summary->skipped);
}

void bench_report_csv_head(FILE *file) {
  fprintf(file, "name,problem,way,us,spread,note,ratio\n");
}

static void put_csv(FILE *file, const bench_row *row, const char *way, const bench_figure *figure, const char *note) {
  fprintf(file, "%s,%s,%s,%.4f,%.5f,\"%s\",%.4f\n", row->problem.name, row->problem.text, way, figure->median_ns * 1e-3,
          figure->spread, note, figure->ratio);
}

void bench_report_csv_row(FILE *file, const bench_platform *platform, const bench_row *row) {
  char choice[320];
  choice_text(choice, sizeof choice, row);
  for (int w = 0; w < platform->way_count; w++) {
    const bench_figure *figure = &row->figures[w];
    if (!figure->present) continue;
    const char *note = w == BENCH_ATTUNE ? choice : figure->note != NULL ? figure->note : "";
    put_csv(file, row, platform->ways[w].name, figure, note);
  }
  if (row->best > 0) put_csv(file, row, "best peer", &row->figures[row->best], platform->ways[row->best].name);
  fflush(file);
}
