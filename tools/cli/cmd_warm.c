/* SPDX-License-Identifier: Apache-2.0
 * cmd_warm.c: `attune warm`: compiles into the kernel cache what the stored winners need on this machine. */
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <sys/stat.h>

typedef struct options {
  cli_options common;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  if (o->common.database)
    cli_bad_usage(state, "unexpected argument \"%s\"; warm takes one database, as FILE or by --db", argument);
  if (!*argument) cli_bad_usage(state, "FILE is empty; should name a database");
  o->common.database = argument;
  return 0;
}

static const cli_column columns[] = {{"problem", false, CLI_LONG, 0},
                                     {"implementation", false, true, 1},
                                     {"kernel", false, false, 0},
                                     {"time", true, false, 2},
                                     {"why", false, true, 3}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

typedef struct report {
  cli_table table;
  json_t *array;
} report;

static const char *outcome_name(attune_warm_outcome outcome) {
  switch (outcome) {
  case ATTUNE_WARM_COMPILED: return "compiled";
  case ATTUNE_WARM_THERE: return "there";
  case ATTUNE_WARM_FAILED: return "failed";
  default: return "none needed";
  }
}

/* Winners that need nothing are counted only. */
static void add(void *user, const attune_decision *decision, attune_warm_outcome outcome, double ms,
                const char *message) {
  report *r = user;
  char time_text[CLI_CELL];
  const attune_decision_info info = cli_info(decision), *winner = &info;
  if (outcome == ATTUNE_WARM_NOTHING) return;
  if (outcome == ATTUNE_WARM_FAILED) cli_error("%s: %s", winner->problem, message);
  json_array_append_new(r->array,
                        json_pack("{s:o, s:s, s:o, s:s, s:o, s:o}", "problem", cli_json_text(winner->problem),
                                  "implementation", winner->implementation, "configuration",
                                  cli_json_text(winner->configuration), "outcome", outcome_name(outcome), "ms",
                                  cli_json_number(ms), "message", *message ? cli_json_text(message) : json_null()));
  cli_table_add(&r->table, (const char *const[COLUMNS]){winner->problem, winner->implementation, outcome_name(outcome),
                                                        cli_time_text(time_text, ms * 1e6), message});
}

/* Nothing was to be compiled: why. */
static void print_nothing(const char *device, size_t held, size_t there) {
  const char *s = held == 1 ? "" : "s";
  if (!held)
    printf("nothing to compile: no stored winner is valid on %s; `attune tune' finds them\n", device);
  else if (!there)
    printf("nothing to compile: %zu winner%s valid on %s, none of which needs a kernel\n", held,
           held == 1 ? " is" : "s are", device);
  else
    printf("nothing to compile: of %zu winner%s valid on %s, the kernels of %zu are already in the kernel cache, the "
           "rest need none\n",
           held, s, device, there);
}

static int print(report *r, const options *o, const char *device, const attune_warmed *sums) {
  const int code = sums->failed ? CLI_FAILED : CLI_DONE;
  if (o->common.json) {
    const int printed = cli_print_json(
        json_pack("{s:s, s:O, s:I, s:I, s:I, s:I, s:o}", "device", device, "results", r->array, "compiled",
                  (json_int_t)sums->compiled, "there", (json_int_t)sums->there, "failed", (json_int_t)sums->failed,
                  "nothing", (json_int_t)sums->nothing, "seconds", cli_json_number(sums->ms * 1e-3)));
    return printed == CLI_DONE ? code : printed;
  }
  if (r->table.rows) cli_table_print(&r->table, stdout, o->common.wide);
  const size_t held = sums->compiled + sums->there + sums->failed + sums->nothing;
  if (!sums->compiled && !sums->failed) {
    print_nothing(device, held, sums->there);
    return code;
  }
  printf("%zu winner%s valid on %s: kernels of %zu compiled now, of %zu already in the kernel cache, %zu failed, %zu "
         "need none; %.1f s\n",
         held, held == 1 ? " is" : "s are", device, sums->compiled, sums->there, sums->failed, sums->nothing,
         sums->ms * 1e-3);
  return code;
}

/* A file of no bytes is a database without any row: nothing can be warmed with it, and it is seldom intended. */
static int need_content(const char *path) {
  struct stat about;
  if (!path || stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size > 0) return CLI_DONE;
  cli_error("%s is empty; should be a database made by `attune tune'", path);
  return CLI_FAILED;
}

static int warm(const options *o, attune_tuner *tuner, attune_device *device) {
  report r = {.table = {.columns = columns, .column_count = COLUMNS}, .array = json_array()};
  attune_warmed sums = {0};
  attune_status status = attune_tuner_database_status(tuner);
  if (status == ATTUNE_OK) status = attune_tuner_warm(tuner, device, NULL, 0, add, &r, &sums);
  const int code = status == ATTUNE_OK ? print(&r, o, attune_device_name(device), &sums) : cli_fail(status);
  cli_table_free(&r.table);
  json_decref(r.array);
  return code;
}

int cmd_warm(int argc, char **argv) {
  options o = {0};
  if (cli_parse("warm", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  attune_device *device = NULL;
  attune_tuner *tuner = NULL;
  int code = need_content(o.common.database ? o.common.database : getenv("ATTUNE_DB"));
  if (code == CLI_DONE) code = cli_open_stored(&tuner, &device, &o.common);
  if (code != CLI_DONE) return code;
  code = warm(&o, tuner, device);
  attune_tuner_destroy(tuner);
  return code;
}
