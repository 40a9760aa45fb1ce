/* SPDX-License-Identifier: Apache-2.0
 * host_tuner.h: a group's set-up for calls on the host: its device, its default stream, and a tuner without a
 * database. */
#ifndef TEST_HOST_TUNER_H
#define TEST_HOST_TUNER_H

#include "tests/ops/elementwise/elementwise_call.h"

static attune_device *host;
static attune_tuner *tuner;
static attune_stream *stream;

static int open_all(void **state) {
  (void)state;
  OK(attune_device_get(&host, "host"));
  stream = attune_stream_default(host);
  tuner = call_tuner(ATTUNE_MODE_CACHED);
  return 0;
}

static int close_all(void **state) {
  (void)state;
  attune_tuner_destroy(tuner);
  return 0;
}

#endif
