/* SPDX-License-Identifier: Apache-2.0
 * results_sql.c: statements of a result file, and what SQLite's codes mean for the user. */
#include "tools/compare/results/results_file.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define WRITE_MOST 65536 /* bytes: a page, and more */

static off_t size_of(const char *path, const char *behind) {
  struct stat info;
  char *name = gate_say("%s%s", path, behind);
  const off_t size = stat(name, &info) == 0 ? info.st_size : 0;
  free(name);
  return size;
}

/* Would a write go beyond the process's limit on file sizes? SQLite does not keep the write's own error. */
static bool at_limit(const char *path) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return (rlim_t)size_of(path, "") + WRITE_MOST > limit.rlim_cur ||
         (rlim_t)size_of(path, "-journal") + WRITE_MOST > limit.rlim_cur;
}

char *gate_sql_fail(const gate_file *file, int code) {
  const char *path = file->path;
  const char *reason =
      file->db && sqlite3_errcode(file->db) == (code & 0xff) ? sqlite3_errmsg(file->db) : sqlite3_errstr(code);
  if (code == SQLITE_IOERR_WRITE && at_limit(path))
    return gate_say("%s cannot grow: this process may not write larger files; raise the limit (ulimit -f), or save to "
                    "another file",
                    path);
  switch (code & 0xff) {
  case SQLITE_BUSY:
  case SQLITE_LOCKED: return gate_say("%s is locked by another process that is writing it; try again", path);
  case SQLITE_NOMEM: return gate_say("%s: SQLite has no memory", path);
  case SQLITE_FULL: return gate_say("%s cannot grow: %s; free space on its filesystem", path, reason);
  case SQLITE_NOTADB: return gate_say("%s is not a result file of attune bench; name one written by --save", path);
  case SQLITE_CANTOPEN:
    return gate_say("%s cannot be opened: %s; its folder must exist%s", path, reason,
                    file->write ? " and be writable" : "");
  case SQLITE_READONLY:
  case SQLITE_PERM:
  case SQLITE_AUTH:
    return gate_say("%s cannot be written (%s); check the permissions of the file and its folder", path, reason);
  case SQLITE_IOERR: return gate_say("%s: %s (SQLite code %d)", path, reason, code);
  default:
    return gate_say("%s is damaged (%s) and is left unchanged; restore a copy, or save to another file", path, reason);
  }
}

char *gate_sql_prepare(const gate_file *file, sqlite3_stmt **out, const char *sql) {
  const int code = sqlite3_prepare_v2(file->db, sql, -1, out, NULL);
  return code == SQLITE_OK ? NULL : gate_sql_fail(file, code);
}

char *gate_sql_run(const gate_file *file, const char *sql) {
  const int code = sqlite3_exec(file->db, sql, NULL, NULL, NULL);
  return code == SQLITE_OK ? NULL : gate_sql_fail(file, code);
}

char *gate_sql_finish(const gate_file *file, sqlite3_stmt *statement) {
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = sqlite3_step(statement);
  char *error = code == SQLITE_DONE ? NULL : gate_sql_fail(file, code);
  (void)sqlite3_finalize(statement);
  return error;
}

char *gate_sql_int(const gate_file *file, const char *sql, int64_t *out) {
  sqlite3_stmt *statement;
  *out = 0;
  char *error = gate_sql_prepare(file, &statement, sql);
  if (error) return error;
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
  if (code != SQLITE_ROW && code != SQLITE_DONE) error = gate_sql_fail(file, code);
  (void)sqlite3_finalize(statement);
  return error;
}
