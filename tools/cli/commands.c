/* SPDX-License-Identifier: Apache-2.0
 * commands.c: the table of commands and options, and the argp parsers that are made of it. */
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>

#define DB \
  { "db", 'b', "FILE", CLI_FILE, "The tuning database (ATTUNE_DB, else your own); :memory: stores nothing" }
#define DEVICE \
  { "device", 'd', "NAME", CLI_DEVICE, "host, cuda or cuda:N (default: the first GPU, else the host)" }
#define JSON \
  { "json", 'j', NULL, CLI_NO_VALUE, "Print JSON, for programs; times in nanoseconds" }
#define WIDE \
  { "wide", CLI_OPTION_WIDE, NULL, CLI_NO_VALUE, "Print all columns in full, even if the terminal is too narrow" }
#define END \
  { NULL, 0, NULL, CLI_NO_VALUE, NULL }

static const cli_option devices_options[] = {
    {"problem", 'p', "PROBLEM", CLI_ANY, "Also list the implementations that can run this problem"},
    {"watch", CLI_OPTION_WATCH, NULL, CLI_NO_VALUE,
     "Print each device's utilization, temperature and power every second, until Ctrl-C"},
    {"interval", CLI_OPTION_INTERVAL, "SECONDS", CLI_ANY, "Time between two lines of --watch (1)"},
    {"rounds", CLI_OPTION_ROUNDS_OF_WATCH, "N", CLI_ANY, "Stop --watch after N lines per device"},
    JSON,
    WIDE,
    END};

static const cli_option tune_options[] = {
    DB,
    DEVICE,
    {"budget", 's', "SECONDS", CLI_ANY,
     "Total time for tuning: first a look at each problem, cheapest first, then more rounds by calls x time"},
    {"problem-budget", CLI_OPTION_PROBLEM_BUDGET, "MS", CLI_ANY,
     "Time for tuning one problem (ATTUNE_BUDGET_MS, else 190 ms, on the host 420 ms, plus the time of 400 default "
     "calls)"},
    {"force", 'f', NULL, CLI_NO_VALUE, "Measure stored winners again; a stored winner with stronger evidence is kept"},
    JSON,
    WIDE,
    END};

static const cli_option show_options[] = {
    DB,
    {"device", 'd', "NAME", CLI_DEVICE, "Only winners that are valid on host, cuda or cuda:N (default: any device)"},
    {"all", 'a', NULL, CLI_NO_VALUE,
     "Also show winners that are not valid here: measured on another machine, driver or library version, or with "
     "another number of CPU threads"},
    {"recorded", CLI_OPTION_RECORDED, NULL, CLI_NO_VALUE,
     "Show the problems that programs recorded with ATTUNE_MODE=record: how often each was called, and its winner"},
    {"csv", CLI_OPTION_CSV, NULL, CLI_NO_VALUE, "Print CSV, for spreadsheets; times in nanoseconds"},
    JSON,
    WIDE,
    END};

static const cli_option explain_options[] = {DB,
                                             DEVICE,
                                             {"trials", CLI_OPTION_TRIALS, NULL, CLI_NO_VALUE,
                                              "Also list the candidates of the race, fastest first; `candidates` also "
                                              "counts those that the screening dropped"},
                                             JSON,
                                             WIDE,
                                             END};

static const cli_option verify_options[] = {
    DB,
    DEVICE,
    {"sample", 'n', "N", CLI_ANY, "How many winners to time; each run picks different ones (20; 0 for all)"},
    {"budget", 's', "SECONDS", CLI_ANY, "Start no new measurement after this long"},
    JSON,
    WIDE,
    END};

static const cli_option warm_options[] = {DB, DEVICE, JSON, WIDE, END};

static const cli_option eval_options[] = {
    {"shape", CLI_OPTION_SHAPE, "SIZES", CLI_ANY, "The shape of the outputs, such as 4096x4096; required"},
    {"dtype", CLI_OPTION_DTYPE, "TYPE", CLI_DTYPE, "The element type of inputs without one of their own (f32)"},
    {"inputs", CLI_OPTION_INPUTS, "WORDS", CLI_ANY,
     "Inputs whose type, shape or strides differ from --dtype, --shape and packed: \"bias::4096 x:f32:64x8:1x64\""},
    {"outputs", CLI_OPTION_OUTPUTS, "WORDS", CLI_ANY,
     "Type and strides of each output, \"bf16:1x4096\", or @ and the input that it overwrites, \"@x\""},
    {"scalars", CLI_OPTION_SCALARS, "WORDS", CLI_ANY, "Scalars, their kinds and values: \"alpha=0.5 n:i64=3\""},
    {"contract", CLI_OPTION_CONTRACT, "ACCURACY", CLI_CONTRACT, "The accuracy: strict, equivalent or reduced (strict)"},
    {"sample", 'n', "N", CLI_ANY, "How many elements to check (65536; 0 for all)"},
    {"print", CLI_OPTION_PRINT, "N", CLI_ANY, "Print the first N elements (4)"},
    {"seed", CLI_OPTION_SEED, "N", CLI_ANY, "Seed of the random operands and of rand() and randn() (1)"},
    {"no-tune", CLI_OPTION_NO_TUNE, NULL, CLI_NO_VALUE, "Do not tune: run the stored winner, or the default"},
    DB,
    DEVICE,
    {"budget", 's', "SECONDS", CLI_ANY, "Time for tuning (ATTUNE_BUDGET_MS, else as long as it takes)"},
    JSON,
    WIDE,
    END};

/* Of verdicts, and where they are written. */
/* clang-format off */
#define VERDICTS \
    {"threshold", CLI_OPTION_THRESHOLD, "PERCENT", CLI_ANY, \
     "The smallest change that counts (1); TEXT=PERCENT sets it for cases whose name contains TEXT; may be repeated"}, \
    {"alpha", CLI_OPTION_ALPHA, "P", CLI_ANY, \
     "The probability of any false alarm in a comparison of two equal builds (0.002)"}
#define REPORTS \
    {"markdown", CLI_OPTION_MARKDOWN, "FILE", CLI_FILE, \
     "Write the table as Markdown, for a pull request; here and below, - is standard output, instead of the table"}, \
    {"junit", CLI_OPTION_JUNIT, "FILE", CLI_FILE, \
     "Write the comparison as JUnit XML, one test per case, for continuous integration; bench: only with --against"}, \
    {"html", CLI_OPTION_HTML, "FILE", CLI_FILE, \
     "Write the comparison as an HTML page with every sample and the history; bench: only with --against"}, \
    {"export", CLI_OPTION_EXPORT, "FORMAT=FILE", CLI_EXPORT, \
     "Write the run (of two, the head) for another program; FORMAT: bmf (Bencher), github " \
     "(github-action-benchmark), google " \
     "(Google Benchmark's JSON), otava (CSV for Apache Otava); may be repeated"}
/* clang-format on */

static const cli_option bench_options[] = {
    {"suite", CLI_OPTION_SUITE, "NAME", CLI_SUITE, "Also time a built-in suite; there is one, runtime"},
    {"program", CLI_OPTION_PROGRAM, "CMD", CLI_FILE,
     "Also time the cases that a program registers with attune/bench.h; may be repeated"},
    {"command", CLI_OPTION_COMMAND, "NAME=CMD", CLI_ANY, "Also time a whole command line; may be repeated"},
    {"build", CLI_OPTION_BUILD, "DIR", CLI_FILE,
     "The build to time: runs DIR/attune, and replaces {build} in CMD by DIR"},
    {"against", CLI_OPTION_AGAINST, "DIR", CLI_FILE,
     "Also time this build, alternating with the other, and report what became slower; exit code 1 if anything did"},
    {"save", 'o', "FILE", CLI_FILE, "Append every sample to this result file"},
    {"label", CLI_OPTION_LABEL, "WORD", CLI_ANY, "A name for the run in the result file"},
    {"rounds", CLI_OPTION_ROUNDS, "N", CLI_ANY,
     "Rounds, each in fresh processes (24); with --against, unsure cases get more"},
    {"samples", CLI_OPTION_SAMPLES, "N", CLI_ANY, "Samples per case and round, each a quarter of a millisecond (32)"},
    {"hang", CLI_OPTION_HANG, "SECONDS", CLI_ANY, "A case that does not answer for this long has failed (120)"},
    {"time", CLI_OPTION_TIME, "SECONDS", CLI_ANY,
     "Start nothing new after this long, but time each case at least once"},
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
    {"results", CLI_OPTION_RESULTS, "FILE", CLI_FILE, "A result file written by `attune bench --save'; required"},
    JSON,
    END};

static const cli_option no_options[] = {END};
static const cli_option export_options[] = {
    {"format", CLI_OPTION_FORMAT, "FORMAT", CLI_FORMAT,
     "bmf (Bencher Metric Format), github (github-action-benchmark, customSmallerIsBetter), google (Google Benchmark's "
     "JSON) or "
     "otava (CSV for Apache Otava, a row a run); needed"},
    {"output", 'o', "FILE", CLI_FILE, "Write to this file; without it, or with -, to standard output"},
    {"filter", CLI_OPTION_FILTER, "TEXT", CLI_ANY, "Only cases whose name holds TEXT"},
    END};

static const cli_option import_options[] = {
    {"save", 'o', "FILE", CLI_FILE, "Append the run to this result file; needed"},
    {"label", CLI_OPTION_LABEL, "WORD", CLI_ANY, "A name for the run in the result file"},
    JSON,
    END};

const cli_command cli_commands[] = {
    {"devices", "", CLI_NO_VALUE, "the devices here, and what they can run",
     "Lists the devices of this machine, their libraries and what they can run.", NULL, devices_options, cmd_devices},
    {"tune", "WORKLOAD", CLI_WORKLOAD, "measure, verify and store the winners of a workload",
     "Finds the fastest implementation of every problem of WORKLOAD, verifies it and stores it.",
     "WORKLOAD is a CSV file, - for standard input, or the word recorded: the problems that programs recorded with "
     "ATTUNE_MODE=record, starting with those whose calls take the most time in total. Problems that already have a "
     "winner are skipped. Each winner is stored at once, so the same command resumes an interrupted run.",
     tune_options, cmd_tune},
    {"show", "[WORKLOAD]", CLI_WORKLOAD, "the stored winners",
     "Shows the stored winners: what runs, how fast, and how much faster than the default.",
     "With WORKLOAD, a CSV file or - for standard input, shows its problems on one device, named and written as there, "
     "whether they have a winner or not. Nothing to show is no error. \"> 1.2x ?\" marks an unsure winner: noise left "
     "the exact speedup open, but it is at "
     "least "
     "this large (three standard errors). The last line has the geometric mean of the speedups, and the mean weighted "
     "by "
     "calls x time where the number of calls is known, from the column count or from what programs recorded.",
     show_options, cmd_show},
    {"explain", "PROBLEM", CLI_ANY, "which implementation runs for a problem, and why",
     "Says which implementation runs for PROBLEM, since when, and how much faster it is. Measures nothing.",
     "PROBLEM is written as `attune show' prints it, as one argument or as words: gemm bf16 tn 4096x16x4096 strict. "
     "The accuracy may be left out: strict. With row-major at the end, the sizes, transposes and strides are those of "
     "a "
     "row-major problem.",
     explain_options, cmd_explain},
    {"verify", "", CLI_NO_VALUE, "check that stored winners are still faster and right",
     "Times a sample of the stored winners again, alternating with the default, and checks their results.",
     "A winner no longer holds if it is more than 1 % slower than the default, or gains over 3 % less than was stored, "
     "in "
     "both cases beyond the noise, or if its results are wrong. Exit code 1: some no longer hold.",
     verify_options, cmd_verify},
    {"warm", "[FILE]", CLI_FILE, "compile the kernels that the stored winners need here",
     "Compiles the kernels that the winners of a tuning database need on this machine into the kernel cache, so that "
     "programs do not wait for the compiler.",
     "FILE is the tuning database, as with --db. Only winners that are valid here count, and those that call a library "
     "need no kernel. Exit code 1: a kernel does not compile, or cannot be stored.",
     warm_options, cmd_warm},
    {"eval", "EXPRESSION", CLI_ANY, "run, check and time one elementwise expression",
     "Tunes EXPRESSION if it has no winner yet, runs it on random operands, checks the results, and compares its "
     "bandwidth with that of a copy.",
     "EXPRESSION is one argument, in the language of docs/expressions.md. Its names are inputs unless --scalars lists "
     "them. "
     "Exit code 1: the results are wrong. Examples:\n"
     "  attune eval 'gelu(a + b) * b' --shape 4096x4096 --dtype bf16\n"
     "  attune eval 's * x + b' --shape 64x1024 --inputs b::1024 --scalars s=0.5",
     eval_options, cmd_eval},
    {"bench", "[WORKLOAD...]", CLI_FILE, "time problems and programs, or compare two builds",
     "Times problems, programs and commands in many fresh processes, and can save every sample.",
     "WORKLOAD is a CSV file of problems; each is timed as a program's call would run it. Without a workload, --db "
     "times "
     "the stored winners of a database. Exit code 1: a case failed, or became slower than that of --against. "
     "Examples:\n"
     "  attune bench problems.csv --save results.db --label nightly\n"
     "  attune bench --program '{build}/mine' --build new --against old\n"
     "  attune bench --command 'sort=sort words.txt'",
     bench_options, cmd_bench},
    {"compare", "BASE HEAD", CLI_FILE, "which cases became slower, beyond doubt",
     "Reports for each case whether HEAD is slower than BASE: same, faster, slower, or unsure where noise hides it.",
     "BASE and HEAD are runs saved by `attune bench --save': FILE is the latest run of a file, FILE:RUN the one with "
     "that "
     "number, label or revision; or JSON of Google Benchmark or Criterion.rs, as `attune import' reads it. A single "
     "FILE: the latest pair of `attune bench --against' in it. Two tuning databases: "
     "their winners, problem by problem, by the stored times and spreads. Exit code 1: a case is slower, or fails now; "
     "2: wrong usage, or a file that cannot be read or compared.",
     compare_options, cmd_compare},
    {"history", "CASE", CLI_ANY, "the time of a case over many runs, and where it changed",
     "Draws the time of CASE over the runs of a result file, and says in which run it changed.",
     "CASE is a name, or a part of one that no other case has. Runs on other machines or with other software than the "
     "latest are left out.",
     history_options, cmd_history},
    {"export", "RUN", CLI_FILE, "a stored run in the format of another program",
     "Writes a run that `attune bench --save' stored for a program that keeps or plots benchmarks.",
     "RUN is FILE, for the latest run of a result file, or FILE:WORD, where WORD is a number, label or revision. otava "
     "has a row for this run and for each earlier one of the "
     "same machine that has all of its cases. FILE may also be JSON that `attune import' reads. Example:\n"
     "  attune export results.db:nightly --format bmf --output bmf.json",
     export_options, cmd_export},
    {"import", "FILE...", CLI_FILE, "runs of Google Benchmark or Criterion.rs as a result",
     "Stores what another program measured as a run, for `attune compare', `attune history' and `attune export'.",
     "FILE is JSON of Google Benchmark, JSON messages of cargo criterion, or a sample.json of Criterion.rs. Several "
     "files, each of a process of its own of one build, become one run; they are what a verdict needs. `attune "
     "compare' takes "
     "such files as they are, too.",
     import_options, cmd_import},
    {"completion", "SHELL", CLI_SHELL, "a script for tab completion in bash, zsh or fish",
     "Prints a script for tab completion of this command in SHELL: bash, zsh or fish.",
     "For the current shell: source <(attune completion bash); in fish: attune completion fish | source. The scripts "
     "are "
     "also installed where these shells look for them.",
     no_options, cmd_completion},
    {"help", "[COMMAND]", CLI_COMMAND, "what a command does, and its options",
     "Prints what COMMAND does and its options, like `attune COMMAND --help'; without COMMAND, lists the commands.",
     NULL, no_options, cmd_help},
    {"version", "", CLI_NO_VALUE, "the version of attune", "Prints the version of attune, like -V.", NULL, no_options,
     cmd_version},
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

/* Without argp's paragraph about arguments of short options. */
static char *filter_help(int key, const char *text, void *input) {
  (void)input;
  return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)(uintptr_t)text;
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
  char doc[1024];
  snprintf(doc, sizeof doc, "%s%s%s", command->purpose, command->details ? "\v" : "",
           command->details ? command->details : "");
  const struct argp argp = {options, parse_key, command->argument, doc, NULL, filter_help, NULL};
  reading r = {command, common, parse, input};
  const error_t error = argp_parse(&argp, argc, argv, 0, NULL, &r);
  free(options);
  free(words);
  return error;
}
