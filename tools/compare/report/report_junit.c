/* SPDX-License-Identifier: Apache-2.0
 * report_junit.c: a comparison as JUnit XML, for a CI server's list of tests: a case is a test, slower is a failure.
 * Failures and errors are what makes the exit code 1, no more and no less. */
#include "tools/compare/report/report_text.h"

#include "tools/compare/results/import.h"

#include <math.h>
#include <string.h>

static void put_attribute(FILE *out, const char *name, const char *value) {
  fprintf(out, " %s=\"", name);
  gate_put(out, GATE_XML, value, 0);
  fputc('"', out);
}

static double seconds(double ns) {
  return ns > 0 && isfinite(ns) ? ns / 1e9 : 0;
}

/* "20 and 20 processes", or where they are not alike, what each of both is. */
static void put_counted(FILE *out, const gate_comparison *c, const gate_judgement *judged) {
  const char *base = gate_import_counted(c->base), *head = gate_import_counted(c->head);
  const bool alike = strcmp(base, head) == 0;
  fprintf(out, "%d%s%s and %d %s", judged->base_visits, alike ? "" : " ", alike ? "" : base, judged->head_visits, head);
}

static void put_slower(FILE *out, const gate_comparison *c, const gate_judgement *judged) {
  char change[GATE_CELL], interval[GATE_CELL], base[GATE_CELL], head[GATE_CELL];
  fprintf(out, "      <failure type=\"slower\" message=\"%s, %s\">%s before, %s now, ",
          gate_change_text(change, judged->ratio), gate_interval_text(interval, judged),
          gate_time_text(base, judged->base_ns), gate_time_text(head, judged->head_ns));
  put_counted(out, c, judged);
  fputs("</failure>\n", out);
}

static void put_skipped(FILE *out, const char *name, const char *reason) {
  fprintf(out, "      <skipped message=\"%s: ", name);
  gate_put(out, GATE_XML, reason, 0);
  fputs("\"/>\n", out);
}

static void put_result(FILE *out, const gate_comparison *comparison, const gate_row *row) {
  const char *name = gate_verdict_name(row->judged.verdict), *reason = gate_row_reason(row);
  if (!reason) reason = name;
  switch (row->judged.verdict) {
  case GATE_SLOWER: put_slower(out, comparison, &row->judged); break;
  case GATE_FAILED:
    if (!gate_row_regressed(row)) {
      put_skipped(out, "failed in the base too", reason);
      break;
    }
    fputs("      <error type=\"failed\"", out);
    put_attribute(out, "message", reason);
    fputs("/>\n", out);
    break;
  case GATE_REPAIRED:
    fputs("      <system-out>repaired; the base failed: ", out);
    gate_put(out, GATE_XML, reason, 0);
    fputs("</system-out>\n", out);
    break;
  case GATE_UNSURE:
  case GATE_MISSING: put_skipped(out, name, reason); break;
  case GATE_SAME:
  case GATE_FASTER: break;
  }
}

static void put_case(FILE *out, const gate_comparison *comparison, const gate_row *row) {
  const gate_case *c = gate_row_case(row);
  const gate_judgement *judged = &row->judged;
  const bool passed = judged->verdict == GATE_SAME || judged->verdict == GATE_FASTER;
  fputs("    <testcase name=\"", out);
  gate_put_row_name(out, GATE_XML, comparison, row, 0);
  fputs("\" classname=\"", out);
  gate_put(out, GATE_XML, c->device, 0);
  fputc('.', out);
  gate_put(out, GATE_XML, c->mode, 0);
  fprintf(out, "\" time=\"%.9f\"%s>\n", seconds(judged->head_ns), passed ? "/" : "");
  if (passed) return;
  put_result(out, comparison, row);
  fputs("    </testcase>\n", out);
}

static void put_property(FILE *out, const char *side, const gate_comparison *comparison, const gate_run *run) {
  fprintf(out, "      <property name=\"%s\" value=\"", side);
  gate_put_run(out, GATE_XML, comparison, run);
  fputs("\"/>\n", out);
}

bool gate_report_junit(FILE *out, const gate_comparison *comparison) {
  const size_t *counts = comparison->counts;
  double sum = 0;
  size_t errors = 0;
  for (size_t i = 0; i < comparison->row_count; i++) {
    const gate_row *row = &comparison->rows[i];
    sum += seconds(row->judged.head_ns);
    errors += row->judged.verdict == GATE_FAILED && gate_row_regressed(row);
  }
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n", out);
  fprintf(out,
          "  <testsuite name=\"attune\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.9f\">\n",
          comparison->row_count, counts[GATE_SLOWER], errors,
          counts[GATE_UNSURE] + counts[GATE_MISSING] + counts[GATE_FAILED] - errors, sum);
  fputs("    <properties>\n", out);
  put_property(out, "base", comparison, comparison->base);
  put_property(out, "head", comparison, comparison->head);
  fputs("    </properties>\n", out);
  for (size_t i = 0; i < comparison->row_count; i++) put_case(out, comparison, &comparison->rows[i]);
  fputs("  </testsuite>\n</testsuites>\n", out);
  return gate_written(out);
}
