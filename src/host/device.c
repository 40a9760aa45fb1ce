/* SPDX-License-Identifier: Apache-2.0
 * device.c: the host backend: identity, memory, streams over queues, events. */
#include "src/base/backend.h"

#include "src/comm/reduce.h"
#include "src/host/event.h"
#include "src/host/graph.h"
#include "src/host/host.h"
#include "src/host/memory.h"
#include "src/host/queue.h"
#include "src/host/random/random_host.h"
#include "src/host/record.h"
#include "src/host/telemetry.h"
#include "src/host/threads.h"
#include "src/host/work.h"
#include "src/process/process.h"

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
  } features[] = {{cpu->avx2, "avx2"},
                  {cpu->fma, "fma"},
                  {cpu->f16c, "f16c"},
                  {cpu->avx512f, "avx512f"},
                  {cpu->avx512bw, "avx512bw"},
                  {cpu->avx512vl, "avx512vl"},
                  {cpu->avx512dq, "avx512dq"},
                  {cpu->avx512_vnni, "avx512_vnni"},
                  {cpu->avx512_bf16, "avx512_bf16"}};
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
  AT_TRY(at_queue_check(queue));
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

/* ---- what the host need not do: no capture of another thread forbids a call, and there is no context ---- */

static int relax(const attune_device *device) {
  (void)device;
  return 0;
}

static void restore(int before) {
  (void)before;
}

static attune_status enter(attune_device *device, at_entered *out) {
  (void)device, (void)out;
  return ATTUNE_OK;
}

static void leave(const at_entered *entered) {
  (void)entered;
}

static attune_status initialize(attune_device *device) {
  (void)device;
  return ATTUNE_OK;
}

static bool is_initialized(const attune_device *device) {
  (void)device;
  return true;
}

static attune_status details(attune_device *device, attune_device_details *out) {
  (void)device, (void)out;
  return ATTUNE_OK;
}

static int each_library(attune_library_fn fn, void *user) {
  (void)fn, (void)user;
  return 0;
}

static attune_status each_process(attune_device *device, attune_device_process_fn fn, void *user) {
  (void)fn, (void)user;
  return at_unsupported(device, "list of the processes that use it");
}

static attune_status pointer_info(attune_device *device, attune_pointer_info *out, const void *pointer) {
  (void)device, (void)out, (void)pointer;
  return ATTUNE_OK;
}

static attune_status copy_between(attune_stream *stream, void *destination, const attune_device *to, const void *source,
                                  const attune_device *from, size_t bytes) {
  (void)to, (void)from;
  return at_host_copy(stream, destination, source, bytes);
}

static attune_status pin(attune_device *device, void *pointer, size_t bytes) {
  (void)device, (void)pointer, (void)bytes;
  return ATTUNE_OK;
}

static attune_status unpin(attune_device *device, void *pointer) {
  (void)device, (void)pointer;
  return ATTUNE_OK;
}

static attune_status managed_advise(attune_device *device, void *pointer, size_t bytes,
                                    const attune_managed_options *o) {
  (void)device, (void)pointer, (void)bytes, (void)o;
  return ATTUNE_OK;
}

static attune_status managed_state(attune_device *device, attune_managed_state *out, const void *pointer,
                                   size_t bytes) {
  (void)out, (void)pointer, (void)bytes;
  return at_fail(ATTUNE_UNSUPPORTED, "device %s takes no advice: all of its memory belongs to the CPU", device->name);
}

static bool stream_joins(const attune_stream *stream) {
  (void)stream;
  return false;
}

static attune_status capture_info(attune_stream *stream, uint64_t *id, bool *broken) {
  (void)stream, (void)id, (void)broken; /* attune's captures are all there are */
  return ATTUNE_OK;
}

static void *graph_native(const at_graph *graph, bool executable) {
  (void)graph, (void)executable;
  return NULL;
}

static attune_status graph_upload(at_graph *graph, attune_stream *stream) {
  (void)graph, (void)stream;
  return ATTUNE_OK;
}

static attune_status graph_trim(attune_device *device) {
  (void)device;
  return ATTUNE_OK;
}

static attune_status graph_memory(attune_device *device, uint64_t *out_used, uint64_t *out_reserved) {
  (void)device, (void)out_used, (void)out_reserved;
  return ATTUNE_OK;
}

/* ---- the tables ---- */

static const at_backend_device device_table = {
    .count = count,
    .open = device_open,
    .synchronize = device_synchronize,
    .wait_streams = device_synchronize,
    .relax = relax,
    .restore = restore,
    .enter = enter,
    .leave = leave,
    .initialize = initialize,
    .is_initialized = is_initialized,
    .details = details,
    .each_library = each_library,
};

static const at_backend_telemetry telemetry_table = {
    .clock_state = clock_state,
    .read = at_host_telemetry,
    .each_process = each_process,
};

static const at_backend_memory memory_table = {
    .alloc = at_host_memory_alloc,
    .free = at_host_memory_free,
    .info = at_host_memory_info,
    .pointer_info = pointer_info,
    .copy = at_host_copy,
    .copy_between = copy_between,
    .fill = at_host_fill,
    .copy_rows = at_host_copy_rows,
    .reduce = at_reduce_host,
    .copy_box = at_host_copy_box,
    .fill_box = at_host_fill_box,
};

static const at_backend_stream stream_table = {
    .open = stream_open,
    .close = stream_close,
    .runs_here = stream_runs_here,
    .query = stream_query,
    .synchronize = stream_synchronize,
    .wait = at_host_event_wait,
    .capturing = stream_capturing,
    .joins = stream_joins,
    .call = at_host_call,
};

static const at_backend_event event_table = {
    .open = at_host_event_open,
    .close = at_host_event_close,
    .record = at_host_event_record,
    .query = at_host_event_query,
    .synchronize = at_host_event_synchronize,
    .elapsed = at_host_event_elapsed,
};

static const at_backend_graph graph_table = {
    .capture_begin = at_record_begin,
    .capture_end = at_host_graph_record,
    .capture_info = capture_info,
    .launch = at_host_graph_launch,
    .destroy = at_host_graph_destroy,
    .instantiate = at_host_graph_instantiate,
    .update = at_host_graph_update,
    .nodes = at_host_graph_nodes,
    .dump = at_host_graph_dump,
    .native = graph_native,
    .node = at_host_graph_node,
    .edges = at_host_graph_edges,
    .get_parameters = at_host_graph_get_parameters,
    .set_parameters = at_host_graph_set_parameters,
    .set_enabled = at_host_graph_set_enabled,
    .clone = at_host_graph_clone,
    .upload = graph_upload,
    .trim = graph_trim,
    .memory = graph_memory,
};

static const at_backend_random random_table = {
    .run = at_random_run_host,
    .state = at_random_state_host,
};

static const at_backend_pinned pinned_table = {
    .alloc = at_host_pinned_alloc,
    .free = at_host_pinned_free,
    .pin = pin,
    .unpin = unpin,
};

static const at_backend_managed managed_table = {
    .check = at_host_managed_check,
    .alloc = at_host_memory_alloc,
    .advise = managed_advise,
    .prefetch = at_host_managed_prefetch,
    .state = managed_state,
};

static const at_backend_vm vm_table = {
    .granularity = at_host_vm_granularity,
    .reserve = at_host_vm_reserve,
    .release = at_host_vm_release,
    .map = at_host_vm_map,
    .unmap = at_host_vm_unmap,
};

const at_backend at_host_backend = {
    .name = "host",
    .kind = ATTUNE_DEVICE_HOST,
    .device = &device_table,
    .telemetry = &telemetry_table,
    .memory = &memory_table,
    .stream = &stream_table,
    .event = &event_table,
    .graph = &graph_table,
    .random = &random_table,
    .pinned = &pinned_table,
    .managed = &managed_table,
    .vm = &vm_table,
};
