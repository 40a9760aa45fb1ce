/* SPDX-License-Identifier: Apache-2.0
 * interval.h: ranges of addresses, which may overlap, found by an address range: a treap by start, each node with the
 * last end below it. Put it first in what it holds. */
#ifndef AT_CHECK_INTERVAL_H
#define AT_CHECK_INTERVAL_H

#include <stddef.h>
#include <stdint.h>

typedef struct at_interval {
  struct at_interval *left, *right;
  struct at_interval *next; /* of the list that at_interval_find gives */
  uintptr_t start, end;
  uintptr_t last; /* the largest end of this node and those below */
  uint64_t order; /* drawn at the insertion: the heap's */
} at_interval;

/* start and end are set. */
void at_interval_insert(at_interval **root, at_interval *node);
void at_interval_remove(at_interval **root, at_interval *node);

/* All that have an address in start to end, as a list by `next`; good until the next find. */
at_interval *at_interval_find(at_interval *root, uintptr_t start, uintptr_t end);

#endif
