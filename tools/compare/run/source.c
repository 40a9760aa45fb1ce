/* SPDX-License-Identifier: Apache-2.0
 * source.c: what worker processes and commands share: command lines, lists of cases. */
#include "tools/compare/run/source.h"

#include "tools/compare/message.h"

#include <stdlib.h>
#include <string.h>

/* What a shell takes as it is, also in the first word. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+:,@%-"
#define BUILD "{build}"

void gate_source_destroy(gate_source *source) {
  if (source) source->kind->destroy(source);
}

void gate_cases_free(gate_case *cases, size_t count) {
  gate_run run = {.cases = cases, .case_count = count};
  gate_run_free(&run);
}

/* `text` with `build` in place of each {build}, as it is. */
static char *with_build(const char *text, const char *build) {
  char *out = gate_copy("");
  for (const char *place; (place = strstr(text, BUILD)); text = place + sizeof BUILD - 1) {
    char *longer = gate_say("%s%.*s%s", out, (int)(place - text), text, build);
    free(out);
    out = longer;
  }
  char *whole = gate_say("%s%s", out, text);
  free(out);
  return whole;
}

/* --- for a shell --- */

typedef struct shell_line {
  char *text;
  size_t length;
} shell_line;

static void put(shell_line *line, const char *bytes, size_t count) {
  line->text = gate_grow(line->text, line->length + count + 1, 1);
  memcpy(line->text + line->length, bytes, count);
  line->text[line->length += count] = '\0';
}

/* So that the shell reads it as the text that it is; `quote`: which quotes it stands in, 0: none. */
static void put_quoted(shell_line *line, const char *text, char quote) {
  if (!quote) put(line, "'", 1);
  for (; *text; text++) {
    if (quote == '"' && strchr("\"\\$`", *text)) put(line, "\\", 1);
    if (quote != '"' && *text == '\'')
      put(line, "'\\''", 4);
    else
      put(line, text, 1);
  }
  if (!quote) put(line, "'", 1);
}

/* `text` with each {build} in it, whatever the folder is called. */
static char *shell_text(const char *text, const char *build) {
  shell_line line = {gate_copy(""), 0};
  char quote = 0;
  while (*text) {
    if (strncmp(text, BUILD, sizeof BUILD - 1) == 0) {
      put_quoted(&line, build, quote);
      text += sizeof BUILD - 1;
      continue;
    }
    if (*text == '\\' && quote != '\'' && text[1])
      put(&line, text++, 1);
    else if (quote == *text)
      quote = 0;
    else if (!quote && (*text == '"' || *text == '\''))
      quote = *text;
    put(&line, text++, 1);
  }
  return line.text;
}

/* --- words --- */

/* Words and blanks, and nothing that a shell would act on: then no shell is started, and timed, for nothing. */
static bool is_plain(const char *line) {
  char *rest = with_build(line, "x");
  const size_t first = strspn(rest, PLAIN);
  const bool plain = first && strspn(rest, PLAIN "= ") == strlen(rest) && rest[first] != '=';
  free(rest);
  return plain;
}

char **gate_argv_of(const char *line, const char *build, bool more) {
  char **argv = gate_alloc(strlen(line) + 5, sizeof *argv);
  size_t count = 0;
  if (!is_plain(line)) {
    char *text = shell_text(line, build);
    argv[0] = gate_copy("/bin/sh");
    argv[1] = gate_copy("-c");
    argv[2] = gate_say(more ? "%s \"$@\"" : "%s", text);
    argv[3] = gate_copy("sh");
    free(text);
    return argv;
  }
  char *copy = gate_copy(line), *rest = copy;
  for (char *word; (word = strsep(&rest, " "));)
    if (*word) argv[count++] = with_build(word, build);
  free(copy);
  return argv;
}

void gate_argv_free(char **argv) {
  for (size_t i = 0; argv && argv[i]; i++) free(argv[i]);
  free(argv);
}
