/* SPDX-License-Identifier: Apache-2.0
 * compare.h: what the files of `attune compare` share. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "tools/cli/cli.h"
#include "tools/compare/report/export.h"
#include "tools/compare/stats/comparison.h"

/* Files to write: paths; "-": standard output; NULL: not wanted. */
typedef struct compare_export {
  gate_format format;
  const char *path;
} compare_export;

enum { COMPARE_EXPORTS_MOST = 8 };

typedef struct compare_reports {
  const char *markdown, *junit, *html;
  compare_export exports[COMPARE_EXPORTS_MOST]; /* of the head */
  int export_count;
} compare_reports;

typedef struct compare_options {
  cli_options common;
  const char *sides[2];
  int side_count;
  gate_rule rule;
  bool allow_different, floor_given;
  compare_reports reports;
} compare_options;

/* cmd_compare.c: the options that `attune bench' has too; ARGP_ERR_UNKNOWN for others. */
error_t compare_parse(int key, char *argument, struct argp_state *state, gate_rule *rule, compare_reports *reports);
/* How many of them go to standard output. */
int compare_reports_printed(const compare_reports *reports);

/* compare_output.c: can the files be written, as far as is known now? CLI_DONE, or CLI_USAGE with a message. */
int compare_check(const compare_reports *reports);
/* The table, or JSON, and the files that were asked for; `results`: the file whose history the page
 * shows, NULL: none. An exit code: 1 for a regression. */
int compare_output(const compare_options *o, const gate_comparison *comparison, const char *results);

/* CLI_FAILED: a row is a regression. CLI_USAGE, and it is said, where no row tells anything, unless the base is a
 * `first` one, without cases. */
int compare_code(const gate_row *rows, size_t count, bool first);

/* Says which --threshold TEXT=PERCENT no case's name holds:
 * a mistyped one would judge its cases by another threshold. */
void compare_name_unused(const gate_rule *rule, const gate_row *rows, size_t count);

/* Writes one report, unless the path is NULL or leads to a database; an exit code. */
int compare_write_file(const char *path, bool (*write)(FILE *out, const void *arg), const void *arg);

/* The exports of a run, whose earlier ones are in the file `results`, NULL: none; an exit code. */
int compare_write_exports(const compare_reports *reports, const gate_run *run, const char *results);
/* One of them; an exit code. `path`: as in compare_reports. */
int compare_export_write(const char *path, const gate_exported *what);

/* The files alone; CLI_DONE, or CLI_USAGE when one cannot be written. */
int compare_write(const compare_reports *reports, const gate_comparison *comparison, const char *results);

/* compare_databases.c */
bool compare_is_database(const char *path);
int compare_databases(const compare_options *o);

#endif
