/* SPDX-License-Identifier: Apache-2.0
 * alloc_trace.h: what programs ask of an allocator, recorded. */
#ifndef BENCH_ALLOC_TRACE_H
#define BENCH_ALLOC_TRACE_H

#include <stddef.h>

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

/* 0 a training step, 1 LLM serving. The same at each call, on every machine. */
void alloc_trace_make(alloc_trace *out, int which);
void alloc_trace_write(const alloc_trace *trace, const char *folder);
void alloc_trace_drop(alloc_trace *trace);

#endif
