/* SPDX-License-Identifier: Apache-2.0
 * cmd_tune.c: `attune tune`: measures the problems of a workload that have no stored winner yet, one after the
 * other, each committed before the next begins, so that a run may be stopped and resumed at any time. */
#include "tools/cli/commands.h"
#include "tools/cli/tune_run.h"

#include <errno.h>
#include <math.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME_WIDTH 40
#define NAME_WIDTH_NARROW 18 /* on a terminal of less than 100 columns */

static error_t parse(int key, char *argument, struct argp_state *state) {
  tune_options *o = state->input;
  switch (key) {
  case 's': o->budget_s = cli_positive("budget", argument, "seconds", 1e9, state); break;
  case CLI_OPTION_PROBLEM_BUDGET:
    o->problem_budget_ms = cli_positive("problem-budget", argument, "milliseconds", 1e9, state);
    break;
  case 'f': o->force = true; break;
  case ARGP_KEY_ARG:
    if (o->workload) cli_bad_usage(state, "unexpected argument \"%s\"; tune takes one WORKLOAD", argument);
    o->workload = argument;
    break;
  case ARGP_KEY_END:
    if (!o->workload) cli_bad_usage(state, "no WORKLOAD; should be a CSV file, - for standard input, or recorded");
    break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static bool is_measured(const attune_decision_info *d) {
  return d->source == ATTUNE_SOURCE_STORED || d->source == ATTUNE_SOURCE_SYSTEM || d->source == ATTUNE_SOURCE_TUNED;
}

static int compare_texts(const void *left, const void *right) {
  return strcmp(left, right);
}

static void keep_node(void *node) {
  (void)node;
}

/* How the items are named in lines of their own. */
static void name_items(tune_run *run) {
  const int room = run->options->common.wide ? 0 : cli_terminal_width(stdout);
  const int most = room && room < 100 ? NAME_WIDTH_NARROW : NAME_WIDTH;
  char **names = cli_alloc(run->count, sizeof *names);
  for (size_t i = 0; i < run->count; i++) {
    const char *name = run->items[i].entry->name;
    const int width = cli_width(name);
    if (width > run->name_width) run->name_width = width < most ? width : most;
    names[i] = strcpy(cli_alloc(strlen(name) + 1, 1), name);
  }
  if (room) cli_cut_apart(names, run->count, run->name_width);
  for (size_t i = 0; i < run->count; i++) run->items[i].shown = names[i];
  free(names);
}

/* Is there a choice for it? */
static bool is_known(const tune_run *run, tune_item *it) {
  const attune_status status = attune_explain(run->tuner, run->device, it->entry->problem, it->held);
  it->decision = cli_info(it->held);
  return status == ATTUNE_OK;
}

/* Finds what needs no measuring, so that the budget is shared among the rest only. */
static void look_up(tune_run *run) {
  void *seen = NULL;
  for (size_t i = 0; i < run->count; i++) {
    tune_item *it = &run->items[i];
    const char *const *first = tsearch(it->entry->problem, &seen, compare_texts);
    if (first && *first != it->entry->problem) {
      it->outcome = OUTCOME_SAME;
      continue;
    }
    const bool known = !run->options->force && is_known(run, it);
    if (known && is_measured(&it->decision) && it->decision.complete && !it->decision.unsure)
      it->outcome = OUTCOME_STORED;
    else
      run->to_measure++;
  }
  tdestroy(seen, keep_node);
}

/* Budget of a problem in ms, in its turn; 0: as much as it needs, negative: none is left. */
static double look_ms(const tune_run *run, const tune_item *it) {
  return run->options->budget_s > 0 ? tune_budget_look_ms(run, it) : 0;
}

/* Another process measured it since this run began: that winner is taken, complete or not. */
static bool others_winner(tune_run *run, tune_item *it) {
  return !run->options->force && is_known(run, it) && is_measured(&it->decision) &&
         it->decision.tuned_at > run->start_time;
}

static attune_status tune_one(tune_run *run, tune_item *it, double most_ms, bool force, attune_decision *out) {
  const attune_tune_options options = {
      .budget_ms = run->options->problem_budget_ms, .most_ms = most_ms > 0 ? most_ms : 0, .force = force, .no_wait = 1};
  return attune_tune(run->tuner, run->device, it->entry->problem, &options, out);
}

/* most_ms negative: there is no time for it any more. */
static void measure(tune_run *run, tune_item *it, double most_ms) {
  if (it->too_large) {
    run->measured++;
    it->outcome = OUTCOME_FAILED;
    return;
  }
  const bool again = it->outcome == OUTCOME_BUSY, others = others_winner(run, it);
  attune_status status = ATTUNE_OK;
  if (!others && most_ms < 0 && again) return;
  if (again) run->busy--;
  if (!others)
    status = most_ms < 0 ? ATTUNE_BUDGET_EXHAUSTED : tune_one(run, it, most_ms, run->options->force, it->held);
  it->decision = cli_info(it->held);
  if (status == ATTUNE_BUSY) {
    it->outcome = OUTCOME_BUSY;
    run->busy++;
    snprintf(it->message, sizeof it->message, "%s", attune_last_message());
    return;
  }
  run->measured++;
  it->outcome = OUTCOME_LEFT;
  if (status == ATTUNE_OK) {
    it->outcome = it->decision.source == ATTUNE_SOURCE_TUNED ? OUTCOME_TUNED : OUTCOME_STORED;
  } else if (status != ATTUNE_BUDGET_EXHAUSTED || !(run->options->budget_s > 0)) {
    /* A run's budget may end before a problem is begun; a problem's own that is too short for it is a failure. */
    it->outcome = OUTCOME_FAILED;
    snprintf(it->message, sizeof it->message, "%s", attune_last_message());
  } else if (most_ms > 0) {
    it->too_short_ms = most_ms;
  }
}

/* A wait that goes on: for whom, by the first of what is left. */
static void tell_busy(const tune_run *run) {
  for (size_t i = 0; i < run->count; i++) {
    if (run->items[i].outcome != OUTCOME_BUSY) continue;
    cli_progress_clear(run->progress);
    cli_error("waiting for another process: %s", run->items[i].message);
    return;
  }
}

/* With a budget, problems that may be measured again are reported when that is over. */
static void report(const tune_run *run, tune_item *it) {
  if (it->outcome != OUTCOME_BUSY && !(run->options->budget_s > 0 && tune_is_open(it))) tune_report_item(run, it);
}

/* What others measured when its turn came, until each is done or the time is over. */
static void tune_busy(tune_run *run) {
  enum { LOOK_MS = 20 };
  double told_s = cli_now_s(), each_s = 1;
  for (bool time = true; run->busy > 0 && !cli_interrupted && time; time = look_ms(run, NULL) >= 0) {
    const size_t before = run->busy;
    for (size_t i = 0; i < run->count && !cli_interrupted; i++) {
      tune_item *it = &run->items[i];
      if (it->outcome != OUTCOME_BUSY) continue;
      cli_progress_draw(run->progress, it->entry->name, run->count - run->busy, run->measured);
      measure(run, it, look_ms(run, it));
      report(run, it);
    }
    if (run->busy == before && cli_now_s() - told_s >= each_s) { /* then less and less often */
      tell_busy(run);
      told_s = cli_now_s();
      each_s = each_s < 30 ? 2 * each_s : 60;
    }
    if (run->busy == before) nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
  }
  for (size_t i = 0; i < run->count && run->busy > 0; i++)
    if (run->items[i].outcome == OUTCOME_BUSY) tune_report_item(run, &run->items[i]);
}

static void replace(tune_item *it, attune_decision **found) {
  attune_decision *old = it->held;
  it->held = *found;
  it->decision = cli_info(it->held);
  *found = old;
}

/* Once more, in a round of the budget: what is found now, or what there was if that is better. */
static void measure_again(tune_run *run, tune_item *it, double most_ms) {
  attune_decision *found = cli_decision(NULL);
  cli_progress_draw(run->progress, it->entry->name, run->count, run->measured);
  const attune_status status = tune_one(run, it, most_ms, false, found);
  if (status == ATTUNE_OK) {
    const bool stays = it->outcome == OUTCOME_TUNED && strncmp(cli_info(found).note, "stays: ", 7) == 0;
    it->outcome = OUTCOME_TUNED;
    if (!stays) replace(it, &found); /* else it is this run's own first look, with its note */
    if (!tune_is_open(it)) tune_report_item(run, it);
  } else if (status == ATTUNE_BUDGET_EXHAUSTED) {
    it->too_short_ms = most_ms;
  }
  attune_decision_destroy(found);
}

/* Stored problems and duplicates are reported in the order of the list, before the first that is left. */
static void report_known(tune_run *run) {
  for (; run->told < run->count && (run->items[run->told].begun || run->items[run->told].outcome != OUTCOME_LEFT);
       run->told++) {
    tune_item *it = &run->items[run->told];
    if (!it->begun) tune_report_item(run, it);
  }
}

/* The items to measure, in the order that they are wanted in, and their kernels begun. False: that is not possible, and
 * needs no more words than a measurement will say. */
static bool start_ahead(tune_run *run, attune_precompile **ahead, tune_item **items) {
  const char **problems = cli_alloc(run->count, sizeof *problems);
  size_t count = 0;
  for (size_t i = 0; i < run->count; i++)
    if (run->items[i].outcome == OUTCOME_LEFT) items[count++] = &run->items[i];
  if (run->options->budget_s > 0) tune_budget_order(run, items, count);
  for (size_t i = 0; i < count; i++) problems[i] = items[i]->entry->problem;
  const attune_status status = attune_precompile_start(ahead, run->tuner, run->device, problems, count);
  free(problems);
  return status == ATTUNE_OK;
}

/* More than a first look needs: then kernels are waited for, since the time would be spent on them anyway. */
#define ENOUGH_MS 400.0

/* The next item to measure, one whose kernels are compiled. Where the budget leaves time enough, or there is none, that
 * is waited for. NULL: there is none, or Ctrl-C. */
static tune_item *next_item(tune_run *run, attune_precompile *ahead, tune_item *const *items) {
  enum { LOOK_MS = 50 };
  size_t next = 0;
  attune_status status = ATTUNE_BUSY;
  while (status == ATTUNE_BUSY && !cli_interrupted) {
    const bool hurried = run->options->budget_s > 0 && look_ms(run, NULL) < ENOUGH_MS;
    status = attune_precompile_next(ahead, hurried ? 0 : LOOK_MS, hurried, &next);
  }
  return status == ATTUNE_OK ? items[next] : NULL;
}

static void tune_ready(tune_run *run) {
  attune_precompile *ahead = NULL;
  tune_item **items = cli_alloc(run->count, sizeof *items);
  size_t done = run->count - run->to_measure;
  if (start_ahead(run, &ahead, items))
    for (tune_item *it; report_known(run), !cli_interrupted && (it = next_item(run, ahead, items)) != NULL; done++) {
      it->begun = true;
      cli_progress_draw(run->progress, it->entry->name, done, run->measured);
      measure(run, it, look_ms(run, it));
      report(run, it);
    }
  attune_precompile_stop(ahead);
  free(items);
}

static void tune_all(tune_run *run) {
  cli_progress_begin(run->progress, run->count, run->to_measure);
  run->progress->budget_s = run->options->budget_s;
  tune_ready(run);
  if (run->options->budget_s > 0) tune_budget_rounds(run, measure_again);
  tune_busy(run);
  cli_progress_clear(run->progress);
  for (size_t i = 0; i < run->count; i++)
    if (!run->items[i].told) tune_report_item(run, &run->items[i]);
}

static void on_kernel(void *user, const attune_decision *winner, attune_warm_outcome outcome, double ms,
                      const char *message) {
  tune_run *run = user;
  (void)ms;
  if (outcome != ATTUNE_WARM_FAILED) return;
  cli_progress_clear(run->progress);
  cli_error("%s: the winner's kernel is not in the kernel cache: %s", cli_info(winner).problem, message);
}

/* The kernels of what was chosen stay in the kernel cache, also if those of all candidates were too many for it. */
static void keep_kernels(tune_run *run) {
  const char **problems = cli_alloc(run->count, sizeof *problems);
  size_t count = 0;
  for (size_t i = 0; i < run->count; i++)
    if (run->items[i].outcome == OUTCOME_TUNED) problems[count++] = run->items[i].entry->problem;
  if (count) (void)attune_tuner_warm(run->tuner, run->device, problems, count, on_kernel, run, &run->warmed);
  free(problems);
}

/* Winners that could not be written are lost with the process, so that is a failure even though each was measured. */
static int conclude(const tune_run *run) {
  tune_tally t = tune_count_up(run);
  if (run->options->common.json)
    tune_print_json(run, &t);
  else
    tune_print_summary(run, &t);
  attune_status status = attune_tuner_database_status(run->tuner);
  if (status != ATTUNE_OK) cli_fail(status);
  if (cli_interrupted) return 128 + cli_interrupted;
  return status != ATTUNE_OK || t.by_outcome[OUTCOME_FAILED] ? CLI_FAILED : CLI_DONE;
}

/* The library's warnings, a winner that could not be written among them, are the user's to see, above the bar. */
static void on_log(void *user, attune_log_level level, const char *line) {
  cli_progress_clear(user);
  cli_error("%s: %s", level == ATTUNE_LOG_ERROR ? "error" : "warning", line);
}

static int tune_workload(const tune_options *o, attune_tuner *tuner, attune_device *device,
                         const attune_workload *workload, cli_progress *progress) {
  size_t count = attune_workload_size(workload);
  tune_run run = {
      .options = o, .tuner = tuner, .device = device, .count = count, .start_s = cli_now_s(), .progress = progress};
  run.start_time = (int64_t)time(NULL);
  if (!count) {
    const char *file = o->common.database ? o->common.database : getenv("ATTUNE_DB");
    cli_error("no problems recorded for %s in %s; run a program with ATTUNE_MODE=record to record them",
              attune_device_name(device), file ? file : "the user's database");
    return CLI_FAILED;
  }
  run.items = cli_alloc(count, sizeof *run.items);
  for (size_t i = 0; i < count; i++) {
    run.items[i].entry = attune_workload_at(workload, i);
    run.items[i].held = cli_decision(NULL);
  }
  cli_catch_signals();
  if (!getenv("ATTUNE_LOG")) attune_set_log(on_log, progress, ATTUNE_LOG_WARNING);
  name_items(&run);
  look_up(&run);
  int code = CLI_DONE;
  const attune_status status = run.to_measure ? attune_tuner_database_prepare(tuner) : ATTUNE_OK;
  if (status != ATTUNE_OK) {
    code = cli_fail(status);
  } else {
    tune_all(&run);
    keep_kernels(&run);
    code = conclude(&run);
  }
  for (size_t i = 0; i < count; i++) {
    free(run.items[i].shown);
    attune_decision_destroy(run.items[i].held);
  }
  free(run.items);
  return code;
}

/* A run whose winners would be lost is refused before it measures. */
static int open_tuner(attune_tuner **out, const tune_options *o) {
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = o->common.database;
  tuner_options.mode = ATTUNE_MODE_CACHED;
  tuner_options.total_budget_ms = 1e3 * o->budget_s;
  attune_status status = cli_open_tuner(out, &tuner_options);
  if (status == ATTUNE_OK) status = attune_tuner_database_status(*out);
  return status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
}

int cmd_tune(int argc, char **argv) {
  tune_options o = {0};
  if (cli_parse("tune", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  bool recorded = strcmp(o.workload, "recorded") == 0;
  const char *path = cli_workload_path(o.workload);
  if (!path) return CLI_USAGE;
  attune_device *device = NULL;
  attune_workload *workload = NULL;
  attune_tuner *tuner = NULL;
  cli_progress progress = {0};
  int code = cli_open_device(&device, &o.common);
  attune_status status = code == CLI_DONE && !recorded ? attune_workload_read(&workload, path) : ATTUNE_OK;
  if (status != ATTUNE_OK) code = cli_fail(status);
  if (code == CLI_DONE) code = open_tuner(&tuner, &o);
  if (code == CLI_DONE && recorded) status = attune_workload_recorded(&workload, tuner, device);
  if (code == CLI_DONE && status != ATTUNE_OK) code = cli_fail(status);
  if (code == CLI_DONE) code = tune_workload(&o, tuner, device, workload, &progress);
  attune_tuner_destroy(tuner);
  attune_set_log(NULL, NULL, ATTUNE_LOG_OFF); /* `progress` ends here */
  attune_workload_destroy(workload);
  return code;
}
