/* SPDX-License-Identifier: Apache-2.0
 * case_index.h: where a case is in a list, by its name, device and mode, without a walk through the list. */
#ifndef GATE_CASE_INDEX_H
#define GATE_CASE_INDEX_H

#include "tools/compare/results/results.h"

/* Zeroed: empty. */
typedef struct gate_case_index {
  struct gate_case_place *places;
  size_t room, count;
} gate_case_index;

#define GATE_CASE_NOWHERE ((size_t)-1)

/* The place of a case like this; `at` gives the case at a place of the list. GATE_CASE_NOWHERE: there is none. */
size_t gate_case_index_find(const gate_case_index *index, const gate_case *like,
                            const gate_case *(*at)(const void *list, size_t place), const void *list);
/* `c` is not in it yet. */
void gate_case_index_add(gate_case_index *index, const gate_case *c, size_t place);
void gate_case_index_free(gate_case_index *index);

#endif
