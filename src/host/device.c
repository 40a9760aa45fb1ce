/* SPDX-License-Identifier: Apache-2.0
 * device.c: the host backend: identity, memory, streams over queues, events. */
#include "src/backend.h"

#include "src/comm/sum.h"
#include "src/fork.h"
#include "src/host/graph.h"
#include "src/host/host.h"
#include "src/host/memory.h"
#include "src/host/queue.h"
#include "src/host/record.h"
#include "src/host/telemetry.h"
#include "src/host/threads.h"
#include "src/host/work.h"
#include "src/process.h"
#include "src/random/random_host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count(void) {
  return 1;
}

static void write_features(char *out, size_t size, const at_cpu *cpu) {
  const struct {
    bool present;
    const char *name;
  } features[] = {{cpu->avx2, "avx2"},         {cpu->fma, "fma"},
                  {cpu->f16c, "f16c"},         {cpu->avx512f, "avx512f"},
                  {cpu->avx512bw, "avx512bw"}, {cpu->avx512vl, "avx512vl"},
                  {cpu->avx512dq, "avx512dq"}, {cpu->avx512_bf16, "avx512_bf16"}};
  size_t at = 0;
  out[0] = '\0';
  for (size_t i = 0; i < AT_COUNT(features); i++)
    if (features[i].present) (void)at_append(out, size, &at, "%s%s", at ? " " : "", features[i].name);
}

static attune_status device_open(attune_device *device) {
  at_queue_watch_fork();
  const at_cpu *cpu = at_cpu_info();
  attune_device_properties *p = &device->properties;
  (void)at_copy_text(p->name, sizeof p->name, cpu->model);
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) p->memory_bytes = (uint64_t)pages * (uint64_t)page;
  p->processors = at_cpu_count();
  p->cache_bytes = cpu->l3_bytes ? cpu->l3_bytes : cpu->l2_bytes;
  write_features(p->features, sizeof p->features, cpu);
  char boot[48];
  size_t at = 0;
  at_boot_identity(boot, sizeof boot);
  (void)at_append(device->identity, sizeof device->identity, &at, "host %s", boot);
  return ATTUNE_OK;
}

static attune_status device_synchronize(attune_device *device) {
  (void)device;
  at_queue_wait_all();
  return ATTUNE_OK;
}

static attune_status clock_state(attune_device *device, at_clock_state *out) {
  (void)device;
  *out = (at_clock_state){.clock_mhz = 0, .slowed = false, .foreign = -1};
  return ATTUNE_OK;
}

/* A stream that attune does not own is the default one: it has no queue. */
static attune_status stream_open(attune_stream *stream) {
  if (!stream->owned) return ATTUNE_OK;
  at_queue *queue = NULL;
  attune_status status = at_queue_create(&queue);
  stream->state = queue;
  return status;
}

static void stream_close(attune_stream *stream) {
  if (stream->state) at_queue_close(stream->state);
}

static bool stream_capturing(attune_stream *stream) {
  return stream->capture != NULL;
}

static attune_status stream_query(attune_stream *stream) {
  at_queue *queue = stream->state;
  if (!queue) return ATTUNE_OK;
  attune_status status = at_queue_check(queue);
  if (status != ATTUNE_OK) return status;
  if (at_queue_reached(queue, at_queue_end(queue))) return ATTUNE_OK;
  return at_fail(ATTUNE_NOT_READY, "the stream has work in flight");
}

static attune_status stream_synchronize(attune_stream *stream) {
  at_queue *queue = stream->state;
  if (!queue) return ATTUNE_OK;
  attune_status status = at_queue_check(queue);
  if (status == ATTUNE_OK) at_queue_wait(queue, at_queue_end(queue));
  return status;
}

/* The latest record of an event: what to wait for, and when it was reached. A wait takes a copy, so that a later record
 * does not change what is waited for. */
typedef struct record {
  uint64_t number;   /* 1 for the first; 0: never recorded */
  at_queue *queue;   /* where it was recorded, counted; NULL: on the default stream, reached at once */
  uint64_t position; /* reached when the queue has */
  int64_t time_ns;   /* valid once reached */
} record;

typedef struct host_event {
  atomic_int references; /* the handle, and each queued mark */
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

static attune_status event_open(attune_event *event) {
  host_event *state = calloc(1, sizeof *state);
  if (!state) return at_fail(ATTUNE_OUT_OF_MEMORY, "no memory for an event");
  atomic_init(&state->references, 1);
  state->generation = at_fork_generation();
  pthread_mutex_init(&state->lock, NULL);
  event->state = state;
  return ATTUNE_OK;
}

/* The marks of a parent's streams never run in a child: there the handle is the last holder. */
static void event_close(attune_event *event) {
  host_event *state = event->state;
  if (stale(state)) atomic_store(&state->references, 1);
  drop_event(state);
}

static attune_status check_event(const host_event *event) {
  if (!stale(event)) return ATTUNE_OK;
  return at_fail(ATTUNE_DEVICE_ERROR, "event was made before fork; should be made again in the child");
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

typedef struct mark {
  host_event *event;
  uint64_t number;
} mark;

static void run_mark(const void *args) {
  const mark *m = args;
  int64_t now = at_now_ns();
  pthread_mutex_lock(&m->event->lock);
  if (m->event->latest.number == m->number) m->event->latest.time_ns = now;
  pthread_mutex_unlock(&m->event->lock);
  drop_event(m->event);
}

static attune_status event_record(attune_event *handle, attune_stream *stream) {
  host_event *event = handle->state;
  at_queue *queue = stream->state;
  attune_status status = check_event(event);
  if (status == ATTUNE_OK && queue) status = at_queue_check(queue);
  if (status != ATTUNE_OK) return status;
  if (stream->capture) return at_record_event(handle, stream);
  if (!queue) {
    (void)replace_record(event, (record){.time_ns = at_now_ns()});
    return ATTUNE_OK;
  }
  /* The mark is given without the event's lock: the ring may be full of marks that need it. Its position is known only
   * then: the allocator records events on streams that another thread gives work to. */
  at_queue_hold(queue);
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

static attune_status stream_wait(attune_stream *stream, attune_event *handle) {
  host_event *event = handle->state;
  at_queue *queue = stream->state;
  attune_status status = check_event(event);
  if (status == ATTUNE_OK && queue) status = at_queue_check(queue);
  if (status != ATTUNE_OK) return status;
  record r = take_record(event);
  if (stream->capture) {
    release_record(&r);
    return handle->capture || r.number != 0 ? at_record_wait(stream, handle) : ATTUNE_OK;
  }
  if (is_reached(&r) || r.queue == queue)
    release_record(&r);
  else if (queue)
    at_queue_submit(queue, run_wait, &r, sizeof r);
  else
    run_wait(&r);
  return ATTUNE_OK;
}

static attune_status event_query(attune_event *handle) {
  attune_status status = check_event(handle->state);
  if (status != ATTUNE_OK) return status;
  record r = take_record(handle->state);
  bool reached = is_reached(&r);
  release_record(&r);
  return reached ? ATTUNE_OK : at_fail(ATTUNE_NOT_READY, "the event is not reached yet");
}

static attune_status event_synchronize(attune_event *handle) {
  attune_status status = check_event(handle->state);
  if (status != ATTUNE_OK) return status;
  record r = take_record(handle->state);
  if (!is_reached(&r)) at_queue_wait(r.queue, r.position);
  release_record(&r);
  return ATTUNE_OK;
}

static attune_status read_time(int64_t *out_ns, attune_event *handle, const char *name) {
  host_event *event = handle->state;
  attune_status status = check_event(event);
  if (status != ATTUNE_OK) return status;
  pthread_mutex_lock(&event->lock);
  bool recorded = event->latest.number != 0, reached = is_reached(&event->latest);
  *out_ns = event->latest.time_ns;
  pthread_mutex_unlock(&event->lock);
  if (!recorded) return at_fail(ATTUNE_INVALID_ARGUMENT, "%s was never recorded; should be recorded on a stream", name);
  return reached ? ATTUNE_OK : at_fail(ATTUNE_NOT_READY, "%s is not reached yet", name);
}

static attune_status event_elapsed(double *out_ns, attune_event *start, attune_event *stop) {
  int64_t begin = 0, end = 0;
  attune_status status = read_time(&begin, start, "start");
  if (status == ATTUNE_OK) status = read_time(&end, stop, "stop");
  if (status == ATTUNE_OK) *out_ns = (double)(end - begin);
  return status;
}

const at_backend at_host_backend = {
    .name = "host",
    .kind = ATTUNE_DEVICE_HOST,
    .count = count,
    .device_open = device_open,
    .device_synchronize = device_synchronize,
    .wait_streams = device_synchronize,
    .clock_state = clock_state,
    .telemetry = at_host_telemetry,
    .alloc = at_host_memory_alloc,
    .free = at_host_memory_free,
    .memory_info = at_host_memory_info,
    .pinned_alloc = at_host_pinned_alloc,
    .pinned_free = at_host_pinned_free,
    .managed_check = at_host_managed_check,
    .managed_alloc = at_host_memory_alloc,
    .managed_prefetch = at_host_managed_prefetch,
    .vm_granularity = at_host_vm_granularity,
    .vm_reserve = at_host_vm_reserve,
    .vm_release = at_host_vm_release,
    .vm_map = at_host_vm_map,
    .vm_unmap = at_host_vm_unmap,
    .call = at_host_call,
    .copy = at_host_copy,
    .fill = at_host_fill,
    .copy_rows = at_host_copy_rows,
    .copy_box = at_host_copy_box,
    .fill_box = at_host_fill_box,
    .sum = at_sum_host,
    .random_run = at_random_run_host,
    .random_state = at_random_state_host,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .stream_capturing = stream_capturing,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .capture_begin = at_record_begin,
    .capture_end = at_host_graph_record,
    .graph_launch = at_host_graph_launch,
    .graph_destroy = at_host_graph_destroy,
    .graph_instantiate = at_host_graph_instantiate,
    .graph_update = at_host_graph_update,
    .graph_nodes = at_host_graph_nodes,
    .graph_dump = at_host_graph_dump,
    .graph_clone = at_host_graph_clone,
};
