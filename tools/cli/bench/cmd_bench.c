/* SPDX-License-Identifier: Apache-2.0
 * cmd_bench.c: `attune bench`: the options, and the run from the first process to the report. */
#include "tools/cli/bench/bench.h"
#include "tools/cli/commands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/compare/message.h"
#include "tools/compare/stats/comparison.h"

enum { ROUNDS = 24, SAMPLES = 32, SAMPLES_LEAST = 5, ENOUGH = 18, ROUNDS_MOST = 10000, SAMPLES_MOST = 10000 };
#define SAMPLE_NS 25e4 /* short: on a busy machine few are disturbed, and the faster half is what counts */
#define CASE_S 20.0    /* for a case in all, unless that is less than its least number of samples */
#define PAIR_S \
  2.2 /* a case: a pair takes no longer, if it has enough rounds by then, so 50 cases end within 2 minutes */
#define HANG_S 120.0 /* for one answer, so for a set-up or a sample */
#define DRAW_S 0.1   /* between two pictures of the progress bar */

/* --- options --- */

static void add_word(bench_words *words, const char *word) {
  words->at[words->count++] = word;
}

static bool is_blank(const char *text) {
  return text[strspn(text, " \t\r\n")] == '\0';
}

static void check_program(const char *text, const struct argp_state *state) {
  if (is_blank(text))
    cli_bad_usage(state, "--program is empty; should be the command line of a program, like build/bench_mine");
}

static void check_command(const char *text, const struct argp_state *state) {
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || is_blank(equals + 1) || equals - text > 199)
    cli_bad_usage(state, "--command is \"%s\"; should be NAME=CMD, like sort=./sort words.txt", text);
}

/* A program says of each of its cases where and how it runs; a command is timed as it is. */
static void check_own(const bench_options *o, const struct argp_state *state) {
  const char *option = o->common.device     ? "--device"
                       : o->cold            ? "--cold"
                       : o->graph           ? "--graph"
                       : o->common.database ? "--db"
                                            : NULL;
  if (option && !bench_has_own_cases(o))
    cli_bad_usage(state,
                  "%s applies to workloads, suites and databases only; a program's cases set where and how they run "
                  "(attune/tools.h), so leave it out",
                  option);
}

static void check_all(const bench_options *o, const struct argp_state *state) {
  if (!o->workloads.count && !o->suites.count && !o->programs.count && !o->commands.count && !o->common.database)
    cli_bad_usage(state, "nothing to time; should be a WORKLOAD, --suite, --program, --command or --db");
  check_own(o, state);
  if (!o->against && (o->reports.junit || o->reports.html))
    cli_bad_usage(state, "this report compares two builds; name the other one with --against, or use `attune compare'");
  const int printed = o->common.json + compare_reports_printed(&o->reports);
  if (printed > 1) cli_bad_usage(state, "%d reports would go to standard output; should be at most one", printed);
  if (o->save && !*o->save) cli_bad_usage(state, "--save is empty; should be the path of a result file");
  if (o->label && strcmp(o->label, "latest") == 0)
    cli_bad_usage(state, "--label is \"latest\", which always means the latest run; should be another word");
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  bench_options *o = state->input;
  switch (key) {
  case CLI_OPTION_SUITE:
    if (!bench_has_suite(argument)) cli_bad_usage(state, "--suite is \"%s\"; should be runtime", argument);
    add_word(&o->suites, argument);
    return 0;
  case CLI_OPTION_PROGRAM:
    check_program(argument, state);
    add_word(&o->programs, argument);
    return 0;
  case CLI_OPTION_COMMAND:
    check_command(argument, state);
    add_word(&o->commands, argument);
    return 0;
  case CLI_OPTION_BUILD: o->build = argument; return 0;
  case CLI_OPTION_AGAINST: o->against = argument; return 0;
  case 'o': o->save = argument; return 0;
  case CLI_OPTION_LABEL: o->label = argument; return 0;
  case CLI_OPTION_ROUNDS: /* this many, for unsure cases too */
    o->rounds = (int)cli_whole("rounds", argument, 1, ROUNDS_MOST, "", state);
    o->looks = 1;
    return 0;
  case CLI_OPTION_SAMPLES: o->samples = (int)cli_whole("samples", argument, 1, SAMPLES_MOST, "", state); return 0;
  case CLI_OPTION_TIME: o->time_s = cli_positive("time", argument, "seconds", 1e9, state); return 0;
  case CLI_OPTION_HANG: o->hang_s = cli_positive("hang", argument, "seconds", 1e9, state); return 0;
  case CLI_OPTION_COLD: o->cold = true; return 0;
  case CLI_OPTION_GRAPH: o->graph = true; return 0;
  case CLI_OPTION_FILTER: o->filter = argument; return 0;
  case CLI_OPTION_LIST: o->list = true; return 0;
  case ARGP_KEY_ARG: add_word(&o->workloads, argument); return 0;
  case ARGP_KEY_END: check_all(o, state); return 0;
  default: return compare_parse(key, argument, state, &o->rule, &o->reports);
  }
}

/* --- the run --- */

typedef struct benching {
  const bench_options *options;
  char *command; /* line */
  bench_side sides[GATE_SIDES];
  int side_count;
  gate_file *file;
  gate_rounds *rounds;
  gate_outcome outcome;
  cli_progress progress;
  double drawn_s;
} benching;

/* Reports a sentence and frees it; NULL: CLI_DONE. */
static int told(char *error, int code) {
  if (!error) return CLI_DONE;
  cli_error("%s", error);
  free(error);
  return code;
}

static void draw(void *user, const gate_step *step) {
  benching *b = user;
  char text[512];
  const double now = cli_now_s();
  if (!b->progress.active || now - b->drawn_s < DRAW_S) return;
  b->drawn_s = now;
  b->progress.total = b->progress.to_measure = step->total;
  snprintf(text, sizeof text, "%s %d of %d: %s", step->look ? "unsure cases, round" : "round", step->round + 1,
           step->rounds, step->name);
  cli_progress_draw(&b->progress, text, step->done, step->done);
}

/* The processes would say so too, but not as plainly. */
static int check_workloads(const bench_options *o) {
  int code = CLI_DONE;
  for (size_t i = 0; code == CLI_DONE && i < o->workloads.count; i++) {
    attune_workload *workload = NULL;
    if (strcmp(o->workloads.at[i], "-") == 0) {
      cli_error("WORKLOAD is -, but every process reads the workload; should be a file");
      return CLI_USAGE;
    }
    const attune_status status = attune_workload_read(&workload, o->workloads.at[i]);
    if (status != ATTUNE_OK) code = cli_fail(status);
    attune_workload_destroy(workload);
  }
  return code;
}

/* Likewise. */
static int check_device(const bench_options *o) {
  attune_device *device = NULL;
  return bench_has_own_cases(o) ? cli_open_device(&device, &o->common) : CLI_DONE;
}

static int make_sides(benching *b, const gate_limits *limits) {
  b->side_count = b->options->against ? 2 : 1;
  for (int i = 0; i < b->side_count; i++) {
    const int code = told(bench_side_make(&b->sides[i], b->options, i, limits), CLI_USAGE);
    if (code != CLI_DONE) return code;
  }
  return CLI_DONE;
}

static gate_schedule schedule_of(const benching *b, const gate_limits *limits) {
  const bench_options *o = b->options;
  gate_schedule s = {.rounds = o->rounds,
                     .samples = o->samples,
                     .samples_least = o->samples < SAMPLES_LEAST ? o->samples : SAMPLES_LEAST,
                     .sample_ns = SAMPLE_NS,
                     .time_s = o->time_s,
                     .case_s = CASE_S,
                     .filter = o->filter,
                     .seed = (uint64_t)gate_now_ns(),
                     .limits = *limits,
                     .file = b->file,
                     .judging = {b->side_count == 2 ? gate_judge : NULL, o->rule, o->looks, PAIR_S, ENOUGH},
                     .tell = draw,
                     .user = (void *)(uintptr_t)b};
  return s;
}

/* The runs are in the file from here on, the base first, since the head names it. */
static int begin_runs(benching *b) {
  for (int i = b->side_count - 1; i >= 0; i--) {
    gate_run *run = &b->sides[i].run;
    bench_side_identify(&b->sides[i], b->options, i, b->command);
    if (i == GATE_HEAD && b->side_count == 2) run->pair = b->sides[GATE_BASE].run.id;
    const int code = b->file ? told(gate_file_begin(b->file, run), CLI_FAILED) : CLI_DONE;
    if (code != CLI_DONE) return code;
  }
  return CLI_DONE;
}

static int end_runs(benching *b) {
  int code = CLI_DONE;
  for (int i = b->side_count - 1; i >= 0 && code == CLI_DONE; i--) {
    gate_run *run = &b->sides[i].run;
    run->state = b->outcome.interrupted ? GATE_RUN_INTERRUPTED : GATE_RUN_COMPLETE;
    run->ended = (int64_t)time(NULL);
    if (b->file) code = told(gate_file_end(b->file, run->id, run->state), CLI_FAILED);
  }
  return code;
}

static int no_cases(const benching *b, bool lacks) {
  if (lacks) {
    cli_error("so the head has no cases at all; should be a build that has some of them");
    return CLI_USAGE;
  }
  cli_error("there are no cases%s%s%s", b->options->filter ? " whose name contains \"" : " to time",
            b->options->filter ? b->options->filter : "",
            b->options->filter ? "\"; --list without --filter prints all" : "");
  return CLI_USAGE;
}

/* Where only one build has cases this is a project's first benchmark, or its last; where both have some, and none is
 * shared, it is a mistake, and a green one. */
static int check_common(const benching *b) {
  const gate_run *head = &b->sides[GATE_HEAD].run, *base = &b->sides[GATE_BASE].run;
  if (b->side_count < 2 || !base->case_count) return CLI_DONE;
  for (size_t i = 0; i < head->case_count; i++)
    if (gate_run_find(base, &head->cases[i])) return CLI_DONE;
  cli_error("the builds have no case in common (the base has \"%s\", the head \"%s\"); should share cases with the "
            "same name, device and mode",
            base->cases[0].name, head->cases[0].name);
  return CLI_USAGE;
}

static int measure(benching *b) {
  const double start_s = cli_now_s();
  int code = begin_runs(b);
  if (code != CLI_DONE) return code;
  cli_progress_begin(&b->progress, 0, 0);
  code = told(gate_rounds_run(b->rounds, &b->outcome), CLI_FAILED);
  cli_progress_clear(&b->progress);
  (void)alarm(0); /* what is left takes no time */
  if (code == CLI_DONE) code = end_runs(b);
  if (code != CLI_DONE) return code;
  const bench_report report = {b->options, &b->outcome, &b->sides[GATE_HEAD],
                               b->side_count == 2 ? &b->sides[GATE_BASE] : NULL, cli_now_s() - start_s};
  code = bench_report_print(&report);
  return cli_interrupted ? 128 + cli_interrupted : code;
}

static int open_results(benching *b) {
  char *error = gate_file_open(&b->file, b->options->save, true);
  return told(error, errno == ENOSPC ? CLI_FAILED : CLI_USAGE);
}

static int run(benching *b) {
  const gate_limits limits = {b->options->hang_s, &cli_interrupted};
  int code = check_workloads(b->options);
  if (code == CLI_DONE) code = check_device(b->options);
  if (code == CLI_DONE) code = compare_check(&b->options->reports); /* not after minutes */
  if (code == CLI_DONE) code = make_sides(b, &limits);
  if (code == CLI_DONE && b->options->save && !b->options->list) code = open_results(b);
  if (code != CLI_DONE) return code;
  cli_catch_signals();
  const gate_schedule schedule = schedule_of(b, &limits);
  gate_rounds_side sides[GATE_SIDES];
  for (int i = 0; i < b->side_count; i++) sides[i] = b->sides[i].side;
  b->rounds = gate_rounds_create(&schedule, sides, b->side_count);
  char *error = gate_rounds_list(b->rounds);
  if (cli_interrupted) {
    free(error);
    return 128 + cli_interrupted;
  }
  code = told(error, CLI_USAGE);
  if (code != CLI_DONE) return code;
  bool lacks[GATE_SIDES] = {false, false};
  for (int i = 0; i < b->side_count; i++) lacks[i] = bench_side_lacks(&b->sides[i], i == GATE_BASE ? "base" : "head");
  if (!b->sides[GATE_HEAD].run.case_count) return no_cases(b, lacks[GATE_HEAD]);
  if (b->options->list) return bench_list_print(&b->sides[GATE_HEAD], b->options);
  code = check_common(b);
  return code == CLI_DONE ? measure(b) : code;
}

static void release(benching *b) {
  gate_outcome_free(&b->outcome);
  gate_rounds_destroy(b->rounds);
  for (int i = 0; i < b->side_count; i++) bench_side_free(&b->sides[i]);
  gate_file_close(b->file);
  free(b->command);
}

/* "attune bench sums.csv", as it was given. */
static char *command_line(int argc, char **argv) {
  char *line = gate_copy("");
  for (int i = 0; i < argc; i++) {
    char *longer = gate_say("%s%s%s", line, *line ? " " : "", argv[i]);
    free(line);
    line = longer;
  }
  return line;
}

int cmd_bench(int argc, char **argv) {
  int fd = -1;
  const bool worker = bench_is_worker(&argc, argv, &fd);
  bench_options o = {
      .rounds = ROUNDS, .looks = GATE_LOOKS, .samples = SAMPLES, .hang_s = HANG_S, .rule = gate_rule_default};
  bench_words *const words[] = {&o.workloads, &o.suites, &o.programs, &o.commands};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    words[i]->at = cli_alloc((size_t)argc + 1, sizeof(char *));
  benching b = {.options = &o, .command = command_line(argc, argv)};
  int code = cli_parse("bench", argc, argv, &o.common, parse, &o) == 0 ? CLI_DONE : CLI_USAGE;
  if (code == CLI_DONE && !worker) code = cli_need_database(o.common.database);
  if (code == CLI_DONE) code = worker ? bench_serve(&o, fd) : run(&b);
  release(&b);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) free(words[i]->at);
  return code;
}
