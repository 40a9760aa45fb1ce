/* SPDX-License-Identifier: Apache-2.0
 * dispatch_log.c: the line of the log that tells what runs for a problem, and why. Where no stored winner holds, the
 * nearest one that does not says what differs. */
#include "tuning/dispatch/dispatch.h"

#include <stdio.h>
#include <string.h>

#include "src/host/threads.h"
#include "tuning/store/fingerprint.h"

/* The stored winner of the same problem whose fingerprint differs in the fewest parts. */
typedef struct elsewhere {
  const at_op *op;
  attune_device *device;
  const char *fingerprint, *measure; /* what would hold */
  int parts, rows;                   /* the fewest; winners met */
  char words[640];
} elsewhere;

/* A team's winner that holds, but for the number of threads. */
static bool lacks_threads(const attune_device *device, const attune_decision *row, char *words, size_t size) {
  at_configuration c;
  int64_t threads = 1;
  size_t at = 0;
  if (device->properties.kind != ATTUNE_DEVICE_HOST || !at_copy_text(c.text, sizeof c.text, row->configuration) ||
      !at_configuration_get(&c, "threads", &threads) || threads <= at_cpu_count())
    return false;
  (void)at_append(words, size, &at,
                  "%s needs %lld threads, but only %d may be used (ATTUNE_THREADS, CPU affinity or quota)",
                  row->implementation, (long long)threads, at_cpu_count());
  return true;
}

static int look(void *user, const char *fingerprint, const attune_decision *row) {
  elsewhere *e = user;
  char words[sizeof e->words], own[AT_DIFFERENCE_CHARS];
  int parts = at_fingerprint_difference(fingerprint, e->fingerprint, words, sizeof words);
  size_t at = strlen(words);
  const int own_parts = at_winner_difference(e->op, e->device, fingerprint, row, own, sizeof own);
  if (own_parts) (void)at_append(words, sizeof words, &at, "%s%s", parts ? "; " : "", own);
  parts += own_parts;
  if (strcmp(row->measure, e->measure) != 0) {
    (void)at_append(words, sizeof words, &at, "%smeasured %s there, %s here", parts ? "; " : "", row->measure,
                    e->measure);
    parts++;
  }
  if (parts == 0 && !lacks_threads(e->device, row, words, sizeof words)) return 0; /* valid here: logged elsewhere */
  if (e->rows++ == 0 || parts < e->parts) {
    e->parts = parts;
    memcpy(e->words, words, sizeof words);
  }
  return 0;
}

void at_why_no_winner(attune_tuner *tuner, const at_op *op, attune_device *device, const attune_decision *d, char *out,
                      size_t size) {
  elsewhere e = {.op = op, .device = device, .measure = d->measure};
  size_t at = 0;
  *out = '\0';
  if (at_tuner_fingerprint(tuner, device, &e.fingerprint) != ATTUNE_OK) return;
  if (tuner->user) (void)at_store_each_of_problem(tuner->user, d->problem, look, &e);
  if (tuner->system) (void)at_store_each_of_problem(tuner->system, d->problem, look, &e);
  if (e.rows)
    (void)at_append(out, size, &at, "%s stored winner is not valid here: %s", e.rows == 1 ? "a" : "the nearest",
                    e.words);
}

static void evidence(const attune_decision *d, char *out, size_t size) {
  char time[AT_TIME_CHARS];
  *out = '\0';
  if (d->time_ns > 0.0 && d->unsure)
    snprintf(out, size, ", %s, unsure", at_time_text(time, d->time_ns, 3));
  else if (d->time_ns > 0.0 && d->default_time_ns > 0.0)
    snprintf(out, size, ", %s, %.3f x as fast as %s", at_time_text(time, d->time_ns, 3),
             d->default_time_ns / d->time_ns, d->default_implementation);
}

static const char *source_words(const attune_decision *d) {
  switch (d->source) {
  case ATTUNE_SOURCE_STORED: return "the stored winner";
  case ATTUNE_SOURCE_SYSTEM: return "the system database's winner";
  case ATTUNE_SOURCE_TUNED: return "the winner just measured";
  case ATTUNE_SOURCE_NEIGHBOUR:
  case ATTUNE_SOURCE_DEFAULT: break;
  }
  return d->note; /* says which guess it is */
}

void at_log_dispatch(attune_tuner *tuner, const at_op *op, const void *problem, int as, attune_device *device,
                     attune_mode mode, const attune_decision *d) {
  char written[AT_PROBLEM_CHARS], why[720] = "", times[128];
  const bool own = op->problem->show && op->problem->show(problem, as, written, sizeof written) == ATTUNE_OK;
  if (d->source <= ATTUNE_SOURCE_NEIGHBOUR && mode != ATTUNE_MODE_OFF)
    at_why_no_winner(tuner, op, device, d, why, sizeof why);
  evidence(d, times, sizeof times);
  at_log(ATTUNE_LOG_INFO, "%s on %s runs %s%s%s: %s%s%s%s", own ? written : d->problem, d->device, d->implementation,
         *d->configuration ? " " : "", d->configuration, source_words(d), times, *why ? "; " : "", why);
}
