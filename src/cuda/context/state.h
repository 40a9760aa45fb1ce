/* SPDX-License-Identifier: Apache-2.0
 * state.h: what the CUDA backend keeps for each device and stream, and its slots, which cuda/device/device.c
 * collects. */
#ifndef AT_CUDA_STATE_H
#define AT_CUDA_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/cuda/context/cuda.h"
#include "src/cuda/library/nvml.h"

typedef struct at_cuda_page at_cuda_page;           /* virtual_memory.c's */
typedef struct at_cuda_idle_blas at_cuda_idle_blas; /* blas_handle_pool.c's */

/* Whether mapped memory of a device can be opened by other processes. */
enum { AT_CUDA_SHAREABLE_UNKNOWN, AT_CUDA_SHAREABLE, AT_CUDA_NOT_SHAREABLE };

/* device->state, made by device_open and never freed: the device is the process's. */
typedef struct at_cuda_device {
  atomic_int dead;              /* the sticky error that killed the context; 0 while it lives */
  atomic_bool named;            /* seen_by is written */
  char seen_by[64];             /* the call that saw it first */
  unsigned generation;          /* at_fork_generation() at the opening: CUDA does not survive a fork after it */
  _Atomic(void *) context;      /* the primary context, once it was seen; NULL before */
  _Atomic(cublasLtHandle_t) lt; /* set once */
  pthread_mutex_t lock;         /* guards the fields below */
  void *nvml;                   /* NVML's handle of this device; NULL: not looked for, or none */
  bool nvml_sought;
  at_nvml_constants constants;
  int foreign; /* the latest count of foreign processes, taken at foreign_ns */
  int64_t foreign_ns;
  at_cuda_idle_blas *idle;        /* cuBLAS handles without a stream */
  int idle_workspaces;            /* of them with a workspace */
  atomic_int shareable;           /* AT_CUDA_SHAREABLE_... */
  pthread_mutex_t pages_lock;     /* guards the fields below; no other lock is taken under it */
  at_cuda_page *pages;            /* mapped memory of the device */
  uint64_t readers;               /* other devices that may use it, a bit for each ordinal */
  atomic_bool untracked;          /* kernels of jit.c may run where at_cuda_wait_all_streams does not wait, for ever */
  pthread_mutex_t streams_lock;   /* guards the list; no other lock is taken under it */
  struct at_cuda_stream *streams; /* open ones, the program's too */
} at_cuda_device;

/* stream->state. A stream is used by one thread at a time, the legacy default stream too; so nothing here is locked,
 * except for its place in the device's list. */
typedef struct at_cuda_stream {
  struct at_cuda_stream *next, *previous;
  const attune_stream *stream;
  cublasHandle_t blas;
  cublasMath_t math; /* as last set on blas */
  size_t blas_bytes; /* workspace as last set on blas; SIZE_MAX: set it again */
  void *workspace;
  size_t workspace_bytes;
  struct at_cuda_retired *retired;
  /* In an attune_graph's capture: memory of the graph's pool, so that replays touch nothing of the stream. */
  const struct at_capture *blas_capture; /* that blas_bytes is of; NULL: none */
  void *capture_workspace;
  size_t capture_bytes;
} at_cuda_stream;

/* A workspace that was outgrown. Captured graphs may still use it: freed with the stream. */
typedef struct at_cuda_retired {
  struct at_cuda_retired *next;
  void *workspace;
} at_cuda_retired;

static inline at_cuda_device *at_cuda_device_of(const attune_device *device) {
  return (at_cuda_device *)device->state;
}
static inline at_cuda_stream *at_cuda_stream_of(const attune_stream *stream) {
  return (at_cuda_stream *)stream->state;
}
static inline cudaStream_t at_cuda_native(const attune_stream *stream) {
  return (cudaStream_t)stream->native;
}

/* device_guard.c: at_cuda_check for a number of the program's. */
attune_status at_cuda_check_number(attune_device *device, int error, const char *what);

/* context.c: the thread's context, if the program made it by the driver's API (cuCtxCreate): it is none of the
 * runtime's, and `ordinal` is its device. And makes one the thread's. */
void *at_cuda_foreign_context(int ordinal);
void at_cuda_set_context(void *context);

/* The device whose primary context the program's stream belongs to; NULL: not known. */
attune_device *at_cuda_stream_home(void *native);

/* DEVICE_ERROR in a child of the process that opened the device; at_cuda_enter checks it too. */
attune_status at_cuda_check_fork(const attune_device *device);

/* stream.c */
attune_status at_cuda_stream_priorities(attune_device *device, int *out_least, int *out_greatest);
attune_status at_cuda_stream_open(attune_stream *stream);
void at_cuda_stream_close(attune_stream *stream);
attune_status at_cuda_stream_query(attune_stream *stream);
attune_status at_cuda_stream_synchronize(attune_stream *stream);
attune_status at_cuda_stream_call(attune_stream *stream, attune_call_fn fn, void *user);
attune_status at_cuda_stream_wait(attune_stream *stream, attune_event *event);
bool at_cuda_stream_capturing(attune_stream *stream);
bool at_cuda_stream_joins(const attune_stream *stream);
attune_status at_cuda_event_open(attune_event *event);
void at_cuda_event_close(attune_event *event);
attune_status at_cuda_event_record(attune_event *event, attune_stream *stream);
attune_status at_cuda_event_query(attune_event *event);
attune_status at_cuda_event_synchronize(attune_event *event);
attune_status at_cuda_event_elapsed(double *out_ns, attune_event *start, attune_event *stop);

/* graph.c */
attune_status at_cuda_capture_begin(attune_stream *stream);
attune_status at_cuda_capture_end(attune_stream *stream, at_graph **out);
attune_status at_cuda_graph_launch(at_graph *graph, attune_stream *stream);
void at_cuda_graph_destroy(at_graph *graph);
attune_status at_cuda_graph_instantiate(at_graph *graph, bool keep);
attune_status at_cuda_graph_update(at_graph *graph, at_graph *older, bool keep, bool *in_place);
size_t at_cuda_graph_nodes(const at_graph *graph);
attune_status at_cuda_graph_clone(const at_graph *graph, at_graph **out);
attune_status at_cuda_graph_upload(at_graph *graph, attune_stream *stream);
attune_status at_cuda_graph_trim(attune_device *device);
attune_status at_cuda_graph_memory(attune_device *device, uint64_t *out_used, uint64_t *out_reserved);
attune_status at_cuda_capture_info(attune_stream *stream, uint64_t *id, bool *broken);
attune_status at_cuda_graph_dump(const at_graph *graph, FILE *file, bool brief);

/* graph_nodes.c */
attune_status at_cuda_graph_node(at_graph *graph, size_t index, attune_node *out);
attune_status at_cuda_graph_edges(at_graph *graph, attune_edge *out, size_t room, size_t *out_count);
attune_status at_cuda_graph_get_parameters(at_graph *graph, size_t index, attune_node_parameters *out);
attune_status at_cuda_graph_set_parameters(at_graph *graph, size_t index, const attune_node_parameters *p);
attune_status at_cuda_graph_set_enabled(at_graph *graph, size_t index, bool enabled);

/* graph.c */
void *at_cuda_graph_native(const at_graph *graph, bool executable);

/* stream.c: events that other processes use */
attune_status at_cuda_event_export(attune_event *event, attune_event_ipc *out);
attune_status at_cuda_event_import(attune_event *event, const attune_event_ipc *handle);

/* peer.c */
attune_status at_cuda_peer_query(int *out, attune_device *device, attune_device *peer);
attune_status at_cuda_peer_enable(attune_device *device, attune_device *peer);
attune_status at_cuda_peer_disable(attune_device *device, attune_device *peer);

/* device_sync.c: the list of the device's streams; and a wait for the work of all that are in no capture. */
void at_cuda_stream_enlist(attune_stream *stream);
void at_cuda_stream_delist(attune_stream *stream);
attune_status at_cuda_wait_streams(attune_device *device);

/* device_sync.c: the same, and says whether that was all: false when a stream was left out. */
attune_status at_cuda_wait_all_streams(attune_device *device, bool *all);

/* blas_handle_pool.c: the stream's handle, and perhaps its workspace, are kept when it is closed; a stream without a
 * handle gets one of those, false: there is none. The device is current. */
void at_cuda_blas_keep(attune_stream *stream);
bool at_cuda_blas_take(attune_stream *stream);

/* blas.c: the stream's capture ends: its workspace goes back to the graph's pool. */
void at_cuda_blas_leave_capture(attune_stream *stream);

/* blas.c: releases the handle and the workspaces; the stream's work is done. */
void at_cuda_blas_close(attune_stream *stream);

/* context.c: a function of the driver, which is not linked, into *out, a pointer to a function pointer; false: it has
 * none. For functions that exist since CUDA 10.2; the other one for those of a later version, 12000 for 12.0. */
bool at_cuda_driver_call(void *out, const char *name);
bool at_cuda_driver_call_since(void *out, const char *name, unsigned version);

/* context.c: true when the device is known to be current in this thread; false says nothing. The other one is for a
 * thread in which CUDA works: it notes the device's primary context, if there is one by now. */
bool at_cuda_is_current(const attune_device *device);
void at_cuda_remember_context(const attune_device *device);

/* context.c: attune's device of CUDA's number; NULL: there is none. */
attune_device *at_cuda_device_at(int ordinal);

/* details.c */
attune_status at_cuda_details(attune_device *device, attune_device_details *out);
attune_status at_cuda_attribute(attune_device *device, int attribute, int *out);
attune_status at_cuda_get_limit(attune_device *device, attune_limit limit, size_t *out);
attune_status at_cuda_set_limit(attune_device *device, attune_limit limit, size_t bytes);

/* context_init.c */
attune_status at_cuda_initialize(attune_device *device);
bool at_cuda_is_initialized(const attune_device *device);
attune_status at_cuda_get_schedule(attune_device *device, attune_schedule *out);
attune_status at_cuda_set_schedule(attune_device *device, attune_schedule schedule);

/* cuda/device/annotate.c */
attune_status at_cuda_profiler(attune_device *device, bool start);

/* telemetry.c */
attune_status at_cuda_clock_state(attune_device *device, at_clock_state *out);
void at_cuda_telemetry(attune_device *device, attune_telemetry *out);
attune_status at_cuda_each_process(attune_device *device, attune_device_process_fn fn, void *user);

#endif
