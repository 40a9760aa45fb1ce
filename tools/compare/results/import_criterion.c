/* SPDX-License-Identifier: Apache-2.0
 * import_criterion.c: Criterion.rs: the messages of cargo criterion --message-format=json, one object a line (its book,
 * "External Tools"), or the files that it keeps in target/criterion, whose form it does not promise: sample.json, and
 * estimates.json. */
#include "tools/compare/results/import.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/compare/message.h"

/* Totals of so many iterations each. */
static void add_samples(gate_case *c, const json_t *iterations, const json_t *values, double unit) {
  for (size_t i = 0; i < json_array_size(values) && i < json_array_size(iterations); i++) {
    const double count = json_number_value(json_array_get(iterations, i));
    if (count > 0) gate_import_sample(c, unit * json_number_value(json_array_get(values, i)) / count, 0, count);
  }
}

static void add_message(gate_run *run, const json_t *message, size_t *others) {
  const char *reason = json_string_value(json_object_get(message, "reason")),
             *id = json_string_value(json_object_get(message, "id"));
  const json_t *throughput, *typical = json_object_get(message, "typical");
  size_t i;
  if (!reason || strcmp(reason, "benchmark-complete") != 0 || !id || !*id) return;
  const double unit = gate_import_unit(json_string_value(json_object_get(message, "unit")));
  if (!(unit > 0)) {
    ++*others; /* cycles, or what else a measurement of one's own gives */
    return;
  }
  gate_case *c = gate_import_case(run, id);
  add_samples(c, json_object_get(message, "iteration_count"), json_object_get(message, "measured_values"), unit);
  if (!c->visit_count) gate_import_sample(c, unit * json_number_value(json_object_get(typical, "estimate")), 0, 1);
  json_array_foreach(json_object_get(message, "throughput"), i, throughput) {
    const char *of = json_string_value(json_object_get(throughput, "unit"));
    if (of && strcmp(of, "bytes") == 0) c->bytes = json_number_value(json_object_get(throughput, "per_iteration"));
  }
}

/* "group/function" of ".../criterion/group/function/new/sample.json", unless a benchmark.json beside says it. */
static char *name_of(const char *path) {
  char *folder = gate_copy(path), *end = strrchr(folder, '/');
  *(end ? end : folder) = '\0';
  char *beside = gate_say("%s%sbenchmark.json", folder, *folder ? "/" : "");
  json_t *said = json_load_file(beside, 0, NULL);
  const char *id = json_string_value(json_object_get(said, "full_id"));
  char *name = id && *id ? gate_copy(id) : NULL;
  json_decref(said);
  free(beside);
  if (!name) {
    end = strrchr(folder, '/'); /* new, or base */
    if (end) *end = '\0';
    char *root = strstr(folder, "criterion/"), *last = strrchr(folder, '/');
    name = gate_copy(root ? root + strlen("criterion/") : last ? last + 1 : *folder ? folder : path);
  }
  free(folder);
  return name;
}

/* A sample.json, or the one next to an estimates.json. */
static void add_kept(const char *path, const json_t *root, gate_run *run) {
  char *name = name_of(path), *folder = gate_copy(path), *end = strrchr(folder, '/');
  *(end ? end : folder) = '\0';
  char *beside = gate_say("%s%ssample.json", folder, *folder ? "/" : "");
  json_t *sample = json_object_get(root, "iters") ? NULL : json_load_file(beside, 0, NULL);
  const json_t *from = sample ? sample : root;
  gate_case *c = gate_import_case(run, name);
  add_samples(c, json_object_get(from, "iters"), json_object_get(from, "times"), 1);
  const json_t *estimate = json_object_get(root, "slope");
  if (!json_is_object(estimate)) estimate = json_object_get(root, "mean");
  if (!c->visit_count) gate_import_sample(c, json_number_value(json_object_get(estimate, "point_estimate")), 0, 1);
  json_decref(sample);
  free(beside);
  free(folder);
  free(name);
}

char *gate_import_criterion(const char *path, const char *text, size_t size, gate_run *run) {
  size_t others = 0;
  bool any = false;
  for (size_t at = 0; at < size;) {
    at += strspn(text + at, " \t\r\n");
    if (at >= size || !text[at]) break;
    json_error_t wrong;
    json_t *root = json_loadb(text + at, size - at, JSON_DISABLE_EOF_CHECK, &wrong);
    if (!json_is_object(root)) {
      const bool whole = root != NULL;
      json_decref(root);
      return whole ? gate_say("%s is JSON, but neither Google Benchmark's nor Criterion's", path)
                   : gate_say("%s: byte %zu: %s; should be JSON of Google Benchmark or of Criterion", path,
                              at + (size_t)wrong.position, wrong.text);
    }
    at += (size_t)wrong.position;
    any = any || json_object_get(root, "reason");
    if (json_object_get(root, "reason"))
      add_message(run, root, &others);
    else if (json_object_get(root, "iters") || json_object_get(root, "mean"))
      add_kept(path, root, run);
    json_decref(root);
  }
  size_t timed = 0;
  for (size_t i = 0; i < run->case_count; i++) timed += run->cases[i].visit_count > 0;
  if (!timed)
    return others ? gate_say("%s measures something other than time; should be times", path)
           : any  ? gate_say("%s has no message \"benchmark-complete\" with times", path)
                  : gate_say("%s is JSON, but neither Google Benchmark's nor Criterion's", path);
  run->fingerprint = gate_copy("{\"harness\":\"Criterion.rs\"}");
  return NULL;
}
