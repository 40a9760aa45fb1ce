/* SPDX-License-Identifier: Apache-2.0
 * instrument.h: hooks that calls report to: the race check (src/check/) and the ranges for profilers (trace.c). While
 * no hook is enabled a call costs one load of `at_instrumented_bits`. src/check/, src/graph/graph_inputs.c and trace.c
 * define the functions below; they take a lock of their own, call nothing else under it, and may be called under any
 * other lock. */
#ifndef AT_INSTRUMENT_H
#define AT_INSTRUMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/backend.h"

/* Bits of at_instrumented_bits. */
enum { AT_INSTRUMENT_RACES = 1, AT_INSTRUMENT_NAMES = 2, AT_INSTRUMENT_BLOCKING = 4, AT_INSTRUMENT_INPUTS = 16 };
/* Most dimensions of an access, and most accesses of a call. */
enum { AT_INSTRUMENT_DIMS = 8, AT_INSTRUMENT_USES = 32 };

extern atomic_uint at_instrumented_bits __attribute__((visibility("hidden"))); /* no look-up of its address */

AT_INLINE unsigned at_instrumented(void) {
  return atomic_load_explicit(&at_instrumented_bits, memory_order_relaxed);
}

/* Somebody wants to hear what is used: the race check, or a capture that notes its inputs. */
AT_INLINE bool at_instrumented_races(void) {
  return AT_UNLIKELY((at_instrumented() & (AT_INSTRUMENT_RACES | AT_INSTRUMENT_INPUTS)) != 0);
}

/* Memory that a piece of work reads, writes or both: `element` bytes at `data`, and again at each sum of multiples
 * of the steps. */
typedef struct at_operand_access {
  const char *operand; /* copied */
  const void *data;
  size_t element;
  int dims;
  int64_t counts[AT_INSTRUMENT_DIMS], steps[AT_INSTRUMENT_DIMS]; /* steps in bytes, of any sign */
  bool reads, writes;
} at_operand_access;

/* Work that `stream` was given, by the public function or the name `call` (copied). NULL: the calling thread itself.
 * May tell the program of races: no lock is held. */
void at_instrument_use(attune_stream *stream, const char *call, const at_operand_access *uses, int count);

/* src/graph/graph_inputs.c: the captured work uses this. */
void at_inputs_note(struct at_capture *capture, const at_operand_access *uses, int count);

/* Plain memory, as a use. */
static inline at_operand_access at_instrument_bytes(const char *operand, const void *data, size_t bytes, bool writes) {
  return (at_operand_access){.operand = operand, .data = data, .element = bytes, .reads = !writes, .writes = writes};
}

/* Events and waits that went well. `reached`: the calling thread saw that the event was reached; `idle`: that the
 * stream's work is done; `device_idle`: that of all streams of the device. */
void at_instrument_record(attune_event *event, attune_stream *stream);
void at_instrument_wait(attune_stream *stream, const attune_event *event);
void at_instrument_reached(const attune_event *event);
void at_instrument_idle(attune_stream *stream);
void at_instrument_device_idle(const attune_device *device);
void at_instrument_event_gone(attune_event *event);
void at_instrument_stream_gone(attune_stream *stream); /* its work is done, or part of a capture */

/* A function to be run as work of `stream`: what it calls is not watched. In place of fn and user give what comes
 * back. */
void at_instrument_call(const attune_stream *stream, attune_call_fn *fn, void **user);

/* Memory was handed out on `stream` (NULL: pinned memory), or is freed: it is used again after the work given so far to
 * the streams `after`. Under the allocator's lock: at_instrument_tell follows without it. */
void at_instrument_alloc(attune_stream *stream, const void *pointer, size_t bytes);
void at_instrument_free(const char *call, attune_stream *stream, const void *pointer, size_t bytes,
                        attune_stream *const *after, int count);
void at_instrument_tell(void);

/* A capture begins; it ends and its work is `graph`'s (or, with `kept` false, dropped); a replay; a graph that has
 * nothing any more. `capture` and `graph` are the places where the watcher keeps what it needs. */
void at_instrument_capture_begin(struct at_capture *capture, attune_stream *stream);
void at_instrument_capture_end(struct at_capture *capture, void **graph, bool kept);
void at_instrument_replay(void *const *graph, attune_stream *stream);
void at_instrument_graph_gone(void **graph);
void *at_instrument_graph_clone(void *graph); /* the same for another graph */

/* Before and after work is given to a stream: a range in a profiler's time line, of the calling thread, if a tool wants
 * names; and if launches are to block, a wait for the work, whose status it then is. end takes what name gave, and the
 * status of the giving. */
bool at_instrument_name(const char *format, ...) AT_PRINTF(1, 2);
attune_status at_instrument_end(bool named, attune_stream *stream, attune_status status);
bool at_trace_built(void); /* with NVTX */
void at_trace_begin(void); /* as at_instrument_start, of the names */

/* Starts what the environment asks for. Called once, when the devices are known. */
void at_instrument_start(void);

/* src/memory/: every allocation of every device takes the slow path while it is watched. */
void at_memory_watch(void);

#endif
