/* SPDX-License-Identifier: Apache-2.0
 * table.c: aligned tables and the cells in them. Whole on a pipe; cut to the width of a terminal. */
#include "tuning/cli/cli.h"

#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#define GAP 2
#define NARROWEST 8

bool cli_utf8(void) {
  return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

bool cli_color(FILE *out) {
  const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
  return isatty(fileno(out)) && !(no_color && *no_color) && terminal && strcmp(terminal, "dumb") != 0;
}

int cli_terminal_width(FILE *out) {
  struct winsize size;
  if (!isatty(fileno(out))) return 0;
  return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* The next character of *text, moving it; '?' for what a terminal would obey or cannot show. */
static wchar_t next_character(const char **text, int *width) {
  wchar_t character;
  mbstate_t state = {0};
  size_t bytes = mbrtowc(&character, *text, strlen(*text), &state);
  if (bytes == (size_t)-1 || bytes == (size_t)-2 || bytes == 0) {
    bytes = 1;
    character = L'?';
  }
  *text += bytes;
  *width = wcwidth(character);
  if (*width >= 0) return character;
  *width = 1;
  return L'?';
}

int cli_width(const char *text) {
  int total = 0, width;
  while (*text) {
    next_character(&text, &width);
    total += width;
  }
  return total;
}

void cli_print_padded(FILE *out, const char *text, int width, bool right, bool cut) {
  int total = cli_width(text);
  int room = width ? width : total;
  bool mark = cut && total > room;
  int keep = mark ? room - 1 : total;
  if (right && total < room) fprintf(out, "%*s", room - total, "");
  int printed = 0, step;
  while (*text) {
    wchar_t character = next_character(&text, &step);
    if (printed + step > keep) break;
    fprintf(out, "%lc", (wint_t)character);
    printed += step;
  }
  if (mark) fputs(cli_utf8() ? "\u2026" : "~", out);
  printed += mark;
  if (!right && printed < room) fprintf(out, "%*s", room - printed, "");
}

void cli_table_add(cli_table *table, const char *const *cells) {
  size_t columns = (size_t)table->column_count;
  if (table->rows == table->capacity) {
    size_t capacity = table->capacity ? table->capacity * 2 : 32;
    char **larger = cli_alloc(capacity * columns, sizeof *larger);
    if (table->rows) memcpy(larger, table->cells, table->rows * columns * sizeof *larger);
    free(table->cells);
    table->cells = larger;
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

void cli_table_free(cli_table *table) {
  for (size_t i = 0; i < table->rows * (size_t)table->column_count; i++) free(table->cells[i]);
  free(table->cells);
  table->cells = NULL;
  table->rows = table->capacity = 0;
}

static int sum(const int *widths, int count) {
  int total = (count - 1) * GAP;
  for (int i = 0; i < count; i++) total += widths[i];
  return total;
}

/* Takes from the widest column that may shrink until the table fits or none is left to take from. */
static void shrink(const cli_table *table, int *widths, int room) {
  while (sum(widths, table->column_count) > room) {
    int widest = -1;
    for (int i = 0; i < table->column_count; i++)
      if (table->columns[i].shrink && widths[i] > NARROWEST && (widest < 0 || widths[i] > widths[widest])) widest = i;
    if (widest < 0) return;
    widths[widest]--;
  }
}

/* The last column is not padded, so that lines end where their text does. */
static void print_row(const cli_table *table, const int *widths, const char *const *cells, FILE *out) {
  for (int i = 0; i < table->column_count; i++) {
    bool last = i + 1 == table->column_count, right = table->columns[i].right;
    bool cut = cli_width(cells[i]) > widths[i];
    cli_print_padded(out, cells[i], last && !right && !cut ? 0 : widths[i], right, cut);
    if (!last) fprintf(out, "%*s", GAP, "");
  }
  fputc('\n', out);
}

void cli_table_print(const cli_table *table, FILE *out) {
  int count = table->column_count, room = cli_terminal_width(out);
  int *widths = cli_alloc((size_t)count, sizeof *widths);
  const char **titles = cli_alloc((size_t)count, sizeof *titles);
  for (int i = 0; i < count; i++) {
    titles[i] = table->columns[i].title;
    widths[i] = cli_width(titles[i]);
    for (size_t row = 0; row < table->rows; row++) {
      int width = cli_width(table->cells[row * (size_t)count + (size_t)i]);
      if (width > widths[i]) widths[i] = width;
    }
  }
  if (room) shrink(table, widths, room);
  bool bold = cli_color(out);
  if (bold) fputs("\033[1m", out);
  print_row(table, widths, titles, out);
  if (bold) fputs("\033[0m", out);
  for (size_t row = 0; row < table->rows; row++)
    print_row(table, widths, (const char *const *)&table->cells[row * (size_t)count], out);
  free(titles);
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
