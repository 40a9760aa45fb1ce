/* SPDX-License-Identifier: Apache-2.0
 * tuner_create.c: makes a tuner of options, environment and databases; what begins and ends with it and with its
 * mode. */
#include "tuning/tuner/tuner.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/base/settings.h"
#include "src/base/struct_size.h"
#include "src/process/cancel.h"
#include "src/process/exit.h"
#include "src/process/fork.h"
#include "tuning/compile/deferred_decision.h"
#include "tuning/plans/call_cache.h"
#include "tuning/workload/dispatch_stats.h"
#include "tuning/workload/recording.h"

/* ---- all tuners of the process ----
 * The end of the process finds those that live, and writes what is written when a tuner ends: the recorded calls and
 * the profile. The list's lock is a leaf, held for a moment: the end of the process marks the tuner that it is at, and
 * a thread that destroys that one waits. */

static pthread_once_t list_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and `ending` of each */
static attune_tuner *list;

static void finish(attune_tuner *tuner) {
  const at_message kept = at_message_keep();
  if (atomic_load(&tuner->mode) == ATTUNE_MODE_RECORD) at_recording_flush_last(tuner);
  at_profile_end(tuner);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

/* The tuner with the least number above `above`, marked; NULL: none. */
static attune_tuner *take_next(uint64_t above) {
  attune_tuner *next = NULL;
  pthread_mutex_lock(&list_lock);
  for (attune_tuner *tuner = list; tuner; tuner = tuner->next)
    if (tuner->id > above && (!next || tuner->id < next->id)) next = tuner;
  if (next) next->ending = true;
  pthread_mutex_unlock(&list_lock);
  return next;
}

static void finish_all(void) {
  uint64_t above = 0;
  for (attune_tuner *tuner; (tuner = take_next(above)) != NULL;) {
    finish(tuner);
    above = tuner->id;
    pthread_mutex_lock(&list_lock);
    tuner->ending = false;
    pthread_mutex_unlock(&list_lock);
  }
}

/* The thread that was at a tuner's end is not in the child. */
static void clear_ending(void *unused, bool child) {
  (void)unused;
  for (attune_tuner *tuner = list; child && tuner; tuner = tuner->next) tuner->ending = false;
}

static void start_list(void) {
  static at_fork_watch watch = {.lock = &list_lock, .after = clear_ending};
  at_fork_watch_add(&watch);
  at_exit_call(finish_all);
}

static void tuners_add(attune_tuner *tuner) {
  pthread_once(&list_once, start_list);
  pthread_mutex_lock(&list_lock);
  tuner->previous = NULL;
  tuner->next = list;
  if (list) list->previous = tuner;
  list = tuner;
  pthread_mutex_unlock(&list_lock);
}

static bool unlink_tuner(attune_tuner *tuner) {
  pthread_mutex_lock(&list_lock);
  const bool free_now = !tuner->ending;
  if (free_now) {
    if (tuner->next) tuner->next->previous = tuner->previous;
    if (tuner->previous)
      tuner->previous->next = tuner->next;
    else
      list = tuner->next;
  }
  pthread_mutex_unlock(&list_lock);
  return free_now;
}

/* Takes it out, after the end of the process is done with it, and writes what there is to write. Before anything of it
 * is freed. */
static void tuners_remove(attune_tuner *tuner) {
  while (!unlink_tuner(tuner)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  finish(tuner);
}

static bool mode_known(attune_mode mode) {
  return mode >= ATTUNE_MODE_OFF && mode <= ATTUNE_MODE_TUNE;
}

static attune_status check_options(const attune_tuner_options *o) {
  if (o->mode && !mode_known(o->mode))
    return AT_INVALID("options.mode is %d; should be off (1), cached (2), record (3), tune (4) or 0", (int)o->mode);
  if (!(o->budget_ms >= 0.0 && o->budget_ms <= 1e12))
    return AT_INVALID("options.budget_ms is %g; should be a finite number, 0 or more", o->budget_ms);
  if (!(o->total_budget_ms >= 0.0 && o->total_budget_ms <= 1e12))
    return AT_INVALID("options.total_budget_ms is %g; should be a finite number, 0 or more", o->total_budget_ms);
  if ((int)o->measure < ATTUNE_MEASURE_AUTO || o->measure > ATTUNE_MEASURE_HOT_EAGER)
    return AT_INVALID("options.measure is %d; should be 0 for the device's usual one, cold,graph (1), cold,eager (2), "
                      "hot,graph (3) or hot,eager (4)",
                      (int)o->measure);
  return ATTUNE_OK;
}

/* Where the databases are, for when they are opened. */
static attune_status note_paths(attune_tuner *t, const attune_tuner_options *o, const at_settings *s) {
  t->named = o->database || s->database_named; /* an override names it, too */
  t->user_path = strdup(o->database && !s->override_database ? o->database : s->database);
  t->system_path = strdup(o->system_database ? o->system_database : "");
  return t->user_path && t->system_path ? ATTUNE_OK : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a tuner");
}

static bool wants_user(const attune_tuner *t) {
  return !t->named || (t->user_path[0] && strcmp(t->user_path, ":memory:") != 0);
}

/* The user database: the program's, ATTUNE_DB's or the user's own. BUSY: *out is there, and connects when it can. */
static attune_status open_user(const attune_tuner *t, at_store **out) {
  if (!t->user_path[0])
    return at_fail(ATTUNE_NOT_FOUND,
                   "the tuning database has no default path, as neither XDG_DATA_HOME nor HOME is an absolute path; "
                   "name a file with ATTUNE_DB (attune --db), or :memory: to store nothing");
  return at_store_open_within(out, t->user_path, t->named ? AT_STORE_READ_WRITE : AT_STORE_OWN, AT_OPEN_WAIT_MS);
}

/* The user database, only to read where it cannot be written: its winners still serve. */
static void open_user_or_read(attune_tuner *t) {
  at_store *store = NULL, *read = NULL;
  if (!wants_user(t)) return;
  attune_status status = open_user(t, &store);
  if (status != ATTUNE_OK) at_copy_text(t->database_message, sizeof t->database_message, attune_last_message());
  if (status == ATTUNE_PERMISSION || status == ATTUNE_UNSUPPORTED) {
    const attune_status reading = at_store_open_within(&read, t->user_path, AT_STORE_READ_ONLY, 0);
    if (reading == ATTUNE_OK) {
      at_store_close(store);
      t->unwritable = status;
      atomic_store(&t->user, read);
      return;
    }
    at_store_close(read);
    if (reading != ATTUNE_NOT_FOUND) { /* it is there; why it cannot be read is what matters */
      status = reading;
      at_copy_text(t->database_message, sizeof t->database_message, attune_last_message());
    }
  }
  t->database_status = status;
  atomic_store(&t->user, store);
}

/* Tells that this mode will store nothing, and why. */
static void tell_loss(attune_tuner *t) {
  const attune_mode mode = attune_tuner_get_mode(t);
  if (mode < ATTUNE_MODE_RECORD || attune_tuner_database_status(t) == ATTUNE_OK) return;
  at_log(at_tuner_loss_level(t, ATTUNE_OK), "mode %s, but %s: %s", mode == ATTUNE_MODE_RECORD ? "record" : "tune",
         mode == ATTUNE_MODE_RECORD ? "no calls are recorded" : "winners are kept in memory only",
         attune_last_message());
}

/* A database that cannot be opened is left out with a warning; the tuner works without it. */
static void tell_databases(attune_tuner *t, attune_status system, const char *message) {
  if (attune_tuner_get_mode(t) >= ATTUNE_MODE_RECORD)
    tell_loss(t);
  else if (t->unwritable != ATTUNE_OK)
    at_log(ATTUNE_LOG_INFO, "the tuning database is read-only: %s", t->database_message);
  else if (t->database_status == ATTUNE_BUSY)
    at_log(ATTUNE_LOG_WARNING, "the tuning database cannot be read yet: %s", t->database_message);
  else if (t->database_status != ATTUNE_OK)
    at_log(ATTUNE_LOG_WARNING, "working without a tuning database: %s", t->database_message);
  if (system != ATTUNE_OK) at_log(ATTUNE_LOG_WARNING, "working without the system database: %s", message);
}

void at_tuner_open(attune_tuner *t) {
  if (atomic_load_explicit(&t->opened, memory_order_acquire)) return;
  char message[AT_MESSAGE_CHARS] = "";
  attune_status system = ATTUNE_OK;
  at_store *store = NULL;
  const at_call_scope scope = at_call_enter(NULL);
  pthread_mutex_lock(&t->open_lock);
  const bool first = !atomic_load(&t->opened);
  if (first) {
    open_user_or_read(t);
    if (t->system_path[0]) system = at_store_open_within(&store, t->system_path, AT_STORE_READ_ONLY, AT_OPEN_WAIT_MS);
    if (system != ATTUNE_OK) at_copy_text(message, sizeof message, attune_last_message());
    atomic_store(&t->system, store);
    atomic_store_explicit(&t->opened, true, memory_order_release);
  }
  pthread_mutex_unlock(&t->open_lock);
  if (first) tell_databases(t, system, message);
  (void)at_call_leave(&scope, ATTUNE_OK);
}

static void before_fork(void *of) {
  attune_tuner *t = of;
  pthread_mutex_lock(&t->lock);
  pthread_mutex_lock(&t->plans.lock);
  pthread_mutex_lock(&t->captured.lock);
}

static void after_fork(void *of, bool child) {
  attune_tuner *t = of;
  if (child) {
    pthread_mutex_init(&t->open_lock, NULL);
    memset(t->timers, 0, sizeof t->timers);
    at_plan_table_count_anew(&t->plans);
    at_plan_table_count_anew(&t->captured);
  }
  pthread_mutex_unlock(&t->captured.lock);
  pthread_mutex_unlock(&t->plans.lock);
  pthread_mutex_unlock(&t->lock);
}

/* All but the databases. */
static attune_status begin(attune_tuner *t, const attune_tuner_options *o, const at_settings *settings) {
  static _Atomic uint64_t tuners;
  attune_status status = at_plan_table_open(&t->plans);
  if (status == ATTUNE_OK) status = at_plan_table_open(&t->captured);
  if (status == ATTUNE_OK && settings->profile[0] && !(t->profile = strdup(settings->profile)))
    status = at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a tuner");
  if (status == ATTUNE_OK) status = at_search_settings_parse(&t->search, settings->search, "ATTUNE_SEARCH");
  if (status == ATTUNE_OK) status = note_paths(t, o, settings);
  bool set = false;
  (void)at_registry_skipped(&set);
  if (status == ATTUNE_OK && !set && settings->skip[0])
    status = at_registry_skip(settings->skip, "ATTUNE_SKIP", t->ops, t->op_count);
  if (status != ATTUNE_OK) {
    at_plan_table_close(&t->plans);
    at_plan_table_close(&t->captured);
    return status;
  }
  t->id = atomic_fetch_add(&tuners, 1) + 1;
  t->budget_ns = (o->budget_ms > 0.0 && !settings->override_budget ? o->budget_ms : settings->budget_ms) * 1e6;
  t->total_budget_ns = o->total_budget_ms * 1e6;
  t->measure = o->measure;
  t->mode_fixed = settings->override_mode;
  atomic_store(&t->mode, (int)(o->mode && !t->mode_fixed ? o->mode : settings->mode));
  atomic_store(&t->compile, (int)settings->compile);
  atomic_store(&t->flushed_ns, at_now_ns());
  pthread_mutex_init(&t->lock, NULL);
  pthread_mutex_init(&t->open_lock, NULL);
  t->fork = (at_fork_watch){.before = before_fork, .after = after_fork, .of = t};
  at_fork_watch_add(&t->fork);
  return ATTUNE_OK;
}

static attune_status create(attune_tuner **out, const attune_tuner_options *options, const at_op *const *ops,
                            int op_count, bool private) {
  attune_tuner_options full, *o = &full;
  AT_REQUIRE_AS(out, "point to an attune_tuner *");
  *out = NULL;
  if (at_ops_check(ops, op_count) != ATTUNE_OK) return ATTUNE_INTERNAL;
  const at_call_scope scope = at_call_enter(NULL);
  at_settings *settings = malloc(sizeof *settings);
  attune_tuner *t = settings ? calloc(1, sizeof *t) : NULL;
  attune_status status = t ? AT_TAKE(o, options) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a tuner");
  if (status == ATTUNE_OK) status = check_options(o);
  if (status == ATTUNE_OK) status = at_settings_read(settings);
  if (status == ATTUNE_OK && private) {
    settings->override_mode = settings->override_database = settings->override_budget = false;
    settings->profile[0] = '\0';
  }
  if (status == ATTUNE_OK) {
    t->ops = ops;
    t->op_count = op_count;
    status = begin(t, o, settings);
  }
  if (status == ATTUNE_OK) {
    at_settings_tell_unknown();
    if (attune_tuner_get_mode(t) != ATTUNE_MODE_OFF) at_tuner_open(t);
    tuners_add(t);
    *out = t;
  } else if (t) {
    free(t->user_path);
    free(t->system_path);
    free(t->profile);
    free(t);
  }
  free(settings);
  return at_call_leave(&scope, status);
}

attune_status at_tuner_create(attune_tuner **out, const attune_tuner_options *options, const at_op *const *ops,
                              int op_count) {
  return create(out, options, ops, op_count, false);
}

attune_status at_tuner_create_private(attune_tuner **out, const attune_tuner_options *options, const at_op *const *ops,
                                      int op_count) {
  return create(out, options, ops, op_count, true);
}

void attune_tuner_destroy(attune_tuner *t) {
  if (!t) return;
  const at_call_scope scope = at_call_enter(NULL);
  at_deferred_forget(t);
  tuners_remove(t);
  at_fork_watch_remove(&t->fork);
  at_call_cache_forget(t->id);
  at_plan_table_close(&t->plans);
  at_plan_table_close(&t->captured);
  for (int i = 0; i < AT_MAX_DEVICES; i++) {
    at_timer_destroy(t->timers[i]);
    free(t->fingerprints[i]);
  }
  at_store_close(t->user);
  at_store_close(t->system);
  free(t->profile);
  free(t->user_path);
  free(t->system_path);
  pthread_mutex_destroy(&t->open_lock);
  pthread_mutex_destroy(&t->lock);
  free(t);
  (void)at_call_leave(&scope, ATTUNE_OK);
}

attune_status attune_tuner_set_search(attune_tuner *tuner, const attune_search_options *options) {
  attune_search_options full;
  AT_REQUIRE(tuner);
  AT_TRY(AT_TAKE(&full, options));
  AT_TRY(at_search_settings_check(&full));
  pthread_mutex_lock(&tuner->lock);
  tuner->search = full;
  pthread_mutex_unlock(&tuner->lock);
  return ATTUNE_OK;
}

attune_status attune_tuner_get_search(attune_tuner *tuner, attune_search_options *out) {
  AT_REQUIRE(tuner, out);
  const attune_search_options settings = at_tuner_search(tuner);
  return AT_GIVE(out, &settings);
}

attune_search_options at_tuner_search(attune_tuner *t) {
  pthread_mutex_lock(&t->lock);
  const attune_search_options settings = t->search;
  pthread_mutex_unlock(&t->lock);
  return settings;
}

attune_status attune_tuner_set_compile(attune_tuner *tuner, attune_compile compile) {
  AT_REQUIRE(tuner);
  if (compile != ATTUNE_COMPILE_BACKGROUND && compile != ATTUNE_COMPILE_WAIT)
    return AT_INVALID("compile is %d; should be background (1) or wait (2)", (int)compile);
  atomic_store(&tuner->compile, (int)compile);
  return ATTUNE_OK;
}

attune_status attune_tuner_set_mode(attune_tuner *tuner, attune_mode mode) {
  AT_REQUIRE(tuner);
  if (!mode_known(mode))
    return AT_INVALID("mode is %d; should be off (1), cached (2), record (3) or tune (4)", (int)mode);
  if (tuner->mode_fixed) return ATTUNE_OK;
  const at_message kept = at_message_keep();
  if (mode != ATTUNE_MODE_OFF) at_tuner_open(tuner);
  const int before = atomic_exchange(&tuner->mode, (int)mode);
  if (before == (int)mode) return ATTUNE_OK;
  if (before == ATTUNE_MODE_RECORD) at_recording_flush(tuner);
  if (mode == ATTUNE_MODE_RECORD) at_recording_begin(tuner);
  tell_loss(tuner);
  at_plan_table_drop_guesses(&tuner->plans);
  return at_message_settle(&kept, ATTUNE_OK);
}
