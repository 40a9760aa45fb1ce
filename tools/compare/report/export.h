/* SPDX-License-Identifier: Apache-2.0
 * export.h: runs in the formats of other programs that keep and plot benchmarks. docs/formats.md has what each
 * holds. */
#ifndef GATE_EXPORT_H
#define GATE_EXPORT_H

#include "tools/compare/results/results.h"

#include <stdio.h>

typedef enum gate_format {
  GATE_BMF,    /* Bencher Metric Format, JSON */
  GATE_GITHUB, /* github-action-benchmark, its tool customSmallerIsBetter, JSON */
  GATE_GOOGLE, /* as Google Benchmark writes JSON */
  GATE_OTAVA   /* CSV for Apache Otava: a row a run, a column a case */
} gate_format;

/* False: no format is called so. */
bool gate_format_of(const char *name, size_t length, gate_format *out);
extern const char gate_format_names[]; /* "bmf, github, google or otava" */

typedef struct gate_exported {
  gate_format format;
  const gate_run *run;
  const char *results; /* otava: the result file whose earlier runs are rows too; NULL: none */
  const char *filter;  /* only cases whose name holds it; NULL: all */
} gate_exported;

/* How many cases it cannot say, since they failed or were not timed. */
size_t gate_export_lost(const gate_exported *what);

/* `what` is a gate_exported. False: it could not be written, or a sentence is in *error, for the caller to free; error
 * may be NULL. */
bool gate_export(FILE *out, const gate_exported *what, char **error);

/* export_otava.c */
bool gate_export_otava(FILE *out, const gate_exported *what, char **error);
/* export_google.c */
bool gate_export_google(FILE *out, const gate_exported *what);

/* --- what the formats share --- */

/* Is the case in the export? */
bool gate_export_has(const gate_exported *what, const gate_case *c);
/* The name, with mode and device where they are not the plain ones, so that it is the case's own in every run. Valid
 * UTF-8, freed by the caller. */
char *gate_export_name(const gate_case *c);

#endif
