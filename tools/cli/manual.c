/* SPDX-License-Identifier: Apache-2.0
 * manual.c: the parts of the manual page that the table of commands knows: `attune --manual`. docs/attune.1 holds them
 * between two marks, and a test compares. */
#include "tools/cli/commands.h"

#include <string.h>

/* Text for roff: no hyphen that breaks, no line that begins with a control character. */
static void put_text(FILE *out, const char *text) {
  for (; *text; text++) {
    if (*text == '-')
      fputs("\\-", out);
    else if (*text == '\\')
      fputs("\\e", out);
    else
      putc(*text == '`' ? '\'' : *text, out);
  }
}

static void put_line(FILE *out, const char *macro, const char *text) {
  fputs(macro, out);
  if (*text) {
    putc(' ', out);
    put_text(out, text);
  }
  putc('\n', out);
}

static void synopsis(FILE *out, const cli_command *command) {
  fputs(".B attune ", out);
  put_text(out, command->name);
  putc('\n', out);
  if (*command->argument) put_line(out, ".I", command->argument);
  for (const cli_option *o = command->options; o->name; o++) {
    fputs(".RB [ \\-\\-", out);
    put_text(out, o->name);
    if (!o->label) {
      fputs(" ]\n", out);
      continue;
    }
    fputs("\n.IR ", out);
    put_text(out, o->label);
    fputs(" ]\n", out);
  }
}

/* Does an earlier command have an option with the same name and help? It is printed once. */
static int printed(size_t index, const cli_option *option) {
  for (size_t i = 0; i < index; i++)
    for (const cli_option *o = cli_commands[i].options; o->name; o++)
      if (strcmp(o->name, option->name) == 0 && strcmp(o->help, option->help) == 0) return 1;
  return 0;
}

static void option(FILE *out, const cli_command *command, const cli_option *o) {
  fputs(".TP\n", out);
  if (o->key < 256)
    fprintf(out, ".BR \\-%c \", \" ", o->key);
  else
    fputs(".BR ", out);
  fputs("\\-\\-", out);
  put_text(out, o->name);
  if (o->label) {
    fputs(" \" \\fI", out);
    put_text(out, o->label);
    fputs("\\fR\"", out);
  }
  putc('\n', out);
  if (strcmp(command->name, "show") == 0 && strcmp(o->name, "device") == 0) fputs("With show: ", out);
  put_text(out, o->help);
  fputs(".\n", out);
}

void cli_print_manual(FILE *out) {
  fputs(".SH SYNOPSIS\n", out);
  for (size_t i = 0; i < cli_command_count; i++) {
    if (i) fputs(".br\n", out);
    synopsis(out, &cli_commands[i]);
  }
  fputs(".SH COMMANDS\n", out);
  for (size_t i = 0; i < cli_command_count; i++) {
    fputs(".TP\n", out);
    fprintf(out, ".BI %s \" %s\"\n", cli_commands[i].name, cli_commands[i].argument);
    put_text(out, cli_commands[i].purpose);
    putc('\n', out);
    char details[2048];
    cli_details(&cli_commands[i], details, sizeof details);
    put_text(out, details);
    putc('\n', out);
  }
  fputs(".SH OPTIONS\n", out);
  for (size_t i = 0; i < cli_command_count; i++)
    for (const cli_option *o = cli_commands[i].options; o->name; o++)
      if (!printed(i, o)) option(out, &cli_commands[i], o);
  fprintf(out, ".TP\n.BR \\-%c \", \" \\-\\-help\nPrint help about the command and its options.\n",
          cli_help_option.key);
}
