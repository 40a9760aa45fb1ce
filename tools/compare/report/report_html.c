/* SPDX-License-Identifier: Apache-2.0
 * report_html.c: a comparison as one HTML page that needs nothing else: report_page.html with its slots, {{name}},
 * filled. The page is whole without a script; the script (report_*.js) sorts, filters and draws. */
#include "tools/compare/report/report_html.h"

#include <stdlib.h>
#include <string.h>

#include "report_page_css.h"
#include "report_page_html.h"
#include "report_page_js.h"
#include "report_plots_js.h"
#include "report_roofline_js.h"
#include "tools/compare/message.h"
#include "tools/compare/results/import.h"

static void put_run(FILE *out, const char *side, const gate_comparison *comparison, const gate_run *run) {
  fprintf(out, "<dt>%s</dt><dd>", side);
  gate_put_run(out, GATE_XML, comparison, run);
  fputs("</dd>\n", out);
}

static void put_fact(void *out, const char *key, const char *value) {
  fputs("<dt>", out);
  gate_put(out, GATE_XML, key, 40);
  fputs("</dt><dd>", out);
  gate_put(out, GATE_XML, value, 300);
  fputs("</dd>\n", out);
}

static bool put_runs(FILE *out, const gate_page *page) {
  const gate_comparison *comparison = page->comparison;
  fputs("<dl>\n", out);
  put_run(out, "base", comparison, comparison->base);
  put_run(out, "head", comparison, comparison->head);
  if (gate_lacks_revisions(comparison)) put_fact(out, "revision", gate_no_revisions);
  if (comparison->differences && *comparison->differences) {
    char *line = gate_one_line(comparison->differences);
    put_fact(out, "the machines differ", line);
    free(line);
  }
  fputs("</dl>\n", out);
  return true;
}

/* Notes on what an imported run lacks. */
static void put_note(FILE *out, const gate_run *run, const gate_rule *rule) {
  char *note = gate_import_note(run, rule->floor, rule->floor_count > 0);
  if (note) fputs("<p>", out), gate_put(out, GATE_XML, note, 0), fputs(".</p>\n", out);
  free(note);
}

static bool put_foot(FILE *out, const gate_page *page) {
  const gate_rule *rule = &page->comparison->rule;
  char wrong[GATE_CELL];
  fprintf(out, "<p>%s. A change counts from ",
          page->comparison->alternated ? "Both sides were measured in turns, sample by sample"
                                       : "The sides were measured one after the other");
  gate_put_floors(out, GATE_XML, rule);
  fprintf(out, ". The probability of any wrong verdict among all cases, if nothing changed, is %s.</p>\n",
          gate_share_text(wrong, rule->alpha));
  const gate_basis basis = gate_basis_of(page->comparison);
  fputs("<p>", out);
  gate_put_basis(out, GATE_XML, &basis);
  fputs(".</p>\n", out);
  put_note(out, page->comparison->base, rule);
  put_note(out, page->comparison->head, rule);
  fputs("<dl>\n", out);
  gate_each_fact(page->comparison->head, put_fact, out);
  put_fact(out, "command", page->comparison->head->command);
  fputs("</dl>\n", out);
  return true;
}

static bool put_headline(FILE *out, const gate_page *page) {
  gate_put_headline(out, page->comparison);
  return true;
}

static bool put_counts(FILE *out, const gate_page *page) {
  gate_put_counts(out, page->comparison);
  return true;
}

static bool put_table(FILE *out, const gate_page *page) {
  gate_page_table(out, page);
  return true;
}

static bool put_style(FILE *out, const gate_page *page) {
  (void)page;
  return fputs(report_page_css, out) >= 0;
}

static bool put_script(FILE *out, const gate_page *page) {
  (void)page;
  return fputs(report_plots_js, out) >= 0 && fputs(report_roofline_js, out) >= 0 && fputs(report_page_js, out) >= 0;
}

/* Contents of the template's slot of this name. */
static bool put_slot(FILE *out, const gate_page *page, const char *name, size_t length) {
  static const struct {
    const char *name;
    bool (*put)(FILE *out, const gate_page *page);
  } slots[] = {{"headline", put_headline}, {"style", put_style}, {"counts", put_counts},   {"runs", put_runs},
               {"table", put_table},       {"foot", put_foot},   {"data", gate_page_data}, {"script", put_script}};
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
    if (strlen(slots[i].name) == length && memcmp(slots[i].name, name, length) == 0) return slots[i].put(out, page);
  return false;
}

static bool put_page(FILE *out, const gate_page *page) {
  const char *at = report_page_html;
  for (const char *slot; (slot = strstr(at, "{{"));) {
    const char *name = slot + 2, *end = strstr(name, "}}");
    fwrite(at, 1, (size_t)(slot - at), out);
    if (!end || !put_slot(out, page, name, (size_t)(end - name))) return false;
    at = end + 2;
  }
  return fputs(at, out) >= 0;
}

bool gate_report_html(FILE *out, const gate_comparison *comparison, const gate_history *histories, size_t history_count,
                      const gate_roof *roofs, size_t roof_count) {
  size_t *order = gate_rows_ordered(comparison);
  const gate_page page = {.comparison = comparison,
                          .histories = histories,
                          .history_count = history_count,
                          .roofs = roofs,
                          .roof_count = roof_count,
                          .order = order};
  const bool good = order && put_page(out, &page);
  free(order);
  return gate_written(out) && good;
}
