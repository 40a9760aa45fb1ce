/* SPDX-License-Identifier: Apache-2.0
 * graph_nodes.h: the inside of a captured graph: its nodes and edges, what the nodes do, and changes of single nodes
 * without another capture. Only for graphs kept with attune_capture_options.keep_graph.
 *
 * Nodes are numbered from 0 to attune_graph_node_count - 1. The numbers hold until the graph is captured, updated, reset or,
 * after the program edited the native graph, instantiated again. On CUDA nodes are those of CUDA, also of kernels that
 * cuBLAS and other libraries launched. On the host a node is a piece of work that a stream was given.
 *
 * A change holds for replays given from then on; those given before do what they did. The graph is changed, and so is its
 * executable, in place where CUDA can do that, else by a new one. Changed parameters outlive attune_graph_instantiate and
 * come with attune_graph_clone; there every node is enabled. The memory that nodes use must outlive the graph, and what new
 * parameters say is not checked. The race check does not know the changes: from the first one on it does not look at replays
 * of the graph (attune_note_use tells it).
 *
 * A graph is used by one thread at a time. */
#ifndef ATTUNE_GRAPH_NODES_H
#define ATTUNE_GRAPH_NODES_H

#include <attune/graph.h>
#include <attune/transfer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a node does. */
typedef enum attune_node_kind {
  ATTUNE_NODE_OTHER = 0,  /* none of these */
  ATTUNE_NODE_KERNEL = 1, /* a kernel; on the host: a function of an operation */
  ATTUNE_NODE_COPY = 2,
  ATTUNE_NODE_FILL = 3,
  ATTUNE_NODE_CALL = 4,   /* a function of attune_stream_call, cudaLaunchHostFunc */
  ATTUNE_NODE_GRAPH = 5,  /* a graph in the graph */
  ATTUNE_NODE_EMPTY = 6,  /* nothing: a place where branches meet */
  ATTUNE_NODE_RECORD = 7, /* records an external event */
  ATTUNE_NODE_WAIT = 8,   /* waits for one */
  ATTUNE_NODE_ALLOC = 9,  /* cudaMallocAsync */
  ATTUNE_NODE_FREE = 10   /* cudaFreeAsync */
} attune_node_kind;

/* A node. */
typedef struct attune_node {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_node_kind kind;
  int enabled; /* 0: replays leave it out */
  char name
      [128]; /* the kernel's, cut; "copy", "fill", "call", "graph", "empty", "record", "wait", "alloc", "free"; "work"
                     where it has none */
  void *native; /* the cudaGraphNode_t of the kept graph; NULL on the host */
} attune_node;

/* Node `index` into *out. Errors: INVALID_ARGUMENT (nothing is captured, or it was not kept; no such node), CAPTURING (the
 * graph is in a capture), DEVICE_ERROR, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_get_node(attune_node *out, const attune_graph *graph, size_t index);

/* `to` runs after `from`. */
typedef struct attune_edge {
  size_t from, to; /* nodes */
  int early;       /* 1: `to` may start before `from` ends (a programmatic dependent launch) */
} attune_edge;

/* How many edges there are into *out_count, and the first `room` of them into out[], which may be NULL if room is 0. They
 * are those that were captured: what follows from two others may be among them. Errors as above. */
ATTUNE_API attune_status attune_graph_get_edges(const attune_graph *graph, attune_edge *out, size_t room,
                                                size_t *out_count);

/* What a node does in detail: the fields of its kind. Start from `= {0}`. */
typedef struct attune_node_parameters {
  size_t size; /* sizeof this struct, or 0 (types.h) */
  attune_node_kind kind;
  attune_box_copy copy; /* COPY */
  attune_box_fill fill; /* FILL; elements are as attune or CUDA keeps them: zeros of any type are bytes */
  attune_call_fn fn;    /* CALL */
  void *user;
  unsigned grid[3], block[3]; /* KERNEL: blocks, threads of a block, bytes of dynamic shared memory; 0 on the host */
  size_t shared_bytes;
  void *arguments; /* KERNEL: the caller's buffer for the argument block, every argument at the offset that it has in
                             the kernel's signature. What it has in it is the kernel's affair: also attune's own kernels
                             are free to change that from version to version */
  size_t arguments_room;  /* bytes of the buffer; 0 with NULL: only arguments_bytes is wanted */
  size_t arguments_bytes; /* of the block */
} attune_node_parameters;

/* Fills *out, except arguments and arguments_room, for a node of kind KERNEL, COPY, FILL or CALL. Errors: as
 * attune_graph_get_node, INVALID_ARGUMENT (arguments_room is less than the block; arguments_bytes says what it is),
 * UNSUPPORTED (another kind; a copy of a CUDA array; a driver before 12.4, which does not tell a kernel's arguments). */
ATTUNE_API attune_status attune_graph_get_parameters(attune_node_parameters *out, const attune_graph *graph,
                                                     size_t index);

/* Gives a node new parameters of the same kind: all fields of its kind count, so start from those that it has. A copy moves
 * at least one byte, and a fill has elements of at most 4 bytes on CUDA (8 and 16 are kernels). arguments_bytes is that of
 * the block. Errors, after which the node is as before: as above, INVALID_ARGUMENT, OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_set_parameters(attune_graph *graph, size_t index,
                                                     const attune_node_parameters *parameters);

/* Leaves a node of kind KERNEL, COPY or FILL out of replays (enabled 0), or takes it in again; what comes after it still waits
 * for what comes before it. Makes the executable if there is none yet. Errors: as attune_graph_get_node, UNSUPPORTED
 * (another kind), OUT_OF_MEMORY. */
ATTUNE_API attune_status attune_graph_set_enabled(attune_graph *graph, size_t index, int enabled);

#ifdef __cplusplus
}
#endif
#endif
