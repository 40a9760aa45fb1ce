/* SPDX-License-Identifier: Apache-2.0
 * results_file.h: what the files of a result file share. */
#ifndef GATE_RESULTS_FILE_H
#define GATE_RESULTS_FILE_H

#include "tools/compare/message.h"
#include "tools/compare/results/results.h"

#include <sqlite3.h>

#define GATE_FILE_VERSION 2
#define GATE_NAME_BYTES 4096 /* the longest name, label or revision that is believed */

struct gate_file {
  sqlite3 *db;
  char *path;
  bool write, made; /* made: by opening it */
};

/* What SQLite's code means for the user. Never NULL. */
char *gate_sql_fail(const gate_file *file, int code);
char *gate_sql_prepare(const gate_file *file, sqlite3_stmt **out, const char *sql);
/* Runs statements that give no rows. */
char *gate_sql_run(const gate_file *file, const char *sql);
/* Steps a statement that gives no row, and finalizes it. */
char *gate_sql_finish(const gate_file *file, sqlite3_stmt *statement);
/* The first column of the first row; 0 without one. */
char *gate_sql_int(const gate_file *file, const char *sql, int64_t *out);

/* results_read.c: the run of that number, with everything. */
char *gate_file_read(gate_file *file, int64_t id, gate_run *run);
/* That case alone, with its visits, to be freed, after an error too; no name: the run does not have it. */
char *gate_file_read_case(gate_file *file, int64_t run, const gate_case *like, gate_case *out);

/* results_check.c: why these cannot be; NULL: they can. */
const char *gate_visit_wrong(const gate_visit *visit);
const char *gate_case_wrong(const gate_case *c);
const char *gate_run_wrong(const gate_run *run);
const char *gate_roof_wrong(const gate_roof *roof);

/* results_checksum.c: never 0. `run`: the number of the run that has it. */
int64_t gate_run_checksum(const gate_run *run);
int64_t gate_case_checksum(int64_t run, const gate_case *c,
                           int64_t visits); /* with what it says of itself, and how many visits it has */
int64_t gate_visit_checksum(int64_t run, const gate_case *c, const gate_visit *visit);
int64_t gate_roof_checksum(int64_t run, const gate_roof *roof);

const char *gate_run_state_name(gate_run_state state);

#endif
