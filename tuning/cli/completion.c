/* SPDX-License-Identifier: Apache-2.0
 * completion.c: `attune completion`: a script for a shell, made of the table of commands. */
#include "tuning/cli/commands.h"

#include <string.h>

/* What completes a value: words of compgen, "" for nothing. */
static const char *completes(cli_value value) {
  switch (value) {
  case CLI_FILE: return "-f";
  case CLI_DEVICE: return "-W 'host cuda cuda:0 cuda:1'";
  case CLI_SHELL: return "-W 'bash zsh'";
  default: return "";
  }
}

static void print_words(const cli_command *command) {
  for (const cli_option *o = command->options; o->name; o++) printf("--%s ", o->name);
  fputs("--help", stdout);
}

static void print_values(const cli_command *command) {
  for (const cli_option *o = command->options; o->name; o++) {
    if (!o->label) continue;
    printf("        %s:--%s", command->name, o->name);
    if (o->key < 256) printf("|%s:-%c", command->name, o->key);
    if (*completes(o->value))
      printf(") COMPREPLY=($(compgen %s -- \"$word\")); return ;;\n", completes(o->value));
    else
      puts(") return ;;");
  }
}

static void print_bash(void) {
  puts("# Completes attune in bash. Made by `attune completion bash'.\n"
       "_attune() {\n"
       "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
       "  COMPREPLY=()");
  fputs("  if [ \"$COMP_CWORD\" = 1 ]; then\n    COMPREPLY=($(compgen -W '", stdout);
  for (size_t i = 0; i < cli_command_count; i++) printf("%s ", cli_commands[i].name);
  puts("--help --version' -- \"$word\"))\n    return\n  fi\n  case $command:$before in");
  for (size_t i = 0; i < cli_command_count; i++) print_values(&cli_commands[i]);
  puts("  esac\n  case $command:$word in");
  for (size_t i = 0; i < cli_command_count; i++) {
    printf("    %s:-*) COMPREPLY=($(compgen -W '", cli_commands[i].name);
    print_words(&cli_commands[i]);
    puts("' -- \"$word\")) ;;");
    if (*completes(cli_commands[i].value))
      printf("    %s:*) COMPREPLY=($(compgen %s -- \"$word\")) ;;\n", cli_commands[i].name,
             completes(cli_commands[i].value));
  }
  puts("  esac\n}\ncomplete -o filenames -F _attune attune");
}

typedef struct options {
  cli_options common;
  const char *shell;
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
  case ARGP_KEY_ARG:
    if (o->shell) cli_bad_usage(state, "unexpected argument \"%s\"; completion takes one SHELL", argument);
    o->shell = argument;
    if (strcmp(argument, "bash") != 0 && strcmp(argument, "zsh") != 0)
      cli_bad_usage(state, "SHELL is \"%s\"; should be bash or zsh", argument);
    return 0;
  case ARGP_KEY_END:
    if (!o->shell) cli_bad_usage(state, "no SHELL; should be bash or zsh");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* zsh runs bash's completions, once it is told to. */
int cmd_completion(int argc, char **argv) {
  options o = {.shell = NULL};
  if (cli_parse("completion", argc, argv, &o.common, parse, &o) != 0 || !o.shell) return CLI_USAGE;
  if (strcmp(o.shell, "zsh") == 0)
    puts("autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit");
  print_bash();
  return CLI_DONE;
}
