/* SPDX-License-Identifier: Apache-2.0
 * store_walk.c: walks over winners and recorded problems. Rows are read in batches and handed out with no lock
 * held; a walk goes on after the last key it gave, so writers may come in between, and keys only ever rise, so it
 * ends in a damaged tree too. */
#include "tuning/store_internal.h"

#include <stdlib.h>
#include <string.h>

#define WALK_BATCH 32

typedef struct walk_row {
  char fingerprint[AT_FINGERPRINT_CHARS];
  int64_t id; /* of the fingerprint */
  attune_decision decision;
} walk_row;

typedef struct walk {
  at_statement which;
  const char *fingerprint; /* these three: of AT_SQL_WALK_FAMILY only */
  const char *family;
  const char *measure;
  walk_row last; /* what was given last; begins empty, before every key */
  int count;
  bool more;
  walk_row rows[WALK_BATCH];
} walk;

static bool rises(const walk_row *from, const walk_row *to) {
  int order = strcmp(from->decision.problem, to->decision.problem);
  if (order == 0) order = (from->id > to->id) - (from->id < to->id);
  if (order == 0) order = strcmp(from->decision.measure, to->decision.measure);
  return order < 0;
}

static int bind_walk(sqlite3_stmt *statement, const walk *w) {
  int code = sqlite3_bind_text(statement, 1, w->last.decision.problem, -1, SQLITE_STATIC);
  if (w->which == AT_SQL_WALK) {
    if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 2, w->last.id);
    if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 3, w->last.decision.measure, -1, SQLITE_STATIC);
    return code;
  }
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 4, w->fingerprint, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 5, w->family, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 6, w->measure, -1, SQLITE_STATIC);
  return code;
}

/* Up to WALK_BATCH sound rows after w->last. */
static int read_batch(at_store *store, void *user) {
  walk *w = user;
  sqlite3_stmt *statement;
  w->count = 0;
  w->more = false;
  int code = at_store_statement(store, w->which, &statement);
  if (code == SQLITE_OK) code = bind_walk(statement, w);
  if (code != SQLITE_OK) return code;
  const walk_row *last = &w->last;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    walk_row *row = &w->rows[w->count];
    if (!at_store_row_read(statement, row->fingerprint, &row->decision)) continue;
    row->id = sqlite3_column_int64(statement, sqlite3_column_count(statement) - 1);
    if (!rises(last, row)) continue;
    last = row;
    w->more = ++w->count == WALK_BATCH;
    if (w->more) break;
  }
  return at_store_step_end(statement, code);
}

static attune_status run_walk(at_store *store, walk *w, at_store_winner_fn fn, void *user) {
  const at_store_job job = {false, read_batch, NULL, w};
  attune_status status = ATTUNE_OK;
  do {
    status = at_store_run(store, &job, at_store_deadline(20 * AT_STORE_READ_WAIT_MS));
    /* What was read before SQLite met damage is sound: each row carries its hash. */
    int count = status == ATTUNE_OK || status == ATTUNE_BAD_DATA ? w->count : 0;
    for (int i = 0; i < count; i++) {
      if (fn(user, w->rows[i].fingerprint, &w->rows[i].decision) != 0) return ATTUNE_OK;
    }
    if (count > 0) w->last = w->rows[count - 1];
  } while (status == ATTUNE_OK && w->more);
  return status;
}

static attune_status walk_winners(at_store *store, at_statement which, const char *fingerprint, const char *family,
                                  const char *measure, at_store_winner_fn fn, void *user) {
  if (at_store_forked(store)) return at_store_fail_forked(store);
  walk *w = calloc(1, sizeof *w);
  if (!w) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to read %s", store->path);
  w->which = which;
  w->fingerprint = fingerprint;
  w->family = family;
  w->measure = measure;
  attune_status status = run_walk(store, w, fn, user);
  free(w);
  return status;
}

attune_status at_store_each_winner(at_store *store, at_store_winner_fn fn, void *user) {
  if (!store || !fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL", store ? "fn" : "store");
  return walk_winners(store, AT_SQL_WALK, NULL, NULL, NULL, fn, user);
}

/* The walk over all, from the problem's first row on, until another problem comes. */
typedef struct problem_walk {
  const char *problem;
  at_store_winner_fn fn;
  void *user;
} problem_walk;

static int give_of_problem(void *user, const char *fingerprint, const attune_decision *decision) {
  const problem_walk *of = user;
  return strcmp(decision->problem, of->problem) != 0 || of->fn(of->user, fingerprint, decision) != 0;
}

attune_status at_store_each_of_problem(at_store *store, const char *problem, at_store_winner_fn fn, void *user) {
  if (!store || !problem || !fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "store, problem or fn is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  walk *w = calloc(1, sizeof *w);
  if (!w) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to read %s", store->path);
  problem_walk of = {problem, fn, user};
  w->which = AT_SQL_WALK;
  w->last.id = INT64_MIN; /* before every row of the problem */
  (void)at_copy_text(w->last.decision.problem, sizeof w->last.decision.problem, problem);
  const attune_status status = run_walk(store, w, give_of_problem, &of);
  free(w);
  return status;
}

attune_status at_store_each_of_family(at_store *store, const char *fingerprint, const char *family, const char *measure,
                                      at_store_winner_fn fn, void *user) {
  if (!store || !fingerprint || !family || !measure || !fn) {
    return at_fail(ATTUNE_INVALID_ARGUMENT, "store, fingerprint, family, measure or fn is NULL");
  }
  return walk_winners(store, AT_SQL_WALK_FAMILY, fingerprint, family, measure, fn, user);
}

/* --- the recorded workload, most called first --- */

typedef struct recorded {
  int64_t count;
  char problem[AT_PROBLEM_CHARS];
} recorded;

typedef struct recorded_list {
  const char *fingerprint;
  recorded *items;
  size_t count;
  size_t room;
} recorded_list;

static bool grow(recorded_list *list) {
  if (list->count < list->room) return true;
  size_t room = list->room ? 2 * list->room : 64;
  recorded *items = realloc(list->items, room * sizeof *items);
  if (!items) return false;
  list->items = items;
  list->room = room;
  return true;
}

/* Reads all at once: their order changes while others count. */
static int read_recorded(at_store *store, void *user) {
  recorded_list *list = user;
  sqlite3_stmt *statement;
  list->count = 0;
  int code = at_store_statement(store, AT_SQL_RECORDED, &statement);
  if (code == SQLITE_OK) code = sqlite3_bind_text(statement, 1, list->fingerprint, -1, SQLITE_STATIC);
  if (code != SQLITE_OK) return code;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    if (!grow(list)) {
      (void)sqlite3_reset(statement);
      return SQLITE_NOMEM;
    }
    recorded *item = &list->items[list->count];
    item->count = sqlite3_column_int64(statement, 1);
    bool sound = sqlite3_column_type(statement, 1) == SQLITE_INTEGER && item->count > 0;
    if (sound && at_store_column_text(statement, 0, item->problem, sizeof item->problem, false)) list->count++;
  }
  return at_store_step_end(statement, code);
}

attune_status at_store_each_recorded(at_store *store, const char *fingerprint, at_store_recorded_fn fn, void *user) {
  if (!store || !fingerprint || !fn) return at_fail(ATTUNE_INVALID_ARGUMENT, "store, fingerprint or fn is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  recorded_list list = {fingerprint, NULL, 0, 0};
  const at_store_job job = {false, read_recorded, NULL, &list};
  attune_status status = at_store_run(store, &job, at_store_deadline(20 * AT_STORE_READ_WAIT_MS));
  for (size_t i = 0; i < list.count && status == ATTUNE_OK; i++) {
    if (fn(user, list.items[i].problem, list.items[i].count) != 0) break;
  }
  free(list.items);
  return status;
}
