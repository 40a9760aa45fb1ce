/* SPDX-License-Identifier: Apache-2.0
 * cmd_tune.c: `attune tune`: measures the problems of a workload that have no stored winner yet, one after the
 * other, each committed before the next begins, so that a run may be stopped and resumed at any time. */
#include "tuning/cli/commands.h"
#include "tuning/cli/tune_run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <search.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NAME_WIDTH 40
#define NAME_WIDTH_NARROW 18 /* on a terminal of less than 100 columns */

static double parse_positive(const char *option, const char *text, struct argp_state *state) {
  char *end = NULL;
  errno = 0;
  double value = strtod(text, &end);
  if (errno || end == text || *end || !(value > 0 && value <= 1e9))
    cli_bad_usage(state, "--%s is \"%s\"; should be a number above 0, at most 1e9", option, text);
  return value;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  tune_options *o = state->input;
  switch (key) {
  case 's': o->budget_s = parse_positive("budget", argument, state); break;
  case CLI_OPTION_PROBLEM_BUDGET: o->problem_budget_ms = parse_positive("problem-budget", argument, state); break;
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

static bool is_measured(const attune_decision *d) {
  return d->source == ATTUNE_SOURCE_STORED || d->source == ATTUNE_SOURCE_SYSTEM || d->source == ATTUNE_SOURCE_TUNED;
}

static int compare_texts(const void *left, const void *right) {
  return strcmp(left, right);
}

static void keep_node(void *node) {
  (void)node;
}

/* What all calls of a recorded problem take, about; 0: not known. */
static double weight_of(const tune_item *it) {
  return (double)it->entry->count * it->entry->time_ns;
}

/* Finds what needs no measuring, so that the budget is shared among the rest only. */
static void look_up(tune_run *run) {
  void *seen = NULL;
  const int room = run->options->common.wide ? 0 : cli_terminal_width(stdout);
  const int most = room && room < 100 ? NAME_WIDTH_NARROW : NAME_WIDTH;
  for (size_t i = 0; i < run->count; i++) {
    tune_item *it = &run->items[i];
    int width = cli_width(it->entry->name);
    if (width > run->name_width) run->name_width = width < most ? width : most;
    const char *const *first = tsearch(it->entry->problem, &seen, compare_texts);
    if (first && *first != it->entry->problem) {
      it->outcome = OUTCOME_SAME;
      continue;
    }
    bool known =
        !run->options->force && attune_explain(run->tuner, run->device, it->entry->problem, &it->decision) == ATTUNE_OK;
    if (known && is_measured(&it->decision) && it->decision.complete && !it->decision.unsure)
      it->outcome = OUTCOME_STORED;
    else
      run->to_measure++, run->weight += weight_of(it);
  }
  tdestroy(seen, keep_node);
}

/* More than a problem needs: it takes what it needs. */
#define ENOUGH_MS 400.0

static bool is_open(const tune_item *it) {
  return it->outcome == OUTCOME_TUNED && (it->decision.unsure || !it->decision.complete);
}

/* The present problem's budget in ms; 0: the tuner's own, which ends with the tuner's total; negative: none is left. A
 * share is given only where it is short: elsewhere a problem takes what it needs, for most need less than their share
 * and a few need more. What others measure now needs none. Of what was recorded, calls x time decides about the larger
 * part of the budget, so that a problem is tuned for as long as it is worth. */
static double share_ms(const tune_run *run, const tune_item *it) {
  static const double weighted_part = 0.75;
  const tune_options *o = run->options;
  if (!(o->budget_s > 0)) return o->problem_budget_ms;
  double left_ms = 1e3 * (o->budget_s - (cli_now_s() - run->start_s));
  if (left_ms < 1) return -1;
  size_t problems = run->to_measure - run->measured - run->busy;
  double share = left_ms / (double)(problems ? problems : 1);
  if (it && run->weight > 0 && problems > 1) {
    const double part = weight_of(it) / run->weight;
    share = (1 - weighted_part) * share + weighted_part * left_ms * (part < 1 ? part : 1);
  }
  if (o->problem_budget_ms > 0 && o->problem_budget_ms < share) return o->problem_budget_ms;
  return share < ENOUGH_MS ? share : 0;
}

/* Another process measured it since this run began: that winner is taken, complete or not. */
static bool others_winner(tune_run *run, tune_item *it) {
  return !run->options->force &&
         attune_explain(run->tuner, run->device, it->entry->problem, &it->decision) == ATTUNE_OK &&
         is_measured(&it->decision) && it->decision.tuned_at > run->start_time;
}

static void measure(tune_run *run, tune_item *it) {
  const bool again = it->outcome == OUTCOME_BUSY;
  double budget_ms = share_ms(run, it);
  if (budget_ms < 0) return;
  if (again) run->busy--;
  attune_status status = ATTUNE_OK;
  if (!others_winner(run, it))
    status =
        attune_tune_try(run->tuner, run->device, it->entry->problem, budget_ms, run->options->force, &it->decision);
  if (status == ATTUNE_BUSY) {
    it->outcome = OUTCOME_BUSY;
    run->busy++;
    snprintf(it->message, sizeof it->message, "%s", attune_last_message());
    return;
  }
  run->measured++;
  run->weight -= weight_of(it);
  it->outcome = OUTCOME_LEFT;
  if (status == ATTUNE_OK) {
    it->outcome = it->decision.source == ATTUNE_SOURCE_TUNED ? OUTCOME_TUNED : OUTCOME_STORED;
  } else if (status != ATTUNE_BUDGET_EXHAUSTED || !(run->options->budget_s > 0)) {
    /* A run's budget may end before a problem is begun; a problem's own that is too short for it is a failure. */
    it->outcome = OUTCOME_FAILED;
    snprintf(it->message, sizeof it->message, "%s", attune_last_message());
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

/* What others measured when its turn came, until each is done or the time is over. */
static void tune_busy(tune_run *run) {
  enum { LOOK_MS = 20 };
  double told_s = cli_now_s(), each_s = 1;
  while (run->busy > 0 && !cli_interrupted && share_ms(run, NULL) >= 0) {
    const size_t before = run->busy;
    for (size_t i = 0; i < run->count && !cli_interrupted; i++) {
      tune_item *it = &run->items[i];
      if (it->outcome != OUTCOME_BUSY) continue;
      cli_progress_draw(run->progress, it->entry->name, run->count - run->busy, run->measured);
      measure(run, it);
      if (it->outcome != OUTCOME_BUSY) tune_report_item(run, it);
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

/* What noise, other work or a short share left open is measured again in what is left of the run's budget: the machine
 * may be quiet by then. Those that are sure and complete now are told again. */
static void tune_open(tune_run *run) {
  enum { PASSES = 3 };
  attune_decision again;
  size_t left = 1;
  for (int pass = 0; pass < PASSES && left > 0; pass++) {
    left = 0;
    for (size_t i = 0; i < run->count; i++) left += is_open(&run->items[i]);
    size_t waiting = left;
    for (size_t i = 0; i < run->count && left > 0 && !cli_interrupted; i++) {
      tune_item *it = &run->items[i];
      if (!is_open(it)) continue;
      const double left_ms = 1e3 * (run->options->budget_s - (cli_now_s() - run->start_s));
      if (left_ms < 1) return;
      cli_progress_draw(run->progress, it->entry->name, run->count, run->measured);
      const double share = left_ms / (double)waiting--;
      const double own = run->options->problem_budget_ms, budget_ms = own > 0 && own < share ? own
                                                                      : share < ENOUGH_MS    ? share
                                                                                             : 0;
      if (attune_tune_try(run->tuner, run->device, it->entry->problem, budget_ms, 0, &again) != ATTUNE_OK) continue;
      it->decision = again;
      if (is_open(it)) continue;
      left--;
      tune_report_item(run, it);
    }
  }
}

/* What is stored, or the same as another, is told in its place in the list: before the first that is left. */
static void report_known(tune_run *run) {
  for (; run->told < run->count && (run->items[run->told].begun || run->items[run->told].outcome != OUTCOME_LEFT);
       run->told++) {
    const tune_item *it = &run->items[run->told];
    if (!it->begun) tune_report_item(run, it);
  }
}

/* The numbers of the items to measure, and their kernels begun. False: that is not possible, and needs no more words than
 * a measurement will say. */
static bool start_ahead(tune_run *run, attune_ahead **ahead, size_t *numbers) {
  const char **problems = cli_alloc(run->count, sizeof *problems);
  size_t count = 0;
  for (size_t i = 0; i < run->count; i++)
    if (run->items[i].outcome == OUTCOME_LEFT) {
      problems[count] = run->items[i].entry->problem;
      numbers[count++] = i;
    }
  const attune_status status = attune_ahead_start(ahead, run->tuner, run->device, problems, count);
  free(problems);
  return status == ATTUNE_OK;
}

/* The next item to measure, one whose kernels are compiled. Where the budget leaves time enough, or there is none, that
 * is waited for: the time would be spent on them anyway. NULL: there is none, or Ctrl-C. */
static tune_item *next_item(tune_run *run, attune_ahead *ahead, const size_t *numbers) {
  enum { LOOK_MS = 50 };
  size_t next = 0;
  attune_status status = ATTUNE_BUSY;
  while (status == ATTUNE_BUSY && !cli_interrupted) {
    const double share = share_ms(run, NULL);
    const bool hurried = run->options->budget_s > 0 && share != 0;
    status = attune_ahead_next(ahead, hurried ? 0 : LOOK_MS, hurried, &next);
  }
  return status == ATTUNE_OK ? &run->items[numbers[next]] : NULL;
}

static void tune_ready(tune_run *run) {
  attune_ahead *ahead = NULL;
  size_t *numbers = cli_alloc(run->count, sizeof *numbers);
  size_t done = run->count - run->to_measure;
  if (start_ahead(run, &ahead, numbers))
    for (tune_item *it; report_known(run), !cli_interrupted && (it = next_item(run, ahead, numbers)) != NULL; done++) {
      it->begun = true;
      cli_progress_draw(run->progress, it->entry->name, done, run->measured);
      measure(run, it);
      if (it->outcome != OUTCOME_BUSY) tune_report_item(run, it);
    }
  attune_ahead_stop(ahead);
  free(numbers);
}

static void tune_all(tune_run *run) {
  cli_progress_begin(run->progress, run->count, run->to_measure);
  tune_ready(run);
  for (; run->told < run->count; run->told++) /* and those that were not begun */
    if (!run->items[run->told].begun) tune_report_item(run, &run->items[run->told]);
  tune_busy(run);
  if (run->options->budget_s > 0) tune_open(run);
  cli_progress_clear(run->progress);
}

static void on_kernel(void *user, const attune_decision *winner, attune_warm_outcome outcome, double ms,
                      const char *message) {
  tune_run *run = user;
  (void)ms;
  if (outcome != ATTUNE_WARM_FAILED) return;
  cli_progress_clear(run->progress);
  cli_error("%s: its kernel is not in the kernel cache: %s", winner->problem, message);
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
    cli_error("no problems recorded for %s in %s; should be recorded by a program run with ATTUNE_MODE=record",
              attune_device_name(device), file ? file : "the user's database");
    return CLI_FAILED;
  }
  run.items = cli_alloc(count, sizeof *run.items);
  for (size_t i = 0; i < count; i++) run.items[i].entry = attune_workload_at(workload, i);
  cli_catch_signals();
  if (!getenv("ATTUNE_LOG")) attune_set_log(on_log, progress, ATTUNE_LOG_WARNING);
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

/* Where WORKLOAD is read from; NULL, after a message: nowhere. Asked before anything is opened, which would take the place
 * of a closed standard input. */
static const char *path_of(const char *named) {
  if (strcmp(named, "-") != 0) return named;
  if (fcntl(STDIN_FILENO, F_GETFD) >= 0) return "/dev/stdin";
  cli_error("WORKLOAD is -, and standard input is closed; should be a pipe or a file");
  return NULL;
}

int cmd_tune(int argc, char **argv) {
  tune_options o = {0};
  if (cli_parse("tune", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  bool recorded = strcmp(o.workload, "recorded") == 0;
  const char *path = path_of(o.workload);
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
