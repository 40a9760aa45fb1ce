/* SPDX-License-Identifier: Apache-2.0
 * bench_report.c: what `attune bench` prints: a table or JSON of its cases, alone or beside those of another build. */
#include "tuning/cli/bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tuning/gate/summary.h"

static const gate_case *head_of(const bench_report *r, size_t i) {
  return r->outcome->sides[GATE_HEAD][i];
}

static const gate_case *base_of(const bench_report *r, size_t i) {
  return r->base ? r->outcome->sides[GATE_BASE][i] : NULL;
}

/* The one that says what the case is. */
static const gate_case *shown(const bench_report *r, size_t i) {
  return head_of(r, i) ? head_of(r, i) : base_of(r, i);
}

static const gate_judgement *judged(const bench_report *r, size_t i) {
  return r->outcome->judged ? &r->outcome->judged[i] : NULL;
}

static bool failed(const gate_case *c) {
  return c && c->state == GATE_CASE_FAILED;
}

/* Why the case has no good end, or "ok". */
static const char *state_text(const bench_report *r, size_t i, char *out, size_t size) {
  const gate_case *head = head_of(r, i), *base = base_of(r, i);
  const gate_judgement *j = judged(r, i);
  const char *why = j && j->why ? j->why : "";
  if (failed(head))
    snprintf(out, size, "failed: %s", head->message);
  else if (failed(base))
    snprintf(out, size, "base failed: %s", base->message);
  else if (j)
    snprintf(out, size, "%s%s%s", gate_verdict_name(j->verdict), *why ? ": " : "", why);
  else
    snprintf(out, size, "%s", shown(r, i)->visit_count ? "ok" : "not timed");
  return out;
}

/* --- the table --- */

static const char *rate_text(char out[CLI_CELL], double work, double ns, double unit) {
  if (!(work > 0 && ns > 0)) return "-";
  snprintf(out, CLI_CELL, "%.4g", work / ns / unit);
  return out;
}

static const char *change_text(char out[CLI_CELL], const gate_judgement *j) {
  if (!j || !(j->ratio > 0)) return "-";
  snprintf(out, CLI_CELL, "%+.1f %%", 100 * (j->ratio - 1));
  return out;
}

/* How much of what the device can do at best; 0: not known. Nor is it where a hot case fits into the last cache, and memory
 * would bind it if it did not: the copy did not time that cache. */
static double share(const bench_report *r, const gate_case *c, double ns) {
  attune_device *device = NULL;
  attune_device_properties p = {.cache_bytes = 0};
  double least_s = 0;
  if (!(ns > 0) || attune_device_get(&device, c->device) != ATTUNE_OK ||
      attune_device_get_properties(device, &p) != ATTUNE_OK)
    return 0;
  const bool cached = strncmp(c->mode, "cold", 4) != 0 && c->bytes <= (double)p.cache_bytes;
  double moving_s = 0;
  for (size_t i = 0; i < r->head->run.roof_count; i++) {
    const gate_roof *roof = &r->head->run.roofs[i];
    if (strcmp(roof->device, c->device) != 0) continue;
    if (roof->bytes_s > 0) moving_s = fmax(moving_s, c->bytes / roof->bytes_s);
    if (roof->flops_s > 0 && strcmp(roof->dtype, c->dtype) == 0) least_s = fmax(least_s, c->flops / roof->flops_s);
  }
  if (cached && moving_s > least_s) return 0;
  return 1e9 * fmax(least_s, moving_s) / ns;
}

static const char *share_text(char out[CLI_CELL], double share_of_roof) {
  if (!(share_of_roof > 0)) return "-";
  snprintf(out, CLI_CELL, "%.0f %%", 100 * share_of_roof);
  return out;
}

static const cli_column alone_columns[] = {
    {"case", false, true, 0},    {"device", false, false, 4}, {"mode", false, false, 5},
    {"time", true, false, 0},    {"spread", true, false, 1},  {"GB/s", true, false, 2},
    {"TFLOP/s", true, false, 3}, {"of roof", true, false, 4}, {"state", false, true, 0}};
static const cli_column pair_columns[] = {
    {"case", false, true, 0},    {"device", false, false, 6}, {"mode", false, false, 7},  {"base", true, false, 3},
    {"time", true, false, 0},    {"change", true, false, 0},  {"spread", true, false, 2}, {"GB/s", true, false, 4},
    {"TFLOP/s", true, false, 5}, {"of roof", true, false, 6}, {"state", false, true, 0}};
enum { ALONE = sizeof alone_columns / sizeof alone_columns[0], PAIR = sizeof pair_columns / sizeof pair_columns[0] };

static void add_row(const bench_report *r, cli_table *table, size_t i) {
  const gate_case *c = shown(r, i), *base = base_of(r, i);
  char state[512], time[CLI_CELL], base_time[CLI_CELL], change[CLI_CELL], spread_cell[CLI_CELL], bytes[CLI_CELL],
      flops[CLI_CELL], roof[CLI_CELL];
  double ns = 0, spread = 0, base_ns = 0;
  if (head_of(r, i)) gate_case_summary(head_of(r, i), &ns, &spread);
  if (base) gate_case_summary(base, &base_ns, NULL);
  const char *const cells[PAIR] = {c->name,
                                   c->device,
                                   c->mode,
                                   cli_time_text(base_time, base_ns),
                                   cli_time_text(time, ns),
                                   change_text(change, judged(r, i)),
                                   ns > 0 ? cli_percent_text(spread_cell, spread) : "-",
                                   rate_text(bytes, c->bytes, ns, 1),
                                   rate_text(flops, c->flops, ns, 1e3),
                                   share_text(roof, share(r, c, ns)),
                                   state_text(r, i, state, sizeof state)};
  const char *const alone[ALONE] = {cells[0], cells[1], cells[2], cells[4], cells[6],
                                    cells[7], cells[8], cells[9], cells[10]};
  cli_table_add(table, r->base ? cells : alone);
}

static void print_table(const bench_report *r) {
  cli_table table = {.columns = r->base ? pair_columns : alone_columns, .column_count = r->base ? PAIR : ALONE};
  for (size_t i = 0; i < r->outcome->count; i++) add_row(r, &table, i);
  if (table.rows) cli_table_print(&table, stdout, r->options->common.wide);
  cli_table_free(&table);
}

/* --- counts --- */

typedef struct counts {
  size_t verdicts[GATE_MISSING + 1], failed;
  size_t broke; /* failed, and not in the base already */
  size_t few;   /* unsure for want of rounds */
} counts;

static int rounds_needed(const bench_report *r) {
  return gate_judge_least_rounds(&r->options->rule, r->outcome->count, GATE_LOOKS);
}

static counts count(const bench_report *r) {
  counts c = {.failed = 0};
  for (size_t i = 0; i < r->outcome->count; i++) {
    c.failed += failed(head_of(r, i)) || failed(base_of(r, i));
    c.broke += failed(head_of(r, i)) && !(r->base && failed(base_of(r, i)));
    if (!judged(r, i)) continue;
    c.verdicts[judged(r, i)->verdict]++;
    c.few += judged(r, i)->verdict == GATE_UNSURE && judged(r, i)->head_visits < rounds_needed(r);
  }
  return c;
}

static const char *end_text(const bench_report *r) {
  if (r->outcome->interrupted) return ", interrupted";
  if (!r->outcome->out_of_time) return "";
  return r->options->time_s > 0 ? ", ended by --time" : ", ended after the time that a pair gets without --time";
}

static void print_summary(const bench_report *r) {
  const counts c = count(r);
  printf("%zu case%s", r->outcome->count, r->outcome->count == 1 ? "" : "s");
  if (r->outcome->judged)
    for (int i = 0; i <= GATE_MISSING; i++)
      if (c.verdicts[i] || i == GATE_SLOWER)
        printf("%s%zu %s", i ? ", " : ": ", c.verdicts[i], gate_verdict_name((gate_verdict)i));
  if (!r->outcome->judged && c.failed) printf(", %zu failed", c.failed);
  printf("; %d rounds in %.1f s%s", r->outcome->rounds, r->seconds, end_text(r));
  if (r->options->save) {
    fputs("; saved in ", stdout);
    cli_print_padded(stdout, r->options->save, 0, false, false);
    printf(" as run %lld", (long long)r->head->run.id);
  }
  putchar('\n');
  if (c.few)
    printf("No change of %zu can be certain in fewer than %d rounds: more --rounds, or more --time.\n", c.few,
           rounds_needed(r));
}

/* --- JSON --- */

static json_t *side_json(const gate_case *c) {
  double ns, spread;
  if (!c) return json_null();
  gate_case_summary(c, &ns, &spread);
  json_t *object = json_pack("{s:o, s:o, s:i, s:s}", "time_ns", c->visit_count ? cli_json_number(ns) : json_null(),
                             "spread", c->visit_count ? cli_json_number(spread) : json_null(), "visits", c->visit_count,
                             "state", failed(c) ? "failed" : "ok");
  json_object_set_new(object, "message", c->message ? cli_json_text(c->message) : json_null());
  return object;
}

static json_t *judged_json(const gate_judgement *j) {
  json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o}", "verdict", gate_verdict_name(j->verdict), "ratio",
                             cli_json_number(j->ratio), "low", cli_json_number(j->low), "high",
                             cli_json_number(j->high), "p_corrected", cli_json_number(j->p_corrected));
  if (j->why) json_object_set_new(object, "why", cli_json_text(j->why));
  return object;
}

static json_t *case_json(const bench_report *r, size_t i) {
  const gate_case *c = shown(r, i);
  json_t *object =
      json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", cli_json_text(c->name), "device",
                cli_json_text(c->device), "mode", cli_json_text(c->mode), "dtype", cli_json_text(c->dtype), "bytes",
                cli_json_number(c->bytes), "flops", cli_json_number(c->flops), "head", side_json(head_of(r, i)));
  if (r->base) json_object_set_new(object, "base", side_json(base_of(r, i)));
  double ns = 0;
  if (head_of(r, i)) gate_case_summary(head_of(r, i), &ns, NULL);
  const double of_roof = share(r, c, ns);
  json_object_set_new(object, "of_roof", of_roof > 0 ? cli_json_number(of_roof) : json_null());
  if (judged(r, i)) json_object_set_new(object, "judged", judged_json(judged(r, i)));
  return object;
}

static json_t *run_json(const gate_run *run) {
  return json_pack("{s:I, s:o, s:o, s:b, s:o}", "id", (json_int_t)run->id, "label", cli_json_text(run->label),
                   "revision", cli_json_text(run->revision), "dirty", run->dirty, "fingerprint",
                   json_loads(run->fingerprint, 0, NULL));
}

static int print_json(const bench_report *r) {
  json_t *cases = json_array();
  for (size_t i = 0; i < r->outcome->count; i++) json_array_append_new(cases, case_json(r, i));
  json_t *object = json_pack("{s:o, s:i, s:o, s:b, s:b, s:o}", "cases", cases, "rounds", r->outcome->rounds, "seconds",
                             cli_json_number(r->seconds), "interrupted", r->outcome->interrupted, "out_of_time",
                             r->outcome->out_of_time, "head", run_json(&r->head->run));
  if (r->base) json_object_set_new(object, "base", run_json(&r->base->run));
  return cli_print_json(object);
}

/* The reports say what the table says: a case keeps the verdict of the look that decided it. */
static void take_verdicts(gate_comparison *c, const gate_outcome *outcome) {
  memset(c->counts, 0, sizeof c->counts);
  for (size_t i = 0; i < c->row_count; i++) {
    gate_row *row = &c->rows[i];
    for (size_t j = 0; outcome->judged && j < outcome->count; j++)
      if (outcome->sides[GATE_HEAD][j] == row->head && outcome->sides[GATE_BASE][j] == row->base)
        row->judged = outcome->judged[j];
    c->counts[row->judged.verdict]++;
  }
}

static int write_reports(const bench_report *r) {
  const compare_reports *wanted = &r->options->reports;
  gate_comparison comparison;
  if (!wanted->markdown && !wanted->junit && !wanted->html) return CLI_DONE;
  char *error = gate_compare(&comparison, &r->base->run, &r->head->run, &r->options->rule, true);
  if (error) {
    cli_error("%s", error);
    free(error);
    return CLI_FAILED;
  }
  take_verdicts(&comparison, r->outcome);
  const int code = compare_write(wanted, &comparison, r->options->save);
  gate_comparison_free(&comparison);
  return code;
}

int bench_report_print(const bench_report *r) {
  const counts c = count(r);
  int code = write_reports(r);
  if (r->options->common.json) {
    if (print_json(r) != CLI_DONE) code = CLI_FAILED;
  } else if (!compare_reports_printed(&r->options->reports)) {
    print_table(r);
    print_summary(r);
  }
  return code != CLI_DONE ? code : c.broke || c.verdicts[GATE_SLOWER] ? CLI_FAILED : CLI_DONE;
}

/* --- --list --- */

int bench_list_print(const bench_side *head, const bench_options *o) {
  static const cli_column columns[] = {
      {"case", false, true, 0}, {"device", false, false, 1}, {"mode", false, false, 2}};
  cli_table table = {.columns = columns, .column_count = 3};
  json_t *cases = json_array();
  for (size_t i = 0; i < head->run.case_count; i++) {
    const gate_case *c = &head->run.cases[i];
    cli_table_add(&table, (const char *const[]){c->name, c->device, c->mode});
    json_array_append_new(cases, json_pack("{s:o, s:o, s:o}", "name", cli_json_text(c->name), "device",
                                           cli_json_text(c->device), "mode", cli_json_text(c->mode)));
  }
  if (!o->common.json && table.rows) cli_table_print(&table, stdout, o->common.wide);
  cli_table_free(&table);
  if (o->common.json) return cli_print_json(json_pack("{s:o}", "cases", cases));
  json_decref(cases);
  return CLI_DONE;
}
