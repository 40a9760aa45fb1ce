/* SPDX-License-Identifier: Apache-2.0
 * tool.c: options, messages, the head and the tables of a report, the clock. */
#include "bench/common/tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static FILE *markdown;
static char command[1024];

void bench_die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "%s: ", program_invocation_short_name);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

void bench_check(attune_status status, const char *what) {
  if (status != ATTUNE_OK) bench_die("%s: %s: %s", what, attune_status_string(status), attune_last_message());
}

void bench_explain(bench_choice *out, attune_tuner *tuner, attune_device *device, const char *problem) {
  attune_decision_info d = ATTUNE_DECISION_INFO_INIT;
  attune_decision *decision = NULL;
  bench_check(attune_decision_create(&decision, NULL), "attune_decision_create");
  bench_check(attune_explain(tuner, device, problem, decision), problem);
  bench_check(attune_decision_get_info(decision, &d), problem);
  *out = (bench_choice){.source = d.source,
                        .time_ns = d.time_ns,
                        .default_time_ns = d.default_time_ns,
                        .tuning_ms = d.tuning_ms,
                        .unsure = d.unsure != 0};
  snprintf(out->problem, sizeof out->problem, "%.255s", d.problem);
  snprintf(out->implementation, sizeof out->implementation, "%.31s", d.implementation);
  snprintf(out->configuration, sizeof out->configuration, "%.191s", d.configuration);
  snprintf(out->note, sizeof out->note, "%.127s", d.note);
  attune_decision_destroy(decision);
}

/* --- options --- */

void bench_bad_usage(const char *what, const char *usage) {
  fprintf(stderr, "%s: %s\n%s", program_invocation_short_name, what, usage);
  exit(2);
}

static void take_value(const bench_option *o, const char *text, const char *usage) {
  char *end = NULL, wrong[128];
  if (o->kind == BENCH_TEXT) {
    *(const char **)o->out = text;
    return;
  }
  const double value = strtod(text, &end);
  if (end == text || *end || !(value >= o->least && value <= o->most) ||
      (o->kind == BENCH_WHOLE && value != (double)(int)value)) {
    snprintf(wrong, sizeof wrong, "--%s should be a %snumber from %g to %g", o->name,
             o->kind == BENCH_WHOLE ? "whole " : "", o->least, o->most);
    bench_bad_usage(wrong, usage);
  }
  if (o->kind == BENCH_WHOLE)
    *(int *)o->out = (int)value;
  else
    *(double *)o->out = value;
}

int bench_read_options(int argc, char **argv, const bench_option *options, const char *usage, const char **words,
                       int most_words) {
  int count = 0;
  size_t at = (size_t)snprintf(command, sizeof command, "%s", program_invocation_short_name);
  for (int i = 1; i < argc && at < sizeof command; i++)
    at += (size_t)snprintf(command + at, sizeof command - at, " %s", argv[i]);
  for (int i = 1; i < argc; i++) {
    const bench_option *o = options;
    if (strcmp(argv[i], "--help") == 0) {
      fputs(usage, stdout);
      exit(0);
    }
    if (strncmp(argv[i], "--", 2) != 0) {
      if (count == most_words) bench_bad_usage("too many arguments", usage);
      words[count++] = argv[i];
      continue;
    }
    while (o->name && strcmp(o->name, argv[i] + 2) != 0) o++;
    if (!o->name || (o->kind != BENCH_FLAG && i + 1 == argc))
      bench_bad_usage(o->name ? "the last option needs a value" : "unknown option", usage);
    if (o->kind == BENCH_FLAG)
      *(bool *)o->out = true;
    else
      take_value(o, argv[++i], usage);
  }
  return count;
}

/* --- a report --- */

static void put_line(const char *text) {
  puts(text);
  fflush(stdout);
  if (markdown) fprintf(markdown, "%s\n", text);
}

void bench_line(const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  put_line(text);
}

void bench_table(const char *format, ...) {
  char text[1024], head[1024], rule[1024] = "|";
  size_t length = 0;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (const char *c = text; *c; c++) {
    if (*c == '|' && c > text && strlen(rule) < sizeof rule - 8) strcat(rule, c[-1] == '>' ? "---:|" : "---|");
    if (*c != '>' || c[1] != '|') head[length++] = *c;
  }
  head[length] = '\0';
  put_line(head);
  put_line(rule);
}

void bench_markdown_open(const char *path) {
  markdown = path ? fopen(path, "w") : NULL;
  if (path && !markdown) bench_die("cannot write %s; name a file in a folder that exists", path);
}

void bench_markdown_close(void) {
  if (markdown && fclose(markdown) != 0) bench_die("the Markdown file could not be written completely");
  markdown = NULL;
}

void bench_head(const char *title, attune_device *device, const char *libraries, const char *method) {
  attune_device_properties here = {0}, cpu = {0};
  attune_device *host = NULL;
  char date[32];
  const time_t now = time(NULL);
  struct tm utc;
  double load[1] = {0.0};
  strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &utc));
  if (getloadavg(load, 1) != 1) load[0] = 0.0;
  bench_check(attune_device_get(&host, "host"), "attune_device_get");
  bench_check(attune_device_get_properties(device, &here), "attune_device_get_properties");
  bench_check(attune_device_get_properties(host, &cpu), "attune_device_get_properties");
  bench_line("# %s: %s\n", title, attune_device_name(device));
  if (device != host)
    bench_line("- device: %s, compute capability %d.%d, %d processors, %llu MiB of L2, driver %d.%d", here.name,
               here.capability_major, here.capability_minor, here.processors,
               (unsigned long long)(here.cache_bytes >> 20), here.driver_version / 1000,
               here.driver_version % 1000 / 10);
  bench_line("- %s: %s, %d CPUs (%s)", device != host ? "host CPU" : "device", cpu.name, cpu.processors, cpu.features);
  bench_line("- libraries: attune %s%s%s", attune_version(), libraries ? ", " : "", libraries ? libraries : "");
  bench_line("- command: %s", command);
  bench_line("- date: %s, load average %.1f at the start", date, load[0]);
  bench_line("- method: %s\n", method);
}

/* --- */

bool bench_is_cuda(const attune_device *device) {
  return strncmp(attune_device_name(device), "cuda:", 5) == 0;
}

int bench_ordinal(const attune_device *device) {
  return bench_is_cuda(device) ? atoi(attune_device_name(device) + 5) : 0;
}

double bench_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}
