/* SPDX-License-Identifier: Apache-2.0
 * address_table.h: every block of memory of the process by its address, so that a pointer alone is enough to free it
 * and a wrong one is noticed. */
#ifndef AT_MEMORY_ADDRESS_TABLE_H
#define AT_MEMORY_ADDRESS_TABLE_H

#include "src/base/support.h"

#include <stdatomic.h>

typedef enum at_entry_kind { AT_ENTRY_BLOCK = 1, AT_ENTRY_PINNED = 2 } at_entry_kind;

/* The head of what the table holds. Entries are never given back to the system, only used again by their owner: a
 * reader without the lock may meet one that was just taken out, and must find an entry there. */
typedef struct at_entry {
  _Atomic(struct at_entry *) next;
  _Atomic uintptr_t address; /* 0: in no table */
  at_entry_kind kind;        /* of the struct around it, for ever */
} at_entry;

/* The entry of `address`, NULL when there is none. No lock: finds entries that are not removed at the same time. Any
 * thread. */
at_entry *at_address_table_find(uintptr_t address);

/* The same under the table's lock, for a pointer that at_address_table_find did not find. */
at_entry *at_address_table_find_surely(uintptr_t address);

void at_address_table_insert(at_entry *entry, uintptr_t address);
void at_address_table_remove(at_entry *entry);

/* Around fork: the child finds the table whole. */
void at_address_table_lock(void);
void at_address_table_unlock(void);

#endif
