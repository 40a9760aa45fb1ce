/* SPDX-License-Identifier: Apache-2.0
 * main.c: the `attune` command: options that all subcommands share, errors, exit codes, which subcommand runs. */
#include "tuning/cli/cli.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct command {
  const char *name;
  int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"devices", cmd_devices}, {"tune", cmd_tune}, {"show", cmd_show}, {"explain", cmd_explain}};

void cli_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("attune: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
}

int cli_fail(attune_status status) {
  const char *message = attune_last_message();
  cli_error("%s", *message ? message : attune_status_string(status));
  bool input = status == ATTUNE_INVALID_ARGUMENT || status == ATTUNE_NOT_FOUND || status == ATTUNE_BAD_DATA ||
               status == ATTUNE_PERMISSION;
  return input ? CLI_USAGE : CLI_FAILED;
}

/* A device that could be there and is not is no mistake in the command. */
int cli_open_device(attune_device **out, const cli_options *options) {
  attune_status status = attune_device_get(out, options->device);
  if (status == ATTUNE_OK) return CLI_DONE;
  int code = cli_fail(status);
  return status == ATTUNE_NOT_FOUND ? CLI_FAILED : code;
}

int cli_need_database(const char *path) {
  if (!path || !*path || strcmp(path, ":memory:") == 0 || access(path, F_OK) == 0) return CLI_DONE;
  cli_error("%s: %s; should be a database that `attune tune` made", path, strerror(errno));
  return CLI_USAGE;
}

void *cli_alloc(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (memory) return memory;
  cli_error("out of memory");
  exit(CLI_FAILED);
}

int cli_print_json(json_t *value) {
  int failed = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
  json_decref(value);
  putchar('\n');
  return failed ? CLI_FAILED : CLI_DONE;
}

json_t *cli_json_text(const char *text) {
  json_t *value = json_string(text);
  if (value) return value;
  char *ascii = cli_alloc(strlen(text) + 1, 1);
  for (size_t i = 0; text[i]; i++) ascii[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
  value = json_string(ascii);
  free(ascii);
  return value;
}

json_t *cli_json_number(double number) {
  return isfinite(number) ? json_real(number) : json_null();
}

void cli_give_children(struct argp_state *state, cli_options *options, int count) {
  for (int i = 0; i < count; i++) state->child_inputs[i] = options;
}

static error_t parse_common(int key, char *argument, struct argp_state *state) {
  cli_options *options = state->input;
  switch (key) {
  case 'j': options->json = true; return 0;
  case 'b': options->database = argument; return 0;
  case 'd': options->device = argument; return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option json_options[] = {{"json", 'j', NULL, 0, "Print JSON, for programs", 0}, {0}};

static const struct argp_option database_options[] = {
    {"db", 'b', "FILE", 0, "The tuning database (ATTUNE_DB, else the user's own)", 0},
    {"device", 'd', "NAME", 0, "host, cuda or cuda:N (the first cuda device, else the host)", 0},
    {0}};

const struct argp cli_json_argp = {json_options, parse_common, NULL, NULL, NULL, NULL, NULL};
const struct argp cli_database_argp = {database_options, parse_common, NULL, NULL, NULL, NULL, NULL};

static void print_version(FILE *out, struct argp_state *state) {
  (void)state;
  fprintf(out, "attune %s\n", attune_version());
}

typedef struct choice {
  const command *command;
  int first; /* the command's place in argv */
} choice;

/* Stops at the command: what follows is the command's. */
static error_t parse_top(int key, char *argument, struct argp_state *state) {
  choice *chosen = state->input;
  if (key == ARGP_KEY_NO_ARGS) argp_error(state, "no command; should be devices, tune, show or explain");
  if (key != ARGP_KEY_ARG) return key == ARGP_KEY_NO_ARGS ? 0 : ARGP_ERR_UNKNOWN;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(argument, commands[i].name) == 0) chosen->command = &commands[i];
  if (!chosen->command)
    argp_error(state, "there is no command \"%s\"; should be devices, tune, show or explain", argument);
  chosen->first = state->next - 1;
  state->next = state->argc;
  return 0;
}

static const char top_doc[] = "Finds, verifies and remembers the fastest implementation of each numeric problem.\v"
                              "Commands:\n"
                              "  devices            what is here and what it can do\n"
                              "  tune WORKLOAD      measure, verify and store the winners of a workload\n"
                              "  show               the stored winners\n"
                              "  explain PROBLEM    which candidate runs for a problem, and why\n"
                              "\n"
                              "`attune COMMAND --help' says more. Exit codes: 0 done, 1 something could not be done, 2 "
                              "wrong usage or unreadable input.";

/* What could not be written is an error, except to a reader who has left. */
static int finish(int code) {
  errno = 0;
  bool failed = fflush(stdout) != 0 || ferror(stdout);
  if (!failed) return code;
  if (errno != EPIPE) cli_error("standard output cannot be written: %s", errno ? strerror(errno) : "an error before");
  return code == CLI_DONE ? CLI_FAILED : code;
}

int main(int argc, char **argv) {
  setlocale(LC_CTYPE, "");
  setlocale(LC_TIME, "");
  argp_program_version_hook = print_version;
  argp_err_exit_status = CLI_USAGE;
  choice chosen = {0};
  const struct argp top = {NULL, parse_top, "COMMAND [ARGUMENT...]", top_doc, NULL, NULL, NULL};
  char name[] = "attune";
  if (argc > 0) argv[0] = name;
  if (argp_parse(&top, argc, argv, ARGP_IN_ORDER, NULL, &chosen) != 0 || !chosen.command) return CLI_USAGE;
  char full_name[32];
  snprintf(full_name, sizeof full_name, "attune %s", chosen.command->name);
  argv[chosen.first] = full_name;
  return finish(chosen.command->run(argc - chosen.first, argv + chosen.first));
}
