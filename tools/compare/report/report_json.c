/* SPDX-License-Identifier: Apache-2.0
 * report_json.c: a comparison as JSON, with everything that was measured; docs/formats.md has the fields. */
#include "tools/compare/report/report_json.h"

#include <stdlib.h>

#define DIGITS JSON_REAL_PRECISION(12)

static json_t *run_json(const gate_run *run) {
  static const char *const states[] = {
      [GATE_RUN_COMPLETE] = "complete", [GATE_RUN_INTERRUPTED] = "interrupted", [GATE_RUN_OPEN] = "open"};
  json_t *fingerprint = run->fingerprint ? json_loads(run->fingerprint, 0, NULL) : NULL;
  if (!fingerprint) fingerprint = gate_json_string(run->fingerprint);
  return json_pack("{s:I, s:o, s:o, s:o, s:b, s:o, s:o, s:I, s:I, s:I, s:s, s:I, s:o}", "run", (json_int_t)run->id,
                   "suite", gate_json_string(run->suite), "label", gate_json_string(run->label), "revision",
                   gate_json_string(run->revision), "dirty", run->dirty, "fingerprint", fingerprint, "command",
                   gate_json_string(run->command), "started", (json_int_t)run->started, "ended", (json_int_t)run->ended,
                   "pair", (json_int_t)run->pair, "state", states[run->state], "cases", (json_int_t)run->case_count,
                   "roofs", gate_json_roofs(run->roofs, run->roof_count));
}

static json_t *counts_json(const gate_comparison *comparison) {
  json_t *counts = json_object();
  for (int i = 0; i <= GATE_MISSING; i++)
    if (json_object_set_new(counts, gate_verdict_name((gate_verdict)i),
                            json_integer((json_int_t)comparison->counts[i]))) {
      json_decref(counts);
      return NULL;
    }
  return counts;
}

static json_t *rows_json(const gate_comparison *comparison) {
  json_t *rows = json_array();
  for (size_t i = 0; i < comparison->row_count; i++)
    if (json_array_append_new(rows, gate_json_row(comparison, &comparison->rows[i], true))) {
      json_decref(rows);
      return NULL;
    }
  return rows;
}

/* Takes `json`, which may be NULL. */
static bool write_json(FILE *out, json_t *json) {
  const bool good = json && json_dumpf(json, out, JSON_INDENT(1) | DIGITS) == 0;
  if (good) fputc('\n', out);
  json_decref(json);
  return gate_written(out) && good;
}

bool gate_report_json(FILE *out, const gate_comparison *comparison) {
  return write_json(out, json_pack("{s:i, s:{s:o, s:o}, s:b, s:o, s:o, s:o, s:o, s:o}", "attune_comparison",
                                   GATE_JSON_VERSION, "rule", "floor", gate_json_number(comparison->rule.floor),
                                   "alpha", gate_json_number(comparison->rule.alpha), "alternated",
                                   comparison->alternated, "differences", gate_json_string(comparison->differences),
                                   "counts", counts_json(comparison), "base", run_json(comparison->base), "head",
                                   run_json(comparison->head), "rows", rows_json(comparison)));
}

bool gate_history_json(FILE *out, const gate_history *history) {
  json_t *json = gate_json_history(history);
  if (json && json_object_set_new(json, "attune_history", json_integer(GATE_JSON_VERSION))) {
    json_decref(json);
    json = NULL;
  }
  return write_json(out, json);
}
