/* SPDX-License-Identifier: Apache-2.0
 * cuda_graph.h: what the tests of CUDA graphs share: handles, and work through memory of the graph's own. */
#ifndef TESTS_CUDA_GRAPH_H
#define TESTS_CUDA_GRAPH_H

#include <attune/attune.h>
#include <attune/graph_callable.h>

#include "tests/support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cuda/context/cuda.h"
#include "src/stream/capture.h"

enum { SIDE = 128, COUNT = SIDE * SIDE };
#define BYTES (COUNT * sizeof(float))

static attune_device *device;
static attune_tuner *tuner;

static inline void assert_no_stale_error(void) {
  assert_int_equal(cudaPeekAtLastError(), cudaSuccess);
}

static inline attune_stream *new_stream(void) {
  attune_stream *stream = NULL;
  OK(attune_stream_create(&stream, device));
  return stream;
}
static inline attune_event *new_event(void) {
  attune_event *event = NULL;
  OK(attune_event_create(&event, device, NULL));
  return event;
}
static inline attune_graph *new_graph(void) {
  attune_graph *graph = NULL;
  OK(attune_graph_create(&graph, device));
  return graph;
}

/* A, B and D in device memory; A and B random. */
typedef struct scene {
  attune_stream *stream;
  float *a, *b, *d;
  float value; /* what `with_memory` fills with: a byte's value */
} scene;

static inline void fill_random(attune_stream *stream, float *memory, unsigned seed) {
  static float host[COUNT];
  for (int i = 0; i < COUNT; i++) {
    seed = seed * 1664525u + 1013904223u;
    host[i] = (float)(seed >> 8) / (float)(1u << 24) - 0.5f;
  }
  OK(attune_copy(stream, memory, host, BYTES));
  OK(attune_stream_synchronize(stream));
}

static scene new_scene(void) {
  scene s = {.stream = new_stream()};
  OK(attune_alloc((void **)&s.a, s.stream, BYTES));
  OK(attune_alloc((void **)&s.b, s.stream, BYTES));
  OK(attune_alloc((void **)&s.d, s.stream, BYTES));
  fill_random(s.stream, s.a, 1);
  fill_random(s.stream, s.b, 2);
  return s;
}

static inline void end_scene(scene *s) {
  OK(attune_free(s->a, s->stream));
  OK(attune_free(s->b, s->stream));
  OK(attune_free(s->d, s->stream));
  OK(attune_stream_synchronize(s->stream));
  attune_stream_destroy(s->stream);
  assert_no_stale_error();
}

static inline void read_back(attune_stream *stream, float *out, const float *memory) {
  OK(attune_copy(stream, out, memory, BYTES));
  OK(attune_stream_synchronize(stream));
}

static inline attune_status multiply(attune_stream *stream, const float *a, const float *b, float *d) {
  attune_gemm_problem p = {.dtype = ATTUNE_F32, .m = SIDE, .n = SIDE, .k = SIDE};
  const attune_gemm_operands o = {.alpha = 1.0, .a = a, .b = b, .d = d};
  return attune_gemm(tuner, stream, &p, &o);
}

/* D = (A B) B, the product in between in memory that is allocated and freed on the way. */
static inline attune_status with_memory(void *user, attune_stream *stream) {
  scene *s = user;
  float *between = NULL, *copy = NULL;
  attune_status status = attune_alloc((void **)&between, stream, BYTES);
  if (status == ATTUNE_OK) status = attune_alloc((void **)&copy, stream, BYTES);
  if (status == ATTUNE_OK) status = attune_fill(stream, between, 0xff, BYTES);
  if (status == ATTUNE_OK) status = multiply(stream, s->a, s->b, between);
  if (status == ATTUNE_OK) status = attune_copy(stream, copy, between, BYTES);
  if (status == ATTUNE_OK) status = multiply(stream, copy, s->b, s->d);
  if (status == ATTUNE_OK) status = attune_free(between, stream);
  if (status == ATTUNE_OK) status = attune_free(copy, stream);
  return status;
}

static inline attune_status fill_one(void *user, attune_stream *stream) {
  scene *s = user;
  return attune_fill(stream, s->d, (int)s->value, BYTES);
}

static inline void assert_filled(scene *s, int value) {
  static unsigned char host[BYTES];
  read_back(s->stream, (float *)(void *)host, s->d);
  for (size_t i = 0; i < BYTES; i++)
    if (host[i] != value) fail_msg("byte %zu is %d; should be %d", i, host[i], value);
}

#endif
