/* SPDX-License-Identifier: Apache-2.0
 * tuner_create.c: makes a tuner of options, environment and databases; what begins and ends with it and with its
 * mode. */
#include "tuning/tuner.h"

#include <stdlib.h>
#include <string.h>

#include "src/cancel.h"
#include "src/settings.h"
#include "tuning/later.h"
#include "tuning/recent.h"
#include "tuning/recording.h"
#include "tuning/tuners.h"

static bool mode_known(attune_mode mode) {
  return mode >= ATTUNE_MODE_OFF && mode <= ATTUNE_MODE_TUNE;
}

static attune_status check_options(const attune_tuner_options *o) {
  if (o->mode && !mode_known(o->mode))
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "options.mode is %d; should be off (1), cached (2), record (3), tune (4) or 0", (int)o->mode);
  if (!(o->budget_ms >= 0.0 && o->budget_ms <= 1e12))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "options.budget_ms is %g; should be 0 or more", o->budget_ms);
  if (!(o->total_budget_ms >= 0.0 && o->total_budget_ms <= 1e12))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "options.total_budget_ms is %g; should be 0 or more", o->total_budget_ms);
  if ((int)o->measure < ATTUNE_MEASURE_AUTO || o->measure > ATTUNE_MEASURE_HOT_EAGER)
    return at_fail(ATTUNE_INVALID_ARGUMENT,
                   "options.measure is %d; should be 0 for the usual one, cold,graph (1), cold,eager (2), hot,graph "
                   "(3) or hot,eager (4)",
                   (int)o->measure);
  return ATTUNE_OK;
}

/* The user database: the program's, ATTUNE_DB's or the user's own; none where the program or ATTUNE_DB wants none. */
static attune_status open_user(attune_tuner *t, const attune_tuner_options *o, const at_settings *s) {
  const bool named = o->database || s->database_named;
  const char *path = o->database ? o->database : s->database;
  if (named && (!path[0] || strcmp(path, ":memory:") == 0)) return ATTUNE_OK;
  if (!path[0])
    return at_fail(ATTUNE_NOT_FOUND, "there is no place for a tuning database, as HOME and XDG_DATA_HOME are not set; "
                                     "name a file by ATTUNE_DB (attune --db), or :memory: for none");
  return at_store_open(&t->user, path, named ? AT_STORE_READ_WRITE : AT_STORE_OWN);
}

/* The user database, only to read where it cannot be written: its winners still serve. */
static void open_user_or_read(attune_tuner *t, const attune_tuner_options *o, const at_settings *s) {
  attune_status status = open_user(t, o, s);
  if (status == ATTUNE_OK) return;
  at_copy_text(t->database_message, sizeof t->database_message, attune_last_message());
  if (status == ATTUNE_PERMISSION || status == ATTUNE_UNSUPPORTED || status == ATTUNE_BUSY ||
      status == ATTUNE_IO_ERROR) { /* the last two: an older database that cannot be brought over now */
    const attune_status reading = at_store_open(&t->user, o->database ? o->database : s->database, AT_STORE_READ_ONLY);
    if (reading == ATTUNE_OK) {
      t->unwritable = status;
      return;
    }
    if (reading != ATTUNE_NOT_FOUND) { /* it is there, and why it cannot be read is what matters */
      status = reading;
      at_copy_text(t->database_message, sizeof t->database_message, attune_last_message());
    }
  }
  t->database_status = status;
}

/* Tells that this mode will store nothing, and why. */
static void tell_loss(attune_tuner *t) {
  const attune_mode mode = attune_tuner_get_mode(t);
  if (mode < ATTUNE_MODE_RECORD || attune_tuner_database_status(t) == ATTUNE_OK) return;
  at_log(at_tuner_loss_level(t, ATTUNE_OK), "mode %s, but %s: %s", mode == ATTUNE_MODE_RECORD ? "record" : "tune",
         mode == ATTUNE_MODE_RECORD ? "no call is recorded" : "winners are kept in memory only", attune_last_message());
}

/* Opens the layers. What cannot be opened is left out and said; the tuner works without. */
static void open_databases(attune_tuner *t, const attune_tuner_options *o, const at_settings *s) {
  open_user_or_read(t, o, s);
  if (attune_tuner_get_mode(t) >= ATTUNE_MODE_RECORD)
    tell_loss(t);
  else if (t->unwritable != ATTUNE_OK)
    at_log(ATTUNE_LOG_INFO, "the tuning database is only read: %s", t->database_message);
  else if (t->database_status != ATTUNE_OK)
    at_log(ATTUNE_LOG_WARNING, "working without a tuning database: %s", t->database_message);
  if (o->system_database && o->system_database[0] &&
      at_store_open(&t->system, o->system_database, AT_STORE_READ_ONLY) != ATTUNE_OK)
    at_log(ATTUNE_LOG_WARNING, "working without the system database: %s", attune_last_message());
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
    memset(t->profilers, 0, sizeof t->profilers);
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
  t->budget_ns = (o->budget_ms > 0.0 ? o->budget_ms : settings->budget_ms) * 1e6;
  t->total_budget_ns = o->total_budget_ms * 1e6;
  t->measure = o->measure;
  atomic_store(&t->mode, (int)(o->mode ? o->mode : settings->mode));
  atomic_store(&t->compile, (int)settings->compile);
  atomic_store(&t->flushed_ns, at_now_ns());
  pthread_mutex_init(&t->lock, NULL);
  t->fork = (at_fork_watch){.before = before_fork, .after = after_fork, .of = t};
  at_fork_watch_add(&t->fork);
  return ATTUNE_OK;
}

attune_status at_tuner_create(attune_tuner **out, const attune_tuner_options *options, const at_op *const *ops,
                              int op_count) {
  static const attune_tuner_options defaults = ATTUNE_TUNER_OPTIONS_INIT;
  if (!out) return at_fail(ATTUNE_INVALID_ARGUMENT, "out is NULL; should point to an attune_tuner *");
  *out = NULL;
  if (at_ops_check(ops, op_count) != ATTUNE_OK) return ATTUNE_INTERNAL;
  at_message kept;
  at_message_keep(&kept);
  const int cancel = at_cancel_hold();
  const attune_tuner_options *o = options ? options : &defaults;
  at_settings *settings = malloc(sizeof *settings);
  attune_tuner *t = settings ? calloc(1, sizeof *t) : NULL;
  attune_status status = t ? check_options(o) : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a tuner");
  if (status == ATTUNE_OK) status = at_settings_read(settings);
  if (status == ATTUNE_OK) {
    t->ops = ops;
    t->op_count = op_count;
    status = begin(t, o, settings);
  }
  if (status == ATTUNE_OK) {
    open_databases(t, o, settings);
    at_tuners_add(t);
    *out = t;
  } else {
    free(t);
  }
  free(settings);
  at_cancel_let(cancel);
  return at_message_settle(&kept, status);
}

void attune_tuner_destroy(attune_tuner *t) {
  if (!t) return;
  at_message kept;
  at_message_keep(&kept);
  const int cancel = at_cancel_hold();
  at_later_forget(t);
  at_tuners_remove(t);
  at_fork_watch_remove(&t->fork);
  at_recent_forget(t->id);
  at_plan_table_close(&t->plans);
  at_plan_table_close(&t->captured);
  for (int i = 0; i < AT_MAX_DEVICES; i++) {
    at_profiler_destroy(t->profilers[i]);
    free(t->fingerprints[i]);
  }
  at_store_close(t->user);
  at_store_close(t->system);
  free(t->profile);
  pthread_mutex_destroy(&t->lock);
  free(t);
  at_cancel_let(cancel);
  (void)at_message_settle(&kept, ATTUNE_OK);
}

attune_status attune_tuner_set_search(attune_tuner *t, const char *text) {
  if (!t || !text) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be given", t ? "text" : "tuner");
  pthread_mutex_lock(&t->lock);
  const attune_status status = at_search_settings_parse(&t->search, text, "text");
  pthread_mutex_unlock(&t->lock);
  return status;
}

attune_status attune_tuner_get_search(attune_tuner *t, char *out, size_t size) {
  if (!t || !out) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s is NULL; should be given", t ? "out" : "tuner");
  const at_search_settings settings = at_tuner_search(t);
  return at_search_settings_write(&settings, out, size);
}

at_search_settings at_tuner_search(attune_tuner *t) {
  pthread_mutex_lock(&t->lock);
  const at_search_settings settings = t->search;
  pthread_mutex_unlock(&t->lock);
  return settings;
}

attune_status attune_tuner_set_compile(attune_tuner *t, attune_compile compile) {
  if (!t) return at_fail(ATTUNE_INVALID_ARGUMENT, "tuner is NULL; should be given");
  if (compile != ATTUNE_COMPILE_BACKGROUND && compile != ATTUNE_COMPILE_WAIT)
    return at_fail(ATTUNE_INVALID_ARGUMENT, "compile is %d; should be background (1) or wait (2)", (int)compile);
  atomic_store(&t->compile, (int)compile);
  return ATTUNE_OK;
}

attune_status attune_tuner_set_mode(attune_tuner *t, attune_mode mode) {
  if (!t) return at_fail(ATTUNE_INVALID_ARGUMENT, "tuner is NULL; should be given");
  if (!mode_known(mode))
    return at_fail(ATTUNE_INVALID_ARGUMENT, "mode is %d; should be off (1), cached (2), record (3) or tune (4)",
                   (int)mode);
  at_message kept;
  at_message_keep(&kept);
  const int before = atomic_exchange(&t->mode, (int)mode);
  if (before == (int)mode) return ATTUNE_OK;
  if (before == ATTUNE_MODE_RECORD) at_recording_flush(t);
  if (mode == ATTUNE_MODE_RECORD) at_recording_begin(t);
  tell_loss(t);
  at_plan_table_drop_guesses(&t->plans);
  return at_message_settle(&kept, ATTUNE_OK);
}
