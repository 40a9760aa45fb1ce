/* SPDX-License-Identifier: Apache-2.0
 * cmd_export.c: `attune export`: a run of a result file, or of another program's JSON, in a format of yet another. */
#include "tools/cli/bench/compare.h"
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "tools/compare/results/import.h"

typedef struct options {
  cli_options common;
  const char *run, *output, *filter;
  gate_format format;
  bool format_given;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
  case CLI_OPTION_FORMAT:
    o->format_given = gate_format_of(argument, strlen(argument), &o->format);
    if (!o->format_given) cli_bad_usage(state, "--format is \"%s\"; should be %s", argument, gate_format_names);
    return 0;
  case CLI_OPTION_FILTER: o->filter = argument; return 0;
  case 'o': o->output = argument; return 0;
  case ARGP_KEY_ARG:
    if (o->run) cli_bad_usage(state, "unexpected argument \"%s\"; export takes one RUN", argument);
    o->run = argument;
    return 0;
  case ARGP_KEY_END:
    if (!o->run) cli_bad_usage(state, "no RUN; should be FILE or FILE:WORD, where `attune bench --save' wrote FILE");
    if (!o->format_given) cli_bad_usage(state, "no --format; should be %s", gate_format_names);
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static int refuse(char *error) {
  cli_error("%s", error);
  free(error);
  return CLI_USAGE;
}

static int export(const options *o, const gate_run *run) {
  const char *which;
  char *path = gate_split(o->run, &which);
  const gate_exported what = {
      .format = o->format, .run = run, .results = gate_import_is(path) ? NULL : path, .filter = o->filter};
  const int code = compare_export_write(o->output ? o->output : "-", &what);
  free(path);
  return code;
}

int cmd_export(int argc, char **argv) {
  options o = {0};
  gate_run run;
  if (cli_parse("export", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  if (compare_is_database(o.run)) {
    cli_error("%s is a tuning database; should be a result file written by `attune bench --save'", o.run);
    return CLI_USAGE;
  }
  char *error = gate_load(o.run, &run);
  if (error) return refuse(error);
  size_t has = 0;
  const gate_exported all = {.run = &run, .filter = o.filter};
  for (size_t i = 0; i < run.case_count; i++) has += gate_export_has(&all, &run.cases[i]);
  int code = CLI_USAGE;
  if (has)
    code = export(&o, &run);
  else
    cli_error("the run has no case%s%s%s", o.filter ? " whose name contains \"" : "", o.filter ? o.filter : "",
              o.filter ? "\"" : "");
  gate_run_free(&run);
  return code;
}
