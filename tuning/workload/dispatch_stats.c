/* SPDX-License-Identifier: Apache-2.0
 * dispatch_stats.c: see dispatch_stats.h. Entries are copied under the table's lock and looked into afterwards. */
#include "tuning/workload/dispatch_stats.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/struct_size.h"
#include "src/process/exit.h"
#include "tuning/plans/call_cache.h"
#include "tuning/store/decision.h"

typedef struct collection {
  at_dispatch_stats *usage;
  size_t room;
} collection;

/* Under the table's lock. Entries that came since the room was made come first; the oldest are then left to others. */
static int copy_entry(void *user, at_plan_entry *entry, uint64_t calls) {
  collection *c = user;
  if (calls == 0) return 0;
  const at_key *key = at_plan_entry_key(entry);
  const size_t key_bytes = at_key_bytes(key);
  char *both = c->usage->count < c->room ? malloc(key_bytes + at_decision_bytes(entry->decision)) : NULL;
  if (!both) {
    c->usage->totals.other_calls += calls;
    return 0;
  }
  at_dispatch_stats_item *item = &c->usage->items[c->usage->count++];
  *item = (at_dispatch_stats_item){.entry = {.calls = calls}, .as = entry->as};
  item->key = memcpy(both, key, key_bytes);
  item->decision = (attune_decision *)(void *)(both + key_bytes);
  at_decision_keep(item->decision, entry->decision);
  return 0;
}

static size_t entries_of(at_plan_table *table) {
  pthread_mutex_lock(&table->lock);
  const size_t count = table->count;
  pthread_mutex_unlock(&table->lock);
  return count;
}

/* The device's fingerprint; while the process ends only one that is known: a new one may open libraries. */
static const char *fingerprint_of(attune_tuner *tuner, int device_index) {
  const char *fingerprint = at_tuner_fingerprint_known(tuner, device_index);
  attune_device *device = NULL;
  if (fingerprint || at_exit_begun()) return fingerprint;
  const at_message kept = at_message_keep();
  if (attune_device_at(&device, device_index) != ATTUNE_OK ||
      at_tuner_fingerprint(tuner, device, &fingerprint) != ATTUNE_OK)
    fingerprint = NULL;
  (void)at_message_settle(&kept, ATTUNE_OK);
  return fingerprint;
}

/* Where the default runs although a winner is stored (mode off): what is known of both. */
static void look_up(attune_tuner *tuner, at_dispatch_stats_item *item) {
  attune_decision *d = item->decision, row;
  const char *fingerprint = fingerprint_of(tuner, at_key_device(item->key));
  at_store *const stores[] = {tuner->user, tuner->system};
  for (size_t i = 0; i < AT_COUNT(stores) && fingerprint; i++) {
    if (!stores[i] || at_store_find(stores[i], fingerprint, d->problem, d->measure, &row) != ATTUNE_OK) continue;
    item->stored = attune_tuner_get_mode(tuner) == ATTUNE_MODE_OFF; /* else it does not hold here: it would run */
    if (d->source != ATTUNE_SOURCE_DEFAULT || !at_decision_default_is(&row, d->implementation)) return;
    d->default_time_ns = d->time_ns = row.default_time_ns;
    if (row.default_time_ns > 0.0)
      item->entry.worth_ns = (row.default_time_ns - row.time_ns) * (double)item->entry.calls;
    return;
  }
}

static void estimate(attune_tuner *tuner, at_dispatch_stats_item *item) {
  attune_profile_entry *e = &item->entry;
  const attune_decision *d = item->decision;
  const at_op *op = at_tuner_op_of(tuner, item->key);
  const void *problem = at_key_problem(item->key);
  char text[AT_PROBLEM_CHARS];
  e->untuned = d->source <= ATTUNE_SOURCE_NEIGHBOUR;
  if (e->untuned) look_up(tuner, item);
  e->time_ns = d->time_ns * (double)e->calls;
  if (!e->untuned && d->time_ns > 0.0 && d->default_time_ns > 0.0)
    e->saved_ns = (d->default_time_ns - d->time_ns) * (double)e->calls;
  e->flops = op ? op->problem->flops(problem) : 0.0;
  if (op && op->problem->show && op->problem->show(problem, item->as, text, sizeof text) == ATTUNE_OK &&
      strcmp(text, d->problem) != 0)
    item->problem = strdup(text);
}

static void add_up(attune_profile_totals *t, const attune_profile_entry *e) {
  t->calls += e->calls;
  if (e->untuned) t->untuned_calls += e->calls;
  if (!(e->time_ns > 0.0)) t->unknown_calls += e->calls;
  t->time_ns += e->time_ns;
  t->saved_ns += e->saved_ns;
  t->worth_ns += e->worth_ns;
}

static int greater_first(double a, double b) {
  return (a < b) - (a > b);
}

static int order(const void *left, const void *right) {
  const at_dispatch_stats_item *a = left, *b = right;
  int result = greater_first(a->entry.time_ns, b->entry.time_ns);
  if (!result) result = greater_first((double)a->entry.calls * a->entry.flops, (double)b->entry.calls * b->entry.flops);
  if (!result) result = greater_first((double)a->entry.calls, (double)b->entry.calls);
  return result ? result : strcmp(a->decision->problem, b->decision->problem);
}

attune_status at_dispatch_stats_take(at_dispatch_stats *out, attune_tuner *tuner) {
  enum { SLACK = 64 };
  *out = (at_dispatch_stats){0};
  collection c = {out, entries_of(&tuner->plans) + entries_of(&tuner->captured) + SLACK};
  out->items = malloc(c.room * sizeof *out->items);
  if (!out->items) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for the profile of %zu problems", c.room);
  at_call_cache_collect(tuner->id);
  (void)at_plan_table_each(&tuner->plans, copy_entry, &c);
  (void)at_plan_table_each(&tuner->captured, copy_entry, &c);
  attune_profile_totals *t = &out->totals;
  t->other_calls += atomic_load(&tuner->plans.others) + atomic_load(&tuner->captured.others);
  t->calls = t->other_calls;
  for (size_t i = 0; i < out->count; i++) estimate(tuner, &out->items[i]);
  for (size_t i = 0; i < out->count; i++) add_up(t, &out->items[i].entry);
  qsort(out->items, out->count, sizeof *out->items, order);
  for (size_t i = 0; i < out->count; i++) {
    at_dispatch_stats_item *item = &out->items[i];
    item->entry.problem = item->problem ? item->problem : item->decision->problem;
    item->entry.decision = item->decision;
    item->entry.share = t->time_ns > 0.0 ? item->entry.time_ns / t->time_ns : 0.0;
  }
  return ATTUNE_OK;
}

void at_dispatch_stats_free(at_dispatch_stats *usage) {
  for (size_t i = 0; i < usage->count; i++) {
    free(usage->items[i].key);
    free(usage->items[i].problem);
  }
  free(usage->items);
}

/* Callers are given whole decisions. */
static attune_status tell(const at_dispatch_stats *usage, attune_profile_fn fn, void *user) {
  attune_decision *decision = calloc(1, sizeof *decision);
  if (!decision) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a decision");
  for (size_t i = 0; i < usage->count; i++) {
    attune_profile_entry entry = usage->items[i].entry;
    at_decision_give(decision, entry.decision);
    entry.decision = decision;
    if (fn(user, &entry) != 0) break;
  }
  free(decision);
  return ATTUNE_OK;
}

attune_status attune_tuner_profile(attune_tuner *tuner, attune_profile_fn fn, void *user,
                                   attune_profile_totals *out_totals) {
  AT_REQUIRE_AS(tuner, "be a tuner from attune_tuner_create");
  at_tuner_open(tuner);
  at_dispatch_stats usage;
  const at_message kept = at_message_keep();
  attune_status status = at_message_settle(&kept, at_dispatch_stats_take(&usage, tuner));
  if (status != ATTUNE_OK) return status;
  if (out_totals) status = AT_GIVE(out_totals, &usage.totals);
  if (fn && status == ATTUNE_OK) status = tell(&usage, fn, user);
  at_dispatch_stats_free(&usage);
  return status;
}
