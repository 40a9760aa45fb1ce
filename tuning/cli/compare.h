/* SPDX-License-Identifier: Apache-2.0
 * compare.h: what the files of `attune compare` share. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "tuning/cli/cli.h"
#include "tuning/gate/comparison.h"

typedef struct compare_options {
  cli_options common;
  const char *sides[2];
  int side_count;
  gate_rule rule;
  bool allow_different;
  const char *markdown, *junit, *html; /* paths; "-": standard output; NULL: not wanted */
} compare_options;

/* compare_output.c: the table, or JSON, and the files that were asked for; `results`: the file whose history the page
 * shows, NULL: none. An exit code: 1 for a regression. */
int compare_output(const compare_options *o, const gate_comparison *comparison, const char *results);

/* compare_databases.c */
bool compare_is_database(const char *path);
int compare_databases(const compare_options *o);

#endif
