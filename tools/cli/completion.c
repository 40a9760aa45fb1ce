/* SPDX-License-Identifier: Apache-2.0
 * completion.c: `attune completion`: a script for a shell, made of the table of commands. */
#include "tools/cli/commands.h"

#include <string.h>

/* Options that argp adds to every command. */
static const cli_option added[] = {{"help", 'h', NULL, CLI_NO_VALUE, "Print help about the command and its options"},
                                   {"usage", 256, NULL, CLI_NO_VALUE, "Print a short usage message"},
                                   {"version", 'V', NULL, CLI_NO_VALUE, "Print the version of attune"},
                                   {NULL, 0, NULL, CLI_NO_VALUE, NULL}};

static void print_names(void) {
  for (size_t i = 0; i < cli_command_count; i++) printf("%s%s", i ? " " : "", cli_commands[i].name);
}

/* The words that a value may be; NULL: any, or a command's name. */
static const char *words_of(cli_value value) {
  switch (value) {
  case CLI_WORKLOAD: return "recorded";
  case CLI_DEVICE: return "host cuda cuda:0 cuda:1";
  case CLI_SHELL: return "bash zsh fish";
  case CLI_CONTRACT: return "strict equivalent reduced";
  case CLI_DTYPE: return "f64 f32 f16 bf16 f8e4m3 f8e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128";
  case CLI_SUITE: return "runtime";
  case CLI_FORMAT: return "bmf github google otava";
  case CLI_EXPORT: return "bmf= github= google= otava=";
  default: return NULL;
  }
}

static bool may_be_file(cli_value value) {
  return value == CLI_FILE || value == CLI_WORKLOAD;
}

/* ---- bash ---- */

/* Completion of a value: words of compgen. */
static void print_compgen(cli_value value) {
  const char *words = words_of(value);
  if (may_be_file(value)) fputs("-f ", stdout);
  if (words) printf("-W '%s'", words);
  if (value != CLI_COMMAND) return;
  fputs("-W '", stdout);
  print_names();
  putchar('\'');
}

static bool completes(cli_value value) {
  return value != CLI_NO_VALUE && value != CLI_ANY;
}

static void print_words_of(const cli_option *o) {
  for (; o->name; o++) {
    printf("--%s ", o->name);
    if (o->key < 256) printf("-%c ", o->key);
  }
}

static void print_values(const cli_command *command) {
  for (const cli_option *o = command->options; o->name; o++) {
    if (!o->label) continue;
    printf("        %s:--%s", command->name, o->name);
    if (o->key < 256) printf("|%s:-%c", command->name, o->key);
    fputs(") ", stdout);
    if (completes(o->value)) {
      fputs("COMPREPLY=($(compgen ", stdout);
      print_compgen(o->value);
      fputs(" -- \"$word\")); ", stdout);
    }
    puts("return ;;");
  }
}

static void print_bash(void) {
  puts("# Completes attune in bash. Made by `attune completion bash'.\n"
       "_attune() {\n"
       "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
       "  COMPREPLY=()\n"
       "  if [ \"$word\" = = ]; then word=; elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi # "
       "--option=value");
  fputs("  if [ \"$COMP_CWORD\" = 1 ]; then\n    COMPREPLY=($(compgen -W '", stdout);
  print_names();
  putchar(' ');
  print_words_of(added);
  puts("' -- \"$word\"))\n    return\n  fi\n  case $command:$before in");
  for (size_t i = 0; i < cli_command_count; i++) print_values(&cli_commands[i]);
  puts("  esac\n  case $command:$word in");
  for (size_t i = 0; i < cli_command_count; i++) {
    printf("    %s:-*) COMPREPLY=($(compgen -W '", cli_commands[i].name);
    print_words_of(cli_commands[i].options);
    print_words_of(added);
    puts("' -- \"$word\")) ;;");
    if (!completes(cli_commands[i].value)) continue;
    printf("    %s:*) COMPREPLY=($(compgen ", cli_commands[i].name);
    print_compgen(cli_commands[i].value);
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

/* Completion of a value, as an action of _arguments. */
static void print_zsh_action(cli_value value) {
  const char *words = words_of(value);
  if (value == CLI_WORKLOAD) {
    printf("{ _files; compadd %s }", words);
  } else if (value == CLI_FILE) {
    fputs("_files", stdout);
  } else if (words || value == CLI_COMMAND) {
    putchar('(');
    if (words) print_zsh_text(words);
    if (!words) print_names();
    putchar(')');
  } else {
    putchar(' ');
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
    printf("    %s)\n      _arguments", cli_commands[i].name);
    for (const cli_option *o = added; o->name; o++) print_zsh_option(o);
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

/* Completion of a value, as options of fish's complete. */
static void print_fish_values(cli_value value, bool option) {
  const char *words = words_of(value);
  if (may_be_file(value)) {
    fputs(option ? " -r -F" : " -F", stdout);
    if (words) printf(" -a '%s'", words);
  } else if (words) {
    printf(" -x -a '%s'", words);
  } else if (value == CLI_COMMAND) {
    fputs(" -x -a '", stdout);
    print_names();
    putchar('\'');
  } else if (value == CLI_ANY && option) {
    fputs(" -x", stdout);
  }
}

static void print_fish_option(const cli_option *o) {
  printf(" -l %s", o->name);
  if (o->key < 256) printf(" -s %c", o->key);
  print_fish_values(o->value, true);
  fputs(" -d '", stdout);
  print_fish_text(o->help);
  puts("'");
}

static void print_fish(void) {
  puts("# Completes attune in fish. Made by `attune completion fish'.\n"
       "function __attune_command -a name\n  set -l words (commandline -opc)\n"
       "  test (count $words) -ge 2; and test $words[2] = $name\nend\n"
       "function __attune_begins\n  test (count (commandline -opc)) -eq 1\nend\n"
       "complete -c attune -f");
  for (const cli_option *o = added; o->name; o++) {
    fputs("complete -c attune", stdout);
    print_fish_option(o);
  }
  for (size_t i = 0; i < cli_command_count; i++) {
    const cli_command *c = &cli_commands[i];
    printf("complete -c attune -n __attune_begins -a %s -d '", c->name);
    print_fish_text(c->summary);
    puts("'");
    for (const cli_option *o = c->options; o->name; o++) {
      printf("complete -c attune -n '__attune_command %s'", c->name);
      print_fish_option(o);
    }
    if (!completes(c->value)) continue;
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
