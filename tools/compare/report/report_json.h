/* SPDX-License-Identifier: Apache-2.0
 * report_json.h: parts of the JSON reports that the page has too. NULL: no memory. docs/formats.md has the fields. */
#ifndef GATE_REPORT_JSON_H
#define GATE_REPORT_JSON_H

#include "tools/compare/report/report_text.h"

#include <jansson.h>

#define GATE_JSON_VERSION 1

/* Null where `value` is no number. */
json_t *gate_json_number(double value);
/* Bytes that are no UTF-8 as U+FFFD, nothing else changed; NULL text: null. */
json_t *gate_json_string(const char *text);
json_t *gate_json_history(const gate_history *history);
json_t *gate_json_roofs(const gate_roof *roofs, size_t count);
/* `whole`: with everything that was measured; else a visit is the times of its samples. */
json_t *gate_json_row(const gate_comparison *comparison, const gate_row *row, bool whole);

#endif
