/* SPDX-License-Identifier: Apache-2.0
 * graph.h: part of a stream's work, captured once and replayed at the cost of one launch, on CUDA and on the host.
 *
 * While a stream is captured, work given to it is recorded and not run: copies, fills, GEMMs, random numbers. A stream
 * that waits for an event recorded in the capture joins the capture, and must be joined back the same way before the
 * end. Memory allocated during the capture comes from a pool that lives with the graph; its addresses stay valid for
 * replays. A GEMM uses its stored winner or the best guess, and never tunes (see attune_tuner_tune_pending).
 *
 * A graph and the streams of its capture are used by one thread at a time. The memory that the work uses, the tuner of
 * its GEMMs and its generators must outlive the graph; the plans and streams of the capture need not. Replays of one
 * graph, and of graphs that share a pool, must not overlap; the caller ensures this. Replays on one stream never
 * overlap. */
#ifndef ATTUNE_GRAPH_H
#define ATTUNE_GRAPH_H

#include <attune/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A captured sequence of work. */
typedef struct attune_graph attune_graph;

/* Scope in which CUDA refuses calls that could break a capture (the program's own cudaMalloc, for example).
 * Thread-local: the capturing thread. Global: every thread. Relaxed: none; any thread may then end the capture,
 * otherwise only the one that began it. On the host the mode only decides which threads may end the capture. */
typedef enum attune_capture_mode {
  ATTUNE_CAPTURE_THREAD_LOCAL = 0,
  ATTUNE_CAPTURE_GLOBAL = 1,
  ATTUNE_CAPTURE_RELAXED = 2
} attune_capture_mode;

/* Options of a capture; start from ATTUNE_CAPTURE_OPTIONS_INIT. With neither `share` nor `pool` a graph creates a pool
 * of its own. */
typedef struct attune_capture_options {
  size_t size;         /* sizeof this struct, or 0 (types.h) */
  attune_graph *share; /* use this graph's pool; the two must never run at the same time. NULL: none */
  attune_capture_mode mode;
  int keep_graph;    /* nonzero: keep the captured graph, for attune_graph_debug_dump, attune_graph_native and
                        attune_graph_instantiate; the executable is then made at the first replay */
  attune_pool *pool; /* use this pool of attune_pool_create or attune_graph_pool, which the graph then also holds. Many
                        graphs, captured in any order, may use one pool; no two of them may run at the same time. A
                        replay writes to memory that was free in the pool at its capture, so it may overwrite what is
                        allocated from the pool later, including by attune_pool_begin. NULL: none */
  int make_room;     /* nonzero: first wait for the device and return its cached memory, also pinned memory, to leave
                        the graph all there is, as torch.cuda.graph does; CAPTURING if another capture is in progress */
  int check_inputs;  /* nonzero: track which memory of attune_alloc, except the graph's own, is used by the captured
                        attune calls and named by attune_note_use (check.h); a replay fails with INVALID_ARGUMENT once
                        any of it was freed. Not tracked: other memory, and memory used by the program's kernels.
                        Tracked memory is freed by the slow path. A clone checks nothing */
} attune_capture_options;

/* The defaults. */
#define ATTUNE_CAPTURE_OPTIONS_INIT \
  { sizeof(attune_capture_options), NULL, ATTUNE_CAPTURE_THREAD_LOCAL, 0, NULL, 0, 0 }

/* Creates an empty graph of `device` and stores it in *out. The caller destroys it. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY, UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_graph_create(attune_graph **out, attune_device *device);

/* Releases the graph, its executable and its references to the pool and the generators. Its replays must be done. A
 * capture in progress ends and is discarded. The pool's free memory then serves other requests of the device, first
 * those of the next graph. NULL does nothing. If called by the function of attune_graph_capture_callback or
 * attune_graph_update, keeps the graph and logs an error. */
ATTUNE_API void attune_graph_destroy(attune_graph *graph);

/* Starts to capture `stream` into the graph. options NULL: the defaults. The stream must be one of the graph's device,
 * and not a default stream. Errors, after which stream and graph are as before: INVALID_ARGUMENT (also: the graph is
 * already captured), UNSUPPORTED (a default stream), CAPTURING (the stream is already being captured), BUSY (the graph
 * is in a capture), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_capture_begin(attune_graph *graph, attune_stream *stream,
                                                    const attune_capture_options *options);

/* Ends the capture, on the stream that began it and in the thread that began it (any thread in mode relaxed), and makes
 * the executable. An empty graph is not an error, but is logged. Errors: INVALID_ARGUMENT (no capture, another stream,
 * another thread: the capture goes on), CAPTURING (a forbidden call broke the capture, or a joined stream was not
 * joined back), OUT_OF_MEMORY, DEVICE_ERROR; after all but INVALID_ARGUMENT the capture is over, its streams are as
 * before it and the graph is empty. */
ATTUNE_API attune_status attune_graph_capture_end(attune_graph *graph, attune_stream *stream);

/* Gives work to `stream`. Any status but OK discards the capture and is returned to the caller. */
typedef attune_status (*attune_capture_fn)(void *user, attune_stream *stream);

/* Captures the work that fn(user, stream) gives to `stream`; the capture ends whatever fn returns. stream NULL: a
 * stream created for the capture and passed to fn. Errors: those of begin and end, and fn's own. */
ATTUNE_API attune_status attune_graph_capture_callback(attune_graph *graph, attune_stream *stream,
                                                       const attune_capture_options *options, attune_capture_fn fn,
                                                       void *user);

/* Captures the work that fn gives to `stream` and replaces the graph's content. Work of the same shape updates the
 * executable in place, which is cheap (*out_in_place = 1); other work gets a new executable (0). Pool and options are
 * kept. out_in_place may be NULL. Earlier replays must be done. Errors, after which the graph replays its previous
 * content: INVALID_ARGUMENT (also: nothing is captured yet; stream is NULL), and those of
 * attune_graph_capture_callback. */
ATTUNE_API attune_status attune_graph_update(attune_graph *graph, attune_stream *stream, attune_capture_fn fn,
                                             void *user, int *out_in_place);

/* Makes the executable of a graph kept with keep_graph, or remakes it after the program edited the native graph.
 * Errors: INVALID_ARGUMENT (nothing is captured, or it was not kept), OUT_OF_MEMORY, DEVICE_ERROR. Not allowed in
 * capture. */
ATTUNE_API attune_status attune_graph_instantiate(attune_graph *graph);

/* Gives one replay to `stream`, any stream of the graph's device; the host's default stream runs it inline. Registered
 * generators advance by the numbers that one replay draws. Errors: INVALID_ARGUMENT (nothing is captured), CAPTURING
 * (the graph or the stream is in a capture, attune's or the program's, which goes on), DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_replay(attune_graph *graph, attune_stream *stream);

/* Uploads the executable to the device ahead of the first replay, in stream order, so that the first replay takes no
 * longer than the next; makes it first if needed. On the host there is nothing to upload. Errors: those of
 * attune_graph_replay, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_upload(attune_graph *graph, attune_stream *stream);

/* Copies the graph into a new one, stored in *out, that can then be changed independently. It shares pool and memory
 * with `graph`, and has no executable yet. The caller destroys it. Needs keep_graph, and the clone is kept too. Errors:
 * INVALID_ARGUMENT (nothing is captured, or it was not kept), CAPTURING (in a capture), UNSUPPORTED (the graph draws
 * from a generator, which belongs to one graph: capture the work again), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_clone(attune_graph **out, const attune_graph *graph);

/* Discards the captured work and releases the pool; generators stay registered. The graph's replays must be done.
 * Errors: INVALID_ARGUMENT, BUSY (in a capture). */
ATTUNE_API attune_status attune_graph_reset(attune_graph *graph);

/* Allows draws from `generator` in this graph's captures; each replay then draws fresh numbers. Call it before or in a
 * capture; registering twice is not an error. The graph holds a reference to the generator until the graph is
 * destroyed. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_register_generator(attune_graph *graph, attune_generator *generator);

/* Returns the number of nodes in the graph (kernels, copies, fills ...); 0 for NULL and while nothing is captured. */
ATTUNE_API size_t attune_graph_node_count(const attune_graph *graph);

/* Writes the captured graph to the file `path` in Graphviz' DOT language, replacing the file. brief nonzero: only kinds
 * and order, without the nodes' parameters. Only with keep_graph. Errors, after which the file is as before:
 * INVALID_ARGUMENT (nothing is captured, or it was not kept; no path), CAPTURING (the graph is in a capture). Others:
 * PERMISSION, NOT_FOUND (no such folder), IO_ERROR (also: the disk is full), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_debug_dump(const attune_graph *graph, const char *path, int brief);

/* Returns the cudaGraph_t, only with keep_graph; NULL on the host, and if there is none. Borrowed until the graph is
 * captured, updated, instantiated, reset or destroyed. */
ATTUNE_API void *attune_graph_native(const attune_graph *graph);

/* Returns the cudaGraphExec_t; NULL on the host, and if there is none. Borrowed as above. */
ATTUNE_API void *attune_graph_native_executable(const attune_graph *graph);

/* Stores in *out the pool that the graph's captures allocate from, created if there is none: for attune_pool_get_info,
 * and for captures of other graphs. The caller releases it with attune_pool_destroy; the graph keeps its own reference.
 * Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_pool(attune_graph *graph, attune_pool **out);

/* State of a stream's capture. */
typedef enum attune_capture_state {
  ATTUNE_CAPTURE_NONE = 0,
  ATTUNE_CAPTURE_ACTIVE = 1,
  ATTUNE_CAPTURE_BROKEN = 2 /* the capture was broken: ending it will fail */
} attune_capture_state;

/* A capture in progress, as seen by one of its streams. */
typedef struct attune_capture_info {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_capture_state state;
  uint64_t id;         /* the same for all streams of one capture, and unique among this process's captures on this kind
                          of device; 0: none. On CUDA it is the id of cudaStreamGetCaptureInfo */
  attune_graph *graph; /* the graph being captured; NULL: no capture, or one of the program's own by CUDA */
} attune_capture_info;

/* Fills *out. Does not break a capture. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING (a legacy default stream
 * during a capture in which CUDA does not allow the query). Allowed in capture. */
ATTUNE_API attune_status attune_stream_capture_info(attune_stream *stream, attune_capture_info *out);

/* Returns 1 while work given to `stream` is recorded into a graph, by attune or by the program itself; otherwise 0,
 * also for NULL. Allowed in capture. */
ATTUNE_API int attune_stream_is_capturing(attune_stream *stream);

/* Stores the bytes in use and the bytes taken from the device for memory that graphs themselves allocate (CUDA:
 * cudaMallocAsync in a capture; attune_alloc uses the graph's pool instead); either may be NULL. 0 on the host. Errors:
 * INVALID_ARGUMENT, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_graph_memory(attune_device *device, uint64_t *out_used, uint64_t *out_reserved);

/* Returns the unused part of that memory to the device. Does nothing on the host. Errors and threads as above. */
ATTUNE_API attune_status attune_graph_trim(attune_device *device);

/* Returns the graph's device. Borrowed; NULL for NULL. */
ATTUNE_API attune_device *attune_graph_device(const attune_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
