/* SPDX-License-Identifier: Apache-2.0
 * graph_nodes.h: inspection and editing of a captured graph: its nodes and edges, the nodes' parameters, and changes of
 * single nodes without another capture. Only for graphs kept with attune_capture_options.keep_graph.
 *
 * Nodes are numbered from 0 to attune_graph_node_count - 1. The numbers are valid until the graph is captured, updated,
 * reset or, after the program edited the native graph, instantiated again. On CUDA the nodes are CUDA's, including
 * kernels launched by cuBLAS and other libraries. On the host a node is a piece of work given to a stream.
 *
 * A change applies to replays given from then on, not to earlier ones. It changes the graph and its executable, in
 * place where CUDA can, otherwise with a new executable. Changed parameters survive attune_graph_instantiate and are
 * copied by attune_graph_clone; both enable every node. The memory that nodes use must outlive the graph; memory named
 * by new parameters is not checked. The race check does not know about changes: after the first one it ignores replays
 * of the graph (report them with attune_note_use).
 *
 * A graph is used by one thread at a time. */
#ifndef ATTUNE_GRAPH_NODES_H
#define ATTUNE_GRAPH_NODES_H

#include <attune/graph.h>
#include <attune/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kind of a node. */
typedef enum attune_node_kind {
  ATTUNE_NODE_OTHER = 0,  /* none of these */
  ATTUNE_NODE_KERNEL = 1, /* a kernel; on the host: a function of an operation */
  ATTUNE_NODE_COPY = 2,
  ATTUNE_NODE_FILL = 3,
  ATTUNE_NODE_CALL = 4,   /* a function of attune_stream_call, cudaLaunchHostFunc */
  ATTUNE_NODE_GRAPH = 5,  /* a child graph */
  ATTUNE_NODE_EMPTY = 6,  /* does nothing: a point where branches meet */
  ATTUNE_NODE_RECORD = 7, /* records an external event */
  ATTUNE_NODE_WAIT = 8,   /* waits for an external event */
  ATTUNE_NODE_ALLOC = 9,  /* cudaMallocAsync */
  ATTUNE_NODE_FREE = 10   /* cudaFreeAsync */
} attune_node_kind;

/* A node. */
typedef struct attune_node {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_node_kind kind;
  int enabled; /* 0: replays skip it */
  char name
      [128];    /* the kernel's, truncated; "copy", "fill", "call", "graph", "empty", "record", "wait", "alloc", "free";
                "work" if it has none */
  void *native; /* the cudaGraphNode_t of the kept graph; NULL on the host */
} attune_node;

/* Stores node `index` in *out. Errors: INVALID_ARGUMENT (nothing is captured, or it was not kept; no such node),
 * CAPTURING (the graph is in a capture), DEVICE_ERROR, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_get_node(attune_node *out, const attune_graph *graph, size_t index);

/* An edge: `to` runs after `from`. */
typedef struct attune_edge {
  size_t from, to; /* nodes */
  int early;       /* 1: `to` may start before `from` ends (a programmatic dependent launch) */
} attune_edge;

/* Stores the number of edges in *out_count, and the first `room` of them in out[], which may be NULL if room is 0.
 * These are the captured edges, which may include some implied by others. Errors as above. */
ATTUNE_API attune_status attune_graph_get_edges(const attune_graph *graph, attune_edge *out, size_t room,
                                                size_t *out_count);

/* Parameters of a node: the fields for its kind. Start from `= {0}`. */
typedef struct attune_node_parameters {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_node_kind kind;
  attune_box_copy copy; /* COPY */
  attune_box_fill fill; /* FILL; elements are as stored by attune or CUDA: zeros of any type are stored as bytes */
  attune_call_fn fn;    /* CALL */
  void *user;
  unsigned grid[3], block[3]; /* KERNEL: blocks, threads per block, bytes of dynamic shared memory; 0 on the host */
  size_t shared_bytes;
  void *arguments;       /* KERNEL: the caller's buffer for the argument block, with every argument at its offset in the
                      kernel's signature. The meaning is up to the kernel; attune's own kernels may change it between
                      versions */
  size_t arguments_room; /* size of the buffer; 0 with NULL: get only arguments_bytes */
  size_t arguments_bytes; /* size of the argument block */
} attune_node_parameters;

/* Fills *out, except arguments and arguments_room, for a node of kind KERNEL, COPY, FILL or CALL. Errors: those of
 * attune_graph_get_node, INVALID_ARGUMENT (arguments_room is too small; arguments_bytes is the size needed),
 * UNSUPPORTED (another kind; a copy of a CUDA array; a driver before 12.4, which cannot report a kernel's
 * arguments). */
ATTUNE_API attune_status attune_graph_get_parameters(attune_node_parameters *out, const attune_graph *graph,
                                                     size_t index);

/* Sets a node's parameters, of the same kind: all fields of its kind are used, so start from
 * attune_graph_get_parameters. A copy moves at least one byte, and a fill has elements of at most 4 bytes on CUDA (8
 * and 16 are kernels). arguments_bytes is the size of the argument block. Errors, after which the node is as before: as
 * above, INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_set_parameters(attune_graph *graph, size_t index,
                                                     const attune_node_parameters *parameters);

/* Disables a node of kind KERNEL, COPY or FILL in replays (enabled 0), or enables it again; nodes after it still wait
 * for those before it. Makes the executable if there is none yet. Errors: those of attune_graph_get_node, UNSUPPORTED
 * (another kind), OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_set_enabled(attune_graph *graph, size_t index, int enabled);

#ifdef __cplusplus
}
#endif
#endif
