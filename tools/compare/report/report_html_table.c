/* SPDX-License-Identifier: Apache-2.0
 * report_html_table.c: the page's table: a row a case, what matters first. Cells that are sorted as numbers have them
 * in data-value. The interval of the change is drawn too, on one scale for all rows. */
#include "tools/compare/report/report_html.h"

#include <math.h>
#include <string.h>

#define PLOT_WIDTH 96
#define PLOT_HEIGHT 18
#define PLOT_EDGE 6
#define MOST_REACH 0.1 /* what lies beyond is drawn as an arrow: a few great changes must not flatten all others */

typedef struct page_table {
  FILE *out;
  const gate_page *page;
  double reach; /* the change at the edge of the drawn scale: 0.1 */
  bool bytes, flops, roof, devices, modes;
} page_table;

static const char *const symbols[] = {
    [GATE_SAME] = "=",        [GATE_FASTER] = "\u25BC",   [GATE_SLOWER] = "\u25B2", [GATE_UNSURE] = "?",
    [GATE_FAILED] = "\u2715", [GATE_REPAIRED] = "\u2713", [GATE_MISSING] = "\u2013"};

/* --- roofs --- */

/* The part of the roof that a case reaches in `ns`, 0 to 1 or so; 0: not known. */
static double roof_share(const gate_page *page, const gate_case *c, double ns) {
  double bytes_s = 0, flops_s = 0;
  for (size_t i = 0; i < page->roof_count; i++) {
    const gate_roof *roof = &page->roofs[i];
    if (strcmp(roof->device, c->device) != 0) continue;
    if (roof->bytes_s > bytes_s) bytes_s = roof->bytes_s;
    if (strcmp(roof->dtype, c->dtype) == 0 && roof->flops_s > flops_s) flops_s = roof->flops_s;
  }
  const double by_bytes = c->bytes > 0 && bytes_s > 0 ? c->bytes / bytes_s : 0;
  const double by_flops = c->flops > 0 && flops_s > 0 ? c->flops / flops_s : 0;
  /* A case faster than the memory works in a cache: the memory does not bound it. */
  const bool cached = 1e9 * by_bytes > 1.05 * ns;
  const double least_s = by_bytes > by_flops && !(cached && by_flops > 0) ? by_bytes : by_flops;
  const double share = least_s * 1e9 / ns;
  return ns > 0 && isfinite(share) ? share : 0;
}

/* --- the drawn interval --- */

static double reach_of(const gate_comparison *comparison) {
  double reach = 2 * comparison->rule.floor;
  for (size_t i = 0; i < comparison->row_count; i++) {
    const gate_judgement *judged = &comparison->rows[i].judged;
    if (judged->low > 0 && fabs(judged->low - 1) > reach) reach = fabs(judged->low - 1);
    if (judged->high > 0 && fabs(judged->high - 1) > reach) reach = fabs(judged->high - 1);
  }
  return !(reach > 0.01) ? 0.01 : reach > MOST_REACH ? MOST_REACH : reach;
}

static double place(const page_table *sheet, double ratio) {
  const double part = (ratio - 1) / sheet->reach, held = part < -1 ? -1 : part > 1 ? 1 : part;
  return PLOT_WIDTH / 2.0 + held * (PLOT_WIDTH / 2.0 - PLOT_EDGE);
}

/* A dot, or where it is beyond the scale an arrow at the edge. */
static void put_point(const page_table *sheet, double ratio) {
  const double x = place(sheet, ratio), middle = PLOT_HEIGHT / 2.0;
  const double out_by = ratio - 1 > sheet->reach ? 1 : 1 - ratio > sheet->reach ? -1 : 0;
  if (out_by == 0)
    fprintf(sheet->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"var(--mark)\"/>", x, middle);
  else
    fprintf(sheet->out, "<path d=\"M%.1f %.1fl%.1f 5v-10z\" fill=\"var(--mark)\"/>", x + 5 * out_by, middle,
            -9 * out_by);
}

static void put_plot(const page_table *sheet, const gate_judgement *judged) {
  const double floor = judged->floor, middle = PLOT_HEIGHT / 2.0;
  const double from = place(sheet, 1 - floor), to = place(sheet, 1 + floor);
  fprintf(sheet->out, "<svg width=\"%d\" height=\"%d\" aria-hidden=\"true\">", PLOT_WIDTH, PLOT_HEIGHT);
  if (from < to)
    fprintf(sheet->out, "<rect x=\"%.1f\" width=\"%.1f\" height=\"%d\" fill=\"var(--line)\" opacity=\".6\"/>", from,
            to - from, PLOT_HEIGHT);
  fprintf(sheet->out, "<path d=\"M%.1f 0V%d\" stroke=\"var(--quiet)\"/>", place(sheet, 1), PLOT_HEIGHT);
  fprintf(sheet->out, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"var(--mark)\" stroke-width=\"2.5\"/>",
          place(sheet, judged->low), middle, place(sheet, judged->high));
  put_point(sheet, judged->ratio);
  fputs("</svg>", sheet->out);
}

/* --- cells --- */

/* Opens a cell; the script sorts by `value` where it is a number. */
static void open_number(const page_table *sheet, const char *kind, double value) {
  fprintf(sheet->out, "<td class=\"%s\"", kind);
  if (isfinite(value)) fprintf(sheet->out, " data-value=\"%.9g\"", value);
  fputc('>', sheet->out);
}

static void put_number(const page_table *sheet, const char *kind, double value, const char *text) {
  open_number(sheet, kind, value);
  fprintf(sheet->out, "%s</td>", text);
}

static void put_words(const page_table *sheet, const char *words) {
  fputs("<td class=\"wide\">", sheet->out);
  gate_put(sheet->out, GATE_XML, words, 100);
  fputs("</td>", sheet->out);
}

static void put_name(const page_table *sheet, const gate_row *row) {
  const char *reason = row->judged.verdict == GATE_SAME ? NULL : gate_row_reason(row);
  fputs("<th scope=\"row\"><span class=\"name\">", sheet->out);
  gate_put_row_name(sheet->out, GATE_XML, sheet->page->comparison, row, 400);
  fputs("</span>", sheet->out);
  if (reason) {
    fputs("<span class=\"why\">", sheet->out);
    gate_put(sheet->out, GATE_XML, reason, 400);
    fputs("</span>", sheet->out);
  }
  fputs("</th>", sheet->out);
}

static void put_interval(const page_table *sheet, const gate_judgement *judged) {
  char cell[GATE_CELL];
  const char *text = gate_interval_text(cell, judged);
  const bool known = judged->ratio > 0 && isfinite(judged->ratio) && strcmp(text, "-") != 0;
  open_number(sheet, "interval medium", judged->low);
  if (known) put_plot(sheet, judged);
  fprintf(sheet->out, "<span>%s</span></td>", text);
}

static const char *share_text(char out[GATE_CELL], double share) {
  if (!(share > 0)) return "-";
  snprintf(out, GATE_CELL, "%.0f %%", 100 * (share > 99 ? 99 : share));
  return out;
}

/* Head's. */
static void put_rates(const page_table *sheet, const gate_row *row) {
  const gate_case *c = gate_row_case(row);
  const double ns = row->judged.head_ns > 0 ? row->judged.head_ns : NAN;
  const double bytes_s = c->bytes / ns * 1e9, flops_s = c->flops / ns * 1e9, share = roof_share(sheet->page, c, ns);
  char cell[GATE_CELL];
  if (sheet->bytes) put_number(sheet, "number wide", bytes_s > 0 ? bytes_s : NAN, gate_rate_text(cell, bytes_s, "B/s"));
  if (sheet->flops)
    put_number(sheet, "number wide", flops_s > 0 ? flops_s : NAN, gate_rate_text(cell, flops_s, "FLOP/s"));
  if (sheet->roof) put_number(sheet, "number wide", share > 0 ? share : NAN, share_text(cell, share));
}

static void put_row(const page_table *sheet, size_t place_in_comparison, size_t rank) {
  const gate_row *row = &sheet->page->comparison->rows[place_in_comparison];
  const gate_judgement *judged = &row->judged;
  const char *verdict = gate_verdict_name(judged->verdict);
  char cell[GATE_CELL];
  fprintf(sheet->out,
          "<tr class=\"%s\" data-row=\"%zu\"><td class=\"verdict\" data-value=\"%zu\"><span "
          "aria-hidden=\"true\">%s</span> %s</td>",
          verdict, place_in_comparison, rank, symbols[judged->verdict], verdict);
  put_name(sheet, row);
  put_number(sheet, "number", judged->ratio, gate_change_text(cell, judged->ratio));
  put_interval(sheet, judged);
  put_number(sheet, "number medium", judged->base_ns, gate_time_text(cell, judged->base_ns));
  put_number(sheet, "number narrow", judged->head_ns, gate_time_text(cell, judged->head_ns));
  put_rates(sheet, row);
  if (sheet->devices) put_words(sheet, gate_row_case(row)->device);
  if (sheet->modes) put_words(sheet, gate_row_case(row)->mode);
  fputs("</tr>\n", sheet->out);
}

/* --- the table --- */

static void put_titles(const page_table *sheet) {
  const struct {
    const char *title, *kind;
    bool there;
  } columns[] = {{"verdict", "verdict", true},
                 {"case", "", true},
                 {"change", "number", true},
                 {"interval", "interval medium", true},
                 {"base", "number medium", true},
                 {"head", "number narrow", true},
                 {"bandwidth", "number wide", sheet->bytes},
                 {"arithmetic", "number wide", sheet->flops},
                 {"of roof", "number wide", sheet->roof},
                 {"device", "wide", sheet->devices},
                 {"mode", "wide", sheet->modes}};
  fputs("<thead><tr>", sheet->out);
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    if (columns[i].there)
      fprintf(sheet->out, "<th scope=\"col\" class=\"%s\">%s</th>", columns[i].kind, columns[i].title);
  fputs("</tr></thead>\n", sheet->out);
}

/* Columns that would be empty, or the same in every row, are left out. */
static void choose_columns(page_table *sheet) {
  const gate_comparison *comparison = sheet->page->comparison;
  const gate_case *first = comparison->row_count ? gate_row_case(&comparison->rows[0]) : NULL;
  for (size_t i = 0; i < comparison->row_count; i++) {
    const gate_case *c = gate_row_case(&comparison->rows[i]);
    sheet->bytes |= c->bytes > 0;
    sheet->flops |= c->flops > 0;
    sheet->roof |= roof_share(sheet->page, c, 1) > 0;
    sheet->devices |= strcmp(c->device, first->device) != 0;
    sheet->modes |= strcmp(c->mode, first->mode) != 0;
  }
}

void gate_page_table(FILE *out, const gate_page *page) {
  page_table sheet = {.out = out, .page = page, .reach = reach_of(page->comparison)};
  char reach[GATE_CELL];
  choose_columns(&sheet);
  fprintf(out,
          "<table id=\"cases\"><caption>%zu case%s. A change above 0 is slower. <span class=\"medium\">The intervals "
          "are drawn from -%s to +%s; changes within the grey band do not count. An arrow is a value outside this "
          "range, and a line that reaches the edge continues beyond it.</span></caption>\n",
          page->comparison->row_count, page->comparison->row_count == 1 ? "" : "s", gate_share_text(reach, sheet.reach),
          reach);
  put_titles(&sheet);
  fputs("<tbody>\n", out);
  for (size_t i = 0; i < page->comparison->row_count; i++) put_row(&sheet, page->order[i], i);
  fputs("</tbody></table>\n", out);
}
