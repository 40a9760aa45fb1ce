/* SPDX-License-Identifier: Apache-2.0
 * worker.c: the runner's side of tools/bench/protocol.h. Nothing that a worker says is believed before it was checked;
 * one that crashes, hangs or talks garbage is killed with its whole group, and the reason is reported. */
#include "tools/compare/message.h"
#include "tools/compare/run/cpu_affinity.h"
#include "tools/compare/run/line_socket.h"
#include "tools/compare/run/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_S 10.0 /* for a process to end once it was asked to, or has closed its socket */
#define CASES_MOST 100000
#define BIG 1e24

typedef struct worker {
  gate_source source;
  char **argv;
  gate_process process;
  gate_lines lines;
  gate_pin pin; /* while a case is open */
  bool tried;   /* a case was opened in this process */
} worker;

static worker *worker_of(gate_source *source) {
  return (worker *)source;
}

static void hang_up(worker *w) {
  if (w->lines.socket >= 0) (void)close(w->lines.socket);
  w->lines.socket = -1;
  w->source.alive = false;
}

/* Ends the process, and tells why it is of no more use. */
static char *lose(worker *w, gate_answer answer) {
  char *what = NULL, *told;
  hang_up(w);
  if (answer == GATE_ENDED && gate_process_wait(&w->process, gate_deadline(END_S), NULL))
    return gate_process_told(&w->process);
  gate_process_kill(&w->process);
  if (answer == GATE_ENDED) what = gate_copy("closed its socket");
  if (answer == GATE_LATE) what = gate_say("hung (no answer after %g s)", w->source.limits.hang_s);
  if (answer == GATE_INTERRUPTED) what = gate_copy("interrupted");
  if (!what) what = gate_copy("sent an answer outside the protocol of attune bench");
  told = gate_process_say(&w->process, what);
  free(what);
  return told;
}

static char *lose_garbage(worker *w) {
  return lose(w, GATE_GARBAGE);
}

/* Is the last line `word` and `count` words in all? */
static bool is(const worker *w, const char *word, int count) {
  return w->lines.word_count == count && strcmp(w->lines.words[0], word) == 0;
}

/* Reads a line. *failed: the worker is well, but the case is not, and the sentence is its own. */
static char *hear(worker *w, int64_t deadline_ns, bool *failed) {
  *failed = false;
  const gate_answer answer = gate_lines_read(&w->lines, &w->process, deadline_ns, &w->source.limits);
  if (answer != GATE_ANSWERED) return lose(w, answer);
  *failed = is(w, "failed", 2);
  if (!*failed) return NULL;
  char *line = gate_one_line(w->lines.words[1]);
  if (*line) return line;
  free(line);
  return gate_copy("failed without a reason");
}

static int64_t deadline(const worker *w) {
  return gate_deadline(w->source.limits.hang_s);
}

/* --- start --- */

static char *launch(worker *w) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return gate_say("no socket for %s: %s", w->source.name, strerror(errno));
  gate_lift(ends);
  w->lines = (gate_lines){.socket = ends[0]};
  char *error = gate_process_start(&w->process, (const char *const *)w->argv, ends[1], &w->source.random);
  (void)close(ends[1]);
  w->tried = false;
  w->source.absent = w->process.absent;
  if (error)
    hang_up(w);
  else
    w->source.alive = true;
  return error;
}

/* A shell ends so where it finds no program of that name; so does a program whose libraries are not found, which says
 * that. */
static bool shell_found_none(const worker *w) {
  const bool shell = w->argv[1] && strcmp(w->argv[0], "/bin/sh") == 0 && strcmp(w->argv[1], "-c") == 0;
  return shell && !w->process.pid && WIFEXITED(w->process.status) && WEXITSTATUS(w->process.status) == 127 &&
         !strstr(w->process.words, "shared librar");
}

/* Where posix_spawn does not tell that there is no such program (under valgrind), the path does. */
static bool is_not_there(const worker *w) {
  return strchr(w->argv[0], '/') && access(w->argv[0], F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

static char *greet(worker *w) {
  bool failed;
  double version;
  char *error = hear(w, deadline(w), &failed);
  if (error) {
    w->source.absent = shell_found_none(w) || is_not_there(w);
    char *longer = gate_say("%s (before it sent anything: does it pass its arguments to attune_bench_main?)", error);
    free(error);
    return longer;
  }
  if (!is(w, "attune-bench", 3) || !gate_lines_number(&w->lines, 1, 1, 1e9, &version)) return lose_garbage(w);
  if ((int)version != AT_BENCH_PROTOCOL) {
    free(lose_garbage(w));
    return gate_say("speaks version %d of the protocol of attune bench, this attune version %d; build it with this "
                    "release of attune",
                    (int)version, AT_BENCH_PROTOCOL);
  }
  snprintf(w->source.version, sizeof w->source.version, "%s", w->lines.words[2]);
  return NULL;
}

static bool read_case(const worker *w, size_t index, gate_case *out) {
  double number, bytes, flops;
  char *const *words = w->lines.words;
  const int count = w->lines.word_count;
  if ((!is(w, "case", 8) && !is(w, "case", 9)) || !gate_lines_number(&w->lines, 1, 0, CASES_MOST, &number) ||
      (size_t)number != index || !gate_lines_number(&w->lines, 5, 0, BIG, &bytes) ||
      !gate_lines_number(&w->lines, 6, 0, BIG, &flops))
    return false;
  for (int i = 2; i < count; i++)
    if (!*words[i]) return false;
  *out = (gate_case){.name = gate_copy(words[2]),
                     .device = gate_copy(words[3]),
                     .mode = gate_copy(words[4]),
                     .bytes = bytes,
                     .flops = flops,
                     .dtype = gate_copy(words[7]),
                     .peer_of = count > 8 ? gate_copy(words[8]) : NULL};
  return true;
}

static char *list(worker *w, gate_case **cases, size_t *count) {
  size_t room = 0;
  bool failed;
  if (!gate_lines_write(&w->lines, "list\n")) return lose(w, GATE_ENDED);
  const int64_t until = deadline(w);
  for (;;) {
    char *error = hear(w, until, &failed);
    if (error) return error;
    if (is(w, "end", 1)) return NULL;
    if (*count == room) *cases = gate_grow(*cases, room = room ? 2 * room : 32, sizeof **cases);
    if (*count == CASES_MOST || !read_case(w, *count, &(*cases)[*count])) return lose_garbage(w);
    ++*count;
  }
}

static char *start(gate_source *source, gate_case **cases, size_t *count) {
  worker *w = worker_of(source);
  *cases = NULL;
  *count = 0;
  char *error = launch(w);
  if (!error) error = greet(w);
  if (!error) error = list(w, cases, count);
  if (!error) return NULL;
  gate_cases_free(*cases, *count);
  *cases = NULL;
  *count = 0;
  source->kind->stop(source);
  return error;
}

/* --- a case --- */

/* What another case left behind ended the process: that is not this one's doing, and is said so. */
static char *lose_before(worker *w) {
  char *end = lose(w, GATE_ENDED);
  char *told = w->tried ? gate_say("its process had already ended, after another case: %s", end) : gate_copy(end);
  free(end);
  return told;
}

static char *open_case(gate_source *source, size_t index, double sample_ns, uint64_t seed, int *calls) {
  worker *w = worker_of(source);
  bool failed;
  double number;
  if (gate_process_over(&w->process)) return lose_before(w);
  gate_process_forget(&w->process); /* the last words are this case's own */
  w->tried = true;
  if (!gate_lines_write(&w->lines, "open\t%zu\t%.0f\t%llu\n", index, sample_ns, (unsigned long long)seed))
    return lose(w, GATE_ENDED);
  char *error = hear(w, deadline(w), &failed);
  if (error) return error;
  if (!is(w, "opened", 2) || !gate_lines_number(&w->lines, 1, 1, 1e9, &number)) return lose_garbage(w);
  *calls = (int)number;
  gate_pin_set(&w->pin, w->process.pid, seed);
  return NULL;
}

static bool read_sample(const worker *w, gate_sample *out) {
  double start; /* to see that it is a number at all */
  if (!is(w, "sample", 4) || !gate_lines_number(&w->lines, 1, 0, 9e18, &start) ||
      !gate_lines_number(&w->lines, 2, 0, 1e15, &out->ns) || !gate_lines_number(&w->lines, 3, 0, 1e15, &out->cpu_ns))
    return false;
  out->start = strtoll(w->lines.words[1], NULL, 10);
  return out->ns > 0;
}

static char *sample(gate_source *source, gate_visit *visit, int count) {
  worker *w = worker_of(source);
  bool failed;
  double clock, throttled;
  if (!gate_lines_write(&w->lines, "sample\t%d\n", count)) return lose(w, GATE_ENDED);
  const int64_t until = deadline(w);
  for (int i = 0; i < count; i++) {
    char *error = hear(w, until, &failed);
    if (error) return error;
    if (!read_sample(w, &visit->samples[visit->sample_count])) return lose_garbage(w);
    visit->sample_count++;
  }
  char *error = hear(w, until, &failed);
  if (error) return error;
  if (!is(w, "end", 3) || !gate_lines_number(&w->lines, 1, 0, 1e6, &clock) ||
      !gate_lines_number(&w->lines, 2, 0, 1, &throttled))
    return lose_garbage(w);
  const int before = visit->sample_count - count; /* the clock is the mean of what is known */
  if (clock > 0)
    visit->clock_mhz = visit->clock_mhz > 0 ? (visit->clock_mhz * before + clock * count) / visit->sample_count : clock;
  visit->throttled = visit->throttled || throttled > 0;
  return NULL;
}

static char *close_case(gate_source *source) {
  worker *w = worker_of(source);
  bool failed;
  gate_pin_undo(&w->pin, w->process.pid);
  if (!gate_lines_write(&w->lines, "close\n")) return lose(w, GATE_ENDED);
  char *error = hear(w, deadline(w), &failed);
  if (error) return error;
  return is(w, "closed", 1) ? NULL : lose_garbage(w);
}

static void stop(gate_source *source) {
  worker *w = worker_of(source);
  if (source->alive) (void)gate_lines_write(&w->lines, "quit\n");
  hang_up(w);
  if (w->process.pid && !gate_process_wait(&w->process, gate_deadline(END_S), &source->limits))
    gate_process_kill(&w->process);
}

static void destroy(gate_source *source) {
  worker *w = worker_of(source);
  stop(source);
  gate_argv_free(w->argv);
  free(w);
}

static const gate_source_kind kind = {start, open_case, sample, close_case, stop, destroy};

gate_source *gate_worker_create(const char *const *argv, const gate_limits *limits, uint64_t seed) {
  worker *w = gate_alloc(1, sizeof *w);
  size_t count = 0;
  while (argv[count]) count++;
  w->argv = gate_alloc(count + 2, sizeof *w->argv);
  for (size_t i = 0; i < count; i++) w->argv[i] = gate_copy(argv[i]);
  w->argv[count] = gate_say("%s%d", AT_BENCH_ARGUMENT, GATE_SOCKET);
  w->source = (gate_source){.kind = &kind, .name = w->argv[0], .limits = *limits, .random = seed};
  w->process = (gate_process){.handle = -1, .errors = -1};
  w->lines.socket = -1;
  return &w->source;
}
