/* SPDX-License-Identifier: Apache-2.0
 * test_cancel.c: a thread that is cancelled while it is inside a call ends behind it: the others can make the same call
 * after that. A lock that is left held would make them wait for ever, so each wait here has an end. */
#include "tests/support/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attune/attune.h>
#include <attune/tools.h>

enum { SECONDS = 600, SLOW_US = 200000 };

static attune_device *device;
static attune_stream *stream;
static attune_tuner *tuner;
static attune_decision *explained;
static char folder[] = "/tmp/attune-test-cancel-XXXXXX", path[96];
static atomic_int begun;

static void slow(void *user) {
  (void)user;
  usleep(SLOW_US);
}

static void synchronize(void) {
  (void)attune_stream_synchronize(stream);
}
static void tune(void) {
  (void)attune_tune(tuner, device, "gemm f32 nn 60x50x40 strict", &(attune_tune_options){.budget_ms = 40.0, .force = 1},
                    NULL);
}
static void verify(void) {
  attune_recheck out = {0};
  (void)attune_verify(tuner, device, "gemm f32 nn 60x50x40 strict", 40.0, NULL, &out);
}
static void explain(void) {
  (void)attune_explain(tuner, device, "gemm f32 nn 60x50x40 strict", explained);
}
static void open_and_close(void) {
  attune_tuner *other = NULL;
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  options.database = path;
  options.mode = ATTUNE_MODE_RECORD;
  if (attune_tuner_create(&other, &options) == ATTUNE_OK) (void)attune_tuner_database_prepare(other);
  attune_tuner_destroy(other);
}

typedef struct way {
  void (*call)(void);
  bool queued; /* there is work to wait for */
} way;

static void *call_for_ever(void *arg) {
  const way *w = arg;
  for (;;) {
    atomic_fetch_add(&begun, 1);
    w->call();
    pthread_testcancel(); /* a call may be too brief to be cancelled in */
  }
  return NULL;
}

static void cancel_within(const way *w, int after_us) {
  pthread_t thread;
  void *result = NULL;
  if (w->queued) OK(attune_stream_call(stream, slow, NULL));
  atomic_store(&begun, 0);
  assert_int_equal(pthread_create(&thread, NULL, call_for_ever, (void *)(uintptr_t)w), 0);
  while (atomic_load(&begun) == 0) usleep(50);
  usleep((useconds_t)after_us);
  assert_int_equal(pthread_cancel(thread), 0);
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, PTHREAD_CANCELED);
  w->call();
}

TEST(others_go_on) {
  static const way ways[] = {
      {synchronize, true}, {tune, false}, {verify, false}, {explain, false}, {open_and_close, false}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    for (int after_us = 100; after_us < 100000; after_us = after_us * 3 + 17) {
      alarm(SECONDS); /* ends the test where a call waits for ever */
      cancel_within(&ways[i], after_us);
    }
  alarm(0);
  OK(attune_tune(tuner, device, "gemm f64 nn 20x30x40 strict", &(attune_tune_options){.budget_ms = 40.0, .force = 1},
                 NULL));
}

int main(void) {
  attune_tuner_options options = ATTUNE_TUNER_OPTIONS_INIT;
  if (!mkdtemp(folder)) return 1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  options.database = path;
  if (attune_device_get(&device, "host") != ATTUNE_OK || attune_stream_create(&stream, device) != ATTUNE_OK ||
      attune_tuner_create(&tuner, &options) != ATTUNE_OK || attune_decision_create(&explained, NULL) != ATTUNE_OK)
    return 1;
  const int failed = RUN_TESTS(NULL, NULL);
  attune_decision_destroy(explained);
  attune_tuner_destroy(tuner);
  attune_stream_destroy(stream);
  (void)unlink(path);
  strcat(path, "-journal"); /* of a tuner whose thread was cancelled */
  (void)unlink(path);
  (void)rmdir(folder);
  return failed;
}
