/* SPDX-License-Identifier: Apache-2.0
 * report.h: a comparison or a history as Markdown, JSON, JUnit XML or one HTML page. False: it could not be written. */
#ifndef GATE_REPORT_H
#define GATE_REPORT_H

#include "tools/compare/stats/comparison.h"
#include "tools/compare/stats/history.h"

#include <stdio.h>

bool gate_report_markdown(FILE *out, const gate_comparison *comparison); /* for a comment on a pull request */
bool gate_report_json(FILE *out, const gate_comparison *comparison);
bool gate_report_junit(FILE *out, const gate_comparison *comparison);
/* histories[history_count] and roofs[roof_count] may be none. */
bool gate_report_html(FILE *out, const gate_comparison *comparison, const gate_history *histories, size_t history_count,
                      const gate_roof *roofs, size_t roof_count);
bool gate_history_json(FILE *out, const gate_history *history);
/* For a terminal of `width` columns, of which it uses at least 24; 0: 80. `utf8`: with block and line characters. */
bool gate_history_draw(FILE *out, const gate_history *history, int width, bool utf8);

#endif
