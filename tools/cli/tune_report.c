/* SPDX-License-Identifier: Apache-2.0
 * tune_report.c: what a run of `attune tune` tells: a line for each problem, a summary, JSON. */
#include "tools/cli/tune_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINNER_WIDTH 12 /* of the winner, before a remark is cut */

static const char *const outcome_names[] = {"left", "tuned", "stored", "same", "failed", "busy"};

/* "default 12.3 us  winner 9.8 us  1.25x" */
static int print_times(const attune_decision_info *d) {
  char time_text[CLI_CELL], default_time[CLI_CELL], speedup[CLI_CELL];
  const cli_tint tint = cli_speedup_tint(d);
  const int printed = printf("  default %10s  winner %10s  ", cli_time_text(default_time, d->default_time_ns),
                             cli_time_text(time_text, d->time_ns));
  if (tint) fputs(cli_tint_text(stdout, tint), stdout);
  const int more = printf("%7s", cli_speedup_cell(speedup, d));
  if (tint) fputs(cli_tint_text(stdout, CLI_PLAIN), stdout);
  return printed + more;
}

/* Remarks on the figures. */
static void write_remark(const tune_item *it, char *out, size_t size) {
  const attune_decision_info *d = &it->decision;
  const bool stored = it->outcome == OUTCOME_STORED;
  if (stored && strncmp(d->note, "stays: ", 7) == 0)
    snprintf(out, size, "  (stored; %s)", d->note);
  else if (!stored && d->unsure)
    snprintf(out, size, "  (%s%s)", d->complete ? "" : "the budget ended first; ", d->note);
  else
    snprintf(out, size, "%s", stored ? "  (stored)" : !d->complete ? "  (the budget ended first)" : "");
}

/* The winner and the remark in what is left of a terminal's line, cut where they are longer; room 0: no terminal. */
static void print_winner(const tune_item *it, int room) {
  const attune_decision_info *d = &it->decision;
  const size_t winner_size = strlen(d->implementation) + strlen(d->configuration) + 2;
  const size_t remark_size = strlen(d->note) + 32;
  char *winner = cli_alloc(winner_size, 1), *remark = cli_alloc(remark_size, 1);
  write_remark(it, remark, remark_size);
  snprintf(winner, winner_size, "%s%s%s", d->implementation, *d->configuration ? " " : "", d->configuration);
  const int whole = cli_width(winner), told = cli_width(remark);
  const int least = whole < WINNER_WIDTH ? whole : WINNER_WIDTH;
  const int winner_room = room - told > least ? room - told : least,
            left = room - (whole < winner_room ? whole : winner_room);
  fputs("  ", stdout);
  cli_print_padded(stdout, winner, room && winner_room < whole ? winner_room : 0, false, true);
  if (!room || left > 4) cli_print_padded(stdout, remark, room && left < told ? left : 0, false, true);
  free(winner);
  free(remark);
}

/* On a terminal a line fits: the name, the winner's configuration and the remark are cut. */
static void print_item(const tune_run *run, const tune_item *it) {
  const int room = run->options->common.wide ? 0 : cli_terminal_width(stdout);
  cli_print_padded(stdout, it->shown, run->name_width, false, false);
  if (it->outcome == OUTCOME_FAILED) fputs("  failed", stdout);
  if (it->outcome == OUTCOME_BUSY) fputs("  left: another process is measuring it", stdout);
  if (it->outcome == OUTCOME_SAME) fputs("  the same problem as one above", stdout);
  if (it->outcome == OUTCOME_TUNED || it->outcome == OUTCOME_STORED) {
    const int left = room - run->name_width - print_times(&it->decision) - 2;
    print_winner(it, !room ? 0 : left > 1 ? left : 1);
  }
  putchar('\n');
  fflush(stdout);
}

void tune_report_item(const tune_run *run, tune_item *it) {
  it->told = true;
  if (it->outcome == OUTCOME_LEFT) return;
  cli_progress_clear(run->progress);
  if (it->outcome == OUTCOME_FAILED) cli_error("%s: %s", it->entry->name, it->message);
  if (!run->options->common.json) print_item(run, it);
}

tune_tally tune_count_up(const tune_run *run) {
  tune_tally t = {.seconds = cli_now_s() - run->start_s};
  double logs = 0, default_ns = 0, winner_ns = 0;
  size_t known = 0;
  for (size_t i = 0; i < run->count; i++) {
    const tune_item *it = &run->items[i];
    t.by_outcome[it->outcome]++;
    if (it->outcome != OUTCOME_TUNED && it->outcome != OUTCOME_STORED) continue;
    t.incomplete += it->outcome == OUTCOME_TUNED && !it->decision.complete && !it->decision.unsure;
    t.unsure += it->decision.unsure != 0;
    if (!(cli_speedup(&it->decision) > 0)) continue;
    logs += log(cli_speedup(&it->decision));
    known++;
    default_ns += (double)it->entry->count * it->decision.time_ns * cli_speedup(&it->decision);
    winner_ns += (double)it->entry->count * it->decision.time_ns;
  }
  if (winner_ns > 0) t.weighted = default_ns / winner_ns;
  if (known) t.geomean = exp(logs / (double)known);
  return t;
}

void tune_print_summary(const tune_run *run, const tune_tally *t) {
  size_t tuned = t->by_outcome[OUTCOME_TUNED];
  if (cli_interrupted) puts("interrupted: finished problems are stored; run the same command again to resume");
  if (t->geomean > 0)
    printf("geomean speedup over the default: %.3fx, weighted by calls x time: %.3fx\n", t->geomean, t->weighted);
  printf("%zu tuned, %zu already stored, ", tuned, t->by_outcome[OUTCOME_STORED]);
  if (t->by_outcome[OUTCOME_SAME]) printf("%zu the same as another, ", t->by_outcome[OUTCOME_SAME]);
  printf("%zu failed, %zu left%s, %.1f s on %s\n", t->by_outcome[OUTCOME_FAILED], t->by_outcome[OUTCOME_LEFT],
         t->by_outcome[OUTCOME_LEFT] && !cli_interrupted ? " for lack of budget" : "", t->seconds,
         attune_device_name(run->device));
  const double needed_ms = tuned || cli_interrupted ? 0 : tune_budget_needed_ms(run);
  char needed[CLI_CELL];
  if (needed_ms > 0)
    printf("none of these fits into the budget: the shortest needs at least %s\n",
           cli_time_text(needed, 1e6 * needed_ms));
  if (t->by_outcome[OUTCOME_BUSY])
    printf("%zu still being measured elsewhere: the same command later uses %s\n", t->by_outcome[OUTCOME_BUSY],
           t->by_outcome[OUTCOME_BUSY] == 1 ? "its winner" : "their winners");
  const size_t kept = run->warmed.compiled + run->warmed.there;
  if (kept + run->warmed.failed)
    printf("%zu of the tuned need%s compiled kernels: those of %zu are in the kernel cache\n",
           kept + run->warmed.failed, kept + run->warmed.failed == 1 ? "s" : "", kept);
  if (t->incomplete)
    printf("%zu of the tuned ran out of %s time: the same command measures %s further\n", t->incomplete,
           t->incomplete == 1 ? "its" : "their", t->incomplete == 1 ? "it" : "them");
  if (t->unsure)
    printf("%zu %s unsure (noise or other work): the same command measures %s again\n", t->unsure,
           t->unsure == 1 ? "is" : "are", t->unsure == 1 ? "it" : "them");
  if (!run->measured && !t->by_outcome[OUTCOME_FAILED] && !t->by_outcome[OUTCOME_LEFT] && !t->by_outcome[OUTCOME_BUSY])
    puts("nothing to measure: every problem has a stored winner");
}

static json_t *item_json(const tune_item *it) {
  json_t *object = json_pack("{s:o, s:o, s:I, s:s}", "name", cli_json_text(it->entry->name), "problem",
                             cli_json_text(it->entry->problem), "count", (json_int_t)it->entry->count, "outcome",
                             outcome_names[it->outcome]);
  if (it->outcome == OUTCOME_FAILED || it->outcome == OUTCOME_BUSY)
    json_object_set_new(object, "message", cli_json_text(it->message));
  if (it->outcome == OUTCOME_TUNED || it->outcome == OUTCOME_STORED)
    json_object_set_new(object, "decision", cli_json_decision(&it->decision));
  if (it->entry->time_ns > 0) json_object_set_new(object, "estimated_ns", cli_json_number(it->entry->time_ns));
  return object;
}

int tune_print_json(const tune_run *run, const tune_tally *t) {
  json_t *results = json_array();
  for (size_t i = 0; i < run->count; i++) json_array_append_new(results, item_json(&run->items[i]));
  json_t *object =
      json_pack("{s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:b}", "workload",
                cli_json_text(run->options->workload), "device", attune_device_name(run->device), "results", results,
                "problems", (json_int_t)run->count, "tuned", (json_int_t)t->by_outcome[OUTCOME_TUNED], "stored",
                (json_int_t)t->by_outcome[OUTCOME_STORED], "same", (json_int_t)t->by_outcome[OUTCOME_SAME], "failed",
                (json_int_t)t->by_outcome[OUTCOME_FAILED], "left", (json_int_t)t->by_outcome[OUTCOME_LEFT], "busy",
                (json_int_t)t->by_outcome[OUTCOME_BUSY], "incomplete", (json_int_t)t->incomplete, "geomean_speedup",
                t->geomean > 0 ? cli_json_number(t->geomean) : json_null(), "weighted_speedup",
                t->weighted > 0 ? cli_json_number(t->weighted) : json_null(), "seconds", cli_json_number(t->seconds),
                "interrupted", cli_interrupted != 0);
  json_object_set_new(object, "kernels_kept", json_integer((json_int_t)(run->warmed.compiled + run->warmed.there)));
  json_object_set_new(object, "kernels_failed", json_integer((json_int_t)run->warmed.failed));
  json_object_set_new(object, "unsure", json_integer((json_int_t)t->unsure));
  return cli_print_json(object);
}
