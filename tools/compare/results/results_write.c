/* SPDX-License-Identifier: Apache-2.0
 * results_write.c: appends to a result file. Nothing that was there before is changed, but the state of a run and of a
 * case. */
#include "tools/compare/results/results_file.h"

#include <time.h>

static const char *const state_names[] = {
    [GATE_RUN_COMPLETE] = "complete", [GATE_RUN_INTERRUPTED] = "interrupted", [GATE_RUN_OPEN] = "open"};

const char *gate_run_state_name(gate_run_state state) {
  return state_names[state];
}

/* Without a room for errors of their own: a value that was not bound is NULL, which no column takes. */
static void text(sqlite3_stmt *statement, int index, const char *value) {
  (void)sqlite3_bind_text(statement, index, value, -1, SQLITE_STATIC);
}

static char *refuse(const gate_file *file, const char *wrong) {
  return gate_say("%s: not saved: %s", file->path, wrong);
}

char *gate_file_begin(gate_file *file, gate_run *run) {
  const char *wrong = gate_run_wrong(run);
  if (wrong) return refuse(file, wrong);
  sqlite3_stmt *s;
  char *error =
      gate_sql_prepare(file, &s,
                       "INSERT INTO run (suite, label, revision, dirty, fingerprint, command, started, ended, "
                       "pair, state, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, 'open', ?)");
  if (error) return error;
  text(s, 1, run->suite);
  text(s, 2, run->label);
  text(s, 3, run->revision);
  (void)sqlite3_bind_int(s, 4, run->dirty);
  text(s, 5, run->fingerprint);
  text(s, 6, run->command);
  (void)sqlite3_bind_int64(s, 7, run->started);
  (void)sqlite3_bind_int64(s, 8, run->pair);
  (void)sqlite3_bind_int64(s, 9, gate_run_checksum(run));
  error = gate_sql_finish(file, s);
  if (!error) run->id = sqlite3_last_insert_rowid(file->db);
  return error;
}

/* The case's row, made or brought up to date; its number into *out. */
static char *put_case(const gate_file *file, int64_t run, const gate_case *c, int64_t *out) {
  sqlite3_stmt *s;
  char *error = gate_sql_prepare(
      file, &s,
      "INSERT INTO bench_case (run, name, device, mode, dtype, bytes, flops, state, message) VALUES (?, ?, ?, ?, ?, ?, "
      "?, ?, ?) ON CONFLICT (run, name, device, mode) DO UPDATE SET dtype = excluded.dtype, bytes = excluded.bytes, "
      "flops = excluded.flops, state = excluded.state, message = excluded.message RETURNING id");
  if (error) return error;
  (void)sqlite3_bind_int64(s, 1, run);
  text(s, 2, c->name);
  text(s, 3, c->device);
  text(s, 4, c->mode);
  text(s, 5, c->dtype);
  (void)sqlite3_bind_double(s, 6, c->bytes);
  (void)sqlite3_bind_double(s, 7, c->flops);
  text(s, 8, c->state == GATE_CASE_FAILED ? "failed" : "ok");
  if (c->message) text(s, 9, c->message);
  int code = sqlite3_step(s);
  *out = code == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
  if (code == SQLITE_ROW) return gate_sql_finish(file, s);
  error = gate_sql_fail(file, code);
  (void)sqlite3_finalize(s);
  return error;
}

/* Once the case has all of its visits so far: its checksum counts them. */
static char *sign_case(const gate_file *file, int64_t run, int64_t id, const gate_case *c) {
  sqlite3_stmt *s;
  int64_t visits = 0;
  char *error = gate_sql_prepare(file, &s, "SELECT count(*) FROM visit WHERE bench_case = ?");
  if (error) return error;
  (void)sqlite3_bind_int64(s, 1, id);
  const int code = sqlite3_step(s);
  if (code == SQLITE_ROW) visits = sqlite3_column_int64(s, 0);
  if (code != SQLITE_ROW) error = gate_sql_fail(file, code);
  (void)sqlite3_finalize(s);
  if (!error) error = gate_sql_prepare(file, &s, "UPDATE bench_case SET checksum = ? WHERE id = ?");
  if (error) return error;
  (void)sqlite3_bind_int64(s, 1, gate_case_checksum(run, c, visits));
  (void)sqlite3_bind_int64(s, 2, id);
  return gate_sql_finish(file, s);
}

static char *put_samples(const gate_file *file, int64_t id, const gate_visit *v) {
  sqlite3_stmt *s;
  int code = SQLITE_DONE;
  char *error =
      gate_sql_prepare(file, &s, "INSERT INTO sample (visit, ordinal, ns, cpu_ns, start) VALUES (?, ?, ?, ?, ?)");
  if (error) return error;
  for (int i = 0; code == SQLITE_DONE && i < v->sample_count; i++) {
    (void)sqlite3_reset(s);
    (void)sqlite3_bind_int64(s, 1, id);
    (void)sqlite3_bind_int(s, 2, i);
    (void)sqlite3_bind_double(s, 3, v->samples[i].ns);
    (void)sqlite3_bind_double(s, 4, v->samples[i].cpu_ns);
    (void)sqlite3_bind_int64(s, 5, v->samples[i].start);
    code = sqlite3_step(s);
  }
  if (code != SQLITE_DONE) error = gate_sql_fail(file, code);
  (void)sqlite3_finalize(s);
  return error;
}

static char *put_visit(const gate_file *file, int64_t run, int64_t case_id, const gate_case *c, const gate_visit *v) {
  sqlite3_stmt *s;
  char *error = gate_sql_prepare(file, &s,
                                 "INSERT INTO visit (bench_case, round, calls, clock_mhz, throttled, load, checksum) "
                                 "VALUES (?, ?, ?, ?, ?, ?, ?)");
  if (error) return error;
  (void)sqlite3_bind_int64(s, 1, case_id);
  (void)sqlite3_bind_int(s, 2, v->round);
  (void)sqlite3_bind_int(s, 3, v->calls);
  (void)sqlite3_bind_double(s, 4, v->clock_mhz);
  (void)sqlite3_bind_int(s, 5, v->throttled);
  (void)sqlite3_bind_double(s, 6, v->load);
  (void)sqlite3_bind_int64(s, 7, gate_visit_checksum(run, c, v));
  error = gate_sql_finish(file, s);
  return error ? error : put_samples(file, sqlite3_last_insert_rowid(file->db), v);
}

static char *end_transaction(const gate_file *file, char *error) {
  if (!error) error = gate_sql_run(file, "COMMIT");
  if (error && !sqlite3_get_autocommit(file->db)) (void)sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
  return error;
}

char *gate_file_add(gate_file *file, int64_t run, const gate_case *c, const gate_visit *visit) {
  const char *wrong = gate_case_wrong(c);
  int64_t case_id = 0;
  if (!wrong && visit) wrong = gate_visit_wrong(visit);
  if (wrong) return refuse(file, wrong);
  char *error = gate_sql_run(file, "BEGIN IMMEDIATE");
  if (error) return error;
  error = put_case(file, run, c, &case_id);
  if (!error && visit) error = put_visit(file, run, case_id, c, visit);
  if (!error) error = sign_case(file, run, case_id, c);
  return end_transaction(file, error);
}

char *gate_file_roof(gate_file *file, int64_t run, const gate_roof *roof) {
  const char *wrong = gate_roof_wrong(roof);
  if (wrong) return refuse(file, wrong);
  sqlite3_stmt *s;
  char *error = gate_sql_prepare(
      file, &s,
      "INSERT OR REPLACE INTO roof (run, device, dtype, bytes_s, flops_s, checksum) VALUES (?, ?, ?, ?, ?, ?)");
  if (error) return error;
  (void)sqlite3_bind_int64(s, 1, run);
  text(s, 2, roof->device);
  text(s, 3, roof->dtype);
  (void)sqlite3_bind_double(s, 4, roof->bytes_s);
  (void)sqlite3_bind_double(s, 5, roof->flops_s);
  (void)sqlite3_bind_int64(s, 6, gate_roof_checksum(run, roof));
  return gate_sql_finish(file, s);
}

char *gate_file_end(gate_file *file, int64_t run, gate_run_state state) {
  sqlite3_stmt *s;
  char *error = gate_sql_prepare(file, &s, "UPDATE run SET state = ?, ended = ? WHERE id = ?");
  if (error) return error;
  text(s, 1, gate_run_state_name(state));
  (void)sqlite3_bind_int64(s, 2, state == GATE_RUN_OPEN ? 0 : (int64_t)time(NULL));
  (void)sqlite3_bind_int64(s, 3, run);
  return gate_sql_finish(file, s);
}
