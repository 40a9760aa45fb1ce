/* SPDX-License-Identifier: Apache-2.0
 * outside_host.c: the host side of bench_outside: two processes of this program, one with attune and one with the CBLAS
 * alone, which take turns. */
#include "bench/outside/outside.h"

#include "bench/common/tool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct child {
  pid_t pid;
  FILE *to, *from;
} child;

typedef struct host_state {
  child attune, vendor;
  double slice_ms, pause_ms;
} host_state;

static void start(child *out, char *const arguments[]) {
  int to[2], from[2];
  if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) bench_die("no pipes for a separate process");
  out->pid = fork();
  if (out->pid < 0) bench_die("no separate process could be started");
  if (out->pid == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    execv("/proc/self/exe", arguments);
    _exit(127);
  }
  close(to[0]), close(from[1]);
  out->to = fdopen(to[1], "w");
  out->from = fdopen(from[0], "r");
  if (!out->to || !out->from) bench_die("no pipes for a separate process");
}

static void ask(child *c, char *answer, size_t size, const char *command) {
  fprintf(c->to, "%s\n", command);
  fflush(c->to);
  if (!fgets(answer, (int)size, c->from)) bench_die("a measuring process ended: \"%s\"", command);
  answer[strcspn(answer, "\n")] = '\0';
}

static bool host_open(outside_side *side, const bench_problem *problem, bench_place place) {
  host_state *host = side->state;
  char text[256], command[512], answer[512];
  bench_check(attune_gemm_problem_format(text, sizeof text, &problem->given, NULL), "attune_gemm_problem_format");
  snprintf(command, sizeof command, "open %zu %zu %s", place.alignment, place.spacing, text);
  ask(&host->vendor, answer, sizeof answer, command);
  if (strcmp(answer, "ok") != 0) return false;
  ask(&host->attune, answer, sizeof answer, command);
  ask(&host->attune, answer, sizeof answer, "run 1"); /* in mode tune, the first call tunes */
  return true;
}

static double run(child *c, double ms) {
  char command[64], answer[64];
  snprintf(command, sizeof command, "run %g", ms);
  ask(c, answer, sizeof answer, command);
  return atof(answer);
}

/* Idle threads of a CBLAS spin for tens of milliseconds after its last call, on the CPUs that the other's team needs:
 * no program would pay for another's calls. */
static double host_sample(outside_side *side, int way) {
  host_state *host = side->state;
  const long ns = (long)(1e6 * host->pause_ms);
  nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
  return run(way == OUTSIDE_ATTUNE ? &host->attune : &host->vendor, host->slice_ms);
}

static void host_explain(outside_side *side, bench_choice *out) {
  host_state *host = side->state;
  char answer[1024];
  int source = 0, at = 0;
  memset(out, 0, sizeof *out);
  ask(&host->attune, answer, sizeof answer, "explain");
  char *text = strchr(answer, '|');
  if (!text || sscanf(answer, "%d %lf %lf %31s %191[^|]%n", &source, &out->time_ns, &out->default_time_ns,
                      out->implementation, out->configuration, &at) != 5)
    bench_die("a measuring process answered \"%s\"", answer);
  out->source = (attune_source)source;
  snprintf(out->problem, sizeof out->problem, "%.255s", text + 1);
}

static void host_close(outside_side *side) {
  (void)side;
}

static void host_end(outside_side *side) {
  host_state *host = side->state;
  child *each[] = {&host->attune, &host->vendor};
  for (int i = 0; i < 2; i++) {
    fclose(each[i]->to);
    fclose(each[i]->from);
    waitpid(each[i]->pid, NULL, 0);
  }
  free(host);
}

void outside_host_open(outside_side *side, const outside_options *o) {
  host_state *host = calloc(1, sizeof *host);
  if (!host) bench_die("out of memory");
  side->state = host;
  host->slice_ms = o->slice_ms;
  host->pause_ms = o->pause_ms;
  char *attune[] = {
      "bench_outside",           "--worker", "attune", "--db", (char *)(uintptr_t)(o->database ? o->database : ""),
      o->tune ? "--tune" : NULL, NULL};
  char *vendor[] = {"bench_outside", "--worker", (char *)(uintptr_t)o->blas, NULL};
  start(&host->attune, attune);
  start(&host->vendor, vendor);
  side->vendor = o->blas;
  side->method = "two processes in turns with a rest between them, one with attune and one with the CBLAS alone (gemv "
                 "where D is a vector), hot operands, the default threads of each";
  side->floor_ratio = 0.97;
  side->claim_tolerance = 0.05;
  snprintf(side->libraries, sizeof side->libraries, "%s", o->blas);
  side->open = host_open;
  side->sample = host_sample;
  side->explain = host_explain;
  side->close = host_close;
  side->end = host_end;
}
