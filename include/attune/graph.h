/* SPDX-License-Identifier: Apache-2.0
 * graph.h: a piece of a stream's work, captured once and replayed at the cost of one launch, on CUDA and on the host.
 *
 * While a stream is captured, the work given to it is written down and not run: copies, fills, GEMMs, random numbers. A
 * stream that waits for an event recorded in the capture joins the capture, and must be joined back the same way before
 * the end. Memory allocated during the capture comes from a pool that lives with the graph; its addresses stay valid
 * for replays. A GEMM takes its stored winner or the best guess, and never tunes (see attune_tuner_tune_pending).
 *
 * A graph and the streams of its capture are used by one thread at a time. The memory that the work uses, the tuner
 * of its GEMMs and its generators must outlive the graph; the plans and the streams of the capture need not. Replays of one
 * graph, and of graphs that share a pool, must run one after the other, which the caller ensures; replays on one stream
 * do. */
#ifndef ATTUNE_GRAPH_H
#define ATTUNE_GRAPH_H

#include <attune/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A captured piece of work. */
typedef struct attune_graph attune_graph;

/* Where CUDA refuses calls that could break a capture (the program's own cudaMalloc, for example). Thread-local: in the
 * thread that captures. Global: in every thread. Relaxed: nowhere; then any thread may end the capture, else only the
 * one that began it. On the host the mode decides only who may end the capture. */
typedef enum attune_capture_mode {
  ATTUNE_CAPTURE_THREAD_LOCAL = 0,
  ATTUNE_CAPTURE_GLOBAL = 1,
  ATTUNE_CAPTURE_RELAXED = 2
} attune_capture_mode;

/* Options of a capture; start from ATTUNE_CAPTURE_OPTIONS_INIT. With neither `share` nor `pool` a graph makes a pool of
 * its own. */
typedef struct attune_capture_options {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_graph *share; /* use this graph's pool; the two must never run at the same time. NULL: none */
  attune_capture_mode mode;
  int keep_graph;    /* nonzero: keep what was captured, for attune_graph_debug_dump, attune_graph_native and
                     attune_graph_instantiate; the executable is then made at the first replay */
  attune_pool *pool; /* use this pool of attune_pool_create or attune_graph_pool, which the graph then holds too: many
                        graphs may, made in any order; no two of them may run at the same time. A replay writes to what
                        was free of the pool in its capture: what is allocated from the pool later, by attune_pool_begin
                        too, may be overwritten by it. NULL: none */
  int make_room;     /* nonzero: first wait for the device and give its cached memory back, pinned memory too, to leave the
                     graph all there is, as torch.cuda.graph does; CAPTURING if another capture is under way */
  int check_inputs;  /* nonzero: note which memory of attune_alloc, but the graph's own, the captured calls of attune use,
                     and what attune_note_use names (check.h); a replay then fails with INVALID_ARGUMENT once some
                     of it was freed. Not seen: memory of others, and what kernels of the program use. Memory that is
                     noted is freed by the slow path. A clone checks nothing */
} attune_capture_options;

/* The defaults. */
#define ATTUNE_CAPTURE_OPTIONS_INIT \
  { sizeof(attune_capture_options), NULL, ATTUNE_CAPTURE_THREAD_LOCAL, 0, NULL, 0, 0 }

/* A new, empty graph of `device` into *out. The caller destroys it. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY,
 * UNSUPPORTED. Any thread. */
ATTUNE_API attune_status attune_graph_create(attune_graph **out, attune_device *device);

/* Releases the graph, its executable and its hold on the pool and the generators. Its replays must be done. A capture
 * that is under way ends, and what it wrote down is dropped. The pool's free memory then serves other requests of the
 * device, those of the next graph first. NULL does nothing. When the function of attune_graph_capture_callback or
 * attune_graph_update calls this, the graph stays and the log has an error. */
ATTUNE_API void attune_graph_destroy(attune_graph *graph);

/* Starts to capture `stream` into the graph. options NULL: the defaults. The stream must be one of the graph's device,
 * and not a default stream. Errors, after which stream and graph are as before: INVALID_ARGUMENT (also: the graph is
 * captured already), UNSUPPORTED (a default stream), CAPTURING (the stream is being captured already), BUSY (the graph
 * is in a capture), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_capture_begin(attune_graph *graph, attune_stream *stream,
                                                    const attune_capture_options *options);

/* Ends the capture, on the stream that began it and in the thread that began it (any thread in mode relaxed), and makes
 * the executable. An empty graph is not an error; the log mentions it. Errors: INVALID_ARGUMENT (no capture, another
 * stream, another thread: the capture goes on), CAPTURING (something forbidden broke the capture, or a joined stream
 * was not joined back), OUT_OF_MEMORY, DEVICE_ERROR; after these the capture is over, its streams are as before it and
 * the graph is empty. */
ATTUNE_API attune_status attune_graph_capture_end(attune_graph *graph, attune_stream *stream);

/* Gives work to `stream`. Any status but OK drops the capture and is what the caller gets. */
typedef attune_status (*attune_capture_fn)(void *user, attune_stream *stream);

/* Captures what fn(user, stream) gives to `stream`, and ends the capture whatever fn returns. stream NULL: a stream made for
 * the capture, which fn is given. Errors: those of begin and end, and fn's own. */
ATTUNE_API attune_status attune_graph_capture_callback(attune_graph *graph, attune_stream *stream,
                                                       const attune_capture_options *options, attune_capture_fn fn,
                                                       void *user);

/* Captures what fn gives to `stream` and replaces what the graph had. Work of the same shape goes into the same
 * executable, which is cheap (*out_in_place = 1), other work into a new one (0). Pool and options stay. out_in_place
 * may be NULL. Earlier replays must be done. Errors, after which the graph replays what it had: INVALID_ARGUMENT (also:
 * nothing is captured yet, and stream NULL), and those of attune_graph_capture_callback. */
ATTUNE_API attune_status attune_graph_update(attune_graph *graph, attune_stream *stream, attune_capture_fn fn,
                                             void *user, int *out_in_place);

/* Makes the executable of a graph kept with keep_graph, or makes it again after the program edited the native graph.
 * Errors: INVALID_ARGUMENT (nothing is captured, or it was not kept), OUT_OF_MEMORY, DEVICE_ERROR. Not allowed in
 * capture. */
ATTUNE_API attune_status attune_graph_instantiate(attune_graph *graph);

/* Gives one replay to `stream`, any stream of the graph's device; the host's default stream runs it inline. Registered
 * generators move on by what one replay draws. Errors: INVALID_ARGUMENT (nothing is captured), CAPTURING (the graph or
 * the stream is in a capture, attune's or the program's, which goes on), DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_replay(attune_graph *graph, attune_stream *stream);

/* Puts the executable on the device ahead of the first replay, in stream order, so that the first one takes no longer than
 * the next; makes it first if need be. On the host there is nothing to put anywhere. Errors: as attune_graph_replay,
 * OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_upload(attune_graph *graph, attune_stream *stream);

/* A new graph into *out with the same work, which changes on its own from then on. It shares pool and memory with `graph`,
 * and has no executable yet. The caller destroys it. Needs keep_graph, and the clone is kept too. Errors:
 * INVALID_ARGUMENT (nothing is captured, or it was not kept), CAPTURING (in a capture), UNSUPPORTED (the graph draws from a
 * generator, which belongs to one graph: capture the work again), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_clone(attune_graph **out, const attune_graph *graph);

/* Drops what is captured and the hold on the pool; generators stay registered. The graph's replays must be done.
 * Errors: INVALID_ARGUMENT, BUSY (in a capture). */
ATTUNE_API attune_status attune_graph_reset(attune_graph *graph);

/* Allows draws from `generator` in this graph's captures; each replay then draws fresh numbers. Call it before or in a
 * capture; a second time is not an error. The graph holds the generator until the graph is destroyed. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_register_generator(attune_graph *graph, attune_generator *generator);

/* The number of pieces of work in the graph (kernels, copies, fills ...); 0 for NULL and while nothing is captured. */
ATTUNE_API size_t attune_graph_node_count(const attune_graph *graph);

/* Writes the captured graph to the file `path` in Graphviz' DOT language, replacing the file. brief nonzero: kinds and
 * order alone, without the nodes' parameters. Only with keep_graph. Errors, after which the file is as before:
 * INVALID_ARGUMENT (nothing is captured, or it was not kept; no path), CAPTURING (the graph is in a capture). Others:
 * PERMISSION, NOT_FOUND (no such folder), IO_ERROR (also: the disk is full), OUT_OF_MEMORY, DEVICE_ERROR. */
ATTUNE_API attune_status attune_graph_debug_dump(const attune_graph *graph, const char *path, int brief);

/* The cudaGraph_t, only with keep_graph; NULL on the host, and where there is none. Borrowed until the graph is
 * captured, updated, instantiated, reset or destroyed. */
ATTUNE_API void *attune_graph_native(const attune_graph *graph);

/* The cudaGraphExec_t, as above. */
ATTUNE_API void *attune_graph_native_executable(const attune_graph *graph);

/* The pool that the graph's captures take memory from into *out, made if there is none: for attune_pool_bytes, and for
 * captures of other graphs. The caller releases it with attune_pool_destroy; the graph holds it for itself. Errors:
 * INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_pool(attune_graph *graph, attune_pool **out);

/* Whether work given to a stream is written down into a graph. */
typedef enum attune_capture_state {
  ATTUNE_CAPTURE_NONE = 0,
  ATTUNE_CAPTURE_ACTIVE = 1,
  ATTUNE_CAPTURE_BROKEN = 2 /* something broke it: its end will fail */
} attune_capture_state;

/* A capture under way, as one of its streams sees it. */
typedef struct attune_capture_info {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_capture_state state;
  uint64_t id;         /* the same for all streams of one capture, another one for every other capture of the process
                          on devices of the kind; 0: none. On CUDA it is the id of cudaStreamGetCaptureInfo */
  attune_graph *graph; /* that is captured; NULL: no capture, or one of the program's own by CUDA */
} attune_capture_info;

/* Fills *out. Breaks no capture. Errors: INVALID_ARGUMENT, DEVICE_ERROR, CAPTURING (a legacy default stream, while a capture
 * is under way that CUDA does not let it be asked in). Allowed in capture. */
ATTUNE_API attune_status attune_stream_capture_info(attune_stream *stream, attune_capture_info *out);

/* 1 while work given to `stream` is written down into a graph, by attune or by the program itself; else 0, also for NULL.
 * Allowed in capture. */
ATTUNE_API int attune_stream_is_capturing(attune_stream *stream);

/* What the device holds for memory that graphs themselves allocate (CUDA: cudaMallocAsync in a capture; attune_alloc takes
 * from the graph's pool instead): the bytes in use and those taken from the device; either may be NULL. 0 on the host. Errors:
 * INVALID_ARGUMENT, DEVICE_ERROR. Any thread. */
ATTUNE_API attune_status attune_graph_memory(attune_device *device, uint64_t *out_used, uint64_t *out_reserved);

/* Gives what is not in use of that memory back to the device. Does nothing on the host. Errors and threads as above. */
ATTUNE_API attune_status attune_graph_trim(attune_device *device);

/* The graph's device. Borrowed; NULL for NULL. */
ATTUNE_API attune_device *attune_graph_device(const attune_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
