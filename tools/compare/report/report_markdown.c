/* SPDX-License-Identifier: Apache-2.0
 * report_markdown.c: a comparison as a comment on a pull request of GitHub or GitLab. What changed stands first, the
 * rest is folded away. GitHub takes 65,536 characters: rows beyond MOST are left out, and a line says so. */
#include "tools/compare/report/report_text.h"

#include "tools/compare/message.h"
#include "tools/compare/results/import.h"
#include "tools/compare/stats/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 60000 /* bytes, so at most as many characters */
#define NAME_CHARS 200
#define TEXT_CHARS 300
#define FRAME 1000 /* bytes of headline, table heads and the lines that say what was left out */

typedef struct comment {
  FILE *out;
  const gate_comparison *comparison;
  size_t used, room;
  bool peers; /* some cases have one */
} comment;

static bool has_peers(const gate_comparison *comparison) {
  for (size_t i = 0; i < comparison->row_count; i++)
    if (gate_row_case(&comparison->rows[i])->peer_of) return true;
  return false;
}

/* "1.250 x": of the head, beside the case that it is a peer of. */
static const char *beside_text(char out[GATE_CELL], const gate_comparison *comparison, const gate_row *row) {
  double ratio = 0;
  for (size_t i = 0; row->head && row->head->peer_of && i < comparison->head->case_count; i++) {
    const gate_case *other = &comparison->head->cases[i];
    if (strcmp(other->name, row->head->peer_of) == 0) ratio = gate_case_ratio(row->head, other);
    if (ratio > 0) break;
  }
  if (!(ratio > 0) || !isfinite(ratio)) return "-";
  snprintf(out, GATE_CELL, "%.3f x", ratio);
  return out;
}

static void put_row(FILE *out, const gate_comparison *comparison, const gate_row *row, bool peers) {
  const gate_judgement *judged = &row->judged;
  char change[GATE_CELL], interval[GATE_CELL], base[GATE_CELL], head[GATE_CELL], beside[GATE_CELL];
  const bool bold = judged->verdict == GATE_SLOWER || judged->verdict == GATE_FAILED;
  fprintf(out, bold ? "| **%s** | <code>" : "| %s | <code>", gate_verdict_name(judged->verdict));
  gate_put_row_name(out, GATE_MARKDOWN, comparison, row, NAME_CHARS);
  fputs("</code>", out);
  const char *reason = gate_row_reason(row);
  if (reason && judged->verdict != GATE_SAME) {
    fputs("<br>", out);
    gate_put(out, GATE_MARKDOWN, reason, TEXT_CHARS);
  }
  fprintf(out, " | %s | %s | %s | %s |", gate_change_text(change, judged->ratio), gate_interval_text(interval, judged),
          gate_time_text(base, judged->base_ns), gate_time_text(head, judged->head_ns));
  if (peers) fprintf(out, " %s |", beside_text(beside, comparison, row));
  fputc('\n', out);
}

/* A row, if there is room for it. */
static bool add_row(comment *page, const gate_row *row) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (!memory) return false;
  put_row(memory, page->comparison, row, page->peers);
  const bool fits = fclose(memory) == 0 && page->used + size <= page->room;
  if (fits) {
    fwrite(text, 1, size, page->out);
    page->used += size;
  }
  free(text);
  return fits;
}

static void add_table(comment *page, const size_t *order, size_t count) {
  fprintf(page->out, "| | case | change | interval | base | head |%s\n|:--|:--|--:|:-:|--:|--:|%s\n",
          page->peers ? " beside |" : "", page->peers ? "--:|" : "");
  size_t done = 0;
  while (done < count && add_row(page, &page->comparison->rows[order[done]])) done++;
  if (done < count)
    fprintf(page->out, "\n%zu more case%s left out to keep the comment short.\n", count - done,
            count - done == 1 ? " is" : "s are");
}

static void put_fact(void *out, const char *key, const char *value) {
  if (ftell(out) > 0) fputs("; ", out);
  gate_put(out, GATE_MARKDOWN, key, 40);
  fputs(" ", out);
  gate_put(out, GATE_MARKDOWN, value, 100);
}

static void put_differences(FILE *out, const char *differences) {
  char *line = gate_one_line(differences);
  fputs("- **The machines differ:** ", out);
  gate_put(out, GATE_MARKDOWN, line, 1000);
  free(line);
  fputc('\n', out);
}

static void put_machine(FILE *out, const gate_run *run) {
  char *text = NULL;
  size_t size = 0;
  FILE *facts = open_memstream(&text, &size);
  if (!facts) return;
  gate_each_fact(run, put_fact, facts);
  const bool whole = fclose(facts) == 0;
  if (whole && size && size < 6000) fprintf(out, "- machine: %s\n", text);
  free(text);
}

/* Notes on what an imported run lacks. */
static void put_note(FILE *out, const gate_run *run, const gate_rule *rule) {
  char *note = gate_import_note(run, rule->floor, rule->floor_count > 0);
  if (note) fputs("- ", out), gate_put(out, GATE_MARKDOWN, note, 1000), fputc('\n', out);
  free(note);
}

static void put_foot(FILE *out, const gate_comparison *comparison) {
  char wrong[GATE_CELL];
  fputs("\n- base: ", out);
  gate_put_run(out, GATE_MARKDOWN, comparison, comparison->base);
  fputs("\n- head: ", out);
  gate_put_run(out, GATE_MARKDOWN, comparison, comparison->head);
  if (gate_lacks_revisions(comparison)) fprintf(out, "\n- revision: %s", gate_no_revisions);
  fprintf(out, "\n- %s; changes from ",
          comparison->alternated ? "measured in turns, sample by sample" : "measured one after the other");
  gate_put_floors(out, GATE_MARKDOWN, &comparison->rule);
  fprintf(out, " on count; probability of any wrong verdict %s\n", gate_share_text(wrong, comparison->rule.alpha));
  const gate_basis basis = gate_basis_of(comparison);
  fputs("- ", out);
  gate_put_basis(out, GATE_MARKDOWN, &basis);
  fputc('\n', out);
  if (has_peers(comparison))
    fputs("- beside: the time in the head divided by that of the case that it is a peer of; the median of the rounds' "
          "ratios\n",
          out);
  if (comparison->differences && *comparison->differences) put_differences(out, comparison->differences);
  put_note(out, comparison->base, &comparison->rule);
  put_note(out, comparison->head, &comparison->rule);
  put_machine(out, comparison->head);
}

/* The rows that changed, then those that did not. */
static void put_body(comment *page, const size_t *order) {
  const gate_comparison *comparison = page->comparison;
  size_t first = 0, same = 0;
  for (size_t i = 0; i < comparison->row_count; i++) {
    const gate_verdict verdict = comparison->rows[i].judged.verdict;
    same += verdict == GATE_SAME;
    first += verdict != GATE_SAME && verdict != GATE_MISSING;
  }
  const size_t rest = comparison->row_count - first;
  if (first) add_table(page, order, first);
  if (!rest) return;
  fprintf(page->out, "\n<details><summary>%zu case%s %s</summary>\n\n", rest, rest == 1 ? " is" : "s are",
          same == rest ? "the same"
          : same       ? "the same or missing"
                       : "missing");
  add_table(page, order + first, rest);
  fputs("\n</details>\n", page->out);
}

bool gate_report_markdown(FILE *out, const gate_comparison *comparison) {
  char *foot = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&foot, &size);
  if (!memory) return false;
  put_foot(memory, comparison);
  size_t *order = gate_rows_ordered(comparison);
  const bool good = fclose(memory) == 0 && order;
  if (good) {
    fputs("### attune: ", out);
    gate_put_headline(out, comparison);
    fputs("\n\n", out);
    gate_put_counts(out, comparison);
    fputs("\n\n", out);
    comment page = {.out = out, .comparison = comparison, .room = MOST - size - FRAME, .peers = has_peers(comparison)};
    put_body(&page, order);
    fwrite(foot, 1, size, out);
  }
  free(order);
  free(foot);
  return gate_written(out) && good;
}
