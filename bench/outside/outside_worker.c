/* SPDX-License-Identifier: Apache-2.0
 * outside_worker.c: one of the two processes that bench_outside alternates on the host: it times attune, or a CBLAS and
 * nothing else, for as long as it is told, and otherwise sleeps in read().
 *
 * Commands, a line each: "open ALIGNMENT SPACING PROBLEM" -> "ok" or "none"; "run MILLISECONDS" -> nanoseconds a call;
 * "explain" -> the problem's text, the winner's time and its default's, the implementation. */
#include "bench/outside/outside.h"

#include "bench/common/cblas.h"
#include "bench/common/tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLACK = 4096 };

typedef struct worker {
  attune_tuner *tuner; /* attune's side */
  attune_device *device;
  bench_cblas blas; /* the vendor's side */
  bench_problem problem;
  void *memory;
  attune_gemm_operands operands;
} worker;

static bool open_problem(worker *w, bench_place place, const char *text) {
  const attune_workload_entry entry = {.problem = text, .count = 1};
  bench_problem_read(&w->problem, &entry);
  const attune_gemm_problem *g = &w->problem.gemm;
  if (!bench_cblas_has(g)) return false;
  size_t start[3];
  const size_t bytes = bench_lay_out(&w->problem, place, 0, start);
  free(w->memory);
  w->memory = aligned_alloc(4096, (bytes + SLACK) / 4096 * 4096 + 4096);
  if (!w->memory) bench_die("out of memory for %zu bytes of operands", bytes);
  char *base = w->memory;
  bench_random_fill(base + start[0], g->dtype, w->problem.bytes_a, 1);
  bench_random_fill(base + start[1], g->dtype, w->problem.bytes_b, 2);
  memset(base + start[2], 0, w->problem.bytes_d);
  w->operands = (attune_gemm_operands){.alpha = 1.0, .a = base + start[0], .b = base + start[1], .d = base + start[2]};
  return true;
}

static void calls(const worker *w, long count) {
  attune_stream *stream = w->tuner ? attune_stream_default(w->device) : NULL;
  for (long i = 0; i < count; i++) {
    if (!w->tuner)
      bench_cblas_run(&w->blas, &w->problem.gemm, &w->operands, true);
    else if (attune_gemm(w->tuner, stream, &w->problem.given, &w->operands) != ATTUNE_OK)
      bench_die("attune_gemm: %s", attune_last_message());
  }
}

/* Calls for `ms`, after a first part that is not timed; nanoseconds a call. */
static double run(const worker *w, double ms) {
  double start = bench_now_ns();
  long part = 1;
  for (double spent = 0; spent < 0.1e6 * ms || spent < 2e4; part *= 2) {
    calls(w, part);
    spent = bench_now_ns() - start;
  }
  part = part > 16 ? part / 16 : 1;
  long done = 0;
  start = bench_now_ns();
  double now = start;
  for (; now - start < 1e6 * ms; now = bench_now_ns()) {
    calls(w, part);
    done += part;
  }
  return (now - start) / (double)done;
}

static void explain(const worker *w) {
  char text[256];
  bench_choice d;
  bench_check(attune_gemm_problem_format(text, sizeof text, &w->problem.given, &w->operands),
              "attune_gemm_problem_format");
  bench_explain(&d, w->tuner, w->device, text);
  printf("%d %.3f %.3f %s %s|%s\n", (int)d.source, d.time_ns, d.unsure ? 0.0 : d.default_time_ns, d.implementation,
         d.configuration[0] ? d.configuration : "-", text);
}

static void open_tuner(worker *w, const char *database, bool tune) {
  attune_tuner_options settings = ATTUNE_TUNER_OPTIONS_INIT;
  settings.database = database;
  settings.mode = tune ? ATTUNE_MODE_TUNE : ATTUNE_MODE_CACHED;
  bench_check(attune_device_get(&w->device, "host"), "host");
  bench_check(attune_tuner_create(&w->tuner, &settings), "attune_tuner_create");
}

int outside_worker(const char *blas, const char *database, bool tune) {
  worker w = {0};
  char line[512];
  if (!blas)
    open_tuner(&w, database, tune);
  else if (!bench_cblas_load(&w.blas, blas))
    bench_die("%s was not found, or is not a CBLAS", blas);
  while (fgets(line, sizeof line, stdin)) {
    bench_place place;
    double ms = 0;
    int at = 0;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "open %zu %zu %n", &place.alignment, &place.spacing, &at) == 2 && at > 0)
      puts(open_problem(&w, place, line + at) ? "ok" : "none");
    else if (sscanf(line, "run %lf", &ms) == 1)
      printf("%.4f\n", run(&w, ms));
    else if (strcmp(line, "explain") == 0)
      explain(&w);
    else
      bench_die("worker: unknown command \"%s\"", line);
    fflush(stdout);
  }
  attune_tuner_destroy(w.tuner);
  free(w.memory);
  return 0;
}
