/* SPDX-License-Identifier: Apache-2.0
 * report_html.h: the parts of the page, one file each. */
#ifndef GATE_REPORT_HTML_H
#define GATE_REPORT_HTML_H

#include "tools/compare/report/report_text.h"

typedef struct gate_page {
  const gate_comparison *comparison;
  const gate_history *histories;
  size_t history_count;
  const gate_roof *roofs;
  size_t roof_count;
  const size_t *order; /* the rows' places, as they stand in the table */
} gate_page;

/* The table of all cases: whole without a script. */
void gate_page_table(FILE *out, const gate_page *page);
/* What the plots are drawn from, as JSON that cannot end its <script>. False: no memory. */
bool gate_page_data(FILE *out, const gate_page *page);

#endif
