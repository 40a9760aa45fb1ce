/* SPDX-License-Identifier: Apache-2.0
 * comparison.h: two runs side by side, judged; what every report is made from. */
#ifndef GATE_COMPARISON_H
#define GATE_COMPARISON_H

#include "tools/compare/stats/verdict.h"

/* How often runs that alternate are judged at most: verdict.h, gate_next_look. */
#define GATE_LOOKS 4

typedef struct gate_row {
  const gate_case *base, *head; /* NULL: not there; the runs' */
  gate_judgement judged;
} gate_row;

typedef struct gate_comparison {
  const gate_run *base, *head; /* the caller's; outlive this */
  gate_rule rule;
  bool alternated;
  char *differences; /* of the fingerprints, one a line, where they differ and that was allowed; NULL */
  gate_row *rows;    /* in head's order, then what only base has */
  size_t row_count;
  size_t counts[GATE_MISSING + 1]; /* by verdict */
} gate_comparison;

/* `allow_different`: fingerprints may differ. NULL, or why they cannot be compared (no common case, other machines).
 * The runs of a pair can be where one of them has no cases at all: then all are missing. */
char *gate_compare(gate_comparison *out, const gate_run *base, const gate_run *head, const gate_rule *rule,
                   bool allow_different);
/* Slower; or it fails in the head, or has no times there, and that was not so in the base. What an exit code, JUnit's
 * errors and `regressions` of the JSON go by. */
bool gate_row_regressed(const gate_row *row);
/* Does any row compare the head with the base? False where the two have nothing in common, or nothing that ran. */
bool gate_rows_tell(const gate_row *rows, size_t count);

void gate_comparison_free(gate_comparison *comparison);

/* A row's name for people, with mode and device where cases of one name differ by them. The caller frees it. */
char *gate_row_name(const gate_comparison *comparison, const gate_row *row);

#endif
