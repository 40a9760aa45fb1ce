/* SPDX-License-Identifier: Apache-2.0
 * bench_worker.c: `attune bench` as the process that has the cases: of workloads, of suites, of a database's
 * winners. */
#include "tools/cli/bench/bench.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tools/bench/protocol.h"
#include "tools/cli/bench/suite_runtime.h"

bool bench_is_worker(int *argc, char **argv, int *fd) {
  static const size_t chars = sizeof AT_BENCH_ARGUMENT - 1;
  const char *last = *argc > 1 ? argv[*argc - 1] : "";
  char *end = NULL;
  if (strncmp(last, AT_BENCH_ARGUMENT, chars) != 0) return false;
  const long number = strtol(last + chars, &end, 10);
  *fd = *end || end == last + chars || number < 0 || number > 1 << 20 ? -1 : (int)number;
  argv[--*argc] = NULL;
  return true;
}

typedef struct serving {
  const bench_options *options;
  attune_bench *bench;
  attune_tuner *tuner;
  attune_device *device;
} serving;

static unsigned flags(const bench_options *o) {
  return (o->cold ? ATTUNE_BENCH_COLD : 0u) | (o->graph ? ATTUNE_BENCH_GRAPH : 0u);
}

static attune_status add_workload(const serving *s, const char *path) {
  attune_workload *workload = NULL;
  attune_status status = attune_workload_read(&workload, path);
  if (status == ATTUNE_OK)
    status = attune_bench_add_workload(s->bench, s->tuner, s->device, workload, flags(s->options));
  attune_workload_destroy(workload);
  return status;
}

/* --- the winners of a database, as a workload --- */

typedef struct winners {
  const char *device;
  FILE *out;
} winners;

static int write_winner(void *user, const attune_decision *decision, const char *fingerprint, int valid) {
  const winners *w = user;
  (void)fingerprint;
  const attune_decision_info d = cli_info(decision);
  if (!valid || strcmp(d.device, w->device) != 0) return 0;
  fputc('"', w->out);
  for (const char *c = d.problem; *c; c++) {
    if (*c == '"') fputc('"', w->out);
    fputc(*c, w->out);
  }
  fputs("\"\n", w->out);
  return 0;
}

static attune_status add_winners(const serving *s) {
  char path[64];
  const int fd = memfd_create("winners", MFD_CLOEXEC);
  winners w = {attune_device_name(s->device), fd < 0 ? NULL : fdopen(fd, "w")};
  if (!w.out) return ATTUNE_OUT_OF_MEMORY;
  fputs("problem\n", w.out);
  attune_status status = attune_tuner_winners(s->tuner, write_winner, &w);
  if (status == ATTUNE_OK && fflush(w.out) != 0) status = ATTUNE_IO_ERROR;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  if (status == ATTUNE_OK) status = add_workload(s, path);
  (void)fclose(w.out);
  return status;
}

/* --- suites --- */

static const struct {
  const char *name; /* NULL ends the list */
  bool (*add)(attune_bench *bench, attune_tuner *tuner, attune_device *device);
} suites[] = {{"runtime", suite_runtime_add}, {NULL, NULL}};

bool bench_has_suite(const char *name) {
  for (size_t i = 0; suites[i].name; i++)
    if (strcmp(suites[i].name, name) == 0) return true;
  return false;
}

static bool add_suite(const serving *s, const char *name) {
  for (size_t i = 0; suites[i].name; i++)
    if (strcmp(suites[i].name, name) == 0) return suites[i].add(s->bench, s->tuner, s->device);
  return false;
}

/* --- all --- */

static attune_status add_all(const serving *s) {
  const bench_options *o = s->options;
  attune_status status = ATTUNE_OK;
  for (size_t i = 0; status == ATTUNE_OK && i < o->workloads.count; i++) status = add_workload(s, o->workloads.at[i]);
  for (size_t i = 0; status == ATTUNE_OK && i < o->suites.count; i++)
    if (!add_suite(s, o->suites.at[i])) status = ATTUNE_INTERNAL;
  if (status == ATTUNE_OK && o->common.database && !o->workloads.count && !o->suites.count) status = add_winners(s);
  if (status == ATTUNE_OK && attune_bench_size(s->bench) && (o->workloads.count || !o->suites.count))
    status = bench_add_yardsticks(s->bench, s->tuner, s->device);
  return status;
}

int bench_serve(const bench_options *o, int fd) {
  serving s = {.options = o};
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = o->common.database;
  tuner_options.mode = ATTUNE_MODE_CACHED;
  int code = cli_open_device(&s.device, &o->common);
  if (code != CLI_DONE) return code;
  attune_status status = attune_tuner_create(&s.tuner, &tuner_options);
  if (status == ATTUNE_OK) status = attune_tuner_database_status(s.tuner);
  if (status == ATTUNE_OK) status = attune_bench_create(&s.bench);
  if (status == ATTUNE_OK) status = add_all(&s);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a case that never ends must not outlive the runner */
  if (status == ATTUNE_OK) status = attune_bench_serve(s.bench, fd);
  code = status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
  attune_bench_destroy(s.bench);
  attune_tuner_destroy(s.tuner);
  return code;
}
