/* SPDX-License-Identifier: Apache-2.0
 * history.c: one case over the runs of a file. */
#include "tools/compare/stats/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/compare/results/results_file.h"
#include "tools/compare/stats/fingerprints.h"
#include "tools/compare/stats/per_process_values.h"

enum { NAMED = 5 }; /* cases in an error's sentence */

typedef struct names {
  char **name, **device, **mode;
  size_t count;
} names;

static char *copy_column(sqlite3_stmt *s, int column) {
  const char *text = (const char *)sqlite3_column_text(s, column);
  return gate_copy(text ? text : "");
}

static void free_names(names *n) {
  for (size_t i = 0; i < n->count; i++) {
    free(n->name[i]);
    free(n->device[i]);
    free(n->mode[i]);
  }
  free(n->name);
  free(n->device);
  free(n->mode);
}

static void add_name(names *n, sqlite3_stmt *s) {
  n->name = gate_grow(n->name, n->count + 1, sizeof *n->name);
  n->device = gate_grow(n->device, n->count + 1, sizeof *n->device);
  n->mode = gate_grow(n->mode, n->count + 1, sizeof *n->mode);
  n->name[n->count] = copy_column(s, 0);
  n->device[n->count] = copy_column(s, 1);
  n->mode[n->count++] = copy_column(s, 2);
}

/* Cases whose "NAME [MODE DEVICE]" holds `part`, or whose name is it. */
static char *find_names(const gate_file *file, const char *part, bool whole, names *out) {
  sqlite3_stmt *s;
  int code = SQLITE_DONE;
  char *error = gate_sql_prepare(
      file, &s,
      whole ? "SELECT DISTINCT name, device, mode FROM bench_case WHERE name = ?1 OR name || ' [' || mode || ' ' || "
              "device || ']' = ?1 ORDER BY 1, 2, 3"
            : "SELECT DISTINCT name, device, mode FROM bench_case WHERE instr(name || ' [' || mode || ' ' || device || "
              "']', ?1) ORDER BY 1, 2, 3");
  if (error) return error;
  (void)sqlite3_bind_text(s, 1, part, -1, SQLITE_STATIC);
  while ((code = sqlite3_step(s)) == SQLITE_ROW) add_name(out, s);
  if (code != SQLITE_DONE) error = gate_sql_fail(file, code);
  (void)sqlite3_finalize(s);
  return error;
}

static char *not_one(const gate_file *file, const char *part, const names *n) {
  char *list = gate_copy("");
  for (size_t i = 0; i < n->count && i < NAMED; i++) {
    char *longer = gate_say("%s%s \"%s [%s %s]\"", list, i ? "," : "", n->name[i], n->mode[i], n->device[i]);
    free(list);
    list = longer;
  }
  char *error = n->count ? gate_say("\"%.200s\" is part of the names of %zu cases in %s; should be part of one:%s%s",
                                    part, n->count, file->path, list, n->count > NAMED ? ", ..." : "")
                         : gate_say("%s has no case \"%.200s\"", file->path, part);
  free(list);
  return error;
}

static char *find_case(const gate_file *file, const char *name, gate_history *out) {
  names n = {0};
  char *error = find_names(file, name, true, &n);
  if (!error && !n.count) error = find_names(file, name, false, &n);
  if (!error && n.count != 1) error = not_one(file, name, &n);
  if (!error) {
    out->name = gate_copy(n.name[0]);
    out->device = gate_copy(n.device[0]);
    out->mode = gate_copy(n.mode[0]);
  }
  free_names(&n);
  return error;
}

/* The values of the case's visits in a run; throttled ones are left out. */
static char *read_values(gate_file *file, const gate_history *h, int64_t run, double *values, int *count) {
  gate_case c;
  char *error = gate_file_read_case(file, run, &(gate_case){.name = h->name, .device = h->device, .mode = h->mode}, &c);
  *count = 0;
  for (int i = 0; !error && c.state == GATE_CASE_OK && i < c.visit_count && *count < GATE_MOST_VALUES; i++) {
    const double value = c.visits[i].throttled ? 0.0 : gate_visit_value(&c.visits[i]);
    if (value > 0.0) values[(*count)++] = value;
  }
  gate_case_free(&c);
  return error;
}

static void add_point(gate_history *h, const gate_run *run, double *values, int count) {
  h->points = gate_grow(h->points, h->point_count + 1, sizeof *h->points);
  gate_point *point = &h->points[h->point_count++];
  *point = (gate_point){.run = run->id, .started = run->started};
  snprintf(point->revision, sizeof point->revision, "%s", run->revision);
  snprintf(point->label, sizeof point->label, "%s", run->label);
  point->ns = gate_median(values, count);
  for (int i = 0; i < count; i++) values[i] = fabs(values[i] - point->ns);
  point->spread = 1.4826 * gate_median(values, count) / point->ns;
}

static int by_time(const void *left, const void *right) {
  const gate_point *a = left, *b = right;
  if (a->started != b->started) return a->started < b->started ? -1 : 1;
  return (a->run > b->run) - (a->run < b->run);
}

/* What a head alternated with is an older build: no point of its own in the history. */
static bool is_base(const gate_run *runs, size_t count, int64_t id) {
  for (size_t i = 0; i < count; i++)
    if (runs[i].pair == id) return true;
  return false;
}

/* From the latest run with the case back: what was made on other machines or software is no part of its history. */
static char *read_points(gate_file *file, gate_history *h, const gate_run *runs, size_t count) {
  const char *fingerprint = NULL;
  char *error = NULL;
  for (size_t i = count; i-- > 0 && !error;) {
    double values[GATE_MOST_VALUES];
    int value_count = 0;
    if (runs[i].state == GATE_RUN_OPEN) continue;
    char *other = fingerprint ? gate_fingerprint_differences(fingerprint, runs[i].fingerprint) : NULL;
    if (!other) error = read_values(file, h, runs[i].id, values, &value_count);
    free(other);
    if (!value_count) continue;
    if (is_base(runs, count, runs[i].id)) {
      h->bases++;
      continue;
    }
    fingerprint = runs[i].fingerprint;
    add_point(h, &runs[i], values, value_count);
  }
  if (h->point_count) qsort(h->points, h->point_count, sizeof *h->points, by_time);
  if (!error && !h->point_count)
    error = gate_say("%s has no times of \"%.200s\" in a finished run", file->path, h->name);
  return error;
}

static double median_of(const gate_history *h, size_t from, size_t to) {
  double *ns = gate_alloc(to - from + 1, sizeof *ns);
  for (size_t i = from; i < to; i++) ns[i - from] = h->points[i].ns;
  const double median = gate_median(ns, (int)(to - from));
  free(ns);
  return median;
}

/* In logarithms, so that a change counts by its ratio. */
static void find_changes(gate_history *h, double alpha) {
  const size_t count = h->point_count;
  double *values = gate_alloc(count + 1, sizeof *values), *p = gate_alloc(count + 1, sizeof *p);
  size_t *at = gate_alloc(count + 1, sizeof *at);
  for (size_t i = 0; i < count; i++) values[i] = log(h->points[i].ns);
  h->change_count = gate_change_points(values, count, alpha, 1, at, p);
  h->changes = gate_alloc(h->change_count + 1, sizeof *h->changes);
  for (size_t i = 0; i < h->change_count; i++) {
    const size_t from = i ? at[i - 1] : 0, to = i + 1 < h->change_count ? at[i + 1] : count;
    h->changes[i] = (gate_change){at[i], median_of(h, from, at[i]), median_of(h, at[i], to), p[i]};
  }
  free(values);
  free(p);
  free(at);
}

char *gate_history_load(gate_history *out, gate_file *file, const char *name, double alpha) {
  gate_run *runs = NULL;
  size_t count = 0;
  *out = (gate_history){0};
  char *error = find_case(file, name, out);
  if (!error) error = gate_file_runs(file, &runs, &count);
  if (!error) error = read_points(file, out, runs, count);
  if (!error) find_changes(out, alpha);
  for (size_t i = 0; i < count; i++) gate_run_free(&runs[i]);
  free(runs);
  if (error) gate_history_free(out);
  return error;
}

void gate_history_free(gate_history *history) {
  if (!history) return;
  free(history->name);
  free(history->device);
  free(history->mode);
  free(history->points);
  free(history->changes);
  *history = (gate_history){0};
}
