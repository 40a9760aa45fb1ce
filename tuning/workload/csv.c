/* SPDX-License-Identifier: Apache-2.0
 * csv.c: reads comma-separated text; every complaint names file, line and column. */
#include "tuning/workload/csv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

attune_status at_csv_fail(const at_csv *csv, int line, int column, const char *format, ...) {
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return at_fail(ATTUNE_BAD_DATA, "%s:%d:%d: %s", csv->name, line, column, text);
}

static int column_of(const at_csv *csv, size_t offset) {
  return (int)(offset - csv->line_start) + 1;
}

static void start_line(at_csv *csv, size_t offset) {
  csv->at = offset;
  csv->line_start = offset;
  csv->line++;
}

/* Text that no cell can hold is refused for the whole file, so that cells are plain C strings. */
static attune_status check_text(at_csv *csv) {
  const unsigned char *bytes = (const unsigned char *)csv->text;
  if (csv->size >= 2 && ((bytes[0] == 0xFF && bytes[1] == 0xFE) || (bytes[0] == 0xFE && bytes[1] == 0xFF)))
    return at_csv_fail(csv, 1, 1, "is UTF-16 text; should be UTF-8");
  if (at_foreign_check(csv->name, csv->text, csv->size) != ATTUNE_OK) return ATTUNE_BAD_DATA;
  const char *nul = csv->size ? memchr(csv->text, 0, csv->size) : NULL;
  if (!nul) return ATTUNE_OK;
  int line = 1;
  const char *start = csv->text;
  for (const char *next; (next = memchr(start, '\n', (size_t)(nul - start))) != NULL; start = next + 1) line++;
  return at_csv_fail(csv, line, (int)(nul - start) + 1, "contains a NUL byte; should be text");
}

/* What stands between cells, by the first line that is no comment; a line "sep=;" says it and is no row. */
static void find_separator(at_csv *csv) {
  const char *line = csv->text + csv->at;
  csv->separator = ',';
  if (strncmp(line, "sep=", 4) == 0 && line[4] && strchr(",;\t", line[4]) && strspn(line + 5, "\r\n")) {
    csv->separator = line[4];
    csv->at += 5;
    return;
  }
  while (*line == '#' || *line == '\r' || *line == '\n') {
    line += strcspn(line, "\n");
    line += *line == '\n';
  }
  const size_t chars = strcspn(line, "\r\n");
  if (memchr(line, ',', chars)) return;
  if (memchr(line, ';', chars))
    csv->separator = ';';
  else if (memchr(line, '\t', chars))
    csv->separator = '\t';
}

/* Takes `text`, size + 1 bytes, over. */
static attune_status begin(at_csv *out, const char *name, char *text, size_t size) {
  *out = (at_csv){.name = strdup(name), .text = text, .size = size, .line = 1};
  text[size] = '\0';
  attune_status status = out->name ? check_text(out) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to read \"%s\"", name);
  if (status != ATTUNE_OK) {
    at_csv_close(out);
    return status;
  }
  if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) out->at = out->line_start = 3;
  find_separator(out);
  return ATTUNE_OK;
}

void at_csv_close(at_csv *csv) {
  free(csv->name);
  free(csv->text);
  *csv = (at_csv){0};
}

static attune_status open_file(int *out, const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (file < 0 && errno == ENOENT) return at_fail(ATTUNE_NOT_FOUND, "%s: no such file; should be a CSV file", path);
  if (file < 0 && (errno == EACCES || errno == EPERM))
    return at_fail(ATTUNE_PERMISSION, "%s: permission denied; should be readable", path);
  if (file < 0 && (errno == ENOTDIR || errno == ENAMETOOLONG || errno == ELOOP))
    return at_fail(ATTUNE_NOT_FOUND, "%s: %s; should be a CSV file", path, strerror(errno));
  if (file < 0) return at_fail(ATTUNE_IO_ERROR, "%s: cannot be opened: %s", path, strerror(errno));
  struct stat about;
  if (fstat(file, &about) == 0 && S_ISDIR(about.st_mode)) {
    close(file);
    return AT_INVALID("%s: is a directory; should be a CSV file", path);
  }
  *out = file;
  return ATTUNE_OK;
}

/* Pipes have no size, so the text grows as it comes. */
static attune_status read_all(int file, const char *path, char **text, size_t *size) {
  size_t capacity = 0;
  for (;;) {
    if (*size == capacity) {
      capacity = capacity ? capacity * 2 : 16384;
      char *larger = realloc(*text, capacity + 1);
      if (!larger) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to read \"%s\"", path);
      *text = larger;
    }
    ssize_t got = read(file, *text + *size, capacity - *size);
    if (got == 0) return ATTUNE_OK;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return at_fail(ATTUNE_IO_ERROR, "%s: cannot be read: %s", path, strerror(errno));
    *size += (size_t)got;
    if (*size > AT_CSV_MAX_BYTES)
      return at_fail(ATTUNE_BAD_DATA, "%s:1:1: is longer than %zu MiB; should be split", path, AT_CSV_MAX_BYTES >> 20);
  }
}

attune_status at_csv_open(at_csv *out, const char *path) {
  const char *name = strcmp(path, "/dev/stdin") == 0 ? "standard input" : path;
  int file = -1;
  AT_TRY(open_file(&file, path));
  char *text = NULL;
  size_t size = 0;
  attune_status status = read_all(file, name, &text, &size);
  close(file);
  if (status != ATTUNE_OK) {
    free(text);
    return status;
  }
  return begin(out, name, text, size);
}

static bool blank(const at_csv *csv, char c) {
  return c == ' ' || (c == '\t' && csv->separator != '\t');
}

static void skip_blanks(at_csv *csv) {
  while (csv->at < csv->size && blank(csv, csv->text[csv->at])) csv->at++;
}

/* True when the present line is a comment or holds only blanks: moves to the next one. */
static bool skip_line(at_csv *csv) {
  size_t start = csv->at;
  const char *newline = memchr(csv->text + start, '\n', csv->size - start);
  size_t end = newline ? (size_t)(newline - csv->text) : csv->size;
  if (csv->text[start] != '#') {
    for (size_t i = start; i < end; i++)
      if (!blank(csv, csv->text[i]) && !(csv->text[i] == '\r' && i + 1 == end)) return false;
  }
  if (newline)
    start_line(csv, end + 1);
  else
    csv->at = end;
  return true;
}

/* Moves behind the cell's delimiter, or says what stands in its place; *more when another cell follows. `end` is
 * where the cell's terminator goes; the delimiter is read before, as both may be one byte. */
static attune_status finish_cell(at_csv *csv, size_t end, bool *more) {
  size_t at = csv->at;
  char found = at < csv->size ? csv->text[at] : '\n';
  *more = found == csv->separator;
  if (found == '\r' && at + 1 < csv->size && csv->text[at + 1] != '\n')
    return at_csv_fail(csv, csv->line, column_of(csv, at),
                       "a carriage return without a line feed; lines should end in LF or CRLF");
  if (!*more && found != '\n' && found != '\r')
    return at_csv_fail(csv, csv->line, column_of(csv, at),
                       "text after a closing quote; should be a %s or the end of the line",
                       csv->separator == ','   ? "comma"
                       : csv->separator == ';' ? "semicolon"
                                               : "tab");
  size_t next = at + (found == '\r' ? 2 : 1);
  if (next > csv->size) next = csv->size;
  if (*more)
    csv->at = next;
  else
    start_line(csv, next);
  csv->text[end] = '\0';
  return ATTUNE_OK;
}

static attune_status read_quoted(at_csv *csv, at_csv_cell *cell, bool *more) {
  size_t write = ++csv->at;
  cell->text = csv->text + write;
  for (;; csv->at++) {
    if (csv->at >= csv->size)
      return at_csv_fail(csv, cell->line, cell->column, "a quote that is never closed; should end with \"");
    char c = csv->text[csv->at];
    if (c == '"' && csv->at + 1 < csv->size && csv->text[csv->at + 1] == '"')
      csv->at++;
    else if (c == '"')
      break;
    csv->text[write++] = c;
    if (c == '\n') {
      csv->line++;
      csv->line_start = csv->at + 1;
    }
  }
  csv->at++;
  skip_blanks(csv);
  return finish_cell(csv, write, more);
}

static attune_status read_plain(at_csv *csv, at_csv_cell *cell, bool *more) {
  size_t start = csv->at;
  cell->text = csv->text + start;
  const char ends[] = {csv->separator, '\r', '\n', '"', '\0'};
  csv->at += strcspn(cell->text, ends);
  if (csv->text[csv->at] == '"')
    return at_csv_fail(csv, csv->line, column_of(csv, csv->at),
                       "a quote inside a field; quotes should enclose the whole field and be doubled within it");
  size_t end = csv->at;
  while (end > start && blank(csv, csv->text[end - 1])) end--;
  return finish_cell(csv, end, more);
}

/* The cells of the line that csv->at stands on. */
static attune_status read_row(at_csv *csv, at_csv_row *row) {
  row->count = 0;
  row->line = csv->line;
  size_t start = csv->at;
  bool more = csv->at < csv->size;
  at_csv_cell beyond;
  while (more) {
    skip_blanks(csv);
    int column = column_of(csv, csv->at);
    at_csv_cell *cell = row->count < AT_CSV_MAX_CELLS ? &row->cells[row->count] : &beyond;
    *cell = (at_csv_cell){.line = csv->line, .column = column};
    bool quoted = csv->at < csv->size && csv->text[csv->at] == '"';
    AT_TRY(quoted ? read_quoted(csv, cell, &more) : read_plain(csv, cell, &more));
    if (csv->at - start > AT_CSV_MAX_RECORD)
      return at_csv_fail(csv, row->line, 1, "a row longer than %zu KiB", AT_CSV_MAX_RECORD >> 10);
    if (cell == &beyond && *cell->text)
      return at_csv_fail(csv, cell->line, column, "more than %d fields in a row", AT_CSV_MAX_CELLS);
    row->count += cell != &beyond;
  }
  return ATTUNE_OK;
}

/* Cells without text; before them, if any has one, a comment that a spreadsheet put into quotes. */
static bool says_nothing(const at_csv_row *row) {
  for (int i = row->count > 1 && row->cells[0].text[0] == '#'; i < row->count; i++)
    if (*row->cells[i].text) return false;
  return true;
}

attune_status at_csv_next(at_csv *csv, at_csv_row *row) {
  attune_status status = ATTUNE_OK;
  do {
    while (csv->at < csv->size && skip_line(csv)) continue;
    status = read_row(csv, row);
  } while (status == ATTUNE_OK && row->count > 0 && says_nothing(row));
  return status;
}
