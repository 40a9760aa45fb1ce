/* SPDX-License-Identifier: Apache-2.0
 * backend.h: what a kind of device can do. host/ and cuda/ fill it; a NULL slot is unsupported. */
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

/* What `enter` changed in the calling thread. */
typedef struct at_entered {
  int previous, mode;
  bool relaxed;
  void *context;
} at_entered;

/* What the device's clocks do: measurements taken while `slowed` are thrown away. */
typedef struct at_clock_state {
  int clock_mhz; /* 0: not known */
  bool slowed;   /* hardware or thermal slowdown (not a mere power cap) */
  int foreign;   /* other processes that compute on the device; -1: not known */
} at_clock_state;

typedef struct at_backend {
  const char *name; /* "host", "cuda" */
  attune_device_kind kind;

  /* How many devices of this kind exist; creates no context. */
  int (*count)(void);
  /* Fills device->properties and what needs no context. */
  attune_status (*device_open)(attune_device *device);
  attune_status (*device_synchronize)(attune_device *device);
  /* Waits for the work of all streams that attune has, except those in a capture. No capture of the program breaks. */
  attune_status (*wait_streams)(attune_device *device);
  /* Between the two no call that attune makes in this thread breaks a capture of another thread, also calls of libraries
   * that make calls of their own. relax returns what restore takes. NULL: nothing ever does. */
  int (*relax)(const attune_device *device);
  void (*restore)(int before);
  /* Between the two the device is the one that libraries of its vendor work on in this thread, and relax is in force.
   * NULL: there are no such libraries. */
  attune_status (*enter)(attune_device *device, at_entered *out);
  void (*leave)(const at_entered *entered);
  bool nccl, cufile; /* these know devices of this kind */
  attune_status (*clock_state)(attune_device *device, at_clock_state *out);
  /* Fills in what it knows; the rest stays. And the processes that compute. NULL: it knows nothing. */
  void (*telemetry)(attune_device *device, attune_telemetry *out);
  attune_status (*profiler)(attune_device *device, bool start); /* of all devices of this kind. NULL: there is none */
  attune_status (*each_process)(attune_device *device, attune_device_process_fn fn, void *user);
  /* Makes what the first work would make, and says whether there is a context. NULL: there is nothing to make. */
  attune_status (*initialize)(attune_device *device);
  bool (*is_initialized)(const attune_device *device);
  /* See details.h; what is not known stays. NULL: nothing is, and there are no limits and attributes. */
  attune_status (*details)(attune_device *device, attune_device_details *out);
  attune_status (*attribute)(attune_device *device, int attribute, int *out);
  attune_status (*get_limit)(attune_device *device, attune_limit limit, size_t *out);
  attune_status (*set_limit)(attune_device *device, attune_limit limit, size_t bytes);
  attune_status (*get_schedule)(attune_device *device, attune_schedule *out);
  attune_status (*set_schedule)(attune_device *device, attune_schedule schedule);
  /* Its own libraries, besides those of the ops; the last return value of `fn`. */
  int (*each_library)(attune_library_fn fn, void *user);

  /* An error number of the backend's own, that a call of the program gave, as a status and a message. NULL: it has none. */
  attune_status (*check_error)(attune_device *device, int error, const char *what);

  /* Raw memory, aligned to 512 bytes at least; what programs are given comes out of it by src/memory/. `free` first
   * waits for the work of the whole device; not to be called while a capture is under way. */
  attune_status (*alloc)(attune_device *device, void **out, size_t bytes);
  attune_status (*free)(attune_device *device, void *pointer);
  /* The driver's own allocator, in stream order; check: whether the device has it. All NULL: it has none. */
  attune_status (*async_check)(attune_device *device);
  attune_status (*alloc_async)(attune_stream *stream, void **out, size_t bytes);
  attune_status (*free_async)(attune_stream *stream, void *pointer);
  attune_status (*memory_info)(attune_device *device, uint64_t *out_free, uint64_t *out_total);
  attune_status (*pinned_alloc)(attune_device *device, void **out, size_t bytes);
  attune_status (*pinned_free)(attune_device *device, void *pointer);
  /* Memory of the program. Both NULL: there is nothing to do. */
  attune_status (*pinned_register)(attune_device *device, void *pointer, size_t bytes);
  attune_status (*pinned_unregister)(attune_device *device, void *pointer);
  /* Fills in what is known of an address; the rest stays. NULL: nothing is. */
  attune_status (*pointer_info)(attune_device *device, attune_pointer_info *out, const void *pointer);

  /* Managed memory, which `free` frees. check: whether there is some, and with `advised` whether it may be advised. The
   * other slots may be NULL: there is nothing to do, or to tell. */
  attune_status (*managed_check)(attune_device *device, bool advised);
  attune_status (*managed_alloc)(attune_device *device, void **out, size_t bytes);
  attune_status (*managed_advise)(attune_device *device, void *pointer, size_t bytes, const attune_managed_options *o);
  attune_status (*managed_prefetch)(attune_stream *stream, void *pointer, size_t bytes, attune_device *to);
  attune_status (*managed_state)(attune_device *device, attune_managed_state *out, const void *pointer, size_t bytes);

  /* Virtual memory: addresses are reserved once, and memory is mapped to stretches of them and taken away again; both
   * are multiples of the granularity. What is unmapped is not in use by any work: vm_unmap waits for it. All NULL: the
   * device has none. */
  attune_status (*vm_granularity)(attune_device *device, size_t *out);
  attune_status (*vm_reserve)(attune_device *device, void **out, size_t bytes);
  void (*vm_release)(attune_device *device, void *base, size_t bytes);
  attune_status (*vm_map)(attune_device *device, void *address, size_t bytes, uint64_t *out_handle);
  attune_status (*vm_unmap)(attune_device *device, void *address, size_t bytes, uint64_t handle);

  /* Mapped memory for another process, as a descriptor that the caller closes; and, as vm_map, a mapping of what such a
   * descriptor, which stays the caller's, is of. vm_unmap ends that too. NULL: others cannot have it. */
  attune_status (*vm_export)(attune_device *device, uint64_t handle, int *out_descriptor);
  attune_status (*vm_import)(attune_device *device, void *address, size_t bytes, int descriptor, uint64_t *out_handle);

  /* Memory of another process: `base` is what `alloc` gave. */
  attune_status (*ipc_export)(attune_device *device, void *base, unsigned char out_handle[64]);
  attune_status (*ipc_open)(attune_device *device, const unsigned char handle[64], void **out_base);
  attune_status (*ipc_close)(attune_device *device, void *base);

  /* Tells tools that look at memory of a piece of it that blocks are taken from (NULL: no tool is there), and of blocks
   * in it that may be used. All NULL: no tool can be. */
  void *(*note_segment)(attune_device *device, const void *base, size_t bytes);
  void (*forget_segment)(attune_device *device, void *note);
  void (*note_block)(attune_device *device, void *note, const void *address, size_t bytes);
  void (*forget_block)(attune_device *device, void *note, const void *address);

  /* Runs fn(user) on a thread of the CPU in stream order; in a capture it becomes part of the graph. */
  attune_status (*call)(attune_stream *stream, attune_call_fn fn, void *user);
  attune_status (*copy)(attune_stream *stream, void *destination, const void *source, size_t bytes);
  /* The same between memory of two devices of one kind that the caller knows (NULL: one that it does not), outside of
   * captures. NULL: copy does as well. */
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

  /* stream->native is given when wrapping (owned == false), else made here. */
  attune_status (*stream_open)(attune_stream *stream);
  void (*stream_close)(attune_stream *stream);
  /* Whether the calling thread does the stream's work, or with NULL any stream's. NULL: no thread does. */
  bool (*stream_runs_here)(const attune_stream *stream);
  attune_status (*stream_query)(attune_stream *stream);
  attune_status (*stream_synchronize)(attune_stream *stream);
  attune_status (*stream_wait)(attune_stream *stream, attune_event *event);
  bool (*stream_capturing)(attune_stream *stream);
  /* The program's stream: does it wait for the legacy default stream, and that for it? NULL: no stream does. */
  bool (*stream_joins)(const attune_stream *stream);

  attune_status (*event_open)(attune_event *event);
  void (*event_close)(attune_event *event);
  attune_status (*event_record)(attune_event *event, attune_stream *stream);
  attune_status (*event_query)(attune_event *event);
  attune_status (*event_synchronize)(attune_event *event);
  attune_status (*event_elapsed)(double *out_ns, attune_event *start, attune_event *stop);

  /* Random numbers: runs a call in stream order; writes {seed, offset} in stream order; threads that a multiprocessor
   * of the GPU has. */
  attune_status (*random_run)(attune_stream *stream, const struct at_random_call *call);
  attune_status (*random_state)(attune_stream *stream, uint64_t *state, uint64_t seed, uint64_t offset);
  int (*threads_per_processor)(const attune_device *device);

  /* NULL: every priority is the same. Lower numbers come first. */
  attune_status (*stream_priorities)(attune_device *device, int *out_least, int *out_greatest);
  attune_status (*event_export)(attune_event *event, attune_event_ipc *out);
  attune_status (*event_import)(attune_event *event, const attune_event_ipc *handle); /* fills event->native */
  attune_status (*peer_query)(int *out, attune_device *device, attune_device *peer);  /* two devices of this kind */
  attune_status (*peer_enable)(attune_device *device, attune_device *peer);
  attune_status (*peer_disable)(attune_device *device, attune_device *peer);
  attune_status (*blas)(attune_stream *stream, void **out); /* the stream's handle of the vendor's. NULL: it has none */

  /* Capture what `stream` is given between begin and end. Without stream->capture the graph is instantiated and
   * uploaded; with it (attune_graph_capture_begin) graph_instantiate does that. A failed end leaves the stream usable.
   */
  attune_status (*capture_begin)(attune_stream *stream);
  attune_status (*capture_end)(attune_stream *stream, at_graph **out);
  attune_status (*graph_launch)(at_graph *graph, attune_stream *stream);
  void (*graph_destroy)(at_graph *graph);
  /* Makes the executable again. `keep`: what was captured stays beside it. */
  attune_status (*graph_instantiate)(at_graph *graph, bool keep);
  /* Gives `graph` (captured, no executable yet) an executable: that of `older` changed in place where the shape allows
   * (*in_place), else a new one. After a failure `older` is as before. */
  attune_status (*graph_update)(at_graph *graph, at_graph *older, bool keep, bool *in_place);
  size_t (*graph_nodes)(const at_graph *graph);
  /* What fails of the file itself is the caller's to see. `brief`: without parameters. */
  attune_status (*graph_dump)(const at_graph *graph, FILE *file, bool brief);
  void *(*graph_native)(const at_graph *graph, bool executable);
  /* Of what was captured, and kept. `out` is cleared; get_parameters has the kind and room for arguments in *out, and
   * says how long the block is if the room is too small. All NULL: a graph has no inside. */
  attune_status (*graph_node)(at_graph *graph, size_t index, attune_node *out);
  attune_status (*graph_edges)(at_graph *graph, attune_edge *out, size_t room, size_t *out_count);
  attune_status (*graph_get_parameters)(at_graph *graph, size_t index, attune_node_parameters *out);
  attune_status (*graph_set_parameters)(at_graph *graph, size_t index, const attune_node_parameters *parameters);
  attune_status (*graph_set_enabled)(at_graph *graph, size_t index, bool enabled);
  attune_status (*graph_clone)(const at_graph *graph, at_graph **out); /* of what was captured: no executable */
  /* NULL: there is nothing to do, or to tell. */
  attune_status (*graph_upload)(at_graph *graph, attune_stream *stream);
  attune_status (*graph_trim)(attune_device *device);
  attune_status (*graph_memory)(attune_device *device, uint64_t *out_used, uint64_t *out_reserved);
  /* Of a capture of attune's or the program's; *id 0: there is none. NULL: attune's are all there are. */
  attune_status (*capture_info)(attune_stream *stream, uint64_t *id, bool *broken);
} at_backend;

struct attune_device {
  const at_backend *backend;
  int ordinal; /* among its kind */
  int index;   /* among all devices of the process */
  char name[16];
  char identity[64]; /* of the device itself, whatever its number in this process: a GPU's UUID, the host's boot */
  attune_device_properties properties;
  attune_stream *default_stream;
  int captures;                /* under way on its streams; atomic */
  void *state;                 /* the backend's */
  struct at_allocator *memory; /* src/memory/'s; made at first use, kept for ever */
};

/* Bytes of alignment from which on more makes no difference to the device's speed: a line of a GPU's L2 cache, a vector
 * of a CPU. */
static inline int at_device_alignment(const attune_device *device) {
  return device->properties.kind == ATTUNE_DEVICE_HOST ? 16 : 128;
}

struct at_capture;   /* src/stream/capture.h */
struct at_allocator; /* src/memory/malloc/allocator.h */
struct at_stream_cache;

struct attune_stream {
  attune_device *device;
  struct at_capture *capture; /* under way by attune_graph_capture_begin; NULL: none */
  void *native;               /* cudaStream_t */
  void *state;                /* the backend's: host queue (NULL: inline), cuda handles and workspace */
  bool owned;                 /* attune made `native` */
  bool pooled;                /* stream_pool.c's: never closed */
  bool doomed;                /* destroyed while it was part of a capture: closed at the capture's end */
  int priority;               /* given when it is opened */
  struct at_stream_cache *memory;    /* src/memory/'s; made at first use */
  uint64_t watched;           /* src/check/'s; 0: it does not know the stream */
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
void at_memory_stream_closed(struct at_stream_cache *front);
void at_memory_device_lost(attune_device *device);

/* True while `stream` is being captured into a graph. */
bool at_stream_capturing(attune_stream *stream);

/* UNSUPPORTED: the device has no `what`. */
attune_status at_unsupported(const attune_device *device, const char *what);

#endif
