/* SPDX-License-Identifier: Apache-2.0
 * report_rows.c: what every report says of a comparison: its rows in order, its headline, its two runs. */
#include "tools/compare/report/report_text.h"

#include "tools/compare/stats/fingerprints.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REVISION_DIGITS 10

const gate_case *gate_row_case(const gate_row *row) {
  return row->head ? row->head : row->base;
}

void gate_put_row_name(FILE *out, gate_markup markup, const gate_comparison *comparison, const gate_row *row,
                       size_t most) {
  char *name = gate_row_name(comparison, row);
  gate_put(out, markup, name ? name : gate_row_case(row)->name, most);
  free(name);
}

const char *gate_row_reason(const gate_row *row) {
  if (row->judged.verdict == GATE_FAILED || row->judged.verdict == GATE_REPAIRED)
    for (int side = 0; side < 2; side++) {
      const gate_case *c = side ? row->base : row->head;
      if (c && c->state == GATE_CASE_FAILED && c->message && *c->message) return c->message;
    }
  return row->judged.why && *row->judged.why ? row->judged.why : NULL;
}

static int rank(gate_verdict verdict) {
  static const int ranks[] = {[GATE_SLOWER] = 0, [GATE_FAILED] = 1,  [GATE_REPAIRED] = 2, [GATE_FASTER] = 3,
                              [GATE_UNSURE] = 4, [GATE_MISSING] = 5, [GATE_SAME] = 6};
  return ranks[verdict];
}

static double size_of_change(const gate_row *row) {
  const double ratio = row->judged.ratio;
  return ratio > 0 && isfinite(ratio) ? fabs(log(ratio)) : 0;
}

static int by_weight(const void *left, const void *right, void *rows) {
  const size_t a = *(const size_t *)left, b = *(const size_t *)right;
  const gate_row *first = (const gate_row *)rows + a, *second = (const gate_row *)rows + b;
  const int difference = rank(first->judged.verdict) - rank(second->judged.verdict);
  if (difference) return difference;
  const double one = size_of_change(first), other = size_of_change(second);
  if (one != other) return one > other ? -1 : 1;
  return a < b ? -1 : a > b;
}

size_t *gate_rows_ordered(const gate_comparison *comparison) {
  size_t *order = malloc((comparison->row_count + 1) * sizeof *order);
  if (!order) return NULL;
  for (size_t i = 0; i < comparison->row_count; i++) order[i] = i;
  if (comparison->row_count) qsort_r(order, comparison->row_count, sizeof *order, by_weight, comparison->rows);
  return order;
}

void gate_put_floors(FILE *out, gate_markup markup, const gate_rule *rule) {
  char cell[GATE_CELL];
  fputs(gate_share_text(cell, rule->floor), out);
  for (int i = 0; i < rule->floor_count; i++) {
    char *text = strndup(rule->floors[i].text, rule->floors[i].length);
    fprintf(out, ", from %s where the name contains ", gate_share_text(cell, rule->floors[i].floor));
    gate_put(out, markup, text ? text : "", 100);
    free(text);
  }
}

void gate_put_headline(FILE *out, const gate_comparison *comparison) {
  const size_t slower = comparison->counts[GATE_SLOWER], failed = comparison->counts[GATE_FAILED];
  const size_t unsure = slower ? 0 : comparison->counts[GATE_UNSURE], count = comparison->row_count;
  if (slower)
    fprintf(out, "%zu of %zu case%s %s slower", slower, count, count == 1 ? "" : "s", slower == 1 ? "is" : "are");
  else
    fputs(!count ? "There are no cases" : unsure ? "No case is certainly slower" : "No case is slower", out);
  if (failed) fprintf(out, ", %zu failed", failed);
  if (unsure) fprintf(out, ", %zu unsure", unsure);
}

void gate_put_counts(FILE *out, const gate_comparison *comparison) {
  static const gate_verdict order[] = {GATE_SLOWER, GATE_FAILED,  GATE_REPAIRED, GATE_FASTER,
                                       GATE_UNSURE, GATE_MISSING, GATE_SAME};
  const char *between = "";
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    if (!comparison->counts[order[i]]) continue;
    fprintf(out, "%s%zu %s", between, comparison->counts[order[i]], gate_verdict_name(order[i]));
    between = ", ";
  }
}

void gate_put_revision(FILE *out, gate_markup markup, const gate_run *run) {
  if (!run->revision || !*run->revision) {
    fputs("no revision", out);
    return;
  }
  char digits[REVISION_DIGITS + 1];
  snprintf(digits, sizeof digits, "%s", run->revision);
  gate_put(out, markup, digits, 0);
  if (run->dirty) gate_put(out, markup, " (with changes)", 0);
}

const char gate_no_revisions[] = "unknown on both sides";

bool gate_lacks_revisions(const gate_comparison *comparison) {
  const char *base = comparison->base->revision, *head = comparison->head->revision;
  return !(base && *base) && !(head && *head);
}

void gate_put_run(FILE *out, gate_markup markup, const gate_comparison *comparison, const gate_run *run) {
  char date[GATE_CELL];
  bool first = gate_lacks_revisions(comparison);
  if (!first) gate_put_revision(out, markup, run);
  for (int i = 0; i < 3; i++) {
    const char *text = i == 0 ? run->label : i == 1 ? gate_date_text(date, run->started) : run->suite;
    if (!text || !*text) continue;
    if (!first) fputs(", ", out);
    gate_put(out, markup, text, 100);
    first = false;
  }
  if (run->state == GATE_RUN_INTERRUPTED) fputs(", interrupted", out);
  if (run->state == GATE_RUN_OPEN) fputs(", not finished", out);
}

void gate_each_fact(const gate_run *run, void (*put)(void *arg, const char *key, const char *value), void *arg) {
  json_t *facts = run->fingerprint ? json_loads(run->fingerprint, 0, NULL) : NULL, *value;
  const char *key;
  json_object_foreach(facts, key, value) {
    char *text = json_is_string(value) ? NULL : gate_fact_text(key, value);
    const char *told = json_is_string(value) ? json_string_value(value) : text ? text : "";
    if (*told) put(arg, key, told);
    free(text);
  }
  if (!json_is_object(facts) && run->fingerprint && *run->fingerprint) put(arg, "machine", run->fingerprint);
  json_decref(facts);
}
