/* SPDX-License-Identifier: Apache-2.0
 * report.c: the tables of bench_gemm: aligned text, markdown, and CSV (one line a way, joined by join.py). */
#include "bench/bench.h"

#include "bench/tool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void head_line(FILE *file, bool markdown, const char *word, const char *text) {
  fprintf(file, markdown ? "- %s: %s\n" : "# %s: %s\n", word, text);
}

static void describe_machine(FILE *file, const bench_platform *platform, bool markdown) {
  attune_device_properties here, cpu;
  attune_device *host = NULL;
  char text[512];
  bench_check(attune_device_get_properties(platform->device, &here), "attune_device_get_properties");
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_device_get_properties(host, &cpu), "attune_device_get_properties");
  if (here.kind == ATTUNE_DEVICE_CUDA) {
    snprintf(text, sizeof text, "%s (%s), compute capability %d.%d, %d processors, %llu MiB of L2, driver %d.%d",
             here.name, attune_device_name(platform->device), here.capability_major, here.capability_minor,
             here.processors, (unsigned long long)(here.cache_bytes >> 20), here.driver_version / 1000,
             here.driver_version % 1000 / 10);
    head_line(file, markdown, "device", text);
  }
  snprintf(text, sizeof text, "%s, %d CPUs (%s)", cpu.name, cpu.processors, cpu.features);
  head_line(file, markdown, here.kind == ATTUNE_DEVICE_CUDA ? "host CPU" : "device", text);
}

void bench_report_head(FILE *file, const bench_platform *platform, const char *workload, const char *command,
                       int rounds, bool markdown) {
  char text[512], date[32];
  time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
  if (markdown) fprintf(file, "# GEMM: attune beside its peers, %s\n\n", attune_device_name(platform->device));
  describe_machine(file, platform, markdown);
  snprintf(text, sizeof text, "attune %s, %s", attune_version(), platform->libraries);
  head_line(file, markdown, "libraries", text);
  head_line(file, markdown, "command", command);
  head_line(file, markdown, "workload", workload);
  double load[1] = {0.0};
  if (getloadavg(load, 1) != 1) load[0] = 0.0;
  snprintf(text, sizeof text, "%s, load average %.1f at the start", date, load[0]);
  head_line(file, markdown, "date", text);
  snprintf(text, sizeof text,
           "%s; ways interleaved, median of %d rounds, microseconds a call, +- median absolute deviation",
           platform->method, rounds);
  head_line(file, markdown, "method", text);
  fprintf(file, "\n");
  if (markdown)
    fprintf(file, "| name | problem |");
  else
    fprintf(file, "%-20s %-40s", "name", "problem");
  for (int w = 0; w < platform->way_count; w++) fprintf(file, markdown ? " %s |" : " %18s", platform->ways[w].name);
  fprintf(file, markdown ? " default / attune | attune runs |\n|---|---|" : " %9s  %s\n", "default/", "attune runs");
  if (!markdown) return;
  for (int w = 0; w < platform->way_count; w++) fprintf(file, "---:|");
  fprintf(file, "---:|---|\n");
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

void bench_report_row(FILE *file, const bench_platform *platform, const bench_row *row, bool markdown) {
  char text[320], ratio[32] = "-";
  const char *problem = row->problem.text;
  if (strncmp(problem, "gemm ", 5) == 0) problem += 5;
  fprintf(file, markdown ? "| %s | %s |" : "%-20s %-40s", row->problem.name, problem);
  for (int w = 0; w < platform->way_count; w++) {
    figure_text(text, sizeof text, &row->figures[w]);
    fprintf(file, markdown ? " %s |" : " %18s", text);
  }
  if (row->ratio > 0.0) snprintf(ratio, sizeof ratio, "%.3f", row->ratio);
  choice_text(text, sizeof text, row);
  fprintf(file, markdown ? " %s | %s |\n" : " %9s  %s\n", ratio, text);
  fflush(file);
}

void bench_report_summary(FILE *file, const bench_platform *platform, const bench_summary *summary, bool markdown) {
  const char *bullet = markdown ? "- " : "# ";
  fprintf(file, "\n");
  if (summary->problems == 0 || summary->least_name == NULL)
    fprintf(file, "%sno peer to compare with\n", bullet);
  else
    fprintf(file, "%s%s / attune: geomean %.4f over %d problems, least %.3f (%s), %d below %.2f\n", bullet,
            platform->ways[BENCH_DEFAULT].name, summary->geomean, summary->problems, summary->least,
            summary->least_name, summary->below, platform->floor_ratio);
  fprintf(file, "%stuning took %.2f s in all (from the stored decisions)", bullet, summary->tuning_s);
  if (summary->tune_wall_s > 0.0) fprintf(file, ", %.2f s of wall clock in this run", summary->tune_wall_s);
  fprintf(file, "; this measurement %.1f s\n", summary->bench_wall_s);
  if (summary->untuned > 0) fprintf(file, "%s%d problems had no stored winner\n", bullet, summary->untuned);
  if (summary->disagree > 0)
    fprintf(file, "%sRESULTS DIFFER from the peer for %d problems\n", bullet, summary->disagree);
  if (summary->skipped > 0)
    fprintf(file, "%s%d problems left out: the time limit was reached\n", bullet, summary->skipped);
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
