/* SPDX-License-Identifier: Apache-2.0
 * backend.h: what a kind of device can do, as tables of functions that src/host/ and src/cuda/ fill. */
#ifndef AT_BACKEND_H
#define AT_BACKEND_H

#include <attune/details.h>
#include <attune/graph_nodes.h>
#include <attune/managed.h>
#include <attune/pointer.h>
#include <attune/telemetry.h>
#include <attune/transfer.h>

#include "src/base/support.h"

#include <stdio.h>

typedef struct at_graph at_graph; /* backend-private */
struct at_random_call;            /* src/random/call.h */
struct at_reduce_call;            /* src/comm/reduce.h */

/* State of the calling thread that `enter` changed. */
typedef struct at_entered {
  int previous, mode;
  bool relaxed;
  void *context;
} at_entered;

/* State of the device's clocks: measurements taken while `slowed` are thrown away. */
typedef struct at_clock_state {
  int clock_mhz; /* 0: not known */
  bool slowed;   /* hardware or thermal slowdown (not a mere power cap) */
  int foreign;   /* other processes that compute on the device; -1: not known */
} at_clock_state;

/* The tables of a backend. A device lacks what a table that is NULL is for, and at_needs says so in the table's own
 * words. A table that is there has all its slots: where there is nothing to do a slot does nothing, and a slot may
 * still refuse with a message of its own. X(name, what the device lacks): devices have all of the first five. */
#define AT_BACKEND_TABLES(X)                                                    \
  X(device, "device calls")                                                     \
  X(telemetry, "telemetry")                                                     \
  X(memory, "memory")                                                           \
  X(stream, "streams")                                                          \
  X(event, "events")                                                            \
  X(graph, "graphs")                                                            \
  X(random, "random numbers")                                                   \
  X(pinned, "pinned memory")                                                    \
  X(async, "stream-ordered allocator in the driver")                            \
  X(managed, "managed memory")                                                  \
  X(vm, "virtual memory")                                                       \
  X(ipc, "memory and events shared between processes; should be a CUDA device") \
  X(peer, "peers")                                                              \
  X(notes, "tool that tracks memory")                                           \
  X(runtime, "CUDA runtime; errors, attributes, limits, schedules, profiler and cuBLAS need a CUDA device")

/* The device as a whole. */
typedef struct at_backend_device {
  /* How many devices of this kind exist; creates no context. */
  int (*count)(void);
  /* Fills device->properties and what needs no context. */
  attune_status (*open)(attune_device *device);
  attune_status (*synchronize)(attune_device *device);
  /* Waits for the work of all streams that attune has, except those in a capture. No capture of the program breaks. */
  attune_status (*wait_streams)(attune_device *device);
  /* Between the two no call that attune makes in this thread breaks a capture of another thread, also calls of
   * libraries that make calls of their own. relax returns what restore takes. */
  int (*relax)(const attune_device *device);
  void (*restore)(int before);
  /* Between the two the device is the one that libraries of its vendor work on in this thread, and relax is in
   * force. */
  attune_status (*enter)(attune_device *device, at_entered *out);
  void (*leave)(const at_entered *entered);
  /* Makes what the first work would make, and says whether there is a context. */
  attune_status (*initialize)(attune_device *device);
  bool (*is_initialized)(const attune_device *device);
  /* See details.h; what is not known stays. */
  attune_status (*details)(attune_device *device, attune_device_details *out);
  /* Its own libraries, besides those of the ops; the last return value of `fn`. */
  int (*each_library)(attune_library_fn fn, void *user);
} at_backend_device;

typedef struct at_backend_telemetry {
  attune_status (*clock_state)(attune_device *device, at_clock_state *out);
  /* Fills in what it knows; the rest stays. And the processes that compute. */
  void (*read)(attune_device *device, attune_telemetry *out);
  attune_status (*each_process)(attune_device *device, attune_device_process_fn fn, void *user);
} at_backend_telemetry;

/* Raw memory, and moving it in stream order. */
typedef struct at_backend_memory {
  /* Aligned to 512 bytes at least; what programs are given comes out of it by src/memory/. `free` first waits for the
   * work of the whole device; not to be called while a capture is under way. */
  attune_status (*alloc)(attune_device *device, void **out, size_t bytes);
  attune_status (*free)(attune_device *device, void *pointer);
  attune_status (*info)(attune_device *device, uint64_t *out_free, uint64_t *out_total);
  /* Fills in what is known of an address; the rest stays. */
  attune_status (*pointer_info)(attune_device *device, attune_pointer_info *out, const void *pointer);
  attune_status (*copy)(attune_stream *stream, void *destination, const void *source, size_t bytes);
  /* copy between memory of two devices of one kind that the caller knows (NULL: one that it does not), outside of
   * captures. */
  attune_status (*copy_between)(attune_stream *stream, void *destination, const attune_device *to, const void *source,
                                const attune_device *from, size_t bytes);
  attune_status (*fill)(attune_stream *stream, void *destination, int value, size_t bytes);
  /* `rows` times `bytes`, at distances of the pitches; and arrays reduced to one (src/comm/reduce.h). */
  attune_status (*copy_rows)(attune_stream *stream, void *destination, size_t destination_pitch, const void *source,
                             size_t source_pitch, size_t bytes, size_t rows);
  attune_status (*reduce)(attune_stream *stream, const struct at_reduce_call *call);
  /* Nothing of these is zero, and every pitch is one that counts or what it would be. */
  attune_status (*copy_box)(attune_stream *stream, const attune_box_copy *copy);
  attune_status (*fill_box)(attune_stream *stream, const attune_box_fill *fill);
} at_backend_memory;

/* Host memory that the device reads and writes by itself: made here, or the program's (pin, unpin). */
typedef struct at_backend_pinned {
  attune_status (*alloc)(attune_device *device, void **out, size_t bytes);
  attune_status (*free)(attune_device *device, void *pointer);
  attune_status (*pin)(attune_device *device, void *pointer, size_t bytes);
  attune_status (*unpin)(attune_device *device, void *pointer);
} at_backend_pinned;

/* The driver's own allocator, in stream order; check: whether the device has it. */
typedef struct at_backend_async {
  attune_status (*check)(attune_device *device);
  attune_status (*alloc)(attune_stream *stream, void **out, size_t bytes);
  attune_status (*free)(attune_stream *stream, void *pointer);
} at_backend_async;

/* Managed memory, which memory->free frees. check: whether there is some, and with `advised` whether it may be
 * advised. */
typedef struct at_backend_managed {
  attune_status (*check)(attune_device *device, bool advised);
  attune_status (*alloc)(attune_device *device, void **out, size_t bytes);
  attune_status (*advise)(attune_device *device, void *pointer, size_t bytes, const attune_managed_options *o);
  attune_status (*prefetch)(attune_stream *stream, void *pointer, size_t bytes, attune_device *to);
  attune_status (*state)(attune_device *device, attune_managed_state *out, const void *pointer, size_t bytes);
} at_backend_managed;

/* Virtual memory: addresses are reserved once, and memory is mapped to stretches of them and taken away again; both
 * are multiples of the granularity. What is unmapped is not in use by any work: unmap waits for it. */
typedef struct at_backend_vm {
  attune_status (*granularity)(attune_device *device, size_t *out);
  attune_status (*reserve)(attune_device *device, void **out, size_t bytes);
  void (*release)(attune_device *device, void *base, size_t bytes);
  attune_status (*map)(attune_device *device, void *address, size_t bytes, uint64_t *out_handle);
  attune_status (*unmap)(attune_device *device, void *address, size_t bytes, uint64_t handle);
} at_backend_vm;

/* Sharing between processes. */
typedef struct at_backend_ipc {
  /* Mapped memory for another process, as a descriptor that the caller closes; and, as vm->map, a mapping of what such
   * a descriptor, which stays the caller's, is of. vm->unmap ends that too. */
  attune_status (*page_export)(attune_device *device, uint64_t handle, int *out_descriptor);
  attune_status (*page_import)(attune_device *device, void *address, size_t bytes, int descriptor,
                               uint64_t *out_handle);
  /* Memory of another process: `base` is what memory->alloc gave. */
  attune_status (*memory_export)(attune_device *device, void *base, unsigned char out_handle[64]);
  attune_status (*memory_open)(attune_device *device, const unsigned char handle[64], void **out_base);
  attune_status (*memory_close)(attune_device *device, void *base);
  attune_status (*event_export)(attune_event *event, attune_event_ipc *out);
  attune_status (*event_import)(attune_event *event, const attune_event_ipc *handle); /* fills event->native */
} at_backend_ipc;

/* Two devices of this kind. */
typedef struct at_backend_peer {
  attune_status (*query)(int *out, attune_device *device, attune_device *peer);
  attune_status (*enable)(attune_device *device, attune_device *peer);
  attune_status (*disable)(attune_device *device, attune_device *peer);
} at_backend_peer;

/* Notes for tools that watch memory: of a segment that blocks are taken from (NULL: no tool runs), and of blocks in it
 * that may be used. */
typedef struct at_backend_notes {
  void *(*segment)(attune_device *device, const void *base, size_t bytes);
  void (*forget_segment)(attune_device *device, void *note);
  void (*block)(attune_device *device, void *note, const void *address, size_t bytes);
  void (*forget_block)(attune_device *device, void *note, const void *address);
} at_backend_notes;

typedef struct at_backend_stream {
  /* stream->native is given when wrapping (owned == false), else made here. */
  attune_status (*open)(attune_stream *stream);
  void (*close)(attune_stream *stream);
  /* Whether the calling thread does the stream's work, or with NULL any stream's. */
  bool (*runs_here)(const attune_stream *stream);
  attune_status (*query)(attune_stream *stream);
  attune_status (*synchronize)(attune_stream *stream);
  attune_status (*wait)(attune_stream *stream, attune_event *event);
  bool (*capturing)(attune_stream *stream);
  /* The program's stream: does it wait for the legacy default stream, and that for it? */
  bool (*joins)(const attune_stream *stream);
  /* Runs fn(user) on a thread of the CPU in stream order; in a capture it becomes part of the graph. */
  attune_status (*call)(attune_stream *stream, attune_call_fn fn, void *user);
} at_backend_stream;

typedef struct at_backend_event {
  attune_status (*open)(attune_event *event);
  void (*close)(attune_event *event);
  attune_status (*record)(attune_event *event, attune_stream *stream);
  attune_status (*query)(attune_event *event);
  attune_status (*synchronize)(attune_event *event);
  attune_status (*elapsed)(double *out_ns, attune_event *start, attune_event *stop);
} at_backend_event;

/* Runs a call in stream order; writes {seed, offset} in stream order. */
typedef struct at_backend_random {
  attune_status (*run)(attune_stream *stream, const struct at_random_call *call);
  attune_status (*state)(attune_stream *stream, uint64_t *state, uint64_t seed, uint64_t offset);
} at_backend_random;

/* Captures and graphs. */
typedef struct at_backend_graph {
  /* Capture what `stream` is given between the two. Without stream->capture the graph is instantiated and uploaded;
   * with it (attune_graph_capture_begin) instantiate does that. A failed end leaves the stream usable. */
  attune_status (*capture_begin)(attune_stream *stream);
  attune_status (*capture_end)(attune_stream *stream, at_graph **out);
  /* Of a capture of attune's or the program's: *id is attune's before, and 0 where there is none. */
  attune_status (*capture_info)(attune_stream *stream, uint64_t *id, bool *broken);
  attune_status (*launch)(at_graph *graph, attune_stream *stream);
  void (*destroy)(at_graph *graph);
  /* Makes the executable again. `keep`: what was captured stays with it. */
  attune_status (*instantiate)(at_graph *graph, bool keep);
  /* Gives `graph` (captured, no executable yet) an executable: that of `older` changed in place where the shape allows
   * (*in_place), else a new one. After a failure `older` is as before. */
  attune_status (*update)(at_graph *graph, at_graph *older, bool keep, bool *in_place);
  size_t (*nodes)(const at_graph *graph);
  /* The caller checks the file itself for errors. `brief`: without parameters. */
  attune_status (*dump)(const at_graph *graph, FILE *file, bool brief);
  void *(*native)(const at_graph *graph, bool executable); /* NULL: it has none */
  /* Of what was captured, and kept. `out` is cleared; get_parameters has the kind and room for arguments in *out, and
   * says how long the block is if the room is too small. */
  attune_status (*node)(at_graph *graph, size_t index, attune_node *out);
  attune_status (*edges)(at_graph *graph, attune_edge *out, size_t room, size_t *out_count);
  attune_status (*get_parameters)(at_graph *graph, size_t index, attune_node_parameters *out);
  attune_status (*set_parameters)(at_graph *graph, size_t index, const attune_node_parameters *parameters);
  attune_status (*set_enabled)(at_graph *graph, size_t index, bool enabled);
  attune_status (*clone)(const at_graph *graph, at_graph **out); /* of what was captured: no executable */
  attune_status (*upload)(at_graph *graph, attune_stream *stream);
  attune_status (*trim)(attune_device *device);
  attune_status (*memory)(attune_device *device, uint64_t *out_used, uint64_t *out_reserved);
} at_backend_graph;

/* CUDA only. */
typedef struct at_backend_runtime {
  /* An error number of the backend's own, that a call of the program gave, as a status and a message. */
  attune_status (*check_error)(attune_device *device, int error, const char *what);
  attune_status (*attribute)(attune_device *device, int attribute, int *out);
  attune_status (*get_limit)(attune_device *device, attune_limit limit, size_t *out);
  attune_status (*set_limit)(attune_device *device, attune_limit limit, size_t bytes);
  attune_status (*get_schedule)(attune_device *device, attune_schedule *out);
  attune_status (*set_schedule)(attune_device *device, attune_schedule schedule);
  attune_status (*profiler)(attune_device *device, bool start); /* of all devices of this kind */
  attune_status (*blas)(attune_stream *stream, void **out);     /* the stream's handle of cuBLAS */
  /* Lower numbers come first. Without it all priorities are equal. */
  attune_status (*priorities)(attune_device *device, int *out_least, int *out_greatest);
  int (*threads_per_processor)(const attune_device *device);
} at_backend_runtime;

/* A device holds a copy of its kind's: a call by a table is two loads. */
typedef struct at_backend {
  const char *name; /* "host", "cuda" */
  attune_device_kind kind;
  bool nccl, cufile; /* these know devices of this kind */
#define AT_BACKEND_TABLE(name, what) const at_backend_##name *name;
  AT_BACKEND_TABLES(AT_BACKEND_TABLE)
#undef AT_BACKEND_TABLE
} at_backend;

#define AT_BACKEND_TABLE(name, what) AT_TABLE_##name,
typedef enum at_backend_table { AT_BACKEND_TABLES(AT_BACKEND_TABLE) AT_BACKEND_TABLE_COUNT } at_backend_table;
#undef AT_BACKEND_TABLE

/* OK where the device has the table; else UNSUPPORTED, with the table's message. */
#define at_needs(device, table) \
  (AT_LIKELY((device)->backend.table != NULL) ? ATTUNE_OK : at_device_lacks(device, AT_TABLE_##table))
attune_status at_device_lacks(const attune_device *device, at_backend_table lacking);

struct attune_device {
  at_backend backend; /* of its kind */
  int ordinal;        /* among its kind */
  int index;          /* among all devices of the process */
  char name[16];
  char identity[64]; /* of the device itself, whatever its number in this process: a GPU's UUID, the host's boot */
  attune_device_properties properties;
  attune_stream *default_stream;
  unsigned alignment_mask;     /* at_device_alignment - 1 */
  int captures;                /* under way on its streams; atomic */
  void *state;                 /* the backend's */
  struct at_allocator *memory; /* src/memory/'s; made at first use, kept for ever */
};

/* Bytes of alignment from which on more makes no difference to the device's speed: a line of a GPU's L2 cache, a vector
 * of a CPU. Its mask is stored, so that a call needs one instruction. */
static inline int at_device_alignment(const attune_device *device) {
  return (int)device->alignment_mask + 1;
}

struct at_capture;   /* src/stream/capture.h */
struct at_allocator; /* src/memory/malloc/allocator.h */
struct at_stream_cache;

struct attune_stream {
  attune_device *device;
  struct at_capture *capture;     /* under way by attune_graph_capture_begin; NULL: none */
  void *native;                   /* cudaStream_t */
  void *state;                    /* the backend's: host queue (NULL: inline), cuda handles and workspace */
  bool owned;                     /* attune made `native` */
  bool pooled;                    /* stream_pool.c's: never closed */
  bool doomed;                    /* destroyed while it was part of a capture: closed at the capture's end */
  int priority;                   /* given when it is opened */
  struct at_stream_cache *memory; /* src/memory/'s; made at first use */
  uint64_t watched;               /* src/check/'s; 0: it does not know the stream */
};

struct attune_event {
  attune_device *device;
  void *native; /* cudaEvent_t */
  void *state;
  bool owned;
  attune_event_options options;
  struct at_capture *capture; /* counted: the capture that the latest record lies in, under way or over; NULL: none */
  void *point;                /* the host's: where in its recording; released by free() */
  void *watched;              /* src/check/'s; NULL: it knows of no record */
  bool unwatched;             /* attune's own: no order of the program's follows from it */
};

extern const at_backend at_host_backend;
extern const at_backend at_cuda_backend; /* only in a build with CUDA (AT_WITH_CUDA) */

/* In a function that a stream of the device runs: a wait for all streams would never end, and at_device_check_waits is
 * INVALID_ARGUMENT. */
bool at_device_runs_here(const attune_device *device);
attune_status at_device_check_waits(const attune_device *device);

/* src/memory/: around the closing of a stream, and when a device is lost: its memory is not handed out any more. Any
 * thread. */
void at_memory_stream_closing(attune_stream *stream);
void at_memory_stream_closed(struct at_stream_cache *cache);
void at_memory_device_lost(attune_device *device);

/* True while `stream` is being captured into a graph. */
bool at_stream_capturing(attune_stream *stream);

/* UNSUPPORTED: the device has no `what`. */
attune_status at_unsupported(const attune_device *device, const char *what);

#endif
