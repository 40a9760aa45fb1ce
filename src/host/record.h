/* SPDX-License-Identifier: Apache-2.0
 * record.h: captures of the host. Work given to a stream in a capture is written down with a copy of its arguments. */
#ifndef AT_HOST_RECORD_H
#define AT_HOST_RECORD_H

#include "src/stream/capture.h"

/* A set of nodes, by number: what comes after it waits for all of them. */
typedef struct at_points {
  uint32_t count, room;
  uint32_t *node;
} at_points;

typedef struct at_node {
  void (*fn)(const void *args);
  size_t args, bytes;         /* where in the arguments, and how many */
  uint32_t first_edge, edges; /* the nodes it waits for: edge[first_edge ...] */
} at_node;

/* The recorded work. While it is under way the capture's lock guards it; afterwards it is constant. */
typedef struct at_recording {
  at_node *node;
  uint32_t nodes, node_room;
  uint32_t *edge;
  uint32_t edges, edge_room;
  unsigned char *args; /* aligned as malloc does */
  size_t args_bytes, args_room;
} at_recording;

void at_recording_free(at_recording *recording);

/* False: no memory, and *out is empty. */
bool at_recording_copy(at_recording *out, const at_recording *from);

/* The host backend's functions for a stream in a capture. end: whatever comes of it, the capture has no recording any
 * more; *out is the caller's, empty on failure. */
attune_status at_record_begin(attune_stream *stream);
attune_status at_record_end(attune_stream *stream, at_recording *out);
attune_status at_record_work(attune_stream *stream, void (*fn)(const void *args), const void *args, size_t bytes);
attune_status at_record_event(attune_event *event, attune_stream *stream);
attune_status at_record_wait(attune_stream *stream, attune_event *event);

#endif
