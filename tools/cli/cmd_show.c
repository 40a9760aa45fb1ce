/* SPDX-License-Identifier: Apache-2.0
 * cmd_show.c: `attune show`: the stored winners; or the problems of a workload, or those that were recorded, with the
 * winners that they have. */
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/show.h"

typedef struct options {
  cli_options common;
  const char *workload; /* NULL: none */
  const char *path;     /* of it */
  bool all;             /* winners of other machines too */
  bool recorded, csv;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
  case 'a': o->all = true; return 0;
  case CLI_OPTION_RECORDED: o->recorded = true; return 0;
  case CLI_OPTION_CSV: o->csv = true; return 0;
  case ARGP_KEY_ARG:
    if (o->workload) cli_bad_usage(state, "unexpected argument \"%s\"; show takes one WORKLOAD", argument);
    if (strcmp(argument, "recorded") == 0) /* as tune has it; a file of that name is ./recorded */
      o->recorded = true;
    else
      o->workload = argument;
    return 0;
  case ARGP_KEY_END:
    if (o->csv && o->common.json) cli_bad_usage(state, "--csv and --json are both given; use one of them");
    if (o->recorded && o->workload)
      cli_bad_usage(state, "--recorded and the WORKLOAD \"%s\" are both given; use one of them", o->workload);
    if (o->all && (o->recorded || o->workload))
      cli_bad_usage(state, "--all applies to stored winners; leave out --all or %s",
                    o->recorded ? "--recorded" : "WORKLOAD");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- how often programs called a problem ---- */

/* Recorded problems of one device. */
typedef struct calls {
  const char *device;
  attune_workload *workload;
  const attune_workload_entry **sorted;
  size_t count;
} calls;

static int by_problem(const void *left, const void *right) {
  const attune_workload_entry *const *a = left, *const *b = right;
  return strcmp((*a)->problem, (*b)->problem);
}

/* Without a record, or one that cannot be read, no problem has a known number of calls. */
static void load_calls(calls *c, attune_tuner *tuner, const char *name) {
  attune_device *device = NULL;
  *c = (calls){.device = name};
  if (attune_device_get(&device, name) != ATTUNE_OK) return;
  if (attune_workload_recorded(&c->workload, tuner, device) != ATTUNE_OK) return;
  c->count = attune_workload_size(c->workload);
  c->sorted = cli_alloc(c->count + 1, sizeof *c->sorted);
  for (size_t i = 0; i < c->count; i++) c->sorted[i] = attune_workload_at(c->workload, i);
  qsort(c->sorted, c->count, sizeof *c->sorted, by_problem);
}

static void free_calls(calls *c) {
  free(c->sorted);
  attune_workload_destroy(c->workload);
  *c = (calls){0};
}

/* NULL: none that is known. */
static const attune_workload_entry *find_calls(const calls *c, const char *problem) {
  const attune_workload_entry wanted = {.problem = problem}, *key = &wanted;
  const attune_workload_entry **found =
      c->count ? bsearch(&key, c->sorted, c->count, sizeof *c->sorted, by_problem) : NULL;
  return found ? *found : NULL;
}

/* ---- the stored winners ---- */

#define DEVICES_CHARS 1024

typedef struct showing {
  attune_tuner *tuner;
  const options *options;
  const char *device; /* NULL: any */
  bool waiting;       /* the next four: a winner that may hold on further devices */
  attune_decision *held;
  attune_decision_info decision; /* what it says */
  int valid;
  char fingerprint[4096];
  char devices[DEVICES_CHARS]; /* that it holds on, with blanks between */
  calls calls;                 /* of the device of the winner before */
  show_report report;
  size_t elsewhere; /* winners left out because they do not hold here */
} showing;

/* Devices of one kind share what is recorded, so the first one of a winner knows it. */
static void add_waiting(showing *s) {
  const attune_decision_info *d = &s->decision;
  if (!s->waiting) return;
  s->waiting = false;
  if (!s->calls.device || strcmp(s->calls.device, d->device) != 0) {
    attune_device *device = NULL;
    free_calls(&s->calls);
    if (s->valid && attune_device_get(&device, d->device) == ATTUNE_OK)
      load_calls(&s->calls, s->tuner, attune_device_name(device));
  }
  const attune_workload_entry *entry = s->valid ? find_calls(&s->calls, d->problem) : NULL;
  show_add(&s->report, &(show_row){.decision = d,
                                   .name = "",
                                   .written = d->problem,
                                   .devices = s->devices,
                                   .fingerprint = s->fingerprint,
                                   .tuned = true,
                                   .valid = s->valid,
                                   .calls = entry ? entry->count : 0,
                                   .call_ns = d->default_time_ns});
}

static bool same_winner(const showing *s, const attune_decision_info *d, const char *fingerprint) {
  return s->waiting && d->source == s->decision.source && strcmp(d->problem, s->decision.problem) == 0 &&
         strcmp(d->measure, s->decision.measure) == 0 && d->tuned_at == s->decision.tuned_at &&
         strcmp(fingerprint, s->fingerprint) == 0;
}

/* Of the winner that waits, or the problem: a copy of `decision`, NULL: empty. */
static void hold(showing *s, const attune_decision *decision) {
  attune_decision_destroy(s->held);
  s->held = cli_decision(decision);
  s->decision = cli_info(s->held);
}

/* A winner comes once for each device that it holds on, and is one row. */
static int show_winner(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  showing *s = user;
  const attune_decision_info d = cli_info(decision);
  if (s->device && strcmp(d.device, s->device) != 0) return 0;
  if (!valid && !s->options->all) {
    s->elsewhere++;
    s->report.other_threads += strncmp(d.changed, "CPU threads ", 12) == 0 && !strchr(d.changed, ';'); /* that alone */
    return 0;
  }
  const bool further = same_winner(s, &d, fingerprint);
  const size_t used = further ? strlen(s->devices) : 0;
  if (!further) {
    add_waiting(s);
    s->waiting = true;
    s->valid = valid;
    hold(s, decision);
    snprintf(s->fingerprint, sizeof s->fingerprint, "%s", fingerprint);
  }
  snprintf(s->devices + used, sizeof s->devices - used, "%s%s", further ? " " : "", d.device);
  return 0;
}

static attune_status show_winners(showing *s) {
  const attune_status status = attune_tuner_winners(s->tuner, show_winner, s);
  add_waiting(s);
  free_calls(&s->calls);
  return status;
}

/* ---- problems, with a winner or without ---- */

static bool is_measured(const attune_decision_info *d) {
  return d->source == ATTUNE_SOURCE_STORED || d->source == ATTUNE_SOURCE_SYSTEM;
}

/* Has any row a count? Without one each counts as one call. */
static bool has_counts(const attune_workload *workload) {
  for (size_t i = 0; i < attune_workload_size(workload); i++)
    if (attune_workload_at(workload, i)->count != 1) return true;
  return false;
}

/* Calls are those of the workload, or those that were recorded. A problem that cannot run on the device has no winner
 * there. */
static void show_problems(showing *s, attune_device *device, const attune_workload *workload, bool counted) {
  for (size_t i = 0; i < attune_workload_size(workload); i++) {
    const attune_workload_entry *entry = attune_workload_at(workload, i);
    const attune_workload_entry *recorded = counted ? entry : find_calls(&s->calls, entry->problem);
    attune_decision_info *d = &s->decision;
    hold(s, NULL);
    const attune_status status = attune_explain(s->tuner, device, entry->problem, s->held);
    *d = cli_info(s->held);
    if (status != ATTUNE_OK) d->problem = entry->problem;
    const bool tuned = is_measured(d), own_name = strcmp(entry->name, entry->written) != 0;
    show_add(&s->report, &(show_row){.decision = d,
                                     .name = own_name ? entry->name : "",
                                     .written = entry->written,
                                     .devices = attune_device_name(device),
                                     .fingerprint = "",
                                     .tuned = tuned,
                                     .valid = true,
                                     .calls = recorded ? recorded->count : 0,
                                     .call_ns = tuned && d->default_time_ns > 0 ? d->default_time_ns
                                                : recorded                      ? recorded->time_ns
                                                                                : 0});
  }
}

static attune_status show_workload(showing *s, attune_device *device) {
  attune_workload *workload = NULL;
  const attune_status status = attune_workload_read(&workload, s->options->path);
  if (status != ATTUNE_OK) return status;
  s->report.of_problems = true;
  load_calls(&s->calls, s->tuner, attune_device_name(device));
  show_problems(s, device, workload, has_counts(workload));
  free_calls(&s->calls);
  attune_workload_destroy(workload);
  return ATTUNE_OK;
}

/* Do an earlier device's records belong to this one too? */
static bool is_told(int index, const char *fingerprint) {
  char other[4096];
  attune_device *device = NULL;
  for (int i = 0; i < index; i++)
    if (attune_device_at(&device, i) == ATTUNE_OK &&
        attune_device_fingerprint(device, other, sizeof other) == ATTUNE_OK && strcmp(other, fingerprint) == 0)
      return true;
  return false;
}

static attune_status show_recorded(showing *s) {
  s->report.of_problems = true;
  for (int i = 0; i < attune_device_count(); i++) {
    attune_device *device = NULL;
    attune_workload *workload = NULL;
    attune_status status = attune_device_at(&device, i);
    if (status == ATTUNE_OK) status = attune_device_fingerprint(device, s->fingerprint, sizeof s->fingerprint);
    if (status != ATTUNE_OK) return status;
    if (s->device ? strcmp(attune_device_name(device), s->device) != 0 : is_told(i, s->fingerprint)) continue;
    status = attune_workload_recorded(&workload, s->tuner, device);
    if (status != ATTUNE_OK) return status;
    show_problems(s, device, workload, true);
    attune_workload_destroy(workload);
  }
  return ATTUNE_OK;
}

/* ---- the command ---- */

static int show(const options *o, attune_tuner *tuner, attune_device *device) {
  attune_status status = attune_tuner_database_status(tuner);
  if (status != ATTUNE_OK) return cli_fail(status);
  showing *s = cli_alloc(1, sizeof *s);
  *s = (showing){.tuner = tuner, .options = o, .device = device ? attune_device_name(device) : NULL};
  show_begin(&s->report, o->common.json ? SHOW_JSON : o->csv ? SHOW_CSV : SHOW_TABLE, o->all, o->common.wide);
  char command[64] = "attune tune recorded";
  if (!o->recorded && (!o->workload || strlen(o->workload) > 30 || strcmp(o->workload, "-") == 0))
    snprintf(command, sizeof command, "attune tune FILE");
  else if (!o->recorded)
    snprintf(command, sizeof command, "attune tune %s", o->workload);
  s->report.command = command;
  status = o->workload ? show_workload(s, device) : o->recorded ? show_recorded(s) : show_winners(s);
  const char *nothing = o->recorded    ? "no problems recorded: run programs with ATTUNE_MODE=record to record them"
                        : s->elsewhere ? "no stored winner is valid here"
                                       : "no winners stored: `attune tune FILE' finds them";
  const int code = status == ATTUNE_OK ? show_end(&s->report, nothing, s->elsewhere) : cli_fail(status);
  show_free(&s->report);
  attune_decision_destroy(s->held);
  free(s);
  return code;
}

int cmd_show(int argc, char **argv) {
  options o = {0};
  if (cli_parse("show", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  o.path = o.workload ? cli_workload_path(o.workload) : NULL;
  if (o.workload && !o.path) return CLI_USAGE;
  attune_device *device = NULL;
  int code = o.common.device || o.workload ? cli_open_device(&device, &o.common) : CLI_DONE;
  if (code == CLI_DONE) code = cli_need_database(o.common.database ? o.common.database : getenv("ATTUNE_DB"));
  if (code != CLI_DONE) return code;
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = o.common.database;
  tuner_options.mode = ATTUNE_MODE_CACHED;
  attune_tuner *tuner = NULL;
  attune_status status = cli_open_tuner(&tuner, &tuner_options);
  if (status != ATTUNE_OK) return cli_fail(status);
  code = show(&o, tuner, device);
  attune_tuner_destroy(tuner);
  return code;
}
