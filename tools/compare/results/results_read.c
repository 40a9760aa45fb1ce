/* SPDX-License-Identifier: Apache-2.0
 * results_read.c: runs of a result file into memory, whatever the file holds. */
#include "tools/compare/results/results_file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_COLUMNS "id, suite, label, revision, dirty, fingerprint, command, started, ended, pair, state"

/* A copy of a text column; NULL: none, or one that holds a zero byte. */
static char *text_at(sqlite3_stmt *s, int column) {
  const char *text = (const char *)sqlite3_column_text(s, column);
  return text && strlen(text) == (size_t)sqlite3_column_bytes(s, column) ? gate_copy(text) : NULL;
}

static int int_at(sqlite3_stmt *s, int column) {
  const int64_t value = sqlite3_column_int64(s, column);
  return value < INT_MIN || value > INT_MAX ? -1 : (int)value;
}

static bool is_text(sqlite3_stmt *s, int column, const char *wanted) {
  const char *text = (const char *)sqlite3_column_text(s, column);
  return text && strcmp(text, wanted) == 0;
}

static gate_run_state state_at(sqlite3_stmt *s, int column) {
  for (int i = GATE_RUN_COMPLETE; i <= GATE_RUN_OPEN; i++)
    if (is_text(s, column, gate_run_state_name((gate_run_state)i))) return (gate_run_state)i;
  return (gate_run_state)-1;
}

static char *refuse(const gate_file *file, int64_t run, const char *wrong) {
  return gate_say("%s: run %lld has %s; the file is damaged or was not made by attune bench", file->path,
                  (long long)run, wrong);
}

/* Is the checksum in that column another? */
static bool differs(sqlite3_stmt *s, int column, int64_t checksum) {
  return sqlite3_column_int64(s, column) != checksum;
}

static char *read_run(const gate_file *file, sqlite3_stmt *s, gate_run *run) {
  *run = (gate_run){.id = sqlite3_column_int64(s, 0),
                    .suite = text_at(s, 1),
                    .label = text_at(s, 2),
                    .revision = text_at(s, 3),
                    .dirty = sqlite3_column_int64(s, 4) != 0,
                    .fingerprint = text_at(s, 5),
                    .command = text_at(s, 6),
                    .started = sqlite3_column_int64(s, 7),
                    .ended = sqlite3_column_int64(s, 8),
                    .pair = sqlite3_column_int64(s, 9),
                    .state = state_at(s, 10)};
  const char *wrong = gate_run_wrong(run);
  const bool damaged = !wrong && differs(s, 11, gate_run_checksum(run));
  if (!wrong && !damaged) return NULL;
  char *error = wrong ? refuse(file, run->id, wrong)
                      : gate_say("%s is damaged (run %lld has a wrong checksum); restore a copy, or measure again",
                                 file->path, (long long)run->id);
  gate_run_free(run);
  return error;
}

/* The end of a walk whose last step gave `code`. */
static char *end_walk(const gate_file *file, sqlite3_stmt *s, int code, char *error) {
  if (!error && code != SQLITE_DONE && code != SQLITE_ROW) error = gate_sql_fail(file, code);
  (void)sqlite3_finalize(s);
  return error;
}

char *gate_file_runs(gate_file *file, gate_run **runs, size_t *count) {
  sqlite3_stmt *s;
  size_t room = 0;
  int code = SQLITE_DONE;
  *runs = NULL;
  *count = 0;
  char *error = gate_sql_prepare(file, &s, "SELECT " RUN_COLUMNS ", checksum FROM run ORDER BY id");
  if (error) return error;
  while (!error && (code = sqlite3_step(s)) == SQLITE_ROW) {
    if (*count == room) *runs = gate_grow(*runs, room = room ? 2 * room : 16, sizeof **runs);
    error = read_run(file, s, &(*runs)[*count]);
    if (!error) ++*count;
  }
  error = end_walk(file, s, code, error);
  if (!error) return NULL;
  for (size_t i = 0; i < *count; i++) gate_run_free(&(*runs)[i]);
  free(*runs);
  *runs = NULL;
  *count = 0;
  return error;
}

/* --- a run with its cases --- */

static char *read_samples(const gate_file *file, sqlite3_stmt *s, int64_t id, gate_visit *v) {
  int room = 0, code = SQLITE_DONE;
  (void)sqlite3_reset(s);
  (void)sqlite3_bind_int64(s, 1, id);
  while ((code = sqlite3_step(s)) == SQLITE_ROW && v->sample_count < INT_MAX / 4) {
    if (v->sample_count == room)
      v->samples = gate_grow(v->samples, (size_t)(room = room ? 2 * room : 8), sizeof *v->samples);
    v->samples[v->sample_count++] =
        (gate_sample){sqlite3_column_double(s, 0), sqlite3_column_double(s, 1), sqlite3_column_int64(s, 2)};
  }
  return code == SQLITE_DONE ? NULL : gate_sql_fail(file, code);
}

static char *damaged(const gate_file *file, const gate_case *c, const char *what) {
  return gate_say("%s is damaged (case \"%.200s\"%s: wrong checksum); restore a copy, or measure again", file->path,
                  c->name, what);
}

/* What the visit of the present row of `s` says, against its checksum. */
static char *check_visit(const gate_file *file, sqlite3_stmt *s, int64_t run, const gate_case *c, const gate_visit *v) {
  char round[32];
  const char *wrong = gate_visit_wrong(v);
  if (wrong)
    return gate_say("%s: case \"%.200s\" has %s; the file is damaged or was not made by attune bench", file->path,
                    c->name, wrong);
  if (!differs(s, 6, gate_visit_checksum(run, c, v))) return NULL;
  snprintf(round, sizeof round, ", round %d", v->round);
  return damaged(file, c, round);
}

/* The visits of a case; `samples` is the statement of a visit's. */
static char *read_visits(const gate_file *file, int64_t run, sqlite3_stmt *s, sqlite3_stmt *samples, int64_t id,
                         gate_case *c) {
  int room = 0, code = SQLITE_DONE;
  char *error = NULL;
  (void)sqlite3_reset(s);
  (void)sqlite3_bind_int64(s, 1, id);
  while (!error && (code = sqlite3_step(s)) == SQLITE_ROW && c->visit_count < INT_MAX / 4) {
    if (c->visit_count == room)
      c->visits = gate_grow(c->visits, (size_t)(room = room ? 2 * room : 16), sizeof *c->visits);
    gate_visit *v = &c->visits[c->visit_count++];
    *v = (gate_visit){.round = int_at(s, 1),
                      .calls = int_at(s, 2),
                      .clock_mhz = sqlite3_column_double(s, 3),
                      .throttled = sqlite3_column_int64(s, 4) != 0,
                      .load = sqlite3_column_double(s, 5)};
    error = read_samples(file, samples, sqlite3_column_int64(s, 0), v);
    if (!error) error = check_visit(file, s, run, c, v);
  }
  return error || code == SQLITE_DONE ? error : gate_sql_fail(file, code);
}

/* The statements of a run's cases, of a case's visits and of a visit's samples. */
typedef struct readers {
  sqlite3_stmt *cases, *visits, *samples;
} readers;

/* The present row of the cases, with its visits. */
static char *read_case(const gate_file *file, const readers *by, int64_t run, gate_case *c) {
  sqlite3_stmt *s = by->cases;
  *c = (gate_case){.name = text_at(s, 1),
                   .device = text_at(s, 2),
                   .mode = text_at(s, 3),
                   .dtype = text_at(s, 4),
                   .bytes = sqlite3_column_double(s, 5),
                   .flops = sqlite3_column_double(s, 6),
                   .state = is_text(s, 7, "ok")       ? GATE_CASE_OK
                            : is_text(s, 7, "failed") ? GATE_CASE_FAILED
                                                      : (gate_case_state)-1,
                   .message = text_at(s, 8)};
  const char *wrong = gate_case_wrong(c);
  if (wrong) return refuse(file, run, wrong);
  char *error = read_visits(file, run, by->visits, by->samples, sqlite3_column_int64(s, 0), c);
  if (!error && differs(s, 9, gate_case_checksum(run, c, c->visit_count))) error = damaged(file, c, "");
  return error;
}

static char *read_cases(const gate_file *file, const readers *by, gate_run *run) {
  size_t room = 0;
  int code = SQLITE_DONE;
  char *error = NULL;
  while (!error && (code = sqlite3_step(by->cases)) == SQLITE_ROW) {
    if (run->case_count == room) run->cases = gate_grow(run->cases, room = room ? 2 * room : 32, sizeof *run->cases);
    error = read_case(file, by, run->id, &run->cases[run->case_count++]);
  }
  return error || code == SQLITE_DONE ? error : gate_sql_fail(file, code);
}

#define CASES \
  "SELECT id, name, device, mode, dtype, bytes, flops, state, message, checksum FROM bench_case WHERE run = ?1"
#define ONE " AND name = ?2 AND device = ?3 AND mode = ?4"

/* `cases`: which of them, as a statement. */
static char *open_readers(const gate_file *file, readers *out, int64_t run, const char *cases) {
  *out = (readers){NULL, NULL, NULL};
  char *error = gate_sql_prepare(file, &out->cases, cases);
  if (!error)
    error = gate_sql_prepare(
        file, &out->visits,
        "SELECT id, round, calls, clock_mhz, throttled, load, checksum FROM visit WHERE bench_case = ? "
        "ORDER BY round, id");
  if (!error)
    error =
        gate_sql_prepare(file, &out->samples, "SELECT ns, cpu_ns, start FROM sample WHERE visit = ? ORDER BY ordinal");
  if (!error) (void)sqlite3_bind_int64(out->cases, 1, run);
  return error;
}

static void close_readers(readers *by) {
  (void)sqlite3_finalize(by->cases);
  (void)sqlite3_finalize(by->visits);
  (void)sqlite3_finalize(by->samples);
}

static char *read_all(const gate_file *file, gate_run *run) {
  readers by;
  char *error = open_readers(file, &by, run->id, CASES " ORDER BY id");
  if (!error) error = read_cases(file, &by, run);
  close_readers(&by);
  return error;
}

char *gate_file_read_case(gate_file *file, int64_t run, const gate_case *like, gate_case *out) {
  readers by;
  *out = (gate_case){0};
  char *error = open_readers(file, &by, run, CASES ONE);
  if (!error) {
    (void)sqlite3_bind_text(by.cases, 2, like->name, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(by.cases, 3, like->device, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(by.cases, 4, like->mode, -1, SQLITE_STATIC);
    const int code = sqlite3_step(by.cases);
    if (code == SQLITE_ROW) error = read_case(file, &by, run, out);
    if (code != SQLITE_ROW && code != SQLITE_DONE) error = gate_sql_fail(file, code);
  }
  close_readers(&by);
  return error;
}

static char *read_roofs(const gate_file *file, gate_run *run) {
  sqlite3_stmt *s;
  size_t room = 0;
  int code = SQLITE_DONE;
  char *error = gate_sql_prepare(file, &s, "SELECT device, dtype, bytes_s, flops_s, checksum FROM roof WHERE run = ?");
  if (error) return error;
  (void)sqlite3_bind_int64(s, 1, run->id);
  while (!error && (code = sqlite3_step(s)) == SQLITE_ROW) {
    if (run->roof_count == room) run->roofs = gate_grow(run->roofs, room = room ? 2 * room : 4, sizeof *run->roofs);
    gate_roof *roof = &run->roofs[run->roof_count++];
    *roof = (gate_roof){.bytes_s = sqlite3_column_double(s, 2), .flops_s = sqlite3_column_double(s, 3)};
    snprintf(roof->device, sizeof roof->device, "%s", (const char *)sqlite3_column_text(s, 0));
    snprintf(roof->dtype, sizeof roof->dtype, "%s", (const char *)sqlite3_column_text(s, 1));
    const char *wrong = gate_roof_wrong(roof);
    if (wrong) error = refuse(file, run->id, wrong);
    if (!wrong && differs(s, 4, gate_roof_checksum(run->id, roof)))
      error = refuse(file, run->id, "a roof with a wrong checksum");
  }
  return end_walk(file, s, code, error);
}

static char *read_one(const gate_file *file, int64_t id, gate_run *run) {
  sqlite3_stmt *s;
  char *error = gate_sql_prepare(file, &s, "SELECT " RUN_COLUMNS ", checksum FROM run WHERE id = ?");
  if (error) return error;
  (void)sqlite3_bind_int64(s, 1, id);
  const int code = sqlite3_step(s);
  if (code == SQLITE_ROW) error = read_run(file, s, run);
  if (code == SQLITE_DONE) error = gate_say("%s no longer has run %lld", file->path, (long long)id);
  return end_walk(file, s, code, error);
}

/* All of one moment: another process may be adding to it. */
char *gate_file_read(gate_file *file, int64_t id, gate_run *run) {
  *run = (gate_run){.state = GATE_RUN_OPEN};
  char *error = gate_sql_run(file, "BEGIN");
  if (error) return error;
  error = read_one(file, id, run);
  if (!error) error = read_all(file, run);
  if (!error) error = read_roofs(file, run);
  (void)sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
  if (error) gate_run_free(run);
  return error;
}
