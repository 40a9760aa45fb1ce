/* SPDX-License-Identifier: Apache-2.0
 * bench_sides.c: what is timed on a side of `attune bench`, and what the measurements depend on. */
#include "tools/cli/bench/bench.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/compare/message.h"
#include "tools/compare/run/machine.h"

#define BUILD "{build}"
#define OWN "/proc/self/exe"

static const char *build_of(const bench_options *o, int which) {
  return which == GATE_BASE ? o->against : o->build;
}

static uint64_t draw(void) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) number = (uint64_t)gate_now_ns();
  return number;
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* The command of a build, to be freed; NULL: *error says why there is none. */
static char *command_of(const char *build, char **error) {
  if (!build) {
    char self[PATH_MAX];
    const ssize_t length = readlink(OWN, self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    return gate_copy(length > 0 ? self : OWN);
  }
  char *path = is_folder(build) ? gate_say("%s/attune", build) : gate_copy(build);
  if (access(path, X_OK) == 0 && !is_folder(path)) return path;
  *error = gate_say("%s: %s; should be the attune command of a build, or the folder that contains it", path,
                    strerror(errno ? errno : EACCES));
  free(path);
  return NULL;
}

/* A misspelt folder must not become another one. */
static char *check_there(const char *option, const char *path) {
  struct stat info;
  if (!path || stat(path, &info) == 0) return NULL;
  return gate_say("%s \"%s\": %s; should be the folder of a build", option, path, strerror(errno));
}

/* Replacement of {build}, to be freed. */
static char *folder_of(const char *build) {
  if (is_folder(build)) return gate_copy(build);
  char *copy = gate_copy(build), *folder = gate_copy(dirname(copy));
  free(copy);
  return folder;
}

bool bench_has_own_cases(const bench_options *o) {
  return o->workloads.count || o->suites.count || (o->common.database && !o->programs.count && !o->commands.count);
}

/* attune itself, as a worker for workloads, suites and winners. */
static char *add_own(bench_side *s, const bench_options *o, int which, const gate_limits *limits) {
  char *error = NULL, *self = command_of(build_of(o, which), &error);
  if (error) return error;
  const char **argv = cli_alloc(2 * (o->workloads.count + o->suites.count) + 16, sizeof *argv);
  size_t count = 0;
  argv[count++] = self;
  argv[count++] = "bench";
  if (o->common.device) {
    argv[count++] = "--device";
    argv[count++] = o->common.device;
  }
  if (o->common.database) {
    argv[count++] = "--db";
    argv[count++] = o->common.database;
  }
  if (o->cold) argv[count++] = "--cold";
  if (o->graph) argv[count++] = "--graph";
  for (size_t i = 0; i < o->suites.count; i++) {
    argv[count++] = "--suite";
    argv[count++] = o->suites.at[i];
  }
  for (size_t i = 0; i < o->workloads.count; i++) argv[count++] = o->workloads.at[i];
  gate_source *own = gate_worker_create(argv, limits, draw());
  own->yardsticks = true;
  s->sources[s->side.source_count++] = own;
  free(argv);
  free(self);
  return NULL;
}

/* NULL, or why the words cannot be run on this side. */
static char *check_build(const bench_options *o, const char *option, const char *text) {
  const bool uses = strstr(text, BUILD) != NULL;
  if (uses && !o->build)
    return gate_say("%s \"%s\" contains {build}; --build must name the folder that replaces it", option, text);
  if (!uses && o->against)
    return gate_say(
        "%s \"%s\" has no {build}, so both sides would run the same program; write {build} for the build's folder",
        option, text);
  return NULL;
}

static char *add_program(bench_side *s, const bench_options *o, int which, const char *text,
                         const gate_limits *limits) {
  char *error = check_build(o, "--program", text), *folder = build_of(o, which) ? folder_of(build_of(o, which)) : NULL;
  if (!error) {
    char **argv = gate_argv_of(text, folder ? folder : "", true);
    s->sources[s->side.source_count++] = gate_worker_create((const char *const *)argv, limits, draw());
    gate_argv_free(argv);
  }
  free(folder);
  return error;
}

/* Is the program of a command, in the folder of a build, not there? One that a shell runs, or looks for, is taken to
 * be. */
static bool lacks_program(const char *command, const char *build) {
  char *folder = folder_of(build);
  char **argv = gate_argv_of(strchr(command, '=') + 1, folder, false);
  const bool lacks = strchr(argv[0], '/') && access(argv[0], F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR);
  gate_argv_free(argv);
  free(folder);
  return lacks;
}

/* A command whose program only the other build has is missing here. */
static bool is_missing(const bench_options *o, int which, const char *command) {
  return o->build && o->against && lacks_program(command, build_of(o, which));
}

/* If neither has it, the command line is wrong. */
static char *check_program_there(const bench_options *o, const char *command) {
  if (!is_missing(o, GATE_HEAD, command) || !is_missing(o, GATE_BASE, command)) return NULL;
  return gate_say("--command \"%s\": neither build has this program; should be a file in \"%s\", in \"%s\", or in both",
                  command, o->build, o->against);
}

static char *add_commands(bench_side *s, const bench_options *o, int which, const gate_limits *limits) {
  char *error = NULL, *folder = build_of(o, which) ? folder_of(build_of(o, which)) : NULL;
  const char **here = cli_alloc(o->commands.count, sizeof *here);
  size_t count = 0;
  for (size_t i = 0; !error && i < o->commands.count; i++) {
    error = check_build(o, "--command", o->commands.at[i]);
    if (!error) error = check_program_there(o, o->commands.at[i]);
    if (!error && !is_missing(o, which, o->commands.at[i])) here[count++] = o->commands.at[i];
  }
  s->commands_missing = o->commands.count - count;
  if (!error && count) s->sources[s->side.source_count++] = gate_commands_create(here, count, folder, limits, draw());
  free(here);
  free(folder);
  return error;
}

char *bench_side_make(bench_side *s, const bench_options *o, int which, const gate_limits *limits) {
  char *error = NULL;
  *s = (bench_side){.run = {.state = GATE_RUN_OPEN}};
  error = check_there("--build", o->build);
  if (!error) error = check_there("--against", o->against);
  if (error) return error;
  if (o->programs.count + 2 > sizeof s->sources / sizeof s->sources[0])
    return gate_say("%zu programs are given; should be at most %zu", o->programs.count,
                    sizeof s->sources / sizeof s->sources[0] - 2);
  if (bench_has_own_cases(o)) error = add_own(s, o, which, limits);
  for (size_t i = 0; !error && i < o->programs.count; i++) error = add_program(s, o, which, o->programs.at[i], limits);
  if (!error && o->commands.count) error = add_commands(s, o, which, limits);
  s->side.sources = s->sources;
  s->side.run = &s->run;
  return error;
}

bool bench_side_lacks(const bench_side *s, const char *side) {
  bool lacks = s->commands_missing > 0;
  for (size_t i = 0; i < s->side.source_count; i++) {
    if (!s->sources[i]->absent) continue;
    cli_error("the %s has no %s, so its cases are missing there", side, s->sources[i]->name);
    lacks = true;
  }
  if (s->commands_missing)
    cli_error("the %s lacks the programs of %zu command%s, so %s missing there", side, s->commands_missing,
              s->commands_missing == 1 ? "" : "s", s->commands_missing == 1 ? "it is" : "they are");
  return lacks;
}

void bench_side_free(bench_side *s) {
  for (size_t i = 0; i < s->side.source_count; i++) gate_source_destroy(s->sources[i]);
  gate_run_free(&s->run);
}

/* --- identity --- */

static int add_library(void *user, const attune_library *library) {
  char text[256];
  snprintf(text, sizeof text, "%s %s", library->name, library->version);
  if (*library->version) json_array_append_new(user, cli_json_text(text));
  return 0;
}

/* The dependencies of attune's own cases and programs besides the machine. Not attune's version: that is what is
 * compared. */
static void add_device(json_t *fingerprint, const bench_options *o) {
  attune_device *device = NULL;
  attune_device_properties p = {0};
  json_t *libraries = json_array();
  char driver[16];
  if (attune_device_get(&device, o->common.device) == ATTUNE_OK &&
      attune_device_get_properties(device, &p) == ATTUNE_OK) {
    json_object_set_new(fingerprint, "device", cli_json_text(p.name));
    snprintf(driver, sizeof driver, "%d.%d", p.driver_version / 1000, p.driver_version % 1000 / 10);
    json_object_set_new(fingerprint, "driver", json_string(p.driver_version ? driver : ""));
    (void)attune_device_libraries(device, add_library, libraries);
  }
  json_object_set_new(fingerprint, "libraries", libraries);
}

static char *fingerprint(const bench_options *o) {
  json_t *object = gate_machine();
  if (bench_has_own_cases(o) || o->programs.count) add_device(object, o);
  char *text = json_dumps(object, JSON_COMPACT);
  json_decref(object);
  return text ? text : gate_copy("{}");
}

/* "sums.csv runtime ./mine" */
static char *suite_text(const bench_options *o) {
  const bench_words *const all[] = {&o->workloads, &o->suites, &o->programs, &o->commands};
  char *text = gate_copy(bench_has_own_cases(o) && !o->workloads.count && !o->suites.count ? o->common.database : "");
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    for (size_t j = 0; j < all[i]->count; j++) {
      char *longer = gate_say("%s%s%s", text, *text ? " " : "", all[i]->at[j]);
      free(text);
      text = longer;
    }
  return text;
}

void bench_side_identify(bench_side *s, const bench_options *o, int which, const char *command) {
  const char *build = build_of(o, which);
  s->run.suite = suite_text(o);
  s->run.label = gate_copy(which == GATE_HEAD && o->label ? o->label : "");
  s->run.revision = gate_revision(build ? build : ".", &s->run.dirty);
  s->run.fingerprint = fingerprint(o);
  s->run.command = gate_copy(command);
  s->run.started = (int64_t)time(NULL);
}
