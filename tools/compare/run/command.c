/* SPDX-License-Identifier: Apache-2.0
 * command.c: command lines as cases. A sample is one process, from its start to its end. A command that does not end
 * with code 0, or hangs, is a failed case. */
#include "tools/compare/message.h"
#include "tools/compare/run/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define WARM_MOST_NS 1e8

typedef struct command {
  char *name;
  char **argv;
  double run_ns; /* its first run; 0: there was none that did well */
} command;

typedef struct commands {
  gate_source source;
  command *list;
  size_t count, open;
} commands;

static commands *commands_of(gate_source *source) {
  return (commands *)source;
}

static char *start(gate_source *source, gate_case **cases, size_t *count) {
  const commands *c = commands_of(source);
  *count = c->count;
  *cases = gate_alloc(c->count, sizeof **cases);
  for (size_t i = 0; i < c->count; i++)
    (*cases)[i] = (gate_case){.name = gate_copy(c->list[i].name),
                              .device = gate_copy("process"),
                              .mode = gate_copy("hot"),
                              .dtype = gate_copy("-")};
  source->alive = true;
  return NULL;
}

/* One process, timed. */
static char *run(commands *c, gate_sample *out) {
  gate_process process;
  const int64_t start_ns = gate_now_ns();
  char *error = gate_process_start(&process, (const char *const *)c->list[c->open].argv, -1, &c->source.random);
  if (error) return error;
  const bool ended = gate_process_wait(&process, gate_deadline(c->source.limits.hang_s), &c->source.limits);
  const int64_t end_ns = gate_now_ns();
  if (ended) {
    *out = (gate_sample){(double)(end_ns - start_ns), process.cpu_ns, start_ns};
    return WIFEXITED(process.status) && WEXITSTATUS(process.status) == 0 ? NULL : gate_process_told(&process);
  }
  gate_process_kill(&process);
  char *what = gate_interrupted(&c->source.limits) ? gate_copy("interrupted")
                                                   : gate_say("hung (no end after %g s)", c->source.limits.hang_s);
  error = gate_process_say(&process, what);
  free(what);
  return error;
}

/* Once, so that its files are in memory. One that takes long is not run for that again in later rounds: it hardly gains
 * by it, and would be in half as many of them. */
static char *open_case(gate_source *source, size_t index, double sample_ns, uint64_t seed, int *calls) {
  commands *c = commands_of(source);
  command *one = &c->list[index];
  gate_sample first = {0};
  (void)sample_ns;
  (void)seed;
  c->open = index;
  *calls = 1;
  char *error = one->run_ns > WARM_MOST_NS ? NULL : run(c, &first);
  if (!error && first.ns > 0) one->run_ns = first.ns;
  source->opened_ns = error ? 0 : one->run_ns;
  return error;
}

static char *sample(gate_source *source, gate_visit *visit, int count) {
  for (int i = 0; i < count; i++) {
    char *error = run(commands_of(source), &visit->samples[visit->sample_count]);
    if (error) return error;
    visit->sample_count++;
  }
  return NULL;
}

static char *close_case(gate_source *source) {
  (void)source;
  return NULL;
}

static void stop(gate_source *source) {
  source->alive = false;
}

static void destroy(gate_source *source) {
  commands *c = commands_of(source);
  for (size_t i = 0; i < c->count; i++) {
    free(c->list[i].name);
    gate_argv_free(c->list[i].argv);
  }
  free(c->list);
  free(c);
}

static const gate_source_kind kind = {start, open_case, sample, close_case, stop, destroy};

gate_source *gate_commands_create(const char *const *list, size_t count, const char *build, const gate_limits *limits,
                                  uint64_t seed) {
  commands *c = gate_alloc(1, sizeof *c);
  c->source = (gate_source){.kind = &kind, .name = "the commands", .limits = *limits, .random = seed};
  c->list = gate_alloc(count, sizeof *c->list);
  c->count = count;
  for (size_t i = 0; i < count; i++) {
    const char *equals = strchr(list[i], '=');
    c->list[i].name = equals ? strndup(list[i], (size_t)(equals - list[i])) : strdup(list[i]);
    c->list[i].argv = gate_argv_of(equals ? equals + 1 : list[i], build ? build : "", false);
  }
  return &c->source;
}
