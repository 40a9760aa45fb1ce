/* SPDX-License-Identifier: Apache-2.0
 * cmd_history.c: `attune history`: a case over the runs of a result file, and where its time changed. */
#include "tools/cli/commands.h"

#include <stdlib.h>

#include "tools/compare/report/report.h"

static const double ALPHA = 0.01; /* the chance of a change where there is none */

typedef struct options {
  cli_options common;
  const char *name, *results;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
  case CLI_OPTION_RESULTS: o->results = argument; return 0;
  case ARGP_KEY_ARG:
    if (o->name) cli_bad_usage(state, "unexpected argument \"%s\"; history takes one CASE", argument);
    o->name = argument;
    return 0;
  case ARGP_KEY_END:
    if (!o->name) cli_bad_usage(state, "no CASE; should be a case's name, or a part that only one case has");
    if (!o->results) cli_bad_usage(state, "no --results; should name a file written by `attune bench --save'");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int cmd_history(int argc, char **argv) {
  options o = {0};
  gate_file *file = NULL;
  gate_history history = {0};
  if (cli_parse("history", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  char *error = gate_file_open(&file, o.results, false);
  if (!error) error = gate_history_load(&history, file, o.name, ALPHA);
  gate_file_close(file);
  if (error) {
    cli_error("%s", error);
    free(error);
    return CLI_USAGE;
  }
  if (o.common.json)
    (void)gate_history_json(stdout, &history);
  else
    (void)gate_history_draw(stdout, &history, cli_terminal_width(stdout), cli_utf8());
  gate_history_free(&history);
  return CLI_DONE;
}
