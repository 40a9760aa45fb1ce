/* SPDX-License-Identifier: Apache-2.0
 * event.c: events of the host: points in the queues of streams. */
#include "src/host/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/host/host.h"
#include "src/host/record.h"
#include "src/process/fork.h"

typedef at_host_record record;

typedef struct at_host_event {
  atomic_int references; /* the handle, each queued mark, and each replay to come that records it */
  unsigned generation;   /* at_fork_generation() at the making */
  pthread_mutex_t lock;  /* guards latest; nothing waits while holding it */
  record latest;
} host_event;

static bool stale(const host_event *event) {
  return event->generation != at_fork_generation();
}

static void drop_event(host_event *event) {
  if (atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1) return;
  if (event->latest.queue) at_queue_drop(event->latest.queue);
  if (!stale(event)) pthread_mutex_destroy(&event->lock); /* else a thread of the parent may have held it at the fork */
  free(event);
}

attune_status at_host_event_open(attune_event *event) {
  host_event *state = calloc(1, sizeof *state);
  if (!state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an event");
  atomic_init(&state->references, 1);
  state->generation = at_fork_generation();
  pthread_mutex_init(&state->lock, NULL);
  event->state = state;
  return ATTUNE_OK;
}

/* The marks of a parent's streams never run in a child: there the handle is the last holder. */
void at_host_event_close(attune_event *event) {
  host_event *state = event->state;
  if (stale(state)) atomic_store(&state->references, 1);
  drop_event(state);
}

static attune_status check_event(const host_event *event) {
  if (!stale(event)) return ATTUNE_OK;
  return at_fail(ATTUNE_DEVICE_ERROR, "event was created before fork; should be created again in the child");
}

/* Makes `next` the latest record and returns its number. */
static uint64_t replace_record(host_event *event, record next) {
  pthread_mutex_lock(&event->lock);
  at_queue *old = event->latest.queue;
  next.number = event->latest.number + 1;
  event->latest = next;
  pthread_mutex_unlock(&event->lock);
  if (old) at_queue_drop(old);
  return next.number;
}

/* Sets where record `number` lies, unless a later one replaced it. */
static void place_record(host_event *event, uint64_t number, uint64_t position) {
  pthread_mutex_lock(&event->lock);
  if (event->latest.number == number) event->latest.position = position;
  pthread_mutex_unlock(&event->lock);
}

/* A copy of the latest record, its queue held. */
static record take_record(host_event *event) {
  pthread_mutex_lock(&event->lock);
  record latest = event->latest;
  if (latest.queue) at_queue_hold(latest.queue);
  pthread_mutex_unlock(&event->lock);
  return latest;
}

static bool is_reached(const record *r) {
  return !r->queue || at_queue_reached(r->queue, r->position);
}

static void release_record(const record *r) {
  if (r->queue) at_queue_drop(r->queue);
}

/* ---- replays of graphs ---- */

uint64_t at_host_event_plan(at_host_event *event, at_queue *queue) {
  record next = {.time_ns = at_now_ns()};
  if (queue) {
    at_queue_hold(queue);
    next = (record){.queue = queue, .position = at_queue_end(queue) + 1};
  }
  atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
  return replace_record(event, next);
}

void at_host_event_place(at_host_event *event, uint64_t number, uint64_t position) {
  place_record(event, number, position);
}

static void set_time(host_event *event, uint64_t number) {
  const int64_t now = at_now_ns();
  pthread_mutex_lock(&event->lock);
  if (event->latest.number == number) event->latest.time_ns = now;
  pthread_mutex_unlock(&event->lock);
  drop_event(event);
}

void at_host_event_happen(at_host_event *event, uint64_t number) {
  set_time(event, number);
}

at_host_record at_host_event_take(at_host_event *event) {
  return take_record(event);
}

void at_host_record_await(const at_host_record *r) {
  if (!is_reached(r)) at_queue_wait(r->queue, r->position);
  release_record(r);
}

/* Run by the replay itself, which knows which of its records it is. */
void at_host_record_node(const void *args) {
  (void)args;
}

void at_host_wait_node(const void *args) {
  (void)args;
}

/* ---- records and waits ---- */

typedef struct mark {
  host_event *event;
  uint64_t number;
} mark;

static void run_mark(const void *args) {
  const mark *m = args;
  set_time(m->event, m->number);
}

attune_status at_host_event_record(attune_event *handle, attune_stream *stream) {
  host_event *event = handle->state;
  at_queue *queue = stream->state;
  attune_status status = check_event(event);
  const bool marks = queue && !handle->options.no_timing;
  if (status == ATTUNE_OK && queue) status = marks ? at_queue_check_submit(queue) : at_queue_check(queue);
  if (status != ATTUNE_OK) return status;
  if (stream->capture && handle->options.external)
    return at_host_submit(stream, at_host_record_node, &event, sizeof(host_event *));
  if (stream->capture) return at_record_event(handle, stream);
  if (!queue) {
    (void)replace_record(event, (record){.time_ns = at_now_ns()});
    return ATTUNE_OK;
  }
  /* The mark is given without the event's lock: the ring may be full of marks that need it. Its position is known only
   * then: the allocator records events on streams that another thread gives work to. */
  at_queue_hold(queue);
  /* without a time nothing has to be done there: the allocator, which holds a lock, never waits for room */
  if (!marks) {
    (void)replace_record(event, (record){.queue = queue, .position = at_queue_end(queue)});
    return ATTUNE_OK;
  }
  atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
  mark m = {event, replace_record(event, (record){.queue = queue, .position = at_queue_end(queue) + 1})};
  const uint64_t number = m.number;
  place_record(event, number, at_queue_submit(queue, run_mark, &m, sizeof m));
  return ATTUNE_OK;
}

static void run_wait(const void *args) {
  const record *r = args;
  at_queue_wait(r->queue, r->position);
  at_queue_drop(r->queue);
}

attune_status at_host_event_wait(attune_stream *stream, attune_event *handle) {
  host_event *event = handle->state;
  at_queue *queue = stream->state;
  attune_status status = check_event(event);
  if (status == ATTUNE_OK && queue) status = at_queue_check_submit(queue);
  if (status != ATTUNE_OK) return status;
  if (stream->capture && handle->options.external)
    return at_host_submit(stream, at_host_wait_node, &event, sizeof(host_event *));
  record r = take_record(event);
  if (stream->capture) {
    release_record(&r);
    return handle->capture || r.number != 0 ? at_record_wait(stream, handle) : ATTUNE_OK;
  }
  if (is_reached(&r) || r.queue == queue)
    release_record(&r);
  else if (queue)
    at_queue_submit(queue, run_wait, &r, sizeof r);
  else if ((status = at_queue_check_wait(r.queue, r.position)) == ATTUNE_OK)
    run_wait(&r);
  else
    release_record(&r);
  return status;
}

attune_status at_host_event_query(attune_event *handle) {
  AT_TRY(check_event(handle->state));
  record r = take_record(handle->state);
  bool reached = is_reached(&r);
  release_record(&r);
  return reached ? ATTUNE_OK : at_fail(ATTUNE_NOT_READY, "the event has not been reached yet");
}

attune_status at_host_event_synchronize(attune_event *handle) {
  attune_status status = check_event(handle->state);
  if (status != ATTUNE_OK) return status;
  record r = take_record(handle->state);
  if (!is_reached(&r)) status = at_queue_check_wait(r.queue, r.position);
  if (status == ATTUNE_OK && !is_reached(&r)) at_queue_wait(r.queue, r.position);
  release_record(&r);
  return status;
}

static attune_status read_time(int64_t *out_ns, attune_event *handle, const char *name) {
  host_event *event = handle->state;
  AT_TRY(check_event(event));
  pthread_mutex_lock(&event->lock);
  bool recorded = event->latest.number != 0, reached = is_reached(&event->latest);
  *out_ns = event->latest.time_ns;
  pthread_mutex_unlock(&event->lock);
  if (!recorded) return AT_INVALID("%s was never recorded; should be recorded on a stream", name);
  return reached ? ATTUNE_OK : at_fail(ATTUNE_NOT_READY, "%s has not been reached yet", name);
}

attune_status at_host_event_elapsed(double *out_ns, attune_event *start, attune_event *stop) {
  int64_t begin = 0, end = 0;
  attune_status status = read_time(&begin, start, "start");
  if (status == ATTUNE_OK) status = read_time(&end, stop, "stop");
  if (status == ATTUNE_OK) *out_ns = (double)(end - begin);
  return status;
}
