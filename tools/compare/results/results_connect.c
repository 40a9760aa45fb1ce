/* SPDX-License-Identifier: Apache-2.0
 * results_connect.c: opens a result file. Nothing in it is trusted before it is distinguished from other programs'
 * databases and its schema compared. A file that is not a result file is not changed.
 *
 * The journal is TRUNCATE and synchronous is FULL: a visit that was saved survives a power failure, and a file can be
 * read where its folder cannot be written. Two writers wait for each other. */
#include "tools/compare/results/results_file.h"

#include "src/base/journal.h"

#include "results_sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define APPLICATION_ID 1096045139
#define TUNING_DATABASE_ID 1096041538 /* tuning/store/schema.sql */
#define WAIT_MS 60000
#define LEAST_BYTES 512                    /* of any database: SQLite takes a shorter file for an empty one */
#define CHECKED_BYTES ((int64_t)256 << 20) /* larger ones are not looked at whole */
#define TEXT_MOST (1 << 20)

static const struct {
  int option, value;
} switches[] = {
    {SQLITE_DBCONFIG_DEFENSIVE, 1},   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0}, {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
    {SQLITE_DBCONFIG_ENABLE_VIEW, 0}, {SQLITE_DBCONFIG_ENABLE_FKEY, 0},    {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},
    {SQLITE_DBCONFIG_DQS_DML, 0},     {SQLITE_DBCONFIG_DQS_DDL, 0},
};

static const struct {
  int limit, value;
} limits[] = {
    {SQLITE_LIMIT_LENGTH, TEXT_MOST}, {SQLITE_LIMIT_SQL_LENGTH, 1 << 14}, {SQLITE_LIMIT_COLUMN, 64},
    {SQLITE_LIMIT_EXPR_DEPTH, 32},    {SQLITE_LIMIT_ATTACHED, 0},         {SQLITE_LIMIT_VARIABLE_NUMBER, 32},
};

static char *configure(const gate_file *file) {
  int code = sqlite3_extended_result_codes(file->db, 1);
  for (size_t i = 0; code == SQLITE_OK && i < sizeof switches / sizeof switches[0]; i++)
    code = sqlite3_db_config(file->db, switches[i].option, switches[i].value, NULL);
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
    (void)sqlite3_limit(file->db, limits[i].limit, limits[i].value);
  if (code == SQLITE_OK) code = sqlite3_busy_timeout(file->db, WAIT_MS);
  if (code != SQLITE_OK) return gate_sql_fail(file, code);
  return gate_sql_run(file, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;");
}

/* Makes the tables, unless another process just did. */
static char *create(const gate_file *file) {
  int64_t tables = 0;
  char *error = gate_sql_run(file, "BEGIN IMMEDIATE");
  if (error) return error;
  error = gate_sql_int(file, "SELECT count(*) FROM sqlite_schema", &tables);
  if (!error && tables == 0) error = gate_sql_run(file, at_results_sql);
  if (!error) error = gate_sql_run(file, "COMMIT");
  if (error && !sqlite3_get_autocommit(file->db)) (void)sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
  return error;
}

/* The statements of a schema in one text, to be freed by sqlite3_free; NULL: they could not be read. */
static char *schema_of(sqlite3 *db) {
  static const char sql[] = "SELECT group_concat(name || char(10) || sql, char(10)) FROM (SELECT name, sql FROM "
                            "sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence' ORDER BY name)";
  sqlite3_stmt *statement;
  char *text = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK) return NULL;
  if (sqlite3_step(statement) == SQLITE_ROW) {
    const char *got = (const char *)sqlite3_column_text(statement, 0);
    text = sqlite3_mprintf("%s", got ? got : "");
  }
  (void)sqlite3_finalize(statement);
  return text;
}

static char *check_schema(const gate_file *file) {
  sqlite3 *fresh = NULL;
  char *wanted = NULL, *there = schema_of(file->db);
  if (sqlite3_open(":memory:", &fresh) == SQLITE_OK &&
      sqlite3_exec(fresh, at_results_sql, NULL, NULL, NULL) == SQLITE_OK)
    wanted = schema_of(fresh);
  const bool same = wanted && there && strcmp(wanted, there) == 0;
  (void)sqlite3_close(fresh);
  sqlite3_free(wanted);
  sqlite3_free(there);
  if (same) return NULL;
  return gate_say("%s does not have the schema of a result file of version %d; it is left unchanged: name another file",
                  file->path, GATE_FILE_VERSION);
}

static char *check_application(const char *path, int64_t application) {
  if (application == APPLICATION_ID) return NULL;
  if (application == TUNING_DATABASE_ID)
    return gate_say("%s is a tuning database, not a result file of attune bench; name one written by --save", path);
  return gate_say(
      "%s is another program's database, not a result file of attune bench; it is left unchanged: name another file",
      path);
}

/* No release wrote another version: there is nothing to convert. */
static char *check_version(const char *path, int64_t version) {
  if (version > GATE_FILE_VERSION)
    return gate_say("%s was made by a newer attune (result file version %lld, this one reads %d); update attune", path,
                    (long long)version, GATE_FILE_VERSION);
  if (version < GATE_FILE_VERSION)
    return gate_say("%s was made by an older attune (result file version %lld, this one reads %d) and is left "
                    "unchanged; save to another file",
                    path, (long long)version, GATE_FILE_VERSION);
  return NULL;
}

/* Free of what is wrong inside a page, as far as SQLite can tell. */
static char *check_pages(const gate_file *file) {
  struct stat info;
  sqlite3_stmt *statement;
  if (stat(file->path, &info) == 0 && info.st_size > CHECKED_BYTES) return NULL;
  char *error = gate_sql_prepare(file, &statement, "PRAGMA quick_check(1)");
  if (error) return error;
  const int code = sqlite3_step(statement);
  const char *text = code == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
  if (code != SQLITE_ROW)
    error = gate_sql_fail(file, code);
  else if (!text || strcmp(text, "ok") != 0)
    error = gate_say("%s is damaged (%.200s) and is left unchanged; restore a copy, or save to another file",
                     file->path, text ? text : "no answer");
  (void)sqlite3_finalize(statement);
  return error;
}

static char *read_version(const gate_file *file) {
  int64_t version = 0;
  char *error = gate_sql_int(file, "PRAGMA user_version", &version);
  return error ? error : check_version(file->path, version);
}

/* Made, where it is empty and may be written. */
static char *identify(const gate_file *file) {
  int64_t pages = 0, application = 0;
  char *error = gate_sql_int(file, "PRAGMA page_count", &pages);
  if (!error && pages == 0 && !file->write)
    return gate_say("%s is empty; should be a result file written by `attune bench --save'", file->path);
  if (!error && pages == 0) error = create(file);
  if (!error) error = gate_sql_int(file, "PRAGMA application_id", &application);
  if (!error) error = check_application(file->path, application);
  if (!error) error = read_version(file);
  if (!error) error = check_schema(file);
  if (!error) error = check_pages(file);
  return error;
}

/* --- before SQLite looks, which would take a short file for an empty one, and may write into any other --- */

enum { HEADER_BYTES = 100, VERSION_AT = 60, APPLICATION_AT = 68 };

static uint32_t big_endian(const unsigned char *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* A write that did not end is undone by SQLite first: until then the header says nothing. */
static bool has_journal(const char *path) {
  struct stat info;
  char *journal = gate_say("%s-journal", path);
  const bool has = stat(journal, &info) == 0 && info.st_size > 0;
  free(journal);
  return has;
}

static char *check_header(const char *path) {
  unsigned char header[HEADER_BYTES] = {0};
  FILE *stream = fopen(path, "rbe");
  if (!stream) return gate_say("%s: %s; should be a file that this user may read", path, strerror(errno));
  const size_t got = fread(header, 1, sizeof header, stream);
  (void)fclose(stream);
  if (got < sizeof header || memcmp(header, "SQLite format 3", 16) != 0)
    return gate_say("%s is not a result file of attune bench and is left unchanged; name another file", path);
  char *error = check_application(path, big_endian(header + APPLICATION_AT));
  return error ? error : check_version(path, (int32_t)big_endian(header + VERSION_AT)); /* signed, as SQLite has it */
}

/* SQLite would delete the file that it names. */
static char *check_journal(const char *path) {
  char name[256];
  char *journal = gate_say("%s-journal", path);
  char *error = at_journal_names_file(journal, name, sizeof name)
                    ? gate_say("%s names another file (%s), which SQLite would delete; attune writes no such journal: "
                               "move it away, and restore %s from a copy that you trust",
                               journal, name, path)
                    : NULL;
  free(journal);
  return error;
}

static char *check_path(const char *path, bool write) {
  struct stat info;
  char *error = check_journal(path);
  if (error) return error;
  if (stat(path, &info) != 0) {
    if (errno == ENOENT && write) return NULL;
    return gate_say("%s: %s; should be a result file written by attune bench --save", path, strerror(errno));
  }
  if (!S_ISREG(info.st_mode))
    return gate_say("%s is not a regular file; should be a result file written by attune bench --save", path);
  if (info.st_size == 0 || has_journal(path)) return NULL;
  if (info.st_size < LEAST_BYTES)
    return gate_say(
        "%s has %lld bytes and is not a result file of attune bench; it is left unchanged: name another file", path,
        (long long)info.st_size);
  return check_header(path);
}

/* Could the file that SQLite made not grow? Then it goes again. */
static bool is_full(const gate_file *file) {
  const int code = file->db ? sqlite3_errcode(file->db) & 0xff : SQLITE_OK;
  struct stat info;
  if (!file->write || (code != SQLITE_FULL && code != SQLITE_IOERR)) return false;
  if (file->made && stat(file->path, &info) == 0 && info.st_size == 0) (void)unlink(file->path);
  return true;
}

char *gate_file_open(gate_file **out, const char *path, bool write) {
  *out = NULL;
  char *error = check_path(path, write);
  errno = 0;
  if (error) return error;
  char *plain =
      *path == '/' ? gate_copy(path) : gate_say("./%s", path); /* "file:" and ":memory:" are names of files here */
  gate_file *file = gate_alloc(1, sizeof *file);
  *file = (gate_file){.path = gate_copy(path), .write = write, .made = write && access(path, F_OK) != 0};
  /* Also to read: what a writer that died left half written must be undone. SQLite only reads where it may not
   * write. */
  const int flags =
      SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_READWRITE | (write ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(plain, &file->db, flags, NULL);
  free(plain);
  error = code == SQLITE_OK ? configure(file) : gate_sql_fail(file, code);
  if (!error && write && sqlite3_db_readonly(file->db, "main"))
    error = gate_say("%s cannot be written; check the permissions of the file and its folder", path);
  if (!error) error = identify(file);
  if (!error && write) error = gate_sql_run(file, "PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = FULL;");
  const bool full = error && is_full(file);
  if (error)
    gate_file_close(file);
  else
    *out = file;
  errno = full ? ENOSPC : 0;
  return error;
}

/* Without a write under way the journal is empty; it goes unless another process uses the file just now, or the folder
 * cannot be written: then it stays, and does no harm. */
void gate_file_close(gate_file *file) {
  if (!file) return;
  if (file->db && file->write) {
    (void)sqlite3_busy_timeout(file->db, 0);
    (void)sqlite3_exec(file->db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
  }
  (void)sqlite3_close(file->db);
  free(file->path);
  free(file);
}
