/* SPDX-License-Identifier: Apache-2.0
 * graph.h: a stretch of a stream's work captured once and replayed at the cost of one launch, on CUDA and on the host.
 *
 * While a stream is captured, what it is given is written down and not run: copies, fills, GEMMs, random numbers. A
 * stream that waits for an event recorded in the capture joins it, and must be joined back the same way before the end.
 * Memory allocated meanwhile comes from a pool that lives with the graph; its addresses stay valid for replays. A GEMM
 * takes its stored winner or the best guess and never tunes (attune_tuner_tune_pending).
 *
 * A graph and the streams of its capture are used by one thread at a time. What the work reads and writes, the tuner of
 * its GEMMs and its generators outlive the graph; the streams of the capture need not. Replays of a graph, and of
 * graphs that share a pool, run one after the other: that is the caller's to see to (one stream does). */
#ifndef ATTUNE_GRAPH_H
#define ATTUNE_GRAPH_H

#include <attune/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct attune_graph attune_graph;
typedef struct attune_generator attune_generator;

/* What other work of the program may do during a CUDA capture (the host takes all as relaxed, but for who may end it):
 * thread-local: calls that could break it (the program's own cudaMalloc ...) are refused in the capturing thread;
 * global: in every thread; relaxed: nowhere, and any thread may end the capture. */
typedef enum attune_capture_mode {
  ATTUNE_CAPTURE_THREAD_LOCAL = 0,
  ATTUNE_CAPTURE_GLOBAL = 1,
  ATTUNE_CAPTURE_RELAXED = 2
} attune_capture_mode;

/* Options of a capture; start from ATTUNE_CAPTURE_OPTIONS_INIT. */
typedef struct attune_capture_options {
  attune_graph *share; /* take memory from this graph's pool too; NULL: a pool of its own. The two must never run at the
                          same time */
  attune_capture_mode mode;
  int keep_graph; /* nonzero: keep what was captured beside the executable, for attune_graph_debug_dump,
                     attune_graph_native and attune_graph_instantiate; the executable is made at the first replay */
} attune_capture_options;

#define ATTUNE_CAPTURE_OPTIONS_INIT \
  { NULL, ATTUNE_CAPTURE_THREAD_LOCAL, 0 }

/* A new, empty graph of `device` into *out. The caller destroys it. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY,
 * UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_graph_create(attune_graph **out, attune_device *device);

/* Ends a capture that is under way (what it wrote down is dropped), releases the graph, its executable, its hold on the
 * pool and its generators. What the pool has free serves other requests of the device, the next graph's before all.
 * Its replays must be done. NULL is left alone; so is, with an error in the log, a graph whose
 * own callback calls this. */
ATTUNE_API void attune_graph_destroy(attune_graph *graph);

/* Starts to capture `stream` into the graph. options NULL: the defaults. The stream is one of the graph's device and
 * not a default one. Errors, after each of which stream and graph are as before: INVALID_ARGUMENT (also: the graph is
 * captured already), UNSUPPORTED (a default stream), CAPTURING (the stream is being captured already), BUSY (the graph
 * is in a capture), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_capture_begin(attune_graph *graph, attune_stream *stream,
                                                    const attune_capture_options *options);

/* Ends the capture on the stream that began it, in the thread that began it (but in mode relaxed), and makes the
 * executable. An empty graph is no error and is logged. Errors: INVALID_ARGUMENT (no capture, another stream, another
 * thread: the capture goes on), CAPTURING (something forbidden broke the capture, or a joined stream was not joined
 * back), OUT_OF_MEMORY, DEVICE_ERROR; after these the capture is over, its streams are as before it and the graph is
 * empty. */
ATTUNE_API attune_status attune_graph_capture_end(attune_graph *graph, attune_stream *stream);

/* Gives work to `stream`; any status but OK drops the capture and is handed to the caller. */
typedef attune_status (*attune_capture_fn)(void *user, attune_stream *stream);

/* Captures what fn(user, stream) gives to `stream`, and ends the capture whatever fn returns. Errors: those of begin
 * and end, and fn's own. */
ATTUNE_API attune_status attune_graph_capture_callback(attune_graph *graph, attune_stream *stream,
                                                       const attune_capture_options *options, attune_capture_fn fn,
                                                       void *user);

/* Captures anew what fn gives to `stream` and puts it in the place of what the graph has: into the same executable
 * where the work has the same shape
 * (*out_in_place = 1; cheap), else into a new one (0). Pool and options are the graph's. out_in_place may be NULL.
 * Replays given before must be done. Errors: INVALID_ARGUMENT (also: nothing is captured yet), and those of
 * attune_graph_capture_callback: then the graph replays what it had. */
ATTUNE_API attune_status attune_graph_update(attune_graph *graph, attune_stream *stream, attune_capture_fn fn,
                                             void *user, int *out_in_place);

/* Makes the executable of a graph kept with keep_graph, again if it has one (after the program edited the native
 * graph). Errors: INVALID_ARGUMENT (nothing is captured, or it was not kept), OUT_OF_MEMORY, DEVICE_ERROR. Not allowed
 * in capture. */
ATTUNE_API attune_status attune_graph_instantiate(attune_graph *graph);

/* Gives one replay to `stream`, any of the graph's device, also the default one (on the host that runs it inline).
 * Registered generators move on by what one replay draws. Errors: INVALID_ARGUMENT (nothing is captured), CAPTURING
 * (the graph or the stream is in a capture, also one of the program's own: it goes on), DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_replay(attune_graph *graph, attune_stream *stream);

/* Drops what is captured and the hold on the pool; generators stay registered. Replays must be done. Errors:
 * INVALID_ARGUMENT, BUSY (in a capture). */
ATTUNE_API attune_status attune_graph_reset(attune_graph *graph);

/* Random numbers of `generator` may be drawn in this graph's captures: each replay then draws fresh ones. Before or in
 * a capture; a second time is no error. The graph holds it until it is destroyed. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_register_generator(attune_graph *graph, attune_generator *generator);

/* Pieces of work in the graph (kernels, copies, fills ...); 0 for NULL and while nothing is captured. */
ATTUNE_API size_t attune_graph_node_count(const attune_graph *graph);

/* Writes the captured graph to the file `path` in Graphviz' DOT language, replacing the file. Only with keep_graph; not
 * in the graph's own capture. Errors: INVALID_ARGUMENT (nothing is captured, or it was not kept; no path), CAPTURING
 * (the graph is in a capture), after which the file is as before; PERMISSION, NOT_FOUND (there is no such folder),
 * IO_ERROR (also: the disk is full), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_debug_dump(const attune_graph *graph, const char *path);

/* The cudaGraph_t (only with keep_graph) and the cudaGraphExec_t; NULL on the host, and where there is none. Borrowed,
 * until the graph is captured, updated, instantiated, reset or destroyed. */
ATTUNE_API void *attune_graph_native(const attune_graph *graph);

/* The cudaGraphExec_t, as above. */
ATTUNE_API void *attune_graph_native_executable(const attune_graph *graph);

/* The graph's device. Borrowed; NULL for NULL. */
ATTUNE_API attune_device *attune_graph_device(const attune_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
