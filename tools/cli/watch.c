/* SPDX-License-Identifier: Apache-2.0
 * watch.c: see watch.h. Lines of equal columns, or a JSON object each. */
#include "tools/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum { HEAD_EVERY = 20 };

static volatile sig_atomic_t stopped;

static void stop(int number) {
  stopped = number;
}

/* Not restarted: the sleep ends. */
static void catch_stop(void) {
  struct sigaction action = {.sa_handler = stop};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

static const struct {
  int64_t bit;
  const char *word;
} reasons[] = {{ATTUNE_SLOW_IDLE, "idle"},
               {ATTUNE_SLOW_SETTING, "setting"},
               {ATTUNE_SLOW_POWER_CAP, "power-cap"},
               {ATTUNE_SLOW_HEAT, "heat"},
               {ATTUNE_SLOW_POWER_BRAKE, "power-brake"},
               {ATTUNE_SLOW_HARDWARE, "hardware"},
               {ATTUNE_SLOW_SYNCHRONIZED, "synchronized"},
               {ATTUNE_SLOW_OTHER, "other"}};
enum { REASONS = sizeof reasons / sizeof reasons[0] };

static int count_process(void *user, const attune_device_process *process) {
  (void)process;
  ++*(int *)user;
  return 0;
}

/* -1: unknown. */
static int processes_of(attune_device *device) {
  int count = 0;
  return attune_device_each_process(device, count_process, &count) == ATTUNE_OK ? count : -1;
}

static json_t *number(int64_t value) {
  return value == ATTUNE_NOT_KNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *reason_words(int64_t slowdown) {
  if (slowdown == ATTUNE_NOT_KNOWN) return json_null();
  json_t *array = json_array();
  for (int i = 0; i < REASONS; i++)
    if (slowdown & reasons[i].bit) json_array_append_new(array, json_string(reasons[i].word));
  return array;
}

static int print_json(attune_device *device, const attune_telemetry *t) {
  const int processes = processes_of(device);
  json_t *object = json_pack(
      "{s:s, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "device",
      attune_device_name(device), "time", (json_int_t)time(NULL), "busy_percent", number(t->busy_percent),
      "memory_busy_percent", number(t->memory_busy_percent), "memory_used_bytes", number(t->memory_used_bytes),
      "memory_total_bytes", number(t->memory_total_bytes), "temperature_c", number(t->temperature_c),
      "temperature_slow_c", number(t->temperature_slow_c), "power_mw", number(t->power_mw), "power_limit_mw",
      number(t->power_limit_mw), "clock_mhz", number(t->clock_mhz), "clock_most_mhz", number(t->clock_most_mhz),
      "memory_clock_mhz", number(t->memory_clock_mhz), "memory_clock_most_mhz", number(t->memory_clock_most_mhz),
      "slowdown", reason_words(t->slowdown), "processes", number(processes < 0 ? ATTUNE_NOT_KNOWN : processes));
  char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
  if (line) puts(line);
  const bool good = line != NULL;
  json_decref(object);
  free(line);
  return good ? CLI_DONE : CLI_FAILED;
}

/* "87", or "87/100" with what is the most; "-" where it is not known. */
static void cell(char out[CLI_CELL], int64_t value, int64_t most, double by, const char *form) {
  char words[2][CLI_CELL / 2];
  const int64_t values[] = {value, most};
  for (int i = 0; i < 2; i++)
    if (values[i] == ATTUNE_NOT_KNOWN)
      snprintf(words[i], sizeof words[i], "-");
    else
      snprintf(words[i], sizeof words[i], form, (double)values[i] * by);
  snprintf(out, CLI_CELL, most == ATTUNE_NOT_KNOWN ? "%s" : "%s/%s", words[0], words[1]);
}

static void slowdown_cell(char *out, size_t size, int64_t slowdown) {
  size_t at = 0;
  snprintf(out, size, "%s", slowdown == ATTUNE_NOT_KNOWN ? "-" : "none");
  for (int i = 0; i < REASONS && slowdown != ATTUNE_NOT_KNOWN; i++)
    if (slowdown & reasons[i].bit && at < size)
      at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "," : "", reasons[i].word);
}

static void print_line(attune_device *device, const attune_telemetry *t) {
  char busy[CLI_CELL], memory_busy[CLI_CELL], memory[CLI_CELL], heat[CLI_CELL], power[CLI_CELL], clock[CLI_CELL];
  char slow[120], processes[CLI_CELL];
  const int64_t none = ATTUNE_NOT_KNOWN;
  const int count = processes_of(device);
  cell(busy, t->busy_percent, none, 1, "%.0f%%");
  cell(memory_busy, t->memory_busy_percent, none, 1, "%.0f%%");
  cell(memory, t->memory_used_bytes, t->memory_total_bytes, 1.0 / (1 << 30), "%.1f");
  cell(heat, t->temperature_c, t->temperature_slow_c, 1, "%.0f");
  cell(power, t->power_mw, t->power_limit_mw, 1e-3, "%.0f");
  cell(clock, t->clock_mhz, t->clock_most_mhz, 1, "%.0f");
  cell(processes, count < 0 ? none : count, none, 1, "%.0f");
  slowdown_cell(slow, sizeof slow, t->slowdown);
  printf("%-8s %5s %9s %13s %8s %9s %11s %9s  %s\n", attune_device_name(device), busy, memory_busy, memory, heat, power,
         clock, processes, slow);
}

static void print_head(void) {
  printf("%-8s %5s %9s %13s %8s %9s %11s %9s  %s\n", "device", "busy", "mem-busy", "memory GiB", "heat C", "power W",
         "clock MHz", "processes", "slowed by");
}

static int print_round(bool json) {
  int code = CLI_DONE;
  for (int i = 0; i < attune_device_count() && code == CLI_DONE; i++) {
    attune_device *device = NULL;
    attune_telemetry t = {0};
    attune_status status = attune_device_at(&device, i);
    if (status == ATTUNE_OK) status = attune_device_get_telemetry(device, &t);
    if (status != ATTUNE_OK) return cli_fail(status);
    if (json)
      code = print_json(device, &t);
    else
      print_line(device, &t);
  }
  return fflush(stdout) == 0 ? code : CLI_FAILED;
}

static void sleep_for(double seconds) {
  struct timespec left = {.tv_sec = (time_t)seconds, .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (!stopped && nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

int cli_watch(double interval_s, long rounds, bool json) {
  int code = CLI_DONE;
  catch_stop();
  for (long round = 0; code == CLI_DONE && !stopped && (rounds == 0 || round < rounds); round++) {
    if (round > 0) sleep_for(interval_s);
    if (stopped) break;
    if (!json && round % HEAD_EVERY == 0) print_head();
    code = print_round(json);
  }
  return code;
}
