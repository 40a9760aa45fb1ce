/* SPDX-License-Identifier: Apache-2.0
 * source.c: what worker processes and commands share: command lines, lists of cases. */
#include "tuning/gate/source.h"

#include "tuning/gate/say.h"

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

char *gate_with_build(const char *text, const char *build) {
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

/* Words and blanks, and nothing that a shell would act on: then no shell is started, and timed, for nothing. NULL: else. */
static char **plain_argv(const char *line) {
  const size_t first = strspn(line, PLAIN);
  size_t count = 0;
  if (!first || strspn(line, PLAIN "= ") != strlen(line) || line[first] == '=') return NULL;
  char *copy = gate_copy(line), *rest = copy, **argv = gate_alloc(strlen(line) + 2, sizeof *argv);
  for (char *word; (word = strsep(&rest, " "));)
    if (*word) argv[count++] = gate_copy(word);
  free(copy);
  return argv;
}

char **gate_argv_of(const char *line, bool more) {
  char **argv = plain_argv(line);
  if (argv) return argv;
  argv = gate_alloc(5, sizeof *argv);
  argv[0] = gate_copy("/bin/sh");
  argv[1] = gate_copy("-c");
  argv[2] = gate_say(more ? "%s \"$@\"" : "%s", line);
  argv[3] = gate_copy("sh");
  return argv;
}

void gate_argv_free(char **argv) {
  for (size_t i = 0; argv && argv[i]; i++) free(argv[i]);
  free(argv);
}
