/* SPDX-License-Identifier: Apache-2.0
 * toy_database.h: the toy operation tuned on the virtual clock into a database of the test's own, with a new tuner each
 * time, as another process would have it. Included once in a test. */
#ifndef AT_TEST_TOY_DATABASE_H
#define AT_TEST_TOY_DATABASE_H

#include "tests/support/check.h"
#include "tuning/store/decision.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/toy/toy_clock.h"

static attune_device *device;
static char database[] = "/tmp/attune-toy-XXXXXX";

static inline void remove_database(void) {
  char journal[sizeof database + 8];
  snprintf(journal, sizeof journal, "%s-journal", database);
  (void)unlink(database);
  (void)unlink(journal);
}

static inline attune_tuner *tuner_of(void) {
  attune_tuner *tuner = NULL;
  OK(at_tuner_create(&tuner, &(attune_tuner_options){.database = database, .mode = ATTUNE_MODE_CACHED}, toy_ops, 1));
  OK(attune_tuner_database_status(tuner));
  return tuner;
}

static inline attune_decision tune(double budget_ms, int force) {
  attune_tuner *tuner = tuner_of();
  attune_decision decision;
  OK(attune_tune(tuner, device, TOY_PROBLEM, &(attune_tune_options){.budget_ms = budget_ms, .force = force},
                 &decision));
  attune_tuner_destroy(tuner);
  return decision;
}

static inline attune_decision stored(void) {
  attune_tuner *tuner = tuner_of();
  attune_decision decision;
  OK(attune_explain(tuner, device, TOY_PROBLEM, &decision));
  attune_tuner_destroy(tuner);
  return decision;
}

/* Before the tests, and after them: a name for the database, the clock, the device. */
static inline bool open_toy_database(void) {
  const int file = mkstemp(database);
  if (file < 0 || close(file) != 0) return false;
  virtual_clock_start();
  return attune_device_get(&device, "host") == ATTUNE_OK;
}

static inline int close_toy_database(int failed) {
  remove_database();
  return failed;
}

#endif
