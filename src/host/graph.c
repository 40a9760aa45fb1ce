/* SPDX-License-Identifier: Apache-2.0
 * graph.c: graphs of the host: a recording and its replays. */
#include "src/host/graph.h"

#include "src/host/event.h"
#include "src/host/host.h"
#include "src/host/work.h"
#include "src/process/fork.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct at_graph {
  atomic_int references; /* the handle, and each replay given to a queue */
  unsigned generation;   /* at_fork_generation() at the making */
  pthread_mutex_t lock;  /* held by a replay while it runs: the next one waits, as on CUDA */
  at_host_steps *steps;
};

/* ---- steps ---- */

static void drop_steps(at_host_steps *steps) {
  if (atomic_fetch_sub_explicit(&steps->references, 1, memory_order_acq_rel) != 1) return;
  at_recording_free(&steps->recording);
  free(steps->disabled);
  free(steps);
}

static at_host_steps *copy_steps(const at_host_steps *from, bool with_disabled) {
  at_host_steps *copy = calloc(1, sizeof *copy);
  if (!copy) return NULL;
  atomic_init(&copy->references, 1);
  const size_t nodes = from->recording.nodes;
  copy->external = from->external;
  bool good = at_recording_copy(&copy->recording, &from->recording);
  if (good && with_disabled && from->disabled) {
    copy->disabled = malloc(nodes * sizeof *copy->disabled);
    good = copy->disabled != NULL;
    if (good) memcpy(copy->disabled, from->disabled, nodes * sizeof *copy->disabled);
  }
  if (good) return copy;
  drop_steps(copy);
  return NULL;
}

const at_host_steps *at_host_graph_steps(const at_graph *graph) {
  return graph->steps;
}

/* Replays given before keep what they have. */
at_host_steps *at_host_graph_own_steps(at_graph *graph) {
  if (atomic_load_explicit(&graph->steps->references, memory_order_acquire) == 1) return graph->steps;
  at_host_steps *copy = copy_steps(graph->steps, true);
  if (!copy) return NULL;
  drop_steps(graph->steps);
  graph->steps = copy;
  return copy;
}

/* ---- graphs ---- */

/* The graph takes the steps, also on failure. */
static attune_status create(at_graph **out, at_host_steps *steps) {
  at_graph *graph = steps ? calloc(1, sizeof *graph) : NULL;
  if (!graph) {
    if (steps) drop_steps(steps);
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph");
  }
  atomic_init(&graph->references, 1);
  graph->generation = at_fork_generation();
  pthread_mutex_init(&graph->lock, NULL);
  graph->steps = steps;
  *out = graph;
  return ATTUNE_OK;
}

static bool is_external(const at_node *node) {
  return node->fn == at_host_record_node || node->fn == at_host_wait_node;
}

static size_t count_external(const at_recording *r) {
  size_t count = 0;
  for (uint32_t i = 0; i < r->nodes; i++) count += is_external(&r->node[i]);
  return count;
}

attune_status at_host_graph_record(attune_stream *stream, at_graph **out) {
  at_recording recording;
  *out = NULL;
  AT_TRY(at_record_end(stream, &recording));
  at_host_steps *steps = calloc(1, sizeof *steps);
  if (steps) {
    atomic_init(&steps->references, 1);
    steps->recording = recording;
    steps->external = count_external(&recording);
  } else {
    at_recording_free(&recording);
  }
  return create(out, steps);
}

attune_status at_host_graph_clone(const at_graph *graph, at_graph **out) {
  *out = NULL;
  return create(out, copy_steps(graph->steps, false));
}

static bool stale(const at_graph *graph) {
  return graph->generation != at_fork_generation();
}

static void drop(at_graph *graph) {
  if (atomic_fetch_sub_explicit(&graph->references, 1, memory_order_acq_rel) != 1) return;
  if (!stale(graph)) pthread_mutex_destroy(&graph->lock); /* else a thread of the parent may have held it at the fork */
  drop_steps(graph->steps);
  free(graph);
}

/* The replays of a parent's streams never run in a child: there the handle is the last holder. */
void at_host_graph_destroy(at_graph *graph) {
  if (!graph) return;
  if (stale(graph)) {
    atomic_store(&graph->references, 1);
    atomic_store(&graph->steps->references, 1);
  }
  drop(graph);
}

/* What one replay does with an external event: as the events are when it is given. */
typedef struct moment {
  at_host_event *event;
  uint64_t number;       /* of the record; 0: it waits */
  at_host_record waited; /* nothing: for a record of the same replay, which came before */
} moment;

typedef struct plan {
  atomic_int references; /* the submitter of the replay and the thread that runs it */
  size_t count;
  moment moments[]; /* of the external nodes, in their order */
} plan;

typedef struct replay {
  at_graph *graph;
  at_host_steps *steps;
  plan *plan; /* NULL: there are no external nodes */
} replay;

static void drop_plan(plan *p) {
  if (p && atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) == 1) free(p);
}

static bool records(const plan *p, const at_host_event *event) {
  for (size_t i = 0; i < p->count; i++)
    if (p->moments[i].event == event && p->moments[i].number) return true;
  return false;
}

static plan *make_plan(const at_host_steps *steps, at_queue *queue) {
  const at_recording *r = &steps->recording;
  plan *p = calloc(1, sizeof *p + steps->external * sizeof *p->moments);
  if (!p) return NULL;
  atomic_init(&p->references, queue ? 2 : 1);
  for (uint32_t i = 0; i < r->nodes; i++) {
    if (!is_external(&r->node[i])) continue;
    moment *m = &p->moments[p->count];
    memcpy(&m->event, r->args + r->node[i].args, sizeof(at_host_event *));
    if (r->node[i].fn == at_host_record_node)
      m->number = at_host_event_plan(m->event, queue);
    else if (!records(p, m->event))
      m->waited = at_host_event_take(m->event);
    p->count++;
  }
  return p;
}

static void run_moment(const moment *m) {
  if (m->number)
    at_host_event_happen(m->event, m->number);
  else
    at_host_record_await(&m->waited);
}

static void run_graph(const void *args) {
  const replay *p = args;
  const at_recording *r = &p->steps->recording;
  const moment *m = p->plan ? p->plan->moments : NULL;
  pthread_mutex_lock(&p->graph->lock);
  for (uint32_t i = 0; i < r->nodes; i++) {
    if (AT_UNLIKELY(m && is_external(&r->node[i])))
      run_moment(m++);
    else if (!p->steps->disabled || !p->steps->disabled[i])
      r->node[i].fn(r->args + r->node[i].args);
  }
  pthread_mutex_unlock(&p->graph->lock);
  drop_plan(p->plan);
  drop_steps(p->steps);
  drop(p->graph);
}

/* Where the replay lies is known only once it is given. */
static void give(at_queue *queue, const replay *p) {
  const uint64_t position = at_queue_submit(queue, run_graph, p, sizeof *p);
  for (size_t i = 0; p->plan && i < p->plan->count; i++)
    if (p->plan->moments[i].number)
      at_host_event_place(p->plan->moments[i].event, p->plan->moments[i].number, position);
  drop_plan(p->plan);
}

attune_status at_host_graph_launch(at_graph *graph, attune_stream *stream) {
  if (stale(graph))
    return at_fail(ATTUNE_DEVICE_ERROR, "graph was captured before fork; should be captured again in the child");
  at_queue *queue = stream->state;
  replay p = {graph, graph->steps, NULL};
  AT_TRY(queue ? at_queue_check_submit(queue) : ATTUNE_OK);
  if (p.steps->external && !(p.plan = make_plan(p.steps, queue)))
    return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a replay");
  atomic_fetch_add_explicit(&graph->references, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&p.steps->references, 1, memory_order_relaxed);
  if (queue)
    give(queue, &p);
  else
    run_graph(&p);
  return ATTUNE_OK;
}

/* A recording is ready to run as it is, all of it. */
attune_status at_host_graph_instantiate(at_graph *graph, bool keep) {
  (void)keep;
  if (!graph->steps->disabled) return ATTUNE_OK;
  at_host_steps *steps = at_host_graph_own_steps(graph);
  if (!steps) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a graph");
  free(steps->disabled);
  steps->disabled = NULL;
  return ATTUNE_OK;
}

/* In place where CUDA would change its executable in place too: the same pieces of work in the same order, whatever
 * their arguments. */
attune_status at_host_graph_update(at_graph *graph, at_graph *older, bool keep, bool *in_place) {
  const at_recording *a = &graph->steps->recording, *b = &older->steps->recording;
  (void)keep;
  bool same = a->nodes == b->nodes && a->edges == b->edges &&
              (a->edges == 0 || memcmp(a->edge, b->edge, a->edges * sizeof *a->edge) == 0);
  for (uint32_t i = 0; same && i < a->nodes; i++)
    same = a->node[i].fn == b->node[i].fn && a->node[i].edges == b->node[i].edges;
  *in_place = same;
  return ATTUNE_OK;
}

size_t at_host_graph_nodes(const at_graph *graph) {
  return graph->steps->recording.nodes;
}

attune_status at_host_graph_dump(const at_graph *graph, FILE *file, bool brief) {
  const at_recording *r = &graph->steps->recording;
  fprintf(file, "digraph attune {\n  node [shape=box];\n");
  for (uint32_t n = 0; n < r->nodes; n++) {
    const at_node *node = &r->node[n];
    fprintf(file, "  n%u [label=\"%u: %s", n, n, at_host_work_name(node->fn));
    if (!brief) fprintf(file, "\\n%zu bytes of arguments", node->bytes);
    fprintf(file, "\"];\n");
    for (uint32_t e = 0; e < node->edges; e++) fprintf(file, "  n%u -> n%u;\n", r->edge[node->first_edge + e], n);
  }
  fprintf(file, "}\n");
  return ATTUNE_OK;
}
