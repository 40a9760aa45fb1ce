/* SPDX-License-Identifier: Apache-2.0
 * capture.h: a capture under way, as the allocator and the generators see it. graph.c makes one for the time between
 * begin and end and hangs it on the stream; stream->capture is NULL otherwise, also while the program itself captures
 * its own CUDA stream. */
#ifndef AT_CAPTURE_H
#define AT_CAPTURE_H

#include <attune/graph.h>

#include <pthread.h>
#include <stdatomic.h>

#include "src/base/backend.h"

struct attune_pool;
struct attune_generator;

/* A generator registered with a graph: kernels of the graph read {seed, base offset} from `state` in device memory and
 * add the offset they were given at capture; a replay writes both first and then moves the generator on by `increment`.
 */
typedef struct at_graph_generator {
  struct attune_generator *generator;
  attune_device *device;
  uint64_t *state;    /* device memory: seed, base offset */
  uint64_t increment; /* of one replay, summed up during the capture */
  struct at_graph_generator *next;
} at_graph_generator;

typedef struct at_capture {
  attune_stream *stream;
  struct attune_pool *pool;       /* allocations on the stream during the capture come from here */
  at_graph_generator *generators; /* those registered with the graph */

  /* The rest is graph_capture.c's and the backend's. */
  struct attune_graph *graph;
  bool called; /* a callback gives the work; what called it ends the capture */
  uint64_t id; /* its number in this process */
  attune_capture_mode mode;
  pthread_t thread;        /* that began it */
  atomic_int references;   /* the graph while it is under way, and every event whose latest record lies in it */
  atomic_bool active;      /* false: it is over */
  pthread_mutex_t lock;    /* guards the fields below, and the recording */
  attune_stream **members; /* streams that joined; not the first one */
  int member_count;
  attune_status broken;           /* not OK: end fails with this ... */
  char reason[192];               /* ... and says why */
  void *recording;                /* the host's */
  struct at_externals *externals; /* the external events, for src/check/; NULL: none. The graph's after the capture */
  void *watched;                  /* src/check/'s */
  struct at_inputs *inputs;       /* graph_inputs.c's; NULL: none are noted */
  struct at_graph_calls *calls;   /* graph_calls.c's: what counts; the graph's after the capture; NULL: nothing */
} at_capture;

/* graph_inputs.c: the capture notes what its work uses; it is over, and what it noted is the caller's. */
attune_status at_inputs_begin(at_capture *capture);
struct at_inputs *at_inputs_end(at_capture *capture);

/* capture.c: the capture cannot come to a graph any more; the first reason stays. Returns `status` with the reason as
 * the thread's message. */
attune_status at_capture_break(at_capture *capture, attune_status status, const char *reason);

/* External events of a capture or a graph, in the order of its records and waits. */
typedef struct at_externals {
  size_t count;
  struct at_external {
    attune_event *event;
    bool records; /* else it waits */
  } each[];
} at_externals;

/* capture.c: such a record, or such a wait. */
attune_status at_capture_external(attune_event *event, attune_stream *stream, bool records);

/* capture.c: whether a record or a wait on the stream becomes a node of a graph that lets others see it. */
bool at_capture_is_external(const attune_event *event, attune_stream *stream);

/* capture.c: a reference less; the last one frees it. */
void at_capture_drop(at_capture *capture);

/* capture.c: what event.c asks and tells. check_event: CAPTURING when the latest record lies in a capture. record does
 * the backend's part too. */
attune_status at_capture_check_event(const attune_event *event);
attune_status at_capture_record(attune_event *event, attune_stream *stream);
void at_capture_forget_event(attune_event *event);

/* graph_capture.c: what stream.c asks and tells. wait does the backend's part too. leave: the stream is being
 * destroyed; true: its capture's end will close it. */
attune_status at_capture_wait(attune_stream *stream, attune_event *event);
bool at_capture_leave(attune_stream *stream);

/* src/random/: a generator joins a graph (makes state), is replayed (in stream order, before the graph), leaves (state
 * is free for the next one). */
attune_status at_generator_join(struct attune_generator *generator, attune_device *device, at_graph_generator *out);
attune_status at_generator_replay(at_graph_generator *joined, attune_stream *stream);
void at_generator_leave(at_graph_generator *joined);
/* A capture of the graph begins (+1) or is over (-1): seed and offset must not be set in between. */
void at_generator_capturing(at_graph_generator *joined, int change);

/* src/memory/: a pool for one graph or several (counted), and the moments the allocator must know of. begin:
 * allocations on the stream go to the pool, no event is recorded and nothing is given back to the system by anybody on
 * the device until end (also a failed one). */
attune_status at_pool_create_private(struct attune_pool **out, attune_device *device);
attune_device *at_pool_device(const struct attune_pool *pool);
void at_pool_retain(struct attune_pool *pool);
void at_pool_release(struct attune_pool *pool);
/* A graph that has the pool is about to be replayed on the stream: what is free of it is in use until that is done. */
attune_status at_pool_replay(struct attune_pool *pool, attune_stream *stream);
attune_status at_memory_capture_begin(attune_stream *stream, struct attune_pool *pool);
void at_memory_capture_end(attune_stream *stream);

#endif
