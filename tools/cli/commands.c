/* SPDX-License-Identifier: Apache-2.0
 * commands.c: the table of commands and options, and the argp parsers that are made of it. */
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#define DB \
  { "db", 'b', "FILE", CLI_FILE, "Tuning database (default: ATTUNE_DB, else the user's own); :memory: stores nothing" }
#define DEVICE \
  { "device", 'd', "NAME", CLI_DEVICE, "Device: host, cuda or cuda:N (default: the first GPU, else the host)" }
#define JSON \
  { "json", 'j', NULL, CLI_NO_VALUE, "Print JSON for programs; times are in nanoseconds" }
#define WIDE \
  { "wide", CLI_OPTION_WIDE, NULL, CLI_NO_VALUE, "Print every column in full, even on a terminal that is too narrow" }
#define END \
  { NULL, 0, NULL, CLI_NO_VALUE, NULL }

static const cli_option devices_options[] = {
    {"problem", 'p', "PROBLEM", CLI_ANY, "Also list the implementations that can run this problem"},
    {"watch", CLI_OPTION_WATCH, NULL, CLI_NO_VALUE,
     "Print each device's utilization, temperature and power every second until Ctrl-C"},
    {"interval", CLI_OPTION_INTERVAL, "SECONDS", CLI_ANY, "Time between two lines of --watch (default: 1)"},
    {"rounds", CLI_OPTION_ROUNDS_OF_WATCH, "N", CLI_ANY, "End --watch after N lines for each device"},
    JSON,
    WIDE,
    END};

static const cli_option tune_options[] = {
    DB,
    DEVICE,
    {"budget", 's', "SECONDS", CLI_ANY,
     "Total time for tuning (default: no limit): first a short search for each problem, the cheapest first, then "
     "longer ones in the order of calls x time"},
    {"problem-budget", CLI_OPTION_PROBLEM_BUDGET, "MS", CLI_ANY,
     "Time for tuning one problem (default: ATTUNE_BUDGET_MS, else 190 ms, on the host 420 ms, plus the time of 400 "
     "default calls)"},
    {"force", 'f', NULL, CLI_NO_VALUE, "Measure stored winners again; a stored winner with stronger evidence is kept"},
    JSON,
    WIDE,
    END};

static const cli_option show_options[] = {
    DB,
    {"device", 'd', "NAME", CLI_DEVICE,
     "Show only winners that are valid on host, cuda or cuda:N (default: on any device)"},
    {"all", 'a', NULL, CLI_NO_VALUE,
     "Also show winners that are not valid here: measured on another machine, driver or library version, or with "
     "another number of CPU threads"},
    {"recorded", CLI_OPTION_RECORDED, NULL, CLI_NO_VALUE,
     "Show the problems that programs recorded with ATTUNE_MODE=record, with their numbers of calls and their winners"},
    {"csv", CLI_OPTION_CSV, NULL, CLI_NO_VALUE, "Print CSV for spreadsheets; times are in nanoseconds"},
    JSON,
    WIDE,
    END};

static const cli_option explain_options[] = {
    DB,
    DEVICE,
    {"trials", CLI_OPTION_TRIALS, NULL, CLI_NO_VALUE,
     "Also list the candidates that raced, fastest first; `candidates` also counts those that screening dropped"},
    JSON,
    WIDE,
    END};

static const cli_option verify_options[] = {
    DB,
    DEVICE,
    {"sample", 'n', "N", CLI_ANY, "Number of winners to time, different ones in each run (default: 20; 0: all)"},
    {"budget", 's', "SECONDS", CLI_ANY, "Start no new measurement after this long (default: no limit)"},
    JSON,
    WIDE,
    END};

static const cli_option warm_options[] = {DB, DEVICE, JSON, WIDE, END};

static const cli_option eval_options[] = {
    {"shape", CLI_OPTION_SHAPE, "SIZES", CLI_ANY, "Shape of the outputs, such as 4096x4096; required"},
    {"dtype", CLI_OPTION_DTYPE, "TYPE", CLI_DTYPE, "Element type of inputs that have none of their own (default: f32)"},
    {"inputs", CLI_OPTION_INPUTS, "WORDS", CLI_ANY,
     "Inputs whose type, shape or strides differ from --dtype, --shape and packed: \"bias::4096 x:f32:64x8:1x64\""},
    {"outputs", CLI_OPTION_OUTPUTS, "WORDS", CLI_ANY,
     "Type and strides of each output, \"bf16:1x4096\", or \"@x\" for one that overwrites the input x"},
    {"scalars", CLI_OPTION_SCALARS, "WORDS", CLI_ANY, "Names, kinds and values of scalars: \"alpha=0.5 n:i64=3\""},
    {"contract", CLI_OPTION_CONTRACT, "ACCURACY", CLI_CONTRACT,
     "Accuracy: strict, equivalent or reduced (default: strict)"},
    {"sample", 'n', "N", CLI_ANY, "Number of elements to check (default: 65536; 0: all)"},
    {"print", CLI_OPTION_PRINT, "N", CLI_ANY, "Number of elements to print (default: 4)"},
    {"seed", CLI_OPTION_SEED, "N", CLI_ANY, "Seed of the random operands and of rand() and randn() (default: 1)"},
    {"no-tune", CLI_OPTION_NO_TUNE, NULL, CLI_NO_VALUE, "Run the stored winner, or the default, without tuning"},
    DB,
    DEVICE,
    {"budget", 's', "SECONDS", CLI_ANY, "Time for tuning (default: ATTUNE_BUDGET_MS, else as long as it takes)"},
    JSON,
    WIDE,
    END};

/* How cases are judged, and which reports are written. */
/* clang-format off */
#define VERDICTS \
    {"threshold", CLI_OPTION_THRESHOLD, "PERCENT", CLI_ANY, \
     "Smallest change that counts (default: 1); TEXT=PERCENT sets it for cases whose name contains TEXT; may be " \
     "repeated"}, \
    {"alpha", CLI_OPTION_ALPHA, "P", CLI_ANY, \
     "Probability of any false alarm when two equal builds are compared (default: 0.002)"}
#define REPORTS \
    {"markdown", CLI_OPTION_MARKDOWN, "FILE", CLI_FILE, \
     "Write the table as Markdown, for a pull request; here and below, - writes to standard output in place of the " \
     "table"}, \
    {"junit", CLI_OPTION_JUNIT, "FILE", CLI_FILE, \
     "Write the comparison as JUnit XML, one test per case, for continuous integration; bench needs --against for " \
     "it"}, \
    {"html", CLI_OPTION_HTML, "FILE", CLI_FILE, \
     "Write the comparison as an HTML page with every sample and the history; bench needs --against for it"}, \
    {"export", CLI_OPTION_EXPORT, "FORMAT=FILE", CLI_EXPORT, \
     "Write the run (of two, the head) for another program; FORMAT: bmf (Bencher), github " \
     "(github-action-benchmark), google (Google Benchmark's JSON) or otava (CSV for Apache Otava); may be repeated"}
/* clang-format on */

static const cli_option bench_options[] = {
    {"suite", CLI_OPTION_SUITE, "NAME", CLI_SUITE, "Also time a built-in suite; the only one is runtime"},
    {"program", CLI_OPTION_PROGRAM, "CMD", CLI_FILE,
     "Also time the cases that a program registers with attune/tools.h; may be repeated"},
    {"command", CLI_OPTION_COMMAND, "NAME=CMD", CLI_ANY, "Also time a whole command line; may be repeated"},
    {"build", CLI_OPTION_BUILD, "DIR", CLI_FILE,
     "Build to time: runs DIR/attune, and replaces {build} in CMD with DIR (default: this attune)"},
    {"against", CLI_OPTION_AGAINST, "DIR", CLI_FILE,
     "Also time this build, alternating with the other, and report what became slower"},
    {"save", 'o', "FILE", CLI_FILE, "Append every sample to this result file"},
    {"label", CLI_OPTION_LABEL, "WORD", CLI_ANY, "Name of the run in the result file"},
    {"rounds", CLI_OPTION_ROUNDS, "N", CLI_ANY,
     "Number of rounds, each in fresh processes; also for cases that stay unsure (default: 24; with --against, unsure "
     "cases "
     "get up to 192)"},
    {"samples", CLI_OPTION_SAMPLES, "N", CLI_ANY,
     "Number of samples per case and round, each a quarter of a millisecond (default: 32)"},
    {"hang", CLI_OPTION_HANG, "SECONDS", CLI_ANY,
     "A case that does not answer for this long has failed (default: 120)"},
    {"time", CLI_OPTION_TIME, "SECONDS", CLI_ANY,
     "Start nothing new after this long, but time each case at least once (default: no limit)"},
    {"cold", CLI_OPTION_COLD, NULL, CLI_NO_VALUE, "Time the problems of workloads with cold caches"},
    {"graph", CLI_OPTION_GRAPH, NULL, CLI_NO_VALUE, "Time the problems of workloads inside a graph"},
    {"filter", CLI_OPTION_FILTER, "TEXT", CLI_ANY, "Only cases whose name contains TEXT"},
    {"list", CLI_OPTION_LIST, NULL, CLI_NO_VALUE, "List the cases without timing them"},
    VERDICTS,
    REPORTS,
    DB,
    DEVICE,
    JSON,
    WIDE,
    END};

static const cli_option compare_options[] = {VERDICTS,
                                             {"allow-different", CLI_OPTION_ALLOW_DIFFERENT, NULL, CLI_NO_VALUE,
                                              "Compare runs even if their machines or software differ"},
                                             REPORTS,
                                             JSON,
                                             WIDE,
                                             END};

static const cli_option history_options[] = {
    {"results", CLI_OPTION_RESULTS, "FILE", CLI_FILE, "Result file written by `attune bench --save'; required"},
    JSON,
    END};

static const cli_option no_options[] = {END};
static const cli_option export_options[] = {
    {"format", CLI_OPTION_FORMAT, "FORMAT", CLI_FORMAT,
     "bmf (Bencher Metric Format), github (github-action-benchmark, customSmallerIsBetter), google (Google Benchmark's "
     "JSON) or otava (CSV for Apache Otava, one row per run); required"},
    {"output", 'o', "FILE", CLI_FILE, "File to write (default: -, standard output)"},
    {"filter", CLI_OPTION_FILTER, "TEXT", CLI_ANY, "Only cases whose name contains TEXT"},
    END};

static const cli_option import_options[] = {
    {"save", 'o', "FILE", CLI_FILE, "Append the run to this result file; required"},
    {"label", CLI_OPTION_LABEL, "WORD", CLI_ANY, "Name of the run in the result file"},
    JSON,
    END};

const cli_command cli_commands[] = {
    {"devices", "", CLI_NO_VALUE, "the devices here, and what they can run",
     "Lists the devices of this machine, their libraries and what they can run.", NULL, NULL,
     "attune devices --problem 'gemm f32 nn 64x64x64 strict'", devices_options, cmd_devices},
    {"tune", "WORKLOAD", CLI_WORKLOAD, "measure, verify and store the winners of a workload",
     "Finds the fastest implementation of every problem of WORKLOAD, verifies it and stores it.",
     "WORKLOAD is a CSV file, - for standard input, or the word recorded: the problems that programs recorded with "
     "ATTUNE_MODE=record, starting with those whose calls take the most time in total. Problems that already have a "
     "winner are skipped. Each winner is stored at once, so the same command resumes an interrupted run.",
     "a problem could not be tuned", "attune tune llama.csv --db llama.db --budget 60", tune_options, cmd_tune},
    {"show", "[WORKLOAD]", CLI_WORKLOAD, "the stored winners",
     "Shows the stored winners: what runs, how fast, and how much faster than the default.",
     "With WORKLOAD, a CSV file or - for standard input, shows the problems of that file on one device, under the "
     "names that it gives them, whether or not they have a winner. Having nothing to show is not an error. \"> 1.2x "
     "?\" marks an unsure winner: noise left the exact speedup open, but it is at least this large (three standard "
     "errors). The last line has the geometric mean of the speedups, and the mean weighted by calls x time where the "
     "number of calls is known, from the column count or from programs' records.",
     NULL, "attune show llama.csv --db llama.db", show_options, cmd_show},
    {"explain", "PROBLEM", CLI_ANY, "which implementation runs for a problem, and why",
     "Reports which implementation runs for PROBLEM, since when, and how much faster it is. Measures nothing.",
     "PROBLEM is written as `attune show' prints it, as one argument or as words. Without an accuracy it is strict. "
     "With row-major at the end, the sizes, transposes and strides are those of a row-major problem.",
     NULL, "attune explain gemm bf16 tn 4096x16x4096 strict", explain_options, cmd_explain},
    {"verify", "", CLI_NO_VALUE, "check that stored winners are still faster and right",
     "Times a sample of the stored winners again, alternating with the default, and checks their results.",
     "A winner no longer holds if, beyond the noise, it is more than 1 % slower than the default or its gain is more "
     "than 3 % below the stored one, or if its results are wrong.",
     "a winner no longer holds", "attune verify --db llama.db --sample 0", verify_options, cmd_verify},
    {"warm", "[FILE]", CLI_FILE, "compile the kernels that the stored winners need here",
     "Compiles the kernels that the winners of a tuning database need on this machine into the kernel cache, so that "
     "programs do not wait for the compiler.",
     "FILE is the tuning database, as with --db. Winners that are not valid here are left out; those that call a "
     "library need no kernel.",
     "a kernel does not compile or cannot be stored", "attune warm llama.db", warm_options, cmd_warm},
    {"eval", "EXPRESSION", CLI_ANY, "run, check and time one elementwise expression",
     "Tunes EXPRESSION if it has no winner yet, runs it on random operands, checks the results, and compares its "
     "bandwidth with that of a copy.",
     "EXPRESSION is one argument, in the language of docs/expressions.md. Its names are inputs unless --scalars lists "
     "them.",
     "the results are wrong",
     "attune eval 'gelu(a + b) * b' --shape 4096x4096 --dtype bf16\n"
     "  attune eval 's * x + b' --shape 64x1024 --inputs b::1024 --scalars s=0.5",
     eval_options, cmd_eval},
    {"bench", "[WORKLOAD...]", CLI_FILE, "time problems and programs, or compare two builds",
     "Times problems, programs and commands in many fresh processes, and can save every sample.",
     "WORKLOAD is a CSV file of problems; each is timed as a program's call would run it. Without a workload, --db "
     "times the stored winners of a database.",
     "a case failed, or became slower than in the build of --against",
     "attune bench problems.csv --save results.db --label nightly\n"
     "  attune bench --program '{build}/mine' --build new --against old\n"
     "  attune bench --command 'sort=sort words.txt'",
     bench_options, cmd_bench},
    {"compare", "BASE HEAD", CLI_FILE, "which cases became slower, beyond doubt",
     "Reports for each case whether HEAD is slower than BASE: same, faster, slower, or unsure where noise hides it.",
     "BASE and HEAD are runs saved by `attune bench --save': FILE is the latest run of a file, FILE:RUN the one with "
     "that number, label or revision. Either may be JSON of Google Benchmark or Criterion.rs, as `attune import' reads "
     "it. A single FILE stands for its latest pair of runs of `attune bench --against'. Two tuning databases are "
     "compared winner by winner, by the stored times and spreads.",
     "a case is slower, or fails only in HEAD", "attune compare results.db:nightly results.db --markdown report.md",
     compare_options, cmd_compare},
    {"history", "CASE", CLI_ANY, "the time of a case over many runs, and where it changed",
     "Draws the time of CASE over the runs of a result file, and reports in which run it changed.",
     "CASE is the name of a case, or a part of it that no other case has. Runs on other machines or with other "
     "software than the latest are left out.",
     NULL, "attune history sort --results results.db", history_options, cmd_history},
    {"export", "RUN", CLI_FILE, "a stored run in the format of another program",
     "Converts a run that `attune bench --save' stored for a program that keeps or plots benchmarks.",
     "RUN is FILE, for the latest run of a result file, or FILE:WORD, where WORD is a number, label or revision. FILE "
     "may also be JSON that `attune import' reads. otava has a row for this run and for each earlier one of the same "
     "machine that has all of its cases.",
     NULL, "attune export results.db:nightly --format bmf --output bmf.json", export_options, cmd_export},
    {"import", "FILE...", CLI_FILE, "runs of Google Benchmark or Criterion.rs as a result",
     "Stores another program's measurements as a run, for `attune compare', `attune history' and `attune export'.",
     "FILE is JSON of Google Benchmark, JSON messages of cargo criterion, or a sample.json of Criterion.rs. Several "
     "files become one run, which a verdict needs: each should come from its own process of one build. `attune "
     "compare' also reads such files directly.",
     NULL, "attune import run1.json run2.json run3.json --save results.db", import_options, cmd_import},
    {"completion", "SHELL", CLI_SHELL, "a script for tab completion in bash, zsh or fish",
     "Prints a script for tab completion of this command in SHELL: bash, zsh or fish.",
     "The installed scripts are already where these shells look for them; the example is for the current shell only. "
     "In fish: attune completion fish | source.",
     NULL, "source <(attune completion bash)", no_options, cmd_completion},
    {"help", "[COMMAND]", CLI_COMMAND, "what a command does, and its options",
     "Describes COMMAND and its options, like `attune COMMAND --help'; without COMMAND, lists the commands.", NULL,
     NULL, "attune help tune", no_options, cmd_help},
    {"version", "", CLI_NO_VALUE, "the version of attune", "Prints the version of attune, like -V.", NULL, NULL, NULL,
     no_options, cmd_version},
};
const size_t cli_command_count = sizeof cli_commands / sizeof cli_commands[0];

const cli_command *cli_command_find(const char *name) {
  for (size_t i = 0; i < cli_command_count; i++)
    if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
  return NULL;
}

const struct argp_option cli_help_option = {NULL, 'h', NULL, 0, "Short for --help", -1};

bool cli_help(int key, const struct argp_state *state) {
  if (key != cli_help_option.key) return false;
  argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
  return true;
}

typedef struct reading {
  const cli_command *command;
  cli_options *common;
  argp_parser_t parse;
  void *input;
} reading;

/* Under argp, so that its own keys reach the command's parser with the command's own input. */
static error_t parse_key(int key, char *argument, struct argp_state *state) {
  reading *r = state->input;
  if (cli_help(key, state)) return 0;
  if (key == ARGP_KEY_INIT) cli_check_options(r->command, state);
  switch (key) {
  case 'j': r->common->json = true; return 0;
  case 'b':
    if (!*argument) cli_bad_usage(state, "--db is empty; should name a database, or be :memory: to store nothing");
    r->common->database = argument;
    return 0;
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

/* Is `word`, which begins with -, an expression and none of the command's options? After two - signs what could be a
 * mistyped option is one: letters, and perhaps a value. After one sign a letter is an option's only if nothing follows
 * that stands between two values: -s*x is a product. */
static bool is_expression(const cli_command *command, const char *word) {
  if (word[1] == '-')
    return word[2] != '\0' && word[2 + strspn(word + 2, "abcdefghijklmnopqrstuvwxyz-")] != '\0' && !strchr(word, '=');
  bool letter = word[1] == 'h' || word[1] == '?' || word[1] == 'V' || word[1] == '\0';
  for (size_t i = 0; command->options[i].name; i++) letter = letter || command->options[i].key == word[1];
  return !letter || (word[2] != '\0' && strchr(" *+-%<>=&|^?(),;!", word[2]));
}

/* Is what follows the word its value? */
static bool waits_for_value(const cli_command *command, const char *word) {
  if (strncmp(word, "--", 2) == 0) return !strchr(word, '=') && takes_value(command, word + 2, strlen(word + 2));
  bool takes = false;
  for (size_t i = 0; command->options[i].name; i++)
    takes = takes || (command->options[i].key == word[1] && command->options[i].label);
  return takes && word[2] == '\0';
}

/* Is `word`, an option that waits for a value, an expression instead? No value of one begins with two - signs. */
static bool lacks_value(const char *word, const char *next) {
  return word[1] != '-' && (!next || strncmp(next, "--", 2) == 0);
}

/* The command's words with an expression that begins with - at the end, behind "--", where nothing is taken for an
 * option; the caller frees them. */
static char **put_expression_last(int *argc, char **argv, const cli_command *command) {
  static char end[] = "--";
  char **words = cli_alloc((size_t)*argc + 2, sizeof *words), *expression = NULL;
  int count = 0;
  bool options = true;
  for (int i = 0; i < *argc; i++) {
    words[count++] = argv[i];
    if (i == 0 || !options || argv[i][0] != '-') continue;
    options = strcmp(argv[i], end) != 0;
    const bool waits = options && waits_for_value(command, argv[i]);
    const bool is_one = waits ? lacks_value(argv[i], argv[i + 1]) : is_expression(command, argv[i]);
    if (options && !expression && is_one)
      expression = words[--count];
    else if (waits && i + 1 < *argc)
      words[count++] = argv[++i];
  }
  if (expression) {
    words[count++] = end;
    words[count++] = expression;
  }
  words[count] = NULL;
  *argc = count;
  return words;
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

void cli_details(const cli_command *command, char *out, size_t size) {
  const char *details = command->details, *examples = command->examples;
  snprintf(out, size, "%s%sExit codes: 0 success, 1 %s, 2 wrong usage or unreadable input.%s%s", details ? details : "",
           details ? "\n" : "", command->failed ? command->failed : "failure", examples ? "\nExample:\n  " : "",
           examples ? examples : "");
}

int cli_parse(const char *name, int argc, char **argv, cli_options *common, argp_parser_t parse, void *input) {
  const cli_command *command = cli_command_find(name);
  size_t count = 0;
  char **words = strcmp(command->argument, "EXPRESSION") == 0 ? put_expression_last(&argc, argv, command) : NULL;
  if (words) argv = words;
  cli_clean_options(argc, argv, command);
  while (command->options[count].name) count++;
  struct argp_option *options = cli_alloc(count + 2, sizeof *options);
  for (size_t i = 0; i < count; i++)
    options[i] = (struct argp_option){
        command->options[i].name, command->options[i].key, command->options[i].label, 0, command->options[i].help, 0};
  options[count] = cli_help_option;
  char details[2048], doc[2304];
  cli_details(command, details, sizeof details);
  snprintf(doc, sizeof doc, "%s\v%s", command->purpose, details);
  const struct argp argp = {options, parse_key, command->argument, doc, NULL, NULL, NULL};
  reading r = {command, common, parse, input};
  const error_t error = argp_parse(&argp, argc, argv, 0, NULL, &r);
  free(options);
  free(words);
  return error;
}
