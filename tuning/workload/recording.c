/* SPDX-License-Identifier: Apache-2.0
 * recording.c: see recording.h. A flush claims calls under the table's lock by adding them to `recorded`, so that two
 * flushes never write the same ones, and gives them back if it could not write them. */
#include "tuning/workload/recording.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/array.h"
#include "tuning/plans/call_cache.h"

enum { WAIT_MS = 200, FIRST_WAIT_MS = 50 };
static const int64_t EVERY_NS = 2000000000;

typedef struct claim {
  at_plan_entry *entry; /* lives as long as the table */
  uint64_t calls;
  int device;
} claim;

typedef struct claims {
  claim *items;
  size_t count, room;
} claims;

static int forgive(void *user, at_plan_entry *entry, uint64_t calls) {
  (void)user;
  entry->recorded = calls;
  return 0;
}

void at_recording_begin(attune_tuner *tuner) {
  at_call_cache_collect(tuner->id);
  (void)at_plan_table_each(&tuner->plans, forgive, NULL);
  (void)at_plan_table_each(&tuner->captured, forgive, NULL);
  atomic_store(&tuner->flushed_ns, at_now_ns());
}

/* Under the table's lock. Without memory the rest waits for the next flush. */
static int add_claim(void *user, at_plan_entry *entry, uint64_t calls) {
  claims *all = user;
  if (calls <= entry->recorded) return 0; /* less: the first call is recorded before it is counted */
  if (!AT_ARRAY_ROOM(all->items, all->count, all->room)) return 1;
  claim *c = &all->items[all->count++];
  c->entry = entry;
  c->calls = calls - entry->recorded;
  c->device = at_key_device(at_plan_entry_key(entry));
  entry->recorded = calls;
  return 0;
}

/* A first call may be recorded at the guess that was made while a database was busy, and then be counted at the plan
 * that another thread had decided on: what is recorded too much there is moved here. One a call. */
static int find_debt(void *user, at_plan_entry *entry, uint64_t calls) {
  at_plan_entry **found = user;
  if (entry->recorded <= calls) return 0;
  *found = entry;
  return 1;
}

static void move_debts(attune_tuner *tuner) {
  at_plan_entry *entry = NULL;
  while (at_plan_table_each(&tuner->captured, find_debt, &entry)) {
    if (!at_plan_table_entry(&tuner->plans, at_plan_entry_key(entry))) return;
    pthread_mutex_lock(&tuner->captured.lock);
    const uint64_t calls = atomic_load_explicit(&entry->calls, memory_order_relaxed);
    const uint64_t debt = entry->recorded > calls ? entry->recorded - calls : 0;
    entry->recorded -= debt;
    pthread_mutex_unlock(&tuner->captured.lock);
    at_plan_table_note(&tuner->plans, at_plan_entry_key(entry), 0, debt);
  }
}

static attune_status write_claims(attune_tuner *tuner, const claims *all) {
  at_record *records = malloc(all->count * sizeof *records);
  size_t count = 0;
  if (!records) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for %zu problems", all->count);
  for (size_t i = 0; i < all->count; i++) {
    const claim *c = &all->items[i];
    const char *fingerprint = at_tuner_fingerprint_known(tuner, c->device);
    if (fingerprint) records[count++] = (at_record){fingerprint, c->entry->decision->problem, (int64_t)c->calls};
  }
  const attune_status status = at_store_record_all(tuner->user, records, count, WAIT_MS);
  free(records);
  return status;
}

static void give_back_calls(at_plan_table *table, const claims *all, size_t from, size_t to) {
  pthread_mutex_lock(&table->lock);
  for (size_t i = from; i < to; i++) all->items[i].entry->recorded -= all->items[i].calls;
  pthread_mutex_unlock(&table->lock);
}

static void flush(attune_tuner *tuner, bool last) {
  claims all = {NULL, 0, 0};
  if (!tuner->user) return;
  at_call_cache_collect(tuner->id);
  move_debts(tuner);
  (void)at_plan_table_each(&tuner->plans, add_claim, &all);
  const size_t kept = all.count;
  (void)at_plan_table_each(&tuner->captured, add_claim, &all);
  atomic_store(&tuner->flushed_ns, at_now_ns());
  const attune_status status = all.count ? write_claims(tuner, &all) : ATTUNE_OK;
  if (status != ATTUNE_OK) {
    give_back_calls(&tuner->plans, &all, 0, kept);
    give_back_calls(&tuner->captured, &all, kept, all.count);
    if (status != ATTUNE_BUSY) at_tuner_database_is(tuner, status);
    const bool lost = last && tuner->unwritable == ATTUNE_OK; /* else that was reported when it was opened */
    const attune_log_level level = lost ? ATTUNE_LOG_ERROR : at_tuner_loss_level(tuner, status);
    at_log(level, "the calls of %zu problem%s are not recorded%s: %s", all.count, all.count == 1 ? "" : "s",
           last ? "" : " yet", attune_last_message());
  } else if (all.count) {
    at_tuner_database_is(tuner, ATTUNE_OK);
  }
  free(all.items);
}

void at_recording_flush(attune_tuner *tuner) {
  flush(tuner, false);
}

void at_recording_flush_last(attune_tuner *tuner) {
  flush(tuner, true);
}

void at_recording_flush_sometimes(attune_tuner *tuner) {
  const int64_t now = at_now_ns();
  int64_t before = atomic_load(&tuner->flushed_ns);
  if (now - before >= EVERY_NS && atomic_compare_exchange_strong(&tuner->flushed_ns, &before, now))
    at_recording_flush(tuner);
}

bool at_recording_first(attune_tuner *tuner, attune_device *device, const char *problem) {
  const char *fingerprint = NULL;
  if (!tuner->user || at_tuner_fingerprint(tuner, device, &fingerprint) != ATTUNE_OK) return false;
  const attune_status status = at_store_record(tuner->user, fingerprint, problem, 1, FIRST_WAIT_MS);
  if (status == ATTUNE_OK) return true;
  if (status != ATTUNE_BUSY) at_tuner_database_is(tuner, status);
  at_log(at_tuner_loss_level(tuner, status), "%s is not recorded yet: %s", problem, attune_last_message());
  return false;
}
