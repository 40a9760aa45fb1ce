/* SPDX-License-Identifier: Apache-2.0
 * device.c: the host backend: identity, memory, streams over queues, events. */
#include "src/base/backend.h"

#include "src/comm/reduce.h"
#include "src/host/event.h"
#include "src/host/graph.h"
#include "src/host/host.h"
#include "src/host/memory.h"
#include "src/host/queue.h"
#include "src/host/record.h"
#include "src/host/telemetry.h"
#include "src/host/threads.h"
#include "src/host/work.h"
#include "src/process/process.h"
#include "src/host/random/random_host.h"

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

static bool stream_runs_here(const attune_stream *stream) {
  return !stream ? at_queue_runs_here(NULL) : stream->state && at_queue_runs_here(stream->state);
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
  const uint64_t end = at_queue_end(queue);
  attune_status status = at_queue_check_wait(queue, end);
  if (status == ATTUNE_OK) at_queue_wait(queue, end);
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
    .reduce = at_reduce_host,
    .random_run = at_random_run_host,
    .random_state = at_random_state_host,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_runs_here = stream_runs_here,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .stream_wait = at_host_event_wait,
    .stream_capturing = stream_capturing,
    .event_open = at_host_event_open,
    .event_close = at_host_event_close,
    .event_record = at_host_event_record,
    .event_query = at_host_event_query,
    .event_synchronize = at_host_event_synchronize,
    .event_elapsed = at_host_event_elapsed,
    .capture_begin = at_record_begin,
    .capture_end = at_host_graph_record,
    .graph_launch = at_host_graph_launch,
    .graph_destroy = at_host_graph_destroy,
    .graph_instantiate = at_host_graph_instantiate,
    .graph_update = at_host_graph_update,
    .graph_nodes = at_host_graph_nodes,
    .graph_dump = at_host_graph_dump,
    .graph_clone = at_host_graph_clone,
    .graph_node = at_host_graph_node,
    .graph_edges = at_host_graph_edges,
    .graph_get_parameters = at_host_graph_get_parameters,
    .graph_set_parameters = at_host_graph_set_parameters,
    .graph_set_enabled = at_host_graph_set_enabled,
};
