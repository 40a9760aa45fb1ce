/* SPDX-License-Identifier: Apache-2.0
 * machine.c: machine, load and revision, from files of the kernel and from git. */
#include "tools/compare/run/machine.h"

#include "tools/compare/message.h"
#include "tools/compare/run/process.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <libgen.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { LINE = 512, REVISION_DIGITS = 40 };

/* The rest of the first line of `path` that begins with `key` and has `mark` after it; "" key: the whole first line. */
static bool line_of(const char *path, const char *key, const char *mark, char out[LINE]) {
  FILE *stream = fopen(path, "re");
  char line[LINE];
  bool found = false;
  while (stream && !found && fgets(line, sizeof line, stream)) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, key, strlen(key)) != 0) continue;
    const char *value = *mark ? strstr(line, mark) : line;
    if (!value) continue;
    value += strlen(mark);
    value += strspn(value, " \t");
    snprintf(out, LINE, "%s", value);
    found = true;
  }
  if (stream) (void)fclose(stream);
  return found;
}

static json_t *text(const char *value) {
  json_t *made = json_string(value);
  return made ? made : json_string("");
}

/* An ARM kernel tells numbers in place of a name. */
static json_t *cpu(void) {
  char model[LINE], part[LINE];
  if (line_of("/proc/cpuinfo", "model name", ":", model)) return text(model);
  if (!line_of("/proc/cpuinfo", "CPU implementer", ":", model) || !line_of("/proc/cpuinfo", "CPU part", ":", part))
    return text("");
  char *both = gate_say("implementer %s part %s", model, part);
  json_t *made = text(both);
  free(both);
  return made;
}

static int usable_cpus(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

json_t *gate_machine(void) {
  struct utsname name;
  char line[LINE];
  json_t *machine = json_object();
  json_object_set_new(machine, "cpu", cpu());
  json_object_set_new(machine, "cpus", json_integer(usable_cpus()));
  json_object_set_new(machine, "kernel", text(uname(&name) == 0 ? name.release : ""));
  const bool governed = line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "", "", line);
  json_object_set_new(machine, "governor", text(governed ? line : ""));
  const double kib = line_of("/proc/meminfo", "MemTotal", ":", line) ? strtod(line, NULL) : 0;
  json_object_set_new(machine, "memory", json_integer((json_int_t)(kib / (1 << 20) + 0.5)));
  json_object_set_new(machine, "libc", text(gnu_get_libc_version()));
  return machine;
}

double gate_load_now(void) {
  char line[LINE];
  int running = 0;
  if (!line_of("/proc/loadavg", "", "", line) || sscanf(line, "%*s %*s %*s %d/", &running) != 1) return -1;
  return running > 0 ? running - 1 : 0;
}

/* --- git --- */

static char *folder_of(const char *path) {
  struct stat info;
  if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return gate_copy(path);
  char *copy = gate_copy(path), *folder = gate_copy(dirname(copy));
  free(copy);
  return folder;
}

static bool is_revision(const char *text) {
  size_t digits = 0;
  while (isxdigit((unsigned char)text[digits])) digits++;
  return digits >= REVISION_DIGITS && !text[digits];
}

char *gate_revision(const char *path, bool *dirty) {
  char *folder = folder_of(path), *revision = NULL, *changes = NULL;
  *dirty = false;
  (void)gate_process_read((const char *const[]){"git", "-C", folder, "rev-parse", "HEAD", NULL}, &revision);
  if (revision) revision[strcspn(revision, "\n")] = '\0';
  if (revision && is_revision(revision))
    *dirty = gate_process_read((const char *const[]){"git", "-C", folder, "--no-optional-locks", "status",
                                                     "--porcelain", "--untracked-files=no", NULL},
                               &changes) &&
             *changes;
  else if (revision)
    *revision = '\0';
  free(changes);
  free(folder);
  return revision ? revision : gate_copy("");
}
