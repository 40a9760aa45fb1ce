/* SPDX-License-Identifier: Apache-2.0
 * record.c: records a capture. Every stream of it has a frontier: the nodes that its next work waits for. Work becomes
 * a node that waits for the frontier and then is the frontier; an event copies it, a wait adds the event's to it. */
#include "src/host/record.h"

#include "src/host/queue.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MOST (UINT32_C(1) << 30)

typedef struct frontier {
  const attune_stream *stream;
  at_points points;
} frontier;

/* capture->recording */
typedef struct tape {
  at_recording recording;
  frontier *frontier; /* [0] is the stream that the capture began on */
  int frontiers;
} tape;

static attune_status no_memory(at_capture *capture) {
  return at_capture_break(capture, ATTUNE_OUT_OF_MEMORY, "no memory to record the capture");
}

static void free_tape(at_capture *capture) {
  tape *t = capture->recording;
  if (!t) return;
  for (int i = 0; i < t->frontiers; i++) free(t->frontier[i].points.node);
  free(t->frontier);
  free(t);
  capture->recording = NULL;
}

void at_recording_free(at_recording *recording) {
  free(recording->node);
  free(recording->edge);
  free(recording->args);
  *recording = (at_recording){0};
}

static bool copy_bytes(void *out, const void *from, size_t bytes) {
  void *copy = malloc(bytes ? bytes : 1);
  if (copy && bytes) memcpy(copy, from, bytes);
  *(void **)out = copy;
  return copy != NULL;
}

bool at_recording_copy(at_recording *out, const at_recording *from) {
  *out = (at_recording){.nodes = from->nodes, .edges = from->edges, .args_bytes = from->args_bytes};
  if (copy_bytes(&out->node, from->node, from->nodes * sizeof *from->node) &&
      copy_bytes(&out->edge, from->edge, from->edges * sizeof *from->edge) &&
      copy_bytes(&out->args, from->args, from->args_bytes))
    return true;
  at_recording_free(out);
  return false;
}

/* Room for `more` elements behind the first `count`. */
static bool room_for(void **array, uint32_t count, uint32_t *room, uint32_t more, size_t size) {
  if (count + more <= *room) return true;
  uint32_t wanted = count + more < 32 ? 32 : 2 * (count + more);
  void *larger = realloc(*array, wanted * size);
  if (!larger) return false;
  *array = larger;
  *room = wanted;
  return true;
}

/* The stream's frontier; a stream that just joined gets an empty one. NULL: no memory. */
static frontier *frontier_of(tape *t, const attune_stream *stream) {
  for (int i = 0; i < t->frontiers; i++)
    if (t->frontier[i].stream == stream) return &t->frontier[i];
  frontier *frontiers = realloc(t->frontier, ((size_t)t->frontiers + 1) * sizeof *frontiers);
  if (!frontiers) return NULL;
  t->frontier = frontiers;
  t->frontier[t->frontiers] = (frontier){.stream = stream};
  return &t->frontier[t->frontiers++];
}

static bool add_point(at_points *points, uint32_t node) {
  for (uint32_t i = 0; i < points->count; i++)
    if (points->node[i] == node) return true;
  if (!room_for((void **)&points->node, points->count, &points->room, 1, sizeof *points->node)) return false;
  points->node[points->count++] = node;
  return true;
}

attune_status at_record_begin(attune_stream *stream) {
  at_capture *capture = stream->capture;
  if (!stream->state || !capture)
    return at_fail(ATTUNE_UNSUPPORTED, "the default stream cannot be captured; create a stream");
  AT_TRY(at_queue_check(stream->state));
  tape *t = calloc(1, sizeof *t);
  capture->recording = t;
  if (t && frontier_of(t, stream)) return ATTUNE_OK;
  free_tape(capture);
  return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for a capture");
}

static bool add_args(at_recording *r, const void *args, size_t bytes, size_t *out) {
  const size_t step = _Alignof(max_align_t), size = (bytes + step - 1) / step * step;
  if (r->args_bytes + size > r->args_room) {
    const size_t room = 2 * (r->args_bytes + size) + 1024;
    unsigned char *larger = realloc(r->args, room);
    if (!larger) return false;
    r->args = larger;
    r->args_room = room;
  }
  *out = r->args_bytes;
  if (bytes) memcpy(r->args + r->args_bytes, args, bytes);
  r->args_bytes += size;
  return true;
}

/* Under the lock. Nothing counts until all of it has its place. */
static bool add_node(tape *t, const attune_stream *stream, at_node node, const void *args) {
  at_recording *r = &t->recording;
  frontier *f = frontier_of(t, stream);
  if (!f || r->nodes >= NODES_MOST || r->edges >= NODES_MOST) return false;
  const uint32_t before = f->points.count;
  if (!room_for((void **)&r->edge, r->edges, &r->edge_room, before, sizeof *r->edge) ||
      !room_for((void **)&r->node, r->nodes, &r->node_room, 1, sizeof *r->node) ||
      !room_for((void **)&f->points.node, 0, &f->points.room, 1, sizeof *f->points.node) ||
      !add_args(r, args, node.bytes, &node.args))
    return false;
  node.first_edge = r->edges;
  node.edges = before;
  if (before) memcpy(r->edge + r->edges, f->points.node, before * sizeof *r->edge);
  r->edges += before;
  f->points.node[0] = r->nodes;
  f->points.count = 1;
  r->node[r->nodes++] = node;
  return true;
}

attune_status at_record_work(attune_stream *stream, void (*fn)(const void *args), const void *args, size_t bytes) {
  at_capture *capture = stream->capture;
  AT_TRY(at_queue_check(stream->state));
  pthread_mutex_lock(&capture->lock);
  const bool done = add_node(capture->recording, stream, (at_node){.fn = fn, .bytes = bytes}, args);
  pthread_mutex_unlock(&capture->lock);
  return done ? ATTUNE_OK : no_memory(capture);
}

/* The event's point is replaced last, so that a failure leaves it as it was. */
attune_status at_record_event(attune_event *event, attune_stream *stream) {
  at_capture *capture = stream->capture;
  AT_TRY(at_queue_check(stream->state));
  pthread_mutex_lock(&capture->lock);
  const frontier *f = frontier_of(capture->recording, stream);
  const uint32_t count = f ? f->points.count : 0;
  at_points *point = f ? malloc(sizeof *point + count * sizeof *point->node) : NULL;
  if (point) {
    *point = (at_points){.count = count, .room = count, .node = (uint32_t *)(point + 1)};
    if (count) memcpy(point->node, f->points.node, count * sizeof *point->node);
  }
  pthread_mutex_unlock(&capture->lock);
  if (!point) return no_memory(capture);
  free(event->point);
  event->point = point;
  return ATTUNE_OK;
}

attune_status at_record_wait(attune_stream *stream, attune_event *event) {
  at_capture *capture = stream->capture;
  AT_TRY(at_queue_check(stream->state));
  if (!event->capture)
    return at_capture_break(capture, ATTUNE_CAPTURING,
                            "a stream of the capture waited for an event recorded outside the capture");
  if (event->capture != capture) {
    (void)at_capture_break(event->capture, ATTUNE_CAPTURING,
                           "a stream of another capture waited for an event of this capture");
    return at_capture_break(capture, ATTUNE_CAPTURING,
                            "a stream of the capture waited for an event of another capture");
  }
  const at_points *point = event->point;
  pthread_mutex_lock(&capture->lock);
  frontier *f = frontier_of(capture->recording, stream);
  bool done = f != NULL;
  for (uint32_t i = 0; done && i < point->count; i++) done = add_point(&f->points, point->node[i]);
  pthread_mutex_unlock(&capture->lock);
  return done ? ATTUNE_OK : no_memory(capture);
}

/* Every node must come before the end of the first stream: what a stream that joined was given after its last joining
 * back would be lost. */
static attune_status check_joined(at_capture *capture) {
  const tape *t = capture->recording;
  const at_recording *r = &t->recording;
  unsigned char *seen = calloc((size_t)r->nodes + 1, 1);
  if (!seen) return no_memory(capture);
  const at_points *end = &t->frontier[0].points;
  for (uint32_t i = 0; i < end->count; i++) seen[end->node[i]] = 1;
  uint32_t lost = 0;
  for (uint32_t n = r->nodes; n-- > 0;) {
    if (!seen[n])
      lost++;
    else
      for (uint32_t e = 0; e < r->node[n].edges; e++) seen[r->edge[r->node[n].first_edge + e]] = 1;
  }
  free(seen);
  if (lost == 0) return ATTUNE_OK;
  return at_fail(ATTUNE_CAPTURING,
                 "%u of %u work items are on streams that were not joined back to the stream of the capture", lost,
                 r->nodes);
}

attune_status at_record_end(attune_stream *stream, at_recording *out) {
  at_capture *capture = stream->capture;
  tape *t = capture->recording;
  *out = (at_recording){0};
  attune_status status = at_queue_check(stream->state);
  if (status == ATTUNE_OK) status = check_joined(capture);
  if (status == ATTUNE_OK)
    *out = t->recording;
  else
    at_recording_free(&t->recording);
  free_tape(capture);
  return status;
}
