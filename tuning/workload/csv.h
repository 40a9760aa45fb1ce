/* SPDX-License-Identifier: Apache-2.0
 * csv.h: comma-separated text, RFC 4180 with comment lines (#): quoted cells, LF or CRLF, with or without a UTF-8 mark.
 * And what spreadsheets make of it: semicolons or tabs instead of commas where the first row has no comma, a first line
 * "sep=;", rows of empty cells, comments in quotes.
 * Every message starts with FILE:LINE:COLUMN, both from 1, columns in bytes. */
#ifndef AT_CSV_H
#define AT_CSV_H

#include "src/base/support.h"

#define AT_CSV_MAX_BYTES ((size_t)64 << 20)
#define AT_CSV_MAX_RECORD ((size_t)64 << 10)
#define AT_CSV_MAX_CELLS 64

/* One cell, unquoted, blanks around it removed unless they were quoted. Borrowed until at_csv_close. */
typedef struct at_csv_cell {
  char *text;
  int line;
  int column;
} at_csv_cell;

typedef struct at_csv_row {
  int line;
  int count; /* 0: the end of the file */
  at_csv_cell cells[AT_CSV_MAX_CELLS];
} at_csv_row;

/* A file in memory; cells are unquoted in place, behind `at`. */
typedef struct at_csv {
  char *name; /* for messages */
  char *text; /* size + 1 bytes */
  size_t size;
  size_t at;
  size_t line_start; /* offset of the present line's first byte */
  char separator;    /* of cells: , ; or a tab */
  int line;
} at_csv;

/* Reads the whole file (a regular file or a pipe). NOT_FOUND, PERMISSION, IO_ERROR, INVALID_ARGUMENT (a directory),
 * BAD_DATA (a NUL byte, UTF-16, too long), OUT_OF_MEMORY. at_csv_close after OK. */
attune_status at_csv_open(at_csv *out, const char *path);

void at_csv_close(at_csv *csv);

/* The next row that is neither blank, nor all of empty cells, nor a comment; row->count is 0 at the end. Empty cells
 * beyond AT_CSV_MAX_CELLS are left out. BAD_DATA. */
attune_status at_csv_next(at_csv *csv, at_csv_row *row);

/* Fails with "NAME:LINE:COLUMN: message". */
attune_status at_csv_fail(const at_csv *csv, int line, int column, const char *format, ...) AT_PRINTF(4, 5);

/* foreign.c: BAD_DATA if the file is of a known other format: the message names it, and says how to make a workload of
 * it. `text` may hold any bytes; text[size] is 0. */
attune_status at_foreign_check(const char *name, const char *text, size_t size);

#endif
