/* SPDX-License-Identifier: Apache-2.0
 * progress.c: the bar of `attune tune`. */
#include "tools/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BAR 24

double cli_now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void cli_progress_begin(cli_progress *progress, size_t total, size_t to_measure) {
  const char *terminal = getenv("TERM");
  *progress = (cli_progress){.active = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0,
                             .total = total,
                             .to_measure = to_measure,
                             .start_s = cli_now_s()};
}

void cli_progress_clear(cli_progress *progress) {
  if (!progress->drawn) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  progress->drawn = false;
}

static void clock_text(char out[CLI_CELL], double seconds) {
  long whole = (long)seconds;
  if (whole >= 3600)
    snprintf(out, CLI_CELL, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    snprintf(out, CLI_CELL, "%ld:%02ld", whole / 60, whole % 60);
}

/* How long the rest will take; negative: not known. What is stored already takes no time, so only what was measured
 * says it. A budget is the most, and in its last rounds what may be needed. */
static double left_s(const cli_progress *progress, double elapsed, size_t measured) {
  const double budget = progress->budget_s > elapsed ? progress->budget_s - elapsed : 0;
  if (!measured || measured > progress->to_measure) return progress->budget_s > 0 ? budget : -1;
  const double rest = elapsed / (double)measured * (double)(progress->to_measure - measured) + 1;
  return progress->budget_s > 0 && (budget < rest || measured == progress->to_measure) ? budget : rest;
}

void cli_progress_draw(cli_progress *progress, const char *name, size_t done, size_t measured) {
  if (!progress->active) return;
  double elapsed = cli_now_s() - progress->start_s;
  char elapsed_text[CLI_CELL], left_text[CLI_CELL] = "?";
  clock_text(elapsed_text, elapsed);
  const double left = left_s(progress, elapsed, measured);
  if (left >= 0) clock_text(left_text, left);
  int filled = progress->total ? (int)((double)BAR * (double)done / (double)progress->total) : BAR;
  bool utf8 = cli_utf8();
  fputs("\r\033[K[", stderr);
  for (int i = 0; i < BAR; i++) fputs(i < filled ? (utf8 ? "\u2588" : "#") : (utf8 ? "\u2591" : "."), stderr);
  fprintf(stderr, "] %zu/%zu  %s  eta %s  ", done, progress->total, elapsed_text, left_text);
  int room = cli_terminal_width(stderr) - BAR - 40;
  int width = cli_width(name);
  if (room > 4) cli_print_padded(stderr, name, width > room ? room : width, false, true);
  fflush(stderr);
  progress->drawn = true;
}

static void tell_error(void *user, attune_log_level level, const char *line) {
  (void)user, (void)level;
  fprintf(stderr, "attune: error: %s\n", line);
}

attune_status cli_open_tuner(attune_tuner **out, const attune_tuner_options *options) {
  const bool tells = !getenv("ATTUNE_LOG"); /* else the log has it */
  if (tells) attune_set_log(tell_error, NULL, ATTUNE_LOG_ERROR);
  const attune_status status = attune_tuner_create(out, options);
  if (tells) attune_set_log(NULL, NULL, ATTUNE_LOG_INFO);
  return status;
}

int cli_open_stored(attune_tuner **tuner, attune_device **device, const cli_options *options) {
  int code = cli_open_device(device, options);
  if (code == CLI_DONE) code = cli_need_database(options->database ? options->database : getenv("ATTUNE_DB"));
  if (code != CLI_DONE) return code;
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = options->database;
  tuner_options.mode = ATTUNE_MODE_CACHED;
  const attune_status status = cli_open_tuner(tuner, &tuner_options);
  return status == ATTUNE_OK ? CLI_DONE : cli_fail(status);
}
