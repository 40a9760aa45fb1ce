/* SPDX-License-Identifier: Apache-2.0
 * plan_table.c: open addressing with linear probing. Slots go from empty to an entry once and never back; growth
 * publishes a new array of slots over the same entries. */
#include "tuning/plans/plan_table.h"

#include "src/process/cancel.h"

#include <assert.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static at_plan_slots *slots_new(size_t count) {
  at_plan_slots *slots = calloc(1, sizeof *slots + count * sizeof slots->slot[0]);
  if (slots) slots->mask = count - 1;
  return slots;
}

/* Publishes the entry in the first empty slot of its probe sequence; the caller holds the lock or owns the slots alone.
 */
static void slots_add(at_plan_slots *slots, at_plan_entry *entry) {
  assert(entry->hash == at_key_hash(at_plan_entry_key(entry)));
  size_t i = (size_t)entry->hash & slots->mask;
  while (atomic_load_explicit(&slots->slot[i], memory_order_relaxed)) i = (i + 1) & slots->mask;
  atomic_store_explicit(&slots->slot[i], entry, memory_order_release);
}

attune_status at_plan_table_open(at_plan_table *table) {
  memset(table, 0, sizeof *table);
  at_plan_slots *slots = slots_new(FIRST_SLOTS);
  if (!slots) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the plan table");
  atomic_store(&table->slots, slots);
  table->most = AT_PLANS_MOST;
  pthread_mutex_init(&table->lock, NULL);
  return ATTUNE_OK;
}

void at_plan_table_close(at_plan_table *table) {
  at_plan_slots *slots = atomic_load(&table->slots);
  if (!slots) return;
  while (slots) {
    at_plan_slots *older = slots->older;
    free(slots);
    slots = older;
  }
  size_t entries = 0;
  for (; table->entries; entries++) {
    at_plan_entry *entry = table->entries;
    table->entries = entry->next;
    at_plan_destroy(atomic_load(&entry->plan));
    while (entry->retired) {
      at_plan *plan = entry->retired;
      entry->retired = plan->next_retired;
      at_plan_destroy(plan);
    }
    free(entry);
  }
  assert(entries == table->count);
  (void)entries;
  while (table->counts) {
    at_plan_count *count = table->counts;
    table->counts = count->next;
    free(count);
  }
  at_plan_lru_close(table->lru);
  pthread_mutex_destroy(&table->lock);
  memset(table, 0, sizeof *table);
}

static at_plan_entry *entry_find(at_plan_table *table, const at_key *key, uint64_t hash) {
  at_plan_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
  for (size_t i = (size_t)hash & slots->mask;; i = (i + 1) & slots->mask) {
    at_plan_entry *entry = atomic_load_explicit(&slots->slot[i], memory_order_acquire);
    if (!entry || (entry->hash == hash && at_key_equal(at_plan_entry_key(entry), key))) return entry;
  }
}

#ifndef NDEBUG
static bool is_retired(const at_plan_entry *entry, const at_plan *plan) {
  const at_plan *at = entry->retired;
  while (at && at != plan) at = at->next_retired;
  return at != NULL;
}
#endif

/* Keeps a plan that readers may still run until the table closes. */
static void retire(at_plan_entry *entry, at_plan *plan) {
  if (!plan) return;
  assert(!is_retired(entry, plan));
  plan->next_retired = entry->retired;
  entry->retired = plan;
}

static bool is_same(const at_plan *a, const at_plan *b) {
  return a->implementation == b->implementation && strcmp(a->configuration.text, b->configuration.text) == 0;
}

/* A plan of the same configuration that was retired comes back, so that no key ever has more plans than configurations.
 * NULL: there is none. */
static at_plan *take_retired(at_plan_entry *entry, const at_plan *like) {
  for (at_plan **link = &entry->retired; *link; link = &(*link)->next_retired) {
    at_plan *plan = *link;
    if (!is_same(plan, like)) continue;
    *link = plan->next_retired;
    return plan;
  }
  return NULL;
}

/* At most half full, so that probe sequences stay short. */
static bool grow(at_plan_table *table) {
  at_plan_slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
  if (2 * (table->count + 1) <= old->mask + 1) return true;
  at_plan_slots *slots = slots_new(2 * (old->mask + 1));
  if (!slots) return false;
  for (at_plan_entry *entry = table->entries; entry; entry = entry->next) slots_add(slots, entry);
  slots->older = old;
  atomic_store_explicit(&table->slots, slots, memory_order_release);
  return true;
}

/* With its key and its decision in one piece. */
static at_plan_entry *entry_new(const at_key *key, const attune_decision *decision) {
  const size_t key_bytes = at_key_bytes(key);
  at_plan_entry *entry = calloc(1, sizeof *entry + key_bytes + at_decision_bytes(decision));
  if (!entry) return NULL;
  memcpy(entry->key, key, key_bytes);
  entry->decision = (attune_decision *)(void *)((char *)entry->key + key_bytes);
  at_decision_keep(entry->decision, decision);
  return entry;
}

static bool entry_add(at_plan_table *table, const at_key *key, uint64_t hash, at_plan *plan,
                      const attune_decision *decision) {
  assert(table->count < table->most && !entry_find(table, key, hash));
  at_plan_entry *entry = grow(table) ? entry_new(key, decision) : NULL;
  if (!entry) return false;
  entry->hash = hash;
  atomic_store_explicit(&entry->plan, plan, memory_order_relaxed);
  entry->next = table->entries;
  table->entries = entry;
  table->count++;
  at_plan_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
  assert(2 * table->count <= slots->mask + 1); /* an empty slot ends every probe */
  slots_add(slots, entry);
  return true;
}

/* The entry's plan from now on; *unused: the one of two like plans that is not needed. */
static at_plan *replace(at_plan_entry *entry, at_plan *given, const attune_decision *decision, at_plan **unused) {
  at_plan *present = atomic_load_explicit(&entry->plan, memory_order_relaxed);
  at_plan *like = present && is_same(present, given) ? present : take_retired(entry, given);
  *unused = like ? given : NULL;
  at_plan *next = like ? like : given;
  assert(!is_retired(entry, next));
  if (present != next) retire(entry, present);
  at_decision_keep_head(entry->decision, decision);
  atomic_store_explicit(&entry->plan, next, memory_order_release);
  return next;
}

/* Has the operation as many plans as it wants? False, and one more is counted, if not. */
static bool op_is_full(at_plan_table *table, const at_op *op) {
  if (!op->plans_most) return false;
  at_plan_count *count = table->counts;
  while (count && count->op != op) count = count->next;
  if (!count) {
    count = calloc(1, sizeof *count);
    if (!count) return true;
    *count = (at_plan_count){.op = op, .next = table->counts};
    table->counts = count;
  }
  if (count->count >= op->plans_most) return true;
  count->count++;
  return false;
}

/* Of a problem beyond the bound. Under the lock. */
static bool put_beyond(at_plan_table *table, const at_key *key, uint64_t hash, at_plan **plan,
                       const attune_decision *decision, bool keep, at_plan **unused) {
  if (!table->lru) table->lru = at_plan_lru_open(&table->lock, &table->others);
  if (!table->lru) return false;
  atomic_store_explicit(&table->crowded, true, memory_order_release);
  return at_plan_lru_put(table->lru, key, hash, plan, decision, keep, unused) == ATTUNE_OK;
}

const at_plan *at_plan_table_use_beyond(at_plan_table *table, const at_key *key) {
  if (AT_LIKELY(!atomic_load_explicit(&table->crowded, memory_order_acquire))) return NULL;
  const uint64_t hash = at_key_hash(key);
  pthread_mutex_lock(&table->lock);
  const at_plan *plan = at_plan_lru_retain(table->lru, key, hash);
  pthread_mutex_unlock(&table->lock);
  return plan;
}

attune_status at_plan_table_put(at_plan_table *table, const at_key *key, at_plan **plan,
                                const attune_decision *decision, bool keep) {
  const uint64_t hash = at_key_hash(key);
  at_plan *given = *plan, *unused = NULL;
  assert(given && at_key_op(key) == given->op->id);
  pthread_mutex_lock(&table->lock);
  at_plan_entry *entry = entry_find(table, key, hash);
  at_plan *present = entry ? atomic_load_explicit(&entry->plan, memory_order_relaxed) : NULL;
  bool ok = true;
  if (present && keep) {
    unused = given;
    *plan = present;
  } else if (entry) {
    *plan = replace(entry, given, decision, &unused);
  } else if (table->count >= table->most || op_is_full(table, given->op)) {
    ok = put_beyond(table, key, hash, plan, decision, keep, &unused);
  } else {
    ok = entry_add(table, key, hash, given, decision);
  }
  pthread_mutex_unlock(&table->lock);
  at_plan_destroy(ok ? unused : given);
  return ok ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for another plan");
}

bool at_plan_table_decision(at_plan_table *table, const at_key *key, attune_decision *out) {
  const uint64_t hash = at_key_hash(key);
  pthread_mutex_lock(&table->lock);
  at_plan_entry *entry = entry_find(table, key, hash);
  const bool found = entry && atomic_load_explicit(&entry->plan, memory_order_relaxed);
  if (found) at_decision_give(out, entry->decision);
  const bool beyond = !entry && table->lru && at_plan_lru_decision(table->lru, key, hash, out);
  pthread_mutex_unlock(&table->lock);
  return found || beyond;
}

int at_plan_table_each(at_plan_table *table, at_plan_table_each_fn each, void *user) {
  int stop = 0;
  pthread_mutex_lock(&table->lock);
  for (at_plan_entry *entry = table->entries; entry && !stop; entry = entry->next)
    stop = each(user, entry, atomic_load_explicit(&entry->calls, memory_order_relaxed));
  pthread_mutex_unlock(&table->lock);
  return stop;
}

void at_plan_table_note(at_plan_table *table, const at_key *key, int as, uint64_t recorded) {
  pthread_mutex_lock(&table->lock);
  at_plan_entry *entry = entry_find(table, key, at_key_hash(key));
  if (entry && !entry->as) entry->as = as;
  if (entry) entry->recorded += recorded;
  pthread_mutex_unlock(&table->lock);
}

void at_plan_table_doubt(at_plan_table *table, const at_key *key, int64_t tuned_at, const char *why) {
  pthread_mutex_lock(&table->lock);
  at_plan_entry *entry = entry_find(table, key, at_key_hash(key));
  if (entry && entry->decision->tuned_at == tuned_at) {
    entry->decision->unsure = 1;
    at_copy_text(entry->decision->note, sizeof entry->decision->note, why);
  }
  pthread_mutex_unlock(&table->lock);
}

void at_plan_table_count_anew(at_plan_table *table) {
  assert(at_is_locked(&table->lock));
  for (at_plan_entry *entry = table->entries; entry; entry = entry->next) {
    atomic_store_explicit(&entry->calls, 0, memory_order_relaxed);
    entry->recorded = 0;
  }
  atomic_store_explicit(&table->others, 0, memory_order_relaxed);
}

void at_plan_table_drop_guesses(at_plan_table *table) {
  pthread_mutex_lock(&table->lock);
  for (at_plan_entry *entry = table->entries; entry; entry = entry->next)
    if (entry->decision->source <= ATTUNE_SOURCE_NEIGHBOUR)
      retire(entry, atomic_exchange_explicit(&entry->plan, NULL, memory_order_acq_rel));
  if (table->lru) at_plan_lru_drop_hints(table->lru);
  pthread_mutex_unlock(&table->lock);
}
