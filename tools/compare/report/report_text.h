/* SPDX-License-Identifier: Apache-2.0
 * report_text.h: what the reports share: text from elsewhere made harmless, numbers for people, rows in order. */
#ifndef GATE_REPORT_TEXT_H
#define GATE_REPORT_TEXT_H

#include "tools/compare/report/report.h"

/* Where text goes: what would be markup there is written so that it is text. */
typedef enum gate_markup {
  GATE_PLAIN,    /* nothing is markup */
  GATE_ASCII,    /* as that, and what is not ASCII is written by number */
  GATE_MARKDOWN, /* of GitHub and GitLab: also in a table */
  GATE_XML       /* XML 1.0 and HTML: elements' text and quoted attributes */
} gate_markup;

/* Writes `text`, any bytes, as valid UTF-8 in one line. Control characters, invisible characters, those that
 * reverse the order of others, and bytes that are not UTF-8 are written as \x1b or \u202e. `most` characters, then
 * "..."; 0: all. */
void gate_put(FILE *out, gate_markup markup, const char *text, size_t most);
/* The next character of *text, which moves; `hidden`: it must be written by number (a byte's, if it is not UTF-8). */
uint32_t gate_character(const char **text, bool *hidden);
/* Columns of a terminal that a character takes. */
int gate_character_width(uint32_t character);
/* `text` by gate_put, in a string that the caller frees; NULL: no memory. */
char *gate_text(gate_markup markup, const char *text);

/* Numbers; "-" for what is not known. Each returns `out` or a constant. */
#define GATE_CELL 48
const char *gate_time_text(char out[GATE_CELL], double ns);      /* "12.3 us" */
const char *gate_change_text(char out[GATE_CELL], double ratio); /* 1.032: "+3.2 %"; 10000: "10000x" */
const char *gate_interval_text(char out[GATE_CELL], const gate_judgement *judged);    /* "+1.1 to +5.2 %" */
const char *gate_rate_text(char out[GATE_CELL], double per_second, const char *unit); /* "B/s": "12.3 GB/s" */
const char *gate_share_text(char out[GATE_CELL], double fraction);                    /* 0.834: "83.4 %" */
const char *gate_date_text(char out[GATE_CELL], int64_t seconds);                     /* "2026-01-31 12:00 UTC" */

/* --- of a comparison --- */

/* Head's, or base's where head lacks it. */
const gate_case *gate_row_case(const gate_row *row);
/* gate_row_name, made harmless. */
void gate_put_row_name(FILE *out, gate_markup markup, const gate_comparison *comparison, const gate_row *row,
                       size_t most);
/* Why a row is unsure, failed or missing: a failed side's message, or the judgement's reason; NULL: nothing to say. */
const char *gate_row_reason(const gate_row *row);
/* The rows' places: slower, failed, faster, unsure, missing, same; in each the greatest change first. The caller frees
 * it; NULL: no memory. */
size_t *gate_rows_ordered(const gate_comparison *comparison);

/* Where the change of a row and the ratio of its two times are not the same: see report_basis.c. Zeroed at first. */
typedef struct gate_basis {
  bool paired;
  size_t rows;      /* where they differ by more than 0.5 % */
  const char *name; /* of the case where they differ most, not owned, and what they are there */
  double most, ratio, times;
} gate_basis;
/* `ratio`: the change; the times: as the report shows them. */
void gate_basis_add(gate_basis *basis, const char *name, double ratio, double base_ns, double head_ns);
gate_basis gate_basis_of(const gate_comparison *comparison);
/* "change: the middle of the ratios within the rounds; ..." */
void gate_put_basis(FILE *out, gate_markup markup, const gate_basis *basis);

/* "1 %, from 5 % where the name holds alloc/": the changes that count. */
void gate_put_floors(FILE *out, gate_markup markup, const gate_rule *rule);
/* "2 of 50 cases are slower, 1 failed"; "2 slower, 1 failed, 3 faster, 44 same". */
void gate_put_headline(FILE *out, const gate_comparison *comparison);
void gate_put_counts(FILE *out, const gate_comparison *comparison);
/* "3c8a6f8d21 (with changes), main, 2026-01-31 12:00 UTC, suite.csv", and where the run is not whole, that. Without a
 * word of the revision where neither side has one: a report says that once. */
void gate_put_run(FILE *out, gate_markup markup, const gate_comparison *comparison, const gate_run *run);
bool gate_lacks_revisions(const gate_comparison *comparison);
extern const char gate_no_revisions[];
/* "3c8a6f8d21", "-" for none. */
void gate_put_revision(FILE *out, gate_markup markup, const gate_run *run);
/* Calls `put` for each entry that is not empty of a run's fingerprint. */
void gate_each_fact(const gate_run *run, void (*put)(void *arg, const char *key, const char *value), void *arg);

/* True if all that was written reached the file. */
bool gate_written(FILE *out);

#endif
