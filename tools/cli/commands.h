/* SPDX-License-Identifier: Apache-2.0
 * commands.h: the one table of commands and options. Help, the manual page and shell completion are made from it. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <argp.h>
#include <stddef.h>

#include "tools/cli/cli.h"

/* The kind of a value, for completion. */
typedef enum cli_value {
  CLI_NO_VALUE,
  CLI_ANY,
  CLI_FILE,
  CLI_WORKLOAD, /* a file, or the word recorded */
  CLI_DEVICE,
  CLI_SHELL,
  CLI_COMMAND,
  CLI_CONTRACT,
  CLI_DTYPE,
  CLI_SUITE,
  CLI_FORMAT,
  CLI_EXPORT /* FORMAT=FILE */
} cli_value;

typedef struct cli_option {
  const char *name;  /* NULL ends a list */
  int key;           /* a letter, or above 255 for an option without one */
  const char *label; /* of its value, "FILE"; NULL: none */
  cli_value value;
  const char *help;
} cli_option;

typedef struct cli_command {
  const char *name;
  const char *argument; /* "WORKLOAD"; "" for none */
  cli_value value;      /* of the argument */
  const char *summary;  /* a line of `attune --help` */
  const char *purpose;  /* the first words of `attune COMMAND --help` */
  const char *details;  /* the words after the options; NULL: none */
  const char *failed;   /* the meaning of exit code 1; NULL: failure */
  const char *examples; /* command lines, one on each line; NULL: none */
  const cli_option *options;
  int (*run)(int argc, char **argv);
} cli_command;

extern const cli_command cli_commands[];
extern const size_t cli_command_count;

/* Writes details, exit codes and examples: the last part of the help, and of the command's entry in the manual. */
void cli_details(const cli_command *command, char *out, size_t size);

/* NULL: no command has that name. */
const cli_command *cli_command_find(const char *name);

/* Escapes words that begin with - and that the command (NULL: before its name) cannot know. */
void cli_clean_options(int argc, char **argv, const cli_command *command);

/* Keys of options without a letter. */
enum {
  CLI_OPTION_PROBLEM_BUDGET = 256,
  CLI_OPTION_WIDE,
  CLI_OPTION_WATCH,
  CLI_OPTION_INTERVAL,
  CLI_OPTION_ROUNDS_OF_WATCH,
  CLI_OPTION_SHAPE,
  CLI_OPTION_DTYPE,
  CLI_OPTION_INPUTS,
  CLI_OPTION_OUTPUTS,
  CLI_OPTION_SCALARS,
  CLI_OPTION_CONTRACT,
  CLI_OPTION_PRINT,
  CLI_OPTION_SEED,
  CLI_OPTION_NO_TUNE,
  CLI_OPTION_SUITE,
  CLI_OPTION_PROGRAM,
  CLI_OPTION_COMMAND,
  CLI_OPTION_BUILD,
  CLI_OPTION_AGAINST,
  CLI_OPTION_LABEL,
  CLI_OPTION_ROUNDS,
  CLI_OPTION_SAMPLES,
  CLI_OPTION_HANG,
  CLI_OPTION_TIME,
  CLI_OPTION_COLD,
  CLI_OPTION_GRAPH,
  CLI_OPTION_FILTER,
  CLI_OPTION_LIST,
  CLI_OPTION_THRESHOLD,
  CLI_OPTION_ALPHA,
  CLI_OPTION_ALLOW_DIFFERENT,
  CLI_OPTION_MARKDOWN,
  CLI_OPTION_JUNIT,
  CLI_OPTION_HTML,
  CLI_OPTION_RESULTS,
  CLI_OPTION_EXPORT,
  CLI_OPTION_FORMAT,
  CLI_OPTION_TRIALS,
  CLI_OPTION_RECORDED,
  CLI_OPTION_CSV
};

/* The option -h, which the command and each of its subcommands have in addition to argp's --help. cli_help ends the
 * program with the help if `key` is that option's, else returns false. */
extern const struct argp_option cli_help_option;
bool cli_help(int key, const struct argp_state *state);

/* Reads argv by the table's options of command `name`. --json, --db, --device and --wide go to *common; every other
 * key, and argp's own, to `parse`, whose state->input is `input`. Nonzero, after a message: wrong usage. */
int cli_parse(const char *name, int argc, char **argv, cli_options *common, argp_parser_t parse, void *input);

/* text.c. Reads a decimal number; false: `text` is not one. The other two end the command with CLI_USAGE if the
 * option's value is not a number or out of bounds; `note` follows the bounds in the message. */
bool cli_read_number(const char *text, double *out);
double cli_positive(const char *option, const char *text, const char *unit, double most,
                    const struct argp_state *state);
uint64_t cli_whole(const char *option, const char *text, uint64_t least, uint64_t most, const char *note,
                   const struct argp_state *state);

/* suggest.c: the command closest to a mistyped word; NULL: none is close. */
const char *cli_suggest_command(const char *word);

/* Ends the command with CLI_USAGE at the first option of state->argv that `command` (NULL: before its name) does not
 * have, and suggests one. */
void cli_check_options(const cli_command *command, struct argp_state *state);

/* main.c */
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);

/* manual.c, completion.c: generate the manual page and the completion scripts from the table. */
void cli_print_manual(FILE *out);
int cmd_completion(int argc, char **argv);

#endif
