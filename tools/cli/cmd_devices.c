/* SPDX-License-Identifier: Apache-2.0
 * cmd_devices.c: `attune devices`: what is here, and with --problem what could do it. */
#include "tools/cli/cli.h"
#include "tools/cli/commands.h"

#include <stdlib.h>

typedef struct options {
  cli_options common;
  const char *problem; /* NULL: do not list implementations */
  bool watch;
  double interval_s; /* 0: not given */
  long rounds;       /* 0: without end */
} options;

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  if (key == 'p')
    o->problem = argument;
  else if (key == CLI_OPTION_WATCH)
    o->watch = true;
  else if (key == CLI_OPTION_INTERVAL)
    o->interval_s = cli_positive("interval", argument, "seconds", 86400, state);
  else if (key == CLI_OPTION_ROUNDS_OF_WATCH)
    o->rounds = (long)cli_whole("rounds", argument, 1, 1000000000, "", state);
  else if (key == ARGP_KEY_END && !o->watch && (o->interval_s > 0.0 || o->rounds > 0))
    cli_bad_usage(state, "--interval and --rounds need --watch; add it, or leave them out");
  else if (key == ARGP_KEY_END && o->watch && o->problem)
    cli_bad_usage(state, "--watch lists no implementations; leave out --watch or --problem");
  else if (key == ARGP_KEY_ARG)
    cli_bad_usage(state, "unexpected argument \"%s\"; devices takes none", argument);
  else
    return ARGP_ERR_UNKNOWN;
  return 0;
}

/* One device's properties, gathered for both outputs. */
typedef struct description {
  attune_device *device;
  attune_device_properties properties;
  char fingerprint[4096];
} description;

/* A wrong ATTUNE_ALLOC is reported at the first call that uses a device's memory, which is this one. */
static attune_status describe(description *out, int index) {
  attune_status status = attune_device_at(&out->device, index);
  if (status == ATTUNE_OK) status = attune_memory_empty_cache(out->device);
  if (status == ATTUNE_OK) status = attune_device_get_properties(out->device, &out->properties);
  return status == ATTUNE_OK ? attune_device_fingerprint(out->device, out->fingerprint, sizeof out->fingerprint)
                             : status;
}

static const char *kind_name(attune_device_kind kind) {
  return kind == ATTUNE_DEVICE_CUDA ? "cuda" : "host";
}

static json_t *describe_json(const description *d) {
  const attune_device_properties *p = &d->properties;
  return json_pack("{s:s, s:s, s:o, s:I, s:i, s:i, s:i, s:I, s:i, s:o, s:o}", "name", attune_device_name(d->device),
                   "kind", kind_name(p->kind), "model", cli_json_text(p->name), "memory_bytes",
                   (json_int_t)p->memory_bytes, "processors", p->processors, "capability_major", p->capability_major,
                   "capability_minor", p->capability_minor, "cache_bytes", (json_int_t)p->cache_bytes, "driver_version",
                   p->driver_version, "features", cli_json_text(p->features), "fingerprint",
                   cli_json_text(d->fingerprint));
}

static void describe_row(cli_table *table, const description *d) {
  const attune_device_properties *p = &d->properties;
  char memory[CLI_CELL], processors[CLI_CELL], cache[CLI_CELL];
  snprintf(memory, sizeof memory, "%.1f GiB", (double)p->memory_bytes / (double)(1 << 30));
  snprintf(processors, sizeof processors, "%d", p->processors);
  snprintf(cache, sizeof cache, "%.1f MiB", (double)p->cache_bytes / (double)(1 << 20));
  cli_table_add(table, (const char *const[]){attune_device_name(d->device), kind_name(p->kind), p->name, memory, cache,
                                             processors, p->features, d->fingerprint});
}

/* Where one implementation or library goes: a row or a member of an array. */
typedef struct listing {
  const char *device;
  cli_table *table;
  json_t *array;
} listing;

static int list_implementation(void *user, const char *implementation, int version, int configurations) {
  listing *to = user;
  char version_text[CLI_CELL], count[CLI_CELL];
  snprintf(version_text, sizeof version_text, "%d", version);
  snprintf(count, sizeof count, "%d", configurations);
  if (to->array)
    json_array_append_new(to->array, json_pack("{s:o, s:i, s:i}", "implementation", cli_json_text(implementation),
                                               "version", version, "configurations", configurations));
  else
    cli_table_add(to->table, (const char *const[]){to->device, implementation, version_text, count});
  return 0;
}

/* In a row the last cell is the file, or why there is none. */
static int list_library(void *user, const attune_library *library) {
  listing *to = user;
  if (to->array)
    json_array_append_new(to->array, json_pack("{s:o, s:o, s:o, s:b, s:o}", "library", cli_json_text(library->name),
                                               "version", cli_json_text(library->version), "path",
                                               cli_json_text(library->path), "loaded_by_program",
                                               library->loaded_by_program, "problem", cli_json_text(library->problem)));
  else
    cli_table_add(to->table,
                  (const char *const[]){to->device, library->name, library->version[0] ? library->version : "none",
                                        library->problem[0] ? library->problem : library->path});
  return 0;
}

static const cli_column device_columns[] = {{"device", false, false, 0},  {"kind", false, false, 3},
                                            {"model", false, true, 0},    {"memory", true, false, 0},
                                            {"cache", true, false, 4},    {"processors", true, false, 0},
                                            {"features", false, true, 1}, {"fingerprint", false, CLI_LONG, 2}};
static const cli_column library_columns[] = {
    {"device", false, false, 0}, {"library", false, false, 0}, {"version", false, false, 0}, {"file", false, true, 0}};
static const cli_column implementation_columns[] = {{"device", false, false, 0},
                                                    {"implementation", false, false, 0},
                                                    {"version", true, false, 1},
                                                    {"configurations", true, false, 0}};

/* The tuner only knows the implementations here: it needs no database. Without a problem too, for it tells what is
 * wrong in the environment. */
static attune_status open_tuner(attune_tuner **out) {
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = "";
  tuner_options.mode = ATTUNE_MODE_OFF;
  return attune_tuner_create(out, &tuner_options);
}

/* The tables of the text, in their order. */
typedef struct tables {
  cli_table devices, libraries, implementations;
} tables;

static attune_status gather(const options *o, attune_tuner *tuner, tables *out, json_t *array) {
  description *d = cli_alloc(1, sizeof *d);
  attune_status status = ATTUNE_OK;
  for (int i = 0; i < attune_device_count() && status == ATTUNE_OK; i++) {
    status = describe(d, i);
    if (status != ATTUNE_OK) break;
    json_t *object = o->common.json ? describe_json(d) : NULL;
    listing libraries = {attune_device_name(d->device), &out->libraries, object ? json_array() : NULL};
    listing to = {attune_device_name(d->device), &out->implementations, object ? json_array() : NULL};
    status = attune_device_libraries(d->device, list_library, &libraries);
    if (object) json_object_set_new(object, "libraries", libraries.array);
    if (o->problem && status == ATTUNE_OK)
      status = attune_tuner_implementations(tuner, d->device, o->problem, list_implementation, &to);
    if (object && o->problem) json_object_set(object, "implementations", to.array);
    json_decref(to.array);
    if (object)
      json_array_append_new(array, object);
    else
      describe_row(&out->devices, d);
  }
  free(d);
  return status;
}

static void print_tables(tables *out, bool with_implementations, bool wide) {
  cli_table_print(&out->devices, stdout, wide);
  putchar('\n');
  cli_table_print(&out->libraries, stdout, wide);
  if (!with_implementations) return;
  putchar('\n');
  cli_table_print(&out->implementations, stdout, wide);
}

int cmd_devices(int argc, char **argv) {
  options o = {0};
  if (cli_parse("devices", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  if (o.watch) return cli_watch(o.interval_s > 0.0 ? o.interval_s : 1.0, o.rounds, o.common.json);
  attune_tuner *tuner = NULL;
  attune_status status = open_tuner(&tuner);
  if (status != ATTUNE_OK) return cli_fail(status);
  tables out = {
      .devices = {.columns = device_columns, .column_count = sizeof device_columns / sizeof device_columns[0]},
      .libraries = {.columns = library_columns, .column_count = sizeof library_columns / sizeof library_columns[0]},
      .implementations = {.columns = implementation_columns, .column_count = 4}};
  json_t *array = json_array();
  status = gather(&o, tuner, &out, array);
  int code = status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
  if (status == ATTUNE_OK && o.common.json)
    code = cli_print_json(json_incref(array));
  else if (status == ATTUNE_OK)
    print_tables(&out, o.problem != NULL, o.common.wide);
  json_decref(array);
  cli_table_free(&out.devices);
  cli_table_free(&out.libraries);
  cli_table_free(&out.implementations);
  attune_tuner_destroy(tuner);
  return code;
}
