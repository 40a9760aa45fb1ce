/* SPDX-License-Identifier: Apache-2.0
 * import.c: JSON of Google Benchmark (its docs/user_guide.md, "Output Formats"), which file is whose, and several files
 * as one run. */
#include "tools/compare/results/import.h"

#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "tools/compare/message.h"
#include "tools/compare/ranks/rank_test.h"

#define BYTES_MOST ((size_t)256 << 20)
#define TIME_MOST 1e15 /* ns, as results_check.c has it */

/* --- cases --- */

static gate_visit *last_visit(gate_case *c) {
  if (!c->visit_count) {
    c->visits = gate_alloc(1, sizeof *c->visits);
    c->visits[c->visit_count++] = (gate_visit){.calls = 1, .load = -1};
  }
  return &c->visits[c->visit_count - 1];
}

gate_case *gate_import_case(gate_run *run, const char *name) {
  for (size_t i = run->case_count; i-- > 0;)
    if (strcmp(run->cases[i].name, name) == 0) return &run->cases[i];
  run->cases = gate_grow(run->cases, run->case_count + 1, sizeof *run->cases);
  gate_case *c = &run->cases[run->case_count++];
  *c =
      (gate_case){.name = gate_copy(name), .device = gate_copy("-"), .mode = gate_copy("hot"), .dtype = gate_copy("-")};
  return c;
}

void gate_import_sample(gate_case *c, double ns, double cpu_ns, double calls) {
  if (!(ns > 0 && ns <= TIME_MOST)) return;
  gate_visit *v = last_visit(c);
  v->samples = gate_grow(v->samples, (size_t)v->sample_count + 1, sizeof *v->samples);
  v->samples[v->sample_count++] = (gate_sample){.ns = ns, .cpu_ns = cpu_ns > 0 && cpu_ns <= TIME_MOST ? cpu_ns : 0};
  v->calls = calls >= 1 && calls <= 1e9 ? (int)calls : 1;
}

double gate_import_unit(const char *unit) {
  return !unit                 ? 0
         : !strcmp(unit, "ns") ? 1
         : !strcmp(unit, "us") ? 1e3
         : !strcmp(unit, "ms") ? 1e6
         : !strcmp(unit, "s")  ? 1e9
                               : 0;
}

/* --- Google Benchmark --- */

/* NaN and Infinity, which it writes for counters, are no JSON: null takes their place. */
static void mend_numbers(char *text) {
  bool quoted = false;
  for (char *at = text; *at; at++) {
    if (quoted && *at == '\\' && at[1])
      at++;
    else if (*at == '"')
      quoted = !quoted;
    static const char *const words[] = {"-Infinity", "Infinity", "-NaN", "NaN", "-nan", "nan", "-inf", "inf"};
    for (size_t i = 0; !quoted && i < sizeof words / sizeof *words; i++) {
      const size_t length = strlen(words[i]);
      if (strncmp(at, words[i], length) != 0) continue;
      memset(at, ' ', length);
      memcpy(at, length >= 4 ? "null" : "0  ", length >= 4 ? 4 : 3);
      at += length - 1;
      break;
    }
  }
}

static const char *text_of(const json_t *object, const char *name) {
  const char *text = json_string_value(json_object_get(object, name));
  return text ? text : "";
}

static double number_of(const json_t *object, const char *name) {
  return json_number_value(json_object_get(object, name));
}

/* Of an old file, which does not say what an entry is. */
static const char *aggregate_of(const json_t *entry) {
  static const char *const kinds[] = {"mean", "median", "stddev", "cv"};
  const char *type = text_of(entry, "run_type"), *end = strrchr(text_of(entry, "name"), '_');
  if (strcmp(type, "aggregate") == 0)
    return *text_of(entry, "aggregate_name") ? text_of(entry, "aggregate_name") : "other";
  for (size_t i = 0; !*type && end && i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(end + 1, kinds[i]) == 0) return kinds[i];
  return NULL;
}

/* "BM_x" of "BM_x_median". */
static char *run_name_of(const json_t *entry, const char *aggregate) {
  const char *whole = text_of(entry, "run_name"), *name = text_of(entry, "name");
  if (*whole) return gate_copy(whole);
  const size_t length = strlen(name), end = aggregate ? strlen(aggregate) + 1 : 0;
  return gate_say("%.*s", (int)(length > end ? length - end : length), name);
}

static void fail(gate_case *c, const char *message) {
  c->state = GATE_CASE_FAILED;
  free(c->message);
  c->message = gate_one_line(*message ? message : "failed without a reason");
}

/* Repetitions first; where a file has aggregates only, a median, or else a mean, is all there is. */
static void add_entry(gate_run *run, const json_t *entry, int pass) {
  const char *aggregate = aggregate_of(entry);
  const double unit = gate_import_unit(*text_of(entry, "time_unit") ? text_of(entry, "time_unit") : "ns");
  const char *wanted = pass == 1 ? "median" : "mean";
  if (!*text_of(entry, "name") || (pass == 0 ? aggregate != NULL : !aggregate || strcmp(aggregate, wanted) != 0))
    return;
  char *name = run_name_of(entry, aggregate);
  gate_case *c = gate_import_case(run, name);
  free(name);
  if (json_is_true(json_object_get(entry, "error_occurred"))) fail(c, text_of(entry, "error_message"));
  if (c->state != GATE_CASE_OK || (pass && c->visit_count)) return;
  const double ns = unit * number_of(entry, "real_time");
  gate_import_sample(c, ns, unit * number_of(entry, "cpu_time"), pass ? 1 : number_of(entry, "iterations"));
  if (number_of(entry, "bytes_per_second") > 0 && !(c->bytes > 0))
    c->bytes = 1e-9 * number_of(entry, "bytes_per_second") * ns;
}

static int64_t date_of(const json_t *context, int64_t otherwise) {
  struct tm parts = {.tm_isdst = -1};
  int offset_h = 0, offset_m = 0;
  const char *text = text_of(context, "date"), *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
  if (!rest) return otherwise;
  if (sscanf(rest, "%3d:%2d", &offset_h, &offset_m) >= 1) {
    const int64_t offset_s = 3600 * offset_h + (*rest == '-' ? -60 : 60) * offset_m;
    const int64_t utc = (int64_t)timegm(&parts) - offset_s;
    return utc > 0 ? utc : otherwise;
  }
  const time_t local = mktime(&parts);
  return local > 0 ? (int64_t)local : otherwise;
}

/* What measurements depend on, as far as the file says. The clock differs from call to call, and a container's name
 * too. */
static char *facts_of(const json_t *context) {
  json_t *facts = json_pack("{s:s}", "harness", "Google Benchmark");
  static const char *const names[][2] = {
      {"num_cpus", "cpus"}, {"cpu_scaling_enabled", "scaling"}, {"library_build_type", "build"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    json_t *value = json_object_get(context, names[i][0]);
    if (value) json_object_set(facts, names[i][1], value);
  }
  char *text = json_dumps(facts, JSON_COMPACT);
  json_decref(facts);
  return text;
}

static char *add_google(const char *path, const json_t *root, gate_run *run) {
  const json_t *list = json_object_get(root, "benchmarks"), *entry;
  size_t i;
  if (!json_is_array(list))
    return gate_say("%s is JSON, but neither Google Benchmark's (no \"benchmarks\") nor Criterion's", path);
  for (int pass = 0; pass < 3; pass++) json_array_foreach(list, i, entry) add_entry(run, entry, pass);
  run->fingerprint = facts_of(json_object_get(root, "context"));
  run->started = date_of(json_object_get(root, "context"), run->started);
  return NULL;
}

/* --- files --- */

static char *read_text(const char *path, char **text, size_t *size) {
  struct stat info;
  FILE *file = fopen(path, "re");
  char *error = NULL;
  *text = NULL;
  if (!file || fstat(fileno(file), &info) != 0)
    error = gate_say("%s cannot be read: %s", path, strerror(errno));
  else if (!S_ISREG(info.st_mode))
    error = gate_say("%s is not a regular file", path);
  else if ((size_t)info.st_size > BYTES_MOST)
    error = gate_say("%s has %lld bytes; should be at most %zu", path, (long long)info.st_size, BYTES_MOST);
  if (!error) {
    *text = gate_alloc((size_t)info.st_size + 1, 1);
    *size = fread(*text, 1, (size_t)info.st_size, file);
    if (ferror(file)) error = gate_say("%s cannot be read: %s", path, strerror(errno));
  }
  if (file) (void)fclose(file);
  return error;
}

bool gate_import_is(const char *path) {
  char first[64] = "";
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return false;
  FILE *file = fopen(path, "re");
  const size_t got = file ? fread(first, 1, sizeof first - 1, file) : 0;
  if (file) (void)fclose(file);
  const char *at = first + (strncmp(first, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);
  at += strspn(at, " \t\r\n");
  return got && (*at == '{' || *at == '[');
}

static char *load_one(const char *path, gate_run *run) {
  char *text = NULL;
  size_t size = 0;
  struct stat info = {.st_mtime = 1};
  json_error_t wrong;
  *run = (gate_run){.state = GATE_RUN_COMPLETE};
  char *error = read_text(path, &text, &size);
  if (!error && stat(path, &info) == 0 && info.st_mtime > 0) run->started = (int64_t)info.st_mtime;
  if (!error && strspn(text, " \t\r\n") == size)
    error = gate_say("%s is empty; should be JSON of Google Benchmark or of Criterion", path);
  if (!error) {
    const size_t mark = strncmp(text, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    mend_numbers(text);
    json_t *root = json_loadb(text + mark, size - mark, 0, &wrong);
    const bool google = json_is_object(root) && !json_object_get(root, "reason") && !json_object_get(root, "iters") &&
                        !json_object_get(root, "mean");
    error = google ? add_google(path, root, run) : gate_import_criterion(path, text + mark, size - mark, run);
    json_decref(root);
  }
  free(text);
  if (!error && !run->case_count) error = gate_say("%s has no benchmark with a time", path);
  if (error) gate_run_free(run);
  return error;
}

/* Each sample of a case's one visit as a visit of its own. */
static void spread(gate_case *c) {
  if (c->visit_count != 1) return;
  gate_visit all = c->visits[0];
  const int count = all.sample_count < GATE_MOST_VALUES ? all.sample_count : GATE_MOST_VALUES;
  c->visits = gate_grow(c->visits, (size_t)count + 1, sizeof *c->visits);
  for (int i = 0; i < count; i++) {
    c->visits[i] = (gate_visit){
        .round = i, .calls = all.calls, .load = -1, .samples = gate_alloc(1, sizeof(gate_sample)), .sample_count = 1};
    c->visits[i].samples[0] = all.samples[i];
  }
  c->visit_count = count;
  free(all.samples);
}

/* The visits of `from`, which it takes, as round `round`. */
static void join(gate_run *run, gate_run *from, int round) {
  for (size_t i = 0; i < from->case_count; i++) {
    gate_case *f = &from->cases[i], *c = gate_import_case(run, f->name);
    if (f->state == GATE_CASE_FAILED) fail(c, f->message);
    if (!(c->bytes > 0)) c->bytes = f->bytes;
    for (int k = 0; k < f->visit_count; k++) {
      c->visits = gate_grow(c->visits, (size_t)c->visit_count + 1, sizeof *c->visits);
      c->visits[c->visit_count] = f->visits[k];
      c->visits[c->visit_count++].round = round;
      f->visits[k] = (gate_visit){0};
    }
  }
}

static void name_run(gate_run *run, const char *const *paths, size_t count) {
  char *copy = gate_copy(paths[0]), *more = count > 1 ? gate_say(" and %zu more", count - 1) : gate_copy("");
  run->suite = gate_say("%s%s", basename(copy), more);
  run->command = gate_say("imported from %s%s", paths[0], more);
  run->label = gate_copy("");
  run->revision = gate_copy("");
  run->ended = run->started;
  if (count == 1) {
    json_t *facts = json_loads(run->fingerprint, 0, NULL);
    json_object_set_new(facts, "repetitions", json_string("of one process"));
    free(run->fingerprint);
    run->fingerprint = json_dumps(facts, JSON_COMPACT);
    json_decref(facts);
  }
  free(more);
  free(copy);
}

char *gate_import(const char *const *paths, size_t count, gate_run *run) {
  char *error = load_one(paths[0], run);
  if (error) return error;
  if (count == 1)
    for (size_t i = 0; i < run->case_count; i++) spread(&run->cases[i]);
  for (size_t i = 1; !error && i < count; i++) {
    gate_run next;
    error = load_one(paths[i], &next);
    if (error) break;
    if (strcmp(next.fingerprint, run->fingerprint) != 0)
      error = gate_say("%s has %s, but %s has %s; should be files of one program on one machine", paths[0],
                       run->fingerprint, paths[i], next.fingerprint);
    else
      join(run, &next, (int)i);
    gate_run_free(&next);
  }
  if (error)
    gate_run_free(run);
  else
    name_run(run, paths, count);
  return error;
}

/* --- what it cannot tell --- */

bool gate_import_is_one_process(const gate_run *run) {
  json_t *facts = run->fingerprint ? json_loads(run->fingerprint, 0, NULL) : NULL;
  const bool is = json_is_string(json_object_get(facts, "repetitions"));
  json_decref(facts);
  return is;
}

const char *gate_import_counted(const gate_run *run) {
  return gate_import_is_one_process(run) ? "repetitions" : "processes";
}

char *gate_import_note(const gate_run *run, double floor, bool others) {
  int most = 0;
  if (!gate_import_is_one_process(run)) return NULL;
  for (size_t i = 0; i < run->case_count; i++)
    if (run->cases[i].visit_count > most) most = run->cases[i].visit_count;
  if (most < 2)
    return gate_say("%s has one time per case and no spread, so it can show a change, but not whether noise caused it; "
                    "measure with repetitions (Google Benchmark: --benchmark_repetitions=20, not only aggregates)",
                    run->suite);
  return gate_say(
      "%s is from one process: its repetitions do not show how long another process of the same build would take, so "
      "only changes from %.3g %% count%s; to compare processes, import several files as one run (attune import)",
      run->suite, 100 * floor, others ? ", except for cases with a threshold of their own" : "");
}
