/* SPDX-License-Identifier: Apache-2.0
 * comparison.c: the cases of two runs, matched and judged. */
#include "tools/compare/stats/comparison.h"

#include <stdlib.h>
#include <string.h>

#include "tools/compare/message.h"
#include "tools/compare/stats/case_index.h"
#include "tools/compare/stats/fingerprints.h"

static const int64_t TOGETHER_SECONDS = 60; /* the two runs of a pair begin within this */

/* The number of a pair is one of a file: runs of two files may have it by chance, but do not begin together. */
static bool are_pair(const gate_run *base, const gate_run *head) {
  const bool named = (head->pair && head->pair == base->id) || (base->pair && base->pair == head->id);
  return named && llabs((long long)(head->started - base->started)) <= TOGETHER_SECONDS;
}

static const gate_case *case_at(const void *run, size_t place) {
  return &((const gate_run *)run)->cases[place];
}

static gate_case_index index_of(const gate_run *run) {
  gate_case_index index = {0};
  for (size_t i = 0; i < run->case_count; i++) gate_case_index_add(&index, &run->cases[i], i);
  return index;
}

static const gate_case *find(const gate_run *run, const gate_case_index *index, const gate_case *like) {
  const size_t place = gate_case_index_find(index, like, case_at, run);
  return place == GATE_CASE_NOWHERE ? NULL : &run->cases[place];
}

/* The rows' cases; how many have both. */
static size_t match(gate_comparison *c) {
  gate_case_index base = index_of(c->base), head = index_of(c->head);
  size_t common = 0;
  c->rows = gate_alloc(c->base->case_count + c->head->case_count + 1, sizeof *c->rows);
  for (size_t i = 0; i < c->head->case_count; i++) {
    gate_row *row = &c->rows[c->row_count++];
    row->head = &c->head->cases[i];
    row->base = find(c->base, &base, row->head);
    common += row->base != NULL;
  }
  for (size_t i = 0; i < c->base->case_count; i++)
    if (!find(c->head, &head, &c->base->cases[i])) c->rows[c->row_count++].base = &c->base->cases[i];
  gate_case_index_free(&base);
  gate_case_index_free(&head);
  return common;
}

static void judge(gate_comparison *c) {
  const gate_case **base = gate_alloc(c->row_count, sizeof *base), **head = gate_alloc(c->row_count, sizeof *head);
  gate_judgement *judged = gate_alloc(c->row_count, sizeof *judged);
  for (size_t i = 0; i < c->row_count; i++) {
    base[i] = c->rows[i].base;
    head[i] = c->rows[i].head;
  }
  gate_judge(judged, base, head, c->row_count, c->alternated, &c->rule, GATE_LOOKS);
  for (size_t i = 0; i < c->row_count; i++) {
    c->rows[i].judged = judged[i];
    c->counts[judged[i].verdict]++;
  }
  free(judged);
  free(head);
  free(base);
}

static char *not_alike(const char *differences) {
  char *line = gate_one_line(differences);
  char *error = gate_say(
      "the runs were not made on the same machine and software (%s); --allow-different compares them anyway", line);
  free(line);
  return error;
}

char *gate_compare(gate_comparison *out, const gate_run *base, const gate_run *head, const gate_rule *rule,
                   bool allow_different) {
  *out = (gate_comparison){.base = base, .head = head, .rule = rule ? *rule : gate_rule_default};
  out->alternated = are_pair(base, head);
  out->differences = gate_fingerprint_differences(base->fingerprint, head->fingerprint);
  char *error = NULL;
  if (out->differences && !out->alternated && !allow_different)
    error = not_alike(out->differences);
  else if (out->alternated ? !base->case_count && !head->case_count : !base->case_count || !head->case_count)
    error = gate_say("the %s has no cases; should be a run with cases", base->case_count ? "head" : "base");
  else if (!match(out) && base->case_count && head->case_count)
    error = gate_say("the runs have no case in common (the base has \"%s\", the head \"%s\"); should share cases with "
                     "the same name, device and mode",
                     base->cases[0].name, head->cases[0].name);
  if (error)
    gate_comparison_free(out);
  else
    judge(out);
  return error;
}

void gate_comparison_free(gate_comparison *comparison) {
  if (!comparison) return;
  free(comparison->differences);
  free(comparison->rows);
  *comparison = (gate_comparison){0};
}

static bool did_well(const gate_case *c) {
  return c->state == GATE_CASE_OK && c->visit_count > 0;
}

bool gate_row_regressed(const gate_row *row) {
  if (row->judged.verdict != GATE_FAILED) return row->judged.verdict == GATE_SLOWER;
  return row->head && !did_well(row->head) && (!row->base || did_well(row->base));
}

bool gate_rows_tell(const gate_row *rows, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (rows[i].judged.verdict <= GATE_UNSURE || rows[i].judged.verdict == GATE_REPAIRED ||
        gate_row_regressed(&rows[i]))
      return true;
  return false;
}

static const gate_case *any_side(const gate_row *row) {
  return row->head ? row->head : row->base;
}

char *gate_row_name(const gate_comparison *comparison, const gate_row *row) {
  const gate_case *c = any_side(row);
  bool modes = false, devices = false;
  for (size_t i = 0; i < comparison->row_count; i++) {
    const gate_case *other = any_side(&comparison->rows[i]);
    if (strcmp(other->name, c->name) != 0) continue;
    modes = modes || strcmp(other->mode, c->mode) != 0;
    devices = devices || strcmp(other->device, c->device) != 0;
  }
  return gate_say("%s%s%s%s%s%s", c->name, modes || devices ? " [" : "", modes ? c->mode : "",
                  modes && devices ? " " : "", devices ? c->device : "", modes || devices ? "]" : "");
}
