/* SPDX-License-Identifier: Apache-2.0
 * store_walk.c: walks over winners, and finding one. Rows are read in batches and handed out with no lock
 * held; a walk goes on after the last key it gave, so writers may come in between, and keys only ever rise, so it
 * ends in a damaged tree too. */
#include "tuning/store/store_internal.h"

#include "tuning/store/decision.h"

#include <stdlib.h>
#include <string.h>

#define WALK_BATCH 32
#define KEY_BATCH 4

typedef struct walk {
  at_statement which;
  const char *fingerprint; /* its device's part, these four: where the statement wants them */
  const char *family;
  const char *measure;
  const char *problem;
  int64_t wait_ms;
  at_stored_row last; /* what was given last; begins empty, before every key */
  int room, count;
  bool more;
  at_stored_row rows[];
} walk;

static walk *new_walk(const at_store *store, at_statement which, int room) {
  walk *w = calloc(1, sizeof *w + (size_t)room * sizeof *w->rows);
  if (!w) (void)at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to read %s", store->path);
  if (!w) return NULL;
  w->which = which;
  w->room = room;
  w->wait_ms = (int64_t)20 * AT_STORE_READ_WAIT_MS;
  return w;
}

static bool rises(const at_stored_row *from, const at_stored_row *to) {
  int order = strcmp(from->decision.problem, to->decision.problem);
  if (order == 0) order = (from->fingerprint_id > to->fingerprint_id) - (from->fingerprint_id < to->fingerprint_id);
  if (order == 0) order = strcmp(from->decision.measure, to->decision.measure);
  if (order == 0)
    order = (from->implementations_id > to->implementations_id) - (from->implementations_id < to->implementations_id);
  return order < 0;
}

static int bind_text(sqlite3_stmt *statement, int index, const char *text) {
  return text ? sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC) : SQLITE_OK;
}

/* Places of the statements, up to the last that this one has; see store_statements.c. */
static int bind_walk(sqlite3_stmt *statement, const walk *w) {
  const int places = sqlite3_bind_parameter_count(statement);
  int code = bind_text(statement, 1, w->last.decision.problem);
  if (code == SQLITE_OK) code = sqlite3_bind_int64(statement, 2, w->last.fingerprint_id);
  if (code == SQLITE_OK && places >= 3) code = bind_text(statement, 3, w->last.decision.measure);
  if (code == SQLITE_OK && places >= 4) code = sqlite3_bind_int64(statement, 4, w->last.implementations_id);
  if (code == SQLITE_OK && places >= 5) code = at_store_bind_device(statement, 5, w->fingerprint);
  if (code == SQLITE_OK && places >= 6) code = bind_text(statement, 6, w->family);
  if (code == SQLITE_OK && places >= 7) code = bind_text(statement, 7, w->measure);
  if (code == SQLITE_OK && places >= 8) code = bind_text(statement, 8, w->problem);
  return code;
}

/* Up to w->room sound rows after w->last. */
static int read_batch(at_store *store, void *user) {
  walk *w = user;
  sqlite3_stmt *statement;
  w->count = 0;
  w->more = false;
  int code = at_store_statement(store, w->which, &statement);
  if (code == SQLITE_OK) code = bind_walk(statement, w);
  if (code != SQLITE_OK) return code;
  const at_stored_row *last = &w->last;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    at_stored_row *row = &w->rows[w->count];
    if (!at_store_row_read(statement, row)) {
      store->false_row = true;
      continue;
    }
    if (!rises(last, row)) continue;
    last = row;
    w->more = ++w->count == w->room;
    if (w->more) break;
  }
  return at_store_step_end(statement, code);
}

/* Frees the walk. */
static attune_status run_walk(at_store *store, walk *w, at_store_winner_fn fn, void *user) {
  const at_store_job job = {false, read_batch, NULL, w};
  attune_status status = ATTUNE_OK;
  bool ended = false;
  do {
    status = at_store_run(store, &job, at_store_deadline(w->wait_ms));
    /* Rows read before SQLite found damage are sound: each carries its hash. */
    int count = status == ATTUNE_OK || status == ATTUNE_BAD_DATA ? w->count : 0;
    for (int i = 0; i < count && !ended; i++) ended = fn(user, w->rows[i].fingerprint, &w->rows[i].decision) != 0;
    if (count > 0) w->last = w->rows[count - 1];
  } while (status == ATTUNE_OK && w->more && !ended);
  free(w);
  return ended ? ATTUNE_OK : status;
}

attune_status at_store_each_winner(at_store *store, at_store_winner_fn fn, void *user) {
  AT_REQUIRE(store, fn);
  if (at_store_forked(store)) return at_store_fail_forked(store);
  walk *w = new_walk(store, AT_SQL_WALK, WALK_BATCH);
  return w ? run_walk(store, w, fn, user) : ATTUNE_OUT_OF_MEMORY;
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
  if (!store || !problem || !fn) return AT_INVALID("store, problem or fn is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  walk *w = new_walk(store, AT_SQL_WALK, WALK_BATCH);
  if (!w) return ATTUNE_OUT_OF_MEMORY;
  problem_walk of = {problem, fn, user};
  w->last.fingerprint_id = INT64_MIN; /* before every row of the problem */
  (void)at_copy_text(w->last.decision.problem, sizeof w->last.decision.problem, problem);
  return run_walk(store, w, give_of_problem, &of);
}

attune_status at_store_each_of_family(at_store *store, const char *fingerprint, const char *family, const char *measure,
                                      at_store_winner_fn fn, void *user) {
  if (!store || !fingerprint || !family || !measure || !fn)
    return AT_INVALID("store, fingerprint, family, measure or fn is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  walk *w = new_walk(store, AT_SQL_WALK_FAMILY, WALK_BATCH);
  if (!w) return ATTUNE_OUT_OF_MEMORY;
  w->fingerprint = fingerprint;
  w->family = family;
  w->measure = measure;
  return run_walk(store, w, fn, user);
}

/* --- one key --- */

/* A winner that waits to be written. */
typedef struct waiting {
  struct waiting *next;
  attune_decision decision;
  char fingerprint[AT_FINGERPRINT_CHARS];
} waiting;

typedef struct key_walk {
  const char *fingerprint, *problem, *measure;
  waiting *first; /* what is in the database of the same fingerprint is older */
  at_store_winner_fn fn;
  void *user;
  bool ended;
} key_walk;

static bool same_device(const char *one, const char *other) {
  const size_t chars = at_fingerprint_device_chars(one);
  return chars == at_fingerprint_device_chars(other) && memcmp(one, other, chars) == 0;
}

/* Copies, the latest first. False: no memory. */
static bool list_waiting(at_store *store, key_walk *of) {
  bool ok = true;
  pthread_mutex_lock(&store->queue_lock);
  const uint64_t key = store->first ? at_store_row_key(of->fingerprint, of->problem, of->measure) : 0;
  for (const at_store_row *row = store->first; row && ok; row = row->next) {
    if (row->key != key || !same_device(row->fingerprint, of->fingerprint) ||
        strcmp(row->winner->problem, of->problem) != 0 || strcmp(row->winner->measure, of->measure) != 0)
      continue;
    waiting *one = malloc(sizeof *one);
    ok = one != NULL;
    if (!ok) break;
    one->next = of->first;
    at_decision_give(&one->decision, row->winner);
    (void)at_copy_text(one->fingerprint, sizeof one->fingerprint, row->fingerprint);
    of->first = one;
  }
  pthread_mutex_unlock(&store->queue_lock);
  return ok;
}

/* Is it among those from `from` up to `to`? */
static bool listed(const waiting *from, const waiting *to, const char *fingerprint) {
  for (; from != to; from = from->next)
    if (strcmp(from->fingerprint, fingerprint) == 0) return true;
  return false;
}

/* Compared again, because a damaged index may lead to another row than the one asked for. */
static int give_of_key(void *user, const char *fingerprint, const attune_decision *decision) {
  key_walk *of = user;
  if (strcmp(decision->problem, of->problem) != 0 || strcmp(decision->measure, of->measure) != 0 ||
      !same_device(fingerprint, of->fingerprint) || listed(of->first, NULL, fingerprint))
    return 0;
  of->ended = of->fn(of->user, fingerprint, decision) != 0;
  return of->ended;
}

static attune_status walk_key(at_store *store, key_walk *of) {
  walk *w = new_walk(store, AT_SQL_WALK_KEY, KEY_BATCH);
  if (!w) return ATTUNE_OUT_OF_MEMORY;
  w->fingerprint = of->fingerprint;
  w->measure = of->measure;
  w->problem = of->problem;
  w->wait_ms = AT_STORE_READ_WAIT_MS;
  w->last.fingerprint_id = w->last.implementations_id = INT64_MIN;
  (void)at_copy_text(w->last.decision.problem, sizeof w->last.decision.problem, of->problem);
  return run_walk(store, w, give_of_key, of);
}

attune_status at_store_each_of_key(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                                   at_store_winner_fn fn, void *user) {
  if (!store || !fingerprint || !problem || !measure || !fn)
    return AT_INVALID("store, fingerprint, problem, measure or fn is NULL");
  if (at_store_forked(store)) return at_store_fail_forked(store);
  key_walk of = {.fingerprint = fingerprint, .problem = problem, .measure = measure, .fn = fn, .user = user};
  attune_status status =
      list_waiting(store, &of) ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory to read %s", store->path);
  const waiting *first = of.first;
  for (const waiting *one = first; one && !of.ended && status == ATTUNE_OK; one = one->next)
    if (!listed(first, one, one->fingerprint)) of.ended = fn(user, one->fingerprint, &one->decision) != 0;
  if (status == ATTUNE_OK && !of.ended) {
    status = walk_key(store, &of);
    if (first) status = ATTUNE_OK; /* there is one, whatever became of the others */
  }
  while (of.first) {
    waiting *one = of.first;
    of.first = one->next;
    free(one);
  }
  return status;
}

typedef struct find_request {
  const char *implementations; /* NULL: any */
  attune_decision *out;
  bool found;
} find_request;

static int take_latest(void *user, const char *fingerprint, const attune_decision *decision) {
  find_request *request = user;
  if (request->implementations && strcmp(at_fingerprint_implementations(fingerprint), request->implementations) != 0)
    return 0;
  if (!request->found || decision->tuned_at > request->out->tuned_at) *request->out = *decision;
  request->found = true;
  return request->implementations != NULL;
}

attune_status at_store_find(at_store *store, const char *fingerprint, const char *problem, const char *measure,
                            attune_decision *out) {
  if (!store || !fingerprint || !problem || !measure || !out)
    return AT_INVALID("store, fingerprint, problem, measure or out is NULL");
  memset(out, 0, sizeof *out);
  const char *implementations = at_fingerprint_implementations(fingerprint);
  find_request request = {*implementations ? implementations : NULL, out, false};
  attune_status status = at_store_forked(store)
                             ? ATTUNE_OK
                             : at_store_each_of_key(store, fingerprint, problem, measure, take_latest, &request);
  if (request.found) return ATTUNE_OK;
  memset(out, 0, sizeof *out);
  if (status != ATTUNE_OK && status != ATTUNE_BAD_DATA) return status;
  char shown[AT_SHOWN_CHARS];
  return at_fail(ATTUNE_NOT_FOUND, "%s has no usable winner of '%s', %s", store->path, at_shown(shown, problem),
                 measure);
}
