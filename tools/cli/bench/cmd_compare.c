/* SPDX-License-Identifier: Apache-2.0
 * cmd_compare.c: `attune compare`: the options, and the two sides from their files to a comparison. */
#include "tools/cli/bench/compare.h"
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/compare/results/import.h"

static double number(const char *option, const char *text, double least, double most, const char *should,
                     const struct argp_state *state) {
  double value = 0;
  if (!cli_read_number(text, &value) || !(value >= least && value <= most))
    cli_bad_usage(state, "%s is \"%s\"; should be %s", option, text, should);
  return value;
}

/* "1.5", or "alloc/=5": for the cases whose name holds alloc/. */
static void add_threshold(gate_rule *rule, const char *argument, const struct argp_state *state) {
  static const char should[] = "a percentage, 0 to 1000, or TEXT=PERCENT for the cases whose name contains TEXT";
  const char *equals = strrchr(argument, '=');
  const double floor = number("--threshold", equals ? equals + 1 : argument, 0.0, 1000.0, should, state) / 100.0;
  if (!equals) {
    rule->floor = floor;
    return;
  }
  if (equals == argument) cli_bad_usage(state, "--threshold is \"%s\"; should be %s", argument, should);
  if (rule->floor_count == GATE_FLOORS_MOST)
    cli_bad_usage(state, "--threshold TEXT=PERCENT is given %d times; should be at most %d", GATE_FLOORS_MOST + 1,
                  GATE_FLOORS_MOST);
  rule->floors[rule->floor_count++] = (gate_floor){argument, (size_t)(equals - argument), floor};
}

/* "bmf=FILE" */
static void add_export(compare_reports *reports, const char *argument, const struct argp_state *state) {
  const char *equals = strchr(argument, '=');
  compare_export *e = &reports->exports[reports->export_count];
  if (reports->export_count == COMPARE_EXPORTS_MOST)
    cli_bad_usage(state, "--export is given %d times; should be at most %d", COMPARE_EXPORTS_MOST + 1,
                  COMPARE_EXPORTS_MOST);
  if (!equals || !equals[1] || !gate_format_of(argument, (size_t)(equals - argument), &e->format))
    cli_bad_usage(state, "--export is \"%s\"; should be FORMAT=FILE, where FORMAT is %s", argument, gate_format_names);
  e->path = equals + 1;
  reports->export_count++;
}

error_t compare_parse(int key, char *argument, struct argp_state *state, gate_rule *rule, compare_reports *reports) {
  switch (key) {
  case CLI_OPTION_THRESHOLD: add_threshold(rule, argument, state); return 0;
  case CLI_OPTION_ALPHA:
    rule->alpha = number("--alpha", argument, 1e-12, 0.5, "a probability, 1e-12 to 0.5", state);
    return 0;
  case CLI_OPTION_EXPORT: add_export(reports, argument, state); return 0;
  case CLI_OPTION_MARKDOWN: reports->markdown = argument; return 0;
  case CLI_OPTION_JUNIT: reports->junit = argument; return 0;
  case CLI_OPTION_HTML: reports->html = argument; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static void check(const compare_options *o, const struct argp_state *state) {
  const int printed = o->common.json + compare_reports_printed(&o->reports);
  if (!o->side_count) cli_bad_usage(state, "nothing to compare; should be BASE HEAD, or a FILE with a pair of runs");
  if (printed > 1) cli_bad_usage(state, "%d reports would go to standard output; should be at most one", printed);
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  compare_options *o = state->input;
  switch (key) {
  case CLI_OPTION_ALLOW_DIFFERENT: o->allow_different = true; return 0;
  case ARGP_KEY_ARG:
    if (o->side_count == 2) cli_bad_usage(state, "unexpected argument \"%s\"; compare takes BASE and HEAD", argument);
    o->sides[o->side_count++] = argument;
    return 0;
  case ARGP_KEY_END: check(o, state); return 0;
  case CLI_OPTION_THRESHOLD:
    if (!strchr(argument, '=')) o->floor_given = true; /* one for some cases leaves the others theirs */
    return compare_parse(key, argument, state, &o->rule, &o->reports);
  default: return compare_parse(key, argument, state, &o->rule, &o->reports);
  }
}

static int refuse(char *error) {
  cli_error("%s", error);
  free(error);
  return CLI_USAGE;
}

/* Base and head; a sentence where one cannot be had. */
static char *load(const compare_options *o, gate_run *base, gate_run *head) {
  if (o->side_count == 1) return gate_load_pair(o->sides[0], base, head);
  char *error = gate_load(o->sides[0], base);
  if (!error) error = gate_load(o->sides[1], head);
  return error;
}

/* Of one process each, unless the user says what counts. */
static gate_rule rule_of(const compare_options *o, const gate_run *base, const gate_run *head) {
  gate_rule rule = o->rule;
  if (!o->floor_given && (gate_import_is_one_process(base) || gate_import_is_one_process(head)))
    rule.floor = GATE_ONE_PROCESS_FLOOR;
  return rule;
}

static int compare_runs(const compare_options *o) {
  gate_run base = {.state = GATE_RUN_OPEN}, head = base;
  gate_comparison comparison = {0};
  const char *which;
  char *results = gate_split(o->sides[o->side_count - 1], &which);
  char *error = load(o, &base, &head);
  const gate_rule rule = error ? o->rule : rule_of(o, &base, &head);
  if (!error) error = gate_compare(&comparison, &base, &head, &rule, o->allow_different);
  const int code = error ? refuse(error) : compare_output(o, &comparison, results);
  gate_comparison_free(&comparison);
  gate_run_free(&base);
  gate_run_free(&head);
  free(results);
  return code;
}

/* The first side that is a file of no bytes, which could be of any kind; NULL: none. */
static const char *empty_side(const compare_options *o) {
  const char *empty = NULL, *which;
  for (int i = 0; i < o->side_count && !empty; i++) {
    struct stat about;
    char *path = gate_split(o->sides[i], &which);
    if (stat(path, &about) == 0 && S_ISREG(about.st_mode) && about.st_size == 0) empty = o->sides[i];
    free(path);
  }
  return empty;
}

int cmd_compare(int argc, char **argv) {
  compare_options o = {.rule = gate_rule_default};
  if (cli_parse("compare", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  const char *empty = empty_side(&o);
  if (empty) {
    cli_error(
        "%s is empty; should be a result file of `attune bench --save', JSON of Google Benchmark or Criterion, or a "
        "tuning database",
        empty);
    return CLI_USAGE;
  }
  const bool first = compare_is_database(o.sides[0]), second = o.side_count == 2 && compare_is_database(o.sides[1]);
  if (first && second && o.rule.floor_count) {
    cli_error("--threshold TEXT=PERCENT applies to cases of `attune bench'; for two databases use --threshold PERCENT");
    return CLI_USAGE;
  }
  if (first && second && o.reports.export_count) {
    cli_error("--export applies to runs of `attune bench'; leave it out for two databases");
    return CLI_USAGE;
  }
  if (first && second) return compare_databases(&o);
  if (first || second) {
    cli_error("%s is a tuning database%s", o.sides[first ? 0 : 1],
              o.side_count == 2 ? " and the other side is not; should be two of them, or two runs of `attune bench'"
                                : "; name a second one to compare it with");
    return CLI_USAGE;
  }
  return compare_runs(&o);
}
