/* SPDX-License-Identifier: Apache-2.0
 * gate_made.h: a made comparison with all that a report shows, for the tests of the reports. */
#ifndef AT_TEST_GATE_MADE_H
#define AT_TEST_GATE_MADE_H

#include "tools/compare/report/report.h"

#define MADE_HISTORIES 2
#define MADE_ROOFS 2

typedef struct made {
  gate_run base, head;
  gate_comparison comparison;
  gate_history histories[MADE_HISTORIES];
  gate_roof roofs[MADE_ROOFS];
} made;

/* `count` cases: about one of ten is slower, one faster, one unsure; the eleventh of each hundred failed, the twelfth
 * is missing at head, the thirteenth at base. names[name_count]: the first cases' names in place of the made ones.
 * `rounds` visits of five samples a side. The same numbers each time. */
void made_create(made *out, size_t count, const char *const *names, size_t name_count, int rounds);
void made_free(made *m);

/* Text of a report, which the caller frees; fails the test if the report returns false. */
char *made_markdown(const gate_comparison *comparison);
char *made_json(const gate_comparison *comparison);
char *made_junit(const gate_comparison *comparison);
char *made_page(const made *m);
char *made_history_json(const gate_history *history);
char *made_drawing(const gate_history *history, int width, bool utf8);

#endif
