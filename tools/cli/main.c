/* SPDX-License-Identifier: Apache-2.0
 * main.c: the `attune` command: options that all subcommands share, errors, exit codes, which subcommand runs. */
#include "tools/cli/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The message without what would steer a terminal, to be freed. */
static char *clean_message(const char *format, va_list arguments) {
  char text[2048];
  vsnprintf(text, sizeof text, format, arguments);
  return cli_clean(text);
}

void cli_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *clean = clean_message(format, arguments);
  va_end(arguments);
  fprintf(stderr, "attune: %s\n", clean);
  free(clean);
}

void cli_bad_usage(const struct argp_state *state, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char *clean = clean_message(format, arguments);
  va_end(arguments);
  argp_error(state, "%s", clean);
  free(clean);
}

/* A message about an expression has lines below the first: the text, and a caret. */
static void print_message(const char *message) {
  char *copy = cli_alloc(strlen(message) + 1, 1), *rest = copy;
  strcpy(copy, message);
  cli_error("%s", strsep(&rest, "\n"));
  while (rest) {
    char *clean = cli_clean(strsep(&rest, "\n"));
    fprintf(stderr, "%s\n", clean);
    free(clean);
  }
  free(copy);
}

int cli_fail(attune_status status) {
  const char *message = attune_last_message();
  print_message(*message ? message : attune_status_string(status));
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

/* Is there a file with something in it that is no database of SQLite? */
static bool is_other_file(const char *path) {
  static const char magic[16] = "SQLite format 3";
  char head[sizeof magic];
  struct stat about;
  if (stat(path, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0) return false;
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t got = read(file, head, sizeof head);
  (void)close(file);
  return got > 0 && (got < (ssize_t)sizeof head || memcmp(head, magic, sizeof head) != 0);
}

int cli_need_database(const char *path) {
  if (!path || !*path || strcmp(path, ":memory:") == 0) return CLI_DONE;
  if (is_other_file(path)) {
    cli_error("%s is not a database; should be one made by `attune tune'", path);
    return CLI_USAGE;
  }
  if (access(path, F_OK) == 0) return CLI_DONE;
  cli_error("%s: %s; should be a database made by `attune tune'", path, strerror(errno));
  return CLI_USAGE;
}

const char *cli_workload_path(const char *named) {
  if (strcmp(named, "-") != 0) return named;
  if (fcntl(STDIN_FILENO, F_GETFD) >= 0) return "/dev/stdin";
  cli_error("WORKLOAD is -, and standard input is closed; should be a pipe or a file");
  return NULL;
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

static void print_version(FILE *out, struct argp_state *state) {
  (void)state;
  fprintf(out, "attune %s\n", attune_version());
}

typedef struct choice {
  const cli_command *command;
  int first; /* the command's place in argv */
} choice;

/* "devices, tune, show or explain" */
static const char *names(void) {
  static char text[256];
  size_t at = 0;
  for (size_t i = 0; i < cli_command_count && at < sizeof text; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "%s%s",
                           !i                          ? ""
                           : i + 1 < cli_command_count ? ", "
                                                       : " or ",
                           cli_commands[i].name);
  return text;
}

static void no_command(const struct argp_state *state, const char *word) {
  const char *near = cli_suggest_command(word);
  if (near)
    cli_bad_usage(state, "there is no command \"%s\"; did you mean %s?", word, near);
  else
    cli_bad_usage(state, "there is no command \"%s\"; should be %s", word, names());
}

enum { OPTION_MANUAL = 256 };

/* Stops at the command: what follows is the command's. */
static error_t parse_top(int key, char *argument, struct argp_state *state) {
  choice *chosen = state->input;
  if (cli_help(key, state)) return 0;
  if (key == ARGP_KEY_INIT) cli_check_options(NULL, state);
  if (key == OPTION_MANUAL) {
    cli_print_manual(stdout);
    exit(CLI_DONE);
  }
  if (key == ARGP_KEY_NO_ARGS) cli_bad_usage(state, "no command; should be %s", names());
  if (key != ARGP_KEY_ARG) return key == ARGP_KEY_NO_ARGS ? 0 : ARGP_ERR_UNKNOWN;
  chosen->command = cli_command_find(argument);
  if (!chosen->command) no_command(state, argument);
  chosen->first = state->next - 1;
  state->next = state->argc;
  return 0;
}

static void top_doc(char *out, size_t size) {
  size_t at = (size_t)snprintf(out, size, "%s",
                               "Finds, verifies and stores the fastest implementation of each matrix product and "
                               "elementwise expression.\vCommands:\n");
  for (size_t i = 0; i < cli_command_count && at < size; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s %s", cli_commands[i].name, cli_commands[i].argument);
    at += (size_t)snprintf(out + at, size - at, "  %-19s %s\n", name, cli_commands[i].summary);
  }
  if (at < size)
    snprintf(out + at, size - at,
             "\n`attune help COMMAND' describes a command and has an example. Exit codes: 0 success, 1 failure, 2 "
             "wrong usage or unreadable input.");
}

/* Failed output is an error, except to a reader that has closed the pipe; reported once. */
static bool output_failed(void) {
  static bool said;
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return false;
  if (errno != EPIPE && !said)
    cli_error("standard output cannot be written: %s", errno ? strerror(errno) : "an earlier write failed");
  said = true;
  return true;
}

void cli_check_output(void) {
  if (output_failed()) _exit(CLI_FAILED);
}

static int finish(int code) {
  return output_failed() && code == CLI_DONE ? CLI_FAILED : code;
}

/* No file gets the number of a closed standard output or error; writing there fails as before. */
static void fill_outputs(void) {
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    const int filler = open("/dev/null", O_RDONLY);
    if (filler < 0 || filler == fd) continue;
    (void)dup2(filler, fd);
    (void)close(filler);
  }
}

/* Reads the words before the command and its name; what follows is the command's. */
static error_t read_top(int argc, char **argv, choice *chosen) {
  const struct argp_option options[] = {
      {"manual", OPTION_MANUAL, NULL, OPTION_HIDDEN, "Print the part of docs/attune.1 that is made from this table", 0},
      cli_help_option,
      {0}};
  char doc[2048];
  top_doc(doc, sizeof doc);
  const struct argp top = {options, parse_top, "COMMAND [ARGUMENT...]", doc, NULL, NULL, NULL};
  return argp_parse(&top, argc, argv, ARGP_IN_ORDER, NULL, chosen);
}

static char program[] = "attune", help_option[] = "--help";

static error_t parse_help(int key, char *argument, struct argp_state *state) {
  const cli_command **command = state->input;
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  if (*command) cli_bad_usage(state, "unexpected argument \"%s\"; help takes one COMMAND", argument);
  *command = cli_command_find(argument);
  if (!*command) no_command(state, argument);
  return 0;
}

/* --help ends the program. */
int cmd_help(int argc, char **argv) {
  cli_options common = {0};
  const cli_command *command = NULL;
  if (cli_parse("help", argc, argv, &common, parse_help, &command) != 0) return CLI_USAGE;
  char name[32];
  snprintf(name, sizeof name, "%s %s", program, command ? command->name : "");
  char *words[] = {command ? name : program, help_option, NULL};
  choice none = {0};
  return command ? command->run(2, words) : read_top(2, words, &none) ? CLI_FAILED : CLI_DONE;
}

static error_t parse_nothing(int key, char *argument, struct argp_state *state) {
  if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
  cli_bad_usage(state, "unexpected argument \"%s\"; version takes none", argument);
  return 0;
}

int cmd_version(int argc, char **argv) {
  cli_options common = {0};
  if (cli_parse("version", argc, argv, &common, parse_nothing, NULL) != 0) return CLI_USAGE;
  print_version(stdout, NULL);
  return CLI_DONE;
}

int main(int argc, char **argv) {
  fill_outputs();
  signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of the write that meets it */
  setlocale(LC_CTYPE, "");
  setlocale(LC_TIME, "");
  argp_program_version_hook = print_version;
  argp_err_exit_status = CLI_USAGE;
  (void)setenv("ARGP_HELP_FMT", "no-dup-args-note", 0); /* argp's paragraph about arguments of short options */
  choice chosen = {0};
  (void)unsetenv("ATTUNE_OVERRIDE"); /* the command's own options are the operator's, too */
  if (argc > 0) argv[0] = program;
  cli_clean_options(argc, argv, NULL);
  const bool may_end = atexit(cli_check_output) == 0; /* --help and --version end in argp */
  if (!may_end) cli_error("warning: if output cannot be written, that may go unnoticed");
  if (read_top(argc, argv, &chosen) != 0 || !chosen.command) return CLI_USAGE;
  char full_name[32];
  snprintf(full_name, sizeof full_name, "attune %s", chosen.command->name);
  argv[chosen.first] = full_name;
  return finish(chosen.command->run(argc - chosen.first, argv + chosen.first));
}
