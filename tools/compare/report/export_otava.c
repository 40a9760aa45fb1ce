/* SPDX-License-Identifier: Apache-2.0
 * export_otava.c: CSV for Apache Otava (its docs/CSV.md): a row a run by time, with time, commit and run, then a column
 * a case, in ns. Otava reads a number from every cell, so a row has all cases: runs that lack one are left out, and a
 * comment cannot say so. */
#include "tools/compare/report/export.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/compare/message.h"
#include "tools/compare/report/report_text.h"
#include "tools/compare/stats/fingerprints.h"
#include "tools/compare/stats/summary.h"

/* RFC 4180. */
static void put_cell(FILE *out, const char *text) {
  if (!strpbrk(text, ",\"\r\n")) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text == '\n' || *text == '\r' ? ' ' : *text, out);
  }
  fputc('"', out);
}

static bool is_column(const gate_exported *what, const gate_case *c) {
  return gate_export_has(what, c) && c->state == GATE_CASE_OK && c->visit_count > 0;
}

/* A case must not be taken for one of the other columns, nor for the branch, which Otava sorts by. */
static void put_titles(FILE *out, const gate_exported *what) {
  static const char *const taken[] = {"time", "commit", "run", "branch"};
  fputs("time,commit,run", out);
  for (size_t i = 0; i < what->run->case_count; i++) {
    const gate_case *c = &what->run->cases[i];
    if (!is_column(what, c)) continue;
    char *name = gate_export_name(c);
    fputc(',', out);
    for (size_t k = 0; k < sizeof taken / sizeof *taken; k++)
      if (strcmp(name, taken[k]) == 0) fputs("case ", out);
    put_cell(out, name);
    free(name);
  }
  fputc('\n', out);
}

/* False: it lacks a case, and nothing was written. */
static bool put_row(FILE *out, const gate_exported *what, const gate_run *run) {
  char date[40] = "";
  struct tm parts;
  const time_t started = (time_t)run->started;
  for (size_t i = 0; i < what->run->case_count; i++) {
    if (!is_column(what, &what->run->cases[i])) continue;
    const gate_case *c = gate_run_find(run, &what->run->cases[i]);
    if (!c || c->state != GATE_CASE_OK || !c->visit_count) return false;
  }
  if (gmtime_r(&started, &parts)) strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S +0000", &parts);
  fprintf(out, "%s,", date);
  put_cell(out, run->revision ? run->revision : "");
  fprintf(out, ",%lld", (long long)run->id);
  for (size_t i = 0; i < what->run->case_count; i++) {
    if (!is_column(what, &what->run->cases[i])) continue;
    double ns;
    gate_case_summary(gate_run_find(run, &what->run->cases[i]), &ns, NULL);
    fprintf(out, ",%.9g", ns);
  }
  fputc('\n', out);
  return true;
}

static int by_time(const void *left, const void *right) {
  const gate_run *a = left, *b = right;
  if (a->started != b->started) return a->started < b->started ? -1 : 1;
  return (a->id > b->id) - (a->id < b->id);
}

/* An earlier head, or run alone, of this machine that came to an end. */
static bool is_before(const gate_exported *what, const gate_run *runs, size_t count, size_t i) {
  if (runs[i].state == GATE_RUN_OPEN || by_time(&runs[i], what->run) >= 0) return false;
  for (size_t k = 0; k < count; k++)
    if (runs[k].pair == runs[i].id) return false;
  char *other = gate_fingerprint_differences(what->run->fingerprint, runs[i].fingerprint);
  free(other);
  return !other;
}

static char *put_before(FILE *out, const gate_exported *what) {
  gate_file *file = NULL;
  gate_run *runs = NULL, whole;
  size_t count = 0;
  char *error = gate_file_open(&file, what->results, false);
  if (!error) error = gate_file_runs(file, &runs, &count);
  if (!error && count) qsort(runs, count, sizeof *runs, by_time);
  for (size_t i = 0; !error && i < count; i++) {
    if (!is_before(what, runs, count, i)) continue;
    char *which = gate_say("%lld", (long long)runs[i].id);
    error = gate_file_load(file, which, &whole);
    if (!error) (void)put_row(out, what, &whole);
    gate_run_free(&whole);
    free(which);
  }
  for (size_t i = 0; i < count; i++) gate_run_free(&runs[i]);
  free(runs);
  gate_file_close(file);
  return error;
}

bool gate_export_otava(FILE *out, const gate_exported *what, char **error) {
  put_titles(out, what);
  char *why = what->results ? put_before(out, what) : NULL;
  (void)put_row(out, what, what->run);
  if (why && error)
    *error = why;
  else
    free(why);
  return gate_written(out) && !why;
}
