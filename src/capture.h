/* SPDX-License-Identifier: Apache-2.0
 * capture.h: a capture under way, as the allocator and the generators see it. graph.c makes one for the time between begin and end and hangs it
 * on the stream; stream->capture is NULL otherwise, also while the program itself captures its own CUDA stream. */
#ifndef AT_CAPTURE_H
#define AT_CAPTURE_H

#include "src/backend.h"

struct attune_pool;
struct attune_generator;

/* A generator registered with a graph: kernels of the graph read {seed, base offset} from `state` in device memory and add the offset they were given
 * at capture; a replay writes both first and then moves the generator on by `increment`. */
typedef struct at_graph_generator {
  struct attune_generator *generator;
  attune_device *device;
  uint64_t *state;      /* device memory: seed, base offset */
  uint64_t increment;   /* of one replay, summed up during the capture */
  struct at_graph_generator *next;
} at_graph_generator;

typedef struct at_capture {
  attune_stream *stream;
  struct attune_pool *pool;         /* what is allocated on the stream meanwhile comes from here */
  at_graph_generator *generators;   /* those registered with the graph */
} at_capture;

/* src/random/: a generator joins a graph (makes state), is replayed (in stream order, before the graph), leaves (frees state). */
attune_status at_generator_join(struct attune_generator *generator, attune_device *device, at_graph_generator *out);
attune_status at_generator_replay(at_graph_generator *joined, attune_stream *stream);
void at_generator_leave(at_graph_generator *joined);

/* src/memory/: a pool for one graph or several (counted), and the moments the allocator must know of. begin: allocations on the stream go to the
 * pool, no event is recorded and nothing is given back to the system by anybody on the device until end (also a failed one). */
attune_status at_pool_create_private(struct attune_pool **out, attune_device *device);
void at_pool_retain(struct attune_pool *pool);
void at_pool_release(struct attune_pool *pool);
attune_status at_memory_capture_begin(attune_stream *stream, struct attune_pool *pool);
void at_memory_capture_end(attune_stream *stream);

#endif
