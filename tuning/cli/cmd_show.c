/* SPDX-License-Identifier: Apache-2.0
 * cmd_show.c: `attune show`: the stored winners. */
#include "tuning/cli/commands.h"

#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli_options common;
  bool all; /* those of other machines too */
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  if (key == 'a')
    o->all = true;
  else if (key == ARGP_KEY_ARG)
    cli_bad_usage(state, "unexpected argument \"%s\"; show takes none (--db names a database)", argument);
  else
    return ARGP_ERR_UNKNOWN;
  return 0;
}

static const cli_column columns[] = {
    {"problem", false, true, 0},       {"device", false, false, 3},    {"implementation", false, false, 0},
    {"configuration", false, true, 2}, {"time", true, false, 0},       {"default", true, false, 1},
    {"speedup", true, false, 0},       {"", false, false, 0},          {"default by", false, true, 3},
    {"spread", true, false, 4},        {"when", false, false, 6},      {"measure", false, false, 5},
    {"differs", false, true, 1},       {"fingerprint", false, true, 7}};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

#define DEVICES_CHARS 1024

typedef struct showing {
  const options *options;
  const char *device; /* NULL: any */
  bool waiting;       /* the next four: a winner that may hold on further devices */
  attune_decision decision;
  int valid;
  char fingerprint[4096];
  char devices[DEVICES_CHARS]; /* that it holds on, with blanks between */
  cli_table table;
  json_t *array;
  size_t elsewhere; /* winners left out because they do not hold here */
  size_t unsure, incomplete;
  size_t changed; /* winners that hold, but were compared with something else than what is here */
} showing;

static void add_row(showing *s) {
  const attune_decision *d = &s->decision;
  char time_text[CLI_CELL], default_time[CLI_CELL], speedup[CLI_CELL], spread[CLI_CELL], when[CLI_CELL];
  const char *const cells[COLUMNS] = {d->problem,
                                      s->devices,
                                      d->implementation,
                                      *d->configuration ? d->configuration : "-",
                                      cli_time_text(time_text, d->time_ns),
                                      cli_time_text(default_time, d->default_time_ns),
                                      cli_speedup_text(speedup, d->unsure ? 0 : cli_speedup(d)),
                                      d->unsure || !d->complete ? "?" : "", /* the column goes where no row has it */
                                      *d->default_implementation ? d->default_implementation : "-",
                                      cli_percent_text(spread, d->spread),
                                      cli_date_text(when, d->tuned_at),
                                      d->measure,
                                      *d->changed ? d->changed : "-",
                                      s->fingerprint};
  cli_table_add(&s->table, cells);
}

/* "device" is the first, "devices" are all. */
static void add_object(showing *s) {
  json_t *object = cli_json_decision(&s->decision), *devices = json_array();
  char names[DEVICES_CHARS], *rest = NULL;
  snprintf(names, sizeof names, "%s", s->devices);
  for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
    json_array_append_new(devices, json_string(name));
  json_object_set_new(object, "devices", devices);
  json_object_set_new(object, "fingerprint", cli_json_text(s->fingerprint));
  json_object_set_new(object, "valid", json_boolean(s->valid));
  json_array_append_new(s->array, object);
}

static void add_waiting(showing *s) {
  if (!s->waiting) return;
  s->waiting = false;
  s->changed += s->valid && *s->decision.changed;
  s->incomplete += !s->decision.complete;
  s->unsure += s->decision.complete && s->decision.unsure;
  if (s->options->common.json)
    add_object(s);
  else
    add_row(s);
}

static bool same_winner(const showing *s, const attune_decision *d, const char *fingerprint) {
  return s->waiting && d->source == s->decision.source && strcmp(d->problem, s->decision.problem) == 0 &&
         strcmp(d->measure, s->decision.measure) == 0 && d->tuned_at == s->decision.tuned_at &&
         strcmp(fingerprint, s->fingerprint) == 0;
}

/* A winner comes once for each device that it holds on, and is one row. */
static int show_winner(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  showing *s = user;
  if (s->device && strcmp(decision->device, s->device) != 0) return 0;
  if (!valid && !s->options->all) {
    s->elsewhere++;
    return 0;
  }
  const bool further = same_winner(s, decision, fingerprint);
  const size_t used = further ? strlen(s->devices) : 0;
  if (!further) {
    add_waiting(s);
    s->waiting = true;
    s->valid = valid;
    s->decision = *decision;
    snprintf(s->fingerprint, sizeof s->fingerprint, "%s", fingerprint);
  }
  snprintf(s->devices + used, sizeof s->devices - used, "%s%s", further ? " " : "", decision->device);
  return 0;
}

static int print(showing *s) {
  if (s->options->common.json) return cli_print_json(json_incref(s->array));
  if (s->table.rows)
    cli_table_print(&s->table, stdout, s->options->common.wide);
  else
    puts(s->elsewhere ? "no winner stored that holds here" : "no winners stored: `attune tune' finds them");
  if (s->unsure) printf("? %zu unsure (noise, or other work): tuned again by `attune tune'\n", s->unsure);
  if (s->incomplete) printf("? %zu incomplete (the budget ended): tuned again by `attune tune'\n", s->incomplete);
  if (s->elsewhere)
    printf("%zu more measured on other machines, drivers or libraries: --all shows them\n", s->elsewhere);
  if (s->changed)
    printf(
        "%zu compared with other libraries, or fewer implementations, than are here: `attune tune' measures again%s\n",
        s->changed, s->options->all ? "" : ", --all says what differs");
  return CLI_DONE;
}

static int show(const options *o, attune_tuner *tuner, const char *device) {
  attune_status status = attune_tuner_database_status(tuner);
  if (status != ATTUNE_OK) return cli_fail(status);
  showing s = {.options = o, .device = device, .array = json_array()};
  s.table = (cli_table){.columns = columns, .column_count = o->all ? COLUMNS : COLUMNS - 2};
  status = attune_tuner_winners(tuner, show_winner, &s);
  add_waiting(&s);
  int code = status == ATTUNE_OK ? print(&s) : cli_fail(status);
  json_decref(s.array);
  cli_table_free(&s.table);
  return code;
}

int cmd_show(int argc, char **argv) {
  options o = {0};
  if (cli_parse("show", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  attune_device *device = NULL;
  int code = o.common.device ? cli_open_device(&device, &o.common) : CLI_DONE;
  if (code == CLI_DONE) code = cli_need_database(o.common.database ? o.common.database : getenv("ATTUNE_DB"));
  if (code != CLI_DONE) return code;
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = o.common.database;
  tuner_options.mode = ATTUNE_MODE_CACHED;
  attune_tuner *tuner = NULL;
  attune_status status = cli_open_tuner(&tuner, &tuner_options);
  if (status != ATTUNE_OK) return cli_fail(status);
  code = show(&o, tuner, device ? attune_device_name(device) : NULL);
  attune_tuner_destroy(tuner);
  return code;
}
