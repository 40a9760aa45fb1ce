/* SPDX-License-Identifier: Apache-2.0
 * plan_table.h: from a problem on a device to its plan. Readers take no lock and write nothing shared, so that
 * threads scale; writers hold the table's mutex. Nothing that a reader may still see is freed before the table is
 * closed, so the table is bounded: the first AT_PLANS_MOST problems, and of an operation the first at_op.plans_most,
 * have their place, further ones share that of plan_lru.h. */
#ifndef AT_PLAN_TABLE_H
#define AT_PLAN_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "tuning/plans/plan_lru.h"
#include "tuning/store/decision.h"

#define AT_PLANS_MOST ((size_t)32768) /* problems of one table */

/* Of a problem of about 100 bytes, with a text as long, it takes 1.3 KB with key, decision and text, and its plan 0.5
 * KB in addition to what the implementation keeps. One of 4 KB takes 12 KB more: in the key, in its text and in the
 * plan. */
typedef struct at_plan_entry {
  uint64_t hash;
  _Atomic(at_plan *) plan; /* NULL: withdrawn, a miss */
  _Atomic uint64_t calls;  /* that no thread's call_cache.h counts any more */
  uint64_t recorded; /* under the table's lock: of `calls`, those that are in the recorded workload, or are not to be */
  int as;            /* under it: how the first caller wrote the problem: see at_problem_type.show */
  at_plan *retired;  /* under it: plans that were replaced or withdrawn, one of each configuration: they come back */
  struct at_plan_entry *next; /* under it: all entries */
  attune_decision *decision;  /* a kept one (decision.h), under it; the problem's text is constant */
  uint64_t key[];             /* as much as at_key_bytes of it; the decision lies behind */
} at_plan_entry;

static inline const at_key *at_plan_entry_key(const at_plan_entry *entry) {
  return (const at_key *)(const void *)entry->key;
}

/* How many plans there are of an operation that bounds them. */
typedef struct at_plan_count {
  const at_op *op;
  size_t count;
  struct at_plan_count *next;
} at_plan_count;

typedef struct at_plan_slots {
  size_t mask;
  struct at_plan_slots *older; /* replaced by growth; readers may still be in it */
  _Atomic(at_plan_entry *) slot[];
} at_plan_slots;

typedef struct at_plan_table {
  _Atomic(at_plan_slots *) slots;
  pthread_mutex_t lock;
  _Atomic bool crowded;    /* there is an LRU */
  _Atomic uint64_t others; /* calls of the problems beyond the bound */
  size_t most;             /* constant: no more entries than this */
  size_t count;            /* under lock, as all below */
  at_plan_entry *entries;
  at_plan_count *counts;
  at_plan_lru *lru; /* NULL: none yet */
} at_plan_table;

attune_status at_plan_table_open(at_plan_table *table);
void at_plan_table_close(at_plan_table *table);

/* The key's entry, valid until the table is closed; NULL: none. Lock-free. */
static inline const at_plan_entry *at_plan_table_entry(at_plan_table *table, const at_key *key) {
  const uint64_t hash = at_key_hash(key);
  at_plan_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
  for (size_t i = (size_t)hash & slots->mask;; i = (i + 1) & slots->mask) {
    const at_plan_entry *entry = atomic_load_explicit(&slots->slot[i], memory_order_acquire);
    if (!entry || (entry->hash == hash && at_key_equal(at_plan_entry_key(entry), key))) return entry;
  }
}

/* The entry's plan at this moment; NULL: withdrawn, a miss. Lock-free. */
static inline const at_plan *at_plan_entry_plan(const at_plan_entry *entry) {
  return atomic_load_explicit(&((at_plan_entry *)(uintptr_t)entry)->plan, memory_order_acquire);
}

/* Adds to the calls of the entry. */
static inline void at_plan_entry_count(const at_plan_entry *entry, uint64_t calls) {
  atomic_fetch_add_explicit(&((at_plan_entry *)(uintptr_t)entry)->calls, calls, memory_order_relaxed);
}

/* The plan for the key; NULL: a miss. Lock-free. */
static inline const at_plan *at_plan_table_find(at_plan_table *table, const at_key *key) {
  const at_plan_entry *entry = at_plan_table_entry(table, key);
  return entry ? at_plan_entry_plan(entry) : NULL;
}

/* The plan of a problem beyond the bound, with a use counted for the caller, which launches it once or hands it to
 * at_plan_lru_release; NULL: none. */
const at_plan *at_plan_table_use_beyond(at_plan_table *table, const at_key *key);

/* Makes *plan (owned by the table from now on, also when this fails) the key's plan. With `keep` an existing plan
 * stays; without, the older one is retired. *plan is set to the key's plan, of which the caller has a use: it is
 * launched once or handed to at_plan_lru_release. */
attune_status at_plan_table_put(at_plan_table *table, const at_key *key, at_plan **plan,
                                const attune_decision *decision, bool keep);

/* The decision behind the key's plan; false: none. */
bool at_plan_table_decision(at_plan_table *table, const at_key *key, attune_decision *out);

/* Notes how the key's first caller wrote it, and that `recorded` more of its calls are recorded. */
void at_plan_table_note(at_plan_table *table, const at_key *key, int as, uint64_t recorded);

/* Marks the key's decision as unsure, if it is the one of that time, and notes why. */
void at_plan_table_doubt(at_plan_table *table, const at_key *key, int64_t tuned_at, const char *why);

/* Walks over the entries, the latest first, until `each` returns nonzero, which is returned; under the table's lock,
 * so `each` must not call the table. `calls` is exact after at_call_cache_collect, as far as calls had returned
 * then. */
typedef int (*at_plan_table_each_fn)(void *user, at_plan_entry *entry, uint64_t calls);
int at_plan_table_each(at_plan_table *table, at_plan_table_each_fn each, void *user);

/* In a child of fork, which has made no call yet; the lock is held. */
void at_plan_table_count_anew(at_plan_table *table);

/* Withdraws every plan that is a guess (source default or neighbour): the next call misses. */
void at_plan_table_drop_guesses(at_plan_table *table);

#endif
