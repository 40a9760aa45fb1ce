/* SPDX-License-Identifier: Apache-2.0
 * export_google.c: a run as Google Benchmark writes JSON: a process that timed a case is a repetition, and mean, median
 * and standard deviation follow as aggregates. Its own compare.py and what reads its files can read this. */
#include "tools/compare/report/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/compare/message.h"
#include "tools/compare/report/report_json.h"
#include "tools/compare/stats/per_process_values.h"
#include "tools/compare/stats/summary.h"

/* Members that readers insist on are there; what is not known is 0 or empty. */
static json_t *context(const gate_run *run) {
  char date[40] = "";
  struct tm parts;
  const time_t started = (time_t)run->started;
  json_t *facts = run->fingerprint ? json_loads(run->fingerprint, 0, NULL) : NULL;
  const json_t *cpus = json_object_get(facts, "cpus");
  if (gmtime_r(&started, &parts)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
  json_t *object =
      json_pack("{s:s, s:s, s:s, s:I, s:i, s:b, s:[], s:[], s:s}", "date", date, "host_name", "", "executable",
                "attune bench", "num_cpus", json_is_integer(cpus) ? json_integer_value(cpus) : (json_int_t)0,
                "mhz_per_cpu", 0, "cpu_scaling_enabled", 0, "caches", "load_avg", "library_build_type", "release");
  json_object_set_new(object, "attune_command", gate_json_string(run->command));
  if (run->revision && *run->revision) json_object_set_new(object, "attune_revision", gate_json_string(run->revision));
  if (run->label && *run->label) json_object_set_new(object, "attune_label", gate_json_string(run->label));
  json_decref(facts);
  return object;
}

/* Of a call; 0: not known. */
static double cpu_ns(const gate_visit *visit) {
  double sum = 0;
  for (int i = 0; i < visit->sample_count; i++) sum += visit->samples[i].cpu_ns;
  return visit->sample_count ? sum / visit->sample_count : 0;
}

static json_t *entry(const char *name, size_t family, int repetitions) {
  return json_pack("{s:s, s:I, s:i, s:s, s:i, s:i}", "name", name, "family_index", (json_int_t)family,
                   "per_family_instance_index", 0, "run_name", name, "repetitions", repetitions, "threads", 1);
}

static void add_times(json_t *object, const gate_case *c, double iterations, double ns, double cpu) {
  json_object_set_new(object, "iterations", json_integer((json_int_t)iterations));
  json_object_set_new(object, "real_time", gate_json_number(ns));
  json_object_set_new(object, "cpu_time", gate_json_number(cpu));
  json_object_set_new(object, "time_unit", json_string("ns"));
  if (c->bytes > 0 && ns > 0) json_object_set_new(object, "bytes_per_second", gate_json_number(1e9 * c->bytes / ns));
  if (c->flops > 0 && ns > 0) json_object_set_new(object, "flop_per_second", gate_json_number(1e9 * c->flops / ns));
}

static json_t *repetition(const gate_case *c, const char *name, size_t family, int i) {
  const gate_visit *visit = &c->visits[i];
  json_t *object = entry(name, family, c->visit_count);
  json_object_set_new(object, "run_type", json_string("iteration"));
  json_object_set_new(object, "repetition_index", json_integer(i));
  add_times(object, c, (double)visit->calls * visit->sample_count, gate_visit_value(visit), cpu_ns(visit));
  return object;
}

static json_t *aggregate(const gate_case *c, const char *name, size_t family, const char *kind, double ns, double cpu) {
  char *full = gate_say("%s_%s", name, kind);
  json_t *object = entry(full, family, c->visit_count);
  json_object_set_new(object, "run_name", json_string(name));
  json_object_set_new(object, "run_type", json_string("aggregate"));
  json_object_set_new(object, "aggregate_name", json_string(kind));
  json_object_set_new(object, "aggregate_unit", json_string("time"));
  const gate_case bare = {0};
  add_times(object, strcmp(kind, "stddev") == 0 ? &bare : c, c->visit_count, ns, cpu);
  free(full);
  return object;
}

static void add_aggregates(json_t *list, const gate_case *c, const char *name, size_t family) {
  double sums[2] = {0, 0}, squares[2] = {0, 0}, median, *cpus = gate_alloc((size_t)c->visit_count, sizeof *cpus);
  const int n = c->visit_count;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < n; i++) {
      const double values[2] = {gate_visit_value(&c->visits[i]), cpu_ns(&c->visits[i])};
      cpus[i] = values[1];
      for (int k = 0; k < 2; k++)
        if (!pass)
          sums[k] += values[k] / n;
        else
          squares[k] += (values[k] - sums[k]) * (values[k] - sums[k]) / (n - 1);
    }
  gate_case_summary(c, &median, NULL);
  json_array_append_new(list, aggregate(c, name, family, "mean", sums[0], sums[1]));
  json_array_append_new(list, aggregate(c, name, family, "median", median, gate_median(cpus, n)));
  json_array_append_new(list, aggregate(c, name, family, "stddev", sqrt(squares[0]), sqrt(squares[1])));
  free(cpus);
}

static void add_case(json_t *list, const gate_case *c, size_t family) {
  char *name = gate_export_name(c);
  if (c->state == GATE_CASE_FAILED) {
    json_t *object = entry(name, family, 1);
    json_object_set_new(object, "run_type", json_string("iteration"));
    json_object_set_new(object, "repetition_index", json_integer(0));
    json_object_set_new(object, "error_occurred", json_true());
    json_object_set_new(object, "error_message", gate_json_string(c->message ? c->message : "failed"));
    add_times(object, c, 0, 0, 0);
    json_array_append_new(list, object);
  } else {
    for (int i = 0; i < c->visit_count; i++) json_array_append_new(list, repetition(c, name, family, i));
    if (c->visit_count > 1) add_aggregates(list, c, name, family);
  }
  free(name);
}

bool gate_export_google(FILE *out, const gate_exported *what) {
  json_t *list = json_array();
  for (size_t i = 0; i < what->run->case_count; i++)
    if (gate_export_has(what, &what->run->cases[i])) add_case(list, &what->run->cases[i], i);
  json_t *json = json_pack("{s:o, s:o}", "context", context(what->run), "benchmarks", list);
  const bool good = json && json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0;
  if (good) fputc('\n', out);
  json_decref(json);
  return gate_written(out) && good;
}
