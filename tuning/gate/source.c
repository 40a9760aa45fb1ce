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

/* Words with single blanks, and nothing that a shell would act on: the shell's own start is then not timed. */
static char **plain_argv(const char *line, const char *more) {
  const size_t first = strspn(line, PLAIN);
  size_t count = 0;
  if (!first || strspn(line, PLAIN "= ") != strlen(line) || line[first] == '=') return NULL;
  char *copy = gate_copy(line), *rest = copy, **argv = gate_alloc(strlen(line) + 3, sizeof *argv);
  for (char *word; (word = strsep(&rest, " "));)
    if (*word) argv[count++] = gate_copy(word);
  if (more) argv[count++] = gate_copy(more);
  free(copy);
  return argv;
}

char **gate_argv_of(const char *line, const char *more) {
  char **argv = plain_argv(line, more);
  if (argv) return argv;
  size_t count = 0;
  argv = gate_alloc(6, sizeof *argv);
  argv[count++] = gate_copy("/bin/sh");
  argv[count++] = gate_copy("-c");
  argv[count++] = gate_say(more ? "exec %s \"$@\"" : "exec %s", line);
  argv[count++] = gate_copy("sh");
  if (more) argv[count++] = gate_copy(more);
  return argv;
}

void gate_argv_free(char **argv) {
  for (size_t i = 0; argv && argv[i]; i++) free(argv[i]);
  free(argv);
}
