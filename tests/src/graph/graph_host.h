/* SPDX-License-Identifier: Apache-2.0
 * graph_host.h: what the tests of host graphs share: handles, and work whose order shows. */
#ifndef TESTS_GRAPH_HOST_H
#define TESTS_GRAPH_HOST_H

#include "tests/support/check.h"

#include "src/host/host.h"
#include "src/stream/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1024 };
static attune_device *host;

static inline int find_host(void **state) {
  (void)state;
  return attune_device_get(&host, "host") == ATTUNE_OK ? 0 : -1;
}

static inline attune_stream *new_stream(void) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, host));
  return stream;
}

static inline attune_event *new_event(void) {
  attune_event *event = NULL;
  OK(attune_event_create(&event, host, NULL));
  return event;
}

static inline attune_graph *new_graph(void) {
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, host));
  return graph;
}

/* x = a * x + b on COUNT numbers: not commutative, so the order shows. */
typedef struct affine {
  unsigned *x;
  unsigned a, b;
} affine;

static inline void run_affine(const void *args) {
  const affine *w = args;
  for (int i = 0; i < COUNT; i++) w->x[i] = w->a * w->x[i] + w->b;
}

static inline void give(attune_stream *stream, unsigned *x, unsigned a, unsigned b) {
  affine w = {x, a, b};
  OK(at_host_submit(stream, run_affine, &w, sizeof w));
}

/* Five pieces of work of four kinds. */
static inline attune_status five_steps(void *user, attune_stream *stream) {
  unsigned *x = user;
  OK(attune_fill(stream, x, 1, COUNT * sizeof *x));
  give(stream, x, 3, 1);
  OK(attune_copy(stream, x + COUNT, x, COUNT * sizeof *x));
  give(stream, x, 5, 2);
  give(stream, x + COUNT, 7, 3);
  return ATTUNE_OK;
}

static inline void assert_numbers(const unsigned *x, unsigned value) {
  for (int i = 0; i < COUNT; i++)
    if (x[i] != value) fail_msg("number %d is %u; should be %u", i, x[i], value);
}

#endif
