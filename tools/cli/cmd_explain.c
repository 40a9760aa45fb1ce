/* SPDX-License-Identifier: Apache-2.0
 * cmd_explain.c: `attune explain`: which candidate runs for a problem, since when, by what margin; a decision in words
 * and in JSON. */
#include "tools/cli/commands.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
  cli_options common;
  char problem[ATTUNE_PROBLEM_CHARS];
  bool trials;
} options;

/* The problem may come as one argument or as its words. */
static void add_word(options *o, const char *word, struct argp_state *state) {
  size_t used = strlen(o->problem);
  int printed = snprintf(o->problem + used, sizeof o->problem - used, "%s%s", used ? " " : "", word);
  if ((size_t)printed >= sizeof o->problem - used)
    cli_bad_usage(state, "PROBLEM is longer than %zu bytes; should be like \"gemm f32 nn 64x64x64 strict\"",
                  sizeof o->problem - 1);
}

/* Numbers without zeros in front, as they are stored: 064x64 is 64x64. */
static void strip_zeros(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    const bool begins = from == text || strchr(" x=,", from[-1]);
    while (begins && *from == '0' && from[1] >= '0' && from[1] <= '9') from++;
    *to++ = *from;
  }
  *to = '\0';
}

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  if (key == ARGP_KEY_ARG) {
    add_word(o, argument, state);
  } else if (key == CLI_OPTION_TRIALS) {
    o->trials = true;
  } else if (key == ARGP_KEY_END) {
    if (!o->problem[0]) cli_bad_usage(state, "no PROBLEM; should be one like \"gemm f32 nn 64x64x64 strict\"");
    strip_zeros(o->problem);
  } else {
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static const char *source_name(attune_source source) {
  switch (source) {
  case ATTUNE_SOURCE_DEFAULT: return "default";
  case ATTUNE_SOURCE_NEIGHBOUR: return "neighbour";
  case ATTUNE_SOURCE_STORED: return "stored";
  case ATTUNE_SOURCE_SYSTEM: return "system";
  case ATTUNE_SOURCE_TUNED: return "tuned";
  default: return "unknown";
  }
}

static const char *source_words(attune_source source, attune_mode mode) {
  if (mode == ATTUNE_MODE_OFF && source == ATTUNE_SOURCE_DEFAULT)
    return "it is the default: mode off uses it, whatever is stored";
  if (mode == ATTUNE_MODE_TUNE && source == ATTUNE_SOURCE_DEFAULT)
    return "it is the default: no stored winner is valid here; a call in mode tune would measure the problem first";
  if (mode == ATTUNE_MODE_TUNE && source == ATTUNE_SOURCE_NEIGHBOUR)
    return "it is a guess, from the winner of a similar problem or by a rule; a call in mode tune would measure this "
           "problem first";
  switch (source) {
  case ATTUNE_SOURCE_DEFAULT: return "it is the default: no stored winner is valid here; `attune tune' would find one";
  case ATTUNE_SOURCE_NEIGHBOUR:
    return "it is a guess, from the winner of a similar problem or by a rule; `attune tune' would measure this problem";
  case ATTUNE_SOURCE_STORED: return "it is the measured winner of the database";
  case ATTUNE_SOURCE_SYSTEM: return "it is the measured winner of the system database";
  case ATTUNE_SOURCE_TUNED: return "it is the winner just measured";
  default: return "the reason is not known";
  }
}

/* Is the winner the default itself? Its name stands before how it was called. */
attune_decision *cli_decision(const attune_decision *from) {
  attune_decision *decision = NULL;
  if (attune_decision_create(&decision, from) == ATTUNE_OK) return decision;
  cli_error("%s", attune_last_message());
  exit(CLI_FAILED);
}

attune_decision_info cli_info(const attune_decision *decision) {
  attune_decision_info info = ATTUNE_DECISION_INFO_INIT;
  (void)attune_decision_get_info(decision, &info);
  return info;
}

static bool is_default(const attune_decision_info *d) {
  const size_t chars = strcspn(d->default_implementation, " ");
  return strlen(d->implementation) == chars && strncmp(d->implementation, d->default_implementation, chars) == 0;
}

/* One that is unsure has not shown that it gains anything, nor the default that it loses to itself. */
double cli_speedup(const attune_decision_info *d) {
  const double speedup = d->time_ns > 0 && d->default_time_ns > 0 ? d->default_time_ns / d->time_ns : 0;
  return d->unsure && speedup > 0 && (speedup > 1 || is_default(d)) ? 1 : speedup;
}

/* A winner that did not hold when it was verified has shown nothing, whatever was measured before; nor has one whose
 * spread is not known. */
double cli_speedup_bound(const attune_decision_info *d) {
  const double ratio = d->time_ns > 0 && d->default_time_ns > 0 ? d->default_time_ns / d->time_ns : 0;
  if (!d->unsure || is_default(d) || d->samples < 2 || !(d->spread > 0) || strncmp(d->note, "does not hold", 13) == 0)
    return 0;
  const double of_median = 1.2533 * 1.4826 * d->spread / sqrt(d->samples); /* as normal: sigma = 1.4826 MAD */
  const double error = sqrt(2.0) * hypot(of_median, d->placement_spread);  /* of a ratio of two such times */
  const double bound = ratio / (1 + 3 * error);
  return bound > 1 ? bound : 0;
}

const char *cli_speedup_cell(char out[CLI_CELL], const attune_decision_info *d) {
  const double bound = cli_speedup_bound(d), step = bound < 10 ? 10 : 1;
  if (!d->unsure) return cli_speedup_text(out, cli_speedup(d));
  const double below = floor(bound * step) / step;
  if (!(below > 1)) return "-";
  snprintf(out, CLI_CELL, "> %.*fx", bound < 10, below);
  return out;
}

cli_tint cli_speedup_tint(const attune_decision_info *d) {
  const double known = d->unsure ? cli_speedup_bound(d) : cli_speedup(d);
  return known > 1.005 ? CLI_GREEN : known > 0 && known < 0.995 ? CLI_RED : CLI_PLAIN;
}

json_t *cli_json_decision(const attune_decision_info *d) {
  json_t *object = json_pack("{s:o, s:o, s:o, s:i, s:o, s:s, s:o, s:o, s:i}", "problem", cli_json_text(d->problem),
                             "device", cli_json_text(d->device), "implementation", cli_json_text(d->implementation),
                             "implementation_version", d->implementation_version, "configuration",
                             cli_json_text(d->configuration), "source", source_name(d->source), "time_ns",
                             cli_json_number(d->time_ns), "spread", cli_json_number(d->spread), "samples", d->samples);
  json_t *rest = json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:b, s:I, s:o}", "default_implementation",
      cli_json_text(d->default_implementation), "default_time_ns", cli_json_number(d->default_time_ns), "speedup",
      cli_json_number(cli_speedup(d)), "runner_up", cli_json_text(d->runner_up), "runner_up_configuration",
      cli_json_text(d->runner_up_configuration), "runner_up_time_ns", cli_json_number(d->runner_up_time_ns), "measure",
      cli_json_text(d->measure), "candidates", d->candidates, "rejected", d->rejected, "disturbed", d->disturbed,
      "max_error", cli_json_number(d->max_error), "tuning_ms", cli_json_number(d->tuning_ms), "complete", d->complete,
      "tuned_at", (json_int_t)d->tuned_at, "note", cli_json_text(d->note));
  json_object_update(object, rest);
  json_decref(rest);
  json_object_set_new(object, "unsure", json_boolean(d->unsure));
  const double bound = cli_speedup_bound(d);
  json_object_set_new(object, "speedup_at_least", bound > 0 ? cli_json_number(bound) : json_null());
  json_object_set_new(object, "changed", cli_json_text(d->changed));
  json_object_set_new(object, "placement_spread", cli_json_number(d->placement_spread));
  return object;
}

static void line(const char *label, const char *text) {
  printf("  %-16s", label);
  cli_print_padded(stdout, text, 0, false, false);
  putchar('\n');
}

/* "1.25x, 12.3 us by NAME CONFIGURATION" for the one that was beaten. */
static void margin_line(const char *label, const attune_decision_info *d, double time_ns, const char *name,
                        const char *configuration) {
  char text[400], time_text[CLI_CELL];
  if (!(time_ns > 0) || !(d->time_ns > 0)) return;
  snprintf(text, sizeof text, "%.3fx as fast: %s by %s%s%s", time_ns / d->time_ns, cli_time_text(time_text, time_ns),
           name, *configuration ? " " : "", configuration);
  line(label, text);
}

/* The winner may look slower than the one that it beat: that needs a word. */
static void runner_up_lines(const attune_decision_info *d, bool alone) {
  margin_line("over runner-up", d, d->runner_up_time_ns, d->runner_up, d->runner_up_configuration);
  if (!(d->runner_up_time_ns > 0) || d->runner_up_time_ns >= d->time_ns) return;
  line("", alone ? "this time is from the race; afterwards winner and default were measured again, each alone"
                 : "the race compares samples taken in direct succession, not these medians");
}

/* `alone`: winner and default were measured again behind the race. */
static void measured_lines(const attune_decision_info *d, bool alone) {
  char text[400], time_text[CLI_CELL], spread[CLI_CELL], placement[CLI_CELL];
  snprintf(text, sizeof text, "%s, median of %d samples, spread %s, %s over placements of the operands",
           cli_time_text(time_text, d->time_ns), d->samples, cli_percent_text(spread, d->spread),
           cli_percent_text(placement, d->placement_spread));
  line("time", text);
  if (d->unsure) { /* the note says why; the times are printed without a margin */
    snprintf(text, sizeof text, "not known: %s by %s", cli_time_text(time_text, d->default_time_ns),
             d->default_implementation);
    line("over default", text);
  } else if (is_default(d) && d->time_ns == d->default_time_ns)
    line("over default", "it is the default; none was faster beyond the noise");
  else
    margin_line("over default", d, d->default_time_ns, d->default_implementation, "");
  if (*d->runner_up && !d->unsure) runner_up_lines(d, alone);
  snprintf(text, sizeof text, "%.3g of the contract's tolerance", d->max_error);
  line("largest error", text);
  snprintf(text, sizeof text, "%s; %d candidate%s, %d rejected, %d disturbed sample%s discarded; %.0f ms", d->measure,
           d->candidates, d->candidates == 1 ? "" : "s", d->rejected, d->disturbed, d->disturbed == 1 ? "" : "s",
           d->tuning_ms);
  line("measured", text);
  if (!d->complete) line("complete", "no: the budget ran out first; `attune tune' continues");
  if (d->unsure)
    line("sure", *d->note ? "no, see the note; `attune tune' measures again"
                          : "no: noise, or an older way of measuring; `attune tune' measures again");
}

/* `asked` is the problem as the user wrote it: printed if it is not the beginning of the stored text, from which the
 * accuracy may be left out; of a row-major one it comes first. */
static void print_words(const char *asked, const attune_decision_info *d, attune_mode mode, bool alone) {
  char text[400], since[CLI_CELL];
  const bool turned = strstr(asked, " row-major") != NULL, other = strncmp(asked, d->problem, strlen(asked)) != 0;
  cli_print_padded(stdout, turned ? asked : d->problem, 0, false, false);
  printf(" on %s\n", d->device);
  if (other) line(turned ? "stored as" : "asked as", turned ? d->problem : asked);
  snprintf(text, sizeof text, "%s%s%s, version %d", d->implementation, *d->configuration ? " " : "", d->configuration,
           d->implementation_version);
  line("runs", text);
  line("because", source_words(d->source, mode));
  if (d->tuned_at > 0) line("since", cli_date_text(since, d->tuned_at));
  if (d->time_ns > 0) measured_lines(d, alone);
  if (*d->changed && d->source <= ATTUNE_SOURCE_NEIGHBOUR) line("stored", d->changed);
  if (*d->changed && d->source > ATTUNE_SOURCE_NEIGHBOUR) {
    line("changed since", d->changed);
    line("", "it still runs, but the candidates that it was compared with have changed; `attune tune' measures again");
  }
  if (*d->note && d->source != ATTUNE_SOURCE_DEFAULT) line("note", d->note);
}

static const cli_column trial_columns[] = {{"implementation", false, true, 0}, {"configuration", false, CLI_LONG, 1},
                                           {"time", true, false, 0},           {"spread", true, false, 2},
                                           {"samples", true, false, 3},        {"verdict", false, false, 0}};
enum { TRIAL_COLUMNS = sizeof trial_columns / sizeof trial_columns[0] };

typedef struct trial_report {
  cli_table table;
  json_t *array;
  double winner_ns; /* its time in the race; 0: not known */
} trial_report;

static int add_trial(void *user, const attune_trial *t) {
  trial_report *r = user;
  char time_text[CLI_CELL] = "-", spread[CLI_CELL] = "-", samples[CLI_CELL];
  if (strcmp(t->verdict, "winner") == 0) r->winner_ns = t->time_ns;
  if (t->time_ns > 0.0) cli_time_text(time_text, t->time_ns), cli_percent_text(spread, t->spread);
  snprintf(samples, sizeof samples, "%d", t->samples);
  cli_table_add(&r->table, (const char *const[TRIAL_COLUMNS]){t->implementation, t->configuration, time_text, spread,
                                                              samples, t->verdict});
  json_array_append_new(r->array,
                        json_pack("{s:o, s:o, s:o, s:o, s:i, s:o}", "implementation", cli_json_text(t->implementation),
                                  "configuration", cli_json_text(t->configuration), "time_ns",
                                  cli_json_number(t->time_ns), "spread", cli_json_number(t->spread), "samples",
                                  t->samples, "verdict", cli_json_text(t->verdict)));
  return 0;
}

static void print_trials(trial_report *r, bool alone, bool wide) {
  line("trials", "times in the race, where the candidates take turns");
  line("", "a vendor's call may be listed twice: called directly (the default) and through attune");
  if (alone) line("", "winner and default were then measured again, each alone: see the times above");
  cli_table_print(&r->table, stdout, wide);
}

/* None is no failure: the problem was not tuned here. */
static int tell(const options *o, attune_tuner *tuner, attune_device *device, const attune_decision_info *decision) {
  trial_report r = {.table = {.columns = trial_columns, .column_count = TRIAL_COLUMNS}, .array = json_array()};
  attune_status status = attune_tuner_trials(tuner, device, o->problem, add_trial, &r);
  const bool alone = r.winner_ns > 0 && r.winner_ns != decision->time_ns;
  if (!o->trials) status = ATTUNE_OK; /* those of a winner say where its time is from */
  int code = status == ATTUNE_OK || status == ATTUNE_NOT_FOUND ? CLI_DONE : cli_fail(status);
  if (code == CLI_DONE && o->common.json) {
    json_t *object = cli_json_decision(decision);
    if (o->trials) json_object_set(object, "trials", r.array);
    code = cli_print_json(object);
  } else if (code == CLI_DONE) {
    print_words(o->problem, decision, attune_tuner_get_mode(tuner), alone);
    if (o->trials && r.table.rows) print_trials(&r, alone, o->common.wide);
    if (status == ATTUNE_NOT_FOUND)
      line("trials", "no trials of the problem are stored: `attune tune' measures and stores them");
  }
  cli_table_free(&r.table);
  json_decref(r.array);
  return code;
}

/* Without its database the tuner still runs the problem, so the answer stands; one that was named must be there. */
static int explain(const options *o, attune_tuner *tuner, attune_device *device) {
  attune_status status = attune_tuner_database_status(tuner);
  if (status != ATTUNE_OK && o->common.database) return cli_fail(status);
  if (status != ATTUNE_OK) cli_error("warning: %s", attune_last_message());
  attune_decision *decision = cli_decision(NULL);
  status = attune_explain(tuner, device, o->problem, decision);
  const attune_decision_info info = cli_info(decision);
  const int code = status == ATTUNE_OK ? tell(o, tuner, device, &info) : cli_fail(status);
  attune_decision_destroy(decision);
  return code;
}

int cmd_explain(int argc, char **argv) {
  options o = {0};
  if (cli_parse("explain", argc, argv, &o.common, parse, &o) != 0) return CLI_USAGE;
  attune_device *device = NULL;
  int code = cli_open_device(&device, &o.common);
  if (code == CLI_DONE) code = cli_need_database(o.common.database);
  if (code != CLI_DONE) return code;
  attune_tuner_options tuner_options = ATTUNE_TUNER_OPTIONS_INIT;
  tuner_options.database = o.common.database;
  attune_tuner *tuner = NULL;
  attune_status status = cli_open_tuner(&tuner, &tuner_options);
  if (status != ATTUNE_OK) return cli_fail(status);
  code = explain(&o, tuner, device);
  attune_tuner_destroy(tuner);
  return code;
}
