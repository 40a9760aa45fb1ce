/* SPDX-License-Identifier: Apache-2.0
 * tuner.c: what others ask of a tuner that is there, and its small public calls. */
#include "tuning/tuner/tuner.h"

#include <attune/tools.h>

#include <stdlib.h>
#include <string.h>

#include "src/process/cancel.h"
#include "tuning/store/fingerprint.h"

void at_tuner_database_is(attune_tuner *t, attune_status status) {
  if (t->unwritable != ATTUNE_OK) return; /* said when it was opened, and better */
  pthread_mutex_lock(&t->lock);
  t->database_status = status;
  at_copy_text(t->database_message, sizeof t->database_message, status == ATTUNE_OK ? "" : attune_last_message());
  pthread_mutex_unlock(&t->lock);
}

attune_log_level at_tuner_loss_level(attune_tuner *t, attune_status status) {
  return status == ATTUNE_BUSY || atomic_exchange(&t->loss_told, true) ? ATTUNE_LOG_WARNING : ATTUNE_LOG_ERROR;
}

/* One that was locked at the start may be free by now: for whoever asks whether it works there is time. */
static void look_again(attune_tuner *t) {
  enum { WAIT_MS = 5000 };
  at_store *const user = t->user;
  pthread_mutex_lock(&t->lock);
  const bool locked = user && t->database_status == ATTUNE_BUSY;
  pthread_mutex_unlock(&t->lock);
  if (!locked) return;
  const int cancel = at_cancel_hold();
  at_tuner_database_is(t, at_store_try_read(user, WAIT_MS));
  at_cancel_let(cancel);
}

/* A database that is only read is all that is asked for unless `writing`. */
static attune_status database_status(attune_tuner *t, bool writing) {
  char message[sizeof t->database_message];
  at_tuner_open(t);
  look_again(t);
  pthread_mutex_lock(&t->lock);
  attune_status status = t->database_status;
  at_copy_text(message, sizeof message, t->database_message);
  pthread_mutex_unlock(&t->lock);
  if (status == ATTUNE_OK && writing) status = t->unwritable;
  return status == ATTUNE_OK ? ATTUNE_OK : at_fail(status, "%s", message);
}

attune_status attune_tuner_database_status(attune_tuner *tuner) {
  AT_REQUIRE(tuner);
  return database_status(tuner, attune_tuner_get_mode(tuner) >= ATTUNE_MODE_RECORD);
}

attune_status attune_tuner_database_prepare(attune_tuner *tuner) {
  enum { WAIT_MS = 5000 };
  AT_REQUIRE(tuner);
  attune_status status = database_status(tuner, true);
  if (status != ATTUNE_OK || !tuner->user) return status;
  const int cancel = at_cancel_hold();
  status = at_store_try_write(tuner->user, WAIT_MS);
  at_cancel_let(cancel);
  at_tuner_database_is(tuner, status);
  return status;
}

attune_mode attune_tuner_get_mode(const attune_tuner *t) {
  return t ? (attune_mode)atomic_load(&((attune_tuner *)(uintptr_t)t)->mode) : (attune_mode)0;
}

const at_op *at_tuner_op(const attune_tuner *t, const char *problem) {
  const size_t chars = strcspn(problem, " ");
  char known[128] = "";
  size_t at = 0;
  for (int i = 0; i < t->op_count; i++) {
    if (strlen(t->ops[i]->name) == chars && strncmp(t->ops[i]->name, problem, chars) == 0) return t->ops[i];
    at_append(known, sizeof known, &at, "%s%s", i ? ", " : "", t->ops[i]->name);
  }
  AT_INVALID("problem \"%.60s\" does not start with a known operation; should be one of: %s", problem, known);
  return NULL;
}

attune_status at_tuner_fingerprint(attune_tuner *t, attune_device *device, const char **out) {
  char **slot = &t->fingerprints[device->index];
  pthread_mutex_lock(&t->lock);
  *out = *slot;
  pthread_mutex_unlock(&t->lock);
  if (*out) return ATTUNE_OK;
  /* Made without the lock: it may open libraries, and a fork must not wait for that. */
  char *text = malloc(AT_FINGERPRINT_CHARS);
  const attune_status status = text ? at_fingerprint(device, text, AT_FINGERPRINT_CHARS)
                                    : at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a fingerprint");
  pthread_mutex_lock(&t->lock);
  if (status == ATTUNE_OK && !*slot) {
    *slot = text;
    text = NULL;
  }
  *out = *slot;
  pthread_mutex_unlock(&t->lock);
  free(text);
  return *out ? ATTUNE_OK : status;
}

const char *at_tuner_fingerprint_known(attune_tuner *t, int device_index) {
  pthread_mutex_lock(&t->lock);
  const char *fingerprint = t->fingerprints[device_index];
  pthread_mutex_unlock(&t->lock);
  return fingerprint;
}

const at_op *at_tuner_op_of(const attune_tuner *t, const at_key *key) {
  for (int i = 0; i < t->op_count; i++)
    if (t->ops[i]->id == at_key_op(key)) return t->ops[i];
  return NULL;
}

at_store *at_tuner_store(attune_tuner *t) {
  at_tuner_open(t);
  return t->user;
}

attune_measure at_tuner_measure(const attune_tuner *t, const attune_device *device) {
  if (t->measure != ATTUNE_MEASURE_AUTO) return t->measure;
  return device->properties.kind == ATTUNE_DEVICE_CUDA ? ATTUNE_MEASURE_COLD_GRAPH : ATTUNE_MEASURE_HOT_EAGER;
}

const char *at_measure_name(attune_measure measure) {
  static const char *const names[] = {"auto", "cold,graph", "cold,eager", "hot,graph", "hot,eager"};
  return (unsigned)measure < AT_COUNT(names) ? names[measure] : "unknown";
}
