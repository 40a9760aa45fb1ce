/* SPDX-License-Identifier: Apache-2.0
 * completion.c: `attune completion`: a script for a shell, made of the table of commands. */
#include "tools/cli/commands.h"

#include <string.h>

#define SHELLS "bash zsh fish"
#define DEVICES "host cuda cuda:0 cuda:1"

/* ---- bash ---- */

static void print_names(void) {
  for (size_t i = 0; i < cli_command_count; i++) printf("%s%s", i ? " " : "", cli_commands[i].name);
}

/* What completes a value: words of compgen. False: nothing does. */
static bool print_compgen(cli_value value) {
  switch (value) {
  case CLI_FILE: fputs("-f", stdout); return true;
  case CLI_DEVICE: fputs("-W '" DEVICES "'", stdout); return true;
  case CLI_SHELL: fputs("-W '" SHELLS "'", stdout); return true;
  case CLI_COMMAND:
    fputs("-W '", stdout);
    print_names();
    putchar('\'');
    return true;
  default: return false;
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
    fputs(") ", stdout);
    if (o->value != CLI_ANY) fputs("COMPREPLY=($(compgen ", stdout);
    if (print_compgen(o->value)) fputs(" -- \"$word\")); ", stdout);
    puts("return ;;");
  }
}

static void print_bash(void) {
  puts("# Completes attune in bash. Made by `attune completion bash'.\n"
       "_attune() {\n"
       "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
       "  COMPREPLY=()");
  fputs("  if [ \"$COMP_CWORD\" = 1 ]; then\n    COMPREPLY=($(compgen -W '", stdout);
  print_names();
  puts(" --help --version' -- \"$word\"))\n    return\n  fi\n  case $command:$before in");
  for (size_t i = 0; i < cli_command_count; i++) print_values(&cli_commands[i]);
  puts("  esac\n  case $command:$word in");
  for (size_t i = 0; i < cli_command_count; i++) {
    printf("    %s:-*) COMPREPLY=($(compgen -W '", cli_commands[i].name);
    print_words(&cli_commands[i]);
    puts("' -- \"$word\")) ;;");
    if (cli_commands[i].value == CLI_NO_VALUE || cli_commands[i].value == CLI_ANY) continue;
    printf("    %s:*) COMPREPLY=($(compgen ", cli_commands[i].name);
    (void)print_compgen(cli_commands[i].value);
    puts(" -- \"$word\")) ;;");
  }
  puts("  esac\n}\ncomplete -o filenames -F _attune attune");
}

/* ---- zsh and fish ---- */

/* Within single quotes; characters of `special` after a backslash. */
static void print_quoted(const char *text, const char *special, const char *quote) {
  for (; *text; text++) {
    if (*text == '\'')
      fputs(quote, stdout);
    else if (strchr(special, *text))
      printf("\\%c", *text);
    else
      putchar(*text);
  }
}

static void print_zsh_text(const char *text) {
  print_quoted(text, "[]:\\", "'\\''");
}

/* What completes a value, as an action of _arguments. */
static void print_zsh_action(cli_value value) {
  switch (value) {
  case CLI_FILE: fputs("_files", stdout); return;
  case CLI_DEVICE:
    putchar('(');
    print_zsh_text(DEVICES);
    putchar(')');
    return;
  case CLI_SHELL: fputs("(" SHELLS ")", stdout); return;
  case CLI_COMMAND:
    putchar('(');
    print_names();
    putchar(')');
    return;
  default: putchar(' '); return;
  }
}

static void print_zsh_option(const cli_option *o) {
  fputs(" \\\n        ", stdout);
  if (o->key < 256)
    printf("{-%c%s,--%s%s}'[", o->key, o->label ? "+" : "", o->name, o->label ? "=" : "");
  else
    printf("'--%s%s[", o->name, o->label ? "=" : "");
  print_zsh_text(o->help);
  putchar(']');
  if (o->label) {
    putchar(':');
    print_zsh_text(o->label);
    putchar(':');
    print_zsh_action(o->value);
  }
  putchar('\'');
}

/* Read as the function _attune that zsh finds by its first line, or by source. */
static void print_zsh(void) {
  puts("#compdef attune\n# Completes attune in zsh. Made by `attune completion zsh'.\n_attune() {\n"
       "  if (( CURRENT == 2 )); then\n    local -a commands=(");
  for (size_t i = 0; i < cli_command_count; i++) {
    printf("      '%s:", cli_commands[i].name);
    print_zsh_text(cli_commands[i].summary);
    puts("'");
  }
  puts("    )\n    _describe -t commands command commands\n    return\n  fi\n"
       "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in");
  for (size_t i = 0; i < cli_command_count; i++) {
    printf("    %s)\n      _arguments '--help[Print what the command does and its options]'", cli_commands[i].name);
    for (const cli_option *o = cli_commands[i].options; o->name; o++) print_zsh_option(o);
    if (*cli_commands[i].argument) {
      fputs(" \\\n        '*:", stdout);
      print_zsh_text(cli_commands[i].argument);
      putchar(':');
      print_zsh_action(cli_commands[i].value);
      putchar('\'');
    }
    puts(" ;;");
  }
  puts("  esac\n}\n"
       "if [[ $funcstack[1] == _attune ]]; then\n  _attune \"$@\"\nelse\n"
       "  (( $+functions[compdef] )) || { autoload -U compinit && compinit; }\n  compdef _attune attune\nfi");
}

static void print_fish_text(const char *text) {
  print_quoted(text, "\\", "\\'");
}

/* What completes a value, as options of fish's complete. */
static void print_fish_values(cli_value value, bool option) {
  switch (value) {
  case CLI_FILE: fputs(option ? " -r -F" : " -F", stdout); return;
  case CLI_DEVICE: printf(" -x -a '%s'", DEVICES); return;
  case CLI_SHELL: printf(" -x -a '%s'", SHELLS); return;
  case CLI_COMMAND:
    fputs(" -x -a '", stdout);
    print_names();
    putchar('\'');
    return;
  case CLI_ANY:
    if (option) fputs(" -x", stdout);
    return;
  default: return;
  }
}

static void print_fish(void) {
  puts("# Completes attune in fish. Made by `attune completion fish'.\n"
       "function __attune_command -a name\n  set -l words (commandline -opc)\n"
       "  test (count $words) -ge 2; and test $words[2] = $name\nend\n"
       "function __attune_begins\n  test (count (commandline -opc)) -eq 1\nend\n"
       "complete -c attune -f\n"
       "complete -c attune -l help -s h -d 'Print what the command does and its options'");
  for (size_t i = 0; i < cli_command_count; i++) {
    const cli_command *c = &cli_commands[i];
    printf("complete -c attune -n __attune_begins -a %s -d '", c->name);
    print_fish_text(c->summary);
    puts("'");
    for (const cli_option *o = c->options; o->name; o++) {
      printf("complete -c attune -n '__attune_command %s' -l %s", c->name, o->name);
      if (o->key < 256) printf(" -s %c", o->key);
      print_fish_values(o->value, true);
      fputs(" -d '", stdout);
      print_fish_text(o->help);
      puts("'");
    }
    if (c->value == CLI_NO_VALUE || c->value == CLI_ANY) continue;
    printf("complete -c attune -n '__attune_command %s'", c->name);
    print_fish_values(c->value, false);
    putchar('\n');
  }
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
    if (strcmp(argument, "bash") != 0 && strcmp(argument, "zsh") != 0 && strcmp(argument, "fish") != 0)
      cli_bad_usage(state, "SHELL is \"%s\"; should be bash, zsh or fish", argument);
    return 0;
  case ARGP_KEY_END:
    if (!o->shell) cli_bad_usage(state, "no SHELL; should be bash, zsh or fish");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

int cmd_completion(int argc, char **argv) {
  options o = {.shell = NULL};
  if (cli_parse("completion", argc, argv, &o.common, parse, &o) != 0 || !o.shell) return CLI_USAGE;
  if (strcmp(o.shell, "zsh") == 0)
    print_zsh();
  else if (strcmp(o.shell, "fish") == 0)
    print_fish();
  else
    print_bash();
  return CLI_DONE;
}
