/* SPDX-License-Identifier: Apache-2.0
 * alloc.h: what the parts of bench_alloc share: ways to allocate, and traces. */
#ifndef BENCH_ALLOC_H
#define BENCH_ALLOC_H

#include <attune/attune.h>

#include <stdbool.h>
#include <stdio.h>

/* A way to allocate and free; a context for each thread. `pair` returns nonzero when it failed. */
typedef struct alloc_way {
  const char *name;
  void *(*open)(attune_device *device);
  int (*pair)(void *context, size_t bytes);
  void (*close)(void *context);
} alloc_way;

#ifdef BENCH_WITH_CUDA
extern const alloc_way alloc_cuda_way; /* alloc_cuda.c: cudaMallocAsync */
#endif

/* bytes = 0: frees what the id was given. */
typedef struct alloc_operation {
  size_t bytes;
  size_t id;
} alloc_operation;

typedef struct alloc_trace {
  const char *name;
  alloc_operation *operations;
  size_t count, room;
  size_t ids;
  size_t now, peak; /* bytes in use */
} alloc_trace;

enum { ALLOC_TRACES = 2 };

/* alloc_trace.c: 0 a training step, 1 LLM serving. The same at each call, on every machine. */
void alloc_trace_make(alloc_trace *out, int which);
void alloc_trace_write(const alloc_trace *trace, const char *folder);
void alloc_trace_drop(alloc_trace *trace);

void alloc_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
void alloc_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void alloc_check(attune_status status, const char *what);

#endif
