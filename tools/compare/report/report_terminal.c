/* SPDX-License-Identifier: Apache-2.0
 * report_terminal.c: a case's history drawn with characters: a mark a run, half a line high where the terminal has
 * UTF-8, the medians between changes as lines, a vertical line at each change. The scale reaches from the least to the
 * greatest time, not from 0: a change of 3 % must be seen. */
#include "tools/compare/ranks/rank_test.h"
#include "tools/compare/report/report_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEIGHT 10
#define NARROWEST 24
#define USUAL 80
#define WIDEST 1000
#define REVISION 10 /* digits */
#define END_COLUMNS 12
#define STRIDE 3 /* columns between runs, at most */

typedef struct history_canvas {
  const gate_history *history;
  int columns, label; /* of the plot; of the times at its left */
  double low, high;   /* of the scale */
  bool utf8;
  char *cells; /* HEIGHT x columns: see the marks */
} history_canvas;

/* Contents of a cell; they add up. */
enum { TOP = 1, BOTTOM = 2, MEDIAN = 4, CHANGE = 8 };

/* --- text of a width --- */

/* Bytes of `clean` that fit into `most` columns, and the columns that they take. */
static size_t fitting(const char *clean, int most, int *columns) {
  const char *end = clean;
  bool hidden;
  *columns = 0;
  for (const char *next = end; *next; end = next) {
    const int wide = gate_character_width(gate_character(&next, &hidden));
    if (*columns + wide > most) break;
    *columns += wide;
  }
  return (size_t)(end - clean);
}

/* Writes `text` in at most `columns`, padded to them where `right`; what is cut ends in a mark. Returns the columns
 * that it took. */
static int put_fitted(FILE *out, const char *text, int columns, bool utf8, bool right) {
  char *clean = gate_text(utf8 ? GATE_PLAIN : GATE_ASCII, text ? text : "");
  int width = 0;
  size_t bytes = clean ? fitting(clean, columns, &width) : 0;
  const bool cut = clean && clean[bytes] && columns > 0;
  if (cut) bytes = fitting(clean, columns - 1, &width);
  width += cut;
  if (right) fprintf(out, "%*s", columns - width, "");
  if (bytes) fwrite(clean, 1, bytes, out);
  if (cut) fputs(utf8 ? "\u2026" : "~", out);
  free(clean);
  return width;
}

/* --- the scale --- */

static bool is_time(double ns) {
  return ns > 0 && isfinite(ns);
}

static bool find_scale(history_canvas *canvas) {
  const gate_history *history = canvas->history;
  canvas->low = INFINITY;
  canvas->high = 0;
  for (size_t i = 0; i < history->point_count; i++) {
    const double ns = history->points[i].ns;
    if (is_time(ns) && ns < canvas->low) canvas->low = ns;
    if (is_time(ns) && ns > canvas->high) canvas->high = ns;
  }
  if (canvas->low > canvas->high) return false;
  /* Where nothing differs by as much as this, a flat line says so. */
  const double least = canvas->low * 0.02, middle = canvas->low + (canvas->high - canvas->low) / 2;
  if (canvas->high - canvas->low < least) {
    canvas->low = middle - least / 2;
    canvas->high = middle + least / 2;
  }
  return true;
}

/* From 0 at the top, in half lines. */
static int half_line(const history_canvas *canvas, double ns) {
  const double part = (canvas->high - ns) / (canvas->high - canvas->low);
  const double held = part > 0 ? part < 1 ? part : 1 : 0;
  return (int)lround(held * (2 * HEIGHT - 1));
}

static int column_of(const history_canvas *canvas, size_t point) {
  const size_t count = canvas->history->point_count, columns = (size_t)canvas->columns;
  if (count > columns) return (int)(point * columns / count);
  const size_t stride = columns / count;
  return (int)(point * (stride > STRIDE ? STRIDE : stride));
}

/* --- marks --- */

static char *cell(const history_canvas *canvas, int line, int column) {
  return &canvas->cells[line * canvas->columns + column];
}

/* The median of points [from, to) as a line. */
static void mark_median(const history_canvas *canvas, size_t from, size_t to) {
  double *values = malloc((to - from + 1) * sizeof *values);
  size_t count = 0;
  for (size_t i = from; values && i < to; i++)
    if (is_time(canvas->history->points[i].ns)) values[count++] = canvas->history->points[i].ns;
  if (count) {
    gate_sort(values, (int)count);
    const int line = half_line(canvas, values[count / 2]) / 2;
    for (int column = column_of(canvas, from); column <= column_of(canvas, to - 1); column++)
      *cell(canvas, line, column) |= MEDIAN;
  }
  free(values);
}

/* The column of a change's line: that of the first run that is different. */
static int change_column(const history_canvas *canvas, const gate_change *change) {
  return change->at > 0 && change->at < canvas->history->point_count ? column_of(canvas, change->at) : -1;
}

static void mark_all(const history_canvas *canvas) {
  const gate_history *history = canvas->history;
  size_t from = 0;
  for (size_t i = 0; i < history->change_count; i++) {
    const gate_change *change = &history->changes[i];
    const int column = change_column(canvas, change);
    if (column < 0 || change->at <= from) continue;
    mark_median(canvas, from, change->at);
    from = change->at;
    for (int line = 0; line < HEIGHT; line++) *cell(canvas, line, column) |= CHANGE;
  }
  mark_median(canvas, from, history->point_count);
  for (size_t i = 0; i < history->point_count; i++) {
    if (!is_time(history->points[i].ns)) continue;
    const int half = half_line(canvas, history->points[i].ns);
    *cell(canvas, half / 2, column_of(canvas, i)) |= half % 2 ? BOTTOM : TOP;
  }
}

static const char *glyph(const history_canvas *canvas, int marks) {
  static const char *const points[] = {"", "\u2580", "\u2584", "\u2588"};
  if (marks & (TOP | BOTTOM)) return canvas->utf8 ? points[marks & (TOP | BOTTOM)] : "*";
  if (marks & CHANGE) return canvas->utf8 ? "\u250A" : ":";
  if (marks & MEDIAN) return canvas->utf8 ? "\u2500" : "-";
  return " ";
}

/* --- lines --- */

static int last_column(const history_canvas *canvas) {
  return column_of(canvas, canvas->history->point_count - 1);
}

static void put_lines(FILE *out, const history_canvas *canvas) {
  for (int line = 0; line < HEIGHT; line++) {
    char text[GATE_CELL];
    const double ns = line == 0 ? canvas->high : line == HEIGHT - 1 ? canvas->low : 0;
    put_fitted(out, line == 0 || line == HEIGHT - 1 ? gate_time_text(text, ns) : "", canvas->label, canvas->utf8, true);
    fputs(canvas->utf8 ? " \u2502" : " |", out);
    int last = canvas->columns - 1;
    while (last >= 0 && !*cell(canvas, line, last)) last--;
    for (int column = 0; column <= last; column++) fputs(glyph(canvas, *cell(canvas, line, column)), out);
    fputc('\n', out);
  }
}

/* The axis, with an arrow below each change. */
static void put_axis(FILE *out, const history_canvas *canvas) {
  fprintf(out, "%*s%s", canvas->label + 1, "", canvas->utf8 ? "\u2514" : "+");
  for (int column = 0; column <= last_column(canvas); column++) {
    const bool change = *cell(canvas, HEIGHT - 1, column) & CHANGE;
    fputs(change ? canvas->utf8 ? "\u25B2" : "^" : canvas->utf8 ? "\u2500" : "-", out);
  }
  fputc('\n', out);
}

static const char *revision_of(char out[REVISION + 1], const gate_point *point) {
  if (*point->revision)
    snprintf(out, REVISION + 1, "%.*s", REVISION, point->revision);
  else if (*point->label)
    return point->label;
  else
    snprintf(out, REVISION + 1, "run %u", (unsigned)point->run % 1000000u);
  return out;
}

/* The first and the last revision, below their runs; the first alone where there is no room for both. */
static void put_ends(FILE *out, const history_canvas *canvas) {
  const gate_history *history = canvas->history;
  char first[REVISION + 1], last[REVISION + 1];
  fprintf(out, "%*s", canvas->label + 2, "");
  const int begun = put_fitted(out, revision_of(first, &history->points[0]), END_COLUMNS, canvas->utf8, false);
  const int end = last_column(canvas) + 1, least = begun + END_COLUMNS + 2;
  if (history->point_count > 1 && least <= canvas->columns) {
    fprintf(out, "%*s", (end > least ? end : least) - begun - END_COLUMNS, "");
    put_fitted(out, revision_of(last, &history->points[history->point_count - 1]), END_COLUMNS, canvas->utf8, true);
  }
  fputc('\n', out);
}

static void put_changes(FILE *out, const history_canvas *canvas, int width) {
  const gate_history *history = canvas->history;
  for (size_t i = 0; i < history->change_count; i++) {
    const gate_change *change = &history->changes[i];
    if (change_column(canvas, change) < 0) continue;
    char revision[REVISION + 1], by[GATE_CELL], before[GATE_CELL], after[GATE_CELL], line[256];
    snprintf(line, sizeof line, "%s at %s, %s to %s", gate_change_text(by, change->after / change->before),
             revision_of(revision, &history->points[change->at]), gate_time_text(before, change->before),
             gate_time_text(after, change->after));
    fputs(canvas->utf8 ? "\u25B2 " : "^ ", out);
    put_fitted(out, line, width - 2, canvas->utf8, false);
    fputc('\n', out);
  }
}

static void put_title(FILE *out, const gate_history *history, int width, bool utf8) {
  put_fitted(out, history->name, width, utf8, false);
  fputc('\n', out);
  char line[256];
  snprintf(line, sizeof line, "%.100s, %.100s, %zu run%s", history->device ? history->device : "-",
           history->mode ? history->mode : "-", history->point_count, history->point_count == 1 ? "" : "s");
  put_fitted(out, line, width, utf8, false);
  fputc('\n', out);
  if (!history->bases) return;
  snprintf(line, sizeof line, "without %zu base%s: of two alternating runs (--against) only the head is shown",
           history->bases, history->bases == 1 ? "" : "s");
  put_fitted(out, line, width, utf8, false);
  fputc('\n', out);
}

bool gate_history_draw(FILE *out, const gate_history *history, int width, bool utf8) {
  width = width <= 0 ? USUAL : width < NARROWEST ? NARROWEST : width > WIDEST ? WIDEST : width;
  history_canvas canvas = {.history = history, .utf8 = utf8};
  put_title(out, history, width, utf8);
  if (!find_scale(&canvas)) return gate_written(out);
  char low[GATE_CELL], high[GATE_CELL];
  const int low_width = (int)strlen(gate_time_text(low, canvas.low));
  const int high_width = (int)strlen(gate_time_text(high, canvas.high));
  canvas.label = low_width > high_width ? low_width : high_width;
  canvas.columns = width - canvas.label - 2;
  canvas.cells = calloc(HEIGHT * (size_t)canvas.columns, 1);
  if (!canvas.cells) return false;
  mark_all(&canvas);
  put_lines(out, &canvas);
  put_axis(out, &canvas);
  put_ends(out, &canvas);
  put_changes(out, &canvas, width);
  free(canvas.cells);
  return gate_written(out);
}
