/* SPDX-License-Identifier: Apache-2.0
 * plan_table.c: open addressing with linear probing. Slots go from empty to an entry once and never back; growth
 * publishes a new array of slots over the same entries. */
#include "tuning/plan_table.h"

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
  size_t i = (size_t)entry->hash & slots->mask;
  while (atomic_load_explicit(&slots->slot[i], memory_order_relaxed)) i = (i + 1) & slots->mask;
  atomic_store_explicit(&slots->slot[i], entry, memory_order_release);
}

attune_status at_plan_table_open(at_plan_table *table) {
  memset(table, 0, sizeof *table);
  at_plan_slots *slots = slots_new(FIRST_SLOTS);
  if (!slots) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the plan table");
  atomic_store(&table->slots, slots);
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
  while (table->entries) {
    at_plan_entry *entry = table->entries;
    table->entries = entry->next;
    at_plan_destroy(atomic_load(&entry->plan));
    free(entry);
  }
  for (size_t i = 0; i < table->retired_count; i++) at_plan_destroy(table->retired[i]);
  free(table->retired);
  pthread_mutex_destroy(&table->lock);
  memset(table, 0, sizeof *table);
}

static at_plan_entry *entry_find(at_plan_table *table, const at_key *key, uint64_t hash) {
  at_plan_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
  for (size_t i = (size_t)hash & slots->mask;; i = (i + 1) & slots->mask) {
    at_plan_entry *entry = atomic_load_explicit(&slots->slot[i], memory_order_acquire);
    if (!entry || (entry->hash == hash && memcmp(&entry->key, key, sizeof *key) == 0)) return entry;
  }
}

/* Keeps a plan that readers may still run until the table closes. Room is made before anything is replaced. */
static bool retire_room(at_plan_table *table, size_t more) {
  const size_t need = table->retired_count + more;
  if (need <= table->retired_room) return true;
  const size_t room = need < 16 ? 16 : 2 * need;
  at_plan **retired = realloc(table->retired, room * sizeof *retired);
  if (!retired) return false;
  table->retired = retired;
  table->retired_room = room;
  return true;
}

static void retire(at_plan_table *table, at_plan *plan) {
  if (plan) table->retired[table->retired_count++] = plan;
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

static bool entry_add(at_plan_table *table, const at_key *key, uint64_t hash, at_plan *plan,
                      const attune_decision *decision) {
  at_plan_entry *entry = grow(table) ? calloc(1, sizeof *entry) : NULL;
  if (!entry) return false;
  entry->key = *key;
  entry->hash = hash;
  entry->decision = *decision;
  atomic_store_explicit(&entry->plan, plan, memory_order_relaxed);
  entry->next = table->entries;
  table->entries = entry;
  table->count++;
  slots_add(atomic_load_explicit(&table->slots, memory_order_relaxed), entry);
  return true;
}

attune_status at_plan_table_put(at_plan_table *table, const at_key *key, at_plan **plan,
                                const attune_decision *decision, bool keep) {
  const uint64_t hash = XXH3_64bits(key, sizeof *key);
  at_plan *given = *plan, *unused = NULL;
  pthread_mutex_lock(&table->lock);
  at_plan_entry *entry = entry_find(table, key, hash);
  at_plan *present = entry ? atomic_load_explicit(&entry->plan, memory_order_relaxed) : NULL;
  bool ok = true;
  if (present && keep) {
    unused = given;
    *plan = present;
  } else if (entry) {
    ok = retire_room(table, 1);
    if (ok) {
      retire(table, present);
      entry->decision = *decision;
      atomic_store_explicit(&entry->plan, given, memory_order_release);
    }
  } else {
    ok = entry_add(table, key, hash, given, decision);
  }
  pthread_mutex_unlock(&table->lock);
  at_plan_destroy(ok ? unused : given);
  return ok ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for another plan");
}

bool at_plan_table_decision(at_plan_table *table, const at_key *key, attune_decision *out) {
  const uint64_t hash = XXH3_64bits(key, sizeof *key);
  pthread_mutex_lock(&table->lock);
  at_plan_entry *entry = entry_find(table, key, hash);
  const bool found = entry && atomic_load_explicit(&entry->plan, memory_order_relaxed);
  if (found) *out = entry->decision;
  pthread_mutex_unlock(&table->lock);
  return found;
}

int at_plan_table_each(at_plan_table *table, at_plan_table_each_fn each, void *user) {
  int stop = 0;
  pthread_mutex_lock(&table->lock);
  for (const at_plan_entry *entry = table->entries; entry && !stop; entry = entry->next)
    stop = each(user, &entry->key, &entry->decision, atomic_load_explicit(&entry->calls, memory_order_relaxed));
  pthread_mutex_unlock(&table->lock);
  return stop;
}

void at_plan_table_drop_guesses(at_plan_table *table) {
  pthread_mutex_lock(&table->lock);
  if (retire_room(table, table->count))
    for (at_plan_entry *entry = table->entries; entry; entry = entry->next)
      if (entry->decision.source <= ATTUNE_SOURCE_NEIGHBOUR)
        retire(table, atomic_exchange_explicit(&entry->plan, NULL, memory_order_acq_rel));
  pthread_mutex_unlock(&table->lock);
}
