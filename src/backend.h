/* SPDX-License-Identifier: Apache-2.0
 * backend.h: what a kind of device can do. host/ and cuda/ fill it; a NULL slot is unsupported. */
#ifndef AT_BACKEND_H
#define AT_BACKEND_H

#include <attune/memory.h>

#include "src/support.h"

typedef struct at_graph at_graph; /* backend-private */

/* What the device's clocks do: measurements taken while `slowed` are thrown away. */
typedef struct at_clock_state {
  int clock_mhz;     /* 0: not known */
  bool slowed;       /* hardware or thermal slowdown (not a mere power cap) */
  int foreign;       /* other processes that compute on the device; -1: not known */
} at_clock_state;

typedef struct at_backend {
  const char *name; /* "host", "cuda" */
  attune_device_kind kind;

  /* How many devices of this kind exist; creates no context. */
  int (*count)(void);
  /* Fills device->properties and what needs no context. */
  attune_status (*device_open)(attune_device *device);
  attune_status (*device_synchronize)(attune_device *device);
  attune_status (*clock_state)(attune_device *device, at_clock_state *out);

  attune_status (*alloc)(attune_device *device, void **out, size_t bytes);
  attune_status (*free)(attune_device *device, void *pointer);
  attune_status (*copy)(attune_stream *stream, void *destination, const void *source, size_t bytes);
  attune_status (*fill)(attune_stream *stream, void *destination, int value, size_t bytes);

  /* stream->native is given when wrapping (owned == false), else made here. */
  attune_status (*stream_open)(attune_stream *stream);
  void (*stream_close)(attune_stream *stream);
  attune_status (*stream_query)(attune_stream *stream);
  attune_status (*stream_synchronize)(attune_stream *stream);
  attune_status (*stream_wait)(attune_stream *stream, attune_event *event);
  bool (*stream_capturing)(attune_stream *stream);

  attune_status (*event_open)(attune_event *event);
  void (*event_close)(attune_event *event);
  attune_status (*event_record)(attune_event *event, attune_stream *stream);
  attune_status (*event_query)(attune_event *event);
  attune_status (*event_synchronize)(attune_event *event);
  attune_status (*event_elapsed)(double *out_ns, attune_event *start, attune_event *stop);

  /* Capture what `stream` is given between begin and end into an instantiated, uploaded graph. A failed end leaves the
   * stream usable. */
  attune_status (*capture_begin)(attune_stream *stream);
  attune_status (*capture_end)(attune_stream *stream, at_graph **out);
  attune_status (*graph_launch)(at_graph *graph, attune_stream *stream);
  void (*graph_destroy)(at_graph *graph);
} at_backend;

struct attune_device {
  const at_backend *backend;
  int ordinal;              /* among its kind */
  int index;                /* among all devices of the process */
  char name[16];
  attune_device_properties properties;
  attune_stream *default_stream;
  void *state;              /* the backend's */
};

struct at_capture; /* src/capture.h */

struct attune_stream {
  attune_device *device;
  struct at_capture *capture; /* under way by attune_graph_capture_begin; NULL: none */
  void *native;             /* cudaStream_t */
  void *state;              /* the backend's: host queue (NULL: inline), cuda handles and workspace */
  bool owned;               /* attune made `native` */
};

struct attune_event {
  attune_device *device;
  void *native;             /* cudaEvent_t */
  void *state;
  bool owned;
};

extern const at_backend at_host_backend;
extern const at_backend at_cuda_backend; /* only in a build with CUDA (AT_WITH_CUDA) */

/* True while `stream` is being captured into a graph. */
bool at_stream_capturing(attune_stream *stream);

#endif
