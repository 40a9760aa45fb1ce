/* SPDX-License-Identifier: Apache-2.0
 * commands.c: the table of commands and options, and the argp parsers that are made of it. */
#include "tuning/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#define DB \
  { "db", 'b', "FILE", CLI_FILE, "The tuning database (ATTUNE_DB, else the user's own); :memory: stores nothing" }
#define DEVICE \
  { "device", 'd', "NAME", CLI_DEVICE, "host, cuda or cuda:N (the first cuda device, else the host)" }
#define JSON \
  { "json", 'j', NULL, CLI_NO_VALUE, "Print JSON, for programs; times are in nanoseconds" }
#define WIDE \
  { "wide", CLI_OPTION_WIDE, NULL, CLI_NO_VALUE, "Print every column whole, however narrow the terminal is" }
#define END \
  { NULL, 0, NULL, CLI_NO_VALUE, NULL }

static const cli_option devices_options[] = {
    {"problem", 'p', "PROBLEM", CLI_ANY, "Also list the implementations that can do this problem"},
    {"watch", CLI_OPTION_WATCH, NULL, CLI_NO_VALUE,
     "Print how busy, warm and hungry each device is, a line each time, until Ctrl-C; with --json an object each"},
    {"interval", CLI_OPTION_INTERVAL, "SECONDS", CLI_ANY, "Between two looks of --watch (1)"},
    {"rounds", CLI_OPTION_ROUNDS_OF_WATCH, "N", CLI_ANY, "End --watch after N looks"},
    JSON,
    WIDE,
    END};

static const cli_option tune_options[] = {
    DB,
    DEVICE,
    {"budget", 's', "SECONDS", CLI_ANY,
     "Tune for at most this long in all: first a look at each problem, the cheapest first, then rounds by calls x "
     "time"},
    {"problem-budget", CLI_OPTION_PROBLEM_BUDGET, "MS", CLI_ANY,
     "Tune one problem for at most this long (ATTUNE_BUDGET_MS, else 190 ms, on the host 420 ms, plus 400 calls of the "
     "default)"},
    {"force", 'f', NULL, CLI_NO_VALUE, "Measure again what is stored; stronger evidence stays"},
    JSON,
    WIDE,
    END};

static const cli_option show_options[] = {
    DB,
    {"device", 'd', "NAME", CLI_DEVICE, "Only winners that hold on host, cuda or cuda:N (else on any device)"},
    {"all", 'a', NULL, CLI_NO_VALUE,
     "Also show winners measured on other machines, drivers or libraries, which do not hold here"},
    JSON,
    WIDE,
    END};

static const cli_option explain_options[] = {DB,
                                             DEVICE,
                                             {"trials", CLI_OPTION_TRIALS, NULL, CLI_NO_VALUE,
                                              "Also list what was measured beside the winner, the fastest first"},
                                             JSON,
                                             WIDE,
                                             END};

static const cli_option verify_options[] = {
    DB,
    DEVICE,
    {"sample", 'n', "N", CLI_ANY, "Time N of the winners, others each time (20; 0 for all)"},
    {"budget", 's', "SECONDS", CLI_ANY, "Begin no measurement after this long"},
    JSON,
    WIDE,
    END};

static const cli_option warm_options[] = {DB, DEVICE, JSON, WIDE, END};

static const cli_option eval_options[] = {
    {"shape", CLI_OPTION_SHAPE, "SIZES", CLI_ANY, "The shape of the outputs, 4096x4096; needed"},
    {"dtype", CLI_OPTION_DTYPE, "TYPE", CLI_ANY, "The element type of inputs that name none (f32)"},
    {"inputs", CLI_OPTION_INPUTS, "WORDS", CLI_ANY,
     "Inputs that are not of --dtype, --shape and packed: \"bias::4096 x:f32:64x8:1x64\": name, type, shape, strides"},
    {"outputs", CLI_OPTION_OUTPUTS, "WORDS", CLI_ANY,
     "For each output a type and strides, \"bf16:1x4096\", or @ and the input whose memory it is, \"@x\""},
    {"scalars", CLI_OPTION_SCALARS, "WORDS", CLI_ANY, "Scalars with their kinds and values, \"alpha=0.5 n:i64=3\""},
    {"contract", CLI_OPTION_CONTRACT, "ACCURACY", CLI_ANY, "strict, equivalent or reduced (strict)"},
    {"sample", 'n', "N", CLI_ANY, "Check N elements (65536; 0 for all)"},
    {"print", CLI_OPTION_PRINT, "N", CLI_ANY, "Print the first N elements (4)"},
    {"seed", CLI_OPTION_SEED, "N", CLI_ANY, "Of the random operands, and of rand() and randn() (1)"},
    {"no-tune", CLI_OPTION_NO_TUNE, NULL, CLI_NO_VALUE, "Run the stored winner or the default; measure no candidates"},
    DB,
    DEVICE,
    {"budget", 's', "SECONDS", CLI_ANY, "Tune for at most this long (ATTUNE_BUDGET_MS, else as long as it takes)"},
    JSON,
    WIDE,
    END};

/* Of verdicts, and where they are written. */
/* clang-format off */
#define VERDICTS \
    {"threshold", CLI_OPTION_THRESHOLD, "PERCENT", CLI_ANY, \
     "The least change that counts (1); TEXT=PERCENT: of cases whose name holds TEXT, may be repeated"}, \
    {"alpha", CLI_OPTION_ALPHA, "P", CLI_ANY, \
     "The chance of any wrong slower or faster in a comparison where nothing changed (0.002)"}
#define REPORTS \
    {"markdown", CLI_OPTION_MARKDOWN, "FILE", CLI_FILE, \
     "Write the table as Markdown, for a pull request; -, here and below: to standard output, in place of the table"}, \
    {"junit", CLI_OPTION_JUNIT, "FILE", CLI_FILE, \
     "Write the comparison as JUnit XML, a test a case, for continuous integration; bench: with --against only"}, \
    {"html", CLI_OPTION_HTML, "FILE", CLI_FILE, \
     "Write the comparison as one page for a browser, with every sample and the history; bench: with --against only"}
/* clang-format on */

static const cli_option bench_options[] = {
    {"suite", CLI_OPTION_SUITE, "NAME", CLI_ANY, "Also time the cases of a suite of attune's own; there is: runtime"},
    {"program", CLI_OPTION_PROGRAM, "CMD", CLI_FILE,
     "Also time the cases of a program that registers them by attune/bench.h; may be repeated"},
    {"command", CLI_OPTION_COMMAND, "NAME=CMD", CLI_ANY,
     "Also time a command line, from its start to its end; may be repeated"},
    {"build", CLI_OPTION_BUILD, "DIR", CLI_FILE, "The build to time: DIR/attune does it, and {build} in CMD is DIR"},
    {"against", CLI_OPTION_AGAINST, "DIR", CLI_FILE,
     "Time this build too, in turns with the other, and tell what became slower; exit code 1 if something did"},
    {"save", 'o', "FILE", CLI_FILE, "Append every sample to this result file"},
    {"label", CLI_OPTION_LABEL, "WORD", CLI_ANY, "A name for the run in the result file"},
    {"rounds", CLI_OPTION_ROUNDS, "N", CLI_ANY,
     "Rounds, each with fresh processes (24); with --against unsure cases get more"},
    {"samples", CLI_OPTION_SAMPLES, "N", CLI_ANY,
     "Samples of a case in a round, of a quarter of a millisecond each (32)"},
    {"hang", CLI_OPTION_HANG, "SECONDS", CLI_ANY, "Without an answer for so long a case has failed (120)"},
    {"time", CLI_OPTION_TIME, "SECONDS", CLI_ANY, "Begin nothing after this long, but time each case once"},
    {"cold", CLI_OPTION_COLD, NULL, CLI_NO_VALUE, "Time the problems of workloads with empty caches"},
    {"graph", CLI_OPTION_GRAPH, NULL, CLI_NO_VALUE, "Time the problems of workloads in a graph"},
    {"filter", CLI_OPTION_FILTER, "TEXT", CLI_ANY, "Only cases whose name holds TEXT"},
    {"list", CLI_OPTION_LIST, NULL, CLI_NO_VALUE, "Print the cases, and time nothing"},
    VERDICTS,
    REPORTS,
    DB,
    DEVICE,
    JSON,
    WIDE,
    END};

static const cli_option compare_options[] = {VERDICTS,
                                             {"allow-different", CLI_OPTION_ALLOW_DIFFERENT, NULL, CLI_NO_VALUE,
                                              "Compare runs of different machines or software all the same"},
                                             REPORTS,
                                             JSON,
                                             WIDE,
                                             END};

static const cli_option history_options[] = {
    {"results", CLI_OPTION_RESULTS, "FILE", CLI_FILE, "The result file that `attune bench --save' wrote; needed"},
    JSON,
    END};

static const cli_option completion_options[] = {END};

const cli_command cli_commands[] = {
    {"devices", "", CLI_NO_VALUE, "what is here and what it can do",
     "Shows the devices of this machine and what they can do.", NULL, devices_options, cmd_devices},
    {"tune", "WORKLOAD", CLI_FILE, "measure, verify and store the winners of a workload",
     "Measures, verifies and stores the winner of every problem of WORKLOAD that has none yet.",
     "WORKLOAD is a CSV file, - for standard input, or the word recorded: the problems that programs met with "
     "ATTUNE_MODE=record, those first whose calls take longest in all. Each winner is stored at once; the same command "
     "resumes an interrupted run and measures only what is left.",
     tune_options, cmd_tune},
    {"show", "", CLI_NO_VALUE, "the stored winners", "Shows the stored winners: what runs, how fast, and by how much.",
     NULL, show_options, cmd_show},
    {"explain", "PROBLEM", CLI_ANY, "which candidate runs for a problem, and why",
     "Says which candidate runs for PROBLEM, since when and by what margin. Measures nothing.",
     "PROBLEM is written as `attune show' prints it, as one argument or as words: gemm bf16 tn 4096x16x4096 strict. "
     "Without an accuracy it is strict. With the word row-major at the end, sizes, transposes and strides are those of "
     "a row-major problem.",
     explain_options, cmd_explain},
    {"verify", "", CLI_NO_VALUE, "time stored winners again: do they still hold?",
     "Times a sample of the stored winners again, beside the default, and verifies their numbers.",
     "A winner does not hold if it is over 1 % slower than the default or gains over 3 % less than was stored, in both "
     "cases beyond the noise, or if its numbers are wrong. Exit code 1: some do not hold.",
     verify_options, cmd_verify},
    {"warm", "[FILE]", CLI_FILE, "compile the kernels that the stored winners need here",
     "Compiles into the kernel cache what the winners of a tuning database need on this machine, so that programs wait "
     "for "
     "no compiler.",
     "FILE is the tuning database, as --db names it. Winners that hold here are looked at; those whose code a library "
     "has "
     "need nothing. Exit code 1: a kernel does not compile or cannot be kept.",
     warm_options, cmd_warm},
    {"eval", "EXPRESSION", CLI_ANY, "run, check and time one elementwise expression",
     "Tunes EXPRESSION if it has no winner yet, runs it on random operands, checks the results and tells its bandwidth "
     "beside that of a copy.",
     "EXPRESSION is one argument, as docs/expressions.md has it. Its names are inputs, unless --scalars lists them. "
     "Exit code 1: the results are wrong. Examples:\n"
     "  attune eval 'gelu(a + b) * b' --shape 4096x4096 --dtype bf16\n"
     "  attune eval 's * x + b' --shape 64x1024 --inputs b::1024 --scalars s=0.5",
     eval_options, cmd_eval},
    {"bench", "[WORKLOAD...]", CLI_FILE, "time a suite, alone or in turns with another build",
     "Times problems, programs and commands in many fresh processes, and keeps every sample.",
     "WORKLOAD is a CSV file of problems: what is timed is what a program's calls would run. Without a workload --db "
     "names a "
     "database whose stored winners are timed. Exit code 1: a case failed, or became slower than that of --against. "
     "Examples:\n"
     "  attune bench problems.csv --save results.db --label nightly\n"
     "  attune bench --program '{build}/mine' --build new --against old --save results.db\n"
     "  attune bench --command 'sort=sort words.txt'",
     bench_options, cmd_bench},
    {"compare", "BASE HEAD", CLI_FILE, "which cases became slower, surely",
     "Tells which cases of HEAD are slower than those of BASE: same, faster, slower, or unsure where noise hides it.",
     "BASE and HEAD are runs that `attune bench --save' wrote: FILE is the latest of a file, FILE:RUN the one of that "
     "number, label or revision. One FILE alone: its latest pair, of `attune bench --against'. Two tuning databases: "
     "their winners, problem by problem, by the times and spreads that are stored. Exit code 1: a case is slower, or "
     "fails now; 2: wrong usage, or what cannot be read or compared.",
     compare_options, cmd_compare},
    {"history", "CASE", CLI_ANY, "a case over many runs, and where its time changed",
     "Draws the time of CASE over the runs of a result file, and tells at which of them it changed.",
     "CASE is a name, or a part that only one case has. Runs of other machines or software than the latest are left "
     "out.",
     history_options, cmd_history},
    {"completion", "SHELL", CLI_SHELL, "a script that completes this command in bash or zsh",
     "Prints a script that completes the words of this command in SHELL, bash or zsh.",
     "For the current shell: source <(attune completion bash)", completion_options, cmd_completion},
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

const cli_command *cli_command_find(const char *name) {
  for (size_t i = 0; i < cli_command_count; i++)
    if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
  return NULL;
}

const struct argp_option cli_help_option = {NULL, 'h', NULL, 0, "The same as --help", -1};

bool cli_help(int key, const struct argp_state *state) {
  if (key != cli_help_option.key) return false;
  argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
  return true;
}

typedef struct reading {
  cli_options *common;
  argp_parser_t parse;
  void *input;
} reading;

/* Under argp, so that its own keys reach the command's parser with the command's own input. */
static error_t parse_key(int key, char *argument, struct argp_state *state) {
  reading *r = state->input;
  if (cli_help(key, state)) return 0;
  switch (key) {
  case 'j': r->common->json = true; return 0;
  case 'b': r->common->database = argument; return 0;
  case 'd': r->common->device = argument; return 0;
  case CLI_OPTION_WIDE: r->common->wide = true; return 0;
  default: break;
  }
  state->input = r->input;
  const error_t error = r->parse(key, argument, state);
  state->input = r;
  return error;
}

/* Is `word`, up to its '=', the one option of the command that it can mean, and does that take a value? */
static bool takes_value(const cli_command *command, const char *word, size_t chars) {
  int meant = 0, exact = 0;
  for (size_t i = 0; command && command->options[i].name; i++) {
    const char *name = command->options[i].name;
    if (!command->options[i].label || strncmp(name, word, chars) != 0) continue;
    meant++;
    exact += strlen(name) == chars;
  }
  return exact == 1 || meant == 1;
}

/* The C library prints an option that it does not know as it is: it gets it escaped, and does not know that either. */
void cli_clean_options(int argc, char **argv, const cli_command *command) {
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (argv[i][0] != '-' && !command) return; /* the command's name: the rest is its own */
    const char *value = strchr(argv[i], '=');
    if (argv[i][0] != '-') continue;
    if (value && strncmp(argv[i], "--", 2) == 0 && takes_value(command, argv[i] + 2, (size_t)(value - argv[i] - 2)))
      continue;
    argv[i] = cli_clean(argv[i]); /* lives as long as the process */
  }
}

int cli_parse(const char *name, int argc, char **argv, cli_options *common, argp_parser_t parse, void *input) {
  const cli_command *command = cli_command_find(name);
  size_t count = 0;
  cli_clean_options(argc, argv, command);
  while (command->options[count].name) count++;
  struct argp_option *options = cli_alloc(count + 2, sizeof *options);
  for (size_t i = 0; i < count; i++)
    options[i] = (struct argp_option){
        command->options[i].name, command->options[i].key, command->options[i].label, 0, command->options[i].help, 0};
  options[count] = cli_help_option;
  char doc[1024];
  snprintf(doc, sizeof doc, "%s%s%s", command->purpose, command->details ? "\v" : "",
           command->details ? command->details : "");
  const struct argp argp = {options, parse_key, command->argument, doc, NULL, NULL, NULL};
  reading r = {common, parse, input};
  const error_t error = argp_parse(&argp, argc, argv, 0, NULL, &r);
  free(options);
  return error;
}
