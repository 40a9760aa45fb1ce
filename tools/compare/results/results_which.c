/* SPDX-License-Identifier: Apache-2.0
 * results_which.c: which run of a file is meant: its number, its label, its revision, the latest. */
#include "tools/compare/results/import.h"
#include "tools/compare/results/results_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REVISION_LEAST 7
#define LISTED 5 /* runs in an error's sentence */

/* The first id that `sql` gives for ?1 = which; 0: none. */
static char *first(const gate_file *file, const char *sql, const char *which, int64_t *out) {
  sqlite3_stmt *s;
  *out = 0;
  char *error = gate_sql_prepare(file, &s, sql);
  if (error) return error;
  (void)sqlite3_bind_text(s, 1, which, -1, SQLITE_STATIC);
  const int code = sqlite3_step(s);
  if (code == SQLITE_ROW) *out = sqlite3_column_int64(s, 0);
  if (code != SQLITE_ROW && code != SQLITE_DONE) error = gate_sql_fail(file, code);
  (void)sqlite3_finalize(s);
  return error;
}

static char *latest(const gate_file *file, int64_t *id) {
  int64_t open = 0;
  char *error = gate_sql_int(file, "SELECT max(id) FROM run WHERE state <> 'open'", id);
  if (error || *id > 0) return error;
  error = gate_sql_int(file, "SELECT max(id) FROM run", &open);
  if (error) return error;
  if (!open) return gate_say("%s holds no run; save one with attune bench --save", file->path);
  return gate_say(
      "%s has no finished run; run %lld is still being written, or its writer died: use %s:%lld to read what there is",
      file->path, (long long)open, file->path, (long long)open);
}

/* "1 (nightly), 2, 3": the last few. */
static char *not_there(gate_file *file, const char *which) {
  gate_run *runs = NULL;
  size_t count = 0;
  char *error = gate_file_runs(file, &runs, &count), *list = gate_copy("");
  for (size_t i = count > LISTED ? count - LISTED : 0; i < count; i++) {
    const char *word = *runs[i].label ? runs[i].label : runs[i].revision;
    char *longer = gate_say("%s%s%lld%s%.40s%s", list, *list ? ", " : "", (long long)runs[i].id, *word ? " (" : "",
                            word, *word ? ")" : "");
    free(list);
    list = longer;
  }
  if (!error)
    error = count ? gate_say("%s has no run \"%.100s\"; its %s %s", file->path, which,
                             count > LISTED ? "latest runs are" : "runs are", list)
                  : gate_say("%s holds no run; save one with attune bench --save", file->path);
  for (size_t i = 0; i < count; i++) gate_run_free(&runs[i]);
  free(runs);
  free(list);
  return error;
}

/* Runs that came to an end come before those that did not. */
static char *find(gate_file *file, const char *which, int64_t *id) {
  char *error = NULL, *end = NULL;
  *id = 0;
  errno = 0;
  const long long number = strtoll(which, &end, 10);
  if (!errno && end != which && !*end && number > 0)
    error = first(file, "SELECT id FROM run WHERE id = CAST(?1 AS INTEGER)", which, id);
  if (!error && !*id && *which)
    error = first(file, "SELECT id FROM run WHERE label = ?1 ORDER BY state = 'open', id DESC", which, id);
  if (!error && !*id && strlen(which) >= REVISION_LEAST)
    error =
        first(file, "SELECT id FROM run WHERE substr(revision, 1, length(?1)) = ?1 ORDER BY state = 'open', id DESC",
              which, id);
  return error || *id ? error : not_there(file, which);
}

char *gate_file_load(gate_file *file, const char *which, gate_run *run) {
  int64_t id = 0;
  *run = (gate_run){.state = GATE_RUN_OPEN};
  char *error = !which || strcmp(which, "latest") == 0 ? latest(file, &id) : find(file, which, &id);
  return error ? error : gate_file_read(file, id, run);
}

char *gate_split(const char *name, const char **which) {
  struct stat info;
  const char *colon = strrchr(name, ':');
  if (stat(name, &info) == 0) colon = NULL;
  char *path = gate_copy(name);
  if (colon) path[colon - name] = '\0';
  *which = colon && colon[1] ? colon + 1 : NULL;
  return path;
}

char *gate_load(const char *name, gate_run *run) {
  gate_file *file = NULL;
  const char *which = NULL;
  *run = (gate_run){.state = GATE_RUN_OPEN};
  char *path = gate_split(name, &which), *error;
  if (gate_import_is(path)) {
    error = which ? gate_say("%s is JSON of one run; should be named without \":%s\"", path, which)
                  : gate_import((const char *const[]){path}, 1, run);
    free(path);
    return error;
  }
  error = gate_file_open(&file, path, false);
  if (!error) error = gate_file_load(file, which, run);
  gate_file_close(file);
  free(path);
  return error;
}
