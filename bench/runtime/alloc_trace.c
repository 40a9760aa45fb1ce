/* SPDX-License-Identifier: Apache-2.0
 * alloc_trace.c: what two kinds of programs ask of an allocator: the training of a transformer with varying sequence
 * lengths, and an LLM server with requests that come, grow and go. */
#include "bench/runtime/alloc_trace.h"

#include "bench/common/tool.h"
#include "src/base/splitmix64.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static uint64_t random_state;

static size_t draw(size_t below) {
  return (size_t)(at_splitmix64(&random_state) % below);
}

static alloc_operation *next_operation(alloc_trace *trace) {
  if (trace->count == trace->room) {
    trace->room = trace->room ? 2 * trace->room : 65536;
    trace->operations = realloc(trace->operations, trace->room * sizeof *trace->operations);
    if (!trace->operations) bench_die("no memory for a trace");
  }
  return &trace->operations[trace->count++];
}

typedef struct buffer {
  size_t id, bytes;
} buffer;

static buffer take(alloc_trace *trace, size_t bytes) {
  buffer b = {trace->ids++, bytes};
  *next_operation(trace) = (alloc_operation){bytes, b.id};
  trace->now += bytes;
  if (trace->now > trace->peak) trace->peak = trace->now;
  return b;
}

static void give(alloc_trace *trace, buffer b) {
  *next_operation(trace) = (alloc_operation){0, b.id};
  trace->now -= b.bytes;
}

enum { LAYERS = 24, SAVED = 9, STEPS = 130 };
#define HIDDEN ((size_t)1024)

/* Forward keeps what backward needs, layer by layer; backward makes gradients and frees from the last layer on.
 * Weights, their gradients and the optimiser's two moments stay. Each step has another batch of tokens. */
static void make_training(alloc_trace *trace) {
  static const size_t weights[] = {3 * HIDDEN * HIDDEN * 2, HIDDEN * HIDDEN * 2, 4 * HIDDEN * HIDDEN * 2,
                                   4 * HIDDEN * HIDDEN * 2, HIDDEN * 2,          HIDDEN * 2};
  enum { WEIGHTS = sizeof weights / sizeof weights[0] };
  buffer saved[LAYERS][SAVED], kept;
  for (int layer = 0; layer < LAYERS; layer++)
    for (int i = 0; i < WEIGHTS; i++)
      for (int copy = 0; copy < 4; copy++) (void)take(trace, copy < 2 ? weights[i] : 2 * weights[i]);
  for (int step = 0; step < STEPS; step++) {
    size_t tokens = 2048 + 64 * draw(97), activation = tokens * HIDDEN * 2;
    buffer input = take(trace, tokens * 8);
    kept = take(trace, activation);
    for (int layer = 0; layer < LAYERS; layer++) {
      static const size_t times[SAVED] = {1, 3, 1, 1, 1, 4, 4, 1, 0};
      for (int i = 0; i < SAVED; i++) {
        buffer temporary = take(trace, i % 3 == 0 ? activation / 2 : 512 * (1 + draw(64)));
        saved[layer][i] = take(trace, times[i] ? times[i] * activation : tokens * 4);
        give(trace, temporary);
      }
    }
    buffer logits = take(trace, tokens * 32000 * 2);
    buffer gradient = take(trace, tokens * 32000 * 2);
    give(trace, logits);
    buffer down = take(trace, activation);
    give(trace, gradient);
    for (int layer = LAYERS; layer-- > 0;) {
      for (int i = SAVED; i-- > 0;) {
        buffer local = take(trace, saved[layer][i].bytes);
        buffer workspace = take(trace, i % 2 ? 4 * MIB : 32768);
        give(trace, saved[layer][i]);
        give(trace, workspace);
        give(trace, local);
      }
      buffer further = take(trace, activation);
      give(trace, down);
      down = further;
    }
    give(trace, down);
    give(trace, kept);
    give(trace, input);
  }
}

enum { REQUESTS = 48, SLOTS = 24, TICKS = 2600 };

/* Each request has a cache of keys and values that grows by doubling until its answer ends; a step makes and frees
 * activations for the tokens of all requests. */
typedef struct request {
  buffer cache[SLOTS];
  buffer state;
  size_t tokens, end;
  bool active;
} request;

static size_t cache_bytes(size_t tokens) {
  size_t room = 256;
  while (room < tokens) room += room / 2 / 64 * 64;
  return room * 2048;
}

static void begin_request(alloc_trace *trace, request *r) {
  r->tokens = 64 + draw(1984);
  r->end = r->tokens + 16 + draw(1200);
  r->state = take(trace, 4096 + 8 * r->tokens);
  for (int i = 0; i < SLOTS; i++) r->cache[i] = take(trace, cache_bytes(r->tokens));
  r->active = true;
}

static void end_request(alloc_trace *trace, request *r) {
  for (int i = 0; i < SLOTS; i++) give(trace, r->cache[i]);
  give(trace, r->state);
  r->active = false;
}

static void grow_request(alloc_trace *trace, request *r, size_t more) {
  size_t before = cache_bytes(r->tokens), after = cache_bytes(r->tokens + more);
  r->tokens += more;
  for (int i = 0; i < SLOTS && after > before; i++) {
    buffer larger = take(trace, after);
    give(trace, r->cache[i]);
    r->cache[i] = larger;
  }
}

static void make_serving(alloc_trace *trace) {
  static request requests[REQUESTS];
  memset(requests, 0, sizeof requests);
  for (int i = 0; i < 32; i++) (void)take(trace, 24 * MIB + 512 * (size_t)i);
  for (int tick = 0; tick < TICKS; tick++) {
    size_t tokens = 0;
    for (int i = 0; i < REQUESTS; i++) {
      request *r = &requests[i];
      if (!r->active && draw(12) == 0) {
        begin_request(trace, r);
        tokens += r->tokens;
      } else if (r->active) {
        grow_request(trace, r, 1 + draw(8));
        tokens++;
        if (r->tokens > r->end) end_request(trace, r);
      }
    }
    for (int layer = 0; layer < 6; layer++) {
      buffer hidden = take(trace, tokens * 4096 + 512), wide = take(trace, tokens * 14336 + 512);
      buffer scratch = take(trace, 1 + draw(200000));
      give(trace, hidden);
      give(trace, scratch);
      give(trace, wide);
    }
    buffer logits = take(trace, (size_t)REQUESTS * 32000 * 4);
    give(trace, logits);
  }
}

void alloc_trace_make(alloc_trace *out, int which) {
  *out = (alloc_trace){.name = which ? "serving" : "training"};
  random_state = 1 + (uint64_t)which;
  if (which)
    make_serving(out);
  else
    make_training(out);
}

void alloc_trace_write(const alloc_trace *trace, const char *folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/alloc-%s.txt", folder, trace->name);
  FILE *file = fopen(path, "w");
  if (!file) bench_die("%s cannot be written", path);
  for (size_t i = 0; i < trace->count; i++) {
    const alloc_operation *op = &trace->operations[i];
    if (op->bytes)
      fprintf(file, "a %zu %zu\n", op->id, op->bytes);
    else
      fprintf(file, "f %zu\n", op->id);
  }
  if (fclose(file) != 0) bench_die("%s cannot be written", path);
}

void alloc_trace_drop(alloc_trace *trace) {
  free(trace->operations);
}
