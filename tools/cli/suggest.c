/* SPDX-License-Identifier: Apache-2.0
 * suggest.c: which command or option a mistyped word may mean. Options are checked before argp reads them, since argp
 * only says that it does not know one. */
#include "tools/cli/commands.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CHARS = 32 }; /* of a word that is compared; no command or option is longer */

static int least(int a, int b) {
  return a < b ? a : b;
}

/* How many characters must be added, left out, changed, or swapped with their neighbour to make `b` of `a`: the optimal
 * string alignment distance. */
static int distance(const char *a, size_t a_chars, const char *b, size_t b_chars) {
  int cost[MOST_CHARS + 1][MOST_CHARS + 1];
  for (size_t i = 0; i <= a_chars; i++) cost[i][0] = (int)i;
  for (size_t j = 0; j <= b_chars; j++) cost[0][j] = (int)j;
  for (size_t i = 1; i <= a_chars; i++)
    for (size_t j = 1; j <= b_chars; j++) {
      cost[i][j] = least(cost[i - 1][j] + 1, cost[i][j - 1] + 1);
      cost[i][j] = least(cost[i][j], cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = least(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  return cost[a_chars][b_chars];
}

/* A word of which `name` is the nearest so far. */
typedef struct nearest {
  const char *word, *name;
  size_t chars;
  int distance;
} nearest;

static void consider(nearest *n, const char *name) {
  const size_t chars = strlen(name);
  if (n->chars == 0 || n->chars > MOST_CHARS || chars > MOST_CHARS) return;
  const bool begins = n->chars > 1 && strncmp(n->word, name, n->chars) == 0;
  const int away = begins ? 1 : distance(n->word, n->chars, name, chars);
  const int allowed = n->chars < 4 ? 1 : n->chars < 8 ? 2 : 3;
  if (away > allowed || (n->name && away >= n->distance)) return;
  n->name = name;
  n->distance = away;
}

/* Names of commands in other programs. */
static const char *const synonyms[][2] = {
    {"list", "show"},    {"ls", "show"},  {"status", "show"}, {"info", "devices"},    {"check", "verify"},
    {"compile", "warm"}, {"run", "eval"}, {"why", "explain"}, {"benchmark", "bench"}, {"diff", "compare"}};

const char *cli_suggest_command(const char *word) {
  for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
    if (strcmp(word, synonyms[i][0]) == 0) return synonyms[i][1];
  nearest n = {.word = word, .chars = strlen(word)};
  for (size_t i = 0; i < cli_command_count; i++) consider(&n, cli_commands[i].name);
  return n.name;
}

/* argp's own, which every command has. */
static const char *const common[] = {"help", "usage", "version"};
enum { COMMON = sizeof common / sizeof common[0] };

static const cli_option *exact(const cli_command *command, const char *word, size_t chars) {
  for (const cli_option *o = command->options; o->name; o++)
    if (strlen(o->name) == chars && memcmp(o->name, word, chars) == 0) return o;
  return NULL;
}

/* An option may be abbreviated: how many it could be; *out is one that is not argp's. */
static int begun(const cli_command *command, const char *word, size_t chars, const cli_option **out) {
  int count = 0;
  for (int i = 0; i < COMMON; i++) count += strncmp(common[i], word, chars) == 0;
  for (const cli_option *o = command ? command->options : NULL; o && o->name; o++)
    if (strncmp(o->name, word, chars) == 0) {
      *out = o;
      count++;
    }
  return count;
}

/* The commands that have the option, "tune or bench"; how many. */
static int having(const char *word, size_t chars, char *out, size_t size) {
  int count = 0;
  size_t at = 0;
  for (size_t i = 0; i < cli_command_count && at < size; i++)
    if (exact(&cli_commands[i], word, chars))
      at += (size_t)snprintf(out + at, size - at, "%s%s", count++ ? ", " : "", cli_commands[i].name);
  return count;
}

static void fail(const struct argp_state *state, const cli_command *command, const char *word, size_t chars) {
  nearest n = {.word = word, .chars = chars};
  char names[128];
  for (const cli_option *o = command ? command->options : NULL; o && o->name; o++) consider(&n, o->name);
  const int others = having(word, chars, names, sizeof names);
  for (int i = 0; i < COMMON && !others; i++) consider(&n, common[i]);
  if (others && !command)
    cli_bad_usage(state, "--%.*s comes before the command; should come after it: attune COMMAND --%.*s", (int)chars,
                  word, (int)chars, word);
  else if (n.name)
    cli_bad_usage(state, "there is no option --%.*s; did you mean --%s?", (int)chars, word, n.name);
  else if (others)
    cli_bad_usage(state, "%s has no option --%.*s; %s ha%s", command->name, (int)chars, word, names,
                  others == 1 ? "s" : "ve");
  else
    cli_bad_usage(state, "there is no option --%.*s", (int)chars, word);
}

/* Of letters: does the last one take the next word as its value? */
static bool takes_next(const cli_command *command, const char *letters) {
  for (; command && *letters; letters++)
    for (const cli_option *o = command->options; o->name; o++)
      if (o->key == *letters && o->label) return letters[1] == '\0';
  return false;
}

void cli_check_options(const cli_command *command, struct argp_state *state) {
  if (!state->name) state->name = state->argv[0]; /* argp sets it later */
  for (int i = 1; i < state->argc && strcmp(state->argv[i], "--") != 0; i++) {
    const char *word = state->argv[i];
    if (*word != '-' && !command) return; /* the command's name */
    if (*word != '-') continue;
    if (word[1] != '-') {
      i += takes_next(command, word + 1);
      continue;
    }
    const size_t chars = strcspn(word += 2, "=");
    const cli_option *o = command ? exact(command, word, chars) : NULL;
    const int count = o ? 1 : begun(command, word, chars, &o);
    if (!count && !(chars == 6 && memcmp(word, "manual", 6) == 0)) fail(state, command, word, chars);
    i += count == 1 && o && o->label && word[chars] != '=';
  }
}
