/* SPDX-License-Identifier: Apache-2.0
 * table.c: aligned tables and the cells in them. Whole on a pipe; cut to the width of a terminal. */
#include "tools/cli/cli.h"
#include "tools/compare/report/report_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define GAP 2
#define NARROWEST 8
#define ENOUGH 60   /* columns for a line of words */
#define READABLE 20 /* a column is cut to this before another one is left out, */
#define SIZED 40    /* and one of problems to its sizes, but not above this */

bool cli_color(FILE *out) {
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(fileno(out)) && !(no_color && *no_color) && terminal && strcmp(terminal, "dumb") != 0;
}

const char *cli_tint_text(FILE *out, cli_tint tint) {
  static const char *const sequences[] = {"\033[0m", "\033[32m", "\033[31m"};
  return cli_color(out) ? sequences[tint] : "";
}

int cli_terminal_width(FILE *out) {
  struct winsize size;
  if (!isatty(fileno(out))) return 0;
  const char *given = getenv("COLUMNS");
  const long columns = given ? strtol(given, NULL, 10) : 0;
  if (columns > 0 && columns < 10000) return (int)columns;
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

void cli_table_add(cli_table *table, const char *const *cells) {
  size_t columns = (size_t)table->column_count;
  if (table->rows == table->capacity) {
    size_t capacity = table->capacity ? table->capacity * 2 : 32;
    char **larger = cli_alloc(capacity * columns, sizeof *larger);
    unsigned char *tints = cli_alloc(capacity * columns, sizeof *tints);
    if (table->rows) memcpy(larger, table->cells, table->rows * columns * sizeof *larger);
    if (table->rows) memcpy(tints, table->tints, table->rows * columns);
    free(table->cells);
    free(table->tints);
    table->cells = larger;
    table->tints = tints;
    table->capacity = capacity;
  }
  for (size_t i = 0; i < columns; i++) {
    size_t size = strlen(cells[i]) + 1;
    char *copy = cli_alloc(size, 1);
    memcpy(copy, cells[i], size);
    table->cells[table->rows * columns + i] = copy;
  }
  table->rows++;
}

void cli_table_tint(cli_table *table, int column, cli_tint tint) {
  table->tints[(table->rows - 1) * (size_t)table->column_count + (size_t)column] = (unsigned char)tint;
}

void cli_table_free(cli_table *table) {
  for (size_t i = 0; i < table->rows * (size_t)table->column_count; i++) free(table->cells[i]);
  free(table->cells);
  free(table->tints);
  table->cells = NULL;
  table->tints = NULL;
  table->rows = table->capacity = 0;
}

/* A column that is left out has width 0. */
static int line_width(const int *widths, int count) {
  int total = -GAP;
  for (int i = 0; i < count; i++) total += widths[i] ? widths[i] + GAP : 0;
  return total;
}

/* Takes from the widest column that may shrink, down to its `least`, until the table fits; false: it does not. */
static bool shrink(const cli_table *table, int *widths, int room, const int *least) {
  while (line_width(widths, table->column_count) > room) {
    int widest = -1;
    for (int i = 0; i < table->column_count; i++)
      if (table->columns[i].shrink && widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest])) widest = i;
    if (widest < 0) return false;
    widths[widest]--;
  }
  return true;
}

/* Leaves out the column of the highest rank; false: none may go. */
static bool leave_out(const cli_table *table, int *widths) {
  int last = -1;
  for (int i = 0; i < table->column_count; i++)
    if (widths[i] && table->columns[i].rank > 0 && (last < 0 || table->columns[i].rank > table->columns[last].rank))
      last = i;
  if (last < 0) return false;
  widths[last] = 0;
  return true;
}

/* Minimum width of a column. */
static int readable(const cli_table *table, int column) {
  int most = READABLE;
  for (size_t row = 0; table->columns[column].shrink == CLI_LONG && row < table->rows; row++) {
    const int end = cli_sizes_end(table->cells[row * (size_t)table->column_count + (size_t)column]) + 1;
    if (end > most) most = end;
  }
  return most < SIZED ? most : SIZED;
}

/* Whole columns go before what is left becomes too short to read. True: something went. */
static bool fit(const cli_table *table, int *widths, int room) {
  bool left = false;
  int *trial = cli_alloc((size_t)table->column_count, sizeof *trial),
      *least = cli_alloc((size_t)table->column_count, sizeof *least);
  for (int i = 0; i < table->column_count; i++) least[i] = readable(table, i);
  for (;;) {
    memcpy(trial, widths, (size_t)table->column_count * sizeof *trial);
    if (shrink(table, trial, room, least) || !leave_out(table, widths)) break;
    left = true;
  }
  for (int i = 0; i < table->column_count; i++) least[i] = NARROWEST;
  (void)shrink(table, trial, room, least);
  free(least);
  memcpy(widths, trial, (size_t)table->column_count * sizeof *trial);
  free(trial);
  return left;
}

/* The last text is not padded, so that lines end where their text does. `order` is that of the columns; `tints` NULL:
 * the titles. */
static void print_row(const cli_table *table, const int *widths, const int *order, const char *const *cells,
                      const unsigned char *tints, FILE *out) {
  int last = 0;
  for (int k = 0; k < table->column_count; k++)
    if (widths[order[k]] && *cells[order[k]]) last = k;
  for (int k = 0; k <= last; k++) {
    const int i = order[k];
    if (!widths[i]) continue;
    const bool right = table->columns[i].right, cut = cli_width(cells[i]) > widths[i];
    if (tints && tints[i]) fputs(cli_tint_text(out, (cli_tint)tints[i]), out);
    cli_print_padded(out, cells[i], k == last && !right && !cut ? 0 : widths[i], right, cut);
    if (tints && tints[i]) fputs(cli_tint_text(out, CLI_PLAIN), out);
    if (k != last) fprintf(out, "%*s", GAP, "");
  }
  fputc('\n', out);
}

/* A column without any text, and only that, has width 0. */
static void measure_columns(const cli_table *table, const char **titles, int *widths) {
  for (int i = 0; i < table->column_count; i++) {
    titles[i] = table->columns[i].title;
    for (size_t row = 0; row < table->rows; row++) {
      const int width = cli_width(table->cells[row * (size_t)table->column_count + (size_t)i]);
      if (width > widths[i]) widths[i] = width;
    }
    const int title = cli_width(titles[i]);
    if ((widths[i] || !table->rows) && title > widths[i]) widths[i] = title;
  }
}

/* As they are, or with the long ones last. */
static void order_columns(const cli_table *table, bool whole, int *order) {
  int count = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < table->column_count; i++)
      if ((whole && table->columns[i].shrink == CLI_LONG) == (pass == 1)) order[count++] = i;
}

/* Of every column that is too narrow for its cells, these cells cut so that they stay different. */
static void cut_columns(cli_table *table, const int *widths) {
  char **texts = cli_alloc(table->rows + 1, sizeof *texts);
  for (int i = 0; i < table->column_count; i++) {
    if (!table->columns[i].shrink || !widths[i]) continue;
    for (size_t row = 0; row < table->rows; row++)
      texts[row] = table->cells[row * (size_t)table->column_count + (size_t)i];
    cli_cut_apart(texts, table->rows, widths[i]);
    for (size_t row = 0; row < table->rows; row++)
      table->cells[row * (size_t)table->column_count + (size_t)i] = texts[row];
  }
  free(texts);
}

void cli_table_print(cli_table *table, FILE *out, bool wide) {
  const int count = table->column_count, room = wide ? 0 : cli_terminal_width(out);
  int *widths = cli_alloc((size_t)count, sizeof *widths), *order = cli_alloc((size_t)count, sizeof *order);
  const char **titles = cli_alloc((size_t)count, sizeof *titles);
  measure_columns(table, titles, widths);
  order_columns(table, !room, order);
  const bool left = room && fit(table, widths, room), bold = cli_color(out);
  if (room) cut_columns(table, widths);
  if (bold) fputs("\033[1m", out);
  print_row(table, widths, order, titles, NULL, out);
  if (bold) fputs("\033[0m", out);
  for (size_t row = 0; row < table->rows; row++)
    print_row(table, widths, order, (const char *const *)&table->cells[row * (size_t)count],
              &table->tints[row * (size_t)count], out);
  if (left)
    fputs(room < ENOUGH ? "(--wide prints all columns)\n" : "(too narrow for all columns: --wide prints them)\n", out);
  free(titles);
  free(order);
  free(widths);
}

const char *cli_time_text(char out[CLI_CELL], double time_ns) {
  static const char *const units[] = {"ns", "us", "ms", "s"};
  int unit = 0;
  if (!(time_ns > 0) || !isfinite(time_ns)) return "-";
  while (unit < 3 && time_ns >= 999.95) {
    time_ns /= 1000;
    unit++;
  }
  snprintf(out, CLI_CELL, "%.*f %s", time_ns < 10 ? 2 : 1, time_ns, units[unit]);
  return out;
}

const char *cli_speedup_text(char out[CLI_CELL], double speedup) {
  if (!(speedup > 0)) return "-";
  snprintf(out, CLI_CELL, "%.2fx", speedup);
  return out;
}

const char *cli_percent_text(char out[CLI_CELL], double fraction) {
  if (!isfinite(fraction)) return "-";
  snprintf(out, CLI_CELL, "%.1f %%", 100 * fraction);
  return out;
}

const char *cli_date_text(char out[CLI_CELL], int64_t seconds) {
  time_t when = (time_t)seconds;
  struct tm parts;
  if (seconds <= 0 || !localtime_r(&when, &parts) || !strftime(out, CLI_CELL, "%Y-%m-%d %H:%M", &parts)) return "-";
  return out;
}

void cli_put_markdown(FILE *out, const char *text) {
  char *clean = cli_clean(text);
  if (!*clean || strpbrk(clean, "`|"))
    gate_put(out, GATE_MARKDOWN, text, 0);
  else
    fprintf(out, "`%s`", clean);
  free(clean);
}

void cli_table_markdown(const cli_table *table, FILE *out) {
  for (int k = 0; k < table->column_count; k++) fprintf(out, "| %s ", table->columns[k].title);
  fputs("|\n", out);
  for (int k = 0; k < table->column_count; k++) fputs(table->columns[k].right ? "|---:" : "|---", out);
  fputs("|\n", out);
  for (size_t i = 0; i < table->rows; i++) {
    for (int k = 0; k < table->column_count; k++) {
      const char *cell = table->cells[i * (size_t)table->column_count + (size_t)k];
      fputs("| ", out);
      if (table->columns[k].shrink && strcmp(cell, "ok") != 0)
        cli_put_markdown(out, cell);
      else
        fputs(cell, out);
      fputc(' ', out);
    }
    fputs("|\n", out);
  }
}
